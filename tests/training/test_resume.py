"""Interrupted training: a run cut short goes on from its checkpoint to the bits of one that was not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import MLP, DLinear
from deepforecast.datasets import generate
from deepforecast.errors import ModelFileError, TrainingError, TrainingWarning
from tests.clock import stopped
from tests.training.runs import FRAME, cut, lstm, same, weights

ROOT = Path(__file__).resolve().parents[2]
RUNS: dict[str, dict[str, Any]] = {
    "dropout and schedule": {},
    "ema_decay": {"ema_decay": 0.9},
    "accumulated": {"trainer": {"accumulate_grad_batches": 3}},
    "validated": {"validation_size": 10, "validate_every": 5},
    "all of it": {
        "ema_decay": 0.8,
        "trainer": {"accumulate_grad_batches": 2},
        "validation_size": 10,
        "validate_every": 7,
        "lr_schedule": "cosine",
        "normalization": "batch",
    },
    "scheduled sampling": {"output": "autoregressive", "teacher_forcing": "linear", "decoder_size": 64},
}


def told(model: Any) -> pd.DataFrame:
    """The report but for the clock."""
    return model.training_report_.drop(columns="seconds")


@pytest.mark.parametrize("name", RUNS)
def test_resumed_run_gives_the_bits_of_an_uninterrupted_one(name: str, tmp_path: Path) -> None:
    """Cut twice, beside checkpoints and on them, beside looks at the validation and on them."""
    given = {"max_steps": 43, **RUNS[name]}
    whole = lstm(**given).fit(FRAME)
    folder = tmp_path / "run"
    model = lstm(**given, checkpoint_dir=str(folder), checkpoint_every=7)
    cut(model, 27)
    assert [one.name for one in sorted(folder.iterdir())] == ["step-000000010.checkpoint", "step-000000020.checkpoint"]
    cut(model, 15)
    assert sorted(folder.iterdir())[-1].name == "step-000000030.checkpoint"
    model.fit(FRAME)
    assert same(model, whole)
    pd.testing.assert_frame_equal(told(model), told(whole))
    assert (np.diff(model.training_report_.seconds) >= 0).all()
    assert len(list(folder.iterdir())) == 2
    again = model.clone().fit(FRAME)
    assert same(again, whole), "a run that is over is only read"
    pd.testing.assert_frame_equal(told(again), told(whole))


def test_resumed_run_with_early_stopping(tmp_path: Path) -> None:
    """Patience goes on where it was; a run that has stopped stays so."""
    given = {"validation_size": 10, "validate_every": 3, "patience": 3, "learning_rate": 0.3, "max_steps": 200}
    whole = lstm(**given).fit(FRAME)
    assert whole.stop_reason_ == "no improvement on validation"
    steps = len(whole.training_report_)
    assert 10 < steps < 200
    model = lstm(**given, checkpoint_dir=str(tmp_path), checkpoint_every=5)
    cut(model, steps - 2)
    for _ in range(2):
        model.fit(FRAME)
        assert same(model, whole)
        pd.testing.assert_frame_equal(told(model), told(whole))
        assert model.stop_reason_ == whole.stop_reason_


def test_a_rate_that_was_halved_stays_so(tmp_path: Path) -> None:
    """After a loss that blew up, the run goes on as one without a cut."""
    given = {
        "learning_rate": 0.5,
        "lr_schedule": "constant",
        "max_steps": 50,
        "skip_hidden_sizes": (256, 256),
        "trainer": {"gradient_clip_val": None},
        "head": "point",
        "loss": "mse",
    }
    folders = [str(tmp_path / name) for name in ("whole", "cut")]
    with pytest.warns(TrainingWarning, match="^40 of 50 training steps were undone"):
        whole = lstm(**given, checkpoint_dir=folders[0], checkpoint_every=5).fit(FRAME)
    assert whole.training_report_.learning_rate.nunique() > 1
    model = lstm(**given, checkpoint_dir=folders[1], checkpoint_every=5)
    cut(model, 34)
    with pytest.warns(TrainingWarning, match="^40 of 50 training steps were undone"):
        model.fit(FRAME)
    assert same(model, whole)
    pd.testing.assert_frame_equal(told(model), told(whole))


def test_a_folder_changes_no_bit_and_without_one_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plain = lstm().fit(FRAME)
    assert list(tmp_path.iterdir()) == []
    assert same(lstm(checkpoint_dir="runs", checkpoint_every=7).fit(FRAME), plain)


OTHERS: dict[str, dict[str, Any]] = {
    "seed": {"seed": 1}, "hidden_size": {"hidden_size": 5}, "scaler": {"scaler": "mean_abs"}, "head": {"head": "normal"},
    "learning_rate": {"learning_rate": 0.02},
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_checkpoint_of_another_run_is_refused_naming_the_difference(name: str, tmp_path: Path) -> None:
    cut(lstm(checkpoint_dir=str(tmp_path), checkpoint_every=5), 12)
    before = {one.name: one.read_bytes() for one in tmp_path.iterdir()}
    with pytest.raises(TrainingError, match=rf"step-000000010.*differ in: .*{name}.*delete the folder"):
        lstm(**OTHERS[name], checkpoint_dir=str(tmp_path)).fit(FRAME)
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == before


def test_checkpoint_of_other_data_or_another_model_is_refused(tmp_path: Path) -> None:
    model = lstm(checkpoint_dir=str(tmp_path), checkpoint_every=5)
    cut(model, 12)
    other = FRAME.assign(y=FRAME.y.where(FRAME.index != 50, FRAME.y + 1))
    shifted = FRAME.assign(ds=FRAME.ds + pd.Timedelta(days=1))
    for frame in (other, shifted):
        with pytest.raises(TrainingError, match=r"differ in.*data"):
            model.fit(frame)
    with pytest.raises(TrainingError, match="model"):
        DLinear(horizon=4, intervals="uncalibrated", checkpoint_dir=str(tmp_path)).fit(FRAME)
    model.clone(time_limit=1000.0, checkpoint_every=50).fit(FRAME)


def test_truncated_checkpoint_is_refused(tmp_path: Path) -> None:
    model = lstm(checkpoint_dir=str(tmp_path), checkpoint_every=5)
    cut(model, 12)
    last = sorted(tmp_path.iterdir())[-1]
    last.write_bytes(last.read_bytes()[: last.stat().st_size // 2])
    with pytest.raises(ModelFileError, match="step-000000010"):
        model.fit(FRAME)
    last.unlink()
    assert same(model.fit(FRAME), lstm().fit(FRAME)), "from the one before it"


def test_what_a_write_cut_short_left_behind_goes(tmp_path: Path) -> None:
    (tmp_path / ".deepforecast-0123456789abcdef.tmp").write_bytes(b"half")
    lstm(max_steps=5, checkpoint_dir=str(tmp_path)).fit(FRAME)
    assert [one.name for one in tmp_path.iterdir()] == ["step-000000005.checkpoint"]


def test_a_time_limit_can_be_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second part does not depend on the step at which the first one stopped."""
    stopped(monkeypatch, step=0.01)
    model = lstm(intervals=None, max_steps=1000, time_limit=0.5, checkpoint_dir=str(tmp_path), checkpoint_every=10)
    assert len(model.fit(FRAME).training_report_) < 200
    assert len(model.clone().fit(FRAME).predict()) == 12


