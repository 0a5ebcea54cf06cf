"""What a run is set in: a Trainer that leaves nothing, the caller's state as it was, Ctrl-C that keeps what was learned."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import pytorch_lightning as pl
import torch
from lightning_fabric.utilities.exceptions import MisconfigurationException

from deepforecast.errors import ParameterError
from deepforecast.training.guard import Guard
from deepforecast.training.importing import ALONE
from deepforecast.training.options import Options
from deepforecast.training.policy import device_type

PARAMETERS = {
    "max_steps": "max_steps", "max_epochs": "max_epochs", "max_time": "time_limit", "accelerator": "accelerator",
    "devices": "devices", "precision": "precision", "strategy": "strategy", "accumulate_grad_batches": "accumulate",
    "gradient_clip_val": "grad_clip", "gradient_clip_algorithm": "clip_value", "enable_progress_bar": "progress",
    "val_check_interval": "validate_every", "check_val_every_n_epoch": "validate_every", "limit_val_batches": "validation",
    "limit_train_batches": "max_steps", "min_steps": "max_steps", "min_epochs": "max_epochs", "fast_dev_run": "max_steps",
}  # fmt: skip
"""What Lightning's Trainer takes that has a parameter of the model's own."""

CALLBACKS = {
    "EarlyStopping": "validation= and patience=", "WeightAveraging": "average=", "StochasticWeightAveraging": "average=",
    "GradientAccumulationScheduler": "accumulate=", "LearningRateFinder": "learning_rate='find'",
    "BatchSizeFinder": "batch_size=",
}  # fmt: skip
"""Callbacks of Lightning's that look at epochs, of which a fit is one, or change what a fit keeps watch over."""

NOWHERE = os.path.join(os.devnull, "nothing is written")
TOGETHER = ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK", "LOCAL_RANK", "WORLD_SIZE")
"""By which processes that train together know each other: a second fit of the same program goes on with them."""

_LOGGERS = ("pytorch_lightning", "lightning_fabric", "pytorch_lightning.utilities.rank_zero", "lightning_fabric.utilities.seed")


class Interrupted(BaseException):
    """A Ctrl-C that ends all at once, as Lightning may not see it: it would end the process."""


def watched(options: Options) -> bool:
    """Whether single steps are looked at by somebody else: then they are made one by one."""
    return bool(options.progress or options.trainer or options.strategy != "auto" or options.devices != 1
                or options.precision != "32-true")  # fmt: skip


def trainer_for(options: Options, several: bool) -> pl.Trainer:
    """The Trainer of a run."""
    given = dict(options.trainer)
    for name, ours in PARAMETERS.items():
        if name in given:
            raise ParameterError(f"trainer= holds what has no parameter of its own; {name} has one: say {ours}=.")
    callbacks = _ours(given.pop("callbacks", None) or [], pl.Callback, "callbacks")
    for one, name in ((one, name) for one in callbacks for name in CALLBACKS if isinstance(one, getattr(pl.callbacks, name))):
        raise ParameterError(
            f"A fit is one epoch, whose weights and steps it watches over itself; {type(one).__name__} would have no effect or "
            f"a wrong one. Say {CALLBACKS[name]} instead, or train with lightning_module() and a Trainer of your own."
        )
    logger = given.pop("logger", False)
    if logger:
        from pytorch_lightning.loggers import Logger

        logger = _ours(list(logger) if isinstance(logger, list | tuple) else [logger], Logger, "logger")
    if not (logger or callbacks):
        given.setdefault("default_root_dir", NOWHERE)  # or files of that name in the working folder would be read
    accelerator = _accelerator(options)
    keeps = any(isinstance(one, pl.callbacks.Checkpoint) for one in callbacks)
    try:
        trainer = pl.Trainer(
            max_steps=-1, max_epochs=1, accelerator=accelerator, devices=options.devices, strategy=options.strategy,
            precision=options.precision,  # type: ignore[arg-type]
            accumulate_grad_batches=1 if several else options.accumulate, callbacks=callbacks,
            logger=logger, limit_val_batches=0, enable_progress_bar=options.progress,
            **{"log_every_n_steps": 50, "enable_model_summary": False, "enable_checkpointing": keeps, **given},
        )  # fmt: skip
    except (MisconfigurationException, TypeError, ValueError, ImportError) as error:
        raise ParameterError(f"Lightning's Trainer has to take what it is given, and says: {error}") from error
    if trainer.strategy.launcher is not None and trainer.strategy.launcher.__class__.__name__ == "_MultiProcessingLauncher":
        raise ParameterError(
            f"strategy={options.strategy!r} trains in processes of which nothing but weights comes back, not how it went. Say "
            "strategy='ddp' in a program that is run as a file, or devices=1."
        )
    return trainer


def _accelerator(options: Options) -> str:
    """The device asked for; of "auto" none that lacks float64, in which windows are scaled."""
    if device_type(options.accelerator) != "mps":
        return options.accelerator
    if options.accelerator == "auto":
        return "cpu"
    raise ParameterError(
        f"Windows are scaled in float64, which mps does not have; got accelerator={options.accelerator!r}. Say "
        "accelerator='cpu'."
    )


def _ours(given: Any, kind: type, what: str) -> list[Any]:
    """Objects of pytorch_lightning; the other package of the same code has classes of its own."""
    found = list(given) if isinstance(given, list | tuple) else [given]
    for one in found:
        if not isinstance(one, kind):
            foreign = any(base.__module__.partition(".")[0] == "lightning" for base in type(one).__mro__)
            home = "the package lightning, whose classes are others of the same name" if foreign else "no such class"
            raise ParameterError(
                f"trainer={{'{what}': ...}} takes objects of pytorch_lightning; {type(one).__name__} is of {home}. Import "
                "what it is made of from pytorch_lightning instead."
            )
    return found


@contextlib.contextmanager
def as_it_was(options: Options) -> Iterator[None]:
    """Generators, log levels, warnings and environment of the caller are as before; Lightning says nothing of its own."""
    cuda = device_type(options.accelerator) == "cuda" or torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    devices = list(range(torch.cuda.device_count())) if cuda else []
    with ALONE, torch.random.fork_rng(devices), warnings.catch_warnings():
        loggers = [logging.getLogger(name) for name in _LOGGERS]
        levels = [one.level for one in loggers]
        environment = dict(os.environ)
        warnings.filterwarnings("ignore", module=r"pytorch_lightning|lightning_fabric")
        if options.compile:
            warnings.filterwarnings("ignore", module="torch")
        if not options.progress:
            for one in loggers:
                one.setLevel(logging.ERROR)
        try:
            with torch.inference_mode(False), torch.enable_grad():
                yield
        finally:
            for one, level in zip(loggers, levels, strict=True):
                one.setLevel(level)
            kept = TOGETHER if "LOCAL_RANK" in os.environ else ()
            for name in set(os.environ) - {*environment, *kept}:
                del os.environ[name]


@contextlib.contextmanager
def interrupted(guard: Guard) -> Iterator[None]:
    """Ctrl-C ends the run after the step at hand, and what it has learned is kept; a second one ends it at once, as the first
    does where the run is one of several: it is all of them that are to end."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before in (None, signal.SIG_IGN):
        yield
        return

    def stop(_: int, __: Any) -> None:
        if guard.interrupted or not guard.monitor.whole:
            raise Interrupted
        guard.interrupted = True

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    except Interrupted:
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGINT, before)
