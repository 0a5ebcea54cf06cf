"""Base classes of Theta models: recursions on seasonally adjusted series."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from deepforecast.core.capabilities import Capabilities
from deepforecast.core.forecast import Forecast
from deepforecast.core.integer_bounds import MAX_SIMULATED_GAP, check_floats, check_gaps, check_integers
from deepforecast.core.manifest import InvalidManifest
from deepforecast.core.monitor import Monitor
from deepforecast.core.noise import standard_normal
from deepforecast.core.params import param
from deepforecast.core.skops_objects import SkopsSerializer
from deepforecast.core.state import LearnedState, State
from deepforecast.core.unused_parameters import NO_SEASON
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError
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
from deepforecast.models.statistical._missing_value_variance import deviation_after_missing, smoothing_states, variance_ratio
from deepforecast.models.statistical._perfect_fit import (
    compute_by_age,
    residual_spread,
    rows_since_observed,
    update_residual_spread,
)

MIN_SKIP_ROWS = 10  # shorter series count all errors in the objective


class ThetaForm(NamedTuple):
    """A Theta recursion: bounds of w = 1 - 1/theta and alpha, and number of skipped errors."""

    dynamic: bool
    weight: tuple[float, float] = (0.0, 1.0)
    alpha: tuple[float, float] = (0.1, 0.99)
    skip: int = 0

    @property
    def n_parameters(self) -> int:
        """Number of estimated parameters: alpha, the initial level, and w if it is free."""
        return 2 + (self.weight[0] < self.weight[1])


def weight_of(theta: float) -> float:
    """Weight 1 - 1/theta of the line theta = 0."""
    return 1.0 - 1.0 / theta


class ThetaFamily(Statistical):
    """Base class of Theta models: y = season * x or season + x, with a recursion for x.

    Learned arrays: `alpha`, `weight` (1 - 1/theta), `dynamic`; `start` and `state` of x - `centre`,
    before the first and after the last row; `age`, the number of missing rows at the end; `index`,
    the seasonal indices by calendar phase; `phase` of the first step ahead; and `ripple` and
    `since` (see `_perfect_fit`).
    """

    capabilities = Capabilities(distribution="analytic", missing=True, simulates=True, explains=True, scale_equivariant=True)
    seconds_per_value = 4e-7
    min_cycles = 2  # for a series to be tested for a season

    season_length: int | Literal["auto"] = param(
        default="auto", at_least=1, help="number of time steps per season; 'auto': by the frequency of the data",
    )
    decomposition: Literal["auto", "multiplicative", "additive", "none"] = param(
        default="auto",
        help="type of the season, if it passes the 90 % test; 'auto': multiplicative if values and"
        " indices are positive, else additive",
    )

    def _forms(self) -> tuple[ThetaForm, ...]:
        """The candidate recursions."""
        raise NotImplementedError

    def _score(self, form: ThetaForm, loss: Floats, count: Ints) -> Floats:
        """Criterion that selects the recursion, to be minimized; by default the loss."""
        return loss

    def _idle(self) -> Iterator[tuple[str, str]]:
        if self.decomposition == "none":
            yield "season_length", "with decomposition='none'. Set decomposition='auto', or leave it out"
        if self.season_length == NO_SEASON and self.decomposition != "none":
            yield "decomposition", "without a season. Pass a season_length above 1, or leave it out"

    def _min_observations(self, panel: Panel) -> int:
        return 4

    def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
        if self.decomposition != "none":
            length = resolve_season(self.season_length, panel, self, "season_length")
            seasonality.warn_short_series(panel, length, self.name, self.min_cycles * length)
        return super()._fit(panel, monitor)

    def _estimate(self, panel: Panel) -> LearnedState:
        length = resolve_season(self.season_length, panel, self, "season_length")
        index, additive = self._seasonal_indices(panel, length)
        phase = _next_phase(panel, length)
        index = np.take_along_axis(index, (np.arange(length) - phase[:, None]) % length, axis=1)
        arrays: dict[str, Any] = {"index": index, "additive": additive, "phase": phase, "began": panel.start}
        x = _deseasonalize(panel, arrays)
        arrays["centre"] = x[_first_rows(x, panel.indptr)]
        x, power = _rescale(x - np.repeat(arrays["centre"], panel.lengths), panel.indptr)
        arrays |= self._select_form(x, panel.indptr, np.where((index != index[:, :1]).any(axis=1), length - 1, 0))
        arrays |= residual_spread(panel, np.ldexp(arrays["deviation"], power))
        arrays["start"] = _restore_scale(arrays["start"], power)
        arrays |= _degrees_and_factor(arrays)
        learned = self._advance(LearnedState(arrays), panel, True)
        return replace(learned, by_series={**learned.by_series, **self._residual_arrays(learned, panel)})

    def _residual_arrays(self, learned: LearnedState, panel: Panel) -> dict[str, Floats]:
        """Residual deviation at the end of each series, and `residual_correlation`."""
        arrays, fitted = learned.by_series, self._fitted(learned, panel)
        rows = np.where(np.repeat(arrays["additive"], panel.lengths), 1.0, _row_index(panel, arrays))
        errors, sizes = (panel.y - fitted) / rows, fitted / rows
        rates = np.column_stack([arrays["alpha"], *np.zeros((2, len(panel))), np.ones(len(panel))])
        raw, errors = errors, errors / deviation_after_missing(~np.isnan(errors), panel.indptr, smoothing_states(rates, 1))
        deviation = arrays["deviation"] * variance_ratio(raw, errors, panel.indptr)
        deviation = deviation * proportional_spread(errors, sizes, panel.indptr, arrays["index"].shape[1])
        return {"deviation": deviation, "persistence": residual_correlation(errors, panel.indptr)}

    def _select_form(self, x: Floats, indptr: Ints, season_df: Ints) -> dict[str, Any]:
        """Parameters and initial state of the best recursion.

        `season_df`: degrees of freedom of the season.
        """
        candidates, scores = [], []
        for form in self._forms():
            skips, count = _count_errors(x, indptr, form.skip)
            bounds = [np.full(len(count), bound) for bound in (*form.alpha, *form.weight, np.nan)]
            estimates = _kernel().estimate(
                x, indptr, bounds[:2], bounds[2:4], bounds[4], np.full(len(count), form.dynamic), skips
            )
            alpha, weight, loss, squares, start = estimates
            residual_df = count - form.n_parameters - (not form.dynamic) - season_df  # and the slope of a fixed line
            deviation = np.where(residual_df > 0, np.sqrt(squares / np.maximum(residual_df, 1)), np.nan)
            candidates.append({"alpha": alpha, "weight": weight, "start": start, "deviation": deviation})
            candidates[-1] |= {"dynamic": np.full(len(count), form.dynamic), "free": residual_df, "count": count}
            scores.append(self._score(form, loss, count))
        best, rows = np.argmin(scores, axis=0), np.arange(len(indptr) - 1)
        return {name: np.stack([arrays[name] for arrays in candidates])[best, rows] for name in candidates[0]}

    def _advance(self, learned: LearnedState, panel: Panel, fresh: bool) -> LearnedState:
        arrays = {**learned.by_series, "phase": _next_phase(panel, learned["index"].shape[1])}
        x = _deseasonalize(panel, arrays)
        restarted = np.flatnonzero((panel.start != arrays["began"]) & fresh)
        if len(restarted):
            arrays |= {name: arrays[name].copy() for name in ("centre", "start")}
            arrays["centre"][restarted] = x[_first_rows(x, panel.indptr)[restarted]]
        x = x - np.repeat(arrays["centre"], panel.lengths)
        if len(restarted):
            arrays["start"][restarted] = _restart_states(x, panel.indptr, arrays, restarted)
            arrays["began"] = panel.start
        begin = arrays["start" if fresh else "state"]
        fitted, arrays["state"] = _kernel().filter_series(
            x, panel.indptr, begin, arrays["alpha"], arrays["weight"], arrays["dynamic"]
        )
        arrays["age"] = rows_since_observed(panel, None if fresh else arrays["age"])
        arrays |= update_residual_spread(arrays, panel, x - fitted, fresh)
        return LearnedState(arrays, history=panel if fresh else None)

    def _deserialize(self, learned: LearnedState, foreign: SkopsSerializer) -> LearnedState:
        shape = learned["index"].shape
        if len(shape) != 2 or not shape[1]:
            raise InvalidManifest("the seasonal index must have at least one phase per series")
        check_integers(learned, "phase", 0, shape[1] - 1)
        check_floats(learned, ["start", "state"], (_kernel().STATE_SIZE,))
        check_floats(learned, ["alpha", "weight", "centre", "deviation"], ())
        check_gaps(learned, MAX_SIMULATED_GAP)
        return learned

    def _parameter_columns(self, learned: LearnedState, state: State) -> dict[str, Any]:
        """theta, alpha, initial level and slope of the line, type of the season, and sigma."""
        kernel, start = _kernel(), learned["start"]
        seasonal = (learned["index"] != learned["index"][:, :1]).any(axis=1)
        season_names = np.where(seasonal, np.where(learned["additive"], "additive", "multiplicative"), "none")
        with np.errstate(divide="ignore"):
            theta = 1.0 / (1.0 - learned["weight"])
        return {
            "dynamic": learned["dynamic"], "theta": theta, "alpha": learned["alpha"],
            "level": start[:, kernel.LEVEL] + learned["centre"],
            "slope": start[:, kernel.PRODUCTS] / np.where(start[:, kernel.SQUARES] > 0, start[:, kernel.SQUARES], 1.0),
            "season": season_names.astype(object), "sigma": learned["deviation"],
        }  # fmt: skip

    def _fitted(self, learned: LearnedState, panel: Panel) -> Floats:
        arrays = {**learned.by_series, "phase": _next_phase(panel, learned["index"].shape[1])}
        centre = np.repeat(arrays["centre"], panel.lengths)
        x = _deseasonalize(panel, arrays) - centre
        fitted, _ = _kernel().filter_series(
            x, panel.indptr, arrays["start"], arrays["alpha"], arrays["weight"], arrays["dynamic"]
        )
        rows = _row_index(panel, arrays)
        additive = np.repeat(arrays["additive"], panel.lengths)
        return np.asarray(np.where(additive, fitted + centre + rows, (fitted + centre) * rows))

    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        parameters = learned["state"], learned["alpha"], learned["weight"], learned["dynamic"]
        deviations = _kernel().path_deviations(*parameters, steps, learned["age"])
        deviations *= compute_by_age(learned, lambda group: _correlation_factor(group, steps))
        slope = compute_by_age(learned, lambda group: _slope_deviation(group, steps))
        deviations = np.hypot(deviations, slope) * learned["deviation"][:, None]
        with np.errstate(over="ignore", invalid="ignore"):  # `predict` refuses values that are not finite
            mean = _reseasonalize(_simulate_paths(learned, np.zeros((len(deviations), 1, steps))), learned)[:, 0]
            deviations = np.where(learned["additive"][:, None], deviations, deviations * _future_index(learned, steps))
            return StudentForecast(mean, deviations, learned["freedom"])

    def _simulate(self, learned: LearnedState, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]) -> Floats:
        keys = np.column_stack([learned[name] for name in ("state", "alpha", "weight", "deviation", "index")])
        draws = standard_normal(seed, keys, (3 + steps, samples)).swapaxes(1, 2)
        scale = student_mixing(draws[:, :, 0], learned["freedom"]) * learned["deviation"][:, None]
        slope = compute_by_age(learned, lambda group: _slope_deviation(group, steps))
        slope = (scale * draws[:, :, 1])[:, :, None] * slope[:, None, :]
        draws = correlate_draws(draws[:, :, 2:], learned["persistence"]) * (scale * learned["wider"][:, None])[:, :, None]
        age = learned["age"][:, None]  # the errors of missing rows have moved the level by alpha each
        shocks = np.where(age[:, :, None] > 0, draws[:, :, 1:], draws[:, :, :-1])
        level_offsets = draws[:, :, 0] * learned["alpha"][:, None] * np.sqrt(age)
        with np.errstate(over="ignore", invalid="ignore"):
            return _reseasonalize(_simulate_paths(learned, np.ascontiguousarray(shocks), level_offsets) + slope, learned)

    def _explain(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        without_season = _simulate_paths(learned, np.zeros((len(learned["alpha"]), 1, steps)))
        total, without_season = _reseasonalize(without_season, learned)[:, 0], without_season[:, 0]
        level = np.repeat((learned["state"][:, _kernel().LEVEL] + learned["centre"])[:, None], steps, axis=1)
        trend, season = without_season - level, total - without_season
        return {"level": level, "trend": trend, "season": season + (total - (level + trend + season))}

    def _seasonal_indices(self, panel: Panel, length: int) -> tuple[Floats, Any]:
        """Indices (series, phases), phase 0 the first step ahead, and which are additive."""
        if self.decomposition == "none":
            return np.ones((len(panel), length)), np.zeros(len(panel), dtype=bool)
        index, additive = seasonality.seasonal_indices(panel.y, panel.indptr, length, self.decomposition, self.min_cycles)
        if self.decomposition == "multiplicative" and additive.any():
            raise DataError(
                f"Column {panel.series.columns.target} must be above 0 for decomposition='multiplicative'; it is not in "
                f"series {panel.series.labels(np.flatnonzero(additive))}. Use decomposition='auto' or 'additive', or leave "
                "these series out."
            )
        return index, additive


class Fiorucci(ThetaFamily):
    """Base class of models with the bounds of R's forecTheta: alpha in 0.1 to 0.99, theta >= 1."""

    coverage_process: ClassVar[str] = "local_level"

    objective: Literal["likelihood", "squares"] = param(
        default="likelihood",
        help="objective of the estimation; 'squares': sum of squared errors from the fourth row on;"
        " 'likelihood': of all rows, with a diffuse initial level",
    )

    def _form(self, *, dynamic: bool, theta: float | None = None) -> ThetaForm:
        weight = (0.0, 1.0) if theta is None else (weight_of(theta), weight_of(theta))
        return ThetaForm(dynamic, weight, skip=3 if self.objective == "squares" else 0)


