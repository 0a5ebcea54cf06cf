"""What a model puts into a network: a body that turns inputs into what the head reads, all steps at once or one by one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from deepforecast.nn.batch import Inputs

State = tuple[Tensor, ...]
"""What a stepwise body carries from step to step: tensors whose first axis is the window, or the path that goes on from it."""


class DirectBody(nn.Module, ABC):
    """All steps at once."""

    uses_history: bool = True  # whether values of the window count
    needs_history: ClassVar[bool] = True  # whether nothing can be said where none of them was seen
    uses_series_id: ClassVar[bool] = False  # whether it is given `codes` and `level`, and looks fixed categories up by itself

    def penalty(self) -> Tensor | None:
        """What is added to the loss while it is trained: what its weights are held to be."""
        return None

    @abstractmethod
    def features(self, inputs: Inputs) -> Tensor:
        """What the head reads: (B, horizon, width)."""


class AutoregressiveBody(nn.Module, ABC):
    """One step after the other, each told the value of the one before.

    The first `shared_state` parts of its state are the window's, whatever is gone on with: they stay (B, ...) while N paths go on
    from each window, and all else is (B * N, ...), the paths of a window side by side.
    """

    shared_state: ClassVar[int] = 0
    needs_history: ClassVar[bool] = True
    uses_series_id: ClassVar[bool] = False

    def penalty(self) -> Tensor | None:
        """What is added to the loss while it is trained."""
        return None

    @abstractmethod
    def initial_state(self, inputs: Inputs) -> State:
        """The state at the cutoff."""

    @abstractmethod
    def step(self, state: State, previous: Tensor, future: Tensor, number: int) -> tuple[Tensor, State]:
        """What the head reads of the next step, (B * N, width), and the state after it. `previous`: the value before, (B * N,),
        scaled; `future`: what is known of the step, (B * N, Sizes.ahead); `number`: of the step, from 0."""

    def forward_teacher_forced(self, inputs: Inputs, previous: Tensor) -> Tensor:
        """All steps with the values before them given, (B, horizon): (B, horizon, width). One pass where a body can."""
        state, raw_steps, future = self.initial_state(inputs), [], inputs.future_features
        for step in range(previous.shape[1]):
            raw, state = self.step(state, previous[:, step], future[:, step], step)
            raw_steps.append(raw)
        return stack_steps(raw_steps)


@dataclass(frozen=True)
class AttentionWeights:
    """Where a layer looked: each query's weights over the keys add up to 1.

    Rows are counted from the cutoff: 0 is the last one seen, 1 the first step ahead. A key that is a patch of rows goes by its
    last one.
    """

    kind: str  # "cross": steps ahead look at the window; "self": among themselves
    layer: int
    weights: Tensor  # (B, heads, queries, keys)
    queries: Tensor  # (queries,) int64
    keys: Tensor  # (keys,) int64


class AttentionBody(ABC):
    """A body that can say where it looked."""

    @abstractmethod
    def attention_maps(self, inputs: Inputs, previous: Tensor) -> list[AttentionWeights]:
        """The weights of every layer, all steps in one pass, with the values before them given: (B, horizon), scaled."""


def repeat_paths(state: State, shared: int, count: int) -> State:
    """A state from which `count` paths go on from each window: all but its `shared` first parts repeated."""
    return state[:shared] + tuple(tensor.repeat_interleave(count, 0) for tensor in state[shared:])


def select_paths(state: State, shared: int, parent: Tensor) -> State:
    """A state of other paths: for each the number of the one it goes on from, (B * N,). They stay with their windows."""
    return state[:shared] + tuple(tensor.index_select(0, parent) for tensor in state[shared:])


def stack_steps(steps: list[Tensor]) -> Tensor:
    """Steps side by side: (B, steps, width)."""
    import torch

    return torch.stack(steps, dim=1)
