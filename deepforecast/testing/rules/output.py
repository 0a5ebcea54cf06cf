"""The forecast frame: its rows, times, order, dtypes and names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from deepforecast.data.frames import Floats, Frame
from deepforecast.data.panel import Panel
from deepforecast.errors import format_list
from deepforecast.testing import fixtures
from deepforecast.testing.assertions import collect_warnings, expect, expect_equal, expect_finite, expect_same
from deepforecast.testing.check import rule
from deepforecast.testing.fixtures import HORIZON
from deepforecast.testing.subject import Subject

CALENDARS = (("h", "2024-03-29", 60, "Europe/Berlin"), ("ME", "2019-10-31", 40, None), ("B", "2024-01-01", 40, None))


@rule()
def rows_are_series_times_horizon(subject: Subject) -> None:
    """The forecast has one finite row per series and step after its last row, sorted by id and time."""
    model = subject.fitted()
    frame = fixtures.daily_panel()
    forecast = model.predict()
    ends = frame.groupby("unique_id")["ds"].max()
    expect(
        list(forecast.columns) == ["unique_id", "ds", model.name],
        f"predict must return the columns unique_id, ds and {model.name}, got {list(forecast.columns)}",
    )
    expect(
        forecast["unique_id"].tolist() == [series_id for series_id in fixtures.series_ids() for _ in range(HORIZON)],
        f"predict must return {HORIZON} rows for each of {fixtures.series_ids()}, got the ids {forecast['unique_id'].tolist()}",
    )
    expected_times = [end + pd.Timedelta(days=step) for end in ends for step in range(1, HORIZON + 1)]
    expect(
        forecast["ds"].tolist() == expected_times,
        f"the timestamps must be those of the {HORIZON} steps after the last row of each series, "
        f"{format_list(map(str, expected_times), max_shown=9)}, got {format_list(map(str, forecast['ds']), max_shown=9)}",
    )
    for name in ("unique_id", "ds"):
        expect(
            forecast[name].dtype == frame[name].dtype,
            f"column {name} of the forecast must have the dtype of the frame, {frame[name].dtype}, got {forecast[name].dtype}",
        )
    expect(forecast[model.name].dtype == np.float64, f"the forecast must be float64, got {forecast[model.name].dtype}")
    expect(
        forecast.index.equals(pd.RangeIndex(len(forecast))), f"the index must be 0, 1, 2, ..., got {forecast.index.tolist()}"
    )
    expect_finite(forecast, model.name, "the forecast")


@rule(shared=True)
def times_follow_the_calendar(subject: Subject) -> None:
    """Forecast times follow the calendar (DST, month ends, business days) and keep the time zone."""
    for freq, start, length, zone in CALENDARS:
        frame = fixtures.series_from_values(_sine_wave(length), "s0", pd.Timestamp(start, tz=zone), freq)
        min_rows = subject.make()._min_observations(Panel.from_frame(frame, freq=freq))
        if min_rows > length:  # the model has a long season
            frame = fixtures.series_from_values(_sine_wave(min_rows), "s0", pd.Timestamp(start, tz=zone), freq)
        timestamps = pd.date_range(start, periods=len(frame) + HORIZON, freq=freq, tz=zone)
        with collect_warnings():  # of a season that is too long for these rows
            forecast = subject.forecast(frame, freq=freq)
        expected_times = list(timestamps[len(frame) :])
        times = forecast["ds"].tolist()
        expect(
            times == expected_times,
            f"the timestamps after {frame['ds'].iloc[-1]} with freq={freq!r} must be {format_list(map(str, expected_times))}, "
            f"got {format_list(map(str, times))}",
        )
        expect(
            forecast["ds"].dtype == frame["ds"].dtype,
            f"column ds with freq={freq!r} must have the dtype of the frame, {frame['ds'].dtype}, got {forecast['ds'].dtype}",
        )
        expect_finite(forecast, subject.fitted().name, f"the forecast with freq={freq!r}")


@rule(shared=True)
def units_of_time_are_kept(subject: Subject) -> None:
    """Timestamps in seconds or nanoseconds give the same forecast in the same unit."""
    frame = fixtures.daily_panel()
    expected = subject.fitted().predict()
    for unit in ("s", "ns"):
        forecast = subject.forecast(frame.assign(ds=frame["ds"].dt.as_unit(unit)))
        forecast_dtype = str(forecast["ds"].dtype)
        expect(
            forecast_dtype == f"datetime64[{unit}]",
            f"the forecast of timestamps in {unit} must have datetime64[{unit}], got {forecast_dtype}",
        )
        expect_same(
            forecast.assign(ds=forecast["ds"].astype(expected["ds"].dtype)),
            expected,
            f"timestamps in {unit} must give the same forecast",
        )


@rule(shared=True)
def ids_keep_their_dtype(subject: Subject) -> None:
    """Integer and categorical ids give the same forecasts and keep their dtype; unused categories do not matter."""
    frame = fixtures.daily_panel()
    expected = subject.fitted().predict()
    for labels in (_integer_ids(), _categorical_ids()):
        ids = pd.Series(labels.take([fixtures.series_ids().index(series_id) for series_id in frame["unique_id"]]))
        forecast = subject.forecast(frame.assign(unique_id=ids))
        expect(
            forecast["unique_id"].dtype == ids.dtype,
            f"the ids of the forecast must have the dtype of the frame, {ids.dtype}, got {forecast['unique_id'].dtype}",
        )
        original_ids = dict(zip(labels, fixtures.series_ids(), strict=False))
        names = forecast["unique_id"].map(original_ids).astype(expected["unique_id"].dtype)
        values = forecast.assign(unique_id=names).sort_values(["unique_id", "ds"], ignore_index=True)
        if not subject.capabilities.local and ids.dtype == "category":
            continue  # the order of the series, and with it the training batches, may differ
        expect_same(values, expected, f"ids of dtype {ids.dtype} must give the same forecast")


@rule(shared=True)
def column_names_are_kept(subject: Subject) -> None:
    """Other column names give the same forecast under these names."""
    frame = fixtures.daily_panel()
    expected = subject.fitted().predict()
    for names, columns in (
        (("shop", "day", "sales"), {"id": "shop", "time": "day", "target": "sales"}),
        (("item_id", "timestamp", "target"), None),
    ):
        renamed = frame.rename(columns=dict(zip(("unique_id", "ds", "y"), names, strict=True)))
        forecast = subject.forecast(renamed, columns=columns)
        expect(
            list(forecast.columns[:2]) == list(names[:2]),
            f"the forecast of a frame with the columns {names} must begin with {names[:2]}, got {list(forecast.columns)}",
        )
        expect_same(
            forecast.rename(columns={names[0]: "unique_id", names[1]: "ds"}),
            expected,
            f"a frame with the columns {names} must give the same forecast",
        )


@rule()
def alias_names_the_forecast(subject: Subject) -> None:
    """`alias` names the forecast column and its bounds."""
    forecast = subject.forecast(fixtures.one_series(), model=subject.make(alias="mine"), level=subject.levels)
    unexpected = [name for name in forecast.columns[2:] if name != "mine" and not name.startswith("mine-")]
    expect(
        "mine" in forecast.columns and not unexpected,
        f"with alias='mine' the columns of the forecast must be mine and mine-..., got {list(forecast.columns[2:])}. "
        "Use `self.name` in `_forecast`",
    )


@rule(shared=True)
def one_series_needs_no_id(subject: Subject) -> None:
    """A frame without an id column, or a Series with dates, gives the forecast of one series with an id."""
    frame = fixtures.one_series()
    name = subject.fitted_on_series().name
    expected = subject.fitted_on_series().predict()
    for label, source in (("a frame without ids", frame[["ds", "y"]]), ("a Series", frame.set_index("ds")["y"])):
        forecast = subject.forecast(source)
        expect(
            list(forecast.columns) == ["ds", name],
            f"the forecast of {label} must have the columns ds and {name}, got {list(forecast.columns)}",
        )
        expect_same(forecast, expected.drop(columns="unique_id"), f"{label} must give the forecast of a frame with ids")


@rule(shared=True)
def integer_time_works(subject: Subject) -> None:
    """Integer time continues in its own step; a season length that cannot be inferred raises an error naming the parameter.

    A local model gives the same forecast as with dates. A model that uses dates is checked with the parameters in the class
    attribute `dateless`.
    """
    dateless = getattr(subject.cls, "dateless", {})
    frame = fixtures.daily_panel()
    model = subject.make(**dateless)
    steps = (frame["ds"] - frame["ds"].min()).dt.days * 5 + 1000
    integer_frame = frame.assign(ds=steps.astype("int64"))
    model = model.set_params(**required_seasons(subject, integer_frame))
    forecast = model.fit(integer_frame, freq=5).predict()
    ends = integer_frame.groupby("unique_id")["ds"].max()
    times = forecast["ds"].tolist()
    expected_times = [end + 5 * step for end in ends for step in range(1, HORIZON + 1)]
    expect(times == expected_times, f"with freq=5 the times of the forecast must be {expected_times}, got {times}")
    expect(forecast["ds"].dtype == np.int64, f"integer times of the forecast must be int64, got {forecast['ds'].dtype}")
    if subject.capabilities.local:
        dated_model = subject.make(**dateless).fit(frame) if dateless else subject.fitted()
        expect_equal(
            forecast[model.name].to_numpy(),
            dated_model.predict()[model.name].to_numpy(),
            "integer time must give the same forecast as dates",
        )


def required_seasons(subject: Subject, frame: Frame) -> dict[str, Any]:
    """Return the "auto" parameters that the error names if the season length cannot be inferred."""
    from deepforecast.errors import ParameterError

    model = subject.make()
    auto_names = [name for name, value in model.get_params().items() if isinstance(value, str) and value == "auto"]
    try:
        model.fit(frame, freq=5)
    except ParameterError as error:
        named_in_error = [
            name for name in auto_names if name.rpartition("__")[2] in str(error).replace("(", " ").replace("=", " ").split()
        ]
        expect(
            named_in_error,
            f"the error for integer time must mention one of the parameters that are 'auto' ({', '.join(auto_names)}), "
            f"got: {error}",
        )
        return dict.fromkeys(named_in_error, fixtures.SEASON)
    return {}


def _sine_wave(length: int) -> Floats:
    return np.asarray(100 + np.sin(np.arange(length) * 0.9) * 10 + np.arange(length) % 5)


def _integer_ids() -> Any:
    return pd.Index([4, 30, 200], dtype="int64")


def _categorical_ids() -> Any:
    return pd.Categorical(["blue", "red", "green"], categories=["white", "green", "red", "blue", "black"])
