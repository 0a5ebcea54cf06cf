"""One-step-ahead forecasts of a model whose seasons a smoother takes out, which looks to both sides: the seasons of a row are
those of the rows before its cycle, carried on. So no forecast knows the row that it is compared with, or a later one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from deepforecast.core.state import Learned
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.models.statistical._carried import carried_on, last_cycles

MOST = 50
"""Times the seasons of a series are taken anew: each cycle of the shortest one, in a longer series every few cycles."""
AT_ONCE = 2_000_000  # rows worked on at a time


def foreseen(
    panel: Panel,
    lengths: Sequence[int],
    first: int,
    apart: Callable[[Panel], Floats],
    following: Callable[[Panel, Ints], Floats],
) -> Floats:
    """Forecasts of the rows from `first` on, NaN before. `apart`: the seasons of the rows of a panel; `following`: the
    one-step-ahead forecasts of what is left without them, of series with these numbers."""
    found = np.full(len(panel.y), np.nan)
    for part in _cycles(panel, lengths, first):
        series, begin, end = part.T
        whole, none = panel.take(series), np.zeros(len(part), np.int64)
        before, fresh, held = (whole.between(*bounds) for bounds in ((none, begin), (begin, end), (none, end)))
        seasons = apart(before)
        carried = Learned(last_cycles(before, tuple(lengths), seasons))
        without = carried_on(carried, fresh.with_target(np.zeros(len(fresh.y))))[0]
        late = _into(held) >= np.repeat(begin, held.lengths)
        rest = np.empty(len(held.y))
        rest[late], rest[~late] = fresh.y + without, before.y - seasons.sum(axis=0)
        place = _into(fresh) + np.repeat(panel.indptr[series] + begin, fresh.lengths)
        found[place] = following(held.with_target(rest), series)[late] - without
    return found


def _cycles(panel: Panel, lengths: Sequence[int], first: int) -> list[Ints]:
    """Number of the series, first row and end of every cycle, (cycles, 3), in parts of not too many rows."""
    shortest, found = min(lengths), []
    for number, count in enumerate(panel.lengths):
        width = shortest * max(-(-count // (shortest * MOST)), 1)
        begin = np.arange(first, count, width)
        found.append(np.column_stack([np.full(len(begin), number), begin, np.minimum(begin + width, count)]))
    every = np.concatenate(found)
    part = np.cumsum(every[:, 2]) // AT_ONCE
    return [one for one in np.split(every, np.flatnonzero(np.diff(part)) + 1) if len(one)]


def _into(panel: Panel) -> Ints:
    """The place of each row within its series."""
    return np.arange(len(panel.y)) - np.repeat(panel.indptr[:-1], panel.lengths)
