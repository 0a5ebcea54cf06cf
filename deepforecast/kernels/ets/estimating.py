"""Maximum likelihood of several forms for many series: 16 searches side by side, larger forms begun where smaller ones ended.

A lane takes a series, fits the forms of a group to it one after the other, and takes the next series. Longest series first,
so that those side by side are about as long.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compiling import bare, lean, part
from deepforecast.kernels.ets.admissible import distance
from deepforecast.kernels.ets.beginning import begin_lane, lay, seat
from deepforecast.kernels.ets.coordinates import FACTORS, LEVEL, to_gradient
from deepforecast.kernels.ets.desk import (
    ATTEMPT,
    CANDIDATE,
    ERROR,
    FENCE,
    FENCED,
    GRADIENT,
    LAST,
    LAST_RESORT,
    LENGTH,
    MOST_STARTS,
    NOWHERE,
    PLACE,
    ROOM,
    ROUNDS_OF,
    SEASON,
    SERIES,
    SLOT,
    STARTS,
    TREND,
    VALUE_OF,
    WIDE,
    WITH_FENCE,
    Data,
    Desk,
    Plan,
    adds_up,
)
from deepforecast.kernels.ets.lanes import (
    LANES,
    NOTHING,
    PULL,
    STATES,
    backward_product,
    backward_sum,
    forward_product,
    forward_sum,
)
from deepforecast.kernels.ets.likelihood import FOUND, additive, multiplicative
from deepforecast.kernels.ets.powers import backward_power, forward_power
from deepforecast.kernels.search import GO_ON, STUCK, Search, advance

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FENCE_WEIGHT = 1e-4
STEPS_PER_CALL = 2**20
"""Time steps that one call evaluates, about a second at most: Python handles Ctrl-C between calls."""
WIDTH, QUEUE, STEPS = 1, 2, 3  # of `group`
LEAST_GAIN = 0.05


@lean
def fit_group(
    data: Data, plan: Plan, desk: Desk, search: Search, found: Floats, jobs: Ints, group: Ints, limits: Floats
) -> None:
    """Fit forms that share the recursion of form `group[0]`, with rows `group[1]` wide.

    `jobs` (jobs, 4): a series, its place in `memory`, the first form to fit to it and the last + 1.
    `found` (series, forms, parameters + 2): parameters, minus the log-likelihood, evaluations.
    `limits`: of a search the tolerance and the most evaluations. A further search for a form ends early if after `limits[2]`
    evaluations `limits[3]` times twice the gain that its quadratic model expects would not make it better than the form's best
    by LEAST_GAIN. A call ends after about `STEPS_PER_CALL` steps and the next one continues: `group` counts the jobs begun
    (`QUEUE`) and the steps to evaluate next (`STEPS`), both 0 before the first call, the latter 0 when all is done.
    """
    crew, queue, steps, evaluated = desk.crew, group[QUEUE], group[STEPS], NOTHING
    if steps == 0:
        for k in range(LANES):
            crew[SERIES, k] = -1
    while True:
        if steps > 0:
            _evaluate(plan.forms[group[0]], desk, steps, group[WIDTH], found.shape[2] - 2 - data.design.shape[1] - FACTORS)
        evaluated += steps
        steps = NOTHING
        for k in range(LANES):
            going = crew[SERIES, k] >= 0 and _judge(data, plan, desk, search, found, limits, group[WIDTH], k) == GO_ON
            if not going:
                if crew[SERIES, k] >= 0:
                    _keep(data, plan, desk, search, found, k)
                if crew[SERIES, k] < 0 or not _turn(plan, desk, found, k):
                    crew[SERIES, k] = -1
                    if queue == len(jobs):
                        continue
                    seat(data, plan, desk, jobs[queue], group[WIDTH], k)
                    queue += 1
                begin_lane(data, plan, desk, search, found, k)
                desk.ceiling[k] = found[crew[SERIES, k], crew[CANDIDATE, k], found.shape[2] + VALUE_OF] - LEAST_GAIN
            lay(data, plan, desk, search.trial[k], group[WIDTH], k)
            steps = max(steps, crew[LENGTH, k])
        if steps == 0 or evaluated >= STEPS_PER_CALL:
            group[QUEUE], group[STEPS] = queue, steps
            return


@part
def _evaluate(form: Ints, desk: Desk, steps: int, width: int, season: int) -> None:
    """The likelihood of all lanes and its gradient."""
    turn, product = season if form[SEASON] > 0 else 1, form[SEASON] == 2
    ring, back = desk.held[STATES : STATES + turn * LANES], desk.pulls[STATES : STATES + turn * LANES]
    if form[TREND] == 2:
        forward_power(desk.trail, steps, width, desk.held, ring, product)
    elif product:
        forward_product(desk.trail, steps, width, desk.held, ring)
    else:
        forward_sum(desk.trail, steps, width, desk.held, ring)
    if form[ERROR] == 1:
        multiplicative(desk.trail, steps, width, desk.sums)
    else:
        additive(desk.trail, steps, width, desk.sums)
    for j in range(len(desk.pulls)):
        desk.pulls[j] = 0.0
    if form[TREND] == 2:
        backward_power(desk.trail, steps, width, desk.held, desk.pulls, back, product)
    elif product:
        backward_product(desk.trail, steps, width, desk.held, desk.pulls, back)
    else:
        backward_sum(desk.trail, steps, width, desk.held, desk.pulls, back)


@part
def _judge(data: Data, plan: Plan, desk: Desk, search: Search, found: Floats, limits: Floats, width: int, k: int) -> int:
    """Tell the search what a point is worth."""
    series, c = desk.crew[SERIES, k], desk.crew[CANDIDATE, k]
    form, free, regressors = plan.forms[c], plan.free[c], data.design.shape[1]
    season = len(free) - FACTORS - regressors
    value, gradient = desk.sums[FOUND * LANES + k], desk.work[GRADIENT]
    if desk.crew[FENCED, k] == 1:
        value += FENCE_WEIGHT * _fence(form, season, desk, k, FENCE_WEIGHT)
    first = to_gradient(free, form[WIDE] == 1, season, search.trial[k], desk.held, desk.pulls, k, gradient)
    for r in range(regressors):
        gradient[first + r] = 0.0
        for t in range(desk.crew[LENGTH, k]):
            gradient[first + r] += data.design[data.indptr[series] + t, r] * desk.trail[t * width + PULL * LANES + k]
    verdict = advance(search, k, value, gradient, limits[0], int(limits[1]))
    promise = search.value[k] + limits[3] * search.descent[k]
    if verdict == GO_ON and search.rounds[k] >= limits[2] and promise > desk.ceiling[k]:
        return STUCK
    return verdict


@bare
def _fence(form: Ints, season: int, desk: Desk, k: int, weight: float) -> float:
    """The distance that grows towards the edge of the admissible region; its derivatives, times `weight`, go to `pulls`."""
    turn, room, held, h = season if form[SEASON] > 0 else 1, desk.work[ROOM], desk.held, 1e-6
    alpha, beta, gamma = held[k], held[LANES + k], held[2 * LANES + k]
    phi = held[3 * LANES + k] if form[TREND] > 0 else 0.0
    middle = distance(alpha, beta, gamma, phi, turn, room)
    if weight > 0.0 and math.isfinite(middle):
        weight /= h
        desk.pulls[k] += weight * (distance(alpha + h, beta, gamma, phi, turn, room) - middle)
        desk.pulls[LANES + k] += weight * (distance(alpha, beta + h, gamma, phi, turn, room) - middle)
        desk.pulls[2 * LANES + k] += weight * (distance(alpha, beta, gamma + h, phi, turn, room) - middle)
        desk.pulls[3 * LANES + k] += weight * (distance(alpha, beta, gamma, phi + h, turn, room) - middle)
    return middle


@part
def _turn(plan: Plan, desk: Desk, found: Floats, k: int) -> bool:
    """Turn to the next search of a lane's series; False where it was the last."""
    crew = desk.crew
    c, attempt = crew[CANDIDATE, k], crew[ATTEMPT, k]
    form, mine = plan.forms[c], found[crew[SERIES, k], c]
    if attempt + 1 < MOST_STARTS and form[STARTS + attempt + 1] != NOWHERE:
        crew[ATTEMPT, k] = attempt + 1
        return True
    if attempt < LAST_RESORT and not math.isfinite(mine[len(mine) + VALUE_OF]):
        crew[ATTEMPT, k] = LAST_RESORT
        return True
    if form[FENCE] == 2 and crew[FENCED, k] == 0 and _outside(form, mine, desk):
        crew[ATTEMPT, k], crew[FENCED, k] = WITH_FENCE, 1
        return True
    if c + 1 == crew[LAST, k]:
        return False
    crew[CANDIDATE, k], crew[ATTEMPT, k], crew[FENCED, k] = c + 1, 0, plan.forms[c + 1, FENCE] == 1
    return True


