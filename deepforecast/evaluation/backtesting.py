"""Options of a backtest and validation of its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from deepforecast.core.forecast import validate_horizon
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.registry import names as registered
from deepforecast.data.panel import Panel
from deepforecast.data.windows import BacktestPlan
from deepforecast.errors import ParameterError, ParameterTypeError, format_list, format_value, validate_integer, warn

ALIGNMENTS = ("auto", "series", "calendar")


@dataclass(frozen=True)
class BacktestOptions:
    """Additional options of `compare` and `cross_validate`.

    Parameters
    ----------
    train_size : int, optional
        Number of observations per series to train on (sliding window). None: all before the
        cutoff (expanding window).
    align : {"auto", "series", "calendar"}, default "auto"
        How cutoffs are counted. "series": back from the end of each series, so that every
        series is in every window. "calendar": back from the latest end of all series, so that
        no model sees any value after a cutoff; series that start too late or end too early
        are not in every window. "auto": "calendar", with a warning, if series end at
        different times and a model is trained on several series at once; otherwise "series".
    seed : int, optional
        Random seed of every model that has one, including wrapped models.
    progress : bool, optional
        Whether to show a progress bar on stderr. It counts windows, or models if `n_jobs` is
        above 1. None: in terminals and notebooks, after half a second.

    Examples
    --------
    >>> from deepforecast import Naive, compare, datasets
    >>> from deepforecast.evaluation import BacktestOptions
    >>> frame = datasets.load("air_passengers")
    >>> board = compare([Naive()], frame, horizon=6, options=BacktestOptions(train_size=60))
    >>> board.settings["train_size"]
    60
    """

    train_size: int | None = None
    align: Literal["auto", "series", "calendar"] = "auto"
    seed: int | None = None
    progress: bool | None = None

    def __post_init__(self) -> None:
        """Check the values."""
        if self.train_size is not None:
            validate_integer(self.train_size, "train_size")
        if self.align not in ALIGNMENTS:
            raise ParameterError(
                f"`align` must be 'auto', 'series' or 'calendar', got {format_value(self.align)}.",
                parameter="align",
                value=self.align,
            )
        if self.seed is not None:
            validate_integer(self.seed, "seed", minimum=0)
        if self.progress not in (None, True, False):
            raise ParameterTypeError(
                f"`progress` must be True, False or None, got {format_value(self.progress)}.",
                parameter="progress",
                value=self.progress,
            )


def validate_options(options: Any, name: str = "options") -> BacktestOptions:
    """`options`; anything but a `BacktestOptions` raises `ParameterTypeError`."""
    if not isinstance(options, BacktestOptions):
        description = f"{format_value(options)} ({type(options).__name__})"
        raise ParameterTypeError(
            f"`{name}` must be a BacktestOptions, got {description}.",
            hint="Pass for example BacktestOptions(train_size=100).",
            parameter=name,
            value=options,
        )
    return options


def validate_models(models: Any, horizon: int | None, name: str = "models") -> list[Forecaster]:
    """Clones of the models with a common horizon; their names must be unique."""
    forecasters = list(models) if isinstance(models, (list, tuple)) else [models]
    if not forecasters:
        raise ParameterError(
            f"`{name}` must contain at least one model, got an empty list.",
            hint="Pass a model or a list of models.",
            parameter=name,
        )
    for model in forecasters:
        if not isinstance(model, Forecaster):
            class_name = model.__name__ if isinstance(model, type) else (model if model in registered() else None)
            hint = f"Did you mean {class_name}()?" if class_name else "Pass for example [Naive(), SeasonalNaive()]."
            raise ParameterTypeError(
                f"`{name}` must contain model objects, got {format_value(model)} ({type(model).__name__}).",
                hint=hint,
                parameter=name,
                value=model,
            )
    names = [model.name for model in forecasters]
    duplicates = [name for index, name in enumerate(names) if name in names[:index]]
    if duplicates:
        raise ParameterError(
            f"Names of models must be unique, got more than once: {format_list(duplicates)}.", hint="Set `alias` on the others."
        )
    if horizon is not None:
        return [model.clone(horizon=validate_horizon(horizon)) for model in forecasters]
    horizons = {model.default_horizon for model in forecasters if model.default_horizon is not None}
    if len(horizons) != 1:
        found = "no model has a `horizon`" if not horizons else f"got {format_list(sorted(horizons))}"
        raise ParameterError(f"All models must be evaluated with the same horizon; {found}.", hint="Pass `horizon`.")
    return [model.clone(horizon=horizons.copy().pop()) for model in forecasters]


def validate_n_jobs(n_jobs: Any) -> int | None:
    """The number of processes: an integer of at least 1, -1 for one per CPU, or None."""
    if n_jobs is None or n_jobs == -1:
        return None if n_jobs is None else -1
    if isinstance(n_jobs, int) and n_jobs < 1:
        raise ParameterError(
            f"`n_jobs` must be at least 1, or -1 for one process per CPU, got {n_jobs}.",
            parameter="n_jobs",
            value=n_jobs,
        )
    return validate_integer(n_jobs, "n_jobs")


def make_plan(
    models: Sequence[Forecaster],
    panel: Panel,
    options: BacktestOptions,
    *,
    n_windows: Any,
    step_size: Any,
    gap: Any,
) -> BacktestPlan:
    """The windows of a backtest; the models must have the same horizon."""
    horizon = int(models[0].horizon or 0)
    step_size = horizon if step_size is None else validate_integer(step_size, "step_size")
    align = resolve_alignment(models, panel) if options.align == "auto" else options.align
    return BacktestPlan(
        horizon=horizon,
        n_windows=validate_integer(n_windows, "n_windows"),
        step=step_size,
        gap=validate_integer(gap, "gap", minimum=0),
        train_size=None if options.train_size is None else int(options.train_size),
        align=align,
        # models that cannot use future covariates are evaluated on the same rows as the others
        full_windows=bool(panel.series.columns.future),
    )


def resolve_alignment(models: Sequence[Forecaster], panel: Panel) -> str:
    """The alignment that "auto" stands for.

    "calendar", with a warning, if series end at different times and a model is trained on several
    series at once, because it would see values after the cutoff of some; otherwise "series".
    """
    global_models = [model.name for model in models if not model.capabilities.local]
    if not global_models or int(panel.series.last.min()) == int(panel.series.last.max()):
        return "series"
    warn(
        f"Series end at different times, and some models train on all series at once: {format_list(global_models)}. Cutoffs are "
        "therefore counted from the latest end, so that no model sees a value after its cutoff; series that end early are in "
        "fewer windows. Pass options=BacktestOptions(align='calendar') to silence this warning, or align='series' to count from the "
        "end of each series."
    )
    return "calendar"


def with_seed(model: Forecaster, seed: int | None) -> Forecaster:
    """The model with that seed, set wherever it or a wrapped model has one."""
    if seed is None:
        return model
    return model.clone().set_params(**{name: seed for name in model.get_params() if name.rpartition("__")[2] == "seed"})


DEFAULT_OPTIONS = BacktestOptions()
