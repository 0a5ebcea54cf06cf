"""What watches over a training run: what each step did, the last good weights, the best ones, and when to stop."""

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
from deepforecast.errors import TrainingError, TrainingWarning, say
from deepforecast.nn.network import ForecastNetwork
from deepforecast.training.checkpoints import Checkpoints
from deepforecast.training.options import Options, rate
from deepforecast.training.sampler import Every
from deepforecast.training.weights import Average, Weights, held_out_loss, restored, snapshot

LOOK = 10  # steps between two looks at what they did: a look waits for the device
RETRIES = 5  # from the same weights
RECOVERY = 50  # steps after the last good ones in which losses have to be finite again
BLOWN = 10.0  # times the loss of the untrained network: no longer learning
REMEDY = (
    "Set a smaller `learning_rate` or another `scaler`, or look for extreme values in the data."
)


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


class Guard:
    """Told of every step; looks every few: keeps good weights, goes back to them at half the rate where a loss is no number or
    has blown up, validates, writes checkpoints, and says when the run is to end. All by the number of the step, so that a run
    that goes on from a checkpoint does the same at the same steps."""

    def __init__(
        self,
        network: ForecastNetwork,
        options: Options,
        monitor: Monitor,
        checkpoints: Checkpoints | None = None,
        validation: Every | None = None,
    ) -> None:
        self.network, self.options, self.monitor = network, options, monitor
        self.checkpoints, self.validation = checkpoints, validation
        self.at = 0 if checkpoints is None else checkpoints.step
        self.record, self.interrupted = Record(), False
        self.damping, self.retries, self.since = 1.0, 0, 0
        self.best: tuple[float, Weights] | None = None
        self.average: Average | None = None
        self.norm: Tensor | None = None
        self.optimizer: Any = None
        self._context: Callable[[], Any] = contextlib.nullcontext
        self._part: Tensor | None = None
        self._losses: list[Tensor] = []
        self._norms: list[Tensor] = []
        self._rate = 0.0
        self._good: Any = None
        self.good_step = self.at
        self.steps_undone = 0
        self._began = time.monotonic()

    # -- during the run --------------------------------------------------------------------------------------------------------

    def begin(self, optimizer: torch.optim.Optimizer, context: Callable[[], Any] = contextlib.nullcontext) -> None:
        """From the weights as they are, or from those of the last checkpoint. `context`: of a pass, for mixed precision."""
        self.optimizer, self._context = optimizer, context
        if self.options.average:
            self.average = Average.of(self.network, self.options.average)
        if self.checkpoints is not None:
            self.checkpoints.restore(self)
        self._good = snapshot(self.network, optimizer, self.average)
        self._began = time.monotonic() - (self.record.seconds[-1] if self.record.seconds else 0.0)

    def rate(self) -> float:
        """The learning rate of the step to come."""
        self._rate = self.options.learning_rate * self.damping * rate(self.options, self.at)
        return self._rate

    def saw(self, loss: Tensor) -> None:
        """The loss of a batch; of those that make one step, the sum."""
        self._part = loss.detach() if self._part is None else self._part + loss.detach()

    def stepped(self) -> bool:
        """A step was made: whether it was the last."""
        options, record = self.options, self.record
        if self._part is not None and self.norm is not None:
            self._losses.append(self._part)
            self._norms.append(self.norm)
        self._part = None
        record.rate.append(self._rate)
        record.seconds.append(time.monotonic() - self._began)
        self.at += 1
        if self.average is not None:
            self.average.follow(self.network, self.at)
        last = self.at >= options.max_steps
        looks = last or self.at % LOOK == 0
        if looks:
            self._look()
        if self.validation is not None and (last or self.at % options.validate_every == 0):
            self._validate(self.validation)
        if self.checkpoints is not None and looks and (last or self.at % options.checkpoint_every < LOOK):
            self.checkpoints.write(self)
        record.why = record.why or self._ended()
        return last or bool(record.why)

    def finish(self) -> Record:
        """The network gets the weights to keep: the best on validation, or the average, or the last."""
        if self._losses:
            self._look()
        if not self.interrupted and (not self._finite_since(self.good_step) or not self.good_step):
            raise self._divergence()
        self._warn_of_undone_steps()
        if self.best is not None:
            self.network.load_state_dict(self.best[1])
        else:
            self.record.kept = self.good_step
            if self.average is not None:
                self.average.give(self.network)
        done = "all steps done" if self.at >= self.options.max_steps else "a callback stopped it"
        self.record.why = self.record.why or done
        return self.record

    # -- helpers ---------------------------------------------------------------------------------------------------------------

    def _ended(self) -> str:
        limit = self.options.time_limit
        if self.interrupted:
            return "interrupted"
        if limit is not None and self.record.seconds[-1] >= limit:
            return "time was up"
        return "told to stop" if self.monitor.should_stop else ""

    def _look(self) -> None:
        losses, norms = torch.stack(self._losses).tolist(), torch.stack(self._norms).tolist()
        self._losses, self._norms = [], []
        self.record.loss += losses
        self.record.norm += norms
        first, recent = self.record.loss[0], sum(losses) / len(losses)
        finite = self._finite_since(self.at - len(losses))
        if finite and recent - first <= (BLOWN - 1) * max(abs(first), 1.0):
            self._good = snapshot(self.network, self.optimizer, self.average)
            self.good_step = self.at
            self.retries = 0
            if self.validation is None:
                self.monitor.report(recent, self.at, self.options.max_steps)
            return
        self.retries += 1
        self.steps_undone += len(losses)
        if not math.isfinite(first):
            raise TrainingError(
                f"The loss must be finite before the first step, got {first:g}. Set another "
                "`scaler`, or look for extreme values in the data."
            )
        late = self.at - self.good_step >= RECOVERY
        if self.retries > RETRIES or (late and not self._finite_since(self.good_step)):
            raise self._divergence()
        self.damping /= 2
        restored(self._good, self.network, self.optimizer, self.average)

    def _finite_since(self, step: int) -> bool:
        return all(map(math.isfinite, (*self.record.loss[step:], *self.record.norm[step:])))

    def _divergence(self) -> TrainingError:
        losses = self.record.loss
        finite = map(math.isfinite, map(sum, zip(losses, self.record.norm, strict=True)))
        broken = [
            step for step, sound in enumerate(finite, 1) if not sound and step > self.good_step
        ]
        if broken:
            steps = "at" if broken[0] == self.at else f"from step {broken[0]} to"
            rule = (
                "The loss and its gradients must be finite, got nan or inf "
                f"{steps} step {self.at}"
            )
        else:
            rule = (
                f"The loss must not grow to {BLOWN:g} times that of the untrained network, got "
                f"{losses[-1]:g} after {losses[0]:g} at step {self.at}"
            )
        tried = self.retries > 1  # steps were made from earlier weights
        retried = "; earlier weights and lower learning rates did not help" if tried else ""
        return TrainingError(f"{rule} of {self.options.max_steps}{retried}. {REMEDY}")

    def _warn_of_undone_steps(self) -> None:
        if self.steps_undone:
            say(
                f"{self.steps_undone} of {self.at} training steps were undone, as the loss or its "
                f"gradients were not finite or the loss was {BLOWN:g} times that of the untrained "
                "network; training went on from earlier weights at "
                f"{self.damping:g} times the learning rate. {REMEDY}",
                TrainingWarning,
            )

    def _validate(self, validation: Every) -> None:
        kept = self.average.swapped(self.network) if self.average is not None else contextlib.nullcontext()
        with kept:
            value = held_out_loss(self.network, validation, self._context)
            self.record.validation[self.at] = value
            if not math.isfinite(value):
                return  # the next look goes back
            self.since += 1
            if self.best is None or value < self.best[0]:
                self.best, self.since, self.record.kept = (value, self._weights()), 0, self.at
        self.monitor.report(value, self.at, self.options.max_steps)
        if self.options.patience is not None and self.since >= self.options.patience:
            self.record.why = "no better on validation"

    def _weights(self) -> Weights:
        return {name: value.detach().clone() for name, value in self.network.state_dict().items()}
