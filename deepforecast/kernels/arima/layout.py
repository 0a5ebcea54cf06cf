"""Where a fit keeps its numbers: few arrays with rows by name, as each further array is paid for when kernels are compiled.

form    (16,) whole numbers    lags (4, width)    vectors (rows below, width)    tracks (columns + 4, rows + 1)
dense   (8, r, r)    past (2, columns, r)    gram (2, columns, columns)
states (3, columns, width)    square (3, width, width)    against (rows, width)

`columns` are the target, the unknowns (values missing among the first rows) and the regressors, in this order.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

AR, MA, SEASONAL_AR, SEASONAL_MA, SEASON, FREE_AR, FREE_MA, P, Q, R, PHI_LAGS, THETA_LAGS, BEGIN = range(13)
"""Of `form`: numbers of coefficients; the season; whether ar, ma are lists of lags; orders of the products; how many lags;
from BEGIN where the coefficients of each factor begin."""

PHI, THETA, PHI_BAR, THETA_BAR, FACTORS, BARS, F, G, F_BAR, G_BAR, FIRST, PULL, ROW, PIVOTS = range(14)
FULL_PHI, RHO, FULL_BAR, RHO_BAR, BETA, FOUND, TEMPORARY = range(14, 21)
"""Of `vectors`. PHI, THETA and their gradients by lag, the others from 0."""

MEAN, KNOWN, MEAN_BAR = range(3)
"""Of `states`: before the next row; what the first rows say of those after them; the gradient."""

EXCESS, BAR, NEXT_BAR = range(3)
"""Of `square`: the covariance of the state less that of the next error; its gradient."""

COVARIANCE, SYSTEM, AFTER, KEPT, GRAM, LOWER, MIDDLE, INNER = range(8)
"""Of `dense`: V; the system it came from; V (I + G V)^-1; G (I + V G)^-1; G; three to work in."""


class Form(NamedTuple):
    """Which lags a model has."""

    form: Ints
    lags: Ints  # of ar, ma, the product phi, the product theta, ascending

    @property
    def size(self) -> int:
        """How many coordinates: those of ar, ma, seasonal ar, seasonal ma, in this order."""
        return int(self.form[:4].sum())


class Arrays(NamedTuple):
    """What an evaluation writes to."""

    vectors: Floats
    tracks: Floats
    dense: Floats
    past: Floats
    gram: Floats
    states: Floats
    square: Floats
    against: Floats


@lru_cache(maxsize=4096)
def form_of(
    ar: tuple[int, ...],
    ma: tuple[int, ...],
    seasonal: tuple[int, int] = (0, 0),
    season: int = 1,
    free: tuple[bool, bool] = (False, False),
) -> Form:
    """The form with these lags of ar and ma and these seasonal orders. `free`: whether ar, ma are lists with lags left out."""
    phi = sorted({one + season * many for one in (0, *ar) for many in range(seasonal[0] + 1)} - {0})
    theta = sorted({one + season * many for one in (0, *ma) for many in range(seasonal[1] + 1)} - {0})
    p, q = max(phi, default=0), max(theta, default=0)
    lags = np.zeros((4, max(len(phi), len(theta), 1)), np.int64)
    for row, each in zip(lags, (ar, ma, phi, theta), strict=True):
        row[: len(each)] = each
    numbers = [len(ar), len(ma), *seasonal, season, *free, p, q, max(p, q), len(phi), len(theta)]
    numbers += [0, len(ar), len(ar) + len(ma), len(ar) + len(ma) + seasonal[0]]
    return Form(np.array(numbers, np.int64), lags)


def arrays_for(form: Form, rows: int, columns: int, differences: int, whole: bool) -> Arrays:
    """Room for evaluations over `rows` rows. `whole`: nothing is missing, so that no filter is needed."""
    p, q, r = (int(form.form[one]) for one in (P, Q, R))
    width = max(p + differences, q + 1, r, columns, form.size) + 3
    some = 0 if whole else 1
    return Arrays(
        np.zeros((TEMPORARY + 1, width)),
        np.zeros((columns + 4, rows + 1)),
        np.zeros((8, max(r, 1), max(r, 1))),
        np.zeros((2, columns, max(r, 1))),
        np.zeros((2, columns, columns)),
        np.zeros((3, columns * some, width)),
        np.zeros((3, width * some, width)),
        np.zeros((rows * some, width)),
    )
