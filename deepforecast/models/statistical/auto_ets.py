"""ETS models with automatic selection of the form."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any, Literal

import numpy as np

from deepforecast.core.params import Not, param
from deepforecast.core.registry import Capabilities, register
from deepforecast.core.seasonality import resolve_season
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError
from deepforecast.kernels.ets.forms import Form
from deepforecast.models.statistical import _form_selection
from deepforecast.models.statistical._exponential_smoothing import Exponential

Component = Literal["auto", "additive", "multiplicative"]


@register
class AutoETS(Exponential):
    """Exponential smoothing (ETS) with the form chosen for each series by AICc, AIC or BIC.

    The 15 candidates are those with additive errors, trend N, A, Ad and season N, A, and those with
    multiplicative errors, trend N, A, Ad and season N, A, M. Series with values of 0 or less have
    the 6 additive ones; for non-seasonal data the seasonal ones are left out. `error`, `trend`,
    `damped` and `seasonal` restrict the candidates; `multiplicative_trend` adds M and Md (with
    multiplicative errors and season N or M). A candidate with too many parameters for its criterion
    to be defined (n < k + 2, sigma counted in k) is left out; with 3 or 4 values none is left, and
    ETS(A,N,N) is used. Series too short for their season are listed in a warning.

    A form with multiplicative errors whose forecast variance explodes within the horizon of the
    constructor, or within a quarter of the history if that is longer, is replaced by the next best.
    If the best form is multiplicative and fails for a series (see `ETS`), the best additive one is
    used.

    Each candidate is optimized from the optima of the next smaller one and of the one with additive
    errors; the three best are optimized again from other seasons, trends and levels. `ETS` searches
    a single form from more starts. Likelihood, missing values, future covariates, intervals and
    `box_cox` (additive candidates only) are as in `ETS`; seasonal states of more than 60 steps start
    from the averages of the first cycles, and all of them count as parameters. With multiplicative errors or season no
    forecast is below 0.

    Intervals take the chosen form as known: with about 30 values an 80 % interval 12 steps ahead
    covers about 66 %.

    Measured coverage of 80 % intervals at defaults: M1 yearly 61 %, M1 quarterly 66 %, M1 monthly
    75 %, M4 hourly (100 series) 90 %, NN5 daily 88 % (benchmarks/bench_coverage.py).

    See Also
    --------
    ETS : A given form.

    References
    ----------
    Hyndman, R. J., Koehler, A. B., Snyder, R. D. and Grose, S. (2002). A state space framework for
    automatic forecasting using exponential smoothing methods. *International Journal of
    Forecasting* 18. doi:10.1016/S0169-2070(01)00110-8

    Hyndman, R. J. and Khandakar, Y. (2008). Automatic time series forecasting: The forecast package
    for R. *Journal of Statistical Software* 27(3). doi:10.18637/jss.v027.i03

    Examples
    --------
    >>> from deepforecast import datasets
    >>> model = AutoETS(horizon=3).fit(datasets.load("air_passengers"))
    >>> model.parameters()["form"].item()
    'ETS(M,A,M)'
    """

    season_length: int | Literal["auto"] = param(
        default="auto", at_least=1, needs={"seasonal": Not(None)}, off=1,
        help="number of time steps per season; 1: no season; 'auto': inferred from the frequency of the data",
    )
    error: Literal["auto", "additive", "multiplicative"] = param(
        default="auto", help="type of the errors; 'auto': selected by `criterion`",
    )
    trend: Component | None = param(
        default="auto", help="type of the trend component; 'auto': selected by `criterion`; None: no trend",
    )
    damped: bool | Literal["auto"] = param(
        default="auto", needs={"trend": Not(None)}, off=False,
        help="whether to damp the trend; 'auto': selected by `criterion`",
    )
    seasonal: Component | None = param(
        default="auto", help="type of the seasonal component; 'auto': selected by `criterion`; None: non-seasonal",
    )
    multiplicative_trend: bool = param(
        default=False, needs={"trend": "auto", "box_cox": None}, help="whether to also try multiplicative trends",
    )
    criterion: Literal["aicc", "aic", "bic"] = param(
        default="aicc", search=("aicc", "bic"), help="information criterion that selects the form",
    )
    parameter_bounds: Literal["usual", "admissible", "both"] = param(
        default="both",
        help="region of the smoothing parameters; 'usual': beta < alpha < 1, gamma < 1 - alpha and"
        " 0.8 < phi < 0.98; 'admissible': the effect of past errors decays to 0; 'both': their intersection",
    )

    def _forms(self) -> list[Form]:
        """All stable forms that the parameters allow; raise a `ParameterError` if there are none."""
        codes = _form_selection.COMPONENT_CODES
        errors = [0, 1] if self.error == "auto" else [_form_selection.ERROR_CODES[self.error]]
        trends = list(codes.values()) if self.trend == "auto" else [codes[self.trend]]
        seasons = list(codes.values()) if self.seasonal == "auto" else [codes[self.seasonal]]
        damped = [0, 1] if self.damped == "auto" else [int(self.damped)]
        if self.trend == "auto" and not self.multiplicative_trend:
            trends.remove(codes["multiplicative"])
        all_forms = (
            Form(error=error, trend=trend, damped=damping if trend else 0, season=season)
            for error, trend, damping, season in product(errors, trends, damped, seasons)
        )
        stable_forms = [form for form in dict.fromkeys(all_forms) if form.is_stable]
        if self.box_cox is not None:
            stable_forms = [form for form in stable_forms if not form.is_multiplicative]
        if not stable_forms:
            raise ParameterError(
                f"{self.name}: the parameters must allow at least one numerically stable form, got error={self.error!r}, "
                f"trend={self.trend!r}, damped={self.damped!r}, seasonal={self.seasonal!r}, box_cox={self.box_cox!r}.",
                hint="Set some of them to 'auto', or use ETS with a given form."
            )
        return stable_forms

    def _season(self, panel: Panel) -> int:
        if all(form.season == 0 for form in self._forms()):
            return 1
        return resolve_season(self.season_length, panel, self, "season_length")

    def _fit_settings(self, panel: Panel, transformed_y: Floats, season: int, forms: list[Form]) -> dict[str, Any]:
        """Keyword arguments of the kernels' `Settings`: bounds, and the penalty of each form (series, forms).

        A penalty is the information criterion without the log-likelihood; the kernels compare by it.
        """
        design = self._regressors(panel)[0]
        n_observed = np.maximum(_form_selection.count_observed(transformed_y, design, panel.indptr), 1)[:, None]
        n_parameters = np.array(
            [_form_selection.count_parameters(form, season) + design.shape[1] for form in forms], np.float64
        )[None, :]
        return {
            "bounds": self.parameter_bounds,
            "penalties": _form_selection.information_criteria(np.zeros(1), n_parameters, n_observed)[self.criterion],
        }

    def _selection_criterion(self, fits: Any, n_observed: Floats, n_parameters: Floats) -> Floats:
        """AICc, AIC or BIC of each form, (series, forms).

        For series too short for the criterion of any form: the number of parameters, so that the smallest form wins.
        """
        criteria = _form_selection.information_criteria(fits.log_likelihood, n_parameters, n_observed)[self.criterion]
        is_undefined = ~np.isfinite(criteria).any(axis=1)
        criteria[is_undefined] = np.where(np.isfinite(fits.log_likelihood), n_parameters, np.inf)[is_undefined]
        return criteria

    def _narrow(self, declared: Capabilities) -> Capabilities:
        if self.box_cox is not None:
            return replace(declared, domain="positive", scale_equivariant=False)
        if all(form.is_multiplicative for form in self._forms()):
            return replace(declared, domain="positive")
        return declared

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Parameters for the contract checks."""
        return [{"season_length": 4}]
