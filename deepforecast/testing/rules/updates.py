"""Updates of a fitted model: `update`, `predict(frame=...)` and new series."""

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

RECENT = 5  # rows per series
SHIFT = 100.0  # many times the standard deviation of a series


@rule()
def the_training_frame_gives_the_same_forecast(subject: Subject) -> None:
    """`predict(frame=...)` with the training frame equals `predict()`."""
    model = subject.fitted()
    _expect_close_forecasts(
        subject,
        model.predict(frame=fixtures.daily_panel(), level=subject.levels),
        model.predict(level=subject.levels),
        "predict(frame=...) with the training frame must equal predict()",
    )


@rule()
def longer_histories_move_the_state(subject: Subject) -> None:
    """`predict(frame=...)` forecasts from the end of the given series without changing the model."""
    model = subject.fitted_copy(RECENT)
    first = model.predict()
    forecast = model.predict(frame=fixtures.daily_panel())
    ends = fixtures.daily_panel().groupby("unique_id")["ds"].max()
    starts = forecast.groupby("unique_id")["ds"].min()
    days = (starts - ends).dt.days
    expect(
        (days == 1).all(),
        f"predict(frame=...) must start one day after the last row of each series, got {days.to_dict()} days after it",
    )
    expect_same(model.predict(), first, "predict(frame=...) must not change the forecast of a later predict()")


@rule()
def update_equals_a_longer_history(subject: Subject) -> None:
    """`update`, at once or row by row, equals forecasting from the longer series with the same parameters."""
    recent = fixtures.split(RECENT)[1]
    fitted = subject.fitted_copy(RECENT)
    expected = fitted.predict(frame=fixtures.daily_panel(), level=subject.levels)
    expect(fitted.update(recent) is fitted, "update must return the model itself")
    requirement = "the forecast after `update` {} must equal predict(frame=...) with the whole history, see `_advance`"
    _expect_close_forecasts(subject, fitted.predict(level=subject.levels), expected, requirement.format("with all rows"))
    stepwise = subject.fitted_copy(RECENT)
    for _, rows in recent.groupby("ds"):
        stepwise.update(rows)
    _expect_close_forecasts(subject, stepwise.predict(level=subject.levels), expected, requirement.format("row by row"))


@rule()
def new_values_move_the_forecast(subject: Subject) -> None:
    """New values in `predict(frame=...)` or `update` change all forecasts or none, as declared."""
    frame = fixtures.random_walks()
    declared = subject.capabilities.new_values
    history, recent = fixtures.split(2 * fixtures.SEASON, frame)
    model = subject.make().fit(history)
    shifted_forecast = model.predict(frame=fixtures.replace_target(frame, frame["y"] + SHIFT))
    expected = model.predict(frame=frame)
    shifted_update = deepcopy(model).update(fixtures.replace_target(recent, recent["y"] + SHIFT))
    plain_update = deepcopy(model).update(recent)
    for shifted, reference, label in (
        (shifted_forecast, expected, f"predict(frame=...) with all values plus {SHIFT:g}"),
        # the reference has the same timestamps, since time alone changes a seasonal forecast
        (shifted_update.predict(), plain_update.predict(), f"update with all values plus {SHIFT:g}"),
    ):
        if declared == "ignored":
            expect_same(shifted, reference, f"capabilities.new_values is 'ignored': {label} must not change the forecast")
        else:
            _expect_changed(shifted, reference, model.name, label)
    if declared == "followed":
        tolerance = subject.shift_precision * float(frame["y"].std())
        requirement = (
            f"capabilities.new_values is 'followed': the forecast from all values plus {SHIFT:g}, minus {SHIFT:g}, must equal that "
            "from the values"
        )
        expect_close(column(shifted_forecast, model.name) - SHIFT, column(expected, model.name), tolerance, requirement)


