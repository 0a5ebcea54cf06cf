"""Reliability of time stamps: stamps, time zones, frequencies."""

from __future__ import annotations

import datetime
import zoneinfo
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import pytest

from deepforecast import Naive, load
from deepforecast.errors import DataError, ParameterError
from deepforecast.testing.subject import Subject
from tests.bad_input import KINDS, forecast, k7, made, refused, sn
from tests.frames import LIBRARIES, D, P, converted, joined, plain, same
from tests.helpers_models import FutureRegression


@pytest.mark.parametrize("library", LIBRARIES)
def test_iso_text(library: str) -> None:
    frame = D()
    text = frame.assign(ds=frame.ds.dt.strftime("%Y-%m-%d"))
    same(forecast(sn(), converted(text, library)), forecast(sn(), frame), types=False)


@pytest.mark.parametrize("library", LIBRARIES)
def test_ambiguous_text(library: str) -> None:
    frame = D("A", 12).assign(ds=[f"{day:02d}/01/2024" for day in range(1, 13)])
    refused(sn(), converted(frame, library), "ds", "01/01/2024")


@pytest.mark.parametrize("text", ["yesterday", "2024-02-30", "2024-13-01", "20240101", "2024-01-01\n"])
def test_text_that_is_not_a_date(text: str) -> None:
    frame = D()
    texts = frame.ds.astype(str).to_numpy(object)
    texts[20] = text
    refused(sn(), frame.assign(ds=texts), "ds", text.strip())


@pytest.mark.parametrize("library", LIBRARIES)
def test_float_stamps(library: str) -> None:
    refused(sn(), converted(D().assign(ds=np.arange(60.0)), library), "ds", "ouble" if library == "pyarrow" else "loat64")


@KINDS
@pytest.mark.parametrize("library", LIBRARIES)
def test_integer_stamps(subject: Subject, library: str) -> None:
    found = made(subject).fit(converted(D().assign(ds=np.arange(60)), library), freq=1).predict()
    assert plain(found).ds.tolist() == [60, 61, 62, 63, 64]
    assert nw.from_native(found).schema["ds"] == nw.Int64


@KINDS
@pytest.mark.parametrize("freq", [5, np.int32(5), None])
def test_integer_stamps_in_steps_of_five(subject: Subject, freq: Any) -> None:
    found = forecast(made(subject), D().assign(ds=1000 + 5 * np.arange(60)), freq=freq)
    assert found.ds.tolist() == [1300, 1305, 1310, 1315, 1320]


@pytest.mark.parametrize(("stamps", "freq"), [("integers", "D"), ("dates", 1)])
def test_freq_of_another_time_type(stamps: str, freq: Any) -> None:
    refused(sn(), D().assign(ds=np.arange(60)) if stamps == "integers" else D(), "ds", "freq", freq=freq)


@KINDS
@pytest.mark.parametrize("library", LIBRARIES)
def test_missing_stamp(subject: Subject, library: str) -> None:
    frame = D()
    frame.loc[10, "ds"] = pd.NaT
    refused(made(subject), converted(frame, library), "ds", "A", "row 10")


@KINDS
@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_datetime_units(subject: Subject, unit: str) -> None:
    frame = D()
    found = forecast(made(subject), frame.astype({"ds": f"datetime64[{unit}]"}))
    wanted = forecast(made(subject), frame.astype({"ds": "datetime64[ns]"}))
    assert str(found.ds.dtype) == f"datetime64[{unit}]"
    assert str(wanted.ds.dtype) == "datetime64[ns]"
    same(found.astype({"ds": "datetime64[ns]"}), wanted)


def test_date_objects(tmp_path: Any) -> None:
    dates = D().assign(ds=D().ds.dt.date)
    model = sn().fit(dates)
    assert model.predict().ds.tolist() == [stamp.date() for stamp in forecast(sn(), D()).ds]
    model.save(tmp_path / "model")
    same(load(tmp_path / "model").predict(), model.predict())


@pytest.mark.parametrize("stamps", [D().ds.dt.date, D().ds.astype(str).astype(object)], ids=["dates", "text"])
def test_missing_date_objects_and_text(stamps: Any) -> None:
    refused(sn(), D().assign(ds=stamps.where(stamps.index != 3, None)), "must have a timestamp", "row 3")


def test_objects_of_datetimes() -> None:
    objects = pd.Series([stamp.to_pydatetime() for stamp in D().ds], dtype=object)
    assert forecast(sn(), D().assign(ds=objects)).ds.tolist() == forecast(sn(), D()).ds.tolist()
    objects[3] = objects[3].date()
    assert forecast(sn(), D().assign(ds=objects)).ds.tolist() == forecast(sn(), D()).ds.tolist()
    zoned = D(tz="Europe/Berlin")
    same(forecast(sn(), zoned.astype({"ds": object})), forecast(sn(), zoned), types=False)


def test_periods() -> None:
    frame = D()
    refused(sn(), frame.assign(ds=frame.ds.dt.to_period("D")), "ds", "period[D]", "to_timestamp")


