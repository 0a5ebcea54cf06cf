"""Stepwise bodies, run: taught by the true values, fed their own medians, or fed draws from what they said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from deepforecast.nn.batch import Inputs
from deepforecast.nn.body import paths, stacked
from deepforecast.nn.scaling import Scale, last_seen

if TYPE_CHECKING:
    from deepforecast.nn.network import ForecastNetwork

Sharpness = tuple[float, float]
"""Temperature and top-p of the categorical head: see `sharpened`."""
PLAIN: Sharpness = (1.0, 1.0)


def begin(inputs: Inputs) -> Tensor:
    """The value a decoder starts from, (B,): the last one seen."""
    return last_seen(inputs.y, inputs.seen).squeeze(1)


def greedy(network: ForecastNetwork, inputs: Inputs, mean: bool = False) -> Tensor:
    """What the head reads of every step, each step fed the median (or the mean) of the one before: (B, horizon, width)."""
    state, previous, ahead, found = network.start(inputs), begin(inputs), inputs.ahead, []
    for step in range(network.sizes.horizon):
        raw, state = network.step(state, previous, ahead[:, step], step)
        previous = (network.head.mean(raw) if mean else median(network, raw)).to(previous.dtype)
        found.append(raw)
    return stacked(found)


def taught(network: ForecastNetwork, inputs: Inputs, target: Tensor, told: Tensor, share: float) -> Tensor:
    """What the head reads of every step, (B, horizon, width), with the true value before it where there is one: of all steps,
    or of a `share` of them drawn at random (scheduled sampling); else the network's own median."""
    if share >= 1.0:
        before = _carried(begin(inputs), target, told)
        raw = network.stepwise.teach(inputs, before)
        return network._placed(raw, raw)
    state, previous, ahead, found = network.start(inputs), begin(inputs), inputs.ahead, []
    true = torch.rand(target.shape, device=target.device) < share if share > 0 else torch.zeros_like(told, dtype=torch.bool)
    for step in range(target.shape[1]):
        raw, state = network.step(state, previous, ahead[:, step], step)
        found.append(raw)
        own = median(network, raw).detach().to(target.dtype)
        previous = torch.where(true[:, step] & (told[:, step] > 0), target[:, step], own)
    return stacked(found)


def sampled(
    network: ForecastNetwork, inputs: Inputs, scale: Scale, uniform: Tensor, sharpness: Sharpness = PLAIN, values: int = 0
) -> Tensor:
    """Paths drawn step by step, (B, samples, horizon), in units of z. `uniform`: a draw for each value. With `values`, behind
    them, so many of each path's distribution at each step, evenly spread: (B, samples * (1 + values), horizon)."""
    count, asked = uniform.shape[1], uniform.unsqueeze(-1)
    low, high = network.head.reach
    if values:
        asked = torch.cat([asked, (asked + torch.arange(values, device=asked.device)) / values], dim=-1)
    asked = asked.clamp(low, high)
    state = paths(network.start(inputs), network.stepwise.shared, count)
    previous, ahead = begin(inputs).repeat_interleave(count, 0), inputs.ahead.repeat_interleave(count, 0)
    spread, found = scale.spread.repeat_interleave(count, 0).squeeze(1), []
    for step in range(uniform.shape[2]):
        raw, state = network.step(state, previous, ahead[:, step], step)
        drawn = network.head.drawn(sharpened(raw, *sharpness), asked[:, :, step].flatten(0, 1), spread)
        previous = drawn[:, 0].to(previous.dtype)
        found.append(drawn)
    # (B * samples, steps, 1 + values): all paths first, then their further values
    return stacked(found).view(-1, count, len(found), 1 + values).permute(0, 3, 1, 2).flatten(1, 2)


def sharpened(raw: Tensor, temperature: float, top_p: float) -> Tensor:
    """Logarithms of weights (..., n) over a temperature: below 1 what is likely becomes likelier. Of these the fewest and
    likeliest that make up `top_p` of the probability are kept, the others become impossible. (Holtzman et al. 2020.)"""
    if temperature != 1.0:
        raw = raw / temperature
    if top_p >= 1.0:
        return raw
    values, places = raw.sort(dim=-1, descending=True, stable=True)
    chance = values.softmax(-1)
    needless = chance.cumsum(-1) - chance >= top_p  # those before it make up as much already; of the first, none are before
    return raw.masked_fill(torch.zeros_like(needless).scatter(-1, places, needless), -torch.inf)


def median(network: ForecastNetwork, raw: Tensor) -> Tensor:
    """The middle of what the head reads, or its point: (...) of (..., width)."""
    return network.head.median(raw)


def _carried(first: Tensor, target: Tensor, told: Tensor) -> Tensor:
    """The value before each step: the last one known, where the one before is missing. (B, horizon)"""
    values = torch.cat([first.unsqueeze(1), target[:, :-1]], dim=1)
    known = torch.cat([torch.ones_like(told[:, :1]), told[:, :-1]], dim=1)
    order = torch.arange(values.shape[1], device=values.device).expand_as(values)
    latest = torch.where(known > 0, order, torch.zeros_like(order)).cummax(1).values
    return values.gather(1, latest)
