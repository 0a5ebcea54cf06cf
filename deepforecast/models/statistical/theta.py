"""The Theta method: simple exponential smoothing with a share of the drift of a straight line."""

from __future__ import annotations

from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.models.statistical._line_smoothing import ThetaFamily, ThetaForm, weight_of


@register
class Theta(ThetaFamily):
    """The standard Theta method, as the organisers of the M4 competition run it: the winner of M3.

    The seasonally adjusted series is taken apart into a straight line (theta = 0) and one with its curvature doubled
    (theta = 2); the line goes on, the other is forecast by simple exponential smoothing, and the two are averaged: smoothing
    with half the drift of the line. alpha, 0.0001 to 0.9999, maximises the likelihood with the first level unknown (the `ses`
    of the organisers' script takes the best first level for the true one, and so alpha too often for 0). A season,
    multiplicative where values are above 0, is taken out if the series has three of them (a shorter one is named in a
    `DataWarning`) and passes the 90 % test.
    Interval: sigma^2 * (1 + (h - 1) * alpha^2), times the index. Missing values are stepped over (an error of 0); bands of the
    steps after such rows at the end count them. Bands: Student's t with n - k degrees of freedom for the k numbers estimated;
    the variance counts their error, that of the slope, about (1 + alpha (h - 1))^2 / n, by least squares; errors that grow with
    the forecasts (by likelihood) or follow each other (a correlation above 1.96 / sqrt(n)) make it wider. After 30 values an 80
    % band 12 steps ahead holds about 77 %.
    References: Assimakopoulos & Nikolopoulos (2000), *International Journal of Forecasting* 16; Hyndman & Billah (2003),
    Unmasking the Theta method, *International Journal of Forecasting* 19.

    Measured coverage of 80 % intervals at defaults: M1 yearly 61 %, M1 quarterly 69 %, M1 monthly
    78 %, M4 hourly (100 series) 92 %, NN5 daily 89 % (benchmarks/bench_coverage.py).

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=6), "y": [10.0, 12.0, 11.0, 13.0, 12.0, 14.0]})
    >>> Theta(horizon=2, season_length=1).fit(frame).predict().round({"Theta": 2})
              ds  Theta
    0 2024-01-07  13.27
    1 2024-01-08  13.58
    """

    min_cycles = 3  # as the organisers have it

    theta: float = param(
        default=2.0, at_least=1.0, low=1.0, high=4.0,
        help="curvature of the line that is smoothed; 1 is exponential smoothing alone",
    )

    def _forms(self) -> tuple[ThetaForm, ...]:
        weight = weight_of(self.theta)
        return (ThetaForm(dynamic=False, weight=(weight, weight), alpha=(1e-4, 0.9999)),)
