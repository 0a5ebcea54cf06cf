"""Base class of gradient boosted trees: number of trees, learning rate and early stopping."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from deepforecast.core.params import param
from deepforecast.core.threads import allowed_threads, is_forked, passive_waiting
from deepforecast.data.frames import Floats
from deepforecast.errors import DataError, DependencyError, ParameterError, format_list
from deepforecast.models.regression._base import RegressionForecaster
from deepforecast.models.regression._options import attribute_to_options
from deepforecast.models.regression._samples import Sample


class BoostedTrees(RegressionForecaster):
    """Base of gradient boosted trees. Categorical features and missing values are handled natively.

    With `early_stopping_rounds` the last observations of each series are held out. Training stops
    when that many trees in a row have not improved the forecasts of them; the trees up to the best
    iteration are kept.
    """

    capabilities = replace(RegressionForecaster.capabilities, sign_equivariant=False)
    accepts_missing: ClassVar[bool] = True
    supports_quantiles: ClassVar[bool] = True

    thread_options: ClassVar[tuple[str, ...]] = ()  # names in `options` for the number of threads
    package: ClassVar[str | None] = None  # optional package that must be installed
    small_data_params: ClassVar[dict[str, Any]] = {}  # parameters that allow splits of small samples
    warm_up_params: ClassVar[dict[str, Any]] = {"n_estimators": 1, "early_stopping_rounds": None, "validation_size": None}
    learning_example: ClassVar[dict[str, Any]] = {
        **RegressionForecaster.learning_example, "calendar": ["day_of_week"], "n_estimators": 200, "learning_rate": 0.1
    }  # fmt: skip

    n_estimators: int = param(
        default=200, at_least=1, low=50, high=1000, log=True,
        help="number of trees; the maximum number if early_stopping_rounds is set",
    )
    learning_rate: float = param(
        default=0.05, above=0, low=0.01, high=0.3, log=True,
        help="shrinkage of the contribution of each tree",
    )
    early_stopping_rounds: int | None = param(
        default=None, at_least=1,
        help=(
            "number of trees without improvement on the validation set after which training stops; None: no "
            "early stopping"
        ),
    )
    validation_size: int | None = param(
        default=None, at_least=1,
        help=(
            "number of last observations per series in the validation set of early stopping; None: the horizon "
            "or a tenth of the longest series, whichever is larger"
        ),
    )
    seed: int = param(
        default=0, at_least=0,
        help="random seed",
    )
    options: dict[str, Any] | None = param(
        default=None,
        help="further options of the underlying library, under the names that library uses; None: no further options",
    )

    coverage_slow: ClassVar[bool] = True

    @property
    def coverage_example(self) -> dict[str, Any]:
        """Parameters for measuring the coverage of intervals: enough trees to learn a season."""
        return {**super().coverage_example, "n_estimators": 50, "learning_rate": 0.2}

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Configurations for the contract checks: few small trees."""
        small_model = {"n_estimators": 10, **cls.small_data_params}
        return [small_model, {**small_model, "n_estimators": 3, "strategy": "direct", "quantiles": [0.05, 0.5, 0.95]}]

    def _train(self, sample: Sample, level: float | None) -> Any:
        with attribute_to_options(self.options, type(self).__name__):
            return self._fit_trees(sample, level)

    @abstractmethod
    def _fit_trees(self, sample: Sample, level: float | None) -> Any:
        """Fit trees to the mean, or to the quantile `level`."""

    def _split_validation(self, sample: Sample) -> tuple[Sample, Sample | None]:
        """Split off the last rows of each series for validation; None without early stopping.

        `DataError` if no rows are left for training or validation.
        """
        if self.early_stopping_rounds is None:
            return sample, None
        n_last = self.validation_size or max(self.default_horizon or 1, int(sample.n_following.max() + 1) // 10)
        training, validation = sample.split(n_last)
        if not len(training) or not len(validation):
            default = "" if self.validation_size else " (the default: the horizon, or a tenth of the longest series)"
            raise DataError(
                f"{self.name}: early stopping must have rows for training and for validation, but validation_size={n_last}"
                f"{default} splits {len(sample)} rows into {len(training)} for training and {len(validation)} for validation.",
                hint="Set a smaller `validation_size` or early_stopping_rounds=None, or pass longer series."
            )
        return training, validation

    def _n_threads(self) -> int:
        """Number of threads: from `options` if it is positive there and the process is not forked, else the default."""
        options = self.options or {}
        thread_counts = [int(options[name]) for name in self.thread_options if name in options]
        return thread_counts[0] if thread_counts and thread_counts[0] > 0 and not is_forked() else allowed_threads()

    def _options_without_threads(self) -> dict[str, Any]:
        """The `options` without the number of threads."""
        options = self.options or {}
        return {name: value for name, value in options.items() if name not in self.thread_options}

    def _refuse_unknown_options(self, known_options: Iterable[str]) -> None:
        """Raise `ParameterError` if `options` has names that the library does not know and would silently ignore."""
        unknown = sorted(set(self.options or ()) - set(known_options))
        if unknown:
            raise ParameterError(
                f"Unknown `options` for {type(self).__name__}: {format_list(unknown)}.",
                hint="Use the option names of its library, "
                "or remove them.",
                parameter="options",
            )


def import_library(library: str, model: str) -> Any:
    """Import an optional package so that its waiting threads sleep; `DependencyError` if it is missing."""
    try:
        with passive_waiting(library):
            return import_module(library)
    except ImportError:
        raise DependencyError(
            f"{model} requires the package {library}, which is not installed.",
            hint=f"Run: pip install {library}"
        ) from None


def mean_loss(target: Floats, forecasts: Floats, weight: Floats | None, level: float | None) -> float:
    """Mean squared error, or pinball loss of a quantile."""
    errors = target - forecasts
    losses = errors * errors if level is None else np.maximum(level * errors, (level - 1) * errors)
    return float(np.average(losses, weights=weight))
