from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import deepforecast
from deepforecast import Capabilities, Conformal, Drift, Forecaster, LinearModel, Mean, Naive, SeasonalNaive, WindowMean, param
from deepforecast.core.forecast import Forecast, PointForecast, SampledForecast
from deepforecast.core.state import LearnedState
from deepforecast.data.panel import Panel
from deepforecast.errors import CapabilityError, DataWarning, ParameterError
from tests.clock import stopped
from tests.frames import P, same
from tests.helpers_models import FutureRegression, PooledRegression
from tests.screen import opened

MODELS: list[Forecaster] = [Naive(), SeasonalNaive(season_length=7), Drift(), Mean(), WindowMean(window=5)]


def noisy(k: int = 3, n: int = 60) -> pd.DataFrame:
    frame = P(k, n)
    return frame.assign(y=frame.y + np.random.default_rng(0).normal(size=len(frame)))


def panel_of(values: np.ndarray) -> pd.DataFrame:
    series, rows = values.shape
    ids, stamps = np.repeat(np.arange(series), rows), np.tile(np.arange(rows), series)
    return pd.DataFrame({"unique_id": ids, "ds": stamps, "y": values.ravel()})


def coverage(model: Forecaster, values: np.ndarray, level: int) -> float:
    """The share of the last rows, unseen by the model, that its band covers."""
    ahead = values[:, -3:].ravel()
    found = model.clone(horizon=3).fit(panel_of(values[:, :-3]), freq=1).predict(level=level)
    return float(np.mean((found[f"{model.name}-lo-{level}"] <= ahead) & (ahead <= found[f"{model.name}-hi-{level}"])))


def autoregressive(series: int, rows: int, weight: float) -> np.ndarray:
    shocks = np.random.default_rng(2).normal(size=(series, rows))
    values = shocks.copy()
    for row in range(1, rows):
        values[:, row] += weight * values[:, row - 1]
    return values


# -- what the bands are worth ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [80, 95])
@pytest.mark.parametrize("weight", [0.0, 0.7], ids=["noise", "autoregressive"])
@pytest.mark.parametrize("model", [Mean(), Naive()], ids=lambda one: one.name)
@pytest.mark.parametrize("method", ["split", "adaptive"])
def test_conformal_coverage_is_that_of_the_level(method: str, model: Forecaster, weight: float, level: int) -> None:
    found = coverage(Conformal(model, method=method), autoregressive(1000, 150, weight), level)
    assert abs(found - level / 100) < 0.035


def test_adaptive_intervals_follow_noise_that_doubles() -> None:
    values = autoregressive(1000, 203, 0.0) * np.where(np.arange(203) < 150, 1, 2)
    split, adaptive = (coverage(Conformal(Mean(), method=method), values, 80) for method in ("split", "adaptive"))
    assert split < 0.7
    assert abs(adaptive - 0.8) < 0.03


@pytest.mark.parametrize("level", [80, 95])
def test_pooled_coverage_of_short_series_of_any_scale(level: int) -> None:
    values = autoregressive(2000, 23, 0.3) * np.exp(2 * np.random.default_rng(3).normal(size=(2000, 1)))
    assert -0.01 < coverage(Conformal(Mean(), pool=True), values, level) - level / 100 < 0.045
    with pytest.raises(CapabilityError, match="there are 9"):
        coverage(Conformal(Mean()), values, 95)


# -- how it stands to the model -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS, ids=lambda one: one.name)
def test_the_points_are_those_of_the_model_and_the_option_is_the_wrapper(model: Forecaster) -> None:
    frame = noisy()
    want = model.clone(horizon=3).fit(frame).predict()
    wrapped = Conformal(model, horizon=3, alias=model.name).fit(frame).predict(level=[50, 80])
    option = model.clone(horizon=3, intervals="conformal").fit(frame).predict(level=[50, 80])
    same(wrapped, option)
    same(wrapped[want.columns], want)


