"""How sure a ranking of models is: bootstrap intervals over series, ranks, and tests of every pair. Arrays in, arrays out.

`values` is always shaped (models, series), one number a model and series, less being better (`Metric.distance` makes it so).
Series are what is resampled and compared: the errors of one series at several steps and cutoffs hang together, so a metric
is put together by series first (`score(..., by="series")`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepforecast.core.threads import limit_threads
from deepforecast.errors import ParameterError, format_value
from deepforecast.evaluation.inputs import numbers

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
DRAWN = 2_000  # units drawn with replacement: series or, where there are more, groups of them
BLOCK = 1_000_000  # counts made at a time: bounds the memory
EXACT = 50  # differences up to which the signed-rank test counts every pattern of signs


@dataclass(frozen=True, eq=False)
class Interval:
    """A mean over series with the ends of its bootstrap interval, one of each a model, and the series it rests on."""

    mean: Array
    low: Array
    high: Array
    series: Integers


@dataclass(frozen=True, eq=False)
class Pairwise:
    """Every pair of models, arrays of shape (models, models).

    `wins[a, b]`: share of the series in which a is better than b, a tie counting half. `p_value`: of the Wilcoxon signed-rank
    test that neither is better; `corrected`: the same after Holm's correction for the number of pairs. NaN on the diagonal.
    `series`: how many both have.
    """

    wins: Array
    p_value: Array
    corrected: Array
    series: Integers


def mean_interval(
    values: ArrayLike, *, weights: ArrayLike | None = None, level: float = 95, n_resamples: int = 1000, seed: int = 0
) -> Interval:
    """Mean over series of each model with a percentile bootstrap interval; the same resamples for all models.

    With `weights` (a number a series, or a model and series) the weighted mean: with the summed actuals as weights, that of
    wape over the whole panel. NaN: the series is left out for that model. Two series are needed for an interval.

    >>> found = mean_interval([[1.0, 2.0, 3.0, 4.0], [2.0, 2.0, 2.0, 2.0]])
    >>> found.mean.tolist(), float(found.low[1]), float(found.high[1])
    ([2.5, 2.0], 2.0, 2.0)
    """
    errors = _table(values)
    if not 0 < level < 100:
        raise ParameterError(f"level is a number in (0, 100), for example 95; got {format_value(level)}.")
    if n_resamples < 1:
        raise ParameterError(f"n_resamples is at least 1; got {format_value(n_resamples)}.")
    share = _weights(weights, errors)
    total = share.sum(axis=1)
    mean = np.divide((share * np.nan_to_num(errors)).sum(axis=1), total, out=np.full(len(errors), np.nan), where=total > 0)
    away = np.where(np.isnan(errors), 0.0, errors - mean[:, None])  # so that values far from zero keep their digits
    used = (share > 0).sum(axis=1)
    moved = _resampled(away, share, n_resamples, seed)
    moved[:, used == 0] = 0.0
    low, high = mean + np.nanquantile(moved, [(100 - level) / 200, (100 + level) / 200], axis=0)
    enough = used > 1
    return Interval(mean, np.where(enough, low, np.nan), np.where(enough, high, np.nan), used)


def ranks(values: ArrayLike) -> Array:
    """Rank of each model in each series, 1 the best; ties share the mean of their places. NaN where a model has no value.

    >>> ranks([[1.0, 2.0], [1.0, 1.0], [3.0, 5.0]])
    array([[1.5, 2. ],
           [1.5, 1. ],
           [3. , 3. ]])
    """
    errors = _table(values)
    found = np.empty(errors.shape)
    for number, own in enumerate(errors):
        found[number] = (errors < own).sum(axis=0) + ((errors == own).sum(axis=0) + 1) / 2
    return np.where(np.isnan(errors), np.nan, found)


def pairwise(values: ArrayLike) -> Pairwise:
    """Shares of wins and Wilcoxon signed-rank tests of every pair of models, over the series both have.

    >>> found = pairwise([[1.0, 2.0, 3.0, 1.0, 2.0, 2.5], [1.5, 2.1, 3.2, 1.9, 2.3, 2.9]])
    >>> float(found.wins[0, 1]), float(found.p_value[0, 1])
    (1.0, 0.03125)
    """
    errors = _table(values)
    count = len(errors)
    wins, p_value, corrected = (np.full((count, count), np.nan) for _ in range(3))
    shared = np.zeros((count, count), np.int64)
    first, second = np.triu_indices(count, 1)
    for a, b in zip(first.tolist(), second.tolist(), strict=True):
        difference = errors[a] - errors[b]
        difference = difference[~np.isnan(difference)]
        shared[a, b] = shared[b, a] = len(difference)
        if len(difference):
            wins[a, b] = ((difference < 0).sum() + (difference == 0).sum() / 2) / len(difference)
            wins[b, a] = 1 - wins[a, b]
            p_value[a, b] = p_value[b, a] = signed_rank(difference)
    corrected[first, second] = corrected[second, first] = holm(p_value[first, second])
    return Pairwise(wins, p_value, corrected, shared)


def signed_rank(difference: ArrayLike) -> float:
    """Two-sided p-value of the Wilcoxon signed-rank test that `difference` is symmetric about zero.

    Zeros are left out and ties share their mean rank, as Wilcoxon did; exact for 50 differences or fewer, for more by the
    normal approximation with its variance corrected for ties. Without a difference other than zero it is 1.

    >>> signed_rank([1.0, 2.0, -3.0, 4.0, 5.0, 6.0])
    0.15625
    """
    given = numbers("difference", difference)
    given = given[given != 0]
    if not len(given):
        return 1.0
    _, place, sizes = np.unique(np.abs(given), return_inverse=True, return_counts=True)
    doubled = (2 * np.cumsum(sizes) - sizes + 1)[place]  # twice the rank: an integer for ties too
    if len(given) <= EXACT:
        return _exact(doubled, int(doubled[given > 0].sum()))
    above, count = float(doubled[given > 0].sum()) / 2, len(given)
    expected = count * (count + 1) / 4
    variance = count * (count + 1) * (2 * count + 1) / 24 - float((sizes.astype(np.float64) ** 3 - sizes).sum()) / 48
    return math.erfc(abs(above - expected) / math.sqrt(2 * variance))


def holm(p_values: ArrayLike) -> Array:
    """P-values after Holm's step-down correction for their number: at 0.05, one chance in twenty of any false finding.

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    given = numbers("p_values", p_values)
    found = np.full(given.shape, np.nan)
    there = np.flatnonzero(~np.isnan(given))
    order = there[np.argsort(given[there], kind="stable")]
    scaled = given[order] * np.arange(len(order), 0, -1)
    found[order] = np.minimum(np.maximum.accumulate(scaled), 1.0) if len(order) else scaled
    return found


