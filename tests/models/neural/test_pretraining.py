"""Pretraining, fine-tuning with frozen modules, and forecasts of series of another frequency."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from deepforecast import DLinear, Naive, NeuralProphet, Transformer, load
from deepforecast.datasets import generate
from deepforecast.errors import CapabilityError, DataError, NotFittedError, ParameterError, ParameterTypeError, SaveError
from deepforecast.training.pretraining import MaskedPatches, NextPatch, Objective

H = 7
OPTIONS: dict[str, Any] = {
    "horizon": H, "input_size": 28, "patch_length": 7, "stride": 7, "d_model": 8, "n_heads": 2, "n_layers": 1, "calendar": None,
    "alias": "model",
}  # fmt: skip


@pytest.fixture(scope="module")
def source() -> pd.DataFrame:
    return generate(5, 200)


def pretrained(source: pd.DataFrame, objective: Any = "auto", **options: Any) -> Transformer:
    return Transformer(**OPTIONS, **options).pretrain(source, objective, max_steps=10)


def weights(model: Transformer, part: str = "") -> dict[str, Tensor]:
    return {name: value.clone() for name, value in model.network_.state_dict().items() if part in name}


def equal(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return all(torch.equal(value, second[name]) for name, value in first.items())


def test_pretraining_changes_the_encoder_alone_and_depends_on_the_seed(source: pd.DataFrame) -> None:
    untrained = Transformer(**OPTIONS)
    untrained.lightning_module(source)
    state = torch.random.get_rng_state()
    model = pretrained(source)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert not equal(weights(model, "window_encoder.encoder"), weights(untrained))
    assert equal(weights(model, "body.decoder"), weights(untrained))
    assert equal(weights(model), weights(pretrained(source, "masked_patches")))
    assert not equal(weights(model), weights(pretrained(source, seed=1)))
    assert len(model.training_report_) == 10


def test_a_pretrained_network_forecasts_after_fine_tuning(source: pd.DataFrame, tmp_path: Path) -> None:
    model = pretrained(source)
    for call in (model.predict, lambda: model.simulate(2), model.explain, model.fitted_values, model.predictor):
        with pytest.raises(NotFittedError, match=r"cannot forecast yet, as pretraining \(masked_patches\).*Call fine_tune"):
            call()
    with pytest.raises(NotFittedError, match="cannot forecast yet"):
        model.export_onnx(tmp_path / "model.onnx")
    model.save(tmp_path / "model.dfc", histories=False)
    loaded = load(tmp_path / "model.dfc")
    with pytest.raises(NotFittedError, match="cannot forecast yet"):
        loaded.predict(frame=source)
    target = generate(2, 160)
    forecast = model.fine_tune(target, max_steps=10).predict(level=80)
    assert len(model.calibration_)  # calibrated as in `fit`
    pd.testing.assert_frame_equal(loaded.fine_tune(target, max_steps=10).predict(level=80), forecast)
    assert np.isfinite(forecast["model"]).all()


def test_fine_tuning_starts_from_the_pretrained_weights_at_the_full_learning_rate(source: pd.DataFrame) -> None:
    model = pretrained(source)
    before = weights(model, "window_encoder")
    model.fine_tune(source, max_steps=10, freeze=["window_encoder"])
    assert equal(before, weights(model))
    assert model.training_report_["learning_rate"].max() == pytest.approx(model.learning_rate, rel=1e-6)
    model.fine_tune(source, max_steps=10)
    assert model.training_report_["learning_rate"].max() == pytest.approx(0.1 * model.learning_rate, rel=1e-6)


def test_modules_of_a_dict_are_trained_after_their_number_of_steps(source: pd.DataFrame) -> None:
    model = pretrained(source, intervals="uncalibrated")
    before = weights(model, "window_encoder")
    late, early = model.clone(), model.clone()
    late.state_ = early.state_ = model.state_
    late.fine_tune(source, max_steps=10, freeze={"window_encoder": 10})
    assert equal(before, weights(late))
    early.fine_tune(source, max_steps=10, freeze={"window_encoder": 9})
    assert not equal(before, weights(early))


def test_the_steps_of_frozen_modules_count_both_parts_of_the_training(source: pd.DataFrame) -> None:
    model = pretrained(source)
    before = weights(model, "window_encoder")
    model.fine_tune(source, max_steps=10, freeze={"window_encoder": 10})
    assert len(model.calibration_)
    assert equal(before, weights(model))


@pytest.mark.parametrize(
    ("freeze", "error", "message"),
    [
        ({"window_encoder": -1}, ParameterError, "must be numbers of training steps, got -1 for window_encoder"),
        ({"encoders": 5}, ParameterError, "must contain names of modules, got encoders. Available: body.decoder"),
        ({"body": 5}, ParameterError, "must leave at least one module trainable"),
        ("window_encoder", ParameterTypeError, "must be a list of module names"),
    ],
)
def test_invalid_freeze(source: pd.DataFrame, freeze: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        pretrained(source).fine_tune(source, freeze=freeze)


def test_objectives_can_be_combined_and_are_not_changed(source: pd.DataFrame) -> None:
    objective = MaskedPatches(fraction=0.4)
    model = pretrained(source, {objective: 1.0, "next_patch": 0.5})
    assert not list(objective.parameters())
    assert model.state_.learned.shared["pretraining"]["objectives"] == ["masked_patches", "next_patch"]
    assert equal(weights(model), weights(pretrained(source, {MaskedPatches(fraction=0.4): 1.0, NextPatch(): 0.5})))
    assert not equal(weights(model), weights(pretrained(source, ["masked_patches", "next_patch"])))


def test_users_can_write_objectives(source: pd.DataFrame) -> None:
    class Shrink(Objective):
        """The sum of squared weights of the encoder."""

        name = "shrink"

        def loss(self, network: Any, batch: Any) -> Tensor:
            return sum(parameter.square().sum() for parameter in network.body.window_encoder.parameters())  # type: ignore[return-value]

    def norm(model: Transformer) -> float:
        return sum(float(value.square().sum()) for value in weights(model, "window_encoder").values())

    untrained = Transformer(**OPTIONS)
    untrained.lightning_module(source)
    assert norm(pretrained(source, Shrink())) < norm(untrained)


@pytest.mark.parametrize(
    ("objective", "error", "message"),
    [
        ("bert", ParameterError, "`objective` must be one of auto, masked_patches, .*, got bert"),
        (MaskedPatches, ParameterTypeError, r"must be an instance, got the class MaskedPatches. Pass MaskedPatches\(...\)"),
        ([], ParameterError, "at least one objective, got none"),
        ({"masked_patches": 0}, ParameterError, "weights of objectives must be positive numbers, got 0"),
        (None, ParameterError, "`objective` must be one of auto"),
    ],
)
def test_invalid_objectives_leave_the_model_as_it_was(
    source: pd.DataFrame, objective: Any, error: type[Exception], message: str
) -> None:
    model = Transformer(**OPTIONS)
    with pytest.raises(error, match=message):
        model.pretrain(source, objective)
    with pytest.raises(NotFittedError, match="has not been fitted"):
        model.predict()


def test_networks_without_an_encoder_refuse(source: pd.DataFrame) -> None:
    with pytest.raises(CapabilityError, match="requires a network with an encoder over patches"):
        DLinear(horizon=H).pretrain(source)


def test_pretraining_entries_of_files_are_checked(source: pd.DataFrame, tmp_path: Path) -> None:
    model = pretrained(source)
    for entry in ({}, {"objectives": ["a"], "trains_forecast": 1}, {"objectives": "a", "trains_forecast": True}, 3):
        shared = {**model.state_.learned.shared, "pretraining": entry}
        damaged = model.clone()
        damaged.state_ = replace(model.state_, learned=replace(model.state_.learned, shared=shared))
        with pytest.raises(SaveError, match="'pretraining' of the network must have"):  # what is saved is loaded first
            damaged.save(tmp_path / "model.dfc")


# -- other frequencies -----------------------------------------------------------------------------------------------------


def monthly(frame: pd.DataFrame) -> pd.DataFrame:
    """The same values with months in place of days."""
    months = pd.date_range("2000-01-01", periods=frame.groupby("unique_id").size().max(), freq="MS")
    return frame.assign(ds=months[frame.groupby("unique_id").cumcount()])


@pytest.fixture(scope="module")
def daily_model() -> DLinear:
    return DLinear(horizon=H, input_size=14, max_steps=20, calendar=None, alias="model").fit(generate(3, 300))


def test_a_network_forecasts_series_of_another_frequency_from_their_values(daily_model: DLinear) -> None:
    frame = generate(2, 100, seed=5)
    expected = daily_model.predict(frame=frame.assign(unique_id=frame["unique_id"] + "-new"))
    forecast = daily_model.predict(frame=monthly(frame), freq="MS")
    np.testing.assert_array_equal(forecast["model"], expected["model"])
    assert forecast["ds"].iloc[0] == pd.Timestamp("2008-05-01")


def test_intervals_of_another_frequency_are_calibrated_on_their_own_values(daily_model: DLinear) -> None:
    long = monthly(generate(1, 600, seed=5))
    by_own_values = daily_model.predict(frame=long, freq="MS", level=80)
    by_fit = daily_model.predict(frame=long.tail(50), freq="MS", level=80)
    np.testing.assert_allclose(by_own_values["model"], by_fit["model"], rtol=1e-6)
    assert not np.allclose(by_own_values["model-hi-80"], by_fit["model-hi-80"], rtol=1e-4)


def test_fine_tuning_moves_a_network_to_another_frequency(daily_model: DLinear) -> None:
    model = daily_model.clone()
    model.state_ = daily_model.state_
    frame = monthly(generate(2, 100))
    assert model.fine_tune(frame, freq="MS", max_steps=5).predict()["ds"].iloc[0] == pd.Timestamp("2008-05-01")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda model, frame: model.predict(freq="MS"), ParameterError, "`freq` cannot be passed without `frame`"),
        (lambda model, frame: model.predict(frame=frame), DataError, "must have most of the rows of its frequency; freq='D'"),
        (
            lambda model, frame: Naive(horizon=2).fit(generate(1, 30)).predict(frame=frame, freq="MS"),
            CapabilityError, "Naive can forecast only the frequency that it was fitted to, 'D', got freq=MS",
        ),
        (
            lambda model, frame: NeuralProphet(horizon=2, max_steps=2).fit(generate(1, 30)).predict(frame=frame, freq="MS"),
            CapabilityError, "NeuralProphet can forecast only the frequency",
        ),
    ],
)  # fmt: skip
def test_another_frequency_must_be_passed_and_needs_a_network(
    daily_model: DLinear, call: Callable[..., Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call(daily_model, monthly(generate(1, 40)))


def test_the_frequency_of_the_fit_can_be_passed_to_all_models() -> None:
    frame = generate(1, 30)
    model = Naive(horizon=2).fit(frame)
    pd.testing.assert_frame_equal(model.predict(frame=frame, freq="D"), model.predict())
