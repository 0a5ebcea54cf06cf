"""Bootstrap intervals over series, ranks and pairwise significance tests.

`values` has shape (models, series), lower being better (see `Metric.distance`). The sampling unit
is the series: errors of one series at several steps and cutoffs are correlated, so metrics are
aggregated by series first (`score(..., by="series")`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepforecast.core.threads import limit_threads
from deepforecast.errors import ParameterError, format_value
from deepforecast.evaluation.metric_inputs import to_float64

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
MAX_UNITS = 2_000  # resampling units: series or, if there are more, groups of series
BLOCK_SIZE = 1_000_000  # counts per block, to limit memory
MAX_EXACT_DIFFERENCES = 50  # number of differences up to which the signed-rank test is exact


@dataclass(frozen=True, eq=False)
class Interval:
    """Means over series with bootstrap intervals and numbers of series, one per model."""

    mean: Array
    low: Array
    high: Array
    n_series: Integers


@dataclass(frozen=True, eq=False)
class PairwiseTests:
    """Tests of all pairs of models, arrays of shape (models, models) with NaN on the diagonal.

    `wins[a, b]`: share of series in which a is better than b, ties counting half. `p_value`:
    Wilcoxon signed-rank test of equal performance. `corrected`: with Holm's correction for the
    number of pairs. `n_series`: series with values of both.
    """

    wins: Array
    p_value: Array
    corrected: Array
    n_series: Integers


def mean_interval(
    values: ArrayLike, *, weights: ArrayLike | None = None, level: float = 95, n_resamples: int = 1000, seed: int = 0
) -> Interval:
    """Compute means over series with percentile bootstrap intervals, from the same resamples for
    all models.

    Parameters
    ----------
    values : array-like of shape (models, series)
        Scores; series with NaN are left out for that model.
    weights : array-like of shape (series,) or (models, series), optional
        Weights of the mean, e.g. summed actual values to turn WAPE by series into that of the
        panel.
    level : float, default 95
        Confidence level in percent.
    n_resamples : int, default 1000
        Number of bootstrap resamples.
    seed : int, default 0
        Random seed.

    Returns
    -------
    Interval
        The bounds are NaN for models with fewer than two series.

    Examples
    --------
    >>> interval = mean_interval([[1.0, 2.0, 3.0, 4.0], [2.0, 2.0, 2.0, 2.0]])
    >>> interval.mean.tolist(), float(interval.low[1]), float(interval.high[1])
    ([2.5, 2.0], 2.0, 2.0)
    """
    errors = _check_values(values)
    if not 0 < level < 100:
        raise ParameterError(
            f"`level` must be above 0 and below 100, got {format_value(level)}.", parameter="level", value=level
        )
    if n_resamples < 1:
        raise ParameterError(
            f"`n_resamples` must be at least 1, got {format_value(n_resamples)}.",
            parameter="n_resamples",
            value=n_resamples,
        )
    scaled_weights = _check_weights(weights, errors)
    total_weight = scaled_weights.sum(axis=1)
    mean = np.divide(
        (scaled_weights * np.nan_to_num(errors)).sum(axis=1),
        total_weight,
        out=np.full(len(errors), np.nan),
        where=total_weight > 0,
    )
    deviations = np.where(np.isnan(errors), 0.0, errors - mean[:, None])  # to avoid cancellation
    n_used = (scaled_weights > 0).sum(axis=1)
    resampled = _resample_means(deviations, scaled_weights, n_resamples, seed)
    resampled[:, n_used == 0] = 0.0
    low, high = mean + np.nanquantile(resampled, [(100 - level) / 200, (100 + level) / 200], axis=0)
    has_interval = n_used > 1
    return Interval(mean, np.where(has_interval, low, np.nan), np.where(has_interval, high, np.nan), n_used)


def ranks(values: ArrayLike) -> Array:
    """Rank models within each series.

    Rank 1 is best, ties share the mean rank, and NaN stays NaN.

    Examples
    --------
    >>> ranks([[1.0, 2.0], [1.0, 1.0], [3.0, 5.0]])
    array([[1.5, 2. ],
           [1.5, 1. ],
           [3. , 3. ]])
    """
    errors = _check_values(values)
    rank_matrix = np.empty(errors.shape)
    for index, model_errors in enumerate(errors):
        rank_matrix[index] = (errors < model_errors).sum(axis=0) + ((errors == model_errors).sum(axis=0) + 1) / 2
    return np.where(np.isnan(errors), np.nan, rank_matrix)


def pairwise(values: ArrayLike) -> PairwiseTests:
    """Test all pairs of models for equal performance on the series for which both have a value.

    Wilcoxon signed-rank tests of the differences, corrected by Holm's method.

    Examples
    --------
    >>> tests = pairwise([[1.0, 2.0, 3.0, 1.0, 2.0, 2.5], [1.5, 2.1, 3.2, 1.9, 2.3, 2.9]])
    >>> float(tests.wins[0, 1]), float(tests.p_value[0, 1])
    (1.0, 0.03125)
    """
    errors = _check_values(values)
    n_models = len(errors)
    wins, p_value, corrected = (np.full((n_models, n_models), np.nan) for _ in range(3))
    n_series = np.zeros((n_models, n_models), np.int64)
    row_models, column_models = np.triu_indices(n_models, 1)
    for a, b in zip(row_models.tolist(), column_models.tolist(), strict=True):
        difference = errors[a] - errors[b]
        difference = difference[~np.isnan(difference)]
        n_series[a, b] = n_series[b, a] = len(difference)
        if len(difference):
            wins[a, b] = ((difference < 0).sum() + (difference == 0).sum() / 2) / len(difference)
            wins[b, a] = 1 - wins[a, b]
            p_value[a, b] = p_value[b, a] = signed_rank(difference)
    corrected[row_models, column_models] = corrected[column_models, row_models] = holm(p_value[row_models, column_models])
    return PairwiseTests(wins, p_value, corrected, n_series)


def signed_rank(difference: ArrayLike) -> float:
    """Return the two-sided p-value of the Wilcoxon signed-rank test that `difference` is symmetric
    about zero.

    Zeros are left out and ties share their mean rank. Exact for up to 50 differences, otherwise the
    normal approximation with a variance corrected for ties. 1 without nonzero differences. Wilcoxon
    (1945), doi:10.2307/3001968.

    Examples
    --------
    >>> signed_rank([1.0, 2.0, -3.0, 4.0, 5.0, 6.0])
    0.15625
    """
    differences = to_float64("difference", difference)
    differences = differences[differences != 0]
    if not len(differences):
        return 1.0
    _, rank_index, tie_sizes = np.unique(np.abs(differences), return_inverse=True, return_counts=True)
    doubled_ranks = (2 * np.cumsum(tie_sizes) - tie_sizes + 1)[rank_index]  # twice the rank: an integer for ties too
    if len(differences) <= MAX_EXACT_DIFFERENCES:
        return _exact_p_value(doubled_ranks, int(doubled_ranks[differences > 0].sum()))
    positive_sum = float(doubled_ranks[differences > 0].sum()) / 2
    n_differences = len(differences)
    expected = n_differences * (n_differences + 1) / 4
    variance = (
        n_differences * (n_differences + 1) * (2 * n_differences + 1) / 24
        - float((tie_sizes.astype(np.float64) ** 3 - tie_sizes).sum()) / 48
    )
    return math.erfc(abs(positive_sum - expected) / math.sqrt(2 * variance))


def holm(p_values: ArrayLike) -> Array:
    """Apply Holm's step-down correction, which controls the family-wise error rate (Holm 1979).

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    uncorrected = to_float64("p_values", p_values)
    corrected = np.full(uncorrected.shape, np.nan)
    defined = np.flatnonzero(~np.isnan(uncorrected))
    order = defined[np.argsort(uncorrected[defined], kind="stable")]
    scaled = uncorrected[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1.0) if len(order) else scaled
    return corrected


