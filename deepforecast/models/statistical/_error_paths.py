"""Sample paths of ARIMA errors, and the decomposition of ARIMA forecasts."""

from __future__ import annotations

import numpy as np

from deepforecast.core.state import LearnedState
from deepforecast.data.frames import Floats, Ints


def sample_errors(learned: LearnedState, draws: Floats, steps: int) -> Floats:
    """Forecast errors of sample paths in units of sigma, (series, samples, steps).

    Responses to the errors of the state (covariance `excess`, 0 for complete histories) and to future
    shocks. `draws`: standard normal, (series, n_states + steps, samples); those of the state come
    first, so that longer paths extend shorter ones.
    """
    from deepforecast.kernels.arima.state import impulse_responses

    n_states = learned["n_states"]
    state_response, shock_response = impulse_responses(learned["ar"], learned["ma"], steps)
    sampled_errors = np.empty((len(draws), draws.shape[2], steps))
    lags = np.subtract.outer(np.arange(steps), np.arange(max(steps, n_states)))  # of step h after shock j
    for series in range(len(draws)):
        response_matrix = np.where(lags >= 0, shock_response[series][np.maximum(lags, 0)], 0.0)[:, :steps]
        paths = response_matrix @ draws[series, n_states:]
        excess = learned["excess"][series]
        if excess.any():
            covariance = np.zeros((n_states, n_states))
            covariance[np.tril_indices(n_states)] = excess
            values, vectors = np.linalg.eigh(covariance)  # uses the lower triangle
            state_errors = (vectors * np.sqrt(np.maximum(values, 0.0))) @ draws[series, :n_states]
            response_matrix = np.where(lags >= 0, state_response[series][np.maximum(lags, 0)], 0.0)[:, :n_states]
            paths += response_matrix @ state_errors
        sampled_errors[series] = paths.T
    return sampled_errors


def decompose_forecast(forecasts: Floats, order: Ints, season: int, steps: int) -> tuple[Floats, Floats, Floats]:
    """Level, trend and season, (series, steps), of the forecasts of the ARIMA errors.

    `forecasts`: (series, steps + 2 * season); `order`: (series, 7), see `ArimaFamily`. Without
    differences the forecast decays to 0, and all of it is left to the remainder. With a
    seasonal difference, level and trend are the line through the means of the next two seasons, and
    the season is the deviation of the first one from it. With ordinary differences only, the level
    is the first forecast and the slope, with two differences, the first change.
    """
    level, slope, seasonal_part = np.zeros((3, len(forecasts), steps))
    steps_ahead = np.arange(steps)
    n_differences, n_seasonal_differences = order[:, 1], order[:, 4]
    seasonal = np.flatnonzero(n_seasonal_differences > 0)
    if len(seasonal):
        cycles = forecasts[seasonal, : 2 * season].reshape(len(seasonal), 2, season)
        slope_per_step = (cycles[:, 1].mean(axis=1) - cycles[:, 0].mean(axis=1)) / season
        line = cycles[:, 0].mean(axis=1)[:, None] + slope_per_step[:, None] * (np.arange(season) - (season - 1) / 2)
        seasonal_part[seasonal] = (cycles[:, 0] - line)[:, steps_ahead % season]
        level[seasonal], slope[seasonal] = line[:, :1], slope_per_step[:, None] * steps_ahead
    differenced = np.flatnonzero((n_seasonal_differences == 0) & (n_differences > 0))
    level[differenced] = forecasts[differenced, :1]
    doubly_differenced = differenced[n_differences[differenced] > 1]
    slope[doubly_differenced] = (
        (forecasts[doubly_differenced, 1] - forecasts[doubly_differenced, 0])[:, None] * steps_ahead
        if len(doubly_differenced)
        else 0.0
    )
    return level, slope, seasonal_part
