"""Conversion of ids and categories to plain arrays for model files, and back to the original dtype.

Integers are stored as int64, text as UTF-8 bytes and offsets, categories as codes and labels (text
or integers). Inconsistent arrays raise `DataError`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from deepforecast.data import frames
from deepforecast.errors import DataError, DependencyError, format_value

TEXT, INTEGER, CATEGORY = "text", "integer", "category"
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
ARROW_TEXTS = ("string", "large_string", "string_view")
DICTIONARY = re.compile(r"dictionary<values=(\w+), indices=(u?int\d+), ordered=([01])>")
Arrays = Mapping[str, np.ndarray]


def to_arrays(ids: nw.Series[Any]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The description (kind, dtype) and the arrays of a column of ids."""
    native = ids.to_native()
    dtype = _dtype_name(native)
    if ids.dtype in (nw.Categorical, nw.Enum):
        labels, codes = frames.read_categories(ids)
        kind, arrays = _encode_values(labels)
        is_pandas = dtype == "category"
        description = {"kind": kind, "dtype": _dtype_name(native.cat.categories) if is_pandas else ""}
        ordered = bool(is_pandas and native.cat.ordered)
        return {"kind": CATEGORY, "dtype": dtype, "ordered": ordered, "labels": description}, {**arrays, "codes": codes}
    if ids.dtype.is_integer():
        return {"kind": INTEGER, "dtype": dtype}, {"values": np.asarray(ids.to_numpy()).astype(np.int64)}
    kind, arrays = _encode_values(ids.to_arrow().to_pylist() if dtype.endswith("[pyarrow]") else ids.to_list())
    return {"kind": kind, "dtype": dtype}, arrays


def from_arrays(description: Mapping[str, Any], arrays: Arrays, library: Any) -> nw.Series[Any]:
    """The ids as a column of `library`, the inverse of `to_arrays`; raises `DataError` if the arrays are inconsistent."""
    if library == "polars":
        try:
            import polars  # noqa: F401
        except ImportError as error:
            message = "The model was fitted on polars frames and cannot be loaded without polars. Run: pip install polars"
            raise DependencyError(message) from error
    if description.get("kind") == CATEGORY:
        native = _read_categories(description, arrays, library)
    else:
        native = _make_column(*_read_values(description, arrays), library)
    return nw.from_native(native, series_only=True)


def encode_texts(values: Iterable[str]) -> dict[str, np.ndarray]:
    """Encode strings as UTF-8 bytes and offsets.

    Examples
    --------
    >>> {name: values.tolist() for name, values in encode_texts(["a", "", "bc"]).items()}
    {'bytes': [97, 98, 99], 'offsets': [0, 1, 1, 3]}
    """
    encoded = [value.encode("utf-8", "surrogatepass") for value in values]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return {"bytes": np.frombuffer(b"".join(encoded), dtype=np.uint8), "offsets": offsets}


def decode_texts(arrays: Arrays) -> list[str]:
    """Decode strings from UTF-8 bytes and offsets, the inverse of `encode_texts`."""
    names = format_value(sorted(arrays))
    _require(set(arrays) == {"bytes", "offsets"}, f"Stored text must have the arrays 'bytes' and 'offsets', got {names}")
    encoded, offsets = arrays["bytes"], arrays["offsets"]
    has_dtypes = encoded.dtype == np.uint8 and offsets.dtype == np.int64
    has_shapes = encoded.ndim == offsets.ndim == 1 and len(offsets) > 0
    is_valid = has_dtypes and has_shapes and offsets[0] == 0 and offsets[-1] == len(encoded) and not (np.diff(offsets) < 0).any()
    _require(is_valid, "Offsets of stored text must increase from 0 to the number of its bytes")
    content = encoded.tobytes()
    return [content[start:end].decode("utf-8", "surrogatepass") for start, end in pairwise(offsets.tolist())]


def _require(is_valid: Any, rule: str) -> None:
    """Raise `DataError` with the `rule` that stored ids break."""
    if not is_valid:
        raise DataError(f"{rule}.", hint="The file is damaged or from another version.")


def _require_known(dtype: str, is_known: bool) -> None:
    _require(is_known, f"Stored ids must have a supported dtype, got {format_value(dtype)}")


def _encode_values(values: Iterable[Any]) -> tuple[str, dict[str, np.ndarray]]:
    """Kind and arrays of strings or integers."""
    values = list(values)
    if all(isinstance(value, str) for value in values):
        return TEXT, encode_texts(values)
    return INTEGER, {"values": np.array([int(value) for value in values], dtype=np.int64)}


