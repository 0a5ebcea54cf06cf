"""Decoding of autoregressive bodies by ancestral sampling and beam search; greedy decoding is in `network`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from deepforecast.errors import ParameterError
from deepforecast.nn.batch import Inputs, as_float64, place
from deepforecast.nn.heads.bins import BinnedHead
from deepforecast.nn.network import (
    DirectBody,
    ForecastNetwork,
    State,
    first_input,
    repeat_paths,
    select_paths,
    stack_steps,
)
from deepforecast.nn.scaling import Scale

if TYPE_CHECKING:
    from jaxtyping import Float, Float64, Int

Sampling = tuple[float, float]
"""Temperature and top-p of a categorical head, see `apply_temperature`."""

DEFAULT_SAMPLING: Sampling = (1.0, 1.0)

StepFunction = Callable[[State, Tensor, Tensor, int], tuple[Tensor, State]]
"""Function of state, previous value, future features and step index, as `AutoregressiveBody.step`."""


def decode_samples(
    network: ForecastNetwork,
    inputs: Inputs,
    scaling: Scale,
    uniform: Float[Tensor, "batch samples horizon"],
    sampling: Sampling = DEFAULT_SAMPLING,
    n_values: int = 0,
) -> Float[Tensor, "batch paths horizon"]:
    """Draw sample paths step by step (ancestral sampling).

    Parameters
    ----------
    network : ForecastNetwork
    inputs : Inputs
    scaling : Scale
    uniform : Tensor
        Uniform draws, one per value.
    sampling : (float, float)
        Temperature and top-p.
    n_values : int, default 0
        Number of further stratified draws from each path's distribution at each step; they are
        appended after the paths.

    Returns
    -------
    Tensor of shape (batch, samples * (1 + n_values), horizon)
        In units of z.
    """
    n_samples = uniform.shape[1]
    probabilities = uniform.unsqueeze(-1)
    if n_values:
        strata = torch.arange(n_values, device=probabilities.device)
        probabilities = torch.cat([probabilities, (probabilities + strata) / n_values], dim=-1)
    lowest, highest = network.head.probability_range
    probabilities = probabilities.clamp(lowest, highest)
    state = repeat_paths(
        network.initial_state(inputs), network.autoregressive_body.shared_state, n_samples
    )
    previous = first_input(inputs).repeat_interleave(n_samples, 0)
    future = inputs.future_features.repeat_interleave(n_samples, 0)
    scale = scaling.scale.repeat_interleave(n_samples, 0).squeeze(1)
    samples: list[Tensor] = []
    for step in range(uniform.shape[2]):
        raw, state = network.step(state, previous, future[:, step], step)
        sample = network.head.sample(
            apply_temperature(raw, *sampling), probabilities[:, :, step].flatten(0, 1), scale
        )
        previous = sample[:, 0].to(previous)
        samples.append(sample)
    # (batch * samples, steps, 1 + n_values) to (batch, (1 + n_values) * samples, steps): the paths, then
    # the further draws.
    return (
        stack_steps(samples)
        .view(-1, n_samples, len(samples), 1 + n_values)
        .permute(0, 3, 1, 2)
        .flatten(1, 2)
    )


def apply_temperature(
    raw: Float[Tensor, "*shape out_features"], temperature: float, top_p: float
) -> Float[Tensor, "*shape out_features"]:
    """Apply temperature and nucleus (top-p) sampling to logits.

    A temperature below 1 sharpens the distribution. Of the values sorted by probability, the
    smallest set with total probability `top_p` is kept; the logits of the others are set to -inf.

    References
    ----------
    Holtzman, Buys, Du, Forbes, Choi (2020), "The Curious Case of Neural Text Degeneration",
    arXiv:1904.09751.
    """
    if temperature != 1.0:
        raw = raw / temperature
    if top_p >= 1.0:
        return raw
    values, order = raw.sort(dim=-1, descending=True, stable=True)
    probability = values.softmax(-1)
    # A value is excluded if those before it reach top_p already; the first is always kept.
    excluded = probability.cumsum(-1) - probability >= top_p
    return raw.masked_fill(torch.zeros_like(excluded).scatter(-1, order, excluded), -torch.inf)


@dataclass(frozen=True)
class Beams:
    """The paths found, sorted by descending probability; at most `width` of them."""

    values: Float[Tensor, "series width steps"]  # in units of z: bin centers
    log_probability: Float64[Tensor, "series width"]
    origin: Int[Tensor, "series width"]  # index of the window that each path starts from


def beam_search(
    network: ForecastNetwork,
    inputs: Inputs,
    width: int,
    steps: int,
    initial_log_probability: Float64[Tensor, "series paths"] | None = None,
) -> Beams:
    """Find the most probable paths of the next `steps` by beam search.

    At each step the `width` most probable continuations of the current paths are kept. The result
    is exact if `width` is at least the number of possible paths, and for direct bodies, whose steps
    are independent, with any width.

    Parameters
    ----------
    network : ForecastNetwork
        Its head must be a `BinnedHead`.
    inputs : Inputs
    width : int
        Beam width.
    steps : int
        Number of steps.
    initial_log_probability : Tensor, optional
        Log-probabilities of m initial paths per series, which are continued. There is then one window
        per path, with the paths of a series next to each other. None: one window per series.

    Returns
    -------
    Beams

    Raises
    ------
    ParameterError
        If the head is not categorical.
    """
    head = network.head
    if not isinstance(head, BinnedHead):
        raise ParameterError(
            f"Beam search requires head='bins', got {head.name!r}.",
            hint="Set head='bins'."
        )
    log_probability = (
        place(torch.zeros(len(inputs.y), 1, dtype=torch.float64), inputs.y.device)
        if initial_log_probability is None
        else initial_log_probability
    )
    n_series, n_paths = log_probability.shape
    state, advance, n_shared = _initial_search(network, inputs)
    if n_paths > 1:  # each path has a window of its own, whose tensors follow the path
        n_shared = 0
    device = inputs.y.device
    origin = torch.arange(n_series * n_paths, device=device).view(n_series, n_paths)
    series_index = torch.arange(n_series, device=device).unsqueeze(1)
    bin_centers = head.values()
    previous = first_input(inputs)
    future = inputs.future_features[::n_paths]  # equal for all paths of a series
    values = previous.new_zeros(n_series, n_paths, 0)
    for step in range(steps):
        n_paths = log_probability.shape[1]
        raw, state = advance(state, previous, future[:, step].repeat_interleave(n_paths, 0), step)
        candidates = log_probability.unsqueeze(-1) + head.log_probabilities(as_float64(raw)).to(
            log_probability.device
        ).view(n_series, n_paths, -1)
        log_probability, flat_index = candidates.flatten(1).topk(
            min(width, n_paths * head.n), dim=1
        )
        flat_index = flat_index.to(device)
        parent = flat_index // head.n  # path that is continued
        code = flat_index % head.n  # bin of its next value
        state = select_paths(state, n_shared, (series_index * n_paths + parent).flatten())
        previous = bin_centers[code.flatten()]
        prefixes = values.gather(1, parent.unsqueeze(-1).expand(-1, -1, step))
        values = torch.cat([prefixes, previous.view(n_series, -1, 1)], dim=-1)
        origin = origin.gather(1, parent)
    return Beams(values, log_probability, origin)


def _initial_search(network: ForecastNetwork, inputs: Inputs) -> tuple[State, StepFunction, int]:
    """Return an initial state, a step function, and the number of tensors of the state that paths share.

    The state of a direct body is its output for all steps, from which the step function selects one.
    """
    if not isinstance(network.body, DirectBody):
        return network.initial_state(inputs), network.step, network.body.shared_state

    def select_step(
        state: State, previous: Tensor, future: Tensor, step_index: int
    ) -> tuple[Tensor, State]:
        raw = state[0][:, step_index]
        return raw.repeat_interleave(previous.shape[0] // raw.shape[0], 0), state

    return (network.features(inputs),), select_step, 1
