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
from deepforecast.evaluation.backtesting import USUAL, BacktestOptions, checked_models, checked_options, planned, seeded
from deepforecast.evaluation.criteria import Criteria, check_names, settled
from deepforecast.evaluation.cross_validation import Rows, backtest, several, side_by_side
from deepforecast.evaluation.estimate import Seconds, announce, seconds_to_run
from deepforecast.evaluation.inputs import LARGEST
from deepforecast.evaluation.leaderboard import Leaderboard
from deepforecast.evaluation.measure import measured
from deepforecast.evaluation.ranking import ranked
from deepforecast.evaluation.surroundings import surroundings
from deepforecast.evaluation.verdict import undercoverage
from deepforecast.evaluation.warm_up import warm_up

__all__ = ["Leaderboard", "compare"]


@dataclass(frozen=True)
class Run:
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

    def failed(self, error: Exception) -> Run:
        """The same model, ended with an error: what it forecast does not count."""
        return replace(self, columns={}, error=told(error), cause=error)


def told(error: Exception) -> str:
    """An error as a row tells it: its kind and, where there are any, its words."""
    kind = type(error).__name__
    try:
        text = str(error)
    except Exception as another:  # a model may bring its own kinds of errors, broken ones too
        text = f"(its message cannot be read: {type(another).__name__})"
    return f"{kind}: {text}" if text else kind


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
    options: BacktestOptions = USUAL,
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
    started, made = time.perf_counter(), datetime.now(UTC)
    options, candidates = checked_options(options), checked_models(models, horizon)
    names = [model.name for model in candidates]
    panel = Panel.from_frame(frame, columns=columns, freq=freq, static=static)
    levels = validate_levels(level)
    plan = _long_enough(planned(candidates, panel, n_windows, None, options), candidates, panel, levels)
    every = [refit_every(refit, model.capabilities.by_series) for model in candidates]
    check_names(names, panel.series.columns, levels)
    rows = Rows.of(panel, plan)
    criteria = settled(metrics, names, panel, rows, levels, season_length)
    warn_undeclared(panel.undeclared)
    ready = partial(_as_run, levels=levels, seed=options.seed)
    estimate = _estimate(options, candidates, panel, plan, every, ready, levels)
    announce(estimate, len(candidates), plan, panel, options.progress)
    here = os.getpid()

    def work(number: int, tick: Tick) -> Run:
        found = _run_with_possible_levels(candidates[number], panel, plan, refit, levels, options.seed, tick)
        if number:  # one cause is enough to chain, and each holds all that its traceback saw
            return replace(found, cause=None)
        return found if os.getpid() == here else replace(found, cause=_portable(found.cause))

    def lost(number: int, error: TrainingError) -> Run:
        return Run(names[number]).failed(error)

    runs = [checked(one, rows, panel) for one in side_by_side(work, names, plan.n_windows, options, lost)]
    _raise_if_none(runs)
    settings = _settings(candidates, panel, plan, criteria, options, levels) | _judged(rows, panel) | {
        "refit": str(refit), "level": levels, "made": made.isoformat(timespec="seconds"),
        "estimate_seconds": None if estimate is None else estimate.likely,
    }  # fmt: skip
    board = ranked(runs, rows, panel, frame, criteria, settings)
    for sentence in undercoverage(board):
        warn(sentence)
    return replace(board, settings=settings | {"seconds": time.perf_counter() - started})


def run(
    model: Forecaster,
    panel: Panel,
    plan: BacktestPlan,
    refit: Any,
    levels: Sequence[float],
    seed: int | None = None,
    tick: Tick = ignore_count,
) -> Run:
    """One model through all windows; whatever it raises becomes its row."""
    found = Run(model.name)
    warm_up(model, panel, levels)
    with measured() as cost:
        try:
            own, unused = drop_unusable(panel, model.capabilities)
            found = replace(found, unused=tuple(unused))
            done = backtest(_as_run(model, levels, seed), own, plan, refit, levels, tick)
        except Exception as error:  # any model may fail in any way: its row says how, the others go on
            return found.failed(error)
    found = replace(found, columns=done.columns, fit_seconds=done.fit_seconds, predict_seconds=done.predict_seconds)
    return replace(found, fit_cpu=done.fit_cpu, predict_cpu=done.predict_cpu, peak_mb=cost.peak_mb)


