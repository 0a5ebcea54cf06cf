"""The one LightningModule: it trains any ForecastNetwork, its own or in a Trainer of the user's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor

from deepforecast.nn.batch import Batch
from deepforecast.nn.network import ForecastNetwork
from deepforecast.training.options import Options, rate, taught


class Training(pl.LightningModule):
    """Loss, optimiser, schedule and clipping of a network's training, by `options`."""

    def __init__(self, network: ForecastNetwork, options: Options, begin: int = 0, seeded: bool = False) -> None:
        super().__init__()
        self.network, self.options, self.begin, self.seeded = network, options, begin, seeded
        self.damping = 1.0  # by which the rate was cut after a loss that was no number
        self.norm: Tensor | None = None
        self._step: Any = torch.compile(network.loss) if options.compile else network.loss

    @property
    def at(self) -> int:
        """The step of the whole run, from 0."""
        return self.begin + int(self.global_step)

    def training_step(self, batch: Batch, number: int) -> Tensor:
        """The loss of a batch."""
        share = taught(self.options, self.at)
        if self.seeded:  # whoever says so keeps the caller's generators: see `loop`
            _seed(self.options.seed * 1_000_003 + self.begin * self.options.accumulate + number, batch.y.device)
        loss: Tensor = self._step(batch, share)
        return loss

    def validation_step(self, batch: Batch, _: int) -> None:
        """The loss of windows that are not learned from."""
        self.log("validation", self.network.loss(batch), batch_size=len(batch))

    def configure_optimizers(self) -> dict[str, Any]:
        """AdamW, with decay of matrices alone, and the schedule by step."""
        options = self.options
        matrices = [one for one in self.network.parameters() if one.requires_grad and one.ndim > 1]
        others = [one for one in self.network.parameters() if one.requires_grad and one.ndim <= 1]
        groups = [{"params": matrices, "weight_decay": options.weight_decay}, {"params": others, "weight_decay": 0.0}]
        groups = [group for group in groups if group["params"]]
        optimizer = torch.optim.AdamW(groups, lr=options.learning_rate, fused=True)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: self.damping * rate(options, self.begin + step))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def configure_gradient_clipping(self, optimizer: Any, gradient_clip_val: Any = None, gradient_clip_algorithm: Any = None) -> None:
        """By the options, unless a Trainer of the user's says otherwise; the norm before is kept."""
        if gradient_clip_val is not None:
            self.clip_gradients(optimizer, gradient_clip_val, gradient_clip_algorithm)
            return
        if self.options.clip_value is not None:
            torch.nn.utils.clip_grad_value_(self.network.parameters(), self.options.clip_value)
        largest = torch.inf if self.options.grad_clip is None else self.options.grad_clip
        self.norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), largest)


def _seed(number: int, device: torch.device) -> None:
    """Of the CPU and of the device at hand: `torch.manual_seed` would seed all there could be, at 3 ms a call."""
    torch.default_generator.manual_seed(number % 2**63)
    if device.type in ("cuda", "mps"):
        getattr(torch, device.type).manual_seed(number % 2**63)


class Data(pl.LightningDataModule):
    """The batches of a fit for a Trainer of the user's."""

    def __init__(self, train: Iterable[Batch], validation: Iterable[Batch] | None) -> None:
        super().__init__()
        self.train, self.validation = train, validation

    def train_dataloader(self) -> Any:
        """Batches to learn from."""
        return self.train

    def val_dataloader(self) -> Any:
        """Windows held out, if any are."""
        return [] if self.validation is None else self.validation
