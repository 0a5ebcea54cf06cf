"""Filtered ARIMA state after a history, and forecasts from it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.arima.kalman_filter import initialize_filter, run_filter, state_size
from deepforecast.kernels.arima.layout import EXCESS, FACTORS, FULL_PHI, MEAN, RHO, LagStructure, Workspace, new_workspace
from deepforecast.kernels.arima.polynomials import multiply_factors
from deepforecast.kernels.compilation import compile_notice, compiled_no_alloc

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RANK_TOLERANCE = 1e-9
"""Relative diffuse variance of a row below which its unknown early values count as identified."""


class FilterState(NamedTuple):
    """Predicted state of the next row; its covariance is sigma^2 (excess + ma ma')."""

    ar: Floats  # phi times the differences, from lag 1
    ma: Floats  # (1, theta)
    mean: Floats
    excess: Floats  # (size, size)


def filter_history(
    structure: LagStructure, factors: Floats, delta: Floats, values: Floats
) -> tuple[FilterState, Floats, Floats]:
    """Return the state after `values` (NaN: missing), one-step predictions, and their variances.

    The first m = len(delta) - 1 values are the initial state and have no prediction (NaN). Those
    missing among them are estimated with a flat prior: from all values for the state, whose
    covariance includes their uncertainty; from the values before each row for the predictions,
    which are NaN until the unknown values are identified.
    """
    m = len(delta) - 1
    missing_early = np.flatnonzero(np.isnan(values[:m]))
    variables = np.vstack([values[None], np.eye(len(values))[missing_early]]) if len(missing_early) else values[None]
    variables = np.ascontiguousarray(variables)
    workspace = new_workspace(structure, len(values), len(variables), m, False)
    workspace.vectors[FACTORS, : structure.size] = factors
    with compile_notice("ARIMA"):
        _run_filter(structure.orders, structure.lags, delta, variables, m, workspace)
    size = max(int(structure.orders[7]) + m, int(structure.orders[8]) + 1)
    return _final_state(workspace, variables, m, size)


def continue_filter(state: FilterState, values: Floats) -> tuple[FilterState, Floats, Floats]:
    """As `filter_history`, continuing from a state."""
    size = len(state.mean)
    structure = LagStructure(np.zeros(17, np.int64), np.zeros((4, 1), np.int64))
    workspace = new_workspace(structure, len(values), 1, size, False)
    for row, coefficients in ((FULL_PHI, state.ar), (RHO, state.ma)):
        workspace.vectors[row, :size] = coefficients
    workspace.states[MEAN, 0, :size] = state.mean
    workspace.covariances[EXCESS, :size, :size] = state.excess
    delta, variables = np.zeros(size + 1), np.ascontiguousarray(values[None])
    with compile_notice("ARIMA"):
        _run_filter(structure.orders, structure.lags, delta, variables, 0, workspace)
    return _final_state(workspace, variables, 0, size)


def forecast_moments(ar: Floats, ma: Floats, mean: Floats, excess: Floats, steps: int) -> tuple[Floats, Floats, Floats]:
    """Means, standard deviations in units of sigma, and impulse responses, each (series, steps).

    `ar`, `ma`, `mean`: (series, size). `excess`: (series, size (size + 1) / 2), lower triangle by
    rows. The variance h steps ahead is the sum of squared responses plus the contribution of the
    excess.
    """
    means, deviations, responses = np.zeros((3, len(ar), steps))
    with compile_notice("ARIMA"):
        _forecast_moments(ar, ma, mean, excess, means, deviations, responses, np.zeros(steps))
    return means, deviations, responses


def impulse_responses(ar: Floats, ma: Floats, steps: int) -> tuple[Floats, Floats]:
    """Weights of 1 / phi and theta / phi (psi weights), each (series, steps)."""
    of_state, of_shock = np.zeros((2, len(ar), steps))
    size = ar.shape[1]
    for h in range(steps):
        earlier = np.arange(max(h - size, 0), h)
        of_state[:, h] = 1.0 if h == 0 else (ar[:, h - 1 - earlier] * of_state[:, earlier]).sum(axis=1)
        shocks = np.arange(max(h - size + 1, 0), h + 1)
        of_shock[:, h] = (ma[:, h - shocks] * of_state[:, shocks]).sum(axis=1)
    return of_state, of_shock


def _final_state(workspace: Workspace, variables: Floats, m: int, size: int) -> tuple[FilterState, Floats, Floats]:
    """Final state and predictions, with unknown early values estimated."""
    mean, excess = workspace.states[MEAN, 0, :size].copy(), workspace.covariances[EXCESS, :size, :size].copy()
    prediction, variance = workspace.sequences[0, : variables.shape[1]].copy(), workspace.cross_covariances[:, 0].copy()
    prediction[:m], variance[:m] = np.nan, np.nan
    if len(variables) > 1:
        observed_rows = np.flatnonzero(~np.isnan(variables[0]))
        observed_rows = observed_rows[observed_rows >= m]
        errors = (variables - workspace.sequences[: len(variables), : variables.shape[1]])[:, observed_rows] / np.sqrt(
            variance[observed_rows]
        )
        unknown_covariance = np.linalg.pinv(errors[1:] @ errors[1:].T, hermitian=True)
        unknown_mean = unknown_covariance @ (errors[1:] @ errors[0])
        responses = workspace.states[MEAN, 1 : len(variables), :size]
        mean -= unknown_mean @ responses
        excess += responses.T @ unknown_covariance @ responses
        sequences = workspace.sequences[: len(variables), m : variables.shape[1]]
        prediction[m:], variance[m:] = _predict_diffuse(variables[0, m:], sequences, variance[m : variables.shape[1]])
    return (
        FilterState(workspace.vectors[FULL_PHI, :size].copy(), workspace.vectors[RHO, :size].copy(), mean, excess),
        prediction,
        variance,
    )


def _predict_diffuse(y: Floats, sequences: Floats, row_variance: Floats) -> tuple[Floats, Floats]:
    """One-step predictions and variances with unknown early values estimated from earlier rows
    only.

    Exact diffuse filter (Durbin & Koopman 2012, section 5.2): `covariance` is the finite part of
    the covariance of the unknowns, `diffuse` its diffuse part.
    """
    size = len(sequences) - 1
    unknown_mean, covariance, diffuse = np.zeros(size), np.zeros((size, size)), np.eye(size)
    prediction, prediction_variance = np.full((2, len(y)), np.nan)
    for t in range(len(y)):
        response = sequences[1:, t]
        diffuse_response, known_response = diffuse @ response, covariance @ response
        diffuse_variance, known_variance = (
            float(response @ diffuse_response),
            float(response @ known_response) + row_variance[t],
        )
        is_diffuse = diffuse_variance > RANK_TOLERANCE * float(response @ response)
        if not is_diffuse:
            prediction[t], prediction_variance[t] = sequences[0, t] - unknown_mean @ response, known_variance
        if np.isnan(y[t]):
            continue
        error = sequences[0, t] - unknown_mean @ response - y[t]
        if is_diffuse:
            gain = diffuse_response / diffuse_variance
            covariance += (
                known_variance * np.outer(gain, gain) - np.outer(gain, known_response) - np.outer(known_response, gain)
            )
            diffuse -= np.outer(gain, diffuse_response)
        else:
            gain = known_response / known_variance
            covariance -= np.outer(gain, known_response)
        unknown_mean += gain * error
    return prediction, prediction_variance


@compiled_no_alloc
def _run_filter(orders: Ints, lags: Ints, delta: Floats, variables: Floats, begin: int, workspace: Workspace) -> None:
    vectors, _, matrices, _, _, states, covariances, _ = workspace
    if begin > 0 or len(delta) == 1:
        for polynomial in range(2):
            multiply_factors(orders, lags, polynomial, vectors)
        initialize_filter(orders, delta, variables, vectors, matrices, states, covariances)
    run_filter(state_size(orders, delta), variables, begin, workspace)


@compiled_no_alloc
def _forecast_moments(
    ar: Floats, ma: Floats, mean: Floats, excess: Floats, means: Floats, deviations: Floats, responses: Floats, impulse: Floats
) -> None:
    series, steps = means.shape
    size = ar.shape[1]
    for series_index in range(series):
        is_certain, total = True, 0.0
        for position in range(excess.shape[1]):
            is_certain = is_certain and excess[series_index, position] == 0.0
        for h in range(steps):
            impulse[h] = 1.0 if h == 0 else 0.0
            for i in range(min(h, size)):
                impulse[h] += ar[series_index, i] * impulse[h - 1 - i]
            for i in range(min(h + 1, size)):
                means[series_index, h] += impulse[h - i] * mean[series_index, i]
                responses[series_index, h] += impulse[h - i] * ma[series_index, i]
            total += responses[series_index, h] * responses[series_index, h]
            state_variance, position = 0.0, 0
            for i in range(0 if is_certain else min(h + 1, size)):
                for j in range(i + 1):
                    twice = 1.0 if i == j else 2.0
                    state_variance += twice * excess[series_index, position] * impulse[h - i] * impulse[h - j]
                    position += 1
            deviations[series_index, h] = np.sqrt(max(total + state_variance, 0.0))
