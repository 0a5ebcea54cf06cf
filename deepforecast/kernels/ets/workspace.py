"""Arrays of the ETS searches: data, plan of forms, workspace of the lanes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import inner_no_alloc
from deepforecast.kernels.ets.recursion import LANES, VALUE, WIDTH_ADDITIVE, WIDTH_ADDITIVE_MEAN, WIDTH_MULTIPLICATIVE

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ERROR, TREND, DAMPED, SEASON, WIDE_BOUNDS, BARRIER, MEMORY_SLOT, STARTS = range(8)
"""Columns of `forms`.

ERROR: 0 additive, 1 multiplicative. TREND, SEASON: 0 none, 1 additive, 2 multiplicative.
WIDE_BOUNDS: 1 if the rates have the wide bounds. BARRIER: a constant below. MEMORY_SLOT: where the
inverse Hessian at the optimum is stored, -1 if it is not. From STARTS on: starts of the searches, each
the index of another form, whose optimum is the start, or one of the negative constants below.
"""
NO_BARRIER, ALWAYS_BARRIER, BARRIER_IF_OUTSIDE = range(3)
"""Barrier of the admissible region; BARRIER_IF_OUTSIDE: only if the optimum without it lies outside."""
GUESS, BOLD, CALM, QUICK, FLAT, STILL, TIED, LOOSE, FIRM, FADING, STEADY = range(-1, -12, -1)
CONTINUE_FREE, OTHER_SEASON, OTHER_TREND, OTHER_LEVEL, NO_START = range(-12, -17, -1)
"""CONTINUE_FREE continues where the last search ended, with free rates. The OTHER starts are the best
point so far with one component changed: if a likelihood has two maxima, one usually has a fixed and
the other a changing season, trend or level. NO_START fills the columns after the last start."""
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
MAX_STARTS = 18  # number of columns from STARTS on
LAST_RESORT, WITH_BARRIER = MAX_STARTS, MAX_STARTS + 1
"""Attempts beyond the starts listed: if all of them failed; if the optimum lies outside the region."""
SERIES, MEMORY_ROW, FORM_INDEX, FORM_END, ATTEMPT, LENGTH, HAS_BARRIER = range(7)
"""Rows of `lanes`: series (-1: idle lane); its row in `inverse_hessians`; form of the current search;
form after the last one to fit; position of the start among those of the form, or one of the attempts
above; time steps of the series; whether the objective includes the barrier."""
START_POINT, SQUARED_SCALE, GRADIENT, BUFFER = range(4)
"""Rows of `work`: start and expected squared distances to the optimum, by coordinate; gradient;
buffer of a parameter vector or polynomial."""
TOLERANCE, EVALUATION_LIMIT, PATIENCE, GAIN_FACTOR = range(4)
"""Elements of `limits`, see `optimization.fit_group`."""
OBJECTIVE_COLUMN, EVALUATIONS_COLUMN = -2, -1  # last columns of `estimates`
CACHE_LINE = 8  # floats per cache line
ZEROING_BLOCK = 2**22  # floats set to 0 at a time


class ScaledSeries(NamedTuple):
    """Series in units of their spread, concatenated; a missing value is NaN."""

    y: Floats
    indptr: Ints
    centre: Floats  # (series,): subtracted for additive forms
    floors: Floats  # (series, 2): smallest mean squared error, additive and multiplicative
    design: Floats  # (time steps of all series, regressors)
    guesses: Floats  # (series, 2, parameters): additive, multiplicative season; with the fixed rates


class Plan(NamedTuple):
    """The forms to fit, one row each."""

    forms: Ints
    present: Ints  # (forms, parameters): 1 if the form has the parameter
    estimated: Ints  # (forms, parameters): 1 if it is estimated
    neutral: Floats  # (forms, parameters): its value if the form lacks it


class Workspace(NamedTuple):
    """Work arrays of the lanes; the first five are flat rows of `LANES` numbers."""

    trace: Floats  # trace, state and state_gradient: see `recursion`
    state: Floats
    initial_state: Floats  # as `state`: start values, of which those not estimated are used
    state_gradient: Floats
    sums: Floats  # see `likelihood`
    lanes: Ints  # (7, LANES)
    value_to_beat: Floats  # (LANES,): searches not expected to get below it end early
    work: Floats  # (4, parameters + 2)
    inverse_hessians: Floats  # (series of a block, slots, parameters, parameters): at the optima of forms


@inner_no_alloc
def is_additive(form: Ints) -> bool:
    """Whether the form is fully additive, so that the series may be centred."""
    return bool(form[ERROR] == 0 and form[TREND] < 2 and form[SEASON] < 2)


def trace_width(form: Ints) -> int:
    """Number of rows of a time step in the trace that the recursion and likelihood of a form use."""
    if form[SEASON] == 2 or form[TREND] == 2:
        return WIDTH_MULTIPLICATIVE
    return WIDTH_ADDITIVE_MEAN if form[ERROR] == 1 else WIDTH_ADDITIVE


def new_workspace(n_steps: int, width: int, n_state: int, n_parameters: int, memory: Floats) -> Workspace:
    """Allocate the arrays of the lanes.

    `n_state` is the number of rates and states; `memory` holds the inverse Hessians. Values in the trace
    start at 1, so that the logarithms of idle lanes are finite.
    """
    trace = _aligned_zeros(n_steps * width * LANES)
    if width > VALUE:
        trace.reshape(n_steps, width, LANES)[:, VALUE] = 1.0
    state, initial_state, state_gradient, sums = (_aligned_zeros(n_rows * LANES) for n_rows in (n_state, n_state, n_state, 7))
    sums[:] = 1.0
    return Workspace(
        trace,
        state,
        initial_state,
        state_gradient,
        sums,
        lanes=np.zeros((7, LANES), np.int64),
        value_to_beat=np.zeros(LANES),
        work=np.zeros((4, n_parameters + 2)),
        inverse_hessians=memory,
    )


def _aligned_zeros(n_values: int) -> Floats:
    """Zeros aligned to a cache line; without alignment vector code takes up to 50 % longer."""
    buffer = np.empty(n_values + CACHE_LINE)
    for begin in range(0, len(buffer), ZEROING_BLOCK):  # touch the pages here, where Ctrl-C is handled, not in a kernel
        buffer[begin : begin + ZEROING_BLOCK] = 0.0
    offset = -(buffer.ctypes.data // buffer.itemsize) % CACHE_LINE
    return buffer[offset : offset + n_values]