def test_a_horizon_of_either_will_do() -> None:
    frame = noisy()
    want = Conformal(Naive(), horizon=3).fit(frame).predict(level=80)
    same(Conformal(Naive(horizon=3)).fit(frame).predict(level=80), want)
    same(Conformal(Naive(horizon=9), horizon=3).fit(frame).predict(level=80), want)
    same(Conformal(Naive(horizon=9)).fit(frame).predict(3).iloc[:, :3], want.iloc[:, :3])
    for model in (Conformal(Naive()), Naive(intervals="conformal")):
        with pytest.raises(ParameterError, match=r"\w+\(.*horizon=\.\.\.\)"):
            model.fit(frame)
    with pytest.raises(CapabilityError, match=r"must be at most 3, .* intervals were calibrated, got 4"):
        Conformal(Naive(horizon=3)).fit(frame).predict(4, level=80)
    assert len(Conformal(Naive(horizon=3)).fit(frame).predict(5)) == 15


def test_missing_values_are_the_models_business_unless_said() -> None:
    class Complete(WindowMean):
        capabilities = Capabilities()

    frame = noisy().drop(index=[20, 80])
    want = Complete(horizon=3, window=5, missing="ffill").fit(frame).predict()["Complete"]
    complete = Complete(horizon=3, window=5)
    for model in (Conformal(complete.clone(missing="ffill")), Conformal(complete, missing="ffill")):
        assert (model.fit(frame).predict(level=80)["Conformal"] == want).all()
        assert (model.predict(frame=frame)["Conformal"] == want).all()
    with pytest.raises(ValueError, match="Conformal cannot handle missing values"):
        Conformal(Complete(horizon=3, window=5)).fit(frame)


def test_bands_stand_around_the_point_the_model_is_asked_for() -> None:
    class Skewed(Forecaster):
        capabilities = Capabilities(distribution="samples", learns_distribution=True)

        def _fit(self, panel: Panel, monitor: Any) -> LearnedState:
            return LearnedState({"last": panel.y[panel.indptr[1:] - 1]})

        def _advance(self, learned: LearnedState, panel: Panel, fresh: bool) -> LearnedState:
            return self._fit(panel, None)

        def _forecast(self, learned: LearnedState, steps: int, future: Any) -> Forecast:
            draws = np.array([0.0, 1.0, 11.0])[None, :, None] + learned["last"][:, None, None]
            return SampledForecast(np.repeat(draws, steps, axis=2))

    frame = noisy()
    last = frame.groupby("unique_id").y.last().to_numpy()
    for model, away in ((Skewed(), 1), (Skewed(point="mean"), 4)):
        told = Conformal(Skewed(), horizon=2, point=model.point_kind)
        for wrapped in (Conformal(model, horizon=2), told, model.clone(horizon=2, intervals="conformal")):
            found = wrapped.fit(frame).predict(level=80)
            np.testing.assert_allclose(found[wrapped.name], np.repeat(last, 2) + away)
            errors = wrapped.state_.calibration.errors  # type: ignore[union-attr]
            assert abs(np.mean(errors) + away) < 1


@pytest.mark.filterwarnings("ignore:Future covariates are almost perfectly correlated with the target")
def test_a_model_without_a_distribution_gets_one() -> None:
    frame = noisy().assign(x=lambda one: one.y)
    columns, ahead = {"future": ["x"]}, noisy(3, 62).assign(x=lambda one: one.y)
    model = Conformal(FutureRegression(), horizon=2).fit(frame, columns=columns)
    found = model.predict(future=ahead.drop(columns="y"), level=90)
    assert model.capabilities.distribution == "analytic"
    assert FutureRegression.capabilities.distribution is None
    assert model.capabilities.future
    assert (found["Conformal-hi-90"] - found["Conformal-lo-90"] < 1e-6).all()  # x says it all


def test_parameters_of_the_model_are_reached_and_its_object_is_left_alone() -> None:
    inner = WindowMean(window=5)
    model = Conformal(inner, horizon=3).fit(noisy())
    assert "state_" not in vars(inner)
    assert inner.horizon is None
    assert model.model is inner
    assert model.set_params(model__window=3).model.window == 3
    assert inner.window == 5
    assert model.clone().model is not model.model


