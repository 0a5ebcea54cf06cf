"""Weights that are kept beside those of a network in training: an average of them, and copies to go back to."""

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


@dataclass
class ModelAverage:
    """The weights as an average over the last steps, in which each counts `decay` times what the next does."""

    values: list[Tensor]
    decay: float

    @classmethod
    def from_network(cls, network: ForecastNetwork, decay: float) -> ModelAverage:
        """Of weights at the start."""
        return cls([parameter.detach().clone() for parameter in network.parameters()], decay)

    def update(self, network: ForecastNetwork, step: int) -> None:
        """After so many steps; the first ones, which know little, are forgotten faster."""
        decay = min(self.decay, (step + 1) / (step + 10))
        torch._foreach_lerp_(self.values, [parameter.detach() for parameter in network.parameters()], 1 - decay)

    def copy_to(self, network: ForecastNetwork) -> None:
        """The network gets the average."""
        with torch.no_grad():
            torch._foreach_copy_(list(network.parameters()), self.values)

    @contextlib.contextmanager
    def applied(self, network: ForecastNetwork) -> Iterator[None]:
        """The network has the average inside the block."""
        weights = [parameter.detach().clone() for parameter in network.parameters()]
        self.copy_to(network)
        try:
            yield
        finally:
            with torch.no_grad():
                torch._foreach_copy_(list(network.parameters()), weights)


def take_snapshot(network: ForecastNetwork, optimizer: torch.optim.Optimizer, average: ModelAverage | None) -> Any:
    """Copies of weights, moments and average."""
    weights = {name: value.detach().clone() for name, value in network.state_dict().items()}
    moments = [{name: _copy(value) for name, value in optimizer.state[parameter].items()} for parameter in network.parameters()]
    return weights, moments, None if average is None else [parameter.clone() for parameter in average.values]


def restore_snapshot(saved: Any, network: ForecastNetwork, optimizer: torch.optim.Optimizer, average: ModelAverage | None) -> None:
    """Back to them; they stay as they are."""
    weights, moments, means = saved
    network.load_state_dict(weights)
    optimizer.state.clear()
    for parameter, parameter_state in zip(network.parameters(), moments, strict=True):
        if parameter_state:
            optimizer.state[parameter] = {name: _copy(value) for name, value in parameter_state.items()}
    if average is not None:
        average.values = [parameter.clone() for parameter in means]


def validation_loss(network: ForecastNetwork, batches: Iterable[Batch], context: Callable[[], Any]) -> float:
    """The mean loss of windows that are not learned from."""
    device = next(network.parameters()).device
    total, count = 0.0, 0
    network.eval()
    try:
        with torch.no_grad(), context():
            for batch in batches:
                total += float(network.loss(to_device(batch, device))) * len(batch)
                count += len(batch)
    finally:
        network.train()
    return total / count


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value
