"""Quantiles of networks are calibrated on the last observations, which the first half of the training leaves out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import MLP, NeuralProphet, Seq2Seq, load
from deepforecast.data.panel import Panel
from deepforecast.datasets import generate
from deepforecast.errors import TrainingWarning
from deepforecast.models.neural import _calibration
from deepforecast.models.neural._calibration import estimate_factors, held_out_rows, make_monotone, move, spread_windows

H = 7
SMALL: dict[str, Any] = {
    "horizon": H, "hidden_sizes": [16], "max_steps": 60, "input_size": 14, "calendar": None, "scaler_scope": "panel"
}  # fmt: skip
PROBABILITIES = np.array([0.05, 0.1, 0.3, 0.7, 0.9, 0.95])


@pytest.fixture(scope="module")
def noisy() -> pd.DataFrame:
    """Noise whose standard deviation is 2.5 times as large in the last 90 rows, a tenth."""
    rng = np.random.default_rng(0)
    parts = []
    for number in range(2):
        scale = np.where(np.arange(900) < 810, 1.0, 2.5)
        values = 50 + scale * rng.normal(size=900)
        parts.append(pd.DataFrame({"unique_id": f"s{number}", "ds": pd.date_range("2022-01-01", periods=900), "y": values}))
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def model(noisy: pd.DataFrame) -> MLP:
    return MLP(**SMALL, alias="m").fit(noisy)


def factors(model: Any) -> np.ndarray:
    return np.asarray(model.state_.learned["calibration"]["factors"])


def test_wider_errors_in_the_tail_widen_the_intervals(model: MLP) -> None:
    found = model.calibration_.set_index("level").loc[80]
    assert found["uncalibrated"] < 70
    assert found["uncalibrated"] + 3 < found["calibrated"] < 85
    assert found["n_windows"] == 90 // H
    assert (factors(model)[[0, -1]] > 1.1).all()


def test_quantiles_move_by_their_factors_and_points_stay(model: MLP) -> None:
    shared = {name: value for name, value in model.state_.learned.shared.items() if name != "calibration"}
    plain = MLP(**SMALL, alias="m")
    plain.state_ = _without(model, shared)
    mine, theirs = (one.predict(level=80, quantiles=[0.5]) for one in (model, plain))
    np.testing.assert_array_equal(mine["m"], theirs["m"])
    np.testing.assert_array_equal(mine["m-q-0.5"], theirs["m"])
    by_level = dict(zip(model.state_.learned["calibration"]["probabilities"], factors(model), strict=True))
    for column, probability in (("m-lo-80", 0.1), ("m-hi-80", 0.9)):
        np.testing.assert_allclose(mine[column] - mine["m"], by_level[probability] * (theirs[column] - theirs["m"]), rtol=1e-9)


def _without(model: MLP, shared: dict[str, Any]) -> Any:
    from dataclasses import replace

    return replace(model.state_, learned=replace(model.state_.learned, shared=shared))


@pytest.mark.parametrize("steps", [H, H + 4])
def test_paths_have_the_calibrated_quantiles(model: MLP, steps: int) -> None:
    paths = model.simulate(2000, steps)["m"].to_numpy().reshape(2, 2000, steps)
    bounds = model.predict(steps, level=[60, 90])[["m-lo-90", "m-lo-60", "m-hi-60", "m-hi-90"]].to_numpy().reshape(2, 1, steps, 4)
    shares = (paths[..., None] <= bounds).mean(axis=(0, 1, 2))
    np.testing.assert_allclose(shares, [0.05, 0.2, 0.8, 0.95], atol=0.02)


def test_the_tail_is_not_seen_before_it_calibrates(noisy: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    weights: list[Any] = []
    original = _calibration.calibrate

    def record(model: Any, network: Any, *rest: Any) -> Any:
        weights.append({name: value.clone() for name, value in network.state_dict().items()})
        return original(model, network, *rest)

    monkeypatch.setattr(_calibration, "calibrate", record)
    changed = noisy.copy()
    changed.loc[changed.groupby("unique_id").cumcount(ascending=False) < 90, "y"] += 40.0
    for frame in (noisy, changed):
        MLP(**{**SMALL, "scaler_scope": "window"}).fit(frame)
    assert all((weights[0][name] == weights[1][name]).all() for name in weights[0])


def test_recent_histories_recalibrate_and_the_training_frame_does_not(noisy: pd.DataFrame) -> None:
    quiet = noisy[noisy.groupby("unique_id").cumcount() < 795]
    model = MLP(**SMALL, alias="m").fit(quiet)
    width = [
        (found["m-hi-80"] - found["m-lo-80"]).mean() for found in (model.predict(level=80), model.predict(frame=quiet, level=80))
    ]
    assert width[1] == pytest.approx(width[0], rel=1e-6)
    state = model._state_for_frame(noisy, None)
    assert (np.asarray(state.learned["calibration"]["factors"])[[0, -1]] > factors(model)[[0, -1]] + 0.1).all()
    few = noisy[noisy.groupby("unique_id").cumcount() < 795 + H]  # a window of each series
    assert (model._state_for_frame(few, None).learned["calibration"]["factors"] == factors(model)).all()


def test_a_file_and_a_predictor_have_the_factors(model: MLP, tmp_path: Path, noisy: pd.DataFrame) -> None:
    model.save(tmp_path / "m.dfc")
    loaded = load(tmp_path / "m.dfc")
    expected = model.predict(quantiles=[0.1, 0.9])
    pd.testing.assert_frame_equal(loaded.predict(quantiles=[0.1, 0.9]), expected)
    pd.testing.assert_frame_equal(loaded.calibration_, model.calibration_)
    found = model.predictor([0.1, 0.9])(noisy["y"].to_numpy().reshape(2, -1)).quantiles
    np.testing.assert_allclose(found.reshape(-1, 2), expected[["m-q-0.1", "m-q-0.9"]], rtol=1e-6)


@pytest.mark.filterwarnings("ignore:.*lie far outside", "ignore:.*after calibration")  # after 20 steps
@pytest.mark.parametrize("head", ["negative_binomial", "lognormal", "tweedie", "student_t", "mixture", "bins"])
def test_heads_keep_their_support(head: str) -> None:
    frame = generate(4, 150)
    frame["y"] = np.rint(frame["y"].clip(lower=0) / 20) + (head == "lognormal")
    model = MLP(**{**SMALL, "max_steps": 20}, head=head, alias="m", bounds=(0, 100)).fit(frame)
    state = model.state_.learned["calibration"]
    state["factors"][:] = make_monotone(state["probabilities"], 1 + 4 * np.abs(state["probabilities"] - 0.5))
    found = model.predict(quantiles=[0.05, 0.1, 0.3, 0.5, 0.8, 0.9]).iloc[:, 3:].to_numpy()
    assert (np.diff(found) >= 0).all()
    assert found.min() >= 0
    assert found.max() <= 100
    paths = model.simulate(20)["m"].to_numpy()
    for values in (found, paths):
        assert head != "negative_binomial" or (values == np.rint(values)).all()
        assert head != "lognormal" or (values > 0).all()


def test_autoregressive_networks_are_calibrated() -> None:
    frame = generate(4, 120)
    model = Seq2Seq(horizon=H, input_size=14, hidden_size=8, max_steps=8, alias="m").fit(frame)
    assert len(model.calibration_) == 7
    found = model.predict(level=[50, 80])
    assert (found["m-lo-80"] <= found["m-lo-50"]).all()
    assert (found["m-hi-50"] <= found["m-hi-80"]).all()


def test_what_is_not_calibrated_has_no_rows_and_trains_in_one_part(noisy: pd.DataFrame) -> None:
    frame = noisy[noisy["unique_id"] == "s0"]
    off = MLP(**SMALL, intervals="uncalibrated").fit(frame)
    assert not len(off.calibration_)
    assert off.capabilities.simulates
    assert not len(MLP(**SMALL, head="point").fit(frame).calibration_)
    assert not len(MLP(**{**SMALL, "input_size": "auto"}).fit(frame.head(2 * H + 1)).calibration_)
    assert not len(NeuralProphet(horizon=H, max_steps=4).fit(frame).calibration_)
    rates = [one.fit(frame).training_report_["rate"].to_numpy() for one in (off, MLP(**SMALL))]
    assert [len(rate) for rate in rates] == [60, 60]
    assert [int((np.diff(rate) > 0).sum()) > 5 for rate in rates] == [False, False]
    assert rates[1][30:].max() == pytest.approx(rates[1][:30].max() / 3)


def test_validation_rows_calibrate_the_best_weights(noisy: pd.DataFrame) -> None:
    model = MLP(**SMALL, validation_size=14, validate_every=20).fit(noisy)
    assert (model.calibration_["n_windows"] == 2).all()
    assert np.isfinite(model.training_report_["validation"]).sum() == 3


def test_low_coverage_of_the_tail_is_told_with_both_numbers(noisy: pd.DataFrame) -> None:
    model = MLP(**{**SMALL, "max_steps": 200, "batch_size": 64, "learning_rate": 1e-2}).fit(noisy[:60])
    calibration = model.state_.learned["calibration"]
    calibration["uncalibrated"][3], calibration["calibrated"][3] = 30.0, 41.0
    told = r"80 % prediction intervals covered 30 % .* and 41 % after calibration on 1 independent window\b"
    with pytest.warns(TrainingWarning, match=told):
        model.predict(level=80)


def test_an_interrupted_calibration_resumes_with_the_same_result(noisy: pd.DataFrame, tmp_path: Path) -> None:
    options = {**SMALL, "checkpoint_dir": str(tmp_path), "checkpoint_every": 10}
    first = MLP(**options).fit(noisy)
    again = MLP(**options).fit(noisy)  # from the checkpoints at the end of both parts
    pd.testing.assert_frame_equal(first.predict(level=80), again.predict(level=80))
    for path in (tmp_path / "all").glob("*"):
        path.unlink()
    pd.testing.assert_frame_equal(first.predict(level=80), MLP(**options).fit(noisy).predict(level=80))


def test_factors_do_not_decrease_with_the_distance_from_the_median() -> None:
    quantiles = np.broadcast_to([-4.0, -1.0, -0.5, 0.5, 1.0, 4.0, 0.0], (40, 5, 7))
    actual = np.random.default_rng(0).normal(size=(40, 5))
    found = estimate_factors(PROBABILITIES, quantiles, actual, 1e9, np.ones(6), "quantiles")
    assert (np.diff(found[:3]) <= 0).all()
    assert (np.diff(found[3:]) >= 0).all()
    assert found.max() < 4
    np.testing.assert_allclose(make_monotone(PROBABILITIES, np.array([4.0, 2, 1, 1, 8, 2])), [4, 2, 1, 1, 4, 4])
    shrunken = estimate_factors(PROBABILITIES, quantiles / 3, actual, 30.0, np.ones(6), "quantiles")
    np.testing.assert_allclose(shrunken**2, estimate_factors(PROBABILITIES, quantiles / 3, actual, 1e12, np.ones(6), "quantiles"))


def test_windows_are_within_the_tail() -> None:
    series, cutoff = spread_windows(np.array([80, 10]), np.array([93, 9]), 3, 100, 0)
    assert series.tolist() == [0] * 5
    assert sorted(cutoff.tolist()) == [81, 84, 87, 90, 93]
    assert len(spread_windows(np.zeros(9, int), np.full(9, 99), 1, 50, 0)[0]) == 50
    panel = Panel.from_frame(pd.concat([generate(1, 200), generate(1, 15).assign(unique_id="t")]))
    assert held_out_rows(panel, 7).tolist() == [20, 0]
    np.testing.assert_allclose(move(np.array([2.0]), np.array([1.0, 3.0]), np.array([3.0, 2.0]), "poisson"), [0, 4])
