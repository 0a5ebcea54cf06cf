"""Estimation of complex exponential smoothing by Levenberg-Marquardt, 16 series at a time.

A lane fits the forms of a series in turn: partial; full from the optimum of partial, a special case
of it; then none and simple, abandoned early if they are far behind. With the residuals e, their
Jacobian J from `complex_gradient`, and a secant correction C of second order, a step solves

    (J'J + C + damping diag(J'J)) step = -J'e

so that each step takes one evaluation. Lanes end on the same row; a finished lane takes the next
series.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.arrays import as_read_only
from deepforecast.kernels.ces import FULL, NONE, PARTIAL, SIMPLE, fill_gains, set_initial_states
from deepforecast.kernels.compilation import compile_notice, compiled_no_alloc, inlined, inner_no_alloc
from deepforecast.kernels.complex_gradient import INITIAL, LANES, QUANTITIES, STATE, evaluate

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

MAX_EVALUATIONS = 60  # per search
RELATIVE_TOLERANCE = 1e-7  # relative gain in the sum of squares
DAMPING_GROWTH = 10.0  # factor of the damping after a rejected step
UPDATE_DAMPING = 0.1  # damping below which steps update the correction
STABILITY_MARGIN = 1e-4  # distance of parameters to the boundary of the stable region
MIN_SEASON_GAIN, MAX_SEASON_GAIN = 0.0, 1.0  # bounds of p0 of a real season
ORDER = np.array([PARTIAL, FULL, NONE, SIMPLE])
START_PARAMETERS = np.array([[1.3, 1.0, 0.0, 0.0], [0.0, 0.0, 1.3, 1.0], [1.3, 1.0, 0.1, 0.0], [1.3, 1.0, 1.3, 1.0]])
"""Start parameters (level p0, p1, season p0, p1) by form."""
PATIENCE, MAX_RATIO = 5, 1.5  # evaluations, ratio of the squares to another form's: then abandoned
TRIAL, BEST, STATUS, PRODUCTS, CORRECTION, SYSTEM = 0, 1, 2, 3, 7, 11
"""Rows of a search (19, 5): trial parameters; best parameters; status, below; J'J and -J'e at the best
(4 rows); second-order correction of J'J (4); linear system (4) and its copy (4)."""
MIN_SQUARES, DAMPING, GROWTH, MIN_SQUARES_OF_OTHERS, N_EVALUATIONS = range(5)
"""Elements of STATUS: least squares so far, damping, its growth, least of other forms, evaluations."""
ROWS_PER_CALL = 2**19
"""Rows per call, about a second: Python handles Ctrl-C between calls."""
N_STARTED, N_DONE = range(2)  # series of the plan, in `progress`
PLAN_ROW, FORM_COLUMN, FIRST_ROW = range(3)
"""Rows of `lanes`: row of the series in the plan, -1 for none; column of its form; first row."""
STABILITY_CIRCLES = np.array([[1.5, 0.5, math.sqrt(1.5)], [0.5, 1.0, -0.5], [2.5, 0.0, -math.sqrt(1.25)]])
"""Stable region of a pair (p0, p1): centre and radius of circles; negative: outside the circle."""


class Workspace(NamedTuple):
    """Work arrays of the searches."""

    rows: Floats  # (2, rows + 1, LANES), states (4, 1 + m, STATE): as `evaluate` has them
    states: Floats
    gains: Floats  # (14 * LANES,)
    errors: Floats  # (QUANTITIES * LANES,)
    products: Floats  # (QUANTITIES * QUANTITIES * LANES,)
    searches: Floats  # (LANES, 19, 5)
    lanes: Ints  # (3, LANES)
    initial_states: Floats  # (1 + m, 2): level and season of one series, and its gains
    lane_gains: Floats


def estimate(y: Floats, indptr: Ints, index: Floats, forms: Bools) -> tuple[Floats, Floats]:
    """Parameters (series, 4, 4) and sums of squares (series, 4) of the requested `forms` (series,
    4).

    NaN for other forms and for forms abandoned far behind another. The full form requires the
    partial one. `index`: initial seasonal indices (series, m; that of the first row first).
    """
    lengths, estimates = np.diff(indptr), np.full((len(indptr) - 1, 4, 5), np.nan)
    queue = np.argsort(-lengths, kind="stable")  # so that lanes have similar lengths
    form_ranks = np.sort(np.where(forms[:, ORDER], np.arange(4), 4), axis=1)
    # The forms of each series, -1 after the last.
    plan = np.append(ORDER, -1)[np.pad(form_ranks, [(0, 0), (0, 1)], constant_values=4)]
    plan = np.column_stack([queue, plan[queue]])[plan[queue, 0] >= 0]
    workspace, progress = _new_workspace(int(lengths.max()), index.shape[1]), np.zeros(2, np.int64)
    with compile_notice("complex exponential smoothing"):
        while progress[N_DONE] < len(plan):
            _search(as_read_only(y), indptr, index, plan, workspace, progress, estimates)
    return np.ascontiguousarray(estimates[:, :, :4]), estimates[:, :, 4]


