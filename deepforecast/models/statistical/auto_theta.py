"""The Theta model that fits a series best."""

from __future__ import annotations

from typing import Literal

import numpy as np

from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.data.frames import Floats, Ints
from deepforecast.models.statistical._line_smoothing import Fiorucci, ThetaForm


@register
class AutoTheta(Fiorucci):
    """The best of the standard, optimised, dynamic standard and dynamic optimised Theta model of each series.

    They are compared by their error in the sample. A standard model is a case of its optimised one and never ahead of it as
    such ("mse": only those two are fitted); so the error is that of a degree of freedom ("variance"): alpha, the first level
    and an estimated theta take one each. "aicc" weighs them more.
    A season is looked for in series of two or more; a shorter one is named in a `DataWarning`.
    Interval: that of the model chosen. Missing values are stepped over (an error of 0); bands of the steps after such rows at
    the end count them. Its bands are as there; they take the choice as known: after 30 values an 80 % band 12 steps ahead holds
    about 73 %.
    Reference: Fiorucci, Pellegrini, Louzada, Petropoulos & Koehler (2016), Models for optimising the theta method and their
    relationship to state space models, *International Journal of Forecasting* 32.

    Measured coverage of 80 % intervals at defaults: M1 yearly 58 %, M1 quarterly 66 %, M1 monthly
    77 %, M4 hourly (100 series) 92 %, NN5 daily 90 % (benchmarks/bench_coverage.py).

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=12), "y": [float(2 * row) for row in range(12)]})
    >>> AutoTheta(horizon=2, season_length=1).fit(frame).predict().round({"AutoTheta": 3})
              ds  AutoTheta
    0 2024-01-13       24.0
    1 2024-01-14       26.0
    """

    criterion: Literal["variance", "mse", "aicc"] = param(
        default="variance", search=("variance", "mse", "aicc"),
        help="what the model of a series is chosen by",
    )  # fmt: skip

    def _forms(self) -> tuple[ThetaForm, ...]:
        optimised = self._form(dynamic=False), self._form(dynamic=True)
        if self.criterion == "mse":
            return optimised
        return self._form(dynamic=False, theta=2.0), self._form(dynamic=True, theta=2.0), *optimised

    def _score(self, form: ThetaForm, loss: Floats, count: Ints) -> Floats:
        if self.criterion == "mse":
            return loss
        if self.criterion == "variance":
            return np.asarray(loss / np.maximum(count - form.n_parameters, 0.5))
        n_parameters = form.n_parameters + 1
        with np.errstate(divide="ignore"):  # errors of 0: as good as can be
            fit = count * np.log(loss / count)
        return np.asarray(fit + 2 * n_parameters + 2 * n_parameters * (n_parameters + 1) / np.maximum(count - n_parameters - 1, 1e-9))
