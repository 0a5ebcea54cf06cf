from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from deepforecast.data.covariates import UNKNOWN, Covariate, match_ids, read_covariate
from deepforecast.errors import DataError


def wrapped(native: Any) -> nw.Series[Any]:
    return nw.from_native(native, series_only=True)


CATEGORICAL = [
    pd.Series(pd.Categorical(["b", None, "a"], categories=["b", "z", "a"])),
    pl.Series(["b", None, "a"], dtype=pl.Categorical),
    pl.Series(["b", None, "a"], dtype=pl.Enum(["b", "z", "a"])),
    pa.chunked_array([pa.array(["b", None, "a"]).dictionary_encode()]),
]


@pytest.mark.parametrize("native", CATEGORICAL)
def test_categories_that_occur_sorted(native: Any) -> None:
    one = read_covariate(wrapped(native), "kind")
    assert one == Covariate(one.values, ("a", "b"))
    assert one.values.tolist() == [1, UNKNOWN, 0]
    assert one.missing().tolist() == [False, True, False]


def test_categories_of_other_types_by_their_text() -> None:
    assert read_covariate(wrapped(pd.Series([10, 2, 10]).astype("category")), "kind").categories == ("10", "2")
    assert read_covariate(wrapped(pd.Series([True, False]).astype("category")), "kind").categories == ("False", "True")
    assert read_covariate(wrapped(pd.Series([None, None]).astype("category")), "kind").categories == ()


def test_categories_of_the_same_text() -> None:
    with pytest.raises(DataError, match=r"kind has 1 more than once"):
        read_covariate(wrapped(pd.Series([1, "1"]).astype("category")), "kind")


@pytest.mark.parametrize(
    "native", [pd.Series(["a"]), pd.Series([True]), pd.Series([1j]), pd.Series([object()]), pl.Series(["a"])]
)
def test_text_and_others_are_refused(native: Any) -> None:
    with pytest.raises(DataError, match=r"Column kind must be numeric.*or to a category"):
        read_covariate(wrapped(native), "kind")


def test_recoded() -> None:
    one = Covariate(np.array([0.0, 1, 2, UNKNOWN]), ("a", "b", "c"))
    assert one.recode(("c", "a")).values.tolist() == [1, UNKNOWN, 0, UNKNOWN]
    assert one.recode(("a", "b", "c")) is one
    assert Covariate(np.array([1.0])).recode(("a",)).categories is None
    assert one.recode(()).values.tolist() == [UNKNOWN] * 4


def test_taken_and_spread() -> None:
    one, kind = Covariate(np.array([1.0, 2.0])), Covariate(np.array([0.0, 1.0]), ("a", "b"))
    np.testing.assert_array_equal(one.scatter(np.array([0, 2]), 3).values, [1, np.nan, 2])
    assert kind.scatter(np.array([0, 2]), 3).values.tolist() == [0, UNKNOWN, 1]
    assert kind.take(np.array([1, 1, 0])).values.tolist() == [1, 1, 0]


@pytest.mark.parametrize(
    ("ids", "others"),
    [
        (pd.Series(["a", "b", "c"]), pd.Series(["c", "x", "a"])),
        (pl.Series(["a", "b", "c"]), pa.chunked_array([["c", "x", "a"]])),
        (pd.Series(["a", "b", "c"]).astype("category"), pl.Series(["c", "x", "a"], dtype=pl.Categorical)),
        (pd.Series([1, 2, 3]), pd.Series([3, 9, 1], dtype="Int64")),
        (pd.Series([1, 2, 3], dtype="uint8"), pl.Series([3, 9, 1])),
    ],
)
def test_matched_across_libraries(ids: Any, others: Any) -> None:
    assert match_ids(wrapped(ids), wrapped(others), "static frame", "id").tolist() == [2, -1, 0]


def test_ids_that_differ_after_a_nul_are_not_the_same() -> None:
    ids, others = pd.Series(["a", "a\x00b", "a\x00c"]), pd.Series(["a\x00c", "a"])
    assert match_ids(wrapped(ids), wrapped(others), "static frame", "id").tolist() == [1, -1, 0]


def test_matching_a_doubled_id() -> None:
    with pytest.raises(DataError, match=r"The static frame must have one row per series; ids repeated in column shop: b"):
        match_ids(wrapped(pd.Series(["a"])), wrapped(pd.Series(["b", "a", "b"])), "static frame", "shop")
