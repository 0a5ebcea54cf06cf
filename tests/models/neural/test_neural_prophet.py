"""`NeuralProphet`: components that add up, trend and seasons that depend on time alone, lags, own components, what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import NeuralProphet, load
from deepforecast.core import encoding
from deepforecast.datasets import generate
from deepforecast.errors import CapabilityError, DataWarning, ModelFileError, ParameterError
from tests.models.neural.test_serialization import tree

FAST: dict[str, Any] = {"max_steps": 30, "batch_size": 32}
OFF = {"yearly_seasonality": False, "weekly_seasonality": False, "daily_seasonality": False}


def daily(values: Any, name: str = "a", start: str = "2023-01-01", freq: str = "D", **more: Any) -> pd.DataFrame:
    values = np.asarray(values, dtype=float)
    return pd.DataFrame({"unique_id": name, "ds": pd.date_range(start, periods=len(values), freq=freq), "y": values, **more})


def noise(size: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=size)


def wide(model: NeuralProphet, **given: Any) -> pd.DataFrame:
    return model.explain(**given).pivot(index=["unique_id", "ds"], columns="component", values="value")


# -- components ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [7, 12])
@pytest.mark.parametrize(
    "rest", [{}, {"local": ["trend", "seasons", "events", "regressors"]}, {"seasonality_mode": "multiplicative"}]
)
def test_components_add_up(rest: dict[str, Any], steps: int) -> None:
    size = 120
    frame = pd.concat([
        daily(100 + 5 * noise(size, seed), f"s{seed}", promo=np.arange(size) % 9 == 0, heat=noise(size, seed + 9))
        for seed in range(2)
    ])  # fmt: skip
    events = {"fair": {"dates": ["2023-03-04", "2023-05-03"], "upper_window": 1}}
    model = NeuralProphet(horizon=7, input_size=10, holidays="US", events=events, **FAST, **rest)
    model.fit(frame.assign(promo=frame["promo"].astype(float)), columns={"future": ["promo", "heat"]})
    future = model.future_frame(steps).assign(promo=1.0, heat=0.5)
    parts, whole = wide(model, horizon=steps, future=future), model.predict(steps, future=future)["NeuralProphet"]
    assert {"trend", "weekly", "holidays", "fair", "promo", "heat", "ar"} <= set(parts)
    np.testing.assert_allclose(parts.sum(axis=1), whole, rtol=1e-6)
    assert ("rest" in parts) == (steps > 7)


def test_trend_and_seasons_hang_on_time_alone() -> None:
    frame = generate(2, 120)
    model = NeuralProphet(horizon=7, input_size=10, **FAST).fit(frame)
    other = frame.assign(y=frame["y"] + np.where(frame.groupby("unique_id").cumcount() > 110, 50.0, 0.0))
    ours, theirs = wide(model), wide(model, frame=other)
    for name in ("trend", "weekly"):
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-5)
    assert (ours["ar"] - theirs["ar"]).abs().max() > 0.1


def test_without_lags_values_do_not_count_and_any_horizon_is_one_sum() -> None:
    model = NeuralProphet(horizon=7, input_size=0, **FAST).fit(generate(2, 120))
    whole, parts = model.predict(30), wide(model, horizon=30)
    assert sorted(parts) == ["trend", "weekly"]
    np.testing.assert_allclose(parts.sum(axis=1), whole["NeuralProphet"], rtol=1e-6)
    np.testing.assert_allclose(whole.groupby("unique_id").head(7)["NeuralProphet"], model.predict()["NeuralProphet"], rtol=1e-6)


def test_it_starts_from_the_likeliest_straight_components() -> None:
    day = np.arange(400.0)
    y = 50 + 0.2 * day - 0.3 * np.maximum(day - 160, 0) + 4 * np.sin(2 * np.pi * day / 7) + 0.2 * noise(400)
    model = NeuralProphet(horizon=14, input_size=0, max_steps=1, learning_rate=1e-9, yearly_seasonality=False)
    found = model.fit(daily(y[:-14])).predict()["NeuralProphet"]
    np.testing.assert_allclose(found, y[-14:], atol=1.0)


def test_rows_held_out_are_not_started_from() -> None:
    y = np.concatenate([10 + 0.1 * noise(100), 30 + 0.1 * noise(20)])
    model = NeuralProphet(horizon=5, input_size=0, max_steps=1, learning_rate=1e-9, validation_size=20, growth="flat", **OFF)
    assert model.fit(daily(y)).predict()["NeuralProphet"].max() == pytest.approx(10.0, abs=0.2)


def test_changes_of_slope_may_be_given() -> None:
    day = np.arange(300.0)
    y = 50 + 0.2 * day - 0.5 * np.maximum(day - 250, 0)
    given = NeuralProphet(horizon=10, input_size=0, changepoints=["2023-09-08"], max_steps=1, learning_rate=1e-9, **OFF)
    np.testing.assert_allclose(np.diff(given.fit(daily(y)).predict()["NeuralProphet"]), -0.3, atol=0.01)
    with pytest.raises(ParameterError, match=r"within the history.*2030-01-01"):
        given.clone(changepoints=["2030-01-01"]).fit(daily(y))


def test_a_season_holds_where_its_condition_does() -> None:
    day = np.arange(280)
    on = (day // 28 % 2).astype(float)
    frame = daily(20 + on * 5 * np.sin(2 * np.pi * day / 7) + 0.1 * noise(280), on=on)
    seasons = {"when_on": {"period": 7, "order": 1, "condition": "on"}}
    model = NeuralProphet(horizon=7, input_size=0, seasonalities=seasons, max_steps=300, learning_rate=0.03, **OFF)
    model.fit(frame, columns={"future": ["on"]})
    ahead = model.future_frame()
    off, held = (wide(model, future=ahead.assign(on=one))["when_on"] for one in (0.0, 1.0))
    assert off.abs().max() < 1e-6
    assert np.ptp(held) > 6.0


def test_a_column_that_never_changed_counts_as_nothing_and_this_is_said() -> None:
    frame = daily(20 + noise(60), price=9.99)  # the mean of many is not quite 9.99
    model = NeuralProphet(horizon=2, input_size=0, **FAST).fit(frame, columns={"future": ["price"]})
    same = model.predict(future=model.future_frame().assign(price=9.99))
    with pytest.warns(DataWarning, match="constant in the training data: price"):
        found = model.predict(future=model.future_frame().assign(price=8.0))
    np.testing.assert_array_equal(found["NeuralProphet"], same["NeuralProphet"])


# -- a series' own -------------------------------------------------------------------------------------------------------------


def two(slopes: tuple[float, float]) -> pd.DataFrame:
    lines = [20 + slope * np.arange(150) + 0.2 * noise(150, one) for one, slope in enumerate(slopes)]
    return pd.concat([daily(values, f"s{one}") for one, values in enumerate(lines)])


def test_each_series_may_have_a_trend_of_its_own() -> None:
    frame = two((0.1, -0.1))
    settings: dict[str, Any] = {"input_size": 0, "n_changepoints": 0, "max_steps": 200, "learning_rate": 0.03, **OFF}

    def errors(local: tuple[str, ...]) -> float:
        found = NeuralProphet(horizon=10, local=local, **settings).fit(frame).predict()
        wanted = np.concatenate([20 + slope * np.arange(150, 160) for slope in (0.1, -0.1)])
        return float(np.abs(found["NeuralProphet"] - wanted).mean())

    assert errors(("trend",)) < 1.5 < 5 < errors(())


def test_a_series_not_seen_has_the_mean_of_all_and_this_is_said() -> None:
    frame = two((0.1, -0.1))
    model = NeuralProphet(horizon=5, input_size=5, local=["trend"], **FAST).fit(frame)
    with pytest.warns(DataWarning, match=r"has trend coefficients per series; .* not seen in fit: new"):
        found = model.predict(frame=pd.concat([frame, frame[frame["unique_id"] == "s0"].assign(unique_id="new")]))
    assert found["unique_id"].nunique() == 3
    with pytest.raises(ParameterError, match=r"seasonal.* in `local`.*trend.*seasons"):
        NeuralProphet(horizon=5, local=["seasonal"], **FAST).fit(frame)


def test_the_scale_of_a_series_stays_that_of_the_fit() -> None:
    frame = two((0.1, 0.1))
    model = NeuralProphet(horizon=5, input_size=0, **FAST).fit(frame)
    last = frame.groupby("unique_id").tail(10)
    pd.testing.assert_frame_equal(model.predict(frame=last), model.predict())


def test_a_file_keeps_what_is_a_series_own(tmp_path: Path) -> None:
    model = NeuralProphet(horizon=5, input_size=5, local=["trend", "seasons"], holidays="DE", **FAST).fit(two((0.1, -0.1)))
    model.save(tmp_path / "model.dfc")
    found = load(tmp_path / "model.dfc")
    pd.testing.assert_frame_equal(found.predict(level=80), model.predict(level=80), check_exact=True)
    pd.testing.assert_frame_equal(found.explain(), model.explain(), check_exact=True)


@pytest.mark.parametrize(("name", "value"), [
    ("span", 0), ("start", "now"), ("n_values", -1), ("country", "XX"), ("changepoints", {"list": ["soon"], "tuple": False}),
    ("components", 3),
])  # fmt: skip
def test_a_file_whose_time_is_none_is_refused(name: str, value: Any, tmp_path: Path) -> None:
    NeuralProphet(horizon=5, input_size=5, **FAST).fit(two((0.1, -0.1))).save(tmp_path / "model.dfc")
    manifest, arrays = encoding.read_archive(tmp_path / "model.dfc")
    held = tree(manifest, "window_columns", "time_features")
    assert name in held
    held[name] = value
    encoding.write_archive(tmp_path / "other.dfc", manifest, arrays)
    with pytest.raises(ModelFileError):
        load(tmp_path / "other.dfc")


# -- lags ----------------------------------------------------------------------------------------------------------------------


def test_lags_are_learned_and_a_prior_makes_them_few() -> None:
    from scipy.signal import lfilter

    frame = daily(lfilter([1.0], [1.0, -0.8], noise(600)))
    settings: dict[str, Any] = {"horizon": 1, "input_size": 20, "max_steps": 400, "learning_rate": 0.02, "head": "point", **OFF}
    plain, sparse = (NeuralProphet(lag_prior_scale=one, **settings).fit(frame) for one in (None, 0.01))
    weights = [model.network_.body.lag_layers.weight.detach().numpy()[0] for model in (plain, sparse)]
    for one in weights:
        assert one[-1] == pytest.approx(0.8, abs=0.2)
    assert np.abs(weights[1][:-1]).sum() < 0.4 * np.abs(weights[0][:-1]).sum()


def test_a_missing_lag_counts_as_expected() -> None:
    frame = daily(20 + 0.2 * np.arange(200) + 0.1 * noise(200))
    model = NeuralProphet(horizon=3, input_size=5, max_steps=200, batch_size=32, **OFF).fit(frame)
    gone = frame.assign(y=frame["y"].where(frame.index < 195))
    with pytest.warns(DataWarning, match="missing"):
        found = wide(model, frame=gone)
    np.testing.assert_allclose(found["ar"], 0.0, atol=1e-6)


def test_a_constant_series_and_a_level_far_from_zero() -> None:
    frame = pd.concat([
        daily(np.full(60, 7.0), "flat"), daily(3e9 + 4 * np.sin(2 * np.pi * np.arange(60) / 7), "high"), daily(noise(60), "low")
    ])  # fmt: skip
    found = NeuralProphet(horizon=7, input_size=14, max_steps=200, batch_size=32).fit(frame).predict(level=80)
    flat = found[found["unique_id"] == "flat"]
    assert (flat.iloc[:, 2:] == 7.0).all(axis=None)
    high = found.loc[found["unique_id"] == "high", "NeuralProphet"] - 3e9
    np.testing.assert_allclose(high, 4 * np.sin(2 * np.pi * np.arange(60, 67) / 7), atol=2.5)


def test_what_has_no_effect_or_no_place_is_refused() -> None:
    frame = daily(noise(60))
    with pytest.raises(ParameterError, match=r"hidden_sizes=.* has no effect with input_size=0"):
        NeuralProphet(horizon=3, input_size=0, hidden_sizes=[4], **FAST).fit(frame)
    with pytest.raises(ParameterError, match=r"changepoint_range=0\.9 has no effect with growth='flat'"):
        NeuralProphet(horizon=3, growth="flat", changepoint_range=0.9, **FAST).fit(frame)
    with pytest.raises(CapabilityError, match="load"):
        NeuralProphet(horizon=3, input_size=0, **FAST).fit(frame.assign(load=1.0), columns={"past": ["load"]})
    with pytest.raises(ParameterError, match=r"used more than once: ar"):
        NeuralProphet(horizon=3, seasonalities={"ar": {"period": 7, "order": 1}}, **FAST).fit(frame)
    with pytest.raises(CapabilityError, match=r"predict\(frame=\.\.\.\)"):
        NeuralProphet(horizon=3, input_size=5, **FAST).fit(frame).predictor()
