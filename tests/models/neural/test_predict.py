"""Forecasts of all series in batches: the same alone as among others, beyond the horizon learned, for any magnitude."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import deepforecast
from deepforecast.core.threads import limit_torch_threads
from deepforecast.errors import DataWarning

ROWS, HORIZON = 24, 6


def panel(series: int, rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    week = 5 * np.sin(2 * np.pi * np.arange(rows) / 7)
    y = week + rng.normal(size=(series, rows)).cumsum(axis=1)
    days = pd.date_range("2020-01-01", periods=rows, freq="D")
    ids = np.repeat([f"s{number:04d}" for number in range(series)], rows)
    return pd.DataFrame({"unique_id": ids, "ds": np.tile(days, series), "y": y.reshape(-1)})


def fitted(name: str, **rest: Any) -> Any:
    sizes: dict[str, dict[str, Any]] = {"MLP": {"hidden_sizes": [32, 32]}, "LSTM": {"hidden_size": 16, "decoder_size": 16}}
    small = sizes.get(name, {})
    if rest.get("output") == "autoregressive":
        del small["decoder_size"]
    model = getattr(deepforecast, name)(horizon=HORIZON, **{"input_size": ROWS, "max_steps": 5, **small, **rest})
    return model.fit(panel(4, 120))


@pytest.fixture(scope="module")
def many() -> pd.DataFrame:
    return panel(1000, 30, seed=1)


@pytest.mark.parametrize("name", ["DLinear", "MLP", "LSTM"])
def test_a_forecast_does_not_depend_on_the_batch_or_the_threads(name: str, many: pd.DataFrame) -> None:
    model, found = fitted(name), {}
    for threads in (1, 2):
        with limit_torch_threads(threads):
            whole = model.predict(frame=many, quantiles=[0.1]).set_index("unique_id")
            for count in (1, 2, 3, 4, 5, 7, 9, 511, 513):
                ids = many.unique_id.unique()[-count:]
                part = model.predict(frame=many[many.unique_id.isin(ids)], quantiles=[0.1]).set_index("unique_id")
                same_to_rounding(part, whole.loc[ids])
            found[threads] = whole
    same_to_rounding(found[1], found[2])


def same_to_rounding(one: pd.DataFrame, other: pd.DataFrame) -> None:
    """To 1e-6 of a forecast's size; how many rows processors add up at once, and so the last bits, differs."""
    pd.testing.assert_frame_equal(one[["ds"]], other[["ds"]])
    values, others = (frame.drop(columns="ds").to_numpy() for frame in (one, other))
    np.testing.assert_allclose(values, others, rtol=0, atol=1e-6 * np.abs(others).max())


def test_a_pass_is_padded_to_whole_rows_of_four(monkeypatch: pytest.MonkeyPatch) -> None:
    model, seen = fitted("MLP"), []
    inputs = type(model.network_).inputs
    monkeypatch.setattr(type(model.network_), "inputs", lambda self, batch: seen.append(len(batch)) or inputs(self, batch))
    model.predict(frame=panel(9, 30))
    assert seen == [12]


def test_beyond_the_horizon_a_point_is_fed_its_own_points() -> None:
    model, history = fitted("MLP", head="point"), panel(3, 40)
    found = model.predict(3 * HORIZON, frame=history)
    for _ in range(3):
        step = model.predict(frame=history)
        history = pd.concat([history, step.rename(columns={"MLP": "y"})]).sort_values(["unique_id", "ds"])
    by_hand = history.groupby("unique_id").tail(3 * HORIZON)
    np.testing.assert_allclose(found["MLP"], by_hand["y"], rtol=1e-9)


def test_beyond_the_horizon_columns_known_ahead_count() -> None:
    frame = panel(2, 120).assign(promo=lambda one: np.arange(len(one)) % 5 == 0).astype({"promo": float})
    given = {"columns": {"future": ["promo"]}}
    model = deepforecast.MLP(
        horizon=HORIZON, input_size=ROWS, hidden_sizes=[16], head="point", max_steps=30, learning_rate=1e-2
    )
    model.fit(frame, **given)
    ahead = model.future_frame(2 * HORIZON).assign(promo=0.0)
    late = ahead.assign(promo=(ahead.groupby("unique_id").cumcount() == 2 * HORIZON - 1).astype(float))
    plain, moved = (model.predict(2 * HORIZON, future=one)["MLP"].to_numpy().reshape(2, -1) for one in (ahead, late))
    assert (plain[:, :HORIZON] == moved[:, :HORIZON]).all()  # what is known of later blocks is not theirs
    assert (plain[:, -1] != moved[:, -1]).all()