def _check_values(values: ArrayLike) -> Array:
    """`values` as a non-empty array with two axes; NaN is allowed, infinity is not."""
    errors = to_float64("values", values)
    if errors.ndim != 2 or not errors.size:
        raise ParameterError(
            f"`values` must have shape (models, series) with at least one of each, got {errors.shape}.",
            parameter="values",
            value=values,
        )
    if np.isinf(errors).any():
        raise ParameterError(
            "`values` must be finite or missing (NaN), got infinity.",
            hint="Set undefined scores to NaN.",
            parameter="values",
        )
    return errors


def _check_weights(weights: ArrayLike | None, errors: Array) -> Array:
    """Weights of shape (models, series), 0 for missing values, scaled to a maximum of 1."""
    weight_array = np.ones(errors.shape[1]) if weights is None else to_float64("weights", weights)
    if (
        weight_array.shape not in (errors.shape, errors.shape[1:])
        or not np.isfinite(weight_array).all()
        or (weight_array < 0).any()
    ):
        raise ParameterError(
            "`weights` must be finite, not negative and of shape (series,) or (models, series), got values from "
            f"{weight_array.min(initial=np.inf)} to {weight_array.max(initial=-np.inf)} and shape {weight_array.shape} for "
            f"`values` of shape {errors.shape}.",
            parameter="weights",
        )
    scaled_weights = np.where(np.isnan(errors), 0.0, weight_array)
    return scaled_weights / max(float(scaled_weights.max()), np.finfo(np.float64).tiny)


