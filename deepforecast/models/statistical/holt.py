"""Holt's linear trend: a level and a slope that follow the values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from deepforecast.core.capabilities import Capabilities
from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.kernels.ets.forms import Form
from deepforecast.models.statistical._single_form import Smoothing


@register
class Holt(Smoothing):
    """Holt's linear method, ETS(A,A,N), or with `damped` ETS(A,Ad,N), with `exponential` ETS(A,M,N): a line that is followed.

    mu = level + phi slope; level' = mu + alpha (y - mu), slope' = phi slope + beta (y - mu): `beta` is alpha times the beta* of
    textbooks. Estimated by least squares, which here is maximum likelihood, unless given. Intervals by formula; those of an
    exponential trend by sample paths.
    Bands: Student's t with n - k degrees of freedom and a variance 1 + k / n times as large, for k numbers estimated; with 30
    values an 80 % band 12 steps ahead holds about 69 %.
    References: Holt (1957); Gardner & McKenzie (1985); Hyndman & Athanasopoulos (2021), *Forecasting: Principles and Practice*,
    section 8.2.

    Measured coverage of 80 % intervals at defaults: M1 yearly 56 %, M1 quarterly 58 %, M1 monthly
    73 %, M4 hourly (100 series) 90 %, NN5 daily 78 % (benchmarks/bench_coverage.py).

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=8), "y": range(8)})
    >>> Holt(horizon=2).fit(frame).predict().round({"Holt": 3})
              ds  Holt
    0 2024-01-09   8.0
    1 2024-01-10   9.0
    """

    damped: bool = param(default=False, search=(False, True), help="let the slope die away")
    exponential: bool = param(default=False, help="a trend that multiplies")
    alpha: float | None = param(
        default=None, at_least=0, at_most=1,
        help="how fast the level follows; estimated if not given",
    )
    beta: float | None = param(
        default=None, at_least=0, at_most=1,
        help="how fast the slope follows; estimated if not given",
    )
    phi: float | None = param(
        default=None, above=0, at_most=1,
        help="what is left of the slope after a step; estimated if not given",
    )

    def _forms(self) -> list[Form]:
        return [Form(0, 2 if self.exponential else 1, int(self.damped), 0)]

    def _idle(self) -> Iterator[tuple[str, str]]:
        if not self.damped:
            yield "phi", "on a trend that is not damped. Say damped=True, or leave it out"

    def _rates(self) -> Sequence[float | None]:
        return self.alpha, self.beta, None, self.phi

    def _narrow(self, declared: Capabilities) -> Capabilities:
        return self._additive_capabilities(declared)

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """With which parameters the contract is checked."""
        return [{"damped": True}]
