"""Training of a network by Lightning's Trainer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

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
from deepforecast.training.checkpoints import Checkpoints
from deepforecast.training.hardware import place_on_device, precision_for, threads_for
from deepforecast.training.learning_rate_finder import find_learning_rate
from deepforecast.training.module import FitModule
from deepforecast.training.options import TrainingOptions
from deepforecast.training.sampler import GroupedSampler, ValidationWindows, WindowSampler
from deepforecast.training.trainer import (
    make_trainer,
    needs_single_steps,
    preserve_process_state,
    stop_on_interrupt,
)
from deepforecast.training.training_monitor import CHECK_EVERY, TrainingMonitor, TrainingRecord


def train(
    network: ForecastNetwork,
    sampler: WindowSampler,
    validation: ValidationWindows | None,
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
    validation : ValidationWindows, optional
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
    checkpoints = _open_checkpoints(options, run or {})
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
            message = (
                f"Training was interrupted at step {training_monitor.step} of {options.max_steps}; "
                "the network keeps the weights learned so far."
            )
            warn(message, TrainingWarning)
        return training_monitor.finish()


def _run_trainer(
    training_monitor: TrainingMonitor, sampler: WindowSampler, options: TrainingOptions
) -> None:
    """Run Lightning's Trainer; a run whose checkpoint is that of its end only restores its state."""
    grouped = not needs_single_steps(options)
    module = FitModule(training_monitor.network, options, training_monitor, grouped)
    trainer = make_trainer(options, grouped)
    device = trainer.strategy.root_device
    if training_monitor.step >= options.max_steps or (
        training_monitor.checkpoints is not None and training_monitor.checkpoints.stopped_early
    ):
        training_monitor.start(module.configure_optimizers())
        module.network.to(device)
        return
    sampler.first_step = training_monitor.step
    sampler.windows = place_on_device(sampler.windows, device)
    if training_monitor.validation is not None:
        training_monitor.validation.windows = sampler.windows
    collected_warnings: Any = {}
    try:
        # Emitted afterwards, warnings have the location of the user's call in place of Lightning's.
        with collect_warnings(collected_warnings):
            trainer.fit(module, GroupedSampler(sampler, CHECK_EVERY) if grouped else sampler)
    finally:
        module.network.to(device)  # Lightning moves it to the CPU at the end
        emit_warnings(collected_warnings)


def _open_checkpoints(options: TrainingOptions, run: Mapping[str, Any]) -> Checkpoints | None:
    """Return the checkpoints of the run, or None without `checkpoint_dir`; raise for 16-mixed precision."""
    if options.checkpoint_dir is None:
        return None
    if options.precision == "16-mixed":
        raise ParameterError(
            "`checkpoint_dir` cannot be used with precision='16-mixed', as its gradient scaler is not part of the "
            "checkpoints.",
            hint="Set precision='bf16-mixed' or '32-true', or checkpoint_dir=None.",
            parameter="checkpoint_dir",
        )
    return Checkpoints.from_folder(options.checkpoint_dir, run)
