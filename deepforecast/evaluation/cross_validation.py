"""Rolling cross-validation of one or several models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from deepforecast.core.backtest import refit_every, rolling_folds
from deepforecast.core.fallback import warn_of_missing_intervals
from deepforecast.core.forecast import (
    column_names,
    no_distribution_error,
    output_columns,
    refuse_duplicate_columns,
    validate_levels,
)
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.monitor import Tick, ignore_count, progress_bar
from deepforecast.core.parallel import has_user_backend, map_items
from deepforecast.core.plausibility import range_ratios, warn_of_far_forecasts
from deepforecast.core.preprocessing import drop_unusable
from deepforecast.data import frames
from deepforecast.data.columns import SAMPLE, STEP, Columns, warn_undeclared
from deepforecast.data.frames import Floats, Frame, Ints
from deepforecast.data.panel import Panel
from deepforecast.data.windows import BacktestPlan, backtest_windows
from deepforecast.errors import CalibrationError, DataError, TrainingError, format_list, warn
from deepforecast.evaluation.backtesting import (
    DEFAULT_OPTIONS,
    BacktestOptions,
    make_plan,
    validate_models,
    validate_n_jobs,
    validate_options,
    with_seed,
)
from deepforecast.evaluation.forecast_columns import refuse_ambiguous_names
from deepforecast.evaluation.shared_warnings import Messages, collect_messages, warn_together

T = TypeVar("T")


def cross_validate(
    models: Forecaster | Sequence[Forecaster],
    frame: Frame,
    *,
    horizon: int | None = None,
    n_windows: int = 3,
    step_size: int | None = None,
    gap: int = 0,
    refit: Any = "auto",
    level: Any = None,
    freq: Any = None,
    columns: Columns | Mapping[str, Any] | None = None,
    static: Frame | None = None,
    n_jobs: int | None = None,
    options: BacktestOptions = DEFAULT_OPTIONS,
) -> Frame:
    """Forecast past windows of each series from the observations before them.

    Parameters
    ----------
    models : Forecaster or sequence of Forecaster
        One model, or several with unique names.
    frame : DataFrame
        Long frame with the series to forecast. Values of future covariates are taken from it.
    horizon : int, optional
        Number of steps to forecast. Required unless all models have the same `horizon`.
    n_windows : int, default 3
        Number of cutoffs.
    step_size : int, optional
        Time steps between cutoffs. None: the horizon, so that windows do not overlap.
    gap : int, default 0
        Number of time steps between a cutoff and the first step that is forecast.
    refit : bool, int or "auto", default "auto"
        Whether to refit at every cutoff; an int k refits at every k-th. "auto": refit local
        models at every cutoff and global models once. Between refits the parameters stay fixed
        and the state of the series is updated.
    level : float or list of float, optional
        Coverage of the prediction intervals in percent, e.g. `[80, 95]`.
    freq : str or int, optional
        Frequency of the time column. None: inferred.
    columns : Columns or dict, optional
        Names of the columns and roles of the covariates.
    static : DataFrame, optional
        Static covariates, one row per series.
    n_jobs : int, optional
        Number of processes, each of which runs one model at a time with one thread. -1: the
        number of CPUs. None: as set by `joblib.parallel_config`, or the current process.
    options : BacktestOptions, optional
        Training size, alignment, seed and progress bar.

    Returns
    -------
    DataFrame
        Of the same library as `frame`, with the columns `unique_id, ds, cutoff, y, <model>, ...`.
        `cutoff` is the last timestamp before a forecast; `y` is missing where the frame has no
        value.

    Warns
    -----
    DataWarning
        If some series are in no window.

    See Also
    --------
    compare : Rank models by their scores on these windows.
    score : Metrics of the returned frame.

    Examples
    --------
    >>> from deepforecast import Naive, SeasonalNaive, datasets
    >>> models = [Naive(), SeasonalNaive()]
    >>> forecasts = cross_validate(models, datasets.load("air_passengers"), horizon=12, n_windows=2)
    >>> forecasts.shape, list(forecasts.columns)
    ((24, 6), ['unique_id', 'ds', 'cutoff', 'y', 'Naive', 'SeasonalNaive'])
    """
    options = validate_options(options)
    candidates = [with_seed(model, options.seed) for model in validate_models(models, horizon)]
    tolerant = all(model.on_failure != "raise" for model in candidates)
    panel = Panel.from_frame(frame, columns=columns, freq=freq, static=static, allow_all_missing=tolerant)
    warn_undeclared(panel.undeclared)
    n_jobs = validate_n_jobs(n_jobs)
    plan = make_plan(candidates, panel, options, n_windows=n_windows, step_size=step_size, gap=gap)
    levels = validate_levels(level)
    _check_columns(candidates, panel, levels)
    panels = _usable_panels(candidates, panel)
    refit_every(refit, True)  # raises if `refit` is invalid
    extended_models = [model.clone(horizon=plan.gap + plan.horizon) for model in candidates]
    min_observations = [
        required_observations(model, usable_panel) for model, usable_panel in zip(extended_models, panels, strict=True)
    ]
    plan = replace(plan, min_observations=max(min_observations), skips_short=tolerant)
    backtest_rows = BacktestRows.from_plan(panel, plan)

    def work(index: int, tick: Tick) -> BacktestScore:
        return backtest(candidates[index], panels[index], plan, refit=refit, levels=levels, tick=tick)

    names = [model.name for model in candidates]
    for backtested in run_models(work, names, plan.n_windows, n_jobs=n_jobs, progress=options.progress, on_lost=_raise_error):
        backtest_rows.columns |= backtested.columns
    if any(model.on_failure == "drop" for model in candidates):
        backtest_rows = backtest_rows.take(backtest_rows.of_complete_series(backtest_rows.columns, names))
    return backtest_rows.frame(panel)


def required_observations(model: Forecaster, panel: Panel) -> int:
    """Number of values before a cutoff that a series must have to be in a window: those of a fit or of a naive method."""
    return model._min_observations_to_fit(panel) if model.on_failure == "raise" else 1


@dataclass(frozen=True)
class BacktestScore:
    """Forecast columns of one model over the rows of `BacktestRows.from_plan(panel, plan)`, their
    cost in wall-clock and CPU seconds over all windows, and the number of series that the model could not fit
    in some window."""

    columns: Mapping[str, Floats]
    fit_seconds: float
    predict_seconds: float
    fit_cpu: float
    predict_cpu: float
    failed_series: int


def backtest(
    model: Forecaster, panel: Panel, plan: BacktestPlan, refit: Any, levels: Sequence[float], tick: Tick = ignore_count
) -> BacktestScore:
    """Run one model through all windows and call `tick(1)` after each; warn once about forecasts far
    outside the range of the training data."""
    fold_forecasts: list[dict[str, Floats]] = []
    ratios = np.zeros((len(panel), 2))
    costs, failed, lacks_interval = np.zeros(4), np.zeros(len(panel), dtype=bool), np.zeros(len(panel), dtype=bool)
    refit_interval = refit_every(refit, model.capabilities.by_series)
    for fold in rolling_folds(model, panel, plan, refit_interval=refit_interval):
        forecast_columns = output_columns(fold.forecast, model.name, model.point_kind, levels, [])
        lacks_interval[fold.window.series] |= _lacks_interval(forecast_columns, len(fold.window.series))
        fold_forecasts.append({name: values[fold.has_row.reshape(-1)] for name, values in forecast_columns.items()})
        series = fold.window.series
        ratios[series] = np.fmax(ratios[series], range_ratios(forecast_columns, fold.value_range, levels))
        failed[fold.failed] = True
        costs += fold.fit_seconds, fold.predict_seconds, fold.fit_cpu, fold.predict_cpu
        tick(1)
    warn_of_far_forecasts(model.name, panel.series, ratios)
    columns = {name: np.concatenate([fold_columns[name] for fold_columns in fold_forecasts]) for name in fold_forecasts[0]}
    if lacks_interval.any():
        numbers = np.flatnonzero(lacks_interval)
        if model.on_failure == "raise":
            raise DataError(
                f"{model.name} cannot estimate intervals for series with too few values before a cutoff: "
                f"{panel.series.labels(numbers)}.",
                hint="Leave out level=, set on_failure='fallback' (these intervals are then missing), or use fewer windows.",
                series=panel.series.id_texts(numbers),
            )
        if any(np.isnan(values).all() for values in columns.values()):
            raise CalibrationError("All series have too few values before the cutoffs.")
        warn_of_missing_intervals(model.name, panel.series, numbers)
    fit_seconds, predict_seconds, fit_cpu, predict_cpu = costs.tolist()
    return BacktestScore(columns, fit_seconds, predict_seconds, fit_cpu, predict_cpu, int(failed.sum()))


def _lacks_interval(columns: Mapping[str, Floats], n_series: int) -> NDArray[np.bool_]:
    """Mask of the series with a point forecast, but not all intervals; the first column is the point forecast."""
    point, *bounds = (np.isnan(values.reshape(n_series, -1)).any(axis=1) for values in columns.values())
    lacks_interval: NDArray[np.bool_] = ~point & np.any([point, *bounds], axis=0)
    return lacks_interval


def _raise_error(index: int, error: TrainingError) -> BacktestScore:
    raise error


def run_models(
    work: Callable[[int, Tick], T],
    names: Sequence[str],
    n_windows: int,
    n_jobs: int | None,
    progress: bool | None,
    on_lost: Callable[[int, TrainingError], T],
) -> list[T]:
    """Call `work(index, tick)` for each model, in this process or in `n_jobs` processes
    with one thread each; the outcomes are in the order of the models.

    `work` calls `tick(1)` for each window. Equal warnings of several models are issued once.
    `on_lost(index, error)` returns the outcome of a model whose worker process died twice, or
    raises.
    """
    n_models = len(names)

    def run_batch(batch: slice, tick: Tick = ignore_count) -> list[tuple[T, Messages]]:
        """The outcome and the warnings of each model of the slice."""
        outcomes = []
        for index in range(n_models)[batch]:
            counting_tick = CountingTick(tick)
            with collect_messages() as messages:
                outcome = work(index, counting_tick)
            tick(n_windows - counting_tick.n_ticks)  # the remaining windows of a failed model
            outcomes.append((outcome, messages))
        return outcomes

    def lost_batch(index: int, error: TrainingError) -> list[tuple[T, Messages]]:
        return [(on_lost(index, error), [])]

    batches: list[list[tuple[T, Messages]]]
    if uses_workers(n_jobs, n_models):
        batches = map_items(run_batch, names, on_lost=lost_batch, n_jobs=n_jobs, progress=progress, label="models")
    else:
        with progress_bar(n_models * n_windows, "windows", progress) as tick:
            batches = [run_batch(slice(n_models), tick)]
    all_outcomes = [outcome for batch in batches for outcome in batch]
    warn_together([messages for _, messages in all_outcomes])
    return [outcome for outcome, _ in all_outcomes]


class CountingTick:
    """Passes numbers of finished windows on to `tick`; `n_ticks` is their sum."""

    def __init__(self, tick: Tick) -> None:
        self.tick = tick
        self.n_ticks = 0

    def __call__(self, n: int) -> None:
        """Count `n` windows."""
        self.n_ticks += n
        self.tick(n)


def uses_workers(n_jobs: int | None, n_models: int) -> bool:
    """Whether models run in worker processes."""
    return n_models > 1 and n_jobs != 1 and (n_jobs is not None or has_user_backend())


@dataclass
class BacktestRows:
    """The evaluated rows in the order of windows; `order` sorts them by series, cutoff and step.

    `series` is the index in the panel; `position` and `cutoff` are calendar positions of the row and of
    the last training row; `actual` is NaN where missing; `columns` has the forecasts of all models.
    """

    series: Ints
    position: Ints
    cutoff: Ints
    actual: Floats
    order: Ints
    columns: dict[str, Floats]

    @classmethod
    def from_plan(cls, panel: Panel, plan: BacktestPlan) -> BacktestRows:
        """The existing rows of all windows; warn about series without any."""
        # one array per window in each list
        series: list[Ints] = []
        position: list[Ints] = []
        cutoff: list[Ints] = []
        actual: list[Floats] = []
        for window in backtest_windows(panel, plan):
            test_rows, has_row = window.test_rows(panel, plan.gap, plan.horizon)
            cutoff_positions = panel.start[window.series] + (window.cutoff - 1) * panel.calendar.step
            future_positions = panel.calendar.next_positions(cutoff_positions, plan.gap + plan.horizon)[:, plan.gap :]
            series.append(np.repeat(window.series, has_row.sum(axis=1)))
            position.append(future_positions[has_row])
            cutoff.append(np.repeat(cutoff_positions, has_row.sum(axis=1)))
            actual.append(panel.y[test_rows[has_row]])
        row_series, row_position, row_cutoff = (np.concatenate(arrays) for arrays in (series, position, cutoff))
        unevaluated = np.setdiff1d(np.arange(len(panel)), row_series)
        if len(unevaluated):
            warn(
                "Some series are in no window, as they end before the first step or have too few values before the last cutoff: "
                f"{panel.series.labels(unevaluated)}. Pass options=BacktestOptions(align='series') to count cutoffs from the end of "
                "each series."
            )
        order = np.lexsort((row_position, row_cutoff, row_series))  # the last key is the primary one
        return cls(row_series, row_position, row_cutoff, actual=np.concatenate(actual), order=order, columns={})

    def of_complete_series(self, columns: Mapping[str, Floats], names: Sequence[str]) -> NDArray[np.bool_]:
        """Mask of the rows of series with a forecast of every model; `names` are their columns."""
        missing = np.logical_or.reduce([np.isnan(columns[name]) for name in names if name in columns])
        return ~np.isin(self.series, self.series[missing])

    def take(self, kept: NDArray[np.bool_]) -> BacktestRows:
        """The rows where a mask is True."""
        rank = np.argsort(self.order)[kept]  # the position of each row in the sorted frame
        columns = {name: values[kept] for name, values in self.columns.items()}
        return BacktestRows(
            self.series[kept], self.position[kept], self.cutoff[kept], self.actual[kept], np.argsort(rank), columns
        )

    def frame(self, panel: Panel) -> Frame:
        """The long frame, sorted, in the library of the caller."""
        names = panel.series.columns
        series = panel.series
        columns: dict[str, Any] = {}
        if names.id is not None and series.ids is not None:
            columns[names.id] = frames.take_rows(series.ids, self.series[self.order])
        columns[names.time] = series.time_column(self.position[self.order])
        columns["cutoff"] = series.time_column(self.cutoff[self.order])
        columns[names.target] = self.actual[self.order]
        columns |= {name: values[self.order] for name, values in self.columns.items()}
        return frames.build(series.library, columns)


def _check_columns(models: Sequence[Forecaster], panel: Panel, levels: Sequence[float]) -> None:
    """Refuse duplicate columns, and intervals of models that have none."""
    names = panel.series.columns
    keys = [*([] if names.id is None or panel.series.ids is None else [names.id]), names.time, names.target]
    model_columns = [column for model in models for column in column_names(model.name, levels)]
    refuse_duplicate_columns(["cutoff", *model_columns], keys)
    refuse_duplicate_columns(model_columns, [STEP, SAMPLE])  # keys of the forecasts to `score`
    refuse_ambiguous_names([model.name for model in models])
    for model in models:
        if levels and model.capabilities.distribution is None and not model.calibrates:
            raise no_distribution_error(model.name)


def _usable_panels(models: Sequence[Forecaster], panel: Panel) -> list[Panel]:
    """The panel for each model, without the covariates and weights it cannot use."""
    panels = []
    messages = []
    for model in models:
        with collect_messages() as model_messages:
            usable_panel, unused = drop_unusable(panel, model.capabilities)
            if unused:
                warn(f"{model.name} runs without the columns it cannot use: {format_list(unused)}.", subject=model.name)
        panels.append(usable_panel)
        messages.append(model_messages)
    warn_together(messages)
    return panels
