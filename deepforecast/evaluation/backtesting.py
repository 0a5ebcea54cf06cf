"""What a backtest is asked for: its models, its windows, its rarer options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from deepforecast.core.forecast import validate_horizon
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.registry import names as registered
from deepforecast.data.integers import validate_integer
from deepforecast.data.panel import Panel
from deepforecast.data.splits import BacktestPlan
from deepforecast.errors import ParameterError, ParameterTypeError, format_list, format_value, warn

ALIGNMENTS = ("auto", "series", "calendar")


@dataclass(frozen=True)
class BacktestOptions:
    """The rarer options of a backtest.

    gap: rows left out between a cutoff and the first step judged. size: rows a window learns from (None: all before the
    cutoff, an expanding window). align: "series" counts cutoffs back from each series' own end, so that every series is in
    every window; "calendar" from the latest end of all, so that nothing after a cutoff is seen of any series: series that are
    too new for a window, or have ended before it, are not in it. "auto" is "calendar", aloud, where series end at different
    times and one of the models learns from several series at once, else "series". workers: processes at a time, one model
    each (-1: as many as there are CPUs; None: what the caller's `joblib.parallel_config` says, else this process). seed:
    given to every model that has one, wrapped ones too. progress: a bar on stderr that counts windows, or with several workers
    models, and tells the time left (default: in terminals and notebooks, if it takes more than half a second).
    """

    gap: int = 0
    train_size: int | None = None
    align: Literal["auto", "series", "calendar"] = "auto"
    n_jobs: int | None = None
    seed: int | None = None
    progress: bool | None = None

    def __post_init__(self) -> None:
        validate_integer(self.gap, "gap", minimum=0)
        if self.train_size is not None:
            validate_integer(self.train_size, "train_size")
        if self.align not in ALIGNMENTS:
            raise ParameterError(f"align is 'auto', 'series' or 'calendar'; got {format_value(self.align)}.")
        if self.n_jobs not in (None, -1):
            validate_integer(self.n_jobs, "n_jobs")
        if self.seed is not None:
            validate_integer(self.seed, "seed", minimum=0)
        if self.progress not in (None, True, False):
            raise ParameterTypeError(f"progress is True, False or None; got {format_value(self.progress)}.")


def validate_options(options: Any) -> BacktestOptions:
    """The options as they are given, if they are a `BacktestOptions`."""
    if not isinstance(options, BacktestOptions):
        description = f"{format_value(options)} ({type(options).__name__})"
        raise ParameterTypeError(f"options is a BacktestOptions object, e.g. BacktestOptions(gap=1); got {description}.")
    return options


def validate_models(models: Any, horizon: int | None) -> list[Forecaster]:
    """A list of models that agree on the horizon, cloned with it; each has a name of its own."""
    forecasters = list(models) if isinstance(models, (list, tuple)) else [models]
    if not forecasters:
        raise ParameterError("models is a model or a list of them; the list is empty.")
    for model in forecasters:
        if not isinstance(model, Forecaster):
            class_name = model.__name__ if isinstance(model, type) else model if model in registered() else None
            hint = f" Did you mean {class_name}()?" if class_name else ""
            raise ParameterTypeError(f"models holds model objects; got {format_value(model)} ({type(model).__name__}).{hint}")
    names = [model.name for model in forecasters]
    duplicates = [name for index, name in enumerate(names) if name in names[:index]]
    if duplicates:
        raise ParameterError(f"Each model has a name of its own; {format_list(duplicates)} is there twice. Give alias= to one of them.")
    if horizon is not None:
        return [model.clone(horizon=validate_horizon(horizon)) for model in forecasters]
    horizons = {model.default_horizon for model in forecasters if model.default_horizon is not None}
    if len(horizons) != 1:
        problem = "none of them says one" if not horizons else f"they say {format_list(sorted(horizons))}"
        raise ParameterError(f"horizon is given or the models agree on it; {problem}. Say horizon=...")
    return [model.clone(horizon=horizons.copy().pop()) for model in forecasters]


def make_plan(models: Sequence[Forecaster], panel: Panel, n_windows: Any, step_size: Any, options: BacktestOptions) -> BacktestPlan:
    """The checked plan of a backtest of models that agree on the horizon."""
    horizon = int(models[0].horizon or 0)
    step = horizon if step_size is None else validate_integer(step_size, "step_size")
    train_size = None if options.train_size is None else int(options.train_size)
    full_windows = bool(panel.series.columns.future)  # a model that does without what is known ahead is judged on the same rows
    align = resolve_alignment(models, panel) if options.align == "auto" else options.align
    return BacktestPlan(horizon, validate_integer(n_windows, "n_windows"), step, int(options.gap), train_size, align, full_windows=full_windows)


def resolve_alignment(models: Sequence[Forecaster], panel: Panel) -> str:
    """How "auto" counts cutoffs: so that no forecast rests on a row after its cutoff; said where that costs windows."""
    global_models = [model.name for model in models if not model.capabilities.local]
    if not global_models or int(panel.series.last.min()) == int(panel.series.last.max()):
        return "series"
    warn(
        f"Series end at different times and {format_list(global_models)} learns from all of them at once, so cutoffs are counted from the "
        "latest end: no forecast sees a row after its cutoff, and series that end early are in fewer windows. To choose: "
        "options=BacktestOptions(align='calendar') does the same in silence, align='series' counts from the end of each series."
    )
    return "calendar"


def with_seed(model: Forecaster, seed: int | None) -> Forecaster:
    """The model with that seed, as far as it or a model in it has one."""
    if seed is None:
        return model
    return model.clone().set_params(**{name: seed for name in model.get_params() if name.rpartition("__")[2] == "seed"})


DEFAULT_OPTIONS = BacktestOptions()
