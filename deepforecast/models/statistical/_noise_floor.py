"""Intervals of structural models after a perfect fit, from the errors since then.

- `ripple`: noise floor, the size of errors above which a series no longer fits; NaN without a
  perfect fit
- `since`: number of errors since then
- `swell`: factor of standard deviations, the root mean square of these errors over their deviations
"""

from __future__ import annotations

import numpy as np

from deepforecast.core.state import LearnedState
from deepforecast.data.frames import Floats, Ints

PERFECT_FIT = 1e-9  # relative to the range of a series: smaller errors are a perfect fit


def interval_factor(errors: Floats, spreads: Floats, noise_floor: float, previous: tuple[int, float]) -> dict[str, Floats]:
    """Update (number of errors, factor) by errors with these variances.

    Unchanged below the floor.
    """
    n_errors, factor = previous
    is_usable = ~np.isnan(errors) & (spreads > 0)
    moves = np.flatnonzero(np.abs(errors[is_usable]) > noise_floor)  # none if the floor is NaN
    if not np.isnan(noise_floor) and (n_errors > 0 or len(moves)):
        standardized = (errors[is_usable] / np.sqrt(spreads[is_usable]))[0 if n_errors > 0 else moves[0] :]
        total = np.hypot.reduce(np.append(factor * np.sqrt(n_errors), standardized))  # without overflow
        n_errors += len(standardized)
        factor = total / np.sqrt(n_errors)
    return {"since": np.array(n_errors), "swell": np.array(factor)}


def update_interval_factors(learned: LearnedState, errors: Floats, spreads: Floats, indptr: Ints) -> dict[str, Floats]:
    """`interval_factor` of every series after new rows."""
    n_errors, factor = learned["since"].copy(), learned["swell"].copy()
    for number in np.flatnonzero(~np.isnan(learned["ripple"])):
        rows = slice(indptr[number], indptr[number + 1])
        updated = interval_factor(errors[rows], spreads[rows], learned["ripple"][number], (n_errors[number], factor[number]))
        n_errors[number], factor[number] = updated["since"], updated["swell"]
    return {"since": n_errors, "swell": factor}


def last_observed(y: Floats) -> Floats:
    """Last observation carried forward; the first one before it."""
    observed_rows = np.flatnonzero(~np.isnan(y))
    return np.asarray(y[observed_rows[np.maximum(np.searchsorted(observed_rows, np.arange(len(y)), side="right") - 1, 0)]])
