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


class Past:
    """The last values of every series, with room for those to come, as the regressor of one step of a block sees them."""

    def __init__(self, design: Design, values: Floats, running: Floats) -> None:
        self.running = running
        self._values, self._features = values, coded(design.past)

    def row(self, held: int, into: Floats) -> None:
        """The features of the row after the first `held`."""
        kernel.newest(self._values, held, *self._features, self.running, into)

    def watch(self, held: int) -> None:
        """Take notice of what has come into sight with the latest of the first `held` rows."""
        kernel.watch(self._values, held, *self._features, self.running)


def forecast(designs: Sequence[Design], tail: Floats, running: Sequence[Floats], predicts: Sequence[Predict], beside: Floats) -> Floats:
    """Forecasts (series, steps). `designs[k]`, `running[k]` and `predicts[k]` belong to step k of a block; `tail` holds the last
    values of each series, `beside` (steps, series, columns) what needs no past of the target."""
    steps, series, _ = beside.shape
    held, width, block = tail.shape[1], len(designs[0].past), len(designs)
    values = np.concatenate([tail, np.full((series, steps), np.nan)], axis=1)
    pasts = [Past(one, values, seen) for one, seen in zip(designs, running, strict=True)]
    past, table = np.empty((series, width)), np.empty((series, width + beside.shape[2]))
    grows = bool(running[0].shape[2])
    for start in range(0, steps, block):
        here = min(block, steps - start)
        for step in range(here):
            pasts[step].row(held + start + step, past)
            table[:, :width], table[:, width:] = past, beside[start + step]
            values[:, held + start + step] = predicts[step](table)
        for one in pasts if grows else ():
            for step in range(here):
                one.watch(held + start + step + 1)
    return values[:, held:]


def row_values(design: Design, tail: Floats, running: Floats, beside: Floats, predict: Predict) -> Floats:
    """What a regressor of several steps says of the next ones, all from the row after the tail."""
    past = np.empty((len(tail), len(design.past)))
    Past(design, np.ascontiguousarray(tail), running).row(tail.shape[1], past)
    return predict(np.concatenate([past, beside], axis=1))
