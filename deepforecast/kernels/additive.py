"""Maximum a posteriori parameters of a piecewise linear trend plus features (Prophet).

    -log posterior = n log s + sum loss(r / s) + 2 s^2 + D |free|^2 / 2 + weight |changes|_1

with r the residuals of the scaled values, s their scale (half-normal prior of standard deviation 0.5),
`free` the coefficients with a normal prior of precision D, and `changes` the slope changes with a
Laplace prior. The loss is normal, r^2 / (2 s^2), or that of Student's t.

`fit_linear` fits models linear in all parameters from X'X, X'y and y'y, so that series with the same
time steps share X'X. For a given s the free coefficients are eliminated (partial Cholesky factor), which
leaves a lasso problem; s has a closed form, and the two alternate from a large s downwards, which
selects the most regular of several maxima. `gauss_newton` fits the other models. In the code x holds
the parameters, free ones first, and `variance` is s^2.

References
----------
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

MAX_RESIDUAL_PASSES = 6  # passes that start from exact residuals
MAX_ITERATIONS = 60  # alternations of parameters and variance
VARIANCE_TOLERANCE = 1e-10  # relative change of the variance at convergence
MIN_VARIANCE = 1e-26  # rounding error of scaled values
START_VARIANCE = 1.0  # upper bound of the variance of scaled values
SQUARES_TOLERANCE = 1e-9  # relative difference of predicted and exact sums of squares at convergence
PIVOT_TOLERANCE = 1e-15  # relative size of the pivot of a collinear column


class Prior(NamedTuple):
    """Prior of the parameters.

    precision: of the normal prior of the free coefficients, which come first. weight: of the Laplace prior
    of the slope changes, the other parameters.
    """

    precision: Floats
    weight: float


class Workspace(NamedTuple):
    """Work arrays for p parameters.

    `system` (p, p + 1): normal equations, right side in the last column. `factor` (p, p): Cholesky factor.
    `gram` (p, p): X'X, upper half. `vectors` (8, p): rows 0 to 2 for the lasso, 3 its linear term, 4 and 5
    for `gauss_newton`, 6 and 7 start and step of `_alternate`. `gradient` (p,): X'r. `active` (p,): indices
    of nonzero changes. `residuals`: one per time step.
    """

    system: Floats
    factor: Floats
    gram: Floats
    vectors: Floats
    gradient: Floats
    active: Ints
    residuals: Floats


class Solution(NamedTuple):
    """Parameters (series, p), scale s and objective (-log posterior without constants) of each series."""

    x: Floats
    deviation: Floats
    objective: Floats


def new_workspace(n_parameters: int, n_steps: int) -> Workspace:
    """Allocate a workspace for `n_parameters` parameters and `n_steps` residuals."""
    return Workspace(
        system=np.empty((n_parameters, n_parameters + 1)),
        factor=np.empty((n_parameters, n_parameters)),
        gram=np.zeros((n_parameters, n_parameters)),
        vectors=np.zeros((8, n_parameters)),
        gradient=np.empty(n_parameters),
        active=np.zeros(n_parameters, dtype=np.int64),
        residuals=np.empty(n_steps),
    )


def fit_linear(y: Floats, design: Floats, prior: Prior, constant_column: int) -> Solution:
    """Fit each series of `y` (series, time steps) on the same `design` (time steps, parameters).

    Column `constant_column` of the design is all ones; its parameter starts at the mean of the series, all
    others at 0.
    """
    n_steps, n_parameters = design.shape
    solution = Solution(x=np.zeros((len(y), n_parameters)), deviation=np.empty(len(y)), objective=np.empty(len(y)))
    design = np.ascontiguousarray(design)
    with compile_notice("additive models"):
        _fit_linear(
            np.ascontiguousarray(y),
            design,
            np.ascontiguousarray(design.T),
            prior,
            constant_column,
            solution,
            new_workspace(n_parameters, n_steps),
        )
    return solution


@compiled_no_alloc
def _fit_linear(
    y: Floats,
    design: Floats,
    design_columns: Floats,
    prior: Prior,
    constant_column: int,
    solution: Solution,
    workspace: Workspace,
) -> None:
    """Write parameters, scales and objectives to `solution`.

    Sums of squares that `_alternate` predicts from X'X lose digits to rounding; passes repeat from exact
    residuals until both agree.
    """
    n_steps = len(design)
    for t in range(n_steps):
        workspace.residuals[t] = 1.0
    add_weighted_gram(design, workspace.residuals, workspace.gram)
    for series in range(len(y)):
        x = solution.x[series]
        variance = START_VARIANCE
        predicted_squares = -1.0  # set by the first pass
        x[constant_column] = y[series].mean()
        for n_passes in range(MAX_RESIDUAL_PASSES):
            _set_residuals(y[series], design_columns, x, workspace.residuals)
            squares = _sum_of_squares(workspace.residuals)
            if n_passes > 0 and (
                abs(squares - predicted_squares) <= SQUARES_TOLERANCE * squares or squares <= n_steps * MIN_VARIANCE
            ):
                break
            for i in range(len(x)):
                workspace.gradient[i] = 0.0
            add_gradient(design, workspace.residuals, workspace.gradient)
            variance, predicted_squares = _alternate(squares, n_steps, prior, variance, x, workspace)
        _set_residuals(y[series], design_columns, x, workspace.residuals)
        squares = _sum_of_squares(workspace.residuals)
        variance = variance_mode(squares, n_steps)
        solution.deviation[series] = math.sqrt(variance)
        solution.objective[series] = negative_log_posterior(squares / (2.0 * variance), n_steps, variance, x, prior)


@inner_no_alloc
def _alternate(
    squares: float, n_steps: int, prior: Prior, variance: float, x: Floats, workspace: Workspace
) -> tuple[float, float]:
    """Alternate parameters and variance, from X'X and the gradient X'r at the start; update x.

    Return the variance and the predicted sum of squares. `squares` is that at the start.
    """
    start, step = workspace.vectors[6], workspace.vectors[7]
    predicted_squares = squares
    for i in range(len(x)):
        start[i] = x[i]
    for _ in range(MAX_ITERATIONS):
        solve(variance, prior, start, x, workspace)
        for i in range(len(x)):
            step[i] = x[i] - start[i]
        predicted_squares = max(_predicted_squares(workspace.gram, workspace.gradient, squares, step), 0.0)
        previous, variance = variance, variance_mode(predicted_squares, n_steps)
        if abs(variance - previous) <= VARIANCE_TOLERANCE * variance:
            break
    return variance, predicted_squares


@inner_no_alloc
def solve(variance: float, prior: Prior, start: Floats, x: Floats, workspace: Workspace) -> None:
    """Minimize the penalized quadratic model of the squared residuals around `start`; write the minimum to `x`.

    With d = x - start and precision matrix D it is the minimum of

        d' X'X d / 2 - d' X'r + variance (free' D free / 2 + weight |changes|_1).

    Parameters of collinear columns stay at `start`. `x` must hold a start of the changes.
    """
    system, n_parameters, n_free = workspace.system, len(x), len(prior.precision)
    for i in range(n_parameters):
        for j in range(i, n_parameters):
            system[i, j] = workspace.gram[i, j]
        system[i, n_parameters] = workspace.gradient[i]
    for i in range(n_free):
        system[i, i] += variance * prior.precision[i]
        system[i, n_parameters] -= variance * prior.precision[i] * start[i]
    _eliminate(system, workspace.gram, n_free, n_parameters)
    if n_free < n_parameters:
        _solve_changes(variance * prior.weight, start, x, n_free, workspace)
    for i in range(n_free - 1, -1, -1):
        if system[i, i] == 0.0:
            x[i] = start[i]
            continue
        step = system[i, n_parameters]
        for j in range(i + 1, n_parameters):
            step -= system[i, j] * (x[j] - start[j])
        x[i] = start[i] + step / system[i, i]


@inner_no_alloc
def _eliminate(system: Floats, gram: Floats, n_free: int, n_parameters: int) -> None:
    """Eliminate the first `n_free` rows (Cholesky); the others become the Schur complement.

    `system` has the right side in its last column; only its upper half is used. Collinear rows become 0.
    """
    for i in range(n_free):
        if not system[i, i] > PIVOT_TOLERANCE * gram[i, i]:
            for j in range(i, n_parameters + 1):
                system[i, j] = 0.0
            continue
        root = math.sqrt(system[i, i])
        for j in range(i, n_parameters + 1):
            system[i, j] /= root
        for row in range(i + 1, n_parameters):
            multiplier = system[i, row]
            if multiplier != 0.0:
                for j in range(row, n_parameters + 1):
                    system[row, j] -= multiplier * system[i, j]


@inner_no_alloc
def _solve_changes(weight: float, start: Floats, x: Floats, n_free: int, workspace: Workspace) -> None:
    """Minimize over the slope changes, after elimination of the free coefficients, by `minimize_lasso`.

    `weight` includes the variance. With the Schur complement Q and right side b for a step from `start`,
    the linear term for the changes themselves is b + Q start.
    """
    n_parameters, system = len(x), workspace.system
    linear = workspace.vectors[3, : n_parameters - n_free]
    for i in range(n_free, n_parameters):
        for j in range(n_free, i):
            system[i, j] = system[j, i]
    for i in range(n_free, n_parameters):
        linear[i - n_free] = system[i, n_parameters]
        for j in range(n_free, n_parameters):
            linear[i - n_free] += system[i, j] * start[j]
    minimize_lasso(
        system[n_free:, n_free:n_parameters],
        linear,
        weight,
        x[n_free:],
        workspace.factor,
        workspace.vectors[:3],
        workspace.active,
    )


@inner_no_alloc
def add_weighted_gram(design: Floats, weight: Floats, gram: Floats) -> None:
    """Add the upper half of the weighted X'X, sum_t weight_t x_t x_t', to `gram`.

    Four rows of the design at a time, in a fixed order of summation.
    """
    n_steps, n_columns = design.shape
    for t in range(0, n_steps - 3, 4):
        row_0, row_1, row_2, row_3 = design[t], design[t + 1], design[t + 2], design[t + 3]
        for i in range(n_columns):
            weighted_0, weighted_1 = weight[t] * row_0[i], weight[t + 1] * row_1[i]
            weighted_2, weighted_3 = weight[t + 2] * row_2[i], weight[t + 3] * row_3[i]
            if weighted_0 != 0.0 or weighted_1 != 0.0 or weighted_2 != 0.0 or weighted_3 != 0.0:
                for j in range(i, n_columns):
                    gram[i, j] += (
                        weighted_0 * row_0[j] + weighted_1 * row_1[j] + (weighted_2 * row_2[j] + weighted_3 * row_3[j])
                    )
    for t in range(n_steps - n_steps % 4, n_steps):
        for i in range(n_columns):
            weighted_0 = weight[t] * design[t, i]
            for j in range(i, n_columns):
                gram[i, j] += weighted_0 * design[t, j]


@inner_no_alloc
def add_gradient(design: Floats, residuals: Floats, gradient: Floats) -> None:
    """Add X'r to `gradient`."""
    for t in range(len(residuals)):
        multiplier = residuals[t]
        for j in range(len(gradient)):
            gradient[j] += multiplier * design[t, j]


@inner_no_alloc
def _set_residuals(y: Floats, design_columns: Floats, x: Floats, residuals: Floats) -> None:
    """Write y - X x to `residuals`; `design_columns` is the transposed design."""
    for t in range(len(residuals)):
        residuals[t] = y[t]
    for j in range(len(x)):
        multiplier = x[j]
        if multiplier != 0.0:
            for t in range(len(residuals)):
                residuals[t] -= multiplier * design_columns[j, t]


@inner_no_alloc
def _sum_of_squares(residuals: Floats) -> float:
    sum_of_squares = 0.0
    for t in range(len(residuals)):
        sum_of_squares += residuals[t] * residuals[t]
    return sum_of_squares


@inner_no_alloc
def _predicted_squares(gram: Floats, gradient: Floats, squares: float, step: Floats) -> float:
    """Sum of squares after a step d, |r|^2 - 2 d'X'r + d'X'X d, from the upper half of X'X."""
    predicted = squares
    for i in range(len(step)):
        if step[i] != 0.0:
            half_product = 0.5 * gram[i, i] * step[i]
            for j in range(i + 1, len(step)):
                half_product += gram[i, j] * step[j]
            predicted += 2.0 * step[i] * (half_product - gradient[i])
    return predicted


@inner_no_alloc
def variance_mode(squares: float, n_steps: int) -> float:
    """Mode of the variance s^2, from the root of n / s - squares / s^3 + 4 s = 0; at least MIN_VARIANCE."""
    return max(2.0 * squares / (n_steps + math.sqrt(n_steps * n_steps + 16.0 * squares)), MIN_VARIANCE)


@inner_no_alloc
def negative_log_posterior(losses: float, n_steps: int, variance: float, x: Floats, prior: Prior) -> float:
    """Negative log posterior without constants, see the module docstring; `losses`: sum of the losses."""
    objective, n_free = losses + 0.5 * n_steps * math.log(variance) + 2.0 * variance, len(prior.precision)
    for i in range(len(x)):
        objective += (0.5 * prior.precision[i] * x[i] * x[i]) if i < n_free else (prior.weight * abs(x[i]))
    return objective
