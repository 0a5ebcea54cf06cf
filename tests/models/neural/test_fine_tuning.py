"""Going on learning, parts of the network frozen; and a step on a device that is not there."""

from __future__ import annotations

import pytest
import torch

from deepforecast import GRU, LSTM, MLP, Naive
from deepforecast.datasets import generate
from deepforecast.errors import ParameterError, ParameterTypeError
from tests.models.neural.test_predict import fitted, panel


def weights(model: MLP) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in model.network_.state_dict().items()}


@pytest.mark.parametrize("rest", [{}, {"ema_decay": 0.9}, {"normalization": "batch"}])
def test_frozen_parts_stay_to_the_bit(rest: dict[str, object]) -> None:
    model = fitted("MLP", **rest)
    before = weights(model)
    wanted = "running_mean" if "normalization" in rest else "weight"
    part = next(name for name in before if name.endswith(wanted)).rpartition(".")[0]
    model.fine_tune(panel(4, 120, seed=9), freeze=[part.removeprefix("body.")])
    after = weights(model)
    same = {name for name in before if torch.equal(before[name], after[name])}
    frozen = {name for name in before if name.startswith(f"{part}.")}
    assert frozen
    assert frozen <= same
    assert set(before) - same
    assert all(one.requires_grad for one in model.network_.parameters())


def test_steps_and_rate_of_going_on_may_be_said() -> None:
    frame = panel(4, 120, seed=9)
    model = MLP(horizon=6, input_size=24, hidden_sizes=[8], max_epochs=1, lr_schedule="constant", warmup=0.0).fit(panel(4, 120))
    model.fine_tune(frame, max_steps=3, learning_rate=0.02)
    assert model.training_report_.learning_rate.tolist() == [0.02] * 3
    model.fine_tune(frame, max_steps=2)
    assert model.training_report_.learning_rate.tolist() == pytest.approx([3e-4] * 2)  # a tenth of the fit's
    assert (model.max_steps, model.max_epochs, model.learning_rate) == ("auto", 1, 3e-3)
    with pytest.raises(ParameterError, match="max_steps"):
        model.fine_tune(frame, max_steps=0)
    with pytest.raises(ParameterError, match="learning_rate"):
        model.fine_tune(frame, learning_rate=-1.0)


def test_unknown_parts_are_refused_with_those_there_are() -> None:
    model = fitted("MLP")
    with pytest.raises(ParameterError, match=r"must contain names of modules, got encode. Available: body\."):
        model.fine_tune(panel(2, 60), freeze=["encode"])
    with pytest.raises(ParameterError, match="must leave at least one module trainable"):
        model.fine_tune(panel(2, 60), freeze=["body"])
    with pytest.raises(ParameterTypeError, match="must be a list of module names"):
        model.fine_tune(panel(2, 60), freeze="body")


def test_a_model_without_parts_takes_no_freeze() -> None:
    with pytest.raises(ParameterTypeError, match="has no parameter freeze"):
        Naive(horizon=2).fit(panel(2, 60)).fine_tune(panel(2, 60), freeze=["body"])


@pytest.mark.parametrize("model", [MLP(horizon=5), LSTM(horizon=5), GRU(horizon=5, output="autoregressive")])
@pytest.mark.parametrize("device", ["cpu", "cuda", "mps"])
def test_a_step_on_any_device(model: MLP, device: str) -> None:
    model.device_step(device)


def test_a_tensor_left_behind_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from deepforecast.nn.mlp import MLPBody

    features = MLPBody.features
    monkeypatch.setattr(MLPBody, "features", lambda self, inputs: features(self, inputs) + torch.ones(1, device="cpu"))
    with pytest.raises(RuntimeError, match="device"):
        MLP(horizon=5).device_step("cuda")


def test_going_on_at_a_rate_that_is_found_takes_a_tenth_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from deepforecast.training import trainer as loop

    monkeypatch.setattr(loop, "find_learning_rate", lambda *_: 0.02)
    frame = generate(2, 60, seed=1)
    model = MLP(
        horizon=4, input_size=8, hidden_sizes=[8], max_steps=5, lr_schedule="constant", warmup=0.0, learning_rate="find"
    )
    assert model.fit(frame).training_report_.learning_rate.tolist() == [0.02] * 5
    assert model.fine_tune(frame).training_report_.learning_rate.iloc[-1] == pytest.approx(0.002)
