"""Noise that belongs to a series."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from deepforecast.core.forecast import seeded_normal
from deepforecast.errors import ParameterError, ParameterTypeError


def test_equal_keys_equal_draws_whatever_stands_beside_them() -> None:
    keys = np.random.default_rng(0).normal(size=(20, 3))
    draws = seeded_normal(5, keys, (4, 2))
    order = np.random.default_rng(1).permutation(20)
    np.testing.assert_array_equal(seeded_normal(5, keys[order], (4, 2)), draws[order])
    np.testing.assert_array_equal(seeded_normal(5, keys[7:8], (4, 2))[0], draws[7])
    np.testing.assert_array_equal(seeded_normal(5, np.asfortranarray(keys), (4, 2)), draws)


def test_a_longer_first_axis_goes_on() -> None:
    keys = np.ones((1, 1))
    np.testing.assert_array_equal(seeded_normal(0, keys, (9, 4))[:, :3], seeded_normal(0, keys, (3, 4)))


def test_the_least_difference_makes_another_series() -> None:
    """20,000 keys that differ in the last digit: no two with the same draw."""
    keys = 1 + np.arange(20_000)[:, None] * np.spacing(1.0)
    first = seeded_normal(0, keys, (1,))[:, 0]
    assert len(np.unique(first)) == 20_000
    assert stats.kstest(first, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 0.03


def test_keys_with_seeds_are_not_confused() -> None:
    draws = [seeded_normal(seed, np.array([[key]]), (3,)).tobytes() for seed in range(20) for key in range(20)]
    assert len(set(draws)) == 400


def test_minus_zero_is_zero() -> None:
    np.testing.assert_array_equal(seeded_normal(0, np.array([[-0.0]]), (3,)), seeded_normal(0, np.array([[0.0]]), (3,)))


@pytest.mark.parametrize("seed", [0, 2**64 - 1, np.int32(7)])
def test_seeds(seed: int) -> None:
    assert np.isfinite(seeded_normal(seed, np.ones((1, 1)), (2,))).all()


@pytest.mark.parametrize("seed", [-1, 2**64, 0.5, True, None, "1"])
def test_wrong_seeds(seed: object) -> None:
    wrong_type = isinstance(seed, bool) or not isinstance(seed, int)
    with pytest.raises(ParameterTypeError if wrong_type else ParameterError, match="seed"):
        seeded_normal(seed, np.ones((1, 1)), (2,))  # type: ignore[arg-type]
