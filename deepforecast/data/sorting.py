"""Assignment of rows to series, and the permutation that sorts a frame by (id, time)."""

from __future__ import annotations

from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from deepforecast.data import frames
from deepforecast.data.frames import Ints, to_array, to_narwhals_series
from deepforecast.errors import DataError, format_value, pluralize

# integers whose range is at most this multiple of their number are sorted by counting rather than comparing
MAX_SPARSITY = 2
MAX_KEY = 2**62  # sums of two smaller keys do not overflow int64
SINGLE_RUN = np.zeros(1, np.int64)  # start and rank of a single run
CHUNK_ROWS = 1_000_000  # rows processed at once to limit the size of copies


class Runs(NamedTuple):
    """Runs of equal ids in consecutive rows: the first row of each and the rank of its id among `count` sorted ids."""

    starts: Ints
    rank: Ints
    count: int  # type: ignore[assignment]

    def layout(self, timestamps: Ints) -> tuple[Ints | None, Ints]:
        """The permutation that sorts rows by id and time (None if sorted), and series bounds."""
        if len(self.starts) == 1:
            is_sorted = (timestamps[1:] >= timestamps[:-1]).all()
            return None if is_sorted else np.argsort(timestamps, kind="stable"), np.array([0, len(timestamps)])
        lengths: Any = np.diff(np.append(self.starts, self.starts.dtype.type(len(timestamps))))
        indptr = np.append(0, np.cumsum(np.bincount(self.rank, weights=lengths, minlength=self.count))).astype(np.int64)
        ascending = timestamps[1:] >= timestamps[:-1]
        ascending[self.starts[1:] - 1] = True
        if len(self.starts) > self.count or not ascending.all():
            return _sort_order(self.rank, lengths, self.count, timestamps), indptr
        if (self.rank[1:] > self.rank[:-1]).all():
            return None, indptr
        block = np.argsort(self.rank)
        return np.arange(len(timestamps)) + np.repeat(self.starts[block] - indptr[:-1], lengths[block]), indptr


def find_runs(column: Any, name: str) -> Runs:
    """The runs of an id column; missing ids and ids of mixed types raise `DataError`."""
    import pyarrow.compute as pc

    values, labels = to_array(column), None
    if values is None or (isinstance(values, np.ndarray) and values.dtype.kind not in "iu"):
        values, labels = _comparable_ids(to_narwhals_series(column), name)
    elif not isinstance(values, np.ndarray) and values.null_count:
        raise _missing_ids_error(to_narwhals_series(column), name)
    in_arrow = not isinstance(values, np.ndarray)  # text is compared by arrow, without a copy
    values = values.cast("large_string") if in_arrow and str(values.type) == "string_view" else values
    differs = np.asarray(pc.not_equal(values[1:], values[:-1])) if in_arrow else values[1:] != values[:-1]
    starts: Any = np.flatnonzero(np.append(True, differs))
    # there may be as many runs as rows
    starts = starts.astype(np.int32) if len(differs) < 2**31 - 1 else starts
    run_ids = values.take(starts) if len(starts) <= len(differs) else values
    if in_arrow or (labels is None and values.dtype.kind in "iu"):
        if in_arrow:
            is_sorted: Any = pc.all(pc.less(run_ids[:-1], run_ids[1:])).as_py()
        else:
            is_sorted = (run_ids[1:] > run_ids[:-1]).all()
        if is_sorted:
            return Runs(starts, np.arange(len(starts)), len(starts))
    label_index: Any = ...
    if labels is not None:
        import pandas as pd

        label_index, used = pd.factorize(run_ids)
        run_ids = labels[used]
    try:
        rank, count = _ranks(run_ids)
    except (UnicodeEncodeError, OverflowError):
        # text that is not valid Unicode, integers that fit no dtype
        raise _id_type_error(to_narwhals_series(column), name, run_ids) from None
    return Runs(starts, rank[label_index], count)


def _comparable_ids(series: nw.Series[Any], name: str) -> tuple[Any, NDArray[Any] | None]:
    """Ids as arrow text, integers, objects or category codes, and the labels of the codes (None for the others).

    Missing ids, and ids that are neither all text nor all integers, raise `DataError`.
    """
    if series.null_count():
        raise _missing_ids_error(series, name)
    if series.dtype == nw.String and str(getattr(series.to_native(), "dtype", "")) != "object":
        return series.to_arrow(), None
    dtype, native = series.dtype, series.to_native()
    if dtype.is_integer() and dtype not in (nw.Int128, nw.UInt128):
        return np.asarray(series.to_numpy()), None
    if dtype in (nw.Categorical, nw.Enum):
        labels, codes = frames.read_categories(series)
        if (codes < 0).any():
            raise _missing_ids_error(series, name)
        if _has_one_type(labels):
            return codes, labels
        raise _id_type_error(series, name, labels)
    objects = native.to_numpy() if str(getattr(native, "dtype", "")) == "object" else None
    if objects is None or not _has_one_type(objects):
        raise _id_type_error(series, name, objects)
    return objects, None