def _read_values(description: Any, arrays: Arrays) -> tuple[Any, str]:
    """The strings (a list) or integers (an array) in these arrays, and their original dtype."""
    is_valid = isinstance(description, Mapping) and set(description) == {"kind", "dtype"}
    is_valid = is_valid and isinstance(description["dtype"], str)
    _require(is_valid, f"Stored ids and categories must have a kind and a dtype, got {format_value(description)}")
    kind, dtype = description["kind"], description["dtype"]
    if kind == TEXT:
        return decode_texts(arrays), dtype
    values = arrays.get("values", np.empty(0))
    _require(
        kind == INTEGER and set(arrays) == {"values"} and values.dtype == np.int64 and values.ndim == 1,
        "Stored integers must be one array 'values' of dtype int64, got arrays "
        f"{format_value(sorted(arrays))} of kind {format_value(kind)}",
    )
    return values, dtype


def _dtype_name(native: Any) -> str:
    """The dtype as text from which it can be restored; for pandas strings with their storage."""
    dtype: Any = getattr(native, "dtype", None)
    if type(dtype).__name__ == "StringDtype":
        return f"{'pandas-str' if str(dtype) == 'str' else 'pandas-string'}[{dtype.storage}]"
    name = str(dtype if dtype is not None else native.type)
    return name.partition("(")[0]


def _make_column(values: Any, dtype: str, library: Any) -> Any:
    """Strings or integers as a column of `library` with their original dtype."""
    arrow_dtype = dtype.removesuffix("[pyarrow]")
    if library == "pandas" and (dtype == "object" or dtype.startswith("pandas-")):
        import pandas as pd

        return pd.Series(values, dtype=object if dtype == "object" else _pandas_text(dtype))
    if isinstance(values, np.ndarray):
        _require_known(dtype, arrow_dtype.lower() in INTEGERS)
        cast = values.astype(arrow_dtype.lower())  # uint64 above 2^63 are stored as negative int64
        _require((cast.astype(np.int64) == values).all(), f"Stored ids must fit their dtype, but some exceed {dtype}")
        column = nw.new_series("id", cast, backend=library).to_native()
        return column.astype(dtype) if library == "pandas" else column
    if library == "polars":
        _require_known(dtype, dtype == "String")
        return nw.new_series("id", values, nw.String(), backend=library).to_native()
    import pyarrow as pa

    _require_known(dtype, arrow_dtype in ARROW_TEXTS)
    return _arrow_column(pa.array(values, type=getattr(pa, arrow_dtype)()), library)


def _read_categories(description: Mapping[str, Any], arrays: Arrays, library: Any) -> Any:
    """A categorical column of `library`, from the codes of the rows and the labels of the categories."""
    has_keys = set(description) == {"kind", "dtype", "ordered", "labels"}
    _require(has_keys, f"Stored categories must have a dtype, ordered and labels, got {format_value(dict(description))}")
    dtype, codes = str(description["dtype"]), arrays.get("codes", np.empty(0))
    label_arrays = {name: values for name, values in arrays.items() if name != "codes"}
    labels, label_dtype = _read_values(description["labels"], label_arrays)
    is_index = codes.dtype == np.int64 and codes.ndim == 1 and ((codes >= 0) & (codes < len(labels))).all()
    _require(is_index, "Codes of stored ids must be indices of their categories, but at least one is not")
    if library == "polars":
        _require_known(dtype, dtype in ("Categorical", "Enum"))
        categorical = nw.Enum(labels) if dtype == "Enum" else nw.Categorical()
        return nw.new_series("id", [labels[code] for code in codes], categorical, backend=library).to_native()
    if library == "pandas" and dtype == "category":
        import pandas as pd

        categories = pd.Index(_make_column(labels, label_dtype, library)).rename(None)
        return pd.Series(pd.Categorical.from_codes(codes, categories=categories, ordered=description["ordered"] is True))
    import pyarrow as pa

    match = DICTIONARY.fullmatch(dtype.removesuffix("[pyarrow]"))
    inner, indices, ordered = match.groups() if match is not None else ("", "", "")
    _require_known(dtype, inner in (*INTEGERS, *ARROW_TEXTS) and indices in INTEGERS)
    code_array, label_array = pa.array(codes, type=getattr(pa, indices)()), pa.array(labels, type=getattr(pa, inner)())
    return _arrow_column(pa.DictionaryArray.from_arrays(code_array, label_array, ordered=ordered == "1"), library)


def _arrow_column(array: Any, library: str) -> Any:
    """An arrow array as a column of pyarrow, or of pandas with an arrow dtype."""
    import pandas as pd
    import pyarrow as pa

    return pa.chunked_array([array]) if library == "pyarrow" else pd.Series(pd.array(array, dtype=pd.ArrowDtype(array.type)))


def _pandas_text(dtype: str) -> Any:
    """The string dtype, or None (the default of this pandas version) if it does not exist here."""
    import pandas as pd

    name, _, storage = dtype.removesuffix("]").partition("[")
    is_known = name in ("pandas-str", "pandas-string") and storage in ("python", "pyarrow", "pyarrow_numpy")
    _require_known(dtype, is_known)
    try:
        return pd.StringDtype(storage) if name == "pandas-string" else pd.StringDtype(storage, na_value=np.nan)
    except (TypeError, ValueError, ImportError):
        return None
