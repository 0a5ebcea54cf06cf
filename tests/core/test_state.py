from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from deepforecast import Conformal, Naive
from deepforecast.core.state import Learned
from tests.frames import P, same

LEARNED = Learned({"last": np.array([1.0, 2.0, 3.0]), "season": np.arange(6.0).reshape(3, 2)}, {"size": 7})


def test_learned_by_name() -> None:
    assert LEARNED["size"] == 7
    assert LEARNED["last"] is LEARNED.by_series["last"]
    with pytest.raises(KeyError):
        LEARNED["other"]


def test_take_put_and_join_touch_the_series_only() -> None:
    some = LEARNED.take(np.array([2, 0]))
    assert (some["last"].tolist(), some["season"].tolist(), some["size"]) == ([3.0, 1.0], [[4.0, 5.0], [0.0, 1.0]], 7)
    assert LEARNED.take(np.array([1])).join(LEARNED.take(np.array([0])))["last"].tolist() == [2.0, 1.0]
    back = LEARNED.put(np.array([2, 0]), Learned({"last": np.array([30.0, 10.0]), "season": np.zeros((2, 2))}, {"size": 9}))
    assert (back["last"].tolist(), back["season"].tolist()) == ([10.0, 2.0, 30.0], [[0.0, 0.0], [2.0, 3.0], [0.0, 0.0]])
    assert back["size"] == 7
    assert LEARNED["last"].tolist() == [1.0, 2.0, 3.0]


def test_some_series_of_a_state_are_a_state() -> None:
    frame = P(3, 30).assign(y=lambda one: one.y + np.random.default_rng(0).normal(size=90))
    model = Conformal(Naive(), horizon=2).fit(frame)
    whole = model.predict(level=80)
    model.state_ = model.state_.take(np.array([2, 0]))
    found = model.predict(level=80)
    assert found.unique_id.tolist() == ["s003", "s003", "s001", "s001"]
    same(found, pd.concat([whole[4:], whole[:2]], ignore_index=True))


def fingerprint(frame: pd.DataFrame) -> str:
    return Naive().fit(frame).state_.data


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
