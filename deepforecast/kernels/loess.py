"""Locally weighted regression (loess) of evenly spaced values, as used by STL.

The smooth at a point is a constant or line fitted to the `width` nearest values with tricube
weights (1 - |u|^3)^3 of the relative distance u. Weights depend on distances only: without robustness
weights the smooth is a fixed linear filter, tabulated once by `fill_weight_table` and applied to many
points at a time. Plain loops, as every array operation costs about a second of compilation.

References
----------
Cleveland (1979), Robust locally weighted regression and smoothing scatterplots, *Journal of the American
Statistical Association* 74, doi:10.1080/01621459.1979.10481038.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import inner, inner_no_alloc

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LARGEST_TABLE = 1 << 21  # largest number of tabulated weights; longer edges are computed point by point
BLOCK = 1 << 13  # points per block: fits the cache; `stop` is read between blocks
NEAR, FAR = 0.001, 0.999  # relative distances below which a weight is 1, above which it is 0, as in R and netlib


class Window(NamedTuple):
    """Smoother of `width` values and degree 0 or 1, evaluated at every `jump`-th point.

    weighted: whether it uses robustness weights.
    """

    width: int
    degree: int
    jump: int
    weighted: bool


class Line(NamedTuple):
    """Series of `n` values of an array, from `start` on at a `stride`, and their robustness weights."""

    values: Floats
    weights: Floats
    start: int
    stride: int
    n: int


@inner_no_alloc
def edge_size(n: int, window: Window) -> int:
    """Number of points at an edge: half a window, or all if the window holds every value."""
    return n if window.width >= n else (window.width - 1) // 2


@inner_no_alloc
def is_tabled(n: int, window: Window) -> bool:
    """Whether tabulated weights are used: every point, no robustness weights, not too many weights."""
    small = min(n, window.width) * (edge_size(n, window) + 1) <= LARGEST_TABLE
    return small and not window.weighted and min(window.jump, n - 1) == 1


@inner
def fill_weight_table(n: int, window: Window, table: Floats) -> None:
    """Write filter weights to `table`: of an interior point, then of the points of the left edge by (value, point).

    The weights of the right edge are those of the left in reverse order.
    """
    n_neighbours, n_edge = min(n, window.width), edge_size(n, window)
    kernel_weights = np.empty(n_neighbours)
    for column in range(n_edge + 1):
        _neighbour_weights(kernel_weights, n, window, column - 1 if column > 0 else (n_neighbours - 1) // 2)
        begin, step = (n_neighbours + column - 1, n_edge) if column > 0 else (0, 1)
        for neighbour in range(n_neighbours):
            table[begin + neighbour * step] = kernel_weights[neighbour]


@inner_no_alloc
def smooth_with_table(y: Floats, n: int, window: Window, table: Floats, buffer: Floats, smooth: Floats, stop: Ints) -> None:
    """Smooth `y[:n]` with the weights of `fill_weight_table`; stop early if `stop[0]` is not 0.

    `buffer` and `smooth` must hold n values.
    """
    n_neighbours, n_edge = min(n, window.width), edge_size(n, window)
    for is_right in range(2 if window.width < n else 1):
        start, direction = (n - 1, -1) if is_right else (0, 1)
        _weighted_sums(table, n_neighbours, n_edge, y, start, direction, n_neighbours, buffer[:n_edge])
        for position in range(n_edge):
            smooth[start + direction * position] = buffer[position]
    if window.width < n:
        n_inner = n - window.width + 1
        for start in range(0, n_inner, BLOCK):
            if stop[0] != 0:
                return
            sums = buffer[: min(BLOCK, n_inner - start)]
            # 0 * n and 1 + 0 * n: 0 and 1 as variables, as numba compiles again for each literal argument
            _weighted_sums(y, start, 1 + 0 * n, table, 0 * n, 1 + 0 * n, n_neighbours, sums)
            for position in range(len(sums)):
                smooth[n_edge + start + position] = sums[position]


@inner
def smooth_phases(line: Line, n_phases: int, window: Window, buffer: Floats, smooth: Floats) -> None:
    """Smooth `n_phases` interleaved series and extrapolate each by one point at both ends.

    `line` is the first series; the others start at the next elements. `smooth` has the layout of the values
    but starts one `stride` earlier.
    """
    n = line.n
    n_neighbours = min(line.n, window.width)
    half = (window.width - 1) // 2
    kernel_weights = np.empty(n_neighbours)
    for position in range(-1, n + 1):
        window_start = min(max(position - half, 0), n - n_neighbours)
        _neighbour_weights(kernel_weights, n, window, position - window_start)
        begin = line.start + window_start * line.stride
        _weighted_sums(line.values, begin, line.stride, kernel_weights, 0 * n, 1 + 0 * n, n_neighbours, buffer[:n_phases])
        for phase in range(n_phases):
            smooth[line.start + (position + 1) * line.stride + phase] = buffer[phase]


@inner_no_alloc
def smooth_line(
    line: Line, window: Window, kernel_weights: Floats, smooth: Floats, smooth_start: int, n_beyond: int, stop: Ints
) -> None:
    """Smooth one series at every `jump`-th and the last point, interpolating linearly.

    Writes to `smooth[smooth_start + i * stride]`, with `n_beyond` points (0 or 1) extrapolated at
    both ends; stops early if `stop[0]` is not 0. Where all weights are 0 the value itself is taken, or
    beyond the ends the smooth of the last point.
    """
    n = line.n
    n_neighbours = min(line.n, window.width)
    half = (window.width - 1) // 2
    stride = line.stride
    step = max(min(window.jump, n - 1), 1)
    window_start = 0
    previous = 0
    position = -n_beyond
    while position < n + n_beyond and stop[0] == 0:
        if position % step == 0 or position >= n:  # the last point uses the window of the one before it
            window_start = min(max(position - half, 0), n - n_neighbours)
        value = fit_at(line, window, position, window_start, kernel_weights)
        if np.isnan(value) and position >= 0:
            value = line.values[line.start + position * stride] if position < n else smooth[smooth_start + previous * stride]
        smooth[smooth_start + position * stride] = value
        if previous < position < n:
            left = smooth[smooth_start + previous * stride]
            increment = (value - left) / (position - previous)
            for between in range(previous + 1, position):
                smooth[smooth_start + between * stride] = left + increment * (between - previous)
        previous = max(position, 0)
        position = position + 1 if position < 0 or position >= n - 1 else min(position + step, n - 1)
    if n_beyond > 0 and np.isnan(smooth[smooth_start - stride]):
        smooth[smooth_start - stride] = smooth[smooth_start]


@inner_no_alloc
def fit_at(line: Line, window: Window, position: int, window_start: int, kernel_weights: Floats) -> float:
    """Local fit at `position` from the window of values starting at `window_start`; NaN if all weights are 0.

    `position` may lie outside the series (extrapolation). `kernel_weights` is a buffer.
    """
    n, n_neighbours = line.n, min(line.n, window.width)
    _neighbour_weights(kernel_weights, n, window, position - window_start)
    sum_weights, sum_positions, sum_squared_positions, sum_values, sum_products = 0.0, 0.0, 0.0, 0.0, 0.0
    for neighbour in range(n_neighbours):
        index = line.start + (window_start + neighbour) * line.stride
        weight = kernel_weights[neighbour] * line.weights[index] if window.weighted else kernel_weights[neighbour]
        value = weight * line.values[index]
        sum_weights = sum_weights + weight
        sum_positions = sum_positions + weight * neighbour
        sum_squared_positions = sum_squared_positions + weight * neighbour * neighbour
        sum_values, sum_products = sum_values + value, sum_products + value * neighbour
    if not window.weighted:
        return sum_values
    if sum_weights <= 0.0:
        return np.nan
    mean, level = sum_positions / sum_weights, sum_values / sum_weights
    variance = sum_squared_positions / sum_weights - mean * mean
    if not _can_fit_line(variance, n, window):
        return level
    return level + (position - window_start - mean) / variance * (sum_products / sum_weights - mean * level)


@inner_no_alloc
def _neighbour_weights(kernel_weights: Floats, n: int, window: Window, position: int) -> None:
    """Write the weights of the window values at a point to `kernel_weights`, without robustness weights.

    Tricube weights if the window uses robustness weights, which multiply them later; else filter weights, of which
    the sum of products with the values is the fit. `position` counts from the start of the window.
    """
    n_neighbours = min(n, window.width)
    bandwidth = float(max(position, n_neighbours - 1 - position) + max(window.width - n, 0) // 2)
    sum_weights, sum_positions, sum_squared_positions = 0.0, 0.0, 0.0
    for neighbour in range(n_neighbours):
        distance = float(abs(neighbour - position))
        relative_distance = distance / bandwidth if bandwidth > 0.0 else 0.0
        tricube_base = 1.0 - relative_distance * relative_distance * relative_distance
        weight = tricube_base * tricube_base * tricube_base if distance <= FAR * bandwidth else 0.0
        if distance <= NEAR * bandwidth:
            weight = 1.0
        kernel_weights[neighbour] = weight
        sum_weights = sum_weights + weight
        sum_positions = sum_positions + weight * neighbour
        sum_squared_positions = sum_squared_positions + weight * neighbour * neighbour
    if window.weighted:
        return
    mean = sum_positions / sum_weights
    variance = sum_squared_positions / sum_weights - mean * mean
    slope = (position - mean) / variance if _can_fit_line(variance, n, window) else 0.0
    for neighbour in range(n_neighbours):
        kernel_weights[neighbour] = kernel_weights[neighbour] / sum_weights * (1.0 + slope * (neighbour - mean))


@inner_no_alloc
def _can_fit_line(variance: float, n: int, window: Window) -> bool:
    """Whether the degree is 1 and the weighted variance of the positions suffices for a line."""
    return window.degree > 0 and variance > 0.0 and np.sqrt(variance) > 0.001 * (n - 1.0)


@inner_no_alloc
def _weighted_sums(
    source: Floats, start: int, stride: int, factors: Floats, factor_start: int, direction: int, n_terms: int, sums: Floats
) -> None:
    """sums[j] = sum over i < n_terms of factors[factor_start + direction * i] * source[start + stride * i + j]."""
    n_columns = len(sums)
    for j in range(n_columns):
        sums[j] = 0.0
    for i in range(n_terms):
        factor, neighbours = factors[factor_start + direction * i], source[start + stride * i : start + stride * i + n_columns]
        for j in range(n_columns):
            sums[j] += factor * neighbours[j]
