"""`score`: the right numbers by every key, whatever the order, the library and the names of the frames."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from utilsforecast import losses
from utilsforecast.evaluation import evaluate

from deepforecast.data.columns import Columns
from deepforecast.errors import ParameterError
from deepforecast.evaluation.score import score

RANDOM = np.random.default_rng(0)


def test_metrics_of_six_numbers_by_hand() -> None:
    ds = pd.to_datetime(["2024-01-03", "2024-01-04", "2024-01-05"] * 2)
    frame = pd.DataFrame({"unique_id": ["a"] * 3 + ["b"] * 3, "ds": ds, "y": [10.0, 20.0, 0.0, 4.0, 8.0, 4.0]})
    frame["M"] = [12.0, 19.0, 0.0, 4.0, 2.0, 4.0]
    frame["M-lo-80"], frame["M-hi-80"] = frame["M"] - 2, frame["M"] + 2
    earlier = pd.to_datetime(["2024-01-01", "2024-01-02"] * 2)
    train = pd.DataFrame({"unique_id": ["a", "a", "b", "b"], "ds": earlier, "y": [1.0, 3.0, 7.0, 4.0]})
    found = score(frame, train=train, season_length=1).iloc[0]
    expected = {
        "mae": 9 / 6,
        "rmse": np.sqrt((4 + 1 + 36) / 6),
        "smape": ((200 * 2 / 22 + 200 * 1 / 39) / 3 + (200 * 6 / 10) / 3) / 2,
        "wape": 9 / 46,
        "bias": (2 - 1 - 6) / 6,
        "mase": (3 / 3 / 2 + 6 / 3 / 3) / 2,  # scales 2 and 3
        "rmsse": (np.sqrt(5 / 3 / 4) + np.sqrt(36 / 3 / 9)) / 2,
        "coverage-80": 5 / 6,
        "width-80": 4.0,
        "winkler-80": 4 + 10 * 4 / 6,  # 8 is 4 above the interval
        "msis-80": (4 / 2 + (4 + 10 * 4 / 3) / 3) / 2,
    }
    assert found.index.tolist() == ["model", *expected]
    assert found.drop("model").to_dict() == pytest.approx(expected)


def test_metrics_equal_utilsforecast(given: Any) -> None:
    last = given.last.drop(columns="cutoff")
    theirs = evaluate(
        last,
        metrics=[losses.mae, losses.rmse, losses.mape, losses.bias, losses.smape],
        models=["B", "A"],
    )
    ours = score(given.predicted, actual=given.actual, metrics=["mae", "rmse", "mape", "bias", "smape"], by="series")
    for name in ("mae", "rmse", "mape", "bias", "smape"):
        expected = theirs[theirs["metric"] == name].set_index("unique_id")[["B", "A"]]
        found = ours.pivot(index="unique_id", columns="model", values=name)[["B", "A"]]
        unit = 200 if name == "smape" else 1  # theirs runs from 0 to 1
        np.testing.assert_allclose(found, expected * unit, err_msg=name)


def test_scaled_metrics_equal_utilsforecast(given: Any) -> None:
    begins = given.frame["unique_id"].map(given.predicted.groupby("unique_id")["ds"].min())
    train = given.frame[given.frame["ds"] < begins]
    last = given.last.drop(columns="cutoff")
    ours = score(given.predicted, actual=given.actual, train=given.frame, metrics=["mase", "rmsse"], by="series")
    for name, theirs in (("mase", losses.mase), ("rmsse", losses.rmsse)):
        expected = theirs(last, ["B", "A"], seasonality=12, train_df=train).set_index("unique_id")[["B", "A"]].sort_index()
        found = ours.pivot(index="unique_id", columns="model", values=name)[["B", "A"]]
        np.testing.assert_allclose(found, expected, err_msg=name)


def test_by_model_alone(given: Any) -> None:
    found = score(given.points, train=given.frame).set_index("model")
    assert found.columns.tolist() == ["mae", "rmse", "smape", "wape", "bias", "mase", "rmsse"]
    assert found.index.tolist() == ["B", "A"]
    for model in ("B", "A"):
        for name in ("mae", "rmse", "smape", "wape", "bias"):
            assert found.loc[model, name] == pytest.approx(given.by_hand(given.points, model, name)), name
        assert found.loc[model, "mase"] == pytest.approx(given.by_hand(given.points, model, "mase", scale=given.scales()))
        rmsse = given.by_hand(given.points, model, "rmsse", squared_scale=given.scales(squared=True))
        assert found.loc[model, "rmsse"] == pytest.approx(rmsse)


@pytest.mark.parametrize("by", ["series", "cutoff", "step", "cutoff series", "step series", "series cutoff step"])
def test_by_series_cutoff_and_step(given: Any, by: str) -> None:
    found = score(given.points, train=given.frame, by=by.split())
    keys = ["unique_id" if name == "series" else name for name in by.split()]
    assert found.columns.tolist() == [*keys, "model", "mae", "rmse", "smape", "wape", "bias", "mase", "rmsse"]
    expected, scales = [], given.scales()
    for key, own in given.stepped.groupby(keys):
        for model in ("B", "A"):
            values = {name: given.by_hand(own, model, name) for name in ("mae", "rmse", "smape", "wape", "bias")}
            values["mase"] = given.by_hand(own, model, "mase", scale=scales)
            expected.append({**dict(zip(keys, key, strict=True)), "model": model, **values})
    table = pd.DataFrame(expected)
    pd.testing.assert_frame_equal(found.drop(columns="rmsse"), table, check_dtype=False, rtol=1e-12)


def test_the_order_of_by_is_that_of_the_table(given: Any) -> None:
    found = score(given.points, metrics="mae", by=["cutoff", "unique_id"])
    assert found.equals(found.sort_values(["cutoff", "unique_id"], kind="stable"))
    other = score(given.points, metrics="mae", by=["unique_id", "cutoff", "model"])
    assert other.equals(other.sort_values(["unique_id", "cutoff"], kind="stable"))
    assert other.columns.tolist() == ["unique_id", "cutoff", "model", "mae"]


def test_rows_in_any_order_give_the_same_bits(given: Any) -> None:
    sorted_rows = score(given.rolled, train=given.frame, by=["series", "step"])
    for seed in range(3):
        forecasts, train = (frame.sample(frac=1, random_state=seed) for frame in (given.rolled, given.frame))
        mixed = score(forecasts, train=train, by=["series", "step"])
        pd.testing.assert_frame_equal(mixed, sorted_rows, check_exact=True)
    windows_first = score(given.rolled.sort_values(["cutoff", "unique_id", "ds"]), train=given.frame, by=["series", "step"])
    pd.testing.assert_frame_equal(windows_first, sorted_rows, check_exact=True)


def test_the_frames_are_left_alone(given: Any) -> None:
    forecasts, train, actual = given.rolled.copy(), given.frame.copy(), given.actual.copy()
    score(forecasts, train=train, by=["series", "step"])
    score(given.predicted, actual=actual)
    pd.testing.assert_frame_equal(forecasts, given.rolled)
    pd.testing.assert_frame_equal(train, given.frame)
    pd.testing.assert_frame_equal(actual, given.actual)


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_what_comes_in_comes_out(given: Any, library: str) -> None:
    convert = pl.from_pandas if library == "polars" else lambda frame: pa.Table.from_pandas(frame, preserve_index=False)
    by = ["series", "cutoff", "step"]
    expected = score(given.rolled, train=given.frame, by=by)
    found = score(convert(given.rolled), train=convert(given.frame), by=by)
    assert type(found).__module__.startswith(library)
    table = found.to_pandas()
    assert table["unique_id"].tolist() == expected["unique_id"].tolist()
    assert table["model"].tolist() == expected["model"].tolist()
    assert (pd.to_datetime(table["cutoff"]) == expected["cutoff"]).all()
    keys = ["unique_id", "model", "cutoff"]
    np.testing.assert_array_equal(table.drop(columns=keys), expected.drop(columns=keys))


def test_frames_of_different_libraries_meet(given: Any) -> None:
    expected = score(given.predicted, actual=given.actual, train=given.frame)
    train = pa.Table.from_pandas(given.frame, preserve_index=False)
    found = score(given.predicted, actual=pl.from_pandas(given.actual), train=train)
    pd.testing.assert_frame_equal(found, expected)


def test_id_and_cutoff_keep_their_dtypes(given: Any) -> None:
    frame = given.points.assign(unique_id=given.points["unique_id"].map({"a": 30, "b": 4, "c": 200}).astype("int32"))
    frame["ds"], frame["cutoff"] = (frame[name].dt.tz_localize("Europe/Berlin").dt.as_unit("ms") for name in ("ds", "cutoff"))
    found = score(frame, metrics="mae", by=["series", "cutoff"])
    assert found["unique_id"].dtype == "int32"
    assert found["unique_id"].drop_duplicates().tolist() == [4, 30, 200]
    assert found["cutoff"].dtype == frame["cutoff"].dtype
    category = given.points.assign(unique_id=pd.Categorical(given.points["unique_id"], categories=["c", "x", "b", "a"]))
    found = score(category, metrics="mae", by="series")
    assert found["unique_id"].dtype == category["unique_id"].dtype
    assert found["mae"].tolist() == score(given.points, metrics="mae", by="series")["mae"].tolist()


def test_names_said_and_recognised(given: Any) -> None:
    expected = score(given.points, metrics="mae", by="series")["mae"].tolist()
    dialect = given.points.rename(columns={"unique_id": "item_id", "ds": "timestamp", "y": "target"})
    assert score(dialect, metrics="mae", by="item_id")["mae"].tolist() == expected
    own = given.points.rename(columns={"unique_id": "shop", "ds": "day", "y": "sales"}).assign(promo=1.0)
    said = {"id": "shop", "time": "day", "target": "sales", "future": ["promo"]}
    for columns in (said, Columns("shop", "day", "sales", future=("promo",))):
        found = score(own, metrics="mae", by="shop", columns=columns)
        assert found["mae"].tolist() == expected
        assert set(found["model"]) == {"A", "B"}
    predicted = given.predicted.rename(columns={"unique_id": "item_id", "ds": "timestamp"})
    actual = given.actual.rename(columns={"unique_id": "item_id", "ds": "timestamp", "y": "target"})
    assert score(predicted, actual=actual)["mae"].tolist() == score(given.predicted, actual=given.actual)["mae"].tolist()


def test_one_series_without_an_id(given: Any) -> None:
    one = given.points[given.points["unique_id"] == "b"].drop(columns="unique_id")
    train = given.frame[given.frame["unique_id"] == "b"].drop(columns="unique_id")
    expected = score(given.points[given.points["unique_id"] == "b"], train=given.frame, by=["series", "cutoff"])
    found = score(one, train=train, by=["series", "cutoff"])
    pd.testing.assert_frame_equal(found, expected.drop(columns="unique_id"))
    with pytest.raises(ParameterError, match="got unique_id"):
        score(one, by="unique_id")


def test_integer_time() -> None:
    frame = pd.DataFrame({"unique_id": "a", "ds": [7, 9, 11], "cutoff": 5, "y": [1.0, 2.0, 3.0], "A": [2.0, 2.0, 5.0]})
    train = pd.DataFrame({"unique_id": "a", "ds": [-1, 1, 3, 5, 7], "y": [1.0, 2.0, 4.0, 7.0, 99.0]})
    assert score(frame, metrics="mae", by="step")["step"].tolist() == [1, 2, 3]
    assert score(frame, metrics="mase", train=train, season_length=1)["mase"][0] == 0.5
    with pytest.raises(ParameterError, match="season_length"):
        score(frame, train=train)


def test_many_series_take_no_time() -> None:
    series, horizon, models = 20_000, 18, 5
    ds = pd.date_range("2024-01-01", periods=horizon)
    frame = pd.DataFrame({"unique_id": np.repeat(np.arange(series), horizon), "ds": np.tile(ds, series)})
    frame["y"] = RANDOM.lognormal(size=len(frame))
    for model in range(models):
        frame[f"M{model}"] = frame["y"] + model
    begin = time.process_time()
    found = score(frame, metrics=["mae", "rmse", "smape", "wape", "bias", "mape"], by="series")
    assert time.process_time() - begin < 2.0  # thirty times what it takes
    assert len(found) == series * models
    np.testing.assert_allclose(found["mae"].to_numpy().reshape(series, models), np.tile(np.arange(5.0), (series, 1)), atol=1e-9)
