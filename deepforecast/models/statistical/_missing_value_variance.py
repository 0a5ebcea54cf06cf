"""Variance of one-step errors after missing values.

A missing value is treated as an error of 0, although the true states changed by its error. With
states x' = F x + g e and y = w'x + e, where e has variance 1, the covariance P of the state error
becomes

    F P F' + g g'                  after a missing row,
    (F - g w') P (F - g w')'       after an observed row,

and a one-step error has variance 1 + w'P w. This is exact for additive models, and approximate for
relative errors as long as the level changes little.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from deepforecast.data.frames import Floats, Ints

MAX_NUMBERS = 4_000_000  # covariances computed at a time, to bound memory


class ErrorStates(NamedTuple):
    """State equations (F, g, w): two states that each row updates, and k - 2 states per phase of the season.

    transition (series, k, k): F; gain (series, k): g; observation (series, k): w.
    """

    transition: Floats
    gain: Floats
    observation: Floats
    season: int


def smoothing_states(rates: Floats, season: int) -> ErrorStates:
    """State equations of additive exponential smoothing; `rates` (series, 4): alpha, beta, gamma, phi."""
    alpha, beta, gamma, phi = rates.T
    ones, zeros = np.ones(len(rates)), np.zeros(len(rates))
    transition = np.array([[ones, phi, zeros], [zeros, phi, zeros], [zeros, zeros, ones]])
    return ErrorStates(
        np.moveaxis(transition, -1, 0), np.column_stack([alpha, beta, gamma]), np.column_stack([ones, phi, ones]), season
    )


def deviation_after_missing(is_observed: Any, indptr: Ints, states: ErrorStates) -> Floats:
    """Standard deviation of the one-step error of each row, relative to that after observed rows.

    1 for series without a missing value between two values. Rows before the first value do not
    count as missing, as the initial state is estimated from later values.
    """
    deviations, lengths = np.ones(len(is_observed)), np.diff(indptr)
    first, last = _observed_range(is_observed, indptr)
    n_observed = np.add.reduceat(is_observed.astype(np.int64), indptr[:-1])
    series = np.flatnonzero(n_observed < last + 1 - first)
    n_states = 2 + states.season * (states.gain.shape[1] - 2)
    block_length = max(MAX_NUMBERS // n_states**2, 1)
    for begin in range(0, len(series), block_length):
        block = series[begin : begin + block_length]
        position = np.arange(int(lengths[block].max()))
        rows = np.minimum(indptr[block, None] + position, len(is_observed) - 1)
        is_inside = position < lengths[block, None]
        block_states = ErrorStates(states.transition[block], states.gain[block], states.observation[block], states.season)
        with np.errstate(over="ignore", invalid="ignore"):  # unstable states
            variance = _error_variances(is_observed[rows] | ~is_inside, first[block], block_states)
        deviations[rows[is_inside]] = np.sqrt(np.where(np.isfinite(variance), variance, 1.0)[is_inside])
    return deviations


def variance_ratio(errors: Floats, adjusted_errors: Floats, indptr: Ints) -> Floats:
    """Root mean square of the adjusted errors divided by that of the errors, of each series; 1 if all errors are 0."""
    is_observed = ~np.isnan(errors)
    largest = np.maximum.reduceat(np.where(is_observed, np.abs(errors), 0.0), indptr[:-1])
    scale = np.repeat(np.where(largest > 0.0, largest, 1.0), np.diff(indptr))
    squares, adjusted_squares = (
        np.add.reduceat(np.where(is_observed, values / scale, 0.0) ** 2, indptr[:-1]) for values in (errors, adjusted_errors)
    )
    is_positive = squares > 0.0
    return np.where(is_positive, np.sqrt(adjusted_squares / np.where(is_positive, squares, 1.0)), 1.0)


def _observed_range(is_observed: Any, indptr: Ints) -> tuple[Ints, Ints]:
    """Positions of the first and the last value within each series."""
    observed_rows = np.flatnonzero(is_observed)
    first = observed_rows[np.minimum(np.searchsorted(observed_rows, indptr[:-1]), len(observed_rows) - 1)]
    last = observed_rows[np.maximum(np.searchsorted(observed_rows, indptr[1:]) - 1, 0)]
    return first - indptr[:-1], last - indptr[:-1]


def _error_variances(is_observed: Any, first: Ints, states: ErrorStates) -> Floats:
    """Variances 1 + w'P w of the one-step errors, (series, rows), for observed flags of the same shape.

    Only the states of the current phase of the season are updated in each row. `first`: position of the first value;
    a missing row adds g g' only after it.
    """
    transition, gain, observation, season = states
    n_phase_states = gain.shape[1] - 2
    n_states = 2 + season * n_phase_states
    error_variances = np.ones(is_observed.shape)
    covariance = np.zeros((len(is_observed), n_states, n_states))  # P
    gain_products = gain[:, :, None] * gain[:, None, :]
    for row in range(is_observed.shape[1]):
        state_index = np.concatenate([[0, 1], 2 + n_phase_states * (row % season) + np.arange(n_phase_states)])
        cross_covariance = np.sum(covariance[:, :, state_index] * observation[:, None, :], axis=2)  # P w
        state_variance = np.sum(cross_covariance[:, state_index] * observation, axis=1)  # w'P w
        error_variances[:, row] += state_variance
        cross_covariance[:, state_index] = np.sum(transition * cross_covariance[:, None, state_index], axis=2)
        covariance[:, state_index, :] = np.einsum("nij,njk->nik", transition, covariance[:, state_index, :])
        covariance[:, :, state_index] = np.einsum("nki,nji->nkj", covariance[:, :, state_index], transition)
        is_row_observed = is_observed[:, row]
        correction = cross_covariance[:, :, None] * (gain * is_row_observed[:, None])[:, None, :]
        covariance[:, :, state_index] -= correction
        covariance[:, state_index, :] -= correction.swapaxes(1, 2)
        covariance[:, state_index[:, None], state_index] += (
            gain_products * np.where(is_row_observed, state_variance, row > first)[:, None, None]
        )
    return error_variances
