"""The one LightningModule: it trains any ForecastNetwork, its own or in a Trainer of the user's."""

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
from deepforecast.training.options import Options, rate, taught
from deepforecast.training.sampler import Several, Steps
from deepforecast.training.stepping import clipped, compiled, moved, optimizer_for, seed

if TYPE_CHECKING:
    from deepforecast.training.guard import Guard


class Training(pl.LightningModule):
    """Loss, optimiser, schedule and clipping of a network's training, by `options`.

    With a `guard` (a fit) it is watched and every step has a seed of its own; without one (a Trainer of the user's) the Trainer
    decides, and `ended` is told when it is done, `failed` when the loss has diverged. Where nobody looks at single steps,
    `several` are made at a time: Lightning's own cost is paid once for all.
    """

    def __init__(
        self,
        network: ForecastNetwork,
        options: Options,
        guard: Guard | None = None,
        several: bool = False,
        ended: Callable[[], None] | None = None,
        failed: Callable[[TrainingError], None] | None = None,
    ) -> None:
        super().__init__()
        self.network, self.options, self.guard, self.ended = network, options, guard, ended
        self.failed = failed
        self.automatic_optimization = not several
        self._loss: Any = compiled(network.loss) if options.compile else network.loss
        self._weights = [one for one in network.parameters() if one.requires_grad]
        self._terminating: Any = None
        if guard is None or "logger" in options.trainer:
            self.save_hyperparameters(dict(options.hyperparameters))

    # -- a step ----------------------------------------------------------------------------------------------------------------

    def training_step(self, batch: Batch | Several, number: int) -> Tensor | None:
        """The loss of a batch; or some steps, one after the other."""
        if isinstance(batch, Several):
            self._steps(batch)
            return None
        with torch_defaults(autocast=True):  # that of the Trainer; in a fit the caller's is off
            loss = self._seen(batch, number % self.options.accumulate)
            if self.guard is None or self.trainer.loggers or self.options.progress:
                self.log_dict({"loss": loss.detach()}, prog_bar=True, batch_size=len(batch))
        return loss

    def optimizer_step(self, epoch: int, number: int, optimizer: Any, optimizer_closure: Any = None) -> None:
        """At the rate of the schedule."""
        self._set_rate(optimizer)
        optimizer.step(closure=optimizer_closure)

    def on_train_batch_end(self, outputs: Any, batch: Any, number: int) -> None:
        """The guard looks at what was done."""
        if self.guard is None or isinstance(batch, Several):
            return
        loss = outputs["loss"].detach()
        if self.trainer.world_size > 1:  # processes that went on by what each of them saw would not go on together
            loss = self.trainer.strategy.reduce(loss.clone(), reduce_op="mean")
        self.guard.saw(loss)
        if (number + 1) % self.options.accumulate:
            return
        ended = self.guard.stepped()
        if self.trainer.world_size > 1:
            ended = self.trainer.strategy.reduce_boolean_decision(ended, all=False)
        if ended:
            self.trainer.should_stop = True
        if self.trainer.loggers and self.guard.at in self.guard.record.validation:
            self.log("validation", self.guard.record.validation[self.guard.at])

    def validation_step(self, batch: Batch, _: int) -> None:
        """The loss of windows that are not learned from, in a Trainer of the user's."""
        with torch_defaults(autocast=True):
            self.log("validation", self.network.loss(batch), batch_size=len(batch))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """AdamW, with decay of matrices alone; the schedule is set at each step."""
        return optimizer_for(self.network, self.options)

    def configure_gradient_clipping(
        self, optimizer: Any, gradient_clip_val: Any = None, gradient_clip_algorithm: Any = None
    ) -> None:
        """By the options, unless a Trainer of the user's says otherwise."""
        if gradient_clip_val is not None:
            self.clip_gradients(optimizer, gradient_clip_val, gradient_clip_algorithm)
            return
        norm = clipped(self._weights, self.options)
        if self.guard is not None:
            self.guard.norm = norm

    def _seen(self, batch: Batch, part: int) -> Tensor:
        at = int(self.global_step) if self.guard is None else self.guard.at
        rank, processes = self.trainer.global_rank, self.trainer.world_size
        if self.guard is not None:  # whoever trains with a guard keeps the caller's generators: see `loop`
            number = self.options.seed * 1_000_003 + at * self.options.accumulate + part
            seed(number + rank * 1_000_000_007, batch.y.device)
        if processes > 1:  # each has drawn the same batch, and takes its share of it
            batch = batch.rows(len(batch) * rank // processes, len(batch) * (rank + 1) // processes)
        loss: Tensor = self._loss(batch, taught(self.options, at))
        return loss

    def _steps(self, several: Several) -> None:
        guard, optimizer, parts = self.guard, self.trainer.optimizers[0], self.options.accumulate
        weights, device = self._weights, self.device
        if guard is None:
            raise RuntimeError("several steps at a time are made in a fit only")
        for part, batch in several:
            loss = self._seen(moved(batch, device), part)
            loss = loss if parts == 1 else loss / parts
            if not part:
                for one in weights:
                    one.grad = None
            loss.backward()  # type: ignore[no-untyped-call]
            guard.saw(loss)
            if part + 1 == parts:
                guard.norm = clipped(weights, self.options)
                self._set_rate(optimizer)
                optimizer.step()
                if guard.stepped():
                    self.trainer.should_stop = True
                    return

    def _set_rate(self, optimizer: Any) -> None:
        if self.guard is not None:
            largest = self.guard.rate()
        else:
            largest = self.options.learning_rate * rate(self.options, int(self.global_step))
        for group in optimizer.param_groups:
            group["lr"] = largest

    # -- before and after ------------------------------------------------------------------------------------------------------

    def setup(self, stage: str) -> None:
        """A network that learns has its dropout on. What ends the process is remembered: Lightning is about to answer to it."""
        if stage == "fit":
            self.network.train()
        if threading.current_thread() is threading.main_thread():
            self._terminating = signal.getsignal(signal.SIGTERM)

    def on_train_start(self) -> None:
        """The guard begins, and SIGTERM means what it did: a file is whole at any moment."""
        if self.guard is not None:
            if self._terminating is not None:
                signal.signal(signal.SIGTERM, self._terminating)
            self.guard.begin(self.trainer.optimizers[0], self.trainer.precision_plugin.forward_context)
            if not self.trainer.is_global_zero:  # one of several processes writes
                self.guard.checkpoints = None
        elif math.isfinite(planned := self.trainer.estimated_stepping_batches):  # by the Trainer, whose steps count
            self.options = replace(self.options, max_steps=int(planned))

    def on_fit_end(self) -> None:
        """A trained network forecasts: no dropout any more."""
        self.network.eval()
        if self.ended is not None:
            self.ended()

    def configure_callbacks(self) -> list[pl.Callback]:
        """For a user's own Trainer: turn dropout off after an error, and raise one if the loss diverges."""
        callbacks: list[pl.Callback] = self.trainer.callbacks  # type: ignore[attr-defined]
        present = any(isinstance(one, DivergenceCheck) for one in callbacks)
        return [] if present or self.guard is not None else [EvalOnException(), DivergenceCheck()]


class FitTraining(Training):
    """A fit's module, whose batches come without a LightningDataModule."""

    def transfer_batch_to_device(self, batch: Any, device: torch.device, _: int) -> Any:
        """A batch whose windows do not live there."""
        return moved(batch, device) if isinstance(batch, Batch) else batch


class Data(pl.LightningDataModule):
    """The batches of a fit for a Trainer of the user's."""

    def __init__(self, train: Steps, validation: Iterable[Batch] | None) -> None:
        super().__init__()
        self.train, self.validation = train, validation

    def train_dataloader(self) -> Any:
        """Batches to learn from."""
        return self.train

    def val_dataloader(self) -> Any:
        """Windows held out, if any are."""
        return NoBatches() if self.validation is None else self.validation


class NoBatches:
    """No batches and no length: Lightning warns of loaders whose length is zero."""

    def __iter__(self) -> Iterator[Batch]:
        return iter(())
