"""Work arrays of an ARIMA fit and names of their rows.

Few arrays with named rows, as every array argument costs compilation time. With `columns` the
target, the unknown early values and the regressors, in this order, and r = max(p, q):

orders               integers, indices below
lags                 (4, width) integers
vectors              (21, width)
sequences            (columns + 4, rows + 1)
matrices             (8, r, r)
presample            (2, columns, r)
gram                 (2, columns, columns)
states               (3, columns, width)
covariances          (3, width, width)
cross_covariances    (rows, width)
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

AR, MA, SEASONAL_AR, SEASONAL_MA, SEASON, AR_LAG_LIST, MA_LAG_LIST, P, Q, R, PHI_LAGS, THETA_LAGS, FACTOR_START = range(13)
"""Indices of `orders`: numbers of coefficients; season; whether ar, ma are lists of lags; orders of
phi and theta and their maximum; their numbers of lags; from FACTOR_START, offset of each factor."""

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
"""Rows of `vectors`. PHI, THETA and their gradients are indexed by lag, the others from 0."""

MEAN, INITIAL_MEAN, MEAN_GRADIENT = range(3)
"""Rows of `states`: predicted state; effect of the first m rows on it; gradient."""

EXCESS, COVARIANCE_GRADIENT, NEXT_GRADIENT = range(3)
"""Of `covariances`: P - rho rho'; its gradient after and before a row."""

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
    """Structure with these lags and seasonal orders; `lag_lists`: whether ar, ma omit lags."""
    phi = sorted({lag + season * multiple for lag in (0, *ar) for multiple in range(seasonal[0] + 1)} - {0})
    theta = sorted({lag + season * multiple for lag in (0, *ma) for multiple in range(seasonal[1] + 1)} - {0})
    p, q = max(phi, default=0), max(theta, default=0)
    lags = np.zeros((4, max(len(phi), len(theta), 1)), np.int64)
    for row, lag_values in zip(lags, (ar, ma, phi, theta), strict=True):
        row[: len(lag_values)] = lag_values
    numbers = [len(ar), len(ma), *seasonal, season, *lag_lists, p, q, max(p, q), len(phi), len(theta)]
    numbers += [0, len(ar), len(ar) + len(ma), len(ar) + len(ma) + seasonal[0]]
    return LagStructure(np.array(numbers, np.int64), lags)


def new_workspace(structure: LagStructure, rows: int, columns: int, differences: int, complete: bool) -> Workspace:
    """Allocate a workspace for `rows` rows; `complete` data need no filter arrays."""
    p, q, r = (int(structure.orders[order]) for order in (P, Q, R))
    width = max(p + differences, q + 1, r, columns, structure.size) + 3
    filter_size = 0 if complete else 1
    return Workspace(
        np.zeros((TEMPORARY + 1, width)),
        np.zeros((columns + 4, rows + 1)),
        np.zeros((8, max(r, 1), max(r, 1))),
        np.zeros((2, columns, max(r, 1))),
        np.zeros((2, columns, columns)),
        np.zeros((3, columns * filter_size, width)),
        np.zeros((3, width * filter_size, width)),
        np.zeros((rows * filter_size, width)),
    )
