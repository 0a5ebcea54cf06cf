"""Simple exponential smoothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deepforecast.core.params import param
from deepforecast.core.registry import Capabilities, register
from deepforecast.kernels.ets.forms import Form
from deepforecast.models.statistical._single_form import Smoothing


@register
class SES(Smoothing):
    """Simple exponential smoothing, ETS(A,N,N): a weighted mean of the past with decaying weights.

    level' = level + alpha (y - level). Parameters that are None, and the initial level, are
    estimated by maximum likelihood, which here is least squares. A missing value is treated as an
    error of 0; future covariates enter linearly.

    Intervals use the variance sigma^2 (1 + (h - 1) alpha^2) at step h, 1 + k / n times as large for k
    estimated parameters, and Student's t with n - k degrees of freedom; with 30 values an 80 %
    interval 12 steps ahead covers about 75 %.

    Measured coverage of 80 % intervals at defaults: M1 yearly 46 %, M1 quarterly 58 %, M1 monthly
    75 %, M4 hourly (100 series) 82 %, NN5 daily 78 % (benchmarks/bench_coverage.py).

    See Also
    --------
    Holt : With a trend.
    AutoETS : Chooses the form.

    References
    ----------
    Hyndman, R. J. and Athanasopoulos, G. (2021). *Forecasting: Principles and Practice*, 3rd ed.,
    section 8.1. https://otexts.com/fpp3/

    Examples
    --------
    >>> import pandas as pd
    >>> y = [10.0, 12.0, 11.0, 13.0, 12.0, 14.0]
    >>> frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=6), "y": y})
    >>> SES(horizon=2, alpha=0.5, initial="simple").fit(frame).predict()
              ds   SES
    0 2024-01-07  13.0
    1 2024-01-08  13.0
    """

    alpha: float | None = param(
        default=None, at_least=0, at_most=1,
        help="smoothing parameter of the level; None: estimated from the data",
    )

    def _forms(self) -> list[Form]:
        return [Form(error=0, trend=0, damped=0, season=0)]

    def _fixed_rates(self) -> Sequence[float | None]:
        return self.alpha, None, None, None

    def _narrow(self, declared: Capabilities) -> Capabilities:
        return self._capabilities_of_forms(declared)

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Parameters for the contract checks."""
        return [{"alpha": 0.3}]
