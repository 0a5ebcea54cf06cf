"""Arrays of the ETS searches: data, plan of forms, workspace of the lanes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import inner_no_alloc

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ERROR, TREND, DAMPED, SEASON, WIDE_BOUNDS, BARRIER, MEMORY_SLOT, STARTS = range(8)
"""Columns of `forms`.

ERROR: 0 additive, 1 multiplicative. TREND, SEASON: 0 none, 1 additive, 2 multiplicative.
WIDE_BOUNDS: whether rates have the wide bounds. BARRIER of the admissible region: 0 never, 1 always,
2 if the optimum without it lies outside. MEMORY_SLOT: of the inverse Hessian at the optimum, -1 none.
From STARTS on: starts of the searches, the index of another form or one of the constants below.
"""
GUESS, BOLD, CALM, QUICK, FLAT, STILL, TIED, LOOSE, FIRM, FADING, STEADY = range(-1, -12, -1)
CONTINUE_FREE, OTHER_SEASON, OTHER_TREND, OTHER_LEVEL, NO_START = range(-12, -17, -1)
"""CONTINUE_FREE continues where the last search ended, with free rates. The OTHER starts are the best
point so far with one component changed: if a likelihood has two maxima, one usually has a fixed and
the other a changing season, trend or level."""
START_RATES = (
    (0.2, 0.02, 0.05, 0.95),
    (0.7, 0.2, 0.25, 0.85),
    (0.02, 0.0005, 0.005, 0.97),
    (0.9, 0.01, 0.01, 0.9),
    (0.3, 0.01, 0.01, 0.9),
    (0.005, 0.0025, 0.005, 0.975),
    (0.04, 0.038, 0.02, 0.97),
    (0.1, 0.01, 0.15, 0.975),
    (0.015, 0.0147, 0.001, 0.979),
    (0.1, 0.05, 0.001, 0.85),
    (0.02, 0.001, 0.001, 0.975),
)
"""Start values of (alpha, beta, gamma, phi) of GUESS to STEADY. FLAT starts without slope and season.
From STILL on the rates are fixed until the states are estimated, then CONTINUE_FREE frees them: with
slow rates, poor initial states mislead the search."""
MOST_STARTS = 18
LAST_RESORT, WITH_BARRIER = MOST_STARTS, MOST_STARTS + 1  # attempts beyond the starts listed
SERIES, MEMORY_ROW, CANDIDATE, LAST_CANDIDATE, ATTEMPT, LENGTH, HAS_BARRIER = range(7)  # rows of `lanes`
START_POINT, SQUARED_SCALE, GRADIENT, BUFFER = range(4)  # rows of `work`
OBJECTIVE_COLUMN, EVALUATIONS_COLUMN = -2, -1  # last columns of `estimates`


class ScaledSeries(NamedTuple):
    """Series in units of their spread, concatenated; a missing value is NaN."""

    y: Floats
    indptr: Ints
    centre: Floats  # (series,): subtracted for additive forms
    floors: Floats  # (series, 2): least mean squared error, additive and multiplicative
    design: Floats  # (rows, regressors)
    guesses: Floats  # (series, 2, parameters): additive, multiplicative season; fixed rates


class Plan(NamedTuple):
    """The forms to fit, one row each."""

    forms: Ints
    present: Ints  # (forms, parameters): 1 if the form has the parameter
    estimated: Ints  # 1 if it is estimated
    neutral: Floats  # its value if the form lacks it


class Workspace(NamedTuple):
    """Work arrays of the lanes; flat rows of `LANES` numbers, as in `recursion`."""

    trace: Floats
    state: Floats
    initial_state: Floats  # parameters that are not estimated
    state_gradient: Floats
    sums: Floats
    lanes: Ints  # (7, LANES)
    value_to_beat: Floats  # (LANES,): searches not expected to get below it end early
    work: Floats  # (4, parameters + 2)
    inverse_hessians: Floats  # (rows, slots, parameters, parameters)


@inner_no_alloc
def is_additive(form: Ints) -> bool:
    """Whether the form is fully additive, so that the series may be centred."""
    return bool(form[ERROR] == 0 and form[TREND] < 2 and form[SEASON] < 2)
