"""Reliability of values: ragged panels, missing values, dtypes of the target."""

from __future__ import annotations

import decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast.data.panel import Panel
from deepforecast.testing.assertions import collect_warnings
from deepforecast.testing.subject import Subject
from tests.bad_input import ALL, KINDS, forecast, k7, made, refused, sn
from tests.frames import LIBRARIES, D, converted, joined, same


@ALL
def test_series_of_different_ends(subject: Subject) -> None:
    found = forecast(made(subject), joined(D("A"), D("B", 51)))
    assert found.ds[found.unique_id == "A"].tolist() == pd.date_range("2024-03-01", periods=5).tolist()
    assert found.ds[found.unique_id == "B"].tolist() == pd.date_range("2024-02-21", periods=5).tolist()


@ALL
def test_series_of_different_lengths(subject: Subject) -> None:
    short = D("B").assign(y=D().y + 40)
    found = forecast(made(subject), joined(D("A", 400), short))
    assert len(found) == 10
    if made(subject).capabilities.local:
        same(found[found.unique_id == "B"].reset_index(drop=True), forecast(made(subject), short))


@KINDS
@pytest.mark.parametrize("library", LIBRARIES)
def test_series_of_missing_values_only(subject: Subject, library: str) -> None:
    frame = joined(D("A").assign(y=np.nan), D("B"))
    refused(made(subject), converted(frame, library), "y", "series A")
    refused(made(subject).set_params(missing="zero"), converted(frame, library), "y", "series A")


@ALL
@pytest.mark.parametrize("row", [0, 30, 59])
def test_missing_value(subject: Subject, row: int) -> None:
    frame = D()
    frame.loc[row, "y"] = np.nan
    k7(subject, frame, 5, "y", "A", str(frame.ds[row].date()))
    model = made(subject).set_params(missing="ffill")
    assert forecast(model, frame).ds.tolist() == pd.date_range("2024-03-01", periods=5).tolist()


@KINDS
@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("library", LIBRARIES)
def test_infinite_value(subject: Subject, value: float, library: str) -> None:
    frame = D()
    frame.loc[7, "y"] = value
    refused(made(subject), converted(frame, library), "y", "A", "2024-01-08")


@KINDS
def test_pandas_na(subject: Subject) -> None:
    frame = D()
    frame.loc[20, "y"] = np.nan
    nullable = frame.assign(y=frame.y.astype("Float64"))
    assert nullable.y[20] is pd.NA
    with collect_warnings():
        same(
            forecast(made(subject).set_params(missing="ffill"), nullable),
            forecast(made(subject).set_params(missing="ffill"), frame),
        )
    k7(subject, nullable, 5, "y", "A", "2024-01-21")


TEXTS = [["1.5"] * 60, ["1,5"] * 60, np.arange(60.0).astype(object), [None] * 60]


@pytest.mark.parametrize("y", TEXTS, ids=["text", "comma", "objects", "None"])
def test_target_that_is_not_numeric(y: Any) -> None:
    refused(sn(), D().assign(y=y), "y", "dtype")


@pytest.mark.parametrize("column", ["y", "x"])
def test_decimal_objects_are_numbers(column: str) -> None:
    frame = D().assign(x=np.arange(60.0) % 3)
    frame.loc[5, column] = np.nan
    values = [None if np.isnan(value) else decimal.Decimal(str(value)) for value in frame[column]]
    decimals = Panel.from_frame(frame.assign(**{column: values}), columns={"past": "x"})
    numbers = Panel.from_frame(frame, columns={"past": "x"})
    np.testing.assert_array_equal(decimals.y, numbers.y)
    np.testing.assert_array_equal(decimals.covariates["x"].values, numbers.covariates["x"].values)


def test_target_that_is_not_numeric_in_other_libraries() -> None:
    import polars as pl
    import pyarrow as pa

    table = converted(D().drop(columns="y"), "pyarrow")
    for values in (
        pa.array(["1.5"] * 60),
        pa.array([None] * 60),
        pa.array([True] * 60),
    ):
        refused(sn(), table.append_column("y", values), "y", "dtype")
        refused(sn(), pl.DataFrame(table.append_column("y", values)), "y", "dtype")


OTHERS = {"bool": True, "complex": 1 + 2j, "timedelta": pd.Timedelta(days=1)}


@pytest.mark.parametrize("name", [*OTHERS, "category"])
def test_target_of_unsupported_dtype(name: str) -> None:
    frame = D().assign(y=OTHERS[name] if name in OTHERS else pd.Categorical(np.arange(60) % 3))
    refused(sn(), frame, "y", "dtype", name)


@KINDS
@pytest.mark.parametrize(
    "dtype", ["int64", "int8", "uint8", "Int64", "float32", "float16", "Float64", "int16[pyarrow]", "double[pyarrow]"]
)
def test_numeric_dtypes(subject: Subject, dtype: str) -> None:
    frame = D().assign(y=np.round(D().y))
    same(forecast(made(subject), frame.astype({"y": dtype})), forecast(made(subject), frame))


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("value", [2**53 + 1, -(2**53) - 1])
def test_integer_not_exact_in_float64(value: int, library: str) -> None:
    y = np.arange(60)
    y[5] = value
    refused(sn(), converted(D().assign(y=y), library), "y", str(value))
