"""Bounds of integers in model files, on which loops, allocations and indices depend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deepforecast.core.state import LearnedState
from deepforecast.data.frames import Ints
from deepforecast.errors import format_value

MAX_GAP = 1_000_000  # missing values at the end of a series; as large as the maximum horizon
MAX_SIMULATED_GAP = 100_000  # the same for models that simulate them
MAX_TOTAL_GAPS, MAX_MEAN_GAP = 10_000_000, 1_000  # total over all series: a constant plus an average per series


class InvalidManifest(Exception):
    """A value cannot be stored in a file, or a value in a file is invalid."""


def check_integers(learned: LearnedState, name: str, minimum: Any, maximum: Any) -> Ints:
    """A learned array of integers, shape (series,) or (series, columns); raises `InvalidManifest` if one is out of range.

    `minimum` and `maximum` are scalars or have one element per column.
    """
    values = learned.by_series.get(name)
    column_shape = np.broadcast(minimum, maximum).shape
    if values is None or values.dtype != np.int64 or values.shape[1:] != column_shape:
        n_columns = column_shape[0] if column_shape else "one"
        raise InvalidManifest(f"the learned {name!r} must be {n_columns} int64 for each series")
    outside = (values < minimum) | (values > maximum)
    if outside.any():
        raise InvalidManifest(f"the learned {name!r} must be between {minimum} and {maximum}, got {values[outside][0]:,}")
    return np.asarray(values)


def check_floats(learned: LearnedState, names: Sequence[str], shape: tuple[int, ...], finite: bool = False) -> None:
    """Raise `InvalidManifest` unless these arrays are float64 of shape (series, *shape)."""
    for name in names:
        values = learned.by_series.get(name)
        if values is None or values.dtype != np.float64 or values.shape[1:] != shape:
            raise InvalidManifest(f"the learned {name!r} must be float64 of shape {shape} for each series")
        if finite and not np.isfinite(values).all():
            raise InvalidManifest(f"the learned {name!r} must be finite")


def check_vectors(learned: LearnedState, names: Sequence[str]) -> None:
    """Raise `InvalidManifest` unless those of these arrays that the model has are one number for each series."""
    for name in names:
        values = learned.by_series.get(name)
        if values is not None and (values.ndim != 1 or values.dtype not in (np.float64, np.int64, np.bool_)):
            raise InvalidManifest(f"the learned {name!r} must be one number for each series")


def check_gaps(learned: LearnedState, max_gap: int = MAX_GAP) -> None:
    """Raise `InvalidManifest` if "age", the number of missing values at the end of each series, is too large."""
    gaps = check_integers(learned, "age", 0, max_gap)
    maximum = MAX_TOTAL_GAPS + MAX_MEAN_GAP * len(gaps)
    if gaps.sum() > maximum:
        raise InvalidManifest(f"the series must end with at most {maximum:,} missing values together, got {gaps.sum():,}")


def check_integer(value: Any, name: str, minimum: int, maximum: int) -> int:
    """Return an integer; raise `InvalidManifest` if it is not an integer or out of range."""
    if not isinstance(value, int) or isinstance(value, bool) or not minimum <= value <= maximum:
        raise InvalidManifest(f"{name} must be an integer between {minimum:,} and {maximum:,}, got {format_value(value)}")
    return value
