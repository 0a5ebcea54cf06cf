"""Filtered ARIMA state after a history, and forecasts from it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.arima.kalman_filter import initialize_filter, run_filter, state_size
from deepforecast.kernels.arima.layout import (
    EXCESS,
    FACTORS,
    FULL_PHI,
    MEAN,
    N_ORDERS,
    RHO,
    LagStructure,
    P,
    Q,
    Workspace,
    new_workspace,
)
from deepforecast.kernels.arima.polynomials import multiply_factors
from deepforecast.kernels.compilation import compile_notice, compiled_no_alloc

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RANK_TOLERANCE = 1e-9
"""Relative diffuse variance of a row below which its unknown early values count as identified."""


class FilterState(NamedTuple):
    """Predicted state of the next time step; its covariance is sigma^2 (excess + ma ma')."""

    ar: Floats  # phi times the differences, from lag 1
    ma: Floats  # (1, theta_1, ...), padded with 0
    mean: Floats  # (size,)
    excess: Floats  # (size, size)


def filter_history(
    structure: LagStructure, factors: Floats, delta: Floats, values: Floats
) -> tuple[FilterState, Floats, Floats]:
    """Return the state after `values` (NaN: missing), one-step predictions, and their variances / sigma^2.

    The first m = len(delta) - 1 values are the initial state and have no prediction (NaN). Those
    missing among them are estimated with a flat prior: from all values for the state, whose
    covariance includes their uncertainty; from the values before each time step for the predictions,
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
    state_length = max(int(structure.orders[P]) + m, int(structure.orders[Q]) + 1)
    return _final_state(workspace, variables, m, state_length)


def continue_filter(state: FilterState, values: Floats) -> tuple[FilterState, Floats, Floats]:
    """As `filter_history`, continuing from a state: `values` are those of the next time steps."""
    state_length = len(state.mean)
    structure = LagStructure(np.zeros(N_ORDERS, np.int64), np.zeros((4, 1), np.int64))
    workspace = new_workspace(structure, len(values), 1, state_length, False)
    for vector_row, coefficients in ((FULL_PHI, state.ar), (RHO, state.ma)):
        workspace.vectors[vector_row, :state_length] = coefficients
    workspace.states[MEAN, 0, :state_length] = state.mean
    workspace.covariances[EXCESS, :state_length, :state_length] = state.excess
    delta, variables = np.zeros(state_length + 1), np.ascontiguousarray(values[None])
    with compile_notice("ARIMA"):
        _run_filter(structure.orders, structure.lags, delta, variables, 0, workspace)
    return _final_state(workspace, variables, 0, state_length)


def forecast_moments(ar: Floats, ma: Floats, mean: Floats, excess: Floats, n_steps: int) -> tuple[Floats, Floats, Floats]:
    """Means, standard deviations in units of sigma, and impulse responses psi, each (series, n_steps).

    `ar`, `ma`, `mean`: (series, size), as in `FilterState`. `excess`: (series, size (size + 1) / 2), lower
    triangle by rows. The variance h steps ahead is psi_0^2 + ... + psi_{h-1}^2 plus the contribution of
    the excess.
    """
    means, standard_deviations, responses = np.zeros((3, len(ar), n_steps))
    with compile_notice("ARIMA"):
        _forecast_moments(ar, ma, mean, excess, means, standard_deviations, responses, np.zeros(n_steps))
    return means, standard_deviations, responses


def impulse_responses(ar: Floats, ma: Floats, n_steps: int) -> tuple[Floats, Floats]:
    """Weights of 1 / phi(B) and of theta(B) / phi(B) (psi weights), each (series, n_steps).

    They are the responses to a unit of the first state element and to a unit shock.
    """
    state_response, shock_response = np.zeros((2, len(ar), n_steps))
    state_length = ar.shape[1]
    for h in range(n_steps):
        earlier_steps = np.arange(max(h - state_length, 0), h)
        state_response[:, h] = 1.0 if h == 0 else (ar[:, h - 1 - earlier_steps] * state_response[:, earlier_steps]).sum(axis=1)
        shock_steps = np.arange(max(h - state_length + 1, 0), h + 1)
        shock_response[:, h] = (ma[:, h - shock_steps] * state_response[:, shock_steps]).sum(axis=1)
    return state_response, shock_response


def _final_state(workspace: Workspace, variables: Floats, m: int, state_length: int) -> tuple[FilterState, Floats, Floats]:
    """Final state, predictions and their variances, with unknown early values estimated.

    `m` is the number of initial values; columns of `variables` after the first are unknown early values,
    whose estimates are weighted least squares coefficients of the one-step errors (negated).
    """
    mean = workspace.states[MEAN, 0, :state_length].copy()
    excess = workspace.covariances[EXCESS, :state_length, :state_length].copy()
    prediction = workspace.sequences[0, : variables.shape[1]].copy()
    variance = workspace.cross_covariances[:, 0].copy()
    prediction[:m], variance[:m] = np.nan, np.nan
    if len(variables) > 1:
        observed_rows = np.flatnonzero(~np.isnan(variables[0]))
        observed_rows = observed_rows[observed_rows >= m]
        errors = (variables - workspace.sequences[: len(variables), : variables.shape[1]])[:, observed_rows] / np.sqrt(
            variance[observed_rows]
        )
        unknown_covariance = np.linalg.pinv(errors[1:] @ errors[1:].T, hermitian=True)
        unknown_mean = unknown_covariance @ (errors[1:] @ errors[0])
        responses = workspace.states[MEAN, 1 : len(variables), :state_length]
        mean -= unknown_mean @ responses
        excess += responses.T @ unknown_covariance @ responses
        sequences = workspace.sequences[: len(variables), m : variables.shape[1]]
        prediction[m:], variance[m:] = _predict_diffuse(variables[0, m:], sequences, variance[m : variables.shape[1]])
    return (
        FilterState(
            workspace.vectors[FULL_PHI, :state_length].copy(), workspace.vectors[RHO, :state_length].copy(), mean, excess
        ),
        prediction,
        variance,
    )


def _predict_diffuse(y: Floats, sequences: Floats, step_variance: Floats) -> tuple[Floats, Floats]:
    """One-step predictions and variances with unknown early values estimated from earlier values only.

    Exact diffuse filter (Durbin & Koopman 2012, section 5.2): `covariance` is the finite part of
    the covariance of the unknowns, `diffuse` its diffuse part. NaN where a prediction depends on an
    unknown that is not identified yet. `sequences` (1 + unknowns, n): one-step predictions of the target and
    of the response to each unknown.
    """
    n_unknown = len(sequences) - 1
    unknown_mean, covariance, diffuse = np.zeros(n_unknown), np.zeros((n_unknown, n_unknown)), np.eye(n_unknown)
    prediction, prediction_variance = np.full((2, len(y)), np.nan)
    for t in range(len(y)):
        response = sequences[1:, t]
        diffuse_response, known_response = diffuse @ response, covariance @ response
        diffuse_variance = float(response @ diffuse_response)
        known_variance = float(response @ known_response) + step_variance[t]
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
    """Filter `variables` from time `begin`.

    The filter is initialized from FACTORS if `begin` is the order of differencing. `continue_filter`, which
    has a state already, passes `begin` 0 and a nonempty differencing polynomial.
    """
    vectors, _, matrices, _, _, states, covariances, _ = workspace
    if begin > 0 or len(delta) == 1:
        for polynomial in range(2):
            multiply_factors(orders, lags, polynomial, vectors)
        initialize_filter(orders, delta, variables, vectors, matrices, states, covariances)
    run_filter(state_size(orders, delta), variables, begin, workspace)


@compiled_no_alloc
def _forecast_moments(
    ar: Floats,
    ma: Floats,
    state_mean: Floats,
    excess: Floats,
    means: Floats,
    standard_deviations: Floats,
    responses: Floats,
    impulse: Floats,
) -> None:
    """Write means, standard deviations and responses psi; `impulse` (n_steps,) is a buffer for weights of 1 / phi(B).

    `position` is the index of element (i, j) in the lower triangle of the excess.
    """
    n_series, n_steps = means.shape
    state_length = ar.shape[1]
    for series in range(n_series):
        has_no_excess, sum_of_squares = True, 0.0
        for position in range(excess.shape[1]):
            has_no_excess = has_no_excess and excess[series, position] == 0.0
        for h in range(n_steps):
            impulse[h] = 1.0 if h == 0 else 0.0
            for i in range(min(h, state_length)):
                impulse[h] += ar[series, i] * impulse[h - 1 - i]
            for i in range(min(h + 1, state_length)):
                means[series, h] += impulse[h - i] * state_mean[series, i]
                responses[series, h] += impulse[h - i] * ma[series, i]
            sum_of_squares += responses[series, h] * responses[series, h]
            state_variance, position = 0.0, 0
            for i in range(0 if has_no_excess else min(h + 1, state_length)):
                for j in range(i + 1):
                    multiplicity = 1.0 if i == j else 2.0
                    state_variance += multiplicity * excess[series, position] * impulse[h - i] * impulse[h - j]
                    position += 1
            standard_deviations[series, h] = np.sqrt(max(sum_of_squares + state_variance, 0.0))
