"""LightningModule and LightningDataModule of all networks, for a fit and for a user's own Trainer; the optimizer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor

from deepforecast.errors import ParameterError, TrainingError, TrainingWarning, format_list, warn
from deepforecast.nn.batch import Batch
from deepforecast.nn.network import ForecastNetwork
from deepforecast.training.callbacks import DivergenceCheck, EvalOnException, TrainingMonitor
from deepforecast.training.options import (
    TRAINER_CHOICES,
    TrainingOptions,
    schedule_factor,
    teacher_forcing_ratio,
)
from deepforecast.training.process import torch_defaults
from deepforecast.training.sampler import WindowSampler, to_device


class ForecastModule(pl.LightningModule):
    """LightningModule with the loss, optimizer, learning-rate schedule and gradient clipping of `options`.

    Parameters
    ----------
    network : ForecastNetwork
    options : TrainingOptions
    first_step : int, default 0
        Number of training steps before this run.
    logs_loss : bool, default True
        Whether to log the loss of each batch, which takes 0.3 ms.
    on_finished : callable, optional
        Called at the end of training.
    on_diverged : callable, optional
        Called with the error when the loss has diverged.
    """

    def __init__(
        self,
        network: ForecastNetwork,
        options: TrainingOptions,
        first_step: int = 0,
        logs_loss: bool = True,
        on_finished: Callable[[], None] | None = None,
        on_diverged: Callable[[TrainingError], None] | None = None,
    ) -> None:
        super().__init__()
        self.network = network
        self.options = options
        self.first_step = first_step
        self.logs_loss = logs_loss
        self.on_finished = on_finished
        self.on_diverged = on_diverged
        self.lr_damping = 1.0  # factor of the learning rate
        self.gradient_norm: Tensor | None = None  # of the last step, before clipping
        self._loss: Any = compile_loss(network.loss) if options.compile else network.loss
        parameters = dict(network.named_parameters())
        self._frozen = [(parameters[name], steps) for name, steps in options.frozen_steps.items() if name in parameters]
        self._parameters_to_train = [parameter for parameter in network.parameters() if parameter.requires_grad]
        self.save_hyperparameters(dict(options.hyperparameters), logger=not options.steps_before)

    @property
    def step(self) -> int:
        """Number of finished training steps."""
        return self.first_step + self.trainer.global_step

    def training_step(self, batch: Batch, batch_index: int) -> Tensor:
        """Return the loss of a batch; of several processes each computes that of its part of the batch."""
        n_processes, rank, share = self.trainer.world_size, self.trainer.global_rank, 1.0
        if n_processes > 1:  # all processes draw the same batch
            n_windows = len(batch)
            batch = batch.select_windows(n_windows * rank // n_processes, n_windows * (rank + 1) // n_processes)
            share = len(batch) * n_processes / n_windows  # Lightning averages gradients over the processes
        with torch_defaults(autocast=True):  # autocast as set by the Trainer
            loss: Tensor = self._loss(batch, teacher_forcing_ratio(self.options, self.step))
            loss = loss if share == 1.0 else loss * share
            if self.logs_loss:
                self.log("loss", loss.detach(), prog_bar=True, batch_size=len(batch))
                # Loggers number steps by it: those of a resumed run, or of a second part, go on.
                self.log("step", float(self.options.steps_before + self.step), batch_size=len(batch))
        return loss

    def validation_step(self, batch: Batch, _: int) -> None:
        """Log the validation loss, for the user's own Trainer."""
        with torch_defaults(autocast=True):
            self.log("validation", self.network.loss(batch), batch_size=len(batch))

    def predict_step(self, batch: Batch, _: int) -> Tensor:
        """Return the point forecasts (batch, horizon): medians if the head learns a distribution."""
        network = self.network
        with torch_defaults(autocast=True):
            raw, scaling = network(batch)
            scale = scaling.scale.expand(raw.shape[:2]).contiguous()
            if network.head.has_distribution:
                median = torch.tensor([0.5], dtype=torch.float64)
                z = network.head.quantiles(raw, median, scale)[..., 0]
            else:
                z = network.head.mean(raw, scale)
            points: Tensor = scaling.loc + scaling.scale * z.to(scaling.scale)
        return points

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101) for the parameters with gradients.

        The learning rate is set at each step. Weight decay applies to parameters with two or more axes only.
        """
        matrices = [parameter for parameter in self._parameters_to_train if parameter.ndim > 1]
        vectors = [parameter for parameter in self._parameters_to_train if parameter.ndim <= 1]
        groups = [
            {"params": matrices, "weight_decay": self.options.weight_decay},
            {"params": vectors, "weight_decay": 0.0},
        ]
        fused = self.options.precision != "16-mixed"  # the fused step would unscale gradients after clipping
        return torch.optim.AdamW(
            [group for group in groups if group["params"]],
            lr=self.options.learning_rate,
            fused=fused or None,
        )

    def optimizer_step(
        self, epoch: int, batch_index: int, optimizer: Any, optimizer_closure: Any = None
    ) -> None:
        """Step with the learning rate of the schedule."""
        factor = schedule_factor(self.options, self.step)
        for group in optimizer.param_groups:
            group["lr"] = self.options.learning_rate * self.lr_damping * factor
        optimizer.step(closure=optimizer_closure)

    def configure_gradient_clipping(
        self, optimizer: Any, gradient_clip_val: Any = None, gradient_clip_algorithm: Any = None
    ) -> None:
        """Clip gradients as in `options`, unless the user's own Trainer has a limit; parameters still frozen have none."""
        for parameter, n_steps in self._frozen:
            if self.options.steps_before + self.step < n_steps:
                parameter.grad = None  # AdamW skips it
        if gradient_clip_val is not None:
            self.clip_gradients(optimizer, gradient_clip_val, gradient_clip_algorithm)
        else:
            self.gradient_norm = clip_gradients(self._parameters_to_train, self.options)

    def setup(self, stage: str) -> None:
        """Set the training mode; raise `ParameterError` for a precision other than float32 and mixed ones."""
        precision = self.trainer.precision
        if precision not in TRAINER_CHOICES["precision"]:
            raise ParameterError(
                f"`precision` of the Trainer must be one of {format_list(TRAINER_CHOICES['precision'])}, got {precision}.",
                parameter="precision",
                value=precision,
            )
        if stage == "fit":
            self.network.train()

    def on_train_start(self) -> None:
        """Let the schedule span the steps of the Trainer; without a known end the rate is constant after the warmup."""
        n_steps = self.trainer.estimated_stepping_batches
        if n_steps in (float("inf"), -1):
            self.options = replace(self.options, lr_schedule="constant")
        else:
            self.options = replace(self.options, max_steps=self.first_step + int(n_steps))

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
        has_check = any(isinstance(callback, DivergenceCheck | TrainingMonitor) for callback in callbacks)
        return [] if has_check else [EvalOnException(), DivergenceCheck()]


