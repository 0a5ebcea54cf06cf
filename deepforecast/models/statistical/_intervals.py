"""Bands of forecasts whose parameters were estimated from few values.

With k numbers estimated from n values the mean square that n - k degrees of freedom give is that of the errors, and the
error of a forecast has 1 + k / n times as much: what the estimates miss comes on top (Akaike 1969, *Annals of the Institute of
Statistical Mathematics* 21: final prediction error). Its distance in units of the estimated deviation follows Student's t with
n - k degrees of freedom. Both are exact, on average over the rows, where the model is a regression.

Where a model says nothing of it, what it left over tells whether errors grow with what is forecast (`proportional_spread`) and
whether they follow each other (`residual_correlation`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deepforecast.core.forecast import Forecast
from deepforecast.data.frames import Floats, Ints


@dataclass(frozen=True)
class StudentForecast(Forecast):
    """Student's t at every step, with `freedom` degrees of each series; infinitely many: normal."""

    mean: Floats
    deviation: Floats
    freedom: Floats

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Any probability."""
        units = student_quantiles(probabilities, self.freedom)[:, None, :]
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused by name on its way out
            distances = np.where(units == 0, 0.0, self.deviation[..., None] * units)  # the median needs no deviation to be known
            return np.asarray(self.mean[..., None] + distances)

    def skip_steps(self, steps: int) -> StudentForecast:
        """The same without its first steps."""
        return StudentForecast(self.mean[:, steps:], self.deviation[:, steps:], self.freedom)


@dataclass(frozen=True)
class WidenedForecast(Forecast):
    """`inner` with the distances of its quantiles from its median multiplied by `factor`, a number of each series."""

    inner: Forecast
    factor: Floats

    @property
    def mean(self) -> Floats:  # type: ignore[override]
        """That of the inner forecast."""
        return self.inner.mean

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Those of the inner forecast, moved away from its median."""
        inner_quantiles = self.inner.quantiles([*probabilities, 0.5])
        median, inner_quantiles = inner_quantiles[..., -1:], inner_quantiles[..., :-1]
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(median + (inner_quantiles - median) * self.factor[:, None, None])

    def skip_steps(self, steps: int) -> WidenedForecast:
        """The same without its first steps."""
        return WidenedForecast(self.inner.skip_steps(steps), self.factor)


def degrees_and_factor(count: Floats, parameters: Floats, noise_floor: Floats) -> tuple[Floats, Floats]:
    """Degrees of freedom, and what deviations are multiplied by, of a fit to `count` values.

    Of series that the fit left nothing over of (`noise_floor` is not NaN) deviations are known: infinitely many, and 1.
    """
    estimated = np.isnan(noise_floor)
    degrees_of_freedom = np.where(estimated, np.maximum(count - parameters, 1.0), np.inf)
    return degrees_of_freedom, np.where(estimated, np.sqrt(1.0 + parameters / np.maximum(count, 1.0)), 1.0)


def student_quantiles(probabilities: Sequence[float], degrees_of_freedom: Floats) -> Floats:
    """Quantiles of Student's t, (series, probabilities); exactly 0 in the middle and alike on both sides.

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
    """What turns normal paths into paths of Student's t, one number a path: from a normal draw of each (series, paths)."""
    if np.isinf(degrees_of_freedom).all():
        return np.ones(draws.shape)
    from scipy.special import chdtri, ndtr

    usable = np.where(np.isinf(degrees_of_freedom), 1.0, degrees_of_freedom)[:, None]
    return np.where(np.isinf(degrees_of_freedom)[:, None], 1.0, np.sqrt(usable / chdtri(usable, ndtr(-draws))))


def proportional_spread(errors: Floats, sizes: Floats, indptr: Ints, last: int) -> Floats:
    """What the deviation of the errors of each series is multiplied by where it follows `sizes`: errors spread in proportion
    to what is forecast, and wider where that has grown. By likelihood; 1 where a constant spread is likelier.

    `last`: over how many rows at the end sizes are averaged. With sizes over their geometric mean, errors in proportion to them
    are likelier than of one spread if their mean square in these units is less.
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
    """Correlation of each one-step error with the one before it where it is above what noise shows (1.96 / sqrt(n)), else 0.

    A model that lags behind its series misses on the same side again and again, and its errors ahead add up.
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
    """Of the steps ahead, in units of the errors', whose correlation k rows apart is `correlation`^k.

    responses: what an error adds to its row and to those that follow, (series, steps).
    """
    step_variances, total, with_older = np.empty(responses.shape), np.zeros(len(responses)), np.zeros(len(responses))
    with np.errstate(over="ignore", invalid="ignore"):
        for step, response in enumerate(responses.T):
            total = total + response * response + 2.0 * response * with_older
            with_older = correlation * (with_older + response)
            step_variances[:, step] = total
    return step_variances


def correlate_draws(draws: Floats, correlation: Floats) -> Floats:
    """Normal draws (series, paths, rows) made to follow each other with that correlation, in place."""
    innovation_scale = np.sqrt(1.0 - correlation**2)[:, None]
    for row in range(1, draws.shape[2] if correlation.any() else 0):
        draws[:, :, row] = correlation[:, None] * draws[:, :, row - 1] + innovation_scale * draws[:, :, row]
    return draws


def _sums(values: Floats, indptr: Ints) -> Floats:
    return np.asarray(np.add.reduceat(values, indptr[:-1]))
