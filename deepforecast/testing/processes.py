"""Stochastic processes that simulate series, on which the coverage of a model's prediction intervals is measured.

A model sets the process that it assumes, `coverage_process = "random_walk"`, or simulates series itself in a method:

    def coverage_process(self, random, n_series, n_rows): ...     # returns an array of shape (n_series, n_rows)

Errors e_t are normal with standard deviation 1, and levels are around 100, so that values are positive. m is the season length.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deepforecast.core.forecaster import Forecaster
from deepforecast.data.frames import Floats
from deepforecast.errors import ParameterError, format_list
from deepforecast.testing.fixtures import SEASON

Random = np.random.Generator
LEVEL = 100.0
BURN_IN = 50  # rows


def longest_season(model: Forecaster) -> int:
    """Return the longest season length of a model; a week if it has none."""
    season: Any = getattr(model, "season_length", "auto")
    lengths = season if isinstance(season, (list, tuple)) else [season]
    return max((length for length in lengths if isinstance(length, int)), default=SEASON)


def white_noise(model: Forecaster, random: Random, n_series: int, n_rows: int) -> Floats:
    """y_t = level + e_t."""
    return LEVEL + random.normal(size=(n_series, n_rows))


def seasonal_noise(model: Forecaster, random: Random, n_series: int, n_rows: int) -> Floats:
    """y_t = level + s_t + e_t, with a fixed seasonal pattern s."""
    return white_noise(model, random, n_series, n_rows) + _seasonal_pattern(model, random, n_series, n_rows)


def trend_and_season(model: Forecaster, random: Random, n_series: int, n_rows: int) -> Floats:
    """y_t = level + b t + s_t + e_t."""
    slope = random.uniform(-0.1, 0.1, size=(n_series, 1))
    return seasonal_noise(model, random, n_series, n_rows) + slope * np.arange(n_rows)


def random_walk(model: Forecaster, random: Random, n_series: int, n_rows: int) -> Floats:
    """y_t = y_{t-1} + e_t."""
    return np.asarray(LEVEL + random.normal(size=(n_series, n_rows)).cumsum(axis=1))


def random_walk_with_drift(model: Forecaster, random: Random, n_series: int, n_rows: int) -> Floats:
    """y_t = y_{t-1} + b + e_t."""
    return random_walk(model, random, n_series, n_rows) + 0.3 * np.arange(n_rows)


def seasonal_random_walk(model: Forecaster, random: Random, n_series: int, n_rows: int) -> Floats:
    """y_t = y_{t-m} + e_t."""
    season = longest_season(model)
    cycles = random.normal(size=(n_series, -(-n_rows // season), season)).cumsum(axis=1)
    return np.asarray(LEVEL + _seasonal_pattern(model, random, n_series, n_rows) + cycles.reshape(n_series, -1)[:, :n_rows])


def seasonally_adjusted_random_walk(model: Forecaster, random: Random, n_series: int, n_rows: int) -> Floats:
    """y_t = l_t + s_t, with a random walk l_t and a fixed seasonal pattern s."""
    return random_walk(model, random, n_series, n_rows) + _seasonal_pattern(model, random, n_series, n_rows)


def local_level(model: Forecaster, random: Random, n_series: int, n_rows: int) -> Floats:
    """y_t = l_t + e_t, l_t = l_{t-1} + u_t, with u_t of standard deviation 0.5."""
    return LEVEL + 0.5 * random.normal(size=(n_series, n_rows)).cumsum(axis=1) + random.normal(size=(n_series, n_rows))


def seasonal_local_level(model: Forecaster, random: Random, n_series: int, n_rows: int) -> Floats:
    """y_t = l_t + s_t + e_t: a local level with a fixed seasonal pattern s."""
    return local_level(model, random, n_series, n_rows) + _seasonal_pattern(model, random, n_series, n_rows)


def arima(model: Forecaster, random: Random, n_series: int, n_rows: int) -> Floats:
    """phi(B) Phi(B^m) (1 - B)^d (1 - B^m)^D y_t = theta(B) Theta(B^m) e_t, with the orders of the model, AR(1) if it has none."""
    from scipy.signal import lfilter

    p, d, q = getattr(model, "order", (1, 0, 0))
    seasonal_p, seasonal_d, seasonal_q = getattr(model, "seasonal_order", (0, 0, 0))
    season = longest_season(model)
    ar = np.polymul(_polynomial(-0.6, p, 1), _polynomial(-0.4, seasonal_p, season))
    ma = np.polymul(_polynomial(0.4, q, 1), _polynomial(-0.4, seasonal_q, season))
    stationary = lfilter(ma, ar, random.normal(size=(n_series, BURN_IN + n_rows)), axis=1)[:, BURN_IN:]
    integration: Floats = np.ones(1)
    for lag in [1] * d + [season] * seasonal_d:
        integration = np.asarray(np.polymul(integration, _polynomial(-1.0, 1, lag)), dtype=np.float64)
    return LEVEL + np.asarray(lfilter([1.0], integration, stationary, axis=1), dtype=np.float64)


def exponential_smoothing(model: Forecaster, random: Random, n_series: int, n_rows: int) -> Floats:
    """The innovations state space model with the error, trend and season of the model; ETS(A,N,N) if it has none.

    Hyndman, Koehler, Ord, Snyder (2008), tables 2.2 and 2.3, with alpha = 0.3, beta = 0.05, gamma = 0.1, phi = 0.9.
    """
    params = model.get_params(deep=False)
    trend = params.get("trend", "additive" if "beta" in params else None)
    seasonal = params.get("seasonal")
    has_multiplicative_errors = params.get("error") == "multiplicative"
    alpha, beta, gamma = 0.3, 0.05, 0.1
    phi = 0.9 if params.get("damped", False) is True else 1.0
    level = np.full(n_series, LEVEL)
    slope = np.full(n_series, 0.2 if trend == "additive" else 0.0)
    pattern = _seasonal_pattern(model, random, n_series, longest_season(model))
    season = {"additive": pattern, "multiplicative": 1 + pattern / LEVEL}.get(str(seasonal), np.zeros_like(pattern))
    y = np.empty((n_series, n_rows))
    errors = random.normal(size=(n_series, n_rows))
    for row in range(n_rows):
        phase = row % season.shape[1]
        base = level + phi * slope
        seasonal_state = season[:, phase]
        factor = seasonal_state if seasonal == "multiplicative" else np.ones(n_series)
        mean = base * factor if seasonal == "multiplicative" else base + seasonal_state
        error = errors[:, row] * (mean / LEVEL if has_multiplicative_errors else 1.0)
        y[:, row] = mean + error
        level = base + alpha * error / factor
        slope = phi * slope + (beta * error / factor if trend == "additive" else 0.0)
        if seasonal in ("additive", "multiplicative"):
            season[:, phase] = seasonal_state + gamma * error / (base if seasonal == "multiplicative" else 1.0)
    return y


def intermittent_demand(model: Forecaster, random: Random, n_series: int, n_rows: int) -> Floats:
    """0 with probability 0.7, otherwise a demand of 1 plus a Poisson count with mean 8."""
    demand = 1.0 + random.poisson(8.0, size=(n_series, n_rows))
    return np.where(random.random(size=(n_series, n_rows)) < 0.3, demand, 0.0)


def process_of_model(model: Forecaster, random: Random, n_series: int, n_rows: int) -> Floats:
    """The process of the wrapped model."""
    return _draw_series(model.model, random, n_series, n_rows)  # type: ignore[attr-defined]


def decomposition(model: Forecaster, random: Random, n_series: int, n_rows: int) -> Floats:
    """A fixed seasonal pattern plus the process of the trend model; plus a linear trend and noise if there is none."""
    remainder_model: Forecaster | None = model.trend_model  # type: ignore[attr-defined]
    if remainder_model is None:
        return trend_and_season(model, random, n_series, n_rows)
    return _draw_series(remainder_model, random, n_series, n_rows) + _seasonal_pattern(model, random, n_series, n_rows)


DEFAULT_PROCESS = "white_noise"
PROCESSES = {
    process.__name__: process
    for process in (
        white_noise, seasonal_noise, trend_and_season, random_walk, random_walk_with_drift, seasonal_random_walk,
        seasonally_adjusted_random_walk, local_level, seasonal_local_level, arima, exponential_smoothing,
        intermittent_demand, process_of_model, decomposition,
    )
}  # fmt: skip


def draw(model: Forecaster, n_series: int, n_rows: int) -> Floats:
    """Return independent series from the process of a model, shape (n_series, n_rows), with a fixed seed."""
    return _draw_series(model, np.random.default_rng(1), n_series, n_rows)


def process_name(model: Forecaster) -> str:
    """Return the name of the process of a model."""
    process = getattr(model, "coverage_process", DEFAULT_PROCESS)
    return process if isinstance(process, str) else str(getattr(process, "__name__", "coverage_process"))


def _draw_series(model: Forecaster, random: Random, n_series: int, n_rows: int) -> Floats:
    """Series from the process that the model declares by name or as a function, shape (n_series, n_rows)."""
    process = getattr(model, "coverage_process", DEFAULT_PROCESS)
    if callable(process):
        return np.asarray(process(random, n_series, n_rows), dtype=np.float64)
    if process not in PROCESSES:
        names = format_list(PROCESSES, max_shown=len(PROCESSES))
        raise ParameterError(
            f"`coverage_process` must be one of {names}, or a method of the model that draws series, got {process!r}.",
            parameter="coverage_process",
            value=process,
        )
    return PROCESSES[process](model, random, n_series, n_rows)


def _seasonal_pattern(model: Forecaster, random: Random, n_series: int, n_rows: int) -> Floats:
    """Return a repeated seasonal pattern per series with mean 0 and standard deviation of about 3."""
    season = longest_season(model)
    pattern = 3 * random.normal(size=(n_series, season))
    pattern -= pattern.mean(axis=1, keepdims=True)
    return np.tile(pattern, -(-n_rows // season))[:, :n_rows]


def _polynomial(coefficient: float, order: int, lag: int) -> Floats:
    """Coefficients of 1 + c B^lag + (c / 2) B^(2 lag) + (c / 4) B^(3 lag) + ... with `order` terms after the 1."""
    coefficients = np.zeros(order * lag + 1)
    coefficients[0] = 1.0
    for number in range(1, order + 1):
        coefficients[number * lag] = coefficient / 2 ** (number - 1)
    return coefficients
