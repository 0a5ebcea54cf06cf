"""The seasonal naive error inside the training data, one series and many."""

from __future__ import annotations

import numpy as np
import pytest

from deepforecast.errors import DataError, ParameterError
from deepforecast.evaluation.metrics import seasonal_scale


def plain(values: np.ndarray, season: int, power: int) -> float:
    """The definition, one pair after the other."""
    changes = [abs(values[i] - values[i - season]) ** power for i in range(season, len(values))]
    changes = [change for change in changes if not np.isnan(change)]
    return float(np.mean(changes)) if changes else np.nan


@pytest.mark.parametrize("squared", [False, True])
def test_ragged_panel_is_each_series_alone(squared: bool) -> None:
    random = np.random.default_rng(0)
    lengths = [0, 1, 4, 6, 30, 0, 12, 11, 2, 0]
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    values = random.normal(size=indptr[-1])
    values[random.random(values.size) < 0.1] = np.nan
    seasons = np.array([1, 4, 4, 4, 7, 1, 1, 7, 2, 3])
    for season in (1, 4, seasons):
        found = seasonal_scale(values, season, indptr, squared=squared)
        each = np.broadcast_to(season, 10)
        expected = [plain(values[indptr[i] : indptr[i + 1]], each[i], 1 + squared) for i in range(10)]
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        assert np.isfinite(found).sum() >= 3


def test_ends_cut_the_training_part() -> None:
    values, indptr = np.array([1.0, 3, 2, 9, 5, 5, 8, 100]), np.array([0, 4, 8])
    np.testing.assert_allclose(seasonal_scale(values, 1, indptr, ends=[3, 7]), [1.5, 1.5])
    np.testing.assert_array_equal(seasonal_scale(values, 1, indptr, ends=[1, 4]), [np.nan, np.nan])


def test_one_series() -> None:
    assert seasonal_scale([1, 3, 2, 5, 5], 1) == 1.5
    assert seasonal_scale([1, 3, 2, 5, 5], 1, squared=True) == pytest.approx(14 / 4)
    assert seasonal_scale([1.0, np.nan, 2.0, 4.0], 1) == 2.0
    assert seasonal_scale([2.0, 2.0, 2.0], 1) == 0.0
    assert np.isnan(seasonal_scale([2.0, 2.0], 2))
    assert np.isnan(seasonal_scale([], 1))
    assert isinstance(seasonal_scale([1, 2], 1), float)


def test_float32_and_huge_numbers_keep_their_digits() -> None:
    assert seasonal_scale(np.array([16777215, 16777216], dtype=np.float32), 1) == 1.0
    assert seasonal_scale(np.array([2**31 - 1, -(2**31)], dtype=np.int32), 1) == 2.0**32 - 1


def test_refused() -> None:
    for season in (0, -1, 1.5, True):
        with pytest.raises(ParameterError, match="season_length"):
            seasonal_scale([1.0, 2.0], season)  # type: ignore[arg-type]
    for indptr in ([0, 3], [-1, 2], [0.0, 2.0], [0], [[0, 2]]):
        with pytest.raises(ParameterError, match="`indptr` must contain"):
            seasonal_scale([1.0, 2.0], 1, indptr)
    with pytest.raises(ParameterError, match="No series can end before it starts"):
        seasonal_scale([1.0, 2.0], 1, [0, 2, 1, 2])
    for ends in ([3], [1, 1], [1.0]):
        with pytest.raises(ParameterError, match="`ends` must contain"):
            seasonal_scale([1.0, 2.0], 1, [0, 2], ends=ends)
    with pytest.raises(ParameterError, match="one-dimensional"):
        seasonal_scale([[1.0, 2.0]], 1)
    with pytest.raises(DataError, match="inf at position 1"):
        seasonal_scale([1.0, np.inf], 1)
    with pytest.raises(DataError, match="must fit into float64"):
        seasonal_scale([1e200, -1e200], 1, squared=True)
