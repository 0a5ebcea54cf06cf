"""Decoding of autoregressive bodies: teacher forcing, greedy decoding and ancestral sampling."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from deepforecast.nn.batch import Inputs
from deepforecast.nn.body import repeat_paths, stack_steps
from deepforecast.nn.scaling import Scale, last_observed

if TYPE_CHECKING:
    from deepforecast.nn.network import ForecastNetwork

Sampling = tuple[float, float]
"""Temperature and top-p of a categorical head, see `apply_temperature`."""
DEFAULT_SAMPLING: Sampling = (1.0, 1.0)


def first_input(inputs: Inputs) -> Tensor:
    """Return the decoder's first input, the last observed value, (batch,)."""
    return last_observed(inputs.y, inputs.observed).squeeze(1)


def decode_greedy(network: ForecastNetwork, inputs: Inputs, mean: bool = False) -> Tensor:
    """Decode with the median (or mean) of each step as the next input.

    Returns the raw output of every step, (batch, horizon, out_features).
    """
    state, previous = network.initial_state(inputs), first_input(inputs)
    future = inputs.future_features
    raw_steps: list[Tensor] = []
    for step in range(network.sizes.horizon):
        raw, state = network.step(state, previous, future[:, step], step)
        previous = (network.head.mean(raw) if mean else median(network, raw)).to(previous)
        raw_steps.append(raw)
    return stack_steps(raw_steps)


def decode_teacher_forced(
    network: ForecastNetwork, inputs: Inputs, target: Tensor, target_mask: Tensor, ratio: float
) -> Tensor:
    """Decode with the true value before each step as input, where it is observed.

    Parameters
    ----------
    network : ForecastNetwork
    inputs : Inputs
    target : Tensor of shape (batch, horizon)
        Scaled target.
    target_mask : Tensor of shape (batch, horizon)
        1 where the target is observed, else 0.
    ratio : float
        Teacher-forcing ratio. 1: all steps get the true value, and are computed in one pass. Below 1:
        each step gets it with this probability, otherwise the median that the network predicts
        (scheduled sampling, Bengio et al. 2015, arXiv:1506.03099).

    Returns
    -------
    Tensor of shape (batch, horizon, out_features)
    """
    if ratio >= 1.0:
        previous_values = _previous_values(first_input(inputs), target, target_mask)
        raw = network.autoregressive_body.forward_teacher_forced(inputs, previous_values)
        return network._restore_location(raw, raw)
    state, previous = network.initial_state(inputs), first_input(inputs)
    future = inputs.future_features
    raw_steps: list[Tensor] = []
    teacher_forced = (
        torch.rand(target.shape, device=target.device) < ratio
        if ratio > 0
        else torch.zeros_like(target_mask, dtype=torch.bool)
    )
    for step in range(target.shape[1]):
        raw, state = network.step(state, previous, future[:, step], step)
        raw_steps.append(raw)
        prediction = median(network, raw).detach().to(target.dtype)
        previous = torch.where(
            teacher_forced[:, step] & (target_mask[:, step] > 0), target[:, step], prediction
        )
    return stack_steps(raw_steps)


def decode_samples(
    network: ForecastNetwork,
    inputs: Inputs,
    scaling: Scale,
    uniform: Tensor,
    sampling: Sampling = DEFAULT_SAMPLING,
    n_values: int = 0,
) -> Tensor:
    """Draw sample paths step by step (ancestral sampling).

    Parameters
    ----------
    network : ForecastNetwork
    inputs : Inputs
    scaling : Scale
    uniform : Tensor of shape (batch, samples, horizon)
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


def apply_temperature(raw: Tensor, temperature: float, top_p: float) -> Tensor:
    """Apply temperature and nucleus (top-p) sampling to logits (..., n).

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


def median(network: ForecastNetwork, raw: Tensor) -> Tensor:
    """Return the median (or point) of the head's distribution, (..., out_features) -> (...)."""
    return network.head.median(raw)


def _previous_values(first: Tensor, target: Tensor, target_mask: Tensor) -> Tensor:
    """Return the value before each step, (batch, horizon), or the last observed one if it is missing.

    `first` (batch,) is the last observed value of the window.
    """
    values = torch.cat([first.unsqueeze(1), target[:, :-1]], dim=1)
    observed = torch.cat([torch.ones_like(target_mask[:, :1]), target_mask[:, :-1]], dim=1)
    order = torch.arange(values.shape[1], device=values.device).expand_as(values)
    last_observed = torch.where(observed > 0, order, torch.zeros_like(order)).cummax(1).values
    return values.gather(1, last_observed)
