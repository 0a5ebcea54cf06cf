"""One-step-ahead forecasts of decomposition models.

Loess smoothers are two-sided. So that no forecast uses its own row or a later one, the seasons of a
cycle are estimated from the rows before it and extended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from deepforecast.core.state import LearnedState
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.models.statistical._inner_model import continue_seasons, last_cycles

MAX_CYCLES = 50
"""Largest number of decompositions per series: one per shortest season, or every few seasons."""
MAX_ROWS = 2_000_000  # decomposed at a time


def one_step_forecasts(
    panel: Panel,
    lengths: Sequence[int],
    first: int,
    decompose_seasons: Callable[[Panel], Floats],
    forecast_rest: Callable[[Panel, Ints], Floats],
) -> Floats:
    """One-step-ahead forecasts of the rows from `first` on, NaN before.

    `decompose_seasons` estimates the seasons of a panel, (seasons, rows); `forecast_rest` forecasts
    seasonally adjusted rows, given the panel and the index of the series of each of its histories.
    """
    forecasts = np.full(len(panel.y), np.nan)
    for ranges in _cycle_ranges(panel, lengths, first):
        series, begin, end = ranges.T
        full_panel, zeros = panel.take(series), np.zeros(len(ranges), np.int64)
        history, cycle_panel, history_and_cycle = (
            full_panel.between(*bounds) for bounds in ((zeros, begin), (begin, end), (zeros, end))
        )
        seasons = decompose_seasons(history)
        season_state = LearnedState(last_cycles(history, tuple(lengths), seasons))
        offset = continue_seasons(season_state, cycle_panel.with_target(np.zeros(len(cycle_panel.y))))[0]
        is_new = _row_positions(history_and_cycle) >= np.repeat(begin, history_and_cycle.lengths)
        deseasonalized = np.empty(len(history_and_cycle.y))
        deseasonalized[is_new], deseasonalized[~is_new] = cycle_panel.y + offset, history.y - seasons.sum(axis=0)
        rows = _row_positions(cycle_panel) + np.repeat(panel.indptr[series] + begin, cycle_panel.lengths)
        forecasts[rows] = forecast_rest(history_and_cycle.with_target(deseasonalized), series)[is_new] - offset
    return forecasts


def _cycle_ranges(panel: Panel, lengths: Sequence[int], first: int) -> list[Ints]:
    """Series index, first row and end of every cycle, (cycles, 3), in blocks of limited size."""
    shortest, ranges = min(lengths), []
    for number, count in enumerate(panel.lengths):
        width = shortest * max(-(-count // (shortest * MAX_CYCLES)), 1)
        begin = np.arange(first, count, width)
        ranges.append(np.column_stack([np.full(len(begin), number), begin, np.minimum(begin + width, count)]))
    all_ranges = np.concatenate(ranges)
    block = np.cumsum(all_ranges[:, 2]) // MAX_ROWS
    return [cycle_block for cycle_block in np.split(all_ranges, np.flatnonzero(np.diff(block)) + 1) if len(cycle_block)]


def _row_positions(panel: Panel) -> Ints:
    return np.arange(len(panel.y)) - np.repeat(panel.indptr[:-1], panel.lengths)