def test_quantiles_beyond_the_horizon_go_on_widening() -> None:
    model = fitted("MLP", max_steps=60)
    found = model.predict(4 * HORIZON, level=80)
    wide = (found["MLP-hi-80"] - found["MLP-lo-80"]).to_numpy().reshape(4, -1).mean(axis=0)
    assert wide[-HORIZON:].mean() > wide[:HORIZON].mean()
    assert found.notna().all().all()


def test_from_several_threads_as_from_one(many: pd.DataFrame) -> None:
    model, part = fitted("LSTM"), many.head(30 * 40)
    frames = [part[part.unique_id == name] for name in part.unique_id.unique()]
    alone = [model.predict(frame=one) for one in frames]
    with ThreadPoolExecutor(4) as pool:
        for one, other in zip(alone, pool.map(lambda frame: model.predict(frame=frame), frames), strict=True):
            pd.testing.assert_frame_equal(one, other, check_exact=True)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e12])
@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_forecasts_follow_scale_and_shift(scale: float, shift: float) -> None:
    model, frame = fitted("MLP"), panel(3, 40)
    plain = model.predict(frame=frame)["MLP"].to_numpy()
    moved = model.predict(frame=frame.assign(y=scale * (frame.y + shift)))["MLP"].to_numpy()
    np.testing.assert_allclose(moved, scale * (plain + shift), rtol=0, atol=2e-5 * scale)


def test_a_season_of_five_upon_two_thousand_million() -> None:
    model, frame = fitted("MLP", scaler="standard"), panel(2, 40)
    frame["y"] = 5 * np.sin(np.arange(len(frame)))
    plain, high = (model.predict(frame=frame.assign(y=frame.y + level))["MLP"].to_numpy() for level in (0.0, 2e9))
    np.testing.assert_allclose(high - 2e9, plain, atol=1e-4)


def test_constants_have_bands_of_no_width() -> None:
    found = fitted("MLP").predict(frame=panel(2, 40).assign(y=7.0), level=90)
    assert (found[["MLP", "MLP-lo-90", "MLP-hi-90"]] == 7.0).all().all()


def test_unseen_series_short_and_with_holes() -> None:
    model, frame = fitted("MLP"), panel(3, 40)
    frame.loc[[30, 31, 79], "y"] = np.nan
    frame = frame.drop(index=range(80, 118))  # two rows are left of the last
    with pytest.warns(DataWarning, match="forecasts through missing values"):
        found = model.predict(frame=frame, level=80)
    assert len(found) == 3 * HORIZON
    assert found.notna().all().all()


def test_the_clock_of_each_series_is_its_own() -> None:
    model, frame = fitted("MLP", max_steps=40), panel(2, 40)
    late = frame.unique_id == "s0001"
    frame.loc[late, "ds"] += pd.Timedelta(days=3)
    alone = model.predict(frame=frame[late])
    beside = model.predict(frame=frame)
    pd.testing.assert_frame_equal(alone, beside[beside.unique_id == "s0001"].reset_index(drop=True), check_exact=True)


def test_threads_are_as_they_were() -> None:
    with limit_torch_threads(2):
        fitted("DLinear").predict()
        assert torch.get_num_threads() == 2


def test_paths_of_some_series_after_the_other_are_those_of_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from deepforecast.models.neural import _horizon_forecaster

    model = deepforecast.MLP(horizon=4, input_size=8, hidden_sizes=[8], max_steps=3).fit(panel(10, 40))
    whole = model.predict(11, level=80), model.simulate(3, 11, seed=2)
    monkeypatch.setattr(_horizon_forecaster, "MAX_VALUES", 1)
    groups: list[int] = []
    plain = _horizon_forecaster.sample_paths
    monkeypatch.setattr(
        _horizon_forecaster,
        "sample_paths",
        lambda forecaster, *rest: groups.append(len(forecaster.recent_values)) or plain(forecaster, *rest),
    )
    again = model.predict(11, level=80), model.simulate(3, 11, seed=2)
    assert groups == [4, 4, 2] * 3  # quantiles, paths, and the quantiles that move the paths
    for one, other in zip(whole, again, strict=True):
        pd.testing.assert_frame_equal(one, other)
