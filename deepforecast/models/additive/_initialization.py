"""Initial weights of NeuralProphet: a linear Prophet fit to the mean of all series."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.data.time_features import TimeFeatures
from deepforecast.data.windows import WindowColumns
from deepforecast.models.additive._time import hinges
from deepforecast.nn.neural_prophet import TREND_PRIOR_SCALE

if TYPE_CHECKING:
    from deepforecast.models.additive.neural_prophet import NeuralProphet
    from deepforecast.nn.head import Head
    from deepforecast.nn.network import ForecastNetwork

MAX_TIMESTAMPS = 50_000  # sampled timestamps


def initialize(
    model: NeuralProphet, network: ForecastNetwork, panel: Panel, window_columns: WindowColumns, scales: tuple[Floats, Floats]
) -> None:
    """Initialize trend and unconditional time components; validation rows are not used."""
    from deepforecast.kernels.additive import Prior, fit_linear

    time_features, panel_mean = window_columns.time_features, _PanelMean.of(panel, scales, model.validation_size or 0)
    if time_features is None or len(panel_mean.positions) < 2:
        return
    selected = panel_mean.sample(model.seed)
    columns = time_features.evaluate(panel.calendar, panel_mean.positions).astype(np.float64)
    design_matrix, precision, slices = _design_matrix(model, time_features, columns)
    root = np.sqrt(panel_mean.weights[selected] / panel_mean.weights[selected].mean())
    prior, n_trend = Prior(precision, 1.0 / model.changepoint_prior_scale), 1 if model.growth == "flat" else 2
    x = fit_linear((panel_mean.means[selected] * root)[None], design_matrix[selected] * root[:, None], prior, n_trend - 1).x[0]
    coefficients = {name: x[columns_slice] for name, columns_slice in slices.items()}
    initial_scales = _initial_scales(network.head, panel_mean.deviation(design_matrix @ x))
    body: Any = network.body
    body.initialize(x[:n_trend][::-1].copy(), x[len(precision) :], coefficients, initial_scales)


def _design_matrix(
    model: NeuralProphet, time_features: TimeFeatures, columns: Floats
) -> tuple[Floats, Floats, dict[str, slice]]:
    """Matrix (trend, components, hinges), prior precision of all but the hinges, and slices."""
    time, ones = columns[:, :1], np.ones((len(columns), 1))
    trend = [ones] if model.growth == "flat" else [time, ones]
    blocks, precision, slices, first = [*trend], [TREND_PRIOR_SCALE**-2.0] * len(trend), {}, 1
    for component in time_features.time_components:
        if not component.condition:
            slices[component.name] = slice(len(precision), len(precision) + component.columns)
            precision += [component.prior_scale**-2.0] * component.columns
            blocks.append(columns[:, first : first + component.columns])
        first += component.columns
    return np.concatenate([*blocks, hinges(time[:, 0], time_features.changepoints)], axis=1), np.array(precision), slices


def _initial_scales(head: Head, deviation: float) -> dict[int, float]:
    """Raw outputs of the head that give errors of this standard deviation.

    All but the median of quantiles, else the parameter after the location.
    """
    from deepforecast.nn.quantiles import QuantileHead

    minimum = max(deviation, 1e-3)
    if isinstance(head, QuantileHead):
        return {
            index: _inverse_softplus(minimum * math.log(2.0))
            for index in range(head.out_features)
            if index != head.median_index
        }
    return {1: _inverse_softplus(minimum)} if head.has_distribution else {}


def _inverse_softplus(value: float) -> float:
    """Solve softplus(x) = log(1 + e^x) = value for x."""
    return value + math.log(-math.expm1(-value))


class _PanelMean(NamedTuple):
    """Mean of the scaled series and number of values per timestamp, and total sum of squares."""

    positions: Ints
    means: Floats
    weights: Floats
    squares: float

    @classmethod
    def of(cls, panel: Panel, scales: tuple[Floats, Floats], held_out: int) -> _PanelMean:
        """The mean of all series with a positive scale, without their last `held_out` rows."""
        loc, scale = scales
        series = panel.row_series
        n_left = panel.indptr[1:][series] - np.arange(len(panel.y))
        used = ~np.isnan(panel.y) & (n_left > held_out) & (scale[series] > 0)
        z = (panel.y[used] - loc[series[used]]) / scale[series[used]]
        positions, number = np.unique(panel.row_positions[used], return_inverse=True)
        count = np.bincount(number, minlength=len(positions)).astype(np.float64)
        return cls(positions, np.bincount(number, z, minlength=len(positions)) / count, count, float(np.square(z).sum()))

    def sample(self, seed: int) -> Ints:
        """Indices of timestamps, random if there are many, as a stride could alias seasonality."""
        count = len(self.positions)
        return (
            np.arange(count)
            if count <= MAX_TIMESTAMPS
            else np.sort(np.random.default_rng(seed).choice(count, MAX_TIMESTAMPS, replace=False))
        )

    def deviation(self, fitted: Floats) -> float:
        """Standard deviation of the values around the fitted values at their timestamps."""
        squared_error = self.squares - float((self.weights * fitted * (2.0 * self.means - fitted)).sum())
        return math.sqrt(max(squared_error, 0.0) / float(self.weights.sum()))