class FitModule(ForecastModule):
    """The module of a fit, whose batches come without a LightningDataModule.

    With one, Lightning would warn of the hook.
    """

    def transfer_batch_to_device(self, batch: Any, device: torch.device, _: int) -> Any:
        """Move a batch to the device if it is not there, from pinned memory to CUDA."""
        return to_device(batch, device)


class ForecastDataModule(pl.LightningDataModule):
    """Batches for a user's own Trainer: for training, validation, and prediction of the last horizon."""

    def __init__(
        self, train: WindowSampler, validation: Iterable[Batch] | None, predict: Iterable[Batch]
    ) -> None:
        super().__init__()
        self.train, self.validation, self.predict = train, validation, predict

    def train_dataloader(self) -> Any:
        """Return the training batches."""
        return self.train

    def val_dataloader(self) -> Any:
        """Return the validation batches, if there are any."""
        return NoBatches() if self.validation is None else self.validation

    def predict_dataloader(self) -> Any:
        """Return the windows before the last horizon of each series, in the order of the series."""
        return self.predict


class NoBatches:
    """An iterable without batches.

    It has no length either, as Lightning warns about a length of 0.
    """

    def __iter__(self) -> Iterator[Batch]:
        return iter(())


def clip_gradients(parameters: Sequence[Tensor], options: TrainingOptions) -> Tensor:
    """Clip gradients in place by norm or by value, and return the norm before clipping.

    The result equals that of torch's `clip_grad_norm_` or `clip_grad_value_`, in a third of the time.
    """
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norm: Tensor = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    limit = options.gradient_clip_val
    if limit is not None and options.gradient_clip_algorithm == "norm":
        torch._foreach_mul_(gradients, (limit / (norm + 1e-6)).clamp(max=1.0))
    elif limit is not None:
        torch._foreach_clamp_min_(gradients, -limit)
        torch._foreach_clamp_max_(gradients, limit)
    return norm


def compile_loss(loss: Any) -> Any:
    """Return the loss compiled by `torch.compile`.

    Compilation happens in the first call. If it fails, the loss is used uncompiled, with a warning.
    """
    state: dict[str, Any] = {"loss": torch.compile(loss), "was_called": False}

    def call(*arguments: Any) -> Any:
        """Compute the loss; only the first call can fall back to the uncompiled one."""
        if state["was_called"]:
            return state["loss"](*arguments)
        state["was_called"] = True
        try:
            return state["loss"](*arguments)
        except RuntimeError as error:  # base class of the compiler's errors
            state["loss"] = loss
            value = loss(*arguments)  # an error of the loss itself is raised here
            first_line = str(error).strip().partition("\n")[0][:200]
            warn(
                f"torch cannot compile the network, which is trained uncompiled: {first_line}. Set compile=False to "
                "silence this warning.",
                TrainingWarning,
            )
            return value

    return call
