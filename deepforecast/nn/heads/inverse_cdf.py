"""Inverse distribution functions in float64, by interpolation, bisection or scipy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

MAX_BISECTIONS = 64  # after these the bracket is smaller than the rounding error
MAX_COUNT = 2.0**60  # largest count returned as a quantile


def interpolate_quantiles(values: Tensor, knots: Tensor, p: Tensor) -> Tensor:
    """Interpolate linearly through (knots, values), constant beyond the ends.

    Parameters
    ----------
    values : Tensor of shape (..., K)
        Nondecreasing in the last axis.
    knots : Tensor of shape (K,)
        Increasing probabilities.
    p : Tensor of shape (..., N)

    Returns
    -------
    Tensor of shape (..., N)
    """
    if len(knots) == 1:
        return values.expand_as(p)
    right = torch.searchsorted(knots, p.contiguous()).clamp(1, len(knots) - 1)
    left = right - 1
    fraction = ((p - knots[left]) / (knots[right] - knots[left])).clamp(0, 1)
    low, high = values.gather(-1, left), values.gather(-1, right)
    return torch.minimum(low + fraction * (high - low), high)


def make_monotone(values: Tensor, p: Tensor) -> Tensor:
    """Remove rounding errors from values (..., N) that should be nondecreasing in p (..., N)."""
    if values.shape[-1] < 2:
        return values
    order = p.argsort(-1)
    sorted_values = values.gather(-1, order).cummax(-1).values
    return torch.empty_like(values).scatter_(-1, order, sorted_values)


def student_t_quantile(p: Tensor, degrees_of_freedom: Tensor) -> Tensor:
    """Compute quantiles of Student's t distribution, (..., N) after broadcasting.

    Those of the upper tail are minus those of the lower tail, where p has the finest resolution.
    """
    from scipy.special import stdtrit

    tail_probability = torch.minimum(p, 1 - p)
    lower_quantile = torch.as_tensor(
        stdtrit(_to_array(degrees_of_freedom), _to_array(tail_probability)), dtype=p.dtype, device=p.device
    )
    return torch.where(p < 0.5, lower_quantile, -lower_quantile)


def bisect(
    cdf: Callable[[Tensor], Tensor],
    p: Tensor,
    low: Tensor,
    high: Tensor,
    halvings: int = MAX_BISECTIONS,
) -> Tensor:
    """Solve cdf(x) = p for a nondecreasing function between `low` and `high`, all (..., N), by
    bisection.
    """
    width = high - low
    for _ in range(halvings):
        width = width / 2
        middle = low + width
        low = torch.where(cdf(middle) < p, middle, low)
    return low + width


Float64Array = NDArray[np.float64]
CountCDF = Callable[..., Float64Array]
"""Distribution function of counts (n,) and parameters (n,) each."""


def count_quantile(
    cdf: CountCDF, p: Float64Array, guess: Float64Array, *parameters: Float64Array
) -> Float64Array:
    """Return the smallest count k >= 0 with cdf(k) >= p, all arrays (n,).

    From the guess, steps that double in size find a bracket, which is then bisected. The guess
    affects the speed only.
    """
    guess = np.clip(np.floor(np.nan_to_num(guess)), 0, MAX_COUNT)
    is_upper = cdf(guess, *parameters) >= p
    # Bracket: cdf(low) < p <= cdf(high).
    low = np.where(is_upper, -1.0, guess)
    high = np.where(is_upper, guess, np.inf)
    step = np.ones_like(guess)
    active = np.flatnonzero(np.isinf(high) | (high > 0))
    while len(active):
        step_size = step[active]
        is_unbounded = np.isinf(high[active])
        candidate = np.where(
            is_unbounded,
            np.minimum(low[active] + step_size, MAX_COUNT),
            np.maximum(high[active] - step_size, 0),
        )
        reached = (
            cdf(candidate, *(parameter[active] for parameter in parameters)) >= p[active]
        ) | (candidate >= MAX_COUNT)
        low[active[~reached]], high[active[reached]] = candidate[~reached], candidate[reached]
        step[active] *= 2
        continuing = np.where(is_unbounded, ~reached, reached & (candidate > 0))
        active = active[continuing]
    return _bisect_counts(cdf, p, low, high, parameters)


def _bisect_counts(
    cdf: CountCDF,
    p: Float64Array,
    low: Float64Array,
    high: Float64Array,
    parameters: tuple[Float64Array, ...],
) -> Float64Array:
    """Bisect the brackets cdf(low) < p <= cdf(high) in place until `high` is the quantile."""
    active = np.flatnonzero(_has_integer_between(low, high))
    while len(active):
        middle = np.floor((low[active] + high[active]) / 2)
        reached = cdf(middle, *(parameter[active] for parameter in parameters)) >= p[active]
        low[active[~reached]], high[active[reached]] = middle[~reached], middle[reached]
        active = active[_has_integer_between(low[active], high[active])]
    return high


def _has_integer_between(low: Float64Array, high: Float64Array) -> NDArray[np.bool_]:
    """Return whether an integer that float64 represents lies strictly between."""
    middle = np.floor((low + high) / 2)
    return (middle > low) & (middle < high)


def _to_array(values: Tensor) -> Any:
    return values.detach().cpu().numpy()
