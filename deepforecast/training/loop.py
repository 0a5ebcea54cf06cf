"""A network learns: the Trainer set up, run, and everything as it was afterwards but for the weights."""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import pytorch_lightning as pl
import torch

from deepforecast.core.monitor import Monitor
from deepforecast.core.threads import keep_buffers, limited
from deepforecast.errors import ParameterError, TrainingWarning, say
from deepforecast.nn.network import ForecastNetwork
from deepforecast.training.checkpoints import Checkpoints
from deepforecast.training.guard import Guard, Record
from deepforecast.training.lightning import Training
from deepforecast.training.options import Options
from deepforecast.training.policy import threads_for
from deepforecast.training.sampler import Every, Steps

OURS = ("max_steps", "max_epochs", "callbacks", "logger", "enable_checkpointing", "accelerator", "devices", "precision", "strategy",
        "accumulate_grad_batches", "gradient_clip_val")  # fmt: skip


def learn(
    network: ForecastNetwork,
    steps: Steps,
    validation: Every | None,
    options: Options,
    monitor: Monitor,
    data: str = "",
) -> Record:
    """Train in place; what was seen of it."""
    checkpoints = None if options.checkpoint_dir is None else Checkpoints.of(options, data, network)
    begin = 0 if checkpoints is None else checkpoints.step
    training = Training(network, options, begin, seeded=True)
    guard = Guard(training, monitor, checkpoints)
    steps.begin = begin * options.accumulate
    with _as_it_was(), limited(threads_for(network, options)), keep_buffers(), _interrupted(guard):
        if steps.begin < steps.end:
            trainer = _trainer(guard, options, options.max_steps - begin, validation is not None)
            network.train()
            try:
                trainer.fit(training, steps, validation)
            finally:
                network.eval().cpu()
        elif checkpoints is not None:
            checkpoints.restore(guard, training.configure_optimizers()["optimizer"])
    if guard.stopped:
        said = f"Training was interrupted at step {len(guard.record.loss)} of {options.max_steps}; what it had learned is kept."
        say(said, TrainingWarning)
    return guard.finish()


def _trainer(guard: Guard, options: Options, steps: int, validates: bool) -> pl.Trainer:
    given = dict(options.trainer)
    taken = [name for name in given if name in OURS and name not in ("callbacks", "logger")]
    if taken:
        raise ParameterError(f"trainer= holds what has no parameter of its own; say {taken[0]} as a parameter of the model.")
    callbacks = [*_ours(given.pop("callbacks", None) or [], pl.Callback, "callbacks"), guard]
    logger = given.pop("logger", False)
    if logger:
        from pytorch_lightning.loggers import Logger

        logger = _ours(logger if isinstance(logger, list) else [logger], Logger, "logger")
    validating: dict[str, Any] = {"limit_val_batches": 0}
    if validates:
        validating = {"val_check_interval": min(options.validate_every, steps) * options.accumulate}
    return pl.Trainer(
        max_steps=steps, max_epochs=1, accelerator=options.accelerator, devices=options.devices, strategy=options.strategy,
        precision=options.precision, accumulate_grad_batches=options.accumulate, callbacks=callbacks, logger=logger,
        enable_checkpointing=False, enable_progress_bar=options.progress, enable_model_summary=False, num_sanity_val_steps=0,
        **{"log_every_n_steps": 50, **validating, **given},
    )  # fmt: skip


def _ours(given: list[Any], kind: type, what: str) -> list[Any]:
    """Objects of pytorch_lightning; the other package of the same code has classes of its own."""
    for one in given:
        if not isinstance(one, kind):
            home = type(one).__module__.partition(".")[0]
            raise ParameterError(
                f"trainer={{'{what}': ...}} takes objects of pytorch_lightning; {type(one).__name__} is of {home}. Import it from "
                "pytorch_lightning instead."
            )
    return given


@contextlib.contextmanager
def _as_it_was() -> Iterator[None]:
    """Generators, log levels and warnings of the caller are as before; Lightning says nothing of its own."""
    loggers = [logging.getLogger(name) for name in ("pytorch_lightning", "lightning_fabric", "pytorch_lightning.utilities.rank_zero")]
    levels = [one.level for one in loggers]
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    grad = torch.is_grad_enabled()
    with torch.random.fork_rng(devices), warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"pytorch_lightning|lightning_fabric")
        for one in loggers:
            one.setLevel(logging.ERROR)
        try:
            with torch.inference_mode(False), torch.enable_grad():
                yield
        finally:
            torch.set_grad_enabled(grad)
            for one, level in zip(loggers, levels, strict=True):
                one.setLevel(level)


@contextlib.contextmanager
def _interrupted(guard: Guard) -> Iterator[None]:
    """Ctrl-C ends the run after the step at hand, and what it has learned is kept; a second one ends it at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def stop(_: int, __: Any) -> None:
        if guard.stopped:
            raise KeyboardInterrupt
        guard.stopped = True

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
