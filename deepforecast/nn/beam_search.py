"""Beam search: the most probable paths of a network that says how probable each of countable values is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from deepforecast.errors import ParameterError
from deepforecast.nn.batch import Inputs
from deepforecast.nn.bins import BinnedHead
from deepforecast.nn.body import DirectBody, State, select_paths
from deepforecast.nn.decoding import first_input
from deepforecast.nn.head import as_float64

if TYPE_CHECKING:
    from deepforecast.nn.network import ForecastNetwork

StepFunction = Callable[[State, Tensor, Tensor, int], tuple[Tensor, State]]


@dataclass(frozen=True)
class Beams:
    """The paths found, the most probable first. There are `width` of them, or all where there are fewer."""

    values: Tensor  # (S, width, steps) in units of z: the middles of their bins
    log_probability: Tensor  # (S, width) float64
    origin: Tensor  # (S, width) int64: the window each goes on from, among all those given


def beam_search(network: ForecastNetwork, inputs: Inputs, width: int, steps: int, initial_log_probability: Tensor | None = None) -> Beams:
    """The most probable paths of the next `steps`: at each step, of all ways to go on from the paths held, the best `width`.

    Exact where `width` is no less than the number of paths, and of any width where steps do not hang on the values before
    them (direct bodies). `initial_log_probability` (S, m): the windows are m a series, side by side, the ends of paths that are so probable
    (logarithms); without it each window stands for itself.
    """
    head = network.head
    if not isinstance(head, BinnedHead):
        raise ParameterError(f'Beam search counts paths, so it takes head="bins"; the network ends in {head.name!r}.')
    log_probability = first_input(inputs).new_zeros(len(inputs.y), 1, dtype=torch.float64) if initial_log_probability is None else initial_log_probability
    series, n_paths = log_probability.shape
    state, advance, shared = _initial_search(network, inputs)
    shared = shared if n_paths == 1 else 0  # paths that change windows take along what was the window's
    origin = torch.arange(series * n_paths, device=log_probability.device).view(series, n_paths)
    series_index, bin_centers, previous = torch.arange(series, device=log_probability.device).unsqueeze(1), head.values(), first_input(inputs)
    future, values = inputs.future_features[::n_paths], log_probability.new_zeros(series, n_paths, 0, dtype=previous.dtype)
    for step in range(steps):
        n_paths = log_probability.shape[1]
        raw, state = advance(state, previous, future[:, step].repeat_interleave(n_paths, 0), step)
        candidates = log_probability.unsqueeze(-1) + head.log_probabilities(as_float64(raw)).to(log_probability.device).view(series, n_paths, -1)
        log_probability, flat_index = candidates.flatten(1).topk(min(width, n_paths * head.n), dim=1)
        parent, code = flat_index // head.n, flat_index % head.n
        state = select_paths(state, shared, (series_index * n_paths + parent).flatten())
        previous = bin_centers[code.flatten()]
        prefixes = values.gather(1, parent.unsqueeze(-1).expand(-1, -1, step))
        values = torch.cat([prefixes, previous.view(series, -1, 1)], dim=-1)
        origin = origin.gather(1, parent)
    return Beams(values, log_probability, origin)


def _initial_search(network: ForecastNetwork, inputs: Inputs) -> tuple[State, StepFunction, int]:
    """A state, how to go on from it, and how many of its parts are shared. Of a direct body it is all that the head reads."""
    if not isinstance(network.body, DirectBody):
        return network.initial_state(inputs), network.step, network.body.shared_state

    def unrolled(state: State, previous: Tensor, future: Tensor, number: int) -> tuple[Tensor, State]:
        raw = state[0][:, number]
        return raw.repeat_interleave(previous.shape[0] // raw.shape[0], 0), state

    return (network.features(inputs),), unrolled, 1
