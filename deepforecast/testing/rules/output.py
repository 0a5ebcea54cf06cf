"""The forecast frame: its rows, times, order, dtypes and names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from deepforecast.data.frames import Floats, Frame
from deepforecast.data.panel import Panel
from deepforecast.testing import worlds
from deepforecast.testing.check import rule
from deepforecast.testing.expect import expect, expect_equal, expect_finite, expect_same, heard
from deepforecast.testing.subject import Subject
from deepforecast.testing.worlds import HORIZON

CALENDARS = (("h", "2024-03-29", 60, "Europe/Berlin"), ("ME", "2019-10-31", 40, None), ("B", "2024-01-01", 40, None))


@rule()
def rows_are_series_times_horizon(subject: Subject) -> None:
    """The forecast has a row for each series and step, each series from its own end, ordered by id and time, and finite."""
    model, frame = subject.fitted(), worlds.daily()
    found = model.predict()
    ends = frame.groupby("unique_id")["ds"].max()
    expect(list(found.columns) == ["unique_id", "ds", model.name], f"the columns are {list(found.columns)}")
    expect(found["unique_id"].tolist() == [one for one in worlds.ids() for _ in range(HORIZON)], "ids are not series by series")
    expected = [end + pd.Timedelta(days=step) for end in ends for step in range(1, HORIZON + 1)]
    expect(found["ds"].tolist() == expected, "the times do not follow on from each series' own end")
    for name in ("unique_id", "ds"):
        expect(
            found[name].dtype == frame[name].dtype,
            f"{name} came as {frame[name].dtype} and is given back as {found[name].dtype}",
        )
    expect(found[model.name].dtype == np.float64, f"the forecast is {found[model.name].dtype}, not float64")
    expect(found.index.equals(pd.RangeIndex(len(found))), "the index is not 0, 1, 2 ...")
    expect_finite(found, model.name, "the forecast")


@rule()
def times_follow_the_calendar(subject: Subject) -> None:
    """Hours over a change of the clocks, month ends and business days go on as the calendar says, time zone kept."""
    for freq, start, length, zone in CALENDARS:
        frame = worlds.of_values(_waves(length), "s0", pd.Timestamp(start, tz=zone), freq)
        needed = subject.make()._min_observations(Panel.from_frame(frame, freq=freq))
        if needed > length:  # of a model with long seasons
            frame = worlds.of_values(_waves(needed), "s0", pd.Timestamp(start, tz=zone), freq)
        stamps = pd.date_range(start, periods=len(frame) + HORIZON, freq=freq, tz=zone)
        with heard():  # a season too long for these few rows may be named
            found = subject.forecast(frame, freq=freq)
        expect(found["ds"].tolist() == list(stamps[len(frame) :]), f"freq {freq} goes on with {found['ds'].tolist()}")
        expect(
            found["ds"].dtype == frame["ds"].dtype, f"freq {freq}: ds came as {frame['ds'].dtype}, went as {found['ds'].dtype}"
        )
        expect_finite(found, subject.fitted().name, f"the forecast at freq {freq}")


@rule()
def units_of_time_are_kept(subject: Subject) -> None:
    """Stamps in seconds or nanoseconds give the same forecast, in the unit they came in."""
    frame = worlds.daily()
    wanted = subject.fitted().predict()
    for unit in ("s", "ns"):
        found = subject.forecast(frame.assign(ds=frame["ds"].dt.as_unit(unit)))
        expect(str(found["ds"].dtype) == f"datetime64[{unit}]", f"stamps in {unit} are given back as {found['ds'].dtype}")
        expect_same(found.assign(ds=found["ds"].astype(wanted["ds"].dtype)), wanted, f"the forecast of stamps in {unit}")


@rule()
def ids_keep_their_dtype(subject: Subject) -> None:
    """Integer and categorical ids give the same forecasts and come back as they are, unused categories invisible."""
    frame, wanted = worlds.daily(), subject.fitted().predict()
    for labels in (_integers(), _categories()):
        ids = pd.Series(labels.take([worlds.ids().index(one) for one in frame["unique_id"]]))
        found = subject.forecast(frame.assign(unique_id=ids))
        expect(
            found["unique_id"].dtype == ids.dtype, f"ids came as {ids.dtype} and are given back as {found['unique_id'].dtype}"
        )
        back = dict(zip(labels, worlds.ids(), strict=False))
        names = found["unique_id"].map(back).astype(wanted["unique_id"].dtype)
        values = found.assign(unique_id=names).sort_values(["unique_id", "ds"], ignore_index=True)
        if not subject.capabilities.local and ids.dtype == "category":
            continue  # the order of the series may be another, and so that of the training batches
        expect_same(values, wanted, f"the forecast with ids of dtype {ids.dtype}")


@rule()
def own_column_names_come_back(subject: Subject) -> None:
    """The caller's own column names, and those of the other dialect, give the same forecast under these names."""
    frame, wanted = worlds.daily(), subject.fitted().predict()
    for names, columns in (
        (("shop", "day", "sales"), {"id": "shop", "time": "day", "target": "sales"}),
        (("item_id", "timestamp", "target"), None),
    ):
        renamed = frame.rename(columns=dict(zip(("unique_id", "ds", "y"), names, strict=True)))
        found = subject.forecast(renamed, columns=columns)
        expect(list(found.columns[:2]) == list(names[:2]), f"{names} are given back as {list(found.columns)}")
        expect_same(found.rename(columns={names[0]: "unique_id", names[1]: "ds"}), wanted, f"the forecast of columns {names}")


