"""What the methods share that are one form of exponential smoothing each: rates and first states that may be given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from deepforecast.core.capabilities import Capabilities
from deepforecast.core.params import param
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError
from deepforecast.kernels.ets.forms import Form
from deepforecast.models.statistical._exponential import Exponential


class Smoothing(Exponential):
    """One form. `_rates` are those given, None for those that are estimated."""

    initial: Literal["estimated", "simple"] = param(
        default="estimated",
        help="where the states begin; simple: first value, first difference, first season (R's initial='simple')",
    )
    parameter_bounds: Literal["usual", "admissible", "both"] = param(
        default="both",
        help="of the rates; usual: beta < alpha < 1, gamma < 1 - alpha, 0.8 < phi < 0.98; admissible: old errors are forgotten",
    )

    def _rates(self) -> Sequence[float | None]:
        """alpha, beta, gamma, phi."""
        raise NotImplementedError

    def _settings_given(self) -> tuple[bool, ...]:
        return (*(rate is not None for rate in self._rates()), self.initial == "simple")

    def _settings(self, panel: Panel, y: Floats, season: int, forms: list[Form]) -> dict[str, Any]:
        fixed = [np.nan if rate is None else float(rate) for rate in self._rates()]
        found: dict[str, Any] = {"thorough": True, "tolerance": 1e-9, "bounds": self.parameter_bounds, "fixed": tuple(fixed)}
        if self.initial == "simple":
            found["states"] = simple_states(y, panel.indptr, season, forms[0].trend == 2)
        return found

    def _additive(self, able: Capabilities) -> Capabilities:
        """What the form can do: shifts are followed where everything adds up; positive values are needed where it does not."""
        if self.box_cox is not None:
            return replace(able, domain="positive", scale_equivariant=False)
        if any(form.multiplies for form in self._forms()):
            return replace(able, domain="positive")
        return replace(able, shift_equivariant=True)

    def _refuse_transformed_products(self) -> None:
        if self.box_cox is not None and any(form.multiplies for form in self._forms()):
            raise ParameterError(
                f"{self.name}: box_cox goes with additive forms, which it makes multiplicative ones needless; got "
                f"{self._forms()[0]}. Say box_cox=None, or choose additive parts."
            )

    def _needs(self, panel: Panel) -> int:
        self._refuse_transformed_products()
        return max(super()._needs(panel), 2 * self._season(panel) if self.initial == "simple" else 0)


def simple_states(y: Floats, indptr: Ints, season: int, product_trend: bool) -> Floats:
    """Level, slope and factors by the first values, factors to be added and to be multiplied: (series, 2, 2 + season).

    Without a season the first value and the change to the next; with one the mean of the first, the change of the means over
    the next one by step, and the distances from the first mean. Missing values are passed over.
    """
    found = np.zeros((len(indptr) - 1, 2, 2 + season))
    for number, (begin, end) in enumerate(pairwise(indptr)):
        values = y[begin:end]
        if season == 1:
            first = values[~np.isnan(values)][:2]
            level, second = first[0], first[-1]
            factors, count = np.zeros(1), 1
        else:
            whole = np.where(np.isnan(values), np.interp(*_holes(values)), values)
            level, second, count = whole[:season].mean(), whole[season : 2 * season].mean(), season
            factors = whole[:season]
        slope = (second / level) ** (1.0 / count) if product_trend and level > 0 else (second - level) / count
        if season == 1:
            found[number, :, 2] = 0.0, 1.0
        else:
            found[number, 0, 2:], found[number, 1, 2:] = factors - level, factors / level if level > 0 else 1.0
        found[number, :, 0], found[number, :, 1] = level, slope
    return found


def _holes(values: Floats) -> tuple[Ints, Ints, Floats]:
    """Every place, the places with a value, and these: for interpolation."""
    seen = np.flatnonzero(~np.isnan(values))
    return np.arange(len(values)), seen, values[seen]
