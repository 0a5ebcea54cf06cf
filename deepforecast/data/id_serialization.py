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
from deepforecast.data.frames import Ints
from deepforecast.errors import DataError, DependencyError, format_value

TEXT, INTEGER, CATEGORY = "text", "integer", "category"
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
ARROW_TEXTS = ("string", "large_string", "string_view")
DICTIONARY = re.compile(r"dictionary<values=(\w+), indices=(u?int\d+), ordered=([01])>")
DAMAGED_HINT = "The file is damaged or from another version."
Arrays = Mapping[str, np.ndarray]


def to_arrays(ids: nw.Series[Any]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The description (kind, dtype) and the arrays of a column of ids."""
    native = ids.to_native()
    dtype = _dtype_name(native)
    if ids.dtype in (nw.Categorical, nw.Enum):
        labels, codes = frames.read_categories(ids)
        label_description, arrays = _labels_to_arrays(labels)
        label_description["dtype"] = _dtype_name(native.cat.categories) if dtype == "category" else ""
        arrays["codes"] = codes.astype(np.int64)
        ordered = bool(dtype == "category" and native.cat.ordered)
        return {"kind": CATEGORY, "dtype": dtype, "ordered": ordered, "labels": label_description}, arrays
    if ids.dtype.is_integer():
        return {"kind": INTEGER, "dtype": dtype}, {"values": np.asarray(ids.to_numpy()).astype(np.int64)}
    description, arrays = _labels_to_arrays(ids.to_arrow().to_pylist() if dtype.endswith("[pyarrow]") else ids.to_list())
    return {**description, "dtype": dtype}, arrays


def from_arrays(description: Mapping[str, Any], arrays: Arrays, library: str) -> nw.Series[Any]:
    """The ids as a column of `library`, the inverse of `to_arrays`; raises `DataError` if the arrays are inconsistent."""
    value_kind, dtype = description.get("kind"), description.get("dtype")
    keys = {"kind", "dtype", "ordered", "labels"} if value_kind == CATEGORY else {"kind", "dtype"}
    if value_kind not in (TEXT, INTEGER, CATEGORY) or set(description) != keys or not isinstance(dtype, str):
        raise DataError(f"Stored ids must have a kind and a dtype, got {format_value(dict(description))}.", hint=DAMAGED_HINT)
    make_column = {"pandas": _pandas, "polars": _polars, "pyarrow": _pyarrow}[library]
    if value_kind != CATEGORY:
        return nw.from_native(make_column(_read_values(value_kind, arrays), dtype, value_kind), series_only=True)
    label_description = description["labels"]
    has_keys = isinstance(label_description, Mapping) and set(label_description) == {"kind", "dtype"}
    if not has_keys or not isinstance(label_description["dtype"], str):
        raise DataError(
            f"Stored categories must have a kind and a dtype, got {format_value(label_description)}.", hint=DAMAGED_HINT
        )
    labels = _read_values(label_description["kind"], {name: values for name, values in arrays.items() if name != "codes"})
    codes = arrays.get("codes", np.empty(0))
    if codes.dtype != np.int64 or codes.ndim != 1 or ((codes < 0) | (codes >= len(labels))).any():
        raise DataError("Codes of stored ids must be indices of their categories, but at least one is not.", hint=DAMAGED_HINT)
    if library == "pandas" and dtype == "category":
        categories = _pandas(labels, label_description["dtype"], label_description["kind"])
        return nw.from_native(_pandas_category(codes, categories, description["ordered"] is True), series_only=True)
    return nw.from_native(make_column([labels[code] for code in codes], dtype, CATEGORY, labels), series_only=True)


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
    if set(arrays) != {"bytes", "offsets"}:
        raise DataError(
            f"Stored text must have the arrays 'bytes' and 'offsets', got {format_value(sorted(arrays))}.",
            hint=DAMAGED_HINT,
        )
    encoded, offsets = arrays["bytes"], arrays["offsets"]
    has_dtypes = encoded.dtype == np.uint8 and offsets.dtype == np.int64
    is_valid = has_dtypes and encoded.ndim == offsets.ndim == 1 and len(offsets) > 0
    if not is_valid or offsets[0] != 0 or offsets[-1] != len(encoded) or (np.diff(offsets) < 0).any():
        raise DataError("Offsets of stored text must increase from 0 to the number of its bytes.", hint=DAMAGED_HINT)
    content = encoded.tobytes()
    return [content[start:end].decode("utf-8", "surrogatepass") for start, end in pairwise(offsets.tolist())]


def _labels_to_arrays(values: Iterable[Any]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    values = list(values)
    if all(isinstance(value, str) for value in values):
        return {"kind": TEXT}, encode_texts(values)
    return {"kind": INTEGER}, {"values": np.array([int(value) for value in values], dtype=np.int64)}


def _read_values(value_kind: Any, arrays: Arrays) -> Any:
    """The strings (a list) or integers (an array) in these arrays; `DataError` if they do not fit the kind."""
    if value_kind == TEXT:
        return decode_texts(arrays)
    values = arrays.get("values", np.empty(0))
    if value_kind != INTEGER or set(arrays) != {"values"} or values.dtype != np.int64 or values.ndim != 1:
        raise DataError(
            "Stored integers must be one array 'values' of dtype int64, got arrays "
            f"{format_value(sorted(arrays))} of kind {format_value(value_kind)}.",
            hint=DAMAGED_HINT,
        )
    return values


def _dtype_name(native: Any) -> str:
    """The dtype as text from which it can be restored; for pandas strings with their storage."""
    dtype: Any = getattr(native, "dtype", None)
    if type(dtype).__name__ == "StringDtype":
        return f"{'pandas-str' if str(dtype) == 'str' else 'pandas-string'}[{dtype.storage}]"
    name = str(dtype if dtype is not None else native.type)
    return name.partition("(")[0]


def _pandas(values: Any, dtype: str, value_kind: str, labels: Any = None) -> Any:
    """Values as a pandas series of the original dtype; `labels` are the categories of an arrow dictionary."""
    import pandas as pd

    if value_kind == INTEGER:
        if dtype == "object":
            return pd.Series([int(value) for value in values], dtype=object)
        integers: Any = pd.Series(_integers(values, dtype.removesuffix("[pyarrow]")))
        return integers.astype(dtype)
    if dtype.endswith("[pyarrow]") and not dtype.startswith("pandas-"):
        import pyarrow as pa

        arrow = _pyarrow(values, dtype.removesuffix("[pyarrow]"), value_kind, labels)
        arrow_values = arrow if value_kind == TEXT else pa.chunked_array(arrow)
        return pd.Series(pd.array(arrow_values, dtype=pd.ArrowDtype(arrow.type)))
    return pd.Series(list(values), dtype=_pandas_text(dtype))


def _pandas_text(dtype: str) -> Any:
    """The string dtype, or None (the default of this pandas version) if it does not exist here."""
    import pandas as pd

    name, _, storage = dtype.removesuffix("]").partition("[")
    is_known = name in ("pandas-str", "pandas-string") and storage in ("python", "pyarrow", "pyarrow_numpy")
    _refuse_unknown(dtype, dtype == "object" or is_known)
    if dtype == "object":
        return object
    try:
        return pd.StringDtype(storage) if name == "pandas-string" else pd.StringDtype(storage, na_value=np.nan)
    except (TypeError, ValueError, ImportError):
        return None


def _pandas_category(codes: Ints, categories: Any, ordered: bool) -> Any:
    import pandas as pd

    return pd.Series(pd.Categorical.from_codes(codes, categories=pd.Index(categories), ordered=ordered))


def _polars(values: Any, dtype: str, value_kind: str, labels: Any = None) -> Any:
    """Values as a polars series of the original dtype; `labels` are the categories of an Enum."""
    try:
        import polars as pl
    except ImportError as error:
        message = "The model was fitted on polars frames and cannot be loaded without polars. Run: pip install polars"
        raise DependencyError(message) from error

    if value_kind == INTEGER:
        return pl.Series("id", _integers(values, dtype))
    _refuse_unknown(dtype, dtype in (("String",) if value_kind == TEXT else ("Categorical", "Enum")))
    return pl.Series("id", list(values), dtype=pl.Enum(labels) if dtype == "Enum" else getattr(pl, dtype))


def _pyarrow(values: Any, dtype: str, value_kind: str, labels: Any = None) -> Any:
    """Values as a chunked array of the original type; `labels` are the categories of a dictionary type."""
    import pyarrow as pa

    if value_kind == INTEGER:
        return pa.chunked_array([pa.array(_integers(values, dtype))])
    if value_kind == TEXT:
        _refuse_unknown(dtype, dtype in ARROW_TEXTS)
        return pa.chunked_array([pa.array(list(values), type=getattr(pa, dtype)())])
    match = DICTIONARY.fullmatch(dtype)
    inner, indices, ordered = match.groups() if match is not None else ("", "", "")
    _refuse_unknown(dtype, inner in (*INTEGERS, *ARROW_TEXTS) and indices in INTEGERS)
    kind_of_labels = getattr(pa, inner)()
    code_by_label = {label: number for number, label in enumerate(labels)}
    codes = pa.array([code_by_label[value] for value in values], type=getattr(pa, indices)())
    array = pa.DictionaryArray.from_arrays(codes, pa.array(list(labels), type=kind_of_labels), ordered=ordered == "1")
    return pa.chunked_array([array])


def _refuse_unknown(dtype: str, is_known: bool) -> None:
    if not is_known:
        raise DataError(f"Stored ids must have a supported dtype, got {format_value(dtype)}.", hint=DAMAGED_HINT)


def _integers(values: Ints, dtype: str) -> Any:
    """The integers in their original dtype; uint64 above 2^63 are stored as negative int64."""
    _refuse_unknown(dtype, dtype.lower() in INTEGERS)
    cast = values.astype(dtype.lower())
    if not (cast.astype(np.int64) == values).all():
        raise DataError(f"Stored ids must fit their dtype, but some exceed {dtype}.", hint=DAMAGED_HINT)
    return cast
