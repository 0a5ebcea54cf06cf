"""Callbacks that the LightningModule brings into a user's own Trainer."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor

from deepforecast.errors import TrainingError, TrainingWarning, warn
from deepforecast.training.training_monitor import CHECK_EVERY, RECOVERY_STEPS, REMEDY


class EvalOnException(pl.Callback):
    """Turn dropout off when an error ends the training."""

    def on_exception(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException
    ) -> None:
        """Of the Trainer, or a Ctrl-C."""
        pl_module.eval()


class DivergenceCheck(pl.Callback):
    """Raise `TrainingError` if the loss is not finite for `RECOVERY_STEPS` steps or at the end.

    A loss that recovered is warned of once.
    """

    def __init__(self) -> None:
        self.losses: list[Tensor] = []
        self.finite_step = 0  # the last step known to have a finite loss
        self.broken_batches = 0

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Count from the Trainer's own step, which need not be the first."""
        self.losses, self.finite_step, self.broken_batches = [], trainer.global_step, 0

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule,
        step_values: Any, batch: Any, batch_idx: int,
    ) -> None:  # fmt: skip
        """Look every `CHECK_EVERY` batches: a look waits for the device."""
        self.losses.append(step_values["loss"].detach())
        if len(self.losses) < CHECK_EVERY:
            return
        self._check_losses(trainer)
        if trainer.global_step - self.finite_step >= RECOVERY_STEPS:
            raise self._error(trainer, pl_module)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """The last loss decides whether the network may be used."""
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
