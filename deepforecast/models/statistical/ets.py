"""Exponential smoothing of a form that is given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from deepforecast.core.capabilities import Capabilities
from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError
from deepforecast.kernels.ets.forms import Form
from deepforecast.models.baselines._base import resolve_season
from deepforecast.models.statistical import _form_selection
from deepforecast.models.statistical._engine import fit_by_statsmodels, statsmodels_capabilities
from deepforecast.models.statistical._single_form import Smoothing

Component = Literal["additive", "multiplicative"]


@register
class ETS(Smoothing):
    """Exponential smoothing in state-space form, ETS(error, trend, season), by maximum likelihood with all first states.

    Every form of the taxonomy; those that are numerically unstable (additive errors with a multiplicative part, or a trend that
    multiplies with a season that is added), which R refuses too, with `allow_unstable=True`. Multiplicative parts need positive
    values. Columns known ahead enter linearly: y = m + x'b + e, or (m + x'b)(1 + e); a missing value is stepped over (an error
    of 0). Where errors or a season multiply, no forecast is below 0. A form that multiplies and fails a series - no parameters
    are likely, errors are as large as the mean, or forecasts leave all values, or the last two seasons, far behind, as after an
    outlier or a shift of the level - is replaced by the form that adds, and the series is named in a warning. A season of 1
    step is none.
    Intervals: by the formulae of classes 1 to 3, else by sample paths. Bands: Student's t with n - k degrees of freedom and a
    variance 1 + k / n times as large, for k numbers estimated; with 30 values an 80 % band 12 steps ahead holds 65 to 75 %.
    `box_cox` with additive forms; the point is then the mean (of a power below 0, where there is none, that of the middle 99
    %), or with point="median" the plain inverse. `engine="statsmodels"` estimates by its `ETSModel` (complete data, no
    regressors, usual bounds; its season that multiplies follows value / new level, ours, as the book's and R's, value /
    forecast level). A season longer than 60 begins as its first turns have it.
    Reference: Hyndman, Koehler, Ord & Snyder (2008), *Forecasting with Exponential Smoothing: The State Space Approach*.

    Measured coverage of 80 % intervals at defaults: M1 yearly 56 %, M1 quarterly 58 %, M1 monthly
    73 %, M4 hourly (100 series) 90 %, NN5 daily 78 % (benchmarks/bench_coverage.py).

    >>> from deepforecast import datasets
    >>> model = ETS(error="multiplicative", trend="additive", seasonal="multiplicative", horizon=3)
    >>> model.fit(datasets.load("air_passengers")).parameters()["form"].item()
    'ETS(M,A,M)'
    """

    error: Literal["additive", "multiplicative"] = param(
        default="additive", search=("additive", "multiplicative"), help="how errors enter"
    )
    trend: Component | None = param(
        default="additive", search=(None, "additive"), help="how the trend enters",
    )
    damped: bool = param(default=False, help="let the trend die away")
    seasonal: Component | None = param(
        default=None, search=(None, "additive"), help="how the season enters",
    )
    season_length: int | Literal["auto"] = param(
        default="auto", at_least=1, help="steps after which the season repeats",
    )
    allow_unstable: bool = param(default=False, help="allow the forms that are numerically unstable")
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
        help="what is left of the trend after a step; estimated if not given",
    )
    engine: Literal["kernels", "statsmodels"] = param(
        default="kernels", help="what estimates; forecasts are the same code",
    )

    def _forms(self) -> list[Form]:
        codes = _form_selection.COMPONENT_CODES
        form = Form(codes[self.error] - 1, codes[self.trend], int(self.damped), codes[self.seasonal])
        if form.damped and not form.trend:
            raise ParameterError(f"{self.name}: what is damped is the trend; trend is None. Say damped=False, or give a trend.")
        if not form.is_stable and not self.allow_unstable:
            raise ParameterError(
                f"{self.name}: {form} is numerically unstable (its variance is infinite, or states pass through 0). Choose "
                "multiplicative errors with multiplicative parts, or say allow_unstable=True."
            )
        return [form]

    def _idle(self) -> Iterator[tuple[str, str]]:
        if self.seasonal is None:
            for name in ("season_length", "gamma"):
                yield name, "without a season. Say seasonal='additive' or 'multiplicative', or leave it out"
        if self.trend is None:
            yield "beta", "without a trend. Say trend='additive' or 'multiplicative', or leave it out"
        if not self.damped:
            yield "phi", "on a trend that is not damped. Say damped=True, or leave it out"

    def _season(self, panel: Panel) -> int:
        return 1 if self.seasonal is None else resolve_season(self.season_length, panel, self, "season_length")

    def _rates(self) -> Sequence[float | None]:
        return self.alpha, self.beta, self.gamma, self.phi

    def _fits(self, panel: Panel, y: Floats, matrix: Floats, season: int, forms: list[Form]) -> Any:
        if self.engine == "statsmodels":
            return fit_by_statsmodels(self, panel, y, season, forms)
        return super()._fits(panel, y, matrix, season, forms)

    def _narrow(self, declared: Capabilities) -> Capabilities:
        return statsmodels_capabilities(self._additive_capabilities(declared)) if self.engine == "statsmodels" else self._additive_capabilities(declared)

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """With which parameters the contract is checked."""
        return [{"error": "multiplicative", "damped": True, "seasonal": "multiplicative", "season_length": 4}]
