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

MIN_CYCLES = 2  # smallest number of full cycles from which a seasonal component is estimated


@dataclass(frozen=True)
class Smoothers:
    """Options of the decomposition by STL or MSTL, see `decompose` and `Loess`."""

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
        """Table (seasons, 10): length; windows, degrees and jumps of the season, trend and low-pass smoothers."""
        default_seasonal = [7 + 4 * position for position in range(1, len(lengths) + 1)]  # as in R's mstl
        seasonal = _resolve_widths(self.seasonal_window, default_seasonal, [2] * len(lengths), "seasonal_window")
        default_trend = [
            math.ceil(1.5 * length / (1 - 1.5 / width)) | 1 for length, width in zip(lengths, seasonal, strict=True)
        ]
        trend = _resolve_widths(self.trend_window, default_trend, lengths, "trend_window")
        default_low_pass = [(length + 1) | 1 for length in lengths]  # the next odd number
        low_pass = _resolve_widths(self.low_pass_window, default_low_pass, lengths, "low_pass_window")
        rows = [(*widths, *self.degrees, *self.jumps) for widths in zip(lengths, seasonal, trend, low_pass, strict=True)]
        return np.array(rows, np.int64).reshape(-1, 10)

    @property
    def loops(self) -> tuple[int, int, int]:
        """Numbers of inner and outer iterations of STL, and of rounds over the seasons."""
        default_inner, default_outer = (2, 15) if self.robust else (5, 0)
        n_inner = default_inner if self.inner is None else self.inner
        n_outer = default_outer if self.outer is None else self.outer
        return n_inner, n_outer, self.n_rounds


def resolve_season_lengths(season_length: Any, panel: Panel, caller: str) -> tuple[int, ...]:
    """Season lengths above 1, shortest first, empty for 1; "auto": the usual ones of the frequency.

    Raise a `ParameterError` or `ParameterTypeError` if they are invalid. `caller`: name of the model for the message.
    """
    if isinstance(season_length, str):
        if season_length != "auto":
            raise ParameterError(
                f"`season_length` must be 'auto', an integer or a list of integers, got {format_value(season_length)!r}.",
                parameter="season_length",
                value=season_length,
            )
        frequency = panel.calendar.frequency
        if not frequency.base:
            raise ParameterError(
                f"{caller}: season_length='auto' cannot be inferred from an integer time column.",
                hint="Pass `season_length`, the number of time steps per season.",
                parameter="season_length",
            )
        season_length = usual_seasons(frequency)
    values = list(season_length) if isinstance(season_length, (list, tuple, np.ndarray)) else [season_length]
    for value in values:
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise ParameterTypeError(
                f"`season_length` must be an integer or a list of integers, got {format_value(value)}.",
                parameter="season_length",
                value=value,
            )
        if value < 1:
            raise ParameterError(
                f"`season_length` must be at least 1, got {format_value(value)}.",
                hint="Pass 1 for non-seasonal data.",
                parameter="season_length",
                value=value,
            )
    lengths = sorted(int(value) for value in values)
    if len(set(lengths)) < len(lengths) or (len(lengths) > 1 and lengths[0] == 1):
        raise ParameterError(
            f"A list for `season_length` must contain distinct integers above 1, got {format_value(season_length)}.",
            parameter="season_length",
        )
    return tuple(length for length in lengths if length > 1)


def decompose_panel(panel: Panel, lengths: Sequence[int], smoothers: Smoothers) -> tuple[Floats, Floats]:
    """Trend (rows,) and seasonal components (seasons, rows) of every series, with missing values interpolated.

    A season of which a series has fewer than two cycles is 0.
    """
    from deepforecast.kernels.stl import decompose

    windows, loops = smoothers.windows(lengths), smoothers.loops
    stop = np.zeros(1, np.int64)  # the kernels stop when it becomes 1
    y = panel.y if panel.complete else fill_with_seasons(panel.y, panel.indptr, lengths, MIN_CYCLES)
    n_inner, n_outer, n_rounds = loops
    n_passes = n_inner * (n_outer + 1) * n_rounds
    cost_per_row = 10.0 + windows[:, 1:4].sum() * (10 if n_outer else 1)
    cost = 3e-9 * n_passes * panel.lengths * cost_per_row  # in seconds, measured

    def decompose_chunk(chunk: slice) -> tuple[Floats, Floats]:
        rows = slice(panel.indptr[chunk.start], panel.indptr[chunk.stop])
        return decompose(y[rows], panel.indptr[chunk.start : chunk.stop + 1] - panel.indptr[chunk.start], windows, loops, stop)

    try:
        chunks = map_chunks(decompose_chunk, len(panel), cost=cost)
    except BaseException:
        stop[0] = 1  # stops the other threads
        raise
    return np.concatenate([trend for trend, _ in chunks]), np.concatenate([seasonal for _, seasonal in chunks], axis=1)


