"""Prediction intervals that account for estimated parameters.

With k parameters estimated from n values the error variance is estimated with n - k degrees of
freedom, and the variance of a forecast error is 1 + k / n times as large (final prediction error,
Akaike 1969, *Annals of the Institute of Statistical Mathematics* 21). In units of the estimated
deviation it follows Student's t with n - k degrees of freedom. For linear regression both are exact
on average over the rows.

Intervals are also widened if residuals grow with the fitted values (`proportional_spread`) or are
autocorrelated (`residual_correlation`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deepforecast.core.forecast import Forecast
from deepforecast.data.frames import Floats, Ints


@dataclass(frozen=True)
class StudentForecast(Forecast):
    """Student's t distributions with these means and scales, (series, steps); a normal one if `freedom` is infinite.

    `freedom`: degrees of freedom of each series.
    """

    mean: Floats
    deviation: Floats
    freedom: Floats

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Quantiles at any probabilities, (series, steps, probabilities)."""
        units = student_quantiles(probabilities, self.freedom)[:, None, :]
        with np.errstate(over="ignore", invalid="ignore"):  # `predict` refuses values that are not finite
            # The median is defined without a deviation.
            distances = np.where(units == 0, 0.0, self.deviation[..., None] * units)
            return np.asarray(self.mean[..., None] + distances)

    def skip_steps(self, steps: int) -> StudentForecast:
        """The forecast without its first steps."""
        return StudentForecast(self.mean[:, steps:], self.deviation[:, steps:], self.freedom)


