"""Complex exponential smoothing over the rows of 16 series side by side, with the derivatives of its errors.

The sum of squares is that of the last of three runs: on from a rough start, back, on again; the derivatives go along with it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compiling import bare

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LANES = 16
QUANTITIES = 5  # the value, and its derivatives by the level's p0 and p1 and the season's
STATE = 2 * QUANTITIES * LANES  # of a pair in all lanes: x and z of the value, of its first derivative, ...
PRODUCTS = QUANTITIES * (QUANTITIES + 1) // 2  # of errors and derivatives: upper triangle, row by row


class Desk(NamedTuple):
    """Where the searches work, side by side."""

    values: Floats  # (rows, LANES), and 1 where they are seen, else 0
    seen: Floats
    rough: Floats  # (1 + m, STATE): level and places of the season: where the first run begins,
    start: Floats  # where the last one does,
    live: Floats  # and in between
    still: Floats  # the same without value
    gains: Floats  # (14 * LANES,)
    errors: Floats  # (QUANTITIES * LANES,) of a row
    products: Floats  # (PRODUCTS * LANES,)
    begins: Ints  # (LANES,): the row of a lane's first value
    first_level: Floats  # (2,) and first_season (m, 2): of one series
    first_season: Floats
    one_gain: Floats  # (14,)


@bare
def evaluate(desk: Desk) -> None:
    """Products of errors and derivatives of the last of three runs, all lanes: on, back, and on again."""
    last, first, period = len(desk.values), len(desk.values), len(desk.live) - 1
    for lane in range(LANES):
        first = min(first, desk.begins[lane])
    for number in range(PRODUCTS * LANES):
        desk.products[number] = 0.0
    for run in range(3):
        given, taken = (desk.live, desk.start) if run == 1 else (desk.start, desk.live) if run == 2 else (desk.rough, desk.live)
        for slot in range(1 + period):
            for place in range(STATE):
                taken[slot, place] = 0.0  # and so stays where a lane has not begun
        here = last if run == 1 else first
        while here > first if run == 1 else here < last:
            there = first if run == 1 else last  # the next row on the way where a series begins
            for lane in range(LANES):
                if min(here, there) < desk.begins[lane] < max(here, there):
                    there = desk.begins[lane]
            if run != 1:
                _hand_over(desk.begins, here, given, taken)
            _over_rows(desk, desk.live, desk.live[1:], here, there, run < 0, run == 2)
            if run == 1:
                _hand_over(desk.begins, there, given, taken)
            here = there
        for slot in range(0 if run == 2 else 1 + period):  # one row more without an error, and from there the other way
            level, season = (taken, desk.still[:1]) if slot == 0 else (desk.still, taken[slot : slot + 1])
            _over_rows(desk, level, season, slot, slot + 1, run >= 0, run == 2)


@bare
def _hand_over(begins: Ints, row: int, given: Floats, taken: Floats) -> None:
    """Move the states of the lanes whose series begin in a row."""
    for lane in range(LANES):
        if begins[lane] == row:
            for slot in range(len(given)):
                for place in range(lane, STATE, LANES):
                    taken[slot, place] = given[slot, place]


@bare
def _moved(x: float, z: float, e: float, z_x: float, e_x: float, x_z: float, z_z: float, e_z: float) -> tuple[float, float]:
    return x + z_x * z + e_x * e, x_z * x + z_z * z + e_z * e


@bare
def _over_rows(desk: Desk, level: Floats, season: Floats, here: int, there: int, still: bool, count: bool) -> None:
    """From one row to another, on or back; `still`: without errors. All lanes at once: at distances known beforehand."""
    values, seen = (desk.still, desk.still) if still else (desk.values, desk.seen)
    g, errors = desk.gains, desk.errors
    for step in range(abs(there - here)):
        t = here + step if there > here else here - 1 - step
        slot = t % len(season)
        for k in range(LANES):
            a, b, c, d, f = g[k], g[LANES + k], g[2 * LANES + k], g[3 * LANES + k], g[4 * LANES + k]
            p, q, r, s, u = g[7 * LANES + k], g[8 * LANES + k], g[9 * LANES + k], g[10 * LANES + k], g[11 * LANES + k]
            x, z, v, w = level[0, k], level[0, LANES + k], season[slot, k], season[slot, LANES + k]
            known = seen[t, k]
            e = (values[t, k] - x - v) * known
            level[0, k], level[0, LANES + k] = _moved(x, z, e, a, b, c, d, f)
            season[slot, k], season[slot, LANES + k] = _moved(v, w, e, p, q, r, s, u)
            to_level, to_season, to_whole = g[5 * LANES + k] * e, g[12 * LANES + k] * e, g[13 * LANES + k] * e
            dx, dz = level[0, 2 * LANES + k], level[0, 3 * LANES + k]  # by the level's p0
            dv, dw = season[slot, 2 * LANES + k], season[slot, 3 * LANES + k]
            e1 = -(dx + dv) * known
            dx, dz = _moved(dx, dz, e1, a, b, c, d, f)
            dv, dw = _moved(dv, dw, e1, p, q, r, s, u)
            level[0, 2 * LANES + k], level[0, 3 * LANES + k] = dx + to_level, dz + to_level - z
            season[slot, 2 * LANES + k], season[slot, 3 * LANES + k] = dv, dw
            dx, dz = level[0, 4 * LANES + k], level[0, 5 * LANES + k]  # by the level's p1
            dv, dw = season[slot, 4 * LANES + k], season[slot, 5 * LANES + k]
            e2 = -(dx + dv) * known
            dx, dz = _moved(dx, dz, e2, a, b, c, d, f)
            dv, dw = _moved(dv, dw, e2, p, q, r, s, u)
            level[0, 4 * LANES + k], level[0, 5 * LANES + k] = dx - to_level + z, dz + to_level
            season[slot, 4 * LANES + k], season[slot, 5 * LANES + k] = dv, dw
            dx, dz = level[0, 6 * LANES + k], level[0, 7 * LANES + k]  # by the season's p0
            dv, dw = season[slot, 6 * LANES + k], season[slot, 7 * LANES + k]
            e3 = -(dx + dv) * known
            dx, dz = _moved(dx, dz, e3, a, b, c, d, f)
            dv, dw = _moved(dv, dw, e3, p, q, r, s, u)
            level[0, 6 * LANES + k], level[0, 7 * LANES + k] = dx, dz
            season[slot, 6 * LANES + k], season[slot, 7 * LANES + k] = dv + to_season, dw + to_whole - w
            dx, dz = level[0, 8 * LANES + k], level[0, 9 * LANES + k]  # by the season's p1
            dv, dw = season[slot, 8 * LANES + k], season[slot, 9 * LANES + k]
            e4 = -(dx + dv) * known
            dx, dz = _moved(dx, dz, e4, a, b, c, d, f)
            dv, dw = _moved(dv, dw, e4, p, q, r, s, u)
            level[0, 8 * LANES + k], level[0, 9 * LANES + k] = dx, dz
            season[slot, 8 * LANES + k], season[slot, 9 * LANES + k] = dv - to_whole + w, dw + to_whole
            errors[k], errors[LANES + k], errors[2 * LANES + k] = e, e1, e2
            errors[3 * LANES + k], errors[4 * LANES + k] = e3, e4
        if count:
            _add_products(errors, desk.products)


@bare
def _add_products(errors: Floats, products: Floats) -> None:
    """Of the errors of a row and their derivatives."""
    for k in range(LANES):
        a, b, c = errors[k], errors[LANES + k], errors[2 * LANES + k]
        d, e = errors[3 * LANES + k], errors[4 * LANES + k]
        products[k] += a * a
        products[LANES + k] += a * b
        products[2 * LANES + k] += a * c
        products[3 * LANES + k] += a * d
        products[4 * LANES + k] += a * e
        products[5 * LANES + k] += b * b
        products[6 * LANES + k] += b * c
        products[7 * LANES + k] += b * d
        products[8 * LANES + k] += b * e
        products[9 * LANES + k] += c * c
        products[10 * LANES + k] += c * d
        products[11 * LANES + k] += c * e
        products[12 * LANES + k] += d * d
        products[13 * LANES + k] += d * e
        products[14 * LANES + k] += e * e


# -- a step of one lane --------------------------------------------------------------------------------------------------------
