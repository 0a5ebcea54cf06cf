"""Quantiles of noise plus a trend with random future slope changes, without simulation.

Changes arrive as a Poisson process, `count` of them expected until the step, with Laplace sizes;
one that arrives when a share w of the horizon remains adds w times its size. The characteristic
function of their sum is

    exp(count * (arctan(a v) / (a v) - 1)),      a: mean absolute effect of a change at the very start.

The distribution function with noise follows by the inversion sum of Davies (1973), *Biometrika* 60,
doi:10.1093/biomet/60.2.415, whose error is the probability beyond 2 pi over its stride. Units are
those of the noise. If the noise is negligible next to the changes, the case of no change is treated
separately and the noise of the other cases is slightly widened.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import compile_notice, compiled_no_alloc, inner_no_alloc

Floats = NDArray[np.float64]

MAX_CHANGE = 20.0  # largest a used without widening the noise
MAX_NODES = 8000
NEGLIGIBLE_CHANGE = 1e-9  # changes relative to the noise that count as 0
NORMAL, STUDENT = 0, 1
SQRT_3 = math.sqrt(3.0)


def quantiles(noise: Floats, change: Floats, count: Floats, probabilities: Floats, student: bool = False) -> Floats:
    """Quantiles (steps, probabilities) of noise with scale `noise` plus changes with mean size
    `change`.

    `count` of changes are expected. `student`: the noise is Student's t with 3 degrees of freedom.

    >>> quantiles(np.ones(1), np.zeros(1), np.zeros(1), np.array([0.1, 0.5, 0.975])).round(3)
    array([[-1.282,  0.   ,  1.96 ]])
    """
    upper, inverse_index = np.unique(np.maximum(probabilities, 1.0 - probabilities), return_inverse=True)
    upper_quantiles, noise_quantiles = np.empty((len(noise), len(upper))), _noise_quantiles(upper, student)
    tail_probability = 1e-5 if student else 1e-9
    inner_probabilities = np.minimum(upper, 1.0 - tail_probability)
    noise_excess = np.maximum(noise_quantiles - _noise_quantiles(np.full(1, 1.0 - tail_probability), student), 0.0)
    tail = np.log(np.maximum(tail_probability / np.maximum(1.0 - upper, 1e-300), 1.0))
    levels = np.stack([inner_probabilities, np.minimum(noise_quantiles, 1e12), noise_excess, tail])
    with compile_notice("the intervals of an additive model"):
        _quantiles(np.stack([noise, change, count]), levels, int(student), upper_quantiles, np.empty(MAX_NODES))
    sign = np.where(probabilities == 0.5, 0.0, np.where(probabilities > 0.5, 1.0, -1.0))
    return np.asarray(upper_quantiles[:, inverse_index] * sign)


def _noise_quantiles(probabilities: Floats, student: bool) -> Floats:
    """Quantiles of the noise alone, in its units."""
    from scipy.special import ndtri, stdtrit

    return np.asarray(stdtrit(3.0, probabilities) if student else ndtri(probabilities))


@compiled_no_alloc
def _quantiles(scales: Floats, levels: Floats, noise_kind: int, upper_quantiles: Floats, transform: Floats) -> None:
    noise, change, count = scales[0], scales[1], scales[2]
    probabilities, noise_quantiles, noise_excess, tail = levels[0], levels[1], levels[2], levels[3]
    for step in range(len(noise)):
        unit = max(noise[step], 1e-9 * change[step])
        relative_change = change[step] / unit if unit > 0.0 else 0.0
        relative_std = relative_change * math.sqrt(2.0 * count[step] / 3.0)
        if relative_std <= NEGLIGIBLE_CHANGE:
            for p in range(len(probabilities)):
                upper_quantiles[step, p] = unit * noise_quantiles[p]
            continue
        capped_change = min(relative_change, MAX_CHANGE)
        stride, nodes = _characteristic_function(
            capped_change, count[step], noise_kind if relative_change <= MAX_CHANGE else NORMAL, transform
        )
        half_period = math.pi / stride
        for p in range(len(probabilities)):
            guess = min(
                noise_quantiles[p] * math.sqrt(1.0 + relative_std * relative_std),
                0.9 * half_period * relative_change / capped_change,
            )
            x = _invert_distribution(
                probabilities[p],
                guess,
                relative_change / capped_change,
                math.exp(-count[step]),
                noise_kind,
                stride,
                transform,
                nodes,
            )
            upper_quantiles[step, p] = unit * (x + noise_excess[p] + relative_change * tail[p])


@inner_no_alloc
def _characteristic_function(relative_change: float, count: float, noise_kind: int, transform: Floats) -> tuple[float, int]:
    """Characteristic function at node k over pi k; return stride and number of nodes."""
    length = 16.0 + relative_change * (60.0 + 16.0 * math.sqrt(count)) + (500.0 if noise_kind == STUDENT else 0.0)
    last = 20.0 if noise_kind == STUDENT else 8.2
    nodes = min(int(last * length / (2.0 * math.pi)) + 1, len(transform))
    stride = 2.0 * math.pi / length
    for k in range(nodes):
        frequency = (k + 0.5) * stride
        noise = math.log1p(SQRT_3 * frequency) - SQRT_3 * frequency if noise_kind == STUDENT else -0.5 * frequency * frequency
        transform[k] = math.exp(
            noise + count * (math.atan(relative_change * frequency) / (relative_change * frequency) - 1.0)
        ) / (math.pi * (k + 0.5))
    return stride, nodes


@inner_no_alloc
def _invert_distribution(
    probability: float,
    guess: float,
    widening: float,
    no_change_probability: float,
    noise_kind: int,
    stride: float,
    transform: Floats,
    nodes: int,
) -> float:
    """Quantile of `probability` >= 1 / 2 by Newton's method within a bracket."""
    if probability <= 0.5:
        return 0.0
    low, high, x = 0.0, math.pi / stride * widening, guess
    for _ in range(200):
        value, slope = _distribution(x / widening, stride, transform, nodes)
        slope /= widening
        if widening > 1.0:  # no change: replace the widened noise by the actual one
            value += no_change_probability * (_noise_distribution(x, noise_kind) - _noise_distribution(x / widening, NORMAL))
            slope += no_change_probability * (_noise_density(x, noise_kind) - _noise_density(x / widening, NORMAL) / widening)
        if value < probability:
            low = x
        else:
            high = x
        step = (probability - value) / slope if slope > 0.0 else math.inf
        previous, x = x, x + step
        if not low < x < high:
            x = 0.5 * (low + high)
        if abs(x - previous) <= 1e-10 * (1.0 + x):
            break
    return x


@inner_no_alloc
def _distribution(x: float, stride: float, transform: Floats, nodes: int) -> tuple[float, float]:
    """Davies' inversion sum and its derivative."""
    angle = stride * x
    turn_cos, turn_sin = math.cos(angle), math.sin(angle)
    c, s = math.cos(0.5 * angle), math.sin(0.5 * angle)
    value, slope = 0.5, 0.0
    for k in range(nodes):
        value += transform[k] * s
        slope += transform[k] * (k + 0.5) * c
        c, s = c * turn_cos - s * turn_sin, s * turn_cos + c * turn_sin
    return value, slope * stride


@inner_no_alloc
def _noise_distribution(x: float, noise_kind: int) -> float:
    if noise_kind == STUDENT:
        return 0.5 + (x / (SQRT_3 * (1.0 + x * x / 3.0)) + math.atan(x / SQRT_3)) / math.pi
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@inner_no_alloc
def _noise_density(x: float, noise_kind: int) -> float:
    if noise_kind == STUDENT:
        return 2.0 / (math.pi * SQRT_3 * (1.0 + x * x / 3.0) ** 2)
    return math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
