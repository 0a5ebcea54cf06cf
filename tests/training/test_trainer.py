"""What a fit leaves as it was, what ends it, and what of Lightning's it takes."""

from __future__ import annotations

import logging
import os
import random
import signal
import subprocess
import sys
import threading
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import DLinear, compare, cross_validate
from deepforecast.core.monitor import Monitor
from deepforecast.errors import NotFittedError, ParameterError, TrainingError, TrainingWarning
from deepforecast.evaluation import warm_up
from tests.training.runs import FRAME, lstm, same, watched

ROOT = Path(__file__).resolve().parents[2]


def run(code: str, *arguments: str, folder: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """A fresh process."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", **environment}
    call = [sys.executable, "-c", code, *arguments]
    return subprocess.run(call, env=env, cwd=folder, capture_output=True, text=True, timeout=240)


# -- seeds ------------------------------------------------------------------------------------------------------------------


def test_same_seed_gives_the_same_bits_after_other_work() -> None:
    import torch

    one = lstm().fit(FRAME)
    torch.rand(100)
    np.random.rand(3)  # noqa: NPY002
    DLinear(horizon=3, max_steps=3, seed=9).fit(FRAME)
    assert same(one, lstm().fit(FRAME))
    assert same(one, one.clone().fit(FRAME).fit(FRAME))
    other = lstm(seed=1).fit(FRAME)
    assert not same(one, other)
    assert not np.allclose(one.training_report_.loss, other.training_report_.loss)


def test_a_callback_sees_each_batch_and_changes_nothing() -> None:
    import pytorch_lightning as pl

    class Count(pl.Callback):
        seen = 0

        def on_train_batch_end(self, *_: Any) -> None:
            Count.seen += 1

    given: dict[str, Any] = {
        "ema_decay": 0.9,
        "validation_size": 10,
        "validate_every": 7,
        "max_steps": 22,
    }
    trainer = {"accumulate_grad_batches": 2}
    plain, seen = (
        lstm(**given, trainer={**trainer, **more}).fit(FRAME) for more in ({}, {"callbacks": [Count()]})
    )
    assert Count.seen == 44
    assert same(plain, seen)
    columns = ["step", "learning_rate", "gradient_norm", "validation_loss", "selected"]
    assert plain.training_report_[columns].equals(seen.training_report_[columns])
    np.testing.assert_allclose(plain.training_report_.loss, seen.training_report_.loss, rtol=1e-6)


def test_fits_in_threads_are_as_if_alone() -> None:
    wanted = [lstm(seed=seed).fit(FRAME) for seed in range(3)]
    found: list[Any] = [None] * 3

    def act(seed: int) -> None:
        found[seed] = lstm(seed=seed).fit(FRAME)

    filters, threads = list(warnings.filters), [threading.Thread(target=act, args=(seed,)) for seed in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert all(same(*pair) for pair in zip(wanted, found, strict=True))
    assert warnings.filters == filters


# -- what belongs to the caller ------------------------------------------------------------------------------------------


def state() -> dict[str, Any]:
    """All that a fit could leave changed."""
    import torch

    loggers = [logging.getLogger(name) for name in (None, "pytorch_lightning", "lightning_fabric", "torch", "deepforecast")]
    return {
        "torch": torch.random.get_rng_state().tolist(), "python": random.getstate(), "numpy": str(np.random.get_state()),  # noqa: NPY002
        "threads": (torch.get_num_threads(), torch.get_num_interop_threads()), "dtype": torch.get_default_dtype(),
        "grad": torch.is_grad_enabled(), "inference": torch.is_inference_mode_enabled(), "filters": list(warnings.filters),
        "loggers": [(one.level, list(one.handlers), one.disabled, one.propagate) for one in loggers], "cwd": os.getcwd(),
        "environment": dict(os.environ), "signals": [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)],
        "deterministic": torch.are_deterministic_algorithms_enabled(), "anomaly": torch.is_anomaly_enabled(),
        "threads alive": threading.active_count(),
    }  # fmt: skip


def test_training_leaves_global_state_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.chdir(tmp_path)
    lstm(max_steps=2).fit(FRAME)
    torch.rand(3)
    before = state()
    lstm(max_steps=12, validation_size=10, learning_rate="find").fit(FRAME)
    assert state() == before
    with torch.no_grad():
        lstm(max_steps=2).fit(FRAME)
        assert not torch.is_grad_enabled()
    with torch.inference_mode():
        lstm(max_steps=2).fit(FRAME)
        assert torch.is_inference_mode_enabled()
    before = state()
    with pytest.raises(RuntimeError, match="from the listener"):
        watched(lstm(), Monitor(stop_when=_raising))
    assert state() == before
    assert list(tmp_path.iterdir()) == []


def _raising() -> bool:
    raise RuntimeError("from the listener")


FIRST = """
import logging, os, sys, warnings, signal, random, threading
import numpy, pandas, scipy.special
from deepforecast import LSTM
from deepforecast.datasets import generate
def state():
    return [list(warnings.filters), dict(os.environ), list(logging.getLogger().handlers), logging.getLogger().level,
            random.getstate(), str(numpy.random.get_state()), signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)]
