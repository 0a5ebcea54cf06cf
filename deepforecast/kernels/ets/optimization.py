"""Maximum likelihood of several ETS models for many series, 16 quasi-Newton searches at a time.

A lane takes a series, fits the forms of a group to it one after the other, and takes the next
series. Larger forms start at the optimum of smaller ones. Series are sorted by length, longest
first, so that the lanes of a block have similar lengths.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import compiled_no_alloc, inlined, inner_no_alloc
from deepforecast.kernels.ets.admissible_region import barrier_distance
from deepforecast.kernels.ets.coordinates import ALPHA, BETA, GAMMA, LEVEL, PHI, SEASON_STATES, coordinate_gradient
from deepforecast.kernels.ets.likelihood import OBJECTIVE, additive_likelihood, multiplicative_likelihood
from deepforecast.kernels.ets.power_trend import backward_power, forward_power
from deepforecast.kernels.ets.recursion import (
    LANES,
    RESIDUAL_GRADIENT,
    SEASON_OFFSET,
    ZERO,
    backward_additive,
    backward_multiplicative,
    forward_additive,
    forward_multiplicative,
)
from deepforecast.kernels.ets.warm_start import assign_series, begin_lane_search, load_point
from deepforecast.kernels.ets.workspace import (
    ALWAYS_BARRIER,
    ATTEMPT,
    BARRIER,
    BARRIER_IF_OUTSIDE,
    BUFFER,
    ERROR,
    EVALUATION_LIMIT,
    EVALUATIONS_COLUMN,
    FORM_END,
    FORM_INDEX,
    GAIN_FACTOR,
    GRADIENT,
    HAS_BARRIER,
    LAST_RESORT,
    LENGTH,
    MAX_STARTS,
    MEMORY_ROW,
    MEMORY_SLOT,
    NO_START,
    OBJECTIVE_COLUMN,
    PATIENCE,
    SEASON,
    SERIES,
    STARTS,
    TOLERANCE,
    TREND,
    WIDE_BOUNDS,
    WITH_BARRIER,
    Plan,
    ScaledSeries,
    Workspace,
    is_additive,
)
from deepforecast.kernels.quasi_newton import CONTINUE, STALLED, Search, advance

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BARRIER_WEIGHT = 1e-4  # of the barrier in the objective
STEPS_PER_CALL = 2**20
"""Time steps per call, about a second: Python handles Ctrl-C between calls."""
GROUP_FORM, TRACE_WIDTH, QUEUE, STEPS = range(4)
"""Elements of `group`: a form with the recursion of the group; numbers per time step in the trace; jobs
begun; time steps to evaluate next (the longest series in the lanes)."""
MIN_GAIN = 0.05  # smallest improvement of the objective for which a further search continues
DIFFERENCE_STEP = 1e-6  # of the finite differences of the barrier


@compiled_no_alloc
def fit_group(
    scaled_series: ScaledSeries,
    plan: Plan,
    workspace: Workspace,
    search: Search,
    estimates: Floats,
    jobs: Ints,
    group: Ints,
    limits: Floats,
) -> None:
    """Fit the forms of a group, which share a recursion, to the series of `jobs`; write to `estimates`.

    `jobs` (jobs, 4): series, its row in `inverse_hessians`, first form to fit, and last + 1.
    `estimates` (series, forms, parameters + 2): parameters, negative log-likelihood, evaluations; an
    entry is replaced by a better one only. `limits`: tolerance of a search, maximum of evaluations, and
    when a further search for a form ends early: if after `limits[PATIENCE]` evaluations
    `limits[GAIN_FACTOR]` times twice the gain that its quadratic model predicts would not improve the
    best objective of the form by MIN_GAIN.

    A call ends after about `STEPS_PER_CALL` steps and the next one continues. `group` holds the
    progress: elements QUEUE and STEPS are 0 before the first call, and STEPS is 0 after the last.
    """
    lanes = workspace.lanes
    n_begun = group[QUEUE]
    n_steps = group[STEPS]
    n_evaluated_steps = ZERO
    if n_steps == 0:
        for lane in range(LANES):
            lanes[SERIES, lane] = -1
    while True:
        if n_steps > 0:
            _evaluate(
                plan.forms[group[GROUP_FORM]],
                workspace,
                n_steps,
                group[TRACE_WIDTH],
                estimates.shape[2] - 2 - scaled_series.design.shape[1] - SEASON_STATES,
            )
        n_evaluated_steps += n_steps
        n_steps = ZERO
        for lane in range(LANES):
            continues = (
                lanes[SERIES, lane] >= 0
                and _advance_search(scaled_series, plan, workspace, search, estimates, limits, group[TRACE_WIDTH], lane)
                == CONTINUE
            )
            if not continues:
                if lanes[SERIES, lane] >= 0:
                    _store_estimate(scaled_series, plan, workspace, search, estimates, lane)
                if lanes[SERIES, lane] < 0 or not _next_search(plan, workspace, estimates, lane):
                    lanes[SERIES, lane] = -1
                    if n_begun == len(jobs):
                        continue
                    assign_series(scaled_series, plan, workspace, jobs[n_begun], group[TRACE_WIDTH], lane)
                    n_begun += 1
                begin_lane_search(scaled_series, plan, workspace, search, estimates, lane)
                workspace.value_to_beat[lane] = (
                    estimates[lanes[SERIES, lane], lanes[FORM_INDEX, lane], estimates.shape[2] + OBJECTIVE_COLUMN] - MIN_GAIN
                )
            load_point(scaled_series, plan, workspace, search.trial[lane], group[TRACE_WIDTH], lane)
            n_steps = max(n_steps, lanes[LENGTH, lane])
        if n_steps == 0 or n_evaluated_steps >= STEPS_PER_CALL:
            group[QUEUE], group[STEPS] = n_begun, n_steps
            return


@inlined
def _evaluate(form: Ints, workspace: Workspace, n_steps: int, width: int, season_length: int) -> None:
    """Negative log-likelihood of all lanes and its gradient: forward pass, then adjoint pass.

    Reads the parameters in `state`; writes `sums`, `state_gradient` and the trace.
    """
    period, multiplicative_season = season_length if form[SEASON] > 0 else 1, form[SEASON] == 2
    season_states = workspace.state[SEASON_OFFSET : SEASON_OFFSET + period * LANES]
    season_gradient = workspace.state_gradient[SEASON_OFFSET : SEASON_OFFSET + period * LANES]
    if form[TREND] == 2:
        forward_power(workspace.trace, n_steps, width, workspace.state, season_states, multiplicative_season)
    elif multiplicative_season:
        forward_multiplicative(workspace.trace, n_steps, width, workspace.state, season_states)
    else:
        forward_additive(workspace.trace, n_steps, width, workspace.state, season_states)
    if form[ERROR] == 1:
        multiplicative_likelihood(workspace.trace, n_steps, width, workspace.sums)
    else:
        additive_likelihood(workspace.trace, n_steps, width, workspace.sums)
    for j in range(len(workspace.state_gradient)):
        workspace.state_gradient[j] = 0.0
    if form[TREND] == 2:
        backward_power(
            workspace.trace, n_steps, width, workspace.state, workspace.state_gradient, season_gradient, multiplicative_season
        )
    elif multiplicative_season:
        backward_multiplicative(workspace.trace, n_steps, width, workspace.state, workspace.state_gradient, season_gradient)
    else:
        backward_additive(workspace.trace, n_steps, width, workspace.state, workspace.state_gradient, season_gradient)


@inlined
def _advance_search(
    scaled_series: ScaledSeries,
    plan: Plan,
    workspace: Workspace,
    search: Search,
    estimates: Floats,
    limits: Floats,
    width: int,
    lane: int,
) -> int:
    """Pass objective and gradient of a lane to its search, which sets the next trial point.

    Return the status of the search; STALLED also if it is not expected to improve the best objective.
    """
    series, form_index = workspace.lanes[SERIES, lane], workspace.lanes[FORM_INDEX, lane]
    form = plan.forms[form_index]
    estimated = plan.estimated[form_index]
    n_regressors = scaled_series.design.shape[1]
    season_length = len(estimated) - SEASON_STATES - n_regressors
    value, gradient = workspace.sums[OBJECTIVE * LANES + lane], workspace.work[GRADIENT]
    if workspace.lanes[HAS_BARRIER, lane] == 1:
        value += BARRIER_WEIGHT * _add_barrier(form, season_length, workspace, lane, BARRIER_WEIGHT)
    n_written = coordinate_gradient(
        estimated,
        form[WIDE_BOUNDS] == 1,
        season_length,
        search.trial[lane],
        workspace.state,
        workspace.state_gradient,
        lane,
        gradient,
    )
    for regressor in range(n_regressors):
        gradient[n_written + regressor] = 0.0
        for t in range(workspace.lanes[LENGTH, lane]):
            gradient[n_written + regressor] += (
                scaled_series.design[scaled_series.indptr[series] + t, regressor]
                * workspace.trace[t * width + RESIDUAL_GRADIENT * LANES + lane]
            )
    status = advance(search, lane, value, gradient, limits[TOLERANCE], int(limits[EVALUATION_LIMIT]))
    promised_value = search.value[lane] + limits[GAIN_FACTOR] * search.directional_derivative[lane]
    may_end_early = search.n_evaluations[lane] >= limits[PATIENCE]
    if status == CONTINUE and may_end_early and promised_value > workspace.value_to_beat[lane]:
        return STALLED
    return status


@inner_no_alloc
def _add_barrier(form: Ints, season_length: int, workspace: Workspace, lane: int, weight: float) -> float:
    """Return the barrier of the admissible region at the rates of a lane.

    Add `weight` times its gradient, from forward differences, to `state_gradient`; not if `weight` is 0.
    """
    period = season_length if form[SEASON] > 0 else 1
    buffer = workspace.work[BUFFER]
    state = workspace.state
    step = DIFFERENCE_STEP
    alpha = state[lane]
    beta = state[BETA * LANES + lane]
    gamma = state[GAMMA * LANES + lane]
    phi = state[PHI * LANES + lane] if form[TREND] > 0 else 0.0
    barrier = barrier_distance(alpha, beta, gamma, phi, period, buffer)
    if weight > 0.0 and math.isfinite(barrier):
        weight /= step
        workspace.state_gradient[lane] += weight * (barrier_distance(alpha + step, beta, gamma, phi, period, buffer) - barrier)
        workspace.state_gradient[BETA * LANES + lane] += weight * (
            barrier_distance(alpha, beta + step, gamma, phi, period, buffer) - barrier
        )
        workspace.state_gradient[GAMMA * LANES + lane] += weight * (
            barrier_distance(alpha, beta, gamma + step, phi, period, buffer) - barrier
        )
        workspace.state_gradient[PHI * LANES + lane] += weight * (
            barrier_distance(alpha, beta, gamma, phi + step, period, buffer) - barrier
        )
    return barrier


@inlined
def _next_search(plan: Plan, workspace: Workspace, estimates: Floats, lane: int) -> bool:
    """Move a lane to the next search of its series; False after the last.

    The searches of a form are its listed starts, LAST_RESORT if none of them succeeded, and
    WITH_BARRIER if the optimum lies outside the admissible region; then those of the next form follow.
    """
    lanes = workspace.lanes
    form_index, attempt = lanes[FORM_INDEX, lane], lanes[ATTEMPT, lane]
    form, estimate = plan.forms[form_index], estimates[lanes[SERIES, lane], form_index]
    if attempt + 1 < MAX_STARTS and form[STARTS + attempt + 1] != NO_START:
        lanes[ATTEMPT, lane] = attempt + 1
        return True
    if attempt < LAST_RESORT and not math.isfinite(estimate[len(estimate) + OBJECTIVE_COLUMN]):
        lanes[ATTEMPT, lane] = LAST_RESORT
        return True
    if form[BARRIER] == BARRIER_IF_OUTSIDE and lanes[HAS_BARRIER, lane] == 0 and _discard_if_outside(form, estimate, workspace):
        lanes[ATTEMPT, lane], lanes[HAS_BARRIER, lane] = WITH_BARRIER, 1
        return True
    if form_index + 1 == lanes[FORM_END, lane]:
        return False
    lanes[FORM_INDEX, lane] = form_index + 1
    lanes[ATTEMPT, lane] = 0
    lanes[HAS_BARRIER, lane] = plan.forms[form_index + 1, BARRIER] == ALWAYS_BARRIER
    return True


@inner_no_alloc
def _discard_if_outside(form: Ints, estimate: Floats, workspace: Workspace) -> bool:
    """Whether the rates of an estimate lie outside the admissible region.

    If so, its objective is set to infinity, so that the search with the barrier replaces it.
    """
    period = len(workspace.initial_state) // LANES - SEASON_STATES if form[SEASON] > 0 else 1
    phi = estimate[PHI] if form[TREND] > 0 else 0.0
    if math.isfinite(barrier_distance(estimate[ALPHA], estimate[BETA], estimate[GAMMA], phi, period, workspace.work[BUFFER])):
        return False
    estimate[len(estimate) + OBJECTIVE_COLUMN] = np.inf
    return True


@inlined
def _store_estimate(
    scaled_series: ScaledSeries, plan: Plan, workspace: Workspace, search: Search, estimates: Floats, lane: int
) -> None:
    """Store parameters, objective and inverse Hessian of a search if it improves on previous ones.

    The objective is stored without the barrier. Evaluations are counted in any case.
    """
    series, form_index = workspace.lanes[SERIES, lane], workspace.lanes[FORM_INDEX, lane]
    form = plan.forms[form_index]
    estimated = plan.estimated[form_index]
    estimate = estimates[series, form_index]
    estimate[len(estimate) + EVALUATIONS_COLUMN] += search.n_evaluations[lane]
    season_length = len(estimated) - SEASON_STATES - scaled_series.design.shape[1]
    load_point(scaled_series, plan, workspace, search.point[lane], ZERO, lane)
    value = search.value[lane]
    if workspace.lanes[HAS_BARRIER, lane] == 1:
        value -= BARRIER_WEIGHT * _add_barrier(form, season_length, workspace, lane, 0.0)
    if not value < estimate[len(estimate) + OBJECTIVE_COLUMN]:
        return
    estimate[len(estimate) + OBJECTIVE_COLUMN] = value
    for other_coordinate in range(SEASON_STATES + season_length):
        estimate[other_coordinate] = workspace.state[other_coordinate * LANES + lane]
    if is_additive(form):
        estimate[LEVEL] += scaled_series.centre[series]
    coordinate = 0  # the inverse Hessian is stored by parameter, so that other forms can use it
    for parameter in range(len(estimated)):
        if estimated[parameter] == 0 or parameter == SEASON_STATES + season_length - 1:
            continue
        if parameter >= SEASON_STATES + season_length:
            estimate[parameter] = search.point[lane, coordinate]
        other_coordinate = 0
        for other_parameter in range(len(estimated)):
            if (
                form[MEMORY_SLOT] >= 0
                and estimated[other_parameter] == 1
                and other_parameter != SEASON_STATES + season_length - 1
            ):
                workspace.inverse_hessians[workspace.lanes[MEMORY_ROW, lane], form[MEMORY_SLOT], parameter, other_parameter] = (
                    search.inverse_hessian[lane, coordinate, other_coordinate]
                )
                other_coordinate += 1
        coordinate += 1
