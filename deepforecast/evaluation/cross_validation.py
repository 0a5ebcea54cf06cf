"""Rolling cross-validation: a thin shell on `core.backtest`, one frame out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from deepforecast.core.backtest import refit_every, rolling_folds
from deepforecast.core.forecast import (
    column_names,
    no_distribution_error,
    output_columns,
    refuse_duplicate_columns,
    validate_levels,
)
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.parallel import has_user_backend, map_items
from deepforecast.core.plausibility import range_ratios, warn_of_far_forecasts
from deepforecast.core.preprocessing import drop_unusable
from deepforecast.core.progress import Tick, ignore_count, progress_bar
from deepforecast.data import frames
from deepforecast.data.columns import Columns, warn_undeclared
from deepforecast.data.forecast_names import SAMPLE, STEP
from deepforecast.data.frames import Floats, Frame, Ints
from deepforecast.data.panel import Panel
from deepforecast.data.splits import BacktestPlan, backtest_windows
from deepforecast.errors import TrainingError, format_list, warn
from deepforecast.evaluation.backtesting import USUAL, BacktestOptions, checked_models, checked_options, planned, seeded
from deepforecast.evaluation.forecast_columns import refuse_lookalikes
from deepforecast.evaluation.hearing import Said, heard, say_together

T = TypeVar("T")


def cross_validate(
    models: Forecaster | Sequence[Forecaster],
    frame: Frame,
    *,
    horizon: int | None = None,
    n_windows: int = 3,
    step_size: int | None = None,
    refit: Any = "auto",
    level: Any = None,
    freq: Any = None,
    columns: Columns | Mapping[str, Any] | None = None,
    static: Frame | None = None,
    options: BacktestOptions = USUAL,
) -> Frame:
    """Forecast `n_windows` stretches of the past, each from the rows before it only: `unique_id, ds, cutoff, y, <model>...`.

    `cutoff` is the last stamp a forecast has seen; `y` is missing where the frame has no value. `step_size` rows lie between
    cutoffs (default: the horizon, so that windows do not overlap). `refit`: "auto" (local models at every window, global ones
    once), True, False, or every k windows; between refits the parameters stay and the state moves on. Columns known ahead are
    taken from the frame's own rows. A series that no window judges is said by name.

    >>> from deepforecast import Naive, SeasonalNaive, datasets
    >>> found = cross_validate([Naive(), SeasonalNaive()], datasets.load("air_passengers"), horizon=12, n_windows=2)
    >>> found.shape, list(found.columns)
    ((24, 6), ['unique_id', 'ds', 'cutoff', 'y', 'Naive', 'SeasonalNaive'])
    """
    options = checked_options(options)
    candidates = [seeded(model, options.seed) for model in checked_models(models, horizon)]
    panel = Panel.from_frame(frame, columns=columns, freq=freq, static=static)
    warn_undeclared(panel.undeclared)
    plan = planned(candidates, panel, n_windows, step_size, options)
    levels = validate_levels(level)
    _refuse_columns(candidates, panel, levels)
    panels = [panel] * len(candidates)
    if len(candidates) > 1:  # a single model that cannot use a declared covariate refuses it
        panels = _usable_aloud(candidates, panel)
    refit_every(refit, True)
    workers = [model.clone(horizon=plan.gap + plan.horizon) for model in candidates]
    plan = replace(plan, min_observations=max(worker._min_observations_to_fit(own) for worker, own in zip(workers, panels, strict=True)))
    rows = Rows.of(panel, plan)

    def work(number: int, tick: Tick) -> Backtested:
        return backtest(candidates[number], panels[number], plan, refit, levels, tick)

    for found in side_by_side(work, [model.name for model in candidates], plan.n_windows, options, _raise_lost):
        rows.columns |= found.columns
    return rows.frame(panel)


@dataclass(frozen=True)
class Backtested:
    """The forecast columns of one model over the rows of `Rows.of(panel, plan)`, and what they took."""

    columns: Mapping[str, Floats]
    fit_seconds: float
    predict_seconds: float
    fit_cpu: float
    predict_cpu: float


def backtest(
    model: Forecaster, panel: Panel, plan: BacktestPlan, refit: Any, levels: Sequence[float], tick: Tick = ignore_count
) -> Backtested:
    """One model through all windows of a plan; `tick` is told of each. Implausible forecasts are warned of once."""
    parts: list[dict[str, Floats]] = []
    ratios = np.zeros((len(panel), 2))
    spent = np.zeros(4)
    for fold in rolling_folds(model, panel, plan, refit_interval=refit_every(refit, model.capabilities.by_series)):
        flat = output_columns(fold.forecast, model.name, model.point_kind, levels, [])
        parts.append({name: values[fold.has_row.reshape(-1)] for name, values in flat.items()})
        series = fold.window.series
        ratios[series] = np.fmax(ratios[series], range_ratios(flat, fold.value_range, levels))
        spent += fold.fit_seconds, fold.predict_seconds, fold.fit_cpu, fold.predict_cpu
        tick(1)
    warn_of_far_forecasts(model.name, panel.series, ratios)
    return Backtested({name: np.concatenate([part[name] for part in parts]) for name in parts[0]}, *spent.tolist())


def _raise_lost(number: int, error: TrainingError) -> Backtested:
    raise error


def side_by_side(
    work: Callable[[int, Tick], T],
    names: Sequence[str],
    n_windows: int,
    options: BacktestOptions,
    on_lost: Callable[[int, TrainingError], T],
) -> list[T]:
    """`work(0, tick)`, `work(1, tick)` ... for models of these names, here or on `options.workers` processes (one thread each).

    `tick` is told of each of the windows of a model; in a terminal a bar shows them. What several models say is said once.
    `on_lost(number, error)` gives the result of a model whose worker process died twice, or raises.
    """
    count = len(names)

    def chunk(part: slice, tick: Tick = ignore_count) -> list[tuple[T, Said]]:
        done = []
        for number in range(count)[part]:
            counted = Counted(tick)
            with heard() as said:
                one = work(number, counted)
            tick(n_windows - counted.sum)  # those of a model that failed
            done.append((one, said))
        return done

    def lost(number: int, error: TrainingError) -> list[tuple[T, Said]]:
        return [(on_lost(number, error), [])]

    found: list[list[tuple[T, Said]]]
    if several(options, count):
        bar = options.progress
        found = map_items(chunk, names, on_lost=lost, n_jobs=options.n_jobs, progress=bar, label="models")
    else:
        with progress_bar(count * n_windows, "windows", options.progress) as tick:
            found = [chunk(slice(count), tick)]
    every = [one for part in found for one in part]
    say_together(names, [said for _, said in every])
    return [one for one, _ in every]


class Counted:
    """Passes on what it is told, and keeps the sum."""

    def __init__(self, tick: Tick) -> None:
        self.tick, self.sum = tick, 0

    def __call__(self, count: int) -> None:
        """Pass it on."""
        self.sum += count
        self.tick(count)


def several(options: BacktestOptions, count: int) -> bool:
    """Whether so many models go to workers."""
    return count > 1 and options.n_jobs != 1 and (options.n_jobs is not None or has_user_backend())


@dataclass
class Rows:
    """The rows judged, window after window: series, positions and columns, put in order (series, cutoff, step) at the end."""

    series: Ints
    position: Ints
    cutoff: Ints
    actual: Floats
    order: Ints
    columns: dict[str, Floats]

    @classmethod
    def of(cls, panel: Panel, plan: BacktestPlan) -> Rows:
        """The rows of every window of a plan that are there; a series that has none is said by name."""
        series, position, cutoff, actual = [], [], [], []
        for window in backtest_windows(panel, plan):
            rows, there = window.test_rows(panel, plan.gap, plan.horizon)
            last = panel.start[window.series] + (window.cutoff - 1) * panel.calendar.step
            ahead = panel.calendar.next_positions(last, plan.gap + plan.horizon)[:, plan.gap :]
            series.append(np.repeat(window.series, there.sum(axis=1)))
            position.append(ahead[there])
            cutoff.append(np.repeat(last, there.sum(axis=1)))
            actual.append(panel.y[rows[there]])
        flat = [np.concatenate(part) for part in (series, position, cutoff)]
        unjudged = np.setdiff1d(np.arange(len(panel)), flat[0])
        if len(unjudged):
            warn(
                f"No window judges some series: {panel.series.labels(unjudged)} end before its first step or have too few "
                "values before the last cutoff. With align='series' cutoffs follow the end of each series."
            )
        order = np.lexsort((flat[1], flat[2], flat[0]))
        return cls(flat[0], flat[1], flat[2], np.concatenate(actual), order, {})

    def frame(self, panel: Panel) -> Frame:
        """The long frame, in the caller's library."""
        names, series = panel.series.columns, panel.series
        held: dict[str, Any] = {}
        if names.id is not None and series.ids is not None:
            held[names.id] = frames.take_rows(series.ids, self.series[self.order])
        held[names.time] = series.time_column(self.position[self.order])
        held["cutoff"] = series.time_column(self.cutoff[self.order])
        held[names.target] = self.actual[self.order]
        held |= {name: values[self.order] for name, values in self.columns.items()}
        return frames.build(series.library, held)


def _refuse_columns(models: Sequence[Forecaster], panel: Panel, levels: Sequence[float]) -> None:
    """No column would stand twice, and every model can give its bands."""
    names = panel.series.columns
    keys = [*([] if names.id is None or panel.series.ids is None else [names.id]), names.time, names.target]
    own = [column for model in models for column in column_names(model.name, levels)]
    refuse_duplicate_columns(["cutoff", *own], keys)
    refuse_duplicate_columns(own, [STEP, SAMPLE])  # which `score` takes for keys of the forecasts
    refuse_lookalikes([model.name for model in models])
    for model in models:
        if levels and model.capabilities.distribution is None and not model.calibrates:
            raise no_distribution_error(model.name)


def _usable_aloud(models: Sequence[Forecaster], panel: Panel) -> list[Panel]:
    """The panel as each model can use it."""
    panels, every = [], []
    for model in models:
        with heard() as said:
            own, unused = drop_unusable(panel, model.capabilities)
            if unused:
                warn(f"{model.name} runs without the covariates it cannot use: {format_list(unused)}.")
        panels.append(own)
        every.append(said)
    say_together([model.name for model in models], every)
    return panels


