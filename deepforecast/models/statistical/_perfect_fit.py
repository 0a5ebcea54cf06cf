"""Intervals of series with a perfect fit, and rows since the last observation.

The error deviation of a perfect fit is 0 until an error exceeds the noise floor; from then on it is
estimated from the errors since. Arrays, one value per series:

- `deviation`: standard deviation of the one-step errors
- `noise_floor`: size of errors above which a series no longer fits perfectly; NaN without a perfect fit
- `n_errors_since`: number of errors since the first one above the noise floor
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from deepforecast.core.arrays import segment_reduce
from deepforecast.core.state import LearnedState
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel

PERFECT_FIT = 1e-9  # relative to the range of a series: smaller errors are a perfect fit
ROUNDING = 1e-12  # relative to the largest value: smaller errors are rounding

RESIDUAL_ARRAYS = ("noise_floor", "n_errors_since", "degrees_of_freedom", "deviation_factor", "interval_factor")
"""Names of learned arrays about the residuals, one number for each series."""


def residual_spread(panel: Panel, deviation: Floats) -> dict[str, Any]:
    """The arrays after a fit with these residual standard deviations; perfect fits get a deviation of 0."""
    largest = _reduce_series(panel.y, panel.indptr, np.maximum)
    span = largest - _reduce_series(panel.y, panel.indptr, np.minimum)
    with np.errstate(over="ignore", invalid="ignore"):
        is_perfect = deviation * np.sqrt(panel.observed) <= PERFECT_FIT * span
    noise_floor = np.where(is_perfect, PERFECT_FIT * span, np.nan)
    return {
        "deviation": np.where(is_perfect, 0.0, deviation),
        "noise_floor": noise_floor,
        "n_errors_since": np.zeros(len(panel), np.int64),
    }


def update_residual_spread(arrays: Mapping[str, Any], panel: Panel, errors: Floats, from_start: bool) -> dict[str, Any]:
    """`deviation` and `n_errors_since` after the rows of a panel with these one-step errors; empty without perfect fits.

    Only series with a perfect fit change. `from_start`: reset them to a perfect fit first.
    """
    is_perfect = ~np.isnan(arrays["noise_floor"])
    if not is_perfect.any():
        return {}
    deviation, n_errors = arrays["deviation"].copy(), arrays["n_errors_since"].copy()
    if from_start:
        deviation[is_perfect], n_errors[is_perfect] = 0.0, 0
    with np.errstate(over="ignore"):
        limit = arrays["noise_floor"] + ROUNDING * _reduce_series(np.abs(panel.y), panel.indptr, np.maximum)
    is_moving = is_perfect & ((n_errors > 0) | (_reduce_series(np.abs(errors), panel.indptr, np.maximum) > limit))
    for series_index in np.flatnonzero(is_moving):
        series_errors = errors[panel.indptr[series_index] : panel.indptr[series_index + 1]]
        series_errors = series_errors[~np.isnan(series_errors)]
        if n_errors[series_index] == 0:
            series_errors = series_errors[np.argmax(np.abs(series_errors) > limit[series_index]) :]
        previous = deviation[series_index] * np.sqrt(n_errors[series_index])
        n_errors[series_index] += len(series_errors)
        root_sum_of_squares = np.hypot.reduce(np.append(previous, series_errors))  # without overflow
        deviation[series_index] = root_sum_of_squares / np.sqrt(n_errors[series_index])
    return {"deviation": deviation, "n_errors_since": n_errors}


def rows_since_observed(panel: Panel, age: Ints | None) -> Ints:
    """Number of missing rows at the end of each series.

    `age`: that number before the rows of the panel, which continue the series; None: 0.
    """
    observed_rows = np.flatnonzero(~np.isnan(panel.y))
    last_observed = np.concatenate([[-1], observed_rows])[np.searchsorted(observed_rows, panel.indptr[1:])]
    previous_age = np.zeros(len(panel), np.int64) if age is None else age
    has_value = last_observed >= panel.indptr[:-1]
    return np.where(has_value, panel.indptr[1:] - 1 - last_observed, previous_age + panel.lengths)


def compute_by_age(learned: LearnedState, compute: Callable[[LearnedState], Floats]) -> Floats:
    """Apply `compute` to groups of series of similar `age`, and join the results in the order of the series.

    Intermediate arrays of (series, age + steps) then need memory in proportion to the sum of the
    ages instead of the largest age times the number of series.
    """
    magnitude = np.frexp(learned["age"].astype(np.float64))[1]  # ages of a group differ by a factor below 2
    groups = [np.flatnonzero(magnitude == exponent) for exponent in np.unique(magnitude)]
    if len(groups) < 2:
        return compute(learned)
    group_values = [
        compute(LearnedState({name: values[group] for name, values in learned.by_series.items()}))
        for group in groups
    ]
    joined = np.empty((len(magnitude), *group_values[0].shape[1:]))
    for group, values in zip(groups, group_values, strict=True):
        joined[group] = values
    return joined


def _reduce_series(values: Floats, indptr: Ints, ufunc: Any) -> Floats:
    """Largest or smallest observed value of each series; 0 if there is none."""
    missing = np.isnan(values)
    if missing.any():
        values = np.where(missing, -np.inf if ufunc is np.maximum else np.inf, values)
    extremes = segment_reduce(values, indptr[:-1], indptr[1:], ufunc)
    return np.where(np.isfinite(extremes), extremes, 0.0)
