"""Bounds of the integers of a model file: a loop, an allocation or an index depends on each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deepforecast.core.manifest import Unfit
from deepforecast.core.state import Learned
from deepforecast.data.frames import Ints
from deepforecast.errors import shown

LONGEST_GAP = 1_000_000  # missing values at the end of a series, as many as the longest horizon has steps
LONGEST_STEPPED_GAP = 100_000  # where each of them is a step of every sample path
GAPS_OF_A_FILE, GAPS_OF_A_SERIES = 10_000_000, 1_000  # those of all series together: a constant, and an average on top


def check_integers(learned: Learned, name: str, least: Any, most: Any) -> Ints:
    """The integers of that name, one for each series or a row of them; `Unfit` where one is out of range.

    `least` and `most` are numbers, or one number for each column.
    """
    values = learned.by_series.get(name)
    columns = np.broadcast(least, most).shape
    if values is None or values.dtype != np.int64 or values.shape[1:] != columns:
        raise Unfit(f"{name} must be {columns[0] if columns else 'one'} int64 for each series")
    outside = (values < least) | (values > most)
    if outside.any():
        raise Unfit(f"{name} must be between {least} and {most}, got {values[outside][0]:,}")
    return np.asarray(values)


def check_floats(learned: Learned, names: Sequence[str], shape: tuple[int, ...], finite: bool = False) -> None:
    """`Unfit` where arrays of floats are not of this shape for each series."""
    for name in names:
        values = learned.by_series.get(name)
        if values is None or values.dtype != np.float64 or values.shape[1:] != shape:
            raise Unfit(f"{name} must be float64 of the shape {shape} for each series")
        if finite and not np.isfinite(values).all():
            raise Unfit(f"{name} must be finite")


def check_gaps(learned: Learned, longest: int = LONGEST_GAP) -> None:
    """`Unfit` where `age`, the number of missing values at the end of each series, asks for too much work."""
    age = check_integers(learned, "age", 0, longest)
    most = GAPS_OF_A_FILE + GAPS_OF_A_SERIES * len(age)
    if age.sum() > most:
        raise Unfit(f"its series must end with at most {most:,} missing values together, got {age.sum():,}")


def check_integer(value: Any, name: str, least: int, most: int) -> int:
    """A single integer of a file; `Unfit` where it is none or out of range."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise Unfit(f"{name} must be an integer between {least:,} and {most:,}, got {shown(value)}")
    return value
