"""Where an additive network starts: the likeliest trend and seasons of the mean of all series, by Prophet's solver."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from deepforecast.data.frames import Floats, Ints
from deepforecast.data.moments import Moments
from deepforecast.data.panel import Panel
from deepforecast.data.windows import Channels
from deepforecast.models.additive._clock import hinges
from deepforecast.nn.additive import FREE

if TYPE_CHECKING:
    from deepforecast.models.additive.neural_prophet import NeuralProphet
    from deepforecast.nn.head import Head
    from deepforecast.nn.network import ForecastNetwork

MOST = 50_000  # stamps that are looked at


def begin(
    model: NeuralProphet, network: ForecastNetwork, panel: Panel, channels: Channels, scale: tuple[Floats, Floats]
) -> None:
    """Coefficients of trend and of all parts of time that always hold; rows held out are not looked at."""
    from deepforecast.kernels.additive import Prior, straight

    moments, seen = channels.moments, _Seen.of(panel, scale, model.validation_size or 0)
    if moments is None or len(seen.positions) < 2:
        return
    few = seen.some(model.seed)
    columns = moments.of(panel.calendar, seen.positions).astype(np.float64)
    whole, precision, places = _design(model, moments, columns)
    root = np.sqrt(seen.weights[few] / seen.weights[few].mean())
    prior, free = Prior(precision, 1.0 / model.changepoint_prior_scale), 1 if model.growth == "flat" else 2
    x = straight((seen.means[few] * root)[None], whole[few] * root[:, None], prior, free - 1).x[0]
    coefficients = {name: x[where] for name, where in places.items()}
    widths = _widths(network.head, seen.deviation(whole @ x))
    body: Any = network.body
    body.begin(x[:free][::-1].copy(), x[len(precision) :], coefficients, widths)


def _design(model: NeuralProphet, moments: Moments, columns: Floats) -> tuple[Floats, Floats, dict[str, slice]]:
    """The columns that count, trend first and changes of slope last; the precision of all but these; where each part stands."""
    time, ones = columns[:, :1], np.ones((len(columns), 1))
    trend = [ones] if model.growth == "flat" else [time, ones]
    chosen, precision, places, begin = [*trend], [FREE**-2.0] * len(trend), {}, 1
    for one in moments.timed:
        if not one.condition:
            places[one.name] = slice(len(precision), len(precision) + one.columns)
            precision += [one.prior_scale**-2.0] * one.columns
            chosen.append(columns[:, begin : begin + one.columns])
        begin += one.columns
    return np.concatenate([*chosen, hinges(time[:, 0], moments.changes)], axis=1), np.array(precision), places


def _widths(head: Head, deviation: float) -> dict[int, float]:
    """What the head is told for errors of this deviation: of quantiles all but the median, else what follows the place."""
    from deepforecast.nn.quantiles import Quantiles

    least = max(deviation, 1e-3)
    if isinstance(head, Quantiles):
        return {one: _back(least * math.log(2.0)) for one in range(head.width) if one != head.middle}
    return {1: _back(least)} if head.distribution else {}


def _back(value: float) -> float:
    """What softplus makes this of."""
    return value + math.log(-math.expm1(-value))


class _Seen(NamedTuple):
    """Stamps at which there are values, the mean of these over the series, each on its scale, how many they are, and the sum
    of their squares."""

    positions: Ints
    means: Floats
    weights: Floats
    squares: float

    @classmethod
    def of(cls, panel: Panel, scale: tuple[Floats, Floats], held_out: int) -> _Seen:
        """Of all series that vary."""
        place, spread = scale
        series = panel.row_series
        left = panel.indptr[1:][series] - np.arange(len(panel.y))
        used = ~np.isnan(panel.y) & (left > held_out) & (spread[series] > 0)
        z = (panel.y[used] - place[series[used]]) / spread[series[used]]
        positions, number = np.unique(panel.row_positions[used], return_inverse=True)
        count = np.bincount(number, minlength=len(positions)).astype(np.float64)
        return cls(positions, np.bincount(number, z, minlength=len(positions)) / count, count, float(np.square(z).sum()))

    def some(self, seed: int) -> Ints:
        """Stamps to look at; drawn, where they are many, as every so many-th would go with the seasons."""
        count = len(self.positions)
        return np.arange(count) if count <= MOST else np.sort(np.random.default_rng(seed).choice(count, MOST, replace=False))

    def deviation(self, fitted: Floats) -> float:
        """Of the values from what is fitted at their stamps."""
        away = self.squares - float((self.weights * fitted * (2.0 * self.means - fitted)).sum())
        return math.sqrt(max(away, 0.0) / float(self.weights.sum()))
