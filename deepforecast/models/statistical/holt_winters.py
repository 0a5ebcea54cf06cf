"""The Holt-Winters method: level, slope and season that follow the values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from deepforecast.core.capabilities import Capabilities
from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.data.panel import Panel
from deepforecast.kernels.ets.forms import Form
from deepforecast.models.baselines._base import resolve_season
from deepforecast.models.statistical._form_selection import COMPONENT_CODES
from deepforecast.models.statistical._single_form import Smoothing


@register
class HoltWinters(Smoothing):
    """The Holt-Winters method by least squares: ETS(A,A,A), or with a season that multiplies ETS(A,A,M); `damped` or not.

    With q = level + phi slope and mu = q + s or q s: level' = q + alpha u, slope' = phi slope + beta u, s' = s + gamma v, where
    u = v = y - mu for a season that is added, else u = (y - mu) / s and v = (y - mu) / q. All first states are estimated, of
    the season all but one. Intervals: by formula where the season is added, else by sample paths; `ETS(error="multiplicative",
    seasonal="multiplicative")` lets errors grow with the level and has a formula. A season longer than 60 begins as its first
    turns have it; one of 1 step is none. Where a season that multiplies fails a series, one that adds is taken and the series
    is named in a warning.
    Bands: Student's t with n - k degrees of freedom and a variance 1 + k / n times as large, for k numbers estimated; with 30
    values and 12 months an 80 % band 12 steps ahead holds about 65 %.
    Reference: Hyndman & Athanasopoulos (2021), *Forecasting: Principles and Practice*, section 8.3.

    Measured coverage of 80 % intervals at defaults: M1 yearly 56 %, M1 quarterly 61 %, M1 monthly
    73 %, M4 hourly (100 series) 88 %, NN5 daily 89 % (benchmarks/bench_coverage.py).

    >>> from deepforecast import datasets
    >>> model = HoltWinters(horizon=3, seasonal="multiplicative").fit(datasets.load("air_passengers"))
    >>> model.predict().shape
    (3, 3)
    """

    season_length: int | Literal["auto"] = param(
        default="auto", at_least=1, help="steps after which the season repeats"
    )
    seasonal: Literal["additive", "multiplicative"] = param(
        default="additive", search=("additive", "multiplicative"), help="how the season enters"
    )
    damped: bool = param(default=False, search=(False, True), help="let the slope die away")
    alpha: float | None = param(
        default=None, at_least=0, at_most=1,
        help="how fast the level follows; estimated if not given",
    )
    beta: float | None = param(
        default=None, at_least=0, at_most=1,
        help="how fast the slope follows; estimated if not given",
    )
    gamma: float | None = param(
        default=None, at_least=0, at_most=1,
        help="how fast the season follows; estimated if not given",
    )
    phi: float | None = param(
        default=None, above=0, at_most=1,
        help="what is left of the slope after a step; estimated if not given",
    )

    def _forms(self) -> list[Form]:
        return [Form(0, 1, int(self.damped), COMPONENT_CODES[self.seasonal])]

    def _season(self, panel: Panel) -> int:
        return resolve_season(self.season_length, panel, self, "season_length")

    def _idle(self) -> Iterator[tuple[str, str]]:
        if not self.damped:
            yield "phi", "on a trend that is not damped. Say damped=True, or leave it out"
        if self.season_length == 1:
            yield "gamma", "without a season. Give a season_length above 1, or leave it out"

    def _rates(self) -> Sequence[float | None]:
        return self.alpha, self.beta, self.gamma, self.phi

    def _narrow(self, declared: Capabilities) -> Capabilities:
        return self._additive_capabilities(declared)

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """With which parameters the contract is checked."""
        return [{"seasonal": "multiplicative"}]
