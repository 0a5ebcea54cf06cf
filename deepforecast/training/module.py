"""LightningModule and LightningDataModule of all networks, for a fit and for a user's own Trainer."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytorch_lightning as pl
import torch
from torch import Tensor

from deepforecast.errors import TrainingError
from deepforecast.nn.batch import Batch
from deepforecast.nn.network import ForecastNetwork
from deepforecast.training.callbacks import DivergenceCheck, EvalOnException
from deepforecast.training.defaults import torch_defaults
from deepforecast.training.optimization import (
    clip_gradients,
    compile_loss,
    make_optimizer,
    seed_generators,
    to_device,
)
from deepforecast.training.options import TrainingOptions, schedule_factor, teacher_forcing_ratio
from deepforecast.training.sampler import StepGroup, WindowSampler

if TYPE_CHECKING:
    from deepforecast.training.training_monitor import TrainingMonitor

# Distances between the seeds of runs and of processes, which leave room for the numbers of batches.
SEED_STRIDE = 1_000_003
RANK_STRIDE = 1_000_000_007


class ForecastModule(pl.LightningModule):
    """LightningModule with the loss, optimizer, learning-rate schedule and gradient clipping of
    `options`.

    With a `training_monitor` (in `fit`) steps are monitored and seeded, and the monitor determines
    the learning rate and the end of training; without one it is the user's own Trainer.

    Parameters
    ----------
    network : ForecastNetwork
    options : TrainingOptions
    training_monitor : TrainingMonitor, optional
    groups_steps : bool, default False
        Whether a batch of Lightning consists of `CHECK_EVERY` steps, which saves its overhead; for a
        fit without callbacks and loggers.
    on_finished : callable, optional
        Called at the end of a user's own Trainer.
    on_diverged : callable, optional
        Called with the error when the loss has diverged.
    """

    def __init__(
        self,
        network: ForecastNetwork,
        options: TrainingOptions,
        training_monitor: TrainingMonitor | None = None,
        groups_steps: bool = False,
        on_finished: Callable[[], None] | None = None,
        on_diverged: Callable[[TrainingError], None] | None = None,
    ) -> None:
        super().__init__()
        self.network = network
        self.options = options
        self.training_monitor = training_monitor
        self.on_finished = on_finished
        self.on_diverged = on_diverged
        self.automatic_optimization = not groups_steps
        self._loss: Any = compile_loss(network.loss) if options.compile else network.loss
        self._parameters_to_train = [parameter for parameter in network.parameters() if parameter.requires_grad]
        self._sigterm_handler: Any = None
        if training_monitor is None or "logger" in options.trainer:
            self.save_hyperparameters(dict(options.hyperparameters))

    def training_step(self, batch: Batch | StepGroup, batch_index: int) -> Tensor | None:
        """Return the loss of a batch; for a group of steps, train them and return None."""
        if isinstance(batch, StepGroup):
            self._train_steps(batch)
            return None
        with torch_defaults(autocast=True):  # autocast as set by the Trainer
            loss = self._compute_loss(batch, batch_index % self.options.accumulate_grad_batches)
            if self.training_monitor is None or self.trainer.loggers or self.options.progress:
                self.log_dict({"loss": loss.detach()}, prog_bar=True, batch_size=len(batch))
        return loss

    def optimizer_step(
        self, epoch: int, batch_index: int, optimizer: Any, optimizer_closure: Any = None
    ) -> None:
        """Step with the learning rate of the schedule."""
        self._set_learning_rate(optimizer)
        optimizer.step(closure=optimizer_closure)

    def on_train_batch_end(self, step_values: Any, batch: Any, batch_index: int) -> None:
        """Report the loss to the training monitor, and stop training if it returns that it ended."""
        if self.training_monitor is None or isinstance(batch, StepGroup):
            return
        loss = step_values["loss"].detach()
        if self.trainer.world_size > 1:  # all processes must take the same decisions
            loss = self.trainer.strategy.reduce(loss.clone(), reduce_op="mean")
        self.training_monitor.record_loss(loss)
        if (batch_index + 1) % self.options.accumulate_grad_batches:
            return  # the step continues with the next batch
        ended = self.training_monitor.finish_step()
        if self.trainer.world_size > 1:
            ended = self.trainer.strategy.reduce_boolean_decision(ended, all=False)
        if ended:
            self.trainer.should_stop = True
        if (
            self.trainer.loggers
            and self.training_monitor.step in self.training_monitor.record.validation
        ):
            self.log(
                "validation", self.training_monitor.record.validation[self.training_monitor.step]
            )

    def validation_step(self, batch: Batch, _: int) -> None:
        """Log the validation loss, for the user's own Trainer."""
        with torch_defaults(autocast=True):
            self.log("validation", self.network.loss(batch), batch_size=len(batch))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return AdamW; the learning rate is set at each step."""
        return make_optimizer(self.network, self.options)

    def configure_gradient_clipping(
        self, optimizer: Any, gradient_clip_val: Any = None, gradient_clip_algorithm: Any = None
    ) -> None:
        """Clip gradients as in `options`, unless the user's own Trainer has a limit."""
        if gradient_clip_val is not None:
            self.clip_gradients(optimizer, gradient_clip_val, gradient_clip_algorithm)
            return
        norm = clip_gradients(self._parameters_to_train, self.options)
        if self.training_monitor is not None:
            self.training_monitor.gradient_norm = norm

    def _compute_loss(self, batch: Batch, batch_index: int) -> Tensor:
        """Compute the loss of a batch, with index `batch_index` in its step.

        In a fit, torch's generators are seeded for each batch. With several processes each computes
        the loss of its part of the batch.
        """
        step = (
            int(self.global_step) if self.training_monitor is None else self.training_monitor.step
        )
        rank = self.trainer.global_rank
        n_processes = self.trainer.world_size
        if self.training_monitor is not None:  # `loop` restores the caller's generators
            step_seed = (
                self.options.seed * SEED_STRIDE
                + step * self.options.accumulate_grad_batches
                + batch_index
            )
            seed_generators(step_seed + rank * RANK_STRIDE, batch.past.device)
        if n_processes > 1:  # all processes draw the same batch, and each takes a part of it
            batch = batch.select_windows(
                len(batch) * rank // n_processes, len(batch) * (rank + 1) // n_processes
            )
        loss: Tensor = self._loss(batch, teacher_forcing_ratio(self.options, step))
        return loss

    def _train_steps(self, step_group: StepGroup) -> None:
        """Train a group of steps without Lightning's loop, until the training monitor ends the run."""
        training_monitor = self.training_monitor
        optimizer = self.trainer.optimizers[0]
        parameters = self._parameters_to_train
        n_batches = self.options.accumulate_grad_batches  # per step
        if training_monitor is None:
            raise RuntimeError("A group of steps requires a training monitor.")
        for batch_index, batch in step_group:
            loss = self._compute_loss(to_device(batch, self.device), batch_index)
            loss = loss if n_batches == 1 else loss / n_batches
            if not batch_index:
                for parameter in parameters:
                    parameter.grad = None
            loss.backward()  # type: ignore[no-untyped-call]
            training_monitor.record_loss(loss)
            if batch_index + 1 == n_batches:
                training_monitor.gradient_norm = clip_gradients(parameters, self.options)
                self._set_learning_rate(optimizer)
                optimizer.step()
                if training_monitor.finish_step():
                    self.trainer.should_stop = True
                    return

    def _set_learning_rate(self, optimizer: Any) -> None:
        """Set the learning rate of the next step."""
        if self.training_monitor is not None:
            learning_rate = self.training_monitor.learning_rate()
        else:
            learning_rate = self.options.learning_rate * schedule_factor(
                self.options, int(self.global_step)
            )
        for group in optimizer.param_groups:
            group["lr"] = learning_rate

    def setup(self, stage: str) -> None:
        """Set the training mode, and store the SIGTERM handler, which Lightning replaces after this."""
        if stage == "fit":
            self.network.train()
        if threading.current_thread() is threading.main_thread():
            self._sigterm_handler = signal.getsignal(signal.SIGTERM)

    def on_train_start(self) -> None:
        """Start the training monitor and restore the SIGTERM handler.

        As files are written atomically, a run can be terminated at any time. With the user's own
        Trainer, the learning rate schedule is set to span its steps.
        """
        if self.training_monitor is not None:
            if self._sigterm_handler is not None:
                signal.signal(signal.SIGTERM, self._sigterm_handler)
            self.training_monitor.start(
                self.trainer.optimizers[0], self.trainer.precision_plugin.forward_context
            )
            if not self.trainer.is_global_zero:  # only one process writes checkpoints
                self.training_monitor.checkpoints = None
        elif math.isfinite(planned := self.trainer.estimated_stepping_batches):
            self.options = replace(self.options, max_steps=int(planned))

    def on_fit_end(self) -> None:
        """Set the evaluation mode, and call `on_finished`."""
        self.network.eval()
        if self.on_finished is not None:
            self.on_finished()

    def configure_callbacks(self) -> list[pl.Callback]:
        """Return the callbacks for the user's own Trainer, unless it has them already.

        They set the evaluation mode after an error, and raise one if the loss diverges.
        """
        callbacks: list[pl.Callback] = self.trainer.callbacks  # type: ignore[attr-defined]
        has_check = any(isinstance(callback, DivergenceCheck) for callback in callbacks)
        if has_check or self.training_monitor is not None:
            return []
        return [EvalOnException(), DivergenceCheck()]


class FitModule(ForecastModule):
    """The module of a fit, whose batches come without a LightningDataModule."""

    def transfer_batch_to_device(self, batch: Any, device: torch.device, _: int) -> Any:
        """Move a batch to the device if it is not there; steps of a group move their own batches."""
        return to_device(batch, device) if isinstance(batch, Batch) else batch


class ForecastDataModule(pl.LightningDataModule):
    """The batches of a fit for a user's own Trainer."""

    def __init__(self, train: WindowSampler, validation: Iterable[Batch] | None) -> None:
        super().__init__()
        self.train, self.validation = train, validation

    def train_dataloader(self) -> Any:
        """Return the training batches."""
        return self.train

    def val_dataloader(self) -> Any:
        """Return the validation batches, if there are any."""
        return NoBatches() if self.validation is None else self.validation


class NoBatches:
    """An iterable without batches.

    It has no length either, as Lightning warns about a length of 0.
    """

    def __iter__(self) -> Iterator[Batch]:
        return iter(())
