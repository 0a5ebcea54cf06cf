"""The Theta model that fits a series best."""

from __future__ import annotations

import numpy as np

from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.data.frames import Floats, Ints
from deepforecast.models.statistical._theta import Form, ThetaFamily, weight_of


@register
class AutoTheta(ThetaFamily):
    """The best of the standard, optimised, dynamic standard and dynamic optimised Theta model of each series.

    By the mean squared error an optimised model is never behind its standard one, of which it is a case, so that only these
    two are fitted; "aicc" and "bic" count their parameters (the standard ones: alpha, first level and, unless dynamic, slope).
    Interval: that of the model chosen. Missing values are stepped over (an error of 0).
    Reference: Fiorucci, Pellegrini, Louzada, Petropoulos & Koehler (2016), Models for optimising the theta method and their
    relationship to state space models, *International Journal of Forecasting* 32.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=12), "y": [float(2 * row) for row in range(12)]})
    >>> AutoTheta(horizon=2).fit(frame).predict().round({"AutoTheta": 3})
              ds  AutoTheta
    0 2024-01-13       24.0
    1 2024-01-14       26.0
    """

    criterion: str = param("mse", choices=("mse", "aicc", "bic"), help="what the model of a series is chosen by")

    def _forms(self) -> tuple[Form, ...]:
        best = (Form(dynamic=False), Form(dynamic=True))
        if self.criterion == "mse":
            return best
        standard = weight_of(2.0), weight_of(2.0)
        return Form(dynamic=False, weight=standard), best[0], Form(dynamic=True, weight=standard), best[1]

    def _score(self, form: Form, loss: Floats, count: Ints) -> Floats:
        if self.criterion == "mse":
            return loss
        number = form.parameters + 1
        with np.errstate(divide="ignore"):  # errors of 0: as good as can be
            fit = count * np.log(loss / count)
        if self.criterion == "bic":
            return np.asarray(fit + np.log(count) * number)
        room = np.maximum(count - number - 1, 1e-9)
        return np.asarray(fit + 2 * number + 2 * number * (number + 1) / room)
