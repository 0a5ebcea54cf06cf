"""State spaces of series that the fit left nothing over of: how much wider their bands are once they move.

`ripple`    NaN where the fit left errors; else the size of error from which on the series moves
`since`     how many errors there are since then
`swell`     what standard deviations are multiplied by: the root of the mean of these errors' squares over their variances
"""

from __future__ import annotations

import numpy as np

from deepforecast.core.state import LearnedState
from deepforecast.data.frames import Floats, Ints

PERFECT_FIT = 1e-9  # of a series' range: errors below are those of a fit that leaves nothing over


def interval_factor(errors: Floats, spreads: Floats, noise_floor: float, previous: tuple[int, float]) -> dict[str, Floats]:
    """`n_errors` and `factor` after these errors with these variances; as `previous` where the fit left errors or nothing moves."""
    n_errors, factor = previous
    is_usable = ~np.isnan(errors) & (spreads > 0)
    moves = np.flatnonzero(np.abs(errors[is_usable]) > noise_floor)  # none of NaN
    if not np.isnan(noise_floor) and (n_errors > 0 or len(moves)):
        standardized = (errors[is_usable] / np.sqrt(spreads[is_usable]))[0 if n_errors > 0 else moves[0] :]
        total = np.hypot.reduce(np.append(factor * np.sqrt(n_errors), standardized))  # whose squares never overflow
        n_errors += len(standardized)
        factor = total / np.sqrt(n_errors)
    return {"since": np.array(n_errors), "swell": np.array(factor)}


def update_interval_factors(learned: LearnedState, errors: Floats, spreads: Floats, indptr: Ints) -> dict[str, Floats]:
    """The same of every series, after rows that follow."""
    n_errors, factor = learned["since"].copy(), learned["swell"].copy()
    for number in np.flatnonzero(~np.isnan(learned["ripple"])):
        rows = slice(indptr[number], indptr[number + 1])
        updated = interval_factor(errors[rows], spreads[rows], learned["ripple"][number], (n_errors[number], factor[number]))
        n_errors[number], factor[number] = updated["since"], updated["swell"]
    return {"since": n_errors, "swell": factor}


def last_observed(y: Floats) -> Floats:
    """The last value that was seen, at each row; the first one before it."""
    observed_rows = np.flatnonzero(~np.isnan(y))
    return np.asarray(y[observed_rows[np.maximum(np.searchsorted(observed_rows, np.arange(len(y)), side="right") - 1, 0)]])
