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

from deepforecast.kernels.ces import FULL, NONE, PARTIAL, SIMPLE, gains, rough_start
from deepforecast.kernels.ces_rows import LANES, PRODUCTS, QUANTITIES, STATE, Desk, evaluate
from deepforecast.kernels.compiling import announced, bare, lean

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

MOST = 60  # evaluations of a search
ENOUGH = 1e-7  # relative gain in the sum of squares
FASTER = 10.0  # the damping grows, when a step was too long
LOOSE = 0.1  # damping below which a step tells of second derivatives
EDGE = 1e-4  # how far parameters stay inside the region of stability
SMOOTHEST, FASTEST = 0.0, 1.0  # of a real season
ORDER = (PARTIAL, FULL, NONE, SIMPLE)
PATIENCE, BEHIND = 5, 1.5  # evaluations after which a form is left whose sum of squares is so many times another's
LEAST, DAMPING, GROWTH = range(3)
"""Of a search: the least sum of squares so far, the damping of its steps, and how it grows."""
CIRCLES = np.array([[1.5, 0.5, math.sqrt(1.5)], [0.5, 1.0, -0.5], [2.5, 0.0, -math.sqrt(1.25)]])
"""The region of stability of a pair in the plane of p0 and p1: centre and radius, negative where it lies outside the circle."""


class Searches(NamedTuple):
    """Where the searches stand: one row a lane."""

    series: Ints  # -1 for none
    form: Ints
    rounds: Ints
    trial: Floats  # (LANES, 4), evaluated next
    found: Floats  # (LANES, 4), the best
    pace: Floats  # (LANES, 3)
    kept: Floats  # (LANES, QUANTITIES, QUANTITIES): products at the best
    lacking: Floats  # (LANES, 4, 4): what these lack to be second derivatives
    system: Floats  # (9, 5): equations; one row to spare; and their left sides


def estimate(y: Floats, indptr: Ints, index: Floats, forms: Bools) -> tuple[Floats, Floats]:
    """Parameters (series, 4, 4) and sums of squares (series, 4) of the forms that are asked for (series, 4); NaN of others.

    The full one needs the partial one; what is left far behind another is no minimum. index: seasonal indices (series, m; the
    first row's first), to begin with.
    """
    lengths = np.diff(indptr)
    queue = np.argsort(-lengths, kind="stable")  # neighbours are about as long
    found = np.full((len(lengths), 4, 5), np.nan)
    with announced("complex exponential smoothing"):
        _search(y, indptr, index, forms, queue, _desk(int(lengths.max()), index.shape[1]), _searches(), found)
    return np.ascontiguousarray(found[:, :, :4]), found[:, :, 4]


def _desk(rows: int, places: int) -> Desk:
    rough, start, live, still = (np.zeros((1 + places, STATE)) for _ in range(4))
    gains_, errors = np.zeros(14 * LANES), np.zeros(QUANTITIES * LANES)
    values, seen, products = np.zeros((rows, LANES)), np.zeros((rows, LANES)), np.zeros(PRODUCTS * LANES)
    one = np.empty(2), np.empty((places, 2)), np.empty(14)
    return Desk(values, seen, rough, start, live, still, gains_, errors, products, np.full(LANES, rows), *one)


def _searches() -> Searches:
    series, form, rounds = np.full(LANES, -1), np.zeros(LANES, np.int64), np.zeros(LANES, np.int64)
    trial, found, pace = np.zeros((LANES, 4)), np.zeros((LANES, 4)), np.zeros((LANES, 3))
    kept, lacking = np.zeros((LANES, QUANTITIES, QUANTITIES)), np.zeros((LANES, 4, 4))
    return Searches(series, form, rounds, trial, found, pace, kept, lacking, np.zeros((9, 5)))


@lean
def _search(
    y: Floats, indptr: Ints, index: Floats, forms: Bools, queue: Ints, desk: Desk, at: Searches, found: Floats
) -> None:
    taken, done = 0, 0
    while done < len(queue):
        for lane in range(LANES):
            series = at.series[lane]
            if series < 0 and taken < len(queue):
                series = queue[taken]
                taken += 1
                at.series[lane], at.form[lane] = series, -1
                _load(y[indptr[series] : indptr[series + 1]], lane, desk)
                at.rounds[lane] = MOST  # on to its first form
            if series >= 0 and at.rounds[lane] >= MOST:
                _begin(forms[series], lane, at, found[series])
                if at.form[lane] < 0:
                    at.series[lane], desk.begins[lane] = -1, len(desk.values)
                    done += 1
                else:
                    _set_out(y[indptr[series] : indptr[series + 1]], at.form[lane], index[series], lane, desk)
            gains(at.form[lane], at.trial[lane], desk.one_gain)
            for row in range(14):
                desk.gains[row * LANES + lane] = desk.one_gain[row] if at.series[lane] >= 0 else 0.0
        evaluate(desk)
        for lane in range(LANES):
            series = at.series[lane]
            if series < 0:
                continue
            form = at.form[lane]
            if not _step(form, lane, desk.products, at) or _behind(at.pace[lane, LEAST], at.rounds[lane], found[series]):
                at.rounds[lane] = MOST
            if at.rounds[lane] >= MOST:
                for number in range(4):
                    found[series, form, number] = at.found[lane, number]
                found[series, form, 4] = at.pace[lane, LEAST]


