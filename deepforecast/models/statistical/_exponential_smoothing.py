"""Base class of exponential smoothing models: estimation, choice of the form, and forecasts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from deepforecast.core.arrays import design_matrix, effect_columns, standardize
from deepforecast.core.encoding import SkopsSerializer
from deepforecast.core.fitted_values import require_training_data
from deepforecast.core.forecast import Forecast, seeded_normal
from deepforecast.core.monitor import Monitor
from deepforecast.core.params import param
from deepforecast.core.registry import Capabilities
from deepforecast.core.seasonality import warn_short_series
from deepforecast.core.state import LearnedState, State
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Frame
from deepforecast.data.panel import Panel
from deepforecast.errors import TrainingError, warn
from deepforecast.kernels.ets.forms import Form
from deepforecast.models.statistical import _form_selection as ets
from deepforecast.models.statistical._base import Statistical
from deepforecast.models.statistical._box_cox import guerrero, transform
from deepforecast.models.statistical._innovations_forecast import ExponentialForecast, student_errors
from deepforecast.models.statistical._missing_value_variance import deviation_after_missing, smoothing_states
from deepforecast.models.statistical._perfect_fit import residual_spread, update_residual_spread
from deepforecast.models.statistical._plausibility import find_implausible
from deepforecast.models.statistical._variance_explosion import examined_steps, exclude_explosive


class Exponential(Statistical):
    """Base class of exponential smoothing in innovations state space form.

    Learned arrays, one row per series:

    - `form`: codes of error, trend, damped and season, as in `Form`
    - `rates`: smoothing parameters alpha, beta, gamma and phi
    - `start`, `state`: level, slope and seasonal indices of the following steps; before the first
      row, at time `start_time`, and after the last value, `age` rows before the end
    - `effects`: coefficients of the covariates standardized by `centre` and `scale`
    - `sigma`: standard deviation of the errors (relative ones if these are multiplicative)
    - `criteria`: log-likelihood (NaN for constant series, which are not fitted), number of estimated
      parameters, number of values
    - `power`: of the Box-Cox transformation; NaN: no transformation
    - `noise_floor`, `n_errors_since`: see `_perfect_fit`
    """

    coverage_process: ClassVar[str] = "exponential_smoothing"

    capabilities = Capabilities(
        future=True,
        categorical=True,
        missing=True,
        distribution="analytic",
        scale_equivariant=True,
        precision=1e-6,
        simulates=True,
        explains=True,
    )
    seconds_per_value = 2e-7

    box_cox: float | Literal["auto"] | None = param(
        default=None, at_least=-1, at_most=2,
        help="power of the Box-Cox transformation, for additive forms only; 0: logarithm; negative:"
        " forecasts may be infinite; 'auto': chosen in 0 to 1 by Guerrero's method; None: no transformation",
    )

    def parameters(self) -> Frame:
        """Return form, parameters and information criteria, one row per series.

        The coefficients of future covariates are `effect_<column>`; `level` is then the level at
        the means of the covariates. With `box_cox` all of them refer to transformed values.
        """
        return super().parameters()

    def _parameter_columns(self, learned: LearnedState, state: State) -> dict[str, Any]:
        return {**ets.parameter_table(learned), **effect_columns(state, learned["effects"] / learned["scale"])}

    def summary(self, unique_id: Any = None) -> str:
        """Return statsmodels' summary of a training series at the estimated parameters.

        With missing values, covariates or a transformation, which statsmodels does not support, it
        lists `parameters()` instead.
        """
        from deepforecast.models.statistical._statsmodels_ets import summary

        state = self.fitted_state()
        estimates = self._parameter_columns(state.learned, state)
        return summary(require_training_data(self.name, state.learned), state.learned, unique_id, estimates)

    # -- hooks of subclasses ----------------------------------------------------------------------

    def _forms(self) -> list[Form]:
        """The candidate forms; seasonal ones become non-seasonal if the season has 1 step."""
        raise NotImplementedError

    def _season(self, panel: Panel) -> int:
        """Number of time steps per season; 1: non-seasonal."""
        return 1

    def _fit_settings(self, panel: Panel, transformed_y: Floats, season: int, forms: list[Form]) -> dict[str, Any]:
        """Keyword arguments of the kernels' `Settings`."""
        return {"thorough": True, "tolerance": 1e-9}

    def _selection_criterion(self, fits: Any, n_observed: Floats, n_parameters: Floats) -> Floats:
        """Criterion of each form, (series, forms); the form with the smallest one is selected."""
        return np.asarray(-fits.log_likelihood)

    def _deserialize(self, learned: LearnedState, foreign: SkopsSerializer) -> LearnedState:
        ets.check_forms(learned)
        return learned

    # -- hooks of `Forecaster` --------------------------------------------------------------------

    def _min_observations(self, panel: Panel) -> int:
        """One value more than the smallest candidate form has parameters, and at least 3."""
        season = self._season(panel)
        forms = ets.possible_forms(self._forms(), season)
        n_fewest = min(ets.count_parameters(form, season, self._is_fixed()) for form in forms)
        return max(n_fewest + len(panel.series.columns.future) + 1, 3)

    def _is_fixed(self) -> tuple[bool, ...]:
        """Whether alpha, beta, gamma, phi and the initial states are given instead of estimated."""
        return (False,) * 5

    def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
        """Fit; warn of series too short for a seasonal form, and of forms replaced by additive ones."""
        season = self._season(panel)
        forms = ets.possible_forms(self._forms(), season)
        n_seasonal_parameters = [ets.count_parameters(form, season, self._is_fixed()) for form in forms if form.season]
        if 0 < len(n_seasonal_parameters) < len(forms):  # if all forms are seasonal, `_min_observations` refuses short series
            n_required = min(n_seasonal_parameters) + len(panel.series.columns.future) + 3
            warn_short_series(panel, season, self.name, n_required, panel.observed)
        learned = super()._fit(panel, monitor)
        self._warn_replaced(panel, learned, forms)
        return learned

    def _warn_replaced(self, panel: Panel, learned: LearnedState, forms: list[Form]) -> None:
        """Warn of series whose form is none of the requested ones; `_estimate` has replaced it by an additive one."""
        as_requested = np.isnan(learned["criteria"][:, 0])  # constant series
        for form in forms:
            as_requested |= (learned["form"] == form).all(axis=1)
        replaced = np.flatnonzero(~as_requested)
        if len(replaced):
            warn(
                f"{self.name}: multiplicative forms such as {forms[0]} give implausible forecasts for series "
                f"{panel.series.labels(replaced)} (no finite likelihood, errors as large as the mean, or forecasts far "
                "outside the history); additive forms are used instead, see parameters(). Check for outliers, level "
                "shifts and values near 0, or use additive components.", subject=self.name
            )

    def _estimate(self, panel: Panel) -> LearnedState:
        """Select a form for each series; replace implausible multiplicative forms by the best additive one.

        Raise a `TrainingError` if no parameters give a series a finite likelihood.
        """
        season = self._season(panel)
        forms = ets.possible_forms(self._forms(), season)
        learned = self._select_form(panel, season, forms)
        implausible_series = find_implausible(
            learned, panel, panel.y - self._regression_effects(learned.by_series, panel.covariates, panel.row_series)
        )
        if len(implausible_series):
            implausible = panel.take(implausible_series)
            replaced = self._select_form(implausible, season, ets.additive_forms(forms))
            for name, values in replaced.by_series.items():
                learned.by_series[name][implausible_series] = values
        without_fit = np.flatnonzero(np.isneginf(learned["criteria"][:, 0]))
        if len(without_fit):
            raise TrainingError(
                f"{self.name} cannot be fitted: no parameters give series {panel.series.labels(without_fit)} a finite "
                "likelihood.",
                hint="Use other components, or AutoETS.",
                series=panel.series.id_texts(without_fit),
            )
        return learned

    def _select_form(self, panel: Panel, season: int, forms: list[Form]) -> LearnedState:
        """Fit all forms to each series, select the one with the smallest criterion, and estimate its sigma."""
        power = self._box_cox_powers(panel, season)
        y = transform(panel.y, np.repeat(power, panel.lengths))
        design, centre, scale = self._regressors(panel)
        fits = self._fit_forms(panel, y, design, season, forms)
        n_observed = np.maximum(ets.count_observed(y, design, panel.indptr), 1)
        n_parameters = np.array(
            [ets.count_parameters(form, season, self._is_fixed()) + design.shape[1] for form in forms], np.float64
        )
        criteria = self._selection_criterion(fits, n_observed[:, None], n_parameters[None, :])
        if len(forms) > 1:
            criteria = exclude_explosive(
                criteria,
                fits,
                forms,
                panel.with_target(y),
                design,
                residual_df=n_observed[:, None] - n_parameters[None, :],
                steps=examined_steps(panel.lengths, self.default_horizon),
            )
        arrays = ets.select_best(fits, forms, criteria)
        constant_values = ets.constant_levels(y, panel.indptr)
        ets.set_constant(arrays, constant_values, forms[0])
        form_index = arrays.pop("form_index")
        likelihood = np.where(np.isnan(constant_values), arrays.pop("log_likelihood"), np.nan)
        arrays |= {"centre": centre, "scale": scale, "power": power, "start_time": panel.start}
        arrays["criteria"] = np.column_stack(
            [likelihood, n_parameters[form_index] + (self.box_cox == "auto"), n_observed]
        )
        learned = LearnedState(
            {**arrays, "sigma": np.zeros(len(panel)), "state": arrays["start"], "age": np.zeros(len(panel), int)}
        )
        learned.by_series["sigma"][:] = self._sigma(learned, panel)
        spread_arrays = residual_spread(ets.scale_to_errors(panel, y, learned["form"]), learned["sigma"])
        arrays = {**learned.by_series, "sigma": spread_arrays.pop("deviation"), **spread_arrays}
        return self._advance(replace(learned, by_series=arrays), panel, True)

    def _fit_forms(self, panel: Panel, y: Floats, design: Floats, season: int, forms: list[Form]) -> Any:
        """Fit every form to every series; `y` is transformed. Return the kernels' `Fits`."""
        from deepforecast.kernels.ets.estimation import Settings, fit

        settings = Settings(**self._fit_settings(panel, y, season, forms))
        return fit(y, panel.indptr, season, forms, design=design, settings=settings)

    def _advance(self, learned: LearnedState, panel: Panel, from_start: bool) -> LearnedState:
        """The state after the rows: filtered from the start of the history, or continued from the last state.

        If a history does not start at the time of the training data, its initial states are estimated again for the
        same smoothing parameters. Series with a perfect fit also get a new sigma.
        """
        arrays = dict(learned.by_series)
        y = transform(panel.y, np.repeat(arrays["power"], panel.lengths))
        offsets = self._regression_effects(arrays, panel.covariates, panel.row_series)
        if from_start:
            restarted = np.flatnonzero(panel.start != arrays["start_time"])
            if len(restarted):
                arrays["start"] = arrays["start"].copy()
                arrays["start"][restarted] = ets.restart_states(arrays, y - offsets, panel.indptr, restarted)
                arrays["start_time"] = panel.start
        begin = ets.kernel_model(arrays, "start" if from_start else "state", None if from_start else arrays["age"])
        fitted, end = ets.filter_series(begin, y, offsets, panel.indptr)
        arrays |= {"state": end.states, "age": end.age}
        if not np.isnan(arrays["noise_floor"]).all():
            errors = self._errors(arrays, panel, y, fitted)
            spread_state = {**arrays, "deviation": arrays["sigma"]}
            spread = update_residual_spread(spread_state, ets.scale_to_errors(panel, y, arrays["form"]), errors, from_start)
            arrays |= {"sigma": spread["deviation"], "n_errors_since": spread["n_errors_since"]}
        return LearnedState(arrays, learned.shared, panel if from_start else None)

    def _fitted(self, learned: LearnedState, panel: Panel) -> Floats:
        fitted = self._one_step(learned, panel)[0]
        return transform(fitted, np.repeat(learned["power"], panel.lengths), inverse=True)

    def _innovations(self, learned: LearnedState, panel: Panel) -> Floats:
        """One-step errors of transformed values, relative ones for multiplicative errors; 0 where the fit is exact."""
        mean, y = self._one_step(learned, panel)
        return np.where(y == mean, 0.0, self._errors(learned.by_series, panel, y, mean))

    def _one_step(self, learned: LearnedState, panel: Panel) -> tuple[Floats, Floats]:
        """One-step-ahead forecasts and values of the rows, both Box-Cox transformed."""
        arrays = learned.by_series
        y = transform(panel.y, np.repeat(arrays["power"], panel.lengths))
        offsets = self._regression_effects(arrays, panel.covariates, panel.row_series)
        return ets.filter_series(ets.kernel_model(arrays, "start", None), y, offsets, panel.indptr)[0], y

    def _sigma(self, learned: LearnedState, panel: Panel) -> Floats:
        """Standard deviation of the errors with n - k degrees of freedom, NaN if there are none.

        Errors after missing values are scaled to those after observed ones.
        """
        mean, y = self._one_step(learned, panel)
        errors = self._errors(learned.by_series, panel, y, mean)
        form = learned["form"]
        # The variance after missing values is known for states that are linear in the errors (in relative ones if
        # these are multiplicative); rates of 0 leave the errors of the other forms unchanged.
        is_linear = (form[:, ets.TREND] != ets.MULTIPLICATIVE) & (
            (form[:, ets.ERROR] == ets.MULTIPLICATIVE_ERROR) | (form[:, ets.SEASON] != ets.MULTIPLICATIVE)
        )
        states = smoothing_states(learned["rates"] * is_linear[:, None], season=learned["state"].shape[1] - 2)
        errors = errors / deviation_after_missing(~np.isnan(errors), panel.indptr, states)
        residual_df = learned["criteria"][:, 2] - learned["criteria"][:, 1]
        constant_values = np.isnan(learned["criteria"][:, 0])
        return np.where(constant_values, 0.0, ets.root_mean_square(errors, panel.indptr, residual_df))

    def _errors(self, arrays: Mapping[str, Any], panel: Panel, y: Floats, mean: Floats) -> Floats:
        """One-step errors, relative to the forecast for multiplicative errors."""
        is_relative = np.repeat(arrays["form"][:, ets.ERROR] == ets.MULTIPLICATIVE_ERROR, panel.lengths)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return np.where(is_relative, (y - mean) / mean, y - mean)

    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        return ExponentialForecast.from_state(learned, self._future_regression_effects(learned, steps, future))

    def _simulate(self, learned: LearnedState, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]) -> Floats:
        keys = np.column_stack([learned[name] for name in ("rates", "state", "sigma", "age")])
        draws = seeded_normal(seed, keys, (1 + int(learned["age"].max()) + steps, samples))
        return self._sample_paths(learned, draws, self._future_regression_effects(learned, steps, future))

    def _sample_paths(self, learned: LearnedState, draws: Floats, offsets: Floats) -> Floats:
        """Sample paths in units of the data, (series, samples, steps), from normal draws (see `student_errors`).

        `offsets`: covariate effects (series, steps).
        """
        from deepforecast.kernels.ets.forecasts import simulate_paths

        with np.errstate(over="ignore", invalid="ignore"):  # `predict` refuses values that are not finite
            sampled = simulate_paths(
                ets.kernel_model(learned.by_series, "state"), student_errors(learned.by_series, draws), offsets
            )
            return transform(sampled, learned["power"][:, None, None], inverse=True)

    def _explain(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        """Components that add up to the point forecast; those that no candidate form has are part of the level.

        What a transformation adds is the `remainder`; rounding errors and the bound at 0 go into the last component.
        """
        forecast = ExponentialForecast.from_state(learned, self._future_regression_effects(learned, steps, future))
        components = forecast.components()
        forms = self._forms()
        if all(form.trend == 0 for form in forms):
            components["level"] += components.pop("trend")
        if all(form.season == 0 for form in forms):
            components["level"] += components.pop("season")
        if not future:
            components["level"] += components.pop("regressors")
        with np.errstate(over="ignore", invalid="ignore"):
            remainder = forecast.point(self.point_kind) - sum(components.values())
        if self.box_cox is not None or self.point_kind == "median":
            components["remainder"] = remainder
        else:  # rounding errors, and the bound of forecasts at 0
            last_name = list(components)[-1]
            components[last_name] = components[last_name] + remainder
        return components

    # -- transformation and regressors ------------------------------------------------------------

    def _box_cox_powers(self, panel: Panel, season: int) -> Floats:
        """Power of the Box-Cox transformation of each series; NaN: no transformation."""
        if self.box_cox is None:
            return np.full(len(panel), np.nan)
        if self.box_cox == "auto":
            return guerrero(panel.y, panel.indptr, season)
        return np.full(len(panel), float(self.box_cox))

    def _regressors(self, panel: Panel) -> tuple[Floats, Floats, Floats]:
        """Design matrix (rows, columns) of the future covariates, standardized within each series.

        Also their centres and scales, (series, columns).
        """
        covariates = {name: panel.covariates[name] for name in panel.series.columns.future}
        if not covariates:
            empty = np.empty((len(panel), 0))
            return np.empty((len(panel.y), 0)), empty, empty
        return standardize(design_matrix(covariates), panel.indptr)

    def _regression_effects(self, arrays: Mapping[str, Any], covariates: Mapping[str, Covariate], row_series: Any) -> Floats:
        """Sum of the covariate effects at each row; NaN if a covariate is missing. `row_series`: series of each row."""
        if not arrays["effects"].shape[1] or not covariates:
            return np.zeros(len(row_series))
        standardized = (design_matrix(covariates) - arrays["centre"][row_series]) / arrays["scale"][row_series]
        return np.asarray(np.sum(standardized * arrays["effects"][row_series], axis=1))

    def _future_regression_effects(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Floats:
        """Sum of the covariate effects at each step ahead, (series, steps)."""
        row_series = np.repeat(np.arange(len(learned["rates"])), steps)
        return self._regression_effects(learned.by_series, future, row_series).reshape(-1, steps)
