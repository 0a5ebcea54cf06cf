"""The steps ahead of a fitted model: mean, bands, components and sample paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from deepforecast.core.forecast import Forecast
from deepforecast.core.state import LearnedState
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.timestamps import timestamps_at
from deepforecast.models.additive._forecast import AdditiveForecast, SimulatedForecast
from deepforecast.models.additive._row_components import RowComponents, evaluate_rows, learned_parts, saturate
from deepforecast.models.additive._solver import DEGREES_OF_FREEDOM
from deepforecast.models.additive._time import scale_time

if TYPE_CHECKING:
    from deepforecast.models.additive.prophet import Prophet

N_SAMPLES = 1000  # paths that bands of a saturating trend are made of, as many as Prophet draws
DRAWS_PER_STEP = 5  # of a step: noise, how many changes, how large, which way, when
BOUNDS_COMPONENT = "bounds"
"""The component of what cap and floor cut off."""


def forecast(model: Prophet, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
    """The forecast: bands by formula, or by paths where the trend saturates."""
    row_components = _evaluate_rows(model, learned, steps, future)
    mean, low, high = _clip_mean(model, row_components, steps)
    if model.growth == "logistic":
        return SimulatedForecast(mean, simulate_paths(model, learned, steps, N_SAMPLES, 0, future))
    elapsed, series = np.maximum(row_components.time - 1.0, 0.0), _series_index(learned, steps)
    change = learned["size"][series] * elapsed * row_components.trend_slope_factor * np.abs(row_components.multiplier)
    scale = learned["scale"][series]
    noise = learned["deviation"][series] * scale
    if model.uncertainty == "laplace":
        parameter_effects = _parameter_effects(model, learned, row_components, steps, future).reshape(len(scale), -1) / scale[:, None]
        noise = scale * np.sqrt(learned["deviation"][series] ** 2 + np.square(parameter_effects).sum(axis=-1))
    count = learned["count"][series] * elapsed

    def by_series(values: Floats) -> Floats:
        return np.asarray(values.reshape(-1, steps))

    return AdditiveForecast(mean, by_series(noise), by_series(change), by_series(count), model.errors == "student", low, high)


def components(model: Prophet, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
    """What adds up to the mean: trend, each part (those that are 0 in every series left out), and what bounds cut off."""
    row_components = _evaluate_rows(model, learned, steps, future)
    mean, _, _ = _clip_mean(model, row_components, steps)
    return {name: values.reshape(-1, steps) for name, values in component_values(model, learned, row_components, mean.reshape(-1)).items()}


def component_values(model: Prophet, learned: LearnedState, row_components: RowComponents, mean: Floats) -> dict[str, Floats]:
    """The components of rows, as `components` gives them."""
    from deepforecast.data.components import column_slices

    contributions, slices = row_components.components, column_slices(learned_parts(learned))
    active_names = [name for name, columns in slices.items() if learned["coefficients"][:, columns].any()]
    components = {name: contributions[name] for name in ("trend", *active_names)}
    if clips_forecast(model):
        components[BOUNDS_COMPONENT] = mean - np.asarray(sum(components.values()))
    return components


def simulate_paths(
    model: Prophet, learned: LearnedState, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]
) -> Floats:
    """Sample paths (series, samples, steps), each series' own whatever stands beside it."""
    row_components = _evaluate_rows(model, learned, steps, future)
    _, low, high = _clip_mean(model, row_components, steps)
    n_parameters = (2 + learned["coefficients"].shape[1] + model.max_changepoints) if model.uncertainty == "laplace" else 0
    steps_since_fit = _steps_since_fit(learned)
    paths = np.empty((len(steps_since_fit), samples, steps))
    parameter_effects = _parameter_effects(model, learned, row_components, steps, future) if n_parameters else None
    for index in range(len(steps_since_fit)):
        rows = slice(index * steps, (index + 1) * steps)
        n_steps = int(steps_since_fit[index]) + steps
        draws = _normal_draws(learned.take(np.array([index])), seed, (n_parameters + DRAWS_PER_STEP * n_steps, samples))[0]
        step_draws, future_steps = draws[n_parameters:].reshape(n_steps, DRAWS_PER_STEP, samples), slice(steps_since_fit[index], n_steps)
        line_deviation, noise = _line_deviation(learned, index, n_steps, step_draws)[future_steps], step_draws[future_steps, 0]
        if model.errors == "student":
            noise = _student_t_quantiles(noise)
        trend_deviation = row_components.trend_slope_factor[rows, None] * line_deviation
        if model.growth == "logistic":
            scale = learned["scale"][index]
            trend_deviation = scale * saturate(row_components.line[rows, None] + line_deviation, row_components.cap[rows, None]) - row_components.scaled_trend[rows, None]
        if not np.isnan(learned["steady"][index]):
            trend_deviation = 0.0 * trend_deviation
        path = row_components.mean[rows, None] + trend_deviation * row_components.multiplier[rows, None]
        path = path + learned["deviation"][index] * learned["scale"][index] * noise
        if parameter_effects is not None:
            path = path + parameter_effects[index] @ draws[:n_parameters]
        paths[index] = np.clip(path.T, low[index], high[index])
    return paths