@dataclass(frozen=True)
class WidenedForecast(Forecast):
    """The forecast `inner` with the distance of each quantile from the median multiplied by `factor`, (series,)."""

    inner: Forecast
    factor: Floats

    @property
    def mean(self) -> Floats:  # type: ignore[override]
        """Mean of the inner forecast."""
        return self.inner.mean

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Quantiles of the inner forecast, scaled around its median."""
        inner_quantiles = self.inner.quantiles([*probabilities, 0.5])
        median, inner_quantiles = inner_quantiles[..., -1:], inner_quantiles[..., :-1]
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(median + (inner_quantiles - median) * self.factor[:, None, None])

    def skip_steps(self, steps: int) -> WidenedForecast:
        """The forecast without its first steps."""
        return WidenedForecast(self.inner.skip_steps(steps), self.factor)


def degrees_and_factor(n_observed: Floats, n_parameters: Floats, noise_floor: Floats) -> tuple[Floats, Floats]:
    """Degrees of freedom, n - k but at least 1, and the factor sqrt(1 + k / n) of forecast standard deviations.

    n values were fitted with k parameters. Series with a perfect fit (`noise_floor` is not NaN) have infinite degrees
    of freedom and the factor 1.
    """
    is_estimated = np.isnan(noise_floor)
    degrees_of_freedom = np.where(is_estimated, np.maximum(n_observed - n_parameters, 1.0), np.inf)
    return degrees_of_freedom, np.where(is_estimated, np.sqrt(1.0 + n_parameters / np.maximum(n_observed, 1.0)), 1.0)


def student_quantiles(probabilities: Sequence[float], degrees_of_freedom: Floats) -> Floats:
    """Quantiles of Student's t, (series, probabilities); exactly symmetric.

    >>> student_quantiles([0.025, 0.5, 0.975], np.array([5.0, np.inf])).round(3)
    array([[-2.571,  0.   ,  2.571],
           [-1.96 ,  0.   ,  1.96 ]])
    """
    from scipy.special import stdtrit

    quantiles = np.zeros((len(degrees_of_freedom), len(probabilities)))
    for position, probability in enumerate(probabilities):
        if probability != 0.5:
            tail = stdtrit(degrees_of_freedom, min(probability, 1.0 - probability))
            quantiles[:, position] = tail if probability < 0.5 else -tail
    return quantiles


def student_mixing(draws: Floats, degrees_of_freedom: Floats) -> Floats:
    """Factors (series, paths) by which normal paths become Student's t; `draws`: one normal draw per path.

    sqrt(nu / chi2), where chi2 is the quantile of the chi-square distribution at the probability of the draw.
    """
    if np.isinf(degrees_of_freedom).all():
        return np.ones(draws.shape)
    from scipy.special import chdtri, ndtr

    usable = np.where(np.isinf(degrees_of_freedom), 1.0, degrees_of_freedom)[:, None]
    return np.where(np.isinf(degrees_of_freedom)[:, None], 1.0, np.sqrt(usable / chdtri(usable, ndtr(-draws))))


def proportional_spread(errors: Floats, sizes: Floats, indptr: Ints, n_recent: int) -> Floats:
    """Standard deviation of the errors at the end of each series relative to that of all rows.

    Not 1 only if errors proportional to `sizes` (the fitted values) have a higher likelihood than a
    constant variance: with sizes relative to their geometric mean, if the mean square of
    errors / sizes is smaller than that of the errors. Sizes are averaged over the last `n_recent` rows.
    """
    is_observed = ~(np.isnan(errors) | np.isnan(sizes))
    n_observed = np.maximum(_sums(is_observed.astype(np.float64), indptr), 1.0)
    has_positive_sizes = _sums((is_observed & ~(sizes > 0.0)).astype(np.float64), indptr) == 0.0
    positive_sizes, lengths = np.where(is_observed & (sizes > 0.0), sizes, 1.0), np.diff(indptr)
    logs = np.where(is_observed, np.log(positive_sizes), 0.0)
    relative = np.exp(logs - np.repeat(_sums(logs, indptr) / n_observed, lengths))  # to the geometric mean
    residuals = np.where(is_observed, errors, 0.0)
    largest = np.maximum.reduceat(np.abs(residuals), indptr[:-1])
    residuals = residuals / np.repeat(np.where(largest > 0.0, largest, 1.0), lengths)
    constant = _sums(residuals * residuals, indptr)
    proportional = _sums((residuals / relative) ** 2, indptr)
    rows_to_end = np.repeat(indptr[1:], lengths) - np.arange(len(errors))
    is_recent = is_observed & (rows_to_end <= n_recent)
    n_recent_observed = np.maximum(_sums(is_recent.astype(np.float64), indptr), 1.0)
    recent_size = _sums(np.where(is_recent, relative, 0.0), indptr) / n_recent_observed
    is_proportional = has_positive_sizes & (proportional < constant) & (recent_size > 0.0)
    return np.where(is_proportional, recent_size * np.sqrt(proportional / np.where(constant > 0.0, constant, 1.0)), 1.0)


def residual_correlation(errors: Floats, indptr: Ints) -> Floats:
    """First autocorrelation of the one-step errors of each series if it exceeds 1.96 / sqrt(n), else 0.

    Errors of a model that lags behind its series are positively correlated and accumulate over the forecast steps.
    """
    largest = np.maximum.reduceat(np.where(np.isnan(errors), 0.0, np.abs(errors)), indptr[:-1])
    scaled = errors / np.repeat(np.where(largest > 0.0, largest, 1.0), np.diff(indptr))
    previous = np.concatenate([[np.nan], scaled[:-1]])
    previous[indptr[:-1]] = np.nan
    is_pair = ~(np.isnan(scaled) | np.isnan(previous))
    products = _sums(np.where(is_pair, scaled * previous, 0.0), indptr)
    squares = _sums(np.where(np.isnan(scaled), 0.0, scaled * scaled), indptr)
    autocorrelation = products / np.where(squares > 0.0, squares, 1.0)
    n_pairs = _sums(is_pair.astype(np.float64), indptr)
    return np.where(autocorrelation > 1.96 / np.sqrt(np.maximum(n_pairs, 1.0)), autocorrelation, 0.0)


def correlated_variances(responses: Floats, correlation: Floats) -> Floats:
    """Forecast variance at each step, (series, steps), of errors with variance 1 and AR(1) correlation^k at lag k.

    `responses`: impulse responses c_j (series, steps). The variance at step h is
    sum_j c_j^2 + 2 sum_{i<j} c_i c_j correlation^(j-i), both over the first h responses.
    """
    step_variances = np.empty(responses.shape)
    variance = np.zeros(len(responses))
    covariance = np.zeros(len(responses))  # of the next error with the sum of the previous ones
    with np.errstate(over="ignore", invalid="ignore"):
        for step, response in enumerate(responses.T):
            variance = variance + response * response + 2.0 * response * covariance
            covariance = correlation * (covariance + response)
            step_variances[:, step] = variance
    return step_variances


def correlate_draws(draws: Floats, correlation: Floats) -> Floats:
    """Turn normal draws (series, paths, rows) into AR(1) processes of variance 1, in place."""
    innovation_scale = np.sqrt(1.0 - correlation**2)[:, None]
    for row in range(1, draws.shape[2] if correlation.any() else 0):
        draws[:, :, row] = correlation[:, None] * draws[:, :, row - 1] + innovation_scale * draws[:, :, row]
    return draws


def _sums(values: Floats, indptr: Ints) -> Floats:
    return np.asarray(np.add.reduceat(values, indptr[:-1]))
