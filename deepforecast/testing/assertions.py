"""Assertions of the contract rules, with messages on what was found."""

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
    """A violation of a contract rule by a model; the message names both."""

    def __str__(self) -> str:
        return AssertionError.__str__(self)  # keeps line breaks between several failures


def expect(holds: Any, message: str) -> None:
    """Raise `RuleBroken` with `message` unless `holds` is true."""
    if not bool(holds):
        raise RuleBroken(message)


@contextmanager
def expect_error(error_class: type[Exception], *words: str, when: str = "called") -> Iterator[None]:
    """Expect the block to raise `error_class` with all `words` in its message."""
    try:
        yield
    except error_class as error:
        missing_words = [word for word in words if word not in str(error)]
        expect(
            not missing_words,
            f"the error when {when} must mention {format_list(missing_words)}, got {format_value(str(error), 300)}",
        )
    else:
        raise RuleBroken(f"{error_class.__name__} must be raised when {when}; no error was raised")


@contextmanager
def collect_warnings(
    reported: type[Warning] | tuple[type[Warning], ...] = (DataWarning, TrainingWarning),
) -> Iterator[list[str]]:
    """Collect the messages of warnings in the block; others than `DataWarning` and `TrainingWarning` are violations."""
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always")
        yield messages
    for warning in recorded:
        expect(
            issubclass(warning.category, (DataWarning, TrainingWarning)),
            f"a {warning.category.__name__} must not be issued: {warning.message}",
        )
        if issubclass(warning.category, reported):
            messages.append(str(warning.message))


def expect_one_warning(messages: list[str], *words: str) -> None:
    """Expect exactly one warning that contains all `words`."""
    expect(len(messages) == 1, f"there must be exactly one warning, got {len(messages)}: {format_list(messages)}")
    missing_words = [word for word in words if word not in messages[0]]
    expect(not missing_words, f"the warning must mention {format_list(missing_words)}, got {format_value(messages[0], 300)}")


def column(frame: Any, name: str) -> Floats:
    """Return a numeric column of a frame of any library."""
    return np.asarray(frame[name].to_numpy(), dtype=np.float64)


def column_names(frame: Any) -> list[str]:
    """Return the column names of a frame of any library."""
    return list(frame.column_names if hasattr(frame, "column_names") else frame.columns)


def model_columns(frame: Any, name: str) -> dict[str, Floats]:
    """Return the columns of a model (point forecast, bounds, quantiles) in a forecast frame."""
    return {
        column_name: column(frame, column_name)
        for column_name in column_names(frame)
        if column_name == name or column_name.startswith(f"{name}-")
    }


def expect_same(actual: Any, expected: Any, requirement: str) -> None:
    """Expect two forecast frames to be identical, including dtypes and the order of rows and columns.

    The message is `requirement` ("the forecast must ...") followed by the first difference.
    """
    if isinstance(actual, pd.DataFrame) and actual.reset_index(drop=True).equals(expected.reset_index(drop=True)):
        return
    actual_table = nw.from_native(actual, eager_only=True)
    expected_table = nw.from_native(expected, eager_only=True)
    expect(
        actual_table.columns == expected_table.columns,
        f"{requirement}: the columns must be {expected_table.columns}, got {actual_table.columns}",
    )
    expect(
        len(actual_table) == len(expected_table),
        f"{requirement}: there must be {len(expected_table)} rows, got {len(actual_table)}",
    )
    for name in actual_table.columns:
        actual_dtype = str(actual_table[name].dtype)
        expected_dtype = str(expected_table[name].dtype)
        expect(actual_dtype == expected_dtype, f"{requirement}: column {name} must be {expected_dtype}, got {actual_dtype}")
        if actual_table[name].dtype.is_float():
            expect_equal(column(actual, name), column(expected, name), f"{requirement} (column {name})")
        else:
            _expect_same_keys(actual_table[name].to_list(), expected_table[name].to_list(), f"{requirement} (column {name})")


def _expect_same_keys(actual: list[Any], expected: list[Any], requirement: str) -> None:
    if actual != expected:
        row = next(row for row, key in enumerate(actual) if key != expected[row])
        raise RuleBroken(f"{requirement}: the first different value is {actual[row]} instead of {expected[row]} (row {row})")


def expect_equal(actual: Floats, expected: Floats, requirement: str) -> None:
    """Expect two arrays to be identical; the message is `requirement` followed by the first difference."""
    _expect_same_shape(actual, expected, requirement)
    different = np.flatnonzero(~((actual == expected) | (np.isnan(actual) & np.isnan(expected))))
    if len(different):
        index = int(different[0])
        raise RuleBroken(
            f"{requirement}: {len(different)} of {actual.size} values differ, the first is "
            f"{float(actual.flat[index])!r} instead of {float(expected.flat[index])!r} (row {index})"
        )


def expect_close(actual: Floats, expected: Floats, tolerance: float, requirement: str) -> None:
    """Expect two arrays to be equal up to an absolute `tolerance`.

    The message is `requirement` followed by the largest difference.
    """
    _expect_same_shape(actual, expected, requirement)
    difference = np.abs(actual - expected)
    if not np.all(difference <= tolerance):
        index = int(np.argmax(np.where(np.isnan(difference), np.inf, difference)))
        raise RuleBroken(
            f"{requirement}: the largest difference is {difference.flat[index]:.3g}, above the tolerance {tolerance:.3g}; "
            f"{float(actual.flat[index])!r} instead of {float(expected.flat[index])!r} (row {index})"
        )


def _expect_same_shape(actual: Floats, expected: Floats, requirement: str) -> None:
    expect(actual.shape == expected.shape, f"{requirement}: the shape must be {expected.shape}, got {actual.shape}")


def expect_finite(frame: Any, name: str, label: str) -> None:
    """Expect all values of a model in a forecast frame to be finite; `label` describes the frame."""
    for column_name, values in model_columns(frame, name).items():
        is_finite = np.isfinite(values)
        if not is_finite.all():
            row = int(np.flatnonzero(~is_finite)[0])
            raise RuleBroken(
                f"{label} must be finite: column {column_name} is NaN or infinite in {int((~is_finite).sum())} of "
                f"{len(values)} rows, the first is {values[row]} (row {row})"
            )
