"""How a lane begins: with a series, at a first point, with what is known of the curvature there."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compiling import bare, part
from deepforecast.kernels.ets.coordinates import FACTORS, LEVEL, RATES, TREND_STATE, angle, bounds, to_lane
from deepforecast.kernels.ets.desk import (
    AGAIN,
    ATTEMPT,
    BOLD,
    CANDIDATE,
    ERROR,
    FENCE,
    FENCED,
    FLAT,
    GUESS,
    LAST,
    LAST_RESORT,
    LENGTH,
    LIKELY,
    OTHER_LEVEL,
    OTHER_SEASON,
    OTHER_TREND,
    PLACE,
    RATES_AT,
    ROOM,
    SEASON,
    SERIES,
    SLOT,
    START,
    STARTS,
    STILL,
    TREND,
    VALUE_OF,
    WIDE,
    WITH_FENCE,
    Data,
    Desk,
    Plan,
    adds_up,
)
from deepforecast.kernels.ets.lanes import LANES, SEEN, TARGET, VALUE
from deepforecast.kernels.ets.likelihood import COUNT, FLOOR
from deepforecast.kernels.search import Search, begin

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOVING = 0.03  # gamma of a season that changes
SHARE = 0.1  # of alpha: beta of a trend that changes
MIDDLE = 5.0  # of the values a first line is laid through


@bare
def seat(data: Data, plan: Plan, desk: Desk, job: Ints, width: int, k: int) -> None:
    """Give a job to a lane."""
    series, first = job[0], job[2]
    form = plan.forms[first]
    start, end = data.indptr[series], data.indptr[series + 1]
    centre = data.centre[series] if adds_up(form) else 0.0
    count = 0.0
    for t in range(max(end - start, desk.crew[LENGTH, k])):
        at = t * width + k
        value = data.y[start + t] if start + t < end else np.nan
        seen = 0.0 if math.isnan(value) else 1.0
        count += seen
        desk.trail[at + SEEN * LANES] = seen
        desk.trail[at + TARGET * LANES] = value - centre if seen > 0.0 else 0.0
        if form[ERROR] == 1:
            desk.trail[at + VALUE * LANES] = value if seen > 0.0 else 1.0
    desk.crew[SERIES, k], desk.crew[PLACE, k], desk.crew[CANDIDATE, k], desk.crew[LAST, k] = series, job[1], first, job[3]
    desk.crew[ATTEMPT, k] = 0
    desk.crew[LENGTH, k], desk.crew[FENCED, k] = end - start, form[FENCE] == 1
    desk.sums[COUNT * LANES + k] = count
    desk.sums[FLOOR * LANES + k] = count * data.floors[series, form[ERROR]]


@bare
def begin_lane(data: Data, plan: Plan, desk: Desk, search: Search, found: Floats, k: int) -> None:
    """Begin a search in a lane: at a guess, or where that of another form ended, with what it learned of the curvature."""
    series, c = desk.crew[SERIES, k], desk.crew[CANDIDATE, k]
    form, has, free = plan.forms[c], plan.has[c], plan.free[c]
    start = _start(form, found[series], desk.crew[ATTEMPT, k], c)
    parameters, season = desk.work[ROOM], len(has) - FACTORS - data.design.shape[1]
    for j in range(len(has)):
        parameters[j] = data.guesses[series, form[SEASON] // 2, j]
        if start == AGAIN:
            parameters[j] = _found(search, desk.held, season, len(has), j, k)
        if start >= 0 and plan.has[start, j] == 1 and (j < FACTORS or plan.forms[start, SEASON] == form[SEASON]):
            parameters[j] = found[series, start, j]
        elif AGAIN < start < 0 and j < RATES and free[j] == 1:
            parameters[j] = RATES_AT[-1 - start][j]
        elif j == TREND_STATE and free[j] == 1 and (start >= 0 or start == FLAT):
            parameters[j] = 0.0
        elif j >= FACTORS and j < FACTORS + season and free[j] == 1 and start == FLAT:
            parameters[j] = 1.0 if form[SEASON] == 2 else 0.0
    if start <= OTHER_SEASON:
        _change(start, free, has, found[series, c], parameters)
    if form[TREND] == 2 and free[TREND_STATE] == 1 and start > AGAIN and (start < 0 or plan.forms[start, TREND] < 2):
        parameters[TREND_STATE] = min(max(1.0 + parameters[TREND_STATE] / parameters[LEVEL], 0.8), 1.25)
    if AGAIN < start < 0 and form[TREND] == 0 and free[LEVEL] == 1:
        parameters[LEVEL] += MIDDLE * data.guesses[series, form[SEASON] // 2, TREND_STATE]  # without a slope, among the values
    if start == AGAIN:
        pass
    elif adds_up(form):
        parameters[LEVEL] -= data.centre[series]
    elif not parameters[LEVEL] > 0.0 and free[LEVEL] == 1:
        parameters[LEVEL] = data.centre[series]
    for j in range(len(has)):
        if has[j] == 0:
            parameters[j] = plan.neutral[c, j]
        if j < FACTORS + season:
            desk.anchor[j * LANES + k] = parameters[j]
    size = _point(form, free, parameters, season, desk.sums[COUNT * LANES + k], desk.work)
    if AGAIN < start <= STILL:  # no way leads off the rates
        for j in range(free[0] + free[1] + free[2] + free[3]):
            desk.work[LIKELY, j] = 0.0
    begin(search, k, desk.work[START, :size], desk.work[LIKELY, :size])
    if start >= 0 and plan.forms[start, SEASON] == form[SEASON] and plan.forms[start, SLOT] >= 0:
        _recall(free, plan.free[start], season, desk.memory[desk.crew[PLACE, k], plan.forms[start, SLOT]], search.inverse[k])
    elif free[FACTORS] == 1 and season > 1:
        _linked(free, season, desk.work[LIKELY], search.inverse[k])


@part
def _found(search: Search, held: Floats, season: int, parameters: int, j: int, k: int) -> float:
    """A parameter where the lane's last search ended, which was laid in the lane."""
    if j < FACTORS + season:
        return float(held[j * LANES + k])
    return float(search.point[k, search.size[k] - parameters + j])


