"""The LightningModule: its steps, its options, and a Trainer of the user's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from deepforecast import LSTM, MLP, DLinear
from deepforecast.datasets import generate
from deepforecast.errors import TrainingWarning
from deepforecast.nn.batch import Batch
from deepforecast.training import module, sampler, trainer
from deepforecast.training.options import TrainingOptions, schedule_factor
from tests.training.runs import DROPOUT, FRAME, lstm, nearly, same, weights

SMALL: dict[str, Any] = {"horizon": 4, "input_size": 12, "batch_size": 8}


# -- steps ------------------------------------------------------------------------------------------------------------------


def test_batches_whose_gradients_make_one_step_are_one_batch_as_large_as_all() -> None:
    parts = DLinear(**{**SMALL, "batch_size": 4}, trainer={"accumulate_grad_batches": 4}, max_steps=20).fit(FRAME)
    whole = DLinear(**{**SMALL, "batch_size": 16}, max_steps=20).fit(FRAME)
    assert nearly(parts, whole) < 1e-5
    np.testing.assert_allclose(parts.training_report_.loss, whole.training_report_.loss, rtol=1e-5)
    np.testing.assert_allclose(parts.training_report_.gradient_norm, whole.training_report_.gradient_norm, rtol=1e-4)


def test_a_step_is_adamw_by_hand() -> None:
    """One step of plain torch on the same batch, with clipped gradients and decay of matrices alone."""
    options = {"learning_rate": 0.01, "weight_decay": 0.1, "trainer": {"gradient_clip_val": 0.05}}
    model = DLinear(**SMALL, head="point", max_steps=1, **options).fit(FRAME)
    fresh = DLinear(**SMALL, head="point", max_steps=1, learning_rate=1e-30).fit(FRAME)
    assert all(one.grad is None for one in model.network_.parameters()), "gradients are not kept"
    batch, network = next(iter(model.datamodule(FRAME).train)), fresh.network_
    optimizer = torch.optim.AdamW(
        [{"params": [one], "weight_decay": 0.1 if one.ndim > 1 else 0.0} for one in network.parameters()], lr=0.01
    )
    loss = network.loss(batch)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(network.parameters(), 0.05)
    optimizer.step()
    assert nearly(model, fresh) < 1e-7
    assert norm > 0.05
    assert model.training_report_[["loss", "gradient_norm"]].iloc[0].tolist() == pytest.approx([loss.item(), norm.item()])


def test_gradients_are_clipped_by_norm_or_by_value_and_their_norm_before_is_returned() -> None:
    network = DLinear(**SMALL, max_steps=1).fit(FRAME).network_
    plain = TrainingOptions(10, 8, 0.1)
    for limit, algorithm in [(None, "norm"), (0.5, "norm"), (1e-3, "norm"), (1e-3, "value")]:
        for one in network.parameters():
            one.grad = torch.full_like(one, 2.0)
        before = torch.sqrt(sum((one.grad**2).sum() for one in network.parameters() if one.grad is not None))  # type: ignore[arg-type]
        norm = module.clip_gradients(
            list(network.parameters()), replace(plain, gradient_clip_val=limit, gradient_clip_algorithm=algorithm)
        )
        assert float(norm) == pytest.approx(float(before))
        found = torch.cat([one.grad.flatten() for one in network.parameters() if one.grad is not None])
        if limit is None:
            assert (found == 2.0).all()
        elif algorithm == "norm":
            assert float(found.norm()) == pytest.approx(limit, rel=1e-3)
        else:
            assert found.max() == pytest.approx(limit)


@pytest.mark.parametrize("schedule", ["one_cycle", "cosine", "constant"])
def test_rates_rise_then_fall_as_the_schedule_says(schedule: str) -> None:
    options = {"max_steps": 40, "learning_rate": 0.1, "intervals": "uncalibrated"}
    report = DLinear(**SMALL, **options, lr_schedule=schedule).fit(FRAME).training_report_
    assert report.learning_rate.iloc[:4].tolist() == pytest.approx([0.025, 0.05, 0.075, 0.1])
    after = report.learning_rate.iloc[4:]
    if schedule == "constant":
        assert (after == 0.1).all()
    else:
        assert (after.diff().dropna() < 0).all()
        assert 0 < after.iloc[-1] < 0.002
        assert after.iloc[17] == pytest.approx(0.05, abs=0.003)


@pytest.mark.parametrize("warmup", [0.0, 0.5])
def test_no_step_has_a_rate_of_zero(warmup: float) -> None:
    for schedule in ("one_cycle", "cosine", "constant"):
        for steps in (1, 2, 7):
            options = TrainingOptions(steps, 1, 1.0, lr_schedule=schedule, warmup=warmup)
            assert all(0 < schedule_factor(options, step) <= 1 for step in range(steps))


# -- a rate that is found ---------------------------------------------------------------------------------------------------


def test_the_rate_is_found_on_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given: dict[str, Any] = {**SMALL, "batch_size": 32, "hidden_sizes": [16], "max_steps": 60}
    found, again = (MLP(**given, learning_rate="find").fit(FRAME) for _ in range(2))
    largest = float(found.training_report_.learning_rate.max())
    assert 1e-4 < largest < 0.2
    assert same(found, again)
    assert same(found, MLP(**given, learning_rate=largest).fit(FRAME)), "but for its rate the run is the same"
    assert found.training_report_.loss.iloc[-10:].mean() < MLP(**given, learning_rate=1e-5).fit(
        FRAME
    ).training_report_.loss.iloc[-10:].mean()
    assert list(tmp_path.iterdir()) == []
    assert found.get_params()["learning_rate"] == "find"


# -- precision, compilation -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [DLinear, LSTM])
def test_mixed_precision_learns_as_well(kind: Any) -> None:
    given = {**SMALL, "max_steps": 30, "learning_rate": 0.003, "validation_size": 10}
    mixed, plain = kind(**given, trainer={"precision": "bf16-mixed"}).fit(FRAME), kind(**given).fit(FRAME)
    assert not same(mixed, plain), "arithmetic is another"
    assert all(value.dtype == np.float32 for value in weights(mixed).values())
    np.testing.assert_allclose(mixed.training_report_.loss, plain.training_report_.loss, rtol=0.05)
    validated = [one.training_report_.validation_loss.dropna() for one in (mixed, plain)]
    np.testing.assert_allclose(*validated, rtol=0.05)


def test_a_precision_the_device_lacks_is_said_and_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.warns(TrainingWarning, match="cpu cannot train with precision='16-mixed'; 'bf16-mixed' is used"):
        half = lstm(max_steps=3, trainer={"precision": "16-mixed"}).fit(FRAME)
    assert same(half, lstm(max_steps=3, trainer={"precision": "bf16-mixed"}).fit(FRAME))
    monkeypatch.setattr(trainer, "_has_bf16", lambda device: False)
    with pytest.warns(TrainingWarning, match="precision='bf16-mixed'; '32-true' is used"):
        assert same(lstm(max_steps=3, trainer={"precision": "bf16-mixed"}).fit(FRAME), lstm(max_steps=3).fit(FRAME))


def test_where_torch_cannot_compile_the_network_is_trained_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def compiler(_: Any) -> Any:
        def broken(*_: Any) -> Any:
            raise RuntimeError("no compiler here\nand much more")

        return broken

    monkeypatch.setattr(torch, "compile", compiler)
    with pytest.warns(TrainingWarning, match="uncompiled: no compiler here. Set compile=False") as said:
        model = lstm(max_steps=5, compile=True).fit(FRAME)
    assert len(said) == 1
    assert same(model, lstm(max_steps=5).fit(FRAME))


@pytest.mark.slow
def test_a_compiled_network_learns_the_same() -> None:
    compiled, plain = (DLinear(**SMALL, max_steps=5, compile=one).fit(FRAME) for one in (True, False))
    assert nearly(compiled, plain) < 1e-5


# -- where windows live -----------------------------------------------------------------------------------------------------


def test_a_panel_lives_on_the_device_where_there_is_room_and_else_its_batches_go_there(monkeypatch: pytest.MonkeyPatch) -> None:
    train = LSTM(**DROPOUT, max_steps=1).fit(FRAME).datamodule(FRAME).train
    assert sampler.free_memory(torch.device("cpu")) == float("inf")
    assert sampler.free_memory(torch.device("meta")) == 0.0, "what does not tell gets batches"
    device, size = torch.device("meta"), train.windows.nbytes
    monkeypatch.setattr(sampler, "free_memory", lambda _: size / sampler.MEMORY_FRACTION)
    assert sampler.place_on_device(train.windows, device).y.device == device
    monkeypatch.setattr(sampler, "free_memory", lambda _: size / sampler.MEMORY_FRACTION - 1)
    assert sampler.place_on_device(train.windows, device) is train.windows
    batch = next(iter(train))
    there = sampler.to_device(batch, device)
    assert {getattr(there, name).device for name in ("y", "past", "future", "static", "loc", "target")} == {device}
    assert sampler.to_device(batch, torch.device("cpu")) is batch


def test_a_fit_hands_on_what_does_not_fit_batch_by_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bits, wherever the windows live."""
    asked: list[Any] = []
    monkeypatch.setattr(trainer, "place_on_device", lambda windows, device: asked.append(device) or windows)
    moves: list[Batch] = []
    monkeypatch.setattr(module, "to_device", lambda batch, device: moves.append(batch) or batch)
    model = lstm(max_steps=4).fit(FRAME)
    assert (asked, len(moves)) == ([torch.device("cpu")], 4)
    assert same(model, lstm(max_steps=4, trainer={"log_every_n_steps": 1}).fit(FRAME))
    assert len(moves) == 8