@bare
def _load(own: Floats, lane: int, desk: Desk) -> None:
    """Put a series into a lane, its last row last."""
    begin = len(desk.values) - len(own)
    desk.begins[lane] = begin
    for t in range(len(desk.values)):
        desk.values[t, lane], desk.seen[t, lane] = 0.0, 0.0
        if t >= begin and not math.isnan(own[t - begin]):
            desk.values[t, lane], desk.seen[t, lane] = own[t - begin], 1.0


@bare
def _set_out(own: Floats, form: int, index: Floats, lane: int, desk: Desk) -> None:
    """Where the runs of a form begin."""
    period = len(index)
    rough_start(own, form, index, desk.first_level, desk.first_season)
    for part in range(2):
        desk.rough[0, part * LANES + lane] = desk.first_level[part]
        for place in range(period):
            desk.rough[1 + (desk.begins[lane] + place) % period, part * LANES + lane] = desk.first_season[place, part]


@bare
def _begin(forms: Bools, lane: int, at: Searches, found: Floats) -> None:
    """Begin the search of a lane's next form, at a level that neither drifts nor waits."""
    before, form = at.form[lane], -1
    for place in range(3, -1, -1):  # the last in the order that is asked for and comes after the one before
        if ORDER[place] == before:
            break
        if forms[ORDER[place]]:
            form = ORDER[place]
    at.form[lane] = form
    if form < 0:
        return
    at.rounds[lane] = 0
    at.pace[lane, LEAST], at.pace[lane, DAMPING], at.pace[lane, GROWTH] = np.inf, 1e-3, FASTER
    _plain(form, at.trial[lane])
    if form == FULL:  # a partial season is a full one with p1 = 1
        at.trial[lane, 0], at.trial[lane, 1] = found[PARTIAL, 0], found[PARTIAL, 1]
        at.trial[lane, 2] = 1.0 + max(found[PARTIAL, 2], 2.0 * EDGE)


@bare
def _plain(form: int, trial: Floats) -> bool:
    """Parameters of a level that neither drifts nor waits, and a season alike. Whether they are other ones than before."""
    other = False
    for number in range(4):
        used = form != SIMPLE if number < 2 else form in (SIMPLE, FULL)
        before = trial[number]
        trial[number] = (1.3 if number % 2 == 0 else 1.0) if used else 0.1 if number == 2 and form == PARTIAL else 0.0
        other = other or trial[number] != before
    return other


@bare
def _behind(least: float, rounds: int, found: Floats) -> bool:
    """Whether a form is so far behind another one of its series that it need not be followed."""
    best = np.inf
    for other in range(4):
        best = min(best, found[other, 4]) if found[other, 4] >= 0.0 else best
    return rounds >= PATIENCE and least > BEHIND * best


# -- an evaluation of all lanes ------------------------------------------------------------------------------------------------


