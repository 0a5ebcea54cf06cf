"""Base class of complex exponential smoothing models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from deepforecast.core import seasonality
from deepforecast.core.arrays import segment_reduce
from deepforecast.core.encoding import SkopsSerializer
from deepforecast.core.forecast import Forecast, seeded_normal
from deepforecast.core.params import param
from deepforecast.core.registry import Capabilities
from deepforecast.core.seasonality import resolve_season
from deepforecast.core.state import (
    MAX_SIMULATED_GAP,
    LearnedState,
    State,
    check_floats,
    check_gaps,
    check_integers,
    check_vectors,
)
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel, fill_missing
from deepforecast.models.statistical._base import Statistical
from deepforecast.models.statistical._intervals import (
    StudentForecast,
    correlate_draws,
    correlated_variances,
    degrees_and_factor,
    proportional_spread,
    residual_correlation,
    student_mixing,
)
from deepforecast.models.statistical._missing_value_variance import ErrorStates, deviation_after_missing, variance_ratio
from deepforecast.models.statistical._perfect_fit import (
    RESIDUAL_ARRAYS,
    compute_by_age,
    residual_spread,
    rows_since_observed,
    update_residual_spread,
)

FORMS = ("none", "simple", "partial", "full")
SIMPLE, PARTIAL, FULL = range(1, 4)  # positions in FORMS
PARAMETERS = np.array([2, 2, 3, 4])  # number of smoothing parameters of each form
STATES = np.array([[2, 0], [0, 2], [2, 1], [2, 2]])
"""Number of initial states of each form: non-seasonal ones, and those per phase of the season."""
HAS_PARAMETER = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 0], [1, 1, 1, 1]], bool)
"""Rows: FORMS; columns: real and imaginary parameter of the level, then of the season."""
HAS_COMPLEX_PAIR = np.array([[1, 0], [0, 1], [1, 0], [1, 1]], bool)
"""Rows: FORMS; columns: whether the level and the season have a complex parameter."""
MIN_VALUES = 5
PERFECT_FIT = 1e-28  # mean squared error due to rounding, for values up to 1


class ComplexSmoothing(Statistical):
    """Base class of complex exponential smoothing.

    Learned arrays, one row per series:

    - `form`: position in FORMS
    - `parameters`: real and imaginary part for the level, then for the season
    - `level` (2,) and `season` (phases, 2), phase of the next row first: states after the last row;
      `first_level`, `first_season`: before the first row, at time `start_time`
    - `deviation`: standard deviation of the errors; `deviation_factor`: sqrt(1 + k / n) for the
      estimated parameters; `degrees_of_freedom`: n - k; `error_correlation`: see `_intervals`
    - `age`: number of missing rows at the end
    - `noise_floor`, `n_errors_since`: see `_perfect_fit`
    """

    capabilities = Capabilities(distribution="analytic", missing=True, simulates=True, explains=True, scale_equivariant=True)
    seconds_per_value = 6e-7

    season_length: int | Literal["auto"] = param(
        default="auto", at_least=1,
        help="number of time steps per season; 1: no season; 'auto': inferred from the frequency of the data",
    )

    def _forms(self, n_observed: Ints, season: int) -> Any:
        """Whether each of FORMS is allowed for series with these numbers of values, (series, 4)."""
        raise NotImplementedError

    def _selection_criterion(self, minus_two_log_likelihood: Floats, n_parameters: Floats, n_observed: Floats) -> Floats:
        """Criterion of each form, (series, forms); the form with the smallest one is selected.

        `minus_two_log_likelihood`: n log(MSE), up to a constant; `n_parameters`: with sigma, without initial states.
        """
        raise NotImplementedError

    def _min_observations(self, panel: Panel) -> int:
        return MIN_VALUES

    def _season(self, panel: Panel) -> int:
        return resolve_season(self.season_length, panel, self, "season_length")

    def _estimate(self, panel: Panel) -> LearnedState:
        """Estimate all allowed forms by least squares (Levenberg-Marquardt) and select one for each series."""
        from deepforecast.kernels import levenberg_marquardt

        season = self._season(panel)
        _, power = np.frexp(segment_reduce(np.nan_to_num(np.abs(panel.y)), panel.indptr[:-1], panel.indptr[1:], np.maximum))
        y = np.ldexp(panel.y, -np.repeat(power, panel.lengths))  # near 1: squares neither overflow nor underflow
        allowed_forms = self._forms(panel.observed, season)
        seasonal_index = _initial_indices(y, panel.indptr, season, allowed_forms)
        parameters, squares = levenberg_marquardt.estimate(y, panel.indptr, seasonal_index, _add_partial(allowed_forms))
        n_observed = panel.observed[:, None].astype(np.float64)
        minus_two_log_likelihood = n_observed * np.log(np.maximum(squares / n_observed, PERFECT_FIT))
        criterion = self._selection_criterion(minus_two_log_likelihood, PARAMETERS + 1.0, n_observed)
        form = np.argmin(np.where(allowed_forms, criterion, np.inf), axis=1)
        series = np.arange(len(panel))
        n_parameters = n_fitted_parameters(season)[form]
        residual_df = n_observed[:, 0] - n_parameters
        deviation = np.where(residual_df > 0, np.sqrt(squares[series, form] / np.maximum(residual_df, 1.0)), np.nan)
        arrays = {"form": form, "parameters": parameters[series, form], **residual_spread(panel, np.ldexp(deviation, power))}
        arrays["degrees_of_freedom"], arrays["deviation_factor"] = degrees_and_factor(
            n_observed[:, 0], n_parameters, arrays["noise_floor"]
        )
        unset = np.full(len(panel), np.iinfo(np.int64).min)  # no history starts then: `_advance` computes initial states
        without_states = LearnedState({**arrays, "start_time": unset, **_empty_states(len(panel), season)})
        learned = self._advance(without_states, panel, True)
        fitted = self._fitted(learned, panel)
        raw_errors = panel.y - fitted
        errors = raw_errors / deviation_after_missing(~np.isnan(raw_errors), panel.indptr, _linear_states(learned, season))
        arrays = {**learned.by_series, "error_correlation": residual_correlation(errors, panel.indptr)}
        arrays["deviation"] = arrays["deviation"] * variance_ratio(raw_errors, errors, panel.indptr)
        arrays["deviation"] = arrays["deviation"] * proportional_spread(errors, fitted, panel.indptr, season)
        return replace(learned, by_series=arrays)

    def _advance(self, learned: LearnedState, panel: Panel, from_start: bool) -> LearnedState:
        """The state after the rows: filtered from the start of the history, or continued from the last state.

        The initial states of a history that does not start at the time of the training data are backcast first.
        """
        from deepforecast.kernels import ces

        arrays = dict(learned.by_series)
        if from_start:
            restarted = np.flatnonzero(panel.start != arrays["start_time"])
            if len(restarted):
                backcast = _backcast_states(panel, arrays, restarted)
                for name, values in zip(("first_level", "first_season"), backcast, strict=True):
                    arrays[name] = arrays[name].copy()
                    arrays[name][restarted] = values
                arrays["start_time"] = panel.start
            arrays["level"], arrays["season"] = arrays["first_level"], arrays["first_season"]
        fitted, arrays["level"], arrays["season"] = ces.filter_series(
            panel.y, panel.indptr, arrays["form"], arrays["parameters"], arrays["level"], arrays["season"]
        )
        arrays["age"] = rows_since_observed(panel, None if from_start else arrays["age"])
        arrays |= update_residual_spread(arrays, panel, panel.y - fitted, from_start)
        return LearnedState(arrays, history=panel if from_start else None)

    def _deserialize(self, learned: LearnedState, foreign: SkopsSerializer) -> LearnedState:
        check_integers(learned, "form", 0, len(FORMS) - 1)
        check_floats(learned, ["parameters"], (4,))
        check_floats(learned, ["level", "first_level"], (2,))
        check_floats(learned, ["season", "first_season"], (max(learned["season"].shape[1:2], default=1), 2))
        check_vectors(learned, ["deviation", "start_time", "error_correlation", *RESIDUAL_ARRAYS])
        check_gaps(learned, MAX_SIMULATED_GAP)
        return learned

    def _parameter_columns(self, learned: LearnedState, state: State) -> dict[str, Any]:
        """Form, real and imaginary smoothing parameters (NaN for those that the form lacks), and sigma."""
        parameter_values = np.where(HAS_PARAMETER[learned["form"]], learned["parameters"], np.nan)
        names = ("level_real", "level_imaginary", "season_real", "season_imaginary")
        return {
            "form": np.array(FORMS, dtype=object)[learned["form"]],
            **{name: parameter_values[:, position] for position, name in enumerate(names)},
            "sigma": learned["deviation"],
        }

    def _fitted(self, learned: LearnedState, panel: Panel) -> Floats:
        from deepforecast.kernels import ces

        names = ("form", "parameters", "first_level", "first_season")
        return ces.filter_series(panel.y, panel.indptr, *(learned[name] for name in names))[0]

    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        level, season = _forecast_components(learned, steps)
        with np.errstate(over="ignore", invalid="ignore"):  # `predict` refuses values that are not finite
            variance = compute_by_age(learned, lambda group: _variance(group, steps))
            deviation = np.sqrt(variance) * (learned["deviation"] * learned["deviation_factor"])[:, None]
            return StudentForecast(level + season, deviation, learned["degrees_of_freedom"])

    def _simulate(self, learned: LearnedState, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]) -> Floats:
        return compute_by_age(learned, lambda group: self._sample_paths(group, steps, samples, seed))

    def _sample_paths(self, learned: LearnedState, steps: int, samples: int, seed: int) -> Floats:
        """Sample paths (series, samples, steps): the mean plus the impulse responses to Student's t errors.

        The rows missing at the end have errors too.
        """
        level, season = _forecast_components(learned, steps)
        response = _impulse_response(learned, steps)
        keys = [learned[name].reshape(len(level), -1) for name in ("parameters", "level", "season", "deviation")]
        steps_since_origin, max_missing = _horizon_lags(learned, steps), response.shape[1] - steps
        draws = seeded_normal(seed, np.concatenate(keys, axis=1), (1 + max_missing + steps, samples)).swapaxes(1, 2)
        scale = (learned["deviation"] * learned["deviation_factor"])[:, None]
        scale = student_mixing(draws[:, :, 0], learned["degrees_of_freedom"]) * scale
        shocks = correlate_draws(draws[:, :, 1:], learned["error_correlation"]) * scale[:, :, None]
        paths = np.repeat((level + season)[:, None, :], samples, axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            for shock in range(max_missing + steps):  # those of missing rows at the end come first
                first_step = max(shock - max_missing, 0)
                age = steps_since_origin[:, first_step:] - shock
                shock_response = np.where(age >= 0, np.take_along_axis(response, np.maximum(age, 0), axis=1), 0.0)
                paths[:, :, first_step:] += shocks[:, :, shock, None] * shock_response[:, None, :]
        return paths

    def _explain(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        """Level and season; for the simple form the level is the mean of the seasonal states."""
        level, season = _forecast_components(learned, steps)
        total = level + season
        seasonal_level = learned["season"][:, :, 0].mean(axis=1)  # the simple form has no separate level
        level = np.where((learned["form"] == SIMPLE)[:, None], seasonal_level[:, None], level)
        season = total - level
        return {"level": level, "season": season + (total - (level + season))}  # the sum is exact


def n_fitted_parameters(season: int) -> Ints:
    """Number of smoothing parameters and initial states of each of FORMS, (4,); the states are fitted by backcasting."""
    return np.asarray(PARAMETERS + STATES @ np.array([1, season]))


def _linear_states(learned: LearnedState, season: int) -> ErrorStates:
    """State equations of two pairs of states, of the level and of one phase of the season, as in `kernels.ces`.

    With the parameters p0 + i p1 of a pair (x, z): x' = x + (p1 - 1) z + (p0 - p1) e and
    z' = x + (1 - p0) z + (p0 + p1) e. The partial form has x' = x + p0 e for the season.
    """
    n_series = len(learned["form"])
    transition, gain = np.zeros((n_series, 4, 4)), np.zeros((n_series, 4))
    has_pair = HAS_COMPLEX_PAIR[learned["form"]]
    for pair in range(2):
        p0, p1 = learned["parameters"][:, 2 * pair], learned["parameters"][:, 2 * pair + 1]
        x, z = 2 * pair, 2 * pair + 1  # positions of the states
        is_present = has_pair[:, pair]
        transition[:, x, x] = 1.0
        transition[:, x, z] = np.where(is_present, p1 - 1.0, 0.0)
        transition[:, z, x] = is_present
        transition[:, z, z] = np.where(is_present, 1.0 - p0, 0.0)
        gain[:, x] = np.where(is_present, p0 - p1, 0.0)
        gain[:, z] = np.where(is_present, p0 + p1, 0.0)
    is_partial = learned["form"] == PARTIAL
    gain[is_partial, 2] = learned["parameters"][is_partial, 2]
    return ErrorStates(transition, gain, np.tile([1.0, 0.0, 1.0, 0.0], (len(gain), 1)), season)


def _empty_states(n_series: int, season: int) -> dict[str, Floats]:
    shapes = {"level": (n_series, 2), "season": (n_series, season, 2)}
    return {prefix + name: np.zeros(shape) for name, shape in shapes.items() for prefix in ("", "first_")}


def _add_partial(allowed_forms: Any) -> Any:
    """The forms to fit, (series, forms): the full one starts its search from the partial one."""
    extended = allowed_forms.copy()
    extended[:, PARTIAL] |= extended[:, FULL]
    return extended


def _initial_indices(y: Floats, indptr: Ints, season: int, allowed_forms: Any) -> Floats:
    """Additive seasonal indices (series, phases), phase of the first row first, to start the partial and full forms.

    0 for series for which neither form is allowed.
    """
    initial, lengths = np.zeros((len(indptr) - 1, season)), np.diff(indptr)
    selected = allowed_forms[:, PARTIAL:].any(axis=1)
    rows = np.repeat(selected, lengths)
    if rows.any():
        filled = fill_missing(y, indptr, "interpolate")
        seasonal_index, _ = seasonality.decompose(
            filled[rows], lengths[selected], season, additive=True, is_observed=~np.isnan(y[rows])
        )
        first_row_order = (np.arange(season) - lengths[selected][:, None]) % season  # phases relative to the first row
        initial[selected] = np.take_along_axis(np.nan_to_num(seasonal_index), first_row_order, axis=1)
    return initial


def _backcast_states(panel: Panel, arrays: Mapping[str, Any], selected: Ints) -> tuple[Floats, Floats]:
    """`first_level` and `first_season` of other histories by backcasting, for given parameters.

    `selected`: indices of the series; their order is that of the results.
    """
    from deepforecast.kernels import ces

    histories = panel.take(selected) if len(selected) < len(panel) else panel
    season, forms = arrays["season"].shape[1], arrays["form"][selected]
    allowed_forms = np.arange(len(FORMS)) == forms[:, None]
    allowed_forms &= (histories.lengths >= 2 * season)[:, None]  # the season of shorter histories starts at 0
    seasonal_index = _initial_indices(histories.y, histories.indptr, season, allowed_forms)
    return ces.backcast_states(
        histories.y, histories.indptr, forms, np.ascontiguousarray(arrays["parameters"][selected]), seasonal_index
    )


def _forecast_components(learned: LearnedState, steps: int) -> tuple[Floats, Floats]:
    """Level and season of the point forecasts, (series, steps) each."""
    from deepforecast.kernels import ces

    parameters = learned["form"], learned["parameters"]
    with np.errstate(over="ignore", invalid="ignore"):
        return ces.forecast_components(*parameters, learned["level"], learned["season"], steps)


def _impulse_response(learned: LearnedState, steps: int) -> Floats:
    """Response of y to a unit shock by lag, (series, largest age + steps)."""
    from deepforecast.kernels import ces

    season, n_rows = learned["season"].shape[1], int(learned["age"].max()) + steps
    with np.errstate(over="ignore", invalid="ignore"):
        return ces.impulse_response(learned["form"], learned["parameters"], season, n_rows)


def _variance(learned: LearnedState, steps: int) -> Floats:
    """Forecast variances, (series, steps), for shocks of variance 1 with their autocorrelation."""
    variance = correlated_variances(_impulse_response(learned, steps), learned["error_correlation"])
    return np.take_along_axis(variance, _horizon_lags(learned, steps), axis=1)


def _horizon_lags(learned: LearnedState, steps: int) -> Ints:
    """Distance of each step ahead from the first missing row at the end, (series, steps)."""
    return np.asarray(learned["age"][:, None] + np.arange(steps))
