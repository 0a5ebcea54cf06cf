"""Differences of the target: what "auto" chooses, and that the steps of a block start from observed values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import GradientBoosting, LinearModel
from deepforecast.core.backtest import rolling_folds
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError
from deepforecast.models.regression import _differences
from deepforecast.models.regression._differences import choose_differences

H = 10
LAGS: dict[str, Any] = {"lag_transforms": None, "calendar": None, "season_length": 7}


def frame_of(y: np.ndarray, start: str = "2024-01-01") -> pd.DataFrame:
    """One frame of as many series as `y` has rows."""
    y = np.atleast_2d(y)
    stamps = pd.date_range(start, periods=y.shape[1])
    parts = [pd.DataFrame({"unique_id": f"s{number:02}", "ds": stamps, "y": values}) for number, values in enumerate(y)]
    return pd.concat(parts, ignore_index=True)


def chosen(y: np.ndarray, model: type[Any] = LinearModel, **given: Any) -> tuple[int, ...]:
    return choose_differences(model(**{"horizon": H, **given}), Panel.from_frame(frame_of(y)))


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
    assert chosen(trend, GradientBoosting, n_estimators=20, strategy=strategy) == (1,)
    grows = np.tile(np.random.default_rng(4).normal(0, 30, 7), 43)[:300] + 2.0 * np.arange(300) + NOISE
    assert chosen(grows, GradientBoosting, n_estimators=20, lags=1, lag_transforms=None, calendar=None, strategy=strategy) == (
        7,
    )


def test_auto_takes_no_differences_of_seldom_demand() -> None:
    demand = np.random.default_rng(2).poisson(0.3, (5, 200)).astype(float)
    assert chosen(demand) == ()
    assert chosen(demand, GradientBoosting, n_estimators=20) == ()


def test_auto_takes_no_differences_where_they_suit_one_stretch_of_a_series_alone() -> None:
    """The level of a series with a season doubles: fitted before that, differences over the season are far better."""
    week = np.tile([1, 1, 1.1, 1, 1.2, 0.6, 0.3], 129)[:900]
    shift = np.where(np.arange(900) < 400, 100, 200) * week + np.random.default_rng(9).normal(0, 5, 900)
    panel = Panel.from_frame(frame_of(shift[:816]))
    assert _differences.suggest_differences(panel, (7,), 400) == (7,)
    assert _differences._error_reduction(LinearModel(), panel, (7,), 28, 1 / 2) > 0.9
    assert choose_differences(LinearModel(horizon=28), panel) == ()


def faked(monkeypatch: pytest.MonkeyPatch, gains: Any, strategy: str = "recursive") -> None:
    """Let differences save `gains` in each window, after a fit to a half, two thirds and five sixths of 300 values."""

    def errors(model: Any, panel: Panel, horizon: int, rows: int) -> np.ndarray:
        saved = np.atleast_1d(gains[[150, 100, 50].index(rows)] if np.ndim(gains[0]) else gains)
        whole = np.linspace(1, 9, len(saved))
        return np.repeat((whole * (1 - saved) if model.differences else whole)[:, None], len(panel), axis=1)

    wanted, other = ("_direct_errors", "_rolling_errors")[:: 1 if strategy == "direct" else -1]
    monkeypatch.setattr(_differences, wanted, errors)
    monkeypatch.setattr(_differences, other, lambda *_: pytest.fail(f"{other} was asked"))


@pytest.mark.parametrize("strategy", ["recursive", "direct", "direct_multioutput", "blocks"])
def test_differences_of_few_series_save_much_after_most_fits_and_something_after_all(strategy: str, monkeypatch: Any) -> None:
    for gains, found in [(0.31, (1,)), (0.29, ()), (-0.5, ())]:
        faked(monkeypatch, [gains], strategy)
        assert chosen(WALK[:1], strategy=strategy) == found
    for fit in range(3):
        for others, one, found in [(0.4, 0.1, (1,)), (0.9, -0.1, ()), (0.2, 0.9, ())]:
            gains = np.full((3, 1), others)
            gains[fit] = one
            faked(monkeypatch, gains, strategy)
            assert chosen(WALK[:1], strategy=strategy) == found


def test_differences_save_in_three_of_four_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    faked(monkeypatch, [0.4, 0.4, -0.9, 0.4, 0.4])
    assert chosen(WALK[:1]) == (1,)
    faked(monkeypatch, [0.9, -0.1, -0.1, 0.9, 0.9])
    assert chosen(WALK[:1]) == ()


def test_more_series_need_less_and_many_one_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    walks = np.random.default_rng(5).normal(size=(25, 300)).cumsum(axis=1)
    for count, least in [(4, 0.15), (16, 0.075), (25, 0.06)]:
        for gain, found in [(least + 0.005, (1,)), (least - 0.005, ())]:
            faked(monkeypatch, [gain])
            assert chosen(walks[:count]) == found
    faked(monkeypatch, [[0.1], [-0.5], [-0.5]])
    assert chosen(walks[:19]) == ()
    assert chosen(walks[:20]) == (1,)


def test_each_series_counts_in_its_own_units(monkeypatch: pytest.MonkeyPatch) -> None:
    scales = np.array([1.0, 1.0, 1.0, 1000.0])
    walks = scales[:, None] * np.random.default_rng(5).normal(size=(4, 300)).cumsum(axis=1)
    whole, left = (np.tile(scales * factor, (3, 1)) for factor in (1, np.array([0.5, 0.5, 0.5, 1.5])))
    monkeypatch.setattr(_differences, "_rolling_errors", lambda model, *_: left if model.differences else whole)
    assert chosen(walks) == (1,)


@pytest.mark.parametrize(("given", "steps"), [({"horizon": 9}, 9), ({"horizon": None}, 7), ({"season_length": 1}, 6)])
def test_candidates_are_compared_at_the_horizon_or_over_a_season(given: Any, steps: int, monkeypatch: Any) -> None:
    asked: list[int] = []
    monkeypatch.setattr(_differences, "_error_reduction", lambda *given: asked.append(given[3]) or 0.0)
    assert chosen(WALK, **{"horizon": None, **given}) == ()
    assert asked == [steps]


def test_a_sample_is_the_end_of_some_of_the_longer_series() -> None:
    parts = [frame_of(np.arange(float(length))).assign(unique_id=f"s{length}") for length in range(150, 450, 2)]
    sample = _differences._sample_panel(Panel.from_frame(pd.concat(parts)))
    assert len(sample) <= 100
    assert sample.lengths.min() == sample.lengths.max() == 200
    assert sample.y[-1] == 447
    (alone,) = _differences._sample_panel(Panel.from_frame(frame_of(np.arange(30_000.0)))).lengths
    assert alone == 20_000


def test_one_observation_is_too_short_to_compare() -> None:
    panel = Panel.from_frame(frame_of(WALK))
    with pytest.raises(DataError, match="too short"):
        _differences._error_reduction(LinearModel(), panel.between(panel.lengths - 1, panel.lengths), (1,), 6, 1 / 2)


@pytest.mark.parametrize("horizon", [1, 6, 28, 90])
def test_windows_lie_after_the_fit_and_reach_the_end(horizon: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[Any] = []
    monkeypatch.setattr(
        _differences, "rolling_folds", lambda *given, **also: (plans.append(given[2]), rolling_folds(*given, **also))[1]
    )
    for rows in (150, 100, 90):
        panel = Panel.from_frame(frame_of(WALK))
        errors = _differences._rolling_errors(LinearModel(horizon=horizon, differences=None), panel, horizon, rows)
        plan = plans.pop()
        assert (plan.horizon, errors.shape) == (horizon, (plan.n_windows, 3))
        assert plan.n_windows == min(6, 1 + (rows - horizon) // max(horizon // 2, 1))
        used = horizon + (plan.n_windows - 1) * plan.step
        assert used <= rows < used + plan.n_windows or plan.n_windows == 1


def test_errors_of_direct_steps_are_those_of_regressors_fitted_before_the_windows() -> None:
    y = WALK[:2, :120]
    model = LinearModel(horizon=5, strategy="direct", differences=None, scale=False, lags=1, ridge=0.0, **LAGS)
    found = _differences._direct_errors(model, Panel.from_frame(frame_of(y)), 5, 20)
    wanted = np.zeros((2, 2, 20))
    for place, step in enumerate((2, 4)):
        last = [one[: 120 - step - 1] for one in y]
        then = [one[step + 1 :] for one in y]
        x, z = (np.concatenate([one[:-20] for one in part]) for part in (last, then))
        slope, level = np.polyfit(x, z, 1)
        wanted[place] = [np.abs(z - level - slope * x)[-20:] for x, z in zip(last, then, strict=True)]
    late = wanted.mean(axis=0).reshape(2, 4, 5).mean(axis=2)  # (series, windows), the oldest first
    np.testing.assert_allclose(found, late.T[::-1], rtol=1e-6)


@pytest.mark.filterwarnings("ignore:.*missing")
@pytest.mark.parametrize("strategy", ["recursive", "direct", "blocks"])
def test_auto_suits_series_that_begin_with_missing_values(strategy: str) -> None:
    walks = np.random.default_rng(6).normal(1, 1, size=(3, 300)).cumsum(axis=1)
    walks[0, :220] = np.nan
    model = GradientBoosting(horizon=H, n_estimators=5, strategy=strategy).fit(frame_of(walks))
    assert np.isfinite(model.predict()["GradientBoosting"]).all()


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
    model = LinearModel(
        horizon=H, strategy=strategy, differences=differences, scale=False, lags=2, ridge=0.0,
        block_size=H if strategy == "blocks" else 7, **LAGS
    )
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
    model = GradientBoosting(horizon=8, strategy="direct", quantiles=[0.1, 0.9], differences=[1], n_estimators=30, **LAGS)
    found = model.fit(frame_of(walks[:, :132])).predict(level=80)
    low, high = (found[f"GradientBoosting-{side}-80"].to_numpy().reshape(60, 8) for side in ("lo", "hi"))
    covered = (low <= walks[:, 132:]) & (walks[:, 132:] <= high)
    assert 0.7 < covered.mean() < 0.9
    assert (high - low)[:, -1].mean() > 2 * (high - low)[:, 0].mean()


def test_direct_steps_learn_over_missing_values() -> None:
    """A missing value costs the rows that start or end there, not all whose steps pass over it."""
    trend = 3.0 * np.arange(120.0)
    trend[10:110:3] = np.nan
    model = GradientBoosting(
        horizon=6, strategy="direct", differences=[1], n_estimators=50, min_child_samples=3, lags=1, **LAGS
    )
    with pytest.warns(UserWarning, match="missing"):
        model.fit(frame_of(trend))
    np.testing.assert_allclose(model.predict()["GradientBoosting"], 3.0 * np.arange(120, 126), rtol=0.02)
