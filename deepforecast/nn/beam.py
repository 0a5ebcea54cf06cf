"""Beam search: the most probable paths of a network that says how probable each of countable values is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from deepforecast.errors import ParameterError
from deepforecast.nn.batch import Inputs
from deepforecast.nn.bins import Bins
from deepforecast.nn.body import Direct, State, chosen
from deepforecast.nn.decoding import begin
from deepforecast.nn.head import exact

if TYPE_CHECKING:
    from deepforecast.nn.network import ForecastNetwork

Step = Callable[[State, Tensor, Tensor, int], tuple[Tensor, State]]


@dataclass(frozen=True)
class Beams:
    """The paths found, the most probable first. There are `width` of them, or all where there are fewer."""

    values: Tensor  # (S, width, steps) in units of z: the middles of their bins
    log_probability: Tensor  # (S, width) float64
    origin: Tensor  # (S, width) int64: the window each goes on from, among all those given


def search(network: ForecastNetwork, inputs: Inputs, width: int, steps: int, before: Tensor | None = None) -> Beams:
    """The most probable paths of the next `steps`: at each step, of all ways to go on from the paths held, the best `width`.

    Exact where `width` is no less than the number of paths, and of any width where steps do not hang on the values before
    them (direct bodies). `before` (S, m): the windows are m a series, side by side, the ends of paths that are so probable
    (logarithms); without it each window stands for itself.
    """
    head = network.head
    if not isinstance(head, Bins):
        raise ParameterError(f'Beam search counts paths, so it takes head="bins"; the network ends in {head.name!r}.')
    total = begin(inputs).new_zeros(len(inputs.y), 1, dtype=torch.float64) if before is None else before
    series, held = total.shape
    state, step_on, shared = _started(network, inputs)
    shared = shared if held == 1 else 0  # paths that change windows take along what was the window's
    origin = torch.arange(series * held, device=total.device).view(series, held)
    row, middles, previous = torch.arange(series, device=total.device).unsqueeze(1), head.values(), begin(inputs)
    ahead, values = inputs.ahead[::held], total.new_zeros(series, held, 0, dtype=previous.dtype)
    for step in range(steps):
        held = total.shape[1]
        raw, state = step_on(state, previous, ahead[:, step].repeat_interleave(held, 0), step)
        ways = total.unsqueeze(-1) + head.log_probabilities(exact(raw)).to(total.device).view(series, held, -1)
        total, place = ways.flatten(1).topk(min(width, held * head.n), dim=1)
        parent, code = place // head.n, place % head.n
        state = chosen(state, shared, (row * held + parent).flatten())
        previous = middles[code.flatten()]
        known = values.gather(1, parent.unsqueeze(-1).expand(-1, -1, step))
        values = torch.cat([known, previous.view(series, -1, 1)], dim=-1)
        origin = origin.gather(1, parent)
    return Beams(values, total, origin)


def _started(network: ForecastNetwork, inputs: Inputs) -> tuple[State, Step, int]:
    """A state, how to go on from it, and how many of its parts are shared. Of a direct body it is all that the head reads."""
    if not isinstance(network.body, Direct):
        return network.start(inputs), network.step, network.body.shared

    def unrolled(state: State, previous: Tensor, ahead: Tensor, number: int) -> tuple[Tensor, State]:
        raw = state[0][:, number]
        return raw.repeat_interleave(previous.shape[0] // raw.shape[0], 0), state

    return (network.features(inputs),), unrolled, 1
