"""The least of a quadratic with a penalty on sizes."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from deepforecast.data.frames import Floats, Ints
from deepforecast.kernels.lasso import minimize_lasso


@numba.njit
def _call(matrix: Floats, linear: Floats, weight: float, x: Floats, factor: Floats, room: Floats, active: Ints) -> None:
    minimize_lasso(matrix, linear, weight, x, factor, room, active)


def solved(matrix: Floats, linear: Floats, weight: float, start: Floats | None = None) -> Floats:
    size = len(linear)
    x = np.zeros(size) if start is None else start.copy()
    _call(matrix, linear, weight, x, np.empty((size, size)), np.empty((3, size)), np.zeros(size, dtype=np.int64))
    return x


def expect_least(matrix: Floats, linear: Floats, weight: float, x: Floats) -> None:
    """Where x is 0 the slope is at most the penalty, elsewhere it is the penalty against its sign."""
    slope = matrix @ x - linear
    there = x != 0
    scale = weight + np.abs(linear).max()
    np.testing.assert_allclose(slope[there], -weight * np.sign(x[there]), atol=1e-9 * scale)
    assert (np.abs(slope[~there]) <= weight + 1e-9 * scale).all()


@pytest.mark.parametrize("seed", range(20))
def test_slopes_are_those_of_the_least(seed: int) -> None:
    random = np.random.default_rng(seed)
    design = np.cumsum(np.cumsum(random.normal(size=(60, 25)), axis=0), axis=0)  # alike, as hinges are
    matrix, linear = design.T @ design, design.T @ random.normal(size=60)
    for share in (0.9, 0.3, 0.01, 0.0):
        weight = share * np.abs(linear).max()
        expect_least(matrix, linear, weight, solved(matrix, linear, weight))


def test_the_start_does_not_matter() -> None:
    random = np.random.default_rng(1)
    design = random.normal(size=(40, 12))
    matrix, linear = design.T @ design, design.T @ random.normal(size=40)
    cold = solved(matrix, linear, 2.0)
    assert 0 < (cold != 0).sum() < 12
    for start in (random.normal(size=12), -10 * cold, cold):
        np.testing.assert_allclose(solved(matrix, linear, 2.0, start), cold, atol=1e-10)


def test_a_penalty_above_every_slope_gives_zeros() -> None:
    assert (solved(np.eye(3), np.array([1.0, -2.0, 0.5]), 2.0) == 0).all()
    np.testing.assert_allclose(solved(np.eye(3), np.array([1.0, -2.0, 0.5]), 0.75), [0.25, -1.25, 0.0])


def test_columns_that_are_the_same_share() -> None:
    column = np.arange(5.0)
    design = np.stack([column, column, np.ones(5)], axis=1)
    matrix, linear = design.T @ design, design.T @ (2 * column + 1)
    x = solved(matrix, linear, 0.1)
    expect_least(matrix, linear, 0.1, x)
