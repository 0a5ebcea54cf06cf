from __future__ import annotations

import decimal
from pathlib import Path
from typing import Any

import narwhals
import narwhals.stable.v1
import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from deepforecast import Naive
from deepforecast.data.frames import (
    build,
    library_name,
    make_categorical,
    materialize,
    read_categories,
    read_numbers,
    read_table,
    take_native_rows,
    take_native_values,
    take_rows,
    to_list,
    to_narwhals,
)
from deepforecast.errors import DataError
from tests.frames import LIBRARIES, D, P, Stream, converted, follow_hint, plain


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
    "thing",
    [
        None,
        3,
        "frame.csv",
        [1],
        {"a": [1]},
        np.zeros(3),
        pl.Series([1]),
        pa.chunked_array([[1]]),
        D,
        pl.DataFrame,
        np.ndarray,
        np.array(3),
    ],
)
def test_anything_else_is_refused(thing: Any) -> None:
    said = r"The future frame must be a pandas, polars or pyarrow DataFrame.*got .*(Read|Pass)"
    with pytest.raises(DataError, match=said):
        to_narwhals(thing, "future frame")


ROWS = [("A", stamp, value) for stamp, value in zip(D().ds, D().y, strict=True)]


class DaskTable:
    """A frame of Dask."""

    def compute(self) -> pd.DataFrame:
        return D()


class XarrayDataset:
    """A dataset of xarray, whose coordinates become the index."""

    def to_dataframe(self) -> pd.DataFrame:
        return D().set_index("ds")


class SparkTable:
    """A frame of Spark."""

    def toPandas(self) -> pd.DataFrame:
        return D()


NOT_FRAMES = {
    "list": list(D().y),
    "array": D().y.to_numpy(),
    "polars series": pl.Series(D().y),
    "arrow column": pa.chunked_array([D().y]),
    "2-d array": P(3, 20).y.to_numpy().reshape(20, 3),
    "rows of numbers": P(3, 20).y.to_numpy().reshape(20, 3).tolist(),
    "rows": ROWS,
    "rows of one series": [row[1:] for row in ROWS],
    "array of objects": np.array(ROWS, dtype=object),
    "records": D().to_dict("records"),
    "dict": D().to_dict("list"),
    "generator": (row for row in D().to_dict("records")),
    "None": None,
    "number": 7,
    "series of values": D().y,
    "arrow array": pa.array(D().y),
    "arrow batches": converted(D(), "pyarrow").to_batches(),
    "series by text": D().y.set_axis(D().ds.astype(str)),
    "series by period": D().y.set_axis(pd.PeriodIndex(D().ds, freq="D")),
    "series by id and time": D().set_index(["unique_id", "ds"]).y,
    "xarray": XarrayDataset(),
    "dask": DaskTable(),
    "spark": SparkTable(),
}


@pytest.mark.parametrize("thing", NOT_FRAMES.values(), ids=NOT_FRAMES)
def test_the_advice_for_what_is_not_a_frame_works(thing: Any) -> None:
    with pytest.raises(DataError) as caught:
        Naive(horizon=1).fit(thing)
    Naive(horizon=1).fit(follow_hint(caught.value, thing))


@pytest.mark.parametrize("thing", [[1], [("A", 1.0)], D().y.to_numpy()], ids=["numbers", "rows", "array"])
def test_dates_are_not_asked_of_a_static_frame(thing: Any) -> None:
    with pytest.raises(DataError, match=r"Pass a DataFrame\.$"):
        to_narwhals(thing, "static frame")


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("wrapper", [narwhals, narwhals.stable.v1, nw], ids=["main", "v1", "v2"])
def test_a_frame_of_narwhals_gives_a_forecast_of_its_library(wrapper: Any, library: str) -> None:
    frame = converted(D(), library)
    forecasts = Naive(horizon=1).fit(wrapper.from_native(frame)).predict()
    assert type(forecasts) is type(frame)


def test_the_error_for_a_consumed_stream_says_that_it_is_read_only_once() -> None:
    table = converted(D(), "pyarrow")
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    Naive(horizon=1).fit(reader)
    with pytest.raises(DataError, match=r"cannot be empty.*a stream can be read only once"):
        Naive(horizon=1).fit(reader)


@pytest.mark.parametrize("as_type", [str, Path])
def test_the_advice_for_a_path_works(as_type: Any, tmp_path: Path) -> None:
    path = as_type(tmp_path / "sales.csv")
    D().to_csv(path, index=False)
    with pytest.raises(DataError, match=r"Read the file: pass pandas\.read_csv\(frame\) or pandas\.read_parquet\(frame\)\."):
        Naive(horizon=1).fit(path)
    Naive(horizon=1).fit(pd.read_csv(path))


