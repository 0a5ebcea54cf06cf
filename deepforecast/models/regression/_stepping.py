"""From regressors to forecasts: blocks of steps, each block from the rows before it, all series at once.

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
ToChanges = Callable[[Floats, int], None]  # forecasts (series, steps) in place, from a step on


class Past:
    """The last values of every series, with room for those to come, and what growing windows have seen of them."""

    def __init__(self, designs: Sequence[Design], tail: Floats, running: Floats, steps: int) -> None:
        self.values = np.concatenate([tail, np.full((len(tail), steps), np.nan)], axis=1)
        self.held, self._running = tail.shape[1], running
        self._features = [coded(one.past) for one in designs]

    def table(self, step: int, beside: Floats) -> Floats:
        """The row `step` rows after the next one, as that step's regressor in a block sees it; `beside`: its last columns."""
        features, levels = self._features[step]
        found = np.empty((len(beside), len(levels) + beside.shape[1]))
        kernel.fill_next_row(self.values, self.held + step, features, levels, self._running, found)
        found[:, len(levels) :] = beside
        return found

    def take(self, block: Floats) -> None:
        """The values of the next rows."""
        for value in block.T:
            self.values[:, self.held] = value
            self.held += 1
            if self._running.shape[2]:
                kernel.update_expanding(self.values, self.held, *self._features[0], self._running)


def forecast(past: Past, predicts: Sequence[Predict], beside: Floats, to_changes: ToChanges) -> Floats:
    """Forecasts (series, steps). `predicts[k]` belongs to step k of a block; `beside` (steps, series, columns) is what needs no
    past of the target; `to_changes` turns what the regressors of a block say into values of what `past` holds."""
    steps, series, _ = beside.shape
    block = len(predicts)
    found = np.empty((series, steps))
    for start in range(0, steps, block):
        here = min(block, steps - start)
        for step in range(here):
            found[:, start + step] = predicts[step](past.table(step, beside[start + step]))
        to_changes(found[:, : start + here], start)
        past.take(found[:, start : start + here])
    return found


def forecast_together(
    past: Past, predict: Predict, beside: Floats, block: int, first: int, to_changes: ToChanges
) -> Floats:
    """The same by a regressor that says all steps of a block: of `beside` it sees `first` columns at the begin of the block,
    the others of each step."""
    steps, series, _ = beside.shape
    found = np.empty((series, steps))
    for start in range(0, steps, block):
        here = beside[start : start + block]
        later = here[:, :, first:].transpose(1, 0, 2).reshape(series, -1)
        found[:, start : start + block] = predict(past.table(0, np.concatenate([here[0, :, :first], later], axis=1)))
        to_changes(found[:, : start + block], start)
        past.take(found[:, start : start + block])
    return found
