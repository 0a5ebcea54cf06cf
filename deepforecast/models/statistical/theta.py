"""The standard Theta method."""

from __future__ import annotations

from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.models.statistical._line_smoothing import ThetaFamily, ThetaForm, line_weight


@register
class Theta(ThetaFamily):
    """Standard Theta method, the winner of the M3 competition, as implemented by the M4 organisers.

    The seasonally adjusted series is decomposed into a straight line (theta = 0) and a series with
    doubled curvature (theta = 2). The line is extrapolated, the other forecast by simple
    exponential smoothing, and the two are averaged: this is smoothing with half the drift of the
    line. alpha, in 0.0001 to 0.9999, maximizes the likelihood with the initial level unknown (the
    `ses` of the organisers' script takes the best initial level as the true one, and therefore
    chooses alpha = 0 too often). A season, multiplicative if values are positive, is removed if the
    series has three full seasons (shorter ones are listed in a `DataWarning`) and passes the 90 %
    test. A missing value is treated as an error of 0.

    Interval: sigma^2 * (1 + (h - 1) * alpha^2), with Student's t with n - k degrees of freedom for
    k estimated parameters, times the seasonal index. The variance includes the error of the
    estimates, of the slope about (1 + alpha (h - 1))^2 / n, by least squares. Intervals are wider
    if errors grow with the forecasts (by likelihood) or are autocorrelated (a correlation above
    1.96 / sqrt(n)), and after missing values at the end. With 30 values an 80 % interval 12 steps
    ahead covers about 77 %.

    Measured coverage of 80 % intervals at defaults: M1 yearly 61 %, M1 quarterly 69 %, M1 monthly
    78 %, M4 hourly (100 series) 92 %, NN5 daily 89 % (benchmarks/bench_coverage.py).

    See Also
    --------
    OptimizedTheta : With theta estimated.
    DynamicTheta : With a line that is updated.
    AutoTheta : Chooses among them.

    References
    ----------
    Assimakopoulos, V. and Nikolopoulos, K. (2000). The theta model: A decomposition approach to
    forecasting. *International Journal of Forecasting* 16. doi:10.1016/S0169-2070(00)00066-2

    Hyndman, R. J. and Billah, B. (2003). Unmasking the Theta method. *International Journal of
    Forecasting* 19. doi:10.1016/S0169-2070(01)00143-1

    Examples
    --------
    >>> import pandas as pd
    >>> y = [10.0, 12.0, 11.0, 13.0, 12.0, 14.0]
    >>> frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=6), "y": y})
    >>> Theta(horizon=2, season_length=1).fit(frame).predict().round({"Theta": 2})
              ds  Theta
    0 2024-01-07  13.27
    1 2024-01-08  13.58
    """

    min_cycles = 3  # as in the organisers' script

    theta: float = param(
        default=2.0, at_least=1.0, low=1.0, high=4.0,
        help="curvature of the theta line that is smoothed; 1: simple exponential smoothing",
    )

    def _forms(self) -> tuple[ThetaForm, ...]:
        weight = line_weight(self.theta)
        return (ThetaForm(dynamic=False, weight_bounds=(weight, weight), alpha_bounds=(1e-4, 0.9999)),)