def _resample_means(deviations: Array, scaled_weights: Array, n_resamples: int, seed: int) -> Array:
    """Weighted means of `deviations` in each resample, shape (resamples, models)."""
    rng = np.random.default_rng(seed)
    units = _resampling_units(rng, np.concatenate([deviations * scaled_weights, scaled_weights]))
    sums = np.empty((n_resamples, units.shape[1]))
    n_block_resamples = max(1, BLOCK_SIZE // len(units))
    for start in range(0, n_resamples, n_block_resamples):
        counts = rng.multinomial(
            len(units), np.full(len(units), 1 / len(units)), size=min(n_block_resamples, n_resamples - start)
        )
        with limit_threads(1):  # the last bit of a BLAS product depends on the number of threads
            sums[start : start + n_block_resamples] = counts @ units
    numerators, denominators = np.split(sums, 2, axis=1)
    return np.asarray(np.divide(numerators, denominators, out=np.full(numerators.shape, np.nan), where=denominators > 0))


def _resampling_units(rng: np.random.Generator, columns: Array) -> Array:
    """Resampling units, shape (units, columns): series or, for many series, sums of random groups.

    The variance of a mean over random groups equals that over series, so the interval does not
    become wider or narrower.
    """
    series = columns.shape[1]
    if series <= MAX_UNITS:
        return columns.T
    starts = np.arange(MAX_UNITS) * series // MAX_UNITS
    return np.asarray(np.add.reduceat(columns[:, rng.permutation(series)], starts, axis=1).T)


def _exact_p_value(doubled_ranks: Integers, positive_sum: int) -> float:
    """Share of sign patterns whose sum of positive doubled ranks is at least as far from its mean
    as `positive_sum`.

    `n_patterns[s]`, the number of sign patterns with sum s, is computed by dynamic programming, one rank
    at a time. It is symmetric about its mean, so the smaller tail is counted and doubled.
    """
    n_patterns = np.zeros(int(doubled_ranks.sum()) + 1)
    n_patterns[0] = 1.0
    for rank in doubled_ranks.tolist():
        n_patterns[rank:] = n_patterns[rank:] + n_patterns[:-rank]
    tail = min(positive_sum, len(n_patterns) - 1 - positive_sum)
    return min(1.0, 2 * float(n_patterns[: tail + 1].sum()) / 2.0 ** len(doubled_ranks))
