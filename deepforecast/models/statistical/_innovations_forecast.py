"""Forecast distribution of exponential smoothing: Student's t by formula, or sample paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from deepforecast.core.forecast import Forecast, seeded_normal
from deepforecast.core.state import LearnedState
from deepforecast.data.frames import Floats, Ints
from deepforecast.models.statistical import _form_selection as ets
from deepforecast.models.statistical._box_cox import bias_adjusted_mean, refuse_infinite, transform
from deepforecast.models.statistical._intervals import StudentForecast, degrees_and_factor, student_mixing

N_PATHS = 5000
MAX_NUMBERS = 2_000_000  # sampled at a time, to bound memory


@dataclass(frozen=True)
class ExponentialForecast(Forecast):
    """Forecast of exponential smoothing from the learned state.

    `mu`: means without covariates, (series, steps); `base`: the same without the season; `offsets`:
    effects of the covariates, (series, steps). All are Box-Cox transformed and cover the steps from
    the end of the training data on; `n_skipped` first steps are left out of the results.
    """

    learned: LearnedState
    mu: Floats
    base: Floats
    offsets: Floats
    n_skipped: int = 0

    @classmethod
    def from_state(cls, learned: LearnedState, offsets: Floats) -> ExponentialForecast:
        """The forecast from the last state; `offsets` (series, steps) are the effects of the covariates."""
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
        """Quantiles in units of the data, (series, steps, probabilities); Student's t, or those of sample paths."""
        degrees_of_freedom, estimation_factor = _degrees_and_factor(self.learned.by_series)
        deviations = self._deviations() * estimation_factor[:, None]
        student = StudentForecast(self._transformed_mean(), deviations, degrees_of_freedom)
        transformed_quantiles = student.quantiles(probabilities)
        groups = self._groups_to_sample()
        draws = self._normal_draws(groups[-1]) if groups else np.empty(0)  # the last group has the longest paths
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
        """Contributions of level, trend, season and regressors in units of the data, (series, steps) each.

        Each is the change of the back-transformed mean when the component is added to the previous ones.
        """
        power, level = self.learned["power"][:, None], self.learned["state"][:, :1]
        with np.errstate(over="ignore", invalid="ignore"):
            partial_means = [np.broadcast_to(level, self.base.shape), self.base, self.mu, self.mu + self.offsets]
            partial_means = [transform(partial_mean, power, inverse=True) for partial_mean in partial_means]
            contributions = [with_component - without for without, with_component in pairwise(partial_means)]
        names = ("trend", "season", "regressors")
        return {"level": np.array(partial_means[0]), **dict(zip(names, contributions, strict=True))}

    def _transformed_mean(self) -> Floats:
        """Mean of the transformed series, at least 0 with multiplicative errors or season."""
        form = self.learned["form"]
        is_bounded = (form[:, ets.ERROR] == ets.MULTIPLICATIVE_ERROR) | (form[:, ets.SEASON] == ets.MULTIPLICATIVE)
        lower_bound = np.where(is_bounded, 0.0, -np.inf)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.maximum(self.mu + self.offsets, lower_bound[:, None])

    def _has_formula(self) -> Any:
        """Whether the forecast variance of each series has a formula; if not, sample paths are drawn."""
        from deepforecast.kernels.ets.forecasts import has_formula

        return has_formula(self.learned["form"], bool(self.learned["effects"].shape[1]))

    def _deviations(self) -> Floats:
        """Standard deviations of the transformed series by formula; 0 for series without one."""
        from deepforecast.kernels.ets.forecasts import forecast_deviations

        series = np.flatnonzero(self._has_formula())
        standard_deviations = np.zeros(self.offsets.shape)
        if len(series):
            selected = self.learned.take(series) if len(series) < len(standard_deviations) else self.learned
            standard_deviations[series] = forecast_deviations(
                ets.kernel_model(selected.by_series, "state"), selected["sigma"], self.offsets[series]
            )
        return standard_deviations

    def _groups_to_sample(self) -> list[Ints]:
        """Indices of the series whose quantiles need sample paths, in increasing `age`, in groups of limited memory."""
        sampled = np.flatnonzero(~self._has_formula() & ~(self.learned["sigma"] == 0.0))
        sampled = sampled[np.argsort(self.learned["age"][sampled], kind="stable")]
        n_rows = self.learned["age"][sampled] + self.offsets.shape[1]  # of the sample paths, increasing
        groups, begin = [], 0
        for end in range(1, len(sampled) + 1):
            if end == len(sampled) or (end + 1 - begin) * n_rows[end] * N_PATHS > MAX_NUMBERS:
                groups.append(sampled[begin:end])
                begin = end
        return groups

    def _normal_draws(self, group: Ints) -> Floats:
        """Normal draws for the longest sample paths of a group, (1, 1 + rows, paths); see `student_errors`."""
        n_rows = int(self.learned["age"][group].max()) + self.offsets.shape[1]
        return seeded_normal(0, np.zeros((1, 1)), (1 + n_rows, N_PATHS))

    def _sample_paths(self, group: Ints, draws: Floats) -> Floats:
        """Transformed sample paths of a group, (series, paths, steps).

        All series use the same draws, so that results do not depend on the other series.
        """
        from deepforecast.kernels.ets.forecasts import simulate_paths

        arrays = {
            name: self.learned[name][group] for name in ("form", "rates", "state", "age", "sigma", "criteria", "noise_floor")
        }
        n_draws = 1 + int(arrays["age"].max()) + self.offsets.shape[1]
        errors = student_errors(arrays, draws[:, :n_draws])
        return simulate_paths(ets.kernel_model(arrays, "state"), errors, self.offsets[group])


def student_errors(arrays: Mapping[str, Any], draws: Floats) -> Floats:
    """Student's t errors (series, rows, samples) from normal draws (series or 1, 1 + rows, samples).

    The first row of draws sets the random scale of each path, which its errors share; they have the
    standard deviation sigma times the factor for estimated parameters.
    """
    degrees_of_freedom, estimation_factor = _degrees_and_factor(arrays)
    mixing = student_mixing(np.broadcast_to(draws[:, 0], (len(degrees_of_freedom), draws.shape[2])), degrees_of_freedom)
    return np.asarray(draws[:, 1:] * (mixing * (arrays["sigma"] * estimation_factor)[:, None])[:, None, :])


def _degrees_and_factor(arrays: Mapping[str, Any]) -> tuple[Floats, Floats]:
    """Degrees of freedom and the factor of standard deviations for estimated parameters, of each series."""
    _, n_parameters, n_observed = arrays["criteria"].T
    return degrees_and_factor(n_observed, n_parameters, arrays["noise_floor"])
