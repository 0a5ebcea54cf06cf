"""Estimation of complex exponential smoothing by Levenberg-Marquardt, 16 series at a time.

A lane fits the forms of a series in turn: partial; full from the optimum of partial, a special case
of it; then none and simple, abandoned early if they are far behind. With the residuals e, their
Jacobian J from `complex_gradient`, and a secant correction C of second order (symmetric rank-one
update, Nocedal & Wright 2006, section 6.2), a step solves

    (J'J + C + damping diag(J'J)) step = -J'e

so that each step takes one evaluation. Steps that would leave the stable region follow its boundary.
Series end at the same step of the work arrays; a finished lane takes the next series.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.arrays import as_read_only
from deepforecast.kernels.ces import FULL, N_GAINS, NONE, PARTIAL, SIMPLE, fill_gains, set_initial_states
from deepforecast.kernels.compilation import compile_notice, compiled_no_alloc, inlined, inner_no_alloc
from deepforecast.kernels.complex_gradient import INITIAL, LANES, QUANTITIES, STATE, evaluate

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

MAX_EVALUATIONS = 60  # largest number of evaluations per search; a finished search has this number
RELATIVE_TOLERANCE = 1e-7  # relative gain in the sum of squares at convergence
STEP_TOLERANCE = 1e-9  # largest change of a parameter at convergence
DAMPING_GROWTH = 10.0  # factor of the damping after the first of several rejected steps
UPDATE_DAMPING = 0.1  # damping below which steps update the correction
START_DAMPING, MIN_DAMPING, MAX_DAMPING = 1e-3, 1e-9, 1e8
REJECTED_DAMPING = 1e-2  # smallest damping after a rejected step
STABILITY_MARGIN = 1e-4  # distance of parameters to the boundary of the stable region
MIN_SEASON_GAIN, MAX_SEASON_GAIN = 0.0, 1.0  # bounds of p0 of a real season
ORDER = np.array([PARTIAL, FULL, NONE, SIMPLE])  # order of the searches of a series
START_PARAMETERS = np.array([[1.3, 1.0, 0.0, 0.0], [0.0, 0.0, 1.3, 1.0], [1.3, 1.0, 0.1, 0.0], [1.3, 1.0, 1.3, 1.0]])
"""Start parameters (level p0, p1, season p0, p1) by form."""
MIN_EVALUATIONS, MAX_RATIO = 5, 1.5
"""A search is abandoned if after MIN_EVALUATIONS its sum of squares exceeds MAX_RATIO times that of another form."""
TRIAL = 0
BEST = 1
STATUS = 2
PRODUCTS = 3
CORRECTION = 7
SYSTEM = 11
"""Rows of a search (19, 5): trial parameters; best parameters; status, below; J'J and -J'e at the best
(4 rows); second-order correction of J'J (4); linear system (4) and its copy (4)."""
MIN_SQUARES, DAMPING, GROWTH, MIN_SQUARES_OF_OTHERS, N_EVALUATIONS = range(5)
"""Elements of STATUS: smallest sum of squares so far; damping; factor of the damping after the next rejected
step; smallest sum of squares of the forms before; number of evaluations."""
STEPS_PER_CALL = 2**19
"""Time steps per call, about a second: Python handles Ctrl-C between calls."""
N_STARTED, N_DONE = range(2)  # elements of `progress`: numbers of series of the plan
PLAN_ROW, FORM_COLUMN, FIRST_STEP = range(3)
"""Rows of `lanes`: row of the series in `plan`, -1 if the lane is idle; column of the form there; step of the
first value of the series."""
STABILITY_CIRCLES = np.array([[1.5, 0.5, math.sqrt(1.5)], [0.5, 1.0, -0.5], [2.5, 0.0, -math.sqrt(1.25)]])
"""Stable region of a pair (p0, p1): centre and radius of circles, inside which it must lie; if the radius is
negative, outside."""
N_CIRCLES = 3
PENALTY = 1e12  # factor of the curvature in a direction in which a step is not allowed


class Workspace(NamedTuple):
    """Work arrays of the searches."""

    observations: Floats  # (2, n + 1, LANES), n: length of the longest series; this and the next four: see `evaluate`
    states: Floats  # (4, 1 + m, STATE)
    gains: Floats  # (14 * LANES,)
    errors: Floats  # (QUANTITIES * LANES,)
    products: Floats  # (QUANTITIES * QUANTITIES * LANES,)
    searches: Floats  # (LANES, 19, 5)
    lanes: Ints  # (3, LANES)
    initial_states: Floats  # (1 + m, 2): level and season of one series
    lane_gains: Floats  # (14,): gains of one series


