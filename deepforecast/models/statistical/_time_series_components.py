"""Base class of structural time series models, estimated by statsmodels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from deepforecast.core.capabilities import Capabilities
from deepforecast.core.forecast import Forecast, NormalForecast
from deepforecast.core.monitor import Monitor
from deepforecast.core.noise import standard_normal
from deepforecast.core.parallel import map_chunks
from deepforecast.core.params import param
from deepforecast.core.state import LearnedState, State
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, ParameterError, TrainingError, TrainingWarning, format_list, format_value, warn
from deepforecast.models.statistical._base import Statistical
from deepforecast.models.statistical._noise_floor import update_interval_factors
from deepforecast.models.statistical._regressors import design_matrix, effect_columns
from deepforecast.models.statistical._state_space import StateSpace

MATRICES = ("design", "transition", "shocks", "irregular", "state", "covariance")


class Structural(Statistical):
    """Base class of structural models; they learn the matrices of the state space."""

    coverage_process: ClassVar[str] = "local_level"
    coverage_slow: ClassVar[bool] = True

    capabilities = Capabilities(
        future=True, categorical=True, missing=True, distribution="analytic", simulates=True, explains=True, precision=1e-3
    )

    max_iter: int = param(default=200, at_least=1, help="maximum number of iterations of the optimizer")

    def summary(self, unique_id: Any = None) -> Any:
        """Return statsmodels' summary of a training series: estimates and residual tests."""
        state = self.fitted_state()
        panel = self._history(state.learned)
        number = self._series_index(panel, unique_id)
        series_arrays = _series_arrays(state.learned, number)
        if series_arrays["scale"] == 0.0:  # in the fit
            raise DataError(f"A summary cannot be made of series {panel.series.label(number)}, which never varies.")
        return self._task(panel).smoothed_results(number, series_arrays).summary()

    def _series_index(self, panel: Panel, unique_id: Any) -> int:
        ids = [None] if panel.series.ids is None else list(panel.series.ids)
        if unique_id is None and len(ids) == 1:
            return 0
        if unique_id not in ids:
            raise ParameterError(
                f"`unique_id` must be a series of the fit, such as {panel.series.label(0)}, got {format_value(unique_id)}."
            )
        return ids.index(unique_id)

    def _task(self, panel: Panel) -> Any:
        from deepforecast.models.statistical._component_fit import FitTask

        covariates = {name: panel.covariates[name] for name in panel.series.columns.future}
        x = design_matrix(covariates) if covariates else np.empty((len(panel.y), 0))
        return FitTask(panel.y, panel.indptr, x, self._specification(panel), self.max_iter, self._cycle_periods(panel))

    def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
        task = self._task(panel)
        cost = panel.lengths * (1e-4 + 3e-6 * self._min_observations(panel) ** 1.5)
        fits = [fit for chunk in map_chunks(task.fit_slice, len(panel), prefer="processes", cost=cost) for fit in chunk]
        learned = self._stack_series(fits, panel)
        stopped = np.flatnonzero(~learned["converged"])
        if len(stopped):
            out_of_iterations = all(bool(fits[number]["out_of_iterations"]) for number in stopped)
            remedy = (
                f"Set max_iter above {self.max_iter}" if out_of_iterations else f"Use {format_list(self._simplifications())}"
            )
            warn(
                f"{self.name}: statsmodels' optimiser stopped before a maximum in series "
                f"{panel.series.labels(stopped)}. {remedy}.",
                TrainingWarning,
            )
        return learned

    def _stack_series(self, fits: list[dict[str, Floats]], panel: Panel) -> LearnedState:
        failed = np.array([number for number, fit in enumerate(fits) if "failed" in fit], np.int64)
        if len(failed):
            raise TrainingError(
                f"statsmodels cannot estimate series {panel.series.labels(failed)} "
                f"({format_value(str(fits[failed[0]]['failed']), 200)}). Use a simpler model, or leave these series out."
            )
        shared = {"dummies": max((self._specification(panel)["seasonal"] or 1) - 1, 0), "names": self._task(panel).names()}
        # C order: otherwise the order of summation would depend on the other series
        names = [name for name in fits[0] if name != "out_of_iterations"]
        arrays = {name: np.ascontiguousarray(np.stack([fit[name] for fit in fits])) for name in names}
        return LearnedState(arrays, shared, panel)

    def _advance(self, learned: LearnedState, panel: Panel, fresh: bool) -> LearnedState:
        if fresh:
            task = self._task(panel)
            fits = [task.fit_series(number, _series_arrays(learned, number)) for number in range(len(panel))]
            filtered = [{**fit, "converged": learned["converged"][number]} for number, fit in enumerate(fits)]
            restarted = self._stack_series(filtered, panel)
            return replace(restarted, by_series={**learned.by_series, **restarted.by_series})
        effect = self._regression_effects(learned, panel.covariates, panel.row_series)
        y = (panel.y - np.repeat(learned["centre"], panel.lengths)) / np.repeat(_data_scale(learned), panel.lengths) - effect
        state, covariance, errors, spreads = _state_space(learned).filter_rows(y, panel.indptr)
        updated = {"state": state, "covariance": covariance, **update_interval_factors(learned, errors, spreads, panel.indptr)}
        return LearnedState({**learned.by_series, **updated}, learned.shared)

    def _fitted(self, learned: LearnedState, panel: Panel) -> Floats:
        task = self._task(panel)
        return np.concatenate([task.fitted_values(number, _series_arrays(learned, number)) for number in range(len(panel))])

    def _parameter_columns(self, learned: LearnedState, state: State) -> dict[str, Any]:
        """Parameters by statsmodels' names, in units of the data, and covariate effects."""
        unit, columns = _data_scale(learned), {}
        for position, name in enumerate(learned["names"]):
            values = learned["params"][:, position]
            with np.errstate(over="ignore", under="ignore"):
                columns[name] = values * unit * unit if name.startswith("sigma2") else values
        effects = (learned["basis"] @ learned["effects"][:, :, None])[:, :, 0]
        return {**columns, **effect_columns(state, effects * unit[:, None])}

    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        mean = sum(self._explain(learned, steps, future).values(), np.zeros((len(learned["params"]), steps)))
        return NormalForecast(
            mean, _state_space(learned).deviations_ahead(steps) * (_data_scale(learned) * learned["swell"])[:, None]
        )

    def _simulate(self, learned: LearnedState, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]) -> Floats:
        space, fixed = _state_space(learned), self._fixed_forecast(learned, steps, future)
        states = space.state.shape[1]
        draws = standard_normal(seed, np.column_stack([space.state, learned["params"]]), (1 + steps, samples, 1 + states))
        draws *= learned["swell"][:, None, None, None]
        # By step, so that longer paths extend shorter ones.
        start_draws, later_draws = (
            draws[:, 0, :, 1:],
            draws[:, 1:].swapaxes(1, 2),
        )
        paths = space.sample_paths(start_draws, later_draws[..., 1:], later_draws[..., 0]) * _data_scale(learned)[:, None, None]
        return np.asarray(paths + fixed[:, None, :])

    def _explain(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
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
            components["regressors"] = self._fixed_forecast(learned, steps, future) - centre
        return components

    def _fixed_forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Floats:
        """The deterministic terms: the centre and the effects of future covariates."""
        fixed = np.repeat(learned["centre"][:, None], steps, axis=1)
        if not future:
            return fixed
        rows = np.repeat(np.arange(len(fixed)), steps)
        return np.asarray(
            fixed + self._regression_effects(learned, future, rows).reshape(fixed.shape) * _data_scale(learned)[:, None]
        )

    def _regression_effects(self, learned: LearnedState, covariates: Mapping[str, Covariate], rows: Any) -> Floats:
        """Sum of the covariate effects at each row, in units of the scale."""
        if not covariates or learned["effects"].shape[1] == 0:
            return np.zeros(len(rows))
        transformed = (design_matrix(covariates) - learned["centres"][rows])[:, None, :] @ learned["basis"][rows]
        return np.asarray(np.sum(transformed[:, 0] * learned["effects"][rows], axis=1))

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
        """Suggestions that reduce the number of parameters."""
        raise NotImplementedError

    def _component_sizes(self, learned: LearnedState) -> dict[str, int]:
        """Number of states of each component, in order."""
        raise NotImplementedError


def _data_scale(learned: LearnedState) -> Floats:
    """Unit of the state space in the data."""
    return np.where(learned["scale"] == 0, 1.0, learned["scale"])


def _series_arrays(learned: LearnedState, number: int) -> dict[str, Any]:
    return {name: values[number] for name, values in learned.by_series.items()}


def _state_space(learned: LearnedState) -> StateSpace:
    return StateSpace(*(learned[name] for name in MATRICES))
