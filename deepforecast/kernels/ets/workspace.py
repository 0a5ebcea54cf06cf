"""What the searches work on: the data, the plan of forms, the lanes' desk."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import inner_no_alloc

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ERROR, TREND, DAMPED, SEASON, WIDE_BOUNDS, BARRIER, MEMORY_SLOT, STARTS = range(8)
"""Columns of `forms`. Error: 0 added, 1 multiplied · trend, season: 0 none, 1 added, 2 multiplied · WIDE: within the wide
bounds · FENCE: kept in the admissible region 0 not, 1 always, 2 if the optimum lies outside · SLOT: where the curvature at
the optimum is kept, -1 nowhere · from STARTS on: where searches begin, at the optimum of another form or at a guess."""
GUESS, BOLD, CALM, QUICK, FLAT, STILL, TIED, LOOSE, FIRM, FADING, STEADY = range(-1, -12, -1)
CONTINUE_FREE, OTHER_SEASON, OTHER_TREND, OTHER_LEVEL, NO_START = range(-12, -17, -1)
"""AGAIN continues where the last search ended, with rates that are free. The OTHER starts are the form's best point so far with
one component changed: likelihoods have two maxima mostly with a fixed and a changing season, trend or level."""
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
"""Rates of the guesses, in that order. FLAT has no slope and no season to begin with. From STILL on, rates stay until their
states are found, and AGAIN goes on from there with rates that move: with slow rates far states lead astray."""
MOST_STARTS = 18
LAST_RESORT, WITH_BARRIER = MOST_STARTS, MOST_STARTS + 1  # attempts beyond the starts listed
SERIES, MEMORY_ROW, CANDIDATE, LAST_CANDIDATE, ATTEMPT, LENGTH, HAS_BARRIER = range(7)  # rows of `crew`; PLACE: of the series in `memory`
START_POINT, SQUARED_SCALE, GRADIENT, BUFFER = range(4)  # rows of `work`
OBJECTIVE_COLUMN, EVALUATIONS_COLUMN = -2, -1  # the last two columns of `found`


class ScaledSeries(NamedTuple):
    """Series in units of their spread; a missing value is NaN."""

    y: Floats
    indptr: Ints
    centre: Floats  # what is taken off where everything adds up
    floors: Floats  # (series, 2): of the mean square error, additive and multiplicative
    design: Floats  # (rows, regressors)
    guesses: Floats  # (series, 2, parameters): factors to be added, or to be multiplied; rates that are not sought


class Plan(NamedTuple):
    """Which forms are fitted; a row each."""

    forms: Ints
    present: Ints  # (forms, parameters): 1 where a form has it
    estimated: Ints  # 1 where it is sought
    neutral: Floats  # its value where a form has it not


class Workspace(NamedTuple):
    """Where the lanes work; flat rows of `LANES` numbers, as in `lanes`."""

    trace: Floats
    state: Floats
    initial_state: Floats  # what is held before the first step, of what is not sought
    state_gradient: Floats
    sums: Floats
    lanes: Ints  # (7, LANES)
    value_to_beat: Floats  # (LANES,): a search that does not promise to get below ends early
    work: Floats  # (4, parameters + 2)
    inverse_hessians: Floats  # (places, slots, parameters, parameters): inverse Hessians


@inner_no_alloc
def is_additive(form: Ints) -> bool:
    """Whether the form is the same around any level, so that the series may be centred."""
    return bool(form[ERROR] == 0 and form[TREND] < 2 and form[SEASON] < 2)