def estimate(y: Floats, indptr: Ints, seasonal_index: Floats, forms: Bools) -> tuple[Floats, Floats]:
    """Parameters (series, 4, 4) and sums of squares (series, 4) of the requested `forms` (series, 4).

    NaN for other forms; forms far behind another are abandoned early. The full form requires the
    partial one. `seasonal_index`: initial seasonal indices (series, m; that of the first time step first).
    """
    lengths, estimates = np.diff(indptr), np.full((len(indptr) - 1, 4, 5), np.nan)
    queue = np.argsort(-lengths, kind="stable")  # so that lanes have similar lengths
    form_ranks = np.sort(np.where(forms[:, ORDER], np.arange(4), 4), axis=1)
    # Columns of `plan`: series, then its forms in the order of the searches, -1 after the last.
    plan = np.append(ORDER, -1)[np.pad(form_ranks, [(0, 0), (0, 1)], constant_values=4)]
    plan = np.column_stack([queue, plan[queue]])[plan[queue, 0] >= 0]
    workspace, progress = _new_workspace(int(lengths.max()), seasonal_index.shape[1]), np.zeros(2, np.int64)
    with compile_notice("complex exponential smoothing"):
        while progress[N_DONE] < len(plan):
            _search(as_read_only(y), indptr, seasonal_index, plan, workspace, progress, estimates)
    return np.ascontiguousarray(estimates[:, :, :4]), estimates[:, :, 4]


def _new_workspace(n_steps: int, season_length: int) -> Workspace:
    """Allocate the arrays of the searches, for series of at most `n_steps` values; all lanes are idle."""
    lanes = np.zeros((3, LANES), np.int64)
    lanes[PLAN_ROW], lanes[FIRST_STEP] = -1, n_steps
    values, states = np.zeros((2, n_steps + 1, LANES)), np.zeros((4, 1 + season_length, STATE))
    return Workspace(
        observations=values,
        states=states,
        gains=np.zeros(N_GAINS * LANES),
        errors=np.zeros(QUANTITIES * LANES),
        products=np.zeros(QUANTITIES * QUANTITIES * LANES),
        searches=np.zeros((LANES, 19, 5)),
        lanes=lanes,
        initial_states=np.empty((1 + season_length, 2)),
        lane_gains=np.empty(N_GAINS),
    )


@compiled_no_alloc
def _search(
    y: Floats, indptr: Ints, seasonal_index: Floats, plan: Ints, workspace: Workspace, progress: Ints, estimates: Floats
) -> None:
    """Search until the plan is done or STEPS_PER_CALL time steps are evaluated; a later call continues at `progress`.

    Each round gives idle lanes the next form or series, evaluates all lanes at their trial points, and
    advances their searches. `estimates` (series, 4, 5): parameters and sum of squares.
    """
    observations, states, gains, errors, products, searches, lanes, initial_states, lane_gains = workspace
    n_started = progress[N_STARTED]
    n_done = progress[N_DONE]
    n_evaluated_steps = 0
    while n_done < len(plan) and n_evaluated_steps < STEPS_PER_CALL:
        for lane in range(LANES):
            lane_search, plan_row = searches[lane], lanes[PLAN_ROW, lane]
            starts_form = plan_row >= 0 and lane_search[STATUS, N_EVALUATIONS] >= MAX_EVALUATIONS
            if starts_form:
                lanes[FORM_COLUMN, lane] += 1
                if plan[plan_row, lanes[FORM_COLUMN, lane]] < 0:
                    plan_row, starts_form = -1, False
                    lanes[FIRST_STEP, lane] = observations.shape[1] - 1
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
                lanes[FIRST_STEP, lane] = _load_series(values, lane, observations)
                _begin_search(plan[plan_row, lanes[FORM_COLUMN, lane]], lane_search, estimates[series, PARTIAL])
                set_initial_states(
                    values,
                    plan[plan_row, lanes[FORM_COLUMN, lane]],
                    seasonal_index[series],
                    initial_states[0],
                    initial_states[1:],
                )
                _load_states(initial_states, lanes[FIRST_STEP, lane], lane, states[INITIAL])
            if plan_row >= 0:
                fill_gains(plan[plan_row, lanes[FORM_COLUMN, lane]], lane_search[TRIAL], lane_gains)
            for gain in range(N_GAINS):
                gains[gain * LANES + lane] = lane_gains[gain] if plan_row >= 0 else 0.0
        evaluate(observations, lanes[FIRST_STEP], states, gains, errors, products)
        n_evaluated_steps += observations.shape[1]
        for lane in range(LANES):
            plan_row = lanes[PLAN_ROW, lane]
            if plan_row >= 0:
                form = plan[plan_row, lanes[FORM_COLUMN, lane]]
                if _advance_search(form, products[lane:], searches[lane]):
                    _store_best(searches[lane], estimates[plan[plan_row, 0], form])
    progress[N_STARTED], progress[N_DONE] = n_started, n_done


