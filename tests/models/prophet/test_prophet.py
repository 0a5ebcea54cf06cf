"""`Prophet`: trends, seasons, holidays, events, regressors, bands, and what it refuses."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import deepforecast
from deepforecast import NeuralProphet, Prophet, cross_validate, load
from deepforecast.errors import DataError, DataWarning, ParameterError, ParameterTypeError

OFF = {"yearly_seasonality": False, "weekly_seasonality": False, "daily_seasonality": False}


def daily(values: Any, start: str = "2023-01-01", name: str = "a", freq: str = "D", **more: Any) -> pd.DataFrame:
    values = np.asarray(values, dtype=float)
    return pd.DataFrame({"unique_id": name, "ds": pd.date_range(start, periods=len(values), freq=freq), "y": values, **more})


def noise(size: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=size)


def quiet(call: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return call()


# -- trend ---------------------------------------------------------------------------------------------------------------------


def test_a_line_goes_on() -> None:
    found = Prophet(horizon=5, **OFF).fit(daily(10 + 0.5 * np.arange(100.0))).predict()
    np.testing.assert_allclose(found["Prophet"], 10 + 0.5 * np.arange(100, 105), rtol=1e-6)


def test_a_change_of_slope_is_found() -> None:
    day = np.arange(400.0)
    y = 50 + 0.2 * day - 0.5 * np.maximum(day - 160, 0) + 0.2 * noise(400)
    found = Prophet(horizon=10, changepoint_prior_scale=0.5, **OFF).fit(daily(y)).predict()
    np.testing.assert_allclose(np.diff(found["Prophet"]), -0.3, atol=0.02)
    incomplete = Prophet(horizon=10, n_changepoints=0, **OFF).fit(daily(y)).predict()
    assert np.diff(incomplete["Prophet"]).mean() > -0.15


def test_changepoints_may_be_given() -> None:
    day = np.arange(400.0)
    y = 50 + 0.2 * day - 0.5 * np.maximum(day - 350, 0)
    given = Prophet(horizon=10, changepoints=["2023-12-17"], changepoint_prior_scale=10.0, **OFF).fit(daily(y)).predict()
    np.testing.assert_allclose(np.diff(given["Prophet"]), -0.3, atol=1e-3)
    with pytest.raises(ParameterError, match=r"within the history of every series.*2025-01-01.*series: a\."):
        Prophet(horizon=3, changepoints=["2023-05-05", "2025-01-01"]).fit(daily(y))
    with pytest.raises(ParameterError, match=r"a date such as.*soon"):
        Prophet(horizon=3, changepoints=["soon"]).fit(daily(y))


def test_a_flat_trend_stays() -> None:
    model = Prophet(horizon=30, growth="flat", **OFF).fit(daily(5 + noise(200) + 0.01 * np.arange(200)))
    assert np.ptp(model.predict()["Prophet"]) == 0.0
    assert model.parameters()["rate"].tolist() == [0.0]


def test_a_saturating_trend_stays_between_floor_and_cap() -> None:
    day = np.arange(300.0)
    y = 20 + 80 / (1 + np.exp(-(day - 200) / 30)) + noise(300)
    model = Prophet(horizon=400, growth="logistic", cap=100.0, floor=20.0, **OFF).fit(daily(y))
    found = model.predict(level=90)
    assert found["Prophet"].iloc[-1] == pytest.approx(100.0, abs=1.5)
    assert (found["Prophet"] < 100).all()
    assert found["Prophet-hi-90"].iloc[-1] < 104.0  # noise beside a trend that cannot rise further
    with pytest.raises(ParameterError, match="`cap` must be set with growth='logistic'"):
        Prophet(horizon=3, growth="logistic").fit(daily(y))
    with pytest.raises(DataError, match=r"`cap` must be above `floor`.*cap 10 and floor 20 at 2023-01-01.*: a\."):
        Prophet(horizon=3, growth="logistic", cap=10.0, floor=20.0).fit(daily(y))


def test_a_cap_may_be_a_column() -> None:
    frame = daily(10 + noise(100), top=np.linspace(50.0, 100.0, 100))
    model = Prophet(horizon=2, growth="logistic", cap="top").fit(frame, columns={"future": ["top"]})
    ahead = model.future_frame()
    low, high = (model.predict(future=ahead.assign(top=top))["Prophet"] for top in (20.0, 200.0))
    assert (high > 1.5 * low).all()
    with pytest.raises(ParameterError, match=r"future covariates, got '?roof'?"):
        Prophet(horizon=2, growth="logistic", cap="roof").fit(frame, columns={"future": ["top"]})


def test_a_floor_without_a_cap_cuts_off() -> None:
    frame = daily(np.maximum(50 - 0.5 * np.arange(90), 3) + 0.5 * noise(90))
    plain, floored = (Prophet(horizon=30, floor=floor, **OFF).fit(frame) for floor in (None, 0.0))
    below, found = plain.predict(level=80), floored.predict(level=80)
    assert (below["Prophet-lo-80"] < 0).any()
    np.testing.assert_allclose(found["Prophet"], np.maximum(below["Prophet"], 0.0))
    np.testing.assert_allclose(found["Prophet-lo-80"], np.maximum(below["Prophet-lo-80"], 0.0))
    assert floored.simulate(50)["Prophet"].min() == 0.0
    parts = floored.explain().pivot(index="ds", columns="component", values="value")
    np.testing.assert_allclose(parts.sum(axis=1), found["Prophet"], atol=1e-9)
    assert (parts["bounds"] >= 0).all()


# -- seasons, holidays, events, regressors -------------------------------------------------------------------------------------


def test_seasons_are_found_where_a_history_is_long_and_dense_enough() -> None:
    def components(frame: pd.DataFrame) -> list[str]:
        return sorted(set(Prophet(horizon=1).fit(frame).explain()["component"]))

    wave = np.sin(np.arange(800.0)) + noise(800)
    assert components(daily(wave[:14])) == ["trend"]
    assert components(daily(wave[:15])) == ["trend", "weekly"]
    assert components(daily(wave[:730])) == ["trend", "weekly"]
    assert components(daily(wave[:731])) == ["trend", "weekly", "yearly"]
    assert components(daily(wave[:48], freq="h")) == ["trend"]
    assert components(daily(wave[:49], freq="h")) == ["daily", "trend"]
    assert components(daily(wave[:40], freq="W")) == ["trend"]
    assert components(daily(wave[:24], freq="MS")) == ["trend"]
    assert components(daily(wave[:25], freq="MS")) == ["trend", "yearly"]


def test_series_of_a_panel_have_their_own_seasons() -> None:
    week = np.tile([5.0, 0, 0, 0, 0, 0, 0], 8) + 0.1 * noise(56)
    frame = pd.concat([daily(noise(10), name="short"), daily(week, name="long")])
    parts = Prophet(horizon=7).fit(frame).explain().pivot(index=["unique_id", "ds"], columns="component", values="value")
    assert (parts.loc["short", "weekly"] == 0).all()
    assert np.ptp(parts.loc["long", "weekly"]) > 3


def test_seasons_may_be_declared() -> None:
    day = np.arange(300)
    y = 20 + 3 * np.sin(2 * np.pi * day / 10) + 0.1 * noise(300)
    model = Prophet(horizon=20, seasonalities={"ten": {"period": 10, "order": 2}}, **OFF).fit(daily(y))
    np.testing.assert_allclose(model.predict()["Prophet"], 20 + 3 * np.sin(2 * np.pi * np.arange(300, 320) / 10), atol=0.3)
    tight = Prophet(horizon=20, seasonalities={"ten": {"period": 10, "order": 2, "prior_scale": 1e-4}}, **OFF).fit(daily(y))
    assert np.ptp(tight.predict()["Prophet"]) < 1.0


def test_a_season_may_hold_under_a_condition() -> None:
    day = np.arange(400)
    busy = (day // 50) % 2 == 0
    y = 20 + np.where(busy, 4 * np.sin(2 * np.pi * day / 5), 0.0) + 0.1 * noise(400)
    seasons = {"fives": {"period": 5, "order": 2, "condition": "busy"}}
    model = Prophet(horizon=10, seasonalities=seasons, **OFF)
    model.fit(daily(y, busy=busy.astype(float)), columns={"future": ["busy"]})
    ahead = model.future_frame()
    on, off = (model.predict(future=ahead.assign(busy=flag))["Prophet"] for flag in (1.0, 0.0))
    assert np.ptp(on) > 7
    assert np.ptp(off) < 0.2
    with pytest.raises(ParameterError, match="'condition' must be a future covariate, got 'busy'"):
        Prophet(horizon=10, seasonalities=seasons).fit(daily(y))


def test_a_season_may_multiply() -> None:
    day = np.arange(400)
    y = (20 + 0.2 * day) * (1 + 0.2 * np.sin(2 * np.pi * day / 7))
    model = Prophet(horizon=14, seasonality_mode="multiplicative").fit(daily(y))
    ahead = np.arange(400, 414)
    wanted = (20 + 0.2 * ahead) * (1 + 0.2 * np.sin(2 * np.pi * ahead / 7))
    np.testing.assert_allclose(model.predict()["Prophet"], wanted, rtol=1e-3)


def test_holidays_of_a_country_have_effects() -> None:
    frame = daily(100 + 0.1 * noise(800), start="2021-01-01")
    christmas = (frame["ds"].dt.month == 12) & (frame["ds"].dt.day == 25)
    frame["y"] += 30.0 * christmas
    model = Prophet(horizon=300, holidays="US", **OFF).fit(frame)
    found = model.explain().query("component == 'holidays'").set_index("ds")["value"]
    assert found["2023-12-25"] == pytest.approx(30.0, abs=1.0)
    assert abs(found["2023-07-04"]) < 1.0
    assert model.parameters()["holidays_Christmas Day"][0] > 0.1
    with pytest.raises(ParameterError, match="holidays"):
        Prophet(horizon=3, holidays="XX").fit(frame)


def test_events_have_windows() -> None:
    y = 50 + 0.1 * noise(200)
    for day in (40, 90, 140):
        y[day - 1 : day + 2] += [5.0, 10.0, 2.0]
    dates = [str(pd.Timestamp("2023-01-01") + pd.Timedelta(days=day))[:10] for day in (40, 90, 140, 203)]
    events = {"fair": {"dates": dates, "lower_window": -1, "upper_window": 1}}
    model = Prophet(horizon=6, events=events, **OFF).fit(daily(y))
    found = model.explain().query("component == 'fair'")["value"].to_numpy()
    np.testing.assert_allclose(found, [0, 0, 5, 10, 2, 0], atol=0.4)
    assert [name for name in model.parameters() if "fair" in name] == ["fair-1", "fair+0", "fair+1"]


def test_columns_known_ahead_are_regressors() -> None:
    price = noise(300, 1) * 3 + 50
    frame = daily(100 - 2 * price + 2 * noise(300), price=price)
    model = Prophet(horizon=2, **OFF).fit(frame, columns={"future": ["price"]})
    ahead = model.future_frame()
    low, high = (model.predict(future=ahead.assign(price=price))["Prophet"] for price in (50.0, 51.0))
    np.testing.assert_allclose(high - low, -2.0, atol=0.15)
    held = Prophet(horizon=2, regressors={"price": {"prior_scale": 1e-3}}, **OFF).fit(frame, columns={"future": ["price"]})
    low, high = (held.predict(future=ahead.assign(price=price))["Prophet"] for price in (50.0, 51.0))
    assert (np.abs(high - low) < 0.5).all()


def test_a_regressor_that_never_changed_is_said() -> None:
    frame = daily(10 + noise(60), promo=0.0)
    model = Prophet(horizon=2).fit(frame, columns={"future": ["promo"]})
    with pytest.warns(DataWarning, match="constant in the training data: promo"):
        found = model.predict(future=model.future_frame().assign(promo=1.0))
    np.testing.assert_array_equal(found["Prophet"], model.predict(future=model.future_frame().assign(promo=0.0))["Prophet"])


def test_categories_have_effects() -> None:
    kind = pd.Categorical(np.array(["plain", "flyer", "poster"])[np.arange(120) % 3])
    y = 10 + np.array([0.0, 4.0, 8.0])[np.arange(120) % 3] + 0.1 * noise(120)
    model = Prophet(horizon=3, **OFF).fit(daily(y, kind=kind), columns={"future": ["kind"]})
    ahead = model.future_frame().assign(kind=pd.Categorical(["plain", "flyer", "poster"]))
    np.testing.assert_allclose(np.diff(model.predict(future=ahead)["Prophet"]), 4.0, atol=0.3)


# -- what is missing -----------------------------------------------------------------------------------------------------------


def test_missing_rows_are_stepped_over() -> None:
    frame = daily(20 + 0.1 * np.arange(200) + np.tile([3.0, 0, 0, 0, 0, 0, -3.0], 29)[:200] + 0.1 * noise(200))
    holes = frame.drop(index=[3, 50, 51, 52, 120])
    with pytest.warns(DataWarning, match="forecasts through missing values"):
        found = Prophet(horizon=7).fit(holes, freq="D").predict()
    np.testing.assert_allclose(found["Prophet"], Prophet(horizon=7).fit(frame).predict()["Prophet"], atol=0.2)


def test_irregular_stamps_lie_on_a_finer_grid() -> None:
    random = np.random.default_rng(0)
    hours = np.sort(random.choice(1000, 300, replace=False))
    stamps = pd.Timestamp("2024-01-01") + pd.to_timedelta(hours, unit="h")
    y = 10 + 0.01 * hours + 2 * np.sin(2 * np.pi * hours / 24)
    model = Prophet(horizon=24)
    quiet(lambda: model.fit(pd.DataFrame({"unique_id": "a", "ds": stamps, "y": y}), freq="h"))
    ahead = hours[-1] + np.arange(1, 25)
    np.testing.assert_allclose(model.predict()["Prophet"], 10 + 0.01 * ahead + 2 * np.sin(2 * np.pi * ahead / 24), atol=0.1)


def test_integer_time_has_the_seasons_that_are_declared() -> None:
    step = np.arange(120)
    frame = pd.DataFrame({"unique_id": "a", "ds": step, "y": 5 + np.sin(2 * np.pi * step / 12)})
    model = Prophet(horizon=12, seasonalities={"dozen": {"period": 12, "order": 1}}).fit(frame, freq=1)
    np.testing.assert_allclose(model.predict()["Prophet"], 5 + np.sin(2 * np.pi * np.arange(120, 132) / 12), atol=1e-3)
    with pytest.raises(ParameterError, match="`weekly_seasonality` cannot be used with integer time"):
        Prophet(horizon=1, weekly_seasonality=True).fit(frame, freq=1)


def test_time_zones_count_by_the_wall_clock() -> None:
    stamps = pd.date_range("2024-03-16", periods=24 * 30, freq="h", tz="Europe/Berlin")  # half of it before clocks go forward
    y = np.where(stamps.hour == 12, 10.0, 0.0) + 0.01 * noise(len(stamps))
    model = Prophet(horizon=24, daily_seasonality=12).fit(pd.DataFrame({"unique_id": "a", "ds": stamps, "y": y}))
    found = model.predict()
    assert found["ds"].dt.hour[found["Prophet"].idxmax()] == 12
    assert found["Prophet"].max() > 8


def test_dates_with_a_time_zone_are_days_of_the_wall_clock() -> None:
    frame = daily(10 + 0.1 * noise(60) + 8.0 * (np.arange(60) == 20))
    frame["ds"] = frame["ds"].dt.tz_localize("Europe/Berlin")
    for dates in (["2023-01-21", "2023-03-03"], [frame["ds"].iloc[20], "2023-03-03 00:00+01:00"]):
        found = Prophet(horizon=3, events={"fair": {"dates": dates}}).fit(frame).explain()
        fair = found.loc[found["component"] == "fair", "value"].to_numpy()
        assert fair[1] > 6.0
        assert not fair[[0, 2]].any()
    Prophet(horizon=3, changepoints=[frame["ds"].iloc[0]]).fit(frame)  # the day before is no day of the history


def test_series_that_noise_is_not_known_of_are_said() -> None:
    with pytest.warns(DataWarning, match="zero residuals for series .*: tiny"):
        found = Prophet(horizon=2).fit(daily([5.0, 7.0], name="tiny"), freq="D").predict(level=80)
    assert np.isfinite(found["Prophet-lo-80"]).all()


# -- bands ---------------------------------------------------------------------------------------------------------------------


def test_bands_hold_what_comes_of_noise() -> None:
    inside = []
    for seed in range(40):
        y = 10 + noise(230, seed)
        found = Prophet(horizon=30, **OFF).fit(daily(y[:200])).predict(level=80)
        inside.append((found["Prophet-lo-80"] <= y[200:]) & (y[200:] <= found["Prophet-hi-80"]))
    assert 0.74 < np.mean(inside) < 0.86


def test_bands_widen_as_slopes_have_changed() -> None:
    steady, turning = (
        Prophet(horizon=200, **OFF).fit(daily(y)).predict(level=80)
        for y in (50 + noise(300), 50 + np.cumsum(np.cumsum(0.02 * noise(300))) + 0.1 * noise(300))
    )
    narrow, wide = ((one["Prophet-hi-80"] - one["Prophet-lo-80"]).to_numpy() for one in (steady, turning))
    np.testing.assert_allclose(narrow, narrow[0], rtol=0.02)  # its slope hardly changed
    assert (np.diff(wide) > 0).all()
    assert wide[-1] > 10 * wide[0]


def test_paths_are_spread_as_bands_after_update() -> None:
    y = 50 + np.cumsum(np.cumsum(0.02 * noise(320))) + 0.1 * noise(320)
    frame = daily(y)
    model = Prophet(horizon=30, changepoint_prior_scale=0.5, **OFF).fit(frame.iloc[:300]).update(frame.iloc[300:])
    bands = model.predict(level=80)
    paths = model.simulate(2000, seed=1)["Prophet"].to_numpy().reshape(2000, 30)
    low, high = (bands[f"Prophet-{side}-80"].to_numpy() for side in ("lo", "hi"))
    np.testing.assert_allclose(((paths > low) & (paths < high)).mean(axis=0), 0.8, atol=0.05)
    assert (bands["Prophet-hi-80"] - bands["Prophet-lo-80"]).iloc[0] > 0.5


def test_unknown_parameters_widen_bands() -> None:
    frame = daily(10 + noise(40))
    known, unknown = (Prophet(horizon=40, uncertainty=kind).fit(frame).predict(level=80) for kind in ("map", "laplace"))
    np.testing.assert_array_equal(known["Prophet"], unknown["Prophet"])
    ratio = (unknown["Prophet-hi-80"] - unknown["Prophet-lo-80"]) / (known["Prophet-hi-80"] - known["Prophet-lo-80"])
    assert (ratio > 1.02).all()
    assert ratio.iloc[-7:].mean() > ratio.iloc[:7].mean()


def test_the_posterior_of_a_plain_mean_is_known() -> None:
    y = 100 + noise(50)
    model = Prophet(horizon=1, growth="flat", uncertainty="laplace", **OFF).fit(daily(y))
    deviation = float(model.parameters()["deviation"][0]) * float(model.parameters()["scale"][0])
    found = model.predict(level=95)
    width = float((found["Prophet-hi-95"] - found["Prophet-lo-95"])[0]) / 2 / 1.959964
    assert width == pytest.approx(deviation * np.sqrt(1 + 1 / 50), rel=1e-3)


def test_outliers_move_little_with_students_noise() -> None:
    y = 50 + 0.1 * np.arange(200) + 0.5 * noise(200)
    wild = y.copy()
    wild[150:156] += 100
    wanted = Prophet(horizon=10, **OFF).fit(daily(y)).predict()["Prophet"]
    models = (Prophet(horizon=10, errors=kind, **OFF) for kind in ("normal", "student"))
    plain, robust = (model.fit(daily(wild)).predict()["Prophet"] for model in models)
    assert np.abs(robust - wanted).max() < 1.0
    assert np.abs(plain - wanted).max() > 5.0


# -- the contract's further parts ----------------------------------------------------------------------------------------------


def test_components_add_up_to_history_and_forecast() -> None:
    y = (50 + 0.05 * np.arange(120)) * (1 + 0.1 * np.sin(2 * np.pi * np.arange(120) / 7)) + noise(120)
    frame = daily(y, price=noise(120, 3))
    model = Prophet(horizon=5, seasonality_mode="multiplicative", regressors={"price": {"mode": "additive"}})
    model.fit(frame, columns={"future": ["price"]})
    ahead = model.future_frame().assign(price=1.0)
    total = model.explain(future=ahead).groupby("ds")["value"].sum()
    np.testing.assert_allclose(total, model.predict(future=ahead)["Prophet"], atol=1e-6)
    history = model.components().groupby("ds")["value"].sum()
    scale = float(model.parameters()["scale"][0]) * float(model.parameters()["deviation"][0])
    assert np.std(y - history.to_numpy()) == pytest.approx(scale, rel=0.01)
    pd.testing.assert_frame_equal(model.components(frame), model.components())


def test_update_moves_on_in_time_and_fine_tune_learns() -> None:
    frame = daily(np.concatenate([10 + 0.1 * noise(100), 30 + 0.1 * noise(50, 1)]))
    model = Prophet(horizon=3, **OFF).fit(frame.iloc[:100])
    longer = model.predict(10)
    moved = model.update(frame.iloc[100:105]).predict()
    np.testing.assert_allclose(moved["Prophet"], longer["Prophet"].iloc[5:8], rtol=1e-12)
    tuned = model.fine_tune(frame).predict()
    np.testing.assert_array_equal(tuned["Prophet"], Prophet(horizon=3, **OFF).fit(frame).predict()["Prophet"])


def test_fine_tune_of_a_curved_model_is_no_worse_than_a_fit() -> None:
    y = (50 + 0.05 * np.arange(220)) * (1 + 0.3 * np.sin(2 * np.pi * np.arange(220) / 7)) + noise(220)
    model = Prophet(horizon=3, seasonality_mode="multiplicative").fit(daily(y[:200]))
    tuned = model.clone().fit(daily(y[:200])).fine_tune(daily(y))
    fresh = model.clone().fit(daily(y))
    assert tuned.state_.learned["objective"][0] <= fresh.state_.learned["objective"][0] + 1e-6
    np.testing.assert_allclose(tuned.predict()["Prophet"], fresh.predict()["Prophet"], rtol=1e-5)


def test_cross_validation_and_files(tmp_path: Path) -> None:
    frame = daily(10 + np.tile([3.0, 0, 0, 0, 0, 0, -3.0], 20) + 0.1 * noise(140))
    model = Prophet(horizon=7, holidays="DE", events={"fair": {"dates": ["2023-02-02"]}})
    folds = cross_validate(model, frame, n_windows=2)
    assert np.abs(folds["y"] - folds["Prophet"]).mean() < 0.5
    model.fit(frame).save(tmp_path / "model")
    loaded = deepforecast.load(tmp_path / "model")
    pd.testing.assert_frame_equal(loaded.predict(level=80), model.predict(level=80))
    with pytest.raises(DataError, match="must have the training data"):
        loaded.components()


@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        ({"seasonalities": {"x": {"period": 5}}}, ParameterError, r"seasonalities\['x'\] must have the key 'order'"),
        ({"seasonalities": {"x": {"period": -5, "order": 2}}}, ParameterError, "'period' must be a positive number.*-5"),
        ({"seasonalities": {"x": {"period": 5, "order": 2, "mod": 1}}}, ParameterError, "Unknown key 'mod' in .*Available"),
        ({"seasonalities": {"x": 3}}, ParameterTypeError, "seasonalities"),
        ({"seasonalities": {"trend": {"period": 5, "order": 2}}}, ParameterError, "used more than once: trend"),
        ({"events": {"x": {"dates": ["not a day"]}}}, ParameterError, r"events\['x'\] must contain dates.* got not a day"),
        ({"events": {"x": {"dates": ["2023-01-01"], "lower_window": 1}}}, ParameterError, "integer from -366 to 0"),
        ({"regressors": {"price": {}}}, ParameterError, "future covariates as keys, .*: price"),
        ({"floor": "least"}, ParameterError, "future covariates, got least"),
        ({"changepoints": [float("nan")]}, ParameterError, "a date such as '2024-12-24', got nan"),
        ({"changepoints": "2023-01-05"}, ParameterTypeError, "`changepoints` must be a list or None"),
        ({"changepoint_prior_scale": 0.0}, ParameterError, "changepoint_prior_scale"),
        ({"growth": "cubic"}, ParameterError, "growth"),
    ],
)
def test_what_does_not_go_is_told(parameters: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        Prophet(horizon=3, **parameters).fit(daily(noise(30)))


def test_a_condition_is_a_flag() -> None:
    seasons = {"fives": {"period": 5, "order": 1, "condition": "busy"}}
    with pytest.raises(DataError, match="busy, the condition of a seasonality, must contain only 0 and 1, got 2"):
        Prophet(horizon=1, seasonalities=seasons).fit(daily(noise(30), busy=2.0), columns={"future": ["busy"]})
    model = Prophet(horizon=1, seasonalities=seasons).fit(daily(noise(30), busy=1.0), columns={"future": ["busy"]})
    with pytest.raises(DataError, match="must contain only 0 and 1, got 2"):
        model.predict(future=model.future_frame().assign(busy=2.0))


@pytest.mark.parametrize(
    "parameters",
    [
        {"growth": "logistic", "cap": 90.0, "floor": 5.0, "seasonality_mode": "multiplicative"},
        {"growth": "logistic", "cap": 90.0, "scaling": "minmax", "uncertainty": "laplace"},
        {"scaling": "minmax", "seasonality_mode": "multiplicative"},
        {"changepoints": [], "errors": "student"},
        {"growth": "flat", "cap": 60.0, "uncertainty": "laplace", "errors": "student"},
    ],
)
def test_components_bands_and_paths_belong_together(parameters: dict[str, Any]) -> None:
    y = (40 + 0.1 * np.arange(100)) * (1 + 0.1 * np.sin(2 * np.pi * np.arange(100) / 7)) + noise(100)
    model = Prophet(horizon=9, **parameters).fit(daily(y))
    found = model.predict(level=80)
    np.testing.assert_allclose(model.explain().groupby("ds")["value"].sum(), found["Prophet"], atol=1e-9)
    paths = model.simulate(1000, seed=3)["Prophet"].to_numpy().reshape(1000, 9)
    low, high = (found[f"Prophet-{side}-80"].to_numpy() for side in ("lo", "hi"))
    np.testing.assert_allclose(((paths >= low) & (paths <= high)).mean(axis=0), 0.8, atol=0.06)
    assert np.abs(np.median(paths, axis=0) - found["Prophet"]).max() < 0.5
    history = model.components().groupby("ds")["value"].sum().to_numpy()
    assert np.std(y - history) < (4.0 if model.growth == "flat" else 1.5)


def test_many_series_are_fitted_in_blocks_to_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.concat([daily(10 + noise(60, seed), name=f"s{seed}") for seed in range(7)])
    whole = Prophet(horizon=3).fit(frame).predict(level=80)
    monkeypatch.setattr("deepforecast.models.prophet._design_matrix.BLOCK", 2)
    pd.testing.assert_frame_equal(Prophet(horizon=3).fit(frame).predict(level=80), whole)
    alone = Prophet(horizon=3).fit(frame[frame["unique_id"] == "s4"]).predict(level=80)
    np.testing.assert_array_equal(alone["Prophet"], whole.loc[whole["unique_id"] == "s4", "Prophet"])


PROPHET_HOLIDAYS = pd.DataFrame(
    {
        "holiday": ["fair", "fair", "gala"],
        "ds": pd.to_datetime(["2023-02-02", "2023-03-04", "2023-02-20"]),
        "lower_window": [-1, -1, np.nan],
        "upper_window": [1, 1, np.nan],
        "prior_scale": [5.0, 5.0, np.nan],
    }
)
AS_EVENTS = {
    "fair": {"dates": ["2023-02-02", "2023-03-04"], "lower_window": -1, "upper_window": 1, "prior_scale": 5.0},
    "gala": {"dates": ["2023-02-20"]},
}


def test_holidays_in_the_format_of_prophet_are_events(tmp_path: Path) -> None:
    frame = daily(50 + np.random.default_rng(0).normal(size=120))
    expected = Prophet(horizon=6, events=AS_EVENTS, **OFF).fit(frame).predict(level=80)
    for holidays in (PROPHET_HOLIDAYS, pl.from_pandas(PROPHET_HOLIDAYS), AS_EVENTS):
        model = Prophet(horizon=6, holidays=holidays, **OFF)
        assert model.holidays == AS_EVENTS
        assert json.loads(json.dumps(model.get_params()["holidays"])) == AS_EVENTS
        assert model.clone() == model == eval(repr(model), {"Prophet": Prophet})
        pd.testing.assert_frame_equal(model.fit(frame).predict(level=80), expected)
        model.save(tmp_path / "model")
        pd.testing.assert_frame_equal(load(tmp_path / "model").predict(level=80), expected)


@pytest.mark.parametrize(
    "dates",
    [
        ["2023-02-02", "2023-03-04"],
        [pd.Timestamp("2023-02-02"), pd.Timestamp("2023-03-04")],
        pd.DatetimeIndex(["2023-02-02", "2023-03-04"]),
        np.array(["2023-02-02", "2023-03-04"], dtype="M8[ns]"),
    ],
    ids=["text", "stamps", "index", "numpy"],
)
def test_events_are_lists_of_dates_of_any_kind(dates: Any) -> None:
    frame = daily(50 + np.random.default_rng(0).normal(size=120))
    plain = {"dates": ["2023-02-02", "2023-03-04"]}
    expected = Prophet(horizon=6, events={"fair": plain}, **OFF).fit(frame).predict()
    for event in (dates, {"dates": dates}):
        model = Prophet(horizon=6, **OFF).set_params(events={"fair": event})
        assert json.loads(json.dumps(model.events))["fair"] in (plain, plain["dates"])
        pd.testing.assert_frame_equal(model.fit(frame).predict(), expected)


def test_frames_of_holidays_that_are_none_are_refused() -> None:
    with pytest.raises(ParameterError, match="must be a non-empty DataFrame with the columns holiday and ds"):
        Prophet(holidays=PROPHET_HOLIDAYS.drop(columns="ds"))
    with pytest.raises(ParameterError, match="upper_window and prior_scale in all rows of a holiday, got different ones for fair"):
        Prophet(holidays=PROPHET_HOLIDAYS.assign(lower_window=[-1, 0, 0]))
    with pytest.raises(ParameterError, match="must have different names, but both contain: fair"):
        Prophet(horizon=1, holidays=PROPHET_HOLIDAYS, events={"fair": ["2023-01-01"]}).fit(daily(np.arange(50.0) % 7))


@pytest.mark.parametrize("window", [pd.array([pd.NA, -1], dtype="Int64"), [pd.NA, -1], [None, -1], [np.nan, -1.0]])
def test_a_missing_window_of_a_holiday_is_none(window: Any) -> None:
    frame = pd.DataFrame({"holiday": ["fair", "feast"], "ds": ["2023-02-02", "2023-05-05"], "lower_window": window})
    expected = {"fair": {"dates": ["2023-02-02"]}, "feast": {"dates": ["2023-05-05"], "lower_window": -1}}
    assert Prophet(holidays=frame).holidays == expected


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("lower_window", "-1", "`holidays`: lower_window of fair must be an integer from -366 to 0, got '-1'"),
        ("lower_window", -0.5, "`holidays`: lower_window of fair must be an integer from -366 to 0, got -0.5"),
        ("lower_window", 1, "`holidays`: lower_window of fair must be an integer from -366 to 0, got 1"),
        ("upper_window", np.inf, "`holidays`: upper_window of fair must be an integer from 0 to 366, got inf"),
        ("upper_window", True, "`holidays`: upper_window of fair must be an integer from 0 to 366, got True"),
        ("prior_scale", 0.0, "`holidays`: prior_scale of fair must be a positive number, got 0.0"),
        ("holiday", None, "`holidays` must have a name in each row of the column holiday, got "),
        ("holiday", np.nan, "`holidays` must have a name in each row of the column holiday, got nan at 2023-02-02"),
        ("holiday", "", "`holidays` must have a name in each row of the column holiday, got '' at 2023-02-02"),
        ("ds", pd.NaT, "`holidays` of fair must contain dates such as '2024-12-24', got NaT"),
        ("ds", None, "`holidays` of fair must contain dates such as '2024-12-24', got "),
        ("ds", "Christmas", "`holidays` of fair must contain dates such as '2024-12-24', got Christmas"),
    ],
)
def test_values_that_a_frame_of_holidays_cannot_have(column: str, value: Any, words: str) -> None:
    frame = pd.DataFrame({"holiday": ["fair"], "ds": ["2023-02-02"]}).assign(**{column: [value]})
    with pytest.raises(ParameterError, match=re.escape(words)):
        Prophet(holidays=frame)


@pytest.mark.parametrize("holidays", [["DE"], 3])
def test_holidays_that_are_no_frame_are_refused_by_name(holidays: Any) -> None:
    with pytest.raises(ParameterTypeError, match="`holidays` must be a country such as 'DE', a dict of events, or a DataFrame"):
        Prophet(holidays=holidays)


def test_neural_prophet_takes_the_same_holidays_and_events() -> None:
    frame = daily(50 + np.random.default_rng(0).normal(size=120))
    given = {"horizon": 3, "input_size": 0, "max_steps": 3}
    expected = NeuralProphet(events=AS_EVENTS, **given).fit(frame).predict()
    found = NeuralProphet(holidays=PROPHET_HOLIDAYS, **given).fit(frame).predict()
    pd.testing.assert_frame_equal(found, expected)
    events = {"fair": pd.DatetimeIndex(["2023-02-02"])}
    assert NeuralProphet(events=events, **given).events == {"fair": ["2023-02-02"]}
