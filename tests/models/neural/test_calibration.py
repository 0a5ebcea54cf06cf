"""Quantiles of networks are calibrated on the last observations, which the first half of the training leaves out."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import MLP, NeuralProphet, Seq2Seq, load
from deepforecast.data.panel import Panel
from deepforecast.datasets import generate
from deepforecast.errors import CapabilityError, ParameterError, SaveError, TrainingWarning
from deepforecast.models.neural import _calibration, _predict
from deepforecast.models.neural._calibration import (
    estimate_factors,
    held_out_rows,
    make_monotone,
    spread_windows,
)
from deepforecast.models.neural._forecast import move, quantile_factors
from deepforecast.models.neural._predict import recent_factors

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


@pytest.mark.parametrize("scope", ["window", "series", "panel"])
def test_the_tail_is_not_seen_before_it_calibrates(scope: str, noisy: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    weights: list[Any] = []
    original = _calibration.calibrate

    def record(model: Any, network: Any, *rest: Any) -> Any:
        weights.append({name: value.clone() for name, value in network.state_dict().items()})
        return original(model, network, *rest)

    monkeypatch.setattr(_calibration, "calibrate", record)
    changed = noisy.copy()
    changed.loc[changed.groupby("unique_id").cumcount(ascending=False) < 90, "y"] += 40.0
    for frame in (noisy, changed):
        MLP(**{**SMALL, "scaler_scope": scope}).fit(frame)
    assert all((weights[0][name] == weights[1][name]).all() for name in weights[0])


@pytest.mark.parametrize("scope", ["series", "panel"])
@pytest.mark.parametrize("validation_size", [None, 90])
def test_windows_of_the_tail_have_scales_of_the_rows_before_it(
    scope: str, validation_size: int | None, noisy: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    scales: list[Any] = []
    original = _calibration.calibrate

    def record(model: Any, network: Any, store: Any, arrays: Any, *rest: Any) -> Any:
        assert (store.scale.numpy() == arrays.scale).all()
        scales.append(arrays.scale[:, 0])
        return original(model, network, store, arrays, *rest)

    monkeypatch.setattr(_calibration, "calibrate", record)
    model = MLP(**{**SMALL, "scaler_scope": scope, "max_steps": 2}, validation_size=validation_size).fit(noisy)
    before = noisy["y"].to_numpy().reshape(2, 900)[:, :810]
    np.testing.assert_allclose(scales[0], before.std(axis=1) if scope == "series" else before.std())
    assert (model.state_.learned["scale"] > scales[0] + 0.1).all()


def width(found: pd.DataFrame) -> pd.Series:
    """Mean width of the 80 % intervals by series."""
    return (found["m-hi-80"] - found["m-lo-80"]).groupby(found["unique_id"]).mean()


@pytest.fixture(scope="module")
def early(noisy: pd.DataFrame) -> MLP:
    """A model fitted before the noise grows."""
    return MLP(**SMALL, alias="m").fit(first_rows(noisy, 780))


def first_rows(frame: pd.DataFrame, rows: int) -> pd.DataFrame:
    return frame[frame.groupby("unique_id").cumcount() < rows]


@pytest.mark.filterwarnings("ignore:.*forecasts through missing values")
def test_recent_histories_recalibrate_and_the_training_frame_does_not(early: MLP, noisy: pd.DataFrame) -> None:
    of_fit = factors(early)
    assert (recent(early, first_rows(noisy, 780)) == of_fit).all()
    assert (recent(early, first_rows(noisy, 780 + 10 * H - 1)) == of_fit).all()  # too few horizons
    found = recent(early, noisy)
    assert found.shape == (2, len(of_fit))
    assert (found[:, [0, -1]] > of_fit[[0, -1]] + 0.1).all()
    np.testing.assert_allclose(width(early.predict(frame=first_rows(noisy, 780), level=80)), width(early.predict(level=80)))
    gaps = noisy.copy()
    gaps.loc[gaps.groupby("unique_id").cumcount().between(790, 895), "y"] = np.nan
    assert (recent(early, gaps) == of_fit).all()


def recent(model: MLP, frame: pd.DataFrame) -> np.ndarray:
    """The factors with which `predict(frame=...)` forecasts."""
    learned = model._state_for_frame(frame, None).learned
    return recent_factors(model, learned, quantile_factors(learned)).factors  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [MLP, Seq2Seq])
def test_intervals_do_not_depend_on_the_other_series(kind: Any, noisy: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_predict, "MAX_RECENT_PATH_WINDOWS", 6)
    sizes = {"hidden_sizes": [16], "scaler_scope": "panel"} if kind is MLP else {"hidden_size": 8}
    options = {"horizon": H, "input_size": 14, "max_steps": 10, "calendar": None, **sizes}
    model = kind(**options, alias="m").fit(first_rows(noisy, 780))
    wild = noisy[noisy["unique_id"] == "s1"].assign(y=lambda frame: 50 + 5 * (frame["y"] - 50))
    alone = noisy[noisy["unique_id"] == "s0"]
    together = pd.concat([wild.assign(unique_id="r"), alone, wild], ignore_index=True)
    expected = model.predict(frame=alone, level=80).to_numpy()[:, 2:].astype(float)
    found = model.predict(frame=together, level=80)
    np.testing.assert_allclose(found[found["unique_id"] == "s0"].to_numpy()[:, 2:].astype(float), expected, rtol=1e-6)
    of_one = model.predict(frame=together, ids="s0", level=80)
    np.testing.assert_allclose(of_one.to_numpy()[:, 2:].astype(float), expected, rtol=1e-6)
    assert width(found)["r"] > 1.5 * width(found)["s0"]
    paths = model.simulate(1000, frame=together).merge(found, on=["unique_id", "ds"], suffixes=("", "-point"))
    inside = paths["m"].between(paths["m-lo-80"], paths["m-hi-80"]).groupby(paths["unique_id"]).mean()
    np.testing.assert_allclose(inside, 0.8, atol=0.03)


@pytest.mark.parametrize("scope", ["window", "series"])
def test_recent_factors_are_those_of_forecasts_from_each_cutoff(scope: str) -> None:
    trend = pd.DataFrame({"unique_id": "a", "ds": pd.date_range("2022-01-01", periods=400)})
    trend["y"] = 0.1 * np.arange(400) + np.random.default_rng(0).normal(size=400)
    model = MLP(**{**SMALL, "scaler_scope": scope}, alias="m").fit(trend[:300])
    cutoffs = [400 - H * number for number in range(1, 15)]
    probabilities = model.state_.learned["calibration"]["probabilities"]
    plain = MLP(**{**SMALL, "scaler_scope": scope}, alias="m")
    plain.state_ = _without(model, {name: value for name, value in model.state_.learned.shared.items() if name != "calibration"})
    levels = [*probabilities, 0.5]
    names = [f"m-q-{level:g}" for level in levels]
    quantiles = np.array([plain.predict(frame=trend[:cutoff], quantiles=levels)[names].to_numpy() for cutoff in cutoffs])
    actual = np.array([trend["y"][cutoff : cutoff + H] for cutoff in cutoffs])
    expected = estimate_factors(probabilities, quantiles, actual, 14 / 44, factors(model), "quantiles")
    np.testing.assert_allclose(recent(model, trend), expected[None], rtol=1e-6)


def test_recent_factors_are_computed_for_intervals_only(
    early: MLP, noisy: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    original = _predict.recent_factors
    monkeypatch.setattr(_predict, "recent_factors", lambda *values: (calls.append(1), original(*values))[1])
    early.predict(frame=noisy)
    early.fitted_values(noisy)
    assert not calls
    early.predict(frame=noisy, level=[80, 95], quantiles=[0.1])
    assert len(calls) == 1
    early.clone().fit(first_rows(noisy, 780)).update(noisy[noisy.groupby("unique_id").cumcount() >= 780]).predict()
    assert len(calls) == 1


def test_update_keeps_the_factors_of_the_fit(early: MLP, noisy: pd.DataFrame) -> None:
    model = early.clone().fit(first_rows(noisy, 780))
    model.update(noisy[noisy.groupby("unique_id").cumcount() >= 780])
    assert (width(model.predict(level=80)) < width(model.predict(frame=noisy, level=80))).all()


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
    rates = [one.fit(frame).training_report_["learning_rate"].to_numpy() for one in (off, MLP(**SMALL))]
    assert [len(rate) for rate in rates] == [60, 60]
    assert [int((np.diff(rate) > 0).sum()) > 5 for rate in rates] == [False, False]
    assert rates[1][30:].max() == pytest.approx(rates[1][:30].max() / 3)


def test_validation_rows_calibrate_the_best_weights(noisy: pd.DataFrame) -> None:
    model = MLP(**SMALL, validation_size=14, validate_every=20).fit(noisy)
    assert (model.calibration_["n_windows"] == 2).all()
    assert np.isfinite(model.training_report_["validation_loss"]).sum() == 3


def test_low_coverage_of_the_tail_is_told_with_both_numbers(noisy: pd.DataFrame) -> None:
    model = MLP(**{**SMALL, "max_steps": 200, "batch_size": 64, "learning_rate": 1e-2}).fit(noisy[:60])
    calibration = model.state_.learned["calibration"]
    calibration["uncalibrated"][3], calibration["calibrated"][3] = 30.0, 41.0
    told = r"80 % prediction intervals covered 30 % of .* were widened to cover 41 % of these\. Pass longer series, or"
    with pytest.warns(TrainingWarning, match=told):
        model.predict(level=80)
    with pytest.warns(TrainingWarning, match=told):  # as many recent values as calibrate them, but one
        model.predict(frame=noisy[: 60 + 10 * H - 1], level=80)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(frame=noisy[: 60 + 10 * H], level=80)
        model.predict()


def hidden_tail(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame without most values of its last tenth."""
    return frame.assign(y=frame["y"].where(~frame.index.isin(range(200, 219))))