# -- what becomes of the bands --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"method": "adaptive"}, {"pool": True}], ids=str)
def test_update_and_histories_move_the_points_and_keep_the_bands(options: Any) -> None:
    frame = noisy()
    row = frame.groupby("unique_id").cumcount()
    model = Conformal(Naive(), horizon=3, **options).fit(frame[row < 50])

    def widths(found: pd.DataFrame) -> np.ndarray:
        return (found["Conformal-hi-80"] - found["Conformal-lo-80"]).to_numpy()

    before = model.predict(level=80)
    moved = model.predict(frame=frame, level=80)
    last = frame.groupby("unique_id").y.last().to_numpy()
    np.testing.assert_allclose(moved.Conformal, np.repeat(last, 3))
    if not options.get("pool"):
        np.testing.assert_allclose(widths(moved), widths(before))
    model.update(frame[row >= 50])
    np.testing.assert_allclose(widths(model.predict(level=80)), widths(before))
    np.testing.assert_allclose(model.predict().Conformal, np.repeat(last, 3))
    model.fine_tune(frame)
    same(model.predict(level=80), Conformal(Naive(), horizon=3, **options).fit(frame).predict(level=80))


def test_a_series_not_seen_is_calibrated_on_its_own_history_by_a_local_model() -> None:
    frame = noisy()
    for model in (Conformal(Naive(), horizon=3), Naive(horizon=3, intervals="conformal", alias="Conformal")):
        model.fit(frame[frame.unique_id != "s002"])
        with pytest.warns(DataWarning, match="not seen in fit are fitted now: s002"):
            found = model.predict(frame=frame, level=80)
        same(found, model.fit(frame).predict(level=80))


def test_a_series_not_seen_by_a_global_model_needs_pooled_bands() -> None:
    frame = noisy().assign(x=lambda one: one.y.shift(1).fillna(0))
    columns = {"past": ["x"]}
    known = frame[frame.unique_id != "s002"]
    with pytest.raises(CapabilityError, match=r"not seen in fit: s002\. Fit again with these series, pool the errors"):
        Conformal(PooledRegression(), horizon=3).fit(known, columns=columns).predict(frame=frame)
    found = Conformal(PooledRegression(), horizon=3, pool=True).fit(known, columns=columns).predict(frame=frame, level=80)
    assert len(found) == 9
    assert (found["Conformal-hi-80"] > found["Conformal-lo-80"]).all()


def test_pooled_bands_are_wide_where_the_series_is() -> None:
    frame = noisy()
    frame.loc[frame.unique_id == "s002", "y"] *= 100
    frame.loc[frame.unique_id == "s003", "y"] = 5.0
    found = Conformal(Naive(), horizon=3, pool=True).fit(frame).predict(level=80)
    width = (found["Conformal-hi-80"] - found["Conformal-lo-80"]).to_numpy().reshape(3, 3)
    assert (width[1] > 50 * width[0]).all()
    assert (width[2] == 0).all()


def test_pooled_bands_for_series_that_were_constant(tmp_path: Path) -> None:
    values = np.zeros((40, 12))
    values[:30, -1] = 1.0  # none had a scale before
    model = Conformal(Naive(), horizon=1, pool=True, n_windows=1).fit(panel_of(values), freq=1)
    model.save(tmp_path / "model")
    for one in (model, deepforecast.load(tmp_path / "model")):
        with pytest.raises(CapabilityError, match=r"there are 0\. Pass more or longer series \(those constant"):
            one.predict(level=80)


def test_constant_series_do_not_narrow_pooled_intervals() -> None:
    values = np.random.default_rng(0).normal(size=(400, 43)).cumsum(axis=1)
    dead = np.concatenate([np.full((1600, 43), 5.0), values])
    assert abs(coverage(Conformal(Naive(), pool=True), dead, 80) - (1600 + 400 * 0.8) / 2000) < 0.01


@pytest.mark.parametrize("value", [7.0, -7.0, 1e9, 1e-9, 0.0])
@pytest.mark.parametrize("options", [{}, {"method": "adaptive"}, {"pool": True}], ids=str)
def test_constant_has_zero_width_intervals(options: Any, value: float) -> None:
    frame = P(2, 40).assign(y=value)
    found = Conformal(Naive(), horizon=3, **options).fit(frame).predict(level=80)
    assert (found[["Conformal", "Conformal-lo-80", "Conformal-hi-80"]] == value).all(axis=None)


def test_adaptive_and_pooled_do_not_go_together() -> None:
    with pytest.raises(ParameterError, match=r"pool=True cannot be combined with method='adaptive'.*Use method='split'"):
        Conformal(Naive(), horizon=3, method="adaptive", pool=True).fit(noisy())


