"""Holt's linear trend method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from deepforecast.core.params import param
from deepforecast.core.registry import Capabilities, register
from deepforecast.kernels.ets.forms import Form
from deepforecast.models.statistical._form_selection import COMPONENT_CODES
from deepforecast.models.statistical._single_form import Smoothing


@register
class Holt(Smoothing):
    """Holt's linear trend method, ETS(A,A,N): level and slope are updated with each value.

        mu = level + phi slope,   level' = mu + alpha (y - mu),   slope' = phi slope + beta (y - mu)

    `beta` is alpha times the beta* of textbooks. `damped` gives ETS(A,Ad,N),
    `trend="multiplicative"` ETS(A,M,N). Parameters that are None are estimated by least squares, which here is maximum
    likelihood.

    Intervals are computed by a formula, with a multiplicative trend from sample paths. They use
    Student's t with n - k degrees of freedom and a variance 1 + k / n times as large for k estimated
    parameters; with 30 values an 80 % interval 12 steps ahead covers about 69 %.

    Measured coverage of 80 % intervals at defaults: M1 yearly 56 %, M1 quarterly 58 %, M1 monthly
    73 %, M4 hourly (100 series) 90 %, NN5 daily 78 % (benchmarks/bench_coverage.py).

    See Also
    --------
    HoltWinters : With a seasonal component.
    SES : Without a trend.

    References
    ----------
    Holt, C. C. (1957). Forecasting seasonals and trends by exponentially weighted moving averages.
    *ONR Memorandum* 52. Reprinted (2004) in *International Journal of Forecasting* 20.
    doi:10.1016/j.ijforecast.2003.09.015

    Gardner, E. S. and McKenzie, E. (1985). Forecasting trends in time series. *Management Science*
    31. doi:10.1287/mnsc.31.10.1237

    Hyndman, R. J. and Athanasopoulos, G. (2021). *Forecasting: Principles and Practice*, 3rd ed.,
    section 8.2. https://otexts.com/fpp3/

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=8), "y": range(8)})
    >>> Holt(horizon=2).fit(frame).predict().round({"Holt": 3})
              ds  Holt
    0 2024-01-09   8.0
    1 2024-01-10   9.0
    """

    damped: bool = param(default=False, search=(False, True), help="whether to damp the trend")
    trend: Literal["additive", "multiplicative"] = param(default="additive", help="type of the trend component")
    alpha: float | None = param(
        default=None, at_least=0, at_most=1,
        help="smoothing parameter of the level; None: estimated from the data",
    )
    beta: float | None = param(
        default=None, at_least=0, at_most=1,
        help="smoothing parameter of the trend; None: estimated from the data",
    )
    phi: float | None = param(
        default=None, above=0, at_most=1, needs={"damped": True},
        help="damping parameter of the trend; None: estimated from the data",
    )

    def _forms(self) -> list[Form]:
        return [Form(error=0, trend=COMPONENT_CODES[self.trend], damped=int(self.damped), season=0)]

    def _fixed_rates(self) -> Sequence[float | None]:
        return self.alpha, self.beta, None, self.phi

    def _narrow(self, declared: Capabilities) -> Capabilities:
        return self._capabilities_of_forms(declared)

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Parameters for the contract checks."""
        return [{"damped": True}]
