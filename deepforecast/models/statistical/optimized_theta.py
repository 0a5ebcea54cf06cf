"""The optimized Theta model."""

from __future__ import annotations

from deepforecast.core.registry import register
from deepforecast.models.statistical._line_smoothing import ForecTheta, ThetaForm


@register
class OptimizedTheta(ForecTheta):
    """Optimized Theta model (OTM): theta is estimated together with alpha and the initial level.

    theta is at least 1 and may be infinite, which gives the full drift of the line; alpha lies in
    0.1 to 0.99, as in R's forecTheta. A season is tested in series of at least two seasons; shorter
    ones are listed in a `DataWarning`. A missing value is treated as an error of 0.

    Interval: sigma^2 * (1 + (h - 1) * alpha^2), with Student's t with n - k degrees of freedom for
    k estimated parameters, times the seasonal index. The variance includes the error of the
    estimates, of the slope about (1 + alpha (h - 1))^2 / n, by least squares. Intervals are wider
    if errors grow with the forecasts (by likelihood) or are autocorrelated (a correlation above
    1.96 / sqrt(n)), and after missing values at the end. With 30 values an 80 % interval 12 steps
    ahead covers about 75 %.

    Measured coverage of 80 % intervals at defaults: M1 yearly 60 %, M1 quarterly 67 %, M1 monthly
    77 %, M4 hourly (100 series) 92 %, NN5 daily 90 % (benchmarks/bench_coverage.py).

    See Also
    --------
    Theta : With theta given.
    DynamicTheta : With a line that is updated.

    References
    ----------
    ForecTheta, J. A., Pellegrini, T. R., Louzada, F., Petropoulos, F. and Koehler, A. B. (2016).
    Models for optimising the theta method and their relationship to state space models.
    *International Journal of Forecasting* 32. doi:10.1016/j.ijforecast.2016.02.005

    Examples
    --------
    >>> import pandas as pd
    >>> y = [float(2 * row) for row in range(12)]
    >>> frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=12), "y": y})
    >>> OptimizedTheta(horizon=2, season_length=1).fit(frame).predict().round({"OptimizedTheta": 3})
              ds  OptimizedTheta
    0 2024-01-13            24.0
    1 2024-01-14            26.0
    """

    def _forms(self) -> tuple[ThetaForm, ...]:
        return (self._form(dynamic=False),)
