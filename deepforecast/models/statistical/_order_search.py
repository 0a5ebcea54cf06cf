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

MAX_MODELS = 94

NEIGHBOURS = (
    (0, 0, -1, 0), (0, 0, 0, -1), (0, 0, 1, 0), (0, 0, 0, 1), (0, 0, -1, -1), (0, 0, -1, 1), (0, 0, 1, -1), (0, 0, 1, 1),
    (-1, 0, 0, 0), (0, -1, 0, 0), (1, 0, 0, 0), (0, 1, 0, 0), (-1, -1, 0, 0), (-1, 1, 0, 0), (1, -1, 0, 0), (1, 1, 0, 0),
)  # fmt: skip
"""Changes of p, q, P, Q that a stepwise search tries, in this order."""

Key = tuple[int, int, int, int, bool]  # p, q, P, Q, constant


@dataclass(frozen=True)
class SearchOptions:
    """Options of the search.

    `max_orders`: largest p, q, P, Q; `max_sum`: largest sum of these in a full search;
    `difference_constant`: whether constant series are differenced, so that `update` follows
    changes.
    """

    max_orders: tuple[int, int, int, int] = (5, 5, 2, 2)
    max_sum: int = 5
    stepwise: bool = True
    criterion: str = "aicc"
    constant: bool = True
    conditional: bool = False
    difference_constant: bool = True


