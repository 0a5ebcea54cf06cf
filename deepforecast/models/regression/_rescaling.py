"""Rescaling of columns that float32 cannot represent or whose squares would overflow.

Trees store features as float32, which has seven digits: 1,000,000,000.1 becomes 1,000,000,000.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from deepforecast.data.covariates import Covariate
from deepforecast.data.panel import Panel

MAX_VALUE = 1e30  # largest absolute values outside these limits are rescaled: their squares are not float32 numbers
MIN_VALUE = 1e-30
MAX_RELATIVE_MEAN = 1000.0  # maximum distance from 0 in half ranges without rescaling: float32 has seven digits

Units = dict[str, list[float]]  # centre and unit of each rescaled column


def fit_scales(columns: Mapping[str, Covariate]) -> Units:
    """Centre and unit (a power of 2) of the numeric columns that need rescaling; other columns have no entry."""
    scales = {name: _fit_scale(covariate) for name, covariate in columns.items() if covariate.categories is None}
    return {name: [centre, unit] for name, (centre, unit) in scales.items() if (centre, unit) != (0.0, 1.0)}


def apply_scales(columns: Mapping[str, Covariate], units: Mapping[str, list[float]]) -> dict[str, Covariate]:
    """Columns minus their centre, divided by their unit."""
    return {name: _apply_scale(covariate, *units[name]) if name in units else covariate for name, covariate in columns.items()}


def rescale_panel(panel: Panel, units: Units) -> Panel:
    """The panel with covariates minus their centre, divided by their unit."""
    if not units:
        return panel
    return replace(panel, covariates=apply_scales(panel.covariates, units), static=apply_scales(panel.static, units))


def _fit_scale(covariate: Covariate) -> tuple[float, float]:
    """Midrange and unit of a column; (0, 1) if float32 represents its values well enough."""
    values = covariate.values[np.isfinite(covariate.values)]
    largest = float(np.abs(values).max(initial=0.0))
    if not largest:
        return 0.0, 1.0
    half = values * 0.5  # prevents overflow of differences
    centre = float(half.max() + half.min())
    half_range = float(np.abs(half - 0.5 * centre).max()) * 2
    if half_range > abs(centre) / MAX_RELATIVE_MEAN and MIN_VALUE < largest < MAX_VALUE:
        return 0.0, 1.0
    if not half_range:
        return centre, 1.0
    exponent = np.clip(np.frexp(half_range)[1], -1000, 1000)
    return centre, float(2.0**exponent)


def _apply_scale(covariate: Covariate, centre: float, unit: float) -> Covariate:
    return replace(covariate, values=(covariate.values * 0.5 - 0.5 * centre) / unit * 2)
