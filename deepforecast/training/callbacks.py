"""Callbacks that the LightningModule adds to a Trainer of the user."""

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
