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
from deepforecast.kernels.ets.coordinates import LEVEL, SEASON_STATES, coordinate_gradient
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
    ATTEMPT,
    BARRIER,
    BUFFER,
    CANDIDATE,
    ERROR,
    EVALUATIONS_COLUMN,
    GRADIENT,
    HAS_BARRIER,
    LAST_CANDIDATE,
    LAST_RESORT,
    LENGTH,
    MEMORY_ROW,
    MEMORY_SLOT,
    MOST_STARTS,
    NO_START,
    OBJECTIVE_COLUMN,
    SEASON,
    SERIES,
    STARTS,
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

BARRIER_WEIGHT = 1e-4
STEPS_PER_CALL = 2**20
"""Time steps per call, about a second: Python handles Ctrl-C between calls."""
TRACE_WIDTH, QUEUE, STEPS = 1, 2, 3  # elements of `group`
MIN_GAIN = 0.05


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
    """Fit forms that share the recursion of form `group[0]`, with a trace of `group[1]` numbers per
    step.

    `jobs` (jobs, 4): series, its row in `inverse_hessians`, first form to fit and last + 1.
    `estimates` (series, forms, parameters + 2): parameters, negative log-likelihood, evaluations.
    `limits`: tolerance of a search, maximum of evaluations, and when a further search for a form
    ends early: if after `limits[2]` evaluations `limits[3]` times twice the gain that its quadratic
    model predicts would not improve the best objective of the form by MIN_GAIN.

    A call ends after about `STEPS_PER_CALL` steps and the next one continues. `group` counts the
    jobs begun (`QUEUE`) and the steps to evaluate next (`STEPS`), both 0 before the first call, the
    latter 0 after the last.
    """
    lanes, queue, steps, evaluated = workspace.lanes, group[QUEUE], group[STEPS], ZERO
    if steps == 0:
        for k in range(LANES):
            lanes[SERIES, k] = -1
    while True:
        if steps > 0:
            _evaluate(
                plan.forms[group[0]],
                workspace,
                steps,
                group[TRACE_WIDTH],
                estimates.shape[2] - 2 - scaled_series.design.shape[1] - SEASON_STATES,
            )
        evaluated += steps
        steps = ZERO
        for k in range(LANES):
            continues = (
                lanes[SERIES, k] >= 0
                and _advance_search(scaled_series, plan, workspace, search, estimates, limits, group[TRACE_WIDTH], k)
                == CONTINUE
            )
            if not continues:
                if lanes[SERIES, k] >= 0:
                    _store_estimate(scaled_series, plan, workspace, search, estimates, k)
                if lanes[SERIES, k] < 0 or not _next_search(plan, workspace, estimates, k):
                    lanes[SERIES, k] = -1
                    if queue == len(jobs):
                        continue
                    assign_series(scaled_series, plan, workspace, jobs[queue], group[TRACE_WIDTH], k)
                    queue += 1
                begin_lane_search(scaled_series, plan, workspace, search, estimates, k)
                workspace.value_to_beat[k] = (
                    estimates[lanes[SERIES, k], lanes[CANDIDATE, k], estimates.shape[2] + OBJECTIVE_COLUMN] - MIN_GAIN
                )
            load_point(scaled_series, plan, workspace, search.trial[k], group[TRACE_WIDTH], k)
            steps = max(steps, lanes[LENGTH, k])
        if steps == 0 or evaluated >= STEPS_PER_CALL:
            group[QUEUE], group[STEPS] = queue, steps
            return


