"""Which rows belong to which series: runs of equal ids, and the order that sorts a frame by (id, time)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from deepforecast.data.frames import Ints
from deepforecast.errors import DataError, some

UNITS = tuple(n * 1_000_000_000 for n in (86_400, 3_600, 60, 1)) + (86_400_000_000, 86_400_000, 86_400, 3_600, 60, 1000, 1)


@dataclass(frozen=True)
class Runs:
    """Maximal stretches of rows with one id: where each starts and the rank of its id among the `count` sorted ids."""

    starts: Ints
    rank: Ints
    count: int

    def layout(self, raw: Ints) -> tuple[Ints | None, Ints]:
        """The permutation that sorts rows by id and time (None if they are), and the bounds of the series in it."""
        lengths = np.diff(np.append(self.starts, len(raw)))
        indptr = np.concatenate([[0], np.cumsum(np.bincount(self.rank, weights=lengths, minlength=self.count).astype(np.int64))])
        ascending = raw[1:] >= raw[:-1]
        ascending[self.starts[1:] - 1] = True
        if ascending.all() and len(self.starts) == self.count:
            block = np.argsort(self.rank)
            if (block == np.arange(self.count)).all():
                return None, indptr
            return np.arange(len(raw)) + np.repeat(self.starts[block] - indptr[:-1], lengths[block]), indptr
        return _sorting(np.repeat(self.rank, lengths), raw), indptr


def runs_of(series: nw.Series[Any], name: str) -> Runs:
    """The runs of an id column; missing, mixed and unhashable ids are refused."""
    if series.null_count():
        row = int(np.flatnonzero(series.is_null().to_numpy())[0])
        raise DataError(f"Column {name} names the series in every row; it is missing in {series.null_count()} rows, first in row {row}.")
    codes, changes = _changes(series, name)
    starts = np.concatenate([[0], np.flatnonzero(changes) + 1])
    return _ranked(starts, codes(starts))


def _ranked(starts: Ints, keys: Any) -> Runs:
    import pandas as pd

    code, names = pd.factorize(keys, sort=True)
    return Runs(starts, code.astype(np.int64), len(names))


def _changes(series: nw.Series[Any], name: str) -> tuple[Any, Any]:
    """A function that gives the ids of some rows, and where neighbouring rows differ."""
    kind = series.dtype
    if kind.is_integer():
        values = np.asarray(series.to_numpy())
        return values.__getitem__, values[1:] != values[:-1]
    if kind in (nw.Categorical, nw.Enum):
        categories, codes = _categories(series)
        return (lambda rows: categories[codes[rows]]), codes[1:] != codes[:-1]
    if kind == nw.String:
        return _text_changes(series)
    if kind == nw.Object:
        return _object_changes(series, name)
    raise _wrong_ids(name, str(getattr(series.to_native(), "dtype", kind)))


def _text_changes(series: nw.Series[Any]) -> tuple[Any, Any]:
    native = series.to_native()
    if getattr(native, "dtype", None) == object:
        values = native.to_numpy()
        return values.__getitem__, values[1:] != values[:-1]
    import pyarrow.compute as pc

    array = series.to_arrow()
    changes = pc.not_equal(array[1:], array[:-1])
    return (lambda rows: np.asarray(array.take(rows).to_numpy(zero_copy_only=False))), np.asarray(changes)


def _object_changes(series: nw.Series[Any], name: str) -> tuple[Any, Any]:
    import pandas as pd

    values = series.to_native().to_numpy()
    found = pd.api.types.infer_dtype(values, skipna=False)
    if found not in ("string", "integer"):
        raise _wrong_ids(name, f"object holding {found}")
    return values.__getitem__, values[1:] != values[:-1]


def _categories(series: nw.Series[Any]) -> tuple[Any, Ints]:
    native = series.to_native()
    if series.implementation.is_pandas_like() and hasattr(native, "cat"):
        return native.cat.categories.to_numpy(), native.cat.codes.to_numpy()
    array = series.to_arrow()
    array = array.combine_chunks() if hasattr(array, "combine_chunks") else array
    array = array.chunk(0) if hasattr(array, "chunk") else array
    return np.asarray(array.dictionary.to_numpy(zero_copy_only=False)), np.asarray(array.indices.to_numpy())


def _sorting(codes: Ints, raw: Ints) -> Ints:
    """The stable order by (code, raw): one sort of a combined key where it fits into 63 bits, else two."""
    low = int(raw.min())
    shifted = raw - low
    unit = next(u for u in UNITS if not (shifted % u).any())
    span = int(shifted.max()) // unit + 1
    if (int(codes.max()) + 1) * span < 2**62:
        shifted //= unit
        shifted += codes * span
        return np.argsort(shifted)
    return np.lexsort((raw, codes))


def _wrong_ids(name: str, found: str) -> DataError:
    return DataError(f"Column {name} holds text, integers or categories, all of one type; found {some([found])}. Convert it, e.g. .astype(str).")
