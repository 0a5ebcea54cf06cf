"""Base class of ARIMA and AutoARIMA: regression with ARIMA errors, given the order of each series.

The forecast is a regression (level, slope, future covariates, Fourier terms) plus the forecast of
the ARIMA errors from the filtered state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from deepforecast.core.arrays import design_matrix
from deepforecast.core.encoding import MAX_INTEGER, InvalidManifest, SkopsSerializer
from deepforecast.core.fitted_values import require_training_data
from deepforecast.core.forecast import Forecast, seeded_normal
from deepforecast.core.registry import Capabilities
from deepforecast.core.state import LearnedState, State, check_floats, check_integer, check_integers
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
from deepforecast.models.statistical._scaled_series import Fit, Order, ScaledSeries, power_of_two

MAX_FILE_SEASON = 10_000  # bound for model files without seasonal orders


class ArimaFamily(Statistical):
    """Base class of regressions with ARIMA errors.

    Learned arrays, one row per series:

    - `order`: p, d, q, P, D, Q and whether there is a constant
    - `factors`: coefficients of the four ARMA polynomials (ar, ma, seasonal ar, seasonal ma)
    - `level`, `beta`: the regression level + beta[0] * time + beta[1:] @ columns; time 0 is the first
      row of the training data, at time index `start`
    - `coefficient_directions`, `direction_states`: covariance of level and beta
      (see `_coefficient_covariance`), and the filtered state of each direction
    - `sigma`; `likelihood`: log-likelihood, number of parameters, number of values
    - `ar`, `ma`, `mean`, `excess`: filter after the last row: coefficients of the expanded polynomials,
      state mean, and the lower triangle of E in the state covariance sigma^2 (E + ma ma')
    - `n_rows`: number of rows from `start` to the end
    - `noise_floor`, `n_errors_since`: see `_perfect_fit`

    Shared: `season`, `n_states` and, for AutoARIMA, `fourier_terms`.
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
        return summary(self, require_training_data(self.name, state.learned), state, unique_id)

    # -- hooks of subclasses ----------------------------------------------------------------------

    def _max_coefficients_and_states(self, panel: Panel) -> tuple[int, int]:
        """Largest numbers of ARMA coefficients and of filter states of any order that may be fitted."""
        raise NotImplementedError

    def _order(self, row: Ints, season: int) -> Order:
        """The `Order` of a row of `learned["order"]`."""
        p, n_differences, q, seasonal_p, seasonal_d, seasonal_q, constant = (int(value) for value in row)
        return Order(
            ar=tuple(range(1, p + 1)),
            d=n_differences,
            ma=tuple(range(1, q + 1)),
            seasonal=(seasonal_p, seasonal_d, seasonal_q),
            season=season,
            constant=bool(constant),
        )

    def _fit_series(
        self,
        y: Floats,
        columns: Floats,
        n_regressors: int,
        seasonal_strength: float,
        season: int,
        fourier_terms: Any,
    ) -> tuple[ScaledSeries, Fit, Ints]:
        """Fit one series; return the scaled series, its fit, and the indices of the `columns` that it uses.

        `columns` (rows, columns): `n_regressors` future covariates, then the columns of the Fourier terms.
        `fourier_terms`: (season, n_harmonics) of each season.
        """
        raise NotImplementedError

    def _seasonal_strengths(self, panel: Panel) -> Floats:
        """Seasonal strength of each series in 0 to 1, for the choice of the seasonal difference."""
        return np.zeros(len(panel))

    def _shared_values(self, panel: Panel) -> dict[str, Any]:
        """Entries that a subclass adds to `LearnedState.shared`."""
        return {}

    def _fourier_terms(self, panel: Panel) -> Sequence[tuple[int, int]]:
        """(season, n_harmonics) of each season modelled by Fourier terms; each harmonic has a cos and a sin column."""
        return ()

    def _short_season(self, panel: Panel) -> int:
        """Number of time steps per season of the seasonal polynomials; 1: non-seasonal."""
        raise NotImplementedError

    # -- fitting and filtering --------------------------------------------------------------------

    def _estimate(self, panel: Panel) -> LearnedState:
        """Fit each series on its own and filter it to its end."""
        season = self._short_season(panel)
        max_coefficients, n_states = self._max_coefficients_and_states(panel)
        x = self._columns(panel)
        arrays: dict[str, Any] = {
            "order": np.zeros((len(panel), 7), np.int64),
            "factors": np.zeros((len(panel), max_coefficients)),
            "beta": np.zeros((len(panel), 1 + x.shape[1])),
            "level": np.zeros(len(panel)),
            "coefficient_directions": np.zeros((len(panel), 1 + x.shape[1], 2 + x.shape[1])),
            "sigma": np.zeros(len(panel)),
            "likelihood": np.zeros((len(panel), 3)),
            "start": panel.start // panel.calendar.step,
            "n_rows": np.zeros(len(panel), np.int64),
        }
        fourier_terms, strengths = self._fourier_terms(panel), self._seasonal_strengths(panel)
        n_regressors = x.shape[1] - sum(2 * n_harmonics for _, n_harmonics in fourier_terms)
        for index in range(len(panel)):
            rows = slice(panel.indptr[index], panel.indptr[index + 1])
            series, fit, used_columns = self._fit_series(
                panel.y[rows], x[rows], n_regressors, float(strengths[index]), season, fourier_terms
            )
            _store_fit(arrays, index, series, fit, used_columns)
            if fit.sigma > 0.0:
                arrays["coefficient_directions"][index] = covariance_directions(
                    fit.order, fit.factors, arrays["beta"][index], panel.y[rows], x[rows]
                )
        spread_arrays = residual_spread(panel, np.where(arrays["sigma"] > 0.0, np.inf, 0.0))
        arrays |= {name: spread_arrays[name] for name in ("noise_floor", "n_errors_since")}
        learned = LearnedState(arrays, {"season": season, "n_states": n_states, **self._shared_values(panel)})
        return LearnedState({**arrays, **self._filter(learned, panel, x, True)[0]}, dict(learned.shared), panel)

    def _advance(self, learned: LearnedState, panel: Panel, from_start: bool) -> LearnedState:
        """Filter the rows from the start of the history, or from the last state.

        Sigma changes only after a perfect fit, from the errors since then.
        """
        states, fitted = self._filter(learned, panel, self._columns(panel, learned), from_start)
        spread_state = {
            "deviation": learned["sigma"],
            "noise_floor": learned["noise_floor"],
            "n_errors_since": learned["n_errors_since"],
        }
        if spread := update_residual_spread(spread_state, panel, panel.y - fitted, from_start):
            states |= {"sigma": spread["deviation"], "n_errors_since": spread["n_errors_since"]}
        return LearnedState({**learned.by_series, **states}, learned.shared, panel if from_start else None)

    def _fitted(self, learned: LearnedState, panel: Panel) -> Floats:
        return self._filter(learned, panel, self._columns(panel, learned), True)[1]

    def _columns(self, panel: Panel, learned: LearnedState | None = None) -> Floats:
        """Future covariates and Fourier terms, (rows, columns).

        The phases of the Fourier terms count from the first row of the training data; without `learned` the panel is
        the training data.
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

    def _filter(self, learned: LearnedState, panel: Panel, x: Floats, from_start: bool) -> tuple[dict[str, Any], Floats]:
        """Kalman filter of a panel: the arrays at its end, and one-step-ahead forecasts of its rows.

        The directions of the regression coefficients are filtered like series, which gives the sensitivity of the
        forecast to each of them.
        """
        max_states, n_series = learned["n_states"], len(panel)
        states = np.zeros((3, n_series, max_states))  # ar, ma, mean
        excess = np.zeros((n_series, max_states * (max_states + 1) // 2))
        direction_states = np.zeros((n_series, learned["coefficient_directions"].shape[1], max_states))
        fitted = np.empty(len(panel.y))
        first_time = panel.start // panel.calendar.step - learned["start"]
        for index in range(n_series):
            rows = slice(panel.indptr[index], panel.indptr[index + 1])
            time = first_time[index] + np.arange(panel.lengths[index])
            regression = learned["level"][index] + learned["beta"][index, 0] * time + x[rows] @ learned["beta"][index, 1:]
            values = panel.y[rows] - regression
            state, predictions = self._filter_series(learned, index, values, None if from_start else learned["mean"][index])
            fitted[rows] = predictions + regression
            for direction in np.flatnonzero(learned["coefficient_directions"][index].any(axis=1)):
                direction_values = -regression_values(learned["coefficient_directions"][index, direction], time, x[rows])
                direction_values = np.where(np.isnan(values), np.nan, direction_values)
                mean = None if from_start else learned["direction_states"][index, direction]
                direction_mean = self._filter_series(learned, index, direction_values, mean)[0].mean
                direction_states[index, direction, : len(direction_mean)] = direction_mean
            for position, part in enumerate((state.ar, state.ma, state.mean)):
                states[position, index, : len(part)] = part
            n_states = len(state.mean)
            excess[index, : n_states * (n_states + 1) // 2] = state.excess[np.tril_indices(n_states)]
        final_states = {"ar": states[0], "ma": states[1], "mean": states[2], "excess": excess}
        return {**final_states, "n_rows": first_time + panel.lengths, "direction_states": direction_states}, fitted

    def _filter_series(self, learned: LearnedState, index: int, values: Floats, mean: Floats | None) -> tuple[Any, Floats]:
        """Filter the regression errors `values` of one series from a state mean; None: from the initial state.

        Return the final state and the one-step-ahead forecasts, NaN before the first value.
        """
        from deepforecast.kernels.arima.state import FilterState, continue_filter, filter_history

        if mean is not None:
            excess = _symmetric_matrix(learned["excess"][index], learned["n_states"])
            return continue_filter(FilterState(learned["ar"][index], learned["ma"][index], mean, excess), values)[:2]
        order = self._order(learned["order"][index], learned["season"])
        values, n_missing = _trim_leading_missing(values)
        state, predictions, _ = filter_history(
            order.lag_structure, learned["factors"][index, : order.n_coefficients], order.delta, values
        )
        return state, np.concatenate([np.full(n_missing, np.nan), predictions])

    def _deserialize(self, learned: LearnedState, foreign: SkopsSerializer) -> LearnedState:
        """Check the arrays of a model file; raise `InvalidManifest` if they are inconsistent."""
        max_states = check_integer(learned["n_states"], "n_states", 1, learned["mean"].shape[-1])
        season = check_integer(learned["season"], "season", 1, max(max_states, MAX_FILE_SEASON))
        check_floats(learned, ["ar", "ma", "mean"], (max_states,), finite=True)
        check_floats(learned, ["excess"], (max_states * (max_states + 1) // 2,), finite=True)
        max_lags, n_columns = learned["factors"].shape[-1], learned["beta"].shape[-1]
        check_floats(learned, ["factors"], (max_lags,))
        check_floats(learned, ["beta"], (n_columns,))
        check_floats(learned, ["coefficient_directions"], (n_columns, n_columns + 1))
        check_floats(learned, ["direction_states"], (n_columns, max_states))
        check_floats(learned, ["likelihood"], (3,))
        largest = [max_lags, max_states, max_lags, max_lags, max_states, max_lags, 1]  # of p, d, q, P, D, Q, constant
        for row in np.unique(check_integers(learned, "order", 0, largest), axis=0):
            order = self._order(row, season)
            if order.n_coefficients > max_lags or order.n_states > max_states:
                raise InvalidManifest(
                    f"an order must have at most {max_lags} coefficients and {max_states} states, got {row.tolist()}"
                )
        for name in ("start", "n_rows"):
            check_integers(learned, name, -MAX_INTEGER, MAX_INTEGER)
        self._check_fourier_terms(learned)
        return learned

    def _check_fourier_terms(self, learned: LearnedState) -> None:
        """Raise `InvalidManifest` if the Fourier terms of a model file are malformed or have more columns than `beta`."""
        fourier_terms = learned.shared.get("fourier_terms", [])
        n_columns = learned["beta"].shape[-1] - 1
        if not isinstance(fourier_terms, list) or not all(isinstance(term, list) and len(term) == 2 for term in fourier_terms):
            raise InvalidManifest("fourier_terms must be a list of pairs [season_length, n_harmonics]")
        for season, n_harmonics in fourier_terms:
            check_integer(season, "the season of Fourier terms", 2, MAX_INTEGER)
            n_columns -= 2 * check_integer(n_harmonics, "the number of harmonics", 0, n_columns // 2)

    # -- forecasts --------------------------------------------------------------------------------

    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        error_mean, deviation, _ = self._forecast_errors(learned, steps)
        mean = error_mean + sum(self._regression_components(learned, steps, future).values())
        degrees_of_freedom, estimation_factor = _degrees_and_factor(learned)
        deviations = np.hypot(deviation * estimation_factor[:, None], self._regression_deviation(learned, steps, future))
        return StudentForecast(mean, deviations * learned["sigma"][:, None], degrees_of_freedom)

    def _regression_deviation(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Floats:
        """Standard deviations of the forecasts due to the estimated regression, in units of sigma, (series, steps)."""
        from deepforecast.kernels.arima.state import forecast_moments

        def forecast_mean(states: Floats) -> Floats:
            return forecast_moments(learned["ar"], learned["ma"], np.ascontiguousarray(states), learned["excess"], steps)[0]

        return regression_deviations(learned, *self._future_columns(learned, steps, future), forecast_mean)

    def _simulate(self, learned: LearnedState, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]) -> Floats:
        """Sample paths: mean plus Student's t errors of the state, the shocks and the estimated regression."""
        mean = self._forecast(learned, steps, future).mean
        keys = np.column_stack([learned[name].reshape(len(mean), -1) for name in ("mean", "level", "sigma", "factors", "beta")])
        draws = seeded_normal(seed, keys, (2 + learned["n_states"] + steps, samples))
        mixing_draws, regression_draws, error_draws = draws[:, 0], draws[:, 1], draws[:, 2:]
        degrees_of_freedom, estimation_factor = _degrees_and_factor(learned)
        errors = sample_errors(learned, error_draws, steps) * estimation_factor[:, None, None]
        errors += regression_draws[:, :, None] * self._regression_deviation(learned, steps, future)[:, None, :]
        scale = student_mixing(mixing_draws, degrees_of_freedom) * learned["sigma"][:, None]
        return np.asarray(mean[:, None, :] + scale[:, :, None] * errors)

    def _explain(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        """Components of regression and ARIMA errors; the decaying part of the errors is the `remainder`."""
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
        """Means, standard deviations in units of sigma, and impulse responses of the ARIMA errors, (series, steps) each."""
        from deepforecast.kernels.arima.state import forecast_moments

        return forecast_moments(learned["ar"], learned["ma"], learned["mean"], learned["excess"], steps)

    def _regression_components(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        """Contributions of the regression to level, trend, season and regressors, (series, steps) each."""
        beta, n_series = learned["beta"], len(learned["level"])
        n_regressors = beta.shape[1] - 1 - self._n_fourier_columns(learned)
        time, x = self._future_columns(learned, steps, future)
        components = {
            "level": np.repeat(learned["level"][:, None], steps, axis=1),
            "trend": beta[:, :1] * time,
            "season": np.zeros((n_series, steps)),
            "regressors": np.zeros((n_series, steps)),
        }
        components["regressors"] += (x[:, :, :n_regressors] * beta[:, None, 1 : 1 + n_regressors]).sum(axis=-1)
        components["season"] += (x[:, :, n_regressors:] * beta[:, None, 1 + n_regressors :]).sum(axis=-1)
        return components

    def _future_columns(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> tuple[Floats, Floats]:
        """Time since the first row of the training data (series, steps), and columns (series, steps, columns)."""
        time, n_fourier = learned["n_rows"][:, None] + np.arange(steps), self._n_fourier_columns(learned)
        x = np.empty((*time.shape, 0))
        if learned["beta"].shape[1] - 1 - n_fourier:
            x = design_matrix(future).reshape(*time.shape, -1)
        return time, (np.concatenate([x, fourier(time, learned["fourier_terms"])], axis=-1) if n_fourier else x)

    def _n_fourier_columns(self, learned: LearnedState) -> int:
        return sum(2 * n_harmonics for _, n_harmonics in learned.shared.get("fourier_terms", ()))


def _degrees_and_factor(learned: LearnedState) -> tuple[Floats, Floats]:
    """Degrees of freedom, and the factor of standard deviations for the p + q + P + Q estimated coefficients.

    The factor leaves out the regression, whose error is in `_regression_deviation`.
    """
    _, n_parameters, n_observed = learned["likelihood"].T
    degrees_of_freedom, _ = degrees_and_factor(n_observed, n_parameters, learned["noise_floor"])
    n_coefficients = learned["order"][:, [0, 2, 3, 5]].sum(axis=1).astype(np.float64)  # p, q, P, Q
    return degrees_of_freedom, degrees_and_factor(n_observed, n_coefficients, learned["noise_floor"])[1]


def fourier(times: Ints, fourier_terms: Sequence[tuple[int, int]]) -> Floats:
    """cos and sin of the harmonics 1, 2, ... of each (season, n_harmonics), along a new last axis."""
    columns = []
    for season, n_harmonics in fourier_terms:
        for harmonic in range(1, n_harmonics + 1):
            angle = 2 * np.pi * ((times * harmonic) % season) / season
            columns += [np.cos(angle), np.sin(angle)]
    return np.stack(columns, axis=-1)


def _store_fit(arrays: dict[str, Any], index: int, series: ScaledSeries, fit: Fit, used_columns: Ints) -> None:
    """Store the fit of a scaled series in row `index` of the arrays, in place and in units of the data."""
    order, beta = fit.order, arrays["beta"][index]
    constant = int(order.constant)
    arrays["order"][index] = len(order.ar), order.d, len(order.ma), *order.seasonal, constant
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
    n_leading_missing = int(np.argmax(~np.isnan(values)))
    return values[n_leading_missing:], n_leading_missing


def _symmetric_matrix(lower_triangle: Floats, n_states: int) -> Floats:
    matrix = np.zeros((n_states, n_states))
    matrix[np.tril_indices(n_states)] = lower_triangle
    return matrix + np.tril(matrix, -1).T