@inner_no_alloc
def _load_series(values: Floats, lane: int, observations: Floats) -> int:
    """Copy a series to a lane so that it ends one step before the last; return the step of its first value."""
    last_step: int = observations.shape[1] - 1
    begin = last_step - len(values)
    for t in range(last_step):
        value = values[t - begin] if t >= begin else np.nan
        is_observed = not math.isnan(value)
        observations[0, t, lane], observations[1, t, lane] = value if is_observed else 0.0, 1.0 if is_observed else 0.0
    return begin


@inner_no_alloc
def _load_states(initial_states: Floats, begin: int, lane: int, state: Floats) -> None:
    """Copy the initial states of a form (level, seasonal states) to a lane.

    Seasonal state k of the series belongs to slot (begin + k) mod m, as the recursion of all lanes uses step
    t mod m. Derivatives stay 0.
    """
    period = len(initial_states) - 1
    for element in range(period + 1):
        slot = 1 + (begin + element - 1) % period if element > 0 else 0
        state[slot, lane], state[slot, LANES + lane] = initial_states[element, 0], initial_states[element, 1]


@inner_no_alloc
def _begin_search(form: int, search: Floats, partial: Floats) -> None:
    """Start the search of the next form of a lane: trial point and STATUS.

    `partial` is the estimate of the partial form of the series, from which the full form starts.
    """
    status, trial = search[STATUS], search[TRIAL]
    status[MIN_SQUARES] = np.inf
    status[DAMPING] = START_DAMPING
    status[GROWTH] = DAMPING_GROWTH
    status[N_EVALUATIONS] = 0.0
    for index in range(4):
        trial[index] = START_PARAMETERS[form, index]
    if form == FULL:  # a partial season is a full one with p1 = 1
        trial[0] = partial[0]
        trial[1] = partial[1]
        trial[2] = 1.0 + max(partial[2], 2.0 * STABILITY_MARGIN)


@inner_no_alloc
def _store_best(search: Floats, estimate: Floats) -> None:
    """End the search of a form: store its best parameters and sum of squares in `estimate` (5,)."""
    status = search[STATUS]
    status[N_EVALUATIONS] = MAX_EVALUATIONS
    status[MIN_SQUARES_OF_OTHERS] = min(status[MIN_SQUARES_OF_OTHERS], status[MIN_SQUARES])
    for index in range(4):
        estimate[index] = search[BEST, index]
    estimate[4] = status[MIN_SQUARES]


# -- steps of one search -------------------------------------------------------------------------------------------------------


