"""Learned state of MSTL: the seasons together with the state of the trend model."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from deepforecast.core.state import LearnedState
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.models.statistical._checksums import HistoryChecksum
from deepforecast.models.statistical._seasons import MIN_CYCLES

INNER_PREFIX = "rest."
"""Prefix of the names of the trend model's arrays in the learned state of MSTL."""


def with_seasons(
    inner: LearnedState, seasons: Mapping[str, Floats], checksums: HistoryChecksum, history: Panel | None
) -> LearnedState:
    """Merge the state of the trend model, with prefixed names, with the arrays of the seasons and the checksums."""
    arrays = {INNER_PREFIX + name: values for name, values in inner.by_series.items()}
    shared = {INNER_PREFIX + name: value for name, value in inner.shared.items()}
    return LearnedState({**arrays, **seasons, **checksums.arrays()}, shared, history)


def continue_seasons(learned: LearnedState, panel: Panel) -> tuple[Floats, dict[str, Floats]]:
    """Seasonally adjust the rows that follow the state; return their values and the seasons after them.

    The last cycle of each season is repeated; phase 0 of the returned seasons is the step after the rows.
    """
    y, next_seasons = panel.y, {}
    row_in_series = np.arange(len(y)) - np.repeat(panel.indptr[:-1], panel.lengths)
    for name, season in _seasons(learned).items():
        length = season.shape[1]
        y = y - season[panel.row_series, row_in_series % length]
        next_seasons[name] = np.take_along_axis(season, (np.arange(length) + panel.lengths[:, None]) % length, axis=1)
    return y, next_seasons


def last_cycles(panel: Panel, lengths: tuple[int, ...], seasons: Floats) -> dict[str, Floats]:
    """The last cycle of each season, `season_<length>` (series, length), phase 0 the first step ahead.

    `seasons`: (seasons, rows). 0 for series with fewer than two cycles of a season.
    """
    cycles = {}
    for length, season in zip(lengths, seasons, strict=True):
        rows = panel.indptr[1:, None] - length + np.arange(length)
        is_present = (panel.lengths >= MIN_CYCLES * length)[:, None]
        cycles[f"season_{length}"] = np.where(is_present, season[np.where(is_present, rows, 0)], 0.0)
    return cycles


def forecast_seasons(learned: LearnedState, steps: int) -> dict[str, Floats]:
    """Forecast of each season, (series, steps): its last cycle repeated."""
    steps_ahead = np.arange(steps)
    return {name: season[:, steps_ahead % season.shape[1]] for name, season in _seasons(learned).items()}


def forecast_season_sum(learned: LearnedState, steps: int) -> Floats:
    """Sum of the forecasts of all seasons, (series, steps)."""
    n_series = len(learned["history_checksum"])
    return sum(forecast_seasons(learned, steps).values(), np.zeros((n_series, steps)))


def inner_learned(learned: LearnedState) -> LearnedState:
    """The state of the trend model, from the entries with its prefix."""
    by_series, shared = (
        {name.removeprefix(INNER_PREFIX): value for name, value in prefixed.items() if name.startswith(INNER_PREFIX)}
        for prefixed in (learned.by_series, learned.shared)
    )
    return LearnedState(by_series, shared)


def _seasons(learned: LearnedState) -> dict[str, Floats]:
    return {name: values for name, values in learned.by_series.items() if name.startswith("season_")}
