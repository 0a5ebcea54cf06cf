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
    needs_history: ClassVar[bool] = True  # whether a window must have an observed value
    uses_series_id: ClassVar[bool] = False  # whether `Inputs` must have `static_codes` and `level`

    def penalty(self) -> Tensor | None:
        """Return a regularisation term that is added to the training loss, or None."""
        return None

    @abstractmethod
    def features(self, inputs: Inputs) -> Tensor:
        """Return the raw output for the head, (batch, horizon, out_features)."""


class AutoregressiveBody(nn.Module, ABC):
    """A body that computes one step after the other from the previous value.

    If N sample paths continue each window, the first `shared_state` tensors of the state are shared
    by the paths of a window and have shape (batch, ...). All others have shape (batch * N, ...), the
    paths of a window next to each other.
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
        self, state: State, previous: Tensor, future: Tensor, step_index: int
    ) -> tuple[Tensor, State]:
        """Compute the next step.

        Parameters
        ----------
        state : State
        previous : Tensor of shape (batch * N,)
            Scaled value of the step before.
        future : Tensor of shape (batch * N, future_features)
            Future features of the step.
        step_index : int
            Index of the step, from 0.

        Returns
        -------
        raw : Tensor of shape (batch * N, out_features)
            Raw output for the head.
        state : State
            The state after the step.
        """

    def forward_teacher_forced(self, inputs: Inputs, previous: Tensor) -> Tensor:
        """Compute all steps given the values before them: (batch, horizon) -> (batch, horizon,
        out_features).

        This one calls `step` in a loop; subclasses override it if a parallel pass gives the same
        result.
        """
        state = self.initial_state(inputs)
        future = inputs.future_features
        raw_steps: list[Tensor] = []
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

    kind: str  # "cross": from the horizon to the window; "self": within the window or the horizon
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


def repeat_paths(state: State, n_shared: int, n_paths: int) -> State:
    """Return a state from which `n_paths` paths continue each window; the first `n_shared` tensors
    are not repeated.
    """
    return state[:n_shared] + tuple(tensor.repeat_interleave(n_paths, 0) for tensor in state[n_shared:])


def select_paths(state: State, n_shared: int, parent: Tensor) -> State:
    """Return the state of the paths with index `parent` (batch * N,); the first `n_shared` tensors
    are unchanged.
    """
    return state[:n_shared] + tuple(tensor.index_select(0, parent) for tensor in state[n_shared:])


def stack_steps(steps: list[Tensor]) -> Tensor:
    """Stack steps (batch, out_features) to (batch, steps, out_features)."""
    import torch

    return torch.stack(steps, dim=1)
