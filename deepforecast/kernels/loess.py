"""Locally weighted regression (loess) of evenly spaced values, as the STL decomposition smooths them.

The smooth at a place is that of a constant or a line fitted to the `width` nearest values, weights falling with their distance
(tricube). Weights depend on distances alone: where values have none of their own, what each counts for is laid down once
(`fill_weight_table`) and applied to many places at a time: all inner places, all places of an edge, all phases of a season together.
Plain loops and few array operations throughout: each of those costs a second to compile.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import inner, inner_no_alloc

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LARGEST_TABLE = 1 << 21  # weights kept at once; beyond it those of an edge are made anew each time
BLOCK = 1 << 13  # places smoothed at a time: their sums stay in the processor's cache, and `stop` is read in between


class Window(NamedTuple):
    """Smooth over `width` values by a constant (0) or line (1), every `jump`-th place, with the values' own weights or not."""

    width: int
    degree: int
    jump: int
    weighted: bool


class Line(NamedTuple):
    """Values that stand in an array from `start` on, `stride` apart, and their weights."""

    values: Floats
    weights: Floats
    start: int
    stride: int
    n: int


@inner_no_alloc
def edge_size(n: int, window: Window) -> int:
    """Places at an edge, whose neighbours lie on one side: half a window, or all where the window holds every value."""
    return n if window.width >= n else (window.width - 1) // 2


@inner_no_alloc
def is_tabled(n: int, window: Window) -> bool:
    """Whether many places are smoothed at a time, by weights that were laid down."""
    small = min(n, window.width) * (edge_size(n, window) + 1) <= LARGEST_TABLE
    return small and not window.weighted and min(window.jump, n - 1) == 1


@inner
def fill_weight_table(n: int, window: Window, table: Floats) -> None:
    """Write what each value counts for at an inner place, and behind it at the places of the left edge, by value and place."""
    n_neighbours, sides = min(n, window.width), edge_size(n, window)
    kernel_weights = np.empty(n_neighbours)
    for number in range(sides + 1):
        _neighbour_weights(kernel_weights, n, window, number - 1 if number > 0 else (n_neighbours - 1) // 2)
        begin, step = (n_neighbours + number - 1, sides) if number > 0 else (0, 1)
        for row in range(n_neighbours):
            table[begin + row * step] = kernel_weights[row]


@inner_no_alloc
def smooth_with_table(y: Floats, n: int, window: Window, table: Floats, buffer: Floats, smooth: Floats, stop: Ints) -> None:
    """Smooth `y[:n]` into `smooth`, with the weights of `fill_weight_table`, until `stop[0]` is not 0."""
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
    """Smooth `phases` series side by side, the next beginning one further on, and go one place beyond both their ends.

    `smooth` has the layout of the values, but begins one `stride` earlier: with the place before the first.
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
def smooth_line(line: Line, window: Window, kernel_weights: Floats, smooth: Floats, smooth_start: int, n_beyond: int, stop: Ints) -> None:
    """Smooth one series at every `jump`-th place and at the last one, straight lines between, to `smooth[to + i * stride]`; and
    `n_beyond` places (0 or 1) further at both ends; until `stop[0]` is not 0."""
    n, n_neighbours, half, stride = line.n, min(line.n, window.width), (window.width - 1) // 2, line.stride
    step = max(min(window.jump, n - 1), 1)
    first, previous, position = 0, 0, -n_beyond
    while position < n + n_beyond and stop[0] == 0:
        if position % step == 0 or position >= n:  # the last place, if none of these, is seen from the window of the one before it
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
    """The smooth at a place, from the values behind `first`; NaN where none of them has any weight."""
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
    return level + (position - first - mean) / variance * (t1 / s0 - mean * level) if _can_fit_line(variance, n, window) else level


@inner_no_alloc
def _neighbour_weights(kernel_weights: Floats, n: int, window: Window, position: int) -> None:
    """Weights of neighbouring values at a place counted from the first: what each counts for, where they have no others."""
    n_neighbours = min(n, window.width)
    bandwidth = float(max(position, n_neighbours - 1 - position) + max(window.width - n, 0) // 2)
    s0, s1, s2 = 0.0, 0.0, 0.0
    for row in range(n_neighbours):
        distance = float(abs(row - position))
        relative_distance = distance / bandwidth if bandwidth > 0.0 else 0.0
        tricube_base = 1.0 - relative_distance * relative_distance * relative_distance
        weight = 1.0 if distance <= 0.001 * bandwidth else tricube_base * tricube_base * tricube_base if distance <= 0.999 * bandwidth else 0.0
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
    """Whether the places of the values that count lie far enough apart for a line."""
    return window.degree > 0 and variance > 0.0 and np.sqrt(variance) > 0.001 * (n - 1.0)


@inner_no_alloc
def _weighted_sums(
    source: Floats, start: int, stride: int, factors: Floats, first: int, direction: int, count: int, sums: Floats
) -> None:
    """out[c] = the sum of each[first + turn * i] * wide[start + stride * i + c]."""
    columns = len(sums)
    for c in range(columns):
        sums[c] = 0.0
    for i in range(count):
        factor, neighbours = factors[first + direction * i], source[start + stride * i : start + stride * i + columns]
        for c in range(columns):
            sums[c] += factor * neighbours[c]
