from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from deepforecast import Capabilities, Conformal, Naive, Panel, SeasonalNaive
from deepforecast.core.state import LearnedState
from tests.frames import LIBRARIES, D, P, converted, joined, same


class Takes(SeasonalNaive):
    """Takes covariates, and looks at none."""

    capabilities = Capabilities(future=True, past=True, static=True, categorical=True)


LEARNED = LearnedState({"last": np.array([1.0, 2.0, 3.0]), "season": np.arange(6.0).reshape(3, 2)}, {"size": 7})


def test_learned_by_name() -> None:
    assert LEARNED["size"] == 7
    assert LEARNED["last"] is LEARNED.by_series["last"]
    with pytest.raises(KeyError):
        LEARNED["other"]


def test_take_put_and_join_touch_the_series_only() -> None:
    some = LEARNED.take(np.array([2, 0]))
    assert (some["last"].tolist(), some["season"].tolist(), some["size"]) == ([3.0, 1.0], [[4.0, 5.0], [0.0, 1.0]], 7)
    assert LEARNED.take(np.array([1])).join(LEARNED.take(np.array([0])))["last"].tolist() == [2.0, 1.0]
    back = LEARNED.put(
        np.array([2, 0]), LearnedState({"last": np.array([30.0, 10.0]), "season": np.zeros((2, 2))}, {"size": 9})
    )
    assert (back["last"].tolist(), back["season"].tolist()) == ([10.0, 2.0, 30.0], [[0.0, 0.0], [2.0, 3.0], [0.0, 0.0]])
    assert back["size"] == 7
    assert LEARNED["last"].tolist() == [1.0, 2.0, 3.0]


def test_some_series_of_a_state_are_a_state() -> None:
    frame = P(3, 30).assign(y=lambda one: one.y + np.random.default_rng(0).normal(size=90))
    model = Conformal(Naive(), horizon=2).fit(frame)
    whole = model.predict(level=80)
    extremes = model.state_.value_range
    model.state_ = model.state_.take(np.array([2, 0]))
    np.testing.assert_array_equal(model.state_.value_range, extremes[[2, 0]])
    found = model.predict(level=80)
    assert found.unique_id.tolist() == ["s003", "s003", "s001", "s001"]
    same(found, pd.concat([whole[4:], whole[:2]], ignore_index=True))


def fingerprint(frame: pd.DataFrame) -> str:
    return Naive().fit(frame).state_.fingerprint


def test_a_fingerprint_tells_data_apart_and_not_how_they_came() -> None:
    frame = P(3, 30)
    own = fingerprint(frame)
    assert own.startswith("90-")
    assert fingerprint(frame.sample(frac=1, random_state=0)) == own
    others = [
        frame.assign(y=frame.y.mask(frame.index == 50, 0.0)),
        frame.assign(ds=frame.ds + pd.Timedelta(days=1)),
        frame.assign(unique_id=np.repeat(["a", "b", "c"], [20, 30, 40]), ds=pd.date_range("2024-01-01", periods=90)),
        frame.head(89),
    ]
    assert len({own, *(fingerprint(other) for other in others)}) == 5


@pytest.mark.parametrize("tz", [None, "UTC", "Europe/Berlin"])
@pytest.mark.parametrize("freq", ["h", "D", "W-MON", "MS"])
def test_a_fingerprint_is_the_same_in_every_unit_and_library(freq: str, tz: str | None) -> None:
    frame = joined(D("A", 30, freq, "2024-04-01", tz), D("B", 20, freq, "2024-05-06" if freq == "W-MON" else "2024-06-01", tz))
    units = [frame.assign(ds=frame.ds.dt.as_unit(unit)) for unit in ("s", "ms", "us", "ns")]
    assert len({fingerprint(one) for one in [*units, *(converted(frame, library) for library in LIBRARIES)]}) == 1
    assert fingerprint(frame.assign(ds=frame.ds + pd.Timedelta(days=364))) != fingerprint(frame) or freq == "MS"


def test_a_fingerprint_tells_ids_and_time_apart() -> None:
    frame = D("A", 30)
    others = [
        frame.assign(unique_id="B"),
        frame.drop(columns="unique_id"),
        frame.assign(ds=pd.date_range(end=frame.ds.iloc[-1], periods=30, freq="2D")),
        frame.assign(ds=pd.date_range(end=frame.ds.iloc[-1], periods=30, freq="h")),
        frame.assign(ds=frame.ds + pd.Timedelta(days=1)),
        frame.assign(ds=np.arange(30)),
        frame.assign(ds=np.arange(1, 31)),
    ]
    assert len({fingerprint(one) for one in [frame, *others]}) == 8
    two = joined(D("A", 30), D("B", 30))
    assert fingerprint(two) != fingerprint(joined(D("A", 30), D("B", 30, start="2024-01-02")))


def test_a_fingerprint_covers_covariates_of_every_role() -> None:
    frame = P(2, 30).assign(x=lambda one: one.y.round(), z=lambda one: one.unique_id.astype("category"), size=3.0)
    columns = {"future": ["x"], "static": ["z", "size"]}

    def said(frame: pd.DataFrame, columns: dict[str, list[str]] = columns) -> str:
        panel = Panel.from_frame(frame, columns=columns)
        return Takes(season_length=7)._fit_panel(panel).fingerprint

    others = [
        frame.assign(x=frame.x.mask(frame.index == 3, 0.0)),
        frame.assign(z=frame.z.cat.rename_categories(["a", "b"])),
        frame.assign(size=4.0),
    ]
    told = {said(frame), *(said(one) for one in others), said(frame, {"past": ["x"], "static": ["z", "size"]}), said(frame, {})}
    assert len(told) == 6
