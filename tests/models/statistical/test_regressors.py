"""Columns known ahead as numbers for a linear term."""

from __future__ import annotations

import numpy as np

from deepforecast.data.covariates import UNKNOWN, Covariate
from deepforecast.models.statistical._regressors import centred, design


def test_numbers_are_taken_as_they_are_and_steps_ahead_are_flattened():
    found = design({"a": Covariate(np.array([[1.0, 2.0], [3.0, 4.0]])), "b": Covariate(np.array([[5.0, np.nan], [7.0, 8.0]]))})
    np.testing.assert_array_equal(found, [[1, 5], [2, np.nan], [3, 7], [4, 8]])


def test_a_category_is_coded_against_the_mean_and_an_unknown_one_is_average():
    found = design({"day": Covariate(np.array([0.0, 1.0, 2.0, UNKNOWN]), ("a", "b", "c"))})
    np.testing.assert_array_equal(found, [[1, 0], [0, 1], [-1, -1], [0, 0]])


def test_columns_are_centred_and_scaled_within_each_series():
    matrix = np.array([[1.0], [3.0], [10.0], [20.0], [30.0]])
    away, centre, scale = centred(matrix, np.array([0, 2, 5]))
    np.testing.assert_allclose(centre[:, 0], [2, 20])
    np.testing.assert_allclose(scale[:, 0], [1, np.std([10, 20, 30])])
    np.testing.assert_allclose(away[:2, 0], [-1, 1])


def test_a_column_that_never_varies_counts_as_nothing_and_a_missing_one_stays_missing():
    away, _, scale = centred(np.array([[5.0, 1.0], [5.0, np.nan], [5.0, 3.0]]), np.array([0, 3]))
    np.testing.assert_array_equal(away[:, 0], 0)
    assert scale[0, 0] == np.inf
    np.testing.assert_array_equal(away[:, 1], [-1, np.nan, 1])


def test_no_columns():
    assert design({}).shape == (0, 0)
