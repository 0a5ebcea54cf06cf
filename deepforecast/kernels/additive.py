"""Maximum a posteriori parameters of a piecewise linear trend plus features (Prophet).

    -log posterior = n log s + sum loss(r / s) + 2 s^2 + D |free|^2 / 2 + weight |changes|_1

with r the residuals of the scaled values, s their scale (half-normal prior of deviation 0.5),
`free` the coefficients with a normal prior of precision D, and `changes` the slope changes with a
Laplace prior. The loss is normal, r^2 / (2 s^2), or that of Student's t.

`fit_linear` fits models linear in all parameters from X'X, X'y and y'y, so that series on the same
rows share X'X. For a given s the free coefficients are eliminated (partial Cholesky factor), which
leaves a lasso problem; s has a closed form, and the two alternate from a large s downwards, which
selects the most regular of several maxima. `gauss_newton` fits the other models.

Taylor & Letham (2018), Forecasting at scale, *The American Statistician* 72,
doi:10.1080/00031305.2017.1380080.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import compile_notice, compiled_no_alloc, inner_no_alloc
from deepforecast.kernels.lasso import minimize_lasso

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_RESIDUAL_PASSES = 6  # passes with exact residuals
MAX_ITERATIONS = 60  # alternations of parameters and variance
VARIANCE_TOLERANCE = 1e-10  # relative change of the variance at convergence
MIN_VARIANCE = 1e-26  # rounding error of scaled values
START_VARIANCE = 1.0  # upper bound of the variance of scaled values
PIVOT_TOLERANCE = 1e-15  # relative size of the pivot of a collinear column


class Prior(NamedTuple):
    """`precision` of the first, free columns, and Laplace `weight` of the changes, the others."""

    precision: Floats
    weight: float


class Workspace(NamedTuple):
    """Work arrays for p parameters.

    `system` (p, p + 1), `factor` and `gram` (p, p), `vectors` (8, p), `gradient` and `active` (p,),
    `residuals` (rows,).
    """

    system: Floats
    factor: Floats
    gram: Floats
    vectors: Floats
    gradient: Floats
    active: Ints
    residuals: Floats


class Solution(NamedTuple):
    """Parameters, scale and objective of each series."""

    x: Floats
    deviation: Floats
    objective: Floats


def new_workspace(size: int, rows: int) -> Workspace:
    """Allocate a workspace for `size` parameters."""
    system, factor, gram = np.empty((size, size + 1)), np.empty((size, size)), np.zeros((size, size))
    return Workspace(system, factor, gram, np.zeros((8, size)), np.empty(size), np.zeros(size, dtype=np.int64), np.empty(rows))


def fit_linear(y: Floats, design: Floats, prior: Prior, constant: int) -> Solution:
    """Fit `y` (series, rows) on one `design` (rows, columns), whose column `constant` is all ones."""
    rows, size = design.shape
    solution = Solution(np.zeros((len(y), size)), np.empty(len(y)), np.empty(len(y)))
    design = np.ascontiguousarray(design)
    with compile_notice("the maximum of an additive model"):
        _fit_linear(
            np.ascontiguousarray(y),
            design,
            np.ascontiguousarray(design.T),
            prior,
            constant,
            solution,
            new_workspace(size, rows),
        )
    return solution


@compiled_no_alloc
def _fit_linear(
    y: Floats, design: Floats, design_columns: Floats, prior: Prior, constant: int, solution: Solution, workspace: Workspace
) -> None:
    rows = len(design)
    for row in range(rows):
        workspace.residuals[row] = 1.0
    add_products(design, workspace.residuals, workspace.gram)
    for series in range(len(y)):
        x, variance, predicted_squares = solution.x[series], START_VARIANCE, -1.0
        x[constant] = y[series].mean()
        for iteration in range(MAX_RESIDUAL_PASSES):
            _set_residuals(y[series], design_columns, x, workspace.residuals)
            squares = _sum_of_squares(workspace.residuals)
            if iteration and (abs(squares - predicted_squares) <= 1e-9 * squares or squares <= rows * MIN_VARIANCE):
                break
            for i in range(len(x)):
                workspace.gradient[i] = 0.0
            add_gradient(design, workspace.residuals, workspace.gradient)
            variance, predicted_squares = _alternate(squares, rows, prior, variance, x, workspace)
        _set_residuals(y[series], design_columns, x, workspace.residuals)
        squares = _sum_of_squares(workspace.residuals)
        variance = variance_mode(squares, rows)
        solution.deviation[series] = math.sqrt(variance)
        solution.objective[series] = negative_log_posterior(squares / (2.0 * variance), rows, variance, x, prior)


@inner_no_alloc
def _alternate(
    squares: float, rows: int, prior: Prior, variance: float, x: Floats, workspace: Workspace
) -> tuple[float, float]:
    """Alternate parameters and variance from the Gram matrix; return variance and sum of squares."""
    start, step = workspace.vectors[6], workspace.vectors[7]
    predicted_squares = squares
    for i in range(len(x)):
        start[i] = x[i]
    for _ in range(MAX_ITERATIONS):
        solve(variance, prior, start, x, workspace)
        for i in range(len(x)):
            step[i] = x[i] - start[i]
        predicted_squares = max(_predicted_squares(workspace.gram, workspace.gradient, squares, step), 0.0)
        previous, variance = variance, variance_mode(predicted_squares, rows)
        if abs(variance - previous) <= VARIANCE_TOLERANCE * variance:
            break
    return variance, predicted_squares


@inner_no_alloc
def solve(variance: float, prior: Prior, start: Floats, x: Floats, workspace: Workspace) -> None:
    """Minimize the quadratic model of the residuals around `start` over `x`."""
    system, size, n_free = workspace.system, len(x), len(prior.precision)
    for i in range(size):
        for j in range(i, size):
            system[i, j] = workspace.gram[i, j]
        system[i, size] = workspace.gradient[i]
    for i in range(n_free):
        system[i, i] += variance * prior.precision[i]
        system[i, size] -= variance * prior.precision[i] * start[i]
    _eliminate(system, workspace.gram, n_free, size)
    if n_free < size:
        _solve_changes(variance * prior.weight, start, x, n_free, workspace)
    for i in range(n_free - 1, -1, -1):
        if system[i, i] == 0.0:
            x[i] = start[i]
            continue
        step = system[i, size]
        for j in range(i + 1, size):
            step -= system[i, j] * (x[j] - start[j])
        x[i] = start[i] + step / system[i, i]


@inner_no_alloc
def _eliminate(system: Floats, gram: Floats, n_free: int, size: int) -> None:
    """Eliminate the first `n_free` rows (Cholesky); the others become the Schur complement."""
    for i in range(n_free):
        if not system[i, i] > PIVOT_TOLERANCE * gram[i, i]:
            for j in range(i, size + 1):
                system[i, j] = 0.0
            continue
        root = math.sqrt(system[i, i])
        for j in range(i, size + 1):
            system[i, j] /= root
        for row in range(i + 1, size):
            multiplier = system[i, row]
            if multiplier != 0.0:
                for j in range(row, size + 1):
                    system[row, j] -= multiplier * system[i, j]


@inner_no_alloc
def _solve_changes(weight: float, start: Floats, x: Floats, n_free: int, workspace: Workspace) -> None:
    """Solve for the slope changes after elimination of the free coefficients."""
    size, system = len(x), workspace.system
    linear = workspace.vectors[3, : size - n_free]
    for i in range(n_free, size):
        for j in range(n_free, i):
            system[i, j] = system[j, i]
    for i in range(n_free, size):
        linear[i - n_free] = system[i, size]
        for j in range(n_free, size):
            linear[i - n_free] += system[i, j] * start[j]
    minimize_lasso(
        system[n_free:, n_free:size], linear, weight, x[n_free:], workspace.factor, workspace.vectors[:3], workspace.active
    )


@inner_no_alloc
def add_products(design: Floats, weight: Floats, gram: Floats) -> None:
    """Add the upper half of the weighted X'X, four rows at a time, in a fixed order of summation."""
    rows, size = design.shape
    for row in range(0, rows - 3, 4):
        first_row, second_row, third_row, fourth_row = design[row], design[row + 1], design[row + 2], design[row + 3]
        for i in range(size):
            weighted_first, weighted_second = weight[row] * first_row[i], weight[row + 1] * second_row[i]
            weighted_third, weighted_fourth = weight[row + 2] * third_row[i], weight[row + 3] * fourth_row[i]
            if weighted_first != 0.0 or weighted_second != 0.0 or weighted_third != 0.0 or weighted_fourth != 0.0:
                for j in range(i, size):
                    gram[i, j] += (
                        weighted_first * first_row[j]
                        + weighted_second * second_row[j]
                        + (weighted_third * third_row[j] + weighted_fourth * fourth_row[j])
                    )
    for row in range(rows - rows % 4, rows):
        for i in range(size):
            weighted_first = weight[row] * design[row, i]
            for j in range(i, size):
                gram[i, j] += weighted_first * design[row, j]


