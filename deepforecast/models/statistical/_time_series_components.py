"""Base class of structural time series models, estimated by statsmodels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from deepforecast.core.arrays import design_matrix, effect_columns
from deepforecast.core.fitted_values import require_training_data
from deepforecast.core.forecast import Forecast, NormalForecast, seeded_normal
from deepforecast.core.monitor import Monitor
from deepforecast.core.parallel import map_chunks
from deepforecast.core.params import param
from deepforecast.core.registry import Capabilities
from deepforecast.core.state import LearnedState, State
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.errors import (
    DataError,
    ParameterError,
    TrainingError,
    TrainingWarning,
    format_value,
    join_alternatives,
    warn,
)
from deepforecast.models.statistical._base import Statistical
from deepforecast.models.statistical._noise_floor import update_interval_factors
from deepforecast.models.statistical._state_space import StateSpace

MATRICES = ("design", "transition", "shocks", "irregular", "state", "covariance")
FAILED = "failed"
"""Key of the error message of a series that could not be fitted."""
OUT_OF_ITERATIONS = "out_of_iterations"
"""Key: whether the optimizer reached the maximum number of iterations."""


class Structural(Statistical):
    """Base class of structural models, estimated by statsmodels; they learn the matrices of the state space.

    Learned arrays, one row per series (values are scaled: (y - centre) / scale):

    - `design`, `transition`, `shocks`, `irregular`, `state`, `covariance`: see `StateSpace`
    - `params`: statsmodels' parameters; `converged`; `exact`: whether the initialization is exact diffuse
    - `effects`: coefficients of the regressors transformed by `centres` and `basis`
    - `scale` (0 for constant series) and `centre` of the values
    - `noise_floor`, `n_errors_since`, `interval_factor`: see `_noise_floor`
    """

    coverage_process: ClassVar[str] = "local_level"
    coverage_slow: ClassVar[bool] = True

    capabilities = Capabilities(
        future=True, categorical=True, missing=True, distribution="analytic", simulates=True, explains=True, precision=1e-3
    )

    max_iter: int = param(default=200, at_least=1, help="maximum number of iterations of the optimizer")

    def summary(self, unique_id: Any = None) -> Any:
        """Return statsmodels' summary of a training series: estimates and residual tests."""
        state = self.fitted_state()
        panel = require_training_data(self.name, state.learned)
        series_index = self._series_index(panel, unique_id)
        series_arrays = _series_arrays(state.learned, series_index)
        if series_arrays["scale"] == 0.0:
            raise DataError(
                f"Series {panel.series.label(series_index)} cannot be summarized, because its training data never varies.",
                hint="Pass the unique_id of another series.",
            )
        return self._task(panel).smoothed_results(series_index, series_arrays).summary()

    def _series_index(self, panel: Panel, unique_id: Any) -> int:
        """Position of a series in the panel; `unique_id` may be None if there is only one."""
        ids = [None] if panel.series.ids is None else list(panel.series.ids)
        if unique_id is None and len(ids) == 1:
            return 0
        if unique_id not in ids:
            raise ParameterError(
                f"`unique_id` must be a series seen in fit, such as {panel.series.label(0)}, got {format_value(unique_id)}.",
                parameter="unique_id",
                value=unique_id,
            )
        return ids.index(unique_id)

    def _task(self, panel: Panel) -> Any:
        from deepforecast.models.statistical._component_fit import FitTask

        covariates = {name: panel.covariates[name] for name in panel.series.columns.future}
        x = design_matrix(covariates) if covariates else np.empty((len(panel.y), 0))
        return FitTask(panel.y, panel.indptr, x, self._specification(panel), self.max_iter, self._cycle_periods(panel))

    def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
        """Fit the series in worker processes; warn of those whose optimization did not converge."""
        task = self._task(panel)
        cost = panel.lengths * (1e-4 + 3e-6 * self._min_observations(panel) ** 1.5)
        fits = [fit for chunk in map_chunks(task.fit_slice, len(panel), prefer="processes", cost=cost) for fit in chunk]
        learned = self._stack_series(fits, panel)
        stopped = np.flatnonzero(~learned["converged"])
        if len(stopped):
            out_of_iterations = all(bool(fits[index][OUT_OF_ITERATIONS]) for index in stopped)
            remedy = (
                f"Set max_iter above {self.max_iter}"
                if out_of_iterations
                else f"Use {join_alternatives(self._simplifications())}"
            )
            warn(
                f"{self.name}: the optimizer of statsmodels did not converge for series "
                f"{panel.series.labels(stopped)}. {remedy}.",
                TrainingWarning,
                subject=self.name,
            )
        return learned

    def _stack_series(self, fits: list[dict[str, Floats]], panel: Panel) -> LearnedState:
        """Stack the arrays of the series; raise a `TrainingError` if statsmodels failed for any of them."""
        failed = np.array([series_index for series_index, fit in enumerate(fits) if FAILED in fit], np.int64)
        if len(failed):
            raise TrainingError(
                f"statsmodels cannot estimate the model for series {panel.series.labels(failed)} "
                f"({format_value(str(fits[failed[0]][FAILED]), 200)}).",
                hint="Use a simpler model, or drop these series.",
                series=panel.series.id_texts(failed),
            )
        shared = {"dummies": max((self._specification(panel)["seasonal"] or 1) - 1, 0), "names": self._task(panel).names()}
        # C order: otherwise the order of summation would depend on the other series
        names = [name for name in fits[0] if name != OUT_OF_ITERATIONS]
        arrays = {name: np.ascontiguousarray(np.stack([fit[name] for fit in fits])) for name in names}
        return LearnedState(arrays, shared, panel)

    def _advance(self, learned: LearnedState, panel: Panel, from_start: bool) -> LearnedState:
        """Filter histories from the start by statsmodels, or new rows from the last state by `StateSpace`."""
        if from_start:
            task = self._task(panel)
            fits = [task.fit_series(index, _series_arrays(learned, index)) for index in range(len(panel))]
            filtered = [{**fit, "converged": learned["converged"][index]} for index, fit in enumerate(fits)]
            restarted = self._stack_series(filtered, panel)
            return replace(restarted, by_series={**learned.by_series, **restarted.by_series})
        effects = self._regression_effects(learned, panel.covariates, panel.row_series)
        centre, scale = (np.repeat(values, panel.lengths) for values in (learned["centre"], _data_scale(learned)))
        y = (panel.y - centre) / scale - effects
        state, covariance, errors, variances = _state_space(learned).filter_rows(y, panel.indptr)
        intervals = update_interval_factors(learned, errors, variances, panel.indptr)
        return LearnedState({**learned.by_series, "state": state, "covariance": covariance, **intervals}, learned.shared)

    def _fitted(self, learned: LearnedState, panel: Panel) -> Floats:
        task = self._task(panel)
        return np.concatenate([task.fitted_values(index, _series_arrays(learned, index)) for index in range(len(panel))])

    def _parameter_columns(self, learned: LearnedState, state: State) -> dict[str, Any]:
        """Parameters with statsmodels' names, variances in units of the data, and covariate effects."""
        unit, columns = _data_scale(learned), {}
        for position, name in enumerate(learned["names"]):
            values = learned["params"][:, position]
            with np.errstate(over="ignore", under="ignore"):
                columns[name] = values * unit * unit if name.startswith("sigma2") else values
        effects = (learned["basis"] @ learned["effects"][:, :, None])[:, :, 0]
        return {**columns, **effect_columns(state, effects * unit[:, None])}

    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        mean = sum(self._explain(learned, steps, future).values(), np.zeros((len(learned["params"]), steps)))
        deviations = _state_space(learned).deviations_ahead(steps)
        return NormalForecast(mean, deviations * (_data_scale(learned) * learned["interval_factor"])[:, None])

    def _simulate(self, learned: LearnedState, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]) -> Floats:
        """Sample paths of states and irregular component, plus the deterministic terms."""
        space = _state_space(learned)
        deterministic = self._deterministic_forecast(learned, steps, future)
        n_states = space.state.shape[1]
        draws = seeded_normal(seed, np.column_stack([space.state, learned["params"]]), (1 + steps, samples, 1 + n_states))
        draws *= learned["interval_factor"][:, None, None, None]
        # Draws are ordered by step, so that longer paths extend shorter ones.
        start_draws, step_draws = draws[:, 0, :, 1:], draws[:, 1:].swapaxes(1, 2)
        paths = space.sample_paths(start_draws, shocks=step_draws[..., 1:], noise=step_draws[..., 0])
        return np.asarray(paths * _data_scale(learned)[:, None, None] + deterministic[:, None, :])

    def _explain(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        """Components (series, steps) of the point forecast; the trend is the change of the level since the first step."""
        space = _state_space(learned)
        contributions = space.states_ahead(steps) * (space.design * _data_scale(learned)[:, None])[:, None, :]
        components, position = {}, 0
        for name, width in self._component_sizes(learned).items():
            components[name] = contributions[:, :, position : position + width].sum(axis=2)
            position += width
        centre = np.repeat(learned["centre"][:, None], steps, axis=1)
        level = components.get("level", np.zeros_like(centre))
        if "level" in components:
            components["trend"] = level - level[:, :1]
            components["level"] = np.repeat(level[:, :1], steps, axis=1)
        components["level"] = components.get("level", 0.0) + centre
        if future:
            components["regressors"] = self._deterministic_forecast(learned, steps, future) - centre
        return components

    def _deterministic_forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Floats:
        """Centre plus effects of future covariates, (series, steps), in units of the data."""
        centre = np.repeat(learned["centre"][:, None], steps, axis=1)
        if not future:
            return centre
        row_series = np.repeat(np.arange(len(centre)), steps)
        effects = self._regression_effects(learned, future, row_series).reshape(centre.shape)
        return np.asarray(centre + effects * _data_scale(learned)[:, None])

    def _regression_effects(self, learned: LearnedState, covariates: Mapping[str, Covariate], row_series: Any) -> Floats:
        """Sum of the covariate effects at each row, in units of the scale; `row_series`: series of each row."""
        if not covariates or learned["effects"].shape[1] == 0:
            return np.zeros(len(row_series))
        centred = design_matrix(covariates) - learned["centres"][row_series]
        transformed = (centred[:, None, :] @ learned["basis"][row_series])[:, 0]
        return np.asarray(np.sum(transformed * learned["effects"][row_series], axis=1))

    # -- hooks of subclasses ----------------------------------------------------------------------

    def _specification(self, panel: Panel) -> dict[str, Any]:
        """Arguments of statsmodels' `UnobservedComponents` besides values and regressors."""
        raise NotImplementedError

    def _cycle_periods(self, panel: Panel) -> Floats | None:
        """Shortest and longest period of the cycle in time steps, shape (series, 2).

        None without a cycle.
        """
        raise NotImplementedError

    def _simplifications(self) -> list[str]:
        """Suggestions, for a warning, of changes that make the model easier to estimate."""
        raise NotImplementedError

    def _component_sizes(self, learned: LearnedState) -> dict[str, int]:
        """Number of states of each component, in the order of the state vector."""
        raise NotImplementedError


def _data_scale(learned: LearnedState) -> Floats:
    """Scale of the values; 1 for series that were constant in the training data, whose scale is stored as 0."""
    return np.where(learned["scale"] == 0, 1.0, learned["scale"])


def _series_arrays(learned: LearnedState, series_index: int) -> dict[str, Any]:
    return {name: values[series_index] for name, values in learned.by_series.items()}


def _state_space(learned: LearnedState) -> StateSpace:
    return StateSpace(*(learned[name] for name in MATRICES))
