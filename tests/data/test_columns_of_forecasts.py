"""Which column of a frame of forecasts belongs to which model: one rule for scores and pictures."""

from __future__ import annotations

from typing import Any

import pytest

from deepforecast import Columns
from deepforecast.core.forecast import column_names
from deepforecast.data.columns import ModelColumns, declared_covariates, key_roles, models_in_columns
from deepforecast.errors import DataError

LEVELS = (1e-5, 0.001, 5, 80, 97.5, 99.99, 99.99999)
PROBABILITIES = (1e-10, 1e-5, 0.025, 0.1, 0.5, 0.9, 0.99999)


def names(*columns: str) -> list[str]:
    return [model.name for model in models_in_columns(columns)]


@pytest.mark.parametrize("alias", ["LSTM", "A-lo-5", "A-q-0.5", "A-lo-fi", "my-model"])
def test_what_predict_writes_is_read_as_it_was_meant(alias: str) -> None:
    (found,) = models_in_columns(column_names(alias, LEVELS, PROBABILITIES))
    assert found.name == alias
    assert tuple(found.lo) == tuple(found.hi) == LEVELS
    assert tuple(found.q) == PROBABILITIES
    assert set(found.all) == set(column_names(alias, LEVELS, PROBABILITIES))


@pytest.mark.parametrize("name", ["A-lo-fi", "A-lo-120", "A-lo-0", "C-lo-80", "A-q-2", "A-q-1", "C-q-0.5", "lo-80", "A-lo-"])
def test_a_suffix_counts_only_where_it_is_one(name: str) -> None:
    assert names("B", "A", name) == ["B", "A", name]


def test_models_in_the_order_of_their_columns_with_all_that_is_theirs() -> None:
    found = models_in_columns(["B", "A", "A-lo-80", "A-q-.1", "B-lo-5", "B-hi-5", "A-hi-80", "B-lo-fi"])
    assert found == [
        ModelColumns("B", {5.0: "B-lo-5"}, {5.0: "B-hi-5"}),
        ModelColumns("A", {80.0: "A-lo-80"}, {80.0: "A-hi-80"}, {0.1: "A-q-.1"}),
        ModelColumns("B-lo-fi"),
    ]


def test_a_suffix_of_a_suffix_is_a_model_of_its_own() -> None:
    assert names("A", "A-lo-5", "A-lo-5-hi-80") == ["A", "A-lo-5-hi-80"]
    assert names("A-lo-5", "A-lo-5-hi-80") == ["A-lo-5"]


def test_one_level_twice_is_refused() -> None:
    with pytest.raises(DataError, match=r"A-lo-80 and A-lo-80\.0 have the same"):
        models_in_columns(["A", "A-lo-80", "A-lo-80.0"])


def test_bands_are_intervals_and_pairs_of_quantiles() -> None:
    quantiles = ("0.1", "0.9", "0.5", "0.025", "0.975", "0.3", "0.7", "0.2", "1e-10")
    (found,) = models_in_columns(["N", *(f"N-q-{one}" for one in quantiles)])
    assert found.intervals == {80.0: ("N-q-0.1", "N-q-0.9"), 95.0: ("N-q-0.025", "N-q-0.975"), 40.0: ("N-q-0.3", "N-q-0.7")}
    (found,) = models_in_columns(["N", "N-lo-80", "N-hi-80", "N-q-0.1", "N-q-0.9", "N-lo-50"])
    assert found.intervals == {80.0: ("N-lo-80", "N-hi-80")}


@pytest.mark.parametrize(
    ("columns", "keys", "covariates"),
    [
        (None, None, ()),
        (Columns(), {}, ()),
        (Columns(target="sales", future=["price"]), {"target": "sales"}, ("price",)),
        ({"time": "day", "past": "rain"}, {"time": "day"}, ("rain",)),
    ],
)
def test_covariates_said_are_no_keys(columns: Any, keys: Any, covariates: tuple[str, ...]) -> None:
    assert key_roles(columns) == keys
    assert declared_covariates(columns) == covariates