frame, before = generate(2, 60), state()
model = LSTM(horizon=3, hidden_size=4, max_steps=3).fit(frame)
after = state()
for one, other in zip(before, after):
    if one != other:
        print("changed", [x for x in other if x not in one])
model.save(sys.argv[1])
"""
LATER = """
import sys
from deepforecast import load
print(load(sys.argv[1]).predict().shape)
print([name for name in ("pytorch_lightning", "lightning_fabric", "lightning", "torchmetrics") if name in sys.modules])
"""


@pytest.mark.slow
def test_the_first_fit_is_quiet_and_a_loaded_model_needs_no_lightning(tmp_path: Path) -> None:
    """Where nothing is imported yet: nothing printed, no file but the model, filters and environment as before."""
    path = tmp_path / "model.dfc"
    done = run(FIRST, str(path), folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [one.name for one in tmp_path.iterdir()] == ["model.dfc"]
    done = run(LATER, str(path), folder=tmp_path)
    assert (done.stdout, done.stderr) == ("(6, 3)\n[]\n", "")


def test_training_prints_nothing_unless_asked(capfd: pytest.CaptureFixture[str]) -> None:
    lstm(max_steps=3).fit(FRAME)
    assert tuple(capfd.readouterr()) == ("", "")
    lstm(max_steps=3, trainer={"enable_progress_bar": True}).fit(FRAME)
    assert "3/3" in "".join(capfd.readouterr())


def test_a_checkpoint_of_lightnings_in_the_working_folder_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a cluster Lightning would go on from a pickle of this name wherever it stands."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hpc_ckpt_1.ckpt").write_bytes(b"not to be opened")
    for name, value in {"SLURM_NTASKS": "1", "SLURM_JOB_ID": "7", "SLURM_JOB_NAME": "run", "SLURM_PROCID": "0",
                        "SLURM_LOCALID": "0", "SLURM_NODEID": "0"}.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    assert len(lstm(max_steps=3).fit(FRAME).training_report_) == 3


# -- signals ----------------------------------------------------------------------------------------------------------------


def pressing(*steps: int) -> Monitor:
    """Ctrl-C is pressed after these steps."""
    count = iter(range(1, 10**6))

    def pressed() -> bool:
        if next(count) in steps:
            signal.raise_signal(signal.SIGINT)
        return False

    return Monitor(stop_when=pressed)


def test_ctrl_c_keeps_what_was_learned_and_says_so_once() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.warns(
        TrainingWarning, match="interrupted at step 13 of 30; the network keeps the weights learned so far"
    ) as said:
        model = watched(lstm(lr_schedule="constant", warmup=0.0), pressing(12))
    assert len(said) == 1
    assert signal.getsignal(signal.SIGINT) is before
    assert model.stop_reason_ == "interrupted"
    assert same(model, lstm(lr_schedule="constant", warmup=0.0, max_steps=13).fit(FRAME))
    assert np.isfinite(model.predict().LSTM).all()


def test_ctrl_c_twice_ends_at_once() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        watched(lstm(max_steps=100), _twice())
    assert signal.getsignal(signal.SIGINT) is before


@pytest.fixture
def pressed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Ctrl-C is pressed after the third step of each fit; the numbers of the steps made."""
    from deepforecast.training.callbacks import TrainingMonitor

    steps: list[int] = []
    stepped = TrainingMonitor.finish_step

    def press(self: TrainingMonitor, *step: Any) -> bool:
        steps.append(self.step)
        if self.step == 2:
            signal.raise_signal(signal.SIGINT)
        return stepped(self, *step)

    monkeypatch.setattr(TrainingMonitor, "finish_step", press)
    return steps


