from __future__ import annotations

import re
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepforecast.data.key_columns import Runs, _sort_order, find_runs
from deepforecast.errors import DataError

TEXT = ["b", "b", "a", "c", "c", "a", "b"]


def wrapped(native: Any) -> nw.Series[Any]:
    return nw.from_native(native, series_only=True)


def same_text() -> dict[str, Any]:
    """TEXT in every form an id column can have."""
    arrow = pa.array(TEXT)
    twice = pa.chunked_array([pa.array(TEXT[:3]).dictionary_encode(), pa.array(TEXT[3:]).dictionary_encode()])
    return {
        "str": pd.Series(TEXT),
        "object": pd.Series(TEXT, dtype=object, index=[5] * 7),
        "string[python]": pd.Series(TEXT, dtype="string[python]"),
        "string[pyarrow]": pd.Series(TEXT, dtype="string[pyarrow]"),
        "arrow": pd.Series(TEXT, dtype=pd.ArrowDtype(pa.large_string())),
        "category": pd.Series(pd.Categorical(TEXT, categories=["z", "c", "b", "a"], ordered=True)),
        "arrow dictionary": pd.Series(pd.arrays.ArrowExtensionArray(arrow.dictionary_encode())),
        "arrow view": pd.Series(pd.arrays.ArrowExtensionArray(pa.array(TEXT, pa.string_view()))),
        "polars": pl.Series(TEXT),
        "polars categorical": pl.Series(TEXT, dtype=pl.Categorical),
        "polars enum": pl.Series(TEXT, dtype=pl.Enum(["z", "c", "b", "a"])),
        "pyarrow": pa.chunked_array([arrow[:2], arrow[2:]]),
        "pyarrow view": pa.chunked_array([pa.array(TEXT, pa.string_view())]),
        "pyarrow dictionary": pa.chunked_array([arrow.dictionary_encode()]),
        "pyarrow dictionaries": twice,
    }


@pytest.mark.parametrize("kind", list(same_text()))
def test_runs_of_text(kind: str) -> None:
    runs = find_runs(wrapped(same_text()[kind]), "id")
    assert runs.count == 3
    assert runs.starts.tolist() == [0, 2, 3, 5, 6]
    assert runs.rank.tolist() == [1, 0, 2, 0, 1]


@pytest.mark.parametrize(
    "native",
    [
        pd.Series([30, 30, 4, 200]),
        pd.Series([30, 30, 4, 200], dtype="UInt8"),
        pd.Series([30, 30, 4, 200], dtype=object),
        pd.Series([30, 30, 4, 200], dtype="int16[pyarrow]"),
        pd.Series([30, 30, 4, 200]).astype("category"),
        pl.Series([30, 30, 4, 200], dtype=pl.UInt8),
        pa.chunked_array([[30], [30, 4, 200]]),
        pd.Series([-96, -96, -122, 74], dtype="int8"),
        pd.Series([2**63 + 30, 2**63 + 30, 2**63 + 4, 2**63 + 200], dtype="uint64"),
    ],
)
def test_runs_of_integers(native: Any) -> None:
    runs = find_runs(wrapped(native), "id")
    assert (runs.starts.tolist(), runs.rank.tolist(), runs.count) == ([0, 2, 3], [1, 0, 2], 3)


@pytest.mark.parametrize(
    "native",
    [
        pd.Series([1.0, 2.0]),
        pd.Series([True, False]),
        pd.Series([("a",), ("b",)]),
        pd.Series([1, "1"]),
        pd.Series(["a", b"a"]),
        pd.Series([1, "1"]).astype("category"),
        pd.Series([1.5, 2]).astype("category"),
        pd.Series(pd.date_range("2024", periods=2)),
        pl.Series([1.0]),
        pa.chunked_array([[1.5]]),
        pl.Series([[1]]),
        pl.Series([1], dtype=pl.Int128),
    ],
)
def test_other_ids_are_refused(native: Any) -> None:
    found = str(native.dtype) if hasattr(native, "dtype") else str(native.type)
    with pytest.raises(DataError, match=rf"The id column shop must contain.*got dtype {re.escape(found)}.*Convert"):
        find_runs(wrapped(native), "shop")


@pytest.mark.parametrize(
    "native",
    [
        pd.Series(["a", None, "a", None]),
        pd.Series(["a", np.nan, "a", None], dtype=object),
        pd.Series([1, pd.NA, 1, pd.NA], dtype="Int64"),
        pd.Series([1.0, np.nan, 1.0, np.nan]),
        pd.Series(["a", None, "a", None]).astype("category"),
        pl.Series(["a", None, "a", None]),
        pl.Series(["a", None, "a", None], dtype=pl.Categorical),
        pa.chunked_array([["a", None], ["a", None]]),
        pa.chunked_array([pa.DictionaryArray.from_arrays([0, 1, 0, 1], pa.array(["a", None]))]),
    ],
)
def test_missing_ids_are_refused(native: Any) -> None:
    with pytest.raises(DataError, match=r"Column shop .* missing in 2 row.* first in row 1"):
        find_runs(wrapped(native), "shop")


