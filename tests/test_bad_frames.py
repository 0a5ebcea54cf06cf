"""RELIABILITY 2a and the rows on covariates of 2c: exact inputs and required outcomes, for every model there is."""

from __future__ import annotations

import copy
import datetime
import decimal
import time
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import pytest

from deepforecast import SeasonalNaive, load
from deepforecast.core import params, registry
from deepforecast.core.forecaster import Forecaster
from deepforecast.data.leaks import leak
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, ParameterError
from deepforecast.testing.expect import heard
from deepforecast.testing.subject import Subject, subjects
from tests.frames import LIBRARIES, D, P, converted, joined, plain, same
from tests.helpers_models import FutureRegression, PooledRegression

ALL = pytest.mark.parametrize("subject", subjects(), ids=repr)
LOCAL = pytest.mark.parametrize("subject", [one for one in subjects() if one.capabilities.local], ids=repr)


def sn(h: int = 5) -> SeasonalNaive:
    return SeasonalNaive(h, season_length=7)


def made(subject: Subject, h: int = 5) -> Forecaster:
    return weekly(subject.make(horizon=h))


def weekly(model: Forecaster) -> Forecaster:
    """The model with a week where it would look for a season, and so the models in it."""
    changed: dict[str, Any] = {}
    for name, one in params.declared(type(model)).items():
        value = getattr(model, name)
        if isinstance(value, Forecaster):
            changed[name] = weekly(value)
        elif value == "auto" and one.at_least == 1:
            changed[name] = 7
    return model.clone(**changed)


def forecast(model: Any, frame: Any, **fit: Any) -> pd.DataFrame:
    return plain(model.fit(frame, **fit).predict())


def refused(model: Any, frame: Any, *words: str, error: type[Exception] = DataError, **fit: Any) -> str:
    """`fit` refuses, and the message holds every one of the words."""
    with pytest.raises(error) as caught:
        model.fit(frame, **fit)
    text = str(caught.value)
    assert [word for word in words if word not in text] == [], text
    return text


def k7(subject: Subject, frame: pd.DataFrame, rows: int, *words: str) -> None:
    """Missing values: forecast through them and say so once, or refuse with the series, the stamp and the way out."""
    model = made(subject)
    if not model.capabilities.missing:
        refused(model, frame, *words, "missing=")
    else:
        with heard() as said:
            found = forecast(model, frame)
        assert len(found) == rows
        assert np.isfinite(found[model.name]).all()
        assert len(said) == 1
        assert all(word in said[0] for word in words), said
    for method in ("interpolate", "ffill", "zero"):
        found = forecast(made(subject).set_params(missing=method), frame)
        assert len(found) == rows
        assert np.isfinite(found.iloc[:, -1]).all()


# -- columns and containers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ds", "y"])
def test_B001_missing_column(name: str) -> None:
    refused(sn(), D().drop(columns=name), name, "unique_id")


def test_B001_missing_id_and_repeated_stamps() -> None:
    refused(sn(), P(2, 40).drop(columns="unique_id"), "unique_id", "2024-01-01")


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])  # polars cannot hold such a frame
def test_B002_column_twice(library: str) -> None:
    frame: Any = pd.concat([D(), D()[["y"]]], axis=1)
    if library == "pyarrow":
        table = converted(D(), "pyarrow")
        frame = table.append_column("y", table["y"])
    refused(sn(), frame, "y", "unique")


@ALL
@pytest.mark.parametrize("library", LIBRARIES)
def test_B003_no_rows(subject: Subject, library: str) -> None:
    refused(made(subject), converted(D().iloc[:0], library), "empty")


@pytest.mark.parametrize("thing", [[{"ds": 1}], {"ds": [1]}, np.zeros((3, 3)), None], ids=["list", "dict", "array", "None"])
def test_B004_no_frame(thing: Any) -> None:
    refused(sn(), thing, "DataFrame", type(thing).__name__)


def test_B004_lazy_frame_says_collect() -> None:
    refused(sn(), converted(D(), "polars").lazy(), "DataFrame", "collect")


def test_B004_series_with_a_datetime_index() -> None:
    frame = D()
    found = forecast(sn(), pd.Series(frame.y.to_numpy(), index=pd.DatetimeIndex(frame.ds)))
    assert list(found.columns) == ["ds", "SeasonalNaive"]
    same(found, forecast(sn(), frame)[["ds", "SeasonalNaive"]])
    refused(sn(), frame.y, "DatetimeIndex", "RangeIndex")


@ALL
@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_B005_other_libraries(subject: Subject, library: str) -> None:
    frame = P(3, 60)
    found = made(subject).fit(converted(frame, library)).predict()
    assert nw.from_native(found).implementation.value == library
    same(found, forecast(made(subject), frame), types=False)