NOT_CALIBRATED: dict[str, tuple[dict[str, Any], Any, str]] = {
    "short series": ({"input_size": "auto"}, lambda frame: frame[: 2 * H + 1], "at least 16 time steps, .* got at most 15. Pass l"),
    "levels of one side": ({"quantiles": [0.1, 0.45]}, lambda frame: frame[:220], "reach from 0.4 .* to 0.6 .*, got 0.1, 0.45. P"),
    "one step": ({"max_steps": 1}, lambda frame: frame[:220], "`max_steps` must be at least 2, .* got 1. Set max_steps=2"),
    "missing values": ({}, lambda frame: hidden_tail(frame[:220]), "last 22 .* must have at least 7 observed values .*got 3. Pass"),
}


@pytest.mark.filterwarnings("ignore:.*forecasts through missing values")
@pytest.mark.parametrize("name", NOT_CALIBRATED)
def test_intervals_that_cannot_be_calibrated_are_told(name: str, noisy: pd.DataFrame, tmp_path: Path) -> None:
    options, change, told = NOT_CALIBRATED[name]
    model = MLP(**{**SMALL, "max_steps": 10, **options}, alias="m").fit(change(noisy))
    assert not len(model.calibration_)
    rates = model.training_report_["learning_rate"].to_numpy()
    assert (np.diff(rates) <= 0).all()  # in one part
    model.save(tmp_path / "m.dfc")
    for one in (model, load(tmp_path / "m.dfc"), model.clone().fit(change(noisy)).fine_tune(change(noisy), max_steps=1)):
        with pytest.warns(TrainingWarning, match=f"m: prediction intervals are not calibrated: .*{told}"):
            one.predict(quantiles=[0.2])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            one.predict()