def _degrees_and_factor(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Degrees of freedom and the factor of deviations for estimated parameters.

    The errors of initial level and slope are not in the factor if the slope enters the forecast:
    `_slope_deviation` adds them.
    """
    count, estimated = arrays["count"], arrays["count"] - arrays["free"]
    n_slope_parameters = np.where(arrays["weight"] > 0.0, np.where(arrays["dynamic"], 1, 2), 0)
    degrees_of_freedom, _ = degrees_and_factor(count, estimated, arrays["ripple"])
    return {
        "freedom": degrees_of_freedom,
        "wider": degrees_and_factor(count, estimated - n_slope_parameters, arrays["ripple"])[1],
    }


def _correlation_factor(learned: LearnedState, steps: int) -> Floats:
    """Factor of deviations: `wider`, times that of autocorrelated errors, (series, steps)."""
    rows = int(learned["age"].max(initial=0)) + steps
    responses = np.repeat(learned["alpha"][:, None], rows, axis=1)
    responses[:, 0] = 1.0
    ratio = correlated_variances(responses, learned["persistence"]) / correlated_variances(responses, np.zeros(len(responses)))
    step_ratio = np.take_along_axis(ratio, learned["age"][:, None] + np.arange(steps), axis=1)
    return np.asarray(np.sqrt(step_ratio) * learned["wider"][:, None])


def _slope_deviation(learned: LearnedState, steps: int) -> Floats:
    """Standard deviation of the steps ahead due to the estimated initial level and slope.

    In units of the error deviation, (series, steps). The forecast of row t depends on the initial
    level by (1 - alpha)^(t-1) and on the slope by s_t = (1 - (1 - alpha)^t) / alpha; the covariance
    of both estimates is the inverse of the sums of squares and products of these over the n values.
    Step h depends on them by (1 - alpha)^n and s_{n+h} + alpha (s_{n+1} + ... + s_{n+h-1}): for
    long series a variance of (1 + alpha (h - 1))^2 / n, that of a drift.
    """
    alpha, n, age = learned["alpha"], learned["count"].astype(np.float64), learned["age"]
    keep = 1.0 - alpha
    ones, twos = (1.0 - keep**n) / alpha, (1.0 - keep ** (2 * n)) / (1.0 - keep * keep)  # sums of keep^(t-1), keep^(2 t-2)
    cross = (ones - keep * twos) / alpha
    slopes = (n - 2 * keep * ones + keep * keep * twos) / alpha**2
    rows = np.arange(1, int(age.max(initial=0)) + steps + 1)
    slope_weight = (1.0 - keep[:, None] ** (n[:, None] + rows)) / alpha[:, None]
    slope_weight[:, 1:] += alpha[:, None] * np.cumsum(slope_weight, axis=1)[:, :-1]
    slope_weight = np.take_along_axis(slope_weight, age[:, None] + np.arange(steps), axis=1)
    first = np.broadcast_to((keep**n)[:, None], slope_weight.shape)
    determinant = np.maximum(twos * slopes - cross**2, 1e-12 * twos * slopes)[:, None]
    variance = (
        slopes[:, None] * first**2 - 2 * cross[:, None] * first * slope_weight + twos[:, None] * slope_weight**2
    ) / determinant
    is_uncertain = (learned["weight"] > 0.0) & np.isfinite(learned["freedom"])
    return np.sqrt(np.maximum(np.where(is_uncertain[:, None], variance, 0.0), 0.0))


def _kernel() -> Any:
    """The compiled functions; imports numba on first use."""
    from deepforecast.kernels import theta

    return theta


def _restart_states(x: Floats, indptr: Ints, arrays: Mapping[str, Any], selected: Ints) -> Floats:
    """States before the first row of other histories, for given parameters."""
    begin, end = indptr[selected], indptr[selected + 1]
    bounds = np.concatenate([[0], np.cumsum(end - begin)])
    x, power = _rescale(x[np.arange(bounds[-1]) + np.repeat(begin - bounds[:-1], end - begin)], bounds)
    kernel, old = _kernel(), arrays["start"][selected]
    slope = old[:, kernel.PRODUCTS] / np.where(old[:, kernel.SQUARES] > 0, old[:, kernel.SQUARES], 1.0)
    alpha, weight, dynamic = (arrays[name][selected] for name in ("alpha", "weight", "dynamic"))
    skips = np.zeros(len(selected), np.int64)
    *_, start = kernel.estimate(x, bounds, (alpha, alpha), (weight, weight), np.ldexp(slope, -power), dynamic, skips)
    return _restore_scale(start, power)


def _rescale(x: Floats, indptr: Ints) -> tuple[Floats, Ints]:
    """Values divided by a power of 2 near the largest, and its exponent: squares stay in range."""
    _, power = np.frexp(segment_reduce(np.nan_to_num(np.abs(x)), indptr[:-1], indptr[1:], np.maximum))
    return np.ldexp(x, -np.repeat(power, np.diff(indptr))), power


def _restore_scale(start: Floats, power: Ints) -> Floats:
    """Undo `_rescale` for states."""
    kernel = _kernel()
    columns = [kernel.LEVEL, kernel.MEAN, kernel.PRODUCTS]
    start[:, columns] = np.ldexp(start[:, columns], power[:, None])
    return start


def _count_errors(x: Floats, indptr: Ints, skip: int) -> tuple[Ints, Ints]:
    """Numbers of errors at the start of each series that do not count, and of those that do."""
    first, end = _first_rows(x, indptr), indptr[1:]
    skips = np.where(end - first >= MIN_SKIP_ROWS, skip, 0)
    return skips, segment_reduce(~np.isnan(x), first + skips, end)


def _first_rows(x: Floats, indptr: Ints) -> Ints:
    """Row of the first value of each series."""
    observed_rows = np.flatnonzero(~np.isnan(x))
    return observed_rows[np.searchsorted(observed_rows, indptr[:-1])]


def _next_phase(panel: Panel, length: int) -> Ints:
    """Calendar phase of the first step ahead; histories may end at different times."""
    return np.asarray((panel.series.last // panel.calendar.step + 1) % length)


def _row_index(panel: Panel, arrays: Mapping[str, Any]) -> Floats:
    """Seasonal index of each row."""
    length = arrays["index"].shape[1]
    phase = np.arange(len(panel.y)) - np.repeat(panel.indptr[1:] - arrays["phase"], panel.lengths)
    return np.asarray(arrays["index"][panel.row_series, phase % length])


def _deseasonalize(panel: Panel, arrays: Mapping[str, Any]) -> Floats:
    rows = _row_index(panel, arrays)
    return np.where(np.repeat(arrays["additive"], panel.lengths), panel.y - rows, panel.y / rows)


def _future_index(learned: LearnedState, steps: int) -> Floats:
    """Seasonal index of each step ahead, (series, steps)."""
    length = learned["index"].shape[1]
    return np.take_along_axis(learned["index"], (learned["phase"][:, None] + np.arange(steps)) % length, axis=1)


def _reseasonalize(paths: Floats, learned: LearnedState) -> Floats:
    index = _future_index(learned, paths.shape[-1])[:, None, :]
    return np.where(learned["additive"][:, None, None], paths + index, paths * index)


def _simulate_paths(learned: LearnedState, shocks: Floats, level_offsets: Floats | None = None) -> Floats:
    """Seasonally adjusted paths, (series, samples, steps)."""
    paths = _kernel().simulate_paths(
        learned["state"], learned["alpha"], learned["weight"], learned["dynamic"], shocks, level_offsets
    )
    return np.asarray(paths + learned["centre"][:, None, None])
