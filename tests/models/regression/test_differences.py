"""Differences of the target: what "auto" chooses, and that the steps of a block start from observed values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import GradientBoosting, LinearModel
from deepforecast.data.panel import Panel
from deepforecast.models.regression._differences import differences_of

H = 10
LAGS: dict[str, Any] = {"windows": None, "calendar": None, "season_length": 7}


def frame_of(y: np.ndarray, start: str = "2024-01-01") -> pd.DataFrame:
    """One frame of as many series as `y` has rows."""
    y = np.atleast_2d(y)
    stamps = pd.date_range(start, periods=y.shape[1])
    parts = [pd.DataFrame({"unique_id": f"s{number:02}", "ds": stamps, "y": values}) for number, values in enumerate(y)]
    return pd.concat(parts, ignore_index=True)


def chosen(y: np.ndarray, model: type[Any] = LinearModel, **given: Any) -> tuple[int, ...]:
    return differences_of(model(**{"horizon": H, **given}), Panel.from_frame(frame_of(y)))


RANDOM = np.random.default_rng(0)
NOISE = RANDOM.normal(size=(3, 300))
WEEK = 20 * np.sin(2 * np.pi * np.arange(300) / 7)
WALK = NOISE.cumsum(axis=1)


@pytest.mark.parametrize("strategy", ["recursive", "direct", "direct_multioutput", "blocks"])
def test_auto_takes_no_differences_of_series_with_a_fixed_mean(strategy: str) -> None:
    assert chosen(NOISE + WEEK, strategy=strategy) == ()


@pytest.mark.parametrize("strategy", ["recursive", "direct", "blocks"])
def test_auto_takes_differences_of_series_with_a_trend_for_trees(strategy: str) -> None:
    trend = NOISE + 0.5 * np.arange(300)
    assert chosen(trend, GradientBoosting, n_trees=20, strategy=strategy) == (1,)
    grows = np.tile(np.random.default_rng(4).normal(0, 30, 7), 43)[:300] + 2.0 * np.arange(300) + NOISE
    assert chosen(grows, GradientBoosting, n_trees=20, lags=1, windows=None, calendar=None, strategy=strategy) == (7,)


def test_auto_takes_no_differences_of_seldom_demand() -> None:
    demand = np.random.default_rng(2).poisson(0.3, (5, 200)).astype(float)
    assert chosen(demand) == ()
    assert chosen(demand, GradientBoosting, n_trees=20) == ()


@pytest.mark.parametrize("given", [{"per_series": True}, {"detrend": True}, {"differences": None}], ids=str)
def test_nothing_is_compared_where_no_choice_is_left(given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LinearModel, "_train", lambda *_: pytest.fail("a candidate was fitted"))
    assert chosen(WALK, **given) == ()
    assert chosen(WALK, differences=[7, 1]) == (7, 1)


@pytest.mark.parametrize("length", [3, 4, 7, 12])
def test_auto_suits_short_series(length: int) -> None:
    trend = 100 + 5.0 * np.arange(length) + NOISE[:, :length] / 10
    found = LinearModel(horizon=H).fit(frame_of(trend)).predict()["LinearModel"]
    assert np.isfinite(found).all()


def test_auto_does_not_move_with_a_change_of_units() -> None:
    y = WALK + 1000
    assert chosen(y) == chosen(3.7 * y) == chosen(y - 5000) == chosen(-y)


@pytest.mark.parametrize("strategy", ["direct", "direct_multioutput", "blocks"])
@pytest.mark.parametrize("differences", [[1], [7]])
def test_a_step_of_a_block_is_the_last_observed_value_and_its_own_change(strategy: str, differences: list[int]) -> None:
    """The regressors of the steps before do not count: errors cannot add up."""
    model = LinearModel(horizon=H, strategy=strategy, block=H, differences=differences, scale=False, lags=2, ridge=0.0, **LAGS)
    history = WALK[0, :60]
    found = model.fit(frame_of(history)).predict()["LinearModel"].to_numpy()
    (lag,) = differences
    change = np.full(60, np.nan)
    change[lag:] = history[lag:] - history[:-lag]
    for step in range(H):
        multiple = lag * (step // lag + 1)
        ends = np.arange(lag + 2, 60 - (H if strategy == "direct_multioutput" else step + 1) + 1)  # one behind each origin
        ends = ends[ends + step - multiple >= 0]
        design = np.column_stack([np.ones(len(ends)), change[ends - 1], change[ends - 2]])
        weights, *_ = np.linalg.lstsq(design, history[ends + step] - history[ends + step - multiple], rcond=None)
        wanted = history[60 + step - multiple] + weights @ [1, change[59], change[58]]
        if strategy != "direct_multioutput":  # its steps share the rows that have all of them
            assert found[step] == pytest.approx(wanted, abs=1e-6)
        else:
            assert found[step] == pytest.approx(wanted, abs=0.5)


@pytest.mark.parametrize("differences", [[1], [7], [7, 1]])
@pytest.mark.filterwarnings("ignore:.* lie far outside the history")
def test_a_forecast_of_a_direct_step_does_not_depend_on_the_steps_before(differences: list[int]) -> None:
    model = LinearModel(horizon=H, strategy="direct", differences=differences, **LAGS).fit(frame_of(WALK))
    before = model.predict()["LinearModel"].to_numpy().reshape(3, H)
    regressor = model.state_.learned["regressors"].models[2][0]
    regressor["constant"] = regressor["constant"] + 100.0
    after = model.predict()["LinearModel"].to_numpy().reshape(3, H)
    moved = np.abs(after - before).max(axis=0) > 1e-6
    assert moved.tolist() == [step == 2 for step in range(H)]


def test_quantiles_of_differences_cover_as_often_as_they_say() -> None:
    walks = np.random.default_rng(3).normal(size=(60, 140)).cumsum(axis=1)
    model = GradientBoosting(horizon=8, strategy="direct", quantiles=[0.1, 0.9], differences=[1], n_trees=30, **LAGS)
    found = model.fit(frame_of(walks[:, :132])).predict(level=80)
    low, high = (found[f"GradientBoosting-{side}-80"].to_numpy().reshape(60, 8) for side in ("lo", "hi"))
    covered = (low <= walks[:, 132:]) & (walks[:, 132:] <= high)
    assert 0.7 < covered.mean() < 0.9
    assert (high - low)[:, -1].mean() > 2 * (high - low)[:, 0].mean()


def test_direct_steps_learn_over_missing_values() -> None:
    """A missing value costs the rows that start or end there, not all whose steps pass over it."""
    trend = 3.0 * np.arange(120.0)
    trend[10:110:3] = np.nan
    model = GradientBoosting(horizon=6, strategy="direct", differences=[1], n_trees=50, min_rows=3, lags=1, **LAGS)
    with pytest.warns(UserWarning, match="missing"):
        model.fit(frame_of(trend))
    np.testing.assert_allclose(model.predict()["GradientBoosting"], 3.0 * np.arange(120, 126), rtol=0.02)