def test_constant_series_have_no_quantiles_to_calibrate(noisy: pd.DataFrame) -> None:
    options = {**SMALL, "scaler_scope": "window", "max_steps": 2}
    model = MLP(**options, alias="m").fit(noisy[:220].assign(y=5.0))
    assert not len(model.calibration_)
    assert (model.predict(level=80)[["m", "m-lo-80", "m-hi-80"]] == 5.0).all(axis=None)


def test_a_reason_in_a_file_is_text(noisy: pd.DataFrame, tmp_path: Path) -> None:
    model = MLP(**{**SMALL, "max_steps": 1}).fit(noisy[:60])
    model.state_ = _without(model, {**model.state_.learned.shared, "not_calibrated": 3})
    with pytest.raises(SaveError, match="'not_calibrated' of the network must be a string, got 3"):  # read again by `save`
        model.save(tmp_path / "m.dfc")


@pytest.mark.filterwarnings("ignore:.*forecasts through missing values")
def test_windows_count_observed_values(noisy: pd.DataFrame) -> None:
    frame = noisy[:900].copy()
    frame.loc[np.arange(810, 899)[np.arange(89) % 3 > 0], "y"] = np.nan
    model = MLP(**SMALL, alias="m").fit(frame)
    assert model.calibration_["n_windows"].unique().tolist() == [frame["y"][810:].notna().sum() // H]


def test_a_fine_tuned_network_has_the_factors_and_no_coverage(noisy: pd.DataFrame) -> None:
    model = MLP(**SMALL, alias="m").fit(noisy[:60])
    before = factors(model)
    model.state_.learned["calibration"]["uncalibrated"][3] = 30.0
    model.fine_tune(noisy[:60], max_steps=2)
    assert (factors(model) == before).all()
    assert model.calibration_[["uncalibrated", "calibrated"]].isna().all(axis=None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(level=80)


def test_conformal_intervals_have_no_calibration_by_held_out_values(noisy: pd.DataFrame) -> None:
    model = MLP(**SMALL, alias="m", intervals="conformal").fit(noisy[:120])
    assert not len(model.calibration_)
    with pytest.raises(CapabilityError, match=r"as its intervals are conformal\. Use predict"):
        model.predictor([0.1])


def test_uncalibrated_intervals_need_a_learned_distribution(noisy: pd.DataFrame) -> None:
    with pytest.raises(ParameterError, match=r"requires a head with a distribution, got head='point'\. Omit"):
        MLP(**SMALL, head="point", intervals="uncalibrated").fit(noisy)
    with pytest.raises(ParameterError, match="`intervals` must be 'conformal' or None, got 'uncalibrated'"):
        NeuralProphet(horizon=H, intervals="uncalibrated")  # type: ignore[arg-type]
    assert NeuralProphet(horizon=H, intervals="conformal").calibrates


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
    found = estimate_factors(PROBABILITIES, quantiles, actual, 1.0, np.ones(6), "quantiles")
    assert (np.diff(found[:3]) <= 0).all()
    assert (np.diff(found[3:]) >= 0).all()
    assert found.max() < 4
    np.testing.assert_allclose(make_monotone(PROBABILITIES, np.array([4.0, 2, 1, 1, 8, 2])), [4, 2, 1, 1, 4, 4])
    shrunken = estimate_factors(PROBABILITIES, quantiles / 3, actual, 0.5, np.ones(6), "quantiles")
    np.testing.assert_allclose(shrunken**2, estimate_factors(PROBABILITIES, quantiles / 3, actual, 1.0, np.ones(6), "quantiles"))


def test_windows_are_within_the_tail() -> None:
    series, cutoff = spread_windows(np.array([80, 10]), np.array([93, 9]), 3, 100, 0)
    assert series.tolist() == [0] * 5
    assert sorted(cutoff.tolist()) == [81, 84, 87, 90, 93]
    assert len(spread_windows(np.zeros(9, int), np.full(9, 99), 1, 50, 0)[0]) == 50
    panel = Panel.from_frame(pd.concat([generate(1, 200), generate(1, 15).assign(unique_id="t")]))
    assert held_out_rows(panel, 7).tolist() == [20, 0]
    np.testing.assert_allclose(move(np.array([2.0]), np.array([1.0, 3.0]), np.array([3.0, 2.0]), "poisson"), [0, 4])
