"""Complex exponential smoothing (Svetunkov, Kourentzes & Ord 2022): the four forms as one recursion.

A pair (x, z) with complex parameter p0 + i p1 and error e moves by
    x' = x - (1 - p1) z + (p0 - p1) e        z' = x + (1 - p0) z + (p0 + p1) e.
The level is such a pair at lag 1, the season one at lag m; e = y - x of the level - x of the season. Forms: none (level alone),
simple (season alone, which then carries the level too), full (both), and partial (the season is real: x' = x + p0 e, z = 0).
A missing value is stepped over with e = 0.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compiling import announced, bare, lean

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NONE, SIMPLE, PARTIAL, FULL = range(4)


class Room(NamedTuple):
    """Where a backcasting works."""

    gains: Floats
    still: Floats  # two pairs without value
    fitted: Floats


def starts(y: Floats, indptr: Ints, forms: Ints, parameters: Floats, index: Floats) -> tuple[Floats, Floats]:
    """Level (series, 2) and season (series, m, 2; the first row's first) before the first row, by backcasting.

    The recursion runs over the series from a rough start, back again, and what it arrives at is the start.
    """
    level, season = np.zeros((len(forms), 2)), np.zeros((*index.shape, 2))
    with announced("complex exponential smoothing"):
        _starts(y, indptr, forms, parameters, index, level, season, Room(np.empty(14), np.zeros((2, 2)), np.empty(len(y))))
    return level, season


def filtered(
    y: Floats, indptr: Ints, forms: Ints, parameters: Floats, level: Floats, season: Floats
) -> tuple[Floats, Floats, Floats]:
    """One-step-ahead forecasts of the rows, and level and season (the next row's first) after the last."""
    fitted, level, season = np.empty(len(y)), level.copy(), season.copy()
    with announced("complex exponential smoothing"):
        _filter(y, indptr, forms, parameters, level, season, fitted, np.empty(14))
    turned = (np.arange(season.shape[1]) + np.diff(indptr)[:, None]) % season.shape[1]
    return fitted, level, np.take_along_axis(season, turned[:, :, None], axis=1)


def ahead(forms: Ints, parameters: Floats, level: Floats, season: Floats, steps: int) -> tuple[Floats, Floats, Floats]:
    """The level's and the season's part of the forecasts (series, steps), and what a shock of 1 at the first step adds to it
    and to the later ones."""
    levels, seasons, first, rest = np.zeros((4, len(forms), steps))
    with announced("complex exponential smoothing"):
        _ahead(forms, parameters, level.copy(), season.copy(), False, np.empty(14), levels, seasons)
        _ahead(forms, parameters, 0.0 * level, 0.0 * season, True, np.empty(14), first, rest)
    return levels, seasons, first + rest


@bare
def gains(form: int, parameters: Floats, found: Floats) -> None:
    """The coefficients of both pairs, 7 each: z and e in x', x, z and e in z'; whether p0 counts in x, whether z is there."""
    for number in range(14):
        found[number] = 0.0
    for pair in range(2):
        p0, p1, here = parameters[2 * pair], parameters[2 * pair + 1], found[7 * pair : 7 * pair + 7]
        if pair == 1 and form == PARTIAL:
            here[1], here[5] = p0, 1.0
        elif (pair == 0 and form != SIMPLE) or (pair == 1 and form != NONE):
            here[0], here[1] = p1 - 1.0, p0 - p1
            here[2], here[3], here[4] = 1.0, 1.0 - p0, p0 + p1
            here[5], here[6] = 1.0, 1.0


@bare
def rough_start(values: Floats, form: int, index: Floats, level: Floats, season: Floats) -> None:
    """Where the backcasting begins: means and seasonal indices, with the imaginary part 1/1.1 of the real one."""
    period = len(index)
    first = max(10, period) if form == NONE else period
    total, count = 0.0, 0.0
    for t in range(len(values)):
        if not math.isnan(values[t]) and (t < first or count == 0.0):
            total, count = total + values[t], count + 1.0
    mean = total / count
    level[0], level[1] = (mean, mean / 1.1) if form != SIMPLE else (0.0, 0.0)
    for place in range(period):
        season[place, 0], season[place, 1] = 0.0, 0.0
        if form == SIMPLE:
            seen = place < len(values) and not math.isnan(values[place])
            season[place, 0] = values[place] if seen else mean
        elif form != NONE:
            season[place, 0] = index[place]
        if form in (SIMPLE, FULL):
            season[place, 1] = season[place, 0] / 1.1


@bare
def _move(level: Floats, season: Floats, g: Floats, error: float) -> None:
    """Both pairs over one row."""
    x, z = level[0], level[1]
    level[0] = x + g[0] * z + g[1] * error
    level[1] = g[2] * x + g[3] * z + g[4] * error
    x, z = season[0], season[1]
    season[0] = x + g[7] * z + g[8] * error
    season[1] = g[9] * x + g[10] * z + g[11] * error


@bare
def _walk(values: Floats, back: bool, level: Floats, season: Floats, g: Floats, fitted: Floats) -> None:
    """Over all rows, back to the first or on to the last."""
    for step in range(len(values)):
        row = len(values) - 1 - step if back else step
        place = row % len(season)
        fitted[row] = level[0] + season[place, 0]
        _move(level, season[place], g, 0.0 if math.isnan(values[row]) else values[row] - fitted[row])


@lean
def _starts(
    y: Floats, indptr: Ints, forms: Ints, parameters: Floats, index: Floats, level: Floats, season: Floats, room: Room
) -> None:
    g, still, fitted = room
    for i in range(len(forms)):
        values = y[indptr[i] : indptr[i + 1]]
        gains(forms[i], parameters[i], g)
        rough_start(values, forms[i], index[i], level[i], season[i])
        for run in range(2):
            _walk(values, run == 1, level[i], season[i], g, fitted)
            _move(level[i], still[0], g, 0.0)  # one row more, without an error, and from there the other way
            for place in range(index.shape[1]):
                _move(still[1], season[i, place], g, 0.0)


@lean
def _filter(
    y: Floats, indptr: Ints, forms: Ints, parameters: Floats, level: Floats, season: Floats, fitted: Floats, g: Floats
) -> None:
    for i in range(len(forms)):
        gains(forms[i], parameters[i], g)
        begin, end = indptr[i], indptr[i + 1]
        _walk(y[begin:end], end < begin, level[i], season[i], g, fitted[begin:end])


@lean
def _ahead(
    forms: Ints, parameters: Floats, level: Floats, season: Floats, shock: bool, g: Floats, levels: Floats, seasons: Floats
) -> None:
    """Both parts of each step; with a shock, of 1, at the first one, which then is that itself."""
    for i in range(len(forms)):
        gains(forms[i], parameters[i], g)
        for step in range(levels.shape[1]):
            place, error = step % season.shape[1], 1.0 if shock and step == 0 else 0.0
            levels[i, step], seasons[i, step] = level[i, 0] + error, season[i, place, 0]
            _move(level[i], season[i, place], g, error)
