"""Cutoffs of backtests: training rows before each cutoff, test rows after it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deepforecast.data.frames import Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError, pluralize


@dataclass(frozen=True)
class BacktestPlan:
    """A backtest of `n_windows` cutoffs, `step` rows apart.

    Each is followed by `gap` skipped rows and `horizon` test rows. `train_size` is the number of
    training rows (None: all before the cutoff). `align="series"` counts cutoffs back from the end
    of each series, so that every series is in every window. If series end at different times, the
    training rows of one series may be later than the cutoff of another. `align="calendar"` counts
    from the latest end of all series, so that no training row is after the cutoff of any series. A
    series is then in the windows in which it has `min_observations` values before the cutoff and
    test rows after it (all of them with `full_windows`). With `align="series"` a series that is too short for a
    window is an error, or not in it if `skips_short`.
    """

    horizon: int
    n_windows: int
    step: int
    gap: int = 0
    train_size: int | None = None
    align: str = "series"
    min_observations: int = 1
    full_windows: bool = False
    skips_short: bool = False


@dataclass(frozen=True)
class BacktestWindow:
    """A cutoff with training rows `train_start[i]:cutoff[i]` of series `series[i]`, counted within the series."""

    number: int
    series: Ints
    train_start: Ints
    cutoff: Ints

    def history(self, panel: Panel) -> Panel:
        """A panel with a copy of the training rows."""
        selected = panel if len(self.series) == len(panel) else panel.take(self.series)
        return selected.between(self.train_start, self.cutoff)

    def test_rows(self, panel: Panel, gap: int, horizon: int) -> tuple[Ints, NDArray[np.bool_]]:
        """The test rows as indices of `panel.y`, shape (series, horizon), and a mask of those that exist."""
        rows = self.cutoff[:, None] + gap + np.arange(horizon)
        exists = rows < panel.lengths[self.series][:, None]
        return panel.indptr[:-1][self.series][:, None] + np.where(exists, rows, 0), exists


def backtest_windows(panel: Panel, plan: BacktestPlan) -> list[BacktestWindow]:
    """The windows of a plan, the oldest first; raises `ParameterError` if the series are too short for them."""
    if plan.train_size is not None and plan.train_size < plan.min_observations:
        raise ParameterError(
            f"`train_size` must be at least {plan.min_observations}, the number of observations that training "
            f"requires, got {plan.train_size}.",
            parameter="train_size",
            value=plan.train_size,
        )
    by_series = plan.align == "series"
    cutoffs = _cutoffs_by_series(panel, plan) if by_series else _cutoffs_by_calendar(panel, plan)
    # future covariates are known only for existing rows
    requires_all_rows = plan.full_windows or bool(panel.series.columns.future)
    n_required_rows = plan.gap + (plan.horizon if requires_all_rows else 1)
    observed_before = _cumulative_observed(panel)
    windows = []
    for window_number, cutoff in enumerate(cutoffs):
        train_start = np.zeros_like(cutoff) if plan.train_size is None else np.maximum(cutoff - plan.train_size, 0)
        n_observed = observed_before[panel.indptr[:-1] + cutoff] - observed_before[panel.indptr[:-1] + train_start]
        is_usable = (n_observed >= plan.min_observations) & (cutoff + n_required_rows <= panel.lengths)
        series = np.flatnonzero(is_usable)
        if by_series and len(series) < len(panel) and not plan.skips_short:
            too_short = np.flatnonzero(~is_usable)
            length_text = f"{n_observed[too_short[0]]} non-missing values before cutoff {window_number + 1}"
            raise _too_many_windows_error(panel, plan, too_short, length_text)
        if not len(series):
            raise ParameterError(
                f"`n_windows` must leave at least one series with {pluralize(plan.min_observations, 'value')} "
                f"before each cutoff and rows after it; with n_windows={plan.n_windows} cutoff "
                f"{window_number + 1} (counted from the earliest) has none.",
                hint="Use fewer windows.",
                parameter="n_windows",
            )
        windows.append(BacktestWindow(window_number, series, train_start[series], cutoff[series]))
    return windows


def rows_until_observed(panel: Panel, min_observations: int) -> Ints:
    """For each series, the smallest number of rows from its start that contain `min_observations` non-missing values.

    If a series has fewer values, the result is larger than its number of rows.
    """
    observed_before = _cumulative_observed(panel)
    rows = np.searchsorted(observed_before, observed_before[panel.indptr[:-1]] + min_observations)
    return np.asarray(rows - panel.indptr[:-1], dtype=np.int64)


def _cumulative_observed(panel: Panel) -> Ints:
    """The number of non-missing targets before each flat row."""
    return np.concatenate([[0], np.cumsum(~panel.missing(), dtype=np.int64)])


def _cutoffs_by_series(panel: Panel, plan: BacktestPlan) -> list[Ints]:
    """Number of rows of each series before each cutoff, oldest cutoff first, counted back from the end of the series."""
    n_test_rows = plan.horizon + plan.gap + (plan.n_windows - 1) * plan.step
    short = np.flatnonzero(panel.lengths < n_test_rows + plan.min_observations)
    if len(short) and not plan.skips_short:
        raise _too_many_windows_error(panel, plan, short, f"{panel.lengths[short[0]]} rows")
    first_cutoffs = panel.lengths - n_test_rows
    return [np.maximum(first_cutoffs + window_number * plan.step, 0) for window_number in range(plan.n_windows)]


def _cutoffs_by_calendar(panel: Panel, plan: BacktestPlan) -> list[Ints]:
    """Number of rows of each series before each cutoff, oldest cutoff first, counted back from the latest end of all series."""
    calendar_step = panel.calendar.step
    latest_position = int(panel.series.last.max())
    cutoffs = []
    for windows_after in reversed(range(plan.n_windows)):
        last_train_position = latest_position - calendar_step * (plan.horizon + plan.gap + windows_after * plan.step)
        n_rows_before = (last_train_position - panel.start) // calendar_step + 1
        cutoffs.append(np.clip(n_rows_before, 0, panel.lengths))
    return cutoffs


def _too_many_windows_error(panel: Panel, plan: BacktestPlan, short: Ints, length_text: str) -> ParameterError:
    """The error for the series `short`; `length_text` is what the first of them has."""
    n_test_rows = plan.horizon + plan.gap + (plan.n_windows - 1) * plan.step
    labels = panel.series.labels(short)
    description = f"{labels} has"
    if len(short) > 1:
        description = f"{labels} have fewer: the first, {panel.series.label(int(short[0]))}, has"
    return ParameterError(
        f"n_windows={plan.n_windows} with horizon={plan.horizon} (step {plan.step}, gap "
        f"{plan.gap}) requires {pluralize(plan.min_observations, 'value')} for training and {n_test_rows} "
        f"rows after them; series {description} {length_text}.",
        hint="Use fewer windows or a shorter horizon, or leave these series out.",
    )
