"""Fitted values of networks: forecasts of the time steps of a history from earlier cutoffs.

The cutoffs of a series are `horizon` time steps apart, so that one forward pass over all windows gives every time step
one forecast, 1 to `horizon` steps ahead. A forecast is that of `predict` from the time steps up to the cutoff.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from deepforecast.core.forecast import resolve_bounds
from deepforecast.core.state import LearnedState
from deepforecast.data.covariates import UNKNOWN, Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.data.windows import WindowColumns
from deepforecast.models.neural._decoding import greedy_paths
from deepforecast.models.neural._forecast import BATCH_MULTIPLE
from deepforecast.models.neural._horizon_forecaster import MAX_VALUES, HorizonForecaster
from deepforecast.models.neural._series_state import last_values, series_index, window_columns
from deepforecast.nn.scaling import series_scale
from deepforecast.training.defaults import torch_defaults

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster


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
    windows = _windows(panel, columns)
    if network.body.needs_history:
        windows = observed_windows(panel, windows, columns.input_size)
    fitted = np.full(len(panel.y), np.nan)
    n_columns = 1 + len(columns.numeric) + len(columns.categorical) + columns.calendar_width
    values_per_window = (columns.input_size + columns.horizon) * n_columns + columns.horizon * network.sizes.out_features
    group_size = max(MAX_VALUES // values_per_window // BATCH_MULTIPLE, 1) * BATCH_MULTIPLE
    for begin in range(0, len(windows.series), group_size):
        group = windows.select(slice(begin, begin + group_size))
        rows, inside = forecast_rows(panel, group, columns.horizon)
        fitted[rows[inside]] = _forecast_windows(model, learned, panel, group, rows)[inside]
    return fitted


def _windows(panel: Panel, columns: WindowColumns) -> Windows:
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


def _forecast_windows(
    model: NeuralForecaster, learned: LearnedState, panel: Panel, windows: Windows, rows: Ints
) -> Floats:
    """Point forecasts of the rows after each cutoff, (windows, horizon) as `rows`.

    An autoregressive network continues from its point forecasts.
    """
    learned_at_cutoffs, future = state_at_cutoffs(model, learned, panel, windows, rows)
    forecaster = HorizonForecaster(model.name, learned_at_cutoffs, rows.shape[1], future, resolve_bounds(model.bounds))
    if forecaster.autoregressive:
        return greedy_paths(forecaster, model.point_kind == "mean")
    return forecaster.forecast_block(forecaster.windows, 0).point(model.point_kind)


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
        group, estimated = np.split(estimated, [-max(MAX_VALUES // length, 1)])[::-1]
        first = panel.indptr[windows.series[group]]
        values = last_values(panel.y, first, first + windows.cutoff[group], length)
        group_loc, group_scale = series_scale(torch.from_numpy(values), model.scaler)
        loc[group], scale[group] = group_loc.squeeze(1).numpy(), group_scale.squeeze(1).numpy()
    return loc, scale
