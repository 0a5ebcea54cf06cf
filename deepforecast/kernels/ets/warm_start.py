"""Start of a search in a lane: its series, first point and inverse Hessian."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import inlined, inner_no_alloc
from deepforecast.kernels.ets.coordinates import (
    LEVEL,
    RATES,
    SEASON_STATES,
    TREND_STATE,
    load_lane,
    rate_bounds,
    rate_coordinate,
)
from deepforecast.kernels.ets.likelihood import COUNT, FLOOR
from deepforecast.kernels.ets.recursion import LANES, OBSERVED, TARGET, VALUE
from deepforecast.kernels.ets.workspace import (
    ATTEMPT,
    BARRIER,
    BOLD,
    BUFFER,
    CANDIDATE,
    CONTINUE_FREE,
    ERROR,
    FLAT,
    GUESS,
    HAS_BARRIER,
    LAST_CANDIDATE,
    LAST_RESORT,
    LENGTH,
    MEMORY_ROW,
    MEMORY_SLOT,
    OBJECTIVE_COLUMN,
    OTHER_LEVEL,
    OTHER_SEASON,
    OTHER_TREND,
    SEASON,
    SERIES,
    SQUARED_SCALE,
    START_POINT,
    START_RATES,
    STARTS,
    STILL,
    TREND,
    WIDE_BOUNDS,
    WITH_BARRIER,
    Plan,
    ScaledSeries,
    Workspace,
    is_additive,
)
from deepforecast.kernels.quasi_newton import Search, begin_search

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MIN_MOVING_GAMMA = 0.03  # smallest gamma of a season that counts as changing
MIN_BETA_RATIO = 0.1  # smallest beta / alpha of a slope that counts as changing
MIDDLE_OF_LINE = 5.0  # index of the middle of the values of the initial line


@inner_no_alloc
def assign_series(scaled_series: ScaledSeries, plan: Plan, workspace: Workspace, job: Ints, width: int, k: int) -> None:
    """Assign the series of a job to lane k and copy its values to the trace."""
    series, first = job[0], job[2]
    form = plan.forms[first]
    start, end = scaled_series.indptr[series], scaled_series.indptr[series + 1]
    centre = scaled_series.centre[series] if is_additive(form) else 0.0
    count = 0.0
    for t in range(max(end - start, workspace.lanes[LENGTH, k])):
        offset = t * width + k
        value = scaled_series.y[start + t] if start + t < end else np.nan
        is_observed = 0.0 if math.isnan(value) else 1.0
        count += is_observed
        workspace.trace[offset + OBSERVED * LANES] = is_observed
        workspace.trace[offset + TARGET * LANES] = value - centre if is_observed > 0.0 else 0.0
        if form[ERROR] == 1:
            workspace.trace[offset + VALUE * LANES] = value if is_observed > 0.0 else 1.0
    (
        workspace.lanes[SERIES, k],
        workspace.lanes[MEMORY_ROW, k],
        workspace.lanes[CANDIDATE, k],
        workspace.lanes[LAST_CANDIDATE, k],
    ) = series, job[1], first, job[3]
    workspace.lanes[ATTEMPT, k] = 0
    workspace.lanes[LENGTH, k], workspace.lanes[HAS_BARRIER, k] = end - start, form[BARRIER] == 1
    workspace.sums[COUNT * LANES + k] = count
    workspace.sums[FLOOR * LANES + k] = count * scaled_series.floors[series, form[ERROR]]


@inner_no_alloc
def begin_lane_search(
    scaled_series: ScaledSeries, plan: Plan, workspace: Workspace, search: Search, estimates: Floats, k: int
) -> None:
    """Start a search at a guess, or at the optimum of another form with its inverse Hessian."""
    series, c = workspace.lanes[SERIES, k], workspace.lanes[CANDIDATE, k]
    form, present, estimated = plan.forms[c], plan.present[c], plan.estimated[c]
    start_kind = _start_kind(form, estimates[series], workspace.lanes[ATTEMPT, k], c)
    parameters, season = workspace.work[BUFFER], len(present) - SEASON_STATES - scaled_series.design.shape[1]
    for j in range(len(present)):
        parameters[j] = scaled_series.guesses[series, form[SEASON] // 2, j]
        if start_kind == CONTINUE_FREE:
            parameters[j] = _previous_parameter(search, workspace.state, season, len(present), j, k)
        in_start = start_kind >= 0 and plan.present[start_kind, j] == 1
        if in_start and (j < SEASON_STATES or plan.forms[start_kind, SEASON] == form[SEASON]):
            parameters[j] = estimates[series, start_kind, j]
        elif CONTINUE_FREE < start_kind < 0 and j < RATES and estimated[j] == 1:
            parameters[j] = START_RATES[-1 - start_kind][j]
        elif j == TREND_STATE and estimated[j] == 1 and (start_kind >= 0 or start_kind == FLAT):
            parameters[j] = 0.0
        elif j >= SEASON_STATES and j < SEASON_STATES + season and estimated[j] == 1 and start_kind == FLAT:
            parameters[j] = 1.0 if form[SEASON] == 2 else 0.0
    if start_kind <= OTHER_SEASON:
        _change_component(start_kind, estimated, present, estimates[series, c], parameters)
    is_additive_start = start_kind > CONTINUE_FREE and (start_kind < 0 or plan.forms[start_kind, TREND] < 2)
    if form[TREND] == 2 and estimated[TREND_STATE] == 1 and is_additive_start:
        parameters[TREND_STATE] = min(max(1.0 + parameters[TREND_STATE] / parameters[LEVEL], 0.8), 1.25)
    if CONTINUE_FREE < start_kind < 0 and form[TREND] == 0 and estimated[LEVEL] == 1:  # no slope: mean of the line
        parameters[LEVEL] += MIDDLE_OF_LINE * scaled_series.guesses[series, form[SEASON] // 2, TREND_STATE]
    if start_kind == CONTINUE_FREE:
        pass
    elif is_additive(form):
        parameters[LEVEL] -= scaled_series.centre[series]
    elif not parameters[LEVEL] > 0.0 and estimated[LEVEL] == 1:
        parameters[LEVEL] = scaled_series.centre[series]
    for j in range(len(present)):
        if present[j] == 0:
            parameters[j] = plan.neutral[c, j]
        if j < SEASON_STATES + season:
            workspace.initial_state[j * LANES + k] = parameters[j]
    size = _set_start_point(form, estimated, parameters, season, workspace.sums[COUNT * LANES + k], workspace.work)
    if CONTINUE_FREE < start_kind <= STILL:  # rates stay fixed
        for j in range(estimated[0] + estimated[1] + estimated[2] + estimated[3]):
            workspace.work[SQUARED_SCALE, j] = 0.0
    begin_search(search, k, workspace.work[START_POINT, :size], workspace.work[SQUARED_SCALE, :size])
    if start_kind >= 0 and plan.forms[start_kind, SEASON] == form[SEASON] and plan.forms[start_kind, MEMORY_SLOT] >= 0:
        _restore_inverse_hessian(
            estimated,
            plan.estimated[start_kind],
            season,
            workspace.inverse_hessians[workspace.lanes[MEMORY_ROW, k], plan.forms[start_kind, MEMORY_SLOT]],
            search.inverse_hessian[k],
        )
    elif estimated[SEASON_STATES] == 1 and season > 1:
        _link_factors(estimated, season, workspace.work[SQUARED_SCALE], search.inverse_hessian[k])


@inlined
def _previous_parameter(search: Search, state: Floats, season: int, parameters: int, j: int, k: int) -> float:
    """Parameter at which the last search of the lane ended."""
    if j < SEASON_STATES + season:
        return float(state[j * LANES + k])
    return float(search.point[k, search.size[k] - parameters + j])


@inner_no_alloc
def _change_component(start_kind: int, estimated: Ints, present: Ints, best: Floats, parameters: Floats) -> None:
    """Best parameters so far, with season, trend or level switched between nearly fixed and
    changing.

    A season switched to changing starts at the guessed seasonal states.
    """
    fixed_season, fixed_slope = best[2] < MIN_MOVING_GAMMA, best[1] < MIN_BETA_RATIO * best[0]
    for j in range(len(present)):
        if present[j] == 1 and not (start_kind == OTHER_SEASON and fixed_season and j >= SEASON_STATES):
            parameters[j] = best[j]
    alpha = parameters[0]
    if start_kind == OTHER_SEASON and estimated[2] == 1:
        if fixed_season and estimated[0] == 1:
            parameters[0], parameters[1] = 0.9 * alpha, 0.9 * parameters[1]
        parameters[2] = 0.8 * (1.0 - parameters[0]) if fixed_season else 0.0005
    if start_kind == OTHER_TREND and estimated[1] == 1:
        parameters[1] = (0.9 if fixed_slope else 0.005) * alpha
        if estimated[3] == 1:
            parameters[3] = 0.85 if fixed_slope else 0.97
    if start_kind == OTHER_LEVEL and estimated[0] == 1:
        parameters[0] = 0.02 if alpha > 0.05 else 0.5 + 0.5 * alpha
        if estimated[1] == 1:
            parameters[1] = min(parameters[1], MIN_BETA_RATIO * parameters[0])
        if estimated[2] == 1:
            parameters[2] = min(parameters[2], 0.9 * (1.0 - parameters[0]))


@inlined
def _start_kind(form: Ints, estimates: Floats, attempt: int, form_index: int) -> int:
    """Start of this attempt; a guess if the other form has no estimate."""
    if attempt == LAST_RESORT:
        return FLAT
    start = GUESS if attempt == WITH_BARRIER else form[STARTS + attempt]
    if start <= OTHER_SEASON:
        return start if math.isfinite(estimates[form_index, estimates.shape[1] + OBJECTIVE_COLUMN]) else BOLD
    return start if start < 0 or math.isfinite(estimates[start, estimates.shape[1] + OBJECTIVE_COLUMN]) else GUESS


@inlined
def _set_start_point(form: Ints, estimated: Ints, parameters: Floats, season: int, count: float, work: Floats) -> int:
    """Set the start and the expected squared distances to the optimum; return the number of
    coordinates.
    """
    coordinate, alpha, beta, gamma = 0, max(parameters[0], 0.01), max(parameters[1], 0.001), max(parameters[2], 0.01)
    for j in range(len(estimated)):
        if estimated[j] == 0 or j == SEASON_STATES + season - 1:
            continue
        work[START_POINT, coordinate] = parameters[j]
        if j < RATES:
            work[START_POINT, coordinate] = rate_coordinate(parameters[j], j, alpha, form[WIDE_BOUNDS] == 1)
            low, high = rate_bounds(j, alpha, form[WIDE_BOUNDS] == 1)
            jacobian = 0.5 * (high - low) * math.cos(work[START_POINT, coordinate])
            rate = 0.005 if j == 3 else min(parameters[j], 0.99)
            work[SQUARED_SCALE, coordinate] = min(max(rate, 0.001) * (2.0 - rate) / (count * jacobian * jacobian), 0.3)
        elif j == LEVEL:
            work[SQUARED_SCALE, coordinate] = 0.1 * (alpha * (2.0 - alpha) + 1.0 / count)
        elif j == TREND_STATE:
            work[SQUARED_SCALE, coordinate] = 0.1 * (alpha * beta + 12.0 / count**3)
        elif j < SEASON_STATES + season:
            work[SQUARED_SCALE, coordinate] = 0.1 * (gamma * (2.0 - gamma) + season / count)
        else:
            work[SQUARED_SCALE, coordinate] = 0.4 / count
        coordinate += 1
    return coordinate


@inlined
def _link_factors(estimated: Ints, season: int, squared_scales: Floats, inverse_hessian: Floats) -> None:
    """Add the correlation of the seasonal states due to their fixed sum: I - 1 1' / m."""
    first = 0
    for j in range(SEASON_STATES):
        first += estimated[j]
    for i in range(season - 1):
        for j in range(season - 1):
            inverse_hessian[first + i, first + j] -= squared_scales[first + i] / season


