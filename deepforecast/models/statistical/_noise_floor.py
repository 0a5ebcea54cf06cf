"""Intervals of structural models after a perfect fit, from the errors since the first large one.

- `noise_floor`: size of errors above which a series no longer fits perfectly; NaN without a perfect fit
- `n_errors_since`: number of errors since the first one above the noise floor
- `interval_factor`: factor of the standard deviations of forecasts, the root mean square of these
  errors divided by their standard deviations
"""

from __future__ import annotations

import numpy as np

from deepforecast.core.state import LearnedState
from deepforecast.data.frames import Floats, Ints

PERFECT_FIT = 1e-9  # relative to the range of a series: smaller errors are a perfect fit


def interval_factor(errors: Floats, variances: Floats, noise_floor: float, previous: tuple[int, float]) -> dict[str, Floats]:
    """`n_errors_since` and `interval_factor` of one series after further one-step errors with these variances.

    `previous`: both before these errors. They are unchanged as long as all errors are below the floor.
    """
    n_errors, factor = previous
    is_usable = ~np.isnan(errors) & (variances > 0)
    large_errors = np.flatnonzero(np.abs(errors[is_usable]) > noise_floor)  # none if the floor is NaN
    if not np.isnan(noise_floor) and (n_errors > 0 or len(large_errors)):
        first_row = 0 if n_errors > 0 else large_errors[0]
        standardized = (errors[is_usable] / np.sqrt(variances[is_usable]))[first_row:]
        total = np.hypot.reduce(np.append(factor * np.sqrt(n_errors), standardized))  # without overflow
        n_errors += len(standardized)
        factor = total / np.sqrt(n_errors)
    return {"n_errors_since": np.array(n_errors), "interval_factor": np.array(factor)}


def update_interval_factors(learned: LearnedState, errors: Floats, variances: Floats, indptr: Ints) -> dict[str, Floats]:
    """`n_errors_since` and `interval_factor` of all series after new rows with these errors and variances."""
    n_errors, factor = learned["n_errors_since"].copy(), learned["interval_factor"].copy()
    for series_index in np.flatnonzero(~np.isnan(learned["noise_floor"])):
        rows = slice(indptr[series_index], indptr[series_index + 1])
        previous = n_errors[series_index], factor[series_index]
        updated = interval_factor(errors[rows], variances[rows], learned["noise_floor"][series_index], previous)
        n_errors[series_index], factor[series_index] = updated["n_errors_since"], updated["interval_factor"]
    return {"n_errors_since": n_errors, "interval_factor": factor}


def last_observed(y: Floats) -> Floats:
    """Last observation carried forward; rows before the first value get the first value."""
    observed_rows = np.flatnonzero(~np.isnan(y))
    return np.asarray(y[observed_rows[np.maximum(np.searchsorted(observed_rows, np.arange(len(y)), side="right") - 1, 0)]])
