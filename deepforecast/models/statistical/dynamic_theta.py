"""The dynamic optimized Theta model."""

from __future__ import annotations

from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.models.statistical._line_smoothing import ForecTheta, ThetaForm


@register
class DynamicTheta(ForecTheta):
    """Dynamic optimized Theta model (DOTM), or with theta=2 the dynamic standard one (DSTM).

    The line is fitted to the values so far, and is updated with each value and each step ahead.
    theta is estimated if it is None; alpha lies in 0.1 to 0.99, as in R's forecTheta. A season is
    tested in series of at least two seasons; shorter ones are listed in a `DataWarning`. At a
    missing value the level is updated with an error of 0 and the line is not updated.

    Interval: the model is linear in its errors, so the variance of each step follows from that of
    the state, with Student's t with n - k degrees of freedom for k estimated parameters, times the
    seasonal index. The variance includes the error of the estimates, of the slope about (1 + alpha
    (h - 1))^2 / n, by least squares. Intervals are wider if errors grow with the forecasts (by
    likelihood) or are autocorrelated (a correlation above 1.96 / sqrt(n)), and after missing values
    at the end. With 30 values an 80 % interval 12 steps ahead covers about 75 %.

    Measured coverage of 80 % intervals at defaults: M1 yearly 61 %, M1 quarterly 69 %, M1 monthly
    78 %, M4 hourly (100 series) 93 %, NN5 daily 90 % (benchmarks/bench_coverage.py).

    See Also
    --------
    OptimizedTheta : With a fixed line.
    AutoTheta : Chooses among the Theta models.

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
    >>> DynamicTheta(horizon=2, season_length=1).fit(frame).predict().round({"DynamicTheta": 3})
              ds  DynamicTheta
    0 2024-01-13        23.878
    1 2024-01-14        25.825
    """

    theta: float | None = param(
        default=None, at_least=1.0,
        help="curvature of the theta line that is smoothed; 1: simple exponential smoothing; None: estimated",
    )

    def _forms(self) -> tuple[ThetaForm, ...]:
        return (self._form(dynamic=True, theta=self.theta),)
