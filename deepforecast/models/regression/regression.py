"""Any regressor of scikit-learn, or like one, on features of the past."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from deepforecast.core.capabilities import Capabilities
from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.core.skops_objects import SkopsSerializer
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError
from deepforecast.models.regression import _objects
from deepforecast.models.regression._base import RegressionForecaster
from deepforecast.models.regression._fitted import Line
from deepforecast.models.regression._named import NAMED, RegressorName
from deepforecast.models.regression._objects import Regressor, Whole
from deepforecast.models.regression._options import handed_on
from deepforecast.models.regression._samples import Sample


@register
class Regression(RegressionForecaster):
    """A regressor by name, or your own, on lags, windows, the calendar and covariates; one model for all series.

    By name: "linear", "ridge", "lasso", "elastic_net", "quantile" (linear, for quantiles too), "random_forest",
    "hist_gradient_boosting", "knn", "svr" (for some ten thousand rows at most) and "mlp", with features and target scaled
    where that matters; `options` are what scikit-learn's class takes. Your own: any object with fit, predict and get_params,
    such as a pipeline. Copies of it are fitted, never itself; whether its features may be missing and it gives several steps
    at once is what its tags say. Trees get categories as numbers, all others as columns of their own.
    Reference: Pedregosa et al. (2011), Scikit-learn: Machine Learning in Python.

    Measured coverage of 80 % intervals with regressor='ridge', intervals='conformal': M1 monthly 84
    %, NN5 daily 88 %, EPF Nord Pool hourly 69 % (benchmarks/bench_coverage.py).

    >>> from sklearn.linear_model import LinearRegression
    >>> from deepforecast import datasets
    >>> plain = {"lag_transforms": None, "calendar": None, "differences": None}
    >>> model = Regression(LinearRegression(), horizon=3, lags=[1, 12], **plain)
    >>> model.fit(datasets.load("air_passengers")).predict()["Regression"].round(0).tolist()
    [457.0, 437.0, 460.0]
    """

    capabilities = replace(RegressionForecaster.capabilities, explains=True)

    regressor: RegressorName | Regressor = param(
        kw_only=False, help="a name, or a regressor of your own",
    )
    options: dict[str, Any] | None = param(
        default=None, help="what the named regressor takes, by its own names",
    )

    number: ClassVar[type] = np.float64
    warm_up_params: ClassVar[dict[str, Any]] = {"regressor": "ridge", "options": None}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's parameters; with `deep` those of a regressor of one's own too, as `regressor__alpha`."""
        found = super().get_params(deep)
        if deep and not isinstance(self.regressor, str):
            found |= {f"regressor__{name}": value for name, value in self.regressor.get_params().items()}  # type: ignore[attr-defined]
        return found

    def set_params(self, **given: Any) -> Self:
        """Change parameters, those of a regressor of one's own in a copy of it; all of them or, on an error, none."""
        inner = {name: value for name, value in given.items() if name.startswith("regressor__")}
        outer = {name: value for name, value in given.items() if name not in inner}
        own = outer.get("regressor", getattr(self, "regressor", None))
        if not inner or isinstance(own, str) or not isinstance(own, Regressor):
            return super().set_params(**given)
        return super().set_params(**{**outer, "regressor": _objects.changed(own, inner)})

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """What the contract checks try: a line for all steps at once, lines for quantiles."""
        lines = {"regressor": "quantile", "strategy": "direct", "quantiles": [0.05, 0.5, 0.95]}
        return [{"regressor": "ridge", "strategy": "direct_multioutput"}, lines]

    @property
    def takes_missing(self) -> bool:  # type: ignore[override]
        """Features may be missing."""
        own = self.regressor
        return NAMED[own].takes_missing if isinstance(own, str) else _objects.takes_missing(own)

    @property
    def gives_several(self) -> bool:  # type: ignore[override]
        """One regressor can give several steps at once."""
        own = self.regressor
        return NAMED[own].gives_several if isinstance(own, str) else _objects.gives_several(own)

    @property
    def adds_up(self) -> bool:  # type: ignore[override]
        """Categories and what comes round get columns of their own."""
        own = self.regressor
        return NAMED[own].adds_up if isinstance(own, str) else _objects.adds_up(own)

    @property
    def gives_quantiles(self) -> bool:  # type: ignore[override]
        """It can be trained for a quantile."""
        return isinstance(self.regressor, str) and NAMED[self.regressor].gives_quantiles

    @property
    def gives_shares(self) -> bool:  # type: ignore[override]
        """It can say what each feature adds."""
        return isinstance(self.regressor, str) and NAMED[self.regressor].kind is Line

    def _narrow(self, declared: Capabilities) -> Capabilities:
        able, own = super()._narrow(declared), self.regressor
        steady = isinstance(own, str) and NAMED[own].steady
        even = steady and self.adds_up
        return replace(
            able,
            scale_equivariant=able.scale_equivariant and steady,
            shift_equivariant=able.shift_equivariant and steady,
            sign_equivariant=able.sign_equivariant and even,
        )

    def _min_observations(self, panel: Panel) -> int:
        if self.options and not isinstance(self.regressor, str):
            raise ParameterError("options= are those of a regressor by name; your own has its own: Regression(Ridge(alpha=2)).")
        return super()._min_observations(panel)

    def _train(self, sample: Sample, level: float | None) -> Any:
        if isinstance(self.regressor, str):
            with handed_on(self.options, f"Regression({self.regressor!r})"):
                return NAMED[self.regressor].train(sample, level, self.options or {})
        return _objects.learned(self.regressor, sample)

    def _values(self, regressor: Any, rows: Any) -> Floats:
        return np.asarray(regressor.values(rows))

    def _shares(self, regressor: Any, rows: Any) -> Floats:
        return np.asarray(regressor.shares(rows))

    def _gains(self, regressor: Any) -> Floats | None:
        return getattr(regressor, "gains", None)

    def _written(self, regressor: Any, foreign: SkopsSerializer) -> dict[str, Any]:
        if not isinstance(regressor, Whole):
            return dict(regressor.written())
        return {"object": foreign.serialize(regressor.estimator, "the fitted regressor"), "centre": regressor.centre}

    def _revived(self, said: Mapping[str, Any], foreign: SkopsSerializer) -> Any:
        if isinstance(self.regressor, str):
            return NAMED[self.regressor].kind.read(said)
        return Whole(foreign.deserialize(said["object"], "the fitted regressor"), said["centre"])
