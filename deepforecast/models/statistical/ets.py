"""ETS models of a given form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from deepforecast.core.params import Not, param
from deepforecast.core.registry import Capabilities, register
from deepforecast.core.seasonality import resolve_season
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError
from deepforecast.kernels.ets.forms import Form
from deepforecast.models.statistical import _form_selection
from deepforecast.models.statistical._engine import fit_by_statsmodels, statsmodels_capabilities
from deepforecast.models.statistical._single_form import Smoothing

Component = Literal["additive", "multiplicative"]


@register
class ETS(Smoothing):
    """Exponential smoothing of a given form, ETS(error, trend, season), as a state space model.

    The smoothing parameters and all initial states are estimated by maximum likelihood. Every form
    of the taxonomy is available; numerically unstable ones (additive errors with a multiplicative
    component, or a multiplicative trend with an additive season), which R refuses too, require
    `allow_unstable=True`. Multiplicative components need positive values, and with multiplicative
    errors or season no forecast is below 0. Future covariates enter linearly: y = m + x'b + e, or
    (m + x'b)(1 + e). A missing value is treated as an error of 0. With `season_length=1`
    the model is non-seasonal; seasonal states of more than 60 steps start from the averages of the
    first cycles.

    A multiplicative form that fails for a series is replaced by the additive form, with a warning.
    It fails if no parameters have a finite likelihood, if the errors are as large as the mean, or
    if the forecast is far outside the range of all values or of the last two seasons, as after an
    outlier or a level shift.

    Intervals follow the formulae of classes 1 to 3, else sample paths, with Student's t with n - k
    degrees of freedom and a variance 1 + k / n times as large for k estimated parameters; with 30
    values an 80 % interval 12 steps ahead covers 65 to 75 %. `box_cox` needs additive forms. The
    point forecast is then the mean (with a negative power, for which it does not exist, the mean of
    the central 99 %), or with point="median" the plain back-transformation.

    `engine="statsmodels"` estimates by its `ETSModel`, for complete data without covariates and
    with the usual bounds. It updates a multiplicative season by value / new level; the kernels,
    like the book and R, by value / predicted level.

    Measured coverage of 80 % intervals at defaults: M1 yearly 56 %, M1 quarterly 58 %, M1 monthly
    73 %, M4 hourly (100 series) 90 %, NN5 daily 78 % (benchmarks/bench_coverage.py).

    See Also
    --------
    AutoETS : Chooses the form.

    References
    ----------
    Hyndman, R. J., Koehler, A. B., Ord, J. K. and Snyder, R. D. (2008). *Forecasting with
    Exponential Smoothing: The State Space Approach*. doi:10.1007/978-3-540-71918-2

    Examples
    --------
    >>> from deepforecast import datasets
    >>> model = ETS(error="multiplicative", trend="additive", seasonal="multiplicative", horizon=3)
    >>> model.fit(datasets.load("air_passengers")).parameters()["form"].item()
    'ETS(M,A,M)'
    """

    error: Literal["additive", "multiplicative"] = param(
        default="additive", search=("additive", "multiplicative"), help="type of the errors"
    )
    trend: Component | None = param(
        default="additive", search=(None, "additive"), help="type of the trend component; None: no trend",
    )
    damped: bool = param(default=False, help="whether to damp the trend")
    seasonal: Component | None = param(
        default=None, search=(None, "additive"), help="type of the seasonal component; None: non-seasonal",
    )
    season_length: int | Literal["auto"] = param(
        default="auto", at_least=1, needs={"seasonal": Not(None)}, off=1,
        help="number of time steps per season; 1: no season; 'auto': inferred from the frequency of the data",
    )
    allow_unstable: bool = param(default=False, help="whether to allow numerically unstable forms")
    alpha: float | None = param(
        default=None, at_least=0, at_most=1,
        help="smoothing parameter of the level; None: estimated from the data",
    )
    beta: float | None = param(
        default=None, at_least=0, at_most=1, needs={"trend": Not(None)},
        help="smoothing parameter of the trend; None: estimated from the data",
    )
    gamma: float | None = param(
        default=None, at_least=0, at_most=1, needs={"seasonal": Not(None)},
        help="smoothing parameter of the seasonal component; None: estimated from the data",
    )
    phi: float | None = param(
        default=None, above=0, at_most=1, needs={"damped": True},
        help="damping parameter of the trend; None: estimated from the data",
    )
    engine: Literal["kernels", "statsmodels"] = param(
        default="kernels",
        help="implementation of the estimation; 'kernels': compiled code of this library, 'statsmodels': ETSModel of"
        " statsmodels",
    )

    def _forms(self) -> list[Form]:
        """The one form of the parameters; raise a `ParameterError` if it is invalid or numerically unstable."""
        codes = _form_selection.COMPONENT_CODES
        form = Form(
            error=_form_selection.ERROR_CODES[self.error],
            trend=codes[self.trend],
            damped=int(self.damped),
            season=codes[self.seasonal],
        )
        if form.damped and not form.trend:
            raise ParameterError(
                f"{self.name}: damped=True requires a trend, got trend=None.",
                hint="Set trend='additive', or damped=False.",
                parameter="damped",
            )
        if not form.is_stable and not self.allow_unstable:
            raise ParameterError(
                f"{self.name}: {form} cannot be used by default, because this form is numerically unstable (infinite "
                "variance, or states that pass through 0).",
                hint="Use multiplicative errors with multiplicative components, or set "
                "allow_unstable=True."
            )
        return [form]

    def _season(self, panel: Panel) -> int:
        return 1 if self.seasonal is None else resolve_season(self.season_length, panel, self, "season_length")

    def _fixed_rates(self) -> Sequence[float | None]:
        return self.alpha, self.beta, self.gamma, self.phi

    def _fit_forms(self, panel: Panel, y: Floats, design: Floats, season: int, forms: list[Form]) -> Any:
        if self.engine == "statsmodels":
            return fit_by_statsmodels(self, panel, y, season, forms)
        return super()._fit_forms(panel, y, design, season, forms)

    def _narrow(self, declared: Capabilities) -> Capabilities:
        capabilities = self._capabilities_of_forms(declared)
        return statsmodels_capabilities(capabilities) if self.engine == "statsmodels" else capabilities

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Parameters for the contract checks."""
        return [{"error": "multiplicative", "damped": True, "seasonal": "multiplicative", "season_length": 4}]