@inner_no_alloc
def add_gradient(design: Floats, residuals: Floats, gradient: Floats) -> None:
    """Add X'r."""
    for row in range(len(residuals)):
        multiplier = residuals[row]
        for j in range(len(gradient)):
            gradient[j] += multiplier * design[row, j]


@inner_no_alloc
def _set_residuals(y: Floats, design_columns: Floats, x: Floats, residuals: Floats) -> None:
    for row in range(len(residuals)):
        residuals[row] = y[row]
    for j in range(len(x)):
        multiplier = x[j]
        if multiplier != 0.0:
            for row in range(len(residuals)):
                residuals[row] -= multiplier * design_columns[j, row]


@inner_no_alloc
def _sum_of_squares(residuals: Floats) -> float:
    total = 0.0
    for row in range(len(residuals)):
        total += residuals[row] * residuals[row]
    return total


@inner_no_alloc
def _predicted_squares(gram: Floats, gradient: Floats, squares: float, step: Floats) -> float:
    """Sum of squares after a step, from the upper half of X'X."""
    total = squares
    for i in range(len(step)):
        if step[i] != 0.0:
            inner = 0.5 * gram[i, i] * step[i]
            for j in range(i + 1, len(step)):
                inner += gram[i, j] * step[j]
            total += 2.0 * step[i] * (inner - gradient[i])
    return total


@inner_no_alloc
def variance_mode(squares: float, rows: int) -> float:
    """Mode of the variance s^2: root of rows / s - squares / s^3 + 4 s = 0."""
    return max(2.0 * squares / (rows + math.sqrt(rows * rows + 16.0 * squares)), MIN_VARIANCE)


@inner_no_alloc
def negative_log_posterior(losses: float, rows: int, variance: float, x: Floats, prior: Prior) -> float:
    """Negative log posterior without constants; `losses`: sum of the losses."""
    total, n_free = losses + 0.5 * rows * math.log(variance) + 2.0 * variance, len(prior.precision)
    for i in range(len(x)):
        total += 0.5 * prior.precision[i] * x[i] * x[i] if i < n_free else prior.weight * abs(x[i])
    return total
