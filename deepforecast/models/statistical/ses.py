"""Simple exponential smoothing: a level that follows the values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deepforecast.core.capabilities import Capabilities
from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.kernels.ets.forms import Form
from deepforecast.models.statistical._single_form import Smoothing


@register
class SES(Smoothing):
    """Simple exponential smoothing, ETS(A,N,N): the forecast is a weighted mean of the past, old values counting less.

    level' = level + alpha (y - level). alpha and the first level by maximum likelihood, which here is least squares, unless
    they are given. Interval: sigma^2 (1 + (h - 1) alpha^2).
    Bands: Student's t with n - k degrees of freedom and a variance 1 + k / n times as large, for k numbers estimated; with 30
    values an 80 % band 12 steps ahead holds about 75 %.
    Missing values are stepped over (an error of 0); columns known ahead enter linearly.
    Reference: Hyndman & Athanasopoulos (2021), *Forecasting: Principles and Practice*, section 8.1.

    Measured coverage of 80 % intervals at defaults: M1 yearly 46 %, M1 quarterly 58 %, M1 monthly
    75 %, M4 hourly (100 series) 82 %, NN5 daily 78 % (benchmarks/bench_coverage.py).

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=6), "y": [10.0, 12.0, 11.0, 13.0, 12.0, 14.0]})
    >>> SES(horizon=2, alpha=0.5, initial="simple").fit(frame).predict()
              ds   SES
    0 2024-01-07  13.0
    1 2024-01-08  13.0
    """

    alpha: float | None = param(
        default=None, at_least=0, at_most=1,
        help="how fast the level follows; estimated if not given",
    )

    def _forms(self) -> list[Form]:
        return [Form(0, 0, 0, 0)]

    def _rates(self) -> Sequence[float | None]:
        return self.alpha, None, None, None

    def _narrow(self, declared: Capabilities) -> Capabilities:
        return self._additive_capabilities(declared)

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """With which parameters the contract is checked."""
        return [{"alpha": 0.3}]
