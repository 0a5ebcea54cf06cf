"""Base class of ADIDA and IMAPA, which smooth demand aggregated over blocks of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from deepforecast.core.state import LearnedState, State
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.models.statistical._demand import CROSTON_BOUNDS, Intermittent, fit_demand, positions, update_demand

INTERVALS = 0


class TemporalAggregation(Intermittent):
    """Base class of models of temporally aggregated demand.

    Blocks are aligned with the end of the series of the fit, so new rows change the forecast when
    they complete a block. Missing rows of a block count as the mean of its other rows; a history
    shorter than a block is one block.
    """

    seconds_per_value = 1e-8

    def _block_sizes(self, panel: Panel) -> Ints:
        """Rows per block on each aggregation level, (series, levels); 0: level not used."""
        raise NotImplementedError

    def _alpha_bounds(self) -> tuple[float, float]:
        """Bounds of the smoothing parameters."""
        raise NotImplementedError

    def _estimate(self, panel: Panel) -> LearnedState:
        from deepforecast.kernels.intermittent import fit_blocks

        rows = self._block_sizes(panel)
        alpha, blocks = fit_blocks(panel.y, panel.indptr, rows, *self._alpha_bounds())
        block_arrays = {"rows": rows, "block_alpha": alpha, "end": positions(panel)[1], "blocks": blocks}
        return LearnedState({**block_arrays, **fit_demand(panel, INTERVALS, [CROSTON_BOUNDS, CROSTON_BOUNDS])})

    def _advance(self, learned: LearnedState, panel: Panel, fresh: bool) -> LearnedState:
        from deepforecast.kernels.intermittent import update_blocks

        rows = learned["rows"]
        skip, blocks = _initial_blocks(learned, panel) if fresh else (np.zeros_like(rows), learned["blocks"])
        blocks, _ = update_blocks(panel.y, panel.indptr, rows, learned["block_alpha"], skip, blocks)
        demand_arrays = update_demand(panel, INTERVALS, learned["alpha"], None if fresh else learned)
        return LearnedState({**learned.by_series, "blocks": blocks, **demand_arrays}, history=panel if fresh else None)

    def _parameter_columns(self, learned: LearnedState, state: State) -> dict[str, Any]:
        """Block length and smoothing parameter, or the parameters of all levels."""
        rows, alpha = learned["rows"], learned["block_alpha"]
        if rows.shape[1] == 1:
            return {"block": rows[:, 0], "alpha": alpha[:, 0]}
        return {f"alpha_{level + 1}": np.where(rows[:, level] > 0, alpha[:, level], np.nan) for level in range(rows.shape[1])}

    def _rate(self, learned: LearnedState) -> Floats:
        smoothed, _, n_observed, total = np.moveaxis(learned["blocks"], -1, 0)
        rows = learned["rows"]
        partial_rate = np.where(n_observed > 0, total / np.maximum(n_observed, 1), 0.0)
        level_rate = np.where(np.isnan(smoothed), partial_rate, smoothed / np.maximum(rows, 1))
        return np.asarray(np.sum(np.where(rows > 0, level_rate, 0.0), axis=1) / np.maximum(np.sum(rows > 0, axis=1), 1))

    def _fitted(self, learned: LearnedState, panel: Panel) -> Floats:
        from deepforecast.kernels.intermittent import update_blocks

        skip, blocks = _initial_blocks(learned, panel)
        return update_blocks(panel.y, panel.indptr, learned["rows"], learned["block_alpha"], skip, blocks)[1]


def mean_interval(panel: Panel) -> Ints:
    """Mean interval between demands, rounded."""
    from deepforecast.kernels.intermittent import mean_intervals

    return mean_intervals(panel.y, panel.indptr)


def _initial_blocks(learned: LearnedState, panel: Panel) -> tuple[Ints, Floats]:
    """Rows to skip before the first full block of each level, and empty blocks."""
    rows = learned["rows"]
    width = np.maximum(rows, 1)
    skip = (learned["end"] + 1 - positions(panel)[0])[:, None] % width
    skip = np.where(skip + width > panel.lengths[:, None], 0, skip)
    blocks = np.zeros((*rows.shape, 4))
    blocks[..., 0] = np.nan
    return skip, blocks
