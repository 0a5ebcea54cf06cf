"""What a rule says when it is broken, and the few ways in which rules look at results."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd

from deepforecast.data.frames import Floats
from deepforecast.errors import DataWarning, DeepForecastError, TrainingWarning, format_list, format_value


class RuleBroken(DeepForecastError, AssertionError):
    """A model does not keep a rule of the contract; names both."""

    def __str__(self) -> str:
        return AssertionError.__str__(self)  # several failures are as many lines


def expect(holds: Any, said: str) -> None:
    """Raise `RuleBroken` with what was found, unless it `holds`."""
    if not bool(holds):
        raise RuleBroken(said)


@contextmanager
def refused(kind: type[Exception], *words: str, when: str = "it was asked for") -> Iterator[None]:
    """The block has to raise `kind`, with every one of `words` in its message."""
    try:
        yield
    except kind as error:
        lacking = [word for word in words if word not in str(error)]
        expect(not lacking, f"the error when {when} does not say {format_list(lacking)}: {format_value(str(error), 300)}")
    else:
        raise RuleBroken(f"no {kind.__name__} when {when}")


@contextmanager
def heard() -> Iterator[list[str]]:
    """Collects what the library says in the block by `DataWarning` or `TrainingWarning`; no other warning may come."""
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield messages
    for one in caught:
        expect(issubclass(one.category, (DataWarning, TrainingWarning)), f"a {one.category.__name__} came: {one.message}")
        messages.append(str(one.message))


def said_once(messages: list[str], *words: str) -> None:
    """Exactly one warning, with every one of `words` in it."""
    expect(len(messages) == 1, f"{len(messages)} warnings in place of one: {format_list(messages)}")
    lacking = [word for word in words if word not in messages[0]]
    expect(not lacking, f"the warning does not say {format_list(lacking)}: {format_value(messages[0], 300)}")


def column(frame: Any, name: str) -> Floats:
    """A column of numbers of a frame of any library."""
    return np.asarray(frame[name].to_numpy(), dtype=np.float64)


def names_of(frame: Any) -> list[str]:
    """The column names of a frame of any library."""
    return list(frame.column_names if hasattr(frame, "column_names") else frame.columns)


def forecasts(frame: Any, name: str) -> dict[str, Floats]:
    """The columns of a model (point, bounds, quantiles) in a forecast frame."""
    return {one: column(frame, one) for one in names_of(frame) if one == name or one.startswith(f"{name}-")}


def expect_same(found: Any, wanted: Any, what: str) -> None:
    """Two forecast frames are equal to the last bit, dtypes and order of rows and columns included."""
    if isinstance(found, pd.DataFrame) and found.reset_index(drop=True).equals(wanted.reset_index(drop=True)):
        return
    ours, theirs = nw.from_native(found, eager_only=True), nw.from_native(wanted, eager_only=True)
    expect(ours.columns == theirs.columns, f"{what}: the columns are {ours.columns} in place of {theirs.columns}")
    expect(len(ours) == len(theirs), f"{what}: {len(ours)} rows in place of {len(theirs)}")
    for name in ours.columns:
        ours_is, theirs_is = str(ours[name].dtype), str(theirs[name].dtype)
        expect(ours_is == theirs_is, f"{what}: column {name} is {ours_is} in place of {theirs_is}")
        if ours[name].dtype.is_float():
            expect_equal(column(found, name), column(wanted, name), f"{what}: column {name}")
        else:
            expect(ours[name].to_list() == theirs[name].to_list(), f"{what}: column {name} differs")


def expect_equal(found: Floats, wanted: Floats, what: str) -> None:
    """Two arrays are equal to the last bit."""
    expect(found.shape == wanted.shape, f"{what} has the shape {found.shape} in place of {wanted.shape}")
    different = np.flatnonzero(~((found == wanted) | (np.isnan(found) & np.isnan(wanted))))
    if len(different):
        one = int(different[0])
        rule = f"{what} differs in {len(different)} of {found.size} numbers"
        raise RuleBroken(f"{rule}, first {found.flat[one]!r} in place of {wanted.flat[one]!r} (row {one})")


def expect_close(found: Floats, wanted: Floats, tolerance: float, what: str) -> None:
    """Two arrays are equal but for `tolerance`, an absolute number."""
    expect(found.shape == wanted.shape, f"{what} has the shape {found.shape} in place of {wanted.shape}")
    away = np.abs(found - wanted)
    if not np.all(away <= tolerance):
        one = int(np.argmax(np.where(np.isnan(away), np.inf, away)))
        rule = f"{what} is off by {away.flat[one]:.3g}, more than {tolerance:.3g}"
        raise RuleBroken(f"{rule}: {found.flat[one]!r} in place of {wanted.flat[one]!r} (row {one})")


def expect_finite(frame: Any, name: str, what: str) -> None:
    """Every number of a model in a forecast frame is finite."""
    for one, values in forecasts(frame, name).items():
        expect(np.isfinite(values).all(), f"{what}: {one} is not finite in {int((~np.isfinite(values)).sum())} rows")
