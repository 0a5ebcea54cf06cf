"""Season lengths of a panel, and its decomposition by STL and MSTL."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from deepforecast.core.parallel import map_chunks
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.frequency import seasons as usual_seasons
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError, ParameterTypeError, format_value
from deepforecast.models.statistical._interpolation import fill_with_seasons

MIN_CYCLES = 2  # smallest number of cycles that identifies a season


@dataclass(frozen=True)
class Smoothers:
    """Options of the decomposition, see `decompose` and `Loess`."""

    seasonal_window: int | Sequence[int] | None = None
    trend_window: int | Sequence[int] | None = None
    low_pass_window: int | Sequence[int] | None = None
    degrees: tuple[int, int, int] = (0, 1, 1)
    jumps: tuple[int, int, int] = (1, 1, 1)
    robust: bool = False
    inner: int | None = None
    outer: int | None = None
    n_rounds: int = 2

    def windows(self, lengths: Sequence[int]) -> Ints:
        """Rows (seasons, 10): length; windows, degrees and jumps of season, trend and low-pass."""
        usual = [7 + 4 * number for number in range(1, len(lengths) + 1)]
        seasonal = _resolve_widths(self.seasonal_window, usual, [2] * len(lengths), "seasonal_window")
        default_trend = [
            math.ceil(1.5 * length / (1 - 1.5 / width)) | 1 for length, width in zip(lengths, seasonal, strict=True)
        ]
        trend = _resolve_widths(self.trend_window, default_trend, lengths, "trend_window")
        low_pass = _resolve_widths(self.low_pass_window, [(length + 1) | 1 for length in lengths], lengths, "low_pass_window")
        rows = [(*widths, *self.degrees, *self.jumps) for widths in zip(lengths, seasonal, trend, low_pass, strict=True)]
        return np.array(rows, np.int64).reshape(-1, 10)

    @property
    def loops(self) -> tuple[int, int, int]:
        """Inner and outer iterations of STL, and rounds over the seasons."""
        inner, outer = (2, 15) if self.robust else (5, 0)
        return inner if self.inner is None else self.inner, outer if self.outer is None else self.outer, self.n_rounds


def resolve_season_lengths(season_length: Any, panel: Panel, caller: str) -> tuple[int, ...]:
    """Season lengths above 1, shortest first; "auto": those of the frequency."""
    if isinstance(season_length, str):
        if season_length != "auto":
            raise ParameterError(
                f"`season_length` must be 'auto', an integer or a list of integers, got {format_value(season_length)!r}."
            )
        frequency = panel.calendar.frequency
        if not frequency.base:
            raise ParameterError(
                f"{caller}: season_length='auto' cannot be inferred from integer time. Pass season_length."
            )
        season_length = usual_seasons(frequency)
    values = list(season_length) if isinstance(season_length, (list, tuple, np.ndarray)) else [season_length]
    for value in values:
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise ParameterTypeError(f"`season_length` must be an integer or a list of integers, got {format_value(value)}.")
        if value < 1:
            raise ParameterError(f"`season_length` must be at least 1, got {format_value(value)}.")
    lengths = sorted(int(value) for value in values)
    if len(set(lengths)) < len(lengths) or (len(lengths) > 1 and lengths[0] == 1):
        raise ParameterError(
            f"Several seasons must have different lengths above 1, got {format_value(season_length)}. Pass each length once."
        )
    return tuple(length for length in lengths if length > 1)


def decompose_panel(panel: Panel, lengths: Sequence[int], smoothers: Smoothers) -> tuple[Floats, Floats]:
    """Trend (rows,) and seasons (seasons, rows) of every series, with missing values interpolated.

    A season of which a series has less than two cycles is 0.
    """
    from deepforecast.kernels.stl import decompose

    windows, loops, stop = smoothers.windows(lengths), smoothers.loops, np.zeros(1, np.int64)
    y = panel.y if panel.complete else fill_with_seasons(panel.y, panel.indptr, lengths, MIN_CYCLES)
    passes = loops[0] * (loops[1] + 1) * loops[2]
    cost = 3e-9 * passes * panel.lengths * (10.0 + windows[:, 1:4].sum() * (10 if loops[1] else 1))

    def decompose_chunk(chunk: slice) -> tuple[Floats, Floats]:
        rows = slice(panel.indptr[chunk.start], panel.indptr[chunk.stop])
        return decompose(y[rows], panel.indptr[chunk.start : chunk.stop + 1] - panel.indptr[chunk.start], windows, loops, stop)

    try:
        chunks = map_chunks(decompose_chunk, len(panel), cost=cost)
    except BaseException:
        stop[0] = 1  # stops the other threads
        raise
    return np.concatenate([trend for trend, _ in chunks]), np.concatenate([seasonal for _, seasonal in chunks], axis=1)


def interval_widening(lengths: Sequence[int], observed: Ints, rows: Ints, smoothers: Smoothers) -> Floats:
    """Interval factor for the estimated seasons of each series, sqrt((1 + k / n) / (1 - k / n)).

    The degrees of freedom of a season of m steps are k = (m - 1) times the trace of the smoother of
    one phase. They reduce the residual variance, and the extended season has an error of its own.
    """
    windows, n_degrees = smoothers.windows(lengths), np.zeros(len(rows))
    for length, window in zip(lengths, windows[:, 1], strict=True):
        cycles = rows // length
        traces = [
            smoother_trace(int(n_cycles), int(window), smoothers.degrees[0]) if n_cycles >= MIN_CYCLES else 0.0
            for n_cycles in cycles
        ]
        n_degrees += (length - 1) * np.array(traces)
    relative_degrees = np.minimum(n_degrees / np.maximum(observed, 1), 0.9)
    return np.asarray(np.sqrt((1.0 + relative_degrees) / (1.0 - relative_degrees)))


@lru_cache(maxsize=4096)
def smoother_trace(count: int, width: int, degree: int) -> float:
    """Trace of the loess smoother matrix of `count` evenly spaced values."""
    positions = np.arange(count)
    n_neighbours, total = min(count, width), 0.0
    for position in range(count):
        first = min(max(position - (width - 1) // 2, 0), count - n_neighbours)
        distances = positions[first : first + n_neighbours] - position
        bandwidth = float(np.abs(distances).max()) + (max(width - count, 0) // 2 if width > count else 0)
        weights = np.maximum(1.0 - (np.abs(distances) / max(bandwidth, 1.0)) ** 3, 0.0) ** 3
        weights = weights / weights.sum()
        center = float(weights @ distances)
        variance = float(weights @ (distances - center) ** 2)
        leverage = 1.0 + (center * center / variance if degree and variance > 1e-6 * count * count else 0.0)
        total += float(weights[distances == 0][0]) * leverage
    return total


def _resolve_widths(window: Any, default: Sequence[int], lower_bounds: Sequence[int], name: str) -> Sequence[int]:
    """One odd window per season, above its lower bound; `window` None: the defaults."""
    if window is None:
        return default
    widths = list(window) if isinstance(window, (list, tuple)) else [window] * len(default)
    if len(widths) != len(default):
        raise ParameterError(f"`{name}` must be one integer, or one for each of the {len(default)} seasons, got {len(widths)}.")
    for width, lower_bound in zip(widths, lower_bounds, strict=True):
        if isinstance(width, bool) or not hasattr(width, "__index__"):
            raise ParameterTypeError(f"`{name}` must be an integer, got {format_value(width)} ({type(width).__name__}).")
        if width % 2 == 0 or width <= lower_bound:
            raise ParameterError(f"`{name}` must be odd and above {lower_bound}, got {width}.")
    return [int(width) for width in widths]
