"""What watches over a training run: what each step did, the last good weights, the best ones, and when to stop."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor

from deepforecast.core.monitor import Monitor
from deepforecast.errors import TrainingError
from deepforecast.training.checkpoints import Checkpoints
from deepforecast.training.lightning import Training

LOOK = 20  # steps between two looks at what they did: a look waits for the device
RETRIES = 5
BLOWN = 10.0  # times the loss of the untrained network: no longer learning


@dataclass
class Record:
    """The run so far, a value a step."""

    loss: list[float] = field(default_factory=list)
    rate: list[float] = field(default_factory=list)
    norm: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    validation: dict[int, float] = field(default_factory=dict)
    kept: int = 0
    why: str = ""


class Guard(pl.Callback):
    """Looks every few steps: keeps good weights, goes back to them at half the rate where the loss is no number or has blown up,
    and ends the run when it is to end."""

    def __init__(self, training: Training, monitor: Monitor, checkpoints: Checkpoints | None) -> None:
        self.training, self.monitor, self.checkpoints = training, monitor, checkpoints
        self.record, self.stopped = Record(), False
        self.retries = 0
        self._losses: list[Tensor] = []
        self._norms: list[Tensor] = []
        self._good: dict[str, Any] | None = None
        self.best: tuple[float, dict[str, Tensor]] | None = None
        self.since = 0
        self.average: list[Tensor] | None = None
        self._began = time.monotonic()

    # -- during the run --------------------------------------------------------------------------------------------------------

    def on_train_start(self, trainer: pl.Trainer, _: pl.LightningModule) -> None:
        """The weights to start from are good ones."""
        if self.training.options.average:
            self.average = [one.detach().clone() for one in self.training.network.parameters()]
        if self.checkpoints is not None and self.checkpoints.found is not None:
            self.checkpoints.restore(self, trainer.optimizers[0])
        self._good = self._held(trainer)

    def on_train_batch_end(self, trainer: pl.Trainer, _: pl.LightningModule, outputs: Any, *__: Any) -> None:
        """A step was made."""
        options, done = self.training.options, self.training.at
        self._losses.append(outputs["loss"].detach())
        self._norms.append(self.training.norm if self.training.norm is not None else outputs["loss"].new_zeros(()))
        self.record.rate.append(float(trainer.optimizers[0].param_groups[0]["lr"]))
        self.record.seconds.append(time.monotonic() - self._began)
        if self.average is not None:
            share = min(options.average, (done + 1) / (done + 10))
            torch._foreach_lerp_(self.average, [one.detach() for one in self.training.network.parameters()], 1 - share)
        if len(self._losses) >= LOOK or done >= options.max_steps:
            self._look(trainer)
        late = options.time_limit is not None and self.record.seconds[-1] >= options.time_limit
        if self.stopped or self.monitor.should_stop or late:
            self.record.why = "stopped" if self.stopped else "time was up" if late else "told to stop"
            trainer.should_stop = True

    def on_validation_end(self, trainer: pl.Trainer, _: pl.LightningModule) -> None:
        """The best weights are kept; without a better one for long, the run ends."""
        if trainer.sanity_checking:
            return
        value, patience = float(trainer.callback_metrics["validation"]), self.training.options.patience
        self.record.validation[self.training.at] = value
        self.monitor.report(value, self.training.at, self.training.options.max_steps)
        if self.best is None or value < self.best[0]:
            self.best, self.since = (value, self._weights()), 0
            self.record.kept = self.training.at
        else:
            self.since += 1
        if patience is not None and self.since >= patience:
            self.record.why, trainer.should_stop = "no better on validation", True

    # -- afterwards ------------------------------------------------------------------------------------------------------------

    def finish(self) -> Record:
        """The network gets the weights to keep: the best on validation, or the average, or the last."""
        if self.best is not None:
            self.training.network.load_state_dict(self.best[1])
        else:
            self.record.kept = len(self.record.loss)
            if self.average is not None:
                for one, kept in zip(self.training.network.parameters(), self.average, strict=True):
                    one.data.copy_(kept)
        self.record.why = self.record.why or "all steps done"
        return self.record

    def _look(self, trainer: pl.Trainer) -> None:
        losses, norms = torch.stack(self._losses).tolist(), torch.stack(self._norms).tolist()
        self._losses, self._norms = [], []
        self.record.loss += losses
        self.record.norm += norms
        first = self.record.loss[0]
        recent = sum(losses) / len(losses)
        number = all(map(math.isfinite, (*losses, *norms)))
        if number and (recent - first <= (BLOWN - 1) * max(abs(first), 1.0)):
            self._good = self._held(trainer)
            if self.checkpoints is not None:
                self.checkpoints.maybe_write(self, trainer.optimizers[0])
            if not self.record.validation:
                self.monitor.report(recent, self.training.at, self.training.options.max_steps)
            return
        self.retries += 1
        if self.retries > RETRIES or not math.isfinite(first):
            seen = f"{recent:g}" if number else "not a number"
            raise TrainingError(
                f"A network's loss falls while it learns; at step {self.training.at} it is {seen}, after {first:g} untrained, and "
                f"{self.retries - 1} returns to the last good weights at half the rate did not help. Say a smaller "
                "learning_rate= or another scaler=, or look for values far from all others in the data."
            )
        self.training.damping /= 2
        self._back(trainer)

    def _weights(self) -> dict[str, Tensor]:
        network, names = self.training.network, [name for name, _ in self.training.network.named_parameters()]
        held = {name: value.detach().clone() for name, value in network.state_dict().items()}
        if self.average is not None:
            held |= {name: one.clone() for name, one in zip(names, self.average, strict=True)}
        return held

    def _held(self, trainer: pl.Trainer) -> dict[str, Any]:
        state = trainer.optimizers[0].state
        moments = {one: {name: value.clone() for name, value in held.items()} for one, held in state.items()}
        weights = {name: value.detach().clone() for name, value in self.training.network.state_dict().items()}
        average = None if self.average is None else [one.clone() for one in self.average]
        return {"weights": weights, "moments": moments, "average": average}

    def _back(self, trainer: pl.Trainer) -> None:
        good, optimizer = self._good, trainer.optimizers[0]
        if good is None:
            return
        self.training.network.load_state_dict(good["weights"])
        optimizer.state.clear()
        for one, held in good["moments"].items():
            optimizer.state[one] = {name: value.clone() for name, value in held.items()}
        if self.average is not None and good["average"] is not None:
            self.average = [one.clone() for one in good["average"]]