# -- a Trainer of one's own -------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_a_trainer_of_ones_own_trains_the_models_network(tmp_path: Path) -> None:
    import pytorch_lightning as pl

    given = {**SMALL, "head": "point", "max_steps": 30, "learning_rate": 0.02, "validation_size": 10, "lr_schedule": "constant"}
    model = DLinear(**given)
    module, data = model.lightning_module(FRAME), model.datamodule(FRAME)
    before = weights(model)
    assert model.stop_reason_ == "trained by a user's own Trainer"
    trainer = pl.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                         enable_model_summary=False, num_sanity_val_steps=0, default_root_dir=tmp_path)  # fmt: skip
    trainer.fit(module, datamodule=data)
    assert trainer.global_step == 30
    assert np.isfinite(float(trainer.callback_metrics["validation"]))
    after = weights(model)
    assert any(np.abs(after[name] - before[name]).max() > 1e-3 for name in before)
    assert not model.network_.training
    own = DLinear(**given, validate_every=100).fit(FRAME)
    assert same(model, own), "the same batches, rates and clipping"
    assert model.predict().DLinear.tolist() == own.predict().DLinear.tolist()


@pytest.mark.filterwarnings("ignore")  # Lightning calls deprecated functions of torch
@pytest.mark.parametrize("head", ["point", "quantiles", "normal"])
def test_a_trainer_of_ones_own_forecasts_the_last_horizon(head: str, tmp_path: Path) -> None:
    """As `predict` does from the frame without its last horizon."""
    import pytorch_lightning as pl

    model = MLP(**SMALL, hidden_sizes=[8], head=head, max_steps=5)
    module, data = model.lightning_module(FRAME), model.datamodule(FRAME)
    trainer = pl.Trainer(max_steps=5, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                         enable_model_summary=False, default_root_dir=tmp_path)  # fmt: skip
    trainer.fit(module, datamodule=data)
    points = torch.cat(trainer.predict(module, datamodule=data)).numpy()
    before = FRAME[FRAME.groupby("unique_id").cumcount(ascending=False) >= 4]
    np.testing.assert_allclose(points.ravel(), model.predict(frame=before).MLP, rtol=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_a_checkpoint_of_ones_own_trainer_is_loaded(tmp_path: Path) -> None:
    import pytorch_lightning as pl

    model = MLP(**SMALL, hidden_sizes=[8], max_steps=5)
    module, data = model.lightning_module(FRAME), model.datamodule(FRAME)
    saved = pl.callbacks.ModelCheckpoint(dirpath=tmp_path, every_n_train_steps=5)
    trainer = pl.Trainer(max_steps=5, accelerator="cpu", logger=False, enable_progress_bar=False, callbacks=[saved],
                         enable_model_summary=False, default_root_dir=tmp_path)  # fmt: skip
    trainer.fit(module, datamodule=data)
    trained = model.predict()
    with torch.no_grad():
        for weight in module.network.parameters():
            weight.zero_()
    assert not model.predict().equals(trained)
    loaded = type(module).load_from_checkpoint(saved.best_model_path, network=module.network, options=module.options)
    assert loaded.hparams["model"] == "MLP"
    assert model.predict().equals(trained)


@pytest.mark.filterwarnings("ignore")
def test_dropout_is_off_after_a_trainer_of_ones_own_whatever_happened(tmp_path: Path) -> None:
    import pytorch_lightning as pl

    class Broken(pl.Callback):
        def on_train_batch_end(self, *_: Any) -> None:
            raise RuntimeError("broken")

    model = lstm(max_steps=5)
    module, data = model.lightning_module(FRAME), model.datamodule(FRAME)
    trainer = pl.Trainer(max_steps=5, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                         enable_model_summary=False, default_root_dir=tmp_path, callbacks=[Broken()])  # fmt: skip
    with pytest.raises(RuntimeError, match="broken"):
        trainer.fit(module, datamodule=data)
    assert not model.network_.training
    assert model.predict().equals(model.predict())


def test_epochs_of_ones_own_trainer_are_passes_over_the_windows() -> None:
    model = DLinear(**SMALL, max_epochs=3)
    module, data = model.lightning_module(generate(2, 60)), model.datamodule(generate(2, 60))
    windows = 2 * (60 - 12 - 4 + 1)
    assert module.options.max_steps == len(data.train) == 3 * -(-windows // 8)


@pytest.mark.parametrize(
    ("model", "several"),
    [(LSTM(horizon=24, input_size=96), True), (LSTM(horizon=24, input_size=96, hidden_size=32), False),
     (DLinear(horizon=24, input_size=96), False), (MLP(horizon=24, input_size=96, hidden_sizes=[64]), False)],
    ids=["LSTM 64", "LSTM 32", "DLinear", "MLP 64"],
)  # fmt: skip
def test_threads_follow_from_sizes(model: Any, several: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads are worth their cost from a recurrent layer of 64 on, 256 windows of 96 at a time."""
    monkeypatch.setattr(trainer, "torch_threads", lambda: 2)
    module = model.clone(max_steps=1, batch_size=256).lightning_module(generate(1, 300))
    assert trainer.threads_for(module.network, module.options) == (2 if several else 1)
