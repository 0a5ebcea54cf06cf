"""A fitted model on other histories: `update`, `predict(frame=...)`, and series it does not know."""

from __future__ import annotations

from copy import deepcopy

import numpy as np

from deepforecast.data.frames import Frame
from deepforecast.errors import DataError
from deepforecast.testing import fixtures
from deepforecast.testing.assertions import (
    collect_warnings,
    column,
    column_names,
    expect,
    expect_close,
    expect_error,
    expect_one_warning,
    expect_same,
)
from deepforecast.testing.check import requires, requires_no, rule
from deepforecast.testing.subject import Subject

RECENT = 5  # rows a series
SHIFT = 100.0  # many times the spread of a series


@rule()
def the_training_frame_gives_the_same_forecast(subject: Subject) -> None:
    """`predict(frame=...)` with the training frame equals `predict()`."""
    model = subject.fitted()
    _expect_close_forecasts(
        subject, model.predict(frame=fixtures.daily_panel(), level=subject.levels), model.predict(level=subject.levels)
    )


@rule()
def longer_histories_move_the_state(subject: Subject) -> None:
    """`predict(frame=...)` forecasts from the end of the given series without changing the model."""
    model = subject.fitted_copy(RECENT)
    first = model.predict()
    forecast = model.predict(frame=fixtures.daily_panel())
    ends = fixtures.daily_panel().groupby("unique_id")["ds"].max()
    starts = forecast.groupby("unique_id")["ds"].min()
    expect(((starts - ends).dt.days == 1).all(), "the forecast does not start at the end of the histories given")
    expect_same(model.predict(), first, "the forecast without a frame, after one with a frame")


@rule()
def update_equals_a_longer_history(subject: Subject) -> None:
    """`update`, at once or row by row, equals forecasting from the longer series with the same parameters."""
    recent, fitted = fixtures.split(RECENT)[1], subject.fitted_copy(RECENT)
    expected = fitted.predict(frame=fixtures.daily_panel(), level=subject.levels)
    expect(fitted.update(recent) is fitted, "update does not give the model itself")
    _expect_close_forecasts(subject, fitted.predict(level=subject.levels), expected)
    stepwise = subject.fitted_copy(RECENT)
    for _, rows in recent.groupby("ds"):
        stepwise.update(rows)
    _expect_close_forecasts(subject, stepwise.predict(level=subject.levels), expected)


@rule()
def new_values_move_the_forecast(subject: Subject) -> None:
    """New values in `predict(frame=...)` or `update` change all forecasts or none, as declared."""
    frame, declared = fixtures.random_walks(), subject.capabilities.new_values
    history, recent = fixtures.split(2 * fixtures.SEASON, frame)
    model = subject.make().fit(history)
    shifted_forecast, expected = (
        model.predict(frame=fixtures.replace_target(frame, frame["y"] + SHIFT)),
        model.predict(frame=frame),
    )
    shifted_update, plain_update = (
        deepcopy(model).update(fixtures.replace_target(recent, recent["y"] + SHIFT)),
        deepcopy(model).update(recent),
    )
    for shifted, reference, label in (
        (shifted_forecast, expected, f"predict(frame=...) with all values plus {SHIFT:g}"),
        # time alone moves a forecast with a season: rows of the same stamps tell whether the values were heard
        (shifted_update.predict(), plain_update.predict(), f"update with values plus {SHIFT:g}, not as they are,"),
    ):
        if declared == "ignored":
            expect_same(shifted, reference, f"capabilities.new_values is 'ignored': the forecast after {label}")
        else:
            _expect_changed(shifted, reference, model.name, label)
    if declared == "followed":
        tolerance = subject.shift_precision * float(frame["y"].std())
        label = f"capabilities.new_values is 'followed': the forecast from the values plus {SHIFT:g}, less that,"
        expect_close(column(shifted_forecast, model.name) - SHIFT, column(expected, model.name), tolerance, label)


@rule()
def update_refuses_what_is_not_new(subject: Subject) -> None:
    """`update` with old rows or unknown series raises an error with the id and leaves the model unchanged."""
    history, recent = fixtures.split(RECENT)
    model = subject.fitted_copy(RECENT)
    expected = model.predict()
    with expect_error(DataError, "s1", when="update gets rows that are known"):
        model.update(history[history["unique_id"] == "s1"].tail(2))
    overlapping = fixtures.daily_panel()[fixtures.daily_panel()["unique_id"] == "s2"].tail(RECENT + 1)
    with expect_error(DataError, "s2", when="update gets one known row before new ones"):
        model.update(overlapping)
    with expect_error(DataError, "stranger", when="update gets an unknown series"):
        model.update(recent[recent["unique_id"] == "s0"].assign(unique_id="stranger"))
    expect_same(model.predict(), expected, "the forecast after updates that were refused")


@rule(requires("by_series"))
def unknown_series_are_fitted_and_reported(subject: Subject) -> None:
    """`predict(frame=...)` fits new series with one warning that lists them, and does not change the others."""
    level = subject.levels if subject.capabilities.local else None  # pooled bands rest on the series that were there in fit
    training_frame = fixtures.daily_panel()[fixtures.daily_panel()["unique_id"] != "s1"]
    model = subject.make().fit(training_frame)
    with collect_warnings() as messages:
        forecast = model.predict(frame=fixtures.daily_panel(), level=level)
    expect_one_warning(messages, "s1")
    _expect_close_forecasts(subject, forecast, subject.fitted().predict(frame=fixtures.daily_panel(), level=level))
    expect(model.predict()["unique_id"].nunique() == 2, "the unknown series stays in the model")


@rule(requires_no("by_series"))
def unknown_series_are_forecast(subject: Subject) -> None:
    """A global model forecasts new series; it warns only if it has learned per-series parameters."""
    training_frame = fixtures.daily_panel()[fixtures.daily_panel()["unique_id"] != "s1"]
    model = subject.make().fit(training_frame)
    with collect_warnings() as messages:
        forecast = model.predict(frame=fixtures.daily_panel())
    if subject.capabilities.partly_own:
        expect_one_warning(messages, "s1")
    else:
        expect(not messages, f"it says {messages[:1]}")
    expect(list(forecast["unique_id"].unique()) == fixtures.series_ids(), "the unknown series has no forecast")


def _expect_changed(forecast: Frame, reference: Frame, name: str, label: str) -> None:
    values, reference_values = (column(one, name).reshape(len(fixtures.series_ids()), -1) for one in (forecast, reference))
    scale = SHIFT / 1e4  # far below what a series follows, far above rounding
    unchanged_ids = [
        one
        for one, change in zip(fixtures.series_ids(), np.abs(values - reference_values).max(axis=1), strict=True)
        if not change > scale
    ]
    expect(not unchanged_ids, f"{label} does not move the forecast of {', '.join(unchanged_ids)}")


def _expect_close_forecasts(subject: Subject, forecast: Frame, expected: Frame) -> None:
    expect_same(forecast[["unique_id", "ds"]], expected[["unique_id", "ds"]], "ids and times")
    tolerance = (1e-9 if subject.capabilities.by_series else subject.precision) * float(
        np.abs(fixtures.daily_panel()["y"]).max()
    )
    for name in column_names(expected)[2:]:
        expect_close(column(forecast, name), column(expected, name), tolerance, f"column {name}")
