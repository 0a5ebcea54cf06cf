"""What does not matter in a frame: order of rows and columns, its index, columns nobody declared, the dtype of y."""

from __future__ import annotations

import numpy as np
import pandas as pd

from deepforecast.testing import worlds
from deepforecast.testing.check import rule
from deepforecast.testing.expect import expect, expect_same, heard, said_once
from deepforecast.testing.subject import Subject


@rule()
def row_order_does_not_matter(subject: Subject) -> None:
    """Rows shuffled or sorted by time give the same forecast."""
    frame, wanted = worlds.daily(), subject.fitted().predict(level=subject.levels)
    shuffled = frame.iloc[np.random.default_rng(0).permutation(len(frame))]
    for what, rows in (("shuffled", shuffled), ("by time", frame.sort_values(["ds", "unique_id"]))):
        expect_same(subject.forecast(rows, level=subject.levels), wanted, f"the forecast of rows {what}")


@rule()
def index_and_column_order_do_not_matter(subject: Subject) -> None:
    """Whatever index the frame has, and in whatever order its columns stand, the forecast is the same."""
    frame, wanted = worlds.one(), subject.alone().predict()
    named = frame.set_index(pd.Index(np.zeros(len(frame)), name="ds"))
    pairs = frame.set_index(pd.MultiIndex.from_arrays([frame["y"], frame["ds"]], names=["y", "ds"]))
    for what, given in (
        ("an index called ds", named),
        ("a MultiIndex", pairs),
        ("columns reversed", frame[["y", "ds", "unique_id"]]),
    ):
        expect_same(subject.forecast(given), wanted, f"the forecast of a frame with {what}")


@rule()
def undeclared_columns_are_left_out(subject: Subject) -> None:
    """Columns that nobody declared change nothing and are named once."""
    frame, wanted = worlds.one(), subject.alone().predict()
    extra = frame.assign(note="x", shoesize=np.linspace(0, 1e6, len(frame)))
    for columns in (None, {"target": "y"}):
        with heard() as messages:
            found = subject.forecast(extra, columns=columns)
        said_once(messages, "note", "shoesize")
        expect_same(found, wanted, f"the forecast beside undeclared columns with columns={columns}")


@rule()
def dtype_of_y_does_not_matter(subject: Subject) -> None:
    """The same numbers as float32, as integers, or in a nullable dtype give the same forecast."""
    frame = worlds.one()
    whole = worlds.with_y(frame, np.round(frame["y"]))
    for given, dtypes in ((frame, ("float32", "Float64")), (whole, ("int64",))):
        wanted = subject.forecast(given, level=subject.levels)
        for dtype in dtypes:
            found = subject.forecast(given.assign(y=given["y"].astype(dtype)), level=subject.levels)
            expect(found[subject.fitted().name].dtype == np.float64, f"the forecast of y as {dtype} is not float64")
            expect_same(found, wanted, f"the forecast of y as {dtype}")
