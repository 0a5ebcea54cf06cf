"""Ids as plain arrays for a file, and back in the dtype they came in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from deepforecast.data.frames import Ints
from deepforecast.errors import DataError, shown

TEXT, INTEGER, CATEGORY = "text", "integer", "category"
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
PANDAS_TEXT = ("object", "str", "string[python]", "string[pyarrow]")
ARROW_TEXT = ("string", "large_string", "string_view")
ORDERED = "ordered"


def stored(ids: nw.Series[Any]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What the ids are (kind, dtype) and arrays that hold them: integers as they are, text as UTF-8 bytes and offsets."""
    dtype = _dtype(ids.to_native())
    if ids.dtype.is_integer():
        return {"kind": INTEGER, "dtype": dtype}, {"values": np.asarray(ids.to_numpy()).astype(np.int64)}
    values = ids.to_list()
    if ids.dtype == nw.Object and values and not isinstance(values[0], str):
        return {"kind": INTEGER, "dtype": dtype}, {"values": np.array(values, dtype=np.int64)}
    if ids.dtype in (nw.Categorical, nw.Enum):
        names = [str(name) for name in ids.cat.get_categories().to_list()] if all(isinstance(v, str) for v in values) else None
        if names is not None:
            place = {name: number for number, name in enumerate(names)}
            codes = np.array([place[value] for value in values], dtype=np.int64)
            return {"kind": CATEGORY, "dtype": dtype}, {"codes": codes, **_bytes(names)}
        return {"kind": INTEGER, "dtype": "category"}, {"values": np.array(values, dtype=np.int64)}
    return {"kind": TEXT, "dtype": dtype}, _bytes(values)


def _dtype(native: Any) -> str:
    """The dtype by a name that leads back to it, also where the library's own does not."""
    dtype = getattr(native, "dtype", None)
    arrow = getattr(dtype, "pyarrow_dtype", None)
    if arrow is not None and str(arrow) in ARROW_TEXT:
        return f"arrow {arrow}"  # pandas says string[pyarrow] of this and of another dtype
    if str(dtype) == "string":
        return f"string[{dtype.storage}]"  # type: ignore[union-attr]
    if getattr(dtype, "ordered", False):
        return f"category {ORDERED}"
    return str(native.type) if dtype is None else str(dtype).partition("(")[0]


def unstored(said: Mapping[str, Any], arrays: Mapping[str, np.ndarray], library: str) -> nw.Series[Any]:
    """The ids as a column of `library`; whatever does not fit is a `DataError`."""
    if set(said) != {"kind", "dtype"}:
        raise DataError(f"Stored ids have a kind and a dtype; found {shown(dict(said))}.")
    kind, dtype = said["kind"], str(said["dtype"])
    if kind == INTEGER:
        _expect(arrays, ("values",))
        return _column(arrays["values"], dtype, library, INTEGER, None)
    if kind == TEXT:
        _expect(arrays, ("bytes", "offsets"))
        return _column(_texts(arrays), dtype, library, TEXT, None)
    if kind == CATEGORY:
        _expect(arrays, ("codes", "bytes", "offsets"))
        names = _texts(arrays)
        codes = arrays["codes"]
        if codes.dtype != np.int64 or (len(codes) and not (codes.min() >= 0 and codes.max() < len(names))):
            raise DataError("Stored ids: a code points to no category.")
        return _column([names[code] for code in codes], dtype, library, CATEGORY, names)
    raise DataError(f"Stored ids are text, integers or categories; found {shown(kind)}.")


def _column(values: Any, dtype: str, library: str, kind: str, names: list[str] | None) -> nw.Series[Any]:
    if library == "pandas":
        return _pandas(values, dtype, kind, names)
    if library == "polars":
        import polars as pl

        kinds = {CATEGORY: pl.Enum(names) if dtype == "Enum" and names is not None else pl.Categorical, TEXT: pl.String}
        wanted = kinds.get(kind) or getattr(pl, dtype if dtype.lower() in INTEGERS else "Int64")
        return nw.from_native(pl.Series("id", list(values), dtype=wanted), series_only=True)
    import pyarrow as pa

    if kind == INTEGER:
        array = pa.array(values, type=pa.type_for_alias(dtype if dtype in INTEGERS else "int64"))
    else:
        texts = pa.type_for_alias(next((one for one in ARROW_TEXT[1:] if one in dtype), ARROW_TEXT[0]))
        array = pa.array(list(values), type=texts)
        if kind == CATEGORY:
            indices = re.search(r"indices=(u?int\d+)", dtype)
            width = indices[1] if indices is not None and indices[1] in INTEGERS else "int32"
            array = array.cast(pa.dictionary(pa.type_for_alias(width), texts, ordered="ordered=1" in dtype))
    return nw.from_native(pa.chunked_array([array]), series_only=True)


def _pandas(values: Any, dtype: str, kind: str, names: list[str] | None) -> nw.Series[Any]:
    import pandas as pd

    if kind == CATEGORY:
        series: Any = pd.Series(pd.Categorical(values, categories=names, ordered=ORDERED in dtype))
    elif kind == INTEGER:
        known = dtype.lower().removesuffix("[pyarrow]") in INTEGERS or dtype in ("object", "category")
        series = pd.Series(np.asarray(values))
        series = series.astype(dtype if known else "int64")
    else:
        series = pd.Series(list(values), dtype=_text_dtype(dtype, pd))
    return nw.from_native(series, series_only=True)


def _text_dtype(dtype: str, pd: Any) -> Any:
    """The dtype named, where this pandas has it; what this pandas calls text otherwise."""
    if dtype.removeprefix("arrow ") in ARROW_TEXT:
        import pyarrow as pa

        return pd.ArrowDtype(pa.type_for_alias(dtype.removeprefix("arrow ")))
    if dtype not in PANDAS_TEXT:
        return None
    return None if dtype == "str" and int(pd.__version__.partition(".")[0]) < 3 else dtype


def _bytes(values: list[str]) -> dict[str, np.ndarray]:
    encoded = [value.encode("utf-8", "surrogatepass") for value in values]
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in encoded], dtype=np.int64)]).astype(np.int64)
    return {"bytes": np.frombuffer(b"".join(encoded), dtype=np.uint8), "offsets": offsets}


def _texts(arrays: Mapping[str, np.ndarray]) -> list[str]:
    data, offsets = arrays["bytes"], arrays["offsets"]
    sound = data.dtype == np.uint8 and offsets.dtype == np.int64 and data.ndim == offsets.ndim == 1 and len(offsets) > 0
    if not sound or offsets[0] != 0 or offsets[-1] != len(data) or (np.diff(offsets) < 0).any():
        raise DataError("Stored ids: the offsets do not fit the text.")
    raw: bytes = data.tobytes()
    bounds: Ints = offsets
    return [raw[a:b].decode("utf-8", "surrogatepass") for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)]


def _expect(arrays: Mapping[str, np.ndarray], names: tuple[str, ...]) -> None:
    if set(arrays) != set(names):
        raise DataError(f"Stored ids have the arrays {', '.join(names)}; found {shown(sorted(arrays))}.")
