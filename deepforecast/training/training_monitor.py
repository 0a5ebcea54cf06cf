"""Monitoring of a training run: record, divergence, validation, checkpoints and early stopping."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from deepforecast.core.monitor import Monitor
from deepforecast.errors import TrainingError, TrainingWarning, warn
from deepforecast.nn.network import ForecastNetwork
from deepforecast.training.checkpoints import Checkpoints
from deepforecast.training.options import TrainingOptions, schedule_factor
from deepforecast.training.sampler import ValidationWindows
from deepforecast.training.weights import (
    ModelAverage,
    Weights,
    restore_snapshot,
    take_snapshot,
    validation_loss,
)

CHECK_EVERY = 10  # steps between checks of the losses, which synchronise with the device
MAX_RETRIES = 5  # restarts from the same weights
RECOVERY_STEPS = 50  # steps within which losses must become finite again
DIVERGED_FACTOR = 10.0  # a loss this many times that of the untrained network has diverged
REMEDY = (
    "Set a smaller `learning_rate` or another `scaler`, or look for extreme values in the data."
)


@dataclass
class TrainingRecord:
    """Loss, learning rate, gradient norm and time of each step, and the validation losses by step."""

    loss: list[float] = field(default_factory=list)
    rate: list[float] = field(default_factory=list)
    norm: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    validation: dict[int, float] = field(default_factory=dict)
    best_step: int = 0
    stop_reason: str = ""


class TrainingMonitor:
    """Monitors a training run and decides when it ends.

    Every `CHECK_EVERY` steps the losses are checked: if they are finite and not above
    `DIVERGED_FACTOR` times that of the untrained network, the weights are saved; otherwise the last
    saved weights are restored and the learning rate is halved. It also validates and writes
    checkpoints. All decisions depend on the step number only, so that a resumed run takes the same
    ones.

    Parameters
    ----------
    network : ForecastNetwork
    options : TrainingOptions
    monitor : Monitor
    checkpoints : Checkpoints, optional
    validation : ValidationWindows, optional
    """

    def __init__(
        self,
        network: ForecastNetwork,
        options: TrainingOptions,
        monitor: Monitor,
        checkpoints: Checkpoints | None = None,
        validation: ValidationWindows | None = None,
    ) -> None:
        self.network, self.options, self.monitor = network, options, monitor
        self.checkpoints, self.validation = checkpoints, validation
        self.step = 0 if checkpoints is None else checkpoints.step
        self.record, self.interrupted = TrainingRecord(), False
        self.lr_damping, self.retries, self.checks_without_improvement = 1.0, 0, 0
        self.best: tuple[float, Weights] | None = None
        self.weight_average: ModelAverage | None = None
        self.gradient_norm: Tensor | None = None
        self.optimizer: Any = None
        self._context: Callable[[], Any] = contextlib.nullcontext
        self._step_loss: Tensor | None = None
        self._losses: list[Tensor] = []
        self._norms: list[Tensor] = []
        self._rate = 0.0
        self._good_snapshot: Any = None
        self.good_step = self.step
        self.steps_undone = 0
        self._start_time = time.monotonic()

    def start(
        self, optimizer: torch.optim.Optimizer, context: Callable[[], Any] = contextlib.nullcontext
    ) -> None:
        """Start from the current weights or the last checkpoint; `context` is that of a forward
        pass (mixed precision).
        """
        self.optimizer, self._context = optimizer, context
        if self.options.ema_decay:
            self.weight_average = ModelAverage.from_network(self.network, self.options.ema_decay)
        if self.checkpoints is not None:
            self.checkpoints.restore(self)
        self._good_snapshot = take_snapshot(self.network, optimizer, self.weight_average)
        self._start_time = time.monotonic() - (
            self.record.seconds[-1] if self.record.seconds else 0.0
        )

    def learning_rate(self) -> float:
        """Return the learning rate of the next step."""
        self._rate = (
            self.options.learning_rate * self.lr_damping * schedule_factor(self.options, self.step)
        )
        return self._rate

    def record_loss(self, loss: Tensor) -> None:
        """Add the loss of a batch; a step sums those of its batches."""
        self._step_loss = (
            loss.detach() if self._step_loss is None else self._step_loss + loss.detach()
        )

    def finish_step(self) -> bool:
        """Record a step and return whether it was the last."""
        options, record = self.options, self.record
        if self._step_loss is not None and self.gradient_norm is not None:
            self._losses.append(self._step_loss)
            self._norms.append(self.gradient_norm)
        self._step_loss = None
        record.rate.append(self._rate)
        record.seconds.append(time.monotonic() - self._start_time)
        self.step += 1
        if self.weight_average is not None:
            self.weight_average.update(self.network, self.step)
        last = self.step >= options.max_steps
        checks = last or self.step % CHECK_EVERY == 0
        if checks:
            self._check_losses()
        if self.validation is not None and (last or self.step % options.validate_every == 0):
            self._validate(self.validation)
        if (
            self.checkpoints is not None
            and checks
            and (last or self.step % options.checkpoint_every < CHECK_EVERY)
        ):
            self.checkpoints.write(self)
        record.stop_reason = record.stop_reason or self._stop_reason()
        return last or bool(record.stop_reason)

    def finish(self) -> TrainingRecord:
        """Give the network its final weights (the best on validation, the average, or the last) and
        return the record.
        """
        if self._losses:
            self._check_losses()
        if not self.interrupted and (not self._finite_since(self.good_step) or not self.good_step):
            raise self._divergence()
        self._warn_of_undone_steps()
        if self.best is not None:
            self.network.load_state_dict(self.best[1])
        else:
            self.record.best_step = self.good_step
            if self.weight_average is not None:
                self.weight_average.copy_to(self.network)
        done = "all steps done" if self.step >= self.options.max_steps else "a callback stopped it"
        self.record.stop_reason = self.record.stop_reason or done
        return self.record

    def _stop_reason(self) -> str:
        limit = self.options.time_limit
        if self.interrupted:
            return "interrupted"
        if limit is not None and self.record.seconds[-1] >= limit:
            return "time was up"
        return "stopped by the caller" if self.monitor.should_stop else ""

    def _check_losses(self) -> None:
        losses, norms = torch.stack(self._losses).tolist(), torch.stack(self._norms).tolist()
        self._losses, self._norms = [], []
        self.record.loss += losses
        self.record.norm += norms
        first, recent = self.record.loss[0], sum(losses) / len(losses)
        finite = self._finite_since(self.step - len(losses))
        if finite and recent - first <= (DIVERGED_FACTOR - 1) * max(abs(first), 1.0):
            self._good_snapshot = take_snapshot(self.network, self.optimizer, self.weight_average)
            self.good_step = self.step
            self.retries = 0
            if self.validation is None:
                self.monitor.report(recent, self.step, self.options.max_steps)
            return
        self.retries += 1
        self.steps_undone += len(losses)
        if not math.isfinite(first):
            raise TrainingError(
                f"The loss must be finite before the first step, got {first:g}. Set another "
                "`scaler`, or look for extreme values in the data."
            )
        past_recovery = self.step - self.good_step >= RECOVERY_STEPS
        if self.retries > MAX_RETRIES or (past_recovery and not self._finite_since(self.good_step)):
            raise self._divergence()
        self.lr_damping /= 2
        restore_snapshot(self._good_snapshot, self.network, self.optimizer, self.weight_average)

    def _finite_since(self, step: int) -> bool:
        return all(map(math.isfinite, (*self.record.loss[step:], *self.record.norm[step:])))

    def _divergence(self) -> TrainingError:
        losses = self.record.loss
        finite = map(math.isfinite, map(sum, zip(losses, self.record.norm, strict=True)))
        diverged_steps = [
            step
            for step, is_finite in enumerate(finite, 1)
            if not is_finite and step > self.good_step
        ]
        if diverged_steps:
            steps = "at" if diverged_steps[0] == self.step else f"from step {diverged_steps[0]} to"
            rule = (
                "The loss and its gradients must be finite, got nan or inf "
                f"{steps} step {self.step}"
            )
        else:
            rule = (
                f"The loss must not grow to {DIVERGED_FACTOR:g} times that of the untrained network, got "
                f"{losses[-1]:g} after {losses[0]:g} at step {self.step}"
            )
        was_retried = self.retries > 1  # steps were made from earlier weights
        retried = "; earlier weights and lower learning rates did not help" if was_retried else ""
        return TrainingError(f"{rule} of {self.options.max_steps}{retried}. {REMEDY}")

    def _warn_of_undone_steps(self) -> None:
        if self.steps_undone:
            warn(
                f"{self.steps_undone} of {self.step} training steps were undone, as the loss or its "
                f"gradients were not finite or the loss was {DIVERGED_FACTOR:g} times that of the untrained "
                "network; training went on from earlier weights at "
                f"{self.lr_damping:g} times the learning rate. {REMEDY}",
                TrainingWarning,
            )

    def _validate(self, validation: ValidationWindows) -> None:
        weights_context = (
            self.weight_average.applied(self.network)
            if self.weight_average is not None
            else contextlib.nullcontext()
        )
        with weights_context:
            value = validation_loss(self.network, validation, self._context)
            self.record.validation[self.step] = value
            if not math.isfinite(value):
                return  # the next check restores earlier weights
            self.checks_without_improvement += 1
            if self.best is None or value < self.best[0]:
                self.best, self.checks_without_improvement, self.record.best_step = (
                    (value, self._weights()),
                    0,
                    self.step,
                )
        self.monitor.report(value, self.step, self.options.max_steps)
        if (
            self.options.patience is not None
            and self.checks_without_improvement >= self.options.patience
        ):
            self.record.stop_reason = "no better on validation"

    def _weights(self) -> Weights:
        return {name: value.detach().clone() for name, value in self.network.state_dict().items()}
