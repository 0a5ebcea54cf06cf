"""Comparison of models by rolling cross-validation."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from traceback import format_exception
from typing import Any, Literal

import numpy as np

from deepforecast.core.backtest import refit_every
from deepforecast.core.forecast import validate_levels
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.monitor import Tick, ignore_count
from deepforecast.core.parallel import map_items
from deepforecast.core.preprocessing import drop_unusable
from deepforecast.data.columns import Columns, warn_undeclared
from deepforecast.data.frames import Floats, Frame, materialize
from deepforecast.data.panel import Panel
from deepforecast.data.windows import BacktestPlan
from deepforecast.errors import CalibrationError, DataError, TrainingError, format_value, warn
from deepforecast.evaluation.backtesting import (
    DEFAULT_OPTIONS,
    BacktestOptions,
    make_plan,
    validate_models,
    validate_n_jobs,
    validate_options,
    with_seed,
)
from deepforecast.evaluation.criteria import Criteria, check_model_names, resolve_criteria
from deepforecast.evaluation.cross_validation import BacktestRows, backtest, required_observations, run_models, uses_workers
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
    """The outcome of one model: forecast columns over the evaluated rows, or the error that ended
    it."""

    name: str
    columns: Mapping[str, Floats] = field(default_factory=dict)
    fit_seconds: float = float("nan")
    predict_seconds: float = float("nan")
    fit_cpu: float = float("nan")
    predict_cpu: float = float("nan")
    peak_mb: float | None = None
    unused: tuple[str, ...] = ()
    failed_series: int = 0
    error: str = ""
    cause: Exception | None = None

    def with_error(self, error: Exception) -> ModelRun:
        """The run as failed; its forecasts are discarded."""
        return replace(self, columns={}, error=format_error(error), cause=error)


def format_error(error: Exception) -> str:
    """The type of an error and its message."""
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
    step_size: int | None = None,
    gap: int = 0,
    level: Any = None,
    metrics: Any = None,
    season_length: int | None = None,
    refit: Any = "auto",
    freq: Any = None,
    columns: Columns | Mapping[str, Any] | None = None,
    static: Frame | None = None,
    on_failure: Literal["raise", "fallback", "drop"] = "fallback",
    n_jobs: int | None = None,
    options: BacktestOptions = DEFAULT_OPTIONS,
) -> Leaderboard:
    """Rank models by rolling cross-validation.

    A model that fails, or whose worker process dies, becomes a row with its error; the others
    continue. A model that cannot use a declared covariate runs without it (column `unused`).
    If `level` is given, a model without a distribution gets conformal prediction intervals;
    coverage is missing, with a `DataWarning`, for levels that cannot be calibrated because of
    too few windows.

    Parameters
    ----------
    models : sequence of Forecaster
        Models with unique names.
    frame : DataFrame
        Long frame with the series to forecast.
    horizon : int, optional
        Number of steps to forecast. Required unless all models have the same `horizon`.
    n_windows : int, default 3
        Number of cutoffs.
    step_size : int, optional
        Time steps between cutoffs. None: the horizon, so that windows do not overlap.
    gap : int, default 0
        Number of time steps between a cutoff and the first step that is forecast.
    level : float or list of float, optional
        Coverage of the prediction intervals in percent, e.g. `[80, 95]`.
    metrics : str, callable, Metric or list of these, optional
        As in `score`; the first one ranks the models. None: MASE, RMSSE, sMAPE and relative
        bias, with MAE and RMSE in place of MASE and RMSSE if the season is unknown. Each metric
        is computed for each series over all its windows and then averaged over series. The
        mean RMSE by series is smaller than the RMSE of all points pooled, which
        `score(board.forecasts)` gives.
    season_length : int, optional
        Season that scales MASE and RMSSE. None: from the frequency.
    refit : bool, int or "auto", default "auto"
        When to refit, see `cross_validate`.
    freq : str or int, optional
        Frequency of the time column. None: inferred.
    columns : Columns or dict, optional
        Names of the columns and roles of the covariates.
    static : DataFrame, optional
        Static covariates, one row per series.
    on_failure : {"raise", "fallback", "drop"}, default "fallback"
        What happens to series that a model cannot fit, in place of the models' own setting. "fallback": a
        naive method forecasts them (column `failed_series`). "drop": all models are ranked on the series that
        all of them can fit. "raise": the model fails.
    n_jobs : int, optional
        Number of processes, each of which runs one model at a time with one thread. -1: the
        number of CPUs. None: as set by `joblib.parallel_config`, or the current process.
    options : BacktestOptions, optional
        Training size, alignment, seed and progress bar.

    Returns
    -------
    Leaderboard
        Models from best to worst, with confidence intervals, significance tests, run times and
        the forecasts.

    Raises
    ------
    TrainingError
        If all models fail.

    Warns
    -----
    DataWarning
        If prediction intervals cover significantly less than their level: more than 10
        percentage points less, and more than 1.645 standard errors, on at least 30 actual
        values. The mean of each series in each window is one observation.

    See Also
    --------
    cross_validate : The forecasts alone.
    score : Metrics of any frame of forecasts.

    Notes
    -----
    Kernels are compiled and libraries imported before the timing starts. Runs expected to take
    half a minute or more are announced with an estimate of their duration.
    `n_jobs=2` runs models in parallel processes with one thread each. It pays off for several
    slow models that use one core, not for short runs or for models whose kernels already use
    all cores (AutoETS, AutoARIMA and other classical models).

    Examples
    --------
    >>> from deepforecast import Naive, SeasonalNaive, datasets
    >>> board = compare([Naive(), SeasonalNaive()], datasets.load("air_passengers"), horizon=12, n_windows=2)
    >>> board.table["model"].tolist()
    ['SeasonalNaive', 'Naive']
    """
    start_time, created = time.perf_counter(), datetime.now(UTC)
    options = validate_options(options)
    requested = validate_models(models, horizon)
    candidates = [model.clone(on_failure=on_failure) for model in requested]
    names = [model.name for model in candidates]
    frame, tolerant = materialize(frame), on_failure != "raise"
    panel = Panel.from_frame(frame, columns=columns, freq=freq, static=static, allow_all_missing=tolerant)
    levels, n_jobs = validate_levels(level), validate_n_jobs(n_jobs)
    plan = make_plan(candidates, panel, options, n_windows=n_windows, step_size=step_size, gap=gap)
    plan = replace(_with_min_observations(plan, candidates, panel, levels), skips_short=tolerant)
    refit_intervals = [refit_every(refit, model.capabilities.by_series) for model in candidates]
    check_model_names(names, panel.series.columns, levels)
    backtest_rows = BacktestRows.from_plan(panel, plan)
    criteria = resolve_criteria(metrics, names, panel, backtest_rows, levels=levels, season=season_length)
    warn_undeclared(panel.undeclared)
    prepare = partial(_prepare_model, levels=levels, seed=options.seed)
    estimate = _estimate_runtime(n_jobs, candidates, panel, plan, refit_intervals, prepare, levels)
    announce_runtime(estimate, len(candidates), plan, panel, options.progress)
    main_pid = os.getpid()

    def work(index: int, tick: Tick) -> ModelRun:
        run = _run_dropping_levels(candidates[index], panel, plan, refit=refit, levels=levels, seed=options.seed, tick=tick)
        if index:  # only the error of the first model is chained; tracebacks keep all locals alive
            return replace(run, cause=None)
        return run if os.getpid() == main_pid else replace(run, cause=_picklable_error(run.cause))

    runs = run_models(
        work, names, plan.n_windows, n_jobs=n_jobs, progress=options.progress,
        on_lost=lambda index, error: ModelRun(names[index]).with_error(error),
    )  # fmt: skip
    all_rows = backtest_rows
    if on_failure == "drop":
        runs, backtest_rows = _drop_failed_series(runs, backtest_rows)
    runs = [check_forecasts(unchecked_run, backtest_rows, panel) for unchecked_run in runs]
    if all(model_run.error for model_run in runs):
        raise _all_failed_error(runs) from runs[0].cause
    settings = _settings(requested, panel, plan, criteria, options=options, levels=levels)
    settings |= _evaluated_series(backtest_rows, all_rows, panel) | {
        "refit": str(refit), "level": levels, "on_failure": on_failure, "n_jobs": n_jobs,
        "made": created.isoformat(timespec="seconds"),
        "estimate_seconds": None if estimate is None else estimate.likely,
    }  # fmt: skip
    board = make_leaderboard(runs, backtest_rows, panel, history=frame, criteria=criteria, settings=settings)
    for sentence in undercoverage_notes(board):
        warn(sentence, subject=sentence)
    return replace(
        board,
        settings=settings | {"seconds": time.perf_counter() - start_time},
        models={model.name: prepare(model) for model in requested},
    )


def run_model(
    model: Forecaster,
    panel: Panel,
    plan: BacktestPlan,
    refit: Any,
    levels: Sequence[float],
    seed: int | None = None,
    tick: Tick = ignore_count,
) -> ModelRun:
    """Run one model through all windows; any exception becomes the error of its run."""
    model_run = ModelRun(model.name)
    warm_up(model, panel, levels)
    with measure_resources() as usage:
        try:
            usable_panel, unused = drop_unusable(panel, model.capabilities)
            model_run = replace(model_run, unused=tuple(unused))
            prepared_model = _prepare_model(model, levels, seed)
            backtested = backtest(prepared_model, usable_panel, plan, refit=refit, levels=levels, tick=tick)
        except Exception as error:  # models may raise anything; the others continue
            return model_run.with_error(error)
    return replace(
        model_run,
        columns=backtested.columns,
        fit_seconds=backtested.fit_seconds,
        predict_seconds=backtested.predict_seconds,
        fit_cpu=backtested.fit_cpu,
        predict_cpu=backtested.predict_cpu,
        peak_mb=usage.peak_mb,
        failed_series=backtested.failed_series,
    )


def _run_dropping_levels(
    model: Forecaster, panel: Panel, plan: BacktestPlan, refit: Any, levels: Sequence[float], seed: int | None, tick: Tick
) -> ModelRun:
    """`run_model`, without the levels that cannot be calibrated: point forecasts are ranked anyway.

    Levels increase, and higher ones need more calibration windows, so they are dropped from the end.
    """
    full_run = run_model(model, panel, plan, refit, levels, seed=seed, tick=tick)
    if not isinstance(full_run.cause, CalibrationError):
        return full_run
    for n_levels in reversed(range(len(levels))):
        candidate = model if n_levels else model.clone(intervals=None)
        reduced_run = run_model(candidate, panel, plan, refit, levels[:n_levels], seed=seed, tick=tick)
        if not reduced_run.error:
            missing = ", ".join(f"{level:g} %" for level in levels[n_levels:])
            warn(
                f"{model.name} is ranked without {missing} prediction intervals, which cannot be calibrated: {full_run.cause}",
                subject=model.name,
            )
            return reduced_run
        if not isinstance(reduced_run.cause, CalibrationError):
            break
    return full_run


def _estimate_runtime(n_jobs: int | None, models: Sequence[Forecaster], *arguments: Any) -> RuntimeEstimate | None:
    """`estimate_runtime`, in a worker process if the models will run in some: a crash must not end
    this process."""
    if not uses_workers(n_jobs, len(models)):
        return estimate_runtime(models, *arguments, n_jobs=1)
    return map_items(
        lambda _: estimate_runtime(models, *arguments, n_jobs=n_jobs),
        ["the estimate"], on_lost=lambda *_: None, n_jobs=n_jobs, progress=False, label="trial runs",
    )[0]  # fmt: skip


def _with_min_observations(
    plan: BacktestPlan, models: Sequence[Forecaster], panel: Panel, levels: Sequence[float]
) -> BacktestPlan:
    """The plan with the largest number of observations that any of the models needs: with calendar
    alignment, windows leave out shorter series."""
    requirements = [1]
    for model in models if plan.align == "calendar" or models[0].on_failure != "raise" else ():
        try:
            usable_panel = drop_unusable(panel, model.capabilities)[0]
            requirements.append(required_observations(_prepare_model(model, levels), usable_panel))
        except Exception:  # the same error will appear in the row of the model
            requirements.append(1)
    return replace(plan, min_observations=max(requirements))


def _drop_failed_series(runs: Sequence[ModelRun], rows: BacktestRows) -> tuple[list[ModelRun], BacktestRows]:
    """The runs and the rows without the series that have no forecast of some model."""
    columns = {name: values for run in runs for name, values in run.columns.items()}
    if not columns:  # all models failed
        return list(runs), rows
    kept = rows.of_complete_series(columns, [run.name for run in runs])
    if not kept.any():
        raise DataError(
            "At least one series must be fitted by all models for on_failure='drop', but there is none.",
            hint="Use on_failure='fallback', or leave out the models that fail (failures_ of each model).",
            parameter="on_failure",
        )
    return [replace(run, columns={name: values[kept] for name, values in run.columns.items()}) for run in runs], rows.take(kept)


def _prepare_model(model: Forecaster, levels: Sequence[float], seed: int | None = None) -> Forecaster:
    """The model with the seed, and with conformal intervals if intervals are requested and it has
    no distribution."""
    model = with_seed(model, seed)
    return model if not levels or model.capabilities.distribution is not None else model.clone(intervals="conformal")


def _picklable_error(cause: Exception | None) -> Exception | None:
    """A RuntimeError with the traceback as its text, in place of the exception of a worker: one that
    cannot be pickled would end the worker."""
    return None if cause is None else RuntimeError("".join(format_exception(cause)))


def check_forecasts(run: ModelRun, backtest_rows: BacktestRows, panel: Panel) -> ModelRun:
    """The run, marked as failed if its forecasts are not finite; intervals may be missing."""
    with np.errstate(invalid="ignore"):
        for name, values in run.columns.items():
            is_valid = np.abs(values) < MAX_MAGNITUDE  # false for NaN
            invalid_rows = np.flatnonzero(~(is_valid if name == run.name else is_valid | np.isnan(values)))
            if len(invalid_rows):
                return run.with_error(DataError(_not_finite_message(name, values, invalid_rows, backtest_rows, panel)))
    return run


def _not_finite_message(name: str, values: Floats, invalid_rows: Any, backtest_rows: BacktestRows, panel: Panel) -> str:
    """The message for a column with invalid forecasts; it describes the first of `invalid_rows`."""
    first_row = int(invalid_rows[0])
    timestamp = panel.calendar.format(int(backtest_rows.position[first_row]))
    location = f"series {panel.series.label(int(backtest_rows.series[first_row]))} at {timestamp}"
    description = f"{name} is {values[first_row]} for {location} ({len(invalid_rows)} such values)"
    rule = f"Forecasts must be finite and below {MAX_MAGNITUDE:g} in magnitude"
    return f"{rule}; {description}. Rescale the data, or leave this series out."


def _all_failed_error(runs: Sequence[ModelRun]) -> TrainingError:
    """The error of a comparison without any forecasts, with the errors of the first three models."""
    messages = " ".join(
        f"{format_value(model_run.name)} failed: {format_value(model_run.error, 500)}" for model_run in runs[:3]
    )
    ending = f" (and {len(runs) - 3} more)" if len(runs) > 3 else ""
    return TrainingError(f"All models failed, so there is nothing to compare. {messages}{ending}")


def _evaluated_series(rows: BacktestRows, all_rows: BacktestRows, panel: Panel) -> dict[str, Any]:
    """The number of evaluated series, and labels of those in no window and of those dropped afterwards."""
    unevaluated = np.setdiff1d(np.arange(len(panel)), all_rows.series)
    dropped = np.setdiff1d(all_rows.series, rows.series)
    return {
        "series": len(panel) - len(unevaluated) - len(dropped),
        "not_judged": panel.series.labels(unevaluated) if len(unevaluated) else "",
        "dropped": panel.series.labels(dropped) if len(dropped) else "",
    }


def _settings(
    models: Sequence[Forecaster],
    panel: Panel,
    plan: BacktestPlan,
    criteria: Criteria,
    options: BacktestOptions,
    levels: Sequence[float],
) -> dict[str, Any]:
    """The settings of a leaderboard that do not depend on the outcome of the run."""
    names = panel.series.columns
    return {
        "horizon": plan.horizon, "n_windows": plan.n_windows, "freq": panel.calendar.freq,
        "rows": len(panel.y),
        "gap": plan.gap, "train_size": plan.train_size, "align": plan.align, "seed": options.seed,
        "season_length": criteria.season_length, "metrics": [criterion.column for criterion in criteria.requested],
        "columns": {"id": names.id, "time": names.time, "target": names.target}, "weight": names.weight,
        "conformal": [model.name for model in models if levels and _prepare_model(model, levels).calibrates],
        "covariates": {role: list(getattr(names, role)) for role in ("future", "past", "static") if getattr(names, role)},
        "undeclared": list(panel.undeclared), "models": {model.name: repr(model) for model in models}, **describe_environment(),
    }  # fmt: skip
