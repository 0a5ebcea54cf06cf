"""The Box-Cox transformation (1964), and the power that evens out the spread of a series (Guerrero 1993)."""

from __future__ import annotations

from typing import Any

import numpy as np

from deepforecast.core.state import Learned
from deepforecast.data.frames import Floats, Ints
from deepforecast.errors import DataError

GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
ROUNDS = 40
NODES = 64  # of a quadrature
FAR = 9.0  # deviations about the peak of what is integrated
MIDDLE, SHARE = 2.5758293035489004, 0.99
"""Of a normal distribution: the middle, in deviations, and what lies within."""


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
    """The mean of what is normal when transformed: of exp(normal) by its formula, else by quadrature.

    Values below the range count as 0. With a power below 0 there is no mean, as values so high are likely that none leads to:
    then it is that of the middle 99 %.
    """
    shape = np.broadcast_shapes(mean.shape, deviation.shape, power.shape)
    mean, deviation, power = (np.broadcast_to(one, shape) for one in (mean, deviation, power))
    found = np.array(transformed(mean, power, back=True), np.float64)
    bends = ~np.isnan(power) & (deviation > 0.0) & np.isfinite(mean)
    exponential = bends & (power == 0.0)
    with np.errstate(all="ignore"):
        found[exponential] = np.exp(mean[exponential] + 0.5 * deviation[exponential] ** 2)
    rest = bends & (power != 0.0)
    found[rest] = _mean_back(mean[rest], deviation[rest], power[rest])
    return found


def _mean_back(mean: Floats, deviation: Floats, power: Floats) -> Floats:
    """The integral of (power (mean + deviation z) + 1)^(1 / power) over the normal density of z, about its peak."""
    at, weight = np.polynomial.legendre.leggauss(NODES)
    edge, slope = power * mean + 1.0, power * deviation
    with np.errstate(all="ignore"):
        root = np.sqrt(np.maximum(edge**2 + 4.0 * slope * deviation, 0.0))
        peak = np.where(edge > 0.0, 2.0 * deviation / (edge + root), (root - edge) / (2.0 * slope))
        low = np.where(power > 0.0, np.maximum(peak - FAR, -edge / slope), -MIDDLE)
        high = np.where(power > 0.0, np.maximum(peak, low) + FAR, MIDDLE)
        z = 0.5 * (high + low)[:, None] + 0.5 * (high - low)[:, None] * at
        inside = slope[:, None] * z + edge[:, None]
        logs = np.log(np.maximum(inside, 0.0)) / power[:, None] - 0.5 * z**2
        top = logs.max(axis=1)
        total = (weight * np.exp(logs - top[:, None])).sum(axis=1) * 0.5 * (high - low)
        mass = np.where(power > 0.0, 1.0, SHARE)
        return np.asarray(np.where(np.isfinite(top), np.exp(top + np.log(total / (mass * np.sqrt(2.0 * np.pi)))), np.exp(top)))


def refuse_beyond(values: Floats, learned: Learned) -> Floats:
    """The values, transformed back, if they are finite; else a `DataError` that names the series and the way out."""
    bad = np.flatnonzero(~np.isnan(learned["power"]) & np.isinf(values).any(axis=tuple(range(1, values.ndim))))
    if len(bad) and learned.series is not None:
        raise DataError(
            f"Forecasts must be finite; those of series {learned.series.labels(bad)} are not once their Box-Cox "
            f"transformation, of power {learned['power'][bad[0]]:.3g}, is taken back. Say box_cox=0 or above (or 'auto'), "
            "leave them out, or forecast less far ahead."
        )
    return values


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