class Search:
    """Search of the order of one series with given differences."""

    def __init__(self, series: ScaledSeries, options: SearchOptions, n_differences: int, seasonal_d: int, season: int) -> None:
        rows = len(series.y) // 3
        p, q, seasonal_p, seasonal_q = options.max_orders
        max_orders = (min(p, rows), min(q, rows), min(seasonal_p, rows // season), min(seasonal_q, rows // season))
        self.max_orders = max_orders if season > 1 else (*max_orders[:2], 0, 0)
        self.series, self.options = series, options
        self.base_order = Order((), n_differences, (), (0, seasonal_d, 0), season, False)
        self.constants = (True, False) if options.constant and n_differences + seasonal_d < 2 else (False,)
        self.fits_by_key: dict[Key, Fit | None] = {}
        self.best: Fit | None = None
        self.best_key: Key = (0, 0, 0, 0, False)
        self.score = np.inf

    def best_fit(self) -> Fit:
        """The order with the smallest criterion, fitted from several starts."""
        if self._is_perfect_fit():
            constant = self.base_order.n_lost == 0 and self.options.difference_constant
            return self.series.fit(
                replace(self.base_order, d=1) if constant else replace(self.base_order, constant=self.constants[0])
            )
        if self.options.stepwise:
            self._search_stepwise()
        else:
            self._fit_orders(self._all_keys())
        if self.best is None:  # every order was rejected
            return self.series.fit(replace(self.base_order, constant=self.constants[0]))
        fits = self.series.fit_many_starts(self.best.order, neighbour=self.best, groups=1)
        return next((fit for fit in fits if not has_near_unit_root(fit)), self.best)

    def _is_perfect_fit(self) -> bool:
        order = replace(self.base_order, constant=self.constants[0])
        _, _, variance = self.series.shocks(order)
        return bool(variance <= self.series.problem(order).floor)

    def _search_stepwise(self) -> None:
        p, q, seasonal_p, seasonal_q = self.max_orders
        start_orders = [(2, 2, 1, 1), (0, 0, 0, 0), (1, 0, 1, 0), (0, 1, 0, 1)]
        begin: list[Key] = [
            (min(start_p, p), min(start_q, q), min(start_sp, seasonal_p), min(start_sq, seasonal_q), self.constants[0])
            for start_p, start_q, start_sp, start_sq in start_orders
        ]
        self._fit_orders([*begin, (0, 0, 0, 0, False)])
        while len(self.fits_by_key) < MAX_MODELS and self._move_to_neighbour():
            pass

    def _move_to_neighbour(self) -> bool:
        """Move to the first better neighbour."""
        p, q, seasonal_p, seasonal_q, constant = self.best_key
        steps: Iterator[Key] = (
            (p + step_p, q + step_q, seasonal_p + step_sp, seasonal_q + step_sq, constant)
            for step_p, step_q, step_sp, step_sq in NEIGHBOURS
        )
        if len(self.constants) > 1:
            steps = itertools.chain(steps, [(p, q, seasonal_p, seasonal_q, not constant)])
        return any(self._fit_orders([neighbour]) for neighbour in steps)

    def _all_keys(self) -> Iterator[Key]:
        p, q, seasonal_p, seasonal_q = (range(max_order + 1) for max_order in self.max_orders)
        keys = itertools.product(p, q, seasonal_p, seasonal_q, self.constants)
        return (key for key in keys if sum(key[:4]) <= self.options.max_sum)

    def _fit_orders(self, keys: Iterable[Key]) -> bool:
        """Fit orders; return whether the best one changed."""
        improved = False
        for key in keys:
            if key in self.fits_by_key or any(
                not 0 <= order <= max_order for order, max_order in zip(key, self.max_orders, strict=False)
            ):
                continue
            fit = self.fit_order(key)
            self.fits_by_key[key] = fit
            score = np.inf if fit is None else fit.criterion(self.options.criterion)
            if fit is not None and score < self.score:
                self.best, self.best_key, self.score, improved = fit, key, score, True
        return improved

    def fit_order(self, key: Key) -> Fit | None:
        """Fit an order; None if it is rejected."""
        p, q, seasonal_p, seasonal_q, constant = key
        lags = tuple(range(1, p + 1)), tuple(range(1, q + 1))
        seasonal = (seasonal_p, self.base_order.seasonal[1], seasonal_q)
        order = replace(self.base_order, ar=lags[0], ma=lags[1], seasonal=seasonal, constant=constant)
        columns = self.series.columns.shape[1]
        if len(self.series.y) - order.n_lost <= order.n_coefficients + columns + 2:
            return None
        fit = self.series.fit(order, neighbour=self.best, conditional=self.options.conditional, for_comparison=True)
        return None if has_near_unit_root(fit) or not np.isfinite(fit.log_likelihood) else fit


def has_near_unit_root(fit: Fit) -> bool:
    """Whether a root of one of the four polynomials (seasonal ones in B^m) is below `MIN_ROOT`."""
    order, begin = fit.order, 0
    for count, sign in ((len(order.ar), 1.0), (len(order.ma), -1.0), (order.seasonal[0], 1.0), (order.seasonal[2], -1.0)):
        coefficients = fit.factors[begin : begin + count].tolist()
        begin += count
        if not is_stable([sign * coefficient * MIN_ROOT ** (lag + 1) for lag, coefficient in enumerate(coefficients)]):
            return True
    return False


def is_stable(coefficients: list[float]) -> bool:
    """Whether all roots of 1 - sum(coefficients B^lag) are outside the unit circle.

    >>> is_stable([0.9]), is_stable([1.1]), is_stable([0.5, 0.6])
    (True, False, False)
    """
    remaining = coefficients
    while remaining:
        last = remaining[-1]
        if not abs(last) < 1.0:
            return False
        size = len(remaining) - 1
        remaining = [(remaining[j] + last * remaining[size - 1 - j]) / (1.0 - last * last) for j in range(size)]
    return True


def choose_differences(series: ScaledSeries, seasonal_d: int, season: int, test: str, max_differences: int) -> int:
    """Number of differences of a series without its regression, given the seasonal difference."""
    from deepforecast.kernels.unit_roots import count_differences

    values = series.interpolated
    if series.columns.shape[1]:
        table = np.column_stack([np.ones(len(values)), series.columns])
        values = values - table @ np.linalg.lstsq(table, values, rcond=None)[0]
    return count_differences(differenced(values, Order((), 0, (), (0, seasonal_d, 0), season, False)), test, max_differences)


def choose_fourier_terms(
    y: Floats, regressors: Floats, columns_by_season: list[Floats], order: Order, criterion: str
) -> list[int]:
    """Number of harmonics of each season by the criterion, with ARIMA errors of this order.

    Coordinate descent over the seasons in two rounds. `columns_by_season`: two columns per
    harmonic, lowest frequency first.
    """
    counts = [min(2, season_columns.shape[1] // 2) for season_columns in columns_by_season]
    scores: dict[tuple[int, ...], float] = {}

    def score(trial_counts: list[int]) -> float:
        key = tuple(trial_counts)
        if key not in scores:
            columns = np.hstack(
                [
                    regressors,
                    *(
                        season_columns[:, : 2 * count]
                        for season_columns, count in zip(columns_by_season, trial_counts, strict=True)
                    ),
                ]
            )
            enough = len(y) - order.n_lost > columns.shape[1] + order.n_coefficients + 2
            scores[key] = (
                ScaledSeries.from_values(y, columns).fit(order, for_comparison=True).criterion(criterion) if enough else np.inf
            )
        return scores[key]

    for _ in range(2):
        previous = list(counts)
        for position, season_columns in enumerate(columns_by_season):
            max_count = season_columns.shape[1] // 2
            for trial_counts in sorted({0, 1, 2, 3, 4, 6, 8, 10, max_count} | {counts[position] - 1, counts[position] + 1}):
                if 0 <= trial_counts <= max_count:
                    candidate = [*counts[:position], trial_counts, *counts[position + 1 :]]
                    counts = candidate if score(candidate) < score(counts) else counts
            for trial_counts in (counts[position] - 1, counts[position] + 1):
                if 0 <= trial_counts <= max_count:
                    candidate = [*counts[:position], trial_counts, *counts[position + 1 :]]
                    counts = candidate if score(candidate) < score(counts) else counts
        if counts == previous:
            break
    return counts
