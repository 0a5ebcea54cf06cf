"""Maximum likelihood estimation by quasi-Newton (BFGS) steps with the exact gradient.

The objective is n log(S / n) / 2 + log det / 2, see `exact_likelihood`. Starting values: Hannan & Rissanen
(1982), *Biometrika* 69, doi:10.1093/biomet/69.1.81.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.arima.adjoint import filter_gradient
from deepforecast.kernels.arima.exact_likelihood import exact_likelihood
from deepforecast.kernels.arima.kalman_filter import likelihood_with_missing
from deepforecast.kernels.arima.layout import BETA, FACTORS, SUMMARY, LagStructure, Workspace, new_workspace
from deepforecast.kernels.arima.polynomials import coordinate_gradient, expand_polynomials
from deepforecast.kernels.compilation import compile_notice, compiled_no_alloc
from deepforecast.kernels.quasi_newton import CONTINUE, Search, advance, begin_search, new_search

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PointAndGradient = tuple[Floats, Floats]
SearchOutputs = tuple[Floats, Floats, Floats]  # point, gradient, and (value, number of evaluations)


COMPARE, SEARCH, FINAL = range(3)
"""Stages: evaluation of the starts, search from the best one, evaluation of the gradient at the end."""
SINGLE_LANE: Any = np.int64(0)
"""Lane of a single search, as a variable: numba compiles again for each literal argument."""


class Problem(NamedTuple):
    """Data of an estimation: complete and differenced, or undifferenced with `delta`."""

    variables: Floats  # (1 + unknown + regressors, time steps), C-contiguous
    delta: Floats  # differencing polynomial 1 - delta_1 B - ..., by lag; [1] for differenced data
    unknown: int  # number of missing values among the first len(delta) - 1 values
    complete: bool  # whether no value is missing
    floor: float  # variance that is added to S / n, so that a perfect fit has a finite likelihood


class Estimate(NamedTuple):
    """A fitted model; `value` is the negative log-likelihood less n (log(2 pi) + 1) / 2."""

    point: Floats  # coordinates, see `polynomials`
    factors: Floats  # coefficients ar, ma, seasonal ar, seasonal ma
    beta: Floats  # coefficients of the columns after the target: unknown early values, regressors
    gradient: Floats  # of `value` by the coordinates
    value: float
    sum_of_squares: float
    log_determinant: float
    n_observed: int  # less the number of identified unknown early values
    evaluations: int


def estimate(
    problem: Problem,
    structure: LagStructure,
    starts: Floats,
    *,
    conditional: bool = False,
    tolerance: float = 1e-6,
    max_evaluations: int = 300,
) -> Estimate:
    """Maximum likelihood from the best of `starts` (starts, coordinates).

    `conditional`: ignore the effect of the presample values (conditional sum of squares); applies to
    complete data only. `tolerance`: expected gain of the log-likelihood at convergence. With
    `max_evaluations` 0 the likelihood is evaluated at the best start only.
    """
    n_columns, n_steps = problem.variables.shape
    workspace = new_workspace(structure, n_steps, n_columns, len(problem.delta) - 1, problem.complete)
    point, gradient = starts[0].copy(), np.zeros(structure.size)
    with compile_notice("ARIMA"):
        if problem.complete:
            summary = np.zeros(2)
            settings = np.array([problem.floor, conditional, tolerance, max_evaluations], np.float64)
            outputs = (point, gradient, summary)
            _search_complete(
                structure.orders,
                structure.lags,
                problem.variables,
                settings,
                starts,
                new_search(1, structure.size),
                workspace,
                outputs,
            )
            value, evaluations = float(summary[0]), int(summary[1])
        else:
            value, evaluations = _search_with_missing(
                problem, structure, starts, tolerance, max_evaluations, workspace, point, gradient
            )
    factors = workspace.vectors[FACTORS, : structure.size].copy()
    beta = workspace.vectors[BETA, : n_columns - 1].copy()
    sum_of_squares, log_determinant, n_observed = workspace.vectors[SUMMARY, :3].tolist()
    return Estimate(
        point=point,
        factors=factors,
        beta=beta,
        gradient=gradient,
        value=value,
        sum_of_squares=sum_of_squares,
        log_determinant=log_determinant,
        n_observed=int(n_observed),
        evaluations=evaluations,
    )


@compiled_no_alloc
def _search_complete(
    orders: Ints,
    lags: Ints,
    variables: Floats,
    settings: Floats,
    starts: Floats,
    search: Search,
    workspace: Workspace,
    outputs: SearchOutputs,
) -> None:
    """Search without missing values.

    `settings`: variance floor, conditional (0 or 1), tolerance, maximum of evaluations. `outputs` gets the
    optimum, the gradient there, and (value, number of evaluations); FACTORS, BETA and SUMMARY of
    `vectors` belong to the optimum.
    """
    vectors, _, matrices, _, _, _, _, _ = workspace
    point, gradient, summary = outputs
    variance_floor = settings[0]
    conditional = settings[1] > 0.0
    tolerance = settings[2]
    max_evaluations = int(settings[3])
    n_coordinates = len(point)
    n_evaluations = 0
    stage = COMPARE
    start = 0
    best_start = 0
    best_value = np.inf
    while True:  # a single call site, as numba would inline a second one again
        for i in range(n_coordinates):
            if stage == COMPARE:
                point[i] = starts[start, i]
            else:
                point[i] = search.trial[0, i] if stage == SEARCH else search.point[0, i]
        with_gradient = stage != COMPARE
        current = np.inf
        if expand_polynomials(orders, lags, point, vectors):
            current = exact_likelihood(orders, lags, variables, variance_floor, conditional, with_gradient, workspace)
            if with_gradient and math.isfinite(current):
                coordinate_gradient(orders, lags, point, vectors, matrices, gradient)
        n_evaluations += 1
        if stage == COMPARE:
            best_start, best_value = (start, current) if current < best_value else (best_start, best_value)
            start += 1
            if start < len(starts):
                continue
            stage = SEARCH if max_evaluations > 0 else FINAL
            for i in range(n_coordinates):
                point[i], gradient[i] = starts[best_start, i], 1.0 / variables.shape[1]
            begin_search(search, SINGLE_LANE, point, gradient)
        elif stage == FINAL:
            summary[0], summary[1] = current, n_evaluations
            return
        elif n_coordinates == 0 or advance(search, SINGLE_LANE, current, gradient, tolerance, max_evaluations) != CONTINUE:
            stage = FINAL


def _search_with_missing(
    problem: Problem,
    structure: LagStructure,
    starts: Floats,
    tolerance: float,
    max_evaluations: int,
    workspace: Workspace,
    point: Floats,
    gradient: Floats,
) -> tuple[float, int]:
    """Search with missing values, one compiled call per evaluation; return value and number of evaluations."""

    arguments = (
        structure.orders,
        structure.lags,
        problem.variables,
        problem.delta,
        np.array([problem.unknown, problem.floor]),
        workspace,
    )

    def evaluate(coordinates: Floats, with_gradient: bool) -> float:
        point[:] = coordinates
        return float(_evaluate_with_missing(*arguments, (point, gradient), with_gradient))

    best_start = min(starts, key=lambda start: evaluate(start, False)) if len(starts) > 1 else starts[0]
    n_evaluations, search = len(starts), new_search(1, structure.size)
    begin_search(search, 0, best_start.copy(), np.full(structure.size, 1.0 / problem.variables.shape[1]))
    while max_evaluations > 0 and structure.size > 0:
        n_evaluations += 1
        if advance(search, 0, evaluate(search.trial[0], True), gradient, tolerance, max_evaluations) != CONTINUE:
            break
    return evaluate(search.point[0], True), n_evaluations + 1


@compiled_no_alloc
def _evaluate_with_missing(
    orders: Ints,
    lags: Ints,
    variables: Floats,
    delta: Floats,
    settings: Floats,
    workspace: Workspace,
    point_and_gradient: PointAndGradient,
    with_gradient: bool,
) -> float:
    """Objective at a point, infinite if it is not stable; with its gradient, if wanted.

    `settings`: number of unknown early values, variance floor.
    """
    vectors, _, matrices, _, _, _, _, _ = workspace
    point, gradient = point_and_gradient
    n_unknown, variance_floor = int(settings[0]), settings[1]
    if not expand_polynomials(orders, lags, point, vectors):
        return np.inf
    value = likelihood_with_missing(orders, variables, delta, n_unknown, variance_floor, workspace)
    if with_gradient and math.isfinite(value):
        filter_gradient(orders, variables, delta, n_unknown, variance_floor, workspace)
        coordinate_gradient(orders, lags, point, vectors, matrices, gradient)
    return value
