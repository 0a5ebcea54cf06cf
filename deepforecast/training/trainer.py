"""Training of a network: Lightning's Trainer, the process state around it, and its interruption by Ctrl-C."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import pytorch_lightning as pl
import torch
from lightning_fabric.utilities.exceptions import MisconfigurationException

from deepforecast.core.monitor import Monitor
from deepforecast.core.threads import keep_buffers, limit_threads
from deepforecast.errors import (
    ParameterError,
    TrainingWarning,
    collect_warnings,
    emit_warnings,
    warn,
)
from deepforecast.nn.network import ForecastNetwork
from deepforecast.training.callbacks import TrainingMonitor, TrainingRecord
from deepforecast.training.checkpoints import Checkpoints
from deepforecast.training.hardware import (
    device_type,
    place_on_device,
    precision_for,
    threads_for,
)
from deepforecast.training.imports import TRAINING_LOCK
from deepforecast.training.learning_rate_finder import find_learning_rate
from deepforecast.training.module import FitModule
from deepforecast.training.options import TrainingOptions
from deepforecast.training.sampler import EvaluationWindows, WindowSampler

CALLBACKS = {
    "EarlyStopping": "validation_size= and patience=",
    "WeightAveraging": "ema_decay=",
    "StochasticWeightAveraging": "ema_decay=",
    "GradientAccumulationScheduler": "accumulate_grad_batches=",
    "LearningRateFinder": "learning_rate='find'",
    "BatchSizeFinder": "batch_size=",
}
"""Callbacks of Lightning that cannot work in a fit, which is one epoch, and the parameters to use
instead.
"""

NO_OUTPUT_DIR = os.path.join(os.devnull, "nothing is written")
DDP_VARIABLES = ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK", "LOCAL_RANK", "WORLD_SIZE")
"""Environment variables of distributed training, which the next fit of the same processes needs."""

LIGHTNING_VARIABLES = (
    *DDP_VARIABLES, "RANK", "OMP_NUM_THREADS", "PL_GLOBAL_SEED", "PL_SEED_WORKERS", "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_DEVICE_ORDER", "PT_XLA_DEBUG", "XLA_USE_BF16", "XLA_USE_F16",
)
"""Environment variables that Lightning sets in a fit."""

_LOGGERS = (
    "pytorch_lightning",
    "lightning_fabric",
    "pytorch_lightning.utilities.rank_zero",
    "lightning_fabric.utilities.seed",
)


class Interrupted(BaseException):
    """A Ctrl-C that ends the run at once; it takes the place of KeyboardInterrupt, for which
    Lightning would end the process.
    """


def train(
    network: ForecastNetwork,
    sampler: WindowSampler,
    validation: EvaluationWindows | None,
    options: TrainingOptions,
    monitor: Monitor,
    run: Mapping[str, Any] | None = None,
) -> TrainingRecord:
    """Train a network in place; afterwards it is on the device it was trained on, in evaluation mode.

    With checkpoints, a run that was interrupted continues from the last one. Ctrl-C ends the
    training with a warning, and the network keeps the weights learned so far.

    Parameters
    ----------
    network : ForecastNetwork
    sampler : WindowSampler
        Training batches.
    validation : EvaluationWindows, optional
        Windows that select the best weights.
    options : TrainingOptions
        A `learning_rate` of 0 is found by a range test.
    monitor : Monitor
        Receives the progress and can stop the training.
    run : mapping, optional
        Settings and data that identify the run in its checkpoints.

    Returns
    -------
    TrainingRecord

    Raises
    ------
    TrainingError
        If the loss diverges.
    """
    options = replace(options, precision=precision_for(options))
    checkpoints = None if options.checkpoint_dir is None else Checkpoints.from_folder(options.checkpoint_dir, run or {})
    with (
        preserve_process_state(options),
        limit_threads(threads_for(network, options)),
        keep_buffers(),
    ):
        network.train()
        try:
            if not options.learning_rate:
                options = replace(
                    options,
                    learning_rate=find_learning_rate(network, sampler, options) * options.lr_factor,
                )
            training_monitor = TrainingMonitor(network, options, monitor, checkpoints, validation)
            with stop_on_interrupt(training_monitor):
                _run_trainer(training_monitor, sampler, options)
        finally:
            network.eval().zero_grad()
        if training_monitor.interrupted:
            step = options.steps_before + training_monitor.step
            message = (
                f"Training was interrupted at step {step} of {options.total_steps}; "
                "the network keeps the weights learned so far."
            )
            warn(message, TrainingWarning)
        return training_monitor.finish()


def _run_trainer(
    training_monitor: TrainingMonitor, sampler: WindowSampler, options: TrainingOptions
) -> None:
    """Run Lightning's Trainer; a run whose checkpoint is that of its end only restores its state."""
    network = training_monitor.network
    logs_loss = bool(options.enable_progress_bar or options.trainer.get("logger") or options.trainer.get("callbacks"))
    module = FitModule(network, options, training_monitor.step, logs_loss)
    trainer = make_trainer(options, training_monitor)
    device = trainer.strategy.root_device
    if training_monitor.step >= options.max_steps or (
        training_monitor.checkpoints is not None and training_monitor.checkpoints.stopped_early
    ):
        training_monitor.start(module.configure_optimizers(), trainer.precision_plugin)
        network.to(device)
        return
    sampler.first_step = training_monitor.step
    sampler.windows = place_on_device(sampler.windows, device)
    if training_monitor.validation is not None:
        training_monitor.validation.windows = sampler.windows
    collected_warnings: Any = {}
    try:
        # Emitted afterwards, warnings have the location of the user's call in place of Lightning's.
        with collect_warnings(collected_warnings):
            trainer.fit(module, sampler)
    except MisconfigurationException as error:
        raise ParameterError(f"`trainer` must be valid for Lightning's Trainer: {error}", parameter="trainer") from error
    finally:
        network.to(device)  # Lightning moves it to the CPU at the end
        emit_warnings(collected_warnings)


