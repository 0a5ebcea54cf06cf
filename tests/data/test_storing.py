from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from deepforecast.data.storing import stored, unstored
from deepforecast.errors import DataError

TEXT = ["b", "", "日本", "a\x00b"]
COLUMNS = [
    pd.Series(TEXT),
    pd.Series(TEXT, dtype=object),
    pd.Series(TEXT, dtype="string[python]"),
    pd.Series(TEXT, dtype="string[pyarrow]"),
    pd.Series(TEXT, dtype=pd.ArrowDtype(pa.large_string())),
    pd.Series(TEXT, dtype=pd.ArrowDtype(pa.string())),
    pd.Series(TEXT).astype("category"),
    pd.Series([3, 1]).astype("category"),
    pd.Series(pd.Categorical(["b", "a"], ["z", "b", "a"], ordered=True)),
    *(pd.Series([3, 1], dtype=kind) for kind in ("int8", "uint64", "Int16", "int32[pyarrow]", "object")),
    pd.Series([2**64 - 1], dtype="uint64"),
    pl.Series(TEXT),
    pl.Series(TEXT, dtype=pl.Categorical),
    pl.Series(TEXT, dtype=pl.Enum([*TEXT, "z"])),
    pl.Series([3, 1], dtype=pl.UInt8),
    pa.chunked_array([TEXT]),
    pa.chunked_array([pa.array(TEXT, pa.large_string())]),
    pa.chunked_array([pa.array(TEXT).dictionary_encode()]),
    pa.chunked_array([pa.array(TEXT).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string(), ordered=True))]),
    pa.chunked_array([pa.array([3, 1], pa.int16())]),
    pa.chunked_array([pa.array(TEXT, pa.string_view())]),
]


@pytest.mark.parametrize("native", COLUMNS, ids=lambda one: f"{type(one).__module__} {getattr(one, 'dtype', '') or one.type}")
def test_ids_there_and_back(native: Any) -> None:
    ids = nw.from_native(native, series_only=True)
    said, arrays = stored(ids)
    assert all(array.dtype.kind in "iu" for array in arrays.values())
    back = unstored(said, arrays, ids.implementation.value).to_native()
    if isinstance(native, pd.Series):
        pd.testing.assert_series_equal(back, native, check_names=False)
    else:
        assert (getattr(back, "dtype", None) or back.type) == (getattr(native, "dtype", None) or native.type)
        assert (back.to_list() if isinstance(back, pl.Series) else back.to_pylist()) == nw.from_native(
            native, series_only=True
        ).to_list()


TWO = {"bytes": np.frombuffer(b"ab", dtype=np.uint8), "offsets": np.array([0, 1, 2])}


@pytest.mark.parametrize(
    ("said", "arrays"),
    [
        ({"kind": "text"}, TWO),
        ({"kind": "text", "dtype": "str", "more": 1}, TWO),
        ({"kind": "objects", "dtype": "str"}, TWO),
        ({"kind": "text", "dtype": "str"}, {"bytes": TWO["bytes"]}),
        ({"kind": "text", "dtype": "str"}, {**TWO, "offsets": np.array([0, 3, 2])}),
        ({"kind": "text", "dtype": "str"}, {**TWO, "offsets": np.array([0, 1])}),
        ({"kind": "text", "dtype": "str"}, {**TWO, "offsets": np.array([0.0, 1, 2])}),
        ({"kind": "text", "dtype": "str"}, {**TWO, "offsets": np.array([], dtype=np.int64)}),
        ({"kind": "category", "dtype": "category"}, {**TWO, "codes": np.array([0, 2])}),
        ({"kind": "category", "dtype": "category"}, {**TWO, "codes": np.array([-1])}),
        ({"kind": "integer", "dtype": "int64"}, {"values": np.array([1]), "more": np.array([1])}),
    ],
)
def test_what_does_not_fit_is_refused(said: Any, arrays: Any) -> None:
    with pytest.raises(DataError, match="Stored "):
        unstored(said, arrays, "pandas")
