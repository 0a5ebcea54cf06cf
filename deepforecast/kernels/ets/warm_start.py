"""Start of a search in a lane: its series, its first point and its inverse Hessian.

`assign_series` loads a series, `begin_lane_search` chooses the start of a search and `load_point` writes
the parameters at the trial points of the search to the lane.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import inlined, inner_no_alloc
from deepforecast.kernels.ets.coordinates import (
    ALPHA,
    BETA,
    GAMMA,
    LEVEL,
    N_RATES,
    PHI,
    SEASON_STATES,
    TREND_STATE,
    load_lane,
    rate_bounds,
    rate_coordinate,
)
from deepforecast.kernels.ets.likelihood import COUNT, FLOOR
from deepforecast.kernels.ets.recursion import LANES, OBSERVED, TARGET, VALUE
from deepforecast.kernels.ets.workspace import (
    ALWAYS_BARRIER,
    ATTEMPT,
    BARRIER,
    BOLD,
    BUFFER,
    CONTINUE_FREE,
    ERROR,
    FLAT,
    FORM_END,
    FORM_INDEX,
    GUESS,
    HAS_BARRIER,
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

MIN_CHANGING_GAMMA = 0.03  # smallest gamma of a season that counts as changing
MIN_BETA_RATIO = 0.1  # smallest beta / alpha of a slope that counts as changing
MEAN_TIME_OF_LINE = 5.0  # mean time of the first values, to which the initial line is fitted
GROWTH_LIMITS = (0.8, 1.25)  # of the start of a multiplicative trend


@inner_no_alloc
def assign_series(scaled_series: ScaledSeries, plan: Plan, workspace: Workspace, job: Ints, width: int, lane: int) -> None:
    """Assign the series of a job to a lane and copy its values to the trace.

    Steps after its end, up to the length of the lane's last series, become missing.
    """
    series = job[0]
    memory_row = job[1]
    form_index = job[2]
    form_end = job[3]
    form = plan.forms[form_index]
    start, end = scaled_series.indptr[series], scaled_series.indptr[series + 1]
    centre = scaled_series.centre[series] if is_additive(form) else 0.0
    n_observed = 0.0
    for t in range(max(end - start, workspace.lanes[LENGTH, lane])):
        position = t * width + lane
        value = scaled_series.y[start + t] if start + t < end else np.nan
        is_observed = 0.0 if math.isnan(value) else 1.0
        n_observed += is_observed
        workspace.trace[position + OBSERVED * LANES] = is_observed
        workspace.trace[position + TARGET * LANES] = value - centre if is_observed > 0.0 else 0.0
        if form[ERROR] == 1:
            workspace.trace[position + VALUE * LANES] = value if is_observed > 0.0 else 1.0
    workspace.lanes[SERIES, lane] = series
    workspace.lanes[MEMORY_ROW, lane] = memory_row
    workspace.lanes[FORM_INDEX, lane] = form_index
    workspace.lanes[FORM_END, lane] = form_end
    workspace.lanes[ATTEMPT, lane] = 0
    workspace.lanes[LENGTH, lane] = end - start
    workspace.lanes[HAS_BARRIER, lane] = form[BARRIER] == ALWAYS_BARRIER
    workspace.sums[COUNT * LANES + lane] = n_observed
    workspace.sums[FLOOR * LANES + lane] = n_observed * scaled_series.floors[series, form[ERROR]]


@inner_no_alloc
def begin_lane_search(
    scaled_series: ScaledSeries, plan: Plan, workspace: Workspace, search: Search, estimates: Floats, lane: int
) -> None:
    """Start a search of a lane at a guess, or at the optimum of another form with its inverse Hessian.

    A start is the index of another form or one of the negative constants of `workspace`. Index j runs
    over the elements of a parameter vector, see `coordinates`; levels of additive forms are centred.
    """
    series, form_index = workspace.lanes[SERIES, lane], workspace.lanes[FORM_INDEX, lane]
    form = plan.forms[form_index]
    present = plan.present[form_index]
    estimated = plan.estimated[form_index]
    start = _choose_start(form, estimates[series], workspace.lanes[ATTEMPT, lane], form_index)
    parameters, season_length = workspace.work[BUFFER], len(present) - SEASON_STATES - scaled_series.design.shape[1]
    _set_start_parameters(scaled_series, plan, workspace, search, estimates, lane, start)
    for j in range(len(present)):
        if present[j] == 0:
            parameters[j] = plan.neutral[form_index, j]
        if j < SEASON_STATES + season_length:
            workspace.initial_state[j * LANES + lane] = parameters[j]
    n_coordinates = _set_start_point(
        form, estimated, parameters, season_length, workspace.sums[COUNT * LANES + lane], workspace.work
    )
    if CONTINUE_FREE < start <= STILL:  # rates, the first coordinates, stay fixed
        for j in range(estimated[ALPHA] + estimated[BETA] + estimated[GAMMA] + estimated[PHI]):
            workspace.work[SQUARED_SCALE, j] = 0.0
    begin_search(search, lane, workspace.work[START_POINT, :n_coordinates], workspace.work[SQUARED_SCALE, :n_coordinates])
    if start >= 0 and plan.forms[start, SEASON] == form[SEASON] and plan.forms[start, MEMORY_SLOT] >= 0:
        _restore_inverse_hessian(
            estimated,
            plan.estimated[start],
            season_length,
            workspace.inverse_hessians[workspace.lanes[MEMORY_ROW, lane], plan.forms[start, MEMORY_SLOT]],
            search.inverse_hessian[lane],
        )
    elif estimated[SEASON_STATES] == 1 and season_length > 1:
        _couple_seasonal_states(estimated, season_length, workspace.work[SQUARED_SCALE], search.inverse_hessian[lane])


@inlined
def _set_start_parameters(
    scaled_series: ScaledSeries,
    plan: Plan,
    workspace: Workspace,
    search: Search,
    estimates: Floats,
    lane: int,
    start: int,
) -> None:
    """Write the parameters of a start to row BUFFER of `work`: guesses, changed as the start requires.

    Parameters that the form lacks are arbitrary. Levels of additive forms are centred; those of other forms
    are positive, unless they are fixed.
    """
    series, form_index = workspace.lanes[SERIES, lane], workspace.lanes[FORM_INDEX, lane]
    form = plan.forms[form_index]
    present = plan.present[form_index]
    estimated = plan.estimated[form_index]
    parameters, season_length = workspace.work[BUFFER], len(present) - SEASON_STATES - scaled_series.design.shape[1]
    for j in range(len(present)):
        parameters[j] = scaled_series.guesses[series, form[SEASON] // 2, j]
        if start == CONTINUE_FREE:
            parameters[j] = _previous_parameter(search, workspace.state, season_length, len(present), j, lane)
        in_start = start >= 0 and plan.present[start, j] == 1
        if in_start and (j < SEASON_STATES or plan.forms[start, SEASON] == form[SEASON]):
            parameters[j] = estimates[series, start, j]
        elif CONTINUE_FREE < start < 0 and j < N_RATES and estimated[j] == 1:
            parameters[j] = START_RATES[-1 - start][j]
        elif j == TREND_STATE and estimated[j] == 1 and (start >= 0 or start == FLAT):
            parameters[j] = 0.0
        elif SEASON_STATES <= j < SEASON_STATES + season_length and estimated[j] == 1 and start == FLAT:
            parameters[j] = 1.0 if form[SEASON] == 2 else 0.0
    if start <= OTHER_SEASON:
        _set_changed_component(start, estimated, present, estimates[series, form_index], parameters)
    is_additive_start = start > CONTINUE_FREE and (start < 0 or plan.forms[start, TREND] < 2)
    if form[TREND] == 2 and estimated[TREND_STATE] == 1 and is_additive_start:
        parameters[TREND_STATE] = min(
            max(1.0 + parameters[TREND_STATE] / parameters[LEVEL], GROWTH_LIMITS[0]), GROWTH_LIMITS[1]
        )
    if CONTINUE_FREE < start < 0 and form[TREND] == 0 and estimated[LEVEL] == 1:  # no slope: mean of the line
        parameters[LEVEL] += MEAN_TIME_OF_LINE * scaled_series.guesses[series, form[SEASON] // 2, TREND_STATE]
    if start == CONTINUE_FREE:
        pass  # this is the level of the last search, centred already
    elif is_additive(form):
        parameters[LEVEL] -= scaled_series.centre[series]
    elif not parameters[LEVEL] > 0.0 and estimated[LEVEL] == 1:
        parameters[LEVEL] = scaled_series.centre[series]


@inlined
def _previous_parameter(search: Search, state: Floats, season_length: int, n_parameters: int, j: int, lane: int) -> float:
    """Parameter j at which the last search of the lane ended; coefficients of regressors are its last coordinates."""
    if j < SEASON_STATES + season_length:
        return float(state[j * LANES + lane])
    return float(search.point[lane, search.n_coordinates[lane] - n_parameters + j])


@inner_no_alloc
def _set_changed_component(start: int, estimated: Ints, present: Ints, best_parameters: Floats, parameters: Floats) -> None:
    """Set the best parameters so far, with season, trend or level switched between fixed and changing.

    OTHER_SEASON switches gamma, OTHER_TREND beta and phi, OTHER_LEVEL alpha, between a value near 0 and
    one far from it. A season switched to changing starts at the guessed seasonal states, which
    `parameters` holds at the beginning.
    """
    fixed_season = best_parameters[GAMMA] < MIN_CHANGING_GAMMA
    fixed_slope = best_parameters[BETA] < MIN_BETA_RATIO * best_parameters[ALPHA]
    for j in range(len(present)):
        if present[j] == 1 and not (start == OTHER_SEASON and fixed_season and j >= SEASON_STATES):
            parameters[j] = best_parameters[j]
    alpha = parameters[ALPHA]
    if start == OTHER_SEASON and estimated[GAMMA] == 1:
        if fixed_season and estimated[ALPHA] == 1:
            parameters[ALPHA], parameters[BETA] = 0.9 * alpha, 0.9 * parameters[BETA]
        parameters[GAMMA] = 0.8 * (1.0 - parameters[ALPHA]) if fixed_season else 0.0005
    if start == OTHER_TREND and estimated[BETA] == 1:
        parameters[BETA] = (0.9 if fixed_slope else 0.005) * alpha
        if estimated[PHI] == 1:
            parameters[PHI] = 0.85 if fixed_slope else 0.97
    if start == OTHER_LEVEL and estimated[ALPHA] == 1:
        parameters[ALPHA] = 0.02 if alpha > 0.05 else 0.5 + 0.5 * alpha
        if estimated[BETA] == 1:
            parameters[BETA] = min(parameters[BETA], MIN_BETA_RATIO * parameters[ALPHA])
        if estimated[GAMMA] == 1:
            parameters[GAMMA] = min(parameters[GAMMA], 0.9 * (1.0 - parameters[ALPHA]))


@inlined
def _choose_start(form: Ints, series_estimates: Floats, attempt: int, form_index: int) -> int:
    """Start of this attempt: a column of `form`, FLAT if all others failed, or GUESS with the barrier.

    If the other form (or, for the OTHER starts, the form itself) has no estimate: GUESS (or BOLD).
    """
    if attempt == LAST_RESORT:
        return FLAT
    start = GUESS if attempt == WITH_BARRIER else form[STARTS + attempt]
    if start <= OTHER_SEASON:
        return start if math.isfinite(series_estimates[form_index, series_estimates.shape[1] + OBJECTIVE_COLUMN]) else BOLD
    return start if start < 0 or math.isfinite(series_estimates[start, series_estimates.shape[1] + OBJECTIVE_COLUMN]) else GUESS


@inlined
def _set_start_point(
    form: Ints, estimated: Ints, parameters: Floats, season_length: int, n_observed: float, work: Floats
) -> int:
    """Write the coordinates of `parameters` to START_POINT; return the number of coordinates.

    SQUARED_SCALE gets the expected squared distances to the optimum, the initial inverse Hessian: about
    the variances of the estimates for a series in units of its standard deviation, at most 0.3 for
    rates.
    """
    coordinate = 0
    alpha = max(parameters[ALPHA], 0.01)
    beta = max(parameters[BETA], 0.001)
    gamma = max(parameters[GAMMA], 0.01)
    for j in range(len(estimated)):
        if estimated[j] == 0 or j == SEASON_STATES + season_length - 1:
            continue
        work[START_POINT, coordinate] = parameters[j]
        if j < N_RATES:
            work[START_POINT, coordinate] = rate_coordinate(parameters[j], j, alpha, form[WIDE_BOUNDS] == 1)
            low, high = rate_bounds(j, alpha, form[WIDE_BOUNDS] == 1)
            jacobian = 0.5 * (high - low) * math.cos(work[START_POINT, coordinate])
            rate = 0.005 if j == PHI else min(parameters[j], 0.99)
            work[SQUARED_SCALE, coordinate] = min(max(rate, 0.001) * (2.0 - rate) / (n_observed * jacobian * jacobian), 0.3)
        elif j == LEVEL:
            work[SQUARED_SCALE, coordinate] = 0.1 * (alpha * (2.0 - alpha) + 1.0 / n_observed)
        elif j == TREND_STATE:
            work[SQUARED_SCALE, coordinate] = 0.1 * (alpha * beta + 12.0 / n_observed**3)
        elif j < SEASON_STATES + season_length:
            work[SQUARED_SCALE, coordinate] = 0.1 * (gamma * (2.0 - gamma) + season_length / n_observed)
        else:
            work[SQUARED_SCALE, coordinate] = 0.4 / n_observed
        coordinate += 1
    return coordinate


@inlined
def _couple_seasonal_states(estimated: Ints, season_length: int, squared_scales: Floats, inverse_hessian: Floats) -> None:
    """Subtract 1 1' / m from the block of the seasonal states, scaled by their squared scale.

    This is the covariance of m independent states given their sum. All seasonal states have the same
    squared scale, so that the matrix stays symmetric.
    """
    first_seasonal = 0
    for j in range(SEASON_STATES):
        first_seasonal += estimated[j]
    for i in range(season_length - 1):
        for j in range(season_length - 1):
            inverse_hessian[first_seasonal + i, first_seasonal + j] -= squared_scales[first_seasonal + i] / season_length


@inlined
def _restore_inverse_hessian(
    estimated: Ints, was_estimated: Ints, season_length: int, stored_inverse_hessian: Floats, inverse_hessian: Floats
) -> None:
    """Copy the inverse Hessian of another form for the parameters that both forms estimate.

    The stored matrix is indexed by parameter, that of the search by coordinate; its other elements stay.
    """
    coordinate = 0
    for parameter in range(len(estimated)):
        if estimated[parameter] == 0 or parameter == SEASON_STATES + season_length - 1:
            continue
        other_coordinate = 0
        for other_parameter in range(len(estimated)):
            if estimated[other_parameter] == 0 or other_parameter == SEASON_STATES + season_length - 1:
                continue
            if was_estimated[parameter] == 1 and was_estimated[other_parameter] == 1:
                inverse_hessian[coordinate, other_coordinate] = stored_inverse_hessian[parameter, other_parameter]
            other_coordinate += 1
        coordinate += 1


@inner_no_alloc
def load_point(scaled_series: ScaledSeries, plan: Plan, workspace: Workspace, point: Floats, width: int, lane: int) -> None:
    """Write the parameters at `point` to a lane, and the values less the effect of regressors to its trace.

    A multiplicative seasonal state that is not positive makes the level NaN, so that the search steps
    back. With `width` 0 the trace is left as it is.
    """
    series, form_index = workspace.lanes[SERIES, lane], workspace.lanes[FORM_INDEX, lane]
    form = plan.forms[form_index]
    estimated = plan.estimated[form_index]
    n_regressors = scaled_series.design.shape[1]
    season_length = len(estimated) - SEASON_STATES - n_regressors
    for j in range(SEASON_STATES + season_length):
        workspace.state[j * LANES + lane] = workspace.initial_state[j * LANES + lane]
    seasonal_total = float(season_length) if form[SEASON] == 2 else 0.0
    if not load_lane(estimated, form[WIDE_BOUNDS] == 1, seasonal_total, season_length, point, workspace.state, lane):
        workspace.state[LEVEL * LANES + lane] = np.nan
    if n_regressors == 0 or width == 0:
        return
    n_other_coordinates = 0
    for j in range(SEASON_STATES + season_length - 1):
        n_other_coordinates += estimated[j]
    start, centre = scaled_series.indptr[series], scaled_series.centre[series] if is_additive(form) else 0.0
    for t in range(workspace.lanes[LENGTH, lane]):
        position = t * width + lane
        if workspace.trace[position + OBSERVED * LANES] > 0.0:
            value = scaled_series.y[start + t] - centre
            for regressor in range(n_regressors):
                value -= scaled_series.design[start + t, regressor] * point[n_other_coordinates + regressor]
            workspace.trace[position + TARGET * LANES] = value
