from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepforecast.data.frequency import parse_frequency
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, DataWarning
from tests.frames import FREQUENCIES, LIBRARIES, D, P, converted, joined, plain, same

UNIT = {"ms": "ms"}


def equal(one: Panel, other: Panel) -> None:
    """Two panels hold the same, whatever frames they came from."""
    for name in ("indptr", "y"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_array_equal(one.series.last, other.series.last)
    assert one.calendar.freq == other.calendar.freq
    assert one.calendar.step == other.calendar.step
    assert [str(i) for i in one.series.ids.to_list()] == [str(i) for i in other.series.ids.to_list()]
    for held, others in ((one.covariates, other.covariates), (one.static, other.static)):
        assert held.keys() == others.keys()
        for name, covariate in held.items():
            np.testing.assert_array_equal(covariate.values, others[name].values)
            assert covariate.categories == others[name].categories


def ragged(freq: str, seed: int = 0, tz: str | None = None) -> pd.DataFrame:
    """Three series of one frequency that start and end at different stamps."""
    rng = np.random.default_rng(seed)
    parts = []
    for name, begin, end in (("b", 0, 40), ("a", 6, 36), ("c", 12, 13)):
        index = pd.date_range("2021-01-04", periods=41, freq=freq, unit="us")[begin:end]
        index = index if tz is None else index.tz_localize(tz, ambiguous=np.ones(len(index), bool), nonexistent="shift_forward")
        parts.append(pd.DataFrame({"unique_id": name, "ds": index, "y": rng.normal(size=end - begin)}))
    return joined(*parts)


@given(st.sampled_from(FREQUENCIES), st.sampled_from(LIBRARIES), st.booleans(), st.integers(0, 1000))
def test_row_order_never_matters(freq: str, library: str, given_freq: bool, seed: int) -> None:
    frame = ragged(freq, seed)
    shuffled = frame.sample(frac=1, random_state=seed)
    said = freq if given_freq else None
    equal(Panel.from_frame(converted(shuffled, library), freq=said), Panel.from_frame(frame, freq=said))


@given(
    st.sampled_from(FREQUENCIES),
    st.sampled_from(LIBRARIES),
    st.sampled_from([None, "Europe/Berlin"]),
    st.floats(0, 0.3),
    st.integers(0, 1000),
)
def test_panel_to_frame_and_back(freq: str, library: str, tz: str | None, holes: float, seed: int) -> None:
    if tz is not None and parse_frequency(freq).base in ("h", "min", "s", "ms"):
        tz = "UTC"  # pandas' own local stamps would not be evenly apart
    whole = ragged(freq, seed, tz)
    keep = (
        (np.random.default_rng(seed).random(len(whole)) >= holes)
        | ~whole.unique_id.duplicated()
        | ~whole.unique_id.duplicated(keep="last")
    )
    frame = converted(whole[keep].reset_index(drop=True), library)
    panel = Panel.from_frame(frame, freq=freq)
    back = panel.to_frame()
    assert type(back) is type(frame)
    wanted = whole.sort_values(["unique_id", "ds"], ignore_index=True)
    wanted["y"] = wanted.y.where(wanted.index.isin(np.flatnonzero(keep[wanted.index.to_numpy()])), np.nan)
    found = plain(back)
    assert found.unique_id.tolist() == wanted.unique_id.tolist()
    assert (
        pd.DatetimeIndex(found.ds).asi8.tolist()
        == pd.DatetimeIndex(wanted.ds).as_unit(pd.DatetimeIndex(found.ds).unit).asi8.tolist()
    )
    equal(Panel.from_frame(back, freq=freq), panel)


def test_gaps_become_missing_rows() -> None:
    frame = P(2, 6).drop(index=[2, 3, 8])
    panel = Panel.from_frame(frame)
    assert panel.lengths.tolist() == [6, 6]
    assert np.flatnonzero(panel.missing()).tolist() == [2, 3, 8]
    assert panel.observed.tolist() == [4, 5]
    whole = Panel.from_frame(P(2, 6))
    np.testing.assert_array_equal(panel.y[~panel.missing()], whole.y[~panel.missing()])
    assert panel.series.last.tolist() == whole.series.last.tolist()


def test_phases_of_each_series() -> None:
    frame = joined(
        D("A", 10, "2D"), D("B", 10, "2D", start="2024-01-02 06:00"), D("C", 10, "2D", start="2024-01-01 12:00").drop(index=4)
    )
    panel = Panel.from_frame(frame, freq="2D")
    assert panel.lengths.tolist() == [10, 10, 10]
    same(panel.to_frame().dropna().reset_index(drop=True), frame.sort_values(["unique_id", "ds"], ignore_index=True))
    months = joined(D("A", 10, "2MS"), D("B", 10, "2MS", start="2024-02-01"))
    assert Panel.from_frame(months).calendar.freq == "2MS"


def test_nothing_of_the_caller_s_is_written_to_or_copied() -> None:
    frame = pd.DataFrame({"unique_id": "A", "ds": pd.date_range("2024-01-01", periods=50), "y": np.arange(50.0)})
    panel = Panel.from_frame(frame)
    assert np.shares_memory(panel.y, frame.y.to_numpy())
    with pytest.raises(ValueError, match="read-only"):
        panel.y[0] = 5


@pytest.mark.parametrize("library", LIBRARIES)
def test_columns_left_out_are_known(library: str) -> None:
    frame = converted(D().assign(note="x", price=1.0), library)
    assert Panel.from_frame(frame).undeclared == ("note", "price")
    assert Panel.from_frame(frame, columns={"past": "price"}).undeclared == ("note",)
    static = converted(pd.DataFrame({"unique_id": ["A"], "size": [2.0]}), library)
    assert Panel.from_frame(frame, columns={"past": "price", "static": "size"}, static=static).undeclared == ("note",)


def test_non_string_names_of_other_columns_do_no_harm() -> None:
    frame = D().assign(**{"x": 1}).rename(columns={"x": 0})
    assert Panel.from_frame(frame).undeclared == (0,)


@pytest.mark.parametrize("library", LIBRARIES)
def test_covariates_follow_their_rows(library: str) -> None:
    frame = P(2, 8)
    frame["promo"] = np.arange(16.0)
    frame["kind"] = pd.Categorical.from_codes(np.arange(16) % 3, ["b", "c", "a"])
    shuffled = frame.drop(index=[3, 11]).sample(frac=1, random_state=0)
    panel = Panel.from_frame(converted(shuffled, library), columns={"future": ["promo"], "past": ["kind"]}, freq="D")
    promo, kind = panel.covariates["promo"], panel.covariates["kind"]
    wanted = frame.promo.where(~frame.index.isin([3, 11]))
    np.testing.assert_array_equal(promo.values, wanted)
    assert kind.categories == ("a", "b", "c")
    assert [kind.categories[int(code)] if code >= 0 else None for code in kind.values] == [
        None if row in (3, 11) else one for row, one in enumerate(frame.kind)
    ]
    back = panel.to_frame()
    equal(Panel.from_frame(back, columns={"future": ["promo"], "past": ["kind"]}, freq="D"), panel)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (
            P(2, 5).assign(y=[1, 2, 3, 4, 5, 1, 2, np.inf, 4, -np.inf]),
            r"y must be finite.*2 row.*series s002, first at 2024-01-03",
        ),
        (P(7, 5).assign(y=np.inf), r"35 row.*s001, s002, s003, s004, s005 … \(7 in all\)"),
        (P(3, 5).assign(y=[np.nan] * 5 + [1.0] * 5 + [np.nan] * 5), r"column y.*all values are missing in series s001, s003"),
        (joined(D("A", 30, "min"), D("A", 30, "min", start="2031-01-01")), r"series A alone spans.*split"),
        (joined(D("B", 60), D("A", 3, "YS")), r"series A, which starts at 2024-01-01, looks like freq='YS-JAN'.*1 such series"),
    ],
)
def test_refused(frame: pd.DataFrame, words: str) -> None:
    with pytest.raises(DataError, match=words):
        Panel.from_frame(frame)


