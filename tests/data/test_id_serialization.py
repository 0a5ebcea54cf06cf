from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepforecast.data.id_serialization import decode_texts, encode_texts, from_arrays, to_arrays
from deepforecast.errors import DataError

TEXTS = ["a", "b", "日本"]
PANDAS = {
    **{f"integers {dtype}": pd.Series([1, 5, 100], dtype=dtype) for dtype in ("int8", "int64", "Int64", "UInt16", "object")},
    "integers arrow": pd.Series([1, 5, 100], dtype="int32[pyarrow]"),
    "integers beyond int64": pd.Series([1, 2**64 - 1], dtype="uint64"),
    **{f"text {dtype}": pd.Series(TEXTS, dtype=dtype) for dtype in ("object", "str", "string[python]", "string[pyarrow]")},
    "text arrow": pd.Series(TEXTS, dtype=pd.ArrowDtype(pa.string())),
    "text arrow large": pd.Series(TEXTS, dtype=pd.ArrowDtype(pa.large_string())),
    "category": pd.Series(TEXTS).astype("category"),
    "category of objects": pd.Series(TEXTS, dtype=object).astype("category"),
    "category ordered, unused ones": pd.Series(pd.Categorical(["a", "c"], ["c", "b", "a"], ordered=True)),
    "category of integers": pd.Series([3, 1, 2], dtype="int32").astype("category"),
    "category arrow": pd.Series(pd.array(["a", "b"], dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string())))),
}
POLARS = {
    **{f"integers {dtype}": pl.Series("id", [1, 5, 100], dtype=dtype) for dtype in (pl.Int8, pl.Int64, pl.UInt32, pl.UInt64)},
    "text": pl.Series("id", TEXTS),
    "category": pl.Series("id", TEXTS, dtype=pl.Categorical),
    "enum": pl.Series("id", ["a", "c"], dtype=pl.Enum(["c", "b", "a"])),
}
PYARROW = {
    **{f"integers {kind}": pa.array([1, 5, 100], kind) for kind in (pa.int8(), pa.int64(), pa.uint64())},
    **{f"text {kind}": pa.array(TEXTS, kind) for kind in (pa.string(), pa.large_string(), pa.string_view())},
    "dictionary": pa.array(TEXTS).dictionary_encode(),
    "dictionary small": pa.array(TEXTS).cast(pa.dictionary(pa.int8(), pa.large_string())),
    "dictionary of integers": pa.array([3, 1]).dictionary_encode(),
}
CASES = (
    [pytest.param("pandas", one, id=f"pandas {name}") for name, one in PANDAS.items()]
    + [pytest.param("polars", one, id=f"polars {name}") for name, one in POLARS.items()]
    + [pytest.param("pyarrow", pa.chunked_array([one]), id=f"pyarrow {name}") for name, one in PYARROW.items()]
)


@pytest.mark.parametrize(("library", "native"), CASES)
def test_ids_come_back_in_the_dtype_they_had(library: str, native: Any) -> None:
    said, arrays = to_arrays(nw.from_native(native, series_only=True))
    found = from_arrays(said, arrays, library).to_native()
    assert type(found) is type(native)
    if library == "pandas":
        pd.testing.assert_series_equal(found, native, check_names=False)
    elif library == "polars":
        assert found.dtype == native.dtype
        assert found.to_list() == native.to_list()
    else:
        assert found.type == native.type
        assert found.to_pylist() == native.to_pylist()


ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=5)  # lone surrogates and control characters too


@given(st.lists(ANY_TEXT, max_size=9))
def test_any_text_survives(values: list[str]) -> None:
    assert decode_texts(encode_texts(values)) == values
    ids = nw.from_native(pd.Series(values, dtype=object), series_only=True)
    if values:
        said, arrays = to_arrays(ids)
        assert from_arrays(said, arrays, "pandas").to_list() == values


GOOD = encode_texts(["ab", "c"])
INTEGERS = {"values": np.array([1, 2])}
CATEGORY = {"kind": "category", "dtype": "category", "ordered": False, "labels": {"kind": "text", "dtype": "object"}}
CODES = {"codes": np.array([1, 0]), **GOOD}


@pytest.mark.parametrize(
    ("said", "arrays"),
    [
        ({}, GOOD),
        ({"kind": "text"}, GOOD),
        ({"kind": "text", "dtype": None}, GOOD),
        ({"kind": "text", "dtype": "object", "__class__": "x"}, GOOD),
        ({"kind": "pickle", "dtype": "object"}, GOOD),
        ({"kind": ["text"], "dtype": "object"}, GOOD),
        ({"kind": "text", "dtype": "S999999999"}, GOOD),
        ({"kind": "text", "dtype": "os.system"}, GOOD),
        ({"kind": "text", "dtype": "object"}, INTEGERS),
        ({"kind": "text", "dtype": "object"}, {**GOOD, "more": np.zeros(1)}),
        ({"kind": "text", "dtype": "object"}, {**GOOD, "offsets": np.array([0, 3, 2, 3])}),
        ({"kind": "text", "dtype": "object"}, {**GOOD, "offsets": np.array([1, 3])}),
        ({"kind": "text", "dtype": "object"}, {**GOOD, "offsets": np.array([0, 9])}),
        ({"kind": "text", "dtype": "object"}, {**GOOD, "offsets": np.array([0.0, 3.0])}),
        ({"kind": "text", "dtype": "object"}, {**GOOD, "offsets": np.array([], dtype=np.int64)}),
        ({"kind": "text", "dtype": "object"}, {**GOOD, "offsets": np.array([[0, 3]])}),
        ({"kind": "text", "dtype": "object"}, {**GOOD, "bytes": np.array([97, 98, 99])}),
        ({"kind": "text", "dtype": "object"}, {"bytes": np.array([255], dtype=np.uint8), "offsets": np.array([0, 1])}),
        ({"kind": "integer", "dtype": "int8"}, {"values": np.array([1, 300])}),
        ({"kind": "integer", "dtype": "uint8"}, {"values": np.array([1, -1])}),
        ({"kind": "integer", "dtype": "float64"}, INTEGERS),
        ({"kind": "integer", "dtype": "category"}, INTEGERS),
        ({"kind": "integer", "dtype": "int64"}, {"values": np.array([1.5])}),
        ({"kind": "integer", "dtype": "int64"}, {"values": np.array([[1]])}),
        ({"kind": "integer", "dtype": "int64"}, GOOD),
        ({**CATEGORY, "labels": None}, CODES),
        ({**CATEGORY, "labels": {"kind": "category", "dtype": "object"}}, CODES),
        ({**CATEGORY, "labels": {"kind": "text", "dtype": 3}}, CODES),
        ({**CATEGORY, "dtype": "dictionary<values=binary, indices=int8, ordered=0>[pyarrow]"}, CODES),
        (CATEGORY, GOOD),
        (CATEGORY, {**CODES, "codes": np.array([0, 2])}),
        (CATEGORY, {**CODES, "codes": np.array([0, -1])}),
        (CATEGORY, {**CODES, "codes": np.array([0.0, 1.0])}),
    ],
)
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_what_does_not_fit_is_refused(said: dict[str, Any], arrays: dict[str, np.ndarray], library: str) -> None:
    with pytest.raises((DataError, UnicodeDecodeError)):
        from_arrays(said, arrays, library)
