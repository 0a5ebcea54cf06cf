"""How sure a ranking of models is: bootstrap intervals over series, ranks, and tests of every pair. Arrays in, arrays out.

`values` is always shaped (models, series), one number a model and series, less being better (`Metric.distance` makes it so).
Series are what is resampled and compared: the errors of one series at several steps and cutoffs hang together, so a metric
is put together by series first (`score(..., by="series")`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepforecast.errors import ParameterError, shown
from deepforecast.evaluation.inputs import numbers

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
DRAWN = 2_000  # series up to which they are drawn with replacement one by one
BLOCK = 1_000_000  # weights made at a time: few enough to stay in the cache
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
    >>> found.mean, found.low[1], found.high[1]
    (array([2.5, 2. ]), np.float64(2.0), np.float64(2.0))
    """
    errors = _table(values)
    if not 0 < level < 100:
        raise ParameterError(f"level is a number in (0, 100), for example 95; got {shown(level)}.")
    if n_resamples < 1:
        raise ParameterError(f"n_resamples is at least 1; got {shown(n_resamples)}.")
    share = _weights(weights, errors)
    total = share.sum(axis=1)
    mean = np.divide((share * np.nan_to_num(errors)).sum(axis=1), total, out=np.full(len(errors), np.nan), where=total > 0)
    away = np.where(np.isnan(errors), 0.0, errors - mean[:, None])  # small numbers: resampled in single precision
    spread = np.abs(away).max(axis=1, initial=0.0)
    used = (share > 0).sum(axis=1)
    moved = _resampled(away / np.where(spread > 0, spread, 1.0)[:, None], share, n_resamples, seed) * spread
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
    >>> found.wins[0, 1], found.p_value[0, 1]
    (np.float64(1.0), np.float64(0.03125))
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
    models, series = away.shape
    random = np.random.Generator(np.random.SFC64(seed))
    columns = np.concatenate([away * share, share]).T.astype(np.float32)
    sums = np.zeros((n_resamples, 2 * models))
    if series <= DRAWN:
        step = max(1, BLOCK // series)
        for start in range(0, n_resamples, step):
            count = min(step, n_resamples - start)
            sums[start : start + count] = _drawn(random, count, series) @ columns
    else:
        step = max(1, BLOCK // n_resamples)
        for start in range(0, series, step):
            part = columns[start : start + step]
            sums += _poisson_like(random, n_resamples, len(part)) @ part
    above, below = sums[:, :models], sums[:, models:]
    return np.asarray(np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0))


def _drawn(random: np.random.Generator, n_resamples: int, series: int) -> NDArray[np.float32]:
    """How often each series is drawn when as many as there are are drawn with replacement."""
    drawn = random.integers(series, size=(n_resamples, series)) + np.arange(n_resamples)[:, None] * series
    return np.bincount(drawn.reshape(-1), minlength=n_resamples * series).reshape(n_resamples, series).astype(np.float32)


def _poisson_like(random: np.random.Generator, n_resamples: int, series: int) -> NDArray[np.float32]:
    """Weights of mean 1 and variance 1, a series independent of the others: drawing for many series at the cost of three bits.

    Drawn counts are nearly independent Poisson(1) numbers where there are many series. The mean, variance and nearly the third
    moment of those, which decide the interval, belong as well to 2 (b1 and b2) + b3, with b a random bit.
    """
    words: Any = random.bit_generator.random_raw(-(-n_resamples * series // 8))
    bits = words.view(np.uint8)[: n_resamples * series]
    count = bits & (bits >> 1) & 1
    count <<= 1
    count += (bits >> 2) & 1
    weights: NDArray[np.float32] = count.reshape(n_resamples, series).astype(np.float32)
    return weights


def _exact(doubled: Integers, above: int) -> float:
    """Share of all patterns of signs whose doubled ranks above zero sum up as far from the middle as `above`, or further."""
    ways = np.zeros(int(doubled.sum()) + 1)
    ways[0] = 1.0
    for rank in doubled.tolist():
        ways[rank:] = ways[rank:] + ways[:-rank]
    tail = min(above, len(ways) - 1 - above)
    return min(1.0, 2 * float(ways[: tail + 1].sum()) / 2.0 ** len(doubled))
