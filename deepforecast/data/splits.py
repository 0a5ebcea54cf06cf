"""Where to cut a panel for a backtest: rows before a cutoff are for learning, the rows after it for judging."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deepforecast.data.frames import Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError


@dataclass(frozen=True)
class BacktestPlan:
    """A backtest of `n_windows` cutoffs, `step` rows apart, each followed by `gap` rows left out and `horizon` rows judged.

    `train_size`: rows a window learns from (None: all before the cutoff). `align="series"` counts cutoffs back from each series' own
    end, so that every series is in every window; where series end at different times, a window learns from stamps of one series
    that lie after the cutoff of another. `align="calendar"` counts from the latest end of all, so that no model ever learns
    from a stamp after the cutoff of any series; a series is then in those windows before whose cutoff it has `min_observations` values,
    and that it has rows after: some of those judged, or all of them where that is asked for (`full_windows`).
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
    """One cutoff: learn from rows `train_start[i]:cut[i]` of series `series[i]`, counted within the series."""

    number: int
    series: Ints
    train_start: Ints
    cutoff: Ints

    def history(self, panel: Panel) -> Panel:
        """The rows to learn from, copied."""
        return (panel if len(self.series) == len(panel) else panel.take(self.series)).between(self.train_start, self.cutoff)

    def test_rows(self, panel: Panel, gap: int, horizon: int) -> tuple[Ints, NDArray[np.bool_]]:
        """Flat rows of the panel judged, shape (series, horizon), and which of them there are."""
        rows = self.cutoff[:, None] + gap + np.arange(horizon)
        inside = rows < panel.lengths[self.series][:, None]
        return panel.indptr[:-1][self.series][:, None] + np.where(inside, rows, 0), inside


def backtest_windows(panel: Panel, plan: BacktestPlan) -> list[BacktestWindow]:
    """The windows of a plan, the oldest first."""
    if plan.train_size is not None and plan.train_size < plan.min_observations:
        raise ParameterError(
            f"size must be at least {plan.min_observations}, the observations that training needs; got {plan.train_size}."
        )
    by_series = plan.align == "series"
    cutoffs = _cutoffs_by_series(panel, plan) if by_series else _cutoffs_by_calendar(panel, plan)
    requires_all_rows = plan.full_windows or bool(panel.series.columns.future)  # what is known ahead is known for rows that there are
    observed_before = _cumulative_observed(panel)
    windows_found = []
    for number, cutoff in enumerate(cutoffs):
        train_start = np.zeros_like(cutoff) if plan.train_size is None else np.maximum(cutoff - plan.train_size, 0)
        n_observed = observed_before[panel.indptr[:-1] + cutoff] - observed_before[panel.indptr[:-1] + train_start]
        is_usable = (n_observed >= plan.min_observations) & (cutoff + plan.gap + (plan.horizon if requires_all_rows else 1) <= panel.lengths)
        series = np.flatnonzero(is_usable)
        if by_series and len(series) < len(panel):
            too_short = np.flatnonzero(~is_usable)
            first_has = f"{n_observed[too_short[0]]} non-missing values before cutoff {number + 1}"
            raise _too_many_windows_error(panel, plan, too_short, first_has)
        if not len(series):
            raise ParameterError(
                f"n_windows={plan.n_windows}: at least one series must have {plan.min_observations} values before cutoff "
                f"{number + 1} (counted from the earliest) and rows after it. Set a smaller n_windows."
            )
        windows_found.append(BacktestWindow(number, series, train_start[series], cutoff[series]))
    return windows_found


def rows_until_observed(panel: Panel, min_observations: int) -> Ints:
    """After how many rows of each series `min_observations` values have been seen; more than there are rows where that never happens."""
    observed_before = _cumulative_observed(panel)
    rows = np.searchsorted(observed_before, observed_before[panel.indptr[:-1]] + min_observations)
    return np.asarray(rows - panel.indptr[:-1], dtype=np.int64)


def _cumulative_observed(panel: Panel) -> Ints:
    """How many values there are before each row of the flat array."""
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
    description = f"{labels} has" if len(short) == 1 else f"{labels} have fewer: the first, {panel.series.label(int(short[0]))}, has"
    return ParameterError(
        f"n_windows={plan.n_windows} with horizon={plan.horizon} (step {plan.step}, gap {plan.gap}) must have "
        f"{plan.min_observations} value{'s' * (plan.min_observations != 1)} for training and {span} rows after that; series "
        f"{description} {first_has}. Set a smaller n_windows or horizon, or leave these series out."
    )
