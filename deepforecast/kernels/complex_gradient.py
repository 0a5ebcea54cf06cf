"""Complex exponential smoothing of 16 series at a time, with derivatives of the errors.

Three runs: forward from heuristic states, backward, forward again, as the backcasting of `ces`. The sum
of squares is that of the last run; the derivatives by the parameters are propagated through all three.

The derivatives of a pair follow the same recursion as the pair, with the derivative of the error in
place of the error, and with the derivative of the coefficients as an additional term: for p0 of the
level (e, e) - (0, z), for p1 (z - e, e), since x' = x - (1 - p1) z + (p0 - p1) e and
z' = x + (1 - p0) z + (p0 + p1) e.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import inlined, inner_no_alloc

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LANES = 16
QUANTITIES = 5  # the value, and its derivatives by p0 and p1 of the level and p0 and p1 of the season
STATE = 2 * QUANTITIES * LANES  # length of a pair: x and z of the value, then of each derivative, by lane
NEGATIVE_ZERO = -0.0  # neutral in sums, even with -0.0, so that the compiler drops the addition
INITIAL, CURRENT, BACKCAST, ZERO = range(4)
"""Rows of `states` (4, 1 + m, STATE), level and m seasonal states: start of the first run; current;
start of the last run; zeros."""


@inlined
def evaluate(observations: Floats, first_steps: Ints, states: Floats, gains: Floats, errors: Floats, products: Floats) -> None:
    """Write sums of products of errors and their derivatives in the last run, for all lanes, to `products`.

    `observations` (2, n + 1, LANES): values, and 1 if observed, else 0; both are 0 at the last step. Series
    end at step n - 1; `first_steps` (LANES,): step of the first value of each lane. `states`: as INITIAL
    above. `gains` (14 * LANES,): as in `ces`, by lane. `errors` (QUANTITIES * LANES,): buffer. `products`:
    flat (QUANTITIES, QUANTITIES, LANES), upper half.
    """
    last_step, current, zero_state = observations.shape[1] - 1, states[CURRENT], states[ZERO]
    first_step = last_step
    for lane in range(LANES):
        first_step = min(first_step, first_steps[lane])
    for index in range(len(products)):
        products[index] = 0.0
    for slot in range(len(zero_state)):  # NaN since an evaluation in which a lane overflowed
        for element in range(STATE):
            zero_state[slot, element] = 0.0
    for direction in range(3):
        source, target = states[direction], states[1 + direction % 2]  # INITIAL, CURRENT, BACKCAST, CURRENT
        backward = direction == 1
        for slot in range(len(target)):
            for element in range(STATE):
                target[slot, element] = 0.0  # remains 0 before the first step of a lane
        t, end = first_step, last_step
        if backward:
            t, end = last_step, first_step
        while t != end:
            next_start = end  # or the next step at which a series starts
            for lane in range(LANES):
                if min(t, next_start) < first_steps[lane] < max(t, next_start):
                    next_start = first_steps[lane]
            if not backward:
                _start_lanes(first_steps, t, source, target)
            _filter_steps(
                observations, current, current[1:], gains, errors, t, next_start, products if direction == 2 else products[:0]
            )
            if backward:
                _start_lanes(first_steps, next_start, source, target)
            t = next_start
        for slot in range(len(target) if direction < 2 else 0):  # one extra step without error before turning
            level, season = zero_state, target[slot : slot + 1]
            if slot == 0:
                level, season = target, zero_state
            _filter_steps(observations, level, season, gains, errors, last_step, last_step + 1, products[:0])


@inner_no_alloc
def _start_lanes(first_steps: Ints, t: int, source: Floats, target: Floats) -> None:
    """Copy the states of the lanes whose series start at step t from `source` to `target`."""
    for lane in range(LANES):
        if first_steps[lane] == t:
            for slot in range(len(source)):
                for element in range(lane, STATE, LANES):
                    target[slot, element] = source[slot, element]


@inner_no_alloc
def _step(state: Floats, offset: int, error: float, gains: Floats, gain_offset: int, x_extra: float, z_extra: float) -> None:
    """Advance a pair, or a derivative of it, at `offset` in `state`.

    x' = x + g_0 z + g_1 error + x_extra,  z' = g_2 x + g_3 z + g_4 error + z_extra, with the gains g from
    `gain_offset`.
    """
    x, z = state[offset], state[offset + LANES]
    state[offset] = x + gains[gain_offset] * z + gains[LANES + gain_offset] * error + x_extra
    state[offset + LANES] = (
        gains[2 * LANES + gain_offset] * x
        + gains[3 * LANES + gain_offset] * z
        + gains[4 * LANES + gain_offset] * error
        + z_extra
    )


@inner_no_alloc
def _filter_steps(
    observations: Floats, levels: Floats, seasons: Floats, gains: Floats, errors: Floats, begin: int, end: int, products: Floats
) -> None:
    """Filter steps `begin` to `end`, backward if `end` is smaller; add to `products` if it is not empty.

    The five quantities are written out with constant offsets, so that lanes vectorize.
    """
    level = levels[0]
    for step in range(abs(end - begin)):
        t = begin + step if end > begin else begin - 1 - step
        season, values, observed = seasons[t % len(seasons)], observations[0, t], observations[1, t]
        for lane in range(LANES):
            is_observed = observed[lane]
            season_gain = 7 * LANES + lane  # offset of the gains of the season
            level_z = level[LANES + lane]
            season_z = season[LANES + lane]
            derivative = 2 * LANES + lane  # offset of a derivative in a pair
            error = (values[lane] - level[lane] - season[lane]) * is_observed
            to_level = gains[5 * LANES + lane] * error  # 0 if the lane's form has no level
            to_season = gains[12 * LANES + lane] * error  # 0 if it has no season
            to_both = gains[13 * LANES + lane] * error  # 0 unless the season is complex
            errors[lane] = error
            _step(level, lane, error, gains, lane, NEGATIVE_ZERO, NEGATIVE_ZERO)
            _step(season, lane, error, gains, season_gain, NEGATIVE_ZERO, NEGATIVE_ZERO)
            error = -(level[derivative] + season[derivative]) * is_observed
            errors[LANES + lane] = error
            _step(level, derivative, error, gains, lane, to_level, to_level - level_z)  # by p0 of the level
            _step(season, derivative, error, gains, season_gain, NEGATIVE_ZERO, NEGATIVE_ZERO)
            derivative += 2 * LANES
            error = -(level[derivative] + season[derivative]) * is_observed
            errors[2 * LANES + lane] = error
            _step(level, derivative, error, gains, lane, level_z - to_level, to_level)  # by p1 of the level
            _step(season, derivative, error, gains, season_gain, NEGATIVE_ZERO, NEGATIVE_ZERO)
            derivative += 2 * LANES
            error = -(level[derivative] + season[derivative]) * is_observed
            errors[3 * LANES + lane] = error
            _step(level, derivative, error, gains, lane, NEGATIVE_ZERO, NEGATIVE_ZERO)
            _step(season, derivative, error, gains, season_gain, to_season, to_both - season_z)  # by p0 of the season
            derivative += 2 * LANES
            error = -(level[derivative] + season[derivative]) * is_observed
            errors[4 * LANES + lane] = error
            _step(level, derivative, error, gains, lane, NEGATIVE_ZERO, NEGATIVE_ZERO)
            _step(season, derivative, error, gains, season_gain, season_z - to_both, to_both)  # by p1 of the season
        if len(products) > 0:
            _add_products(errors, products)


@inner_no_alloc
def _add_products(errors: Floats, products: Floats) -> None:
    """Add the products of the errors of a step and their derivatives to `products` (upper half)."""
    for lane in range(LANES):
        for i in range(QUANTITIES):
            for j in range(i, QUANTITIES):
                products[(i * QUANTITIES + j) * LANES + lane] += errors[i * LANES + lane] * errors[j * LANES + lane]
