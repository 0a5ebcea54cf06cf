"""Base class of complex exponential smoothing models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from deepforecast.core.capabilities import Capabilities
from deepforecast.core.forecast import Forecast
from deepforecast.core.integer_bounds import MAX_SIMULATED_GAP, check_floats, check_gaps, check_integers
from deepforecast.core.noise import standard_normal
from deepforecast.core.params import param
from deepforecast.core.skops_objects import SkopsSerializer
from deepforecast.core.state import LearnedState, State
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.models import _seasonality as seasonality
from deepforecast.models.baselines._arrays import segment_reduce
from deepforecast.models.baselines._base import resolve_season
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
    compute_by_age,
    residual_spread,
    rows_since_observed,
    update_residual_spread,
)

FORMS = ("none", "simple", "partial", "full")
PARAMETERS = np.array([2, 2, 3, 4])
STATES = np.array(
    [[2, 0], [0, 2], [2, 1], [2, 2]]
)  # number of initial states of each form: non-seasonal, and per phase of the season
MIN_VALUES = 5
PERFECT_FIT = 1e-28  # mean squared error due to rounding, for values up to 1


class ComplexSmoothing(Statistical):
    """Base class of complex exponential smoothing.

    Learned arrays: `form` (index in FORMS); `parameters` (real and imaginary parts for the level,
    then for the season); `level` and `season` (phase of the next row first) after the last row, and
    `first_level` and `first_season` before the first row, at time `began`; `age`, the number of
    missing rows at the end.
    """

    capabilities = Capabilities(distribution="analytic", missing=True, simulates=True, explains=True, scale_equivariant=True)
    seconds_per_value = 6e-7

    season_length: int | Literal["auto"] = param(
        default="auto", at_least=1, help="number of time steps per season; 'auto': by the frequency of the data",
    )

    def _forms(self, counts: Ints, season: int) -> Any:
        """Which of FORMS are allowed for series with these numbers of values, (series, 4)."""
        raise NotImplementedError

    def _score(self, fit: Floats, n_parameters: Floats, count: Floats) -> Floats:
        """Criterion to be minimized, from n log(MSE), number of parameters with sigma, and n."""
        raise NotImplementedError

    def _min_observations(self, panel: Panel) -> int:
        return MIN_VALUES

    def _season(self, panel: Panel) -> int:
        return resolve_season(self.season_length, panel, self, "season_length")

    def _estimate(self, panel: Panel) -> LearnedState:
        from deepforecast.kernels import levenberg_marquardt

        season = self._season(panel)
        _, power = np.frexp(segment_reduce(np.nan_to_num(np.abs(panel.y)), panel.indptr[:-1], panel.indptr[1:], np.maximum))
        y = np.ldexp(panel.y, -np.repeat(power, panel.lengths))  # near 1: squares neither overflow nor underflow
        allowed_forms = self._forms(panel.observed, season)
        seasonal_index = _initial_indices(y, panel.indptr, season, allowed_forms)
        parameters, squares = levenberg_marquardt.estimate(y, panel.indptr, seasonal_index, _add_partial(allowed_forms))
        count = panel.observed[:, None].astype(np.float64)
        fit = count * np.log(np.maximum(squares / count, PERFECT_FIT))
        score = np.where(allowed_forms, self._score(fit, PARAMETERS + 1.0, count), np.inf)
        form, rows = np.argmin(score, axis=1), np.arange(len(panel))
        residual_df = count[:, 0] - n_fitted_parameters(season)[form]
        deviation = np.where(residual_df > 0, np.sqrt(squares[rows, form] / np.maximum(residual_df, 1.0)), np.nan)
        arrays = {"form": form, "parameters": parameters[rows, form], **residual_spread(panel, np.ldexp(deviation, power))}
        arrays["freedom"], arrays["wider"] = degrees_and_factor(
            count[:, 0], n_fitted_parameters(season)[form], arrays["ripple"]
        )
        unset = np.full(len(panel), np.iinfo(np.int64).min)
        learned = self._advance(LearnedState({**arrays, "began": unset, **_empty_states(len(panel), season)}), panel, True)
        fitted = self._fitted(learned, panel)
        raw = panel.y - fitted
        errors = raw / deviation_after_missing(~np.isnan(raw), panel.indptr, _linear_states(learned, season))
        arrays = {**learned.by_series, "persistence": residual_correlation(errors, panel.indptr)}
        arrays["deviation"] = arrays["deviation"] * variance_ratio(raw, errors, panel.indptr)
        arrays["deviation"] = arrays["deviation"] * proportional_spread(errors, fitted, panel.indptr, season)
        return replace(learned, by_series=arrays)

    def _advance(self, learned: LearnedState, panel: Panel, fresh: bool) -> LearnedState:
        from deepforecast.kernels import ces

        arrays = dict(learned.by_series)
        if fresh:
            restarted = np.flatnonzero(panel.start != arrays["began"])
            if len(restarted):
                for name, values in zip(
                    ("first_level", "first_season"), _backcast_states(panel, arrays, restarted), strict=True
                ):
                    arrays[name] = arrays[name].copy()
                    arrays[name][restarted] = values
                arrays["began"] = panel.start
            arrays["level"], arrays["season"] = arrays["first_level"], arrays["first_season"]
        fitted, arrays["level"], arrays["season"] = ces.filter_series(
            panel.y, panel.indptr, arrays["form"], arrays["parameters"], arrays["level"], arrays["season"]
        )
        arrays["age"] = rows_since_observed(panel, None if fresh else arrays["age"])
        arrays |= update_residual_spread(arrays, panel, panel.y - fitted, fresh)
        return LearnedState(arrays, history=panel if fresh else None)

    def _deserialize(self, learned: LearnedState, foreign: SkopsSerializer) -> LearnedState:
        check_integers(learned, "form", 0, len(FORMS) - 1)
        check_floats(learned, ["parameters"], (4,))
        check_floats(learned, ["level", "first_level"], (2,))
        check_floats(learned, ["season", "first_season"], (max(learned["season"].shape[1:2], default=1), 2))
        check_gaps(learned, MAX_SIMULATED_GAP)
        return learned

    def _parameter_columns(self, learned: LearnedState, state: State) -> dict[str, Any]:
        """Form, and real and imaginary smoothing parameters; NaN for those that the form lacks."""
        has_parameter = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 0], [1, 1, 1, 1]], bool)[learned["form"]]
        parameter_values = np.where(has_parameter, learned["parameters"], np.nan)
        names = ("level_real", "level_imaginary", "season_real", "season_imaginary")
        columns: dict[str, Any] = {"form": np.array(FORMS, dtype=object)[learned["form"]]}
        return (
            columns
            | {name: parameter_values[:, position] for position, name in enumerate(names)}
            | {"sigma": learned["deviation"]}
        )

    def _fitted(self, learned: LearnedState, panel: Panel) -> Floats:
        from deepforecast.kernels import ces

        names = ("form", "parameters", "first_level", "first_season")
        return ces.filter_series(panel.y, panel.indptr, *(learned[name] for name in names))[0]

    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        level, season = _forecast_components(learned, steps)
        with np.errstate(over="ignore", invalid="ignore"):  # `predict` refuses values that are not finite
            variance = compute_by_age(learned, lambda group: _variance(group, steps))
            deviation = np.sqrt(variance) * (learned["deviation"] * learned["wider"])[:, None]
            return StudentForecast(level + season, deviation, learned["freedom"])

    def _simulate(self, learned: LearnedState, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]) -> Floats:
        return compute_by_age(learned, lambda group: self._sample_paths(group, steps, samples, seed))

    def _sample_paths(self, learned: LearnedState, steps: int, samples: int, seed: int) -> Floats:
        level, season = _forecast_components(learned, steps)
        response = _impulse_response(learned, steps)
        keys = [learned[name].reshape(len(level), -1) for name in ("parameters", "level", "season", "deviation")]
        lags, oldest = _horizon_lags(learned, steps), response.shape[1] - steps
        draws = standard_normal(seed, np.concatenate(keys, axis=1), (1 + oldest + steps, samples)).swapaxes(1, 2)
        mixing = student_mixing(draws[:, :, 0], learned["freedom"]) * (learned["deviation"] * learned["wider"])[:, None]
        shocks = correlate_draws(draws[:, :, 1:], learned["persistence"]) * mixing[:, :, None]
        paths = np.repeat((level + season)[:, None, :], samples, axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            for row in range(oldest + steps):  # missing rows at the end come first
                first = max(row - oldest, 0)
                lag = lags[:, first:] - row
                added = np.where(lag >= 0, np.take_along_axis(response, np.maximum(lag, 0), axis=1), 0.0)
                paths[:, :, first:] += shocks[:, :, row, None] * added[:, None, :]
        return paths

    def _explain(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        level, season = _forecast_components(learned, steps)
        total = level + season
        seasonal_level = learned["season"][:, :, 0].mean(axis=1)  # the simple form has no separate level
        level = np.where((learned["form"] == FORMS.index("simple"))[:, None], seasonal_level[:, None], level)
        season = total - level
        return {"level": level, "season": season + (total - (level + season))}


def n_fitted_parameters(season: int) -> Ints:
    """Number of parameters and initial states of each form; backcasting fits the latter."""
    return np.asarray(PARAMETERS + STATES @ np.array([1, season]))


def _linear_states(learned: LearnedState, season: int) -> ErrorStates:
    """State equations of the level pair and of the pair of one phase, as in `kernels.ces`."""
    transition, gain = np.zeros((len(learned["form"]), 4, 4)), np.zeros((len(learned["form"]), 4))
    has_pair = np.array([[1, 0], [0, 1], [1, 0], [1, 1]], bool)[learned["form"]]
    for pair in range(2):
        p0, p1 = learned["parameters"][:, 2 * pair], learned["parameters"][:, 2 * pair + 1]
        first, is_present = 2 * pair, has_pair[:, pair]
        transition[:, first, first] = 1.0
        transition[:, first, first + 1], transition[:, first + 1, first] = np.where(is_present, p1 - 1.0, 0.0), is_present
        transition[:, first + 1, first + 1] = np.where(is_present, 1.0 - p0, 0.0)
        gain[:, first], gain[:, first + 1] = np.where(is_present, p0 - p1, 0.0), np.where(is_present, p0 + p1, 0.0)
    partial = learned["form"] == FORMS.index("partial")
    gain[partial, 2] = learned["parameters"][partial, 2]
    return ErrorStates(transition, gain, np.tile([1.0, 0.0, 1.0, 0.0], (len(gain), 1)), season)


def _empty_states(series: int, season: int) -> dict[str, Floats]:
    shapes = {"level": (series, 2), "season": (series, season, 2)}
    return {prefix + name: np.zeros(shape) for name, shape in shapes.items() for prefix in ("", "first_")}


def _add_partial(allowed_forms: Any) -> Any:
    """The forms to fit: the full one needs the partial one as a start."""
    extended = allowed_forms.copy()
    extended[:, 2] |= extended[:, 3]
    return extended


def _initial_indices(y: Floats, indptr: Ints, season: int, allowed_forms: Any) -> Floats:
    """Additive seasonal indices, phase of the first row first; 0 for series without one."""
    initial, lengths = np.zeros((len(indptr) - 1, season)), np.diff(indptr)
    selected = allowed_forms[:, 2:].any(axis=1)
    rows = np.repeat(selected, lengths)
    if rows.any():
        filled = seasonality.interpolate(y, indptr)
        seasonal_index, _ = seasonality.decompose(
            filled[rows], lengths[selected], season, additive=True, is_observed=~np.isnan(y[rows])
        )
        first_row_order = (np.arange(season) - lengths[selected][:, None]) % season  # phases relative to the first row
        initial[selected] = np.take_along_axis(np.nan_to_num(seasonal_index), first_row_order, axis=1)
    return initial


def _backcast_states(panel: Panel, arrays: Mapping[str, Any], selected: Ints) -> tuple[Floats, Floats]:
    """Level and season before the first row of other histories, for given parameters."""
    from deepforecast.kernels import ces

    histories = panel.take(selected) if len(selected) < len(panel) else panel
    season, forms = arrays["season"].shape[1], arrays["form"][selected]
    allowed_forms = np.arange(4) == forms[:, None]
    allowed_forms &= (histories.lengths >= 2 * season)[:, None]  # shorter ones start from a season of 0
    seasonal_index = _initial_indices(histories.y, histories.indptr, season, allowed_forms)
    return ces.backcast_states(
        histories.y, histories.indptr, forms, np.ascontiguousarray(arrays["parameters"][selected]), seasonal_index
    )


def _forecast_components(learned: LearnedState, steps: int) -> tuple[Floats, Floats]:
    from deepforecast.kernels import ces

    parameters = learned["form"], learned["parameters"]
    with np.errstate(over="ignore", invalid="ignore"):
        return ces.forecast_components(*parameters, learned["level"], learned["season"], steps)


def _impulse_response(learned: LearnedState, steps: int) -> Floats:
    """Response of each row to a unit shock, (series, age + steps)."""
    from deepforecast.kernels import ces

    season, rows = learned["season"].shape[1], int(learned["age"].max()) + steps
    with np.errstate(over="ignore", invalid="ignore"):
        return ces.impulse_response(learned["form"], learned["parameters"], season, rows)


def _variance(learned: LearnedState, steps: int) -> Floats:
    """Variances of the steps ahead for unit shocks."""
    variance = correlated_variances(_impulse_response(learned, steps), learned["persistence"])
    return np.take_along_axis(variance, _horizon_lags(learned, steps), axis=1)


def _horizon_lags(learned: LearnedState, steps: int) -> Ints:
    """Distance of each step ahead from the first missing row at the end, (series, steps)."""
    return np.asarray(learned["age"][:, None] + np.arange(steps))