def test_dates_of_arrow_and_polars() -> None:
    import polars as pl
    import pyarrow as pa

    wanted = forecast(sn(), D())
    table = converted(D(), "pyarrow")
    dates = table.set_column(1, "ds", table["ds"].cast(pa.date32()))
    pandas = D().assign(ds=pd.Series(D().ds.dt.date, dtype=pd.ArrowDtype(pa.date32())))
    dates64 = table.set_column(1, "ds", table["ds"].cast(pa.date64()))
    pandas64 = D().assign(ds=pd.Series(D().ds.dt.date, dtype=pd.ArrowDtype(pa.date64())))
    for frame in (dates, pl.DataFrame(dates), pandas, dates64, pandas64):
        found = sn().fit(frame).predict()
        assert nw.from_native(found).schema["ds"] == nw.Date
        assert pd.to_datetime(plain(found).ds).tolist() == wanted.ds.tolist()


@pytest.mark.parametrize("freq", ["D", "W", "ME", "B"])
def test_forecast_beyond_the_last_timestamp(freq: str) -> None:
    frame = D("A", 60)
    frame["ds"] = pd.date_range(end="2262-04-09", periods=60, freq=freq, unit="s").astype("datetime64[ns]")
    model = sn(7).fit(frame)
    with pytest.raises(DataError, match=r"datetime64\[ns\].*horizon"):
        model.predict()
    coarse = forecast(sn(7), frame.astype({"ds": "datetime64[s]"}))
    assert (coarse.ds > pd.Timestamp("2262-04-09").as_unit("s")).all()


def test_forecast_beyond_the_last_small_integer() -> None:
    frame = D().assign(ds=np.arange(65, 125).astype("int8"))
    model = sn(3).fit(frame)
    assert forecast(sn(3), frame).ds.dtype == np.int8
    with pytest.raises(DataError, match="int8"):
        model.predict(4)


@pytest.mark.parametrize("freq", ["D", "MS", "B", "W-WED", "h", None])
def test_years_before_1677(freq: Any) -> None:
    stamps = pd.date_range("1600-01-01", periods=66, freq=freq or "D", unit="s")
    frame = D().assign(ds=stamps[:60])
    assert str(frame.ds.dtype) == "datetime64[s]"
    assert forecast(sn(), frame, freq=freq).ds.tolist() == stamps[60:65].tolist()


@KINDS
@pytest.mark.parametrize("freq", ["D", None])
def test_days_across_a_clock_change(subject: Subject, freq: Any) -> None:
    stamps = pd.date_range("2024-02-20", "2024-04-07", freq="D", tz="Europe/Berlin")
    frame = D("A", 36).assign(ds=stamps[:36])
    found = forecast(made(subject, 12), frame, freq=freq)
    assert found.ds.dtype == stamps.dtype
    assert found.ds.tolist() == stamps[36:].tolist()


@pytest.mark.parametrize("library", LIBRARIES)
def test_hours_across_the_end_of_summer_time(library: str) -> None:
    stamps = pd.date_range(end="2024-11-02 23:00", periods=60, freq="h", tz="America/New_York")
    found = sn(6).fit(converted(D().assign(ds=stamps), library)).predict()
    clock = pd.DatetimeIndex(plain(found).ds)
    assert str(clock.tz) == "America/New_York"
    assert [stamp.hour for stamp in clock] == [0, 1, 1, 2, 3, 4]
    assert set(np.diff(clock.asi8)) == {np.diff(stamps.as_unit(clock.unit).asi8)[0]}


def test_hours_across_the_start_of_summer_time() -> None:
    stamps = pd.date_range(end="2024-03-31 01:00", periods=60, freq="h", tz="Europe/Berlin")
    found = forecast(sn(), D().assign(ds=stamps))
    assert found.ds[0] == pd.Timestamp("2024-03-31 03:00", tz="Europe/Berlin")


def test_mixed_time_zones() -> None:
    frames = [D(name, tz=zone).astype({"ds": object}) for name, zone in (("A", "Europe/Berlin"), ("B", "Asia/Tokyo"))]
    refused(sn(), joined(*frames), "ds", "time zone")


def test_future_without_time_zone() -> None:
    frame = D(tz="Europe/Berlin").assign(promo=1.0)
    model = FutureRegression(horizon=5).fit(frame, columns={"future": "promo"})
    future = model.future_frame().assign(promo=1.0)
    with pytest.raises(DataError, match=r"ds.*tz"):
        model.predict(future=future.assign(ds=future.ds.dt.tz_localize(None)))
    same(model.predict(future=future.assign(ds=future.ds.dt.tz_convert("UTC"))), model.predict(future=future))


@KINDS
@pytest.mark.parametrize("library", LIBRARIES)
def test_month_ends_in_a_leap_year(subject: Subject, library: str) -> None:
    stamps = pd.date_range(end="2023-10-31", periods=60, freq="ME")
    found = plain(made(subject).fit(converted(D().assign(ds=stamps), library), freq="ME").predict())
    assert found.ds.astype(str).tolist() == ["2023-11-30", "2023-12-31", "2024-01-31", "2024-02-29", "2024-03-31"]


