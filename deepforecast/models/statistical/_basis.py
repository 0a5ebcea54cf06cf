"""Regressors as an optimiser can work with them: ordinary ones as they are, others centred, scaled and at right angles."""

from __future__ import annotations

import numpy as np

from deepforecast.data.frames import Floats

ORDINARY = (1e-3, 1e3)  # standard deviations
FAR = 1e3  # from 0, in standard deviations
CONSTANT = 1e-12  # of its mean: a standard deviation that is rounding
ALIKE = 1e-4  # of the largest singular value: columns that nearly follow from others
SAME = 1e-9  # columns that do


def basis(x: Floats) -> tuple[Floats, Floats]:
    """Centres (columns,) and a matrix: (x - centres) @ matrix is worked with, and matrix @ effects are the effects of x itself.

    Nothing is changed where every column is ordinary and none nearly follows from others. A column that does not vary, or that
    follows from others, has no effect of its own.
    """
    size = x.shape[1]
    as_it_is = np.zeros(size), np.eye(size)
    if not size or not len(x):
        return as_it_is
    with np.errstate(over="ignore", invalid="ignore"):
        _, power = np.frexp(np.abs(x).max(axis=0))
        near = np.ldexp(x, -power)
        mean, spread = near.mean(axis=0), near.std(axis=0)
        varies = spread > CONSTANT * np.abs(mean)
        width = np.ldexp(spread, power)
        _, values, right = np.linalg.svd((near - mean) / np.where(varies, spread, np.inf), full_matrices=False)
    ordinary = varies & (width >= ORDINARY[0]) & (width <= ORDINARY[1]) & (np.abs(mean) <= FAR * spread)
    if ordinary.all() and len(values) == size and values[-1] > ALIKE * values[0]:
        return as_it_is
    found, kept = np.zeros((size, size)), np.flatnonzero(values > SAME * values[0])
    own = np.divide(1.0, spread, out=np.zeros(size), where=varies)
    found[:, kept] = np.ldexp(own[:, None] * right[kept].T * np.sqrt(len(x)) / values[kept], -power[:, None])
    return np.ldexp(mean, power), found
