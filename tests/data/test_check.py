"""check and fill_gaps."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepforecast import (
    ARIMA,
    ETS,
    SES,
    AutoARIMA,
    LinearModel,
    Naive,
    Prophet,
    UnobservedComponents,
    check,
    cross_validate,
    fill_gaps,
)
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, DataWarning, ParameterError
from tests.frames import LIBRARIES, D, P, converted, joined, plain, same


def findings(report: Any) -> dict[str, tuple[str, int]]:
    return {one.problem: (one.severity, one.count) for one in report.findings}


def test_a_sound_frame_has_no_findings() -> None:
    report = check(P(3, 60))
    assert report.ok
    assert report.findings == ()
    assert report.summary["freq"] == "D"
    assert report.summary["series"] == 3
    assert "No findings" in repr(report)


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_kind_is_counted_and_named(library: str) -> None:
    frame = P(9, 60)
    frame.loc[5, "y"], frame.loc[70, "y"] = np.nan, np.inf
    frame.loc[frame.unique_id == "s009", "y"] = 3.0
    frame = joined(frame.drop(index=[100, 101]), frame.iloc[[200, 201, 202]])
    report = check(converted(frame, library))
    assert not report.ok
    assert findings(report) == {
        "duplicates": ("error", 3),
        "infinite": ("error", 1),
        "gaps": ("warning", 2),
        "missing": ("warning", 1),
        "constant": ("note", 1),
    }
    text = repr(report)
    for part in ("s004, first at 2024-01-21", "s002, first at 2024-02-10", "s001, first at 2024-01-06"):
        assert part in text
    table = plain(report.series).set_index("unique_id")
    assert table.loc["s002", "gaps"] == 2
    assert table.loc["s004", "duplicates"] == 3
    assert table.loc["s009", "max"] == 3.0
    assert type(report.series) is type(converted(frame, library))


BAD = {
    "empty": D("A", 5).iloc[:0],
    "no frame": [1, 2],
    "one row each": joined(D("A", 1), D("B", 1)),
    "all missing": D("A", 30).assign(y=np.nan),
    "text": D("A", 5).assign(y="a"),
    "float time": D("A", 5).assign(ds=np.arange(5.0)),
    "no stamp": D("A", 5).assign(ds=[pd.NaT, *D("A", 5).ds[1:]]),
    "no id": D("A", 5).assign(unique_id=[None, "A", "A", "A", "A"]),
    "irregular": D("A", 5).assign(ds=pd.to_datetime(["2024-01-01", "2024-01-03", "2024-01-04", "2024-01-09", "2024-02-01"])),
    "two frequencies": joined(D("A", 30), D("B", 30, "W")),
    "doubled column": pd.concat([D("A", 5), D("A", 5)[["y"]]], axis=1),
    "index": D("A", 5).set_index("ds"),
}


@pytest.mark.parametrize("frame", BAD.values(), ids=BAD)
def test_what_a_fit_refuses_is_an_error_here_and_nothing_raises(frame: Any) -> None:
    with pytest.raises(DataError):
        Naive(horizon=1).fit(frame)
    report = check(frame)
    assert not report.ok
    assert all(one.where and one.hint for one in report.findings if one.severity == "error")


@given(
    st.lists(st.sampled_from([1.0, 2.0, np.nan, np.inf]), min_size=1, max_size=8),
    st.lists(st.integers(1, 3), min_size=8, max_size=8),
)
def test_ok_means_that_a_fit_takes_it(values: list[float], steps: list[int]) -> None:
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.cumsum(steps)[: len(values)], unit="D")
    frame = pd.DataFrame({"unique_id": "A", "ds": days, "y": values})
    try:
        Naive(horizon=1, missing="zero").fit(frame, freq="D")
        taken = True
    except DataError:
        taken = False
    assert check(frame, freq="D").ok == taken


@given(
    st.lists(st.lists(st.integers(1, 3), max_size=7).map(lambda rest: [1, 1, *rest]), min_size=1, max_size=3),
    st.sampled_from([None, "Europe/Berlin"]),
    st.booleans(),
)
def test_gaps_are_counted_and_named_as_a_fit_does(steps: list[list[int]], zone: str | None, doubled: bool) -> None:
    ids = [f"s{number}" for number, one in enumerate(steps) for _ in one]
    days = np.concatenate([np.cumsum(one) for one in steps])
    stamps = pd.to_datetime("2024-03-25") + pd.to_timedelta(days, unit="D")
    frame = pd.DataFrame({"unique_id": ids, "ds": stamps.tz_localize(zone), "y": 1.0})
    panel = Panel.from_frame(frame, freq="D")
    report = check(joined(frame, frame.iloc[[0, -1]]) if doubled else frame, freq="D")
    gaps = [one for one in report.findings if one.problem == "gaps"]
    assert sum(one.count for one in gaps) == panel.missing().sum()
    assert report.series["gaps"].tolist() == np.add.reduceat(panel.missing().astype(int), panel.indptr[:-1]).tolist()
    if gaps:
        assert f"first at {panel.format_timestamp(int(np.argmax(panel.missing())))}" in gaps[0].where


@pytest.mark.parametrize(
    ("starts", "periods", "told"),
    [
        (["2024-01-01"], 5, True),
        (["2024-01-01", "2024-01-09", "2024-01-15"], 3, True),  # Tuesday to Thursday, too, and each in a week of its own
        (["2024-01-01", "2024-01-12"], 3, False),  # one that goes on over a weekend tells it for all
        (["2024-01-06"], 2, False),  # a weekend
        (["2024-01-01"], 6, False),
    ],
)
@pytest.mark.parametrize("zone", [None, "Asia/Tokyo", "America/New_York"])
def test_days_of_one_working_week_may_be_business_days(starts: list[str], periods: int, told: bool, zone: str | None) -> None:
    frame = joined(*(D(f"s{number}", periods, start=start) for number, start in enumerate(starts)))
    frame["ds"] = frame["ds"].dt.tz_localize(zone)
    report = check(frame)
    assert findings(report).get("days or business days") == (("note", len(starts)) if told else None)
    assert report.ok
    assert report.summary["freq"] == "D"
    for freq in ("D", "B") if told else ("D",):
        assert "days or business days" not in findings(check(frame, freq=freq))
    Naive(horizon=1).fit(frame)  # where it is not said: a warning would be an error here


def test_the_frequency_said_is_held_against_the_data() -> None:
    assert findings(check(D("A", 30), freq="W"))["off the grid of 'W-SUN'"][0] == "error"
    with pytest.raises(ParameterError, match="known alias, got 'X'"):
        check(D("A", 30), freq="X")


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_the_few_stamps_beside_the_grid_are_named(zone: str | None) -> None:
    frame = joined(D("A", 300, tz=zone), D("B", 30, tz=zone)).reset_index(drop=True)
    frame["ds"] = frame["ds"].where(~np.isin(np.arange(330), [100, 310]), frame["ds"] + pd.Timedelta("3h"))
    found = next(one for one in check(pd.concat([frame, frame.iloc[:1]])).findings if one.problem == "off the grid of 'D'")
    assert (found.severity, found.count) == ("error", 2)
    assert found.where.startswith("A, B, first at 2024-04-10 0")
    with pytest.raises(DataError, match=r"nearly all follow freq='D', but series A at 2024-04-10 0"):
        Naive(horizon=1).fit(frame)


def test_short_series_are_warned_of() -> None:
    frame = joined(D("A", 60), D("B", 10, start="2024-02-20"))
    assert findings(check(frame)) == {"short (< 2 seasons of 7)": ("warning", 1)}


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_season_with_a_place_never_seen_is_warned_of(library: str) -> None:
    whole, lacking, few = D("A", 30), D("B", 20), D("C", 6).drop(index=3)
    lacking.loc[lacking.index % 7 == 2, "y"] = np.nan
    frame = joined(whole.drop(index=[8, 15]), lacking, few)
    frame = joined(frame, frame[frame.unique_id == "B"].iloc[[4]])
    warned = next(one for one in check(converted(frame, library)).findings if one.problem == "season of 7 incomplete")
    assert (warned.severity, warned.count, warned.where) == ("warning", 1, "B")
    for gone in (frame.dropna(), frame[frame.unique_id == "B"]):
        assert findings(check(gone))["season of 7 incomplete"] == ("warning", 1)
    seen = frame.assign(y=frame.y.mask((frame.unique_id == "B") & (frame.ds == "2024-01-03"), 1.0))
    assert "season of 7 incomplete" not in findings(check(seen))
    assert "season of 7 incomplete" not in findings(check(whole.assign(ds=range(30)).drop(index=4)))  # of no known season


def test_a_table_column_gives_way_to_an_id_of_its_name() -> None:
    frame = D("A", 30).rename(columns={"unique_id": "rows"})
    assert check(frame, columns={"id": "rows"}).series["rows"].tolist() == ["A"]


def test_plain_values() -> None:
    said = check(joined(D("A", 60), D("B", 10, start="2024-02-20"))).to_dict()
    assert said["ok"]
    assert said["summary"]["rows"] == 70
    assert said["findings"][0]["where"] == "B"


@pytest.mark.parametrize("library", LIBRARIES)
def test_gaps_are_filled_with_missing_rows(library: str) -> None:
    whole = P(3, 40).assign(note="x")
    holed = whole.drop(index=[0, 7, 8, 50, 119])
    filled = plain(fill_gaps(converted(holed, library)))
    expected = whole.drop(index=[0, 119]).reset_index(drop=True)
    same(filled[["unique_id", "ds"]], expected[["unique_id", "ds"]], types=False)
    assert filled["y"].isna().sum() == 3
    assert list(filled.columns) == list(whole.columns)
    assert filled.loc[filled["y"].isna(), "note"].isna().all()


@pytest.mark.parametrize("kind", ["views", "nulls", "lists", "dictionary"])
def test_gaps_are_filled_whatever_arrow_holds(kind: str) -> None:
    days, ids = list(pd.date_range("2024-01-01", periods=6).delete(2)) * 2, ["b"] * 5 + ["a"] * 5
    made = {
        "views": pa.array(ids, pa.string_view()), "nulls": pa.nulls(10), "lists": pa.array([[1]] * 10),
        "dictionary": pa.array(ids).dictionary_encode(),
    }[kind]  # fmt: skip
    table = pa.table({"unique_id": pa.array(ids) if kind == "nulls" else made if kind in ("views", "dictionary") else ids,
                      "ds": days, "y": np.arange(10.0), "more": made})  # fmt: skip
    filled = fill_gaps(table, freq="D")
    assert filled["unique_id"].to_pylist() == ["a"] * 6 + ["b"] * 6
    assert filled["y"].to_pylist() == [5, 6, None, 7, 8, 9, 0, 1, None, 2, 3, 4]
    assert filled["more"][2].as_py() is None
    assert filled["more"][0].as_py() == made[5].as_py()
    assert check(filled).summary["rows"] == 12


def test_gaps_are_filled_whatever_pandas_calls_its_index() -> None:
    frame = P(2, 9).drop(index=[3])
    keyed = frame.set_index(pd.MultiIndex.from_frame(frame[["unique_id", "ds"]]))
    same(fill_gaps(keyed), fill_gaps(frame))


def test_of_several_series_the_first_stamp_is_said_with_its_own() -> None:
    report = check(P(2, 20).assign(y=lambda one: one.y.mask(one.index.isin([7, 23]))))
    assert report.findings[0].where == "s001, s002, first at 2024-01-08 (series s001)"


@pytest.mark.parametrize("fill", ["interpolate", "ffill", "zero"])
def test_filled_values_are_those_of_the_models(fill: str) -> None:
    holed = D("A", 20).drop(index=[5, 6]).reset_index(drop=True)
    values = fill_gaps(holed, fill=fill)["y"]
    by_model = Naive(horizon=1, missing=fill).fit(holed)
    assert values.notna().all()
    assert len(values) == 20
    assert by_model.predict()["Naive"][0] == values.iloc[-1]
    before, after = holed["y"][4], holed["y"][5]
    expected = {"interpolate": np.interp([5, 6], [4, 7], [before, after]), "ffill": [before, before], "zero": [0, 0]}
    np.testing.assert_allclose(values[[5, 6]], expected[fill])


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("values", [["north", "south"], [True, False], list(pd.to_datetime(["2020-01-01", "2021-01-01"]))])
def test_gaps_are_filled_where_declared_columns_hold_no_numbers(values: list[Any], library: str) -> None:
    frame = P(2, 10).assign(place=np.repeat(pd.Series(values).to_numpy(), 10), said="yes").drop(index=[3, 15])
    filled = plain(fill_gaps(converted(frame, library), columns={"static": ["place"], "past": ["said"]}))
    assert filled["place"].tolist() == [one for one in values for _ in range(10)]
    assert filled["said"].isna().sum() == 2
    changing = converted(frame.assign(place=["a"] * 5 + ["b"] * 13), library)
    with pytest.raises(DataError, match="place changes within series s001"):
        fill_gaps(changing, columns={"static": ["place"]})


def test_no_gaps_are_found_on_a_frequency_that_the_data_do_not_have() -> None:
    found = findings(check(D("A", 178), freq="h"))
    assert set(found) == {"frequency"}
    assert found["frequency"][0] == "error"
    with pytest.raises(DataError, match="looks like freq='D'"):
        Naive(horizon=1).fit(D("A", 178), freq="h")
    assert "looks like freq='D'" in repr(check(D("A", 178), freq="h"))


def test_static_columns_stay_constant_and_order_is_that_of_a_fit() -> None:
    frame = joined(D("B", 10).assign(size=2.0), D("A", 10).assign(size=1.0)).drop(index=[3, 15])
    filled = fill_gaps(frame, columns={"static": ["size"]})
    assert filled.groupby("unique_id")["size"].unique().map(list).to_dict() == {"A": [1.0], "B": [2.0]}
    assert filled["unique_id"].tolist() == ["A"] * 10 + ["B"] * 10


def test_fill_gaps_leaves_the_caller_alone_and_is_at_rest_after_one_call() -> None:
    frame = D("A", 20).drop(index=[5])
    before = frame.copy(deep=True)
    once = fill_gaps(frame)
    same(frame, before)
    same(fill_gaps(once), once)


def test_fill_gaps_refuses() -> None:
    with pytest.raises(ParameterError, match="`fill` must be one of interpolate, ffill, zero"):
        fill_gaps(D("A", 5), fill="mean")
    with pytest.raises(DataError, match="duplicates in series A"):
        fill_gaps(joined(D("A", 5), D("A", 5).iloc[[2]]))


@pytest.mark.parametrize("library", LIBRARIES)
def test_fill_gaps_reads_text_as_a_fit_does(library: str) -> None:
    frame = D("A", 20).drop(index=[5]).assign(ds=lambda one: one.ds.dt.strftime("%Y-%m-%d"))
    filled = plain(fill_gaps(converted(frame, library)))
    assert filled["ds"].tolist() == D("A", 20)["ds"].tolist()


def test_months_on_the_fifteenth_are_no_days() -> None:
    frame = D("A", 24, "MS").assign(ds=lambda one: one.ds + pd.Timedelta(days=14))
    with pytest.raises(DataError, match=r"Monthly timestamps must be the first or last.*to_period\('M'\)"):
        Naive(horizon=1).fit(frame)
    with pytest.raises(DataError, match="Pass the right freq"):
        Naive(horizon=1).fit(frame, freq="D")


def test_the_last_stamp_of_one_series_may_be_the_first_of_the_next() -> None:
    frame = joined(D("A", 30), D("B", 30, start="2024-01-30"), D("C", 30, start="2024-02-28"))
    assert findings(check(frame)) == {"ended early": ("note", 2)}
    Naive(horizon=1).fit(frame)


def test_infinite_values_of_either_sign_are_counted_and_then_taken_for_missing() -> None:
    frame = D("A", 30).assign(y=[5.0] * 10 + [np.inf] + [5.0] * 10 + [-np.inf] + [5.0] * 8)
    assert findings(check(frame)) == {"infinite": ("error", 2), "constant": ("note", 1)}
    assert findings(check(frame.assign(y=frame.y.replace(np.inf, 5.0))))["infinite"] == ("error", 1)
    assert findings(check(frame.assign(y=5.0))) == {"constant": ("note", 1)}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("integers", [False, True])
def test_series_that_ended_long_before_the_others_are_noted(library: str, integers: bool) -> None:
    frame = joined(D("A", 60), D("B", 20), D("C", 53), D("D", 40, start="2024-01-21"))  # C: one season behind
    if integers:
        frame["ds"] = (frame["ds"] - frame["ds"][0]).dt.days
    report = check(converted(frame, library))
    assert findings(report)["ended early"] == ("note", 1)
    first, last = ("19", "59") if integers else ("2024-01-20", "2024-02-29")
    where = next(one.where for one in report.findings if one.problem == "ended early")
    assert where == f"B, the first at {first}, the last of the others at {last}"
    assert "ended early" not in findings(check(converted(frame[frame.unique_id == "B"], library)))
    assert report.ok


@pytest.mark.parametrize(
    ("freq", "behind", "noted"),
    [("MS", 7, False), ("MS", 8, True), ("D", 8, True), ("D", 30, True), ("QS", 4, False), ("QS", 5, True), ("YS", 2, True)],
)
def test_series_are_noted_as_ended_if_predict_warns(freq: str, behind: int, noted: bool) -> None:
    frame = joined(D("A", 90 - behind, freq), D("B", 90, freq))
    assert ("ended early" in findings(check(frame))) is noted
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Naive(horizon=min(behind - 1, 6)).fit(frame).predict()
    assert any("are before" in str(one.message) for one in caught) is noted


def with_covariate(role: str = "future") -> tuple[pd.DataFrame, dict[str, Any]]:
    """Three series with a covariate that varies, and the declaration of its role."""
    frame = P(3, 60)
    x = np.random.default_rng(0).normal(size=len(frame))
    return frame.assign(y=frame["y"] + x, x=x), {role: ["x"]}


def rows_of(frame: pd.DataFrame, name: str, *places: int) -> Any:
    place = frame.groupby("unique_id").cumcount()
    return (frame["unique_id"] == name) & (place.isin(places) if places else True)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("role", ["future", "past"])
def test_missing_values_of_a_declared_covariate_are_found_as_fits_tell_them(role: str, library: str) -> None:
    frame, columns = with_covariate(role)
    frame.loc[rows_of(frame, "s002", 10, 11), "x"] = np.nan
    given = converted(frame.sample(frac=1, random_state=1), library)
    with pytest.warns(DataWarning, match=r"x is missing in 2 rows of series s002, first at 2024-01-11"):
        LinearModel(lags=[1], horizon=1).fit(given, columns=columns)
    report = check(given, columns=columns)
    assert findings(report) == {"x missing": ("warning", 2)}
    assert report.findings[0].where == "s002, first at 2024-01-11"
    assert "capabilities.missing" in report.findings[0].hint
    assert findings(check(given)) == {"columns without a role": ("note", 1)}


@pytest.mark.parametrize("role", ["future", "past"])
def test_future_covariates_missing_at_the_end_are_found_as_backtests_refuse_them(role: str) -> None:
    frame, columns = with_covariate(role)
    frame.loc[rows_of(frame, "s003", 58, 59), "x"] = np.nan
    found = findings(check(frame, columns=columns))
    if role == "past":
        assert found == {"x missing": ("warning", 2)}
        return
    assert found == {"x missing": ("warning", 2), "x missing at the end": ("warning", 1)}
    with pytest.raises(DataError, match="series s003\\. Column x is missing"):
        cross_validate(ARIMA(), frame, horizon=2, n_windows=1, columns=columns)


def test_constant_covariates_are_found_as_fits_learn_nothing_of_them() -> None:
    frame, columns = with_covariate()
    frame.loc[rows_of(frame, "s001"), "x"] = 3.0
    assert findings(check(frame, columns=columns)) == {"x constant": ("warning", 1)}
    model = ARIMA(horizon=1).fit(frame, columns=columns)
    with pytest.warns(DataWarning, match="x of series s001"):
        model.predict(future=model.future_frame().assign(x=4.0))
    assert findings(check(frame, columns={"past": ["x"]})) == {"x constant": ("note", 1)}
    category = frame.assign(x=pd.Categorical(["a"] * len(frame)))
    assert findings(check(category, columns=columns)) == {"x constant": ("warning", 3)}


@pytest.mark.parametrize(
    "model", [ARIMA(), AutoARIMA(), ETS(), SES(), UnobservedComponents(season_length=1), Prophet()], ids=str
)
def test_covariate_never_observed_is_found_and_refused(model: Any) -> None:
    frame, columns = with_covariate()
    frame.loc[rows_of(frame, "s002"), "x"] = np.nan
    found = findings(check(frame, columns=columns))
    assert found["x never observed with a target"] == ("warning", 1)
    with pytest.raises(DataError, match=r"requires at least \d observations per series with values of all future covariates"):
        model.clone(horizon=1).fit(frame, columns=columns)


def test_covariates_that_no_fit_reads_are_errors_beside_the_others() -> None:
    frame, columns = with_covariate()
    frame.loc[rows_of(frame, "s002", 5), "x"] = np.inf
    frame = joined(frame, frame.iloc[[7]])
    assert findings(check(frame, columns=columns)) == {
        "duplicates": ("error", 1), "x infinite": ("error", 1), "x missing": ("warning", 1),
    }  # fmt: skip
    report = check(frame.assign(x="red"), columns=columns)
    assert [one.severity for one in report.findings] == ["error", "error"]
    assert "x" in report.findings[1].where


def test_covariate_that_follows_the_target_is_found() -> None:
    frame, columns = with_covariate()
    frame["x"] = 2 * frame["y"]
    assert findings(check(frame, columns=columns)) == {"x follows the target": ("warning", 3)}
    with pytest.warns(DataWarning, match="almost perfectly correlated with the target: x"):
        ARIMA(horizon=1).fit(frame, columns=columns)
