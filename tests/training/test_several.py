"""Training in two processes (gloo, on CPUs): each takes its share of every batch; both end with what one would have found."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deepforecast import MLP
from deepforecast.errors import ParameterError
from tests.training.runs import FRAME
from tests.training.test_trainer import ROOT

SMALL = "horizon=3, hidden_sizes=[8], input_size=8, max_steps=20"
TOLD = """
import os, sys
from deepforecast import MLP
from tests.training.runs import FRAME
def say(line):
    os.write(1, (line + chr(10)).encode())  # whole, whatever the other process writes
def told(what, model):
    total = sum(value.double().sum() for value in model.network_.state_dict().values())
    say(f"{what} {float(total):.4f} {model.training_report_.loss.iloc[-1]:.4f} {len(model.predict())}")
"""
FITS = f"""{TOLD}
given, two = dict({SMALL}), dict(trainer=dict(accelerator="cpu", devices=2))
told("first", MLP(**given, **two, checkpoint_dir=sys.argv[1], checkpoint_every=10).fit(FRAME))
told("second", MLP(**given, **two, seed=1, validation_size=10, validate_every=4, time_limit=100.0).fit(FRAME))
told("first", MLP(**given).fit(FRAME))
told("second", MLP(**given, seed=1, validation_size=10, validate_every=4).fit(FRAME))
"""
OWN = f"""{TOLD}
import warnings
warnings.simplefilter("ignore")
import pytorch_lightning as pl
model = MLP({SMALL})
module, data = model.lightning_module(FRAME), model.datamodule(FRAME)
rest = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
pl.Trainer(accelerator="cpu", devices=2, strategy="ddp", max_steps=20, **rest).fit(module, data)
total = sum(value.double().sum() for value in model.network_.state_dict().values())
alone = sum(value.double().sum() for value in MLP({SMALL}, intervals="uncalibrated").fit(FRAME).network_.state_dict().values())
say("near " + str(abs(float(total - alone)) < 1e-4) + " " + str(len(model.predict())))
"""


def run(code: str, folder: Path, *arguments: str) -> list[str]:
    """The lines that a program and those it starts print; none of them is left."""
    file = folder / "program.py"
    file.write_text(code)
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    call = [sys.executable, str(file), *arguments]
    child = subprocess.Popen(call, env=env, stdout=-1, stderr=-1, text=True, start_new_session=True)
    try:
        out, error = child.communicate(timeout=240)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        raise
    assert child.returncode == 0, error
    return sorted(line for line in out.splitlines() if line.partition(" ")[0] in ("first", "second", "near"))


@pytest.mark.slow
def test_two_processes_find_what_one_finds_and_one_of_them_writes(tmp_path: Path) -> None:
    lines = run(FITS, tmp_path, str(tmp_path / "run"))
    assert len(lines) == 8
    assert len(set(lines)) == 2
    assert sorted(path.parent.name for path in (tmp_path / "run").rglob("*.checkpoint")) == ["all", "held_out"]


@pytest.mark.slow
def test_a_trainer_of_the_users_on_two_processes(tmp_path: Path) -> None:
    lines = run(OWN, tmp_path)
    assert set(lines) == {"near True 9"}
    assert len(lines) == 2


def test_processes_that_bring_nothing_back_are_refused() -> None:
    with pytest.raises(
        ParameterError, match="strategy='ddp_spawn' cannot be used: its worker processes return only the weights"
    ):
        MLP(
            horizon=3,
            hidden_sizes=[8],
            input_size=8,
            max_steps=2,
            trainer={"devices": 2, "accelerator": "cpu", "strategy": "ddp_spawn"},
        ).fit(FRAME)