def interval_widening(lengths: Sequence[int], n_observed: Ints, n_rows: Ints, smoothers: Smoothers) -> Floats:
    """Factor of interval widths for the estimated seasons of each series, sqrt((1 + k / n) / (1 - k / n)).

    The degrees of freedom k of a season of m steps are (m - 1) times the trace of the smoother of one
    phase; n is the number of values. The denominator corrects the residual variance, the numerator
    adds the error of the extrapolated season. k / n is at most 0.9.
    """
    windows, degrees_of_freedom = smoothers.windows(lengths), np.zeros(len(n_rows))
    for length, window in zip(lengths, windows[:, 1], strict=True):
        traces = [
            smoother_trace(int(n_cycles), int(window), smoothers.degrees[0]) if n_cycles >= MIN_CYCLES else 0.0
            for n_cycles in n_rows // length
        ]
        degrees_of_freedom += (length - 1) * np.array(traces)
    relative_degrees = np.minimum(degrees_of_freedom / np.maximum(n_observed, 1), 0.9)
    return np.asarray(np.sqrt((1.0 + relative_degrees) / (1.0 - relative_degrees)))


@lru_cache(maxsize=4096)
def smoother_trace(n_values: int, width: int, degree: int) -> float:
    """Trace of the loess smoother matrix of evenly spaced values, for a window of `width` values.

    `degree`: 0 constant or 1 linear. Weights are tricube; each diagonal element is the leverage of a value.
    """
    positions = np.arange(n_values)
    n_neighbours, trace = min(n_values, width), 0.0
    for position in range(n_values):
        first = min(max(position - (width - 1) // 2, 0), n_values - n_neighbours)
        distances = positions[first : first + n_neighbours] - position
        bandwidth = float(np.abs(distances).max()) + (max(width - n_values, 0) // 2)
        weights = np.maximum(1.0 - (np.abs(distances) / max(bandwidth, 1.0)) ** 3, 0.0) ** 3
        weights = weights / weights.sum()
        center = float(weights @ distances)
        variance = float(weights @ (distances - center) ** 2)
        has_slope = degree == 1 and variance > 1e-6 * n_values * n_values
        leverage = 1.0 + (center * center / variance if has_slope else 0.0)
        trace += float(weights[distances == 0][0]) * leverage
    return trace


def _resolve_widths(window: Any, default: Sequence[int], lower_bounds: Sequence[int], name: str) -> Sequence[int]:
    """One odd window width per season, checked to be above its lower bound; `window` None: the defaults.

    `name`: of the parameter, for the message.
    """
    if window is None:
        return default
    widths = list(window) if isinstance(window, (list, tuple)) else [window] * len(default)
    if len(widths) != len(default):
        raise ParameterError(
            f"`{name}` must be one integer, or one for each of the {len(default)} seasons, got {len(widths)} of them.",
            parameter=name,
        )
    for width, lower_bound in zip(widths, lower_bounds, strict=True):
        if isinstance(width, bool) or not hasattr(width, "__index__"):
            raise ParameterTypeError(
                f"`{name}` must be an integer, got {format_value(width)} ({type(width).__name__}).",
                parameter=name,
                value=width,
            )
        if width % 2 == 0 or width <= lower_bound:
            raise ParameterError(
                f"`{name}` must be odd and above {lower_bound}, got {width}.",
                hint=f"Pass, for example, {(lower_bound + 1) | 1}.",
                parameter=name,
                value=width,
            )
    return [int(width) for width in widths]
