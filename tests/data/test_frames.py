from __future__ import annotations

import decimal
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from deepforecast.data.frames import (
    build,
    library_name,
    make_categorical,
    read_categories,
    read_numbers,
    take_native_values,
    take_rows,
    to_narwhals,
)
from deepforecast.errors import DataError
from tests.frames import LIBRARIES, D, converted, plain


def wrapped(native: Any) -> nw.Series[Any]:
    return nw.from_native(native, series_only=True)


@pytest.mark.parametrize("name", LIBRARIES)
def test_opened_says_its_library(name: str) -> None:
    table = to_narwhals(converted(D(), name))
    assert library_name(table) == name
    assert table.columns == ["unique_id", "ds", "y"]
    assert library_name(to_narwhals(table)) == name


def test_a_series_is_a_frame_of_one_series() -> None:
    series = pd.Series([1.0, 2.0], index=pd.date_range("2024-01-01", periods=2), name="sales")
    assert to_narwhals(series).to_native().columns.tolist() == ["ds", "y"]
    with pytest.raises(DataError, match=r"static frame.*DatetimeIndex.*RangeIndex"):
        to_narwhals(pd.Series([1.0]), "static frame")


@pytest.mark.parametrize(
    "thing", [None, 3, "frame.csv", [1], {"a": [1]}, np.zeros(3), pl.DataFrame().lazy(), pl.Series([1]), D]
)
def test_anything_else_is_refused(thing: Any) -> None:
    said = r"The future frame must be a pandas, polars or pyarrow DataFrame.*got .*(collect|Convert|Read|Pass)"
    with pytest.raises(DataError, match=said):
        to_narwhals(thing, "future frame")


@pytest.mark.parametrize(
    ("thing", "way_out"),
    [
        ("sales.csv", r"got str\. Read the file first, e\.g\. with pandas\.read_csv\(path\)\."),
        (Path("sales.csv"), r"got pathlib\.\w+\. Read the file first"),
        ([1.0, 2.0], r"got list\. Pass the dates too: pandas\.Series\(values, index=pandas\.date_range\("),
        (np.arange(3.0), r"got numpy\.ndarray\. Pass the dates too"),
        (pl.DataFrame({"y": [1.0]}).lazy(), r"got polars\.LazyFrame\. Call \.collect\(\) first"),
        (np.ones((3, 2)), r"got numpy\.ndarray\. Convert it"),
        ([[1.0, 2.0], [3.0, 4.0]], r"got list\. Convert it"),
        ([{"ds": "2024-01-01", "y": 1.0}], r"got list\. Convert it"),
        (7, r"got int\. Convert it"),
    ],
)
def test_the_way_to_a_frame_is_told(thing: Any, way_out: str) -> None:
    with pytest.raises(DataError, match=way_out):
        to_narwhals(thing)


def test_names_twice() -> None:
    with pytest.raises(DataError, match="must be unique, but these are repeated: y, ds"):
        to_narwhals(pd.DataFrame([[1, 2, 3, 4, 5]], columns=["a", "y", "y", "ds", "ds"]))
    table = pa.table([[1], [2]], names=["y", "y"])
    with pytest.raises(DataError, match="these are repeated: y"):
        to_narwhals(table)
    with pytest.raises(DataError, match="these are repeated: column_names"):
        to_narwhals(pd.DataFrame([[1, 2]], columns=["column_names", "column_names"]))


def test_odd_column_names_do_no_harm() -> None:
    assert to_narwhals(pd.DataFrame({0: [1], ("a", 1): [2], "columns": [3]})).columns == [0, ("a", 1), "columns"]
    assert to_narwhals(pd.DataFrame(np.zeros((1, 2)), columns=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)]))).columns


NUMBERS = [
    pd.Series([1.5, np.nan, 3.0]),
    pd.Series([1.5, None, 3], dtype="Float64"),
    pd.Series([1.5, None, 3], dtype="double[pyarrow]"),
    pd.Series([1.5, np.nan, 3], dtype="float32"),
    pd.Series([1.5, np.nan, 3], dtype="float16"),
    pl.Series([1.5, None, 3.0]),
    pl.Series([1.5, float("nan"), 3.0]),
    pl.Series([1.5, None, 3], dtype=pl.Float32),
    pa.chunked_array([[1.5, None], [3.0]]),
    pa.chunked_array([pa.array([1.5, np.nan, 3.0])]),
    pa.chunked_array([pa.array([np.float16(1.5), None, np.float16(3)], pa.float16())]),
]


@pytest.mark.parametrize("native", NUMBERS)
def test_numbers_with_missing_values(native: Any) -> None:
    found = read_numbers(wrapped(native), "y")
    assert found.dtype == np.float64
    assert not found.flags.writeable
    np.testing.assert_array_equal(found, [1.5, np.nan, 3.0])


INTEGERS = [
    *(pd.Series([1, 2, 3], dtype=kind) for kind in ("int8", "uint8", "int64", "uint64", "Int64", "UInt16", "int32[pyarrow]")),
    pl.Series([1, 2, 3]),
    pl.Series([1, 2, 3], dtype=pl.UInt8),
    pl.Series([1, 2, 3], dtype=pl.Int128),
    pa.chunked_array([[1], [2, 3]]),
    pd.Series([1, 2, 3], index=[9, 9, 9]),
]


@pytest.mark.parametrize("native", INTEGERS)
def test_integers(native: Any) -> None:
    np.testing.assert_array_equal(read_numbers(wrapped(native), "y"), [1.0, 2.0, 3.0])


@pytest.mark.parametrize("native", [pd.Series([1, None], dtype="Int64"), pl.Series([1, None]), pa.chunked_array([[1, None]])])
def test_integers_with_missing_values(native: Any) -> None:
    np.testing.assert_array_equal(read_numbers(wrapped(native), "y"), [1.0, np.nan])


