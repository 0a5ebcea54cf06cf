"""Missing values from the seasons and the line of those seen, so that a season goes on through a gap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from deepforecast.data.frames import Floats, Ints
from deepforecast.data.missing import filled
from deepforecast.models.baselines._arrays import reduced

ROUNDS = 30  # over seasons of which none holds the others, most often a few are enough
SETTLED = 1e-12  # of the largest value


class Rows(NamedTuple):
    """The rows of some series: values (NaN: missing), series, and row within it."""

    y: Floats
    series: Ints
    into: Ints
    indptr: Ints


def filled_by_seasons(y: Floats, indptr: Ints, lengths: Sequence[int], cycles: int) -> Floats:
    """Values without gaps: the seasons and the line that fit those seen best, and straight lines for what these leave over.

    A season is that of a series of at least so many `cycles`, with values enough to tell it from a line; without any season
    it is straight lines alone, level at the ends. Exact for seasons on a line.
    """
    plain = filled(y, indptr, "interpolate")
    missing, counts = np.isnan(y), np.diff(indptr)
    longest = [length for length in sorted(set(lengths), reverse=True) if length > 1]
    some = reduced(missing, indptr[:-1], indptr[1:]) > 0
    some &= counts >= cycles * min(longest, default=len(y) + 1)
    inside = np.repeat(some, counts)
    if not inside.any():
        return plain
    bounds = np.concatenate([[0], np.cumsum(counts[some])])
    series = np.repeat(np.arange(len(bounds) - 1), counts[some])
    base = reduced(np.nan_to_num(plain), indptr[:-1], indptr[:-1] + 1)[some][series]  # so that a constant stays one
    with np.errstate(over="ignore", invalid="ignore"):
        rows = Rows(y[inside] - base, series, np.arange(len(series)) - bounds[:-1][series], bounds)
        smooth = _seasons_and_line(rows, longest, cycles)
        found = filled(rows.y - smooth, bounds, "interpolate") + smooth + base
    plain[inside] = np.where(missing[inside] & np.isfinite(found), found, plain[inside])
    return plain


def _seasons_and_line(rows: Rows, longest: Sequence[int], cycles: int) -> Floats:
    """Least squares, one season with the line after the other, each series until nothing changes: whatever others do."""
    parts, line, largest = np.zeros((len(longest), len(rows.y))), np.zeros(len(rows.y)), np.nan_to_num(np.abs(rows.y))
    limit = SETTLED * reduced(largest, rows.indptr[:-1], rows.indptr[1:], np.maximum)
    moves = np.ones(len(limit), dtype=bool)
    for _ in range(ROUNDS if len(longest) > 1 else 1):
        moved, here = np.zeros(len(limit)), moves[rows.series]
        for number, length in enumerate(longest):
            before = parts[number].copy()
            season, drawn = _season_and_line(rows, parts.sum(axis=0) - before, line, length, cycles)
            parts[number], line = np.where(here, season, before), np.where(here, drawn, line)
            change = np.abs(parts[number] - before)
            moved = np.maximum(moved, reduced(change, rows.indptr[:-1], rows.indptr[1:], np.maximum))
        moves &= moved > limit
        if not moves.any():
            break
    return np.asarray(parts.sum(axis=0) + line)


def _season_and_line(rows: Rows, others: Floats, line: Floats, length: int, cycles: int) -> tuple[Floats, Floats]:
    """A season, 0 in the mean, and the line that fit best what the other seasons leave over; where there is no telling, the
    season is 0 and the line stays."""
    seen, size = ~np.isnan(rows.y), len(rows.indptr) - 1
    key = rows.series * length + rows.into % length
    at, own, left, into = key[seen], rows.series[seen], (rows.y - others)[seen], rows.into[seen].astype(np.float64)
    count = np.bincount(at, minlength=size * length)
    mean, row = (np.bincount(at, of, size * length) / np.maximum(count, 1) for of in (left, into))
    away = into - row[at]
    squares = np.bincount(own, away * away, size)
    slope = np.bincount(own, away * (left - mean[at]), size) / np.where(squares > 0, squares, 1.0)
    held = count.reshape(size, length) > 0
    index = (mean - np.repeat(slope, length) * row).reshape(size, length)
    index -= np.where(held, index, 0.0).sum(axis=1, keepdims=True) / np.maximum(held.sum(axis=1, keepdims=True), 1)
    told = (count.reshape(size, length).sum(axis=1) >= held.sum(axis=1) + 2) & (np.diff(rows.indptr) >= cycles * length)
    places = np.arange(length)
    for number in np.flatnonzero(told & ~held.all(axis=1)):  # places never seen lie between their neighbours
        index[number] = np.interp(places, places[held[number]], index[number, held[number]], period=length)
    told_rows = told[rows.series]
    return np.where(told_rows, index.reshape(-1)[key], 0.0), np.where(told_rows, slope[rows.series] * rows.into, line)
