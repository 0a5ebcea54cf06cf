"""The Box-Cox transformation (1964), and the power that evens out the spread of a series (Guerrero 1993)."""

from __future__ import annotations

from typing import Any

import numpy as np

from deepforecast.data.frames import Floats, Ints

GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
ROUNDS = 40


def transformed(y: Floats, power: Any, *, back: bool = False) -> Floats:
    """(y^power - 1) / power, the logarithm at 0, y itself where the power is NaN; or from that back to y.

    Back from where no y leads: 0 below the range, infinity above it.
    """
    power = np.broadcast_to(power, y.shape)
    if np.isnan(power).all():
        return y
    with np.errstate(all="ignore"):
        some = np.where(power == 0.0, 1.0, power)
        if back:
            base = np.where(np.isnan(y), np.nan, np.maximum(some * y + 1.0, 0.0))
            found = np.where(power == 0.0, np.exp(y), base ** (1.0 / some))
        else:
            found = np.where(power == 0.0, np.log(y), (y**some - 1.0) / some)
    return np.asarray(np.where(np.isnan(power), y, found))


def corrected(mean: Floats, deviation: Floats, power: Floats) -> Floats:
    """The mean of what is normal when transformed, to the second order (Hyndman & Athanasopoulos, section 5.6)."""
    middle = transformed(mean, power, back=True)
    with np.errstate(all="ignore"):
        bend = 1.0 + 0.5 * (1.0 - power) * (deviation / (power * mean + 1.0)) ** 2
    usable = ~np.isnan(power) & np.isfinite(bend)
    return np.where(usable, middle * np.where(usable, bend, 1.0), middle)


def guerrero(y: Floats, indptr: Ints, season: int) -> Floats:
    """For each series the power between 0 and 1 under which deviation / mean^(1 - power) varies least from stretch to stretch.

    Stretches are a season long, at least 2 rows, the last ones of the series; 1 where there are fewer than two.
    """
    length = max(season, 2)
    means, deviations, owner = _stretches(y, indptr, length)
    number = len(indptr) - 1
    low, high = np.zeros(number), np.ones(number)
    for _ in range(ROUNDS):
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        better = _variation(left, means, deviations, owner) <= _variation(right, means, deviations, owner)
        low, high = np.where(better, low, left), np.where(better, right, high)
    found = 0.5 * (low + high)
    ends = np.stack([np.zeros(number), np.ones(number), found])
    best = ends[np.argmin([_variation(one, means, deviations, owner) for one in ends], axis=0), np.arange(number)]
    return np.where(np.bincount(owner, minlength=number) >= 2, best, 1.0)


def _stretches(y: Floats, indptr: Ints, length: int) -> tuple[Floats, Floats, Ints]:
    """Mean and deviation of each whole stretch without a hole, over the series' mean, and the series it is of."""
    rows = np.diff(indptr) // length
    first = indptr[1:] - rows * length
    begin = np.repeat(first, rows) + length * (np.arange(rows.sum()) - np.repeat(np.cumsum(rows) - rows, rows))
    owner = np.repeat(np.arange(len(rows)), rows)
    values = y[begin[:, None] + np.arange(length)]
    whole = ~np.isnan(values).any(axis=1)
    values, owner = values[whole], owner[whole]
    size = np.add.reduceat(np.where(np.isnan(y), 0.0, y), indptr[:-1]) / np.maximum(np.diff(indptr), 1)
    values = values / size[owner][:, None]
    return values.mean(axis=1), values.std(axis=1, ddof=1), owner


def _variation(power: Floats, means: Floats, deviations: Floats, owner: Ints) -> Floats:
    """The coefficient of variation of deviation / mean^(1 - power) of each series."""
    number = len(power)
    ratio = deviations / means ** (1.0 - power[owner])
    count = np.maximum(np.bincount(owner, minlength=number), 2)
    middle = np.bincount(owner, ratio, number) / count
    square = np.bincount(owner, (ratio - middle[owner]) ** 2, number) / (count - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(middle > 0, np.sqrt(square) / middle, 0.0)
