"""Centring, scaling and orthogonalization of badly conditioned regressors."""

from __future__ import annotations

import numpy as np

from deepforecast.data.frames import Floats

ORDINARY_SCALE = (1e-3, 1e3)  # standard deviations
MAX_RELATIVE_MEAN = 1e3  # in standard deviations
CONSTANT_TOLERANCE = 1e-12  # standard deviations below this fraction of the mean are rounding errors
NEAR_COLLINEAR = 1e-4  # smallest singular value relative to the largest
COLLINEAR = 1e-9  # directions with a smaller relative singular value have no effect


def orthogonal_basis(x: Floats) -> tuple[Floats, Floats]:
    """Centres (columns,) and basis (columns, columns) of the transformation z = (x - centres) @ basis.

    The columns of z are orthogonal with variance 1; if z has the effects b, x has the effects
    basis @ b. Centres of 0 and the identity if all columns have ordinary scales and are not nearly
    collinear. Constant columns and collinear directions have no effect (zeros in the basis). By the
    singular value decomposition of the standardized columns.
    """
    n_columns = x.shape[1]
    unchanged = np.zeros(n_columns), np.eye(n_columns)
    if not n_columns or not len(x):
        return unchanged
    with np.errstate(over="ignore", invalid="ignore"):
        _, power = np.frexp(np.abs(x).max(axis=0))
        scaled = np.ldexp(x, -power)
        mean, deviation = scaled.mean(axis=0), scaled.std(axis=0)
        varies = deviation > CONSTANT_TOLERANCE * np.abs(mean)
        unscaled_deviation = np.ldexp(deviation, power)
        _, singular_values, right = np.linalg.svd((scaled - mean) / np.where(varies, deviation, np.inf), full_matrices=False)
    has_ordinary_scale = (unscaled_deviation >= ORDINARY_SCALE[0]) & (unscaled_deviation <= ORDINARY_SCALE[1])
    is_ordinary = varies & has_ordinary_scale & (np.abs(mean) <= MAX_RELATIVE_MEAN * deviation)
    has_full_rank = len(singular_values) == n_columns and singular_values[-1] > NEAR_COLLINEAR * singular_values[0]
    if is_ordinary.all() and has_full_rank:
        return unchanged
    basis = np.zeros((n_columns, n_columns))
    independent = np.flatnonzero(singular_values > COLLINEAR * singular_values[0])
    inverse_scale = np.divide(1.0, deviation, out=np.zeros(n_columns), where=varies)
    basis[:, independent] = np.ldexp(
        inverse_scale[:, None] * right[independent].T * np.sqrt(len(x)) / singular_values[independent], -power[:, None]
    )
    return np.ldexp(mean, power), basis
