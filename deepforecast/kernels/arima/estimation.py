"""Maximum likelihood estimation by quasi-Newton steps with the exact gradient.

Starting values: Hannan & Rissanen (1982), *Biometrika* 69, doi:10.1093/biomet/69.1.81.
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
Pair = tuple[Floats, Floats]  # point and gradient
Work = tuple[Floats, Floats, Floats]  # point, gradient, and (value, number of evaluations)


COMPARE, SEARCH, FINAL = range(3)
SINGLE_LANE: Any = np.int64(0)
"""Lane of a single search, as a variable: numba compiles again for each literal argument."""


class Problem(NamedTuple):
    """Data of an estimation: complete and differenced, or undifferenced with `delta`."""

    variables: Floats  # (1 + unknown + regressors, rows), C-contiguous
    delta: Floats  # 1 - delta_1 B - ..., by lag; [1] for differenced data
    unknown: int  # number of missing values among the first len(delta) - 1 rows
    complete: bool  # whether no value is missing
    floor: float  # variance below which a fit counts as perfect


class Estimate(NamedTuple):
    """A fitted model; `value` is the negative log-likelihood less n (log(2 pi) + 1) / 2."""

    point: Floats
    factors: Floats
    beta: Floats
    gradient: Floats
    value: float
    sum_of_squares: float
    log_determinant: float
    n_observed: int
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

    With `max_evaluations` 0 the likelihood is evaluated at the best start only.
    """
    columns, rows = problem.variables.shape
    workspace = new_workspace(structure, rows, columns, len(problem.delta) - 1, problem.complete)
    point, gradient = starts[0].copy(), np.zeros(structure.size)
    with compile_notice("ARIMA"):
        if problem.complete:
            summary = np.zeros(2)
            settings = np.array([problem.floor, conditional, tolerance, max_evaluations], np.float64)
            work = (point, gradient, summary)
            _search_complete(
                structure.orders,
                structure.lags,
                problem.variables,
                settings,
                starts,
                new_search(1, structure.size),
                workspace,
                work,
            )
            value, evaluations = float(summary[0]), int(summary[1])
        else:
            value, evaluations = _search_with_missing(
                problem, structure, starts, tolerance, max_evaluations, workspace, point, gradient
            )
    factors, beta = workspace.vectors[FACTORS, : structure.size].copy(), workspace.vectors[BETA, : columns - 1].copy()
    squares, determinant, n_observed = workspace.vectors[SUMMARY, :3].tolist()
    return Estimate(point, factors, beta, gradient, value, squares, determinant, int(n_observed), evaluations)


@compiled_no_alloc
def _search_complete(
    orders: Ints,
    lags: Ints,
    variables: Floats,
    settings: Floats,
    starts: Floats,
    search: Search,
    workspace: Workspace,
    work: Work,
) -> None:
    """Search without missing values; settings: floor, conditional, tolerance, maximum of
    evaluations.
    """
    vectors, _, matrices, _, _, _, _, _ = workspace
    point, gradient, summary = work
    floor, conditional, tolerance, max_evaluations = settings[0], settings[1] > 0.0, settings[2], int(settings[3])
    size, evaluations, start, best, best_value, stage = len(point), 0, 0, 0, np.inf, COMPARE
    while True:  # a single call site, as numba would inline a second one again
        for i in range(size):
            point[i] = starts[start, i] if stage == COMPARE else search.trial[0, i] if stage == SEARCH else search.point[0, i]
        with_gradient, current = stage != COMPARE, np.inf
        if expand_polynomials(orders, lags, point, vectors):
            current = exact_likelihood(orders, lags, variables, floor, conditional, with_gradient, workspace)
            if with_gradient and math.isfinite(current):
                coordinate_gradient(orders, lags, point, vectors, matrices, gradient)
        evaluations += 1
        if stage == COMPARE:
            best, best_value = (start, current) if current < best_value else (best, best_value)
            start += 1
            if start < len(starts):
                continue
            stage = SEARCH if max_evaluations > 0 else FINAL
            for i in range(size):
                point[i], gradient[i] = starts[best, i], 1.0 / variables.shape[1]
            begin_search(search, SINGLE_LANE, point, gradient)
        elif stage == FINAL:
            summary[0], summary[1] = current, evaluations
            return
        elif size == 0 or advance(search, SINGLE_LANE, current, gradient, tolerance, max_evaluations) != CONTINUE:
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
    """Search with missing values, one compiled call per evaluation."""

    arguments = (
        structure.orders,
        structure.lags,
        problem.variables,
        problem.delta,
        np.array([problem.unknown, problem.floor]),
        workspace,
    )

    def value(coordinates: Floats, with_gradient: bool) -> float:
        point[:] = coordinates
        return float(_evaluate_with_missing(*arguments, (point, gradient), with_gradient))

    best = min(starts, key=lambda start: value(start, False)) if len(starts) > 1 else starts[0]
    evaluations, search = len(starts), new_search(1, structure.size)
    begin_search(search, 0, best.copy(), np.full(structure.size, 1.0 / problem.variables.shape[1]))
    while max_evaluations > 0 and structure.size > 0:
        evaluations += 1
        if advance(search, 0, value(search.trial[0], True), gradient, tolerance, max_evaluations) != CONTINUE:
            break
    return value(search.point[0], True), evaluations + 1


@compiled_no_alloc
def _evaluate_with_missing(
    orders: Ints,
    lags: Ints,
    variables: Floats,
    delta: Floats,
    settings: Floats,
    workspace: Workspace,
    work: Pair,
    with_gradient: bool,
) -> float:
    """Objective and gradient; settings: number of unknown early values, floor."""
    vectors, _, matrices, _, _, _, _, _ = workspace
    point, gradient = work
    unknown, floor = int(settings[0]), settings[1]
    if not expand_polynomials(orders, lags, point, vectors):
        return np.inf
    value = likelihood_with_missing(orders, variables, delta, unknown, floor, workspace)
    if with_gradient and math.isfinite(value):
        filter_gradient(orders, variables, delta, unknown, floor, workspace)
        coordinate_gradient(orders, lags, point, vectors, matrices, gradient)
    return value