def _ranks(labels: Any) -> tuple[Ints, int]:
    """The rank of each label (a numpy or arrow array) among the unique labels, and their number."""
    import pyarrow as pa

    if isinstance(labels, np.ndarray) and labels.dtype.kind not in "iu":
        labels = pa.array(labels)
    if isinstance(labels, np.ndarray) or pa.types.is_integer(labels.type):
        return _integer_ranks(np.asarray(labels))
    # not pandas.factorize: before pandas 3.0, strings that differ only after a NUL are equal to it
    encoded = labels.dictionary_encode()
    encoded = encoded.combine_chunks() if hasattr(encoded, "combine_chunks") else encoded
    names = np.asarray(encoded.dictionary.to_numpy(zero_copy_only=False), dtype=object)
    rank = np.empty(len(names), dtype=np.int64)
    rank[np.argsort(names, kind="stable")] = np.arange(len(names))
    return rank[encoded.indices.to_numpy()], len(names)


def _integer_ranks(numbers: NDArray[Any]) -> tuple[Ints, int]:
    """`_ranks` of integers, by counting if they are dense (see MAX_SPARSITY)."""
    import pandas as pd

    low, high = int(numbers.min()), int(numbers.max())
    if high - low > MAX_SPARSITY * len(numbers):
        rank, unique_numbers = pd.factorize(numbers, sort=True)
        return rank.astype(np.int64, copy=False), len(unique_numbers)
    from_low = numbers - numbers.dtype.type(low) if numbers.dtype == np.uint64 else numbers.astype(np.int64) - low
    occurs = np.zeros(high - low + 1, dtype=bool)
    occurs[from_low] = True
    rank_of_integer = np.cumsum(occurs) - 1
    return rank_of_integer[from_low], int(rank_of_integer[-1]) + 1


def _has_one_type(values: Any) -> bool:
    """Whether all values are strings or all are integers; mixed types cannot be sorted."""
    import pandas as pd

    return pd.api.types.infer_dtype(values, skipna=False) in ("string", "integer", "empty")


def _sort_order(rank: Ints, lengths: Ints, n_ids: int, timestamps: Ints) -> Ints:
    """The permutation that sorts rows by (rank of their run, timestamp), stable for duplicates.

    Both are combined into one integer key, rank * n_steps + step, if it fits into int64; the keys
    are sorted by counting if they are dense.
    """
    low, high = int(timestamps.min()), int(timestamps.max())
    unit = _common_unit(timestamps, low) if high - low < MAX_KEY else 1
    n_steps = (high - low) // unit + 1
    n_keys = n_ids * n_steps
    if n_keys >= MAX_KEY:
        return np.lexsort((timestamps, np.repeat(rank, lengths)))
    key_dtype = np.int32 if n_keys < 2**31 else np.int64
    key = np.repeat(np.multiply(rank, n_steps, dtype=key_dtype, casting="unsafe"), lengths)
    step = timestamps - low
    step //= unit
    key += step.astype(key_dtype, copy=False)
    del step
    if n_keys <= MAX_SPARSITY * len(key):  # counting sort: a slot per key, empty slots are removed
        row_at_key: Any = np.full(n_keys, -1, dtype=np.int32 if len(timestamps) < 2**31 else np.int64)
        row_at_key[key] = np.arange(len(timestamps), dtype=row_at_key.dtype)
        row_at_key = row_at_key[row_at_key >= 0]
        if len(row_at_key) == len(timestamps):  # otherwise keys are duplicated
            del key
            return np.asarray(row_at_key, dtype=np.int64)
    return np.argsort(key, kind="stable")


def _common_unit(timestamps: Ints, low: int) -> int:
    """A common divisor of all timestamps minus the lowest: the greatest one of the first 1000, else 1."""
    unit = int(np.gcd.reduce(timestamps[:1000] - low)) or 1
    chunks = (timestamps[start : start + CHUNK_ROWS] for start in range(0, len(timestamps), CHUNK_ROWS))
    return unit if unit > 1 and not any(((chunk - low) % unit).any() for chunk in chunks) else 1


def _missing_ids_error(series: nw.Series[Any], name: str) -> DataError:
    """The error for rows without an id, with their number and the first one."""
    missing = series.is_null().to_numpy() if series.null_count() else [value is None for value in series.to_list()]
    rows = np.flatnonzero(missing)
    return DataError(
        f"Column {format_value(name)} must have an id in every row, but ids are missing in "
        f"{pluralize(len(rows), 'row')}, first in row {rows[0]}.",
        hint="Fill in the ids or drop these rows.",
    )


def _id_type_error(series: nw.Series[Any], name: str, values: Any) -> DataError:
    """The error for ids of an unsupported type; `values` are some of them, or None."""
    native = series.to_native()
    dtype_text = str(getattr(native, "dtype", None) or getattr(native, "type", ""))
    type_names = (
        "" if values is None else f" with values of type {', '.join(sorted({type(value).__name__ for value in values}))}"
    )
    return DataError(
        f"The id column {format_value(name)} must contain strings, integers, or categories of one of "
        f"these types, got dtype {format_value(dtype_text)}{type_names}.",
        hint="Convert it, e.g. with .astype(str).",
    )