@pytest.mark.parametrize("act", [cross_validate, compare], ids=["cross_validate", "compare"])
def test_ctrl_c_ends_all_fits_of_a_backtest(act: Any, pressed: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_up, "_warm_keys", set())  # as in a new process
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        act([lstm(), lstm(alias="other")], FRAME, n_windows=2, refit=True)
    compiling = [0] * (act is compare)
    assert pressed == [*compiling, 0, 1, 2]
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_while_bands_are_calibrated_ends_the_fit(pressed: list[int]) -> None:
    model = lstm(head="point", intervals="conformal")
    with pytest.raises(KeyboardInterrupt):
        model.fit(FRAME)
    assert pressed == [0, 1, 2]
    with pytest.raises(NotFittedError):
        model.predict()


def _twice() -> Monitor:
    def pressed() -> bool:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        return False

    return Monitor(stop_when=pressed)


def test_in_a_thread_and_where_ctrl_c_is_ignored_nothing_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def look() -> bool:
        seen.append(signal.getsignal(signal.SIGINT))
        return False

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=lambda: watched(lstm(max_steps=2), Monitor(stop_when=look)))
    thread.start()
    thread.join()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        watched(lstm(max_steps=2), Monitor(stop_when=look))
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [before, before, signal.SIG_IGN, signal.SIG_IGN]


