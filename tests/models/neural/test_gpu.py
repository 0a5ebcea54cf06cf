"""Networks on a real GPU (CUDA or MPS): skipped where there is none. `make test-all` runs them where there is one.

They have never run so far, as the project has no GPU; test_devices.py runs the same on a simulated device.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch

from deepforecast import (
    GRU,
    LSTM,
    MLP,
    NBEATS,
    NHITS,
    RNN,
    TCN,
    DeepAR,
    DLinear,
    NeuralProphet,
    NLinear,
    Seq2Seq,
    TiDE,
    Transformer,
    load,
    xLSTM,
)
from deepforecast.datasets import generate
from deepforecast.models.neural._base import HeadName
from tests.training.runs import cut

CUDA, MPS = torch.cuda.is_available(), torch.backends.mps.is_available()
NETWORKS = [MLP, LSTM, GRU, RNN, DLinear, NLinear, NBEATS, NHITS, TiDE, TCN, Seq2Seq, Transformer, DeepAR, xLSTM, NeuralProphet]
SMALL: dict[str, Any] = {"horizon": 6, "input_size": 18, "batch_size": 16, "max_steps": 30, "trainer": {"accelerator": "gpu"}}
FRAME = generate(4, 120, seed=2)
FRAME["y"] = FRAME.y.abs().round() + 1  # for heads of counts

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.slow,
    pytest.mark.skipif(not (CUDA or MPS), reason="no GPU: neither torch.cuda nor torch.backends.mps is available"),
]


def check_forecasts(model: Any, path: Path) -> None:
    """The network is on the GPU and forecasts there as a loaded copy does on the CPU."""
    assert device_of(model).type == ("cuda" if CUDA else "mps")
    model.save(path)
    on_cpu = load(path)
    assert device_of(on_cpu).type == "cpu"
    level = 80 if model.capabilities.distribution else None
    pairs = [(model.predict(15, level=level), on_cpu.predict(15, level=level))]
    if model.capabilities.simulates:
        pairs.append((model.simulate(5), on_cpu.simulate(5)))
    if model.capabilities.explains:
        pairs.append((model.explain(), on_cpu.explain()))
    for on_gpu, expected in pairs:
        numbers, others = (frame.select_dtypes("number").to_numpy(float) for frame in (on_gpu, expected))
        np.testing.assert_allclose(numbers, others, rtol=1e-4, atol=1e-4 * np.abs(others).max())


@pytest.mark.parametrize("cls", NETWORKS, ids=lambda cls: cls.__name__)
def test_every_network_forecasts_as_on_the_cpu(cls: Any, tmp_path: Path) -> None:
    check_forecasts(cls(**SMALL).fit(FRAME), tmp_path / "model.dfc")


@pytest.mark.parametrize("cls", [MLP, Seq2Seq], ids=["direct", "autoregressive"])
@pytest.mark.parametrize("head", get_args(HeadName))
def test_every_head_forecasts_as_on_the_cpu(cls: Any, head: Any, tmp_path: Path) -> None:
    check_forecasts(cls(**SMALL, head=head).fit(FRAME), tmp_path / "model.dfc")


@pytest.mark.parametrize("precision", ["bf16-mixed", "16-mixed"])
@pytest.mark.parametrize("cls", [MLP, LSTM, Transformer], ids=lambda cls: cls.__name__)
def test_mixed_precision_trains_to_a_finite_loss(cls: Any, precision: Any, tmp_path: Path) -> None:
    if not CUDA:
        pytest.skip("mixed precision needs CUDA; this GPU is MPS")
    model = cls(**{**SMALL, "trainer": {"accelerator": "gpu", "precision": precision}}).fit(FRAME)
    assert np.isfinite(model.training_report_.loss).all()
    check_forecasts(model, tmp_path / "model.dfc")


@pytest.mark.parametrize("cls", [MLP, LSTM], ids=lambda cls: cls.__name__)
def test_an_interrupted_run_is_resumed(cls: Any, tmp_path: Path) -> None:
    whole = cls(**SMALL).fit(FRAME)
    options = {**SMALL, "checkpoint_dir": str(tmp_path), "checkpoint_every": 10}
    cut(cls(**options), 20, FRAME)
    resumed = cls(**options).fit(FRAME)
    np.testing.assert_allclose(resumed.training_report_.loss, whole.training_report_.loss, rtol=1e-4)
    np.testing.assert_allclose(resumed.predict()[resumed.name], whole.predict()[whole.name], rtol=1e-3)


def test_a_network_moved_by_hand_forecasts_on_the_gpu(tmp_path: Path) -> None:
    model = MLP(**{**SMALL, "trainer": {"accelerator": "cpu"}}).fit(FRAME)
    model.network_.to("cuda" if CUDA else "mps")
    check_forecasts(model, tmp_path / "model.dfc")


@pytest.mark.parametrize("cls", NETWORKS, ids=lambda cls: cls.__name__)
def test_a_device_step_on_the_real_device(cls: Any) -> None:
    cls(horizon=5, input_size=14).device_step("cuda" if CUDA else "mps")


def test_the_generators_of_the_gpu_are_restored() -> None:
    state = torch.cuda.get_rng_state if CUDA else torch.mps.get_rng_state
    before = state()
    MLP(**SMALL, dropout=0.1).fit(FRAME).predict()
    assert torch.equal(before, state())


def device_of(model: Any) -> torch.device:
    return next(model.network_.parameters()).device