@pytest.mark.parametrize("allow_all_missing", [False, True])
@pytest.mark.parametrize("values", [np.nan, pd.Categorical([None] * 18, ["a"])], ids=["numbers", "categories"])
def test_covariates_without_any_value_are_refused(values, allow_all_missing: bool) -> None:
    frame = P(2, 9).assign(x=values)
    with pytest.raises(DataError, match="all values of column x are missing"):
        Panel.from_frame(frame, columns={"future": ["x"]}, allow_all_missing=allow_all_missing)


def test_infinite_covariates() -> None:
    frame = P(2, 5).assign(promo=[1.0] * 8 + [np.inf] * 2)
    with pytest.raises(DataError, match=r"Covariate promo must be finite.*2 row.*s002, first at 2024-01-04"):
        Panel.from_frame(frame, columns={"past": "promo"})


@pytest.mark.parametrize("column", ["y", "x"])
def test_of_several_series_the_first_stamp_is_said_with_its_own(column: str) -> None:
    frame = P(2, 9).assign(x=1.0).astype({column: float})
    frame.loc[[5, 10], column] = np.inf
    with pytest.raises(DataError, match=rf"{column} .* s001, s002, first at 2024-01-06 \(series s001\)\. Replace"):
        Panel.from_frame(frame, columns={"past": "x"})
    with pytest.raises(DataError, match=rf"{column} .* series s002, first at 2024-01-02\. Replace"):
        Panel.from_frame(frame.drop(index=5), columns={"past": "x"})
    twice = joined(P(2, 9), P(2, 9).iloc[[5, 10]])
    with pytest.raises(
        DataError, match=r"duplicates in series s001, s002, first at 2024-01-06 \(series s001\) \(row 18\)\. Drop or"
    ):
        Panel.from_frame(twice)