def test_fits_of_a_backtest_share_no_checkpoints(tmp_path: Path) -> None:
    model = lstm(intervals="conformal", max_steps=10, checkpoint_dir=str(tmp_path))
    assert np.isfinite(model.fit(FRAME).predict(level=80).iloc[:, -1]).all()


def test_the_gradient_scaler_of_half_precision_goes_on_where_it_was(tmp_path: Path) -> None:
    import torch
    from pytorch_lightning.plugins.precision import MixedPrecision

    def fit(folder: Path, stop_after: int | None = None) -> dict[str, Any]:
        """The state of the scaler, which doubles every 4 steps, after 20 steps or fewer."""
        plugin = MixedPrecision("16-mixed", "cpu", torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=4))
        model = MLP(
            horizon=4, hidden_sizes=[8], max_steps=20, intervals="uncalibrated", checkpoint_dir=str(folder), checkpoint_every=10,
            trainer={"plugins": [plugin]},
        )
        if stop_after is None:
            model.fit(FRAME)
        else:
            cut(model, stop_after)
        return plugin.state_dict()

    whole = fit(tmp_path / "whole")
    assert fit(tmp_path / "cut", stop_after=13)["scale"] < whole["scale"] == 8.0 * 2**5
    assert fit(tmp_path / "cut") == whole


KILLS = """
import os, signal, sys, time, pathlib, random
from tests.training.runs import FRAME, lstm, same
cuts = 0
for seed in range(int(sys.argv[2])):
    given = dict(max_steps=600, seed=seed, validation_size=10, validate_every=50, patience=50, batch_size=4)
    folder = pathlib.Path(sys.argv[1]) / str(seed)
    model = lstm(**given, checkpoint_dir=str(folder), checkpoint_every=int(sys.argv[3]))
    whole = lstm(**given).fit(FRAME)
    pause = random.Random(seed).random()
    for _ in range(2):
        child = os.fork()
        if not child:
            model.fit(FRAME)
            os._exit(0)
        while not folder.is_dir() or not list(folder.glob("*.checkpoint")):
            time.sleep(0.005)
        time.sleep(pause * float(sys.argv[4]))
        os.kill(child, signal.SIGKILL)
        cuts += os.WIFSIGNALED(os.waitpid(child, 0)[1])
    assert len(list(folder.glob("*.checkpoint"))) <= 2
    assert same(model.fit(FRAME), whole), seed
    assert model.training_report_.drop(columns="seconds").equals(whole.training_report_.drop(columns="seconds")), seed
print("same", cuts)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seeds", "every", "pause"), [(20, 40, 1.0), (6, 1, 0.5)], ids=["between checkpoints", "while writing"]
)
def test_killed_at_any_moment(seeds: int, every: int, pause: float, tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    call = [sys.executable, "-c", KILLS, str(tmp_path), str(seeds), str(every), str(pause)]
    done = subprocess.run(call, env=env, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    said, cuts = done.stdout.split()
    assert said == "same"
    assert int(cuts) >= seeds, "most of the runs were cut before their end"
    shutil.rmtree(tmp_path)


def test_the_weights_compared_are_not_all_zero() -> None:
    found = weights(lstm(max_steps=3).fit(generate(2, 60)))
    assert all(np.abs(one).max() > 0 for name, one in found.items() if "weight" in name)
