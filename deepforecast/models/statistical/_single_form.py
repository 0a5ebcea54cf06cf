"""Base class of exponential smoothing models of a single form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from deepforecast.core.params import param
from deepforecast.core.registry import Capabilities
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError
from deepforecast.kernels.ets.forms import Form
from deepforecast.models.statistical._exponential_smoothing import Exponential
from deepforecast.models.statistical._form_selection import MULTIPLICATIVE


class Smoothing(Exponential):
    """Base class of models of one ETS form, with optionally fixed parameters and initial states."""

    initial: Literal["estimated", "simple"] = param(
        default="estimated",
        help="how initial states are set; 'estimated': with the smoothing parameters, 'simple': computed from the"
        " first observations, as by R's forecast::hw(initial='simple')",
    )
    parameter_bounds: Literal["usual", "admissible", "both"] = param(
        default="both",
        help="region of the smoothing parameters; 'usual': beta < alpha < 1, gamma < 1 - alpha and"
        " 0.8 < phi < 0.98; 'admissible': the effect of past errors decays to 0; 'both': their intersection",
    )

    def _fixed_rates(self) -> Sequence[float | None]:
        """The given alpha, beta, gamma and phi; None for those to be estimated."""
        raise NotImplementedError

    def _is_fixed(self) -> tuple[bool, ...]:
        return (*(rate is not None for rate in self._fixed_rates()), self.initial == "simple")

    def _fit_settings(self, panel: Panel, transformed_y: Floats, season: int, forms: list[Form]) -> dict[str, Any]:
        """Keyword arguments of the kernels' `Settings`: fixed smoothing parameters, bounds, initial states."""
        fixed_rates = tuple(np.nan if rate is None else float(rate) for rate in self._fixed_rates())
        settings: dict[str, Any] = {
            "thorough": True,
            "tolerance": 1e-9,
            "bounds": self.parameter_bounds,
            "fixed": fixed_rates,  # NaN: estimated
        }
        if self.initial == "simple":
            settings["states"] = simple_initial_states(
                transformed_y, panel.indptr, season, multiplicative_trend=forms[0].trend == MULTIPLICATIVE
            )
        return settings

    def _capabilities_of_forms(self, declared: Capabilities) -> Capabilities:
        """Domain and equivariance that follow from the Box-Cox transformation and the form.

        A Box-Cox transformation: positive values, no scale equivariance. A multiplicative form: positive values. An
        additive form: shift equivariance.
        """
        if self.box_cox is not None:
            return replace(declared, domain="positive", scale_equivariant=False)
        if any(form.is_multiplicative for form in self._forms()):
            return replace(declared, domain="positive")
        return replace(declared, shift_equivariant=True)

    def _check_box_cox(self) -> None:
        """Raise if a Box-Cox transformation is combined with a multiplicative form."""
        if self.box_cox is not None and any(form.is_multiplicative for form in self._forms()):
            raise ParameterError(
                f"{self.name}: `box_cox` requires additive components, got {self._forms()[0]}.",
                hint="Set box_cox=None, or use additive components.",
                parameter="box_cox",
            )

    def _min_observations(self, panel: Panel) -> int:
        self._check_box_cox()
        n_for_initial_states = 2 * self._season(panel) if self.initial == "simple" else 0
        return max(super()._min_observations(panel), n_for_initial_states)


def simple_initial_states(y: Floats, indptr: Ints, season: int, multiplicative_trend: bool) -> Floats:
    """Initial level, slope and seasonal indices computed from the first values, (series, 2, 2 + m).

    The second axis: indices of an additive season, then those of a multiplicative one; level and
    slope are the same in both. Without a season level and slope are the first value and the first
    difference; with one they are the mean of the first season and the change per step of the mean
    to the second season, and the indices are the deviations from (or ratios to) the first mean.
    With `multiplicative_trend` the slope is the growth factor per step. Missing values are skipped
    without a season, and interpolated with one.
    """
    states = np.zeros((len(indptr) - 1, 2, 2 + season))
    for series_index, (begin, end) in enumerate(pairwise(indptr)):
        values = y[begin:end]
        if season == 1:
            first_values = values[~np.isnan(values)][:2]
            level, next_level = first_values[0], first_values[-1]
            states[series_index, :, 2] = 0.0, 1.0  # no season: adds 0, multiplies by 1
        else:
            interpolated = np.where(np.isnan(values), np.interp(*_interpolation_points(values)), values)
            first_cycle = interpolated[:season]
            level = first_cycle.mean()
            next_level = interpolated[season : 2 * season].mean()
            states[series_index, 0, 2:] = first_cycle - level
            states[series_index, 1, 2:] = first_cycle / level if level > 0 else 1.0
        if multiplicative_trend and level > 0:
            slope = (next_level / level) ** (1.0 / season)
        else:
            slope = (next_level - level) / season
        states[series_index, :, 0] = level
        states[series_index, :, 1] = slope
    return states


def _interpolation_points(values: Floats) -> tuple[Ints, Ints, Floats]:
    """Arguments of `np.interp`: all positions, those with a value, and these values."""
    observed_rows = np.flatnonzero(~np.isnan(values))
    return np.arange(len(values)), observed_rows, values[observed_rows]
