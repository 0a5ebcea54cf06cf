"""From probabilities back to values, in float64: by straight lines, bisection, counting, or scipy where torch has nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

HALVINGS = 64  # of a bracket: what is left is rounding
FARTHEST = 2.0**60


def interpolated(values: Tensor, known: Tensor, p: Tensor) -> Tensor:
    """Straight lines through (known, values): values (..., K) rising, known (K,) rising, p (..., N) -> (..., N).

    Beyond the ends the outermost value.
    """
    if len(known) == 1:
        return values.expand_as(p)
    right = torch.searchsorted(known, p.contiguous()).clamp(1, len(known) - 1)
    left = right - 1
    share = ((p - known[left]) / (known[right] - known[left])).clamp(0, 1)
    low, high = values.gather(-1, left), values.gather(-1, right)
    return torch.minimum(low + share * (high - low), high)


def rising(values: Tensor, p: Tensor) -> Tensor:
    """Values (..., N) at p (..., N) that rise with p up to rounding, made to rise exactly."""
    if values.shape[-1] < 2:
        return values
    order = p.argsort(-1)
    sorted_values = values.gather(-1, order).cummax(-1).values
    return torch.empty_like(values).scatter_(-1, order, sorted_values)


def student(p: Tensor, freedom: Tensor) -> Tensor:
    """Quantiles of Student's t, both (..., N) after broadcasting; the upper tail mirrors the lower, where p is finest."""
    from scipy.special import stdtrit

    tail = torch.minimum(p, 1 - p)
    low = torch.as_tensor(stdtrit(_array(freedom), _array(tail)), dtype=p.dtype, device=p.device)
    return torch.where(p < 0.5, low, -low)


def bisected(cumulated: Callable[[Tensor], Tensor], p: Tensor, low: Tensor, high: Tensor, halvings: int = HALVINGS) -> Tensor:
    """Where a rising function equals p, between low and high, all (..., N)."""
    width = high - low
    for _ in range(halvings):
        width = width / 2
        middle = low + width
        low = torch.where(cumulated(middle) < p, middle, low)
    return low + width


Numbers = NDArray[np.float64]
Cumulated = Callable[..., Numbers]
"""Of counts (n,) and parameters (n,) each: the probability of no more."""


def least_counts(cumulated: Cumulated, p: Numbers, guess: Numbers, *parameters: Numbers) -> Numbers:
    """The least whole number from 0 on with a cumulated probability of at least p, all arrays (n,).

    Steps that double lead from the guess to a bracket, halving finds the number: a good guess saves time, no more.
    """
    guess = np.clip(np.floor(np.nan_to_num(guess)), 0, FARTHEST)
    enough = cumulated(guess, *parameters) >= p
    low, high = np.where(enough, -1.0, guess), np.where(enough, guess, np.inf)  # not enough at low, enough at high
    step, open_ = np.ones_like(guess), np.flatnonzero(np.isinf(high) | (high > 0))
    while len(open_):
        at, up = step[open_], np.isinf(high[open_])
        trial = np.where(up, np.minimum(low[open_] + at, FARTHEST), np.maximum(high[open_] - at, 0))
        fine = (cumulated(trial, *(one[open_] for one in parameters)) >= p[open_]) | (trial >= FARTHEST)
        low[open_[~fine]], high[open_[fine]] = trial[~fine], trial[fine]
        step[open_] *= 2
        going = np.where(up, ~fine, fine & (trial > 0))
        open_ = open_[going]
    return _halved(cumulated, p, low, high, parameters)


def _halved(cumulated: Cumulated, p: Numbers, low: Numbers, high: Numbers, parameters: tuple[Numbers, ...]) -> Numbers:
    open_ = np.flatnonzero(_apart(low, high))
    while len(open_):
        middle = np.floor((low[open_] + high[open_]) / 2)
        fine = cumulated(middle, *(one[open_] for one in parameters)) >= p[open_]
        low[open_[~fine]], high[open_[fine]] = middle[~fine], middle[fine]
        open_ = open_[_apart(low[open_], high[open_])]
    return high


def _apart(low: Numbers, high: Numbers) -> NDArray[np.bool_]:
    """Whether a whole number that float64 can hold lies between."""
    middle = np.floor((low + high) / 2)
    return (middle > low) & (middle < high)


def _array(values: Tensor) -> Any:
    return values.detach().cpu().numpy()
