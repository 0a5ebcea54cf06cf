"""Sample paths of an ARIMA's errors, and its forecast taken apart."""

from __future__ import annotations

import numpy as np

from deepforecast.core.state import LearnedState
from deepforecast.data.frames import Floats, Ints


def sample_errors(learned: LearnedState, draws: Floats, steps: int) -> Floats:
    """Errors of sample paths in units of sigma, (series, samples, steps).

    draws: (series, size + steps, samples), those of the state first, so that a longer path goes on where a shorter one ended.
    """
    from deepforecast.kernels.arima.state import impulse_responses

    size = learned["size"]
    state_response, shock_response = impulse_responses(learned["ar"], learned["ma"], steps)
    sampled_errors = np.empty((len(draws), draws.shape[2], steps))
    lags = np.subtract.outer(np.arange(steps), np.arange(max(steps, size)))
    for series in range(len(draws)):
        shocks = np.where(lags >= 0, shock_response[series][np.maximum(lags, 0)], 0.0)[:, :steps]
        paths = shocks @ draws[series, size:]
        excess = learned["excess"][series]
        if excess.any():
            covariance = np.zeros((size, size))
            covariance[np.tril_indices(size)] = excess
            values, vectors = np.linalg.eigh(covariance)  # of the lower half
            start = (vectors * np.sqrt(np.maximum(values, 0.0))) @ draws[series, :size]
            paths += np.where(lags >= 0, state_response[series][np.maximum(lags, 0)], 0.0)[:, :size] @ start
        sampled_errors[series] = paths.T
    return sampled_errors


def decompose_forecast(forecasts: Floats, order: Ints, season: int, steps: int) -> tuple[Floats, Floats, Floats]:
    """Level, slope and season, (series, steps), of forecasts that go two seasons further.

    Without differences an ARIMA's forecast dies out, and all of it is remainder. With them the path of the next season, less
    the line through it and the one after, is the season; the line is level and slope. Without a seasonal difference the level
    is the first forecast and the slope, where there are two differences, the first change.
    """
    level, slope, seasonal_part = np.zeros((3, len(forecasts), steps))
    steps_ahead = np.arange(steps)
    seasonal = np.flatnonzero(order[:, 4] > 0)
    if len(seasonal):
        cycles = forecasts[seasonal, : 2 * season].reshape(len(seasonal), 2, season)
        slope_per_step = (cycles[:, 1].mean(axis=1) - cycles[:, 0].mean(axis=1)) / season
        line = cycles[:, 0].mean(axis=1)[:, None] + slope_per_step[:, None] * (np.arange(season) - (season - 1) / 2)
        seasonal_part[seasonal] = (cycles[:, 0] - line)[:, steps_ahead % season]
        level[seasonal], slope[seasonal] = line[:, :1], slope_per_step[:, None] * steps_ahead
    differenced = np.flatnonzero((order[:, 4] == 0) & (order[:, 1] > 0))
    level[differenced] = forecasts[differenced, :1]
    doubly_differenced = differenced[order[differenced, 1] > 1]
    slope[doubly_differenced] = (forecasts[doubly_differenced, 1] - forecasts[doubly_differenced, 0])[:, None] * steps_ahead if len(doubly_differenced) else 0.0
    return level, slope, seasonal_part