@bare
def _outside(form: Ints, mine: Floats, desk: Desk) -> bool:
    """Whether the optimum lies outside the admissible region; then it counts no more."""
    season = len(desk.anchor) // LANES - FACTORS if form[SEASON] > 0 else 1
    phi = mine[3] if form[TREND] > 0 else 0.0
    if math.isfinite(distance(mine[0], mine[1], mine[2], phi, season, desk.work[ROOM])):
        return False
    mine[len(mine) + VALUE_OF] = np.inf
    return True


@part
def _keep(data: Data, plan: Plan, desk: Desk, search: Search, found: Floats, k: int) -> None:
    """Keep what a search has found, if it is better than what was there."""
    series, c = desk.crew[SERIES, k], desk.crew[CANDIDATE, k]
    form, free, mine = plan.forms[c], plan.free[c], found[series, c]
    mine[len(mine) + ROUNDS_OF] += search.rounds[k]
    season = len(free) - FACTORS - data.design.shape[1]
    lay(data, plan, desk, search.point[k], NOTHING, k)
    value = search.value[k]
    if desk.crew[FENCED, k] == 1:
        value -= FENCE_WEIGHT * _fence(form, season, desk, k, 0.0)
    if not value < mine[len(mine) + VALUE_OF]:
        return
    mine[len(mine) + VALUE_OF] = value
    for j in range(FACTORS + season):
        mine[j] = desk.held[j * LANES + k]
    if adds_up(form):
        mine[LEVEL] += data.centre[series]
    i = 0
    for one in range(len(free)):
        if free[one] == 0 or one == FACTORS + season - 1:
            continue
        if one >= FACTORS + season:
            mine[one] = search.point[k, i]
        j = 0
        for other in range(len(free)):
            if form[SLOT] >= 0 and free[other] == 1 and other != FACTORS + season - 1:
                desk.memory[desk.crew[PLACE, k], form[SLOT], one, other] = search.inverse[k, i, j]
                j += 1
        i += 1
