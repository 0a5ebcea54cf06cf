"""Base class of ARIMA and AutoARIMA: regression with ARIMA errors, given the order of each series.

The forecast is a regression (level, slope, future covariates, Fourier terms) plus the forecast of
the ARIMA errors from the filtered state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from deepforecast.core.capabilities import Capabilities
from deepforecast.core.forecast import Forecast
from deepforecast.core.integer_bounds import check_floats, check_integer, check_integers
from deepforecast.core.manifest import MAX_INTEGER, InvalidManifest
from deepforecast.core.noise import standard_normal
from deepforecast.core.skops_objects import SkopsSerializer
from deepforecast.core.state import LearnedState, State
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Frame, Ints
from deepforecast.data.panel import Panel
from deepforecast.models.statistical._base import Statistical
from deepforecast.models.statistical._coefficient_covariance import (
    covariance_directions,
    regression_deviations,
    regression_values,
)
from deepforecast.models.statistical._error_paths import decompose_forecast, sample_errors
from deepforecast.models.statistical._intervals import StudentForecast, degrees_and_factor, student_mixing
from deepforecast.models.statistical._perfect_fit import residual_spread, update_residual_spread
from deepforecast.models.statistical._regressors import design_matrix
from deepforecast.models.statistical._scaled_series import Fit, Order, ScaledSeries, power_of_two

MAX_FILE_SEASON = 10_000  # bound for model files without seasonal orders


class ArimaFamily(Statistical):
    """Base class of regressions with ARIMA errors.

    `learned["order"]` holds p, d, q, P, D, Q and whether there is a constant.
    """

    coverage_process: ClassVar[str] = "arima"

    capabilities = Capabilities(
        future=True, categorical=True, missing=True, distribution="analytic", simulates=True, explains=True,
        scale_equivariant=True, shift_equivariant=True, precision=1e-3,
    )  # fmt: skip
    seconds_per_value = 2e-5

    def parameters(self) -> Frame:
        """Return order, log-likelihood, AICc, coefficients, constant and sigma, one row per series.

        The coefficients of future covariates are `effect_<column>`, those of Fourier terms are, for
        example, `cos1_24` for the first harmonic of a season of 24 steps.
        """
        return super().parameters()

    def _parameter_columns(self, learned: LearnedState, state: State) -> dict[str, Any]:
        from deepforecast.models.statistical._summary_tables import parameters

        return parameters(self, learned, state)

    def summary(self, unique_id: Any = None) -> str:
        """Return statsmodels' summary of a training series at the estimated parameters."""
        from deepforecast.models.statistical._summary_tables import summary

        state = self.fitted_state()
        return summary(self, self._history(state.learned), state, unique_id)

    # -- hooks of subclasses ----------------------------------------------------------------------

    def _max_sizes(self, panel: Panel) -> tuple[int, int]:
        """Largest numbers of coefficients and of states of any admitted order."""
        raise NotImplementedError

    def _order(self, row: Ints, season: int) -> Order:
        """The order of a row of `learned["order"]`."""
        p, n_differences, q, seasonal_p, seasonal_d, seasonal_q, constant = (int(number) for number in row)
        lags = tuple(range(1, p + 1)), tuple(range(1, q + 1))
        return Order(lags[0], n_differences, lags[1], (seasonal_p, seasonal_d, seasonal_q), season, bool(constant))

    def _fit_series(
        self,
        y: Floats,
        columns: Floats,
        n_regressors: int,
        seasonal_strength: float,
        season: int,
        fourier_terms: Any,
    ) -> tuple[ScaledSeries, Fit, Ints]:
        """Fit one series; return the fit and which of `columns` it uses.

        `columns` are `n_regressors` future covariates, then Fourier terms.
        """
        raise NotImplementedError

    def _seasonal_strengths(self, panel: Panel) -> Floats:
        """Strength of the season of each series, for the choice of the seasonal difference."""
        return np.zeros(len(panel))

    def _shared_values(self, panel: Panel) -> dict[str, Any]:
        """Further values for `LearnedState.shared`."""
        return {}

    def _fourier_terms(self, panel: Panel) -> Sequence[tuple[int, int]]:
        """Season and number of harmonics of the Fourier terms, which have columns cos, sin each."""
        return ()

    def _short_season(self, panel: Panel) -> int:
        """The season of the seasonal polynomials, 1 if there is none."""
        raise NotImplementedError

    # -- fitting and filtering --------------------------------------------------------------------

    def _estimate(self, panel: Panel) -> LearnedState:
        season, (width, size) = self._short_season(panel), self._max_sizes(panel)
        x = self._columns(panel)
        arrays: dict[str, Any] = {
            "order": np.zeros((len(panel), 7), np.int64),
            "factors": np.zeros((len(panel), width)),
            "beta": np.zeros((len(panel), 1 + x.shape[1])),
            "level": np.zeros(len(panel)),
            "doubt": np.zeros((len(panel), 1 + x.shape[1], 2 + x.shape[1])),
            "sigma": np.zeros(len(panel)),
            "likelihood": np.zeros((len(panel), 3)),
            "start": panel.start // panel.calendar.step,
            "rows": np.zeros(len(panel), np.int64),
        }
        fourier_terms, strengths = self._fourier_terms(panel), self._seasonal_strengths(panel)
        n_regressors = x.shape[1] - sum(2 * count for _, count in fourier_terms)
        for index in range(len(panel)):
            rows = slice(panel.indptr[index], panel.indptr[index + 1])
            series, fit, used_columns = self._fit_series(
                panel.y[rows], x[rows], n_regressors, float(strengths[index]), season, fourier_terms
            )
            _store_fit(arrays, index, series, fit, used_columns)
            if fit.sigma > 0.0:
                arrays["doubt"][index] = covariance_directions(
                    fit.order, fit.factors, arrays["beta"][index], panel.y[rows], x[rows]
                )
        spread_arrays = residual_spread(panel, np.where(arrays["sigma"] > 0.0, np.inf, 0.0))
        arrays |= {name: spread_arrays[name] for name in ("ripple", "since")}
        learned = LearnedState(arrays, {"season": season, "size": size, **self._shared_values(panel)})
        return LearnedState({**arrays, **self._filter(learned, panel, x, True)[0]}, dict(learned.shared), panel)

    def _advance(self, learned: LearnedState, panel: Panel, fresh: bool) -> LearnedState:
        states, fitted = self._filter(learned, panel, self._columns(panel, learned), fresh)
        spread_state = {"deviation": learned["sigma"], "ripple": learned["ripple"], "since": learned["since"]}
        if spread := update_residual_spread(spread_state, panel, panel.y - fitted, fresh):
            states |= {"sigma": spread["deviation"], "since": spread["since"]}
        return LearnedState({**learned.by_series, **states}, learned.shared, panel if fresh else None)

    def _fitted(self, learned: LearnedState, panel: Panel) -> Floats:
        return self._filter(learned, panel, self._columns(panel, learned), True)[1]

    def _columns(self, panel: Panel, learned: LearnedState | None = None) -> Floats:
        """Future covariates and Fourier terms, (rows, columns).

        Phases count from the start of the fit.
        """
        x = design_matrix(panel.covariates)
        x = x if x.size or len(x) else np.empty((len(panel.y), 0))
        fourier_terms = self._fourier_terms(panel)
        if not fourier_terms:
            return x
        begin = panel.start // panel.calendar.step
        begin = begin - (begin if learned is None else learned["start"])
        times = np.arange(len(panel.y)) + np.repeat(begin - panel.indptr[:-1], panel.lengths)
        return np.hstack([x, fourier(times, fourier_terms)])

    def _filter(self, learned: LearnedState, panel: Panel, x: Floats, fresh: bool) -> tuple[dict[str, Any], Floats]:
        """Filter states at the end of a panel, and one-step-ahead forecasts of its rows."""
        size, count = learned["size"], len(panel)
        states, excess = np.zeros((3, count, size)), np.zeros((count, size * (size + 1) // 2))
        direction_states = np.zeros((count, learned["doubt"].shape[1], size))
        fitted, begin = np.empty(len(panel.y)), panel.start // panel.calendar.step - learned["start"]
        for index in range(count):
            rows = slice(panel.indptr[index], panel.indptr[index + 1])
            time = begin[index] + np.arange(panel.lengths[index])
            regression = learned["level"][index] + learned["beta"][index, 0] * time + x[rows] @ learned["beta"][index, 1:]
            values = panel.y[rows] - regression
            state, predictions = self._filter_series(learned, index, values, None if fresh else learned["mean"][index])
            fitted[rows] = predictions + regression
            for number in np.flatnonzero(learned["doubt"][index].any(axis=1)):
                direction_values = -regression_values(learned["doubt"][index, number], time, x[rows])
                mean = None if fresh else learned["doubted"][index, number]
                last = self._filter_series(learned, index, np.where(np.isnan(values), np.nan, direction_values), mean)[0].mean
                direction_states[index, number, : len(last)] = last
            for row, values_of_state in enumerate((state.ar, state.ma, state.mean)):
                states[row, index, : len(values_of_state)] = values_of_state
            n_states = len(state.mean)
            excess[index, : n_states * (n_states + 1) // 2] = state.excess[np.tril_indices(n_states)]
        n_rows = begin + panel.lengths
        names = ("ar", "ma", "mean", "excess", "rows", "doubted")
        return dict(zip(names, (*states, excess, n_rows, direction_states), strict=True)), fitted

    def _filter_series(self, learned: LearnedState, index: int, values: Floats, mean: Floats | None) -> tuple[Any, Floats]:
        """Filter one series from a state mean (None: initial state).

        Return final state and forecasts.
        """
        from deepforecast.kernels.arima.state import FilterState, continue_filter, filter_history

        if mean is not None:
            excess = _symmetric_matrix(learned["excess"][index], learned["size"])
            return continue_filter(FilterState(learned["ar"][index], learned["ma"][index], mean, excess), values)[:2]
        order = self._order(learned["order"][index], learned["season"])
        values, n_missing = _trim_leading_missing(values)
        state, predictions, _ = filter_history(
            order.lag_structure, learned["factors"][index, : order.n_coefficients], order.delta, values
        )
        return state, np.concatenate([np.full(n_missing, np.nan), predictions])

    def _deserialize(self, learned: LearnedState, foreign: SkopsSerializer) -> LearnedState:
        size = check_integer(learned["size"], "size", 1, learned["mean"].shape[-1])
        season = check_integer(learned["season"], "season", 1, max(size, MAX_FILE_SEASON))
        check_floats(learned, ["ar", "ma", "mean"], (size,), finite=True)
        check_floats(learned, ["excess"], (size * (size + 1) // 2,), finite=True)
        width = learned["factors"].shape[-1]
        for row in np.unique(check_integers(learned, "order", 0, [width, size, width, width, size, width, 1]), axis=0):
            order = self._order(row, season)
            if order.n_coefficients > width or order.n_states > size:
                raise InvalidManifest(f"an order must have at most {width} coefficients and {size} states, got {row.tolist()}")
        for name in ("start", "rows"):
            check_integers(learned, name, -MAX_INTEGER, MAX_INTEGER)
        self._check_fourier_terms(learned)
        return learned

    def _check_fourier_terms(self, learned: LearnedState) -> None:
        fourier_terms = learned.shared.get("waves", [])
        columns = learned["beta"].shape[-1] - 1
        if not isinstance(fourier_terms, list) or not all(isinstance(term, list) and len(term) == 2 for term in fourier_terms):
            raise InvalidManifest("waves must be pairs of a season and a number of Fourier terms")
        for season, count in fourier_terms:
            check_integer(season, "the season of Fourier terms", 2, MAX_INTEGER)
            columns -= 2 * check_integer(count, "the number of Fourier terms", 0, columns // 2)

    # -- forecasts --------------------------------------------------------------------------------

    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        error_mean, deviation, _ = self._forecast_errors(learned, steps)
        mean = error_mean + sum(self._regression_components(learned, steps, future).values())
        degrees_of_freedom, estimation_factor = _degrees_and_factor(learned)
        deviations = np.hypot(deviation * estimation_factor[:, None], self._regression_deviation(learned, steps, future))
        return StudentForecast(mean, deviations * learned["sigma"][:, None], degrees_of_freedom)

    def _regression_deviation(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Floats:
        """Standard deviations due to the estimated regression, in units of sigma.

        (series, steps).
        """
        from deepforecast.kernels.arima.state import forecast_moments

        def forecast_mean(states: Floats) -> Floats:
            return forecast_moments(learned["ar"], learned["ma"], np.ascontiguousarray(states), learned["excess"], steps)[0]

        return regression_deviations(learned, *self._future_columns(learned, steps, future), forecast_mean)

    def _simulate(self, learned: LearnedState, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]) -> Floats:
        mean = self._forecast(learned, steps, future).mean
        keys = np.column_stack([learned[name].reshape(len(mean), -1) for name in ("mean", "level", "sigma", "factors", "beta")])
        draws = standard_normal(seed, keys, (2 + learned["size"] + steps, samples))
        degrees_of_freedom, estimation_factor = _degrees_and_factor(learned)
        errors = sample_errors(learned, draws[:, 2:], steps) * estimation_factor[:, None, None]
        errors += draws[:, 1, :, None] * self._regression_deviation(learned, steps, future)[:, None, :]
        return np.asarray(
            mean[:, None, :]
            + (student_mixing(draws[:, 0], degrees_of_freedom) * learned["sigma"][:, None])[:, :, None] * errors
        )

    def _explain(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        regression = self._regression_components(learned, steps, future)
        season = learned["season"]
        error_mean, _, _ = self._forecast_errors(learned, steps + 2 * season)
        level, slope, seasonal_part = decompose_forecast(error_mean, learned["order"], season, steps)
        mean = error_mean[:, :steps] + sum(regression.values())
        components = {
            "level": regression["level"] + level,
            "trend": regression["trend"] + slope,
            "season": regression["season"] + seasonal_part,
        }
        if learned["beta"].shape[1] > 1 + self._n_fourier_columns(learned):
            components["regressors"] = regression["regressors"]
        return {**components, "remainder": mean - sum(components.values())}

    def _forecast_errors(self, learned: LearnedState, steps: int) -> tuple[Floats, Floats, Floats]:
        from deepforecast.kernels.arima.state import forecast_moments

        return forecast_moments(learned["ar"], learned["ma"], learned["mean"], learned["excess"], steps)

    def _regression_components(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        """Components of the regression, (series, steps) each."""
        beta, count = learned["beta"], len(learned["level"])
        n_regressors = beta.shape[1] - 1 - self._n_fourier_columns(learned)
        time, x = self._future_columns(learned, steps, future)
        components = {
            "level": np.repeat(learned["level"][:, None], steps, axis=1),
            "trend": beta[:, :1] * time,
            "season": np.zeros((count, steps)),
            "regressors": np.zeros((count, steps)),
        }
        components["regressors"] += (x[:, :, :n_regressors] * beta[:, None, 1 : 1 + n_regressors]).sum(axis=-1)
        components["season"] += (x[:, :, n_regressors:] * beta[:, None, 1 + n_regressors :]).sum(axis=-1)
        return components

    def _future_columns(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> tuple[Floats, Floats]:
        """Time index (series, steps) and columns (series, steps, columns) of the steps ahead."""
        time, n_fourier = learned["rows"][:, None] + np.arange(steps), self._n_fourier_columns(learned)
        x = np.empty((*time.shape, 0))
        if learned["beta"].shape[1] - 1 - n_fourier:
            x = design_matrix(future).reshape(*time.shape, -1)
        return time, np.concatenate([x, fourier(time, learned["waves"])], axis=-1) if n_fourier else x

    def _n_fourier_columns(self, learned: LearnedState) -> int:
        return sum(2 * count for _, count in learned.shared.get("waves", ()))


def _degrees_and_factor(learned: LearnedState) -> tuple[Floats, Floats]:
    """Degrees of freedom and the factor of standard deviations for the estimated polynomials."""
    _, parameters, count = learned["likelihood"].T
    degrees_of_freedom, _ = degrees_and_factor(count, parameters, learned["ripple"])
    lags = learned["order"][:, [0, 2, 3, 5]].sum(axis=1).astype(np.float64)
    return degrees_of_freedom, degrees_and_factor(count, lags, learned["ripple"])[1]


def fourier(times: Ints, fourier_terms: Sequence[tuple[int, int]]) -> Floats:
    """cos and sin of the harmonics 1 ... count of each season, along a new last axis."""
    columns = []
    for season, count in fourier_terms:
        for harmonic in range(1, count + 1):
            angle = 2 * np.pi * ((times * harmonic) % season) / season
            columns += [np.cos(angle), np.sin(angle)]
    return np.stack(columns, axis=-1)


def _store_fit(arrays: dict[str, Any], index: int, series: ScaledSeries, fit: Fit, used_columns: Ints) -> None:
    """Store a fit in the units of its series."""
    order, beta = fit.order, arrays["beta"][index]
    constant = int(order.constant)
    lags = len(order.ar), order.d, len(order.ma), *order.seasonal, constant
    arrays["order"][index] = lags
    arrays["factors"][index, : len(fit.factors)] = fit.factors
    beta[1 + used_columns] = fit.beta[constant:] * series.scale / series.column_scales
    has_offset = constant or order.n_lost
    level = series.centre - float(series.column_means @ beta[1 + used_columns]) if has_offset else 0.0
    if constant and order.n_lost:
        beta[0] = fit.beta[0] * series.scale / power_of_two(len(series.y))
        level -= beta[0] * series.n_leading_missing
    elif constant:
        level += fit.beta[0] * series.scale
    arrays["level"][index] = level
    arrays["sigma"][index] = fit.sigma * series.scale
    arrays["likelihood"][index] = fit.log_likelihood, fit.n_parameters, fit.n_observed


def _trim_leading_missing(values: Floats) -> tuple[Floats, int]:
    """The values from the first observed one on, and the number of rows before it."""
    first = int(np.argmax(~np.isnan(values)))
    return values[first:], first


def _symmetric_matrix(lower: Floats, size: int) -> Floats:
    matrix = np.zeros((size, size))
    matrix[np.tril_indices(size)] = lower
    return matrix + np.tril(matrix, -1).T
