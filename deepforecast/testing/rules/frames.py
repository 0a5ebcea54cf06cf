"""Properties of a frame that do not affect the forecast: order, index, undeclared columns, the dtype of y."""

from __future__ import annotations

import numpy as np
import pandas as pd

from deepforecast.testing import fixtures
from deepforecast.testing.assertions import collect_warnings, expect, expect_one_warning, expect_same
from deepforecast.testing.check import rule
from deepforecast.testing.subject import Subject


@rule(shared=True)
def row_order_does_not_matter(subject: Subject) -> None:
    """The order of the rows does not change the forecast."""
    frame = fixtures.daily_panel()
    expected = subject.fitted().predict(level=subject.levels)
    shuffled = frame.iloc[np.random.default_rng(0).permutation(len(frame))]
    for label, rows in (("shuffled rows", shuffled), ("rows sorted by time", frame.sort_values(["ds", "unique_id"]))):
        expect_same(subject.forecast(rows, level=subject.levels), expected, f"{label} must give the same forecast")


@rule(shared=True)
def index_and_column_order_do_not_matter(subject: Subject) -> None:
    """The index and the order of the columns do not change the forecast."""
    frame = fixtures.one_series()
    expected = subject.fitted_on_series().predict()
    with_named_index = frame.set_index(pd.Index(np.zeros(len(frame)), name="ds"))
    with_multi_index = frame.set_index(pd.MultiIndex.from_arrays([frame["y"], frame["ds"]], names=["y", "ds"]))
    for label, variant in (
        ("an index named ds", with_named_index),
        ("a MultiIndex", with_multi_index),
        ("reversed columns", frame[["y", "ds", "unique_id"]]),
    ):
        expect_same(subject.forecast(variant), expected, f"a frame with {label} must give the same forecast")


@rule(shared=True)
def undeclared_columns_are_left_out(subject: Subject) -> None:
    """Undeclared columns are ignored and listed in one warning."""
    frame = fixtures.one_series()
    expected = subject.fitted_on_series().predict()
    extra = frame.assign(note="x", shoesize=np.linspace(0, 1e6, len(frame)))
    for columns in (None, {"target": "y"}):
        with collect_warnings() as messages:
            forecast = subject.forecast(extra, columns=columns)
        expect_one_warning(messages, "note", "shoesize")
        expect_same(forecast, expected, f"undeclared columns must not change the forecast (columns={columns})")


@rule(shared=True)
def dtype_of_y_does_not_matter(subject: Subject) -> None:
    """The same values as float32, integers or nullable dtypes give the same forecast."""
    frame = fixtures.one_series()
    rounded = fixtures.replace_target(frame, np.round(frame["y"]))
    for source, dtypes in ((frame, ("float32", "Float64")), (rounded, ("int64",))):
        expected = subject.forecast(source, level=subject.levels)
        for dtype in dtypes:
            forecast = subject.forecast(source.assign(y=source["y"].astype(dtype)), level=subject.levels)
            forecast_dtype = forecast[subject.fitted().name].dtype
            expect(forecast_dtype == np.float64, f"the forecast of y as {dtype} must be float64, got {forecast_dtype}")
            expect_same(forecast, expected, f"y as {dtype} must give the same forecast as {source['y'].dtype}")
