"""Names of features of the past: what each says, that it comes back, and what is no name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepforecast.data.features import MAX_LAG, WINDOWS, LagFeature, lag_features, parse_lag_feature
from deepforecast.errors import ParameterError, format_value


@pytest.mark.parametrize(
    ("name", "wanted", "reach"),
    [
        ("lag_7", LagFeature("lag", 7), 7),
        ("difference_7", LagFeature("difference", 1, 2, 7), 8),
        ("difference_1@3", LagFeature("difference", 3, 2, 1), 4),
        ("mean_28", LagFeature("mean", 1, 28), 28),
        ("std_28@7", LagFeature("std", 7, 28), 34),
        ("mean_4x7", LagFeature("mean", 7, 4, 7), 28),
        ("max_4x7@1", LagFeature("max", 1, 4, 7), 22),
        ("quantile_28_0.9", LagFeature("quantile", 1, 28, 1, 0.9), 28),
        ("quantile_4x7_0.25@9", LagFeature("quantile", 9, 4, 7, 0.25), 30),
        ("expanding_max", LagFeature("expanding_max"), 1),
        ("expanding_std@3", LagFeature("expanding_std", 3), 3),
        ("ewm_0.3", LagFeature("ewm", level=0.3), 1),
        ("ewm_1@2", LagFeature("ewm", 2, level=1.0), 2),
    ],
)
def test_a_name_says_the_feature_and_comes_back(name: str, wanted: LagFeature, reach: int) -> None:
    found = parse_lag_feature(name)
    assert (found, str(found), found.n_rows_needed) == (wanted, name, reach)


@given(
    st.sampled_from(WINDOWS), st.integers(1, MAX_LAG), st.integers(2, MAX_LAG), st.integers(1, 400), st.floats(1e-9, 1 - 1e-9)
)
def test_every_window_comes_back_from_its_name(kind: str, lag: int, size: int, stride: int, level: float) -> None:
    """To the bit: a fitted model keeps its features by their names."""
    one = LagFeature(kind, lag, size, stride, level if kind == "quantile" else 0.0)
    assert parse_lag_feature(str(one)) == one


@given(st.floats(1e-9, 1), st.integers(1, 50))
def test_every_weight_comes_back_from_its_name(level: float, lag: int) -> None:
    one = LagFeature("ewm", lag, level=level)
    assert parse_lag_feature(str(one)) == one


@pytest.mark.parametrize(
    "name",
    ["", "lag", "lag_", "lag_0", "lag_-1", "lag_1.5", "lag_7@2", "lag_1000001", "lag_٣", "mean_0", "mean_28@", "mean_28@0",
     "mean_28@x", "mean_28_0.5", "mean_4x0", "mean_4x", "median_7", "quantile_28", "quantile_28_0", "quantile_28_0.0",
     "quantile_28_1", "quantile_28_1.0", "difference_0", "ewm_0", "ewm_1.5", "ewm_0.0", "ewm", "expanding_quantile",
     "expanding", "MEAN_7", " mean_7", "mean_7 "],
)  # fmt: skip
def test_what_is_no_name_is_refused_with_examples(name: str) -> None:
    with pytest.raises(ParameterError, match=r"such as 'lag_7', .*'difference_7', got ") as told:
        parse_lag_feature(name)
    assert str(told.value).endswith(f"got {format_value(name)!r}.")


def test_lags_are_those_up_to_a_number_or_those_of_a_list() -> None:
    assert lag_features(3) == (LagFeature("lag", 1), LagFeature("lag", 2), LagFeature("lag", 3))
    assert lag_features([7, 1]) == (LagFeature("lag", 7), LagFeature("lag", 1))
    assert len(lag_features([MAX_LAG])) == 1


@pytest.mark.parametrize("given", [0, -2, [], [0], [1, -1], [2, 2], [MAX_LAG + 1], MAX_LAG + 1, 10**15])
def test_lags_that_are_none_are_refused(given: int | list[int]) -> None:
    with pytest.raises(
        ParameterError, match=r"`lags` must contain at least one lag, .* from 1 to 1,000,000, got .* Pass a list"
    ):
        lag_features(given)
