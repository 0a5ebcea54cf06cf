"""From probabilities back to values, in float64: by straight lines, bisection, counting, or scipy where torch has nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

MAX_BISECTIONS = 64  # of a bracket: what is left is rounding
MAX_COUNT = 2.0**60


def interpolate_quantiles(values: Tensor, knots: Tensor, p: Tensor) -> Tensor:
    """Straight lines through (known, values): values (..., K) rising, known (K,) rising, p (..., N) -> (..., N).

    Beyond the ends the outermost value.
    """
    if len(knots) == 1:
        return values.expand_as(p)
    right = torch.searchsorted(knots, p.contiguous()).clamp(1, len(knots) - 1)
    left = right - 1
    fraction = ((p - knots[left]) / (knots[right] - knots[left])).clamp(0, 1)
    low, high = values.gather(-1, left), values.gather(-1, right)
    return torch.minimum(low + fraction * (high - low), high)


def make_monotone(values: Tensor, p: Tensor) -> Tensor:
    """Values (..., N) at p (..., N) that rise with p up to rounding, made to rise exactly."""
    if values.shape[-1] < 2:
        return values
    order = p.argsort(-1)
    sorted_values = values.gather(-1, order).cummax(-1).values
    return torch.empty_like(values).scatter_(-1, order, sorted_values)


def student_t_quantile(p: Tensor, degrees_of_freedom: Tensor) -> Tensor:
    """Quantiles of Student's t, both (..., N) after broadcasting; the upper tail mirrors the lower, where p is finest."""
    from scipy.special import stdtrit

    tail = torch.minimum(p, 1 - p)
    low = torch.as_tensor(stdtrit(_to_array(degrees_of_freedom), _to_array(tail)), dtype=p.dtype, device=p.device)
    return torch.where(p < 0.5, low, -low)


def bisect(cdf: Callable[[Tensor], Tensor], p: Tensor, low: Tensor, high: Tensor, halvings: int = MAX_BISECTIONS) -> Tensor:
    """Where a rising function equals p, between low and high, all (..., N)."""
    width = high - low
    for _ in range(halvings):
        width = width / 2
        middle = low + width
        low = torch.where(cdf(middle) < p, middle, low)
    return low + width


Float64Array = NDArray[np.float64]
CountCDF = Callable[..., Float64Array]
"""Of counts (n,) and parameters (n,) each: the probability of no more."""


def count_quantile(cdf: CountCDF, p: Float64Array, guess: Float64Array, *parameters: Float64Array) -> Float64Array:
    """The least whole number from 0 on with a cumulated probability of at least p, all arrays (n,).

    Steps that double lead from the guess to a bracket, halving finds the number: a good guess saves time, no more.
    """
    guess = np.clip(np.floor(np.nan_to_num(guess)), 0, MAX_COUNT)
    sufficient = cdf(guess, *parameters) >= p
    low, high = np.where(sufficient, -1.0, guess), np.where(sufficient, guess, np.inf)  # not enough at low, enough at high
    step, active = np.ones_like(guess), np.flatnonzero(np.isinf(high) | (high > 0))
    while len(active):
        step_size, is_unbounded = step[active], np.isinf(high[active])
        candidate = np.where(is_unbounded, np.minimum(low[active] + step_size, MAX_COUNT), np.maximum(high[active] - step_size, 0))
        reached = (cdf(candidate, *(parameter[active] for parameter in parameters)) >= p[active]) | (candidate >= MAX_COUNT)
        low[active[~reached]], high[active[reached]] = candidate[~reached], candidate[reached]
        step[active] *= 2
        continuing = np.where(is_unbounded, ~reached, reached & (candidate > 0))
        active = active[continuing]
    return _bisect_counts(cdf, p, low, high, parameters)


def _bisect_counts(cdf: CountCDF, p: Float64Array, low: Float64Array, high: Float64Array, parameters: tuple[Float64Array, ...]) -> Float64Array:
    active = np.flatnonzero(_has_integer_between(low, high))
    while len(active):
        middle = np.floor((low[active] + high[active]) / 2)
        reached = cdf(middle, *(parameter[active] for parameter in parameters)) >= p[active]
        low[active[~reached]], high[active[reached]] = middle[~reached], middle[reached]
        active = active[_has_integer_between(low[active], high[active])]
    return high


def _has_integer_between(low: Float64Array, high: Float64Array) -> NDArray[np.bool_]:
    """Whether a whole number that float64 can hold lies between."""
    middle = np.floor((low + high) / 2)
    return (middle > low) & (middle < high)


def _to_array(values: Tensor) -> Any:
    return values.detach().cpu().numpy()