def _new_workspace(rows: int, season: int) -> Workspace:
    lanes = np.zeros((3, LANES), np.int64)
    lanes[PLAN_ROW], lanes[FIRST_ROW] = -1, rows
    values, states = np.zeros((2, rows + 1, LANES)), np.zeros((4, 1 + season, STATE))
    work = np.zeros(14 * LANES), np.zeros(QUANTITIES * LANES), np.zeros(QUANTITIES * QUANTITIES * LANES)
    return Workspace(values, states, *work, np.zeros((LANES, 19, 5)), lanes, np.empty((1 + season, 2)), np.empty(14))


@compiled_no_alloc
def _search(
    y: Floats, indptr: Ints, index: Floats, plan: Ints, workspace: Workspace, progress: Ints, estimates: Floats
) -> None:
    """Search until the plan is done or `ROWS_PER_CALL` rows are evaluated; resumes at `progress`."""
    rows, states, lane_major_gains, errors, products, searches, lanes, initial_states, lane_gains = workspace
    n_started, n_done, evaluated = progress[N_STARTED], progress[N_DONE], 0
    while n_done < len(plan) and evaluated < ROWS_PER_CALL:
        for lane in range(LANES):
            lane_search, plan_row = searches[lane], lanes[PLAN_ROW, lane]
            starts_form = plan_row >= 0 and lane_search[STATUS, N_EVALUATIONS] >= MAX_EVALUATIONS
            if starts_form:
                lanes[FORM_COLUMN, lane] += 1
                if plan[plan_row, lanes[FORM_COLUMN, lane]] < 0:
                    plan_row, starts_form = -1, False
                    lanes[FIRST_ROW, lane] = rows.shape[1] - 1
                    n_done += 1
            if plan_row < 0 and n_started < len(plan):
                plan_row, starts_form = n_started, True
                lanes[FORM_COLUMN, lane] = 1
                lane_search[STATUS, MIN_SQUARES_OF_OTHERS] = np.inf
                n_started += 1
            lanes[PLAN_ROW, lane] = plan_row
            if starts_form:
                series = plan[plan_row, 0]
                values = y[indptr[series] : indptr[series + 1]]
                lanes[FIRST_ROW, lane] = _load_series(values, lane, rows)
                _begin_search(plan[plan_row, lanes[FORM_COLUMN, lane]], lane_search, estimates[series, PARTIAL])
                set_initial_states(
                    values, plan[plan_row, lanes[FORM_COLUMN, lane]], index[series], initial_states[0], initial_states[1:]
                )
                _load_states(initial_states, lanes[FIRST_ROW, lane], lane, states[INITIAL])
            if plan_row >= 0:
                fill_gains(plan[plan_row, lanes[FORM_COLUMN, lane]], lane_search[TRIAL], lane_gains)
            for row in range(14):
                lane_major_gains[row * LANES + lane] = lane_gains[row] if plan_row >= 0 else 0.0
        evaluate(rows, lanes[FIRST_ROW], states, lane_major_gains, errors, products)
        evaluated += rows.shape[1]
        for lane in range(LANES):
            plan_row = lanes[PLAN_ROW, lane]
            if plan_row >= 0:
                form = plan[plan_row, lanes[FORM_COLUMN, lane]]
                if _advance_search(form, products[lane:], searches[lane]):
                    _store_best(searches[lane], estimates[plan[plan_row, 0], form])
    progress[N_STARTED], progress[N_DONE] = n_started, n_done


@inner_no_alloc
def _load_series(values: Floats, lane: int, rows: Floats) -> int:
    """Copy a series to a lane, aligned at the last row; return its first row."""
    last: int = rows.shape[1] - 1
    begin = last - len(values)
    for t in range(last):
        value = values[t - begin] if t >= begin else np.nan
        is_observed = not math.isnan(value)
        rows[0, t, lane], rows[1, t, lane] = value if is_observed else 0.0, 1.0 if is_observed else 0.0
    return begin


@inner_no_alloc
def _load_states(initial_states: Floats, begin: int, lane: int, state: Floats) -> None:
    """Copy the initial states of a form to a lane."""
    period = len(initial_states) - 1
    for row in range(period + 1):
        slot = 1 + (begin + row - 1) % period if row > 0 else 0
        state[slot, lane], state[slot, LANES + lane] = initial_states[row, 0], initial_states[row, 1]


