"""From fitted regressors to forecasts: blocks of steps, each block from the rows before it, all series at once.

A strategy is the number of steps in a block: one (recursive), all (direct), some (blocks). The regressor of step k in a block
sees the past as it was k - 1 rows earlier. Only the new row's features are computed, the table is never built again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from deepforecast.data.frames import Floats
from deepforecast.kernels import features as kernel
from deepforecast.models.regression._design import Design, coded

Predict = Callable[[Floats], Floats]


class Past:
    """The last values of every series, with room for those to come, and what growing windows have seen of them."""

    def __init__(self, design: Design, values: Floats, seen: Floats, steps: int) -> None:
        rows, held = values.shape
        self.values = np.concatenate([values, np.full((rows, steps), np.nan)], axis=1)
        self.held = held
        self.running = seen.copy()
        self._features, self._levels = coded(design.past)

    def row(self, ahead: int, into: Floats) -> None:
        """The features of the row `ahead` of the newest (1: the next), of those that were declared to see no further."""
        kernel.newest(self.values, self.held + ahead - 1, self._features, self._levels, self.running, into)

    def take(self, block: Floats) -> None:
        """Values of the next rows."""
        for step in range(block.shape[1]):
            self.values[:, self.held] = block[:, step]
            self.held += 1
            kernel.watch(self.values, self.held, self._features, self._levels, self.running)


def forecast(pasts: Sequence[Past], predicts: Sequence[Predict], beside: Floats, steps: int) -> Floats:
    """Forecasts (series, steps): `predicts[k]` and its `pasts[k]` for step k of each block; `beside` (steps, series, columns)
    are the columns that need no past of the target."""
    series = beside.shape[1]
    found = np.empty((series, steps))
    width = len(pasts[0].running[0])
    table = np.empty((series, width + beside.shape[2]))
    for start in range(0, steps, len(pasts)):
        block = min(len(pasts), steps - start)
        for step in range(block):
            pasts[step].row(step + 1, table)
            table[:, width:] = beside[start + step]
            found[:, start + step] = predicts[step](table)
        for past in pasts:
            past.take(found[:, start : start + block])
    return found