HOLIDAYS = ["2024-03-25", "2024-03-29", "2024-04-01"]


@pytest.mark.parametrize(
    "freq",
    ["QE-NOV", "YS-APR", "W-WED", "B", pd.offsets.CustomBusinessDay(holidays=HOLIDAYS), "2h", "15min", "MS"],
    ids=["QE-NOV", "YS-APR", "W-WED", "B", "C", "2h", "15min", "MS"],
)
@pytest.mark.parametrize("library", LIBRARIES)
def test_frequencies(freq: Any, library: str) -> None:
    stamps = pd.date_range("2024-01-01", periods=65, freq=freq)
    found = plain(sn().fit(converted(D().assign(ds=stamps[:60]), library), freq=freq).predict())
    assert found.ds.tolist() == stamps[60:].tolist()


@KINDS
def test_month_ends_with_month_start_freq(subject: Subject) -> None:
    refused(made(subject), D("A", 60, "ME"), "freq", "'ME'", "A", "2024-01-31", freq="MS")


@KINDS
def test_wednesdays_with_sunday_freq(subject: Subject) -> None:
    refused(made(subject), D("A", 60, "W-WED"), "freq", "'W-WED'", freq="W")


@KINDS
@pytest.mark.parametrize(("own", "said"), [("D", "h"), ("h", "D")])
def test_daily_and_hourly_freq_confused(subject: Subject, own: str, said: str) -> None:
    refused(made(subject), D("A", 60, own), "freq", f"'{own}'", "A", freq=said)


@KINDS
def test_every_second_day_with_daily_freq(subject: Subject) -> None:
    refused(made(subject), D("A", 60, "2D"), "freq", "'2D'", "A", freq="D")


@KINDS
def test_gap(subject: Subject) -> None:
    k7(subject, D().drop(index=30), 5, "A", "2024-01-31", "y")


@KINDS
def test_gap_in_one_series_of_many(subject: Subject) -> None:
    frame = P(150, 40)
    k7(
        subject,
        frame.drop(index=frame.index[(frame.unique_id == "s120") & (frame.ds == "2024-01-20")]),
        750,
        "s120",
        "2024-01-20",
    )


@KINDS
def test_gap_before_the_last_row(subject: Subject) -> None:
    k7(subject, D().drop(index=58), 5, "A", "2024-02-28")


@pytest.mark.parametrize("freq", ["X", "", 0, -1, 1.5, "-1D", "0D", True, pd.DateOffset(months=1), "bh", "SME"], ids=repr)
def test_invalid_freq(freq: Any) -> None:
    refused(sn(), D(), "freq", error=ParameterError, freq=freq)


def test_freq_that_cannot_be_inferred() -> None:
    stamps = pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-09", "2024-01-13", "2024-02-20", "2024-02-28", "2024-03-15"])
    refused(sn(), D("A", 7).assign(ds=stamps), "freq", "2024-01-01, 2024-01-02, 2024-01-09", freq=None)


SPELLINGS = [
    ("M", "ME"),
    ("H", "h"),
    ("T", "min"),
    ("Q", "QE"),
    ("Y", "YE"),
    ("A", "YE"),
    ("1mo", "MS"),
    ("1mo", "ME"),
    ("1d", "D"),
    ("BM", "BME"),
    ("AS", "YS"),
    ("Q-NOV", "QE-NOV"),
    ("S", "s"),
    ("L", "ms"),
    ("U", "us"),
    ("1w", "W-THU"),
    ("1q", "QS-FEB"),
    ("1y", "YE-MAR"),
    ("1h30min", "90min"),
    (pd.Timedelta(days=1), "D"),
    (np.timedelta64(2, "h"), "2h"),
    (datetime.timedelta(minutes=15), "15min"),
    (pd.offsets.Week(), "W-TUE"),
    (pd.offsets.MonthEnd(2), "2ME"),
    (pd.offsets.Day(), "D"),
]


@pytest.mark.parametrize(("said", "wanted"), SPELLINGS, ids=[f"{said}={wanted}" for said, wanted in SPELLINGS])
def test_spellings_of_freq(said: Any, wanted: str) -> None:
    stamps = pd.date_range("2024-01-01", periods=65, freq=wanted)
    assert forecast(sn(), D().assign(ds=stamps[:60]), freq=said).ds.tolist() == stamps[60:].tolist()


def test_business_days_beside_days_are_refused() -> None:
    mixed = joined(D("a", 40), D("b", 30, "B"))
    with pytest.raises(DataError, match=r"series b, .* looks like freq='B'"):
        Naive(horizon=3, missing="ffill").fit(mixed)


def test_zones_of_zoneinfo_are_those_of_their_name() -> None:
    frame = D("a", 30)
    zoned = frame.assign(ds=frame.ds.dt.tz_localize(zoneinfo.ZoneInfo("America/New_York")))
    named = frame.assign(ds=frame.ds.dt.tz_localize("America/New_York"))
    found, wanted = (Naive(horizon=3).fit(one).predict() for one in (zoned, named))
    assert found.ds.tolist() == wanted.ds.tolist()
