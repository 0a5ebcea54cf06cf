"""What a model puts into a network: a body that turns inputs into what the head reads, all steps at once or one by one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from deepforecast.nn.batch import Inputs

State = tuple[Tensor, ...]
"""What a stepwise body carries from step to step: tensors whose first axis is the window, or the path that goes on from it."""


class Direct(nn.Module, ABC):
    """All steps at once."""

    looks_back: bool = True  # whether values of the window count
    rests_on_window: ClassVar[bool] = True  # whether nothing can be said where none of them was seen
    looks_up: ClassVar[bool] = False  # whether it is given `codes` and `level`, and looks fixed categories up by itself

    def penalty(self) -> Tensor | None:
        """What is added to the loss while it is trained: what its weights are held to be."""
        return None

    @abstractmethod
    def features(self, inputs: Inputs) -> Tensor:
        """What the head reads: (B, horizon, width)."""


class Stepwise(nn.Module, ABC):
    """One step after the other, each told the value of the one before.

    The first `shared` parts of its state are the window's, whatever is gone on with: they stay (B, ...) while N paths go on
    from each window, and all else is (B * N, ...), the paths of a window side by side.
    """

    shared: ClassVar[int] = 0
    rests_on_window: ClassVar[bool] = True
    looks_up: ClassVar[bool] = False

    def penalty(self) -> Tensor | None:
        """What is added to the loss while it is trained."""
        return None

    @abstractmethod
    def start(self, inputs: Inputs) -> State:
        """The state at the cutoff."""

    @abstractmethod
    def step(self, state: State, previous: Tensor, ahead: Tensor, number: int) -> tuple[Tensor, State]:
        """What the head reads of the next step, (B * N, width), and the state after it. `previous`: the value before, (B * N,),
        scaled; `ahead`: what is known of the step, (B * N, Sizes.ahead); `number`: of the step, from 0."""

    def teach(self, inputs: Inputs, previous: Tensor) -> Tensor:
        """All steps with the values before them given, (B, horizon): (B, horizon, width). One pass where a body can."""
        state, found, ahead = self.start(inputs), [], inputs.ahead
        for step in range(previous.shape[1]):
            raw, state = self.step(state, previous[:, step], ahead[:, step], step)
            found.append(raw)
        return stacked(found)


@dataclass(frozen=True)
class Attended:
    """Where a layer looked: each query's weights over the keys add up to 1.

    Rows are counted from the cutoff: 0 is the last one seen, 1 the first step ahead. A key that is a patch of rows goes by its
    last one.
    """

    kind: str  # "cross": steps ahead look at the window; "self": among themselves
    layer: int
    weights: Tensor  # (B, heads, queries, keys)
    queries: Tensor  # (queries,) int64
    keys: Tensor  # (keys,) int64


class Attending(ABC):
    """A body that can say where it looked."""

    @abstractmethod
    def attended(self, inputs: Inputs, previous: Tensor) -> list[Attended]:
        """The weights of every layer, all steps in one pass, with the values before them given: (B, horizon), scaled."""


def paths(state: State, shared: int, count: int) -> State:
    """A state from which `count` paths go on from each window: all but its `shared` first parts repeated."""
    return state[:shared] + tuple(part.repeat_interleave(count, 0) for part in state[shared:])


def chosen(state: State, shared: int, which: Tensor) -> State:
    """A state of other paths: for each the number of the one it goes on from, (B * N,). They stay with their windows."""
    return state[:shared] + tuple(part.index_select(0, which) for part in state[shared:])


def stacked(found: list[Tensor]) -> Tensor:
    """Steps side by side: (B, steps, width)."""
    import torch

    return torch.stack(found, dim=1)