def make_trainer(options: TrainingOptions, training_monitor: TrainingMonitor) -> pl.Trainer:
    """Return the Trainer of a run, with its monitor as the first callback.

    Raises
    ------
    ParameterError
        If Lightning refuses an argument.
    """
    trainer_options = dict(options.trainer)
    callbacks = _check_instances(trainer_options.pop("callbacks", None) or [], pl.Callback, "callbacks")
    barebones = bool(trainer_options.get("barebones"))
    for callback, (name, parameter) in product(callbacks, CALLBACKS.items()):
        if isinstance(callback, getattr(pl.callbacks, name)):
            raise ParameterError(
                f"The callback {type(callback).__name__} cannot be used in a fit, which is a single "
                "epoch with its own monitoring.",
                hint=f"Use {parameter} instead, or lightning_module() with a Trainer of your own.",
            )
    logger = trainer_options.pop("logger", False)
    if logger:
        from pytorch_lightning.loggers import Logger

        logger = _check_instances(list(logger) if isinstance(logger, list | tuple) else [logger], Logger, "logger")
    if not (logger or callbacks or trainer_options.get("enable_checkpointing")):
        # Otherwise Lightning would search the working folder for its files.
        trainer_options.setdefault("default_root_dir", NO_OUTPUT_DIR)
    # Lightning's "auto" would choose MPS, see `device_type`.
    avoids_mps = options.accelerator == "auto" and torch.backends.mps.is_available()
    has_checkpoint = any(isinstance(callback, pl.callbacks.Checkpoint) for callback in callbacks)
    try:
        trainer = pl.Trainer(
            max_steps=-1,
            max_epochs=1,
            accelerator="cpu" if avoids_mps else options.accelerator,
            devices=options.devices,
            precision=None if options.precision == "32-true" else options.precision,  # type: ignore[arg-type]  # or a plugin
            accumulate_grad_batches=options.accumulate_grad_batches,
            callbacks=[training_monitor, *callbacks],
            logger=logger,
            limit_val_batches=0,
            enable_progress_bar=options.enable_progress_bar,
            **{
                **({} if barebones else {"log_every_n_steps": 50}),
                "enable_model_summary": False,
                "enable_checkpointing": has_checkpoint,
                **trainer_options,
            },
        )
    except (MisconfigurationException, TypeError, ValueError, ImportError) as error:
        raise ParameterError(f"The training parameters must be valid for Lightning's Trainer: {error}") from error
    if type(trainer.strategy.launcher).__name__ == "_MultiProcessingLauncher":
        raise ParameterError(
            f"strategy={trainer_options['strategy']!r} cannot be used: its worker processes return only the "
            "weights, not the training record.",
            hint="Use trainer={'strategy': 'ddp'} (in a script) or devices=1.",
            parameter="trainer",
        )
    return trainer