@inlined
def _evaluate(form: Ints, workspace: Workspace, steps: int, width: int, season: int) -> None:
    """Negative log-likelihood of all lanes and its gradient: forward pass, then adjoint pass."""
    period, product = season if form[SEASON] > 0 else 1, form[SEASON] == 2
    season_states, season_gradient = (
        workspace.state[SEASON_OFFSET : SEASON_OFFSET + period * LANES],
        workspace.state_gradient[SEASON_OFFSET : SEASON_OFFSET + period * LANES],
    )
    if form[TREND] == 2:
        forward_power(workspace.trace, steps, width, workspace.state, season_states, product)
    elif product:
        forward_multiplicative(workspace.trace, steps, width, workspace.state, season_states)
    else:
        forward_additive(workspace.trace, steps, width, workspace.state, season_states)
    if form[ERROR] == 1:
        multiplicative_likelihood(workspace.trace, steps, width, workspace.sums)
    else:
        additive_likelihood(workspace.trace, steps, width, workspace.sums)
    for j in range(len(workspace.state_gradient)):
        workspace.state_gradient[j] = 0.0
    if form[TREND] == 2:
        backward_power(workspace.trace, steps, width, workspace.state, workspace.state_gradient, season_gradient, product)
    elif product:
        backward_multiplicative(workspace.trace, steps, width, workspace.state, workspace.state_gradient, season_gradient)
    else:
        backward_additive(workspace.trace, steps, width, workspace.state, workspace.state_gradient, season_gradient)


@inlined
def _advance_search(
    scaled_series: ScaledSeries,
    plan: Plan,
    workspace: Workspace,
    search: Search,
    estimates: Floats,
    limits: Floats,
    width: int,
    k: int,
) -> int:
    """Pass objective and gradient of lane k to its search and load the next point."""
    series, c = workspace.lanes[SERIES, k], workspace.lanes[CANDIDATE, k]
    form, estimated, regressors = plan.forms[c], plan.estimated[c], scaled_series.design.shape[1]
    season = len(estimated) - SEASON_STATES - regressors
    value, gradient = workspace.sums[OBJECTIVE * LANES + k], workspace.work[GRADIENT]
    if workspace.lanes[HAS_BARRIER, k] == 1:
        value += BARRIER_WEIGHT * _add_barrier(form, season, workspace, k, BARRIER_WEIGHT)
    first = coordinate_gradient(
        estimated, form[WIDE_BOUNDS] == 1, season, search.trial[k], workspace.state, workspace.state_gradient, k, gradient
    )
    for r in range(regressors):
        gradient[first + r] = 0.0
        for t in range(workspace.lanes[LENGTH, k]):
            gradient[first + r] += (
                scaled_series.design[scaled_series.indptr[series] + t, r]
                * workspace.trace[t * width + RESIDUAL_GRADIENT * LANES + k]
            )
    verdict = advance(search, k, value, gradient, limits[0], int(limits[1]))
    promised_value = search.value[k] + limits[3] * search.directional_derivative[k]
    if verdict == CONTINUE and search.n_evaluations[k] >= limits[2] and promised_value > workspace.value_to_beat[k]:
        return STALLED
    return verdict


@inner_no_alloc
def _add_barrier(form: Ints, season: int, workspace: Workspace, k: int, weight: float) -> float:
    """Return the barrier of the admissible region; add `weight` times its gradient to
    `state_gradient`.
    """
    period, buffer, state, h = season if form[SEASON] > 0 else 1, workspace.work[BUFFER], workspace.state, 1e-6
    alpha, beta, gamma = state[k], state[LANES + k], state[2 * LANES + k]
    phi = state[3 * LANES + k] if form[TREND] > 0 else 0.0
    barrier = barrier_distance(alpha, beta, gamma, phi, period, buffer)
    if weight > 0.0 and math.isfinite(barrier):
        weight /= h
        workspace.state_gradient[k] += weight * (barrier_distance(alpha + h, beta, gamma, phi, period, buffer) - barrier)
        workspace.state_gradient[LANES + k] += weight * (
            barrier_distance(alpha, beta + h, gamma, phi, period, buffer) - barrier
        )
        workspace.state_gradient[2 * LANES + k] += weight * (
            barrier_distance(alpha, beta, gamma + h, phi, period, buffer) - barrier
        )
        workspace.state_gradient[3 * LANES + k] += weight * (
            barrier_distance(alpha, beta, gamma, phi + h, period, buffer) - barrier
        )
    return barrier