@inner_no_alloc
def _begin_search(form: int, search: Floats, partial: Floats) -> None:
    """Start the search of the next form of a lane."""
    status, trial = search[STATUS], search[TRIAL]
    status[MIN_SQUARES] = np.inf
    status[DAMPING] = 1e-3
    status[GROWTH] = DAMPING_GROWTH
    status[N_EVALUATIONS] = 0.0
    for number in range(4):
        trial[number] = START_PARAMETERS[form, number]
    if form == FULL:  # a partial season is a full one with p1 = 1
        trial[0] = partial[0]
        trial[1] = partial[1]
        trial[2] = 1.0 + max(partial[2], 2.0 * STABILITY_MARGIN)


@inner_no_alloc
def _store_best(search: Floats, estimate: Floats) -> None:
    status = search[STATUS]
    status[N_EVALUATIONS] = MAX_EVALUATIONS
    status[MIN_SQUARES_OF_OTHERS] = min(status[MIN_SQUARES_OF_OTHERS], status[MIN_SQUARES])
    for number in range(4):
        estimate[number] = search[BEST, number]
    estimate[4] = status[MIN_SQUARES]


# -- an evaluation of all lanes ------------------------------------------------------------------------------------------------


@inlined
def _advance_search(form: int, products: Floats, search: Floats) -> bool:
    """Process the products at the trial point and set the next trial; True if converged."""
    squares, status, trial, best = products[0], search[STATUS], search[TRIAL], search[BEST]
    least = status[MIN_SQUARES]
    first, is_better = not math.isfinite(least), math.isfinite(squares) and squares < least
    status[N_EVALUATIONS] += 1.0
    if is_better:
        _update_curvature(products, search)
    for number in range(4):
        for column in range(4):
            if first or not is_better:  # nothing to compare with, or what was learned misled
                search[CORRECTION + number, column] = 0.0
        if first or is_better:
            best[number] = trial[number]
    if is_better:
        status[MIN_SQUARES] = squares
        if status[GROWTH] == DAMPING_GROWTH:  # not just after a step that was too long
            status[DAMPING] = max(status[DAMPING] * 0.1, 1e-9)
        status[GROWTH] = DAMPING_GROWTH
        if squares == 0.0 or least - squares < RELATIVE_TOLERANCE * least:
            return True
    else:
        status[DAMPING] = max(status[DAMPING] * status[GROWTH], 1e-2)
        status[GROWTH] *= 2.0
    # So far that it need not be followed.
    behind = status[N_EVALUATIONS] >= PATIENCE and status[MIN_SQUARES] > MAX_RATIO * status[MIN_SQUARES_OF_OTHERS]
    if behind or status[N_EVALUATIONS] >= MAX_EVALUATIONS or status[DAMPING] > 1e8:
        return True
    distance, has_step = 0.0, is_better or not first
    if has_step:
        _set_step(form, search)
    for number in range(4):  # on; or, if there was not even a beginning, a plainer one
        trial[number] = (
            best[number] + min(max(search[SYSTEM + number, 4], -1.0), 1.0) if has_step else START_PARAMETERS[form, number]
        )
    if has_step:
        _project_to_stable(form, trial)
    for number in range(4):
        distance = max(distance, abs(trial[number] - best[number]))
    return distance <= 1e-9


@inner_no_alloc
def _update_curvature(products: Floats, search: Floats) -> None:
    """Take in the products at a new point; and, from how the gradient changed (a symmetric rank one update), what they lack to
    be the second derivatives, which is much where the errors are large."""
    trial, best, secant_error = search[TRIAL], search[BEST], search[SYSTEM]
    along, size, length = 0.0, 0.0, 0.0
    for i in range(4):
        gradient = products[(i + 1) * LANES]
        secant_error[i] = gradient + search[PRODUCTS + i, 4]
        search[PRODUCTS + i, 4] = -gradient
        for j in range(i, 4):
            product = products[((i + 1) * QUANTITIES + j + 1) * LANES]
            search[PRODUCTS + i, j], search[PRODUCTS + j, i] = product, product
    for i in range(4):
        step = trial[i] - best[i]
        for j in range(4):
            secant_error[i] -= (search[PRODUCTS + i, j] + search[CORRECTION + i, j]) * (trial[j] - best[j])
        along += secant_error[i] * step
        size, length = size + secant_error[i] * secant_error[i], length + step * step
    if search[STATUS, DAMPING] < UPDATE_DAMPING and along * along > 1e-8 * size * length:
        for i in range(4):
            for j in range(4):
                search[CORRECTION + i, j] += secant_error[i] * secant_error[j] / along