@ALL
def test_B005_arrow_dtypes_of_pandas(subject: Subject) -> None:
    frame = P(3, 60)
    arrow = frame.convert_dtypes(dtype_backend="pyarrow")
    found = forecast(made(subject), arrow)
    assert found.dtypes.iloc[:2].astype(str).tolist() == arrow.dtypes.iloc[:2].astype(str).tolist()
    wanted = forecast(made(subject), frame)
    assert found.unique_id.tolist() == wanted.unique_id.tolist()
    assert found.ds.tolist() == wanted.ds.tolist()
    np.testing.assert_array_equal(found.iloc[:, 2:].to_numpy(float), wanted.iloc[:, 2:].to_numpy(float))


@pytest.mark.parametrize("library", LIBRARIES)
def test_B006_other_names(library: str) -> None:
    frame = converted(D().rename(columns={"unique_id": "id", "ds": "date", "y": "value"}), library)
    refused(sn(), frame, "unique_id", "id", "date", "value", "columns=")
    found = forecast(sn(), frame, columns={"id": "id", "time": "date", "target": "value"})
    assert list(found.columns) == ["id", "date", "SeasonalNaive"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_B006_other_dialect(library: str) -> None:
    frame = converted(D().rename(columns={"unique_id": "item_id", "ds": "timestamp", "y": "target"}), library)
    assert list(forecast(sn(), frame).columns) == ["item_id", "timestamp", "SeasonalNaive"]


# -- duplicates and order ------------------------------------------------------------------------------------------------------


@ALL
@pytest.mark.parametrize("y", [None, 999.0], ids=["B007", "B008"])
def test_B007_B008_duplicate(subject: Subject, y: float | None) -> None:
    row = D().iloc[[30]]
    refused(made(subject), joined(D(), row if y is None else row.assign(y=y)), "A", "2024-01-31")


@pytest.mark.parametrize("library", LIBRARIES)
def test_B009_duplicate_in_one_of_many(library: str) -> None:
    frame = P(150, 30)
    row = frame[frame.unique_id == "s131"].iloc[[7]]
    refused(sn(), converted(joined(frame, row), library), "s131", "2024-01-08")


def test_B010_duplicates_in_nine_series() -> None:
    frame = P(20, 30)
    rows = frame[frame.unique_id.isin([f"s{i:03d}" for i in range(3, 12)])].groupby("unique_id").head(1)
    text = refused(sn(), joined(frame, rows), "s003, s004, s005, s006, s007", "9")
    assert "s008" not in text


@ALL
@pytest.mark.parametrize("order", ["reversed", "shuffled"])
def test_B011_row_order(subject: Subject, order: str) -> None:
    frame = D()
    moved = frame.iloc[::-1] if order == "reversed" else frame.sample(frac=1, random_state=0)
    same(forecast(made(subject), moved), forecast(made(subject), frame))


@ALL
@pytest.mark.parametrize("library", LIBRARIES)
def test_B012_interleaved(subject: Subject, library: str) -> None:
    frame = P(3, 60)
    wanted = forecast(made(subject), converted(frame, library))
    same(forecast(made(subject), converted(frame.sort_values("ds", kind="stable"), library)), wanted)


@ALL
@pytest.mark.parametrize("index", ["zeros", "ds", "multi"])
def test_B013_index(subject: Subject, index: str) -> None:
    frame = P(2, 60)
    wanted = forecast(made(subject), frame)
    if index == "zeros":
        frame.index = pd.Index(np.zeros(len(frame), dtype=int))
    elif index == "ds":
        frame.index = pd.Index(range(len(frame)), name="ds")
    else:
        frame.index = pd.MultiIndex.from_product([["a", "b"], range(60)], names=["unique_id", "ds"])
    same(forecast(made(subject), frame), wanted)


@ALL
def test_B014_column_order(subject: Subject) -> None:
    same(forecast(made(subject), P(2, 60)[["y", "ds", "unique_id"]]), forecast(made(subject), P(2, 60)))


@ALL
@pytest.mark.parametrize(("name", "value"), [("note", "x"), ("price", 1.5)], ids=["B015", "B016"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_B015_B016_undeclared_column(subject: Subject, name: str, value: Any, library: str) -> None:
    with heard() as said:
        found = made(subject).fit(converted(D().assign(**{name: value}), library)).predict()
    assert len(said) == 1
    assert name in said[0]
    same(found, made(subject).fit(converted(D(), library)).predict())


@ALL
def test_B017_read_only_and_slice(subject: Subject) -> None:
    whole = P(3, 60)
    part = whole[whole.unique_id != "s002"]
    wanted = forecast(made(subject), part.copy())
    same(forecast(made(subject), part), wanted)
    y, stamps = part.y.to_numpy().copy(), part.ds.to_numpy().copy()
    y.flags.writeable = stamps.flags.writeable = False
    frozen = pd.DataFrame({"unique_id": part.unique_id.to_numpy(), "ds": stamps, "y": y}, copy=False)
    same(forecast(made(subject), frozen), wanted)


@ALL
def test_B018_frame_untouched(subject: Subject) -> None:
    from deepforecast import cross_validate

    frame = P(3, 80).sample(frac=1, random_state=1)
    frame.attrs = {"source": ["a"]}
    kept = copy.deepcopy(frame)
    made(subject).fit(frame).predict(frame=frame)
    cross_validate([made(subject)], frame, n_windows=2)
    pd.testing.assert_frame_equal(frame, kept)
    assert frame.attrs == kept.attrs
    assert frame.index.equals(kept.index)


# -- ids -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("rows", [[17], list(range(60))], ids=["one", "all"])
def test_B019_missing_id(rows: list[int], library: str) -> None:
    frame = D().astype({"unique_id": object})
    frame.loc[rows, "unique_id"] = None
    table = converted(frame, library)
    if len(rows) == 60 and library != "pandas":
        import pyarrow as pa

        ids = pa.array([None] * 60, type=pa.string())
        table = converted(frame.drop(columns="unique_id"), "pyarrow").append_column("unique_id", ids)
        table = table if library == "pyarrow" else __import__("polars").DataFrame(table)
    refused(sn(), table, "unique_id", f"row {rows[0]}")


def test_B020_ids_of_two_types() -> None:
    frame = joined(D().assign(unique_id=1), D().assign(unique_id="1"))
    refused(sn(), frame, "unique_id", "int, str")
    refused(sn(), frame.astype({"unique_id": "category"}), "unique_id", "int, str")


@ALL
@pytest.mark.parametrize("dtype", ["int64", "int8", "uint16", "Int64", "int32[pyarrow]"])
def test_B021_integer_ids(subject: Subject, dtype: str) -> None:
    frame = joined(*(D().assign(unique_id=number, y=D().y + number) for number in (30, 4, 100))).astype({"unique_id": dtype})
    found = forecast(made(subject), frame)
    assert str(found.unique_id.dtype) == dtype
    assert found.unique_id.drop_duplicates().tolist() == [4, 30, 100]
    text = forecast(made(subject), frame.assign(unique_id=frame.unique_id.map({30: "b", 4: "a", 100: "c"}).astype(str)))
    np.testing.assert_array_equal(found.iloc[:, 2], text.iloc[:, 2])


@ALL
def test_B022_categorical_ids(subject: Subject) -> None:
    frame = P(3, 60)
    text = forecast(made(subject), frame)
    kind = pd.CategoricalDtype(["zz", "s003", "s002", "s001", "aa"])
    found = forecast(made(subject), frame.astype({"unique_id": kind}))
    assert found.unique_id.dtype == kind
    same(found.astype({"unique_id": text.unique_id.dtype}), text)


def test_B022_categorical_ids_of_other_libraries() -> None:
    import polars as pl
    import pyarrow as pa

    frame = P(3, 60)
    wanted = forecast(sn(), frame)
    table = converted(frame, "pyarrow")
    encoded = table.set_column(0, "unique_id", table["unique_id"].combine_chunks().dictionary_encode())
    in_chunks = pa.concat_tables([encoded.slice(60), encoded.slice(0, 60)])
    enum = converted(frame, "polars").with_columns(pl.col("unique_id").cast(pl.Enum(["q", "s003", "s002", "s001"])))
    plain_kind = converted(frame, "polars").with_columns(pl.col("unique_id").cast(pl.Categorical))
    for given in (encoded, in_chunks, enum, plain_kind):
        found = sn().fit(given).predict()
        assert nw.from_native(found).schema["unique_id"] == nw.from_native(given).schema["unique_id"]
        assert plain(found).unique_id.astype(str).tolist() == wanted.unique_id.tolist()
        np.testing.assert_array_equal(plain(found).SeasonalNaive, wanted.SeasonalNaive)


@pytest.mark.parametrize("library", LIBRARIES)
def test_B023_odd_ids(library: str, tmp_path: Any) -> None:
    odd = ["", " a", "a", "A", "日本", "a/b", "..", "x" * 300, "a\x00b", "a\x00c"]
    frame = joined(*(D(one).assign(y=D().y + 10 * number) for number, one in enumerate(odd)))
    model = sn().fit(converted(frame, library))
    found = model.predict()
    assert plain(found).unique_id.tolist() == [one for one in sorted(odd) for _ in range(5)]
    for number, one in enumerate(odd):
        alone = forecast(sn(), D().assign(y=D().y + 10 * number))
        np.testing.assert_array_equal(plain(found).SeasonalNaive[plain(found).unique_id == one], alone.SeasonalNaive)
    model.save(tmp_path / "model")
    same(load(tmp_path / "model").predict(), found)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("one", [("a", 1), 1.5, True, datetime.date(2024, 1, 1), b"a"], ids=repr)
def test_B024_unusual_ids(one: Any) -> None:
    refused(sn(), D().assign(unique_id=pd.Series([one] * 60)), "unique_id")


@pytest.mark.parametrize("freq", [None, "D"])
def test_B025_a_thousand_points(freq: Any) -> None:
    frame = pd.DataFrame({"unique_id": [f"s{i}" for i in range(1000)], "ds": pd.Timestamp("2024-01-01"), "y": 1.0})
    before = time.perf_counter()
    refused(sn(), frame, "at least", "1000", "s0, s1", freq=freq)
    assert time.perf_counter() - before < 2


# -- stamps --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", LIBRARIES)
def test_B026_iso_text(library: str) -> None:
    frame = D()
    text = frame.assign(ds=frame.ds.dt.strftime("%Y-%m-%d"))
    same(forecast(sn(), converted(text, library)), forecast(sn(), frame), types=False)


@pytest.mark.parametrize("library", LIBRARIES)
def test_B027_ambiguous_text(library: str) -> None:
    frame = D("A", 12).assign(ds=[f"{day:02d}/01/2024" for day in range(1, 13)])
    refused(sn(), converted(frame, library), "ds", "01/01/2024")


@pytest.mark.parametrize("text", ["yesterday", "2024-02-30", "2024-13-01", "20240101", "2024-01-01\n"])
def test_B028_other_text(text: str) -> None:
    frame = D()
    texts = frame.ds.astype(str).to_numpy(object)
    texts[20] = text
    refused(sn(), frame.assign(ds=texts), "ds", text.strip())


@pytest.mark.parametrize("library", LIBRARIES)
def test_B029_float_stamps(library: str) -> None:
    refused(sn(), converted(D().assign(ds=np.arange(60.0)), library), "ds", "ouble" if library == "pyarrow" else "loat64")


@ALL
@pytest.mark.parametrize("library", LIBRARIES)
def test_B030_integers(subject: Subject, library: str) -> None:
    found = made(subject).fit(converted(D().assign(ds=np.arange(60)), library), freq=1).predict()
    assert plain(found).ds.tolist() == [60, 61, 62, 63, 64]
    assert nw.from_native(found).schema["ds"] == nw.Int64


@ALL
@pytest.mark.parametrize("freq", [5, np.int32(5), None])
def test_B031_integers_by_five(subject: Subject, freq: Any) -> None:
    found = forecast(made(subject), D().assign(ds=1000 + 5 * np.arange(60)), freq=freq)
    assert found.ds.tolist() == [1300, 1305, 1310, 1315, 1320]


@pytest.mark.parametrize(("stamps", "freq"), [("integers", "D"), ("dates", 1)])
def test_B032_freq_of_another_kind(stamps: str, freq: Any) -> None:
    refused(sn(), D().assign(ds=np.arange(60)) if stamps == "integers" else D(), "ds", "freq", freq=freq)


@ALL
@pytest.mark.parametrize("library", LIBRARIES)
def test_B033_missing_stamp(subject: Subject, library: str) -> None:
    frame = D()
    frame.loc[10, "ds"] = pd.NaT
    refused(made(subject), converted(frame, library), "ds", "A", "row 10")


@ALL
@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_B034_units(subject: Subject, unit: str) -> None:
    frame = D()
    found = forecast(made(subject), frame.astype({"ds": f"datetime64[{unit}]"}))
    wanted = forecast(made(subject), frame.astype({"ds": "datetime64[ns]"}))
    assert str(found.ds.dtype) == f"datetime64[{unit}]"
    assert str(wanted.ds.dtype) == "datetime64[ns]"
    same(found.astype({"ds": "datetime64[ns]"}), wanted)


def test_B035_date_objects_and_periods() -> None:
    frame = D()
    refused(sn(), frame.assign(ds=frame.ds.dt.date), "ds", "date", "pandas.to_datetime")
    refused(sn(), frame.assign(ds=frame.ds.dt.to_period("D")), "ds", "period[D]", "to_timestamp")


def test_B035_dates_of_arrow_and_polars() -> None:
    import polars as pl
    import pyarrow as pa

    wanted = forecast(sn(), D())
    table = converted(D(), "pyarrow")
    dates = table.set_column(1, "ds", table["ds"].cast(pa.date32()))
    pandas = D().assign(ds=pd.Series(D().ds.dt.date, dtype=pd.ArrowDtype(pa.date32())))
    for frame in (dates, pl.DataFrame(dates), pandas):
        found = sn().fit(frame).predict()
        assert nw.from_native(found).schema["ds"] == nw.Date
        assert pd.to_datetime(plain(found).ds).tolist() == wanted.ds.tolist()


@pytest.mark.parametrize("freq", ["D", "W", "ME", "B"])
def test_B036_the_end_of_time(freq: str) -> None:
    frame = D("A", 60)
    frame["ds"] = pd.date_range(end="2262-04-09", periods=60, freq=freq).astype("datetime64[ns]")
    model = sn(7).fit(frame)
    with pytest.raises(DataError, match=r"datetime64\[ns\].*horizon"):
        model.predict()
    coarse = forecast(sn(7), frame.astype({"ds": "datetime64[s]"}))
    assert (coarse.ds > pd.Timestamp("2262-04-09").as_unit("s")).all()


def test_B036_the_end_of_a_small_integer() -> None:
    frame = D().assign(ds=np.arange(65, 125).astype("int8"))
    model = sn(3).fit(frame)
    assert forecast(sn(3), frame).ds.dtype == np.int8
    with pytest.raises(DataError, match="int8"):
        model.predict(4)


@pytest.mark.parametrize("freq", ["D", "MS", "B", "W-WED", "h", None])
def test_B037_long_ago(freq: Any) -> None:
    stamps = pd.date_range("1600-01-01", periods=66, freq=freq or "D", unit="s")
    frame = D().assign(ds=stamps[:60])
    assert str(frame.ds.dtype) == "datetime64[s]"
    assert forecast(sn(), frame, freq=freq).ds.tolist() == stamps[60:65].tolist()


@ALL
@pytest.mark.parametrize("freq", ["D", None])
def test_B038_days_over_a_change_of_clocks(subject: Subject, freq: Any) -> None:
    stamps = pd.date_range("2024-02-20", "2024-04-07", freq="D", tz="Europe/Berlin")
    frame = D("A", 36).assign(ds=stamps[:36])
    found = forecast(made(subject, 12), frame, freq=freq)
    assert found.ds.dtype == stamps.dtype
    assert found.ds.tolist() == stamps[36:].tolist()


@pytest.mark.parametrize("library", LIBRARIES)
def test_B039_hours_over_the_end_of_summer_time(library: str) -> None:
    stamps = pd.date_range(end="2024-11-02 23:00", periods=60, freq="h", tz="America/New_York")
    found = sn(6).fit(converted(D().assign(ds=stamps), library)).predict()
    clock = pd.DatetimeIndex(plain(found).ds)
    assert str(clock.tz) == "America/New_York"
    assert [stamp.hour for stamp in clock] == [0, 1, 1, 2, 3, 4]
    assert set(np.diff(clock.asi8)) == {np.diff(stamps.as_unit(clock.unit).asi8)[0]}


def test_B040_hours_over_the_start_of_summer_time() -> None:
    stamps = pd.date_range(end="2024-03-31 01:00", periods=60, freq="h", tz="Europe/Berlin")
    found = forecast(sn(), D().assign(ds=stamps))
    assert found.ds[0] == pd.Timestamp("2024-03-31 03:00", tz="Europe/Berlin")


def test_B041_zones_differ() -> None:
    frames = [D(name, tz=zone).astype({"ds": object}) for name, zone in (("A", "Europe/Berlin"), ("B", "Asia/Tokyo"))]
    refused(sn(), joined(*frames), "ds", "time zone")


def test_B042_naive_future_frame() -> None:
    frame = D(tz="Europe/Berlin").assign(promo=1.0)
    model = FutureRegression(5).fit(frame, columns={"future": "promo"})
    future = model.future_frame().assign(promo=1.0)
    with pytest.raises(DataError, match=r"ds.*tz"):
        model.predict(future=future.assign(ds=future.ds.dt.tz_localize(None)))
    same(model.predict(future=future.assign(ds=future.ds.dt.tz_convert("UTC"))), model.predict(future=future))


# -- frequencies ---------------------------------------------------------------------------------------------------------------


@ALL
@pytest.mark.parametrize("library", LIBRARIES)
def test_B043_month_ends_in_a_leap_year(subject: Subject, library: str) -> None:
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
def test_B044_frequencies(freq: Any, library: str) -> None:
    stamps = pd.date_range("2024-01-01", periods=65, freq=freq)
    found = plain(sn().fit(converted(D().assign(ds=stamps[:60]), library), freq=freq).predict())
    assert found.ds.tolist() == stamps[60:].tolist()


@ALL
def test_B045_month_ends_as_month_starts(subject: Subject) -> None:
    refused(made(subject), D("A", 60, "ME"), "freq", "'ME'", "A", "2024-01-31", freq="MS")


@ALL
def test_B046_wednesdays_as_sundays(subject: Subject) -> None:
    refused(made(subject), D("A", 60, "W-WED"), "freq", "'W-WED'", freq="W")


@ALL
@pytest.mark.parametrize(("own", "said"), [("D", "h"), ("h", "D")])
def test_B047_days_and_hours(subject: Subject, own: str, said: str) -> None:
    refused(made(subject), D("A", 60, own), "freq", f"'{own}'", "A", freq=said)


@ALL
def test_B048_every_second_day(subject: Subject) -> None:
    refused(made(subject), D("A", 60, "2D"), "freq", "'2D'", "A", freq="D")


@ALL
def test_B049_gap(subject: Subject) -> None:
    k7(subject, D().drop(index=30), 5, "A", "2024-01-31", "y")


@ALL
def test_B050_gap_in_one_of_many(subject: Subject) -> None:
    frame = P(150, 40)
    k7(subject, frame.drop(index=frame.index[(frame.unique_id == "s120") & (frame.ds == "2024-01-20")]), 750, "s120", "2024-01-20")


@ALL
def test_B051_gap_before_the_last_row(subject: Subject) -> None:
    k7(subject, D().drop(index=58), 5, "A", "2024-02-28")


@pytest.mark.parametrize("freq", ["X", "", 0, -1, 1.5, "-1D", "0D", True, pd.DateOffset(months=1), "bh", "SME"], ids=repr)
def test_B052_no_frequency(freq: Any) -> None:
    refused(sn(), D(), "freq", error=ParameterError, freq=freq)


def test_B052_none_where_it_cannot_be_told() -> None:
    stamps = pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-09", "2024-01-13", "2024-02-20", "2024-02-28", "2024-03-15"])
    refused(sn(), D("A", 7).assign(ds=stamps), "freq", "2024-01-01, 2024-01-02, 2024-01-09", freq=None)


SPELLINGS = [
    ("M", "ME"), ("H", "h"), ("T", "min"), ("Q", "QE"), ("Y", "YE"), ("A", "YE"), ("1mo", "MS"), ("1mo", "ME"), ("1d", "D"),
    ("BM", "BME"), ("AS", "YS"), ("Q-NOV", "QE-NOV"), ("S", "s"), ("L", "ms"), ("U", "us"), ("1w", "W-THU"), ("1q", "QS-FEB"),
    ("1y", "YE-MAR"), ("1h30min", "90min"), (pd.Timedelta(days=1), "D"), (np.timedelta64(2, "h"), "2h"),
    (datetime.timedelta(minutes=15), "15min"), (pd.offsets.Week(), "W-TUE"), (pd.offsets.MonthEnd(2), "2ME"), (pd.offsets.Day(), "D"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "wanted"), SPELLINGS, ids=[f"{said}={wanted}" for said, wanted in SPELLINGS])
def test_B053_spellings(said: Any, wanted: str) -> None:
    stamps = pd.date_range("2024-01-01", periods=65, freq=wanted)
    assert forecast(sn(), D().assign(ds=stamps[:60]), freq=said).ds.tolist() == stamps[60:].tolist()


# -- ragged panels and missing values ------------------------------------------------------------------------------------------


@ALL
def test_B054_own_ends(subject: Subject) -> None:
    found = forecast(made(subject), joined(D("A"), D("B", 51)))
    assert found.ds[found.unique_id == "A"].tolist() == pd.date_range("2024-03-01", periods=5).tolist()
    assert found.ds[found.unique_id == "B"].tolist() == pd.date_range("2024-02-21", periods=5).tolist()


@ALL
def test_B055_long_and_short(subject: Subject) -> None:
    short = D("B").assign(y=D().y + 40)
    found = forecast(made(subject), joined(D("A", 400), short))
    assert len(found) == 10
    if made(subject).capabilities.local:
        same(found[found.unique_id == "B"].reset_index(drop=True), forecast(made(subject), short))


@ALL
@pytest.mark.parametrize("library", LIBRARIES)
def test_B056_nothing_but_missing(subject: Subject, library: str) -> None:
    frame = joined(D("A").assign(y=np.nan), D("B"))
    refused(made(subject), converted(frame, library), "y", "series A")
    refused(made(subject).set_params(missing="zero"), converted(frame, library), "y", "series A")


@ALL
@pytest.mark.parametrize("row", [0, 30, 59])
def test_B057_missing_value(subject: Subject, row: int) -> None:
    frame = D()
    frame.loc[row, "y"] = np.nan
    k7(subject, frame, 5, "y", "A", str(frame.ds[row].date()))
    model = made(subject).set_params(missing="ffill")
    assert forecast(model, frame).ds.tolist() == pd.date_range("2024-03-01", periods=5).tolist()


@ALL
@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("library", LIBRARIES)
def test_B058_infinite(subject: Subject, value: float, library: str) -> None:
    frame = D()
    frame.loc[7, "y"] = value
    refused(made(subject), converted(frame, library), "y", "A", "2024-01-08")


@ALL
def test_B059_pandas_na(subject: Subject) -> None:
    frame = D()
    frame.loc[20, "y"] = np.nan
    nullable = frame.assign(y=frame.y.astype("Float64"))
    assert nullable.y[20] is pd.NA
    with heard():
        same(forecast(made(subject).set_params(missing="ffill"), nullable), forecast(made(subject).set_params(missing="ffill"), frame))
    k7(subject, nullable, 5, "y", "A", "2024-01-21")


TEXTS = [["1.5"] * 60, ["1,5"] * 60, np.arange(60.0).astype(object), [decimal.Decimal(1)] * 60, [None] * 60]


@pytest.mark.parametrize("y", TEXTS, ids=["text", "comma", "objects", "Decimal", "None"])
def test_B060_no_numbers(y: Any) -> None:
    refused(sn(), D().assign(y=y), "y", "dtype")


def test_B060_no_numbers_in_other_libraries() -> None:
    import polars as pl
    import pyarrow as pa

    table = converted(D().drop(columns="y"), "pyarrow")
    for values in (pa.array(["1.5"] * 60), pa.array([decimal.Decimal("1.5")] * 60), pa.array([None] * 60), pa.array([True] * 60)):
        refused(sn(), table.append_column("y", values), "y", "dtype")
        refused(sn(), pl.DataFrame(table.append_column("y", values)), "y", "dtype")


OTHERS = {"bool": True, "complex": 1 + 2j, "timedelta": pd.Timedelta(days=1)}


@pytest.mark.parametrize("name", [*OTHERS, "category"])
def test_B061_other_dtypes(name: str) -> None:
    frame = D().assign(y=OTHERS[name] if name in OTHERS else pd.Categorical(np.arange(60) % 3))
    refused(sn(), frame, "y", "dtype", name)


@ALL
@pytest.mark.parametrize("dtype", ["int64", "int8", "uint8", "Int64", "float32", "float16", "Float64", "int16[pyarrow]", "double[pyarrow]"])
def test_B062_numeric_dtypes(subject: Subject, dtype: str) -> None:
    frame = D().assign(y=np.round(D().y))
    same(forecast(made(subject), frame.astype({"y": dtype})), forecast(made(subject), frame))


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("value", [2**53 + 1, -(2**53) - 1])
def test_B063_not_exact_in_float64(value: int, library: str) -> None:
    y = np.arange(60)
    y[5] = value
    refused(sn(), converted(D().assign(y=y), library), "y", str(value))


# -- covariates known ahead ----------------------------------------------------------------------------------------------------


def promoted(k: int = 3, n: int = 60) -> pd.DataFrame:
    """P(k, n) with a column known ahead whose effect is 7."""
    frame = P(k, n)
    promo = (frame.groupby("unique_id").cumcount() % 5 == 0).astype(float)
    return frame.assign(y=100 + 7 * promo + 10 * frame.unique_id.str[1:].astype(int), promo=promo)


def with_future(library: str = "pandas", h: int = 5) -> tuple[FutureRegression, pd.DataFrame]:
    """A fitted model and its future frame (in pandas)."""
    model = FutureRegression(h).fit(converted(promoted(), library), columns={"future": ["promo"]})
    future = plain(model.future_frame())
    return model, future.assign(promo=(np.arange(len(future)) % 2).astype(float))


def test_covariate_known_ahead_is_used() -> None:
    model, future = with_future()
    found = model.predict(future=future)
    wanted = 100 + 7 * future.promo + 10 * future.unique_id.str[1:].astype(int)
    np.testing.assert_allclose(found.FutureRegression, wanted, rtol=1e-9)


def test_B101_future_omitted() -> None:
    with pytest.raises(DataError, match=r"future=.*promo.*future_frame"):
        with_future()[0].predict()


@pytest.mark.parametrize("library", LIBRARIES)
def test_B102_column_missing_ahead(library: str) -> None:
    model, future = with_future(library)
    with pytest.raises(DataError, match=r"future frame.*lacks promo"):
        model.predict(future=converted(future.drop(columns="promo"), library))


@pytest.mark.parametrize("library", LIBRARIES)
def test_B103_row_missing_ahead(library: str) -> None:
    model, future = with_future(library)
    without = future.drop(index=future.index[future.unique_id == "s002"][2])
    with pytest.raises(DataError, match=r"1 are missing.*s002.*2024-03-03.*future_frame"):
        model.predict(future=converted(without.reset_index(drop=True), library))
    whole = future[future.unique_id != "s003"].reset_index(drop=True)
    with pytest.raises(DataError, match=r"5 are missing.*s003.*2024-03-01"):
        model.predict(future=converted(whole, library))


@pytest.mark.parametrize("value", [np.nan, np.inf, "much"])
def test_B104_bad_value_ahead(value: Any) -> None:
    model, future = with_future()
    future = future.astype({"promo": object}) if value == "much" else future
    future.loc[future.index[future.unique_id == "s002"][1], "promo"] = value
    with pytest.raises(DataError, match=r"(?s)s00[12].*promo|promo.*s002.*2024-03-02"):
        model.predict(future=future)


@pytest.mark.parametrize("library", LIBRARIES)
def test_B105_future_in_any_order(library: str) -> None:
    model, future = with_future(library)
    wanted = model.predict(future=converted(future, library))
    shuffled = future.sample(frac=1, random_state=2)
    shuffled.index = pd.Index(np.zeros(len(shuffled), dtype=int))
    same(model.predict(future=converted(shuffled, library)), wanted)


def test_B106_rows_that_are_not_needed() -> None:
    model, future = with_future()
    wanted = model.predict(future=future)
    beyond = future.assign(ds=future.ds + pd.Timedelta(days=5), promo=np.nan)
    before = future.assign(ds=future.ds - pd.Timedelta(days=5), promo=np.inf)
    others = future.assign(unique_id="zz", ds=future.ds + pd.Timedelta(hours=5) * np.arange(len(future)), promo=np.nan)
    same(model.predict(future=joined(others, beyond, future, before)), wanted)
    same(model.predict(3, future=future), wanted.groupby("unique_id").head(3).reset_index(drop=True))


def test_B107_doubled_row_ahead() -> None:
    model, future = with_future()
    with pytest.raises(DataError, match=r"future frame.*s001.*2024-03-02"):
        model.predict(future=joined(future, future.iloc[[1]]))


def test_B108_target_ahead_is_ignored() -> None:
    model, future = with_future()
    same(model.predict(future=future.assign(y=1e6)), model.predict(future=future))


@ALL
def test_B109_future_for_a_model_without(subject: Subject) -> None:
    model = made(subject).fit(P(2, 60))
    with heard() as said:
        found = model.predict(future=D().assign(promo=1.0))
    assert len(said) == 1
    assert "future" in said[0]
    same(found, model.predict())


def test_B110_constant_covariate() -> None:
    frame = promoted().assign(promo=1.0)
    model = FutureRegression(5).fit(frame, columns={"future": "promo"})
    found = model.predict(future=model.future_frame().assign(promo=1.0))
    np.testing.assert_allclose(found.FutureRegression, frame.groupby("unique_id").y.mean().repeat(5), rtol=1e-9)
    assert leak(Panel.from_frame(frame, columns={"future": "promo"})) == []


def test_B110_leak() -> None:
    frame = P(4, 80).assign(y=lambda x: x.y + np.random.default_rng(0).normal(size=len(x)))
    frame["ahead"] = frame.groupby("unique_id").y.shift(-1)
    frame["itself"] = 3 - 2 * frame.y
    frame["honest"] = np.random.default_rng(1).normal(size=len(frame))
    panel = Panel.from_frame(frame, columns={"future": ["ahead", "honest", "itself"]})
    assert leak(panel) == ["ahead", "itself"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_B111_category_never_seen(library: str) -> None:
    frame = promoted()
    frame["kind"] = pd.Categorical(np.where(frame.promo > 0, "sale", "none"))
    columns = {"future": ["kind"]}
    model = FutureRegression(2).fit(converted(frame.drop(columns="promo"), library), columns=columns)
    future = plain(model.future_frame())
    kinds = pd.Categorical(["sale", "flood", "none", "sale", "none", "sale"], categories=["flood", "unused", "sale", "none"])
    with heard() as said:
        found = model.predict(future=converted(future.assign(kind=kinds), library))
    assert len(said) == 1
    assert "kind" in said[0]
    assert "flood" in said[0]
    assert "unused" not in said[0]
    assert np.isfinite(plain(found).FutureRegression).all()
    expected = 100 + 7 * (kinds == "sale") + 10 * future.unique_id.str[1:].astype(int)
    known = np.asarray(kinds != "flood")
    np.testing.assert_allclose(plain(found).FutureRegression[known], expected[known], rtol=1e-9)


def test_B111_missing_category_ahead_is_refused() -> None:
    frame = promoted()
    frame["kind"] = pd.Categorical(np.where(frame.promo > 0, "sale", "none"))
    model = FutureRegression(2).fit(frame.drop(columns="promo"), columns={"future": "kind"})
    future = model.future_frame().assign(kind=pd.Categorical(["sale", None, "none", "sale", "none", "sale"]))
    with pytest.raises(DataError, match=r"kind.*s001.*2024-03-02"):
        model.predict(future=future)


def test_global_model_with_every_role() -> None:
    frame = promoted(6)
    frame["load"] = np.arange(len(frame)) % 3.0
    static = pd.DataFrame({"unique_id": [f"s{i:03d}" for i in (6, 5, 4, 3, 2, 1, 9)], "size": np.array([6, 5, 4, 3, 2, 1, 9.0])})
    columns = {"future": "promo", "past": "load", "static": "size"}
    model = PooledRegression(4).fit(frame, columns=columns, static=static)
    future = model.future_frame().assign(promo=1.0)
    found = model.predict(future=future)
    np.testing.assert_allclose(found.PooledRegression, 107 + 10 * found.unique_id.str[1:].astype(int), rtol=1e-6)


def test_every_registered_model_is_here() -> None:
    assert {one.cls.__name__ for one in subjects()} == set(registry.names())
