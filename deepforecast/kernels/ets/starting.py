"""First guesses of the states before a series: a season from its first turns, a line through its first values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compiling import bare, lean, part
from deepforecast.kernels.ets.lanes import NOTHING

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TURNS = 5  # of a season that are looked at
FEWEST = 10  # values a line is laid through


@lean
def guess_all(y: Floats, seen: Floats, indptr: Ints, season: int, guesses: Floats) -> None:
    """`guesses` (series, 2, 2 + season): level, slope and factors, of which 0 are to be added and 1 multiplied."""
    for i in range(len(indptr) - 1):
        begin, end = indptr[i], indptr[i + 1]
        for product in range(2):
            states = guesses[i, product]
            _season(y[begin:end], seen[begin:end], season, product == 1, states[2:])
            _line(y[begin:end], seen[begin:end], season, product == 1, states)


@part
def _season(y: Floats, seen: Floats, season: int, product: bool, factors: Floats) -> None:
    """The mean distance of each place of the season from its turn's mean, which moves along a line from turn to turn."""
    for j in range(season):
        factors[j] = 1.0 if product else 0.0
    turns = min(len(y) // season, TURNS)
    for t in range(turns * season):
        if seen[t] == 0.0:
            turns = t // season  # a turn with holes in it does not tell its mean
            break
    if season == 1 or turns < 1:
        return
    rise = (_mean(y, season, turns - 1) - _mean(y, season, NOTHING)) / (max(turns - 1, 1) * season)
    total = 0.0
    for turn in range(turns):
        middle = _mean(y, season, turn)
        for j in range(season):
            mean, value = middle + rise * (j - 0.5 * (season - 1)), y[turn * season + j]
            away = value - mean
            if product:
                away = value / mean - 1.0 if mean > 0.0 and value > 0.0 else 0.0
            factors[j] += away / turns
            total += away / turns
    for j in range(season):
        factors[j] = factors[j] * season / (season + total) if product else factors[j] - total / season


@bare
def _mean(y: Floats, season: int, turn: int) -> float:
    total = 0.0
    for j in range(season):
        total += y[turn * season + j]
    return total / season


@part
def _line(y: Floats, seen: Floats, season: int, product: bool, states: Floats) -> None:
    """Least squares through the first values without their season; the level is that before the first."""
    most = max(FEWEST, 2 * season)
    count, time, value, square, cross = 0.0, 0.0, 0.0, 0.0, 0.0
    for t in range(len(y)):
        if seen[t] > 0.0:
            factor = states[2 + t % season]
            level = y[t] / factor if product else y[t] - factor
            count += 1.0
            time += t + 1.0
            value += level
            square += (t + 1.0) * (t + 1.0)
            cross += (t + 1.0) * level
            if count == most:
                break
    spread = square - time * time / count
    states[1] = (cross - time * value / count) / spread if count > 1.0 else 0.0
    states[0] = (value - states[1] * time) / count