def _run_with_possible_levels(
    model: Forecaster, panel: Panel, plan: BacktestPlan, refit: Any, levels: Sequence[float], seed: int | None, tick: Tick
) -> Run:
    """`run`, without the levels for which a conformal calibration has too few windows: points are ranked all the same."""
    found = run(model, panel, plan, refit, levels, seed, tick)
    if not isinstance(found.cause, CalibrationError):
        return found
    for count in reversed(range(len(levels))):
        candidate = model if count else model.clone(intervals=None)
        again = run(candidate, panel, plan, refit, levels[:count], seed, tick)
        if not again.error:
            missing = ", ".join(f"{level:g} %" for level in levels[count:])
            warn(f"{model.name} is ranked without {missing} intervals, which cannot be calibrated: {found.cause}")
            return again
        if not isinstance(again.cause, CalibrationError):
            break
    return found


def _estimate(options: BacktestOptions, models: Sequence[Forecaster], *arguments: Any) -> Seconds | None:
    """`seconds_to_run`, in a worker process where models run in some: a model that kills its process kills no other."""
    if not several(options, len(models)):
        return seconds_to_run(models, *arguments, workers=1)
    return map_items(
        lambda _: seconds_to_run(models, *arguments, workers=options.n_jobs),
        ["the estimate"], on_lost=lambda *_: None, n_jobs=options.n_jobs, progress=False, label="models on trial",
    )[0]  # fmt: skip


def _long_enough(plan: BacktestPlan, models: Sequence[Forecaster], panel: Panel, levels: Sequence[float]) -> BacktestPlan:
    """Windows that leave out series too new for any of the models, where windows may leave series out."""
    needed = [1]
    for model in models if plan.align == "calendar" else ():
        try:
            needed.append(_as_run(model, levels)._min_observations_to_fit(drop_unusable(panel, model.capabilities)[0]))
        except Exception:  # a model that cannot tell what it needs will say so in its own row
            needed.append(1)
    return replace(plan, min_observations=max(needed))


def _as_run(model: Forecaster, levels: Sequence[float], seed: int | None = None) -> Forecaster:
    """The model with the seed, and with bands where they are asked for and it has none of its own."""
    model = seeded(model, seed)
    return model if not levels or model.capabilities.distribution is not None else model.clone(intervals="conformal")


def _portable(cause: Exception | None) -> Exception | None:
    """The same as text: not every error can travel between processes, and one that cannot would take its worker with it."""
    return None if cause is None else RuntimeError("".join(format_exception(cause)))


def checked(run: Run, rows: Rows, panel: Panel) -> Run:
    """A run whose forecasts can be judged; any other has failed."""
    with np.errstate(invalid="ignore"):
        for name, values in run.columns.items():
            bad = np.flatnonzero(~(np.abs(values) < LARGEST))  # NaN too
            if len(bad):
                return run.failed(DataError(_not_finite(name, values, bad, rows, panel)))
    return run


def _not_finite(name: str, values: Floats, bad: Any, rows: Rows, panel: Panel) -> str:
    first = int(bad[0])
    where = f"series {panel.series.label(int(rows.series[first]))} at {panel.calendar.format(int(rows.position[first]))}"
    why = (
        "Where it has too few values to know their spread, it has no level: give longer series or ask for no level."
        if np.isnan(values[first])
        else "Rescale the data, or leave this series out."
    )
    found = f"{name} is {values[first]} for {where} ({len(bad)} such values)"
    return f"Forecasts must be finite and below {LARGEST:g}; {found}. {why}"


def _raise_if_none(runs: Sequence[Run]) -> None:
    if not all(one.error for one in runs):
        return
    told = " ".join(f"{format_value(one.name)} failed: {format_value(one.error, 500)}" for one in runs[:3])
    more = f" (and {len(runs) - 3} more)" if len(runs) > 3 else ""
    raise TrainingError(f"No model could be compared, and a board needs one that runs. {told}{more}") from runs[0].cause


def _judged(rows: Rows, panel: Panel) -> dict[str, Any]:
    """How many series there are scores of, and which of the others are the first."""
    without = np.setdiff1d(np.arange(len(panel)), rows.series)
    return {"series": len(panel) - len(without), "not_judged": panel.series.labels(without) if len(without) else ""}


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
        "season_length": criteria.season, "metrics": [one.column for one in criteria.asked],
        "columns": {"id": names.id, "time": names.time, "target": names.target},
        "conformal": [model.name for model in models if levels and _as_run(model, levels).calibrates],
        "covariates": {role: list(getattr(names, role)) for role in ("future", "past", "static") if getattr(names, role)},
        "undeclared": list(panel.undeclared), "models": {model.name: repr(model) for model in models}, **surroundings(),
    }  # fmt: skip