def _table(values: ArrayLike) -> Array:
    errors = numbers("values", values)
    if errors.ndim != 2 or not errors.size:
        raise ParameterError(f"values is shaped (models, series), at least one of each; got shape {errors.shape}.")
    if np.isinf(errors).any():
        raise ParameterError("values are finite, or missing (NaN) where a metric is not defined.")
    return errors


def _weights(weights: ArrayLike | None, errors: Array) -> Array:
    """A weight for each model and series, 0 where there is no value."""
    given = np.ones(errors.shape[1]) if weights is None else numbers("weights", weights)
    if given.shape not in (errors.shape, errors.shape[1:]) or not np.isfinite(given).all() or (given < 0).any():
        raise ParameterError(
            f"weights are finite and not negative, one a series or one a model and series; got shape {given.shape} for values "
            f"of shape {errors.shape}."
        )
    share = np.where(np.isnan(errors), 0.0, given)
    return share / max(float(share.max()), np.finfo(np.float64).tiny)


def _resampled(away: Array, share: Array, n_resamples: int, seed: int) -> Array:
    """Weighted means of `away` in each resample, shape (resamples, models)."""
    random = np.random.default_rng(seed)
    units = _units(random, np.concatenate([away * share, share]))
    sums = np.empty((n_resamples, units.shape[1]))
    step = max(1, BLOCK // len(units))
    for start in range(0, n_resamples, step):
        drawn = random.multinomial(len(units), np.full(len(units), 1 / len(units)), size=min(step, n_resamples - start))
        with limit_threads(1):  # BLAS shares a product among its threads, and the last bit with them
            sums[start : start + step] = drawn @ units
    above, below = np.split(sums, 2, axis=1)
    return np.asarray(np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0))


def _units(random: np.random.Generator, columns: Array) -> Array:
    """What is drawn, shape (units, columns): series, or the sums of as many random groups as are worth drawing.

    Sums of groups vary from group to group as single series do, so drawing groups widens the interval neither more nor less.
    """
    series = columns.shape[1]
    if series <= DRAWN:
        return columns.T
    starts = np.arange(DRAWN) * series // DRAWN
    return np.asarray(np.add.reduceat(columns[:, random.permutation(series)], starts, axis=1).T)


def _exact(doubled: Integers, above: int) -> float:
    """Share of all patterns of signs whose doubled ranks above zero sum up as far from the middle as `above`, or further."""
    ways = np.zeros(int(doubled.sum()) + 1)
    ways[0] = 1.0
    for rank in doubled.tolist():
        ways[rank:] = ways[rank:] + ways[:-rank]
    tail = min(above, len(ways) - 1 - above)
    return min(1.0, 2 * float(ways[: tail + 1].sum()) / 2.0 ** len(doubled))