@rule()
def alias_names_the_forecast(subject: Subject) -> None:
    """`alias` is the name of the forecast column and of its bounds."""
    found = subject.forecast(worlds.one(), model=subject.make(alias="mine"), level=subject.levels)
    extra = [name for name in found.columns[2:] if name != "mine" and not name.startswith("mine-")]
    expect("mine" in found.columns and not extra, f"with alias='mine' the columns are {list(found.columns)}")


@rule()
def one_series_needs_no_id(subject: Subject) -> None:
    """A frame without an id column is one series, as is a Series with dates; the forecast is that with an id."""
    frame, name = worlds.one(), subject.alone().name
    wanted = subject.alone().predict()
    for what, given in (("a frame without ids", frame[["ds", "y"]]), ("a Series", frame.set_index("ds")["y"])):
        found = subject.forecast(given)
        expect(list(found.columns) == ["ds", name], f"the forecast of {what} has the columns {list(found.columns)}")
        expect_same(found, wanted.drop(columns="unique_id"), f"the forecast of {what}")


@rule()
def integer_time_works(subject: Subject) -> None:
    """Integer time goes on in its own step; a season that it cannot tell is asked for by the parameter's name.

    A local model gives the forecast of dates; one that reads dates does with the parameters in its class's `dateless`.
    """
    dateless = getattr(subject.cls, "dateless", {})
    frame, model = worlds.daily(), subject.make(**dateless)
    steps = (frame["ds"] - frame["ds"].min()).dt.days * 5 + 1000
    counted = frame.assign(ds=steps.astype("int64"))
    model = model.set_params(**seasons_given(subject, counted))
    found = model.fit(counted, freq=5).predict()
    ends = counted.groupby("unique_id")["ds"].max()
    expect(
        found["ds"].tolist() == [end + 5 * step for end in ends for step in range(1, HORIZON + 1)],
        "the times do not go on by 5",
    )
    expect(found["ds"].dtype == np.int64, f"integer time is given back as {found['ds'].dtype}")
    if subject.capabilities.local:
        dated = subject.make(**dateless).fit(frame) if dateless else subject.fitted()
        expect_equal(found[model.name].to_numpy(), dated.predict()[model.name].to_numpy(), "the forecast in integer time")


def seasons_given(subject: Subject, frame: Frame) -> dict[str, Any]:
    """Parameters to give for data whose season cannot be inferred: those that stand at "auto" and that the error names."""
    from deepforecast.errors import ParameterError

    model = subject.make()
    auto = [name for name, value in model.get_params().items() if isinstance(value, str) and value == "auto"]
    try:
        model.fit(frame, freq=5)
    except ParameterError as error:
        named = [name for name in auto if name.rpartition("__")[2] in str(error).replace("(", " ").replace("=", " ").split()]
        expect(named, f"the error for integer time names none of the parameters left at 'auto' ({', '.join(auto)}): {error}")
        return dict.fromkeys(named, worlds.SEASON)
    return {}


def _waves(length: int) -> Floats:
    return np.asarray(100 + np.sin(np.arange(length) * 0.9) * 10 + np.arange(length) % 5)


def _integers() -> Any:
    return pd.Index([4, 30, 200], dtype="int64")


def _categories() -> Any:
    return pd.Categorical(["blue", "red", "green"], categories=["white", "green", "red", "blue", "black"])