@bare
def _change(start: int, free: Ints, has: Ints, best: Floats, parameters: Floats) -> None:
    """The best parameters so far with another season, trend or level: fixed where it changed, changing where it was fixed.

    A season that begins to change does so with the factors of the first guess.
    """
    fixed_season, fixed_slope = best[2] < MOVING, best[1] < SHARE * best[0]
    for j in range(len(has)):
        if has[j] == 1 and not (start == OTHER_SEASON and fixed_season and j >= FACTORS):
            parameters[j] = best[j]
    alpha = parameters[0]
    if start == OTHER_SEASON and free[2] == 1:
        if fixed_season and free[0] == 1:
            parameters[0], parameters[1] = 0.9 * alpha, 0.9 * parameters[1]
        parameters[2] = 0.8 * (1.0 - parameters[0]) if fixed_season else 0.0005
    if start == OTHER_TREND and free[1] == 1:
        parameters[1] = (0.9 if fixed_slope else 0.005) * alpha
        if free[3] == 1:
            parameters[3] = 0.85 if fixed_slope else 0.97
    if start == OTHER_LEVEL and free[0] == 1:
        parameters[0] = 0.02 if alpha > 0.05 else 0.5 + 0.5 * alpha
        if free[1] == 1:
            parameters[1] = min(parameters[1], SHARE * parameters[0])
        if free[2] == 1:
            parameters[2] = min(parameters[2], 0.9 * (1.0 - parameters[0]))


