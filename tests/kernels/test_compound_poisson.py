"""Quantiles of noise plus a trend whose slope goes on changing."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, t

from deepforecast.data.frames import Floats
from deepforecast.kernels.compound_poisson import quantiles

LEVELS = np.array([0.005, 0.1, 0.25, 0.5, 0.75, 0.9, 0.995])


def one(noise: float, change: float, count: float, student: bool = False, levels: Floats = LEVELS) -> Floats:
    return quantiles(np.array([noise]), np.array([change]), np.array([count]), levels, student)[0]


def test_noise_alone_is_normal_or_students() -> None:
    np.testing.assert_allclose(one(2.0, 0.0, 3.0), 2.0 * norm.ppf(LEVELS), atol=1e-12)
    np.testing.assert_allclose(one(2.0, 1.0, 0.0), 2.0 * norm.ppf(LEVELS), atol=1e-12)
    np.testing.assert_allclose(one(2.0, 0.0, 3.0, student=True), 2.0 * t.ppf(LEVELS, 3), atol=1e-12)
    assert (one(0.0, 0.0, 5.0) == 0).all()


@pytest.mark.parametrize("student", [False, True])
@pytest.mark.parametrize(("change", "count"), [(0.3, 2.0), (1.0, 0.3), (2.0, 6.0), (10.0, 0.5), (60.0, 1.0), (1e6, 2.0)])
def test_they_are_those_of_draws(change: float, count: float, student: bool) -> None:
    random, size = np.random.default_rng(7), 200_000
    number = random.poisson(count, size)
    drawn = random.standard_t(3, size) if student else random.normal(size=size)
    for more in range(int(number.max())):
        some = number > more
        drawn[some] += random.laplace(0.0, change, some.sum()) * random.random(some.sum())
    found = one(1.0, change, count, student)
    for level, quantile in zip(LEVELS, found, strict=True):
        share = (drawn <= quantile).mean()
        assert abs(share - level) < 4.5 * np.sqrt(level * (1 - level) / size) + 0.0005, (level, quantile, share)


def test_the_spread_is_that_of_the_sum() -> None:
    levels = (np.arange(20_000) + 0.5) / 20_000
    for change, count in ((0.5, 1.0), (2.0, 4.0)):
        variance = np.square(one(1.5, change, count, levels=levels)).mean()
        assert variance == pytest.approx(1.5**2 + count * change**2 * 2 / 3, rel=3e-3)


def test_both_sides_are_alike_and_in_order() -> None:
    levels = np.array([1e-13, 1e-11, 1e-9, 1e-7, 1e-3, 0.3, 0.5, 0.7, 1 - 1e-3, 1 - 1e-7, 1 - 1e-9, 1 - 1e-11])
    for student in (False, True):
        for change in (0.0, 1e-8, 0.5, 19.9, 20.1, 1e9):
            found = one(1.0, change, 1.5, student, levels)
            assert (np.diff(found) > 0).all()
            np.testing.assert_allclose(found[2:6], -found[10:6:-1], rtol=1e-6)
            assert found[6] == 0.0


def test_they_follow_the_unit() -> None:
    for unit in (1e-200, 1e-12, 1e150):
        np.testing.assert_allclose(one(unit, 3 * unit, 2.0) / unit, one(1.0, 3.0, 2.0), rtol=1e-12)


def test_where_changes_dwarf_the_noise_the_two_ways_meet() -> None:
    np.testing.assert_allclose(one(1.0, 20.0001, 1.0), one(1.0, 19.9999, 1.0), rtol=1e-3)
    no_noise = one(0.0, 1.0, 3.0)
    np.testing.assert_allclose(no_noise, one(1e-6, 1.0, 3.0), atol=1e-4)
