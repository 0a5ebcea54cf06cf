"""What happened since: the spread of series whose fit left nothing over, 0 as long as they go on so, and from the errors since
they do not; and the rows since the last value seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from deepforecast.core.state import Learned
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.models.baselines._arrays import reduced

FITTED = 1e-9  # of a series' range: errors below are those of a fit that leaves nothing over
ROUNDING = 1e-12  # of its values: errors below are no movement


def told(panel: Panel, deviation: Floats) -> dict[str, Any]:
    """Of each series: `deviation` of the errors of the fit, 0 where nothing is left over; `ripple`, NaN where something is,
    else the size of error from which on the series moves; and `since`, how many errors there are since then."""
    largest = _by_series(panel.y, panel.indptr, np.maximum)
    span = largest - _by_series(panel.y, panel.indptr, np.minimum)
    with np.errstate(over="ignore", invalid="ignore"):
        still = deviation * np.sqrt(panel.observed) <= FITTED * span
    ripple = np.where(still, FITTED * span, np.nan)
    return {"deviation": np.where(still, 0.0, deviation), "ripple": ripple, "since": np.zeros(len(panel), np.int64)}


def spread_since(known: Mapping[str, Any], panel: Panel, errors: Floats, fresh: bool) -> dict[str, Any]:
    """`deviation` and `since` after these rows and their errors; fresh: of these alone."""
    still = ~np.isnan(known["ripple"])
    if not still.any():
        return {}
    deviation, since = known["deviation"].copy(), known["since"].copy()
    if fresh:
        deviation[still], since[still] = 0.0, 0
    with np.errstate(over="ignore"):
        limit = known["ripple"] + ROUNDING * _by_series(np.abs(panel.y), panel.indptr, np.maximum)
    moves = still & ((since > 0) | (_by_series(np.abs(errors), panel.indptr, np.maximum) > limit))
    for number in np.flatnonzero(moves):
        own = errors[panel.indptr[number] : panel.indptr[number + 1]]
        own = own[~np.isnan(own)]
        if since[number] == 0:
            own = own[np.argmax(np.abs(own) > limit[number]) :]
        before = deviation[number] * np.sqrt(since[number])
        since[number] += len(own)
        deviation[number] = np.hypot.reduce(np.append(before, own)) / np.sqrt(since[number])  # whose squares never overflow
    return {"deviation": deviation, "since": since}


def rows_since(panel: Panel, age: Ints | None) -> Ints:
    """How many rows at the end of each series are missing: `age` is that before these rows, None where there are none."""
    seen = np.flatnonzero(~np.isnan(panel.y))
    last = np.concatenate([[-1], seen])[np.searchsorted(seen, panel.indptr[1:])]
    before = np.zeros(len(panel), np.int64) if age is None else age
    return np.where(last >= panel.indptr[:-1], panel.indptr[1:] - 1 - last, before + panel.lengths)


def by_age(learned: Learned, compute: Callable[[Learned], Floats]) -> Floats:
    """Compute an array of the series from groups of similar `age`.

    Arrays of (series, age + steps) then need memory in proportion to the sum of the ages; those of all series at once
    would need the longest run of missing values times the number of series.
    """
    magnitude = np.frexp(learned["age"].astype(np.float64))[1]  # ages of a group differ by a factor below 2
    groups = [np.flatnonzero(magnitude == number) for number in np.unique(magnitude)]
    if len(groups) < 2:
        return compute(learned)
    parts = [
        compute(Learned({name: values[group] for name, values in learned.by_series.items()}))
        for group in groups
    ]
    result = np.empty((len(magnitude), *parts[0].shape[1:]))
    for group, values in zip(groups, parts, strict=True):
        result[group] = values
    return result


def _by_series(values: Floats, indptr: Ints, which: Any) -> Floats:
    """The largest or smallest value of each series that is not missing; 0 where there is none."""
    missing = np.isnan(values)
    if missing.any():
        values = np.where(missing, -np.inf if which is np.maximum else np.inf, values)
    found = reduced(values, indptr[:-1], indptr[1:], which)
    return np.where(np.isfinite(found), found, 0.0)
