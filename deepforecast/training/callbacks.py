"""Callbacks that the LightningModule adds to a user's own Trainer."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor

from deepforecast.errors import TrainingError, TrainingWarning, warn
from deepforecast.training.training_monitor import CHECK_EVERY, RECOVERY_STEPS, REMEDY


class EvalOnException(pl.Callback):
    """Put the network into evaluation mode when an error ends the training."""

    def on_exception(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException
    ) -> None:
        """Called by the Trainer on an error or Ctrl-C."""
        pl_module.eval()


class DivergenceCheck(pl.Callback):
    """Raise `TrainingError` if the loss is not finite for `RECOVERY_STEPS` steps or at the end.

    Losses that were not finite but recovered give one warning.
    """

    def __init__(self) -> None:
        self.losses: list[Tensor] = []
        self.finite_step = 0  # the last step known to have a finite loss
        self.broken_batches = 0

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Count from the Trainer's current step, which need not be 0."""
        self.losses, self.finite_step, self.broken_batches = [], trainer.global_step, 0

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule,
        step_values: Any, batch: Any, batch_idx: int,
    ) -> None:  # fmt: skip
        """Check the losses every `CHECK_EVERY` batches, as each check synchronises with the device."""
        self.losses.append(step_values["loss"].detach())
        if len(self.losses) < CHECK_EVERY:
            return
        self._check_losses(trainer)
        if trainer.global_step - self.finite_step >= RECOVERY_STEPS:
            raise self._error(trainer, pl_module)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Raise if the last loss is not finite, or warn of earlier ones."""
        if self.losses:
            self._check_losses(trainer)
        if trainer.global_step > self.finite_step:
            raise self._error(trainer, pl_module)
        if self.broken_batches:
            warn(
                f"The loss of {self.broken_batches} training batches was not finite up to step "
                f"{self.finite_step}; training recovered. {REMEDY}",
                TrainingWarning,
            )

    def _check_losses(self, trainer: pl.Trainer) -> None:
        losses = torch.stack(self.losses)
        if trainer.world_size > 1:  # all processes must come to the same decision
            losses = trainer.strategy.reduce(losses, reduce_op="mean")
        finite = torch.isfinite(losses).tolist()
        self.losses = []
        self.broken_batches += finite.count(False)
        if finite[-1]:
            self.finite_step = trainer.global_step

    def _error(self, trainer: pl.Trainer, training: Any) -> TrainingError:
        error = TrainingError(
            f"The loss must be finite, got nan or inf at step {trainer.global_step}; the last "
            f"check with a finite loss was at step {self.finite_step}. {REMEDY}"
        )
        if training.on_diverged is not None:
            training.on_diverged(error)
        return error
