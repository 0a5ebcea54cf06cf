"""Base classes of network bodies, which map inputs to the features that the head reads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from deepforecast.nn.batch import Inputs

State = tuple[Tensor, ...]
"""State of an autoregressive body: tensors whose first axis is the window, or the path that
continues it.
"""


class DirectBody(nn.Module, ABC):
    """A body that computes all steps at once (direct multi-step forecasting)."""

    uses_history: bool = True  # whether the output depends on the values of the window
    needs_history: ClassVar[bool] = (
        True  # whether a window without observed values cannot be forecast
    )
    uses_series_id: ClassVar[bool] = False  # whether `Inputs` must have `static_codes` and `level`

    def penalty(self) -> Tensor | None:
        """Return a regularisation term that is added to the training loss, or None."""
        return None

    @abstractmethod
    def features(self, inputs: Inputs) -> Tensor:
        """Return what the head reads, (batch, horizon, out_features)."""


class AutoregressiveBody(nn.Module, ABC):
    """A body that computes one step after the other from the previous value.

    The first `shared_state` tensors of its state belong to the window: they stay (batch, ...) when
    N sample paths continue each window. All others have shape (batch * N, ...), the paths of a
    window side by side.
    """

    shared_state: ClassVar[int] = 0
    needs_history: ClassVar[bool] = True
    uses_series_id: ClassVar[bool] = False

    def penalty(self) -> Tensor | None:
        """Return a regularisation term that is added to the training loss, or None."""
        return None

    @abstractmethod
    def initial_state(self, inputs: Inputs) -> State:
        """Return the state at the cutoff."""

    @abstractmethod
    def step(
        self, state: State, previous: Tensor, future: Tensor, number: int
    ) -> tuple[Tensor, State]:
        """Compute the next step.

        Parameters
        ----------
        state : State
        previous : Tensor of shape (batch * N,)
            Scaled value of the step before.
        future : Tensor of shape (batch * N, future_features)
            Future features of the step.
        number : int
            Index of the step, from 0.

        Returns
        -------
        raw : Tensor of shape (batch * N, out_features)
            What the head reads.
        state : State
            The state after the step.
        """

    def forward_teacher_forced(self, inputs: Inputs, previous: Tensor) -> Tensor:
        """Compute all steps given the values before them: (batch, horizon) -> (batch, horizon,
        out_features).

        Subclasses override it where one parallel pass gives the same result.
        """
        state, raw_steps, future = self.initial_state(inputs), [], inputs.future_features
        for step in range(previous.shape[1]):
            raw, state = self.step(state, previous[:, step], future[:, step], step)
            raw_steps.append(raw)
        return stack_steps(raw_steps)


@dataclass(frozen=True)
class AttentionWeights:
    """Attention weights of one layer; those of a query sum to 1 over the keys.

    Time steps are counted from the cutoff: 0 is the last of the window, 1 the first of the horizon.
    A patch has the position of its last time step.
    """

    kind: str  # "cross": from the horizon to the window; "self": within one of them
    layer: int
    weights: Tensor  # (B, heads, queries, keys)
    queries: Tensor  # (queries,) int64
    keys: Tensor  # (keys,) int64


class AttentionBody(ABC):
    """A body that can return its attention weights."""

    @abstractmethod
    def attention_maps(self, inputs: Inputs, previous: Tensor) -> list[AttentionWeights]:
        """Return the weights of all layers, given the scaled values (batch, horizon) before each
        step.
        """


def repeat_paths(state: State, shared: int, count: int) -> State:
    """Return a state from which `count` paths continue each window; the first `shared` tensors are
    not repeated.
    """
    return state[:shared] + tuple(tensor.repeat_interleave(count, 0) for tensor in state[shared:])


def select_paths(state: State, shared: int, parent: Tensor) -> State:
    """Return the state of the paths with index `parent` (batch * N,); the first `shared` tensors
    are unchanged.
    """
    return state[:shared] + tuple(tensor.index_select(0, parent) for tensor in state[shared:])


def stack_steps(steps: list[Tensor]) -> Tensor:
    """Stack steps (batch, out_features) to (batch, steps, out_features)."""
    import torch

    return torch.stack(steps, dim=1)