@inlined
def _next_search(plan: Plan, workspace: Workspace, estimates: Floats, k: int) -> bool:
    """Move lane k to the next search of its series; False after the last."""
    lanes = workspace.lanes
    c, attempt = lanes[CANDIDATE, k], lanes[ATTEMPT, k]
    form, estimate = plan.forms[c], estimates[lanes[SERIES, k], c]
    if attempt + 1 < MOST_STARTS and form[STARTS + attempt + 1] != NO_START:
        lanes[ATTEMPT, k] = attempt + 1
        return True
    if attempt < LAST_RESORT and not math.isfinite(estimate[len(estimate) + OBJECTIVE_COLUMN]):
        lanes[ATTEMPT, k] = LAST_RESORT
        return True
    if form[BARRIER] == 2 and lanes[HAS_BARRIER, k] == 0 and _outside(form, estimate, workspace):
        lanes[ATTEMPT, k], lanes[HAS_BARRIER, k] = WITH_BARRIER, 1
        return True
    if c + 1 == lanes[LAST_CANDIDATE, k]:
        return False
    lanes[CANDIDATE, k], lanes[ATTEMPT, k], lanes[HAS_BARRIER, k] = c + 1, 0, plan.forms[c + 1, BARRIER] == 1
    return True


@inner_no_alloc
def _outside(form: Ints, estimate: Floats, workspace: Workspace) -> bool:
    """Whether the optimum lies outside the admissible region, so that it is discarded."""
    season = len(workspace.initial_state) // LANES - SEASON_STATES if form[SEASON] > 0 else 1
    phi = estimate[3] if form[TREND] > 0 else 0.0
    if math.isfinite(barrier_distance(estimate[0], estimate[1], estimate[2], phi, season, workspace.work[BUFFER])):
        return False
    estimate[len(estimate) + OBJECTIVE_COLUMN] = np.inf
    return True


@inlined
def _store_estimate(
    scaled_series: ScaledSeries, plan: Plan, workspace: Workspace, search: Search, estimates: Floats, k: int
) -> None:
    """Store the result of a search if it improves on the previous one."""
    series, c = workspace.lanes[SERIES, k], workspace.lanes[CANDIDATE, k]
    form, estimated, estimate = plan.forms[c], plan.estimated[c], estimates[series, c]
    estimate[len(estimate) + EVALUATIONS_COLUMN] += search.n_evaluations[k]
    season = len(estimated) - SEASON_STATES - scaled_series.design.shape[1]
    load_point(scaled_series, plan, workspace, search.point[k], ZERO, k)
    value = search.value[k]
    if workspace.lanes[HAS_BARRIER, k] == 1:
        value -= BARRIER_WEIGHT * _add_barrier(form, season, workspace, k, 0.0)
    if not value < estimate[len(estimate) + OBJECTIVE_COLUMN]:
        return
    estimate[len(estimate) + OBJECTIVE_COLUMN] = value
    for j in range(SEASON_STATES + season):
        estimate[j] = workspace.state[j * LANES + k]
    if is_additive(form):
        estimate[LEVEL] += scaled_series.centre[series]
    i = 0
    for row in range(len(estimated)):
        if estimated[row] == 0 or row == SEASON_STATES + season - 1:
            continue
        if row >= SEASON_STATES + season:
            estimate[row] = search.point[k, i]
        j = 0
        for column in range(len(estimated)):
            if form[MEMORY_SLOT] >= 0 and estimated[column] == 1 and column != SEASON_STATES + season - 1:
                workspace.inverse_hessians[workspace.lanes[MEMORY_ROW, k], form[MEMORY_SLOT], row, column] = (
                    search.inverse_hessian[k, i, j]
                )
                j += 1
        i += 1
