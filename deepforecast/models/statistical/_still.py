"""State spaces of series that the fit left nothing over of: how much wider their bands are once they move.

`ripple`    NaN where the fit left errors; else the size of error from which on the series moves
`since`     how many errors there are since then
`swell`     what standard deviations are multiplied by: the root of the mean of these errors' squares over their variances
"""

from __future__ import annotations

import numpy as np

from deepforecast.core.state import Learned
from deepforecast.data.frames import Floats, Ints

FITTED = 1e-9  # of a series' range: errors below are those of a fit that leaves nothing over


def swollen(errors: Floats, spreads: Floats, ripple: float, before: tuple[int, float]) -> dict[str, Floats]:
    """`since` and `swell` after these errors with these variances; as `before` where the fit left errors or nothing moves."""
    since, swell = before
    some = ~np.isnan(errors) & (spreads > 0)
    moves = np.flatnonzero(np.abs(errors[some]) > ripple)  # none of NaN
    if not np.isnan(ripple) and (since > 0 or len(moves)):
        own = (errors[some] / np.sqrt(spreads[some]))[0 if since > 0 else moves[0] :]
        total = np.hypot.reduce(np.append(swell * np.sqrt(since), own))  # whose squares never overflow
        since += len(own)
        swell = total / np.sqrt(since)
    return {"since": np.array(since), "swell": np.array(swell)}


def swollen_since(learned: Learned, errors: Floats, spreads: Floats, indptr: Ints) -> dict[str, Floats]:
    """The same of every series, after rows that follow."""
    since, swell = learned["since"].copy(), learned["swell"].copy()
    for number in np.flatnonzero(~np.isnan(learned["ripple"])):
        rows = slice(indptr[number], indptr[number + 1])
        found = swollen(errors[rows], spreads[rows], learned["ripple"][number], (since[number], swell[number]))
        since[number], swell[number] = found["since"], found["swell"]
    return {"since": since, "swell": swell}


def last_seen(y: Floats) -> Floats:
    """The last value that was seen, at each row; the first one before it."""
    seen = np.flatnonzero(~np.isnan(y))
    return np.asarray(y[seen[np.maximum(np.searchsorted(seen, np.arange(len(y)), side="right") - 1, 0)]])
