"""Arithmetic of the baselines on ragged series: whole panels at once, each series as if it stood alone.

A number of one series never depends on another's: what is added is added within a series, in the order of its rows, and a
choice between two ways of reckoning is made for each series by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from deepforecast.data.frames import Floats, Ints

SAFE = (1e-140, 1e140)  # squares of values around here lose nothing that counts, neither to underflow nor to overflow
BLOCK = 250_000  # rows


def reduced(values: Any, begin: Ints, end: Ints, how: Any = np.add) -> Any:
    """A reduction over `values[begin[i]:end[i]]` for each i; 0 where that is empty."""
    found = np.zeros(len(begin), dtype=np.int64 if values.dtype == bool else values.dtype)
    filled = np.flatnonzero(end > begin)
    if len(filled):
        bounds = np.stack([begin[filled], end[filled]], axis=1).reshape(-1)
        if bounds[-1] == len(values):
            bounds = bounds[:-1]
        found[filled] = how.reduceat(values, bounds, dtype=found.dtype)[::2]
    return found


def root_mean_square(values: Floats, begin: Ints, end: Ints, lost: int = 0) -> Floats:
    """Root of the sum of squares over (count - lost) of each stretch, of values of any size; NaN where that is not positive."""
    count = end - begin - lost
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        found: Floats = np.sqrt(reduced(np.square(values), begin, end) / np.maximum(count, 1))
    found[count <= 0] = np.nan
    extreme = np.flatnonzero((found < SAFE[0]) | (found > SAFE[1]))
    if len(extreme):
        found[extreme] = _rescaled(values, begin[extreme], end[extreme], count[extreme])
    return found


def _rescaled(values: Floats, begin: Ints, end: Ints, count: Ints) -> Floats:
    """The same with each stretch brought near 1 by a power of two, which leaves its digits as they are."""
    values, indptr = gathered(values, begin, end)
    begin, end = indptr[:-1], indptr[1:]
    _, power = np.frexp(reduced(np.abs(values), begin, end, np.maximum))
    values = np.ldexp(values, -np.repeat(power, end - begin))
    found: Floats = np.ldexp(np.sqrt(reduced(np.square(values), begin, end) / count), power)
    return found


def root_mean_square_change(values: Floats, indptr: Ints, lag: int) -> Floats:
    """Root mean square of the changes over `lag` rows within each series; NaN where there is none."""
    found = np.empty(len(indptr) - 1)
    for some, block, inside in blocks(values, indptr):
        with np.errstate(over="ignore", invalid="ignore"):
            changes = block[lag:] - block[:-lag]
        found[some] = root_mean_square(changes, inside[:-1], np.maximum(inside[1:] - lag, inside[:-1]))
    return found


def blocks(values: Floats, indptr: Ints) -> Iterator[tuple[slice, Floats, Ints]]:
    """Some series at a time, with their values and bounds: what passes between two steps stays in the processor's cache."""
    starts = np.searchsorted(indptr, np.arange(0, indptr[-1], BLOCK))
    for first, last in pairwise(np.unique([*starts, len(indptr) - 1]).tolist()):
        yield slice(first, last), values[indptr[first] : indptr[last]], indptr[first : last + 1] - indptr[first]


def means(values: Floats, begin: Ints, end: Ints) -> Floats:
    """The mean of each stretch, taken around its first value so that a constant is exact at any level; NaN where it is empty.

    The stretches follow each other and cover all values.
    """
    filled = end > begin
    if not filled.any():
        return np.full(len(begin), np.nan)
    first = np.where(filled, values[np.minimum(begin, len(values) - 1)], np.nan)
    with np.errstate(over="ignore", invalid="ignore"):  # what grows too large is refused where the forecast leaves the model
        away = reduced(values - np.repeat(first, end - begin), begin, end)
        return np.asarray(first + away / np.maximum(end - begin, 1))


def gathered(values: Floats, begin: Ints, end: Ints) -> tuple[Floats, Ints]:
    """Copies of some stretches, one after the other, and their bounds."""
    indptr = np.concatenate([[0], np.cumsum(end - begin)])
    rows = np.arange(indptr[-1]) + np.repeat(begin - indptr[:-1], end - begin)
    return values[rows], indptr


class Observed:
    """The values that are there: compacted, with the rows they stood in."""

    def __init__(self, values: Floats, indptr: Ints) -> None:
        missing = np.isnan(values)
        self.indptr = indptr
        if missing.any():
            self.rows: Ints | None = np.flatnonzero(~missing)
            self.values = values[self.rows]
            self.bounds = np.searchsorted(self.rows, indptr)
        else:
            self.values, self.rows, self.bounds = values, None, indptr
        self.begin, self.end = self.bounds[:-1], self.bounds[1:]
        self.count = self.end - self.begin

    def last(self) -> tuple[Floats, Floats]:
        """The last value of each series and how many rows have passed since (NaN, and all its rows, where there is none)."""
        found, age = np.full(len(self.count), np.nan), np.diff(self.indptr).astype(np.float64)
        there = np.flatnonzero(self.count > 0)
        place = self.end[there] - 1
        found[there] = self.values[place]
        age[there] = 0.0 if self.rows is None else self.indptr[1:][there] - 1 - self.rows[place]
        return found, age

    def steps(self) -> tuple[Floats, Floats | None]:
        """Changes from value to value in the flat array, and the rows each took (None: one); read them by `step_bounds`."""
        with np.errstate(over="ignore"):
            changes = np.diff(self.values)
        return changes, None if self.rows is None else np.diff(self.rows).astype(np.float64)

    def step_bounds(self) -> tuple[Ints, Ints]:
        """Where in `steps` the changes of each series stand."""
        return self.begin, np.maximum(self.end - 1, self.begin)

    def step_deviation(self) -> Floats:
        """Root mean square of the changes from value to value of each series; one over k rows counts with variance k."""
        if self.rows is None:
            return root_mean_square_change(self.values, self.indptr, 1)
        changes, rows = self.steps()
        return root_mean_square(changes if rows is None else changes / np.sqrt(rows), *self.step_bounds())


def by_phase(values: Floats, indptr: Ints, season: int) -> tuple[Floats, Ints]:
    """Every series as `season` series, one a phase; phase 0 is that of the first step ahead. Group `i * season + phase`."""
    lengths = np.diff(indptr)
    first = np.arange(season) + lengths[:, None]  # the rows of a phase are first % season, and every season after it
    counts = -(-(lengths[:, None] - first % season) // season)
    bounds = np.concatenate([[0], np.cumsum(counts)])
    turn, phase = np.divmod(np.arange(len(values)) - np.repeat(indptr[:-1], lengths), season)
    group = np.repeat(np.arange(len(lengths)) * season, lengths) + (phase - np.repeat(lengths, lengths)) % season
    found = np.empty_like(values)
    found[bounds[:-1][group] + turn] = values
    return found, bounds
