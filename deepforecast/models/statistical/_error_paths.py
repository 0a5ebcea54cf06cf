"""Sample paths of ARIMA errors, and the decomposition of ARIMA forecasts."""

from __future__ import annotations

import numpy as np

from deepforecast.core.state import LearnedState
from deepforecast.data.frames import Floats, Ints


def sample_errors(learned: LearnedState, draws: Floats, steps: int) -> Floats:
    """Forecast errors of sample paths in units of sigma, (series, samples, steps).

    `draws`: standard normal, (series, size + steps, samples); those of the state come first, so
    that longer paths extend shorter ones.
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
            values, vectors = np.linalg.eigh(covariance)  # uses the lower triangle
            start = (vectors * np.sqrt(np.maximum(values, 0.0))) @ draws[series, :size]
            paths += np.where(lags >= 0, state_response[series][np.maximum(lags, 0)], 0.0)[:, :size] @ start
        sampled_errors[series] = paths.T
    return sampled_errors


def decompose_forecast(forecasts: Floats, order: Ints, season: int, steps: int) -> tuple[Floats, Floats, Floats]:
    """Level, trend and season, (series, steps), of `forecasts`, which are two seasons longer.

    Without differences the forecast of an ARIMA decays to 0, and all of it is remainder. With a
    seasonal difference, level and trend are the line through the means of the next two seasons, and
    the season is the deviation of the first one from it. With ordinary differences only, the level
    is the first forecast and the slope, with two differences, the first change.
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
    slope[doubly_differenced] = (
        (forecasts[doubly_differenced, 1] - forecasts[doubly_differenced, 0])[:, None] * steps_ahead
        if len(doubly_differenced)
        else 0.0
    )
    return level, slope, seasonal_part
