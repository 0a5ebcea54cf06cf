"""Exponential moving average of weights, snapshots of a run, and the validation loss."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from deepforecast.nn.batch import Batch
from deepforecast.nn.network import ForecastNetwork
from deepforecast.training.optimization import to_device

Weights = dict[str, Tensor]
"""A state dict: weights and buffers by name."""


@dataclass
class ModelAverage:
    """Exponential moving average of the weights (EMA).

    Parameters
    ----------
    values : list of Tensor
        The averages, in the order of `network.parameters()`.
    decay : float
        Weight of the old average in an update.
    """

    values: list[Tensor]
    decay: float

    @classmethod
    def from_network(cls, network: ForecastNetwork, decay: float) -> ModelAverage:
        """Start from the current weights."""
        return cls([parameter.detach().clone() for parameter in network.parameters()], decay)

    def update(self, network: ForecastNetwork, step: int) -> None:
        """Update the average in place after training step `step` (from 1).

        The decay is at most (step + 1) / (step + 10), so that the first steps are forgotten faster.
        """
        decay = min(self.decay, (step + 1) / (step + 10))
        torch._foreach_lerp_(
            self.values, [parameter.detach() for parameter in network.parameters()], 1 - decay
        )

    def copy_to(self, network: ForecastNetwork) -> None:
        """Copy the average to the network."""
        with torch.no_grad():
            torch._foreach_copy_(list(network.parameters()), self.values)

    @contextlib.contextmanager
    def applied(self, network: ForecastNetwork) -> Iterator[None]:
        """Replace the weights of the network by the average inside the block, and restore them after it."""
        weights = [parameter.detach().clone() for parameter in network.parameters()]
        self.copy_to(network)
        try:
            yield
        finally:
            with torch.no_grad():
                torch._foreach_copy_(list(network.parameters()), weights)


def take_snapshot(
    network: ForecastNetwork, optimizer: torch.optim.Optimizer, average: ModelAverage | None
) -> Any:
    """Return copies of weights and buffers, optimizer state and average, for `restore_snapshot`."""
    weights = {name: value.detach().clone() for name, value in network.state_dict().items()}
    moments = [
        {name: _copy(value) for name, value in optimizer.state[parameter].items()}
        for parameter in network.parameters()
    ]
    return (
        weights,
        moments,
        None if average is None else [parameter.clone() for parameter in average.values],
    )


def restore_snapshot(
    snapshot: Any,
    network: ForecastNetwork,
    optimizer: torch.optim.Optimizer,
    average: ModelAverage | None,
) -> None:
    """Restore a snapshot in place; it can be restored several times."""
    weights, moments, average_values = snapshot
    network.load_state_dict(weights)
    optimizer.state.clear()
    for parameter, parameter_state in zip(network.parameters(), moments, strict=True):
        if parameter_state:
            optimizer.state[parameter] = {
                name: _copy(value) for name, value in parameter_state.items()
            }
    if average is not None:
        average.values = [parameter.clone() for parameter in average_values]


def validation_loss(
    network: ForecastNetwork, batches: Iterable[Batch], context: Callable[[], Any]
) -> float:
    """Return the mean loss over the validation windows; the network is in training mode afterwards.

    `context` creates the context of the forward passes.
    """
    device = next(network.parameters()).device
    loss_sum = 0.0
    n_windows = 0
    network.eval()
    try:
        with torch.no_grad(), context():
            for batch in batches:
                loss_sum += float(network.loss(to_device(batch, device))) * len(batch)
                n_windows += len(batch)
    finally:
        network.train()
    return loss_sum / n_windows


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value
