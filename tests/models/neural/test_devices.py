"""Networks on other devices than the CPU: simulated ones here, real ones in test_gpu.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from pytorch_lightning.strategies import SingleDeviceStrategy, StrategyRegistry

from deepforecast import LSTM, MLP, DLinear, Seq2Seq, Transformer, load
from deepforecast.datasets import generate
from deepforecast.errors import ParameterError
from deepforecast.models.neural._base import HeadName, NeuralForecaster
from deepforecast.models.neural._device_check import DEVICE, DeviceMismatchError, SimulatedTensor, simulated_device
from deepforecast.nn.heads.quantiles import QuantileHead
from deepforecast.nn.mlp import MLPBody

FRAME = generate(3, 60, seed=1)
SMALL: dict[str, Any] = {"horizon": 4, "input_size": 12, "batch_size": 8, "max_steps": 12}


@pytest.mark.parametrize("device", ["cuda", "mps"])
@pytest.mark.parametrize("head", get_args(HeadName))
def test_every_head_of_a_direct_network_on_a_device(head: Any, device: str) -> None:
    MLP(horizon=3, input_size=6, hidden_sizes=[4], head=head).device_step(device)


@pytest.mark.slow
@pytest.mark.parametrize("device", ["cuda", "mps"])
@pytest.mark.parametrize("head", get_args(HeadName))
def test_every_head_of_an_autoregressive_network_on_a_device(head: Any, device: str) -> None:
    Seq2Seq(horizon=3, input_size=6, head=head).device_step(device)


@pytest.mark.parametrize(
    "model",
    [
        LSTM(horizon=3, input_size=6, output="autoregressive", head="bins", decoding="beam"),
        LSTM(horizon=3, input_size=6, output="autoregressive", decoding="greedy"),
        LSTM(horizon=3, input_size=6, head="bins", temperature=0.8, top_p=0.9, output="autoregressive"),
        Transformer(horizon=3, input_size=6, d_model=8, output="autoregressive"),
        MLP(horizon=3, input_size=6, scaler="level"),
        MLP(horizon=3, input_size=6, scaler="revin"),
        MLP(horizon=3, input_size=6, scaler="difference"),
        MLP(horizon=3, input_size=6, scaler_scope="series", dropout=0.1),
        *(MLP(horizon=3, input_size=6, head="point", loss=loss) for loss in ("mase", "smape", "owa")),
    ],
    ids=repr,
)
def test_decodings_scalers_and_losses_on_a_device_without_float64(model: NeuralForecaster) -> None:
    model.device_step("mps")


def test_a_device_step_notices_a_forecast_that_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    features = MLPBody.features

    def shifted(self: Any, inputs: Any) -> Any:
        return features(self, inputs) + float(inputs.y.device.type != "cpu")

    monkeypatch.setattr(MLPBody, "features", shifted)
    with pytest.raises(Exception, match="predict on device 'cuda' must equal that on the CPU"):
        MLP(horizon=3, input_size=6).device_step("cuda")


def test_a_device_step_notices_a_tensor_of_a_head_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """In quantiles only, which no training step reaches."""
    values = QuantileHead._monotone_values
    monkeypatch.setattr(QuantileHead, "_monotone_values", lambda self, raw: values(self, raw) + torch.zeros(15))
    with pytest.raises(DeviceMismatchError):
        MLP(horizon=3, input_size=6).device_step("cuda")


class SimulatedStrategy(SingleDeviceStrategy):
    """Lightning's strategy for one device, on the simulated one."""

    def setup_environment(self) -> None:
        """Set up no device: the accelerator is that of the CPU."""

    def model_to_device(self) -> None:
        """Keep the parameters, as a move to a real device does."""
        torch.__future__.set_swap_module_params_on_conversion(True)
        try:
            super().model_to_device()
        finally:
            torch.__future__.set_swap_module_params_on_conversion(False)


@pytest.fixture
def strategy(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Arguments of a Trainer on the simulated device, for which AdamW has no fused kernel."""
    adamw = torch.optim.AdamW
    monkeypatch.setattr(torch.optim, "AdamW", lambda *args, fused=None, **options: adamw(*args, **options))
    StrategyRegistry.register("simulated", SimulatedStrategy, device=DEVICE)
    yield {"strategy": "simulated"}
    StrategyRegistry.remove("simulated")


@pytest.mark.parametrize(
    ("cls", "options"),
    [(MLP, {}), (LSTM, {"validation_size": 8, "ema_decay": 0.9, "hidden_size": 8})],
    ids=["MLP", "LSTM"],
)
@pytest.mark.parametrize("float64", [True, False])
def test_a_network_stays_on_the_device_it_was_trained_on(
    cls: Any, options: dict[str, Any], float64: bool, strategy: dict[str, str], tmp_path: Path
) -> None:
    on_cpu = cls(**SMALL, **options).fit(FRAME).predict(level=80)
    with simulated_device(float64):
        model = cls(**SMALL, **options, trainer={"accelerator": "cpu", **strategy}).fit(FRAME)
        assert {type(parameter) for parameter in model.network_.parameters()} == {SimulatedTensor}
        forecast = model.predict(level=80)
        points = model.predictor([0.1])(FRAME.y.to_numpy()[:40], last_time=FRAME.ds.max()).points
        model.fine_tune(FRAME, max_steps=2)
        assert device_of(model) == DEVICE
        tuned = model.predict()
    np.testing.assert_allclose(numbers(forecast), numbers(on_cpu), rtol=1e-6, atol=1e-6)
    assert points.shape == (1, 4)
    model.save(tmp_path / "model.dfc")
    loaded = load(tmp_path / "model.dfc")
    assert device_of(loaded) == torch.device("cpu")
    np.testing.assert_allclose(numbers(loaded.predict()), numbers(tuned), rtol=1e-6)


def test_a_finished_run_is_restored_to_the_device(strategy: dict[str, str], tmp_path: Path) -> None:
    options: dict[str, Any] = {**SMALL, "checkpoint_dir": str(tmp_path), "trainer": {"accelerator": "cpu", **strategy}}
    with simulated_device():
        first = DLinear(**options).fit(FRAME).predict()
        again = DLinear(**options).fit(FRAME)
        assert device_of(again) == DEVICE
        assert again.predict().equals(first)


def test_a_network_can_be_moved_there_and_back() -> None:
    model = LSTM(**SMALL, hidden_size=8, head="student_t").fit(FRAME)
    expected = model.predict(9, level=80), model.simulate(3)
    with simulated_device() as device:
        model.network_.to(device)
        moved = model.predict(9, level=80), model.simulate(3)
        model.network_.to("cpu")
    for frame, other in zip(expected, moved, strict=True):
        np.testing.assert_allclose(numbers(other), numbers(frame), rtol=1e-6)
    assert model.predict(9, level=80).equals(expected[0])


def numbers(frame: Any) -> Any:
    return frame.select_dtypes("number").to_numpy(float)


def device_of(model: Any) -> torch.device:
    return next(model.network_.parameters()).device


@pytest.mark.parametrize("device", ["gpux", 3.5, None])
def test_a_device_that_torch_does_not_know_is_refused(device: Any) -> None:
    with pytest.raises(ParameterError, match=r"`device` must be a device of torch, got .*'cuda', 'mps' or 'cpu'"):
        MLP(horizon=3, input_size=6).device_step(device)