def _check_instances(values: Any, expected_class: type, option: str) -> list[Any]:
    """Return the values as a list; raise `ParameterError` unless all are instances of the class.

    The package `lightning` has other classes with the same names as `pytorch_lightning`.
    """
    instances = list(values) if isinstance(values, list | tuple) else [values]
    for instance in instances:
        if not isinstance(instance, expected_class):
            if isinstance(instance, type):
                raise ParameterError(
                    f"{option!r} of `trainer` must be instances, got the class {instance.__name__}.",
                    hint=f"Pass {instance.__name__}(...).",
                    parameter="trainer",
                )
            is_other_package = any(
                base.__module__.partition(".")[0] == "lightning" for base in type(instance).__mro__
            )
            origin = " of the package lightning, whose classes are different ones" if is_other_package else ""
            raise ParameterError(
                f"{option!r} of `trainer` must be instances of classes of pytorch_lightning, got "
                f"{type(instance).__name__}{origin}.",
                hint="Use the classes of pytorch_lightning.",
                parameter="trainer",
            )
    return instances


@contextlib.contextmanager
def preserve_process_state(options: TrainingOptions) -> Iterator[None]:
    """Restore generators, log levels, warning filters, environment and torch's settings of determinism after the block.

    Inside it Lightning is silent, gradients are enabled, and no other thread can train.
    """
    device = device_type(options.accelerator)
    cuda = device == "cuda" or torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    devices = list(range(torch.cuda.device_count())) if cuda else []
    uses_mps = device == "mps" and torch.backends.mps.is_available()
    mps_generator = torch.mps.get_rng_state() if uses_mps else None  # `fork_rng` does not support MPS
    with TRAINING_LOCK, torch.random.fork_rng(devices), warnings.catch_warnings():
        loggers = [logging.getLogger(name) for name in _LOGGERS]
        levels = [logger.level for logger in loggers]
        environment = dict(os.environ)
        deterministic = (
            torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
        )
        cudnn = torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark
        warnings.filterwarnings("ignore", module=r"pytorch_lightning|lightning_fabric")
        if options.compile:
            warnings.filterwarnings("ignore", module="torch")
        if not options.enable_progress_bar:
            for logger in loggers:
                logger.setLevel(logging.ERROR)
        try:
            with torch.inference_mode(False), torch.enable_grad():
                yield
        finally:
            if mps_generator is not None:
                torch.mps.set_rng_state(mps_generator)
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
            preserved = DDP_VARIABLES if "LOCAL_RANK" in os.environ else ()
            for name in set(LIGHTNING_VARIABLES) - {*environment, *preserved}:
                os.environ.pop(name, None)
            torch.use_deterministic_algorithms(deterministic[0], warn_only=deterministic[1])
            torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = cudnn


@contextlib.contextmanager
def stop_on_interrupt(training_monitor: TrainingMonitor) -> Iterator[None]:
    """Make Ctrl-C end the run after the current step, with the weights learned so far.

    A second Ctrl-C ends it at once, and so does the first in a run that is one of several (e.g. of
    a backtest). Outside the main thread, or if Ctrl-C is ignored, nothing is changed.
    """
    previous_handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or previous_handler in (
        None,
        signal.SIG_IGN,
    ):
        yield
        return

    def stop(_: int, __: Any) -> None:
        if training_monitor.interrupted or not training_monitor.monitor.is_outermost:
            raise Interrupted
        training_monitor.interrupted = True

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    except Interrupted:
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGINT, previous_handler)
