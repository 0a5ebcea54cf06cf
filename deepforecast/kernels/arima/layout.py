"""Work arrays of an ARIMA fit and names of their rows.

Few arrays with named rows, as every array argument costs compilation time. The columns are the
target, the unknown early values and the regressors, in this order; r = max(p, q); `width` exceeds the
number of coefficients, the orders and the size of the state.

orders               integers, indices below
lags                 (4, width) integers, rows below
vectors              (21, width)
sequences            (n_columns + 4, n_steps + 1): filtered columns, then ERRORS and following rows
matrices             (8, r, r)
presample            (2, n_columns, r)
gram                 (2, n_columns, n_columns)
states               (3, n_columns, width)
covariances          (3, width, width)
cross_covariances    (n_steps, width): covariance of each state element with the first one, by time step
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

AR, MA, SEASONAL_AR, SEASONAL_MA, SEASON, AR_LAG_LIST, MA_LAG_LIST, P, Q, R, N_PHI_LAGS, N_THETA_LAGS, FACTOR_START = range(13)
"""Indices of `orders`: numbers of coefficients of the four factors; seasonal period; whether ar, ma are
lists of lags; orders of phi(B) Phi(B^s) and theta(B) Theta(B^s) and their maximum; their numbers of
lags; from FACTOR_START, index of the first coefficient of each factor in FACTORS and in a point."""
N_ORDERS = FACTOR_START + 4

PHI_LAG_ROW, THETA_LAG_ROW = 2, 3
"""Rows of `lags` (ar, ma, phi Phi, theta Theta) of the expanded polynomials."""

(
    PHI,
    THETA,
    PHI_GRADIENT,
    THETA_GRADIENT,
    FACTORS,
    FACTOR_GRADIENT,
    F,
    G,
    F_GRADIENT,
    G_GRADIENT,
    FIRST_ROW,
    PRESAMPLE_SCORE,
    ROW,
    PIVOTS,
) = range(14)
FULL_PHI, RHO, FULL_PHI_GRADIENT, RHO_GRADIENT, BETA, SUMMARY, TEMPORARY = range(14, 21)
"""Rows of `vectors`. PHI, THETA and their gradients are indexed by lag, the others from 0.

FACTORS, FACTOR_GRADIENT: coefficients of the four factors, and the gradient by them. F, G, FIRST_ROW,
their gradients, ROW (right side), PIVOTS: see `presample`. PRESAMPLE_SCORE: V^-1 w. FULL_PHI, RHO: see
`kalman_filter`. BETA: regression coefficients, of unknown early values first. SUMMARY: sum of squares,
log determinant, number of observed values. TEMPORARY: a polynomial."""

ERRORS, VALUES, WEIGHTS, ADJOINT = range(4)
"""Rows of `sequences` after the columns: errors; values less their regression; weights of 1 / theta(B);
gradient by the errors or by the weights."""

WEIGHTED_ERRORS, PRESAMPLE_MEAN = range(2)
"""Of `presample`: X'e0 and the mean of w, of each column."""

NORMAL, UNKNOWN_BLOCK = range(2)
"""Of `gram`: normal equations of the columns, overwritten by a Cholesky factor; their block of the
unknown early values, overwritten by its inverse."""

MEAN, INITIAL_MEAN, MEAN_GRADIENT = range(3)
"""Of `states`: predicted state; effect of the first m values on the initial state; gradient."""

EXCESS, COVARIANCE_GRADIENT, NEXT_GRADIENT = range(3)
"""Of `covariances`: P - rho rho'; the gradient by it after and before a time step."""

COVARIANCE, SYSTEM, POSTERIOR, POSTERIOR_GRAM, GRAM, LOWER, MIDDLE, INNER = range(8)
"""Of `matrices`: V; its linear system; V (I + G V)^-1; G (I + V G)^-1; G; three work matrices."""


class LagStructure(NamedTuple):
    """Lags and orders of a model."""

    orders: Ints
    lags: Ints  # rows: ar, ma, phi Phi, theta Theta; ascending

    @property
    def size(self) -> int:
        """Number of coordinates: ar, ma, seasonal ar, seasonal ma, in this order."""
        return int(self.orders[:4].sum())


class Workspace(NamedTuple):
    """Work arrays of an evaluation; shapes in the module docstring."""

    vectors: Floats
    sequences: Floats
    matrices: Floats
    presample: Floats
    gram: Floats
    states: Floats
    covariances: Floats
    cross_covariances: Floats


@lru_cache(maxsize=4096)
def lag_structure(
    ar: tuple[int, ...],
    ma: tuple[int, ...],
    seasonal: tuple[int, int] = (0, 0),
    season: int = 1,
    lag_lists: tuple[bool, bool] = (False, False),
) -> LagStructure:
    """Structure with these lags and seasonal orders (cached).

    `ar`, `ma`: lags with a coefficient, ascending. `seasonal`: numbers of seasonal coefficients (P, Q).
    `lag_lists`: whether ar, ma omit lags, which excludes partial autocorrelations as coordinates.
    """
    phi = sorted({lag + season * multiple for lag in (0, *ar) for multiple in range(seasonal[0] + 1)} - {0})
    theta = sorted({lag + season * multiple for lag in (0, *ma) for multiple in range(seasonal[1] + 1)} - {0})
    p, q = max(phi, default=0), max(theta, default=0)
    lags = np.zeros((4, max(len(phi), len(theta), 1)), np.int64)
    for row, lag_values in zip(lags, (ar, ma, phi, theta), strict=True):
        row[: len(lag_values)] = lag_values
    orders = [len(ar), len(ma), *seasonal, season, *lag_lists, p, q, max(p, q), len(phi), len(theta)]
    orders += [0, len(ar), len(ar) + len(ma), len(ar) + len(ma) + seasonal[0]]
    return LagStructure(np.array(orders, np.int64), lags)


def new_workspace(structure: LagStructure, n_steps: int, n_columns: int, n_differences: int, is_complete: bool) -> Workspace:
    """Allocate a workspace for `n_steps` time steps; complete data need no arrays of the filter."""
    p, q, r = (int(structure.orders[order]) for order in (P, Q, R))
    width = max(p + n_differences, q + 1, r, n_columns, structure.size) + 3
    has_filter = 0 if is_complete else 1
    return Workspace(
        np.zeros((TEMPORARY + 1, width)),
        np.zeros((n_columns + 4, n_steps + 1)),
        np.zeros((8, max(r, 1), max(r, 1))),
        np.zeros((2, n_columns, max(r, 1))),
        np.zeros((2, n_columns, n_columns)),
        np.zeros((3, n_columns * has_filter, width)),
        np.zeros((3, width * has_filter, width)),
        np.zeros((n_steps * has_filter, width)),
    )
