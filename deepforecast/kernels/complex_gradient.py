"""Complex exponential smoothing of 16 series at a time, with derivatives of the errors.

Three runs: forward from heuristic states, backward, forward again. The sum of squares is that of
the last; the derivatives by the parameters are propagated through all three.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import inlined, inner_no_alloc

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LANES = 16
QUANTITIES = 5  # the value, and its derivatives by the level's p0 and p1 and the season's
STATE = 2 * QUANTITIES * LANES  # size of a pair: x and z of the value, of its first derivative, ...


NEGATIVE_ZERO = -0.0  # neutral in sums, even with -0.0: the compiler drops the addition
INITIAL, CURRENT, BACKCAST, ZERO = range(4)
"""Rows of `states` (4, 1 + m, STATE), level and m seasonal states: start of the first run; current;
start of the last run; zeros."""


@inlined
def evaluate(rows: Floats, first_rows: Ints, states: Floats, gains: Floats, errors: Floats, products: Floats) -> None:
    """Products of errors and derivatives in the last run, for all lanes.

    `rows` (2, rows + 1, LANES): values, and 1 if observed, else 0; the last row is 0. `first_rows`
    (LANES,): row of the first value of each lane.
    """
    last, current, zero_state = rows.shape[1] - 1, states[CURRENT], states[ZERO]
    first = last
    for lane in range(LANES):
        first = min(first, first_rows[lane])
    for number in range(len(products)):
        products[number] = 0.0
    for slot in range(len(zero_state)):  # NaN since an evaluation in which a lane overflowed
        for position in range(STATE):
            zero_state[slot, position] = 0.0
    for direction in range(3):
        # INITIAL to CURRENT to BACKCAST to CURRENT.
        source, target, backward = (
            states[direction],
            states[1 + direction % 2],
            direction == 1,
        )
        for slot in range(len(target)):
            for position in range(STATE):
                target[slot, position] = 0.0  # remains 0 before the first row of a lane
        row, end = first, last
        if backward:
            row, end = last, first
        while row != end:
            next_row = end  # or the next row at which a series starts
            for lane in range(LANES):
                if min(row, next_row) < first_rows[lane] < max(row, next_row):
                    next_row = first_rows[lane]
            if not backward:
                _start_lanes(first_rows, row, source, target)
            _filter_rows(rows, current, current[1:], gains, errors, row, next_row, products if direction == 2 else products[:0])
            if backward:
                _start_lanes(first_rows, next_row, source, target)
            row = next_row
        for slot in range(len(target) if direction < 2 else 0):  # one extra row without error before turning
            level, season = zero_state, target[slot : slot + 1]
            if slot == 0:
                level, season = target, zero_state
            _filter_rows(rows, level, season, gains, errors, last, last + 1, products[:0])


@inner_no_alloc
def _start_lanes(first_rows: Ints, row: int, source: Floats, target: Floats) -> None:
    """Copy the states of lanes whose series start at this row."""
    for lane in range(LANES):
        if first_rows[lane] == row:
            for slot in range(len(source)):
                for number in range(lane, STATE, LANES):
                    target[slot, number] = source[slot, number]


@inner_no_alloc
def _step(state: Floats, offset: int, error: float, g: Floats, k: int, x_extra: float, z_extra: float) -> None:
    """Advance a pair, or a derivative of it, with its error and inhomogeneous terms."""
    x, z = state[offset], state[offset + LANES]
    state[offset] = x + g[k] * z + g[LANES + k] * error + x_extra
    state[offset + LANES] = g[2 * LANES + k] * x + g[3 * LANES + k] * z + g[4 * LANES + k] * error + z_extra


@inner_no_alloc
def _filter_rows(
    rows: Floats, levels: Floats, seasons: Floats, g: Floats, errors: Floats, begin: int, end: int, products: Floats
) -> None:
    """Filter rows `begin` to `end`, forward or backward; constant offsets, so that lanes vectorize."""
    level = levels[0]
    for step in range(abs(end - begin)):
        t = begin + step if end > begin else begin - 1 - step
        season, values, observed = seasons[t % len(seasons)], rows[0, t], rows[1, t]
        for k in range(LANES):
            is_observed, season_gain, z, w, derivative = (
                observed[k],
                7 * LANES + k,
                level[LANES + k],
                season[LANES + k],
                2 * LANES + k,
            )
            error = (values[k] - level[k] - season[k]) * is_observed
            to_level, to_season, to_both = g[5 * LANES + k] * error, g[12 * LANES + k] * error, g[13 * LANES + k] * error
            errors[k] = error
            _step(level, k, error, g, k, NEGATIVE_ZERO, NEGATIVE_ZERO)
            _step(season, k, error, g, season_gain, NEGATIVE_ZERO, NEGATIVE_ZERO)
            error = -(level[derivative] + season[derivative]) * is_observed
            errors[LANES + k] = error
            _step(level, derivative, error, g, k, to_level, to_level - z)  # by the level's p0
            _step(season, derivative, error, g, season_gain, NEGATIVE_ZERO, NEGATIVE_ZERO)
            derivative += 2 * LANES
            error = -(level[derivative] + season[derivative]) * is_observed
            errors[2 * LANES + k] = error
            _step(level, derivative, error, g, k, z - to_level, to_level)  # and p1
            _step(season, derivative, error, g, season_gain, NEGATIVE_ZERO, NEGATIVE_ZERO)
            derivative += 2 * LANES
            error = -(level[derivative] + season[derivative]) * is_observed
            errors[3 * LANES + k] = error
            _step(level, derivative, error, g, k, NEGATIVE_ZERO, NEGATIVE_ZERO)
            _step(season, derivative, error, g, season_gain, to_season, to_both - w)  # by the season's p0
            derivative += 2 * LANES
            error = -(level[derivative] + season[derivative]) * is_observed
            errors[4 * LANES + k] = error
            _step(level, derivative, error, g, k, NEGATIVE_ZERO, NEGATIVE_ZERO)
            _step(season, derivative, error, g, season_gain, w - to_both, to_both)  # and p1
        if len(products) > 0:
            _add_products(errors, products)


@inner_no_alloc
def _add_products(errors: Floats, products: Floats) -> None:
    """Add the products of the errors of a row and their derivatives."""
    for k in range(LANES):
        for i in range(QUANTITIES):
            for j in range(i, QUANTITIES):
                products[(i * QUANTITIES + j) * LANES + k] += errors[i * LANES + k] * errors[j * LANES + k]
