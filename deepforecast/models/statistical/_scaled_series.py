"""ARIMA estimation of one series: scaling, starting values and search."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from deepforecast.data.frames import Floats

Lags = tuple[int, ...]

PERFECT_FIT = 1e-10
"""Errors below this fraction of the deviation of the differenced series count as a perfect fit."""

STARTS = ((0.1, 0.1), (0.5, -0.5), (1.2, 1.4), (-0.5, 0.5), (0.01, 0.01), (1.2, -1.2), (0.9, -0.3), (0.5, 0.5))
"""Starting coordinates (all ar, all ma) of searches, besides the Hannan-Rissanen estimate.

`fit` uses the first two only. Coordinates are arcsines of partial autocorrelations."""

FINE_TOLERANCE, ROUGH_TOLERANCE = 1e-6, 1e-5
"""Tolerances of the log-likelihood for a final fit, and for the comparison of orders (1e-4 stops at saddles)."""

N_GROUPS, STARTS_PER_GROUP, START_RANGE = 6, 4, 1.5
"""`fit_many_starts` searches from the best start of each group: groups per coefficient (of at most four
coefficients), starts per group, and range of the starting coordinates."""

N_ANGLES, RADII = 16, ((0.99, 0.9), (0.9, 0.999))
"""Starts for p, q >= 2: phi and theta have roots at the same angle, at these pairs of radii.

