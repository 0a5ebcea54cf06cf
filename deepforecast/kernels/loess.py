"""Locally weighted regression (loess) of evenly spaced values, as the STL decomposition smooths them.

The smooth at a place is that of a constant or a line fitted to the `width` nearest values, weights falling with their distance
(tricube). Weights depend on distances alone: where values have none of their own, what each counts for is laid down once
(`lay_down`) and applied to many places at a time: all inner places, all places of an edge, all phases of a season together.
Plain loops and few array operations throughout: each of those costs a second to compile.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compiling import bare, inner

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


@bare
def edge_of(n: int, window: Window) -> int:
    """Places at an edge, whose neighbours lie on one side: half a window, or all where the window holds every value."""
    return n if window.width >= n else (window.width - 1) // 2


@bare
def is_tabled(n: int, window: Window) -> bool:
    """Whether many places are smoothed at a time, by weights that were laid down."""
    small = min(n, window.width) * (edge_of(n, window) + 1) <= LARGEST_TABLE
    return small and not window.weighted and min(window.jump, n - 1) == 1


@inner
def lay_down(n: int, window: Window, table: Floats) -> None:
    """Write what each value counts for at an inner place, and behind it at the places of the left edge, by value and place."""
    seen, sides = min(n, window.width), edge_of(n, window)
    own = np.empty(seen)
    for number in range(sides + 1):
        _weigh(own, n, window, number - 1 if number > 0 else (seen - 1) // 2)
        begin, step = (seen + number - 1, sides) if number > 0 else (0, 1)
        for row in range(seen):
            table[begin + row * step] = own[row]


@bare
def smooth_all(y: Floats, n: int, window: Window, table: Floats, between: Floats, out: Floats, stop: Ints) -> None:
    """Smooth `y[:n]` into `out`, with the weights of `lay_down`, until `stop[0]` is not 0."""
    seen, sides = min(n, window.width), edge_of(n, window)
    for right in range(2 if window.width < n else 1):
        first, turn = (n - 1, -1) if right else (0, 1)
        _accumulate(table, seen, sides, y, first, turn, seen, between[:sides])
        for place in range(sides):
            out[first + turn * place] = between[place]
    if window.width < n:
        places = n - window.width + 1
        for first in range(0, places, BLOCK):
            if stop[0] != 0:
                return
            sums = between[: min(BLOCK, places - first)]
            _accumulate(y, first, 1 + 0 * n, table, 0 * n, 1 + 0 * n, seen, sums)
            for place in range(len(sums)):
                out[sides + first + place] = sums[place]


@inner
def smooth_phases(line: Line, phases: int, window: Window, between: Floats, out: Floats) -> None:
    """Smooth `phases` series side by side, the next beginning one further on, and go one place beyond both their ends.

    `out` has the layout of the values, but begins one `stride` earlier: with the place before the first.
    """
    n, seen, half = line.n, min(line.n, window.width), (window.width - 1) // 2
    own = np.empty(seen)
    for place in range(-1, n + 1):
        first = min(max(place - half, 0), n - seen)
        _weigh(own, n, window, place - first)
        begin = line.start + first * line.stride
        _accumulate(line.values, begin, line.stride, own, 0 * n, 1 + 0 * n, seen, between[:phases])
        for phase in range(phases):
            out[line.start + (place + 1) * line.stride + phase] = between[phase]


@bare
def smooth_line(line: Line, window: Window, own: Floats, out: Floats, to: int, beyond: int, stop: Ints) -> None:
    """Smooth one series at every `jump`-th place and at the last one, straight lines between, to `out[to + i * stride]`; and
    `beyond` places (0 or 1) further at both ends; until `stop[0]` is not 0."""
    n, seen, half, stride = line.n, min(line.n, window.width), (window.width - 1) // 2, line.stride
    step = max(min(window.jump, n - 1), 1)
    first, before, place = 0, 0, -beyond
    while place < n + beyond and stop[0] == 0:
        if place % step == 0 or place >= n:  # the last place, if none of these, is seen from the window of the one before it
            first = min(max(place - half, 0), n - seen)
        value = fit_at(line, window, place, first, own)
        if np.isnan(value) and place >= 0:
            value = line.values[line.start + place * stride] if place < n else out[to + before * stride]
        out[to + place * stride] = value
        if before < place < n:
            left = out[to + before * stride]
            rise = (value - left) / (place - before)
            for between in range(before + 1, place):
                out[to + between * stride] = left + rise * (between - before)
        before = max(place, 0)
        place = place + 1 if place < 0 or place >= n - 1 else min(place + step, n - 1)
    if beyond > 0 and np.isnan(out[to - stride]):
        out[to - stride] = out[to]


@bare
def fit_at(line: Line, window: Window, place: int, first: int, own: Floats) -> float:
    """The smooth at a place, from the values behind `first`; NaN where none of them has any weight."""
    n, seen = line.n, min(line.n, window.width)
    _weigh(own, n, window, place - first)
    s0, s1, s2, t0, t1 = 0.0, 0.0, 0.0, 0.0, 0.0
    for row in range(seen):
        spot = line.start + (first + row) * line.stride
        weight = own[row] * line.weights[spot] if window.weighted else own[row]
        value = weight * line.values[spot]
        s0, s1, s2 = s0 + weight, s1 + weight * row, s2 + weight * row * row
        t0, t1 = t0 + value, t1 + value * row
    if not window.weighted:
        return t0
    if s0 <= 0.0:
        return np.nan
    mean, level = s1 / s0, t0 / s0
    spread = s2 / s0 - mean * mean
    return level + (place - first - mean) / spread * (t1 / s0 - mean * level) if _slopes(spread, n, window) else level


@bare
def _weigh(own: Floats, n: int, window: Window, place: int) -> None:
    """Weights of neighbouring values at a place counted from the first: what each counts for, where they have no others."""
    seen = min(n, window.width)
    far = float(max(place, seen - 1 - place) + max(window.width - n, 0) // 2)
    s0, s1, s2 = 0.0, 0.0, 0.0
    for row in range(seen):
        distance = float(abs(row - place))
        share = distance / far if far > 0.0 else 0.0
        rest = 1.0 - share * share * share
        weight = 1.0 if distance <= 0.001 * far else rest * rest * rest if distance <= 0.999 * far else 0.0
        own[row] = weight
        s0, s1, s2 = s0 + weight, s1 + weight * row, s2 + weight * row * row
    if window.weighted:
        return
    mean = s1 / s0
    spread = s2 / s0 - mean * mean
    slope = (place - mean) / spread if _slopes(spread, n, window) else 0.0
    for row in range(seen):
        own[row] = own[row] / s0 * (1.0 + slope * (row - mean))


@bare
def _slopes(spread: float, n: int, window: Window) -> bool:
    """Whether the places of the values that count lie far enough apart for a line."""
    return window.degree > 0 and spread > 0.0 and np.sqrt(spread) > 0.001 * (n - 1.0)


@bare
def _accumulate(
    wide: Floats, start: int, stride: int, each: Floats, first: int, turn: int, count: int, out: Floats
) -> None:
    """out[c] = the sum of each[first + turn * i] * wide[start + stride * i + c]."""
    columns = len(out)
    for c in range(columns):
        out[c] = 0.0
    for i in range(count):
        factor, part = each[first + turn * i], wide[start + stride * i : start + stride * i + columns]
        for c in range(columns):
            out[c] += factor * part[c]