SIGNALLED = """
import sys
from tests.training.runs import FRAME, lstm
model = lstm(max_steps=10**6, checkpoint_dir=sys.argv[1], checkpoint_every=10)
model.fit(FRAME)
print("fitted", model.stop_reason_, len(model.training_report_) > 9, len(model.predict()))
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_signal_ends_training_soon_with_a_checkpoint(number: signal.Signals, tmp_path: Path) -> None:
    import time

    folder = tmp_path / "run"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    child = subprocess.Popen([sys.executable, "-c", SIGNALLED, str(folder)], env=env, stdout=-1, stderr=-1, text=True)
    deadline = time.monotonic() + 240
    while not (folder.is_dir() and list(folder.glob("*.checkpoint"))) and time.monotonic() < deadline:
        time.sleep(0.05)
    child.send_signal(number)
    began = time.monotonic()
    out, error = child.communicate(timeout=240)
    assert time.monotonic() - began < 60
    assert 1 <= len(list(folder.glob("*.checkpoint"))) <= 2
    if number is signal.SIGTERM:
        assert (child.returncode, out) == (-signal.SIGTERM, "")
    else:
        assert (child.returncode, out) == (0, "fitted interrupted True 12\n")
        assert error.count("TrainingWarning: Training was interrupted") == 1
    cut = lstm(max_steps=10**6, checkpoint_dir=str(folder), checkpoint_every=10)
    resumed = watched(cut, Monitor(stop_when=lambda: True))
    assert len(resumed.training_report_) > 10


# -- what Lightning's Trainer takes -------------------------------------------------------------------------------------------


def test_callbacks_and_loggers_of_pytorch_lightning_are_used(tmp_path: Path) -> None:
    from pytorch_lightning.callbacks import LearningRateMonitor, ModelCheckpoint
    from pytorch_lightning.loggers import CSVLogger

    logger = CSVLogger(str(tmp_path), flush_logs_every_n_steps=1)
    saved = ModelCheckpoint(dirpath=tmp_path / "saved", every_n_train_steps=4)
    model = lstm(max_steps=12, validation_size=10, validate_every=6, trainer={
        "callbacks": [saved, LearningRateMonitor()], "logger": logger, "log_every_n_steps": 1})  # fmt: skip
    report = model.fit(FRAME).training_report_
    assert list((tmp_path / "saved").iterdir())
    written = (Path(logger.log_dir) / "metrics.csv").read_text().splitlines()
    names = written[0].split(",")
    assert {"loss", "step", "validation"} <= set(names)
    losses = [float(row.split(",")[names.index("loss")]) for row in written[1:] if row.split(",")[names.index("loss")]]
    np.testing.assert_allclose(losses, report.loss, rtol=1e-4)


def test_those_of_the_package_lightning_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    home = types.ModuleType("lightning.pytorch.callbacks")
    base = type("EarlyStopping", (), {"__module__": home.__name__})
    own = type("Mine", (base,), {"__module__": "__main__"})
    for one in (base(), own()):
        with pytest.raises(
            ParameterError, match=f"{type(one).__name__} of the package lightning, .*classes of pytorch_lightning"
        ):
            lstm(trainer={"callbacks": [one]}).fit(FRAME)
    with pytest.raises(ParameterError, match=r"'logger' of `trainer`.*CSVLogger of the package lightning"):
        lstm(trainer={"logger": type("CSVLogger", (), {"__module__": "lightning.pytorch.loggers"})()}).fit(FRAME)
    with pytest.raises(ParameterError, match=r"got int\. Use the classes of pytorch_lightning"):
        lstm(trainer={"callbacks": [3]}).fit(FRAME)


@pytest.mark.parametrize(("name", "ours"), [("EarlyStopping", "patience="), ("EMAWeightAveraging", "ema_decay=")])
def test_callbacks_that_a_fit_has_parameters_for_are_refused(name: str, ours: str) -> None:
    import pytorch_lightning as pl

    given = {"monitor": "validation"} if name == "EarlyStopping" else {}
    with pytest.raises(ParameterError, match=f"{name} cannot be used in a fit.*{ours}.*Trainer of your own"):
        lstm(trainer={"callbacks": [getattr(pl.callbacks, name)(**given)]}).fit(FRAME)


@pytest.mark.parametrize(
    ("name", "ours"),
    [("max_steps", "max_steps"), ("max_epochs", "max_epochs"), ("max_time", "time_limit"),
     ("val_check_interval", "validate_every"), ("limit_val_batches", "validation_size")],
)  # fmt: skip
def test_what_has_a_parameter_of_its_own_is_refused_by_its_name(name: str, ours: str) -> None:
    with pytest.raises(ParameterError, match=f"cannot contain {name!r}, got {name}=1.*Use the parameter {ours} "):
        lstm(trainer={name: 1})


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [("precision", "64-true", "one of 32-true, bf16-mixed, 16-mixed"), ("accumulate_grad_batches", 0, "an integer of at least 1"),
     ("accumulate_grad_batches", {0: 2}, "an integer"), ("gradient_clip_val", 0.0, "a number above 0, or None"),
     ("gradient_clip_algorithm", "max", "one of norm, value"), ("enable_progress_bar", "yes", "one of False, True")],
)  # fmt: skip
def test_arguments_that_the_training_code_reads_are_checked(name: str, value: object, rule: str) -> None:
    with pytest.raises(ParameterError, match=f"{name!r} of `trainer` must be {rule}"):
        lstm(trainer={name: value})


def test_other_arguments_of_lightning_are_passed_on() -> None:
    model = lstm(max_steps=20, trainer={"limit_train_batches": 7}).fit(FRAME)
    assert len(model.training_report_) == 7
    rates = model.training_report_.learning_rate
    assert rates.iloc[-1] < 0.1 * rates.max(), "the schedule spans the 7 steps"
    assert model.stop_reason_ == "stopped by the Trainer or a callback"
    assert len(lstm(max_steps=20, trainer={"fast_dev_run": True}).fit(FRAME).training_report_) == 1


def test_a_callback_that_stops_the_training_ends_it() -> None:
    """There is no second part, and the steps of the first are recorded."""
    import pytorch_lightning as pl

    class Stop(pl.Callback):
        n_fits = 0

        def on_fit_start(self, *_: Any) -> None:
            self.n_fits += 1

        def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
            trainer.should_stop = trainer.global_step >= 4

    stop = Stop()
    model = lstm(intervals=None, max_steps=30, trainer={"callbacks": [stop]}).fit(FRAME)
    assert (stop.n_fits, len(model.training_report_)) == (1, 4)
    assert model.stop_reason_ == "stopped by the Trainer or a callback"


def test_a_training_without_steps_is_an_error() -> None:
    with pytest.raises(TrainingError, match="must have at least one step, got none"):
        lstm(trainer={"limit_train_batches": 0}).fit(FRAME)


def test_loggers_have_every_validation_loss_and_steps_that_go_on(tmp_path: Path) -> None:
    from pytorch_lightning.callbacks import ModelCheckpoint
    from pytorch_lightning.loggers import CSVLogger

    logger, saved = CSVLogger(str(tmp_path)), ModelCheckpoint(dirpath=tmp_path / "best", monitor="validation", every_n_train_steps=1)
    model = lstm(max_steps=12, validation_size=10, validate_every=3, trainer={"logger": logger, "callbacks": [saved]}).fit(FRAME)
    metrics = pd.read_csv(Path(logger.log_dir) / "metrics.csv")
    np.testing.assert_allclose(metrics.validation.dropna(), model.training_report_.validation_loss.dropna())
    assert saved.best_model_path
    logger = CSVLogger(str(tmp_path / "parts"))
    lstm(intervals=None, max_steps=12, trainer={"logger": logger, "log_every_n_steps": 1}).fit(FRAME)
    steps = pd.read_csv(Path(logger.log_dir) / "metrics.csv").step
    assert steps.tolist() == list(range(12))


def test_settings_and_variables_of_the_process_are_those_of_the_caller() -> None:
    """Lightning's are removed; those that somebody else sets during the fit stay."""
    import pytorch_lightning as pl
    import torch

    class SetVariable(pl.Callback):
        def on_train_start(self, *_: Any) -> None:
            os.environ["DEEPFORECAST_TEST_VARIABLE"] = "7"

    before = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    try:
        lstm(max_steps=2, trainer={"callbacks": [SetVariable()], "deterministic": True, "benchmark": True}).fit(FRAME)
        assert os.environ.pop("DEEPFORECAST_TEST_VARIABLE") == "7"
    finally:
        os.environ.pop("DEEPFORECAST_TEST_VARIABLE", None)
    assert {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"} == before
    assert not torch.are_deterministic_algorithms_enabled()
    assert not torch.backends.cudnn.benchmark


@pytest.mark.parametrize(
    ("trainer", "message"),
    [({"logger": True}, "'logger' of `trainer` must be a logger of Lightning, a list of them, or False, got True"),
     ({"overfit_batches": 1}, "Use the parameter recent_windows of the model")],
)  # fmt: skip
def test_arguments_without_a_meaning_in_a_fit_are_refused(trainer: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        lstm(trainer=trainer)


def test_a_class_in_place_of_a_callback_is_refused() -> None:
    from pytorch_lightning.callbacks import Timer

    with pytest.raises(ParameterError, match=r"must be instances, got the class Timer\. Pass Timer\(\.\.\.\)"):
        lstm(trainer={"callbacks": [Timer]}).fit(FRAME)


def test_a_callback_that_needs_a_logger_says_so_as_a_parameter_error() -> None:
    from pytorch_lightning.callbacks import LearningRateMonitor

    with pytest.raises(ParameterError, match=r"must be valid for Lightning's Trainer: .*LearningRateMonitor"):
        lstm(trainer={"callbacks": [LearningRateMonitor()]}).fit(FRAME)


def test_barebones_trains_the_same() -> None:
    assert same(lstm(max_steps=3, trainer={"barebones": True}).fit(FRAME), lstm(max_steps=3).fit(FRAME))


def test_what_lightning_does_not_take_is_a_clear_error() -> None:
    with pytest.raises(ParameterError, match="no_such_thing"):
        lstm(trainer={"no_such_thing": 1}).fit(FRAME)
    with pytest.raises(ParameterError, match="must be valid for Lightning's Trainer"):
        lstm(trainer={"strategy": "no such strategy"}).fit(FRAME)
    with pytest.raises(ParameterError, match="torch_xla"):
        lstm(trainer={"accelerator": "tpu"}).fit(FRAME)


def test_mps_is_used_on_request_only(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from deepforecast.training import trainer

    class Recorded(Exception):
        pass

    def record(**options: Any) -> None:
        raise Recorded(options["accelerator"], options["precision"])

    restored: list[Any] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.mps, "get_rng_state", lambda: "state")
    monkeypatch.setattr(torch.mps, "set_rng_state", restored.append)
    monkeypatch.setattr(trainer.pl, "Trainer", record)
    for accelerator, expected in (("mps", "mps"), ("gpu", "gpu"), ("auto", "cpu")):
        with pytest.raises(Recorded) as used:
            lstm(max_steps=1, trainer={"accelerator": accelerator}).fit(FRAME)
        assert used.value.args == (expected, None)
    assert restored == ["state", "state"]
    with pytest.raises(Recorded), pytest.warns(TrainingWarning, match="mps cannot train with precision='16-mixed'; '32-true' is"):
        lstm(max_steps=1, trainer={"accelerator": "mps", "precision": "16-mixed"}).fit(FRAME)
