"""The caller's torch defaults (dtype, device, autocast) do not reach networks, and stay."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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
from deepforecast.errors import CapabilityError, TrainingError
from deepforecast.training.process import torch_defaults
from tests.training.runs import FRAME, break_losses, lstm

QUICK, SLOW = [MLP, LSTM, DLinear, NeuralProphet], [GRU, RNN, NLinear, NBEATS, NHITS, TiDE, TCN, Seq2Seq, Transformer, DeepAR, xLSTM]
KINDS = [*QUICK, *(pytest.param(kind, marks=pytest.mark.slow) for kind in SLOW)]
SMALL: dict[str, Any] = {"horizon": 4, "input_size": 12, "batch_size": 8, "max_steps": 3}
LAST = FRAME.ds.max()


def settings() -> tuple[Any, ...]:
    """The caller's defaults."""
    devices = ("cpu", "cuda")
    return (torch.get_default_dtype(), torch.get_default_device(), *(torch.is_autocast_enabled(one) for one in devices),
            torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_num_threads())  # fmt: skip


@contextmanager
def unusual(dtype: torch.dtype = torch.float64) -> Iterator[None]:
    """Another dtype, another device and autocast at once; checked to be there at the end."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device("meta"), torch.autocast("cpu", torch.bfloat16):
            expected = settings()
            try:
                yield
            finally:
                assert settings() == expected
    finally:
        torch.set_default_dtype(before)


def every_call(kind: Any, path: Path, **given: Any) -> list[np.ndarray]:
    """What each public call gives that enters torch."""
    model = kind(**SMALL, **given)
    frames = [model.fit(FRAME).predict(level=80), model.predict(6)]
    weights = [value.numpy().copy() for value in model.network_.state_dict().values()]
    frames.append(model.predict(frame=FRAME.groupby("unique_id").head(60), quantiles=[0.33]))
    frames += [model.simulate(2, seed=3)] if model.capabilities.simulates else []
    frames += [model.explain()] if model.capabilities.explains else []
    model.save(path)
    frames.append(load(path).predict())
    try:
        points = [model.predictor([0.3])(FRAME.y.to_numpy()[:40], last_time=LAST)]
    except CapabilityError:
        points = []
    new = FRAME.groupby("unique_id").tail(1)
    frames.append(model.update(new.assign(ds=new.ds + (LAST - FRAME.ds.iloc[-2]))).predict())
    frames.append(model.fine_tune(FRAME, max_steps=2).predict())
    model.device_step("cuda")
    model.device_step("mps")
    columns = [frame[name].to_numpy() for frame in frames for name in frame.columns]
    return [*weights, *columns, *(part for forecasts in points for part in forecasts)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_call_gives_the_same_bits_under_the_callers_defaults(
    kind: Any, tmp_path: Path
) -> None:
    plain = every_call(kind, tmp_path / "plain.dfc")
    with unusual():
        found = every_call(kind, tmp_path / "unusual.dfc")
    assert len(found) == len(plain)
    for one, other in zip(found, plain, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (LSTM, {"head": "bins", "output": "autoregressive", "decoding": "greedy"}),
        (MLP, {"head": "student_t", "scaler_scope": "series", "scaler": "robust", "hidden_sizes": [8]}),
        (
            MLP,
            {
                "head": "laplace",
                "ema_decay": 0.9,
                "validation_size": 10,
                "learning_rate": "find",
                "hidden_sizes": [8],
            },
        ),
        (DLinear, {"scaler": "level", "trainer": {"log_every_n_steps": 1}}),
        (DLinear, {"trainer": {"precision": "bf16-mixed"}}),
    ],
    ids=str,
)
def test_options_of_networks_under_the_callers_defaults(
    kind: Any, given: dict[str, Any], tmp_path: Path
) -> None:
    plain = every_call(kind, tmp_path / "plain.dfc", **given)
    with unusual(torch.bfloat16):
        found = every_call(kind, tmp_path / "unusual.dfc", **given)
    for one, other in zip(found, plain, strict=True):
        np.testing.assert_array_equal(one, other)


def test_beam_search_under_the_callers_defaults() -> None:
    model = lstm(head="bins", max_steps=2).fit(FRAME)
    plain = model.beam_search(3)
    with unusual():
        assert model.beam_search(3).equals(plain)


@pytest.mark.slow
def test_an_onnx_file_under_the_callers_defaults(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    model = DLinear(**SMALL).fit(FRAME)
    model.export_onnx(tmp_path / "plain.onnx")
    with unusual():
        model.export_onnx(tmp_path / "unusual.onnx")
    assert (tmp_path / "plain.onnx").read_bytes() == (tmp_path / "unusual.onnx").read_bytes()


@pytest.mark.filterwarnings("ignore")
def test_a_users_own_trainer_under_the_callers_defaults() -> None:
    import pytorch_lightning as pl

    def trained() -> Any:
        model = DLinear(**SMALL, validation_size=10)
        module, data = model.lightning_module(FRAME), model.datamodule(FRAME)
        trainer = pl.Trainer(max_steps=3, accelerator="cpu", logger=False, enable_checkpointing=False,
                             enable_progress_bar=False, enable_model_summary=False)  # fmt: skip
        trainer.fit(module, datamodule=data)
        return model.predict(level=80)

    plain, before = trained(), torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with torch.device("meta"):
            assert trained().equals(plain)
    finally:
        torch.set_default_dtype(before)


def test_the_callers_defaults_return_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    break_losses(monkeypatch, range(1, 100))
    with unusual(), pytest.raises(TrainingError):
        lstm(max_steps=3).fit(FRAME)
    with unusual(), pytest.raises(KeyError), torch_defaults():
        raise KeyError


def in_turns(*acts: Callable[[], None]) -> None:
    """Each act in a thread of its own, started when the one before has ended its first half."""
    threads = [threading.Thread(target=act) for act in acts]
    for one in threads:
        one.start()
    for one in threads:
        one.join(20)
        assert not one.is_alive()


def test_a_block_that_ends_in_one_thread_leaves_float32_to_the_others() -> None:
    """The dtype is of the process: the last to leave restores it."""
    both_in, first_out, seen = threading.Barrier(2), threading.Event(), list[torch.dtype]()

    def first() -> None:
        with torch_defaults():
            both_in.wait(20)
        first_out.set()

    def second() -> None:
        with torch_defaults():
            both_in.wait(20)
            first_out.wait(20)
            seen.append(torch.zeros(1).dtype)

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        in_turns(first, second)
        assert torch.get_default_dtype() is torch.float64
    finally:
        torch.set_default_dtype(before)
    assert seen == [torch.float32]


def test_fits_and_forecasts_in_threads_under_another_dtype() -> None:
    wanted = [lstm(seed=seed, max_steps=6).fit(FRAME).predict() for seed in range(3)]
    found: list[Any] = [None] * 3

    def act(seed: int) -> None:
        with torch.device("meta"):
            found[seed] = lstm(seed=seed, max_steps=6).fit(FRAME).predict()

    with unusual():
        in_turns(*(lambda seed=seed: act(seed) for seed in range(3)))
    assert all(one.equals(other) for one, other in zip(found, wanted, strict=True))
