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
    test rows after it (all of them with `full_windows`).
    """

    horizon: int
    n_windows: int
    step: int
    gap: int = 0
    train_size: int | None = None
    align: str = "series"
    min_observations: int = 1
    full_windows: bool = False


@dataclass(frozen=True)
class BacktestWindow:
    """A cutoff with training rows `train_start[i]:cutoff[i]` of series `series[i]`."""

    number: int
    series: Ints
    train_start: Ints
    cutoff: Ints

    def history(self, panel: Panel) -> Panel:
        """A copy of the training rows."""
        selected = panel if len(self.series) == len(panel) else panel.take(self.series)
        return selected.between(self.train_start, self.cutoff)

    def test_rows(self, panel: Panel, gap: int, horizon: int) -> tuple[Ints, NDArray[np.bool_]]:
        """The flat test rows, shape (series, horizon), and a mask of those that exist."""
        rows = self.cutoff[:, None] + gap + np.arange(horizon)
        inside = rows < panel.lengths[self.series][:, None]
        return panel.indptr[:-1][self.series][:, None] + np.where(inside, rows, 0), inside


def backtest_windows(panel: Panel, plan: BacktestPlan) -> list[BacktestWindow]:
    """The windows of a plan, the oldest first."""
    if plan.train_size is not None and plan.train_size < plan.min_observations:
        raise ParameterError(
            f"size must be at least {plan.min_observations}, the observations that training needs; "
            f"got {plan.train_size}."
        )
    by_series = plan.align == "series"
    cutoffs = _cutoffs_by_series(panel, plan) if by_series else _cutoffs_by_calendar(panel, plan)
    # future covariates are known only for existing rows
    requires_all_rows = plan.full_windows or bool(panel.series.columns.future)
    n_required_rows = plan.gap + (plan.horizon if requires_all_rows else 1)
    observed_before = _cumulative_observed(panel)
    windows = []
    for number, cutoff in enumerate(cutoffs):
        train_start = np.zeros_like(cutoff) if plan.train_size is None else np.maximum(cutoff - plan.train_size, 0)
        n_observed = observed_before[panel.indptr[:-1] + cutoff] - observed_before[panel.indptr[:-1] + train_start]
        is_usable = (n_observed >= plan.min_observations) & (cutoff + n_required_rows <= panel.lengths)
        series = np.flatnonzero(is_usable)
        if by_series and len(series) < len(panel):
            too_short = np.flatnonzero(~is_usable)
            first_has = f"{n_observed[too_short[0]]} non-missing values before cutoff {number + 1}"
            raise _too_many_windows_error(panel, plan, too_short, first_has)
        if not len(series):
            raise ParameterError(
                f"n_windows={plan.n_windows}: at least one series must have "
                f"{pluralize(plan.min_observations, 'value')} before cutoff {number + 1} (counted "
                "from the earliest) and rows after it. Use fewer windows."
            )
        windows.append(BacktestWindow(number, series, train_start[series], cutoff[series]))
    return windows


def rows_until_observed(panel: Panel, min_observations: int) -> Ints:
    """The number of first rows of each series with `min_observations` values.

    If a series has fewer values, the number is larger than that of its rows.
    """
    observed_before = _cumulative_observed(panel)
    rows = np.searchsorted(observed_before, observed_before[panel.indptr[:-1]] + min_observations)
    return np.asarray(rows - panel.indptr[:-1], dtype=np.int64)


def _cumulative_observed(panel: Panel) -> Ints:
    """The number of non-missing targets before each flat row."""
    return np.concatenate([[0], np.cumsum(~panel.missing(), dtype=np.int64)])


def _cutoffs_by_series(panel: Panel, plan: BacktestPlan) -> list[Ints]:
    span = plan.horizon + plan.gap + (plan.n_windows - 1) * plan.step
    short = np.flatnonzero(panel.lengths < span + plan.min_observations)
    if len(short):
        raise _too_many_windows_error(panel, plan, short, f"{panel.lengths[short[0]]} rows")
    return [panel.lengths - span + number * plan.step for number in range(plan.n_windows)]


def _cutoffs_by_calendar(panel: Panel, plan: BacktestPlan) -> list[Ints]:
    step = panel.calendar.step
    latest = int(panel.series.last.max())
    cutoffs = []
    for number in reversed(range(plan.n_windows)):
        position = latest - step * (plan.horizon + plan.gap + number * plan.step)
        cutoffs.append(np.clip((position - panel.start) // step + 1, 0, panel.lengths))
    return cutoffs


def _too_many_windows_error(panel: Panel, plan: BacktestPlan, short: Ints, first_has: str) -> ParameterError:
    span = plan.horizon + plan.gap + (plan.n_windows - 1) * plan.step
    labels = panel.series.labels(short)
    description = f"{labels} has"
    if len(short) > 1:
        description = f"{labels} have fewer: the first, {panel.series.label(int(short[0]))}, has"
    return ParameterError(
        f"n_windows={plan.n_windows} with horizon={plan.horizon} (step {plan.step}, gap "
        f"{plan.gap}) must have {pluralize(plan.min_observations, 'value')} for training and {span} "
        f"rows after that; series {description} {first_has}. Use fewer windows or a shorter "
        "horizon, or leave these series out."
    )
