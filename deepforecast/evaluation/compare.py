"""Several models on the same rolling windows: who is best, how sure that is, and what it costs."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from traceback import format_exception
from typing import Any

import numpy as np

from deepforecast.core.backtest import refit_every
from deepforecast.core.forecast import validate_levels
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.parallel import map_items
from deepforecast.core.preprocessing import drop_unusable
from deepforecast.core.progress import Tick, ignore_count
from deepforecast.data.columns import Columns, warn_undeclared
from deepforecast.data.frames import Floats, Frame
from deepforecast.data.panel import Panel
from deepforecast.data.splits import BacktestPlan
from deepforecast.errors import CalibrationError, DataError, TrainingError, format_value, warn
from deepforecast.evaluation.backtesting import (
    DEFAULT_OPTIONS,
    BacktestOptions,
    make_plan,
    validate_models,
    validate_options,
    with_seed,
)
from deepforecast.evaluation.criteria import Criteria, check_model_names, resolve_criteria
from deepforecast.evaluation.cross_validation import BacktestRows, backtest, run_models, uses_workers
from deepforecast.evaluation.environment import describe_environment
from deepforecast.evaluation.leaderboard import Leaderboard
from deepforecast.evaluation.leaderboard_summary import undercoverage_notes
from deepforecast.evaluation.metric_inputs import MAX_MAGNITUDE
from deepforecast.evaluation.ranking import make_leaderboard
from deepforecast.evaluation.resource_usage import measure_resources
from deepforecast.evaluation.runtime_estimate import RuntimeEstimate, announce_runtime, estimate_runtime
from deepforecast.evaluation.warm_up import warm_up

__all__ = ["Leaderboard", "compare"]


@dataclass(frozen=True)
class ModelRun:
    """What one model did: forecast columns over the rows judged, or the error it ended with."""

    name: str
    columns: Mapping[str, Floats] = field(default_factory=dict)
    fit_seconds: float = float("nan")
    predict_seconds: float = float("nan")
    fit_cpu: float = float("nan")
    predict_cpu: float = float("nan")
    peak_mb: float | None = None
    unused: tuple[str, ...] = ()
    error: str = ""
    cause: Exception | None = None

    def with_error(self, error: Exception) -> ModelRun:
        """The same model, ended with an error: what it forecast does not count."""
        return replace(self, columns={}, error=format_error(error), cause=error)


def format_error(error: Exception) -> str:
    """An error as a row tells it: its kind and, where there are any, its words."""
    error_name = type(error).__name__
    try:
        text = str(error)
    except Exception as message_error:  # a model may bring its own kinds of errors, broken ones too
        text = f"(its message cannot be read: {type(message_error).__name__})"
    return f"{error_name}: {text}" if text else error_name


def compare(
    models: Sequence[Forecaster],
    frame: Frame,
    *,
    horizon: int | None = None,
    n_windows: int = 3,
    level: Any = None,
    metrics: Any = None,
    season_length: int | None = None,
    refit: Any = "auto",
    freq: Any = None,
    columns: Columns | Mapping[str, Any] | None = None,
    static: Frame | None = None,
    options: BacktestOptions = DEFAULT_OPTIONS,
) -> Leaderboard:
    """Rank models by rolling cross-validation; the first of `metrics` decides (default: MASE, or MAE where no season is known).

    `metrics`: names, functions `(actual, forecast) -> number` or `Metric` objects, as in `score`. Each is computed for every
    series over all its windows, and the board shows the mean over series with a bootstrap interval: every series counts once,
    and a mean of rmse by series is smaller than the rmse of all points pooled (`score(board.forecasts)` gives that).
    `season_length`: what mase and rmsse are scaled by, where it does not follow from the frequency.

    A model that fails is a row with its error, not the end of the run; so is one whose worker process dies. A model that
    cannot use a declared covariate runs without it (the column `unused` says so); one without a distribution of its own
    gets conformal intervals if `level` is given; the coverage of levels for which it has too few calibration windows
    stays empty, with a `DataWarning`. From 30 actual values on, a `DataWarning` lists the models whose intervals
    cover over 10 percentage points less than their level (80 % intervals: less than 70 %), by more than chance:
    1.645 standard errors below the level, the mean of each series in each window being one observation.

    Kernels are compiled and libraries imported before anything is timed, by fits on a few made-up values. Before a
    run of half a minute and more a line in the terminal estimates it, by trials on a few series.
    `options=BacktestOptions(n_jobs=2)` runs models side by side, each on one thread in a process of its own: it pays for
    several long models that use one core, not for those whose kernels use all cores already (AutoETS, AutoARIMA and
    the other classical ones), nor for short runs, which wait for the processes to start.

    >>> from deepforecast import Naive, SeasonalNaive, datasets
    >>> board = compare([Naive(), SeasonalNaive()], datasets.load("air_passengers"), horizon=12, n_windows=2)
    >>> board.table["model"].tolist()
    ['SeasonalNaive', 'Naive']
    """
    start_time, created = time.perf_counter(), datetime.now(UTC)
    options, candidates = validate_options(options), validate_models(models, horizon)
    names = [model.name for model in candidates]
    panel = Panel.from_frame(frame, columns=columns, freq=freq, static=static)
    levels = validate_levels(level)
    plan = _with_min_observations(make_plan(candidates, panel, n_windows, None, options), candidates, panel, levels)
    refit_intervals = [refit_every(refit, model.capabilities.by_series) for model in candidates]
    check_model_names(names, panel.series.columns, levels)
    rows = BacktestRows.from_plan(panel, plan)
    criteria = resolve_criteria(metrics, names, panel, rows, levels, season_length)
    warn_undeclared(panel.undeclared)
    prepare = partial(_prepare_model, levels=levels, seed=options.seed)
    estimate = _estimate_runtime(options, candidates, panel, plan, refit_intervals, prepare, levels)
    announce_runtime(estimate, len(candidates), plan, panel, options.progress)
    main_pid = os.getpid()

    def work(number: int, tick: Tick) -> ModelRun:
        model_run = _run_dropping_levels(candidates[number], panel, plan, refit, levels, options.seed, tick)
        if number:  # one cause is enough to chain, and each holds all that its traceback saw
            return replace(model_run, cause=None)
        return model_run if os.getpid() == main_pid else replace(model_run, cause=_picklable_error(model_run.cause))

    def lost_run(number: int, error: TrainingError) -> ModelRun:
        return ModelRun(names[number]).with_error(error)

    runs = [check_forecasts(unchecked_run, rows, panel) for unchecked_run in run_models(work, names, plan.n_windows, options, lost_run)]
    _raise_if_all_failed(runs)
    settings = _settings(candidates, panel, plan, criteria, options, levels) | _evaluated_series(rows, panel) | {
        "refit": str(refit), "level": levels, "made": created.isoformat(timespec="seconds"),
        "estimate_seconds": None if estimate is None else estimate.likely,
    }  # fmt: skip
    board = make_leaderboard(runs, rows, panel, frame, criteria, settings)
    for sentence in undercoverage_notes(board):
        warn(sentence)
    return replace(board, settings=settings | {"seconds": time.perf_counter() - start_time})


def run_model(
    model: Forecaster,
    panel: Panel,
    plan: BacktestPlan,
    refit: Any,
    levels: Sequence[float],
    seed: int | None = None,
    tick: Tick = ignore_count,
) -> ModelRun:
    """One model through all windows; whatever it raises becomes its row."""
    model_run = ModelRun(model.name)
    warm_up(model, panel, levels)
    with measure_resources() as usage:
        try:
            usable_panel, unused = drop_unusable(panel, model.capabilities)
            model_run = replace(model_run, unused=tuple(unused))
            backtested = backtest(_prepare_model(model, levels, seed), usable_panel, plan, refit, levels, tick)
        except Exception as error:  # any model may fail in any way: its row says how, the others go on
            return model_run.with_error(error)
    model_run = replace(model_run, columns=backtested.columns, fit_seconds=backtested.fit_seconds, predict_seconds=backtested.predict_seconds)
    return replace(model_run, fit_cpu=backtested.fit_cpu, predict_cpu=backtested.predict_cpu, peak_mb=usage.peak_mb)


def _run_dropping_levels(
    model: Forecaster, panel: Panel, plan: BacktestPlan, refit: Any, levels: Sequence[float], seed: int | None, tick: Tick
) -> ModelRun:
    """`run_model`, without the levels for which a conformal calibration has too few windows: points are ranked all the same."""
    full_run = run_model(model, panel, plan, refit, levels, seed, tick)
    if not isinstance(full_run.cause, CalibrationError):
        return full_run
    for count in reversed(range(len(levels))):
        candidate = model if count else model.clone(intervals=None)
        reduced_run = run_model(candidate, panel, plan, refit, levels[:count], seed, tick)
        if not reduced_run.error:
            missing = ", ".join(f"{level:g} %" for level in levels[count:])
            warn(f"{model.name} is ranked without {missing} intervals, which cannot be calibrated: {full_run.cause}")
            return reduced_run
        if not isinstance(reduced_run.cause, CalibrationError):
            break
    return full_run


def _estimate_runtime(options: BacktestOptions, models: Sequence[Forecaster], *arguments: Any) -> RuntimeEstimate | None:
    """`estimate_runtime`, in a worker process where models run in some: a model that kills its process kills no other."""
    if not uses_workers(options, len(models)):
        return estimate_runtime(models, *arguments, n_jobs=1)
    return map_items(
        lambda _: estimate_runtime(models, *arguments, n_jobs=options.n_jobs),
        ["the estimate"], on_lost=lambda *_: None, n_jobs=options.n_jobs, progress=False, label="models on trial",
    )[0]  # fmt: skip


def _with_min_observations(plan: BacktestPlan, models: Sequence[Forecaster], panel: Panel, levels: Sequence[float]) -> BacktestPlan:
    """Windows that leave out series too new for any of the models, where windows may leave series out."""
    requirements = [1]
    for model in models if plan.align == "calendar" else ():
        try:
            requirements.append(_prepare_model(model, levels)._min_observations_to_fit(drop_unusable(panel, model.capabilities)[0]))
        except Exception:  # a model that cannot tell what it needs will say so in its own row
            requirements.append(1)
    return replace(plan, min_observations=max(requirements))


def _prepare_model(model: Forecaster, levels: Sequence[float], seed: int | None = None) -> Forecaster:
    """The model with the seed, and with bands where they are asked for and it has none of its own."""
    model = with_seed(model, seed)
    return model if not levels or model.capabilities.distribution is not None else model.clone(intervals="conformal")


def _picklable_error(cause: Exception | None) -> Exception | None:
    """The same as text: not every error can travel between processes, and one that cannot would take its worker with it."""
    return None if cause is None else RuntimeError("".join(format_exception(cause)))


def check_forecasts(run: ModelRun, rows: BacktestRows, panel: Panel) -> ModelRun:
    """A run whose forecasts can be judged; any other has failed."""
    with np.errstate(invalid="ignore"):
        for name, values in run.columns.items():
            invalid_rows = np.flatnonzero(~(np.abs(values) < MAX_MAGNITUDE))  # NaN too
            if len(invalid_rows):
                return run.with_error(DataError(_not_finite_message(name, values, invalid_rows, rows, panel)))
    return run


def _not_finite_message(name: str, values: Floats, invalid_rows: Any, rows: BacktestRows, panel: Panel) -> str:
    first = int(invalid_rows[0])
    location = f"series {panel.series.label(int(rows.series[first]))} at {panel.calendar.format(int(rows.position[first]))}"
    hint = (
        "Where it has too few values to know their spread, it has no level: give longer series or ask for no level."
        if np.isnan(values[first])
        else "Rescale the data, or leave this series out."
    )
    description = f"{name} is {values[first]} for {location} ({len(invalid_rows)} such values)"
    return f"Forecasts must be finite and below {MAX_MAGNITUDE:g}; {description}. {hint}"


def _raise_if_all_failed(runs: Sequence[ModelRun]) -> None:
    if not all(model_run.error for model_run in runs):
        return
    messages = " ".join(f"{format_value(model_run.name)} failed: {format_value(model_run.error, 500)}" for model_run in runs[:3])
    ending = f" (and {len(runs) - 3} more)" if len(runs) > 3 else ""
    raise TrainingError(f"No model could be compared, and a board needs one that runs. {messages}{ending}") from runs[0].cause


def _evaluated_series(rows: BacktestRows, panel: Panel) -> dict[str, Any]:
    """How many series there are scores of, and which of the others are the first."""
    unevaluated = np.setdiff1d(np.arange(len(panel)), rows.series)
    return {"series": len(panel) - len(unevaluated), "not_judged": panel.series.labels(unevaluated) if len(unevaluated) else ""}


def _settings(
    models: Sequence[Forecaster],
    panel: Panel,
    plan: BacktestPlan,
    criteria: Criteria,
    options: BacktestOptions,
    levels: Sequence[float],
) -> dict[str, Any]:
    """All that was set, and where it ran."""
    names = panel.series.columns
    return {
        "horizon": plan.horizon, "n_windows": plan.n_windows, "freq": panel.calendar.freq,
        "rows": len(panel.y),
        "gap": plan.gap, "train_size": plan.train_size, "align": plan.align, "seed": options.seed, "n_jobs": options.n_jobs,
        "season_length": criteria.season_length, "metrics": [criterion.column for criterion in criteria.requested],
        "columns": {"id": names.id, "time": names.time, "target": names.target},
        "conformal": [model.name for model in models if levels and _prepare_model(model, levels).calibrates],
        "covariates": {role: list(getattr(names, role)) for role in ("future", "past", "static") if getattr(names, role)},
        "undeclared": list(panel.undeclared), "models": {model.name: repr(model) for model in models}, **describe_environment(),
    }  # fmt: skip
