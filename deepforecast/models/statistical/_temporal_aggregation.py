"""Base class of ADIDA and IMAPA, which smooth demand aggregated over blocks of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from deepforecast.core.state import LearnedState, State
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.models.statistical._demand import (
    CROSTON_BOUNDS,
    INTERVALS,
    Intermittent,
    first_and_last_positions,
    fit_demand,
    update_demand,
)


class TemporalAggregation(Intermittent):
    """Base class of models of temporally aggregated demand.

    Blocks are aligned with the end of the series of the fit, so new rows change the forecast when
    they complete a block. Missing rows of a block count as the mean of its other rows; a history
    shorter than a block is one block.

    Learned arrays besides those of Croston's method: `rows_per_block` (series, levels), 0 for unused
    levels; `block_alpha`, their smoothing parameters; `block_states` (series, levels, 4): smoothed
    block sum (NaN before the first block), and position, number of values and sum of the incomplete
    block; `end`, the time index of the last row of the training data.
    """

    seconds_per_value = 1e-8

    def _rows_per_block(self, panel: Panel) -> Ints:
        """Number of rows per block on each aggregation level, (series, levels); 0: level not used."""
        raise NotImplementedError

    def _alpha_bounds(self) -> tuple[float, float]:
        """Bounds of the smoothing parameters of the block sums; equal bounds fix them."""
        raise NotImplementedError

    def _estimate(self, panel: Panel) -> LearnedState:
        """Smooth the block sums of each level, and demand sizes and intervals by Croston's method."""
        from deepforecast.kernels.intermittent import fit_blocks

        rows_per_block = self._rows_per_block(panel)
        alpha, block_states = fit_blocks(panel.y, panel.indptr, rows_per_block, *self._alpha_bounds())
        block_arrays = {
            "rows_per_block": rows_per_block,
            "block_alpha": alpha,
            "end": first_and_last_positions(panel)[1],
            "block_states": block_states,
        }
        return LearnedState({**block_arrays, **fit_demand(panel, INTERVALS, [CROSTON_BOUNDS, CROSTON_BOUNDS])})

    def _advance(self, learned: LearnedState, panel: Panel, from_start: bool) -> LearnedState:
        """Smooth the rows of a panel: from the start, with empty blocks, or continuing the state and incomplete blocks."""
        from deepforecast.kernels.intermittent import update_blocks

        rows_per_block = learned["rows_per_block"]
        if from_start:
            n_skipped, block_states = _initial_blocks(learned, panel)
        else:
            n_skipped, block_states = np.zeros_like(rows_per_block), learned["block_states"]
        block_states, _ = update_blocks(panel.y, panel.indptr, rows_per_block, learned["block_alpha"], n_skipped, block_states)
        demand_arrays = update_demand(panel, INTERVALS, learned["alpha"], None if from_start else learned)
        arrays = {**learned.by_series, "block_states": block_states, **demand_arrays}
        return LearnedState(arrays, history=panel if from_start else None)

    def _parameter_columns(self, learned: LearnedState, state: State) -> dict[str, Any]:
        """Rows per block and smoothing parameter of the only level, or the smoothing parameters of all levels."""
        rows_per_block, alpha = learned["rows_per_block"], learned["block_alpha"]
        if rows_per_block.shape[1] == 1:
            return {"block": rows_per_block[:, 0], "alpha": alpha[:, 0]}
        return {
            f"alpha_{level + 1}": np.where(rows_per_block[:, level] > 0, alpha[:, level], np.nan)
            for level in range(rows_per_block.shape[1])
        }

    def _rate(self, learned: LearnedState) -> Floats:
        """Mean over the levels of the smoothed block sum per row; before the first full block, of the mean so far."""
        smoothed, _, n_observed, partial_sum = np.moveaxis(learned["block_states"], -1, 0)
        rows_per_block = learned["rows_per_block"]
        is_used = rows_per_block > 0
        partial_rate = np.where(n_observed > 0, partial_sum / np.maximum(n_observed, 1), 0.0)
        level_rate = np.where(np.isnan(smoothed), partial_rate, smoothed / np.maximum(rows_per_block, 1))
        return np.asarray(np.sum(np.where(is_used, level_rate, 0.0), axis=1) / np.maximum(np.sum(is_used, axis=1), 1))

    def _fitted(self, learned: LearnedState, panel: Panel) -> Floats:
        from deepforecast.kernels.intermittent import update_blocks

        n_skipped, block_states = _initial_blocks(learned, panel)
        _, fitted = update_blocks(
            panel.y, panel.indptr, learned["rows_per_block"], learned["block_alpha"], n_skipped, block_states
        )
        return fitted


def mean_interval(panel: Panel) -> Ints:
    """Mean number of rows between demands of each series, rounded to an integer."""
    from deepforecast.kernels.intermittent import mean_intervals

    return mean_intervals(panel.y, panel.indptr)


def _initial_blocks(learned: LearnedState, panel: Panel) -> tuple[Ints, Floats]:
    """Number of rows to skip, (series, levels), and the states before the first block, (series, levels, 4).

    After the skipped rows, blocks end with the training data. No rows are skipped if no full block
    would remain.
    """
    rows_per_block = np.maximum(learned["rows_per_block"], 1)  # 1: unused levels, to avoid a division by 0
    n_skipped = (learned["end"] + 1 - first_and_last_positions(panel)[0])[:, None] % rows_per_block
    n_skipped = np.where(n_skipped + rows_per_block > panel.lengths[:, None], 0, n_skipped)
    block_states = np.zeros((*rows_per_block.shape, 4))  # as in `learned["block_states"]`
    block_states[..., 0] = np.nan  # no smoothed sum yet
    return n_skipped, block_states
