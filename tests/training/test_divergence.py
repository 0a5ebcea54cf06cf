"""A network that diverges is an error, and one that recovered says how many steps it lost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import MLP, Naive, NeuralProphet, compare, tune
from deepforecast.core.monitor import Monitor
from deepforecast.errors import NotFittedError, TrainingError, TrainingWarning
from deepforecast.training.callbacks import CHECK_EVERY, RECOVERY_STEPS
from tests.training.runs import FRAME, break_losses, cut, lstm, same, stopping, watched

SMALL: dict[str, Any] = {"horizon": 4, "input_size": 12, "batch_size": 8}
ALWAYS = range(13, 10**6)
STEP_BY_STEP: dict[str, Any] = {
    "trainer": {"log_every_n_steps": 1}
}  # the path of callbacks and loggers

MODELS = [
    pytest.param(lambda **given: lstm(**given), id="LSTM"),
    pytest.param(lambda **given: lstm(**given, **STEP_BY_STEP), id="LSTM step by step"),
    pytest.param(lambda **given: lstm(**given, trainer={"precision": "bf16-mixed"}), id="LSTM bf16"),
    pytest.param(lambda **given: NeuralProphet(**SMALL, **given), id="NeuralProphet"),
]


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("max_steps", [60, 600])
def test_a_loss_that_does_not_recover_within_50_steps_is_an_error(
    make: Any, max_steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = break_losses(monkeypatch, ALWAYS)
    model = make(max_steps=max_steps)
    with pytest.raises(
        TrainingError, match=rf"from step 13 to step 60 of {max_steps}; .*smaller `learning_rate`"
    ):
        model.fit(FRAME)
    assert steps() == CHECK_EVERY + RECOVERY_STEPS
    with pytest.raises(NotFittedError):
        model.predict()


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize(
    ("broken", "max_steps", "steps"),
    [
        (18, 18, "at step 18 of 18"),
        (3, 5, "from step 3 to step 5 of 5"),
        (20, 20, "at step 20 of 20"),
    ],
)
def test_a_loss_that_is_not_finite_at_the_last_step_is_an_error(
    make: Any, broken: int, max_steps: int, steps: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_losses(monkeypatch, range(broken, max_steps + 1))
    with pytest.raises(TrainingError, match=rf"got NaN or infinity {steps}\. Set a smaller"):
        make(max_steps=max_steps).fit(FRAME)


def test_any_number_of_losses_that_recover_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    break_losses(monkeypatch, {55, 155, 255, 355, 455, 515})
    with pytest.warns(TrainingWarning, match=r"^60 of 600 training steps were undone"):
        model = MLP(**SMALL, hidden_sizes=[8], max_steps=600).fit(FRAME)
    assert np.isfinite(model.predict().MLP).all()


@pytest.mark.parametrize("make", MODELS)
def test_steps_lost_to_losses_that_recover_are_warned_of_once(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_losses(monkeypatch, {26, 47})
    with pytest.warns(TrainingWarning, match=r"^20 of 60 training steps.* with 0.25 times") as warned:
        model = make(max_steps=60, lr_schedule="constant", warmup=0.0).fit(FRAME)
    assert len(warned) == 1
    report = model.training_report_
    np.testing.assert_allclose(report.learning_rate / report.learning_rate[0], [1.0] * 30 + [0.5] * 20 + [0.25] * 10)
    assert report.loss[report.loss.isna()].index.tolist() == [*range(25, 30), *range(46, 50)]
    assert np.isfinite(model.predict().iloc[:, -1]).all()


def test_a_first_loss_that_is_not_finite_is_an_error_that_names_the_scaler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    break_losses(monkeypatch, range(1, 100))
    with pytest.raises(
        TrainingError, match=r"before the first step, got nan\. Set another `scaler`"
    ):
        lstm(max_steps=60).fit(FRAME)


def test_a_network_whose_every_step_was_undone_is_an_error() -> None:
    """The loss is finite, but so large from the first steps on that no trained weights are left."""
    given: dict[str, Any] = {
        "lr_schedule": "constant",
        "warmup": 0.0,
        "trainer": {"gradient_clip_val": None},
        "head": "point",
        "loss": "mse",
    }
    with pytest.raises(
        TrainingError, match=r"must not grow to 10 times .*, got .* at step 10 of 10\. Set"
    ):
        lstm(**given, learning_rate=50.0, max_steps=10).fit(FRAME)


def test_a_run_that_ends_early_on_such_a_loss_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    break_losses(monkeypatch, ALWAYS)
    with pytest.raises(TrainingError, match="from step 13 to step 15 of 60"):
        watched(lstm(max_steps=60), Monitor(stop_when=stopping(15)))


def test_ctrl_c_keeps_the_last_good_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    from deepforecast.training.callbacks import TrainingMonitor

    break_losses(monkeypatch, ALWAYS)
    stepped = TrainingMonitor.finish_step

    def interrupt(self: TrainingMonitor) -> bool:
        self.interrupted = self.step == 15
        return stepped(self)

    monkeypatch.setattr(TrainingMonitor, "finish_step", interrupt)
    with pytest.warns(TrainingWarning) as warned:
        model = lstm(max_steps=60, lr_schedule="constant", warmup=0.0).fit(FRAME)
    assert [str(one.message).partition(" ")[0] for one in warned] == ["Training", "6"]
    monkeypatch.undo()
    assert same(model, lstm(max_steps=10, lr_schedule="constant", warmup=0.0).fit(FRAME))


def test_fine_tuning_that_diverges_leaves_the_model_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = lstm(max_steps=5).fit(FRAME)
    before = model.predict()
    break_losses(monkeypatch, range(4, 9))
    with pytest.raises(TrainingError, match="from step 4 to step 8 of 8"):
        model.fine_tune(FRAME, max_steps=8)
    assert model.predict().equals(before)


def test_a_resumed_run_counts_the_steps_lost_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = lstm(max_steps=60, checkpoint_dir=str(tmp_path), checkpoint_every=10)
    with monkeypatch.context() as patch:
        break_losses(patch, range(13, 31))
        cut(model, 35)
    with pytest.warns(TrainingWarning, match="^20 of 60 training steps"):
        model.fit(FRAME)


def test_a_resumed_run_ends_where_the_whole_run_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = lstm(max_steps=600, checkpoint_dir=str(tmp_path), checkpoint_every=10)
    with monkeypatch.context() as patch:
        break_losses(patch, ALWAYS)
        cut(model, 35)
    break_losses(monkeypatch, range(10**6))
    with pytest.raises(TrainingError, match="from step 13 to step 60 of 600"):
        model.fit(FRAME)


def test_a_diverged_network_is_a_failed_row_and_a_failed_trial(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        break_losses(patch, ALWAYS)
        board = compare([Naive(), lstm(max_steps=60)], FRAME, horizon=4, n_windows=2)
    assert "LSTM failed: TrainingError: The loss and its gradients must be finite" in " ".join(
        str(board).split()
    )
    break_losses(monkeypatch, range(15, 21))  # the second trial of one window of 10 steps
    with pytest.warns(TrainingWarning, match="1 of 3 trials failed. The first reason: TrainingError"):
        found = tune(MLP(**{**SMALL, "max_steps": 10}, hidden_sizes=[8]), FRAME, n_trials=3)
    trials = pd.DataFrame(found.trials)
    assert trials.state.value_counts().to_dict() == {"complete": 2, "failed": 1}


def own_trainer(model: Any, steps: int) -> Any:
    import pytorch_lightning as pl

    module, data = model.lightning_module(FRAME), model.datamodule(FRAME)
    trainer = pl.Trainer(max_steps=steps, max_epochs=-1, accelerator="cpu", logger=False, enable_checkpointing=False,
                         enable_progress_bar=False, enable_model_summary=False)  # fmt: skip
    trainer.fit(module, datamodule=data)
    return model


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("broken", "steps", "ended"), [(range(13, 1000), 600, 60), (range(18, 19), 18, 18)]
)
def test_a_users_own_trainer_ends_with_an_error(
    broken: range, steps: int, ended: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_losses(monkeypatch, broken)
    model = lstm(max_steps=steps)
    with pytest.raises(
        TrainingError, match=rf"got NaN or infinity at step {ended}; .* at step 10\. Set"
    ):
        own_trainer(model, steps)
    for use in (model.predict, lambda: model.save(tmp_path / "model.dfc")):
        with pytest.raises(NotFittedError, match=rf"^LSTM has not been fitted: its training diverged.* at step {ended};"):
            use()
    assert not os.listdir(tmp_path)
    monkeypatch.undo()
    assert np.isfinite(own_trainer(model, 10).predict().LSTM).all()


@pytest.mark.filterwarnings("ignore")
def test_a_users_own_trainer_that_recovers_is_warned_of_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Gradients of such a loss are NaN: here a hook of the user's sets them to 0."""
    from deepforecast.training.module import ForecastModule

    def without_nan(self: Any, optimizer: Any) -> None:
        for weight in self.parameters():
            weight.grad.nan_to_num_()

    monkeypatch.setattr(ForecastModule, "on_before_optimizer_step", without_nan)
    break_losses(monkeypatch, {13, 14})
    with pytest.warns(
        TrainingWarning, match="^The loss was NaN or infinite in 2 training batches; at the last step, 30, it is finite"
    ) as warned:
        model = own_trainer(lstm(max_steps=30), 30)
    assert len([one for one in warned if one.category is TrainingWarning]) == 1
    assert np.isfinite(model.predict().LSTM).all()
