"""One-step-ahead forecasts of decomposition models.

Loess smoothers are two-sided. So that no forecast uses its own row or a later one, the seasons of
each cycle are estimated from the rows before the cycle and repeated.
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
MAX_ROWS = 2_000_000  # rows decomposed at a time, to bound memory


def one_step_forecasts(
    panel: Panel,
    lengths: Sequence[int],
    first_row: int,
    decompose_seasons: Callable[[Panel], Floats],
    forecast_adjusted: Callable[[Panel, Ints], Floats],
) -> Floats:
    """One-step-ahead forecasts of the rows, NaN before position `first_row` of each series.

    `lengths`: of the seasons. `decompose_seasons` estimates the seasons of a panel, (seasons, rows);
    `forecast_adjusted` computes one-step-ahead forecasts of a seasonally adjusted panel, whose
    histories belong to the series of the given indices.
    """
    forecasts = np.full(len(panel.y), np.nan)
    for ranges in _cycle_ranges(panel, lengths, first_row):
        series, begin, end = ranges.T
        full_panel, zeros = panel.take(series), np.zeros(len(ranges), np.int64)
        history, cycle_panel, history_and_cycle = (
            full_panel.between(*bounds) for bounds in ((zeros, begin), (begin, end), (zeros, end))
        )
        seasons = decompose_seasons(history)
        season_state = LearnedState(last_cycles(history, tuple(lengths), seasons))
        minus_season, _ = continue_seasons(season_state, cycle_panel.with_target(np.zeros(len(cycle_panel.y))))
        is_new = _row_positions(history_and_cycle) >= np.repeat(begin, history_and_cycle.lengths)
        deseasonalized = np.empty(len(history_and_cycle.y))
        deseasonalized[is_new] = cycle_panel.y + minus_season
        deseasonalized[~is_new] = history.y - seasons.sum(axis=0)
        rows = _row_positions(cycle_panel) + np.repeat(panel.indptr[series] + begin, cycle_panel.lengths)
        adjusted_forecasts = forecast_adjusted(history_and_cycle.with_target(deseasonalized), series)
        forecasts[rows] = adjusted_forecasts[is_new] - minus_season
    return forecasts


def _cycle_ranges(panel: Panel, lengths: Sequence[int], first_row: int) -> list[Ints]:
    """Blocks of ranges: series index, begin and end of each group of cycles, (ranges, 3).

    A range has one cycle of the shortest season, or several in long series, so that a series has at
    most `MAX_CYCLES`. The histories up to the ends of a block have about `MAX_ROWS` rows in all.
    """
    shortest, ranges = min(lengths), []
    for series_index, n_rows in enumerate(panel.lengths):
        width = shortest * max(-(-n_rows // (shortest * MAX_CYCLES)), 1)
        begin = np.arange(first_row, n_rows, width)
        ranges.append(np.column_stack([np.full(len(begin), series_index), begin, np.minimum(begin + width, n_rows)]))
    all_ranges = np.concatenate(ranges)
    block_number = np.cumsum(all_ranges[:, 2]) // MAX_ROWS
    blocks = np.split(all_ranges, np.flatnonzero(np.diff(block_number)) + 1)
    return [block for block in blocks if len(block)]


def _row_positions(panel: Panel) -> Ints:
    """Position of each row within its series."""
    return np.arange(len(panel.y)) - np.repeat(panel.indptr[:-1], panel.lengths)
