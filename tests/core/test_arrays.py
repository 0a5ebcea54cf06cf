"""Ragged arithmetic, stretch by stretch."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from deepforecast.core import arrays
from deepforecast.core.arrays import (
    ObservedValues,
    gather_segments,
    seasonal_change_rms,
    segment_means,
    segment_reduce,
    segment_rms,
    split_phases,
)


def test_reduced_takes_empty_stretches_and_gaps() -> None:
    values = np.arange(10.0)
    begin, end = np.array([0, 2, 2, 5, 10, 7]), np.array([2, 2, 4, 6, 10, 10])
    np.testing.assert_array_equal(segment_reduce(values, begin, end), [1, 0, 5, 5, 0, 24])
    np.testing.assert_array_equal(segment_reduce(values, begin, end, np.maximum), [1, 0, 3, 5, 0, 9])
    np.testing.assert_array_equal(segment_reduce(values > 2, begin, end), [0, 0, 1, 1, 0, 3])
    np.testing.assert_array_equal(segment_reduce(np.empty(0), np.zeros(2, int), np.zeros(2, int)), [0, 0])


def test_root_mean_square_of_any_size() -> None:
    base = np.random.default_rng(0).normal(size=7)
    scales = [1.0, 2.0**-500, 2.0**-1000, 2.0**500, 2.0**1000, 0.0, 2.0**-470, 2.0**470]
    values = np.concatenate([base * scale for scale in scales])
    begin = np.arange(len(scales)) * 7
    found = segment_rms(values, begin, begin + 7, ddof=2)
    np.testing.assert_allclose(found[0], np.sqrt(np.sum(base**2) / 5), rtol=1e-15)
    np.testing.assert_array_equal(found, found[0] * np.array(scales))


def test_root_mean_square_of_too_few() -> None:
    found = segment_rms(np.array([3.0, 4.0, 5.0]), np.array([0, 0, 1, 3]), np.array([2, 1, 3, 3]), ddof=1)
    np.testing.assert_array_equal(found, [5.0, np.nan, np.sqrt(41), np.nan])
    found = segment_rms(np.array([np.inf, 1.0, np.nan]), np.array([0, 2]), np.array([2, 3]))
    np.testing.assert_array_equal(found, [np.inf, np.nan])


@pytest.mark.parametrize("block", [1, 7, 10_000])
def test_changes_within_series_and_blocks(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(arrays, "MAX_BLOCK_ROWS", block)
    random = np.random.default_rng(0)
    lengths = [1, 5, 2, 3, 30, 1, 4]
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    values = random.normal(size=indptr[-1])
    for lag in (1, 2, 3, 12):
        expected = []
        for first, last in pairwise(indptr):
            changes = values[first:last][lag:] - values[first:last][:-lag]
            expected.append(np.sqrt(np.mean(changes**2)) if len(changes) else np.nan)
        np.testing.assert_allclose(seasonal_change_rms(values, indptr, lag), expected, rtol=1e-14)


def test_means_of_constants_are_exact() -> None:
    values = np.concatenate([np.full(1001, 0.1), np.full(7, 1e9 + 0.3), np.full(3, -1e-300), [1.0, 2.0]])
    bounds = np.array([0, 1001, 1008, 1011, 1011, 1013])
    np.testing.assert_array_equal(segment_means(values, bounds[:-1], bounds[1:]), [0.1, 1e9 + 0.3, -1e-300, np.nan, 1.5])
    np.testing.assert_array_equal(segment_means(np.empty(0), np.zeros(2, int), np.zeros(2, int)), [np.nan, np.nan])


def test_gathered() -> None:
    values, indptr = gather_segments(np.arange(10.0), np.array([7, 2, 2]), np.array([9, 2, 5]))
    np.testing.assert_array_equal(values, [7, 8, 2, 3, 4])
    np.testing.assert_array_equal(indptr, [0, 2, 2, 5])


@pytest.mark.parametrize("season", [1, 2, 3, 7])
def test_by_phase(season: int) -> None:
    """Phase 0 is that of the first step ahead; within a phase the order of the rows."""
    lengths = [4, 0, 1, 9, 2, 15]
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    values = np.random.default_rng(0).normal(size=indptr[-1])
    found, bounds = split_phases(values, indptr, season)
    expected, counts = [], []
    for first, last in pairwise(indptr):
        for phase in range(season):
            group = [values[row] for row in range(first, last) if (row - last) % season == phase]
            expected += group
            counts.append(len(group))
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.diff(bounds), counts)


def test_observed() -> None:
    values = np.array([np.nan, 1, np.nan, 3, 5, np.nan, np.nan, np.nan, 7, 8])
    seen = ObservedValues(values, np.array([0, 4, 6, 8, 10]))
    last, age = seen.last()
    np.testing.assert_array_equal(last, [3, 5, np.nan, 8])
    np.testing.assert_array_equal(age, [0, 1, 2, 0])
    changes, rows = seen.steps()
    begin, end = seen.step_bounds()
    assert rows is not None
    np.testing.assert_array_equal([changes[begin[0] : end[0]], rows[begin[0] : end[0]]], [[2], [2]])
    np.testing.assert_array_equal(end - begin, [1, 0, 0, 1])
    np.testing.assert_array_equal(seen.step_deviation(), [2 / np.sqrt(2), np.nan, np.nan, 1])


def test_observed_without_holes_does_not_copy() -> None:
    values = np.arange(5.0)
    seen = ObservedValues(values, np.array([0, 2, 5]))
    assert seen.values is values
    assert seen.row_numbers is None
    np.testing.assert_array_equal(seen.last(), [[1, 4], [0, 0]])
