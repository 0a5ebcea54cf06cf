"""Callbacks: the course of a fit (record, divergence, validation, checkpoints, early stopping), and checks of a user's Trainer."""

from __future__ import annotations

import contextlib
import math
import signal
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor

from deepforecast.core.monitor import Monitor
from deepforecast.errors import TrainingError, TrainingWarning, warn
from deepforecast.nn.batch import Batch
from deepforecast.nn.network import ForecastNetwork
from deepforecast.training.checkpoints import Checkpoints, ModelAverage, Weights, restore_snapshot, take_snapshot
from deepforecast.training.options import TrainingOptions
from deepforecast.training.sampler import EvaluationWindows, to_device

CHECK_EVERY = 10  # steps between checks of the losses, each of which synchronises with the device
MAX_RETRIES = 5  # restarts from the same weights
RECOVERY_STEPS = 50  # number of steps within which losses must become finite again
DIVERGED_FACTOR = 10.0  # a loss this many times that of the untrained network counts as diverged
# Distances between the seeds of runs and of processes, which leave room for the numbers of batches.
SEED_STRIDE = 1_000_003
RANK_STRIDE = 1_000_000_007
REMEDY = (
    "Set a smaller `learning_rate` or another `scaler`, or remove extreme values from the data."
)


@dataclass
class TrainingRecord:
    """Loss, learning rate, gradient norm and elapsed seconds of each step, and validation loss by step.

    The final weights are those after `best_step` (from 1).
    """

    loss: list[float] = field(default_factory=list)
    learning_rate: list[float] = field(default_factory=list)
    gradient_norm: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    validation_loss: dict[int, float] = field(default_factory=dict)
    best_step: int = 0
    stop_reason: str = ""


