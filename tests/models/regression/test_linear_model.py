"""The options that all regression models share, seen on the exact one: bounds, rows around a step, strategies, one for each."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from deepforecast import LinearModel, Regression
from deepforecast.models.regression._samples import Sample
from tests.models.regression.promoted import PLAIN, sales, walks


def sample(rows: np.ndarray, target: np.ndarray, weight: np.ndarray | None = None) -> Sample:
    names = [str(place) for place in range(rows.shape[1])]
    return Sample(rows, target, weight, names, [], *np.zeros((2, len(rows)), dtype=np.int64))


def test_it_is_the_ridge_regression_of_standardised_features() -> None:
    random = np.random.default_rng(0)
    rows = random.normal(size=(80, 4)) * [1, 100, 0.01, 1] + [0, 1e4, 5, 0]
    target, weight = rows[:, 0] + rows[:, 1] / 100 + random.normal(size=80), random.random(80)
    model = LinearModel(ridge=0.3)
    found = model._predict_rows(model._train(sample(rows, target), None), rows)
    standard = StandardScaler().fit_transform(rows)
    np.testing.assert_allclose(found, Ridge(alpha=0.3 * 80).fit(standard, target).predict(standard), rtol=1e-8)
    exact = LinearModel(ridge=0.0)
    weighed = exact._predict_rows(exact._train(sample(rows, target, weight), None), rows)
    np.testing.assert_allclose(weighed, Ridge(alpha=1e-12).fit(standard, target, weight).predict(standard), rtol=1e-6)


def test_the_penalty_is_small_where_features_say_all() -> None:
    """By AICc: next to nothing where features say all, all there is where they say nothing."""
    random = np.random.default_rng(1)
    rows = random.normal(size=(60, 10))
    model = LinearModel()
    told = model._predict_rows(model._train(sample(rows, rows @ np.arange(10.0)), None), rows)
    np.testing.assert_allclose(told, rows @ np.arange(10.0), atol=1e-3)
    noise = random.normal(size=60)
    assert np.std(model._predict_rows(model._train(sample(rows, noise), None), rows)) < 0.5 * np.std(noise)


def test_bounds_hold_and_change_nothing_inside() -> None:
    frame = walks(2, 60)
    free = LinearModel(horizon=7, season_length=7).fit(frame).predict()["LinearModel"].to_numpy()
    low, high = np.quantile(free, [0.3, 0.7])
    for bounds in ((low, high), (low, None), (None, high)):
        found = LinearModel(horizon=7, season_length=7, bounds=bounds).fit(frame).predict()["LinearModel"]
        np.testing.assert_array_equal(found, np.clip(free, *bounds))


@pytest.mark.parametrize("row", [-2, 1])
def test_a_neighbour_of_a_step_has_its_effect(row: int) -> None:
    """What a column known ahead says of another row moves this one, as far as it is read there."""
    history, future = sales(2, 120)
    whole = pd.concat([history, future], ignore_index=True).sort_values(["unique_id", "ds"], kind="stable")
    moved = whole.groupby("unique_id")["promotion"].shift(-row)
    whole["heat"] = np.random.default_rng(1).normal(size=len(whole))
    whole["y"] = 100 + 30 * moved.fillna(0.0) + 40 * whole["heat"]
    whole = whole.drop(columns="weather")
    late = whole["ds"] >= future["ds"].min()
    model = LinearModel(horizon=4, future_lags=[row, 0], ridge=0.0, **PLAIN)
    model.fit(whole[~late], columns={"future": ["promotion", "heat"]})
    seen = model.predict(future=whole[late].drop(columns="y"))
    wanted = whole[late]["y"].to_numpy()
    inside = np.tile(np.arange(4) + row < 4, 2)  # what lies behind the horizon is not known
    np.testing.assert_allclose(seen["LinearModel"].to_numpy()[inside], wanted[inside], atol=1e-6)
    assert np.isfinite(seen["LinearModel"]).all()


STRATEGIES: list[dict[str, Any]] = [
    {"strategy": "recursive"},
    {"strategy": "direct"},
    {"strategy": "direct_multioutput"},
    {"strategy": "blocks", "block_size": 3},
]
WAYS: list[dict[str, Any]] = [{}, {"differences": [7]}, {"transform": "log", "detrend": True}, {"scale": False, "fourier": 2}]


@pytest.mark.parametrize(("strategy", "way"), [*product(STRATEGIES, WAYS)], ids=str)
def test_every_strategy_finds_the_week_in_every_way_for_all_and_for_each(strategy: dict[str, Any], way: dict[str, Any]) -> None:
    frame = walks(3, 100)
    early, late = frame.groupby("unique_id").head(93), frame.groupby("unique_id").tail(7)["y"].to_numpy()
    for per_series in (False, True):
        model = LinearModel(horizon=7, season_length=7, per_series=per_series, **strategy, **way).fit(early)
        assert np.abs(model.predict()["LinearModel"].to_numpy() - late).mean() < 1.6  # noise alone: 0.8
        pd.testing.assert_frame_equal(model.predict(frame=early), model.predict())


def test_one_for_each_is_what_each_gets_alone() -> None:
    frame = walks(3, 70)
    together = LinearModel(horizon=5, season_length=7, per_series=True).fit(frame).predict()
    for name, part in frame.groupby("unique_id"):
        alone = LinearModel(horizon=5, season_length=7, per_series=True).fit(part).predict()
        mine = together[together["unique_id"] == name]["LinearModel"]
        np.testing.assert_allclose(mine, alone["LinearModel"], rtol=1e-9)
    assert not np.allclose(together["LinearModel"], LinearModel(horizon=5, season_length=7).fit(frame).predict()["LinearModel"])


@pytest.mark.parametrize("model", [LinearModel(horizon=14), Regression("linear", horizon=14)], ids=repr)
@pytest.mark.parametrize("differences", [None, [1], [1, 1], [1, 1, 1]])
def test_last_digits_of_windows_are_no_features(model: Any, differences: list[int] | None) -> None:
    """The mean over a whole season never varies but by rounding, which must not be taken for a signal."""
    t = np.arange(84)
    y = 20 + 5 * np.sin(2 * np.pi * t / 7)
    frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=70), "y": y[:70]})
    found = model.clone(differences=differences).fit(frame).predict().iloc[:, -1]
    np.testing.assert_allclose(found, y[70:], rtol=1e-3)


@pytest.mark.parametrize("model", [LinearModel(horizon=24), Regression("linear", horizon=24)], ids=repr)
@pytest.mark.parametrize(
    "given", [{}, {"per_series": True, "differences": [1]}, {"lag_transforms": ["mean_7", "std_7", "difference_1"]}], ids=str
)
def test_forecasts_of_a_clean_series_go_on_as_it_does(model: Any, given: dict[str, Any]) -> None:
    """Windows of a season hardly vary there: brought to unit spread they would make forecasts among their values explode."""
    month = np.arange(84)
    y = 50 + 5 * np.sin(month * 6.28 / 12) + month  # 6.28: not quite the season
    frame = pd.DataFrame({"ds": pd.date_range("2018-01-01", periods=84, freq="MS"), "y": y})
    found = model.clone(**given).fit(frame[:60]).predict().iloc[:, -1]
    np.testing.assert_allclose(found, y[60:], atol=0.5)


@pytest.mark.parametrize("rows", [4, 12, 40])
def test_without_a_penalty_what_rows_do_not_tell_counts_as_nothing(rows: int) -> None:
    frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=rows), "y": np.arange(float(rows))})
    found = LinearModel(horizon=3, ridge=0, season_length=1, differences=None).fit(frame).predict()["LinearModel"]
    assert (np.abs(found - rows) < rows).all()


def test_few_rows_are_not_learned_by_heart() -> None:
    y = 1000 + np.random.default_rng(0).normal(0, 300, 1200)
    frame = pd.DataFrame({"unique_id": np.repeat(np.arange(40), 30), "ds": np.tile(np.arange(30), 40), "y": y})
    found = LinearModel(horizon=18, lags=14, season_length=1, per_series=True).fit(frame).predict()["LinearModel"]
    assert np.abs(found - 1000).max() < 1200  # by generalised cross-validation, 600,000
