"""Training of a network by Lightning's Trainer: its precision, threads, learning rate and callbacks."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from lightning_fabric.utilities.exceptions import MisconfigurationException

from deepforecast.core.monitor import Monitor
from deepforecast.core.threads import keep_buffers, limit_threads, torch_threads
from deepforecast.data.frames import Floats
from deepforecast.errors import (
    ParameterError,
    TrainingWarning,
    collect_warnings,
    emit_warnings,
    warn,
)
from deepforecast.nn.network import ForecastNetwork
from deepforecast.training.callbacks import SEED_STRIDE, TrainingMonitor, TrainingRecord, seed_generators
from deepforecast.training.checkpoints import Checkpoints
from deepforecast.training.module import FitModule, clip_gradients
from deepforecast.training.options import TrainingOptions
from deepforecast.training.process import device_type, preserve_process_state, stop_on_interrupt
from deepforecast.training.sampler import EvaluationWindows, WindowSampler, place_on_device

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

MIN_PARALLEL_WORK = 200_000_000
"""Multiplications per step from which more than one thread is faster."""

# Of the learning-rate range test.
RATES = np.geomspace(1e-6, 1.0, 100)
SMOOTHING = 0.9  # decay of the exponential moving average of the losses
MAX_LOSS_RATIO = 4.0  # the test stops if the loss is this many times the smallest
MIN_RATES = 11  # rates before the test may stop for this reason
RATE_DIVISOR = 10.0  # at the rate of the smallest loss divided by this, the loss is still decreasing


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
        # Restores the checkpoint.
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


def threads_for(network: ForecastNetwork, options: TrainingOptions) -> int:
    """Return the number of threads for a training step: 1 if it is small."""
    n_cell_weights = sum(
        parameter.numel()
        for layer in network.modules()
        if isinstance(layer, torch.nn.RNNBase)
        for parameter in layer.parameters()
    )
    # Weights of recurrent cells are used once per time step.
    n_multiplications = network.n_multiplications + n_cell_weights * (network.sizes.input_size - 1)
    return torch_threads() if n_multiplications * options.batch_size >= MIN_PARALLEL_WORK else 1


def precision_for(options: TrainingOptions) -> str:
    """Return the requested precision, or with a warning a similar one that the device supports."""
    requested, device = options.precision, device_type(options.accelerator)
    precision = requested
    if device == "mps":  # Lightning's mixed precision is that of CUDA there
        precision = "32-true"
    elif requested == "16-mixed" and device == "cpu":
        precision = "bf16-mixed"
    elif requested == "bf16-mixed" and not _has_bf16(device):
        precision = "32-true"
    if precision != requested:
        message = (
            f"The device {device} cannot train with precision={requested!r}; {precision!r} is used. "
            f"Set precision={precision!r} to silence this warning."
        )
        warn(message, TrainingWarning)
    return precision


def _has_bf16(device: str) -> bool:
    if device == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return torch.amp.is_autocast_available(device)


def find_learning_rate(
    network: ForecastNetwork, sampler: WindowSampler, options: TrainingOptions
) -> float:
    """Find a learning rate by training a copy of the network with rates that grow from 1e-6 to 1.

    The test stops early if the loss diverges. Its batches are not those of the run. Returns the
    rate of the smallest smoothed loss, divided by `RATE_DIVISOR`.

    References
    ----------
    Smith (2017), "Cyclical Learning Rates for Training Neural Networks", arXiv:1506.01186.
    """
    trial = deepcopy(network).train()
    options = replace(options, learning_rate=float(RATES[0]))
    optimizer = FitModule(trial, options).configure_optimizers()
    losses: list[float] = []
    for step, rate in enumerate(RATES):
        for group in optimizer.param_groups:
            group["lr"] = float(rate)
        batch = next(sampler.step_batches(sampler.stop_step + step))
        seed_generators(options.seed * SEED_STRIDE + step, batch.past.device)
        optimizer.zero_grad()
        loss = trial.loss(batch)
        loss.backward()  # type: ignore[no-untyped-call]
        clip_gradients(list(trial.parameters()), options)
        optimizer.step()
        losses.append(float(loss.detach()))
        if not math.isfinite(losses[-1]) or (
            step >= MIN_RATES and losses[-1] > MAX_LOSS_RATIO * max(min(losses), 1e-3)
        ):
            break
    return choose_rate(np.array(losses))


def choose_rate(losses: Floats) -> float:
    """Return the learning rate given the losses (n,) of the first n of `RATES`.

    The losses are smoothed by an exponential moving average with bias correction.

    Examples
    --------
    >>> choose_rate(np.concatenate([np.full(50, 1.0), np.linspace(1.0, 0.5, 20), np.linspace(0.5, 9.0, 10)])) < 1e-2
    True
    """
    mean = 0.0
    weight_sum = 0.0
    smoothed_losses: list[float] = []
    for loss in losses[np.isfinite(losses)]:
        mean = SMOOTHING * mean + (1 - SMOOTHING) * float(loss)
        weight_sum = SMOOTHING * weight_sum + (1 - SMOOTHING)
        smoothed_losses.append(mean / weight_sum)
    index = int(np.argmin(smoothed_losses)) if smoothed_losses else 0
    return float(max(RATES[index] / RATE_DIVISOR, RATES[0]))
