"""One series and one order: the numbers that the kernels estimate from, and what comes of them in the units of the series."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from deepforecast.data.frames import Floats

Lags = tuple[int, ...]

PERFECT = 1e-10
"""Errors below this share of the variation of the differenced series are those of rounding: the fit is perfect."""

STARTS = ((0.1, 0.1), (0.5, -0.5), (1.2, 1.4), (-0.5, 0.5), (0.01, 0.01), (1.2, -1.2), (0.9, -0.3), (0.5, 0.5))
"""Coordinates to begin a search from beside estimated ones: of ar and ma. A quick one compares the first two only."""

FINE, ROUGH = 1e-6, 1e-5
"""Gains of likelihood that end a search: of a fit, and of one that is compared with other orders (1e-4 ends in saddles)."""

GROUPS, EACH, WIDE = 6, 4, 1.5
"""A thorough search begins from the best of each of so many groups of starts a coefficient (of four at most), beside estimated
ones; how many there are in a group, and how far they go."""

ANGLES, RADII = 16, ((0.99, 0.9), (0.9, 0.999))
"""Where p and q are 2 or more: phi and theta with roots at the same of so many angles, one of them nearer to the unit circle.
Such a narrow peak or notch of the spectrum is a maximum of its own, and no other start leads to it."""


@dataclass(frozen=True)
class Order:
    """An ARIMA: the lags of ar and ma, the seasonal orders, differences, and whether a constant is in the regression."""

    ar: Lags
    d: int
    ma: Lags
    seasonal: tuple[int, int, int]  # P, D, Q
    season: int
    constant: bool
    free: tuple[bool, bool] = (False, False)

    @property
    def coefficients(self) -> int:
        """Of the four polynomials together."""
        return len(self.ar) + len(self.ma) + self.seasonal[0] + self.seasonal[2]

    @property
    def lost(self) -> int:
        """Rows that the differences take."""
        return self.d + self.season * self.seasonal[1]

    @property
    def reach(self) -> tuple[int, int]:
        """The longest lags of phi and theta."""
        many_p, _, many_q = self.seasonal
        return max(self.ar, default=0) + self.season * many_p, max(self.ma, default=0) + self.season * many_q

    @property
    def longest(self) -> int:
        """The longest lag without the differences."""
        return max(self.reach)

    @property
    def size(self) -> int:
        """States of the filter: the longest lag."""
        ar, ma = self.reach
        return max(ar + self.lost, ma + 1)

    @property
    def form(self) -> Any:
        """For the kernels."""
        from deepforecast.kernels.arima.layout import form_of

        return form_of(self.ar, self.ma, (self.seasonal[0], self.seasonal[2]), self.season, self.free)

    @property
    def delta(self) -> Floats:
        """The differences, 1 - delta_1 B - ..., by lag."""
        return _differencing(self.d, self.seasonal[1], self.season)


@dataclass(frozen=True)
class Fit:
    """An order fitted. `beta`: of the constant (if there is one) and the regressors, scaled; `sigma` too."""

    order: Order
    factors: Floats
    point: Floats
    beta: Floats
    sigma: float
    log_likelihood: float
    parameters: int
    seen: int

    def criterion(self, name: str) -> float:
        """AIC, AICc or BIC; infinite where there are not enough values for it."""
        count = self.parameters + 1
        if name == "bic":
            return float(count * np.log(self.seen) - 2 * self.log_likelihood)
        plain = 2 * count - 2 * self.log_likelihood
        if name == "aic":
            return plain
        room = self.seen - count - 1
        return plain + 2 * count * (count + 1) / room if room > 0 else np.inf


@dataclass(frozen=True)
class Series:
    """A series ready to be fitted: from its first to its last known value, centred and scaled by a power of two.

    `y` in units of `scale` from `centre`; NaN where missing. `columns`: regressors (rows, columns), complete, in `units` from
    their `middle`.
    """

    y: Floats
    columns: Floats
    centre: float
    scale: float
    middle: Floats
    units: Floats
    rounding: float  # of the values, scaled
    first: int  # rows before the first known one
    held: dict[Any, Any] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, y: Floats, columns: Floats) -> Series:
        """From values and regressors; a row that lacks a regressor counts as missing."""
        y = np.where(np.isnan(columns).any(axis=1), np.nan, y)
        seen = np.flatnonzero(~np.isnan(y))
        first, last = int(seen[0]), int(seen[-1]) + 1
        y, columns = y[first:last], columns[first:last]
        middle = columns[~np.isnan(y)].mean(axis=0)
        columns = np.where(np.isnan(y)[:, None], 0.0, columns - middle)
        centre = float(y[0])
        with np.errstate(over="ignore"):
            largest = float(np.nanmax(np.abs(y - centre)))
        if not np.isfinite(largest):
            centre, largest = 0.0, float(np.nanmax(np.abs(y)))
        scale = power(largest)
        units = np.array([power(float(one)) for one in np.abs(columns).max(axis=0)])
        rounding = 2.0**-52 * (float(np.nanmax(np.abs(y))) / scale)
        return cls((y - centre) / scale, columns / units, centre, scale, middle, units, rounding, first)

    @cached_property
    def whole(self) -> bool:
        """Nothing is missing."""
        return not np.isnan(self.y).any()

    @cached_property
    def filled(self) -> Floats:
        """With what is missing on a line between its neighbours: for tests and starting values."""
        rows, seen = np.arange(len(self.y)), ~np.isnan(self.y)
        return np.interp(rows, rows[seen], self.y[seen])

    def table(self, order: Order) -> Floats:
        """The target, the constant (a level, or time where the series is differenced) and the regressors, by rows."""
        about = order.constant or order.lost  # a level takes up where a series and its regressors are counted from
        rows = [self.y if about else self.y + self.centre / self.scale]
        if order.constant:
            count = len(self.y)
            rows.append(np.arange(float(count)) / power(count) if order.lost else np.ones(count))
        return np.vstack([*rows, (self.columns if about else self.columns + self.middle / self.units).T])

    def problem(self, order: Order) -> Any:
        """What the kernels estimate from; kept for the orders that share it."""
        key = (order.d, order.seasonal[1], order.constant)
        if key not in self.held:
            self.held[key] = self._problem(order)
        return self.held[key]

    def _problem(self, order: Order) -> Any:
        from deepforecast.kernels.arima.fitting import Problem

        table, lost = self.table(order), order.lost
        size = np.std(differenced(self.filled, order)) if len(self.y) > lost else 0.0
        floor = max(4.0 * self.rounding, PERFECT * float(size)) ** 2 + 1e-300
        if self.whole:
            return Problem(np.ascontiguousarray(differenced(table, order)), np.ones(1), 0, True, floor)
        early = np.flatnonzero(np.isnan(self.y[:lost]))
        unknown = np.eye(len(self.y))[early]
        data = np.ascontiguousarray(np.vstack([table[:1], unknown, table[1:]]))
        return Problem(data, order.delta, len(early), False, floor)

    def shocks(self, order: Order) -> tuple[Floats, int, float]:
        """The differenced series less its regression with the residuals of a long autoregression, the order of that, and the
        variance: for starting values."""
        from deepforecast.kernels.arima.starting import with_shocks

        key = ("shocks", order.d, order.seasonal[1], order.constant)
        if key not in self.held:
            table = differenced(self.table(order), order)
            values = differenced(self.filled, order)
            if len(table) > 1:
                values = values - table[1:].T @ np.linalg.lstsq(table[1:].T, values, rcond=None)[0]
            long = max(int(10 * np.log10(max(len(values), 2))), 2 * order.season + 2 if order.season > 1 else 0)
            long = min(long, len(values) // 3)
            self.held[key] = with_shocks(values, long), long, float(values @ values / max(len(values), 1))
        return self.held[key]  # type: ignore[no-any-return]

    def fit(self, order: Order, *, near: Fit | None = None, conditional: bool = False, rough: bool = False) -> Fit:
        """Maximum likelihood. `near`: a fit of a neighbouring order to begin from; rough: to be compared with others only."""
        from deepforecast.kernels.arima.fitting import estimate
        from deepforecast.kernels.arima.starting import start

        problem, form = self.problem(order), order.form
        shocks, long, variance = self.shocks(order)
        if variance <= problem.floor or order.coefficients == 0:  # nothing is left to explain
            return self._fit(order, estimate(problem, form, np.zeros((1, form.size)), most=0), problem.unknown)
        starts, near_enough = [start(form, shocks, long)], ROUGH if rough else FINE
        starts += [_plain(order, *pair) for pair in STARTS[:2]]
        found = estimate(problem, form, np.array(starts), conditional=conditional, tolerance=near_enough)
        if near is not None:  # not worse than a neighbour that is a case of this order
            at = carried(near, order)[None]
            if estimate(problem, form, at, conditional=conditional, most=0).value < found.value:
                found = estimate(problem, form, at, conditional=conditional, tolerance=near_enough)
        return self._fit(order, found, problem.unknown)

    def fits(self, order: Order, *, near: Fit | None = None, conditional: bool = False, groups: int = GROUPS) -> list[Fit]:
        """What a search from each of many starts ends at, the best first. `groups`: of starts, for each coefficient."""
        from deepforecast.kernels.arima.fitting import estimate
        from deepforecast.kernels.arima.starting import start

        problem, form = self.problem(order), order.form
        shocks, long, variance = self.shocks(order)
        if variance <= problem.floor or order.coefficients == 0:
            return [self.fit(order)]
        nested = [self.fit(one, conditional=conditional) for one in _smaller(order)]
        starts = [start(form, shocks, long)[None]]
        starts += [carried(one, order)[None] for one in (*nested, *([] if near is None else [near]))]
        starts += [] if order.coefficients == 1 else _spread(order, groups)
        tried = [estimate(problem, form, one, conditional=conditional, tolerance=FINE) for one in starts]
        return [self._fit(order, one, problem.unknown) for one in sorted(tried, key=lambda one: one.value)]

    def _fit(self, order: Order, found: Any, unknown: int) -> Fit:
        seen, beta = found.seen, found.beta[unknown:]
        parameters = order.coefficients + int((beta != 0.0).sum())
        sigma = float(np.sqrt(found.squares / max(seen - parameters, 1)))
        variance = max(found.squares / seen, 0.0)
        if variance <= self.problem(order).floor:
            sigma = 0.0
        constant = 0.5 * seen * (np.log(2 * np.pi) + 1) + seen * np.log(self.scale)
        return Fit(order, found.factors, found.point, beta, sigma, -found.value - constant, parameters, seen)

    def less_regression(self, fit: Fit) -> Floats:
        """The scaled series without its regression: what the ARIMA itself is of."""
        table = self.table(fit.order)
        return np.asarray(table[0] - fit.beta @ table[1:])


def carried(near: Fit, order: Order) -> Floats:
    """The coordinates of a fit as a start for another order: what it lacks is 0, what is beyond is dropped."""
    parts, begin = [], 0
    for old, new in zip(_counts(near.order), _counts(order), strict=True):
        part = np.zeros(new)
        part[: min(old, new)] = near.point[begin : begin + min(old, new)]
        parts.append(part)
        begin += old
    return np.concatenate(parts)


def differenced(values: Floats, order: Order) -> Floats:
    """Along the last axis."""
    for _ in range(order.seasonal[1]):
        values = values[..., order.season :] - values[..., : -order.season]
    for _ in range(order.d):
        values = values[..., 1:] - values[..., :-1]
    return values


def renamed(order: Order, **changed: Any) -> Order:
    """The order with some of it changed."""
    return replace(order, **changed)


def _counts(order: Order) -> tuple[int, int, int, int]:
    return len(order.ar), len(order.ma), order.seasonal[0], order.seasonal[2]


def _smaller(order: Order) -> list[Order]:
    """The orders with one coefficient less, where lags have no gaps."""
    many_p, big_d, many_q = order.seasonal
    found = [replace(order, ar=order.ar[:-1])] if order.ar and not order.free[0] else []
    found += [replace(order, ma=order.ma[:-1])] if order.ma and not order.free[1] else []
    found += [replace(order, seasonal=(many_p - 1, big_d, many_q))] if many_p else []
    return found + ([replace(order, seasonal=(many_p, big_d, many_q - 1))] if many_q else [])


def _plain(order: Order, ar: float, ma: float) -> Floats:
    p, q, many_p, many_q = _counts(order)
    small = [0.1 if free else 1.0 for free in order.free]
    return np.array([ar * small[0]] * p + [ma * small[1]] * q + [ar] * many_p + [ma] * many_q)


@lru_cache(maxsize=256)
def _spread(order: Order, each: int) -> list[Floats]:
    """Groups of starts all over the coordinates: the plain ones, and points of a sequence that leaves no large gaps."""
    size = order.coefficients
    groups = each * min(size, 4)
    count = EACH * groups - len(STARTS)
    ratio = 2.0
    for _ in range(50):  # the root of x^(size + 1) = x + 1
        ratio = (1.0 + ratio) ** (1.0 / (size + 1))
    points = (np.arange(1, count + 1)[:, None] * ratio ** -np.arange(1.0, size + 1)) % 1.0
    free = (*order.free, False, False)
    limits = np.repeat([0.3 if one else WIDE for one in free], _counts(order))
    every = np.vstack([[_plain(order, *pair) for pair in STARTS], (2.0 * points - 1.0) * limits])
    found = [np.ascontiguousarray(every[place::groups]) for place in range(groups)]
    return found + (_resonant(order) if each >= GROUPS else [])


def _resonant(order: Order) -> list[Floats]:
    """Groups of starts with roots of phi and theta at the same angle, two angles in each."""
    p, q, _, _ = _counts(order)
    if min(p, q) < 2 or any(order.free):
        return []
    points = np.zeros((ANGLES, len(RADII), order.coefficients))
    angles = np.pi * (np.arange(ANGLES) + 0.5) / ANGLES
    for place, pair in enumerate(RADII):
        for begin, radius in zip((0, p), pair, strict=True):  # phi_1 = 2 r cos, phi_2 = -r^2, as partial autocorrelations
            points[:, place, begin] = np.arcsin(2 * radius * np.cos(angles) / (1 + radius**2))
            points[:, place, begin + 1] = np.arcsin(-(radius**2))
    return list(points.reshape(ANGLES // 2, 2 * len(RADII), -1))


def power(value: float) -> float:
    """The power of two next above a number, to divide by without rounding; 1 for 0."""
    return float(np.ldexp(1.0, int(np.frexp(value)[1]))) if value > 0 else 1.0


@lru_cache(maxsize=256)
def _differencing(d: int, big_d: int, season: int) -> Floats:
    product = np.ones(1)
    for lag in [1] * d + [season] * big_d:
        product = np.convolve(product, np.concatenate([[1.0], np.zeros(lag - 1), [-1.0]]))
    return np.concatenate([[1.0], -product[1:]])
