"""Prediction intervals that account for estimated parameters.

With k parameters estimated from n values the error variance is estimated with n - k degrees of
freedom, and the variance of a forecast error is 1 + k / n times as large (final prediction error,
Akaike 1969, *Annals of the Institute of Statistical Mathematics* 21). In units of the estimated
deviation it follows Student's t with n - k degrees of freedom. For linear regression both are exact
on average over the rows.

Residuals also show whether errors grow with the forecast (`proportional_spread`) and whether they
are autocorrelated (`residual_correlation`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deepforecast.core.forecast import Forecast
from deepforecast.data.frames import Floats, Ints


@dataclass(frozen=True)
class StudentForecast(Forecast):
    """Student's t with `freedom` degrees of freedom per series; infinite: normal."""

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
    """`inner` with the distances of quantiles from the median times `factor`, (series,)."""

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


def degrees_and_factor(count: Floats, parameters: Floats, noise_floor: Floats) -> tuple[Floats, Floats]:
    """Degrees of freedom and the factor of deviations, sqrt(1 + k / n), of a fit to `count` values.

    Infinite and 1 for series with a perfect fit (`noise_floor` is not NaN).
    """
    estimated = np.isnan(noise_floor)
    degrees_of_freedom = np.where(estimated, np.maximum(count - parameters, 1.0), np.inf)
    return degrees_of_freedom, np.where(estimated, np.sqrt(1.0 + parameters / np.maximum(count, 1.0)), 1.0)


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
    """Factors (series, paths) that turn normal paths into Student's t, one normal draw per path."""
    if np.isinf(degrees_of_freedom).all():
        return np.ones(draws.shape)
    from scipy.special import chdtri, ndtr

    usable = np.where(np.isinf(degrees_of_freedom), 1.0, degrees_of_freedom)[:, None]
    return np.where(np.isinf(degrees_of_freedom)[:, None], 1.0, np.sqrt(usable / chdtri(usable, ndtr(-draws))))


def proportional_spread(errors: Floats, sizes: Floats, indptr: Ints, last: int) -> Floats:
    """Factor of the error deviation at the end of each series for errors proportional to `sizes`.

    1 if a constant variance has the higher likelihood. With sizes relative to their geometric mean,
    proportional errors have the higher one if the mean square of errors / sizes is smaller than
    that of the errors. `last`: number of rows at the end over which sizes are averaged.
    """
    is_observed = ~(np.isnan(errors) | np.isnan(sizes))
    count = np.maximum(_sums(is_observed.astype(np.float64), indptr), 1.0)
    usable = _sums((is_observed & ~(sizes > 0.0)).astype(np.float64), indptr) == 0.0
    rows, lengths = np.where(is_observed & (sizes > 0.0), sizes, 1.0), np.diff(indptr)
    logs = np.where(is_observed, np.log(rows), 0.0)
    relative = np.exp(logs - np.repeat(_sums(logs, indptr) / count, lengths))
    residuals = np.where(is_observed, errors, 0.0)
    largest = np.maximum.reduceat(np.abs(residuals), indptr[:-1])
    residuals = residuals / np.repeat(np.where(largest > 0.0, largest, 1.0), lengths)
    constant, moving = _sums(residuals * residuals, indptr), _sums((residuals / relative) ** 2, indptr)
    rows_to_end = np.repeat(indptr[1:], lengths) - np.arange(len(errors))
    is_recent = is_observed & (rows_to_end <= last)
    end = _sums(np.where(is_recent, relative, 0.0), indptr) / np.maximum(_sums(is_recent.astype(np.float64), indptr), 1.0)
    is_proportional = usable & (moving < constant) & (end > 0.0)
    return np.where(is_proportional, end * np.sqrt(moving / np.where(constant > 0.0, constant, 1.0)), 1.0)


def residual_correlation(errors: Floats, indptr: Ints) -> Floats:
    """First autocorrelation of the one-step errors if it exceeds 1.96 / sqrt(n), else 0.

    Errors of a model that lags behind its series are positively correlated and accumulate ahead.
    """
    largest = np.maximum.reduceat(np.where(np.isnan(errors), 0.0, np.abs(errors)), indptr[:-1])
    scaled = errors / np.repeat(np.where(largest > 0.0, largest, 1.0), np.diff(indptr))
    previous = np.concatenate([[np.nan], scaled[:-1]])
    previous[indptr[:-1]] = np.nan
    is_pair = ~(np.isnan(scaled) | np.isnan(previous))
    products = _sums(np.where(is_pair, scaled * previous, 0.0), indptr)
    squares = _sums(np.where(np.isnan(scaled), 0.0, scaled * scaled), indptr)
    autocorrelation = products / np.where(squares > 0.0, squares, 1.0)
    count = _sums(is_pair.astype(np.float64), indptr)
    return np.where(autocorrelation > 1.96 / np.sqrt(np.maximum(count, 1.0)), autocorrelation, 0.0)


def correlated_variances(responses: Floats, correlation: Floats) -> Floats:
    """Forecast variances of the steps ahead for errors of variance 1 and correlation^k at lag k.

    `responses`: impulse responses (series, steps).
    """
    step_variances, total, with_older = np.empty(responses.shape), np.zeros(len(responses)), np.zeros(len(responses))
    with np.errstate(over="ignore", invalid="ignore"):
        for step, response in enumerate(responses.T):
            total = total + response * response + 2.0 * response * with_older
            with_older = correlation * (with_older + response)
            step_variances[:, step] = total
    return step_variances


def correlate_draws(draws: Floats, correlation: Floats) -> Floats:
    """Turn normal draws (series, paths, rows) into AR(1) processes of variance 1, in place."""
    innovation_scale = np.sqrt(1.0 - correlation**2)[:, None]
    for row in range(1, draws.shape[2] if correlation.any() else 0):
        draws[:, :, row] = correlation[:, None] * draws[:, :, row - 1] + innovation_scale * draws[:, :, row]
    return draws


def _sums(values: Floats, indptr: Ints) -> Floats:
    return np.asarray(np.add.reduceat(values, indptr[:-1]))
