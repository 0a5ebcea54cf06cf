"""Order selection of ARIMA models (Hyndman and Khandakar 2008, doi:10.18637/jss.v027.i03)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from deepforecast.data.frames import Floats
from deepforecast.models.statistical._scaled_series import Fit, Order, ScaledSeries, differenced

MIN_ROOT = 1.01
"""Orders with a root of smaller modulus are rejected, as in forecast::auto.arima. Here the roots of
seasonal polynomials are those in B^m: in B a seasonal coefficient of 0.89 would be rejected."""

MAX_MODELS = 94  # of a stepwise search, as in forecast::auto.arima

NEIGHBOURS = (
    (0, 0, -1, 0), (0, 0, 0, -1), (0, 0, 1, 0), (0, 0, 0, 1), (0, 0, -1, -1), (0, 0, -1, 1), (0, 0, 1, -1), (0, 0, 1, 1),
    (-1, 0, 0, 0), (0, -1, 0, 0), (1, 0, 0, 0), (0, 1, 0, 0), (-1, -1, 0, 0), (-1, 1, 0, 0), (1, -1, 0, 0), (1, 1, 0, 0),
)  # fmt: skip
"""Changes of p, q, P, Q that a stepwise search tries, in this order."""

Key = tuple[int, int, int, int, bool]  # p, q, P, Q, constant


@dataclass(frozen=True)
class SearchOptions:
    """Options of the order search.

    `max_orders`: largest p, q, P, Q; `max_sum`: largest sum of these in a full search;
    `criterion`: "aicc", "aic" or "bic"; `constant`: whether to also try a constant; `conditional`:
    whether to compare orders by the conditional likelihood; `difference_perfect_fits`: whether
    series with a perfect fit, such as constants, are differenced, so that `update` follows changes.
    """

    max_orders: tuple[int, int, int, int] = (5, 5, 2, 2)
    max_sum: int = 5
    stepwise: bool = True
    criterion: str = "aicc"
    constant: bool = True
    conditional: bool = False
    difference_perfect_fits: bool = True


class Search:
    """Search of the ARMA orders and the constant of one series, for given differences.

    Orders are keys (p, q, P, Q, constant). At most a third of the series length is used for lags.
    """

    def __init__(self, series: ScaledSeries, options: SearchOptions, n_differences: int, seasonal_d: int, season: int) -> None:
        """Set the bounds of the orders; `n_differences` and `seasonal_d` are the given numbers of differences."""
        max_lag = len(series.y) // 3
        max_seasonal_lag = max_lag // season if season > 1 else 0
        p, q, seasonal_p, seasonal_q = options.max_orders
        self.max_orders = (
            min(p, max_lag),
            min(q, max_lag),
            min(seasonal_p, max_seasonal_lag),
            min(seasonal_q, max_seasonal_lag),
        )
        self.series, self.options = series, options
        self.base_order = Order(ar=(), d=n_differences, ma=(), seasonal=(0, seasonal_d, 0), season=season, constant=False)
        self.constants = (True, False) if options.constant and n_differences + seasonal_d < 2 else (False,)
        self.fits_by_key: dict[Key, Fit | None] = {}  # None: rejected
        self.best_fit: Fit | None = None
        self.best_key: Key = (0, 0, 0, 0, False)
        self.best_criterion = np.inf

    def run(self) -> Fit:
        """Search the order with the smallest criterion, and fit it again from several starts.

        A perfect fit without ARMA terms, such as a constant or a line, is kept as it is, or differenced once. If all
        orders are rejected, the fit has no ARMA terms.
        """
        if self._is_perfect_fit():
            is_differenced = self.base_order.n_lost == 0 and self.options.difference_perfect_fits
            return self.series.fit(
                replace(self.base_order, d=1) if is_differenced else replace(self.base_order, constant=self.constants[0])
            )
        if self.options.stepwise:
            self._search_stepwise()
        else:
            self._fit_orders(self._all_keys())
        if self.best_fit is None:  # every order was rejected
            return self.series.fit(replace(self.base_order, constant=self.constants[0]))
        fits = self.series.fit_many_starts(self.best_fit.order, neighbour=self.best_fit, groups=1)
        return next((fit for fit in fits if not has_near_unit_root(fit)), self.best_fit)

    def _is_perfect_fit(self) -> bool:
        """Whether differences, constant and regressors alone fit the series up to rounding."""
        order = replace(self.base_order, constant=self.constants[0])
        _, _, variance = self.series.shocks(order)
        return bool(variance <= self.series.problem(order).floor)

    def _search_stepwise(self) -> None:
        """Fit the four usual orders (and one without constant), then move to better neighbours as long as there are any."""
        p, q, seasonal_p, seasonal_q = self.max_orders
        start_orders = [(2, 2, 1, 1), (0, 0, 0, 0), (1, 0, 1, 0), (0, 1, 0, 1)]
        start_keys: list[Key] = [
            (min(start_p, p), min(start_q, q), min(start_sp, seasonal_p), min(start_sq, seasonal_q), self.constants[0])
            for start_p, start_q, start_sp, start_sq in start_orders
        ]
        self._fit_orders([*start_keys, (0, 0, 0, 0, False)])
        while len(self.fits_by_key) < MAX_MODELS and self._move_to_neighbour():
            pass

    def _move_to_neighbour(self) -> bool:
        """Move to the first neighbour with a smaller criterion; return whether there is one."""
        p, q, seasonal_p, seasonal_q, constant = self.best_key
        neighbours: Iterator[Key] = (
            (p + step_p, q + step_q, seasonal_p + step_sp, seasonal_q + step_sq, constant)
            for step_p, step_q, step_sp, step_sq in NEIGHBOURS
        )
        if len(self.constants) > 1:
            neighbours = itertools.chain(neighbours, [(p, q, seasonal_p, seasonal_q, not constant)])
        return any(self._fit_orders([neighbour]) for neighbour in neighbours)

    def _all_keys(self) -> Iterator[Key]:
        p, q, seasonal_p, seasonal_q = (range(max_order + 1) for max_order in self.max_orders)
        keys = itertools.product(p, q, seasonal_p, seasonal_q, self.constants)
        return (key for key in keys if sum(key[:4]) <= self.options.max_sum)

    def _fit_orders(self, keys: Iterable[Key]) -> bool:
        """Fit the orders that are within bounds and not fitted yet; return whether the best one changed."""
        improved = False
        for key in keys:
            is_within_bounds = all(0 <= order <= largest for order, largest in zip(key[:4], self.max_orders, strict=True))
            if key in self.fits_by_key or not is_within_bounds:
                continue
            fit = self.fit_order(key)
            self.fits_by_key[key] = fit
            criterion = np.inf if fit is None else fit.criterion(self.options.criterion)
            if fit is not None and criterion < self.best_criterion:
                self.best_fit, self.best_key, self.best_criterion = fit, key, criterion
                improved = True
        return improved

    def fit_order(self, key: Key) -> Fit | None:
        """Fit an order; None if it is rejected.

        Reasons: too few values, a root near the unit circle, or a likelihood that is not finite.
        """
        p, q, seasonal_p, seasonal_q, constant = key
        order = replace(
            self.base_order,
            ar=tuple(range(1, p + 1)),
            ma=tuple(range(1, q + 1)),
            seasonal=(seasonal_p, self.base_order.seasonal[1], seasonal_q),
            constant=constant,
        )
        n_columns = self.series.columns.shape[1]
        if len(self.series.y) - order.n_lost <= order.n_coefficients + n_columns + 2:
            return None
        fit = self.series.fit(order, neighbour=self.best_fit, conditional=self.options.conditional, for_comparison=True)
        return None if has_near_unit_root(fit) or not np.isfinite(fit.log_likelihood) else fit


def has_near_unit_root(fit: Fit) -> bool:
    """Whether a root of one of the four polynomials (seasonal ones in B^m) has a modulus below `MIN_ROOT`."""
    order, begin = fit.order, 0
    seasonal_p, _, seasonal_q = order.seasonal
    # phi = 1 - sum(ar B^lag), theta = 1 + sum(ma B^lag)
    for n_coefficients, sign in ((len(order.ar), 1.0), (len(order.ma), -1.0), (seasonal_p, 1.0), (seasonal_q, -1.0)):
        coefficients = fit.factors[begin : begin + n_coefficients].tolist()
        begin += n_coefficients
        if not is_stable([sign * coefficient * MIN_ROOT ** (lag + 1) for lag, coefficient in enumerate(coefficients)]):
            return True
    return False


def is_stable(coefficients: list[float]) -> bool:
    """Whether all roots of 1 - sum(coefficients B^lag) are outside the unit circle.

    By the step-down (backward Durbin-Levinson) recursion: they are if all partial autocorrelations
    are below 1 in absolute value.

    >>> is_stable([0.9]), is_stable([1.1]), is_stable([0.5, 0.6])
    (True, False, False)
    """
    ar = coefficients
    while ar:
        partial = ar[-1]  # partial autocorrelation at lag len(ar)
        if not abs(partial) < 1.0:
            return False
        order = len(ar) - 1
        ar = [(ar[j] + partial * ar[order - 1 - j]) / (1.0 - partial * partial) for j in range(order)]
    return True


def choose_differences(series: ScaledSeries, seasonal_d: int, season: int, test: str, max_differences: int) -> int:
    """Number of ordinary differences by repeated unit-root tests ("kpss" or "adf"), after the seasonal differences.

    The tests use the interpolated series without its least squares regression.
    """
    from deepforecast.kernels.unit_roots import count_differences

    values = series.interpolated
    if series.columns.shape[1]:
        design = np.column_stack([np.ones(len(values)), series.columns])
        values = values - design @ np.linalg.lstsq(design, values, rcond=None)[0]
    seasonal_difference = Order(ar=(), d=0, ma=(), seasonal=(0, seasonal_d, 0), season=season, constant=False)
    return count_differences(differenced(values, seasonal_difference), test, max_differences)


def choose_fourier_terms(
    y: Floats, regressors: Floats, columns_by_season: list[Floats], order: Order, criterion: str
) -> list[int]:
    """Number of harmonics of each season with the smallest criterion, with ARIMA errors of this order.

    Coordinate descent over the seasons in at most two rounds; each tries a fixed set of numbers and
    the neighbours of the best one. `columns_by_season`: two columns per harmonic, lowest frequency
    first; `criterion`: "aicc", "aic" or "bic".
    """
    n_harmonics = [min(2, season_columns.shape[1] // 2) for season_columns in columns_by_season]
    criteria: dict[tuple[int, ...], float] = {}

    def compute_criterion(n_candidate: list[int]) -> float:
        key = tuple(n_candidate)
        if key not in criteria:
            fourier_columns = [
                season_columns[:, : 2 * n] for season_columns, n in zip(columns_by_season, n_candidate, strict=True)
            ]
            columns = np.hstack([regressors, *fourier_columns])
            if len(y) - order.n_lost > columns.shape[1] + order.n_coefficients + 2:
                fit = ScaledSeries.from_values(y, columns).fit(order, for_comparison=True)
                criteria[key] = fit.criterion(criterion)
            else:
                criteria[key] = np.inf  # too few values
        return criteria[key]

    def improve(n_best: list[int], position: int, trials: Iterable[int]) -> list[int]:
        for n_trial in trials:
            if 0 <= n_trial <= columns_by_season[position].shape[1] // 2:
                candidate = [*n_best[:position], n_trial, *n_best[position + 1 :]]
                n_best = candidate if compute_criterion(candidate) < compute_criterion(n_best) else n_best
        return n_best

    for _ in range(2):
        previous = list(n_harmonics)
        for position, season_columns in enumerate(columns_by_season):
            max_harmonics = season_columns.shape[1] // 2
            neighbours = {n_harmonics[position] - 1, n_harmonics[position] + 1}
            n_harmonics = improve(n_harmonics, position, sorted({0, 1, 2, 3, 4, 6, 8, 10, max_harmonics} | neighbours))
            n_harmonics = improve(n_harmonics, position, (n_harmonics[position] - 1, n_harmonics[position] + 1))
        if n_harmonics == previous:
            break
    return n_harmonics