@pytest.mark.parametrize(
    "model",
    [
        Conformal(Naive(), horizon=3, method="adaptive", adaptation_rate=0.2),
        Conformal(Naive(), horizon=3, pool=True),
        Naive(horizon=3, intervals="conformal"),
    ],
    ids=repr,
)
def test_bands_survive_the_file(model: Forecaster, tmp_path: Path) -> None:
    model.clone().fit(noisy()).save(tmp_path / "model")
    loaded = deepforecast.load(tmp_path / "model")
    assert loaded == model
    same(loaded.predict(level=[50, 80]), model.clone().fit(noisy()).predict(level=[50, 80]))


def test_in_a_backtest_with_a_gap_every_step_is_calibrated() -> None:
    found = deepforecast.cross_validate(
        [Conformal(Naive()), Naive(intervals="conformal")],
        noisy(),
        horizon=2,
        level=80,
        gap=2,
    )
    for end in ("", "-lo-80", "-hi-80"):
        assert (found[f"Conformal{end}"] == found[f"Naive{end}"]).all()


def test_a_wrapper_of_a_wrapper() -> None:
    frame = noisy()
    twice = Conformal(Conformal(Naive(alias="x")), horizon=3).fit(frame).predict(level=80)
    same(twice, Conformal(Naive(), horizon=3).fit(frame).predict(level=80))


class Seeded(Forecaster):
    """Points from a seed."""

    capabilities = Capabilities(simulates=True, explains=True)
    seed: int = param(default=0)

    def _fit(self, panel: Panel, monitor: Any) -> LearnedState:
        return LearnedState({"level": np.zeros(len(panel))})

    def _advance(self, learned: LearnedState, panel: Panel, fresh: bool) -> LearnedState:
        return LearnedState({"level": np.zeros(len(panel))})

    def _forecast(self, learned: LearnedState, steps: int, future: Any) -> Forecast:
        return PointForecast(np.full((len(learned["level"]), steps), float(self.seed)))

    def _simulate(self, learned: LearnedState, steps: int, samples: int, seed: int, future: Any) -> np.ndarray:
        return np.full((len(learned["level"]), samples, steps), float(seed))

    def _explain(self, learned: LearnedState, steps: int, future: Any) -> dict[str, np.ndarray]:
        return {"seed": np.full((len(learned["level"]), steps), float(self.seed))}


def test_what_else_the_model_can_do_is_passed_on() -> None:
    model = Conformal(Seeded(seed=4), horizon=2).fit(noisy())
    assert (model.predict().Conformal == 4).all()
    with pytest.raises(CapabilityError, match="cannot simulate"):  # paths would not be those of the bands
        model.simulate(3, seed=7)
    assert model.explain().value.tolist() == [4.0] * 6


class Slow(Naive):
    """Naive that takes its time at every window."""

    pause: float = param(default=1.0, help="seconds of a forecast")

    def _forecast(self, *given: Any) -> Forecast:
        time.sleep(self.pause)
        return super()._forecast(*given)


CALIBRATED = [Conformal(Slow(), horizon=3), Conformal(Slow(), horizon=3, pool=True), Slow(horizon=3, intervals="conformal")]


@pytest.mark.parametrize("model", CALIBRATED)
def test_windows_that_take_their_time_are_counted_in_a_terminal(model: Forecaster, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped(monkeypatch)
    screen = opened(monkeypatch, later=20.0)
    model.fit(noisy())
    assert "calibration windows: 100%" in screen.getvalue()
    assert "/29" in screen.getvalue()
    for quick in (Conformal(Naive(), horizon=3), Conformal(Naive(), horizon=3, pool=True)):
        screen = opened(monkeypatch, later=20.0)
        quick.fit(noisy())
        assert screen.getvalue() == ""


def test_no_window_is_counted_outside_of_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped(monkeypatch)
    Conformal(Slow(), horizon=3).fit(noisy())
    assert capsys.readouterr() == ("", "")


def test_a_series_depends_on_the_others_only_if_errors_are_pooled() -> None:
    assert Conformal(Naive()).capabilities.local
    assert not Conformal(Naive(), pool=True).capabilities.local
    assert not Conformal(LinearModel()).capabilities.local
