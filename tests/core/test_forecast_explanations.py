"""`explain`: where a model looked, as a tidy frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from deepforecast import Naive
from deepforecast.core import forecast
from deepforecast.core.forecast import AttentionMap
from deepforecast.core.registry import Capabilities
from deepforecast.core.state import LearnedState
from deepforecast.data.covariates import Covariate
from deepforecast.errors import CapabilityError, DataError, ParameterError

ROWS, HEADS = 4, 2


class Looking(Naive):
    """Steps look at the last rows, the nearer the more; walked on from its second step; the second series is short."""

    def _narrow(self, declared: Capabilities) -> Capabilities:
        return replace(declared, explains=True)

    def _attention_maps(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Sequence[AttentionMap]:
        there = np.array([-3, -1] + [-3] * (len(learned["last"]) - 2))[: len(learned["last"])]

        def looked(cutoff: int, kind: str, queries: list[int]) -> AttentionMap:
            keys = np.arange(1 - ROWS, 1) + cutoff
            weights = np.zeros((len(there), HEADS, len(queries), ROWS), dtype=np.float32)
            for series, first in enumerate(there):
                known = keys >= first
                weights[series][..., known] = np.arange(1, known.sum() + 1) / np.arange(1, known.sum() + 1).sum()
            return AttentionMap(kind, 0, cutoff, weights, np.array(queries), keys, there)

        return [looked(0, "self", [-3, -2, -1, 0]), looked(0, "cross", [1, 2]), looked(2, "cross", list(range(3, steps + 1)))]


def history(freq: str = "D", **renamed: str) -> pd.DataFrame:
    days = pd.date_range("2024-01-31", periods=8, freq=freq)
    frame = pd.DataFrame({"unique_id": np.repeat(["a", "b"], [8, 2]), "ds": [*days, *days[:2]], "y": np.arange(10.0)})
    return frame.rename(columns=renamed)


@pytest.mark.parametrize("freq", ["D", "ME", "B"])
def test_a_row_tells_who_looked_where_and_how_much(freq: str) -> None:
    found = Looking(horizon=3).fit(history(freq)).explain()
    assert list(found.columns) == ["unique_id", "ds", "cutoff", "step", "lag", "kind", "layer", "head", "weight"]
    days = pd.date_range("2024-01-31", periods=11, freq=freq)
    mine = found[(found.unique_id == "a") & (found.kind == "cross") & (found["head"] == 1)]
    assert mine.step.tolist() == [1] * 4 + [2] * 4 + [1] * 4
    assert mine.cutoff.tolist() == [days[7]] * 8 + [days[9]] * 4
    assert mine.ds.tolist() == [days[8]] * 4 + [days[9]] * 4 + [days[10]] * 4
    assert mine.lag.tolist() == [*days[4:8], *days[4:8], *days[6:10]]
    np.testing.assert_allclose(mine.weight, [0.1, 0.2, 0.3, 0.4] * 3, rtol=1e-6)
    own = found[(found.unique_id == "a") & (found.kind == "self")]
    assert sorted(set(own.step)) == [-3, -2, -1, 0]
    assert (own.ds == own.cutoff.map(lambda end: end) + own.step.map(lambda step: days[7 + step] - days[7])).all()


def test_what_lies_before_a_series_is_left_out() -> None:
    found = Looking(horizon=3).fit(history()).explain()
    short = found[found.unique_id == "b"]
    start = history()[lambda one: one.unique_id == "b"].ds.min()
    assert short.lag.min() == start
    assert short.ds.min() == start
    keys = [name for name in found.columns if name not in ("lag", "weight")]
    np.testing.assert_allclose(found.groupby(keys).weight.sum(), 1.0, rtol=1e-6)
    assert len(found) == HEADS * (4 * 4 + 3 * 4) + HEADS * (2 * 2 + 2 * 2 + 4)
    assert found.unique_id.is_monotonic_increasing


def test_what_comes_in_comes_out() -> None:
    found = Looking(horizon=2).fit(pl.from_pandas(history())).explain(3)
    assert isinstance(found, pl.DataFrame)
    assert found.schema["lag"] == found.schema["ds"]
    columns = {"id": "shop", "time": "day"}
    own = Looking(horizon=3).fit(history(unique_id="shop", ds="day"), columns=columns).explain()
    assert list(own.columns[:2]) == ["shop", "day"]
    numbers = history().assign(ds=lambda one: one.groupby("unique_id").cumcount().astype("int32"))
    counted = Looking(horizon=3).fit(numbers, freq=1).explain()
    assert counted.lag.dtype == counted.cutoff.dtype == counted.ds.dtype == "int32"
    assert (counted.ds - counted.cutoff == counted.step).all()
    alone = Looking(horizon=3).fit(history()[lambda one: one.unique_id == "a"].drop(columns="unique_id")).explain()
    assert "unique_id" not in alone


def test_a_frame_too_large_is_refused_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Looking(horizon=3).fit(history())
    monkeypatch.setattr(forecast, "MAX_ATTENTION_ROWS", 70)
    with pytest.raises(DataError, match=r"at most 70 rows, .* Looking would have 80 for 2 series.*\(about 1 here\): explain\("):
        model.explain()
    assert len(model.explain(frame=history()[lambda one: one.unique_id == "a"])) == 56


def test_columns_of_these_names_are_taken() -> None:
    with pytest.raises(ParameterError, match="these are repeated: lag"):
        Looking(horizon=3).fit(history(unique_id="lag"), columns={"id": "lag"}).explain()


def test_who_does_not_look_says_so() -> None:
    class Blind(Naive):
        capabilities: Any = Capabilities()

    with pytest.raises(CapabilityError, match="Blind cannot explain its forecasts"):
        Blind(horizon=2).fit(history()).explain()
