"""Base class of exponential smoothing models of a single form."""

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
from deepforecast.models.statistical._exponential_smoothing import Exponential


class Smoothing(Exponential):
    """Base class of models of one ETS form, with optionally fixed parameters and initial states."""

    initial: Literal["estimated", "simple"] = param(
        default="estimated",
        help="initial states; 'simple': from the first value, difference and season, as R's 'simple'",
    )
    parameter_bounds: Literal["usual", "admissible", "both"] = param(
        default="both",
        help="region of the smoothing parameters; 'usual': beta < alpha < 1, gamma < 1 - alpha,"
        " 0.8 < phi < 0.98; 'admissible': the effect of past errors dies out",
    )

    def _rates(self) -> Sequence[float | None]:
        """alpha, beta, gamma and phi, None for those to be estimated."""
        raise NotImplementedError

    def _fixed_parameters(self) -> tuple[bool, ...]:
        return (*(rate is not None for rate in self._rates()), self.initial == "simple")

    def _fit_settings(self, panel: Panel, y: Floats, season: int, forms: list[Form]) -> dict[str, Any]:
        fixed = [np.nan if rate is None else float(rate) for rate in self._rates()]
        settings: dict[str, Any] = {"thorough": True, "tolerance": 1e-9, "bounds": self.parameter_bounds, "fixed": tuple(fixed)}
        if self.initial == "simple":
            settings["states"] = simple_initial_states(y, panel.indptr, season, forms[0].trend == 2)
        return settings

    def _additive_capabilities(self, declared: Capabilities) -> Capabilities:
        """Shift equivariance of additive forms, positive domain of multiplicative ones."""
        if self.box_cox is not None:
            return replace(declared, domain="positive", scale_equivariant=False)
        if any(form.is_multiplicative for form in self._forms()):
            return replace(declared, domain="positive")
        return replace(declared, shift_equivariant=True)

    def _refuse_transformed_multiplicative(self) -> None:
        if self.box_cox is not None and any(form.is_multiplicative for form in self._forms()):
            raise ParameterError(
                f"{self.name}: box_cox must be used with an additive form, got {self._forms()[0]}. Use box_cox=None, "
                "or additive components."
            )

    def _min_observations(self, panel: Panel) -> int:
        self._refuse_transformed_multiplicative()
        return max(super()._min_observations(panel), 2 * self._season(panel) if self.initial == "simple" else 0)


def simple_initial_states(y: Floats, indptr: Ints, season: int, multiplicative_trend: bool) -> Floats:
    """Initial level, slope and seasonal indices, additive and multiplicative, (series, 2, 2 + m).

    Without a season these are the first value and the first difference; with one the mean of the
    first season, the change of the mean to the next one per step, and the deviations from the first
    mean. Missing values are skipped.
    """
    states = np.zeros((len(indptr) - 1, 2, 2 + season))
    for number, (begin, end) in enumerate(pairwise(indptr)):
        values = y[begin:end]
        if season == 1:
            first = values[~np.isnan(values)][:2]
            level, second = first[0], first[-1]
            factors, count = np.zeros(1), 1
        else:
            interpolated = np.where(np.isnan(values), np.interp(*_interpolation_points(values)), values)
            level, second, count = interpolated[:season].mean(), interpolated[season : 2 * season].mean(), season
            factors = interpolated[:season]
        slope = (second / level) ** (1.0 / count) if multiplicative_trend and level > 0 else (second - level) / count
        if season == 1:
            states[number, :, 2] = 0.0, 1.0
        else:
            states[number, 0, 2:], states[number, 1, 2:] = factors - level, factors / level if level > 0 else 1.0
        states[number, :, 0], states[number, :, 1] = level, slope
    return states


def _interpolation_points(values: Floats) -> tuple[Ints, Ints, Floats]:
    """Arguments of `np.interp`: all positions, those with a value, and these values."""
    observed_rows = np.flatnonzero(~np.isnan(values))
    return np.arange(len(values)), observed_rows, values[observed_rows]
