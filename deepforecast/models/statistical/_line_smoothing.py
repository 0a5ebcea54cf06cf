"""Base classes of Theta models: recursions on seasonally adjusted series."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from deepforecast.core import seasonality
from deepforecast.core.arrays import segment_reduce
from deepforecast.core.encoding import InvalidManifest, SkopsSerializer
from deepforecast.core.forecast import Forecast, seeded_normal
from deepforecast.core.monitor import Monitor
from deepforecast.core.params import Not, param
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
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError
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
from deepforecast.models.statistical._missing_value_variance import deviation_after_missing, smoothing_states, variance_ratio
from deepforecast.models.statistical._perfect_fit import (
    RESIDUAL_ARRAYS,
    compute_by_age,
    residual_spread,
    rows_since_observed,
    update_residual_spread,
)

MIN_ROWS_TO_SKIP = 10  # in shorter series all errors count in the objective


class ThetaForm(NamedTuple):
    """A Theta recursion to be fitted.

    `dynamic`: whether the line is updated with each value; `weight_bounds`: of w = 1 - 1/theta;
    `alpha_bounds`: equal bounds fix a parameter; `n_skipped`: number of errors at the start that do
    not count in the objective.
    """

    dynamic: bool
    weight_bounds: tuple[float, float] = (0.0, 1.0)
    alpha_bounds: tuple[float, float] = (0.1, 0.99)
    n_skipped: int = 0

    @property
    def n_parameters(self) -> int:
        """Number of estimated parameters: alpha, the initial level, and w if it is not fixed."""
        return 2 + (self.weight_bounds[0] < self.weight_bounds[1])


def line_weight(theta: float) -> float:
    """w = 1 - 1/theta, the weight of the line (theta = 0) in the forecast."""
    return 1.0 - 1.0 / theta


class ThetaFamily(Statistical):
    """Base class of Theta models: y = season * x or season + x, with a recursion for x.

    Learned arrays, one row per series:

    - `alpha`; `weight`: 1 - 1/theta; `dynamic`: whether the line is updated
    - `start`, `state`: states of the recursion of x - `centre`, before the first row, at time
      `start_time`, and after the last row
    - `index` (phases,): seasonal indices by calendar phase, all equal without a season; `additive`:
      whether they are added; `phase`: calendar phase of the first step ahead
    - `deviation`: standard deviation of the errors of x; `deviation_factor`: sqrt(1 + k / n) for the
      estimated parameters; `degrees_of_freedom`; `error_correlation`: see `_intervals`
    - `n_errors`: number of errors in the objective; `residual_df`: the same minus k
    - `age`: number of missing rows at the end
    - `noise_floor`, `n_errors_since`: see `_perfect_fit`
    """

    capabilities = Capabilities(distribution="analytic", missing=True, simulates=True, explains=True, scale_equivariant=True)
    seconds_per_value = 4e-7
    min_cycles = 2  # smallest number of full cycles of a series that is tested for a season

    season_length: int | Literal["auto"] = param(
        default="auto", at_least=1, needs={"decomposition": Not("none")}, off=1,
        help="number of time steps per season; 1: no season; 'auto': inferred from the frequency of the data",
    )
    decomposition: Literal["auto", "multiplicative", "additive", "none"] = param(
        default="auto", needs={"season_length": Not(1)}, off="none",
        help="type of the seasonal component, which is used if it passes a 90 % significance test; 'auto':"
        " 'multiplicative' if values and indices are positive, else 'additive'; 'none': non-seasonal",
    )

    def _forms(self) -> tuple[ThetaForm, ...]:
        """The candidate recursions, one of which is selected for each series."""
        raise NotImplementedError

    def _selection_criterion(self, form: ThetaForm, loss: Floats, n_errors: Ints) -> Floats:
        """Criterion of a recursion for each series; the one with the smallest is selected. By default the loss."""
        return loss

    def _min_observations(self, panel: Panel) -> int:
        return 4

    def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
        if self.decomposition != "none":
            length = resolve_season(self.season_length, panel, self, "season_length")
            seasonality.warn_short_series(panel, length, self.name, self.min_cycles * length)
        return super()._fit(panel, monitor)

    def _estimate(self, panel: Panel) -> LearnedState:
        """Remove the season, select a recursion for each series, and filter to its end."""
        length = resolve_season(self.season_length, panel, self, "season_length")
        index, additive = self._seasonal_indices(panel, length)
        phase = _next_phase(panel, length)
        index = np.take_along_axis(index, (np.arange(length) - phase[:, None]) % length, axis=1)
        arrays: dict[str, Any] = {"index": index, "additive": additive, "phase": phase, "start_time": panel.start}
        x = _deseasonalize(panel, arrays)
        arrays["centre"] = x[_first_observed_rows(x, panel.indptr)]
        x, power = _rescale(x - np.repeat(arrays["centre"], panel.lengths), panel.indptr)
        season_df = np.where(_has_season(index), length - 1, 0)
        arrays |= self._select_form(x, panel.indptr, season_df)
        arrays |= residual_spread(panel, np.ldexp(arrays["deviation"], power))
        arrays["start"] = _restore_scale(arrays["start"], power)
        arrays |= _degrees_and_factor(arrays)
        learned = self._advance(LearnedState(arrays), panel, True)
        return replace(learned, by_series={**learned.by_series, **self._residual_arrays(learned, panel)})

    def _residual_arrays(self, learned: LearnedState, panel: Panel) -> dict[str, Floats]:
        """`deviation` at the end of each series, and `error_correlation`, from the seasonally adjusted errors."""
        arrays, fitted = learned.by_series, self._fitted(learned, panel)
        factor = np.where(np.repeat(arrays["additive"], panel.lengths), 1.0, _seasonal_index_of_rows(panel, arrays))
        raw_errors, sizes = (panel.y - fitted) / factor, fitted / factor
        rates = np.column_stack([arrays["alpha"], *np.zeros((2, len(panel))), np.ones(len(panel))])
        is_observed = ~np.isnan(raw_errors)
        errors = raw_errors / deviation_after_missing(is_observed, panel.indptr, smoothing_states(rates, season=1))
        deviation = arrays["deviation"] * variance_ratio(raw_errors, errors, panel.indptr)
        deviation = deviation * proportional_spread(errors, sizes, panel.indptr, arrays["index"].shape[1])
        return {"deviation": deviation, "error_correlation": residual_correlation(errors, panel.indptr)}

    def _select_form(self, x: Floats, indptr: Ints, season_df: Ints) -> dict[str, Any]:
        """Fit all candidate recursions; the arrays of the one with the smallest criterion, for each series.

        `x`: seasonally adjusted, centred and scaled values; `season_df`: degrees of freedom of the season.
        """
        candidates, criteria = [], []
        for form in self._forms():
            n_skipped, n_errors = _count_errors(x, indptr, form.n_skipped)
            low_alpha, high_alpha, low_weight, high_weight, slope = (
                np.full(len(n_errors), value) for value in (*form.alpha_bounds, *form.weight_bounds, np.nan)
            )
            is_dynamic = np.full(len(n_errors), form.dynamic)
            alpha, weight, loss, squares, start = _kernel().estimate(
                x, indptr, (low_alpha, high_alpha), (low_weight, high_weight), slope, is_dynamic, n_skipped
            )
            n_slopes = int(not form.dynamic)  # the slope of a line that is not updated is a parameter
            residual_df = n_errors - form.n_parameters - n_slopes - season_df
            deviation = np.where(residual_df > 0, np.sqrt(squares / np.maximum(residual_df, 1)), np.nan)
            candidates.append(
                {
                    "alpha": alpha,
                    "weight": weight,
                    "start": start,
                    "deviation": deviation,
                    "dynamic": is_dynamic,
                    "residual_df": residual_df,
                    "n_errors": n_errors,
                }
            )
            criteria.append(self._selection_criterion(form, loss, n_errors))
        best_form, series = np.argmin(criteria, axis=0), np.arange(len(indptr) - 1)
        return {name: np.stack([arrays[name] for arrays in candidates])[best_form, series] for name in candidates[0]}

    def _advance(self, learned: LearnedState, panel: Panel, from_start: bool) -> LearnedState:
        """The state after the rows: filtered from the start of the history, or continued from the last state.

        The initial states of a history that does not start at the time of the training data are estimated again for
        the same parameters.
        """
        arrays = {**learned.by_series, "phase": _next_phase(panel, learned["index"].shape[1])}
        x = _deseasonalize(panel, arrays)
        restarted = np.flatnonzero((panel.start != arrays["start_time"]) & from_start)
        if len(restarted):
            arrays |= {name: arrays[name].copy() for name in ("centre", "start")}
            arrays["centre"][restarted] = x[_first_observed_rows(x, panel.indptr)[restarted]]
        x = x - np.repeat(arrays["centre"], panel.lengths)
        if len(restarted):
            arrays["start"][restarted] = _restart_states(x, panel.indptr, arrays, restarted)
            arrays["start_time"] = panel.start
        first_state = arrays["start" if from_start else "state"]
        fitted, arrays["state"] = _kernel().filter_series(
            x, panel.indptr, first_state, arrays["alpha"], arrays["weight"], arrays["dynamic"]
        )
        arrays["age"] = rows_since_observed(panel, None if from_start else arrays["age"])
        arrays |= update_residual_spread(arrays, panel, x - fitted, from_start)
        return LearnedState(arrays, history=panel if from_start else None)

    def _deserialize(self, learned: LearnedState, foreign: SkopsSerializer) -> LearnedState:
        """Check the arrays of a model file; raise `InvalidManifest` if they are inconsistent."""
        shape = learned["index"].shape
        if len(shape) != 2 or not shape[1]:
            raise InvalidManifest("the seasonal index must have at least one phase per series")
        check_integers(learned, "phase", 0, shape[1] - 1)
        check_floats(learned, ["start", "state"], (_kernel().STATE_SIZE,))
        check_floats(learned, ["alpha", "weight", "centre", "deviation"], ())
        names = ["additive", "dynamic", "start_time", "residual_df", "n_errors", "error_correlation", *RESIDUAL_ARRAYS]
        check_vectors(learned, names)
        check_gaps(learned, MAX_SIMULATED_GAP)
        return learned

    def _parameter_columns(self, learned: LearnedState, state: State) -> dict[str, Any]:
        """Whether the line is updated, theta, alpha, initial level and slope, type of the season, and sigma."""
        kernel, start = _kernel(), learned["start"]
        types = np.where(learned["additive"], "additive", "multiplicative")
        season_types = np.where(_has_season(learned["index"]), types, "none")
        with np.errstate(divide="ignore"):
            theta = 1.0 / (1.0 - learned["weight"])
        return {
            "dynamic": learned["dynamic"], "theta": theta, "alpha": learned["alpha"],
            "level": start[:, kernel.LEVEL] + learned["centre"],
            "slope": start[:, kernel.PRODUCTS] / np.where(start[:, kernel.SQUARES] > 0, start[:, kernel.SQUARES], 1.0),
            "season": season_types.astype(object), "sigma": learned["deviation"],
        }  # fmt: skip

    def _fitted(self, learned: LearnedState, panel: Panel) -> Floats:
        """One-step-ahead forecasts of the rows, with the season, from the state before the first row."""
        arrays = {**learned.by_series, "phase": _next_phase(panel, learned["index"].shape[1])}
        centre = np.repeat(arrays["centre"], panel.lengths)
        x = _deseasonalize(panel, arrays) - centre
        fitted, _ = _kernel().filter_series(
            x, panel.indptr, arrays["start"], arrays["alpha"], arrays["weight"], arrays["dynamic"]
        )
        index = _seasonal_index_of_rows(panel, arrays)
        is_additive = np.repeat(arrays["additive"], panel.lengths)
        return np.asarray(np.where(is_additive, fitted + centre + index, (fitted + centre) * index))

    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        """Point forecasts with Student's t distributions; a multiplicative season also scales the deviations."""
        parameters = learned["state"], learned["alpha"], learned["weight"], learned["dynamic"]
        deviations = _kernel().path_deviations(*parameters, steps, learned["age"])
        deviations *= compute_by_age(learned, lambda group: _correlation_factor(group, steps))
        slope_deviations = compute_by_age(learned, lambda group: _slope_deviation(group, steps))
        deviations = np.hypot(deviations, slope_deviations) * learned["deviation"][:, None]
        with np.errstate(over="ignore", invalid="ignore"):  # `predict` refuses values that are not finite
            mean = _reseasonalize(_simulate_paths(learned, np.zeros((len(deviations), 1, steps))), learned)[:, 0]
            deviations = np.where(learned["additive"][:, None], deviations, deviations * _future_index(learned, steps))
            return StudentForecast(mean, deviations, learned["degrees_of_freedom"])

    def _simulate(self, learned: LearnedState, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]) -> Floats:
        """Sample paths whose errors are autocorrelated, move the level, and include that of the slope."""
        keys = np.column_stack([learned[name] for name in ("state", "alpha", "weight", "deviation", "index")])
        draws = seeded_normal(seed, keys, (3 + steps, samples)).swapaxes(1, 2)
        mixing_draws, slope_draws, error_draws = draws[:, :, 0], draws[:, :, 1], draws[:, :, 2:]
        scale = student_mixing(mixing_draws, learned["degrees_of_freedom"]) * learned["deviation"][:, None]
        slope_deviations = compute_by_age(learned, lambda group: _slope_deviation(group, steps))
        slope_errors = (scale * slope_draws)[:, :, None] * slope_deviations[:, None, :]
        error_scale = (scale * learned["deviation_factor"][:, None])[:, :, None]
        errors = correlate_draws(error_draws, learned["error_correlation"]) * error_scale
        age = learned["age"][:, None]  # the error of each missing row has moved the level by alpha times the error
        shocks = np.where(age[:, :, None] > 0, errors[:, :, 1:], errors[:, :, :-1])
        level_offsets = errors[:, :, 0] * learned["alpha"][:, None] * np.sqrt(age)
        with np.errstate(over="ignore", invalid="ignore"):
            paths = _simulate_paths(learned, np.ascontiguousarray(shocks), level_offsets)
            return _reseasonalize(paths + slope_errors, learned)

    def _explain(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        """Level, trend and season, (series, steps) each; their sum is exactly the point forecast."""
        without_season = _simulate_paths(learned, np.zeros((len(learned["alpha"]), 1, steps)))
        total, without_season = _reseasonalize(without_season, learned)[:, 0], without_season[:, 0]
        level = np.repeat((learned["state"][:, _kernel().LEVEL] + learned["centre"])[:, None], steps, axis=1)
        trend, season = without_season - level, total - without_season
        return {"level": level, "trend": trend, "season": season + (total - (level + trend + season))}

    def _seasonal_indices(self, panel: Panel, length: int) -> tuple[Floats, Any]:
        """Seasonal indices (series, phases), phase 0 the first step ahead, and whether those of a series are additive.

        Series without a significant season have neutral indices.
        """
        if self.decomposition == "none":
            return np.ones((len(panel), length)), np.zeros(len(panel), dtype=bool)
        index, additive = seasonality.seasonal_indices(panel.y, panel.indptr, length, self.decomposition, self.min_cycles)
        if self.decomposition == "multiplicative" and additive.any():
            raise DataError(
                f"Column {panel.series.columns.target} must be positive for decomposition='multiplicative', but has values "
                f"of 0 or less in series {panel.series.labels(np.flatnonzero(additive))}.",
                hint="Use decomposition='auto' or "
                "'additive', or drop these series.",
                series=panel.series.id_texts(np.flatnonzero(additive)))
        return index, additive


class ForecTheta(ThetaFamily):
    """Base class of models with the bounds of R's forecTheta: alpha in 0.1 to 0.99, theta >= 1."""

    coverage_process: ClassVar[str] = "local_level"

    objective: Literal["likelihood", "squares"] = param(
        default="likelihood",
        help="objective of the estimation; 'likelihood': of all rows, with a diffuse initial level,"
        " 'squares': sum of squared errors from the fourth row on",
    )

    def _form(self, *, dynamic: bool, theta: float | None = None) -> ThetaForm:
        """The recursion for a given theta; None: estimated."""
        weight_bounds = (0.0, 1.0) if theta is None else (line_weight(theta), line_weight(theta))
        return ThetaForm(dynamic, weight_bounds, n_skipped=3 if self.objective == "squares" else 0)


def _degrees_and_factor(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """`degrees_of_freedom`, and the `deviation_factor` for estimated parameters.

    The factor leaves out initial level and slope if the slope enters the forecast, because
    `_slope_deviation` adds their errors.
    """
    n_errors, noise_floor = arrays["n_errors"], arrays["noise_floor"]
    n_parameters = n_errors - arrays["residual_df"]
    n_slope_parameters = np.where(arrays["weight"] > 0.0, np.where(arrays["dynamic"], 1, 2), 0)
    degrees_of_freedom, _ = degrees_and_factor(n_errors, n_parameters, noise_floor)
    _, deviation_factor = degrees_and_factor(n_errors, n_parameters - n_slope_parameters, noise_floor)
    return {"degrees_of_freedom": degrees_of_freedom, "deviation_factor": deviation_factor}


def _has_season(index: Floats) -> Any:
    """Whether the seasonal indices (series, phases) of a series differ."""
    return (index != index[:, :1]).any(axis=1)


def _correlation_factor(learned: LearnedState, steps: int) -> Floats:
    """Factor of forecast standard deviations, (series, steps): `deviation_factor` times that of autocorrelated errors.

    The latter compares simple exponential smoothing with and without the correlation.
    """
    n_rows = int(learned["age"].max(initial=0)) + steps
    responses = np.repeat(learned["alpha"][:, None], n_rows, axis=1)
    responses[:, 0] = 1.0
    uncorrelated = correlated_variances(responses, np.zeros(len(responses)))
    ratio = correlated_variances(responses, learned["error_correlation"]) / uncorrelated
    step_ratio = np.take_along_axis(ratio, learned["age"][:, None] + np.arange(steps), axis=1)
    return np.asarray(np.sqrt(step_ratio) * learned["deviation_factor"][:, None])


def _slope_deviation(learned: LearnedState, steps: int) -> Floats:
    """Standard deviations of the forecasts due to the estimated initial level and slope, (series, steps).

    In units of the error deviation; 0 for series without a line or with a perfect fit. The forecast
    of row t depends on the initial level by (1 - alpha)^(t-1) and on the slope by
    s_t = (1 - (1 - alpha)^t) / alpha; the covariance of both estimates is the inverse of the sums of
    squares and products of these over the n values. Step h depends on them by (1 - alpha)^n and
    s_{n+h} + alpha (s_{n+1} + ... + s_{n+h-1}): for long series a variance of
    (1 + alpha (h - 1))^2 / n, that of a drift.
    """
    alpha, n, age = learned["alpha"], learned["n_errors"].astype(np.float64), learned["age"]
    keep = 1.0 - alpha
    keep_sum = (1.0 - keep**n) / alpha  # of keep^(t-1)
    level_squares = (1.0 - keep ** (2 * n)) / (1.0 - keep * keep)  # sum of keep^(2 (t-1))
    cross_products = (keep_sum - keep * level_squares) / alpha  # sum of keep^(t-1) s_t
    slope_squares = (n - 2 * keep * keep_sum + keep * keep * level_squares) / alpha**2  # sum of s_t^2
    rows = np.arange(1, int(age.max(initial=0)) + steps + 1)
    slope_weight = (1.0 - keep[:, None] ** (n[:, None] + rows)) / alpha[:, None]
    slope_weight[:, 1:] += alpha[:, None] * np.cumsum(slope_weight, axis=1)[:, :-1]
    slope_weight = np.take_along_axis(slope_weight, age[:, None] + np.arange(steps), axis=1)
    level_weight = np.broadcast_to((keep**n)[:, None], slope_weight.shape)
    determinant = np.maximum(level_squares * slope_squares - cross_products**2, 1e-12 * level_squares * slope_squares)
    variance = (
        slope_squares[:, None] * level_weight**2
        - 2 * cross_products[:, None] * level_weight * slope_weight
        + level_squares[:, None] * slope_weight**2
    ) / determinant[:, None]
    is_uncertain = (learned["weight"] > 0.0) & np.isfinite(learned["degrees_of_freedom"])
    return np.sqrt(np.maximum(np.where(is_uncertain[:, None], variance, 0.0), 0.0))


def _kernel() -> Any:
    """The compiled functions; imports numba on first use."""
    from deepforecast.kernels import theta

    return theta


def _restart_states(x: Floats, indptr: Ints, arrays: Mapping[str, Any], selected: Ints) -> Floats:
    """States before the first row of other histories, estimated for given parameters and slope.

    `selected`: indices of the series; their order is that of the result.
    """
    begin, end = indptr[selected], indptr[selected + 1]
    bounds = np.concatenate([[0], np.cumsum(end - begin)])
    x, power = _rescale(x[np.arange(bounds[-1]) + np.repeat(begin - bounds[:-1], end - begin)], bounds)
    kernel, old_start = _kernel(), arrays["start"][selected]
    squares = old_start[:, kernel.SQUARES]
    slope = old_start[:, kernel.PRODUCTS] / np.where(squares > 0, squares, 1.0)
    alpha, weight, dynamic = (arrays[name][selected] for name in ("alpha", "weight", "dynamic"))
    n_skipped = np.zeros(len(selected), np.int64)
    *_, start = kernel.estimate(x, bounds, (alpha, alpha), (weight, weight), np.ldexp(slope, -power), dynamic, n_skipped)
    return _restore_scale(start, power)


def _rescale(x: Floats, indptr: Ints) -> tuple[Floats, Ints]:
    """Each series divided by a power of two near its largest absolute value, and the exponents.

    Squares then neither overflow nor underflow.
    """
    _, power = np.frexp(segment_reduce(np.nan_to_num(np.abs(x)), indptr[:-1], indptr[1:], np.maximum))
    return np.ldexp(x, -np.repeat(power, np.diff(indptr))), power


def _restore_scale(start: Floats, power: Ints) -> Floats:
    """Undo `_rescale` for initial states, in place."""
    kernel = _kernel()
    columns = [kernel.LEVEL, kernel.MEAN, kernel.PRODUCTS]
    start[:, columns] = np.ldexp(start[:, columns], power[:, None])
    return start


def _count_errors(x: Floats, indptr: Ints, n_skipped: int) -> tuple[Ints, Ints]:
    """Number of rows of each series, from the first value on, whose errors do not count; and number of those that do."""
    first_row, end = _first_observed_rows(x, indptr), indptr[1:]
    n_skipped_by_series = np.where(end - first_row >= MIN_ROWS_TO_SKIP, n_skipped, 0)
    return n_skipped_by_series, segment_reduce(~np.isnan(x), first_row + n_skipped_by_series, end)


def _first_observed_rows(x: Floats, indptr: Ints) -> Ints:
    """Row, in the whole array, of the first value of each series that is not missing."""
    observed_rows = np.flatnonzero(~np.isnan(x))
    return observed_rows[np.searchsorted(observed_rows, indptr[:-1])]


def _next_phase(panel: Panel, length: int) -> Ints:
    """Calendar phase of the first step ahead; histories may end at different times."""
    return np.asarray((panel.series.last // panel.calendar.step + 1) % length)


def _seasonal_index_of_rows(panel: Panel, arrays: Mapping[str, Any]) -> Floats:
    """Seasonal index of each row, (rows,), aligned with the end of each series."""
    length = arrays["index"].shape[1]
    phase = np.arange(len(panel.y)) - np.repeat(panel.indptr[1:] - arrays["phase"], panel.lengths)
    return np.asarray(arrays["index"][panel.row_series, phase % length])


def _deseasonalize(panel: Panel, arrays: Mapping[str, Any]) -> Floats:
    index = _seasonal_index_of_rows(panel, arrays)
    return np.where(np.repeat(arrays["additive"], panel.lengths), panel.y - index, panel.y / index)


def _future_index(learned: LearnedState, steps: int) -> Floats:
    """Seasonal index of each step ahead, (series, steps)."""
    length = learned["index"].shape[1]
    return np.take_along_axis(learned["index"], (learned["phase"][:, None] + np.arange(steps)) % length, axis=1)


def _reseasonalize(paths: Floats, learned: LearnedState) -> Floats:
    index = _future_index(learned, paths.shape[-1])[:, None, :]
    return np.where(learned["additive"][:, None, None], paths + index, paths * index)


def _simulate_paths(learned: LearnedState, shocks: Floats, level_offsets: Floats | None = None) -> Floats:
    """Seasonally adjusted paths, (series, samples, steps), for `shocks` of the same shape.

    `level_offsets`, (series, samples), are added to the last level; shocks of 0 give the point forecasts.
    """
    paths = _kernel().simulate_paths(
        learned["state"], learned["alpha"], learned["weight"], learned["dynamic"], shocks, level_offsets
    )
    return np.asarray(paths + learned["centre"][:, None, None])
