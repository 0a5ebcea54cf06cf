"""Where to cut a panel for a backtest: rows before a cutoff are for learning, the rows after it for judging."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deepforecast.data.frames import Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError


@dataclass(frozen=True)
class Plan:
    """A backtest of `n_windows` cutoffs, `step` rows apart, each followed by `gap` rows left out and `horizon` rows judged.

    `size`: rows a window learns from (None: all before the cutoff). `align="series"` counts cutoffs back from each series' own
    end, so that every series is in every window; where series end at different times, a window learns from stamps of one series
    that lie after the cutoff of another. `align="calendar"` counts from the latest end of all, so that no model ever learns
    from a stamp after the cutoff of any series; a series is then in those windows before whose cutoff it has `needed` values,
    and that it has rows after: some of those judged, or all of them where that is asked for (`whole`).
    """

    horizon: int
    n_windows: int
    step: int
    gap: int = 0
    size: int | None = None
    align: str = "series"
    needed: int = 1
    whole: bool = False


@dataclass(frozen=True)
class Window:
    """One cutoff: learn from rows `begin[i]:cut[i]` of series `series[i]`, counted within the series."""

    number: int
    series: Ints
    begin: Ints
    cut: Ints

    def history(self, panel: Panel) -> Panel:
        """The rows to learn from, copied."""
        return (panel if len(self.series) == len(panel) else panel.take(self.series)).between(self.begin, self.cut)

    def ahead(self, panel: Panel, gap: int, horizon: int) -> tuple[Ints, NDArray[np.bool_]]:
        """Flat rows of the panel judged, shape (series, horizon), and which of them there are."""
        rows = self.cut[:, None] + gap + np.arange(horizon)
        inside = rows < panel.lengths[self.series][:, None]
        return panel.indptr[:-1][self.series][:, None] + np.where(inside, rows, 0), inside


def windows(panel: Panel, plan: Plan) -> list[Window]:
    """The windows of a plan, the oldest first."""
    if plan.size is not None and plan.size < plan.needed:
        raise ParameterError(f"size is the number of rows a window learns from, here at least {plan.needed}; got {plan.size}.")
    by_series = plan.align == "series"
    cuts = _cuts_by_series(panel, plan) if by_series else _cuts_by_calendar(panel, plan)
    whole = plan.whole or bool(panel.series.columns.future)  # what is known ahead is known for rows that there are
    seen = _seen(panel)
    found = []
    for number, cut in enumerate(cuts):
        begin = np.zeros_like(cut) if plan.size is None else np.maximum(cut - plan.size, 0)
        learned = seen[panel.indptr[:-1] + cut] - seen[panel.indptr[:-1] + begin]
        there = (learned >= plan.needed) & (cut + plan.gap + (plan.horizon if whole else 1) <= panel.lengths)
        series = np.flatnonzero(there)
        if by_series and len(series) < len(panel):
            few = np.flatnonzero(~there)
            found_there = f"{learned[few[0]]} values to learn from before cutoff {number + 1}, missing ones left out"
            raise _too_many(panel, plan, few, found_there)
        if not len(series):
            raise ParameterError(
                f"n_windows={plan.n_windows}: no series has {plan.needed} values before cutoff {number + 1} (they are counted "
                "from the earliest) and rows after it. Ask for fewer windows."
            )
        found.append(Window(number, series, begin[series], cut[series]))
    return found


def ready(panel: Panel, needed: int) -> Ints:
    """After how many rows of each series `needed` values have been seen; more than there are rows where that never happens."""
    seen = _seen(panel)
    rows = np.searchsorted(seen, seen[panel.indptr[:-1]] + needed)
    return np.asarray(rows - panel.indptr[:-1], dtype=np.int64)


def _seen(panel: Panel) -> Ints:
    """How many values there are before each row of the flat array."""
    return np.concatenate([[0], np.cumsum(~panel.missing(), dtype=np.int64)])


def _cuts_by_series(panel: Panel, plan: Plan) -> list[Ints]:
    span = plan.horizon + plan.gap + (plan.n_windows - 1) * plan.step
    short = np.flatnonzero(panel.lengths < span + plan.needed)
    if len(short):
        raise _too_many(panel, plan, short, f"{panel.lengths[short[0]]} rows")
    return [panel.lengths - span + number * plan.step for number in range(plan.n_windows)]


def _cuts_by_calendar(panel: Panel, plan: Plan) -> list[Ints]:
    step = panel.calendar.step
    latest = int(panel.series.last.max())
    cuts = []
    for number in reversed(range(plan.n_windows)):
        position = latest - step * (plan.horizon + plan.gap + number * plan.step)
        cuts.append(np.clip((position - panel.start) // step + 1, 0, panel.lengths))
    return cuts


def _too_many(panel: Panel, plan: Plan, short: Ints, first_has: str) -> ParameterError:
    span = plan.horizon + plan.gap + (plan.n_windows - 1) * plan.step
    labels = panel.series.labels(short)
    who = f"{labels} has" if len(short) == 1 else f"{labels} have fewer: the first, {panel.series.label(int(short[0]))}, has"
    return ParameterError(
        f"n_windows={plan.n_windows} with horizon={plan.horizon} (step {plan.step}, gap {plan.gap}) needs {plan.needed} "
        f"value{'s' * (plan.needed != 1)} to learn from and {span} rows after that; series {who} {first_has}. Ask for fewer "
        "windows or a shorter horizon, or leave these series out."
    )
