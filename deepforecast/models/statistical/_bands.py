"""Bands of forecasts whose parameters were estimated from few values.

With k numbers estimated from n values the mean square that n - k degrees of freedom give is that of the errors, and the
error of a forecast has 1 + k / n times as much: what the estimates miss comes on top (Akaike 1969, *Annals of the Institute of
Statistical Mathematics* 21: final prediction error). Its distance in units of the estimated deviation follows Student's t with
n - k degrees of freedom. Both are exact, on average over the rows, where the model is a regression.

Where a model says nothing of it, what it left over tells whether errors grow with what is forecast (`in_proportion`) and
whether they follow each other (`persistence`).
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
        units = student(probabilities, self.freedom)[:, None, :]
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused by name on its way out
            away = np.where(units == 0, 0.0, self.deviation[..., None] * units)  # the median needs no deviation to be known
            return np.asarray(self.mean[..., None] + away)

    def after(self, steps: int) -> StudentForecast:
        """The same without its first steps."""
        return StudentForecast(self.mean[:, steps:], self.deviation[:, steps:], self.freedom)


@dataclass(frozen=True)
class WidenedForecast(Forecast):
    """`inner` with the distances of its quantiles from its median multiplied by `by`, a number of each series."""

    inner: Forecast
    by: Floats

    @property
    def mean(self) -> Floats:  # type: ignore[override]
        """That of the inner forecast."""
        return self.inner.mean

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Those of the inner forecast, moved away from its median."""
        found = self.inner.quantiles([*probabilities, 0.5])
        middle, found = found[..., -1:], found[..., :-1]
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(middle + (found - middle) * self.by[:, None, None])

    def after(self, steps: int) -> WidenedForecast:
        """The same without its first steps."""
        return WidenedForecast(self.inner.after(steps), self.by)


def freedom_of(count: Floats, parameters: Floats, ripple: Floats) -> tuple[Floats, Floats]:
    """Degrees of freedom, and what deviations are multiplied by, of a fit to `count` values.

    Of series that the fit left nothing over of (`ripple` is not NaN) deviations are known: infinitely many, and 1.
    """
    estimated = np.isnan(ripple)
    freedom = np.where(estimated, np.maximum(count - parameters, 1.0), np.inf)
    return freedom, np.where(estimated, np.sqrt(1.0 + parameters / np.maximum(count, 1.0)), 1.0)


def student(probabilities: Sequence[float], freedom: Floats) -> Floats:
    """Quantiles of Student's t, (series, probabilities); exactly 0 in the middle and alike on both sides.

    >>> student([0.025, 0.5, 0.975], np.array([5.0, np.inf])).round(3)
    array([[-2.571,  0.   ,  2.571],
           [-1.96 ,  0.   ,  1.96 ]])
    """
    from scipy.special import stdtrit

    found = np.zeros((len(freedom), len(probabilities)))
    for place, one in enumerate(probabilities):
        if one != 0.5:
            tail = stdtrit(freedom, min(one, 1.0 - one))
            found[:, place] = tail if one < 0.5 else -tail
    return found


def mixed(draws: Floats, freedom: Floats) -> Floats:
    """What turns normal paths into paths of Student's t, one number a path: from a normal draw of each (series, paths)."""
    if np.isinf(freedom).all():
        return np.ones(draws.shape)
    from scipy.special import chdtri, ndtr

    usable = np.where(np.isinf(freedom), 1.0, freedom)[:, None]
    return np.where(np.isinf(freedom)[:, None], 1.0, np.sqrt(usable / chdtri(usable, ndtr(-draws))))


def in_proportion(errors: Floats, sizes: Floats, indptr: Ints, last: int) -> Floats:
    """What the deviation of the errors of each series is multiplied by where it follows `sizes`: errors spread in proportion
    to what is forecast, and wider where that has grown. By likelihood; 1 where a constant spread is likelier.

    `last`: over how many rows at the end sizes are averaged. With sizes over their geometric mean, errors in proportion to them
    are likelier than of one spread if their mean square in these units is less.
    """
    seen = ~(np.isnan(errors) | np.isnan(sizes))
    count = np.maximum(_sums(seen.astype(np.float64), indptr), 1.0)
    usable = _sums((seen & ~(sizes > 0.0)).astype(np.float64), indptr) == 0.0
    rows, lengths = np.where(seen & (sizes > 0.0), sizes, 1.0), np.diff(indptr)
    logs = np.where(seen, np.log(rows), 0.0)
    relative = np.exp(logs - np.repeat(_sums(logs, indptr) / count, lengths))
    left = np.where(seen, errors, 0.0)
    largest = np.maximum.reduceat(np.abs(left), indptr[:-1])
    left = left / np.repeat(np.where(largest > 0.0, largest, 1.0), lengths)
    constant, moving = _sums(left * left, indptr), _sums((left / relative) ** 2, indptr)
    into = np.repeat(indptr[1:], lengths) - np.arange(len(errors))
    late = seen & (into <= last)
    end = _sums(np.where(late, relative, 0.0), indptr) / np.maximum(_sums(late.astype(np.float64), indptr), 1.0)
    better = usable & (moving < constant) & (end > 0.0)
    return np.where(better, end * np.sqrt(moving / np.where(constant > 0.0, constant, 1.0)), 1.0)


def persistence(errors: Floats, indptr: Ints) -> Floats:
    """Correlation of each one-step error with the one before it where it is above what noise shows (1.96 / sqrt(n)), else 0.

    A model that lags behind its series misses on the same side again and again, and its errors ahead add up.
    """
    largest = np.maximum.reduceat(np.where(np.isnan(errors), 0.0, np.abs(errors)), indptr[:-1])
    near = errors / np.repeat(np.where(largest > 0.0, largest, 1.0), np.diff(indptr))
    before = np.concatenate([[np.nan], near[:-1]])
    before[indptr[:-1]] = np.nan
    both = ~(np.isnan(near) | np.isnan(before))
    products = _sums(np.where(both, near * before, 0.0), indptr)
    squares = _sums(np.where(np.isnan(near), 0.0, near * near), indptr)
    found = products / np.where(squares > 0.0, squares, 1.0)
    count = _sums(both.astype(np.float64), indptr)
    return np.where(found > 1.96 / np.sqrt(np.maximum(count, 1.0)), found, 0.0)


def variances(responses: Floats, persistent: Floats) -> Floats:
    """Of the steps ahead, in units of the errors', whose correlation k rows apart is `persistent`^k.

    responses: what an error adds to its row and to those that follow, (series, steps).
    """
    found, total, with_older = np.empty(responses.shape), np.zeros(len(responses)), np.zeros(len(responses))
    with np.errstate(over="ignore", invalid="ignore"):
        for step, own in enumerate(responses.T):
            total = total + own * own + 2.0 * own * with_older
            with_older = persistent * (with_older + own)
            found[:, step] = total
    return found


def correlated(draws: Floats, persistent: Floats) -> Floats:
    """Normal draws (series, paths, rows) made to follow each other with that correlation, in place."""
    rest = np.sqrt(1.0 - persistent**2)[:, None]
    for row in range(1, draws.shape[2] if persistent.any() else 0):
        draws[:, :, row] = persistent[:, None] * draws[:, :, row - 1] + rest * draws[:, :, row]
    return draws


def _sums(values: Floats, indptr: Ints) -> Floats:
    return np.asarray(np.add.reduceat(values, indptr[:-1]))