Such a narrow peak or notch of the spectrum is a local maximum that other starts do not reach."""


@dataclass(frozen=True)
class Order:
    """Order of a seasonal ARIMA.

    `ar`, `ma`: lags of phi and theta; `d`: number of differences; `seasonal`: P, D, Q; `season`: number
    of time steps per season; `lag_lists`: whether `ar` and `ma` were given as lists of lags.
    """

    ar: Lags
    d: int
    ma: Lags
    seasonal: tuple[int, int, int]  # P, D, Q
    season: int
    constant: bool
    lag_lists: tuple[bool, bool] = (False, False)

    @property
    def n_coefficients(self) -> int:
        """Number of coefficients of the four ARMA polynomials, without constant and regressors."""
        return len(self.ar) + len(self.ma) + self.seasonal[0] + self.seasonal[2]

    @property
    def n_lost(self) -> int:
        """Number of rows lost by differencing."""
        return self.d + self.season * self.seasonal[1]

    @property
    def longest_lags(self) -> tuple[int, int]:
        """The longest lags of the expanded polynomials phi Phi and theta Theta."""
        seasonal_p, _, seasonal_q = self.seasonal
        return max(self.ar, default=0) + self.season * seasonal_p, max(self.ma, default=0) + self.season * seasonal_q

    @property
    def longest_lag(self) -> int:
        """The longest lag of both expanded polynomials, without differences."""
        return max(self.longest_lags)

    @property
    def n_states(self) -> int:
        """Number of states of the Kalman filter."""
        ar, ma = self.longest_lags
        return max(ar + self.n_lost, ma + 1)

    @property
    def lag_structure(self) -> Any:
        """The lags in the form that the kernels use."""
        from deepforecast.kernels.arima.layout import lag_structure

        return lag_structure(self.ar, self.ma, (self.seasonal[0], self.seasonal[2]), self.season, self.lag_lists)

    @property
    def delta(self) -> Floats:
        """1, delta_1, delta_2, ... of the difference polynomial (1 - B)^d (1 - B^m)^D = 1 - delta_1 B - ... ."""
        return _difference_polynomial(self.d, self.seasonal[1], self.season)


@dataclass(frozen=True)
class Fit:
    """Maximum likelihood fit of an order to a `ScaledSeries`.

    `factors`: coefficients of the four ARMA polynomials; `point`: the same as coordinates of the
    search; `beta`: coefficients of the constant, if any, and the regressors; `n_parameters`: without
    sigma. `beta` and `sigma` are those of the scaled series, `log_likelihood` that of the data.
    """

    order: Order
    factors: Floats
    point: Floats
    beta: Floats
    sigma: float
    log_likelihood: float
    n_parameters: int
    n_observed: int

    def criterion(self, name: str) -> float:
        """The criterion "aic", "aicc" or "bic", which counts sigma; AICc is infinite for too few values."""
        n_parameters = self.n_parameters + 1
        if name == "bic":
            return float(n_parameters * np.log(self.n_observed) - 2 * self.log_likelihood)
        aic = 2 * n_parameters - 2 * self.log_likelihood
        if name == "aic":
            return aic
        residual_df = self.n_observed - n_parameters - 1
        return aic + 2 * n_parameters * (n_parameters + 1) / residual_df if residual_df > 0 else np.inf


@dataclass(frozen=True)
class ScaledSeries:
    """A series from its first to its last value, centred and scaled by a power of two.

    `y` = (values - centre) / scale, NaN for missing values. `columns`: regressors (rows, columns),
    complete, (x - column_means) / column_scales.
    """

    y: Floats
    columns: Floats
    centre: float
    scale: float
    column_means: Floats
    column_scales: Floats
    rounding: float  # rounding error of the scaled values
    n_leading_missing: int  # rows before the first value
    cache: dict[Any, Any] = field(default_factory=dict, compare=False)

    @classmethod
    def from_values(cls, y: Floats, columns: Floats) -> ScaledSeries:
        """Scale values and regressors; a row with a missing regressor counts as missing."""
        y = np.where(np.isnan(columns).any(axis=1), np.nan, y)
        observed_rows = np.flatnonzero(~np.isnan(y))
        begin, end = int(observed_rows[0]), int(observed_rows[-1]) + 1
        y, columns = y[begin:end], columns[begin:end]
        means = columns[~np.isnan(y)].mean(axis=0)
        columns = np.where(np.isnan(y)[:, None], 0.0, columns - means)
        centre = float(y[0])
        with np.errstate(over="ignore"):
            largest = float(np.nanmax(np.abs(y - centre)))
        if not np.isfinite(largest):
            centre, largest = 0.0, float(np.nanmax(np.abs(y)))
        scale = power_of_two(largest)
        scales = np.array([power_of_two(float(largest_value)) for largest_value in np.abs(columns).max(axis=0)])
        rounding = 2.0**-52 * (float(np.nanmax(np.abs(y))) / scale)
        return cls(
            y=(y - centre) / scale,
            columns=columns / scales,
            centre=centre,
            scale=scale,
            column_means=means,
            column_scales=scales,
            rounding=rounding,
            n_leading_missing=begin,
        )

    @cached_property
    def is_complete(self) -> bool:
        """Whether no value is missing."""
        return not np.isnan(self.y).any()

    @cached_property
    def interpolated(self) -> Floats:
        """Linearly interpolated values, for unit-root tests and starting values."""
        rows, is_observed = np.arange(len(self.y)), ~np.isnan(self.y)
        return np.interp(rows, rows[is_observed], self.y[is_observed])

    def table(self, order: Order) -> Floats:
        """Variables (1 + constant + regressors, time): target, constant (1, or time if differenced), regressors."""
        has_offset = order.constant or order.n_lost  # a level absorbs the centres
        variables = [self.y if has_offset else self.y + self.centre / self.scale]
        if order.constant:
            n_rows = len(self.y)
            variables.append(np.arange(float(n_rows)) / power_of_two(n_rows) if order.n_lost else np.ones(n_rows))
        columns = self.columns if has_offset else self.columns + self.column_means / self.column_scales
        return np.vstack([*variables, columns.T])

    def problem(self, order: Order) -> Any:
        """The kernels' `Problem` of an order, cached for all orders with the same differences and constant."""
        key = (order.d, order.seasonal[1], order.constant)
        if key not in self.cache:
            self.cache[key] = self._problem(order)
        return self.cache[key]

    def _problem(self, order: Order) -> Any:
        """Build the kernels' `Problem`.

        A complete series is differenced here. Otherwise the filter takes differences, and missing values among the rows
        lost by differencing are unknown coefficients of unit vectors.
        """
        from deepforecast.kernels.arima.estimation import Problem

        table, n_lost = self.table(order), order.n_lost
        deviation = np.std(differenced(self.interpolated, order)) if len(self.y) > n_lost else 0.0
        variance_floor = max(4.0 * self.rounding, PERFECT_FIT * float(deviation)) ** 2 + 1e-300
        if self.is_complete:
            return Problem(np.ascontiguousarray(differenced(table, order)), np.ones(1), 0, True, variance_floor)
        missing_early = np.flatnonzero(np.isnan(self.y[:n_lost]))
        unknown = np.eye(len(self.y))[missing_early]
        variables = np.ascontiguousarray(np.vstack([table[:1], unknown, table[1:]]))
        return Problem(variables, order.delta, len(missing_early), False, variance_floor)

    def shocks(self, order: Order) -> tuple[Floats, int, float]:
        """Residuals of a long autoregression, its order, and the mean square of the values it is fitted to.

        The values are the interpolated, differenced series without its regression. This is the first step of Hannan and
        Rissanen's method, for starting values.
        """
        from deepforecast.kernels.arima.hannan_rissanen import estimate_shocks

        key = ("shocks", order.d, order.seasonal[1], order.constant)
        if key not in self.cache:
            table = differenced(self.table(order), order)
            values = differenced(self.interpolated, order)
            if len(table) > 1:
                values = values - table[1:].T @ np.linalg.lstsq(table[1:].T, values, rcond=None)[0]
            ar_order = max(int(10 * np.log10(max(len(values), 2))), 2 * order.season + 2 if order.season > 1 else 0)
            ar_order = min(ar_order, len(values) // 3)
            self.cache[key] = estimate_shocks(values, ar_order), ar_order, float(values @ values / max(len(values), 1))
        return self.cache[key]  # type: ignore[no-any-return]

    def fit(
        self, order: Order, *, neighbour: Fit | None = None, conditional: bool = False, for_comparison: bool = False
    ) -> Fit:
        """Maximum likelihood fit from three starts, and from that of a `neighbour` order if its likelihood is higher.

        `conditional`: conditional on presample values of zero; `for_comparison`: with a rougher tolerance.
        """
        from deepforecast.kernels.arima.estimation import estimate
        from deepforecast.kernels.arima.hannan_rissanen import start_coordinates

        problem, structure = self.problem(order), order.lag_structure
        shocks, ar_order, variance = self.shocks(order)
        if variance <= problem.floor or order.n_coefficients == 0:  # perfect fit, or no coefficients
            white_noise = estimate(problem, structure, np.zeros((1, structure.size)), max_evaluations=0)
            return self._build_fit(order, white_noise, problem.unknown)
        tolerance = ROUGH_TOLERANCE if for_comparison else FINE_TOLERANCE
        starts = [start_coordinates(structure, shocks, ar_order)]
        starts += [_constant_start(order, *pair) for pair in STARTS[:2]]
        optimum = estimate(problem, structure, np.array(starts), conditional=conditional, tolerance=tolerance)
        if neighbour is not None:  # not worse than a nested order
            coordinates = adapt_coordinates(neighbour, order)[None]
            if estimate(problem, structure, coordinates, conditional=conditional, max_evaluations=0).value < optimum.value:
                optimum = estimate(problem, structure, coordinates, conditional=conditional, tolerance=tolerance)
        return self._build_fit(order, optimum, problem.unknown)

    def fit_many_starts(
        self, order: Order, *, neighbour: Fit | None = None, conditional: bool = False, groups: int = N_GROUPS
    ) -> list[Fit]:
        """Local maxima of the likelihood from many starts, the highest first.

        Starts are the Hannan-Rissanen estimate, the fits of all nested orders and of a `neighbour`, and groups of spread
        points (`groups` per coefficient).
        """
        from deepforecast.kernels.arima.estimation import estimate
        from deepforecast.kernels.arima.hannan_rissanen import start_coordinates

        problem, structure = self.problem(order), order.lag_structure
        shocks, ar_order, variance = self.shocks(order)
        if variance <= problem.floor or order.n_coefficients == 0:
            return [self.fit(order)]
        nested = [self.fit(candidate, conditional=conditional) for candidate in _nested_orders(order)]
        starts = [start_coordinates(structure, shocks, ar_order)[None]]
        starts += [
            adapt_coordinates(candidate, order)[None] for candidate in (*nested, *([] if neighbour is None else [neighbour]))
        ]
        starts += [] if order.n_coefficients == 1 else _spread_starts(order, groups)
        estimates = [
            estimate(problem, structure, candidate, conditional=conditional, tolerance=FINE_TOLERANCE) for candidate in starts
        ]
        return [
            self._build_fit(order, candidate, problem.unknown)
            for candidate in sorted(estimates, key=lambda candidate: candidate.value)
        ]

    def _build_fit(self, order: Order, estimate: Any, n_unknown: int) -> Fit:
        """The fit of a kernels' estimate, whose first `n_unknown` regression coefficients are missing values.

        Sigma has n - k degrees of freedom, and is 0 for a perfect fit.
        """
        n_observed, beta = estimate.n_observed, estimate.beta[n_unknown:]
        n_parameters = order.n_coefficients + int((beta != 0.0).sum())
        sigma = float(np.sqrt(estimate.sum_of_squares / max(n_observed - n_parameters, 1)))
        variance = max(estimate.sum_of_squares / n_observed, 0.0)
        if variance <= self.problem(order).floor:
            sigma = 0.0
        constant = 0.5 * n_observed * (np.log(2 * np.pi) + 1) + n_observed * np.log(self.scale)
        return Fit(
            order=order,
            factors=estimate.factors,
            point=estimate.point,
            beta=beta,
            sigma=sigma,
            log_likelihood=-estimate.value - constant,
            n_parameters=n_parameters,
            n_observed=n_observed,
        )

    def without_regression(self, fit: Fit) -> Floats:
        """The scaled series without its regression."""
        table = self.table(fit.order)
        return np.asarray(table[0] - fit.beta @ table[1:])


def adapt_coordinates(neighbour: Fit, order: Order) -> Floats:
    """The coordinates of a fit as a start for another order: each polynomial padded with 0, or truncated."""
    factors, begin = [], 0
    for n_old, n_new in zip(_coefficient_counts(neighbour.order), _coefficient_counts(order), strict=True):
        factor = np.zeros(n_new)
        n_common = min(n_old, n_new)
        factor[:n_common] = neighbour.point[begin : begin + n_common]
        factors.append(factor)
        begin += n_old
    return np.concatenate(factors)


def differenced(values: Floats, order: Order) -> Floats:
    """Apply the differences of an order along the last axis."""
    for _ in range(order.seasonal[1]):
        values = values[..., order.season :] - values[..., : -order.season]
    for _ in range(order.d):
        values = values[..., 1:] - values[..., :-1]
    return values


def _coefficient_counts(order: Order) -> tuple[int, int, int, int]:
    """Number of coefficients of the polynomials ar, ma, seasonal ar and seasonal ma."""
    return len(order.ar), len(order.ma), order.seasonal[0], order.seasonal[2]


def _nested_orders(order: Order) -> list[Order]:
    """The orders with one coefficient less in one polynomial; polynomials given as lists of lags are not reduced."""
    seasonal_p, seasonal_d, seasonal_q = order.seasonal
    orders = [replace(order, ar=order.ar[:-1])] if order.ar and not order.lag_lists[0] else []
    orders += [replace(order, ma=order.ma[:-1])] if order.ma and not order.lag_lists[1] else []
    orders += [replace(order, seasonal=(seasonal_p - 1, seasonal_d, seasonal_q))] if seasonal_p else []
    return orders + ([replace(order, seasonal=(seasonal_p, seasonal_d, seasonal_q - 1))] if seasonal_q else [])


def _constant_start(order: Order, ar: float, ma: float) -> Floats:
    """Coordinates with the same value for all ar and for all ma coefficients, a tenth of it for lists of lags."""
    p, q, seasonal_p, seasonal_q = _coefficient_counts(order)
    scales = [0.1 if is_lag_list else 1.0 for is_lag_list in order.lag_lists]
    return np.array([ar * scales[0]] * p + [ma * scales[1]] * q + [ar] * seasonal_p + [ma] * seasonal_q)


@lru_cache(maxsize=256)
def _spread_starts(order: Order, groups_per_coefficient: int) -> list[Floats]:
    """Groups of starting coordinates, (starts, coefficients) each: `STARTS` and a low-discrepancy sequence.

    The sequence is R_d of Roberts (2018), a generalization of the golden ratio.
    """
    n_coefficients = order.n_coefficients
    n_groups = groups_per_coefficient * min(n_coefficients, 4)
    n_points = STARTS_PER_GROUP * n_groups - len(STARTS)
    ratio = 2.0
    for _ in range(50):  # the root of x^(d + 1) = x + 1 for d coefficients
        ratio = (1.0 + ratio) ** (1.0 / (n_coefficients + 1))
    points = (np.arange(1, n_points + 1)[:, None] * ratio ** -np.arange(1.0, n_coefficients + 1)) % 1.0
    lag_lists = (*order.lag_lists, False, False)
    limits = np.repeat([0.3 if is_lag_list else START_RANGE for is_lag_list in lag_lists], _coefficient_counts(order))
    all_starts = np.vstack([[_constant_start(order, *pair) for pair in STARTS], (2.0 * points - 1.0) * limits])
    start_groups = [np.ascontiguousarray(all_starts[group::n_groups]) for group in range(n_groups)]
    return start_groups + (_resonance_starts(order) if groups_per_coefficient >= N_GROUPS else [])


def _resonance_starts(order: Order) -> list[Floats]:
    """Groups of starts with roots of phi and theta at the same angle, two angles in each group.

    None for p or q below 2, or lists of lags.
    """
    p, q, _, _ = _coefficient_counts(order)
    if min(p, q) < 2 or any(order.lag_lists):
        return []
    points = np.zeros((N_ANGLES, len(RADII), order.n_coefficients))
    angles = np.pi * (np.arange(N_ANGLES) + 0.5) / N_ANGLES
    for radius_index, pair in enumerate(RADII):
        for begin, radius in zip((0, p), pair, strict=True):  # phi_1 = 2 r cos, phi_2 = -r^2, as partial autocorrelations
            points[:, radius_index, begin] = np.arcsin(2 * radius * np.cos(angles) / (1 + radius**2))
            points[:, radius_index, begin + 1] = np.arcsin(-(radius**2))
    return list(points.reshape(N_ANGLES // 2, 2 * len(RADII), -1))


def power_of_two(value: float) -> float:
    """The smallest power of two above a number, 1 for 0; division by it is exact."""
    return float(np.ldexp(1.0, int(np.frexp(value)[1]))) if value > 0 else 1.0


@lru_cache(maxsize=256)
def _difference_polynomial(n_differences: int, seasonal_d: int, season: int) -> Floats:
    """1, delta_1, delta_2, ... of (1 - B)^d (1 - B^season)^D = 1 - delta_1 B - delta_2 B^2 - ... ."""
    product = np.ones(1)
    for lag in [1] * n_differences + [season] * seasonal_d:
        product = np.convolve(product, np.concatenate([[1.0], np.zeros(lag - 1), [-1.0]]))
    return np.concatenate([[1.0], -product[1:]])
