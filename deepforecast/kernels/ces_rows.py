"""Complex exponential smoothing over the rows of 16 series side by side, with the derivatives of its errors.

The sum of squares is that of the last of three runs: on from a rough start, back, on again; the derivatives go along with it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compiling import bare, part

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LANES = 16
QUANTITIES = 5  # the value, and its derivatives by the level's p0 and p1 and the season's
STATE = 2 * QUANTITIES * LANES  # of a pair in all lanes: x and z of the value, of its first derivative, ...


NOTHING = -0.0  # changes no number that it is added to, not even -0.0: so the sum is left out
ROUGH, LIVE, START, STILL = range(4)
"""States (4, 1 + m, STATE), of level and places of the season: where the first run begins; in between; where the last one does;
and none."""


@part
def evaluate(rows: Floats, begins: Ints, states: Floats, gains: Floats, errors: Floats, products: Floats) -> None:
    """Products of errors and derivatives of the last of three runs, all lanes: on, back, and on again.

    rows (2, rows + 1, LANES): the values, and 1 where they are seen, else 0; one of zeros behind them. begins (LANES,): the row
    of a lane's first value.
    """
    last, live, still = rows.shape[1] - 1, states[LIVE], states[STILL]
    first = last
    for lane in range(LANES):
        first = min(first, begins[lane])
    for number in range(len(products)):
        products[number] = 0.0
    for slot in range(len(still)):  # NaN since an evaluation in which a lane overflowed
        for place in range(STATE):
            still[slot, place] = 0.0
    for run in range(3):
        given, taken, back = states[run], states[1 + run % 2], run == 1  # rough to live, live to start, start to live
        for slot in range(len(taken)):
            for place in range(STATE):
                taken[slot, place] = 0.0  # and so stays where a lane has not begun
        here, goal = first, last
        if back:
            here, goal = last, first
        while here != goal:
            there = goal  # or the next row on the way where a series begins
            for lane in range(LANES):
                if min(here, there) < begins[lane] < max(here, there):
                    there = begins[lane]
            if not back:
                _hand_over(begins, here, given, taken)
            _over_rows(rows, live, live[1:], gains, errors, here, there, products if run == 2 else products[:0])
            if back:
                _hand_over(begins, there, given, taken)
            here = there
        for slot in range(len(taken) if run < 2 else 0):  # one row more without an error, and from there the other way
            level, season = still, taken[slot : slot + 1]
            if slot == 0:
                level, season = taken, still
            _over_rows(rows, level, season, gains, errors, last, last + 1, products[:0])


@bare
def _hand_over(begins: Ints, row: int, given: Floats, taken: Floats) -> None:
    """Move the states of the lanes whose series begin in a row."""
    for lane in range(LANES):
        if begins[lane] == row:
            for slot in range(len(given)):
                for place in range(lane, STATE, LANES):
                    taken[slot, place] = given[slot, place]


@bare
def _move(state: Floats, at: int, error: float, g: Floats, k: int, x_more: float, z_more: float) -> None:
    """Move a pair, or a derivative of it, with its error and with what else there is."""
    x, z = state[at], state[at + LANES]
    state[at] = x + g[k] * z + g[LANES + k] * error + x_more
    state[at + LANES] = g[2 * LANES + k] * x + g[3 * LANES + k] * z + g[4 * LANES + k] * error + z_more


@bare
def _over_rows(
    rows: Floats, levels: Floats, seasons: Floats, g: Floats, errors: Floats, here: int, there: int, products: Floats
) -> None:
    """From one row to another, on or back. All lanes at once: at distances known beforehand."""
    level = levels[0]
    for step in range(abs(there - here)):
        t = here + step if there > here else here - 1 - step
        season, values, seen = seasons[t % len(seasons)], rows[0, t], rows[1, t]
        for k in range(LANES):
            known, place, z, w, own = seen[k], 7 * LANES + k, level[LANES + k], season[LANES + k], 2 * LANES + k
            error = (values[k] - level[k] - season[k]) * known
            to_level, to_season, to_whole = g[5 * LANES + k] * error, g[12 * LANES + k] * error, g[13 * LANES + k] * error
            errors[k] = error
            _move(level, k, error, g, k, NOTHING, NOTHING)
            _move(season, k, error, g, place, NOTHING, NOTHING)
            error = -(level[own] + season[own]) * known
            errors[LANES + k] = error
            _move(level, own, error, g, k, to_level, to_level - z)  # by the level's p0
            _move(season, own, error, g, place, NOTHING, NOTHING)
            own += 2 * LANES
            error = -(level[own] + season[own]) * known
            errors[2 * LANES + k] = error
            _move(level, own, error, g, k, z - to_level, to_level)  # and p1
            _move(season, own, error, g, place, NOTHING, NOTHING)
            own += 2 * LANES
            error = -(level[own] + season[own]) * known
            errors[3 * LANES + k] = error
            _move(level, own, error, g, k, NOTHING, NOTHING)
            _move(season, own, error, g, place, to_season, to_whole - w)  # by the season's p0
            own += 2 * LANES
            error = -(level[own] + season[own]) * known
            errors[4 * LANES + k] = error
            _move(level, own, error, g, k, NOTHING, NOTHING)
            _move(season, own, error, g, place, w - to_whole, to_whole)  # and p1
        if len(products) > 0:
            _add_products(errors, products)


@bare
def _add_products(errors: Floats, products: Floats) -> None:
    """Of the errors of a row and their derivatives."""
    for k in range(LANES):
        for one in range(QUANTITIES):
            for other in range(one, QUANTITIES):
                products[(one * QUANTITIES + other) * LANES + k] += errors[one * LANES + k] * errors[other * LANES + k]
