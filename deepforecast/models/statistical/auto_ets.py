"""Exponential smoothing of the form that an information criterion chooses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any, Literal

import numpy as np

from deepforecast.core.capabilities import Capabilities
from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError
from deepforecast.kernels.ets.forms import Form
from deepforecast.models.baselines._base import resolve_season
from deepforecast.models.statistical import _form_selection
from deepforecast.models.statistical._exponential_smoothing import Exponential

Component = Literal["auto", "additive", "multiplicative"]


@register
class AutoETS(Exponential):
    """Each series gets the form of exponential smoothing with the lowest AICc (AIC, BIC) among the stable ones.

    15 candidates: additive errors with trend N, A, Ad and season N, A; multiplicative errors with trend N, A, Ad and season N,
    A, M. Where values are not all positive the 6 with additive parts alone; without a season those without one. A candidate
    whose criterion is not defined, as it has too many parameters for the values there are (n < k + 2, sigma counted in k), is
    left out; with 3 or 4 values that leaves none, and ETS(A,N,N) is taken; series too short for their season are named in a
    warning. A form with multiplicative errors whose forecast variance explodes within the horizon of the constructor, or
    within a quarter of the history where that is longer, is passed over for the next best.
    Where the best form multiplies and fails a series (see `ETS`), the best of those that add is taken. `error`,
    `trend`, `damped`, `seasonal` restrict; `multiplicative_trend` adds M and Md (with errors and season N or M). Likelihood,
    missing values, columns known ahead, intervals and `box_cox` (additive candidates) as in `ETS`. A season longer than 60
    begins as its first turns have it, and counts in full. Each candidate is searched for from the optima
    of the next smaller one and of the one with additive errors; the three best are then searched for again from points with
    another season, trend and level. `ETS` of one form searches from more starts. Where errors or a season multiply, no
    forecast is below 0.
    Bands as in `ETS`; they take the form chosen as known: with about 30
    values an 80 % band 12 steps ahead holds about 66 %.
    References: Hyndman, Koehler, Snyder & Grose (2002), *International Journal of Forecasting* 18; Hyndman & Khandakar (2008).

    Measured coverage of 80 % intervals at defaults: M1 yearly 61 %, M1 quarterly 66 %, M1 monthly
    75 %, M4 hourly (100 series) 90 %, NN5 daily 88 % (benchmarks/bench_coverage.py).

    >>> from deepforecast import datasets
    >>> model = AutoETS(horizon=3).fit(datasets.load("air_passengers"))
    >>> model.parameters()["form"].item()
    'ETS(M,A,M)'
    """

    season_length: int | Literal["auto"] = param(
        default="auto", at_least=1, help="steps after which the season repeats"
    )
    error: Literal["auto", "additive", "multiplicative"] = param(
        default="auto", help="how errors enter; auto tries both",
    )
    trend: Component | None = param(default="auto", help="how the trend enters")
    damped: bool | Literal["auto"] = param(default="auto", help="whether the trend dies away")
    seasonal: Component | None = param(default="auto", help="how the season enters")
    multiplicative_trend: bool = param(default=False, help="try trends that multiply, too")
    criterion: Literal["aicc", "aic", "bic"] = param(
        default="aicc", search=("aicc", "bic"), help="what the form is chosen by",
    )
    parameter_bounds: Literal["usual", "admissible", "both"] = param(
        default="both",
        help="of the rates; usual: beta < alpha < 1, gamma < 1 - alpha, 0.8 < phi < 0.98; admissible: old errors are forgotten",
    )

    def _forms(self) -> list[Form]:
        errors = [0, 1] if self.error == "auto" else [_form_selection.COMPONENT_CODES[self.error] - 1]
        trends = [0, 1, 2] if self.trend == "auto" else [_form_selection.COMPONENT_CODES[self.trend]]
        seasons = [0, 1, 2] if self.seasonal == "auto" else [_form_selection.COMPONENT_CODES[self.seasonal]]
        damped = [0, 1] if self.damped == "auto" else [int(self.damped)]
        if self.trend == "auto" and not self.multiplicative_trend:
            trends.remove(2)
        all_forms = (Form(error, trend, damping if trend else 0, season) for error, trend, damping, season in product(errors, trends, damped, seasons))
        stable_forms = [form for form in dict.fromkeys(all_forms) if form.is_stable]
        if self.box_cox is not None:
            stable_forms = [form for form in stable_forms if not form.is_multiplicative]
        if not stable_forms:
            raise ParameterError(
                f"{self.name}: no stable form is left by error={self.error!r}, trend={self.trend!r}, damped={self.damped!r}, "
                f"seasonal={self.seasonal!r}, box_cox={self.box_cox!r}. Allow more, or name a form: ETS(...)."
            )
        return stable_forms

    def _idle(self) -> Iterator[tuple[str, str]]:
        if self.seasonal is None:
            yield "season_length", "with seasonal=None. Allow a season, or leave it out"
        if self.trend is None and self.damped is True:
            yield "damped", "with trend=None. Allow a trend, or leave it out"
        if self.trend != "auto":
            yield "multiplicative_trend", f"beside trend={self.trend!r}. Say trend='auto', or leave it out"
        if self.box_cox is not None:
            yield "multiplicative_trend", "beside box_cox, which leaves forms that add alone. Leave one of them out"

    def _season(self, panel: Panel) -> int:
        if all(form.season == 0 for form in self._forms()):
            return 1
        return resolve_season(self.season_length, panel, self, "season_length")

    def _fit_settings(self, panel: Panel, y: Floats, season: int, forms: list[Form]) -> dict[str, Any]:
        matrix = self._regressors(panel)[0]
        counts = np.maximum(_form_selection.count_observed(y, matrix, panel.indptr), 1)[:, None]
        n_parameters = np.array([_form_selection.count_parameters(form, season) + matrix.shape[1] for form in forms], np.float64)[None, :]
        return {"bounds": self.parameter_bounds, "penalties": _form_selection.information_criteria(np.zeros(1), n_parameters, counts)[self.criterion]}

    def _scores(self, fits: Any, counts: Floats, parameters: Floats) -> Floats:
        scores = _form_selection.information_criteria(fits.log_likelihood, parameters, counts)[self.criterion]
        undecided = ~np.isfinite(scores).any(axis=1)
        scores[undecided] = np.where(np.isfinite(fits.log_likelihood), parameters, np.inf)[undecided]
        return scores

    def _narrow(self, declared: Capabilities) -> Capabilities:
        if self.box_cox is not None:
            return replace(declared, domain="positive", scale_equivariant=False)
        return replace(declared, domain="positive") if all(form.is_multiplicative for form in self._forms()) else declared

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """With which parameters the contract is checked."""
        return [{"season_length": 4}]