def test_sums_that_overflow_are_not_infinite_values() -> None:
    assert Panel.from_frame(D().assign(y=1.7e308)).y[0] == 1.7e308
    assert Panel.from_frame(D().assign(y=np.where(np.arange(60) % 2, 1.7e308, -1.7e308))).observed[0] == 60


def test_static_columns_inside_and_beside_the_frame() -> None:
    frame = P(2, 5).assign(region=pd.Categorical(["n"] * 5 + ["s"] * 5))
    beside = pd.DataFrame({"unique_id": ["s002", "s001", "zz"], "size": [2, 1, 9]})
    panel = Panel.from_frame(frame, columns={"static": ["region", "size"]}, static=beside)
    assert panel.static["size"].values.tolist() == [1, 2]
    assert panel.static["region"].categories == ("n", "s")
    assert panel.series.columns.static == ("region", "size")
    undeclared = Panel.from_frame(P(2, 5), static=beside)
    assert undeclared.series.columns.static == ("size",)
    more = Panel.from_frame(frame.assign(note=1), columns={"static": "size"}, static=beside.assign(colour=3, note=2))
    assert (tuple(more.static), more.undeclared) == (("size",), ("region", "note", "colour"))
    with pytest.warns(DataWarning, match=r"static= is ignored: the static columns are in the frame itself\."):
        inside = Panel.from_frame(frame, columns={"static": "region"}, static=beside.assign(region="x"))
    assert inside.static.keys() == {"region"}
    assert inside.static["region"].categories == ("n", "s")


@pytest.mark.parametrize(
    ("columns", "static", "words"),
    [
        ({"static": "region"}, None, "region is in neither"),
        ({"static": "region"}, {"unique_id": ["s001", "s002"], "size": [1, 2]}, "lacks region and has unique_id, size"),
        (None, {"id": ["s001", "s002"], "size": [1, 2]}, "lacks unique_id and has id, size"),
        (None, {"unique_id": ["s001"], "size": [1]}, "missing for series: s002"),
        (None, {"unique_id": [1, 2], "size": [1, 2]}, r"missing for series: s001, s002.*dtype Int64.*String"),
        (None, {"unique_id": ["s001", "s002", "s001"], "size": [1, 2, 1]}, "ids repeated in column unique_id: s001"),
        (None, {"unique_id": ["s001", "s002"], "size": [1.0, np.nan]}, "size is missing or infinite for series s002"),
        (None, {"unique_id": ["s001", "s002"], "size": [np.inf, 1.0]}, "size is missing or infinite for series s001"),
        (None, {"unique_id": ["s001", "s002"], "size": ["x", "y"]}, "Column size must be numeric"),
    ],
)
def test_static_frames_refused(columns: Any, static: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        Panel.from_frame(P(2, 5), columns=columns, static=None if static is None else pd.DataFrame(static))


def test_static_frame_of_a_single_series() -> None:
    frame = D().drop(columns="unique_id")
    assert Panel.from_frame(frame, static=pd.DataFrame({"size": [3.0]})).static["size"].values.tolist() == [3.0]
    with pytest.raises(DataError, match="must have one row, got 2"):
        Panel.from_frame(frame, static=pd.DataFrame({"size": [3.0, 4.0]}))


def test_static_frame_of_another_library() -> None:
    static = pl.DataFrame({"unique_id": ["s002", "s001"], "size": [2, 1]})
    assert Panel.from_frame(P(2, 5), static=static).static["size"].values.tolist() == [1, 2]


def test_a_static_column_that_changes() -> None:
    with pytest.raises(DataError, match=r"size changes within series s002\. Declare it as a past or future covariate"):
        Panel.from_frame(P(2, 3).assign(size=[1, 1, 1, 2, 2, 3]), columns={"static": "size"})
    gaps = P(2, 4).assign(size=[1, 1, 1, 1, 2, 2, 2, 2]).drop(index=[1, 6])
    assert Panel.from_frame(gaps, columns={"static": "size"}, freq="D").static["size"].values.tolist() == [1, 2]
    with pytest.raises(DataError, match="size is missing"):
        Panel.from_frame(P(2, 2).assign(size=np.nan), columns={"static": "size"})