@inlined
def _restore_inverse_hessian(
    estimated: Ints, was_estimated: Ints, season: int, inverse_hessian_of_other: Floats, inverse_hessian: Floats
) -> None:
    """Copy the inverse Hessian of another form for the parameters both forms estimate."""
    i = 0
    for row in range(len(estimated)):
        if estimated[row] == 0 or row == SEASON_STATES + season - 1:
            continue
        j = 0
        for column in range(len(estimated)):
            if estimated[column] == 0 or column == SEASON_STATES + season - 1:
                continue
            if was_estimated[row] == 1 and was_estimated[column] == 1:
                inverse_hessian[i, j] = inverse_hessian_of_other[row, column]
            j += 1
        i += 1


@inner_no_alloc
def load_point(scaled_series: ScaledSeries, plan: Plan, workspace: Workspace, point: Floats, width: int, k: int) -> None:
    """Write the parameters at a point to lane k, and the values less the regression to its trace."""
    series, c = workspace.lanes[SERIES, k], workspace.lanes[CANDIDATE, k]
    form, estimated, regressors = plan.forms[c], plan.estimated[c], scaled_series.design.shape[1]
    season = len(estimated) - SEASON_STATES - regressors
    for j in range(SEASON_STATES + season):
        workspace.state[j * LANES + k] = workspace.initial_state[j * LANES + k]
    total = float(season) if form[SEASON] == 2 else 0.0
    if not load_lane(estimated, form[WIDE_BOUNDS] == 1, total, season, point, workspace.state, k):
        workspace.state[LEVEL * LANES + k] = np.nan
    if regressors == 0 or width == 0:
        return
    first = 0
    for j in range(SEASON_STATES + season - 1):
        first += estimated[j]
    start, centre = scaled_series.indptr[series], scaled_series.centre[series] if is_additive(form) else 0.0
    for t in range(workspace.lanes[LENGTH, k]):
        offset = t * width + k
        if workspace.trace[offset + OBSERVED * LANES] > 0.0:
            value = scaled_series.y[start + t] - centre
            for r in range(regressors):
                value -= scaled_series.design[start + t, r] * point[first + r]
            workspace.trace[offset + TARGET * LANES] = value