@inlined
def _advance_search(form: int, products: Floats, search: Floats) -> bool:
    """Process the products at the trial point and set the next trial; True if the search has ended.

    It ends if the gain or the step is small, if the form is far behind others, after MAX_EVALUATIONS, or
    if the damping exceeds MAX_DAMPING. A better point replaces the best one and divides the damping by 10,
    unless the step before was rejected; any other point raises the damping.
    """
    squares = products[0]
    status = search[STATUS]
    trial_parameters = search[TRIAL]
    best_parameters = search[BEST]
    min_squares = status[MIN_SQUARES]
    is_first = not math.isfinite(min_squares)
    is_better = math.isfinite(squares) and squares < min_squares
    status[N_EVALUATIONS] += 1.0
    if is_better:
        _update_curvature(products, search)
    for index in range(4):
        for column in range(4):
            if is_first or not is_better:  # the correction has no previous point, or misled the step
                search[CORRECTION + index, column] = 0.0
        if is_first or is_better:
            best_parameters[index] = trial_parameters[index]
    if is_better:
        status[MIN_SQUARES] = squares
        if status[GROWTH] == DAMPING_GROWTH:  # not just after a step that was too long
            status[DAMPING] = max(status[DAMPING] * 0.1, MIN_DAMPING)
        status[GROWTH] = DAMPING_GROWTH
        if squares == 0.0 or min_squares - squares < RELATIVE_TOLERANCE * min_squares:
            return True
    else:
        status[DAMPING] = max(status[DAMPING] * status[GROWTH], REJECTED_DAMPING)
        status[GROWTH] *= 2.0
    is_far_behind = status[N_EVALUATIONS] >= MIN_EVALUATIONS and status[MIN_SQUARES] > MAX_RATIO * status[MIN_SQUARES_OF_OTHERS]
    if is_far_behind or status[N_EVALUATIONS] >= MAX_EVALUATIONS or status[DAMPING] > MAX_DAMPING:
        return True
    distance = 0.0
    has_step = is_better or not is_first  # else even the first point failed
    if has_step:
        _set_step(form, search)
    for index in range(4):
        trial_parameters[index] = (
            best_parameters[index] + min(max(search[SYSTEM + index, 4], -1.0), 1.0)
            if has_step
            else START_PARAMETERS[form, index]
        )
    if has_step:
        _project_to_stable(form, trial_parameters)
    for index in range(4):
        distance = max(distance, abs(trial_parameters[index] - best_parameters[index]))
    return distance <= STEP_TOLERANCE


@inner_no_alloc
def _update_curvature(products: Floats, search: Floats) -> None:
    """Store J'J and -J'e at a new best point, and update the correction C by the symmetric rank-one formula.

    With the change of the gradient y over the step s, and u = y - (J'J + C) s, it adds u u' / u's to C. It
    is large where the errors are large. Not updated if the damping is large or u's is close to 0.
    """
    trial_parameters = search[TRIAL]
    best_parameters = search[BEST]
    secant_error = search[SYSTEM]
    secant_error_dot_step, secant_error_square, step_square = 0.0, 0.0, 0.0
    for i in range(4):
        gradient = products[(i + 1) * LANES]
        secant_error[i] = gradient + search[PRODUCTS + i, 4]
        search[PRODUCTS + i, 4] = -gradient
        for j in range(i, 4):
            product = products[((i + 1) * QUANTITIES + j + 1) * LANES]
            search[PRODUCTS + i, j], search[PRODUCTS + j, i] = product, product
    for i in range(4):
        step = trial_parameters[i] - best_parameters[i]
        for j in range(4):
            secant_error[i] -= (search[PRODUCTS + i, j] + search[CORRECTION + i, j]) * (
                trial_parameters[j] - best_parameters[j]
            )
        secant_error_dot_step += secant_error[i] * step
        secant_error_square, step_square = secant_error_square + secant_error[i] * secant_error[i], step_square + step * step
    if (
        search[STATUS, DAMPING] < UPDATE_DAMPING
        and secant_error_dot_step * secant_error_dot_step > 1e-8 * secant_error_square * step_square
    ):
        for i in range(4):
            for j in range(4):
                search[CORRECTION + i, j] += secant_error[i] * secant_error[j] / secant_error_dot_step


