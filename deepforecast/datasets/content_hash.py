"""A hash of the rows of a frame, independent of dtypes and file formats."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def content_hash(frame: pd.DataFrame) -> str:
    """SHA-256 (hexadecimal) of the columns in order, which identifies names, values and positions.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"unique_id": ["a", "b"], "y": [1.0, 2.0]})
    >>> content_hash(frame) == content_hash(frame.astype({"unique_id": "category", "y": "float32"}))
    True
    >>> content_hash(frame) == content_hash(frame[::-1])
    False
    """
    digest = hashlib.sha256()
    for name in frame.columns:
        digest.update(f"{name}\0{len(frame)}\0".encode())
        for block in _column_bytes(frame[name]):
            digest.update(block)
    return digest.hexdigest()


def _column_bytes(column: pd.Series) -> list[bytes]:
    """A letter for the kind of values and their bytes: of times, integers, floats, or codes and names of text."""
    import numpy as np
    import pandas as pd
    from pandas.api import types

    if types.is_datetime64_any_dtype(column.dtype):
        return [b"t", column.to_numpy().astype("datetime64[ms]").astype("<i8").tobytes()]
    if types.is_bool_dtype(column.dtype) or types.is_integer_dtype(column.dtype):
        return [b"i", column.to_numpy().astype("<i8").tobytes()]
    if types.is_float_dtype(column.dtype):
        values: Any = column.to_numpy().astype("<f8")
        values[np.isnan(values)] = np.nan  # NaNs have different bit patterns
        return [b"f", values.tobytes()]
    codes, names = pd.factorize(column)  # in order of appearance
    return [b"s", "\x1f".join(map(str, names)).encode(), b"\0", codes.astype("<i4").tobytes()]
