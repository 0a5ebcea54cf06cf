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
    end, so that every series is in every window; `align="calendar"` from the latest end of all, so that no model ever learns
    from a stamp after the cutoff of any series, and series that ended earlier are judged where they have rows.
    """

    horizon: int
    n_windows: int
    step: int
    gap: int = 0
    size: int | None = None
    align: str = "series"


@dataclass(frozen=True)
class Window:
    """One cutoff: learn from rows `begin[i]:cut[i]` of series `series[i]`, counted within the series."""

    number: int
    series: Ints
    begin: Ints
    cut: Ints

    def history(self, panel: Panel) -> Panel:
        """The rows to learn from, copied."""
        full_begin, full_cut = np.zeros(len(panel), np.int64), np.zeros(len(panel), np.int64)
        full_begin[self.series], full_cut[self.series] = self.begin, self.cut
        whole = len(self.series) == len(panel)
        return panel.between(full_begin, full_cut) if whole else panel.take(self.series).between(self.begin, self.cut)

    def ahead(self, panel: Panel, gap: int, horizon: int) -> tuple[Ints, NDArray[np.bool_]]:
        """Flat rows of the panel judged, shape (series, horizon), and which of them there are (bool)."""
        rows = self.cut[:, None] + gap + np.arange(horizon)
        inside = rows < panel.lengths[self.series][:, None]
        return panel.indptr[:-1][self.series][:, None] + np.where(inside, rows, 0), inside


def windows(panel: Panel, plan: Plan, needed: int = 1) -> list[Window]:
    """The windows of a plan, the oldest first; `needed` rows at least are there to learn from."""
    lengths = panel.lengths
    if plan.align == "series":
        span = plan.horizon + plan.gap + (plan.n_windows - 1) * plan.step
        short = np.flatnonzero(lengths < span + needed)
        if len(short):
            raise ParameterError(
                f"n_windows={plan.n_windows} windows of horizon {plan.horizon} (step {plan.step}, gap {plan.gap}) need "
                f"{span + needed} rows a series; series {panel.series.labels(short)} has {lengths[short[0]]}. Ask for fewer "
                "windows or a shorter horizon, or leave these series out."
            )
        cuts = [lengths - span + number * plan.step for number in range(plan.n_windows)]
    else:
        cuts = _calendar_cuts(panel, plan)
    found = []
    for number, cut in enumerate(cuts):
        series = np.flatnonzero((cut >= needed) & (cut + plan.gap < lengths))
        if not len(series):
            raise ParameterError(
                f"n_windows={plan.n_windows}: no series has rows on both sides of cutoff {number + 1}. Ask for fewer "
                "windows."
            )
        begin = np.zeros(len(series), np.int64) if plan.size is None else np.maximum(cut[series] - plan.size, 0)
        found.append(Window(number, series, begin, cut[series]))
    return found


def _calendar_cuts(panel: Panel, plan: Plan) -> list[Ints]:
    step = panel.calendar.step
    latest = int(panel.series.last.max())
    cuts = []
    for number in reversed(range(plan.n_windows)):
        position = latest - step * (plan.horizon + plan.gap + number * plan.step)
        cuts.append(np.clip((position - panel.start) // step + 1, 0, panel.lengths))
    return cuts