def test_arrow_streams_and_lazy_frames_are_read() -> None:
    table = converted(D(), "pyarrow")
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=7))
    for stream in (Stream(D()), reader, table.to_batches()[0]):
        assert to_narwhals(stream).to_native().equals(table)
    assert read_table(Stream(D())).library == "pyarrow"
    lazy = converted(D(), "polars").lazy()
    for frame in (lazy, nw.from_native(lazy)):
        assert to_narwhals(frame).to_native().equals(converted(D(), "polars"))


def test_frames_in_memory_are_not_read_as_streams() -> None:
    for library in LIBRARIES:
        frame = converted(D(), library)
        assert materialize(frame) is frame


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


DECIMALS = pa.array([decimal.Decimal("1.5"), None, decimal.Decimal(3)])


@pytest.mark.parametrize(
    "native", [pa.chunked_array([DECIMALS]), pl.Series(DECIMALS), pd.Series(pd.arrays.ArrowExtensionArray(DECIMALS))]
)
def test_decimals(native: Any) -> None:
    np.testing.assert_array_equal(read_numbers(wrapped(native), "y"), [1.5, np.nan, 3.0])


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
        pd.Series([1]).astype("category"),
        pd.Series(pd.to_timedelta([1])),
        pd.Series(pd.date_range("2024", periods=1)),
        pd.Series(pd.arrays.SparseArray([1.0])),
        pl.Series([True]),
        pl.Series(["1"]),
        pl.Series([[1.0]]),
        pa.chunked_array([[None]]),
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
    assert wrapped(column).dtype in (nw.Categorical, nw.Enum)
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


TIMES = pd.date_range("2024-01-01", periods=3, freq="h")
FLOATS = np.arange(3.0)
ARRAYS = {
    "text_and_floats": {"id": pd.Series(["a"] * 3).array, "ds": TIMES.values, "y": FLOATS, "z": FLOATS[::-1]},
    "integers": {"id": pd.Series([1, 2, 3]).array, "ds": np.arange(3), "y": FLOATS.astype(np.float32)},
    "extension": {"id": pd.array([1, 2, None], dtype="Int64"), "ds": TIMES.tz_localize("Europe/Berlin").array, "y": FLOATS},
    "categories": {"id": pd.Categorical(["a", "b", "a"]), "y": FLOATS},
    "objects": {"id": np.array(["a", "b", "c"], dtype=object), "y": FLOATS},
    "booleans": {"flag": FLOATS > 1, "y": FLOATS},
    "no_rows": {"ds": TIMES.values[:0], "y": FLOATS[:0]},
    "no_columns": {},
    "numbered": {0: FLOATS, "y": FLOATS},
}


@pytest.mark.parametrize("name", ARRAYS)
def test_a_pandas_frame_is_that_of_its_constructor(name: str) -> None:
    frame, expected = build("pandas", ARRAYS[name]), pd.DataFrame(ARRAYS[name])
    pd.testing.assert_frame_equal(frame, expected, check_index_type="exact", check_column_type="exact")
    pd.testing.assert_frame_equal(frame.assign(new=1), expected.assign(new=1))
    for position, values in enumerate(ARRAYS[name].values()):
        assert not np.shares_memory(frame.iloc[:, position].to_numpy(), np.asarray(values)), position


def test_pandas_columns_of_unequal_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="length"):
        build("pandas", {"id": pd.Series(["a", "b"]).array, "ds": np.arange(3)})


@pytest.mark.parametrize("dtype", ["str", "object", "string", "string[python]", "category", "Int64", "int64"])
def test_rows_of_a_pandas_column_keep_dtype_and_name(dtype: str) -> None:
    column = pd.Series([2, 3, 2], name="shop", index=[7, 8, 9]).astype(str if dtype not in ("Int64", "int64") else dtype).astype(dtype)
    rows = take_native_rows(column, np.array([1, 0]))
    pd.testing.assert_series_equal(rows.reset_index(drop=True), column.iloc[[1, 0]].reset_index(drop=True))
    assert to_list(column) == list(column)


def test_missing_text_stays_missing_in_lists() -> None:
    for dtype in ("string", "str"):
        column = pd.Series(["a", None], dtype=dtype)
        assert to_list(column)[1] is column.tolist()[1]


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
