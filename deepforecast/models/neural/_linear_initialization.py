"""Initial weights of NeuralProphet: a linear Prophet model fitted to the mean of all series."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from deepforecast.data.components import TimeFeatures
from deepforecast.data.features import hinges
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.data.windows import WindowColumns
from deepforecast.nn.neural_prophet import TREND_PRIOR_SCALE

if TYPE_CHECKING:
    from deepforecast.models.neural.neural_prophet import NeuralProphet
    from deepforecast.nn.heads.base import Head
    from deepforecast.nn.network import ForecastNetwork

MAX_TIMESTAMPS = 50_000  # maximum number of timestamps in the fit; more are sampled
MIN_DEVIATION = 1e-3  # smallest standard deviation of the errors, in units of the scaled values


def initialize(
    model: NeuralProphet, network: ForecastNetwork, panel: Panel, window_columns: WindowColumns, scales: tuple[Floats, Floats]
) -> None:
    """Set the weights of trend and time components without a condition, and the scale parameters of the head.

    The weights are the maximum a posteriori estimates for the mean of the scaled series. `scales` are location and scale of
    each series. Validation rows are not used; nothing is set if fewer than 2 timestamps have a value.
    """
    from deepforecast.kernels.additive import Prior, fit_linear

    time_features = window_columns.time_features
    panel_mean = _PanelMean.from_panel(panel, scales, n_held_out=model.validation_size or 0)
    if time_features is None or len(panel_mean.positions) < 2:
        return
    sample = panel_mean.sample_timestamps(model.seed)
    columns = time_features.evaluate(panel.calendar, panel_mean.positions).astype(np.float64)
    design_matrix, precision, slices = _design_matrix(model, time_features, columns)
    prior = Prior(precision, 1.0 / model.changepoint_prior_scale)
    n_trend = 1 if model.growth == "flat" else 2  # number of trend columns, the last of which is constant
    root_weights = np.sqrt(panel_mean.weights[sample] / panel_mean.weights[sample].mean())  # weighted least squares
    weighted_means = (panel_mean.means[sample] * root_weights)[None]
    x = fit_linear(weighted_means, design_matrix[sample] * root_weights[:, None], prior, n_trend - 1).x[0]
    coefficients = {name: x[columns_slice] for name, columns_slice in slices.items()}
    initial_scales = _initial_scales(network.head, panel_mean.deviation(design_matrix @ x))
    body: Any = network.body
    body.initialize(x[:n_trend][::-1].copy(), x[len(precision) :], coefficients, initial_scales)


def _design_matrix(
    model: NeuralProphet, time_features: TimeFeatures, columns: Floats
) -> tuple[Floats, Floats, dict[str, slice]]:
    """Columns of trend, components without condition and hinges; prior precisions; and columns of each component.

    There are no precisions of the hinges, which have a Laplace prior. `columns` are the time features: time first, then
    the components.
    """
    time, ones = columns[:, :1], np.ones((len(columns), 1))
    trend = [ones] if model.growth == "flat" else [time, ones]
    blocks = [*trend]
    precision = [TREND_PRIOR_SCALE**-2.0] * len(trend)
    slices: dict[str, slice] = {}
    start = 1
    for component in time_features.time_components:
        if not component.condition:
            slices[component.name] = slice(len(precision), len(precision) + component.columns)
            precision += [component.prior_scale**-2.0] * component.columns
            blocks.append(columns[:, start : start + component.columns])
        start += component.columns
    blocks.append(hinges(time[:, 0], time_features.changepoints))
    return np.concatenate(blocks, axis=1), np.array(precision), slices


def _initial_scales(head: Head, deviation: float) -> dict[int, float]:
    """Raw outputs of the head, by index, for errors with about this standard deviation.

    All outputs but the median for quantiles, else the parameter after the location; none for point
    forecasts.
    """
    from deepforecast.nn.heads.quantiles import QuantileHead

    scale = max(deviation, MIN_DEVIATION)
    if isinstance(head, QuantileHead):
        raw_output = _inverse_softplus(scale * math.log(2.0))
        return {index: raw_output for index in range(head.out_features) if index != head.median_index}
    return {1: _inverse_softplus(scale)} if head.has_distribution else {}


def _inverse_softplus(value: float) -> float:
    """Solve softplus(x) = log(1 + e^x) = value for x."""
    return value + math.log(-math.expm1(-value))


class _PanelMean(NamedTuple):
    """Mean of the scaled series at each timestamp.

    positions: of the timestamps. means: over the series. weights: number of values. squares: sum of squares of all values.
    All of them are weighted by the observation weights, if there are any.
    """

    positions: Ints
    means: Floats
    weights: Floats
    squares: float

    @classmethod
    def from_panel(cls, panel: Panel, scales: tuple[Floats, Floats], n_held_out: int) -> _PanelMean:
        """The mean of all series with a positive scale, without their last `n_held_out` rows."""
        loc, scale = scales
        series = panel.row_series
        n_left = panel.indptr[1:][series] - np.arange(len(panel.y))
        row_weights = np.ones(len(panel.y)) if panel.weight is None else panel.weight / (panel.weight.max() or 1.0)
        used = ~np.isnan(panel.y) & (n_left > n_held_out) & (scale[series] > 0) & (row_weights > 0)
        z = (panel.y[used] - loc[series[used]]) / scale[series[used]]
        positions, timestamp_index = np.unique(panel.row_positions[used], return_inverse=True)
        weight = row_weights[used]
        weights = np.bincount(timestamp_index, weight, minlength=len(positions)).astype(np.float64)
        means = np.bincount(timestamp_index, weight * z, minlength=len(positions)) / weights
        return cls(positions, means, weights, squares=float((weight * np.square(z)).sum()))

    def sample_timestamps(self, seed: int) -> Ints:
        """Sorted indices of at most `MAX_TIMESTAMPS` timestamps; random, because a stride could alias seasonality."""
        n_timestamps = len(self.positions)
        if n_timestamps <= MAX_TIMESTAMPS:
            return np.arange(n_timestamps)
        return np.sort(np.random.default_rng(seed).choice(n_timestamps, MAX_TIMESTAMPS, replace=False))

    def deviation(self, fitted: Floats) -> float:
        """Standard deviation of the scaled values of all series around the fitted values (timestamps,)."""
        squared_error = self.squares - float((self.weights * fitted * (2.0 * self.means - fitted)).sum())
        return math.sqrt(max(squared_error, 0.0) / float(self.weights.sum()))
