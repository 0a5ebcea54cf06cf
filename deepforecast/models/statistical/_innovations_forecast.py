"""Forecast distribution of exponential smoothing: Student's t by formula, or sample paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deepforecast.core.forecast import Forecast
from deepforecast.core.noise import standard_normal
from deepforecast.core.state import LearnedState
from deepforecast.data.frames import Floats, Ints
from deepforecast.models.statistical import _form_selection as ets
from deepforecast.models.statistical._box_cox import bias_adjusted_mean, refuse_infinite, transform
from deepforecast.models.statistical._intervals import StudentForecast, degrees_and_factor, student_mixing

N_PATHS = 5000
MAX_NUMBERS = 2_000_000  # sampled at a time, to bound memory


@dataclass(frozen=True)
class ExponentialForecast(Forecast):
    """`mu` (mean) and `base` (mean without season) exclude the `offsets` of covariates."""

    learned: LearnedState
    mu: Floats
    base: Floats
    offsets: Floats
    n_skipped: int = 0

    @classmethod
    def from_state(cls, learned: LearnedState, offsets: Floats) -> ExponentialForecast:
        """The forecast from the last state, for `offsets` (series, steps)."""
        from deepforecast.kernels.ets.forecasts import forecast_means

        return cls(learned, *forecast_means(ets.kernel_model(learned.by_series, "state"), offsets.shape[1]), offsets)

    @property
    def mean(self) -> Floats:  # type: ignore[override]
        """The mean, with bias adjustment for a Box-Cox transformation."""
        transformed_mean = self._transformed_mean()[:, self.n_skipped :]
        power = self.learned["power"][:, None]
        if np.isnan(power).all():
            return transformed_mean
        deviation = self._deviations()[:, self.n_skipped :]
        return refuse_infinite(
            bias_adjusted_mean(transformed_mean, np.where(np.isnan(deviation), 0.0, deviation), power), self.learned
        )

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Quantiles at any probabilities, (series, steps, probabilities)."""
        degrees_of_freedom, estimation_factor = _degrees_and_factor(self.learned.by_series)
        deviations = self._deviations() * estimation_factor[:, None]
        student = StudentForecast(self._transformed_mean(), deviations, degrees_of_freedom)
        transformed_quantiles = student.quantiles(probabilities)
        groups = self._groups_to_sample()
        draws = self._normal_draws(groups[-1]) if groups else np.empty(0)
        for group in groups:
            transformed_quantiles[group] = np.moveaxis(
                np.quantile(self._sample_paths(group, draws), list(probabilities), axis=1), 0, -1
            )
        original = transform(transformed_quantiles, self.learned["power"][:, None, None], inverse=True)
        return refuse_infinite(original[:, self.n_skipped :], self.learned)

    def skip_steps(self, steps: int) -> ExponentialForecast:
        """The forecast without its first steps."""
        return replace(self, n_skipped=self.n_skipped + steps)

    def components(self) -> dict[str, Floats]:
        """Cumulative contributions of level, trend, season and regressors, in units of the data."""
        power, level = self.learned["power"][:, None], self.learned["state"][:, :1]
        with np.errstate(over="ignore", invalid="ignore"):
            heights = [np.broadcast_to(level, self.base.shape), self.base, self.mu, self.mu + self.offsets]
            heights = [transform(height, power, inverse=True) for height in heights]
            differences = {name: heights[i + 1] - heights[i] for i, name in enumerate(("trend", "season", "regressors"))}
        return {"level": np.array(heights[0]), **differences}

    def _transformed_mean(self) -> Floats:
        """Mean of the transformed series, at least 0 with multiplicative errors or season."""
        form = self.learned["form"]
        lower_bound = np.where((form[:, 0] == 1) | (form[:, 3] == 2), 0.0, -np.inf)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.maximum(self.mu + self.offsets, lower_bound[:, None])

    def _has_formula(self) -> Any:
        from deepforecast.kernels.ets.forecasts import has_formula

        return has_formula(self.learned["form"], bool(self.learned["effects"].shape[1]))

    def _deviations(self) -> Floats:
        """Standard deviations of the transformed series by formula; 0 for series without one."""
        from deepforecast.kernels.ets.forecasts import forecast_deviations

        formula = np.flatnonzero(self._has_formula())
        standard_deviations = np.zeros(self.offsets.shape)
        if len(formula):
            selected = self.learned.take(formula) if len(formula) < len(standard_deviations) else self.learned
            standard_deviations[formula] = forecast_deviations(
                ets.kernel_model(selected.by_series, "state"), selected["sigma"], self.offsets[formula]
            )
        return standard_deviations

    def _groups_to_sample(self) -> list[Ints]:
        """Series whose quantiles need sample paths, by age, in groups of limited memory."""
        sampled = np.flatnonzero(~self._has_formula() & ~(self.learned["sigma"] == 0.0))
        sampled = sampled[np.argsort(self.learned["age"][sampled], kind="stable")]
        steps = self.learned["age"][sampled] + self.offsets.shape[1]  # increasing
        groups, first = [], 0
        for last in range(1, len(sampled) + 1):
            if last == len(sampled) or (last + 1 - first) * steps[last] * N_PATHS > MAX_NUMBERS:
                groups.append(sampled[first:last])
                first = last
        return groups

    def _normal_draws(self, group: Ints) -> Floats:
        """Normal draws for the longest sample paths of a group."""
        rows = int(self.learned["age"][group].max()) + self.offsets.shape[1]
        return standard_normal(0, np.zeros((1, 1)), (1 + rows, N_PATHS))

    def _sample_paths(self, group: Ints, draws: Floats) -> Floats:
        """Sample paths of a group.

        The same draws for all series, so that results do not depend on others.
        """
        from deepforecast.kernels.ets.forecasts import simulate_paths

        arrays = {name: self.learned[name][group] for name in ("form", "rates", "state", "age", "sigma", "criteria", "ripple")}
        rows = 1 + int(arrays["age"].max()) + self.offsets.shape[1]
        return simulate_paths(ets.kernel_model(arrays, "state"), student_errors(arrays, draws[:, :rows]), self.offsets[group])


def student_errors(arrays: Mapping[str, Any], draws: Floats) -> Floats:
    """Student's t errors (series, rows, samples).

    The first row of draws sets the scale of a path.
    """
    degrees_of_freedom, estimation_factor = _degrees_and_factor(arrays)
    mixing = student_mixing(np.broadcast_to(draws[:, 0], (len(degrees_of_freedom), draws.shape[2])), degrees_of_freedom)
    return np.asarray(draws[:, 1:] * (mixing * (arrays["sigma"] * estimation_factor)[:, None])[:, None, :])


def _degrees_and_factor(arrays: Mapping[str, Any]) -> tuple[Floats, Floats]:
    _, parameters, count = arrays["criteria"].T
    return degrees_and_factor(count, parameters, arrays["ripple"])
