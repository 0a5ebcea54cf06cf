"""Where an additive network starts: the likeliest trend and seasons of the mean of all series, by Prophet's solver."""

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

MAX_TIMESTAMPS = 50_000  # stamps that are looked at


def initialize(
    model: NeuralProphet, network: ForecastNetwork, panel: Panel, window_columns: WindowColumns, scales: tuple[Floats, Floats]
) -> None:
    """Coefficients of trend and of all parts of time that always hold; rows held out are not looked at."""
    from deepforecast.kernels.additive import Prior, fit_linear

    moments, panel_mean = window_columns.time_features, _PanelMean.of(panel, scales, model.validation_size or 0)
    if moments is None or len(panel_mean.positions) < 2:
        return
    selected = panel_mean.sample(model.seed)
    columns = moments.evaluate(panel.calendar, panel_mean.positions).astype(np.float64)
    design_matrix, precision, slices = _design_matrix(model, moments, columns)
    root = np.sqrt(panel_mean.weights[selected] / panel_mean.weights[selected].mean())
    prior, n_trend = Prior(precision, 1.0 / model.changepoint_prior_scale), 1 if model.growth == "flat" else 2
    x = fit_linear((panel_mean.means[selected] * root)[None], design_matrix[selected] * root[:, None], prior, n_trend - 1).x[0]
    coefficients = {name: x[columns_slice] for name, columns_slice in slices.items()}
    initial_scales = _initial_scales(network.head, panel_mean.deviation(design_matrix @ x))
    body: Any = network.body
    body.initialize(x[:n_trend][::-1].copy(), x[len(precision) :], coefficients, initial_scales)


def _design_matrix(model: NeuralProphet, moments: TimeFeatures, columns: Floats) -> tuple[Floats, Floats, dict[str, slice]]:
    """The columns that count, trend first and changes of slope last; the precision of all but these; where each part stands."""
    time, ones = columns[:, :1], np.ones((len(columns), 1))
    trend = [ones] if model.growth == "flat" else [time, ones]
    blocks, precision, slices, first = [*trend], [TREND_PRIOR_SCALE**-2.0] * len(trend), {}, 1
    for component in moments.time_components:
        if not component.condition:
            slices[component.name] = slice(len(precision), len(precision) + component.columns)
            precision += [component.prior_scale**-2.0] * component.columns
            blocks.append(columns[:, first : first + component.columns])
        first += component.columns
    return np.concatenate([*blocks, hinges(time[:, 0], moments.changepoints)], axis=1), np.array(precision), slices


def _initial_scales(head: Head, deviation: float) -> dict[int, float]:
    """What the head is told for errors of this deviation: of quantiles all but the median, else what follows the place."""
    from deepforecast.nn.quantiles import QuantileHead

    minimum = max(deviation, 1e-3)
    if isinstance(head, QuantileHead):
        return {index: _inverse_softplus(minimum * math.log(2.0)) for index in range(head.out_features) if index != head.median_index}
    return {1: _inverse_softplus(minimum)} if head.has_distribution else {}


def _inverse_softplus(value: float) -> float:
    """What softplus makes this of."""
    return value + math.log(-math.expm1(-value))


class _PanelMean(NamedTuple):
    """Stamps at which there are values, the mean of these over the series, each on its scale, how many they are, and the sum
    of their squares."""

    positions: Ints
    means: Floats
    weights: Floats
    squares: float

    @classmethod
    def of(cls, panel: Panel, scales: tuple[Floats, Floats], held_out: int) -> _PanelMean:
        """Of all series that vary."""
        loc, scale = scales
        series = panel.row_series
        n_left = panel.indptr[1:][series] - np.arange(len(panel.y))
        used = ~np.isnan(panel.y) & (n_left > held_out) & (scale[series] > 0)
        z = (panel.y[used] - loc[series[used]]) / scale[series[used]]
        positions, number = np.unique(panel.row_positions[used], return_inverse=True)
        count = np.bincount(number, minlength=len(positions)).astype(np.float64)
        return cls(positions, np.bincount(number, z, minlength=len(positions)) / count, count, float(np.square(z).sum()))

    def sample(self, seed: int) -> Ints:
        """Stamps to look at; drawn, where they are many, as every so many-th would go with the seasons."""
        count = len(self.positions)
        return np.arange(count) if count <= MAX_TIMESTAMPS else np.sort(np.random.default_rng(seed).choice(count, MAX_TIMESTAMPS, replace=False))

    def deviation(self, fitted: Floats) -> float:
        """Of the values from what is fitted at their stamps."""
        squared_error = self.squares - float((self.weights * fitted * (2.0 * self.means - fitted)).sum())
        return math.sqrt(max(squared_error, 0.0) / float(self.weights.sum()))