class TrainingMonitor(pl.Callback):
    """Callback of a fit: seeds and records its steps, recovers from divergence, validates, and ends the run.

    Every `CHECK_EVERY` steps the losses are checked: if they are finite and not above
    `DIVERGED_FACTOR` times that of the untrained network, a snapshot of the run is taken; otherwise
    the last snapshot is restored and the learning rate is halved. The monitor also writes
    checkpoints. When it does what depends on the number of steps only, so that a resumed run has
    the same result.

    Parameters
    ----------
    network : ForecastNetwork
    options : TrainingOptions
    monitor : Monitor
    checkpoints : Checkpoints, optional
    validation : EvaluationWindows, optional
    """

    def __init__(
        self,
        network: ForecastNetwork,
        options: TrainingOptions,
        monitor: Monitor,
        checkpoints: Checkpoints | None = None,
        validation: EvaluationWindows | None = None,
    ) -> None:
        self.network = network
        self.options = options
        self.monitor = monitor
        self.checkpoints = checkpoints
        self.validation = validation
        self.step = 0 if checkpoints is None else checkpoints.step
        self.record = TrainingRecord()
        self.interrupted = False
        self.lr_damping = 1.0  # factor of the learning rate, halved by every restart
        self.n_retries = 0  # since the last snapshot
        self.checks_without_improvement = 0
        self.best: tuple[float, Weights] | None = None  # smallest validation loss and its weights
        self.weight_average: ModelAverage | None = None
        self.optimizer: Any = None
        self.precision_plugin: Any = None  # of the Trainer; has the gradient scaler of 16-mixed
        self._step_loss: Tensor | None = None  # of the batches of the current step
        self._losses: list[Tensor] = []  # of the steps since the last check
        self._norms: list[Tensor] = []
        self._snapshot: Any = None  # of the run after `good_step`
        self.good_step = self.step  # last step at which a check found no divergence
        self.n_undone_steps = 0
        self._start_time = time.monotonic()
        # Of the caller; Lightning replaces it.
        is_main_thread = threading.current_thread() is threading.main_thread()
        self._sigterm_handler = signal.getsignal(signal.SIGTERM) if is_main_thread else None

    # -- hooks of Lightning ------------------------------------------------------------------------

    def on_train_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        """Restore the SIGTERM handler, as a run can be terminated at any time, and start."""
        if self._sigterm_handler is not None:
            signal.signal(signal.SIGTERM, self._sigterm_handler)
        self.start(trainer.optimizers[0], trainer.precision_plugin)
        pl_module.lr_damping = self.lr_damping
        if not trainer.is_global_zero:  # only one process writes checkpoints
            self.checkpoints = None

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        """Seed torch's generators by step, batch and process; `train` restores the caller's."""
        n_batches = self.options.accumulate_grad_batches
        seed = self.options.seed * SEED_STRIDE + self.step * n_batches + batch_idx % n_batches
        seed_generators(seed + trainer.global_rank * RANK_STRIDE, pl_module.device)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Record the loss of the batch and, if it is the last of its step, finish the step."""
        loss = outputs["loss"].detach()
        if trainer.world_size > 1:  # all processes must take the same decisions
            loss = trainer.strategy.reduce(loss.clone(), reduce_op="mean")
        self._step_loss = loss if self._step_loss is None else self._step_loss + loss
        if (batch_idx + 1) % self.options.accumulate_grad_batches:
            return  # the step continues with the next batch
        ended = self.finish_step(pl_module.gradient_norm, trainer.optimizers[0].param_groups[0]["lr"])
        pl_module.lr_damping = self.lr_damping
        if trainer.world_size > 1:
            ended = trainer.strategy.reduce_boolean_decision(ended, all=False)
        if ended:
            trainer.should_stop = True
        if pl_module.logs_loss and self.step in self.record.validation_loss:
            validation_loss = self.record.validation_loss[self.step]
            pl_module.log("validation", validation_loss, logger=False)  # for callbacks; loggers would miss most
            for logger in trainer.loggers:
                logger.log_metrics({"validation": validation_loss}, self.options.steps_before + self.step - 1)

    # -- the run -----------------------------------------------------------------------------------

    def start(self, optimizer: torch.optim.Optimizer, precision_plugin: Any) -> None:
        """Start from the current weights or the last checkpoint."""
        self.optimizer, self.precision_plugin = optimizer, precision_plugin
        if self.options.ema_decay:
            self.weight_average = ModelAverage.from_network(self.network, self.options.ema_decay)
        if self.checkpoints is not None:
            self.checkpoints.restore(self)
        self._snapshot = take_snapshot(self.network, optimizer, self.weight_average)
        seconds_before = self.record.seconds[-1] if self.record.seconds else 0.0
        self._start_time = time.monotonic() - seconds_before

    def finish_step(self, gradient_norm: Tensor, learning_rate: float) -> bool:
        """Record a step, and return whether the run ends after it.

        At some steps the losses are checked, the network is validated and a checkpoint is written.
        """
        options, record = self.options, self.record
        if self._step_loss is not None:
            self._losses.append(self._step_loss)
            self._norms.append(gradient_norm)
        self._step_loss = None
        record.learning_rate.append(learning_rate)
        record.seconds.append(time.monotonic() - self._start_time)
        self.step += 1
        if self.weight_average is not None:
            self.weight_average.update(self.network, self.step)
        is_last = self.step >= options.max_steps
        has_check = is_last or self.step % CHECK_EVERY == 0
        if has_check:
            self._record_and_recover()
        if self.validation is not None and (is_last or self.step % options.validate_every == 0):
            self._validate(self.validation)
        # At the first check after every `checkpoint_every` steps.
        writes_checkpoint = is_last or self.step % options.checkpoint_every < CHECK_EVERY
        if self.checkpoints is not None and has_check and writes_checkpoint:
            self.checkpoints.write(self)
        if not record.stop_reason:
            if self.interrupted:
                record.stop_reason = "interrupted"
            elif options.time_limit is not None and record.seconds[-1] >= options.time_limit:
                record.stop_reason = "time limit reached"
            elif self.monitor.should_stop:
                record.stop_reason = "stopped by the caller"
        return is_last or bool(record.stop_reason)

    def finish(self) -> TrainingRecord:
        """Load the final weights into the network (the best on validation, the moving average, or
        the last ones) and return the record.

        Raises `TrainingError` if the loss has diverged at the end; warns if steps were undone.
        """
        if self._losses:
            self._record_and_recover()
        if not self.record.loss:
            raise TrainingError(
                "The training must have at least one step, got none.",
                hint="Check `callbacks` and `limit_train_batches` of `trainer`, and `time_limit`.",
            )
        if not self.interrupted and (not self._is_finite_since(self.good_step) or not self.good_step):
            raise self._divergence_error()
        if self.n_undone_steps:
            warn(
                f"{self.n_undone_steps} of {self.step} training steps were undone, as the loss or its "
                f"gradients were not finite or the loss was {DIVERGED_FACTOR:g} times that of the untrained "
                "network; training continued from earlier weights with "
                f"{self.lr_damping:g} times the learning rate. {REMEDY}",
                TrainingWarning,
            )
        if self.best is not None:
            self.network.load_state_dict(self.best[1])
        else:
            self.record.best_step = self.good_step
            if self.weight_average is not None:
                self.weight_average.copy_to(self.network)
        reason = "all steps done" if self.step >= self.options.max_steps else "stopped by the Trainer or a callback"
        self.record.stop_reason = self.record.stop_reason or reason
        return self.record

    def _record_and_recover(self) -> None:
        """Record the losses since the last check, and take a snapshot or restore the last one.

        Raises `TrainingError` if the run cannot recover.
        """
        losses = torch.stack(self._losses).tolist()
        norms = torch.stack(self._norms).tolist()
        self._losses = []
        self._norms = []
        self.record.loss += losses
        self.record.gradient_norm += norms
        initial_loss = self.record.loss[0]
        recent_loss = sum(losses) / len(losses)
        is_finite = self._is_finite_since(self.step - len(losses))
        # A loss can be negative or about 0, hence the difference, and at least 1 as reference.
        if is_finite and recent_loss - initial_loss <= (DIVERGED_FACTOR - 1) * max(abs(initial_loss), 1.0):
            self._snapshot = take_snapshot(self.network, self.optimizer, self.weight_average)
            self.good_step = self.step
            self.n_retries = 0
            if self.validation is None:
                self.monitor.report(recent_loss, self.options.steps_before + self.step, self.options.total_steps)
        else:
            self._roll_back(len(losses))

    def _roll_back(self, n_steps: int) -> None:
        """Restore the last snapshot, `n_steps` steps before, and halve the learning rate.

        Raises `TrainingError` after too many attempts, if losses are still not finite
        `RECOVERY_STEPS` steps after the snapshot, and if the first loss of the run is not finite.
        """
        self.n_retries += 1
        self.n_undone_steps += n_steps
        initial_loss = self.record.loss[0]
        if not math.isfinite(initial_loss):
            raise TrainingError(
                f"The loss must be finite before the first step, got {initial_loss:g}.",
                hint="Set another "
                "`scaler`, or remove extreme values from the data."
            )
        recovery_is_over = self.step - self.good_step >= RECOVERY_STEPS
        if self.n_retries > MAX_RETRIES or (recovery_is_over and not self._is_finite_since(self.good_step)):
            raise self._divergence_error()
        self.lr_damping /= 2  # a factor of the next steps' rates, see `ForecastModule.optimizer_step`
        restore_snapshot(self._snapshot, self.network, self.optimizer, self.weight_average)

    def _is_finite_since(self, step: int) -> bool:
        """Return whether all recorded losses and gradient norms after this step are finite."""
        return all(map(math.isfinite, (*self.record.loss[step:], *self.record.gradient_norm[step:])))

    def _divergence_error(self) -> TrainingError:
        """Return the error for losses that are not finite, or else too large."""
        losses = self.record.loss
        finite = map(math.isfinite, map(sum, zip(losses, self.record.gradient_norm, strict=True)))
        nonfinite_steps = [
            step
            for step, is_finite in enumerate(finite, 1)
            if not is_finite and step > self.good_step
        ]
        before = self.options.steps_before
        if nonfinite_steps:
            steps = "at" if nonfinite_steps[0] == self.step else f"from step {before + nonfinite_steps[0]} to"
            rule = (
                "The loss and its gradients must be finite, got NaN or infinity "
                f"{steps} step {before + self.step}"
            )
        else:
            rule = (
                f"The loss must not grow to {DIVERGED_FACTOR:g} times that of the untrained network, got "
                f"{losses[-1]:g} after {losses[0]:g} at step {before + self.step}"
            )
        note = "; restarts from earlier weights with lower learning rates failed" if self.n_retries > 1 else ""
        return TrainingError(f"{rule} of {self.options.total_steps}{note}.", hint=REMEDY)

    def _validate(self, validation: EvaluationWindows) -> None:
        """Compute and report the validation loss, with averaged weights if there are any.

        Stores the weights if they are the best so far, and stops the run if `patience` is exceeded.
        """
        weights_context = (
            self.weight_average.applied(self.network)
            if self.weight_average is not None
            else contextlib.nullcontext()
        )
        with weights_context:
            value = validation_loss(self.network, validation, self.precision_plugin.forward_context)
            self.record.validation_loss[self.step] = value
            if not math.isfinite(value):
                return  # the next check of the training losses restores earlier weights
            self.checks_without_improvement += 1
            if self.best is None or value < self.best[0]:
                weights = {name: tensor.detach().clone() for name, tensor in self.network.state_dict().items()}
                self.best = (value, weights)
                self.checks_without_improvement = 0
                self.record.best_step = self.step
        self.monitor.report(value, self.options.steps_before + self.step, self.options.total_steps)
        if (
            self.options.patience is not None
            and self.checks_without_improvement >= self.options.patience
        ):
            self.record.stop_reason = "no improvement on validation"


class EvalOnException(pl.Callback):
    """Put the network into evaluation mode when an error ends the training."""

    def on_exception(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException
    ) -> None:
        """Set the evaluation mode; the Trainer calls this on an error or Ctrl-C."""
        pl_module.eval()


class DivergenceCheck(pl.Callback):
    """Raise `TrainingError` if the loss is not finite for `RECOVERY_STEPS` steps or at the end.

    If losses were NaN or infinite before, there is one warning at the end.
    """

    def __init__(self) -> None:
        self.losses: list[Tensor] = []  # not yet checked
        self.finite_step = 0  # the last check at which the newest loss was finite
        self.n_nonfinite_batches = 0

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Count from the Trainer's current step, which need not be 0."""
        self.losses = []
        self.finite_step = trainer.global_step
        self.n_nonfinite_batches = 0

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule,
        step_values: Any, batch: Any, batch_idx: int,
    ) -> None:  # fmt: skip
        """Check the losses every `CHECK_EVERY` batches, as each check synchronises with the device."""
        self.losses.append(step_values["loss"].detach())
        if len(self.losses) < CHECK_EVERY:
            return
        self._count_nonfinite_losses(trainer)
        if trainer.global_step - self.finite_step >= RECOVERY_STEPS:
            raise self._divergence_error(trainer, pl_module)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Raise if the last loss is not finite, or warn of earlier ones."""
        if self.losses:
            self._count_nonfinite_losses(trainer)
        if trainer.global_step > self.finite_step:
            raise self._divergence_error(trainer, pl_module)
        if self.n_nonfinite_batches:
            warn(
                f"The loss was NaN or infinite in {self.n_nonfinite_batches} training batches; at the last "
                f"step, {self.finite_step}, it is finite. {REMEDY}",
                TrainingWarning,
            )

    def _count_nonfinite_losses(self, trainer: pl.Trainer) -> None:
        """Add the losses since the last check to the count, and update `finite_step`."""
        losses = torch.stack(self.losses)
        if trainer.world_size > 1:  # all processes must come to the same decision
            losses = trainer.strategy.reduce(losses, reduce_op="mean")
        finite = torch.isfinite(losses).tolist()
        self.losses = []
        self.n_nonfinite_batches += finite.count(False)
        if finite[-1]:
            self.finite_step = trainer.global_step

    def _divergence_error(self, trainer: pl.Trainer, module: Any) -> TrainingError:
        """Return the error, after the call of `on_diverged` of the LightningModule."""
        error = TrainingError(
            f"The loss must be finite, got NaN or infinity at step {trainer.global_step}; the last "
            f"check with a finite loss was at step {self.finite_step}.",
            hint=REMEDY
        )
        if module.on_diverged is not None:
            module.on_diverged(error)
        return error


def seed_generators(seed: int, device: torch.device) -> None:
    """Seed torch's global generators of the CPU and of the device.

    `torch.manual_seed` seeds all devices, which takes 3 ms.
    """
    torch.default_generator.manual_seed(seed % 2**63)
    if device.type in ("cuda", "mps"):
        getattr(torch, device.type).manual_seed(seed % 2**63)


def validation_loss(
    network: ForecastNetwork, batches: Iterable[Batch], context: Callable[[], Any]
) -> float:
    """Return the mean loss over the validation windows; the network is in training mode afterwards.

    `context` creates the context of the forward passes.
    """
    device = next(network.parameters()).device
    loss_sum = 0.0
    n_windows = 0
    network.eval()
    try:
        with torch.no_grad(), context():
            for batch in batches:
                loss_sum += float(network.loss(to_device(batch, device))) * len(batch)
                n_windows += len(batch)
    finally:
        network.train()
    return loss_sum / n_windows