def clips_forecast(model: Prophet) -> bool:
    """Whether cap or floor cut forecasts off: where the trend does not saturate by itself."""
    return model.growth != "logistic" and (model.cap is not None or model.floor is not None)


def _evaluate_rows(model: Prophet, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> RowComponents:
    positions = learned.series.calendar.next_positions(learned.series.last, steps)  # type: ignore[union-attr]
    return evaluate_rows(model, learned, learned.series.calendar, _series_index(learned, steps), positions, future)  # type: ignore[union-attr]


def _series_index(learned: LearnedState, steps: int) -> Ints:
    return np.repeat(np.arange(len(learned["rate"])), steps)


def _clip_mean(model: Prophet, row_components: RowComponents, steps: int) -> tuple[Floats, Floats, Floats]:
    """The mean within its bounds, and these, (series, steps)."""
    infinity = np.full(len(row_components.trend), np.inf)
    low = row_components.bounds.floor if clips_forecast(model) and model.floor is not None else -infinity
    high = row_components.bounds.cap if clips_forecast(model) and model.cap is not None else infinity
    mean, lower, upper = (values.reshape(-1, steps) for values in (row_components.mean, low, high))
    return np.clip(mean, lower, upper), lower, upper


def _steps_since_fit(learned: LearnedState) -> Ints:
    """Steps from the last value of the fit to where each series stands."""
    series = learned.series
    return np.asarray((series.last - learned["end"]) // series.calendar.step)  # type: ignore[union-attr]


def _normal_draws(learned: LearnedState, seed: int, shape: tuple[int, int]) -> Floats:
    """Standard normal numbers that belong to each series."""
    from deepforecast.core.noise import standard_normal

    names = ("rate", "offset", "deviation", "scale")
    return standard_normal(seed, np.stack([learned[name] for name in names], axis=1), shape)


def _line_deviation(learned: LearnedState, index: int, n_steps: int, draws: Floats) -> Floats:
    """How far the line of a path is from the one expected, at each step from the last value of the fit on, (steps, samples)."""
    from scipy.special import gammaincinv, ndtr, pdtr

    series = learned.series
    positions = learned["end"][index] + series.calendar.step * np.arange(1, n_steps + 1)  # type: ignore[union-attr]
    timestamps = timestamps_at(series.calendar, positions)  # type: ignore[union-attr]
    elapsed = np.maximum(scale_time(timestamps.local_time_of_rows, learned["start"][index], learned["span"][index]) - 1.0, 0.0)
    length = np.diff(elapsed, prepend=0.0)
    slopes, steps = np.zeros(draws[:, 0].shape), np.zeros(draws[:, 0].shape)
    probability = ndtr(draws[:, 1])
    expected = np.broadcast_to(learned["count"][index] * length[:, None], probability.shape)
    changed = np.nonzero(probability > np.exp(-expected))
    if learned["size"][index] > 0.0 and len(changed[0]):
        count = np.ones(len(changed[0]))
        for n_changes in range(1, 200):
            above = probability[changed] > pdtr(n_changes, expected[changed])
            if not above.any():
                break
            count += above
        magnitude = np.sqrt(2.0 * gammaincinv(count, ndtr(draws[:, 2][changed]))) * draws[:, 3][changed]
        slopes[changed] = learned["size"][index] * magnitude
        steps[changed] = slopes[changed] * length[changed[0]] * ndtr(draws[:, 4][changed])
    previous_slopes = np.cumsum(slopes, axis=0) - slopes
    return np.asarray(np.cumsum(previous_slopes * length[:, None] + steps, axis=0))


def _student_t_quantiles(draws: Floats) -> Floats:
    from scipy.special import ndtr, stdtrit

    return np.asarray(stdtrit(DEGREES_OF_FREEDOM, ndtr(draws)))


def _parameter_effects(model: Prophet, learned: LearnedState, row_components: RowComponents, steps: int, future: Mapping[str, Covariate]) -> Floats:
    """What independent draws of the parameters add at each step: (series, steps, parameters), in units of the values."""
    from deepforecast.models.additive._sensitivity import sensitivity

    derivatives = sensitivity(model, learned, row_components, steps, future)
    return np.asarray(np.einsum("nsp,npq->nsq", derivatives, learned["factor"]))


