"""Forecasts of a trained network, with quantiles calibrated on recent values where there are enough of them.

The recent values are those after the training data in the histories of `predict(frame=...)`. A series with at least
MIN_RECENT_WINDOWS horizons of them has its own factors, from forecasts of its last RECENT_HORIZONS horizons, each from the
values up to its cutoff as in `fitted_values`. They are shrunk to the factors of the fit by n / (n + 30), where n is the
number of these horizons, see `_calibration`. No series depends on another, and the factors are computed only when
quantiles or paths are forecast.

Fitted values are forecasts of the time steps of a history from earlier cutoffs. The cutoffs of a series are `horizon` time
steps apart, so that one forward pass over all windows gives every time step one forecast, 1 to `horizon` steps ahead. A
forecast is that of `predict` from the time steps up to the cutoff.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from deepforecast.core.forecast import Forecast, resolve_bounds
from deepforecast.core.state import LearnedState
from deepforecast.data.covariates import UNKNOWN, Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.data.windows import WindowColumns
from deepforecast.models.neural._calibration import (
    MAX_PATH_WINDOWS,
    SHRINKAGE,
    estimate_factors,
    observed_in_tail,
    sample_numbers,
)
from deepforecast.models.neural._decoding import greedy_paths, path_forecast
from deepforecast.models.neural._forecast import (
    AUTOREGRESSIVE_SAMPLING,
    BATCH_MULTIPLE,
    CalibratedForecast,
    QuantileFactors,
    quantile_factors,
)
from deepforecast.models.neural._horizon_forecaster import (
    MAX_VALUES,
    HorizonForecaster,
    make_forecaster,
    network_forecast,
    network_paths,
)
from deepforecast.models.neural._series_state import last_values, series_index, window_columns
from deepforecast.nn.network import AutoregressiveBody
from deepforecast.nn.scaling import series_scale
from deepforecast.training.process import torch_defaults

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

    With a decoding other than 'sample' the point forecast is the decoded path; its quantiles are those of the forecast
    with `marginal`, which ignores the decoding.
    """
    decoding = model._decoding_options()
    if decoding.method != "sample" and not marginal:
        forecaster = make_forecaster(model, learned, steps, future)
        # Called only when quantiles are requested.
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
        windows = _recent_windows(model, learned, panel, series, n_rows // horizon)
        quantiles, actual = _recent_quantiles(model, learned, panel, windows, [*probabilities, 0.5])
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
    limit = np.minimum(panel.lengths - columns.input_size, RECENT_HORIZONS * columns.horizon)
    n_rows = np.maximum(np.minimum(n_new, limit), 0)
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


def _recent_windows(model: NeuralForecaster, learned: LearnedState, panel: Panel, series: Ints, counts: Ints) -> Windows:
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


def _recent_quantiles(
    model: NeuralForecaster, learned: LearnedState, panel: Panel, windows: Windows, probabilities: list[float]
) -> tuple[Floats, Floats]:
    """Quantiles of the network (windows, horizon, probabilities) after each cutoff, and the values that followed."""
    horizon = window_columns(learned).horizon
    rows, _ = forecast_rows(panel, windows, horizon)
    learned_at_cutoffs, future = state_at_cutoffs(model, learned, panel, windows, rows)
    forecast = network_forecast(model, learned_at_cutoffs, horizon, future)
    return forecast.quantiles(probabilities), panel.y[rows]


class Windows(NamedTuple):
    """The series of each window, and its cutoff: the number of time steps of the series before it."""

    series: Ints
    cutoff: Ints

    def select(self, index: slice | Ints) -> Windows:
        """Some of the windows."""
        return Windows(self.series[index], self.cutoff[index])


@torch_defaults()
def fitted_values(model: NeuralForecaster, learned: LearnedState, panel: Panel) -> Floats:
    """The fitted value of each row of the panel, NaN before the first cutoff of its series.

    `learned` is the state at the end of the panel. Windows without any observation give NaN, unless the network does
    not need the past.
    """
    columns, network = window_columns(learned), learned.shared["network"]
    windows = _fitted_windows(panel, columns)
    if network.body.needs_history:
        windows = observed_windows(panel, windows, columns.input_size)
    fitted = np.full(len(panel.y), np.nan)
    n_columns = 1 + len(columns.numeric) + len(columns.categorical) + columns.calendar_width
    values_per_window = (columns.input_size + columns.horizon) * n_columns + columns.horizon * network.sizes.out_features
    group_size = max(MAX_VALUES // values_per_window // BATCH_MULTIPLE, 1) * BATCH_MULTIPLE
    for begin in range(0, len(windows.series), group_size):
        group = windows.select(slice(begin, begin + group_size))
        rows, inside = forecast_rows(panel, group, columns.horizon)
        fitted[rows[inside]] = _point_forecasts(model, learned, panel, group, rows)[inside]
    return fitted


def _fitted_windows(panel: Panel, columns: WindowColumns) -> Windows:
    """The windows, sorted by cutoff; the first cutoff of a series is that of its training windows."""
    lengths = panel.lengths
    first_cutoff = np.where(lengths >= columns.input_size + columns.horizon, columns.input_size, 1)
    counts = np.maximum(-(-(lengths - first_cutoff) // columns.horizon), 0)
    series = np.repeat(np.arange(len(panel)), counts)
    number = np.arange(len(series)) - np.repeat(np.cumsum(counts) - counts, counts)  # of the window in its series
    windows = Windows(series, first_cutoff[series] + columns.horizon * number)
    return windows.select(np.argsort(windows.cutoff, kind="stable"))


def observed_windows(panel: Panel, windows: Windows, input_size: int) -> Windows:
    """The windows with at least one observation before their cutoff."""
    n_observed = np.concatenate([[0], np.cumsum(~np.isnan(panel.y))])  # before each row
    first = panel.indptr[windows.series]
    stop = first + windows.cutoff
    return windows.select(np.flatnonzero(n_observed[stop] > n_observed[np.maximum(stop - input_size, first)]))


def forecast_rows(panel: Panel, windows: Windows, horizon: int) -> tuple[Ints, NDArray[np.bool_]]:
    """The rows after each cutoff, (windows, horizon), and whether they are in the series; the last row of the series
    takes the place of those after it.
    """
    rows = (panel.indptr[windows.series] + windows.cutoff)[:, None] + np.arange(horizon)
    stop = panel.indptr[windows.series + 1][:, None]
    return np.minimum(rows, stop - 1), rows < stop


def _point_forecasts(
    model: NeuralForecaster, learned: LearnedState, panel: Panel, windows: Windows, rows: Ints
) -> Floats:
    """Point forecasts of the rows after each cutoff, (windows, horizon) as `rows`.

    An autoregressive network continues from its point forecasts.
    """
    # Each window is forecast like a series that ends at its cutoff.
    learned_at_cutoffs, future = state_at_cutoffs(model, learned, panel, windows, rows)
    forecaster = HorizonForecaster(model.name, learned_at_cutoffs, rows.shape[1], future, resolve_bounds(model.bounds))
    if forecaster.autoregressive:
        return greedy_paths(forecaster, model.point_kind == "mean")
    return forecaster.forecast_block(forecaster.windows, begin=0).point(model.point_kind)


def state_at_cutoffs(
    model: NeuralForecaster, learned: LearnedState, panel: Panel, windows: Windows, rows: Ints
) -> tuple[LearnedState, dict[str, Covariate]]:
    """The state with one series per window, which ends at its cutoff, and the future covariates of the `rows` after it.

    Windows are sorted by cutoff; `rows` is (windows, horizon).
    """
    columns = window_columns(learned)
    first = panel.indptr[windows.series]
    stop = first + windows.cutoff
    loc, scale = _window_scales(model, learned, panel, windows)
    by_series = {"recent_values": last_values(panel.y, first, stop, columns.input_size), "loc": loc, "scale": scale}
    for name in (*columns.numeric, *columns.categorical):
        fill_value = np.nan if name in columns.numeric else float(UNKNOWN)
        column = panel.covariates[name].values
        by_series[f"recent_values:{name}"] = last_values(column, first, stop, columns.input_size, fill_value)
    for name in (*columns.static, *columns.static_codes):
        by_series[f"static:{name}"] = learned.by_series[f"static:{name}"][windows.series]
    last = panel.start[windows.series] + panel.calendar.step * (windows.cutoff - 1)
    future = {name: replace(panel.covariates[name], values=panel.covariates[name].values[rows])
              for name in panel.series.columns.future}  # fmt: skip
    return LearnedState(by_series, learned.shared, series=replace(panel.series, native_ids=None, last=last)), future


def _window_scales(
    model: NeuralForecaster, learned: LearnedState, panel: Panel, windows: Windows
) -> tuple[Floats, Floats]:
    """Location and scale of the series of each window, two arrays (windows,).

    Those of scope "series" are estimated from the time steps before the cutoff, unless the series keeps its scale from fit.
    """
    loc, scale = (learned.by_series[name][windows.series] for name in ("loc", "scale"))
    if model.scaler_scope != "series":
        return loc, scale
    estimated = np.arange(len(loc))
    if model.keeps_series_scale:
        is_known = series_index(model.fitted_state().learned_with_series, panel) >= 0
        estimated = np.flatnonzero(~is_known[windows.series])
    while len(estimated):  # in groups of windows, to bound memory
        length = int(windows.cutoff[estimated[-1]])  # the longest, as windows are sorted
        n_windows = max(MAX_VALUES // length, 1)
        group, estimated = estimated[-n_windows:], estimated[:-n_windows]
        first = panel.indptr[windows.series[group]]
        values = last_values(panel.y, first, first + windows.cutoff[group], length)
        group_loc, group_scale = series_scale(torch.from_numpy(values), model.scaler)
        loc[group], scale[group] = group_loc.squeeze(1).numpy(), group_scale.squeeze(1).numpy()
    return loc, scale
