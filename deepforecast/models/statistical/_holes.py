"""Errors of one step after missing values: larger than others, as the states have moved unseen.

A model steps over a missing value as if its error were 0. The true states did move by it, and what they are off by dies out
only as later values are seen: with states x' = F x + g e and y = w'x + e, the covariance P of what they are off by goes on as
F P F' + g g' over a missing row (e of variance 1) and as (F - g w') P (F - g w')' over a seen one, and an error has the
variance 1 + w'P w. Exact where everything adds up; of errors that multiply, in shares, as long as the level moves little.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from deepforecast.data.frames import Floats, Ints

AT_ONCE = 4_000_000  # numbers of covariances held at a time


class States(NamedTuple):
    """Of each series: two states that every row moves and, of a ring of `season` places that stands still, those of its own.

    move (series, k, k): F of the two and those of one place; gain (series, k): g; sees (series, k): w.
    """

    move: Floats
    gain: Floats
    sees: Floats
    season: int


def smoothing(rates: Floats, season: int) -> States:
    """Level, slope and a ring of factors; `rates`: alpha, beta, gamma, phi."""
    alpha, beta, gamma, phi = rates.T
    one, none = np.ones(len(rates)), np.zeros(len(rates))
    move = np.array([[one, phi, none], [none, phi, none], [none, none, one]])
    return States(np.moveaxis(move, -1, 0), np.column_stack([alpha, beta, gamma]), np.column_stack([one, phi, one]), season)


def spread_after_holes(seen: Any, indptr: Ints, states: States) -> Floats:
    """Standard deviation of the error of each row, in those of a row without a hole before it.

    Rows before the first value do not count: what a series begins with is estimated from those that come.
    """
    found, lengths = np.ones(len(seen)), np.diff(indptr)
    first, last = _first_and_last(seen, indptr)
    series = np.flatnonzero(np.add.reduceat(seen.astype(np.int64), indptr[:-1]) < last + 1 - first)
    size = max(AT_ONCE // (2 + states.season * (states.gain.shape[1] - 2)) ** 2, 1)
    for at in range(0, len(series), size):
        some = series[at : at + size]
        into = np.arange(int(lengths[some].max()))
        rows = np.minimum(indptr[some, None] + into, len(seen) - 1)
        there = into < lengths[some, None]
        part = States(states.move[some], states.gain[some], states.sees[some], states.season)
        with np.errstate(over="ignore", invalid="ignore"):  # of states that explode
            variance = _variances(seen[rows] | ~there, first[some], part)
        found[rows[there]] = np.sqrt(np.where(np.isfinite(variance), variance, 1.0)[there])
    return found


def calmer(errors: Floats, evened: Floats, indptr: Ints) -> Floats:
    """The root of the mean square of errors that were evened out so, over that of the errors as they are, of each series."""
    seen = ~np.isnan(errors)
    largest = np.maximum.reduceat(np.where(seen, np.abs(errors), 0.0), indptr[:-1])
    size = np.repeat(np.where(largest > 0.0, largest, 1.0), np.diff(indptr))
    squares = [np.add.reduceat(np.where(seen, one / size, 0.0) ** 2, indptr[:-1]) for one in (errors, evened)]
    return np.where(squares[0] > 0.0, np.sqrt(squares[1] / np.where(squares[0] > 0.0, squares[0], 1.0)), 1.0)


def _first_and_last(seen: Any, indptr: Ints) -> tuple[Ints, Ints]:
    """The first and the last row of each series with a value, counted within it."""
    places = np.flatnonzero(seen)
    first = places[np.minimum(np.searchsorted(places, indptr[:-1]), len(places) - 1)]
    last = places[np.maximum(np.searchsorted(places, indptr[1:]) - 1, 0)]
    return first - indptr[:-1], last - indptr[:-1]


def _variances(seen: Any, first: Ints, states: States) -> Floats:
    """Of the errors of rows, (series, rows)."""
    move, gain, sees, season = states
    found, own = np.ones(seen.shape), gain.shape[1] - 2
    off = np.zeros((len(seen), 2 + season * own, 2 + season * own))
    both = gain[:, :, None] * gain[:, None, :]
    for row in range(seen.shape[1]):
        places = np.concatenate([[0, 1], 2 + own * (row % season) + np.arange(own)])
        across = np.sum(off[:, :, places] * sees[:, None, :], axis=2)
        more = np.sum(across[:, places] * sees, axis=1)
        found[:, row] += more
        across[:, places] = np.sum(move * across[:, None, places], axis=2)
        off[:, places, :] = np.einsum("nij,njk->nik", move, off[:, places, :])
        off[:, :, places] = np.einsum("nki,nji->nkj", off[:, :, places], move)
        known = seen[:, row]
        pull = across[:, :, None] * (gain * known[:, None])[:, None, :]
        off[:, :, places] -= pull
        off[:, places, :] -= pull.swapaxes(1, 2)
        off[:, places[:, None], places] += both * np.where(known, more, row > first)[:, None, None]
    return found
