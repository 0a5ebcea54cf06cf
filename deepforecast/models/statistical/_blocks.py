"""What the models share that smooth sums of blocks of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from deepforecast.core.state import Learned, State
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.models.statistical._intermittent import PLAIN, Intermittent, found, moved, positions

INTERVALS = 0


class Blocked(Intermittent):
    """Blocks end where the series of the fit ends, and every so many rows before and after it.

    So new rows move the forecast when they complete a block. A block with missing rows counts by the mean of the others; a
    history too short for a whole one is one.
    """

    seconds_per_value = 1e-8

    def _rows(self, panel: Panel) -> Ints:
        """Rows a block on each level, shape (series, levels); 0: no such level."""
        raise NotImplementedError

    def _smoothing(self) -> tuple[float, float]:
        """The bounds of the smoothing parameters."""
        raise NotImplementedError

    def _estimate(self, panel: Panel) -> Learned:
        from deepforecast.kernels.intermittent import blocks_fitted

        rows = self._rows(panel)
        alpha, blocks = blocks_fitted(panel.y, panel.indptr, rows, *self._smoothing())
        held = {"rows": rows, "block_alpha": alpha, "end": positions(panel)[1], "blocks": blocks}
        return Learned({**held, **found(panel, INTERVALS, [PLAIN, PLAIN])})

    def _advance(self, learned: Learned, panel: Panel, fresh: bool) -> Learned:
        from deepforecast.kernels.intermittent import blocks_walked

        rows = learned["rows"]
        skip, blocks = _start(learned, panel) if fresh else (np.zeros_like(rows), learned["blocks"])
        blocks, _ = blocks_walked(panel.y, panel.indptr, rows, learned["block_alpha"], skip, blocks)
        bands = moved(panel, INTERVALS, learned["alpha"], None if fresh else learned)
        return Learned({**learned.by_series, "blocks": blocks, **bands}, history=panel if fresh else None)

    def _estimated(self, learned: Learned, state: State) -> dict[str, Any]:
        """Rows a block and its smoothing parameter; of every length where there are several."""
        rows, alpha = learned["rows"], learned["block_alpha"]
        if rows.shape[1] == 1:
            return {"block": rows[:, 0], "alpha": alpha[:, 0]}
        return {f"alpha_{one + 1}": np.where(rows[:, one] > 0, alpha[:, one], np.nan) for one in range(rows.shape[1])}

    def _rate(self, learned: Learned) -> Floats:
        smoothed, _, seen, total = np.moveaxis(learned["blocks"], -1, 0)
        rows = learned["rows"]
        begun = np.where(seen > 0, total / np.maximum(seen, 1), 0.0)
        each = np.where(np.isnan(smoothed), begun, smoothed / np.maximum(rows, 1))
        return np.asarray(np.sum(np.where(rows > 0, each, 0.0), axis=1) / np.maximum(np.sum(rows > 0, axis=1), 1))

    def _fitted(self, learned: Learned, panel: Panel) -> Floats:
        from deepforecast.kernels.intermittent import blocks_walked

        skip, blocks = _start(learned, panel)
        return blocks_walked(panel.y, panel.indptr, learned["rows"], learned["block_alpha"], skip, blocks)[1]


def mean_interval(panel: Panel) -> Ints:
    """The mean of the periods from one demand to the next, as a whole number: what one block should hold."""
    from deepforecast.kernels.intermittent import mean_intervals

    return mean_intervals(panel.y, panel.indptr)


def _start(learned: Learned, panel: Panel) -> tuple[Ints, Floats]:
    """Rows before the first whole block on each level, and blocks of which nothing was seen."""
    rows = learned["rows"]
    width = np.maximum(rows, 1)
    skip = (learned["end"] + 1 - positions(panel)[0])[:, None] % width
    skip = np.where(skip + width > panel.lengths[:, None], 0, skip)
    blocks = np.zeros((*rows.shape, 4))
    blocks[..., 0] = np.nan
    return skip, blocks