@inlined
def _set_step(form: int, search: Floats) -> None:
    """Write the damped Gauss-Newton step to column 4 of the first rows of SYSTEM.

    A step that would leave the stable region follows its boundary: each boundary met changes the system,
    which is solved again, at most 5 times.
    """
    equations = search[SYSTEM + 4 :]
    for row in range(4):
        for column in range(5):
            equations[row, column] = search[PRODUCTS + row, column] + search[CORRECTION + row, column]
        equations[row, row] += search[STATUS, DAMPING] * search[PRODUCTS + row, row]
        if equations[row, row] == 0.0:
            equations[row, row] = 1.0  # the form does not have this parameter
    is_clamped = False
    for _ in range(5):
        _solve(equations, search[SYSTEM : SYSTEM + 4])
        changed = False
        if form == PARTIAL and not is_clamped:
            step, value = search[SYSTEM + 2, 4], search[BEST, 2]
            if (value >= MAX_SEASON_GAIN and step > 0.0) or (value <= MIN_SEASON_GAIN and step < 0.0):
                equations[2, 2] += PENALTY * search[PRODUCTS + 2, 2]
                is_clamped, changed = True, True
        for circle in range(2 * N_CIRCLES):  # those of the first pair, then those of the second
            if _is_complex(form, circle // N_CIRCLES):
                changed = _follow_boundary(search, equations, circle) or changed
        if not changed:
            return


@inner_no_alloc
def _is_complex(form: int, pair: int) -> bool:
    """Whether the pair (0 level, 1 season) is complex; NONE has the first only, SIMPLE the second, FULL both."""
    return form == pair if form < PARTIAL else form == FULL or pair == 0


@inner_no_alloc
def _follow_boundary(search: Floats, equations: Floats, circle_index: int) -> bool:
    """If the best point lies on this circle and the step leaves through it, penalize the normal direction.

    (x, z) is the unit normal. The equations get the penalty in its direction, and along the tangent the
    curvature that the arc adds to the objective. Return whether they were changed.
    """
    p0_index = circle_index // N_CIRCLES * 2
    p1_index = p0_index + 1
    circle = STABILITY_CIRCLES[circle_index % N_CIRCLES]
    x, z = search[BEST, p0_index] - circle[0], search[BEST, p1_index] - circle[1]
    distance = math.sqrt(x * x + z * z)
    if abs(distance - abs(circle[2] - STABILITY_MARGIN)) > 1e-7:
        return False
    x, z = x / distance, z / distance
    p0_step, p1_step = search[SYSTEM + p0_index, 4], search[SYSTEM + p1_index, 4]
    if (x * p0_step + z * p1_step) * circle[2] <= 1e-9 * (abs(p0_step) + abs(p1_step)):
        return False
    penalty = PENALTY * (search[PRODUCTS + p0_index, p0_index] + search[PRODUCTS + p1_index, p1_index])
    # The arc turns away from the tangent: second-order term of the objective along it.
    curvature = (x * search[PRODUCTS + p0_index, 4] + z * search[PRODUCTS + p1_index, 4]) / distance
    cross_term = (penalty - curvature) * x * z
    equations[p0_index, p0_index] += penalty * x * x + curvature * z * z
    equations[p0_index, p1_index] += cross_term
    equations[p1_index, p0_index] += cross_term
    equations[p1_index, p1_index] += penalty * z * z + curvature * x * x
    return True


@inner_no_alloc
def _solve(equations: Floats, system: Floats) -> None:
    """Solve four equations (right sides in column 4) by Gauss-Jordan elimination without pivoting.

    Works in `system`, whose column 4 gets the solution; `equations` is not changed.
    """
    n_equations = len(equations)  # a variable: loops of constant length are unrolled, which takes long to compile
    for pivot_row in range(n_equations):
        for column in range(n_equations + 1):
            system[pivot_row, column] = equations[pivot_row, column]
    for pivot_row in range(n_equations):
        for row in range(n_equations):
            if row != pivot_row:
                multiplier = system[row, pivot_row] / system[pivot_row, pivot_row]
                for column in range(pivot_row, n_equations + 1):
                    system[row, column] -= multiplier * system[pivot_row, column]
    for pivot_row in range(n_equations):
        system[pivot_row, n_equations] /= system[pivot_row, pivot_row]


@inner_no_alloc
def _project_to_stable(form: int, trial: Floats) -> None:
    """Project parameters to the stable region in place: inside one circle, outside two."""
    if form == PARTIAL:
        trial[2] = min(max(trial[2], MIN_SEASON_GAIN), MAX_SEASON_GAIN)
    for pass_index in range(18):  # each pair onto each of its 3 circles, 3 times in turn
        if _is_complex(form, pass_index // 9):
            _project_to_circle(trial, pass_index // 9 * 2, pass_index % N_CIRCLES)


@inner_no_alloc
def _project_to_circle(trial: Floats, p0_index: int, circle: int) -> None:
    """Move (p0, p1) at `p0_index` to the nearest point of the circle's edge if it lies on the wrong side."""
    x = trial[p0_index] - STABILITY_CIRCLES[circle, 0]
    z = trial[p0_index + 1] - STABILITY_CIRCLES[circle, 1]
    radius = STABILITY_CIRCLES[circle, 2]
    distance, edge = math.sqrt(x * x + z * z), abs(radius - STABILITY_MARGIN)
    if (distance - edge) * radius > 0.0 and distance > 0.0:
        trial[p0_index] = STABILITY_CIRCLES[circle, 0] + x * edge / distance
        trial[p0_index + 1] = STABILITY_CIRCLES[circle, 1] + z * edge / distance