@bare
def _step(form: int, lane: int, products: Floats, at: Searches) -> bool:
    """Take in what was found at a lane's trial and set the next one; False when there is nothing to gain."""
    squares, pace, lacking = products[lane], at.pace[lane], at.lacking[lane]
    least = pace[LEAST]
    at.rounds[lane] += 1
    better = math.isfinite(squares) and squares < least
    if better:
        _learn(products, lane, at)
    if not better or not math.isfinite(least):  # nothing to compare with, or what was learned misled
        for number in range(16):
            lacking[number // 4, number % 4] = 0.0
    if better or not math.isfinite(least):
        for number in range(4):
            at.found[lane, number] = at.trial[lane, number]
    if better:
        pace[LEAST] = squares
        if pace[GROWTH] == FASTER:  # not just after a step that was too long
            pace[DAMPING] = max(pace[DAMPING] * 0.1, 1e-9)
        pace[GROWTH] = FASTER
        if squares == 0.0 or least - squares < ENOUGH * least:
            return False
    else:
        pace[DAMPING] = max(pace[DAMPING] * pace[GROWTH], 1e-2)
        pace[GROWTH] *= 2.0
        if not math.isfinite(least):  # not even a beginning
            return _plain(form, at.trial[lane])
        if pace[DAMPING] > 1e8:
            return False
    _descend(form, at.kept[lane], lacking, pace[DAMPING], at.found[lane], at.system)
    away = 0.0
    for number in range(4):
        at.trial[lane, number] = at.found[lane, number] + min(max(at.system[number, 4], -1.0), 1.0)
    _inside(form, at.trial[lane])
    for number in range(4):
        away = max(away, abs(at.trial[lane, number] - at.found[lane, number]))
    return away > 1e-9


@bare
def _learn(products: Floats, lane: int, at: Searches) -> None:
    """Take in the products at a new point; and, from how the gradient changed (a symmetric rank one update), what they lack to
    be the second derivatives, which is much where the errors are large."""
    kept, lacking, trial, found = at.kept[lane], at.lacking[lane], at.trial[lane], at.found[lane]
    wrong, row = at.system[4], 0
    for one in range(QUANTITIES):
        for other in range(one, QUANTITIES):
            if one == 0 and other > 0:
                wrong[other - 1] = products[row * LANES + lane] - kept[0, other]
            kept[one, other], kept[other, one] = products[row * LANES + lane], products[row * LANES + lane]
            row += 1
    along, size, length = 0.0, 0.0, 0.0
    for one in range(4):
        for other in range(4):
            wrong[one] -= (kept[one + 1, other + 1] + lacking[one, other]) * (trial[other] - found[other])
        along += wrong[one] * (trial[one] - found[one])
        size, length = size + wrong[one] ** 2, length + (trial[one] - found[one]) ** 2
    if at.pace[lane, DAMPING] < LOOSE and along * along > 1e-8 * size * length:
        for one in range(4):
            for other in range(4):
                lacking[one, other] += wrong[one] * wrong[other] / along


@bare
def _descend(form: int, kept: Floats, lacking: Floats, damping: float, found: Floats, system: Floats) -> None:
    """A damped Gauss-Newton step, along the edge of the region of stability where it would leave it."""
    for row in range(4):
        for column in range(4):
            system[5 + row, column] = kept[row + 1, column + 1] + lacking[row, column]
        system[5 + row, row] += damping * kept[row + 1, row + 1]
        if system[5 + row, row] == 0.0:
            system[5 + row, row] = 1.0  # a parameter that plays no part
    held = False
    for _ in range(5):
        for row in range(4):
            for column in range(4):
                system[row, column] = system[5 + row, column]
            system[row, 4] = -kept[row + 1, 0]
        _solve(system)
        more = False
        for pair in range(2):
            if pair == 1 and form == PARTIAL:
                forward, place = system[2, 4], found[2]
                if not held and ((place >= FASTEST and forward > 0.0) or (place <= SMOOTHEST and forward < 0.0)):
                    system[7, 2] += 1e12 * kept[3, 3]
                    held, more = True, True
            elif form != (NONE if pair == 1 else SIMPLE):
                for circle in range(3):
                    more = _hold(kept, found, system, 2 * pair, circle) or more
        if not more:
            return


@bare
def _hold(kept: Floats, found: Floats, system: Floats, at: int, circle: int) -> bool:
    """Where a step leaves through a circle it stands on: make it follow the arc instead. True if that was so."""
    radius = CIRCLES[circle, 2]
    x, z = found[at] - CIRCLES[circle, 0], found[at + 1] - CIRCLES[circle, 1]
    distance = math.sqrt(x * x + z * z)
    if abs(distance - abs(radius - EDGE)) > 1e-7:
        return False
    x, z = x / distance, z / distance
    outward = (x * system[at, 4] + z * system[at + 1, 4]) * radius
    if outward <= 1e-9 * (abs(system[at, 4]) + abs(system[at + 1, 4])):
        return False
    wall = 1e12 * (kept[at + 1, at + 1] + kept[at + 2, at + 2])
    bend = -(x * kept[at + 1, 0] + z * kept[at + 2, 0]) / distance  # the arc turns away from the tangent
    system[5 + at, at] += wall * x * x + bend * z * z
    system[5 + at, at + 1] += (wall - bend) * x * z
    system[6 + at, at] += (wall - bend) * x * z
    system[6 + at, at + 1] += wall * z * z + bend * x * x
    return True


@bare
def _solve(system: Floats) -> None:
    """Four equations; the solution takes the place of their right sides."""
    for row in range(4):
        for other in range(4):
            if other != row:
                share = system[other, row] / system[row, row]
                for column in range(row, 5):
                    system[other, column] -= share * system[row, column]
    for row in range(4):
        system[row, 4] /= system[row, row]


@bare
def _inside(form: int, trial: Floats) -> None:
    """Bring parameters back to where the recursion forgets its past: inside one circle, outside two."""
    for pair in range(2):
        if pair == 1 and form == PARTIAL:
            trial[2] = min(max(trial[2], SMOOTHEST), FASTEST)
        elif form != (NONE if pair == 1 else SIMPLE):
            for circle in range(9):
                _beside_circle(trial, 2 * pair, circle % 3)


@bare
def _beside_circle(trial: Floats, at: int, circle: int) -> None:
    x, z, radius = trial[at] - CIRCLES[circle, 0], trial[at + 1] - CIRCLES[circle, 1], CIRCLES[circle, 2]
    distance, edge = math.sqrt(x * x + z * z), abs(radius - EDGE)
    if (distance - edge) * radius > 0.0 and distance > 0.0:
        trial[at], trial[at + 1] = CIRCLES[circle, 0] + x * edge / distance, CIRCLES[circle, 1] + z * edge / distance
