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


def expect(holds: Any, message: str) -> None:
    """Raise `RuleBroken` with what was found, unless it `holds`."""
    if not bool(holds):
        raise RuleBroken(message)


@contextmanager
def expect_error(error_class: type[Exception], *words: str, when: str = "it was asked for") -> Iterator[None]:
    """The block has to raise `error_class`, with every one of `words` in its message."""
    try:
        yield
    except error_class as error:
        missing_words = [word for word in words if word not in str(error)]
        expect(not missing_words, f"the error when {when} does not say {format_list(missing_words)}: {format_value(str(error), 300)}")
    else:
        raise RuleBroken(f"no {error_class.__name__} when {when}")


@contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """Collects what the library says in the block by `DataWarning` or `TrainingWarning`; no other warning may come."""
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always")
        yield messages
    for warning in recorded:
        expect(issubclass(warning.category, (DataWarning, TrainingWarning)), f"a {warning.category.__name__} came: {warning.message}")
        messages.append(str(warning.message))


def expect_one_warning(messages: list[str], *words: str) -> None:
    """Exactly one warning, with every one of `words` in it."""
    expect(len(messages) == 1, f"{len(messages)} warnings in place of one: {format_list(messages)}")
    missing_words = [word for word in words if word not in messages[0]]
    expect(not missing_words, f"the warning does not say {format_list(missing_words)}: {format_value(messages[0], 300)}")


def column(frame: Any, name: str) -> Floats:
    """A column of numbers of a frame of any library."""
    return np.asarray(frame[name].to_numpy(), dtype=np.float64)


def column_names(frame: Any) -> list[str]:
    """The column names of a frame of any library."""
    return list(frame.column_names if hasattr(frame, "column_names") else frame.columns)


def model_columns(frame: Any, name: str) -> dict[str, Floats]:
    """The columns of a model (point, bounds, quantiles) in a forecast frame."""
    return {column_name: column(frame, column_name) for column_name in column_names(frame) if column_name == name or column_name.startswith(f"{name}-")}


def expect_same(actual: Any, expected: Any, label: str) -> None:
    """Two forecast frames are equal to the last bit, dtypes and order of rows and columns included."""
    if isinstance(actual, pd.DataFrame) and actual.reset_index(drop=True).equals(expected.reset_index(drop=True)):
        return
    actual_table, expected_table = nw.from_native(actual, eager_only=True), nw.from_native(expected, eager_only=True)
    expect(actual_table.columns == expected_table.columns, f"{label}: the columns are {actual_table.columns} in place of {expected_table.columns}")
    expect(len(actual_table) == len(expected_table), f"{label}: {len(actual_table)} rows in place of {len(expected_table)}")
    for name in actual_table.columns:
        actual_dtype, expected_dtype = str(actual_table[name].dtype), str(expected_table[name].dtype)
        expect(actual_dtype == expected_dtype, f"{label}: column {name} is {actual_dtype} in place of {expected_dtype}")
        if actual_table[name].dtype.is_float():
            expect_equal(column(actual, name), column(expected, name), f"{label}: column {name}")
        else:
            expect(actual_table[name].to_list() == expected_table[name].to_list(), f"{label}: column {name} differs")


def expect_equal(actual: Floats, expected: Floats, label: str) -> None:
    """Two arrays are equal to the last bit."""
    expect(actual.shape == expected.shape, f"{label} has the shape {actual.shape} in place of {expected.shape}")
    different = np.flatnonzero(~((actual == expected) | (np.isnan(actual) & np.isnan(expected))))
    if len(different):
        index = int(different[0])
        message = f"{label} differs in {len(different)} of {actual.size} numbers"
        raise RuleBroken(f"{message}, first {actual.flat[index]!r} in place of {expected.flat[index]!r} (row {index})")


def expect_close(actual: Floats, expected: Floats, tolerance: float, label: str) -> None:
    """Two arrays are equal but for `tolerance`, an absolute number."""
    expect(actual.shape == expected.shape, f"{label} has the shape {actual.shape} in place of {expected.shape}")
    difference = np.abs(actual - expected)
    if not np.all(difference <= tolerance):
        index = int(np.argmax(np.where(np.isnan(difference), np.inf, difference)))
        message = f"{label} is off by {difference.flat[index]:.3g}, more than {tolerance:.3g}"
        raise RuleBroken(f"{message}: {actual.flat[index]!r} in place of {expected.flat[index]!r} (row {index})")


def expect_finite(frame: Any, name: str, label: str) -> None:
    """Every number of a model in a forecast frame is finite."""
    for column_name, values in model_columns(frame, name).items():
        expect(np.isfinite(values).all(), f"{label}: {column_name} is not finite in {int((~np.isfinite(values)).sum())} rows")