@pytest.mark.parametrize("ids", [["a", "\ud800"], [1, 2**70], [2**64, 1]])
def test_what_no_dtype_holds_is_refused(ids: list[Any]) -> None:
    with pytest.raises(DataError, match="The id column shop must contain"):
        find_runs(wrapped(pd.Series(ids, dtype=object)), "shop")


def test_ids_that_look_alike_stay_apart() -> None:
    odd = ["a", "A", " a", "a ", "", "a\x00b", "a\x00c", "é", "e\u0301", "日本"]
    for native in (pd.Series(odd), pd.Series(odd, dtype=object), pl.Series(odd), pa.chunked_array([odd])):
        runs = find_runs(wrapped(native), "id")
        assert runs.count == len(odd)
        assert np.argsort(runs.rank).tolist() == sorted(range(len(odd)), key=lambda number: odd[number])


def test_sorted_rows_are_not_sorted_again() -> None:
    runs = find_runs(wrapped(pd.Series(["a", "a", "b"])), "id")
    order, indptr = runs.layout(np.array([1, 2, 1]))
    assert order is None
    assert indptr.tolist() == [0, 2, 3]


def test_blocks_in_another_order_are_moved_whole() -> None:
    order, indptr = find_runs(wrapped(pd.Series(["b", "b", "a"])), "id").layout(np.array([1, 2, 9]))
    assert order is not None
    assert (order.tolist(), indptr.tolist()) == ([2, 0, 1], [0, 1, 3])


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(-(2**61), 2**61)), min_size=1, max_size=40),
    st.sampled_from([1, 60, 86_400]),
)
def test_order_is_that_of_a_plain_sort(rows: list[tuple[int, int]], unit: int) -> None:
    rows = [(one, stamp // unit * unit if unit > 1 else stamp) for one, stamp in rows]
    ids, raw = np.array([one for one, _ in rows]), np.array([stamp for _, stamp in rows], dtype=np.int64)
    order, indptr = find_runs(wrapped(pd.Series(ids)), "id").layout(raw)
    order = np.arange(len(rows)) if order is None else order
    assert sorted(order.tolist()) == list(range(len(rows)))
    assert [(ids[row], raw[row]) for row in order] == sorted(rows)
    assert np.diff(indptr).tolist() == [int((ids == one).sum()) for one in np.unique(ids)]


@pytest.mark.parametrize("raw", [[0, 2**62 + 5, 7], [-(2**63) + 1, 2**63 - 1, 0], [0, 86_400, 3], [5, 5, 5], [2**61, 0, 2**40]])
@pytest.mark.parametrize("count", [2, 2**20])
def test_keys_that_do_not_fit_are_sorted_twice(raw: list[int], count: int) -> None:
    codes, stamps = np.array([1, 0, 1]), np.array(raw, dtype=np.int64)
    order = _sort_order(codes, np.ones(3, np.int64), count, stamps)
    assert order.tolist() == sorted(range(3), key=lambda row: (codes[row], raw[row]))


@given(st.integers(1, 5), st.integers(1, 30), st.floats(0, 1), st.integers(0, 1000))
def test_dense_keys_are_placed(series: int, length: int, left_out: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    ids, raw = np.repeat(np.arange(series), length), np.tile(np.arange(length) * 7 - 20, series)
    rows = rng.permutation(len(ids))[int(left_out * (len(ids) - 1)) :]
    ids, raw = ids[rows], raw[rows]
    order, _ = find_runs(wrapped(pd.Series(ids)), "id").layout(raw)
    order = np.arange(len(ids)) if order is None else order
    np.testing.assert_array_equal(order, np.lexsort((raw, ids)))


def test_stamps_that_only_begin_as_whole_units() -> None:
    raw = np.append(np.arange(1500) * 10, [7, 4, 6, 5, 3])
    order, _ = find_runs(wrapped(pd.Series(["a"] * len(raw))), "id").layout(raw)
    assert raw[order].tolist() == sorted(raw)


def test_one_series_needs_no_ids() -> None:
    order, indptr = Runs(np.zeros(1, np.int64), np.zeros(1, np.int64), 1).layout(np.array([3, 1, 2]))
    assert order is not None
    assert (order.tolist(), indptr.tolist()) == ([1, 2, 0], [0, 3])


@pytest.mark.parametrize("kind", ["str", "object", "string[python]", "category", "polars", "pyarrow", "int64"])
def test_one_id_is_one_run(kind: str) -> None:
    ids = ["a"] * 4
    columns: dict[str, Any] = {"polars": pl.Series(ids), "pyarrow": pa.chunked_array([ids[:3], ids[3:]]), "int64": pd.Series([7] * 4)}
    runs = find_runs(columns[kind] if kind in columns else pd.Series(ids, dtype=kind), "unique_id")
    assert (runs.starts.tolist(), runs.rank.tolist(), runs.count) == ([0], [0], 1)
    order, indptr = runs.layout(np.array([1, 2, 2, 3]))
    assert order is None
    assert indptr.tolist() == [0, 4]
