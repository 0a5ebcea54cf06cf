"""Metrics of quantiles, samples and intervals.

Shapes, missing values and errors are as in deepforecast.evaluation.point; forecasts of quantiles
and samples have one more axis, the first one, over quantiles or samples. An interval whose `lo` is
above its `hi` raises `DataError`.

Gneiting, Raftery (2007), Strictly Proper Scoring Rules, Prediction, and Estimation.
doi:10.1198/016214506000001437.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepforecast.evaluation.metric_classes import PointMetric
from deepforecast.evaluation.metric_inputs import to_float64
from deepforecast.evaluation.scale import nan_where_zero

Array = NDArray[np.float64]
BLOCK_SIZE = 4_000_000  # sample values sorted at a time, to limit memory


def pinball(actual: ArrayLike, quantile_forecast: ArrayLike, q: float) -> Any:
    """Mean pinball (quantile) loss at `q`; minimized by the q-quantile. At 0.5 it is half the MAE.

    Parameters
    ----------
    actual : array-like
        Actual values; NaN where missing. The last axis is time.
    quantile_forecast : array-like
        Forecast of the q-quantile, with the shape of `actual`.
    q : float
        Probability between 0 and 1.

    Returns
    -------
    float or array
        One number, or an array over the leading axes.

    Examples
    --------
    >>> pinball([10.0, 20.0], [12.0, 19.0], q=0.9)
    0.55
    """
    forecast = to_float64("quantile_forecast", quantile_forecast)
    return PINBALL(actual, quantile_forecast=forecast[np.newaxis], quantiles=np.reshape(q, -1))


def weighted_quantile_loss(actual: ArrayLike, quantile_forecast: ArrayLike, quantiles: ArrayLike) -> Any:
    """Weighted quantile loss (wQL): twice the summed pinball loss over the summed absolute actual
    values, as a fraction.

    It is minimized by the quantiles and averaged over them; with the median alone it is WAPE.
    GluonTS calls it mean_weighted_sum_quantile_loss; most benchmarks that report "CRPS" from
    quantiles mean this.

    Parameters
    ----------
    actual : array-like
        Actual values; NaN where missing. The last axis is time.
    quantile_forecast : array-like
        Forecast quantiles; the first axis is over `quantiles`.
    quantiles : array-like
        Increasing probabilities between 0 and 1.

    Returns
    -------
    float or array
        One number, or an array over the leading axes.

    Examples
    --------
    >>> weighted_quantile_loss([10.0, 30.0], [[8.0, 25.0], [12.0, 32.0]], quantiles=[0.25, 0.75])
    0.06875
    """
    return WEIGHTED_QUANTILE_LOSS(actual, quantile_forecast=quantile_forecast, quantiles=quantiles)


def crps_from_quantiles(actual: ArrayLike, quantile_forecast: ArrayLike, quantiles: ArrayLike) -> Any:
    """Continuous ranked probability score of the distribution given by quantiles, in units of the
    target.

    Minimized by the true distribution. Exact for the quantile function that is linear between
    quantiles and constant outside them. Equal quantiles give the absolute error. Deciles of a
    normal distribution give its CRPS within 1 % (twice the mean pinball loss is 9 % above it). The
    quantiles need not be evenly spaced; crossing quantiles are sorted first.

    Parameters
    ----------
    actual : array-like
        Actual values; NaN where missing. The last axis is time.
    quantile_forecast : array-like
        Forecast quantiles; the first axis is over `quantiles`.
    quantiles : array-like
        Increasing probabilities between 0 and 1.

    Returns
    -------
    float or array
        One number, or an array over the leading axes.

    Examples
    --------
    >>> crps_from_quantiles([10.0], [[8.0], [10.0], [12.0]], quantiles=[0.25, 0.5, 0.75])
    0.5833333333333333
    """
    return CRPS_FROM_QUANTILES(actual, quantile_forecast=quantile_forecast, quantiles=quantiles)


def crps_from_samples(actual: ArrayLike, samples: ArrayLike) -> Any:
    """CRPS of the empirical distribution of samples, E|X - y| - E|X - X'| / 2, in units of the
    target.

    Minimized by the true distribution. Exact, by sorting. It is biased upwards for few samples, so
    models should be compared with the same number of samples.

    Parameters
    ----------
    actual : array-like
        Actual values; NaN where missing. The last axis is time.
    samples : array-like
        Sample paths; the first axis is over samples.

    Returns
    -------
    float or array
        One number, or an array over the leading axes.

    Examples
    --------
    >>> crps_from_samples([10.0], [[8.0], [12.0]])
    1.0
    """
    return CRPS_FROM_SAMPLES(actual, samples=samples)


def coverage(actual: ArrayLike, lo: ArrayLike, hi: ArrayLike) -> Any:
    """Share of the actual values inside the interval, bounds included; best at the level.

    Parameters
    ----------
    actual : array-like
        Actual values; NaN where missing. The last axis is time.
    lo : array-like
        Lower bounds of the intervals.
    hi : array-like
        Upper bounds of the intervals.

    Returns
    -------
    float or array
        One number, or an array over the leading axes.

    Examples
    --------
    >>> coverage([10.0, 20.0], [8.0, 21.0], [10.0, 25.0])
    0.5
    """
    return COVERAGE(actual, lo=lo, hi=hi)


def width(actual: ArrayLike, lo: ArrayLike, hi: ArrayLike) -> Any:
    """Mean width of the interval where there is an actual value; favours narrow intervals
    regardless of coverage.

    Parameters
    ----------
    actual : array-like
        Actual values; NaN where missing. The last axis is time.
    lo : array-like
        Lower bounds of the intervals.
    hi : array-like
        Upper bounds of the intervals.

    Returns
    -------
    float or array
        One number, or an array over the leading axes.

    Examples
    --------
    >>> width([10.0, 20.0], [8.0, 21.0], [10.0, 25.0])
    3.0
    """
    return WIDTH(actual, lo=lo, hi=hi)


def winkler(actual: ArrayLike, lo: ArrayLike, hi: ArrayLike, level: float) -> Any:
    """Winkler (interval) score: width plus 2 / (1 - level / 100) times the distance of actual
    values outside.

    Minimized by the quantiles that bound the central interval. Winkler (1972),
    doi:10.1080/01621459.1972.10481224.

    Parameters
    ----------
    actual : array-like
        Actual values; NaN where missing. The last axis is time.
    lo : array-like
        Lower bounds of the intervals.
    hi : array-like
        Upper bounds of the intervals.
    level : float
        Nominal coverage of the intervals in percent.

    Returns
    -------
    float or array
        One number, or an array over the leading axes.

    Examples
    --------
    >>> winkler([10.0, 20.0], [8.0, 21.0], [10.0, 25.0], level=80)
    8.0
    """
    return WINKLER(actual, lo=lo, hi=hi, level=level)


def msis(actual: ArrayLike, lo: ArrayLike, hi: ArrayLike, scale: ArrayLike, level: float = 95) -> Any:
    """Mean scaled interval score of the M4 competition: the Winkler score over `scale`
    (`seasonal_scale`).

    Minimized by the quantiles that bound the central interval; all series weigh the same. NaN where
    the scale is zero or NaN.

    Parameters
    ----------
    actual : array-like
        Actual values; NaN where missing. The last axis is time.
    lo : array-like
        Lower bounds of the intervals.
    hi : array-like
        Upper bounds of the intervals.
    scale : array-like
        Seasonal naive error of each forecast, see `seasonal_scale`.
    level : float, default 95
        Nominal coverage of the intervals in percent.

    Returns
    -------
    float or array
        One number, or an array over the leading axes.

    Examples
    --------
    >>> msis([10.0, 20.0], [8.0, 21.0], [10.0, 25.0], scale=2.0, level=80)
    4.0
    """
    return MSIS(actual, lo=lo, hi=hi, scale=scale, level=level)


def _pinball(actual: Array, quantile_forecast: Array, quantiles: Array) -> Array:
    """Pinball loss max(q (y - Q), (q - 1) (y - Q)) of each point, averaged over the quantiles."""
    total = np.zeros(quantile_forecast.shape[1:])
    for q, forecast in zip(quantiles.tolist(), quantile_forecast, strict=True):
        error = actual - forecast
        above = q * error
        error *= q - 1
        total += np.maximum(above, error, out=above)
    total /= len(quantiles)
    return total


def _doubled_pinball(actual: Array, quantile_forecast: Array, quantiles: Array) -> Array:
    loss = _pinball(actual, quantile_forecast, quantiles)
    loss *= 2
    return loss


def _crps_quantiles(actual: Array, quantile_forecast: Array, quantiles: Array) -> Array:
    """Twice the integral over q of the pinball loss of the piecewise linear quantile function Q at
    each point, constant outside the quantiles.

    Over a cell [a, b] of quantiles, pinball = q (y - Q) + max(Q - y, 0). The first term is a
    polynomial in q; the second integrates to (b - a) (u + v) (v - u) / (2 (Q(b) - Q(a))), with u =
    max(Q(a) - y, 0) and v = max(Q(b) - y, 0). In the code `below` and `above` are Q(a) - y and Q(b) - y,
    `excess_below` and `excess_above` are u and v, and `positive_share` is (v - u) / (Q(b) - Q(a)): the
    share of the cell in which Q is above y.
    """
    if (quantile_forecast[1:] < quantile_forecast[:-1]).any():
        quantile_forecast = np.sort(quantile_forecast, axis=0)
    lower_tail = quantiles[0]  # probability below the first quantile
    upper_tail = 1 - quantiles[-1]
    below = quantile_forecast[0] - actual  # Q - y at the left end of the cell, and in the constant lower tail
    excess_below = np.maximum(below, 0.0)
    total = lower_tail * excess_below - lower_tail**2 / 2 * below
    for a, b, forecast in zip(quantiles[:-1].tolist(), quantiles[1:].tolist(), quantile_forecast[1:], strict=True):
        above = forecast - actual
        excess_above = np.maximum(above, 0.0)
        rise = above - below
        positive_share = np.divide(excess_above - excess_below, rise, out=(above > 0).astype(np.float64), where=rise > 0)
        total += (
            (b - a) / 2 * ((excess_above + excess_below) * positive_share - (2 * a + b) / 3 * below - (a + 2 * b) / 3 * above)
        )
        below = above  # the right end is the left end of the next cell
        excess_below = excess_above
    total += upper_tail * (excess_below - (1 + quantiles[-1]) / 2 * below)
    # rounding may leave values below zero; NaN for a missing actual value is kept
    return np.asarray(np.maximum(2 * total, 0.0))


def _crps_samples(actual: Array, samples: Array) -> Array:
    """CRPS of each point from n samples: with sorted differences d_(i) = x_(i) - y, the mean of |d_(i)|
    minus sum_i (2 i - n - 1) d_(i) / n^2, which is E|X - X'| / 2 (Gini mean difference)."""
    n_samples = len(samples)
    crps = np.empty(samples.shape[1:])
    rank_weights = (2 * np.arange(1, n_samples + 1) - n_samples - 1) / n_samples**2
    n_block_points = max(1, BLOCK_SIZE // (samples.size // samples.shape[-1]))
    for start in range(0, samples.shape[-1], n_block_points):
        block = slice(start, start + n_block_points)
        # differences from the actual value rather than samples, to avoid cancellation
        ordered = samples[..., block] - actual[block]
        ordered.sort(axis=0)
        crps[..., block] = np.abs(ordered).mean(axis=0) - np.tensordot(rank_weights, ordered, axes=1)
    return np.maximum(crps, 0.0)


def _inside(actual: Array, lo: Array, hi: Array) -> Array:
    return np.where(np.isnan(actual), np.nan, (lo <= actual) & (actual <= hi))


def _width(actual: Array, lo: Array, hi: Array) -> Array:
    return np.where(np.isnan(actual), np.nan, hi - lo)


def _winkler(actual: Array, lo: Array, hi: Array, level: Array) -> Array:
    """hi - lo + 2 / alpha (distance of y outside [lo, hi]) with alpha = 1 - level / 100, at each point."""
    outside = np.maximum(lo - actual, actual - hi)
    np.maximum(outside, 0.0, out=outside)
    outside *= 200 / (100 - level)
    outside += hi - lo
    return outside


def _scaled_winkler(actual: Array, lo: Array, hi: Array, level: Array, scale: Array) -> Array:
    score = _winkler(actual, lo, hi, level)
    score /= nan_where_zero(scale)
    return score


_QUANTILES = ("quantile_forecast", "quantiles")

PINBALL = PointMetric("pinball", rewards="The requested quantiles.", needs=_QUANTILES, errors=_pinball)
WEIGHTED_QUANTILE_LOSS = PointMetric(
    "weighted_quantile_loss",
    rewards="The requested quantiles, weighted by the size of the series.",
    needs=_QUANTILES,
    unit="fraction",
    errors=_doubled_pinball,
    weights=np.abs,
)
CRPS_FROM_QUANTILES = PointMetric(
    "crps_from_quantiles", rewards="The whole distribution.", needs=_QUANTILES, errors=_crps_quantiles
)
CRPS_FROM_SAMPLES = PointMetric(
    "crps_from_samples", rewards="The whole distribution.", needs=("samples",), errors=_crps_samples
)
COVERAGE = PointMetric(
    "coverage",
    rewards="Intervals whose coverage equals their level.",
    needs=("lo", "hi"),
    unit="fraction",
    errors=_inside,
    better="level",
)
WIDTH = PointMetric("width", rewards="Narrow intervals, regardless of their coverage.", needs=("lo", "hi"), errors=_width)
WINKLER = PointMetric(
    "winkler", rewards="Narrow intervals with the right coverage.", needs=("lo", "hi", "level"), errors=_winkler
)
MSIS = PointMetric(
    "msis",
    rewards="Narrow intervals with the right coverage; all series weigh the same.",
    needs=("lo", "hi", "level", "scale"),
    unit="seasonal naive errors",
    errors=_scaled_winkler,
    counts="forecasts",
)
