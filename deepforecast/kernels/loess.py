"""Locally weighted regression (loess) of evenly spaced values, as used by STL.

The smooth at a point is a constant or line fitted to the `width` nearest values with tricube
weights (1 - |u|^3)^3 of the relative distance u (Cleveland 1979, *JASA* 74,
doi:10.1080/01621459.1979.10481038). Weights depend on distances only: without robustness weights
the smooth is a fixed linear filter, tabulated once by `fill_weight_table` and applied to many
points at a time. Plain loops, as every array operation costs about a second of compilation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import inner, inner_no_alloc

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LARGEST_TABLE = 1 << 21  # table size beyond which edge weights are recomputed
BLOCK = 1 << 13  # points per block: fits the cache; `stop` is read between blocks


class Window(NamedTuple):
    """Smoother: `width` values, degree 0 or 1, every `jump`-th point, with robustness weights or
    not.
    """

    width: int
    degree: int
    jump: int
    weighted: bool


class Line(NamedTuple):
    """Values of an array from `start` on at a `stride`, and their weights."""

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
    """Whether tabulated weights are used."""
    small = min(n, window.width) * (edge_size(n, window) + 1) <= LARGEST_TABLE
    return small and not window.weighted and min(window.jump, n - 1) == 1


@inner
def fill_weight_table(n: int, window: Window, table: Floats) -> None:
    """Filter weights of an interior point, then those of the left edge by (value, point)."""
    n_neighbours, sides = min(n, window.width), edge_size(n, window)
    kernel_weights = np.empty(n_neighbours)
    for number in range(sides + 1):
        _neighbour_weights(kernel_weights, n, window, number - 1 if number > 0 else (n_neighbours - 1) // 2)
        begin, step = (n_neighbours + number - 1, sides) if number > 0 else (0, 1)
        for row in range(n_neighbours):
            table[begin + row * step] = kernel_weights[row]


@inner_no_alloc
def smooth_with_table(y: Floats, n: int, window: Window, table: Floats, buffer: Floats, smooth: Floats, stop: Ints) -> None:
    """Smooth `y[:n]` with the weights of `fill_weight_table`; stop early if `stop[0]` is not 0."""
    n_neighbours, sides = min(n, window.width), edge_size(n, window)
    for right in range(2 if window.width < n else 1):
        first, direction = (n - 1, -1) if right else (0, 1)
        _weighted_sums(table, n_neighbours, sides, y, first, direction, n_neighbours, buffer[:sides])
        for position in range(sides):
            smooth[first + direction * position] = buffer[position]
    if window.width < n:
        n_inner = n - window.width + 1
        for first in range(0, n_inner, BLOCK):
            if stop[0] != 0:
                return
            sums = buffer[: min(BLOCK, n_inner - first)]
            _weighted_sums(y, first, 1 + 0 * n, table, 0 * n, 1 + 0 * n, n_neighbours, sums)
            for position in range(len(sums)):
                smooth[sides + first + position] = sums[position]


@inner
def smooth_phases(line: Line, phases: int, window: Window, buffer: Floats, smooth: Floats) -> None:
    """Smooth `phases` interleaved series and extrapolate each by one point at both ends.

    `smooth` has the layout of the values but starts one `stride` earlier.
    """
    n, n_neighbours, half = line.n, min(line.n, window.width), (window.width - 1) // 2
    kernel_weights = np.empty(n_neighbours)
    for position in range(-1, n + 1):
        first = min(max(position - half, 0), n - n_neighbours)
        _neighbour_weights(kernel_weights, n, window, position - first)
        begin = line.start + first * line.stride
        _weighted_sums(line.values, begin, line.stride, kernel_weights, 0 * n, 1 + 0 * n, n_neighbours, buffer[:phases])
        for phase in range(phases):
            smooth[line.start + (position + 1) * line.stride + phase] = buffer[phase]


@inner_no_alloc
def smooth_line(
    line: Line, window: Window, kernel_weights: Floats, smooth: Floats, smooth_start: int, n_beyond: int, stop: Ints
) -> None:
    """Smooth one series at every `jump`-th and the last point, interpolating linearly.

    Writes to `smooth[smooth_start + i * stride]`, with `n_beyond` points (0 or 1) extrapolated at
    both ends; stops early if `stop[0]` is not 0.
    """
    n, n_neighbours, half, stride = line.n, min(line.n, window.width), (window.width - 1) // 2, line.stride
    step = max(min(window.jump, n - 1), 1)
    first, previous, position = 0, 0, -n_beyond
    while position < n + n_beyond and stop[0] == 0:
        if position % step == 0 or position >= n:  # the last point uses the window of the one before it
            first = min(max(position - half, 0), n - n_neighbours)
        value = fit_at(line, window, position, first, kernel_weights)
        if np.isnan(value) and position >= 0:
            value = line.values[line.start + position * stride] if position < n else smooth[smooth_start + previous * stride]
        smooth[smooth_start + position * stride] = value
        if previous < position < n:
            left = smooth[smooth_start + previous * stride]
            increment = (value - left) / (position - previous)
            for inner in range(previous + 1, position):
                smooth[smooth_start + inner * stride] = left + increment * (inner - previous)
        previous = max(position, 0)
        position = position + 1 if position < 0 or position >= n - 1 else min(position + step, n - 1)
    if n_beyond > 0 and np.isnan(smooth[smooth_start - stride]):
        smooth[smooth_start - stride] = smooth[smooth_start]


@inner_no_alloc
def fit_at(line: Line, window: Window, position: int, first: int, kernel_weights: Floats) -> float:
    """Local fit at a point from the window starting at `first`; NaN if all weights are 0."""
    n, n_neighbours = line.n, min(line.n, window.width)
    _neighbour_weights(kernel_weights, n, window, position - first)
    s0, s1, s2, t0, t1 = 0.0, 0.0, 0.0, 0.0, 0.0
    for row in range(n_neighbours):
        index = line.start + (first + row) * line.stride
        weight = kernel_weights[row] * line.weights[index] if window.weighted else kernel_weights[row]
        value = weight * line.values[index]
        s0, s1, s2 = s0 + weight, s1 + weight * row, s2 + weight * row * row
        t0, t1 = t0 + value, t1 + value * row
    if not window.weighted:
        return t0
    if s0 <= 0.0:
        return np.nan
    mean, level = s1 / s0, t0 / s0
    variance = s2 / s0 - mean * mean
    return (
        level + (position - first - mean) / variance * (t1 / s0 - mean * level) if _can_fit_line(variance, n, window) else level
    )


@inner_no_alloc
def _neighbour_weights(kernel_weights: Floats, n: int, window: Window, position: int) -> None:
    """Filter weights of the window values at a point, without robustness weights."""
    n_neighbours = min(n, window.width)
    bandwidth = float(max(position, n_neighbours - 1 - position) + max(window.width - n, 0) // 2)
    s0, s1, s2 = 0.0, 0.0, 0.0
    for row in range(n_neighbours):
        distance = float(abs(row - position))
        relative_distance = distance / bandwidth if bandwidth > 0.0 else 0.0
        tricube_base = 1.0 - relative_distance * relative_distance * relative_distance
        weight = (
            1.0
            if distance <= 0.001 * bandwidth
            else tricube_base * tricube_base * tricube_base
            if distance <= 0.999 * bandwidth
            else 0.0
        )
        kernel_weights[row] = weight
        s0, s1, s2 = s0 + weight, s1 + weight * row, s2 + weight * row * row
    if window.weighted:
        return
    mean = s1 / s0
    variance = s2 / s0 - mean * mean
    slope = (position - mean) / variance if _can_fit_line(variance, n, window) else 0.0
    for row in range(n_neighbours):
        kernel_weights[row] = kernel_weights[row] / s0 * (1.0 + slope * (row - mean))


@inner_no_alloc
def _can_fit_line(variance: float, n: int, window: Window) -> bool:
    """Whether the weighted variance of the positions suffices for a line."""
    return window.degree > 0 and variance > 0.0 and np.sqrt(variance) > 0.001 * (n - 1.0)


@inner_no_alloc
def _weighted_sums(
    source: Floats, start: int, stride: int, factors: Floats, first: int, direction: int, count: int, sums: Floats
) -> None:
    """sums[c] = sum_i factors[first + direction * i] * source[start + stride * i + c]."""
    columns = len(sums)
    for c in range(columns):
        sums[c] = 0.0
    for i in range(count):
        factor, neighbours = factors[first + direction * i], source[start + stride * i : start + stride * i + columns]
        for c in range(columns):
            sums[c] += factor * neighbours[c]
