"""Forecasts of a fitted Prophet: distributions, components and sample paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from deepforecast.core.forecast import Forecast
from deepforecast.core.state import LearnedState
from deepforecast.data.calendar import timestamps_at
from deepforecast.data.covariates import Covariate
from deepforecast.data.features import scale_time
from deepforecast.data.frames import Floats, Ints
from deepforecast.models.prophet._row_components import RowComponents, evaluate_rows, learned_components, saturate
from deepforecast.models.prophet._solver import DEGREES_OF_FREEDOM

if TYPE_CHECKING:
    from deepforecast.models.prophet.prophet import Prophet

N_SAMPLES = 1000  # paths for the intervals of a logistic trend, as in Prophet
NOISE, CHANGE_COUNT, CHANGE_SCALE, CHANGE_SIGN, CHANGE_TIME = range(5)  # standard normal draws of a step
DRAWS_PER_STEP = 5
MAX_CHANGES_PER_STEP = 200  # slope changes; larger Poisson numbers are truncated
BOUNDS_COMPONENT = "bounds"
"""Name of the component with the effect of clipping to cap and floor."""


@dataclass(frozen=True)
class AdditiveForecast(Forecast):
    """Mean plus noise plus the effect of random changes of the slope; all arrays are (series, steps).

    noise: standard deviation of normal errors, or scale of Student's t errors.
    count: expected number of slope changes up to a step, of a compound Poisson process.
    change: mean absolute effect on the step of a change at the end of the history; the sizes of
    changes are Laplace distributed.
    low, high: bounds to which values are clipped.
    """

    mean: Floats
    noise: Floats
    change: Floats
    count: Floats
    student_t: bool
    low: Floats
    high: Floats

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Quantiles (series, steps, probabilities), by numerical inversion of the distribution function."""
        from deepforecast.kernels.compound_poisson import quantiles

        levels = np.array(probabilities, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):  # non-finite values are reported later
            deviations = quantiles(
                self.noise.reshape(-1),
                self.change.reshape(-1),
                self.count.reshape(-1),
                levels,
                self.student_t,
            )
            values = self.mean[..., None] + deviations.reshape(*self.mean.shape, len(levels))
        return np.asarray(np.clip(values, self.low[..., None], self.high[..., None]))

    def skip_steps(self, steps: int) -> AdditiveForecast:
        """The forecast without its first `steps`."""
        return replace(
            self,
            **{name: getattr(self, name)[:, steps:] for name in ("mean", "noise", "change", "count", "low", "high")},
        )