@rule()
def update_refuses_what_is_not_new(subject: Subject) -> None:
    """`update` with old rows or unknown series raises an error with the id and leaves the model unchanged."""
    history, recent = fixtures.split(RECENT)
    model = subject.fitted_copy(RECENT)
    expected = model.predict()
    with expect_error(DataError, "s1", when="update gets rows of the training frame"):
        model.update(history[history["unique_id"] == "s1"].tail(2))
    overlapping = fixtures.daily_panel()[fixtures.daily_panel()["unique_id"] == "s2"].tail(RECENT + 1)
    with expect_error(DataError, "s2", when="update gets one row of the training frame before new ones"):
        model.update(overlapping)
    with expect_error(DataError, "s9", when="update gets a series that was not in `fit`"):
        model.update(recent[recent["unique_id"] == "s0"].assign(unique_id="s9"))
    expect_same(model.predict(), expected, "a failed update must not change the forecast")


@rule(requires("by_series"))
def unknown_series_are_fitted_and_reported(subject: Subject) -> None:
    """`predict(frame=...)` fits new series with one warning that lists them, and does not change the others."""
    level = subject.levels if subject.capabilities.local else None  # pooled intervals depend on the series of fit
    training_frame = fixtures.daily_panel()[fixtures.daily_panel()["unique_id"] != "s1"]
    model = subject.make().fit(training_frame)
    with collect_warnings() as messages:
        forecast = model.predict(frame=fixtures.daily_panel(), level=level)
    expect_one_warning(messages, "s1")
    _expect_close_forecasts(
        subject,
        forecast,
        subject.fitted().predict(frame=fixtures.daily_panel(), level=level),
        "the forecast with the new series s1 must equal that of a model fitted on all series",
    )
    remaining_ids = list(model.predict()["unique_id"].unique())
    expect(
        len(remaining_ids) == 2,
        f"predict(frame=...) must not add the new series s1 to the model, but predict() returns {remaining_ids}",
    )


@rule(requires("by_series", "future"))
def unknown_series_use_future_covariates(subject: Subject) -> None:
    """`predict(frame=...)` with future covariates forecasts known and new series like a model fitted on all."""
    history, future, columns = fixtures.covariate_panel("price")
    model = subject.make().fit(history[history["unique_id"] != "s1"], columns=columns)
    with collect_warnings() as messages:
        forecast = model.predict(frame=history, future=future)
    expect_one_warning(messages, "s1")
    _expect_close_forecasts(
        subject,
        forecast,
        subject.make().fit(history, columns=columns).predict(frame=history, future=future),
        "the forecast with the new series s1 and a future covariate must equal that of a model fitted on all series",
    )


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
        expect(
            not messages,
            f"a global model without per-series parameters must forecast new series without a warning, got {messages[:1]}",
        )
    forecast_ids = list(forecast["unique_id"].unique())
    expect(
        forecast_ids == fixtures.series_ids(),
        f"predict(frame=...) must forecast all series of the frame, {fixtures.series_ids()}, got {forecast_ids}",
    )


def _expect_changed(forecast: Frame, reference: Frame, name: str, label: str) -> None:
    """Expect the forecast of every series to differ from the reference by more than rounding errors;
    `label`: the cause of the change."""
    n_series = len(fixtures.series_ids())
    values, reference_values = (column(frame, name).reshape(n_series, -1) for frame in (forecast, reference))
    min_change = SHIFT / 1e4  # far below the effect of new values, far above rounding errors
    changes = np.abs(values - reference_values).max(axis=1)
    unchanged_ids = [
        series_id for series_id, change in zip(fixtures.series_ids(), changes, strict=True) if not change > min_change
    ]
    expect(
        not unchanged_ids,
        f"{label} must change all forecasts, but does not change those of {', '.join(unchanged_ids)}. Use the new values in "
        "`_advance`, or set capabilities.new_values to 'ignored'",
    )


def _expect_close_forecasts(subject: Subject, forecast: Frame, expected: Frame, requirement: str) -> None:
    """Expect equal keys and forecasts that agree within rounding errors, or within the precision of global models."""
    expect_same(forecast[["unique_id", "ds"]], expected[["unique_id", "ds"]], requirement)
    tolerance = (1e-9 if subject.capabilities.by_series else subject.precision) * float(
        np.abs(fixtures.daily_panel()["y"]).max()
    )
    for name in column_names(expected)[2:]:
        expect_close(column(forecast, name), column(expected, name), tolerance, f"{requirement} (column {name})")