@inlined
def _set_step(form: int, search: Floats) -> None:
    """A damped Gauss-Newton step, along the edge of the region of stability where it would leave it."""
    equations = search[SYSTEM + 4 :]
    for row in range(4):
        for column in range(5):
            equations[row, column] = search[PRODUCTS + row, column] + search[CORRECTION + row, column]
        equations[row, row] += search[STATUS, DAMPING] * search[PRODUCTS + row, row]
        if equations[row, row] == 0.0:
            equations[row, row] = 1.0  # a parameter that plays no part
    is_clamped = False
    for _ in range(5):
        _solve(equations, search[SYSTEM : SYSTEM + 4])
        changed = False
        if form == PARTIAL and not is_clamped:
            step, value = search[SYSTEM + 2, 4], search[BEST, 2]
            if (value >= MAX_SEASON_GAIN and step > 0.0) or (value <= MIN_SEASON_GAIN and step < 0.0):
                equations[2, 2] += 1e12 * search[PRODUCTS + 2, 2]
                is_clamped, changed = True, True
        for number in range(6):  # of the circles around both pairs
            if _is_complex(form, number // 3):
                changed = _follow_boundary(search, equations, number) or changed
        if not changed:
            return


@inner_no_alloc
def _is_complex(form: int, pair: int) -> bool:
    """Whether the first or second pair of parameters is complex; NONE has the first only."""
    return form == pair if form < PARTIAL else form == FULL or pair == 0


@inner_no_alloc
def _follow_boundary(search: Floats, equations: Floats, number: int) -> bool:
    """Let a step that leaves through a boundary circle follow its arc; True if it did."""
    first, circle = number // 3 * 2, STABILITY_CIRCLES[number % 3]
    second = first + 1
    x, z = search[BEST, first] - circle[0], search[BEST, second] - circle[1]
    distance = math.sqrt(x * x + z * z)
    if abs(distance - abs(circle[2] - STABILITY_MARGIN)) > 1e-7:
        return False
    x, z = x / distance, z / distance
    first_step, second_step = search[SYSTEM + first, 4], search[SYSTEM + second, 4]
    if (x * first_step + z * second_step) * circle[2] <= 1e-9 * (abs(first_step) + abs(second_step)):
        return False
    penalty = 1e12 * (search[PRODUCTS + first, first] + search[PRODUCTS + second, second])
    # The arc turns away from the tangent.
    curvature = (x * search[PRODUCTS + first, 4] + z * search[PRODUCTS + second, 4]) / distance
    cross_term = (penalty - curvature) * x * z
    equations[first, first] += penalty * x * x + curvature * z * z
    equations[first, second] += cross_term
    equations[second, first] += cross_term
    equations[second, second] += penalty * z * z + curvature * x * x
    return True


@inner_no_alloc
def _solve(equations: Floats, system: Floats) -> None:
    """Four equations, worked on in a second place, where what solves them takes the place of the right sides."""
    size = len(equations)  # not known beforehand: loops over known numbers are unrolled, which takes long to compile
    for row in range(size):
        for column in range(size + 1):
            system[row, column] = equations[row, column]
    for row in range(size):
        for target_row in range(size):
            if target_row != row:
                multiplier = system[target_row, row] / system[row, row]
                for column in range(row, size + 1):
                    system[target_row, column] -= multiplier * system[row, column]
    for row in range(size):
        system[row, size] /= system[row, row]


@inner_no_alloc
def _project_to_stable(form: int, trial: Floats) -> None:
    """Project parameters to the stable region: inside one circle, outside two."""
    if form == PARTIAL:
        trial[2] = min(max(trial[2], MIN_SEASON_GAIN), MAX_SEASON_GAIN)
    for number in range(18):  # three times around each pair
        if _is_complex(form, number // 9):
            _project_to_circle(trial, number // 9 * 2, number % 3)


@inner_no_alloc
def _project_to_circle(trial: Floats, first: int, circle: int) -> None:
    x, z, radius = (
        trial[first] - STABILITY_CIRCLES[circle, 0],
        trial[first + 1] - STABILITY_CIRCLES[circle, 1],
        STABILITY_CIRCLES[circle, 2],
    )
    distance, edge = math.sqrt(x * x + z * z), abs(radius - STABILITY_MARGIN)
    if (distance - edge) * radius > 0.0 and distance > 0.0:
        trial[first], trial[first + 1] = (
            STABILITY_CIRCLES[circle, 0] + x * edge / distance,
            STABILITY_CIRCLES[circle, 1] + z * edge / distance,
        )
