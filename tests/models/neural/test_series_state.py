"""Where the series stand: the last rows of each, moved on by further ones, and by what they are scaled as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import LSTM, MLP, DLinear, Transformer, load
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, DataWarning
from deepforecast.models.neural import _series_state
from deepforecast.models.neural._series_state import window_columns
from tests.models.neural.test_predict import panel

ROWS = 5


def mixed() -> pd.DataFrame:
    """Two series of 20 and 3 rows with a column of every kind."""
    frame = pd.concat([panel(1, 20).assign(unique_id="a"), panel(1, 3, seed=1).assign(unique_id="b")], ignore_index=True)
    rng = np.random.default_rng(0)
    return frame.assign(
        price=rng.normal(size=23), visits=rng.normal(size=23), promo=pd.Categorical(np.arange(23) % 3),
        size=np.where(frame.unique_id == "a", 2.0, 7.0),
    )  # fmt: skip


COLUMNS = {"future": ["price", "promo"], "past": ["visits"], "static": ["size"]}


@pytest.fixture(scope="module")
def model() -> Any:
    return MLP(horizon=2, input_size=ROWS, hidden_sizes=[4], max_steps=1, calendar=None).fit(mixed(), columns=COLUMNS)


def test_the_last_rows_of_every_column_short_series_padded(model: Any) -> None:
    frame, held = mixed(), model.state_.learned.by_series
    long, short = frame[frame.unique_id == "a"], frame[frame.unique_id == "b"]
    covariates = {f"recent_values:{name}" for name in ("price", "visits", "promo")}
    assert set(held) == {"recent_values", *covariates, "static:size", "loc", "scale"}
    for name, column in (("recent_values", "y"), ("recent_values:price", "price"), ("recent_values:visits", "visits")):
        np.testing.assert_array_equal(held[name][0], long[column].to_numpy()[-ROWS:])
        np.testing.assert_array_equal(held[name][1], [np.nan, np.nan, *short[column]])
    np.testing.assert_array_equal(held["recent_values:promo"][0], long.promo.cat.codes.to_numpy()[-ROWS:])
    np.testing.assert_array_equal(held["recent_values:promo"][1], [-1, -1, *short.promo.cat.codes])
    assert held["static:size"].tolist() == [2.0, 7.0]


def test_further_rows_move_them_and_those_before_stay_where_there_are_few(model: Any) -> None:
    whole = mixed()
    last = whole.groupby("unique_id").cumcount(ascending=False) < 1
    before = MLP(horizon=2, input_size=ROWS, hidden_sizes=[4], max_steps=1, calendar=None).fit(whole[~last], columns=COLUMNS)
    held = before.state_.learned.by_series["recent_values"].copy()
    before.update(whole[last])
    for name, wanted in model.state_.learned.by_series.items():
        np.testing.assert_array_equal(before.state_.learned.by_series[name], wanted)
    np.testing.assert_array_equal(before.state_.learned.by_series["recent_values"][:, :-1], held[:, 1:])


def test_other_histories_begin_anew(model: Any) -> None:
    found = _series_state.from_history(model, model.state_.learned, Panel.from_frame(mixed()[:20], columns=COLUMNS))
    np.testing.assert_array_equal(found["recent_values"][0], mixed().y.to_numpy()[15:20])
    assert len(found["recent_values"]) == 1


def test_the_columns_of_the_fit_are_read_once(model: Any) -> None:
    learned = model.state_.learned
    assert window_columns(learned) is window_columns(learned)
    assert window_columns(learned).numeric == ("price", "visits")


@pytest.mark.parametrize(("scale_by", "places"), [("window", [0.0, 0.0]), ("series", [4.5, 1.0]), ("panel", [])])
def test_scales_of_series_and_of_all_together(scale_by: str, places: list[float]) -> None:
    days = pd.date_range("2024-01-01", periods=10, freq="D")
    frame = pd.concat([
        pd.DataFrame({"unique_id": "a", "ds": days, "y": np.arange(10.0)}),
        pd.DataFrame({"unique_id": "b", "ds": days[:3], "y": [0.0, np.nan, 2.0]}),
        pd.DataFrame({"unique_id": "b", "ds": days[3:4], "y": [1.0]}),
    ])  # fmt: skip
    own = Panel.from_frame(frame)
    place, spread = _series_state.series_scales(own, MLP(scaler_scope=scale_by))
    if scale_by == "panel":
        places = [np.nanmean(frame.y)] * 2
    np.testing.assert_allclose(place, places)
    wanted = {"window": [1.0, 1.0], "series": [np.arange(10).std(), np.std([0.0, 2.0, 1.0])], "panel": [np.nanstd(frame.y)] * 2}
    np.testing.assert_allclose(spread, wanted[scale_by])


def test_a_scale_of_the_panel_is_that_of_the_fit_for_other_histories() -> None:
    model = MLP(horizon=2, input_size=ROWS, hidden_sizes=[4], max_steps=1, calendar=None, scaler_scope="panel").fit(
        panel(2, 30)
    )
    other = Panel.from_frame(panel(3, 12, seed=3).assign(y=lambda one: 1000 * one.y))
    found = _series_state.from_history(model, model.state_.learned, other)
    assert found["loc"].tolist() == [model.state_.learned.shared["panel_scale"][0]] * 3
    assert found["scale"].tolist() == [model.state_.learned.shared["panel_scale"][1]] * 3


@pytest.mark.filterwarnings("ignore:MLP forecasts through missing values:deepforecast.errors.DataWarning")
def test_a_series_of_which_nothing_is_seen_is_refused_and_not_zero() -> None:
    frame = panel(2, 40)
    lost = frame.assign(y=frame.y.where((frame.unique_id == "s0000") | (frame.groupby("unique_id").cumcount() < 35)))
    model = MLP(horizon=2, input_size=ROWS, hidden_sizes=[4], max_steps=1).fit(frame)
    for act in (
        lambda: model.predict(frame=lost), lambda: model.simulate(2, frame=lost), lambda: model.clone().fit(lost).predict()
    ):  # fmt: skip
        with pytest.raises(
            DataError, match=r"last 5 time steps of each series; all are missing in series s0001 \(up to 2020-02-09"
        ):
            act()
    with pytest.raises(DataError, match="all are missing"):
        model.predictor()(np.full(ROWS, np.nan), last_time=frame.ds.max())
    one = lost.assign(y=lost.y.where((frame.groupby("unique_id").cumcount() != 35), 3.0))
    assert model.predict(frame=one).MLP.iloc[2:].tolist() == [3.0, 3.0], "a single value that is known is gone on with"
    filled = model.clone(missing="ffill").fit(lost).predict()
    assert filled.MLP.iloc[2:].tolist() == [lost.y.iloc[74]] * 2


@pytest.mark.parametrize("cls", [MLP, DLinear, LSTM, Transformer])
def test_a_column_that_never_changed_counts_as_nothing_and_this_is_said(cls: Any, tmp_path: Path) -> None:
    whole = mixed().drop(columns=["promo", "size"]).assign(price=9.99, visits=3.0)
    frame, columns = whole[whole.unique_id == "a"], {"future": ["price"], "past": ["visits"]}
    model = cls(horizon=2, input_size=ROWS, max_steps=1, batch_size=8).fit(frame, columns=columns)
    same = model.predict(future=model.future_frame().assign(price=9.99))[cls.__name__]
    with pytest.warns(DataWarning, match="constant in the training data: price of series a"):
        found = model.predict(future=model.future_frame().assign(price=8.0))[cls.__name__]
    np.testing.assert_array_equal(found, same)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model").predict(future=model.future_frame().assign(price=9.99))[cls.__name__]
    np.testing.assert_array_equal(again, same)
    elsewhere = model.predict(frame=frame.assign(visits=99.0), future=model.future_frame().assign(price=9.99))[cls.__name__]
    np.testing.assert_array_equal(elsewhere, same)
