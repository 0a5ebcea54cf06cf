"""The Theta model whose line moves with the series."""

from __future__ import annotations

from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.models.statistical._line_smoothing import Fiorucci, ThetaForm


@register
class DynamicTheta(Fiorucci):
    """The dynamic optimised Theta model (DOTM), or with theta=2 the dynamic standard one (DSTM).

    The line is that through the values so far, and it moves on with every row and every step ahead. theta is estimated unless
    it is given; alpha lies in 0.1 to 0.99, as in R's forecTheta.
    A season is looked for in series of two or more; a shorter one is named in a `DataWarning`.
    Interval: the model is linear in its errors, so the variance of each step follows from that of the state. Missing values are
    stepped over: the level moves as if the error were 0, the line is that through the values seen; bands of the steps after
    such rows at the end count them. Bands: Student's t with n - k degrees of freedom for the k numbers estimated; the variance
    counts their error, that of the slope, about (1 + alpha (h - 1))^2 / n, by least squares; errors that grow with the
    forecasts (by likelihood) or follow each other (a correlation above 1.96 / sqrt(n)) make it wider. After 30 values an 80 %
    band 12 steps ahead holds about three quarters.
    Reference: Fiorucci, Pellegrini, Louzada, Petropoulos & Koehler (2016), Models for optimising the theta method and their
    relationship to state space models, *International Journal of Forecasting* 32.

    Measured coverage of 80 % intervals at defaults: M1 yearly 61 %, M1 quarterly 69 %, M1 monthly
    78 %, M4 hourly (100 series) 93 %, NN5 daily 90 % (benchmarks/bench_coverage.py).

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=12), "y": [float(2 * row) for row in range(12)]})
    >>> DynamicTheta(horizon=2, season_length=1).fit(frame).predict().round({"DynamicTheta": 3})
              ds  DynamicTheta
    0 2024-01-13        23.878
    1 2024-01-14        25.825
    """

    theta: float | None = param(
        default=None, at_least=1.0, help="curvature of the line that is smoothed; None: estimated",
    )

    def _forms(self) -> tuple[ThetaForm, ...]:
        return (self._form(dynamic=True, theta=self.theta),)
