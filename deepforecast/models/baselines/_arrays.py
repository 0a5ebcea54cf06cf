"""Arithmetic of the baselines on ragged series (`values`, `indptr`): whole panels at once, each series as if it stood alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from deepforecast.data.frames import Floats, Ints

SAFE = (1e-140, 1e140)  # squares of values in this range neither overflow nor vanish


def reduced(values: Any, begin: Ints, end: Ints, how: Any = np.add) -> Any:
    """A reduction over `values[begin[i]:end[i]]` for each i; 0 where that is empty. Each stretch is summed as if it stood alone."""
    found = np.zeros(len(begin), dtype=np.int64 if values.dtype == bool else values.dtype)
    filled = np.flatnonzero(end > begin)
    if len(filled):
        bounds = np.stack([begin[filled], end[filled]], axis=1).reshape(-1)
        if bounds[-1] == len(values):
            bounds = bounds[:-1]
        found[filled] = how.reduceat(values, bounds, dtype=found.dtype)[::2]
    return found


def root_mean_square(values: Floats, begin: Ints, end: Ints, lost: int = 0) -> Floats:
    """Root of the sum of squares over (count - lost) for each stretch; NaN where that count is not positive."""
    largest = reduced(np.abs(values), begin, end, np.maximum)
    scale = np.where((largest > 0) & ((largest < SAFE[0]) | (largest > SAFE[1])), np.exp2(np.floor(np.log2(largest, where=largest > 0, out=np.zeros_like(largest)))), 1.0)
    if (scale != 1).any():  # a power of two, so that the digits stay as they are
        spread = np.ones(len(values))
        for one in np.flatnonzero(scale != 1):
            spread[begin[one] : end[one]] = 1 / scale[one] if scale[one] < 1e300 else 2.0**-1000
        scale = np.where(scale < 1e300, scale, 2.0**1000)
        values = values * spread
    count = end - begin - lost
    mean = reduced(values * values, begin, end) / np.maximum(count, 1)
    return np.where(count > 0, scale * np.sqrt(mean), np.nan)


def means(values: Floats, begin: Ints, end: Ints) -> Floats:
    """The mean of each stretch, taken around its first value so that a constant is exact at any level; NaN where it is empty."""
    filled = end > begin
    first = np.where(filled, values[np.minimum(begin, len(values) - 1)], np.nan)
    lengths = np.where(filled, end - begin, 0)
    away = values - spread_over(first, begin, end, len(values))
    return first + reduced(away, begin, end) / np.maximum(lengths, 1)


def spread_over(per_series: Floats, begin: Ints, end: Ints, rows: int) -> Floats:
    """`per_series[i]` in rows `begin[i]:end[i]`, which follow each other and cover all rows."""
    return np.repeat(per_series, end - begin) if int((end - begin).sum()) == rows else _scattered(per_series, begin, end, rows)


def _scattered(per_series: Floats, begin: Ints, end: Ints, rows: int) -> Floats:
    found = np.zeros(rows)
    lengths = end - begin
    place = np.arange(int(lengths.sum())) + np.repeat(begin - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    found[place] = np.repeat(per_series, lengths)
    return found


class Observed:
    """The values that are there: compacted, with the rows they stood in."""

    def __init__(self, values: Floats, indptr: Ints) -> None:
        there = ~np.isnan(values)
        self.indptr = indptr
        if there.all():
            self.values, self.rows, self.bounds = values, None, indptr
        else:
            self.rows = np.flatnonzero(there)
            self.values = values[self.rows]
            self.bounds = np.searchsorted(self.rows, indptr)
        self.begin, self.end = self.bounds[:-1], self.bounds[1:]
        self.count = self.end - self.begin

    def last(self) -> tuple[Floats, Floats]:
        """The last value of each series and how many rows have passed since (NaN, and all its rows, where there is none)."""
        place = np.maximum(self.end - 1, 0)
        values = np.where(self.count > 0, self.values[np.minimum(place, len(self.values) - 1)], np.nan)
        if self.rows is None:
            return values, np.zeros(len(values))
        age = self.indptr[1:] - 1 - self.rows[np.minimum(place, len(self.rows) - 1)]
        return values, np.where(self.count > 0, age, np.diff(self.indptr)).astype(np.float64)

    def steps(self) -> tuple[Floats, Floats | None]:
        """Changes from value to value in the flat array, and the rows each took (None: one); read `begin` to `end - 1` of them."""
        changes = np.diff(self.values)
        return changes, None if self.rows is None else np.diff(self.rows).astype(np.float64)

    def step_bounds(self) -> tuple[Ints, Ints]:
        """Where in `steps` the changes of each series stand."""
        return self.begin, np.maximum(self.end - 1, self.begin)


def by_phase(values: Floats, indptr: Ints, season: int) -> tuple[Floats, Ints]:
    """Every series as `season` series, one a phase; phase 0 is that of the first step ahead. Group `i * season + phase`."""
    lengths = np.diff(indptr)
    into = np.arange(len(values)) - np.repeat(indptr[1:], lengths)  # -1 is the last row
    group = np.repeat(np.arange(len(lengths)), lengths) * season + into % season
    order = np.argsort(group, kind="stable")
    counts = np.bincount(group, minlength=len(lengths) * season)
    return values[order], np.concatenate([[0], np.cumsum(counts)])