@dataclass(frozen=True)
class SimulatedForecast(Forecast):
    """Mean, and quantiles of sample paths (series, samples, steps), for a logistic trend."""

    mean: Floats
    paths: Floats

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Empirical quantiles of the paths, (series, steps, probabilities)."""
        return np.moveaxis(np.quantile(self.paths, list(probabilities), axis=1), 0, -1)

    def skip_steps(self, steps: int) -> SimulatedForecast:
        """The forecast without its first `steps`."""
        return SimulatedForecast(self.mean[:, steps:], self.paths[:, :, steps:])


def forecast(model: Prophet, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
    """The forecast, with analytic intervals or, for a logistic trend, from sample paths."""
    row_components = _evaluate_rows(model, learned, steps, future)
    mean, low, high = _clip_mean(model, row_components, steps)
    if model.growth == "logistic":
        return SimulatedForecast(mean, simulate_paths(model, learned, steps, N_SAMPLES, 0, future))
    elapsed = np.maximum(row_components.time - 1.0, 0.0)  # since the end of the history, in units of its length
    series = _series_index(learned, steps)
    change = learned["size"][series] * elapsed * row_components.trend_slope_factor * np.abs(row_components.multiplier)
    scale = learned["scale"][series]
    noise = learned["deviation"][series] * scale
    if model.uncertainty == "laplace":
        parameter_effects = _parameter_effects(model, learned, row_components, steps, future)
        parameter_effects = parameter_effects.reshape(len(scale), -1) / scale[:, None]
        noise = scale * np.sqrt(learned["deviation"][series] ** 2 + np.square(parameter_effects).sum(axis=-1))
    count = learned["count"][series] * elapsed

    return AdditiveForecast(
        mean=mean,
        noise=noise.reshape(-1, steps),
        change=change.reshape(-1, steps),
        count=count.reshape(-1, steps),
        student_t=model.errors == "student",
        low=low,
        high=high,
    )


def components(model: Prophet, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
    """Additive components (series, steps) of the mean forecast, see `component_values`."""
    row_components = _evaluate_rows(model, learned, steps, future)
    mean, _, _ = _clip_mean(model, row_components, steps)
    values_by_name = component_values(model, learned, row_components, mean.reshape(-1))
    return {name: values.reshape(-1, steps) for name, values in values_by_name.items()}


def component_values(model: Prophet, learned: LearnedState, row_components: RowComponents, mean: Floats) -> dict[str, Floats]:
    """Additive components (rows,) of `mean`: trend, those with nonzero coefficients, and the effect of clipping."""
    from deepforecast.data.components import column_slices

    contributions, slices = row_components.components, column_slices(learned_components(learned))
    active_names = [name for name, columns in slices.items() if learned["coefficients"][:, columns].any()]
    components = {name: contributions[name] for name in ("trend", *active_names)}
    if clips_forecast(model):
        components[BOUNDS_COMPONENT] = mean - np.asarray(sum(components.values()))
    return components


def simulate_paths(
    model: Prophet, learned: LearnedState, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]
) -> Floats:
    """Sample paths (series, samples, steps); those of a series do not depend on the other series.

    Random slope changes, noise and, with `uncertainty="laplace"`, parameters. The draws start at the end of the history
    of the fit, so that paths after `update` continue the same paths.
    """
    row_components = _evaluate_rows(model, learned, steps, future)
    _, low, high = _clip_mean(model, row_components, steps)
    n_parameters = (2 + learned["coefficients"].shape[1] + model.max_changepoints) if model.uncertainty == "laplace" else 0
    steps_since_fit = _steps_since_fit(learned)
    paths = np.empty((len(steps_since_fit), samples, steps))
    parameter_effects = _parameter_effects(model, learned, row_components, steps, future) if n_parameters else None
    for index in range(len(steps_since_fit)):
        rows = slice(index * steps, (index + 1) * steps)
        n_steps = int(steps_since_fit[index]) + steps  # since the end of the history
        future_steps = slice(steps_since_fit[index], n_steps)
        draws = _normal_draws(learned.take(np.array([index])), seed, (n_parameters + DRAWS_PER_STEP * n_steps, samples))[0]
        step_draws = draws[n_parameters:].reshape(n_steps, DRAWS_PER_STEP, samples)
        line_deviation = _line_deviation(learned, index, n_steps, step_draws)[future_steps]
        noise = step_draws[future_steps, NOISE]
        if model.errors == "student":
            noise = _student_t_quantiles(noise)
        trend_deviation = row_components.trend_slope_factor[rows, None] * line_deviation
        if model.growth == "logistic":
            scale = learned["scale"][index]
            line = row_components.line[rows, None] + line_deviation
            trend = scale * saturate(line, row_components.cap[rows, None])
            trend_deviation = trend - row_components.scaled_trend[rows, None]
        if not np.isnan(learned["steady"][index]):  # a constant series
            trend_deviation = 0.0 * trend_deviation
        path = row_components.mean[rows, None] + trend_deviation * row_components.multiplier[rows, None]
        path = path + learned["deviation"][index] * learned["scale"][index] * noise
        if parameter_effects is not None:
            path = path + parameter_effects[index] @ draws[:n_parameters]
        paths[index] = np.clip(path.T, low[index], high[index])
    return paths


def clips_forecast(model: Prophet) -> bool:
    """Whether cap or floor clip the forecast, as they do unless the trend is logistic."""
    return model.growth != "logistic" and (model.cap is not None or model.floor is not None)


def _evaluate_rows(model: Prophet, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> RowComponents:
    """Components at the next `steps` rows of each series, series by series."""
    calendar = learned.series.calendar  # type: ignore[union-attr]
    positions = calendar.next_positions(learned.series.last, steps)  # type: ignore[union-attr]
    series = _series_index(learned, steps)
    return evaluate_rows(model, learned, calendar, series, positions, future)


def _series_index(learned: LearnedState, steps: int) -> Ints:
    """Index of the series of each of the next rows."""
    return np.repeat(np.arange(len(learned["rate"])), steps)


def _clip_mean(model: Prophet, row_components: RowComponents, steps: int) -> tuple[Floats, Floats, Floats]:
    """The clipped mean, and the lower and upper bounds, each (series, steps)."""
    infinity = np.full(len(row_components.trend), np.inf)
    low = row_components.bounds.floor if clips_forecast(model) and model.floor is not None else -infinity
    high = row_components.bounds.cap if clips_forecast(model) and model.cap is not None else infinity
    mean, lower, upper = (values.reshape(-1, steps) for values in (row_components.mean, low, high))
    return np.clip(mean, lower, upper), lower, upper


def _steps_since_fit(learned: LearnedState) -> Ints:
    """Number of steps from the last value in fit to the last observation of each series."""
    series = learned.series
    return np.asarray((series.last - learned["end"]) // series.calendar.step)  # type: ignore[union-attr]


def _normal_draws(learned: LearnedState, seed: int, shape: tuple[int, int]) -> Floats:
    """Standard normal draws (series, *shape), seeded by `seed` and the parameters of each series."""
    from deepforecast.core.forecast import seeded_normal

    names = ("rate", "offset", "deviation", "scale")
    return seeded_normal(seed, np.stack([learned[name] for name in names], axis=1), shape)


def _line_deviation(learned: LearnedState, index: int, n_steps: int, draws: Floats) -> Floats:
    """Deviation of sampled trend lines from the expected one, (steps since the fit, samples).

    The number n of slope changes in a step has a Poisson distribution. The sum of n Laplace
    variables with scale b is b sqrt(2 G) Z with G ~ gamma(n) and Z standard normal. All of them are
    applied at the same uniformly distributed time within the step. `draws`: standard normal,
    (steps, DRAWS_PER_STEP, samples).
    """
    from scipy.special import gammaincinv, ndtr, pdtr

    series = learned.series
    positions = learned["end"][index] + series.calendar.step * np.arange(1, n_steps + 1)  # type: ignore[union-attr]
    timestamps = timestamps_at(series.calendar, positions)  # type: ignore[union-attr]
    elapsed = np.maximum(scale_time(timestamps.local_time_of_rows, learned["start"][index], learned["span"][index]) - 1.0, 0.0)
    length = np.diff(elapsed, prepend=0.0)
    slope_changes = np.zeros(draws[:, NOISE].shape)
    change_effects = np.zeros(draws[:, NOISE].shape)  # on the line, within the step of the change
    probability = ndtr(draws[:, CHANGE_COUNT])
    expected_count = np.broadcast_to(learned["count"][index] * length[:, None], probability.shape)
    changed = np.nonzero(probability > np.exp(-expected_count))
    if learned["size"][index] > 0.0 and len(changed[0]):
        n_changes = np.ones(len(changed[0]))  # Poisson quantiles of `probability`
        for candidate in range(1, MAX_CHANGES_PER_STEP):
            is_larger = probability[changed] > pdtr(candidate, expected_count[changed])
            if not is_larger.any():
                break
            n_changes += is_larger
        gamma_draws = gammaincinv(n_changes, ndtr(draws[:, CHANGE_SCALE][changed]))
        laplace_sums = np.sqrt(2.0 * gamma_draws) * draws[:, CHANGE_SIGN][changed]
        slope_changes[changed] = learned["size"][index] * laplace_sums
        change_effects[changed] = slope_changes[changed] * length[changed[0]] * ndtr(draws[:, CHANGE_TIME][changed])
    previous_changes = np.cumsum(slope_changes, axis=0) - slope_changes
    return np.asarray(np.cumsum(previous_changes * length[:, None] + change_effects, axis=0))


def _student_t_quantiles(draws: Floats) -> Floats:
    """Standard normal draws as draws of Student's t distribution."""
    from scipy.special import ndtr, stdtrit

    return np.asarray(stdtrit(DEGREES_OF_FREEDOM, ndtr(draws)))


def _parameter_effects(
    model: Prophet,
    learned: LearnedState,
    row_components: RowComponents,
    steps: int,
    future: Mapping[str, Covariate],
) -> Floats:
    """Effect of standard normal parameter draws (series, steps, parameters), in data units."""
    from deepforecast.models.prophet._row_components import sensitivity

    derivatives = sensitivity(model, learned, row_components, steps, future)
    return np.asarray(np.einsum("nsp,npq->nsq", derivatives, learned["factor"]))
