"""The Holt-Winters seasonal method."""

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
    """Holt-Winters seasonal method by least squares: ETS(A,A,A) or ETS(A,A,M), optionally damped.

    With q = level + phi slope and mu = q + s, or q s with a multiplicative season,

        level' = q + alpha u,   slope' = phi slope + beta u,   s' = s + gamma v,

    where u = v = y - mu if the season is additive, else u = (y - mu) / s and v = (y - mu) / q. All
    initial states are estimated, of the season all but one. A season longer than 60 starts from the
    averages of its first cycles; a season of 1 step is none. A multiplicative season that fails for
    a series is replaced by an additive one, with a warning.

    Intervals follow a formula if the season is additive, else sample paths
    (ETS(error="multiplicative", seasonal="multiplicative") has errors in proportion to the level,
    and a formula), with Student's t with n - k degrees of freedom and a variance 1 + k / n times as
    large for k estimated parameters; with 30 values of monthly data an 80 % interval 12 steps ahead
    covers about 65 %.

    Measured coverage of 80 % intervals at defaults: M1 yearly 56 %, M1 quarterly 61 %, M1 monthly
    73 %, M4 hourly (100 series) 88 %, NN5 daily 89 % (benchmarks/bench_coverage.py).

    See Also
    --------
    AutoETS : Chooses the form.
    Holt : Without a season.

    References
    ----------
    Hyndman, R. J. and Athanasopoulos, G. (2021). *Forecasting: Principles and Practice*, 3rd ed.,
    section 8.3. https://otexts.com/fpp3/

    Examples
    --------
    >>> from deepforecast import datasets
    >>> model = HoltWinters(horizon=3, seasonal="multiplicative").fit(datasets.load("air_passengers"))
    >>> model.predict().shape
    (3, 3)
    """

    season_length: int | Literal["auto"] = param(
        default="auto", at_least=1,
        help="number of time steps per season; 'auto': by the frequency of the data",
    )
    seasonal: Literal["additive", "multiplicative"] = param(
        default="additive", search=("additive", "multiplicative"), help="season type"
    )
    damped: bool = param(default=False, search=(False, True), help="whether to damp the trend")
    alpha: float | None = param(
        default=None, at_least=0, at_most=1,
        help="smoothing parameter of the level; None: estimated",
    )
    beta: float | None = param(
        default=None, at_least=0, at_most=1,
        help="smoothing parameter of the trend; None: estimated",
    )
    gamma: float | None = param(
        default=None, at_least=0, at_most=1,
        help="smoothing parameter of the season; None: estimated",
    )
    phi: float | None = param(
        default=None, above=0, at_most=1,
        help="damping parameter of the trend; None: estimated",
    )

    def _forms(self) -> list[Form]:
        return [Form(0, 1, int(self.damped), COMPONENT_CODES[self.seasonal])]

    def _season(self, panel: Panel) -> int:
        return resolve_season(self.season_length, panel, self, "season_length")

    def _idle(self) -> Iterator[tuple[str, str]]:
        if not self.damped:
            yield "phi", "without a damped trend. Set damped=True, or leave it out"
        if self.season_length == 1:
            yield "gamma", "without a season. Pass a season_length above 1, or leave it out"

    def _rates(self) -> Sequence[float | None]:
        return self.alpha, self.beta, self.gamma, self.phi

    def _narrow(self, declared: Capabilities) -> Capabilities:
        return self._additive_capabilities(declared)

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Parameters for the contract checks."""
        return [{"seasonal": "multiplicative"}]