@pytest.mark.parametrize(
    "native", [pd.Series([], dtype="int64"), pd.Series([pd.NA], dtype="Int64"), pl.Series([], dtype=pl.Int64)]
)
def test_integers_that_are_not_there(native: Any) -> None:
    assert np.isnan(read_numbers(wrapped(native), "y")).all()


@pytest.mark.parametrize("value", [2**53 + 1, -(2**53) - 1, 2**62])
def test_integers_that_would_be_rounded(value: int) -> None:
    for native in (
        pd.Series([0, value]),
        pd.Series([0, value, None], dtype="Int64"),
        pl.Series([0, value]),
        pa.chunked_array([[0, value]]),
    ):
        with pytest.raises(DataError, match=rf"column y .*{value}"):
            read_numbers(wrapped(native), "y")
    assert read_numbers(wrapped(pd.Series([2**53, -(2**53)])), "y").tolist() == [2.0**53, -(2.0**53)]


@pytest.mark.parametrize(
    "native",
    [
        pd.Series([True]),
        pd.Series([True, None], dtype="boolean"),
        pd.Series([1j]),
        pd.Series(["1"]),
        pd.Series([1.5], dtype=object),
        pd.Series([decimal.Decimal(1)]),
        pd.Series([1]).astype("category"),
        pd.Series(pd.to_timedelta([1])),
        pd.Series(pd.date_range("2024", periods=1)),
        pd.Series(pd.arrays.SparseArray([1.0])),
        pl.Series([True]),
        pl.Series(["1"]),
        pl.Series([decimal.Decimal(1)]),
        pl.Series([[1.0]]),
        pa.chunked_array([[None]]),
        pa.chunked_array([pa.array([decimal.Decimal(1)])]),
    ],
)
def test_other_columns_are_no_numbers(native: Any) -> None:
    with pytest.raises(DataError, match=r"Column y must be numeric, got dtype .*Convert it to"):
        read_numbers(wrapped(native), "y")


def test_numbers_are_not_copied_and_not_written_to() -> None:
    values = np.array([1.0, 2.0])
    found = read_numbers(wrapped(pd.Series(values, copy=False)), "y")
    assert np.shares_memory(found, values)
    assert values.flags.writeable
    assert read_numbers(
        to_narwhals(pd.DataFrame(np.arange(12.0).reshape(6, 2), columns=["a", "y"]).iloc[::2])["y"], "y"
    ).flags.c_contiguous


CATEGORIES = [
    pd.Series(pd.Categorical(["b", None, "a"], categories=["b", "z", "a"])),
    pl.Series(["b", None, "a"], dtype=pl.Categorical),
    pl.Series(["b", None, "a"], dtype=pl.Enum(["b", "z", "a"])),
    pa.chunked_array([pa.array(["b", None, "a"]).dictionary_encode()]),
    pd.Series(pd.arrays.ArrowExtensionArray(pa.array(["b", None, "a"]).dictionary_encode())),
    pa.chunked_array([pa.array(["b"]).dictionary_encode(), pa.array([None, "a"]).dictionary_encode()]),
    pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array([1, 2, 0], pa.uint8()), pa.array(["a", "b", None]))]),
]


@pytest.mark.parametrize("native", CATEGORIES)
def test_categories(native: Any) -> None:
    names, codes = read_categories(wrapped(native))
    assert codes.dtype == np.int64
    assert [None if code < 0 else names[code] for code in codes] == ["b", None, "a"]


@pytest.mark.parametrize("name", LIBRARIES)
def test_categorical_columns_are_made(name: str) -> None:
    column = make_categorical("kind", ("a", "b", "c"), np.array([1, -1, 0]), name)
    assert column.dtype in (nw.Categorical, nw.Enum)
    frame = build(name, {"kind": column})
    assert [None if value is None or value != value else value for value in to_narwhals(frame)["kind"].to_list()] == [
        "b",
        None,
        "a",
    ]


@pytest.mark.parametrize("name", LIBRARIES)
def test_built_and_taken(name: str) -> None:
    frame = converted(D("A", 4).set_index(pd.Index([3, 3, 1, 0])), name)
    table = to_narwhals(frame)
    rows = np.array([3, 0, 0])
    found = build(name, {"ds": take_rows(table["ds"], rows), "x": np.array([1.0, 2.0, 3.0])})
    assert to_narwhals(found).schema["ds"] == table.schema["ds"]
    assert plain(found).ds.tolist() == D().ds[[3, 0, 0]].tolist()
    assert plain(found).index.tolist() == [0, 1, 2]


def test_a_built_frame_does_not_share_memory() -> None:
    values = np.zeros(3)
    frame = build("pandas", {"x": values})
    frame.loc[0, "x"] = 5.0
    assert values.tolist() == [0, 0, 0]


def test_a_frame_is_built_of_columns_whatever_their_index() -> None:
    found = build("pandas", {"a": pd.Series([1, 2], index=[5, 6]), "b": np.array([3.0, 4.0])})
    pd.testing.assert_frame_equal(found, pd.DataFrame({"a": [1, 2], "b": [3.0, 4.0]}))


@pytest.mark.parametrize("dtype", ["object", "str", "string[python]", "category"])
def test_ids_of_any_type_come_back_by_rows(dtype: str) -> None:
    ids = pd.Series(["b", "a"], index=[7, 7], dtype=dtype, name="id")
    found = build("pandas", {"id": take_native_values(ids, np.array([1, 1, 0])), "y": np.arange(3.0)})
    assert found["id"].tolist() == ["a", "a", "b"]
    assert found["id"].dtype == ids.dtype
    assert found.index.tolist() == [0, 1, 2]
