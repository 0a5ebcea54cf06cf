from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepforecast.data.panel import METHODS, fill_missing

X = np.nan


@pytest.mark.parametrize(
    ("method", "wanted"),
    [
        ("interpolate", [1, 1, 2, 3, 3, 7, 7, 7, 5, 4, 3]),
        ("ffill", [1, 1, 1, 3, 3, 7, 7, 7, 5, 5, 3]),
        ("zero", [0, 1, 0, 3, 0, 7, 0, 0, 5, 0, 3]),
    ],
)
def test_each_series_by_itself(method: str, wanted: list[float]) -> None:
    y = np.array([X, 1, X, 3, X, 7, X, X, 5, X, 3])
    y.flags.writeable = False
    assert fill_missing(y, np.array([0, 5, 8, 11]), method).tolist() == wanted


@pytest.mark.parametrize("method", ["interpolate", "ffill"])
def test_nothing_comes_from_another_series(method: str) -> None:
    found = fill_missing(np.array([9.0, X, X, 8.0]), np.array([0, 1, 3, 4]), method)
    np.testing.assert_array_equal(found, [9, X, X, 8])


@given(
    st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), min_size=1, max_size=20), st.integers(0, 20), st.sampled_from(METHODS)
)
def test_as_pandas_does(values: list[float | None], cut: int, method: str) -> None:
    y = np.array([X if value is None else value for value in values])
    cut = min(cut, len(y))
    parts = [pd.Series(part) for part in (y[:cut], y[cut:])]
    if method == "zero":
        parts = [part.fillna(0.0) for part in parts]
    elif method == "ffill":
        parts = [part.ffill().bfill() for part in parts]
    else:
        parts = [part.interpolate().ffill().bfill() for part in parts]
    np.testing.assert_allclose(fill_missing(y, np.array([0, cut, len(y)]), method), np.concatenate(parts), rtol=1e-9, atol=1e-9)


@given(st.floats(-1e300, 1e300), st.integers(1, 9))
def test_a_constant_stays_one(value: float, gap: int) -> None:
    y = np.full(gap + 2, X)
    y[[0, -1]] = value
    assert (fill_missing(y, np.array([0, len(y)]), "interpolate") == value).all()
