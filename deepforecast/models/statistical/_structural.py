"""What a structural time series does once it is estimated: everything but its specification."""

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
from deepforecast.core.state import Learned, State
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, ParameterError, TrainingError, TrainingWarning, say, shown, some
from deepforecast.models.statistical._base import Statistical
from deepforecast.models.statistical._regressors import design, effects_of
from deepforecast.models.statistical._state_space import StateSpace
from deepforecast.models.statistical._still import swollen_since

MATRICES = ("design", "transition", "shocks", "irregular", "state", "covariance")


class Structural(Statistical):
    """Estimated by statsmodels, a series in a process of its own; what is learned are the matrices of its state space."""

    coverage_process: ClassVar[str] = "local_level"
    coverage_slow: ClassVar[bool] = True

    capabilities = Capabilities(
        future=True, categorical=True, missing=True, distribution="analytic", simulates=True, explains=True, precision=1e-3
    )

    max_iter: int = param(default=200, at_least=1, help="most steps of statsmodels' optimiser")

    def summary(self, unique_id: Any = None) -> Any:
        """statsmodels' table of a series of the fit: estimates, their errors, tests of the residuals."""
        state = self.fitted()
        panel = self._history(state.learned)
        number = self._number(panel, unique_id)
        held = _of(state.learned, number)
        if held["scale"] == 0.0:  # in the fit
            raise DataError(f"Series {panel.series.label(number)} never varies: there is nothing to sum up.")
        return self._task(panel).result(number, held).summary()

    def _number(self, panel: Panel, unique_id: Any) -> int:
        ids = [None] if panel.series.ids is None else list(panel.series.ids)
        if unique_id is None and len(ids) == 1:
            return 0
        if unique_id not in ids:
            raise ParameterError(f"unique_id names a series of the fit, as {panel.series.label(0)}; got {shown(unique_id)}.")
        return ids.index(unique_id)

    def _task(self, panel: Panel) -> Any:
        from deepforecast.models.statistical._statsmodels import Task

        held = {name: panel.covariates[name] for name in panel.series.columns.future}
        x = design(held) if held else np.empty((len(panel.y), 0))
        return Task(panel.y, panel.indptr, x, self._specification(panel), self.max_iter, self._cycle_periods(panel))

    def _fit(self, panel: Panel, monitor: Monitor) -> Learned:
        task = self._task(panel)
        cost = panel.lengths * (1e-4 + 3e-6 * self._needs(panel) ** 1.5)
        found = [one for part in map_chunks(task.fitted, len(panel), prefer="processes", cost=cost) for one in part]
        learned = self._gathered(found, panel)
        stopped = np.flatnonzero(~learned["converged"])
        if len(stopped):
            out_of_iterations = all(bool(found[number]["out_of_iterations"]) for number in stopped)
            hint = f"Set iterations above {self.max_iter}" if out_of_iterations else f"Use {some(self._simpler())}"
            labels = panel.series.labels(stopped)
            say(
                f"{self.name}: statsmodels' optimiser stopped before a maximum in series {labels}. {hint}.",
                TrainingWarning,
            )
        return learned

    def _gathered(self, found: list[dict[str, Floats]], panel: Panel) -> Learned:
        failed = np.array([number for number, one in enumerate(found) if "failed" in one], np.int64)
        if len(failed):
            raise TrainingError(
                f"statsmodels finds components in every series; it found none in series {panel.series.labels(failed)} "
                f"({shown(str(found[failed[0]]['failed']), 200)}). Choose a simpler model, or leave these series out."
            )
        shared = {"dummies": max((self._specification(panel)["seasonal"] or 1) - 1, 0), "names": self._task(panel).names()}
        # by rows in memory whatever each is: else the sums over a matrix would go by another order for other neighbours
        names = [name for name in found[0] if name != "out_of_iterations"]
        held = {name: np.ascontiguousarray(np.stack([one[name] for one in found])) for name in names}
        return Learned(held, shared, panel)

    def _advance(self, learned: Learned, panel: Panel, fresh: bool) -> Learned:
        if fresh:
            task = self._task(panel)
            found = [task.one(number, _of(learned, number)) for number in range(len(panel))]
            kept = [{**one, "converged": learned["converged"][number]} for number, one in enumerate(found)]
            learned_anew = self._gathered(kept, panel)
            return replace(learned_anew, by_series={**learned.by_series, **learned_anew.by_series})
        effect = self._effects(learned, panel.covariates, panel.row_series)
        y = (panel.y - np.repeat(learned["centre"], panel.lengths)) / np.repeat(_unit(learned), panel.lengths) - effect
        state, covariance, errors, spreads = _space(learned).filtered(y, panel.indptr)
        moved = {"state": state, "covariance": covariance, **swollen_since(learned, errors, spreads, panel.indptr)}
        return Learned({**learned.by_series, **moved}, learned.shared)

    def _fitted(self, learned: Learned, panel: Panel) -> Floats:
        task = self._task(panel)
        return np.concatenate([task.fitted_values(number, _of(learned, number)) for number in range(len(panel))])

    def _estimated(self, learned: Learned, state: State) -> dict[str, Any]:
        """Variances, damping and the like as statsmodels names them, in units of the data; effects of columns known ahead."""
        unit, columns = _unit(learned), {}
        for place, name in enumerate(learned["names"]):
            values = learned["params"][:, place]
            with np.errstate(over="ignore", under="ignore"):
                columns[name] = values * unit * unit if name.startswith("sigma2") else values
        effects = (learned["basis"] @ learned["effects"][:, :, None])[:, :, 0]
        return {**columns, **effects_of(state, effects * unit[:, None])}

    def _forecast(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        mean = sum(self._explain(learned, steps, future).values(), np.zeros((len(learned["params"]), steps)))
        return NormalForecast(mean, _space(learned).deviations_ahead(steps) * (_unit(learned) * learned["swell"])[:, None])

    def _simulate(self, learned: Learned, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]) -> Floats:
        space, known = _space(learned), self._known(learned, steps, future)
        states = space.state.shape[1]
        draws = standard_normal(seed, np.column_stack([space.state, learned["params"]]), (1 + steps, samples, 1 + states))
        draws *= learned["swell"][:, None, None, None]
        first, rest = draws[:, 0, :, 1:], draws[:, 1:].swapaxes(1, 2)  # by step: a longer path goes on
        paths = space.paths(first, rest[..., 1:], rest[..., 0]) * _unit(learned)[:, None, None]
        return np.asarray(paths + known[:, None, :])

    def _explain(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        space = _space(learned)
        each = space.states_ahead(steps) * (space.design * _unit(learned)[:, None])[:, None, :]
        parts, place = {}, 0
        for name, width in self._blocks(learned).items():
            parts[name] = each[:, :, place : place + width].sum(axis=2)
            place += width
        centre = np.repeat(learned["centre"][:, None], steps, axis=1)
        level = parts.get("level", np.zeros_like(centre))
        if "level" in parts:
            parts["trend"] = level - level[:, :1]
            parts["level"] = np.repeat(level[:, :1], steps, axis=1)
        parts["level"] = parts.get("level", 0.0) + centre
        if future:
            parts["regressors"] = self._known(learned, steps, future) - centre
        return parts

    def _known(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> Floats:
        """What no state moves: the value of a constant series, the effects of columns known ahead."""
        found = np.repeat(learned["centre"][:, None], steps, axis=1)
        if not future:
            return found
        rows = np.repeat(np.arange(len(found)), steps)
        return np.asarray(found + self._effects(learned, future, rows).reshape(found.shape) * _unit(learned)[:, None])

    def _effects(self, learned: Learned, held: Mapping[str, Covariate], rows: Any) -> Floats:
        """The sum of effects at each row, in the same order, in units of the scale."""
        if not held or learned["effects"].shape[1] == 0:
            return np.zeros(len(rows))
        away = (design(held) - learned["centres"][rows])[:, None, :] @ learned["basis"][rows]
        return np.asarray(np.sum(away[:, 0] * learned["effects"][rows], axis=1))

    # -- hooks of a model ------------------------------------------------------------------------------------------------------

    def _specification(self, panel: Panel) -> dict[str, Any]:
        """What statsmodels' `UnobservedComponents` is told, beside values and regressors."""
        raise NotImplementedError

    def _cycle_periods(self, panel: Panel) -> Floats | None:
        """Shortest and longest period of the cycle in time steps, shape (series, 2); None without a cycle."""
        raise NotImplementedError

    def _simpler(self) -> list[str]:
        """Changes that leave fewer parameters to estimate."""
        raise NotImplementedError

    def _blocks(self, learned: Learned) -> dict[str, int]:
        """How many states each component has, in their order."""
        raise NotImplementedError


def _unit(learned: Learned) -> Floats:
    """What a number of the state space is in the data."""
    return np.where(learned["scale"] == 0, 1.0, learned["scale"])


def _of(learned: Learned, number: int) -> dict[str, Any]:
    """What was learned of one series."""
    return {name: held[number] for name, held in learned.by_series.items()}


def _space(learned: Learned) -> StateSpace:
    return StateSpace(*(learned[name] for name in MATRICES))
