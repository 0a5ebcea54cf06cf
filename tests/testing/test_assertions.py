from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from deepforecast.errors import DataWarning
from deepforecast.testing import assertions as looking
from deepforecast.testing.assertions import RuleBroken

FRAME = pd.DataFrame({"unique_id": ["a", "b"], "M": [1.0, 2.0], "M-lo-80": [0.5, np.nan], "Mean": [0.0, 0.0]})


def test_expect() -> None:
    looking.expect(np.bool_(True), "x")
    with pytest.raises(RuleBroken, match=r"^three$"):
        looking.expect(np.bool_(False), "three")


def test_refused() -> None:
    with looking.expect_error(ValueError, "y", "2"):
        raise ValueError("y is 2")
    with (
        pytest.raises(RuleBroken, match="ValueError must be raised when asked"),
        looking.expect_error(ValueError, when="asked"),
    ):
        pass
    with pytest.raises(RuleBroken, match="must mention time, got y is 2"), looking.expect_error(ValueError, "y", "time"):
        raise ValueError("y is 2")
    with pytest.raises(KeyError), looking.expect_error(ValueError):
        raise KeyError("z")


def test_heard() -> None:
    with looking.collect_warnings() as messages:
        warnings.warn("y of s1", DataWarning, stacklevel=1)
        warnings.warn("y of s1", DataWarning, stacklevel=1)
    assert messages == ["y of s1", "y of s1"]
    with pytest.raises(RuleBroken, match="exactly one warning, got 2"):
        looking.expect_one_warning(messages)
    looking.expect_one_warning(messages[:1], "y", "s1")
    with pytest.raises(RuleBroken, match="must mention s2"):
        looking.expect_one_warning(messages[:1], "s2")
    with pytest.raises(RuleBroken, match="a FutureWarning must not be issued"), looking.collect_warnings():
        warnings.warn("soon", FutureWarning, stacklevel=1)


@pytest.mark.parametrize(
    "frame", [FRAME, pl.from_pandas(FRAME), pa.Table.from_pandas(FRAME)], ids=["pandas", "polars", "pyarrow"]
)
def test_columns_of_any_library(frame: object) -> None:
    assert looking.column_names(frame) == ["unique_id", "M", "M-lo-80", "Mean"]
    np.testing.assert_array_equal(looking.column(frame, "M"), [1.0, 2.0])
    assert list(looking.model_columns(frame, "M")) == ["M", "M-lo-80"]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (FRAME.rename(columns={"M": "N"}), "the columns must be"),
        (FRAME.iloc[:1], "must be 1 rows, got 2"),
        (FRAME.assign(M=[1, 2]), "column M must be Int64, got Float64"),
        (
            FRAME.assign(M=[1.0, np.nextafter(2.0, 3)]),
            r"it \(column M\): 1 of 2 values differ, the first is 2\.0 instead of 2\.0000000000000004",
        ),
        (FRAME.assign(unique_id=["a", "c"]), r"it \(column unique_id\): the first different value is b instead of c \(row 1\)"),
        (FRAME.assign(**{"M-lo-80": [np.nan, np.nan]}), r"it \(column M-lo-80\): 1 of 2 values differ"),
    ],
)
def test_expect_same(other: pd.DataFrame, said: str) -> None:
    looking.expect_same(FRAME, FRAME.copy(), "it")
    looking.expect_same(FRAME.set_index(pd.Index([5, 6])), FRAME, "it")
    with pytest.raises(RuleBroken, match=said):
        looking.expect_same(FRAME, other, "it")


def test_expect_close_and_equal() -> None:
    one, other = np.array([1.0, 2.0]), np.array([1.0, 2.5])
    looking.expect_close(one, other, 0.5, "it")
    with pytest.raises(RuleBroken, match=r"it: the largest difference is 0\.5, above the tolerance 0\.4; 2\.0 instead of 2\.5"):
        looking.expect_close(one, other, 0.4, "it")
    with pytest.raises(RuleBroken, match="the largest difference is nan"):
        looking.expect_close(np.array([np.nan, 1.0]), one, 10.0, "it")
    for check in (looking.expect_equal, lambda a, b, what: looking.expect_close(a, b, 1.0, what)):
        with pytest.raises(RuleBroken, match="shape"):
            check(one, one[:1], "it")


def test_expect_finite() -> None:
    looking.expect_finite(FRAME, "Mean", "it")
    with pytest.raises(
        RuleBroken, match=r"it must be finite: column M-lo-80 is NaN or infinite in 1 of 2 rows, the first is nan \(row 1\)"
    ):
        looking.expect_finite(FRAME, "M", "it")
