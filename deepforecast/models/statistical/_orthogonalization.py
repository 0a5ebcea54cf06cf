"""Centring, scaling and orthogonalization of badly conditioned regressors."""

from __future__ import annotations

import numpy as np

from deepforecast.data.frames import Floats

ORDINARY_SCALE = (1e-3, 1e3)  # standard deviations
MAX_RELATIVE_MEAN = 1e3  # in standard deviations
CONSTANT_TOLERANCE = 1e-12  # relative to the mean: smaller deviations are rounding
NEAR_COLLINEAR = 1e-4  # relative to the largest singular value
COLLINEAR = 1e-9  # the same


def orthogonal_basis(x: Floats) -> tuple[Floats, Floats]:
    """Centres (columns,) and basis: if z = (x - centres) @ basis has effects b, x has basis @ b.

    0 and the identity if all columns have ordinary scales and are not nearly collinear. Constant
    columns and collinear directions get no effect.
    """
    size = x.shape[1]
    unchanged = np.zeros(size), np.eye(size)
    if not size or not len(x):
        return unchanged
    with np.errstate(over="ignore", invalid="ignore"):
        _, power = np.frexp(np.abs(x).max(axis=0))
        scaled = np.ldexp(x, -power)
        mean, deviation = scaled.mean(axis=0), scaled.std(axis=0)
        varies = deviation > CONSTANT_TOLERANCE * np.abs(mean)
        width = np.ldexp(deviation, power)
        _, values, right = np.linalg.svd((scaled - mean) / np.where(varies, deviation, np.inf), full_matrices=False)
    ordinary = (
        varies & (width >= ORDINARY_SCALE[0]) & (width <= ORDINARY_SCALE[1]) & (np.abs(mean) <= MAX_RELATIVE_MEAN * deviation)
    )
    if ordinary.all() and len(values) == size and values[-1] > NEAR_COLLINEAR * values[0]:
        return unchanged
    matrix, independent = np.zeros((size, size)), np.flatnonzero(values > COLLINEAR * values[0])
    inverse_scale = np.divide(1.0, deviation, out=np.zeros(size), where=varies)
    matrix[:, independent] = np.ldexp(
        inverse_scale[:, None] * right[independent].T * np.sqrt(len(x)) / values[independent], -power[:, None]
    )
    return np.ldexp(mean, power), matrix
