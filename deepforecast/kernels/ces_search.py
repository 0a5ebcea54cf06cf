"""The parameters of complex exponential smoothing: least squares with exact derivatives, 16 searches side by side.

A lane holds one series and fits its forms one after another: partial, full from what was found for partial, which it
generalises, then those without a season beside the level, which are left when they are far behind. The sum of squares is that
of the last of three runs: on from a rough start, back, on again; the derivatives of its errors go along with it, so that a
Gauss-Newton (Levenberg-Marquardt) step takes one evaluation. Lanes end on the same row, whatever their lengths; a lane that is
done takes the next series.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.arrays import only_read
from deepforecast.kernels.ces import FULL, NONE, PARTIAL, SIMPLE, gains, rough_start
from deepforecast.kernels.ces_rows import LANES, QUANTITIES, ROUGH, STATE, evaluate
from deepforecast.kernels.compiling import announced, bare, lean, part

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

MOST = 60  # evaluations of a search
ENOUGH = 1e-7  # relative gain in the sum of squares
FASTER = 10.0  # the damping grows, when a step was too long
LOOSE = 0.1  # damping below which a step tells of second derivatives
EDGE = 1e-4  # how far parameters stay inside the region of stability
SMOOTHEST, FASTEST = 0.0, 1.0  # of a real season
ORDER = np.array([PARTIAL, FULL, NONE, SIMPLE])
PLAIN = np.array([[1.3, 1.0, 0.0, 0.0], [0.0, 0.0, 1.3, 1.0], [1.3, 1.0, 0.1, 0.0], [1.3, 1.0, 1.3, 1.0]])
"""Of each form, parameters of a level that neither drifts nor waits, and a season alike."""
PATIENCE, BEHIND = 5, 1.5  # evaluations after which a form is left whose sum of squares is so many times another's
TRIAL, FOUND, PACE, KEPT, LACKING, SYSTEM = 0, 1, 2, 3, 7, 11
"""Rows of a search (19, 5): parameters evaluated next, and the best; how it goes; products of the derivatives at the best, and
with the errors, less than 0 (4 rows); what these lack to be second derivatives (4); equations (4), and these once more."""
LEAST, DAMPING, GROWTH, OTHERS, ROUNDS = range(5)
"""How it goes: the least sum of squares so far, the damping of steps, how it grows; the least of other forms; evaluations."""
ROWS_PER_CALL = 2**19
"""Rows that one call evaluates, about a second at most: Python handles Ctrl-C between calls."""
TAKEN, DONE = range(2)  # series of the plan, in `progress`
PLACE, TURN, BEGIN = range(3)
"""Of a lane: the row of its series in the plan, -1 for none; the column of the form it is at; the row of the first value."""
CIRCLES = np.array([[1.5, 0.5, math.sqrt(1.5)], [0.5, 1.0, -0.5], [2.5, 0.0, -math.sqrt(1.25)]])
"""The region of stability of a pair in the plane of p0 and p1: centre and radius, negative where it lies outside the circle."""


class Room(NamedTuple):
    """Where the searches work."""

    rows: Floats  # (2, rows + 1, LANES), states (4, 1 + m, STATE): as `evaluate` has them
    states: Floats
    gains: Floats  # (14 * LANES,)
    errors: Floats  # (QUANTITIES * LANES,)
    products: Floats  # (QUANTITIES * QUANTITIES * LANES,)
    searches: Floats  # (LANES, 19, 5)
    lanes: Ints  # (3, LANES)
    rough: Floats  # (1 + m, 2): level and season of one series, and its gains
    one_gain: Floats


def estimate(y: Floats, indptr: Ints, index: Floats, forms: Bools) -> tuple[Floats, Floats]:
    """Parameters (series, 4, 4) and sums of squares (series, 4) of the forms that are asked for (series, 4); NaN of others.

    The full one needs the partial one; what is left far behind another is no minimum. index: seasonal indices (series, m; the
    first row's first), to begin with.
    """
    lengths, found = np.diff(indptr), np.full((len(indptr) - 1, 4, 5), np.nan)
    queue = np.argsort(-lengths, kind="stable")  # neighbours are about as long
    places = np.sort(np.where(forms[:, ORDER], np.arange(4), 4), axis=1)
    plan = np.append(ORDER, -1)[np.pad(places, [(0, 0), (0, 1)], constant_values=4)]  # the forms of each, -1 behind the last
    plan = np.column_stack([queue, plan[queue]])[plan[queue, 0] >= 0]
    room, progress = _room(int(lengths.max()), index.shape[1]), np.zeros(2, np.int64)
    with announced("complex exponential smoothing"):
        while progress[DONE] < len(plan):
            _search(only_read(y), indptr, index, plan, room, progress, found)
    return np.ascontiguousarray(found[:, :, :4]), found[:, :, 4]


def _room(rows: int, places: int) -> Room:
    lanes = np.zeros((3, LANES), np.int64)
    lanes[PLACE], lanes[BEGIN] = -1, rows
    values, states = np.zeros((2, rows + 1, LANES)), np.zeros((4, 1 + places, STATE))
    work = np.zeros(14 * LANES), np.zeros(QUANTITIES * LANES), np.zeros(QUANTITIES * QUANTITIES * LANES)
    return Room(values, states, *work, np.zeros((LANES, 19, 5)), lanes, np.empty((1 + places, 2)), np.empty(14))


@lean
def _search(y: Floats, indptr: Ints, index: Floats, plan: Ints, room: Room, progress: Ints, found: Floats) -> None:
    """Search until all of the plan is done or `ROWS_PER_CALL` rows are evaluated; the next call continues at `progress`."""
    rows, states, gains_, errors, products, searches, lanes, rough, one_gain = room
    taken, done, evaluated = progress[TAKEN], progress[DONE], 0
    while done < len(plan) and evaluated < ROWS_PER_CALL:
        for lane in range(LANES):
            own, place = searches[lane], lanes[PLACE, lane]
            begins = place >= 0 and own[PACE, ROUNDS] >= MOST
            if begins:
                lanes[TURN, lane] += 1
                if plan[place, lanes[TURN, lane]] < 0:
                    place, begins = -1, False
                    lanes[BEGIN, lane] = rows.shape[1] - 1
                    done += 1
            if place < 0 and taken < len(plan):
                place, begins = taken, True
                lanes[TURN, lane] = 1
                own[PACE, OTHERS] = np.inf
                taken += 1
            lanes[PLACE, lane] = place
            if begins:
                series = plan[place, 0]
                values = y[indptr[series] : indptr[series + 1]]
                lanes[BEGIN, lane] = _load(values, lane, rows)
                _begin(plan[place, lanes[TURN, lane]], own, found[series, PARTIAL])
                rough_start(values, plan[place, lanes[TURN, lane]], index[series], rough[0], rough[1:])
                _set_out(rough, lanes[BEGIN, lane], lane, states[ROUGH])
            if place >= 0:
                gains(plan[place, lanes[TURN, lane]], own[TRIAL], one_gain)
            for row in range(14):
                gains_[row * LANES + lane] = one_gain[row] if place >= 0 else 0.0
        evaluate(rows, lanes[BEGIN], states, gains_, errors, products)
        evaluated += rows.shape[1]
        for lane in range(LANES):
            place = lanes[PLACE, lane]
            if place >= 0:
                form = plan[place, lanes[TURN, lane]]
                if _is_done(form, products[lane:], searches[lane]):
                    _put_down(searches[lane], found[plan[place, 0], form])
    progress[TAKEN], progress[DONE] = taken, done


@bare
def _load(own: Floats, lane: int, rows: Floats) -> int:
    """Put a series into a lane, its last row last; which its first is."""
    last: int = rows.shape[1] - 1
    begin = last - len(own)
    for t in range(last):
        value = own[t - begin] if t >= begin else np.nan
        here = not math.isnan(value)
        rows[0, t, lane], rows[1, t, lane] = value if here else 0.0, 1.0 if here else 0.0
    return begin


@bare
def _set_out(rough: Floats, begin: int, lane: int, state: Floats) -> None:
    """Where the runs of a form begin."""
    period = len(rough) - 1
    for row in range(period + 1):
        place = 1 + (begin + row - 1) % period if row > 0 else 0
        state[place, lane], state[place, LANES + lane] = rough[row, 0], rough[row, 1]


@bare
def _begin(form: int, own: Floats, partial: Floats) -> None:
    """Begin the search of a lane's next form, at a level that neither drifts nor waits."""
    pace, trial = own[PACE], own[TRIAL]
    pace[LEAST] = np.inf
    pace[DAMPING] = 1e-3
    pace[GROWTH] = FASTER
    pace[ROUNDS] = 0.0
    for number in range(4):
        trial[number] = PLAIN[form, number]
    if form == FULL:  # a partial season is a full one with p1 = 1
        trial[0] = partial[0]
        trial[1] = partial[1]
        trial[2] = 1.0 + max(partial[2], 2.0 * EDGE)


@bare
def _put_down(own: Floats, found: Floats) -> None:
    """What the search of a form has found."""
    pace = own[PACE]
    pace[ROUNDS] = MOST
    pace[OTHERS] = min(pace[OTHERS], pace[LEAST])
    for number in range(4):
        found[number] = own[FOUND, number]
    found[4] = pace[LEAST]


# -- an evaluation of all lanes ------------------------------------------------------------------------------------------------


@part
def _is_done(form: int, products: Floats, own: Floats) -> bool:
    """Take in what was found at a lane's trial and set the next one; True when there is nothing to gain."""
    squares, pace, trial, found = products[0], own[PACE], own[TRIAL], own[FOUND]
    least = pace[LEAST]
    first, better = not math.isfinite(least), math.isfinite(squares) and squares < least
    pace[ROUNDS] += 1.0
    if better:
        _learn(products, own)
    for number in range(4):
        for other in range(4):
            if first or not better:  # nothing to compare with, or what was learned misled
                own[LACKING + number, other] = 0.0
        if first or better:
            found[number] = trial[number]
    if better:
        pace[LEAST] = squares
        if pace[GROWTH] == FASTER:  # not just after a step that was too long
            pace[DAMPING] = max(pace[DAMPING] * 0.1, 1e-9)
        pace[GROWTH] = FASTER
        if squares == 0.0 or least - squares < ENOUGH * least:
            return True
    else:
        pace[DAMPING] = max(pace[DAMPING] * pace[GROWTH], 1e-2)
        pace[GROWTH] *= 2.0
    behind = pace[ROUNDS] >= PATIENCE and pace[LEAST] > BEHIND * pace[OTHERS]  # so far that it need not be followed
    if behind or pace[ROUNDS] >= MOST or pace[DAMPING] > 1e8:
        return True
    away, begun = 0.0, better or not first
    if begun:
        _descend(form, own)
    for number in range(4):  # on; or, if there was not even a beginning, a plainer one
        trial[number] = found[number] + min(max(own[SYSTEM + number, 4], -1.0), 1.0) if begun else PLAIN[form, number]
    if begun:
        _inside(form, trial)
    for number in range(4):
        away = max(away, abs(trial[number] - found[number]))
    return away <= 1e-9


@bare
def _learn(products: Floats, own: Floats) -> None:
    """Take in the products at a new point; and, from how the gradient changed (a symmetric rank one update), what they lack to
    be the second derivatives, which is much where the errors are large."""
    trial, found, wrong = own[TRIAL], own[FOUND], own[SYSTEM]
    along, size, length = 0.0, 0.0, 0.0
    for one in range(4):
        gradient = products[(one + 1) * LANES]
        wrong[one] = gradient + own[KEPT + one, 4]
        own[KEPT + one, 4] = -gradient
        for other in range(one, 4):
            product = products[((one + 1) * QUANTITIES + other + 1) * LANES]
            own[KEPT + one, other], own[KEPT + other, one] = product, product
    for one in range(4):
        moved = trial[one] - found[one]
        for other in range(4):
            wrong[one] -= (own[KEPT + one, other] + own[LACKING + one, other]) * (trial[other] - found[other])
        along += wrong[one] * moved
        size, length = size + wrong[one] * wrong[one], length + moved * moved
    if own[PACE, DAMPING] < LOOSE and along * along > 1e-8 * size * length:
        for one in range(4):
            for other in range(4):
                own[LACKING + one, other] += wrong[one] * wrong[other] / along


@part
def _descend(form: int, own: Floats) -> None:
    """A damped Gauss-Newton step, along the edge of the region of stability where it would leave it."""
    again = own[SYSTEM + 4 :]
    for row in range(4):
        for column in range(5):
            again[row, column] = own[KEPT + row, column] + own[LACKING + row, column]
        again[row, row] += own[PACE, DAMPING] * own[KEPT + row, row]
        if again[row, row] == 0.0:
            again[row, row] = 1.0  # a parameter that plays no part
    held = False
    for _ in range(5):
        _solve(again, own[SYSTEM : SYSTEM + 4])
        more = False
        if form == PARTIAL and not held:
            forward, place = own[SYSTEM + 2, 4], own[FOUND, 2]
            if (place >= FASTEST and forward > 0.0) or (place <= SMOOTHEST and forward < 0.0):
                again[2, 2] += 1e12 * own[KEPT + 2, 2]
                held, more = True, True
        for number in range(6):  # of the circles around both pairs
            if _is_pair(form, number // 3):
                more = _hold(own, again, number) or more
        if not more:
            return


@bare
def _is_pair(form: int, pair: int) -> bool:
    """Whether the first or second pair of parameters is a complex one: NONE has the first alone, SIMPLE the second."""
    return form == pair if form < PARTIAL else form == FULL or pair == 0


@bare
def _hold(own: Floats, again: Floats, number: int) -> bool:
    """Where a step leaves through a circle it stands on: make it follow the arc instead. True if that was so."""
    at, circle = number // 3 * 2, CIRCLES[number % 3]
    after = at + 1
    x, z = own[FOUND, at] - circle[0], own[FOUND, after] - circle[1]
    distance = math.sqrt(x * x + z * z)
    if abs(distance - abs(circle[2] - EDGE)) > 1e-7:
        return False
    x, z = x / distance, z / distance
    forward, aside = own[SYSTEM + at, 4], own[SYSTEM + after, 4]
    if (x * forward + z * aside) * circle[2] <= 1e-9 * (abs(forward) + abs(aside)):
        return False
    wall = 1e12 * (own[KEPT + at, at] + own[KEPT + after, after])
    bend = (x * own[KEPT + at, 4] + z * own[KEPT + after, 4]) / distance  # the arc turns away from the tangent
    across = (wall - bend) * x * z
    again[at, at] += wall * x * x + bend * z * z
    again[at, after] += across
    again[after, at] += across
    again[after, after] += wall * z * z + bend * x * x
    return True


@bare
def _solve(given: Floats, system: Floats) -> None:
    """Four equations, worked on in a second place, where what solves them takes the place of the right sides."""
    size = len(given)  # not known beforehand: loops over known numbers are unrolled, which takes long to compile
    for row in range(size):
        for column in range(size + 1):
            system[row, column] = given[row, column]
    for row in range(size):
        for other in range(size):
            if other != row:
                share = system[other, row] / system[row, row]
                for column in range(row, size + 1):
                    system[other, column] -= share * system[row, column]
    for row in range(size):
        system[row, size] /= system[row, row]


@bare
def _inside(form: int, trial: Floats) -> None:
    """Bring parameters back to where the recursion forgets its past: inside one circle, outside two."""
    if form == PARTIAL:
        trial[2] = min(max(trial[2], SMOOTHEST), FASTEST)
    for number in range(18):  # three times around each pair
        if _is_pair(form, number // 9):
            _beside_circle(trial, number // 9 * 2, number % 3)


@bare
def _beside_circle(trial: Floats, at: int, circle: int) -> None:
    x, z, radius = trial[at] - CIRCLES[circle, 0], trial[at + 1] - CIRCLES[circle, 1], CIRCLES[circle, 2]
    distance, edge = math.sqrt(x * x + z * z), abs(radius - EDGE)
    if (distance - edge) * radius > 0.0 and distance > 0.0:
        trial[at], trial[at + 1] = CIRCLES[circle, 0] + x * edge / distance, CIRCLES[circle, 1] + z * edge / distance
