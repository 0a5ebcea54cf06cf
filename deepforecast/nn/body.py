"""What a model puts into a network: a body that turns inputs into what the head reads, all steps at once or one by one."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn

from deepforecast.nn.batch import Inputs

State = tuple[Tensor, ...]
"""What a stepwise body carries from step to step: tensors whose first axis is the window."""


class Direct(nn.Module, ABC):
    """All steps at once."""

    @abstractmethod
    def features(self, inputs: Inputs) -> Tensor:
        """What the head reads: (B, horizon, width)."""


class Stepwise(nn.Module, ABC):
    """One step after the other, each told the value of the one before."""

    @abstractmethod
    def start(self, inputs: Inputs) -> State:
        """The state at the cutoff."""

    @abstractmethod
    def step(self, state: State, previous: Tensor, ahead: Tensor) -> tuple[Tensor, State]:
        """What the head reads of the next step, (B, width), and the state after it. `previous`: the value before, (B,), scaled;
        `ahead`: what is known of the step, (B, Sizes.ahead)."""

    def teach(self, inputs: Inputs, previous: Tensor) -> Tensor:
        """All steps with the values before them given, (B, horizon): (B, horizon, width). One pass where a body can."""
        state, found, ahead = self.start(inputs), [], inputs.ahead
        for step in range(previous.shape[1]):
            raw, state = self.step(state, previous[:, step], ahead[:, step])
            found.append(raw)
        return stacked(found)


def stacked(found: list[Tensor]) -> Tensor:
    """Steps side by side: (B, steps, width)."""
    import torch

    return torch.stack(found, dim=1)
