"""The Theta model with theta estimated."""

from __future__ import annotations

from deepforecast.core.registry import register
from deepforecast.models.statistical._line_smoothing import Fiorucci, ThetaForm


@register
class OptimizedTheta(Fiorucci):
    """The optimised Theta model (OTM): theta is estimated beside alpha and the first level.

    theta is at least 1 and may be infinite: then the line's whole drift goes on. alpha lies in 0.1 to 0.99, as in
    R's forecTheta.
    A season is looked for in series of two or more; a shorter one is named in a `DataWarning`.
    Interval: sigma^2 * (1 + (h - 1) * alpha^2), times the index. Missing values are stepped over (an error of 0); bands of the
    steps after such rows at the end count them. Bands: Student's t with n - k degrees of freedom for the k numbers estimated;
    the variance counts their error, that of the slope, about (1 + alpha (h - 1))^2 / n, by least squares; errors that grow with
    the forecasts (by likelihood) or follow each other (a correlation above 1.96 / sqrt(n)) make it wider. After 30 values an 80
    % band 12 steps ahead holds about three quarters.
    Reference: Fiorucci, Pellegrini, Louzada, Petropoulos & Koehler (2016), Models for optimising the theta method and their
    relationship to state space models, *International Journal of Forecasting* 32.

    Measured coverage of 80 % intervals at defaults: M1 yearly 60 %, M1 quarterly 67 %, M1 monthly
    77 %, M4 hourly (100 series) 92 %, NN5 daily 90 % (benchmarks/bench_coverage.py).

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=12), "y": [float(2 * row) for row in range(12)]})
    >>> OptimizedTheta(horizon=2, season_length=1).fit(frame).predict().round({"OptimizedTheta": 3})
              ds  OptimizedTheta
    0 2024-01-13            24.0
    1 2024-01-14            26.0
    """

    def _forms(self) -> tuple[ThetaForm, ...]:
        return (self._form(dynamic=False),)
