"""Columns of numbers in units of their own, where their last digits would be lost or their squares overflow.

Trees keep features as float32: of values like 1,000,000,000 + 0.1 nothing would be left but the first term.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from deepforecast.data.covariates import Covariate

LARGEST, SMALLEST = 1e30, 1e-30
FAR = 1000.0  # from 0, in spreads: a float32 has seven digits

Units = dict[str, list[float]]


def of(columns: Mapping[str, Covariate]) -> Units:
    """For each column that needs one a middle and a unit, a power of 2; most columns stay as they are."""
    found = {name: _unit(one) for name, one in columns.items() if one.categories is None}
    return {name: [middle, unit] for name, (middle, unit) in found.items() if (middle, unit) != (0.0, 1.0)}


def applied(columns: Mapping[str, Covariate], units: Mapping[str, list[float]]) -> dict[str, Covariate]:
    """The columns, counted from their middle in their unit."""
    return {name: _counted(one, *units[name]) if name in units else one for name, one in columns.items()}


def _unit(one: Covariate) -> tuple[float, float]:
    values = one.values[np.isfinite(one.values)]
    largest = float(np.abs(values).max(initial=0.0))
    if not largest:
        return 0.0, 1.0
    half = values * 0.5  # so that no difference overflows
    middle = float(half.max() + half.min())
    spread = float(np.abs(half - 0.5 * middle).max()) * 2
    if spread > abs(middle) / FAR and SMALLEST < largest < LARGEST:
        return 0.0, 1.0
    return middle, float(2.0 ** np.clip(np.frexp(spread)[1], -1000, 1000)) if spread else 1.0


def _counted(one: Covariate, middle: float, unit: float) -> Covariate:
    return replace(one, values=(one.values * 0.5 - 0.5 * middle) / unit * 2)
