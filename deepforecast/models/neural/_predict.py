"""Forecasts of a trained network, with quantiles calibrated on recent values where there are enough of them.

The recent values are those after the training data in the histories of `predict(frame=...)`. A series with at least
MIN_RECENT_WINDOWS horizons of them has its own factors, from forecasts of its last RECENT_HORIZONS horizons, each from the
values up to its cutoff as in `fitted_values`. They are shrunk to the factors of the fit by n / (n + 30), where n is the
number of these horizons, see `_calibration`. No series depends on another, and the factors are computed only when
quantiles or paths are forecast.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from deepforecast.core.forecast import Forecast, resolve_bounds
from deepforecast.core.state import LearnedState
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.models.neural._calibration import (
    MAX_PATH_WINDOWS,
    SHRINKAGE,
    estimate_factors,
    observed_in_tail,
    sample_numbers,
)
from deepforecast.models.neural._decoding import path_forecast
from deepforecast.models.neural._fitted_values import Windows, forecast_rows, observed_windows, state_at_cutoffs
from deepforecast.models.neural._forecast import (
    AUTOREGRESSIVE_SAMPLING,
    CalibratedForecast,
    QuantileFactors,
    quantile_factors,
)
from deepforecast.models.neural._horizon_forecaster import MAX_VALUES, make_forecaster, network_forecast, network_paths
from deepforecast.models.neural._series_state import window_columns
from deepforecast.nn.network import AutoregressiveBody
from deepforecast.training.defaults import torch_defaults

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster
    from deepforecast.nn.network import ForecastNetwork

RECENT_HORIZONS = 90  # horizons before the end of a history
MIN_RECENT_WINDOWS = 10  # fewer would hardly change the factors
MAX_RECENT_PATH_WINDOWS = MAX_PATH_WINDOWS // 4  # windows per series of autoregressive networks


def forecast_horizon(
    model: NeuralForecaster, learned: LearnedState, steps: int, future: Mapping[str, Covariate], marginal: bool = False
) -> Forecast:
    """Forecast the next `steps` of all series, with calibrated quantiles if the state has factors.

    With a decoding other than 'sample' the point forecast is the decoded path, unless `marginal` is set.
    """
    decoding = model._decoding_options()
    if decoding.method != "sample" and not marginal:
        forecaster = make_forecaster(model, learned, steps, future)
        marginal_forecast = partial(forecast_horizon, model, learned, steps, future, marginal=True)
        return path_forecast(forecaster, decoding, model.point_kind == "mean", marginal_forecast)
    forecast, factors = network_forecast(model, learned, steps, future), quantile_factors(learned)
    return forecast if factors is None else _calibrate(forecast, factors, model, learned)


def simulate_paths(
    model: NeuralForecaster, learned: LearnedState, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]
) -> Floats:
    """Sample paths (series, samples, steps), calibrated if the state has factors."""
    paths = network_paths(model, learned, steps, samples, seed, future)
    factors = quantile_factors(learned)
    if factors is None:
        return paths
    return _calibrate(network_forecast(model, learned, steps, future), factors, model, learned).move_paths(paths)


def _calibrate(
    forecast: Forecast, factors_of_fit: QuantileFactors, model: NeuralForecaster, learned: LearnedState
) -> CalibratedForecast:
    """The forecast with the factors of the recent values, or else of the fit."""
    compute_factors = partial(recent_factors, model, learned, factors_of_fit)
    return CalibratedForecast(forecast, compute_factors, model.head, resolve_bounds(model.bounds))


def has_recent_factors(learned: LearnedState) -> bool:
    """Whether every series has factors from its own recent values."""
    if learned.history is None or "calibration" not in learned.shared:
        return False
    return bool((_recent_values(learned, learned.history)[1] >= MIN_RECENT_WINDOWS).all())


@torch_defaults()
def recent_factors(
    model: NeuralForecaster, learned: LearnedState, factors_of_fit: QuantileFactors
) -> QuantileFactors:
    """The factors of each series at the end of `learned.history`; those of the fit without enough recent values."""
    panel = learned.history
    if panel is None:
        return factors_of_fit
    n_rows, n_windows = _recent_values(learned, panel)
    recent = np.flatnonzero(n_windows >= MIN_RECENT_WINDOWS)
    if not len(recent):
        return factors_of_fit
    probabilities, horizon = factors_of_fit.probabilities, window_columns(learned).horizon
    factors = np.tile(factors_of_fit.factors, (len(panel), 1))
    for series in np.array_split(recent, -(-len(recent) // _group_size(learned.shared["network"]))):
        windows = _windows(model, learned, panel, series, n_rows // horizon)
        quantiles, actual = _forecast_windows(model, learned, panel, windows, [*probabilities, 0.5])
        for number in series:
            mine = windows.series == number
            weight = float(n_windows[number] / (n_windows[number] + SHRINKAGE))
            factors[number] = estimate_factors(
                probabilities, quantiles[mine], actual[mine], weight, factors_of_fit.factors, model.head
            )
    return QuantileFactors(probabilities, factors)


def _recent_values(learned: LearnedState, panel: Panel) -> tuple[Ints, Ints]:
    """Number of recent rows to forecast of each series, and of the horizons observed in them, both (series,)."""
    columns = window_columns(learned)
    n_new = (panel.series.last - learned.shared["calibration"]["end"]) // panel.calendar.step
    n_rows = np.clip(n_new, 0, RECENT_HORIZONS * columns.horizon)
    n_rows = np.minimum(n_rows, np.maximum(panel.lengths - columns.input_size, 0))
    return n_rows, observed_in_tail(panel, n_rows) // columns.horizon


def _group_size(network: ForecastNetwork) -> int:
    """Number of series whose windows are forecast at once, to bound memory."""
    sizes = network.sizes
    if isinstance(network.body, AutoregressiveBody):
        n_paths, n_pooled = AUTOREGRESSIVE_SAMPLING
        n_values = MAX_RECENT_PATH_WINDOWS * sizes.horizon * n_paths * (1 + n_pooled)
    else:
        n_inputs = (sizes.input_size + sizes.horizon) * (1 + sizes.past + sizes.future)
        n_values = RECENT_HORIZONS * (n_inputs + sizes.horizon * sizes.out_features)
    return max(MAX_VALUES // n_values, 1)


def _windows(model: NeuralForecaster, learned: LearnedState, panel: Panel, series: Ints, counts: Ints) -> Windows:
    """The last `counts` (of each series of the panel) horizons of some of the series, sorted by cutoff.

    Autoregressive networks forecast a random part of them, which depends on their number alone.
    """
    columns, network = window_columns(learned), learned.shared["network"]
    limit = MAX_RECENT_PATH_WINDOWS if isinstance(network.body, AutoregressiveBody) else RECENT_HORIZONS
    numbers = [sample_numbers(int(counts[number]), limit, model.seed) for number in series]
    window_series = np.repeat(series, [len(sampled) for sampled in numbers])
    cutoff = panel.lengths[window_series] - columns.horizon * (np.concatenate(numbers) + 1)
    windows = Windows(window_series, cutoff)
    windows = windows.select(np.argsort(cutoff, kind="stable"))
    return observed_windows(panel, windows, columns.input_size) if network.body.needs_history else windows


def _forecast_windows(
    model: NeuralForecaster, learned: LearnedState, panel: Panel, windows: Windows, probabilities: list[float]
) -> tuple[Floats, Floats]:
    """Quantiles of the network (windows, horizon, probabilities) after each cutoff, and the values that followed."""
    horizon = window_columns(learned).horizon
    rows, _ = forecast_rows(panel, windows, horizon)
    learned_at_cutoffs, future = state_at_cutoffs(model, learned, panel, windows, rows)
    forecast = network_forecast(model, learned_at_cutoffs, horizon, future)
    return forecast.quantiles(probabilities), panel.y[rows]
