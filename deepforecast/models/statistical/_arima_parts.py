"""Sample paths of an ARIMA's errors, and its forecast taken apart."""

from __future__ import annotations

import numpy as np

from deepforecast.core.state import Learned
from deepforecast.data.frames import Floats, Ints


def sampled(learned: Learned, draws: Floats, steps: int) -> Floats:
    """Errors of sample paths in units of sigma, (series, samples, steps).

    draws: (series, size + steps, samples), those of the state first, so that a longer path goes on where a shorter one ended.
    """
    from deepforecast.kernels.arima.state import pulses

    size = learned["size"]
    of_state, of_shock = pulses(learned["ar"], learned["ma"], steps)
    found = np.empty((len(draws), draws.shape[2], steps))
    into = np.subtract.outer(np.arange(steps), np.arange(max(steps, size)))
    for one in range(len(draws)):
        shocks = np.where(into >= 0, of_shock[one][np.maximum(into, 0)], 0.0)[:, :steps]
        paths = shocks @ draws[one, size:]
        excess = learned["excess"][one]
        if excess.any():
            covariance = np.zeros((size, size))
            covariance[np.tril_indices(size)] = excess
            values, vectors = np.linalg.eigh(covariance)  # of the lower half
            start = (vectors * np.sqrt(np.maximum(values, 0.0))) @ draws[one, :size]
            paths += np.where(into >= 0, of_state[one][np.maximum(into, 0)], 0.0)[:, :size] @ start
        found[one] = paths.T
    return found


def parts_of(noise: Floats, order: Ints, season: int, steps: int) -> tuple[Floats, Floats, Floats]:
    """Level, slope and season, (series, steps), of forecasts that go two seasons further.

    Without differences an ARIMA's forecast dies out, and all of it is remainder. With them the path of the next season, less
    the line through it and the one after, is the season; the line is level and slope. Without a seasonal difference the level
    is the first forecast and the slope, where there are two differences, the first change.
    """
    level, slope, pattern = np.zeros((3, len(noise), steps))
    ahead = np.arange(steps)
    seasonal = np.flatnonzero(order[:, 4] > 0)
    if len(seasonal):
        cycles = noise[seasonal, : 2 * season].reshape(len(seasonal), 2, season)
        rise = (cycles[:, 1].mean(axis=1) - cycles[:, 0].mean(axis=1)) / season
        line = cycles[:, 0].mean(axis=1)[:, None] + rise[:, None] * (np.arange(season) - (season - 1) / 2)
        pattern[seasonal] = (cycles[:, 0] - line)[:, ahead % season]
        level[seasonal], slope[seasonal] = line[:, :1], rise[:, None] * ahead
    plain = np.flatnonzero((order[:, 4] == 0) & (order[:, 1] > 0))
    level[plain] = noise[plain, :1]
    twice = plain[order[plain, 1] > 1]
    slope[twice] = (noise[twice, 1] - noise[twice, 0])[:, None] * ahead if len(twice) else 0.0
    return level, slope, pattern
