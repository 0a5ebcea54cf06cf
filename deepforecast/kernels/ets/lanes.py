"""The recursion of 16 series side by side, one a lane, and backwards for its gradient: what runs most.

All arrays are flat, with `LANES` numbers in a row, one for each lane. The inner loops run over the lanes, have no branch and
take unsigned places, so that they become vector instructions; no lane reads another's numbers.

trail     a row of slots for each step, `width` numbers long
held      alpha, beta, gamma, phi, level, slope, and the factors of the season in turn
pulls     derivatives by all these
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compiling import hot

Floats = NDArray[np.float64]

LANES = 16
NOTHING: Any = np.int64(0)
"""0, but no literal: a function is compiled once more for each literal it is called with."""
_1 = np.uint64(LANES)
_2, _3, _4, _5, _6, _7, _8, _9 = (np.uint64(LANES * number) for number in range(2, 10))
STATES = 6 * LANES  # where the factors begin in `held`

TARGET, SEEN, MISS, PULL, SLOPE, VALUE, SHARE, BASE, FACTOR, PART = range(10)
"""Slots of a step: what the states are to meet (the value without regressors) · 1 where it is seen, else 0 · eps · the
derivative by eps, then by mu · b before the step · the value · 1 / mu · q · s · 1 / (q s)."""
SUM_ADDITIVE, SUM, PRODUCT = 5, 7, 10
"""How many of them are in use: mu a sum with additive errors, or with multiplicative ones; mu a product."""


@hot
def forward_sum(trail: Floats, steps: int, width: int, held: Floats, ring: Floats) -> None:
    """mu = l + phi b + s; `ring` is the part of `held` with the factors."""
    place, end = np.uint64(0), np.uint64(len(ring))
    for t in range(steps):
        row = trail[t * width : (t + 1) * width]
        for k in range(_1):
            damped = held[_3 + k] * held[_5 + k]
            base = held[_4 + k] + damped
            miss = row[_1 + k] * (row[k] - (base + ring[place + k]))
            row[_2 + k] = miss
            row[_4 + k] = held[_5 + k]
            held[_4 + k] = base + held[k] * miss
            held[_5 + k] = damped + held[_1 + k] * miss
            ring[place + k] += held[_2 + k] * miss
        place += _1
        if place == end:
            place = np.uint64(0)


@hot
def backward_sum(trail: Floats, steps: int, width: int, held: Floats, pulls: Floats, ring: Floats) -> None:
    """From the derivatives by eps in `PULL` to those by all that is held; `ring` is the part of `pulls` with the factors."""
    end = np.uint64(len(ring))
    place = np.uint64(((steps - 1) * LANES) % len(ring))
    for i in range(steps):
        at = (steps - 1 - i) * width
        row = trail[at : at + width]
        for k in range(_1):
            level, slope, factor = pulls[_4 + k], pulls[_5 + k], ring[place + k]
            miss = row[_2 + k]
            pulls[k] += miss * level
            pulls[_1 + k] += miss * slope
            pulls[_2 + k] += miss * factor
            mean = -row[_1 + k] * (row[_3 + k] + held[k] * level + held[_1 + k] * slope + held[_2 + k] * factor)
            row[_3 + k] = mean
            ring[place + k] = factor + mean
            pulls[_3 + k] += row[_4 + k] * (slope + (level + mean))
            pulls[_5 + k] = held[_3 + k] * (slope + (level + mean))
            pulls[_4 + k] = level + mean
        if place == np.uint64(0):
            place = end
        place -= _1


@hot
def forward_product(trail: Floats, steps: int, width: int, held: Floats, ring: Floats) -> None:
    """mu = (l + phi b) s."""
    place, end = np.uint64(0), np.uint64(len(ring))
    for t in range(steps):
        row = trail[t * width : (t + 1) * width]
        for k in range(_1):
            damped = held[_3 + k] * held[_5 + k]
            base, factor, seen = held[_4 + k] + damped, ring[place + k], row[_1 + k]
            part = seen / (seen * (base * factor) + (1.0 - seen))
            miss = seen * (row[k] - base * factor)
            row[_2 + k] = miss
            row[_4 + k] = held[_5 + k]
            row[_7 + k] = base
            row[_8 + k] = factor
            row[_9 + k] = part
            held[_4 + k] = base + held[k] * (miss * base * part)
            held[_5 + k] = damped + held[_1 + k] * (miss * base * part)
            ring[place + k] = factor + held[_2 + k] * (miss * factor * part)
        place += _1
        if place == end:
            place = np.uint64(0)


@hot
def backward_product(trail: Floats, steps: int, width: int, held: Floats, pulls: Floats, ring: Floats) -> None:
    """The same as `backward_sum`, of `forward_product`."""
    end = np.uint64(len(ring))
    place = np.uint64(((steps - 1) * LANES) % len(ring))
    for i in range(steps):
        at = (steps - 1 - i) * width
        row = trail[at : at + width]
        for k in range(_1):
            level, slope, turn = pulls[_4 + k], pulls[_5 + k], ring[place + k]
            miss, base, factor = row[_2 + k], row[_7 + k], row[_8 + k]
            by_factor, by_base = base * row[_9 + k], factor * row[_9 + k]  # 1 / s and 1 / q
            pulls[k] += miss * by_factor * level
            pulls[_1 + k] += miss * by_factor * slope
            pulls[_2 + k] += miss * by_base * turn
            up, across = held[k] * level + held[_1 + k] * slope, held[_2 + k] * turn
            mean = -row[_1 + k] * (row[_3 + k] + up * by_factor + across * by_base)
            row[_3 + k] = mean
            ring[place + k] = turn + mean * base - up * miss * by_factor * by_factor
            rise = level + mean * factor - across * miss * by_base * by_base
            pulls[_3 + k] += row[_4 + k] * (slope + rise)
            pulls[_5 + k] = held[_3 + k] * (slope + rise)
            pulls[_4 + k] = rise
        if place == np.uint64(0):
            place = end
        place -= _1
