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
from deepforecast.training.stepping import moved

Weights = dict[str, Tensor]


@dataclass
class Average:
    """The weights as an average over the last steps, in which each counts `decay` times what the next does."""

    values: list[Tensor]
    decay: float

    @classmethod
    def of(cls, network: ForecastNetwork, decay: float) -> Average:
        """Of weights at the start."""
        return cls([one.detach().clone() for one in network.parameters()], decay)

    def follow(self, network: ForecastNetwork, done: int) -> None:
        """After so many steps; the first ones, which know little, are forgotten faster."""
        decay = min(self.decay, (done + 1) / (done + 10))
        torch._foreach_lerp_(self.values, [one.detach() for one in network.parameters()], 1 - decay)

    def give(self, network: ForecastNetwork) -> None:
        """The network gets the average."""
        with torch.no_grad():
            torch._foreach_copy_(list(network.parameters()), self.values)

    @contextlib.contextmanager
    def swapped(self, network: ForecastNetwork) -> Iterator[None]:
        """The network has the average inside the block."""
        own = [one.detach().clone() for one in network.parameters()]
        self.give(network)
        try:
            yield
        finally:
            with torch.no_grad():
                torch._foreach_copy_(list(network.parameters()), own)


def snapshot(network: ForecastNetwork, optimizer: torch.optim.Optimizer, average: Average | None) -> Any:
    """Copies of weights, moments and average."""
    weights = {name: value.detach().clone() for name, value in network.state_dict().items()}
    moments = [{name: _copy(value) for name, value in optimizer.state[one].items()} for one in network.parameters()]
    return weights, moments, None if average is None else [one.clone() for one in average.values]


def restored(held: Any, network: ForecastNetwork, optimizer: torch.optim.Optimizer, average: Average | None) -> None:
    """Back to them; they stay as they are."""
    weights, moments, means = held
    network.load_state_dict(weights)
    optimizer.state.clear()
    for one, found in zip(network.parameters(), moments, strict=True):
        if found:
            optimizer.state[one] = {name: _copy(value) for name, value in found.items()}
    if average is not None:
        average.values = [one.clone() for one in means]


def held_out_loss(network: ForecastNetwork, batches: Iterable[Batch], context: Callable[[], Any]) -> float:
    """The mean loss of windows that are not learned from."""
    device = next(network.parameters()).device
    total, count = 0.0, 0
    network.eval()
    try:
        with torch.no_grad(), context():
            for batch in batches:
                total += float(network.loss(moved(batch, device))) * len(batch)
                count += len(batch)
    finally:
        network.train()
    return total / count


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value