@part
def _start(form: Ints, found: Floats, attempt: int, c: int) -> int:
    """Where the attempt begins; at a guess if the other form was not found."""
    if attempt == LAST_RESORT:
        return FLAT
    start = GUESS if attempt == WITH_FENCE else form[STARTS + attempt]
    if start <= OTHER_SEASON:
        return start if math.isfinite(found[c, found.shape[1] + VALUE_OF]) else BOLD
    return start if start < 0 or math.isfinite(found[start, found.shape[1] + VALUE_OF]) else GUESS


@part
def _point(form: Ints, free: Ints, parameters: Floats, season: int, count: float, work: Floats) -> int:
    """The point of parameters and the squares of likely distances to the optimum; the number of coordinates."""
    at, alpha, beta, gamma = 0, max(parameters[0], 0.01), max(parameters[1], 0.001), max(parameters[2], 0.01)
    for j in range(len(free)):
        if free[j] == 0 or j == FACTORS + season - 1:
            continue
        work[START, at] = parameters[j]
        if j < RATES:
            work[START, at] = angle(parameters[j], j, alpha, form[WIDE] == 1)
            low, high = bounds(j, alpha, form[WIDE] == 1)
            steep = 0.5 * (high - low) * math.cos(work[START, at])
            rate = 0.005 if j == 3 else min(parameters[j], 0.99)
            work[LIKELY, at] = min(max(rate, 0.001) * (2.0 - rate) / (count * steep * steep), 0.3)
        elif j == LEVEL:
            work[LIKELY, at] = 0.1 * (alpha * (2.0 - alpha) + 1.0 / count)
        elif j == TREND_STATE:
            work[LIKELY, at] = 0.1 * (alpha * beta + 12.0 / count**3)
        elif j < FACTORS + season:
            work[LIKELY, at] = 0.1 * (gamma * (2.0 - gamma) + season / count)
        else:
            work[LIKELY, at] = 0.4 / count
        at += 1
    return at


@part
def _linked(free: Ints, season: int, likely: Floats, inverse: Floats) -> None:
    """The factors of a season move against each other: the last one takes up what the others do."""
    first = 0
    for j in range(FACTORS):
        first += free[j]
    for i in range(season - 1):
        for j in range(season - 1):
            inverse[first + i, first + j] -= likely[first + i] / season


@part
def _recall(free: Ints, known: Ints, season: int, memory: Floats, inverse: Floats) -> None:
    """The inverse Hessian another form ended with, as far as it goes."""
    i = 0
    for one in range(len(free)):
        if free[one] == 0 or one == FACTORS + season - 1:
            continue
        j = 0
        for other in range(len(free)):
            if free[other] == 0 or other == FACTORS + season - 1:
                continue
            if known[one] == 1 and known[other] == 1:
                inverse[i, j] = memory[one, other]
            j += 1
        i += 1


@bare
def lay(data: Data, plan: Plan, desk: Desk, point: Floats, width: int, k: int) -> None:
    """Lay the parameters of a point in a lane."""
    series, c = desk.crew[SERIES, k], desk.crew[CANDIDATE, k]
    form, free, regressors = plan.forms[c], plan.free[c], data.design.shape[1]
    season = len(free) - FACTORS - regressors
    for j in range(FACTORS + season):
        desk.held[j * LANES + k] = desk.anchor[j * LANES + k]
    total = float(season) if form[SEASON] == 2 else 0.0
    if not to_lane(free, form[WIDE] == 1, total, season, point, desk.held, k):
        desk.held[LEVEL * LANES + k] = np.nan
    if regressors == 0 or width == 0:
        return
    first = 0
    for j in range(FACTORS + season - 1):
        first += free[j]
    start, centre = data.indptr[series], data.centre[series] if adds_up(form) else 0.0
    for t in range(desk.crew[LENGTH, k]):
        at = t * width + k
        if desk.trail[at + SEEN * LANES] > 0.0:
            value = data.y[start + t] - centre
            for r in range(regressors):
                value -= data.design[start + t, r] * point[first + r]
            desk.trail[at + TARGET * LANES] = value
