"""Quantiles of noise plus a trend with random future slope changes, without simulation.

Changes arrive as a Poisson process, `n_changes` of them expected until the step, with Laplace sizes;
one that arrives when a share w of the horizon remains adds w times its size. The characteristic
function of their sum is

    exp(n_changes * (arctan(a v) / (a v) - 1)),      a: mean absolute effect of a change at the very start.

With the characteristic function f of the sum and the noise, which is real, the distribution function at x
follows by the inversion sum of Davies (1973) with stride h,

    F(x) = 1/2 + sum_k f((k + 1/2) h) sin((k + 1/2) h x) / (pi (k + 1/2)),

whose error is the probability beyond 2 pi / h. Units are those of the noise. If the noise is negligible
next to the changes, the case of no change is treated separately and the noise of the other cases is
slightly widened.

References
----------
Davies (1973), Numerical inversion of a characteristic function, *Biometrika* 60,
doi:10.1093/biomet/60.2.415.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import compile_notice, compiled_no_alloc, inner_no_alloc

Floats = NDArray[np.float64]

MAX_CHANGE = 20.0  # largest a used without widening the noise
MAX_NODES = 8000  # largest number of terms of the inversion sum
MIN_NOISE = 1e-9  # smallest noise relative to the changes
NEGLIGIBLE_CHANGE = 1e-9  # changes relative to the noise that count as 0
NORMAL, STUDENT = 0, 1  # kinds of noise
SQRT_3 = math.sqrt(3.0)


def quantiles(noise: Floats, change: Floats, n_changes: Floats, probabilities: Floats, student: bool = False) -> Floats:
    """Quantiles (steps, probabilities) of noise plus random changes.

    `noise`, `change`, `n_changes` (steps,): scale of the noise, mean absolute effect and expected number of
    the changes. `student`: the noise is Student's t with 3 degrees of freedom, else normal.

    >>> quantiles(np.ones(1), np.zeros(1), np.zeros(1), np.array([0.1, 0.5, 0.975])).round(3)
    array([[-1.282,  0.   ,  1.96 ]])
    """
    upper, inverse_index = np.unique(np.maximum(probabilities, 1.0 - probabilities), return_inverse=True)
    upper_quantiles = np.empty((len(noise), len(upper)))
    noise_quantiles = _noise_quantiles(upper, student)
    tail_probability = 1e-5 if student else 1e-9  # smaller tails are extrapolated from here
    inner_probabilities = np.minimum(upper, 1.0 - tail_probability)
    noise_excess = np.maximum(noise_quantiles - _noise_quantiles(np.full(1, 1.0 - tail_probability), student), 0.0)
    tail = np.log(np.maximum(tail_probability / np.maximum(1.0 - upper, 1e-300), 1.0))
    levels = np.stack([inner_probabilities, np.minimum(noise_quantiles, 1e12), noise_excess, tail])
    with compile_notice("prediction intervals of additive models"):
        _quantiles(np.stack([noise, change, n_changes]), levels, int(student), upper_quantiles, np.empty(MAX_NODES))
    sign = np.where(probabilities == 0.5, 0.0, np.where(probabilities > 0.5, 1.0, -1.0))
    return np.asarray(upper_quantiles[:, inverse_index] * sign)


def _noise_quantiles(probabilities: Floats, student: bool) -> Floats:
    """Quantiles of the noise alone, in units of its scale."""
    from scipy.special import ndtri, stdtrit

    return np.asarray(stdtrit(3.0, probabilities) if student else ndtri(probabilities))


@compiled_no_alloc
def _quantiles(scales: Floats, levels: Floats, noise_kind: int, upper_quantiles: Floats, transform: Floats) -> None:
    """Write quantiles of the steps to `upper_quantiles`.

    Rows of `scales` (3, steps): noise, change, n_changes. Rows of `levels` (4, probabilities), each at least
    1 / 2: probability, at most 1 - tail; quantile of the noise; and the two terms that extrapolate smaller
    tails, of the noise and of the changes (exponential). `transform` is a buffer.
    """
    noise = scales[0]
    change = scales[1]
    n_changes = scales[2]
    probabilities = levels[0]
    noise_quantiles = levels[1]
    noise_excess = levels[2]
    tail = levels[3]
    for step in range(len(noise)):
        unit = max(noise[step], MIN_NOISE * change[step])
        relative_change = change[step] / unit if unit > 0.0 else 0.0
        relative_std = relative_change * math.sqrt(2.0 * n_changes[step] / 3.0)
        if relative_std <= NEGLIGIBLE_CHANGE:
            for p in range(len(probabilities)):
                upper_quantiles[step, p] = unit * noise_quantiles[p]
            continue
        capped_change = min(relative_change, MAX_CHANGE)
        stride, n_nodes = _fill_transform(
            capped_change, n_changes[step], noise_kind if relative_change <= MAX_CHANGE else NORMAL, transform
        )
        half_period = math.pi / stride
        for p in range(len(probabilities)):
            guess = min(
                noise_quantiles[p] * math.sqrt(1.0 + relative_std * relative_std),
                0.9 * half_period * relative_change / capped_change,
            )
            x = _invert_cdf(
                probabilities[p],
                guess,
                relative_change / capped_change,
                math.exp(-n_changes[step]),
                noise_kind,
                stride,
                transform,
                n_nodes,
            )
            upper_quantiles[step, p] = unit * (x + noise_excess[p] + relative_change * tail[p])


@inner_no_alloc
def _fill_transform(relative_change: float, n_changes: float, noise_kind: int, transform: Floats) -> tuple[float, int]:
    """Write the characteristic function at node (k + 1/2) h, over pi (k + 1/2), to `transform`.

    Return stride h and number of nodes; 2 pi / h exceeds the range of the distribution, and the
    characteristic function is negligible beyond the last node.
    """
    period = 16.0 + relative_change * (60.0 + 16.0 * math.sqrt(n_changes)) + (500.0 if noise_kind == STUDENT else 0.0)
    max_frequency = 20.0 if noise_kind == STUDENT else 8.2
    n_nodes = min(int(max_frequency * period / (2.0 * math.pi)) + 1, len(transform))
    stride = 2.0 * math.pi / period
    for k in range(n_nodes):
        frequency = (k + 0.5) * stride
        log_noise = (
            math.log1p(SQRT_3 * frequency) - SQRT_3 * frequency if noise_kind == STUDENT else -0.5 * frequency * frequency
        )
        transform[k] = math.exp(
            log_noise + n_changes * (math.atan(relative_change * frequency) / (relative_change * frequency) - 1.0)
        ) / (math.pi * (k + 0.5))
    return stride, n_nodes


@inner_no_alloc
def _invert_cdf(
    probability: float,
    guess: float,
    widening: float,
    no_change_probability: float,
    noise_kind: int,
    stride: float,
    transform: Floats,
    n_nodes: int,
) -> float:
    """Quantile of a probability of at least 1 / 2, by Newton's method within a bracket.

    `transform` belongs to changes that are smaller by the factor `widening`; stretching their distribution by
    it also widens the noise. If it exceeds 1, the case of no change is given the actual noise instead.
    """
    if probability <= 0.5:
        return 0.0
    low = 0.0
    high = math.pi / stride * widening
    x = guess
    for _ in range(200):
        cdf, density = _cdf_and_density(x / widening, stride, transform, n_nodes)
        density /= widening
        if widening > 1.0:  # no change: replace the widened noise by the actual one
            cdf += no_change_probability * (_noise_cdf(x, noise_kind) - _noise_cdf(x / widening, NORMAL))
            density += no_change_probability * (_noise_density(x, noise_kind) - _noise_density(x / widening, NORMAL) / widening)
        if cdf < probability:
            low = x
        else:
            high = x
        step = (probability - cdf) / density if density > 0.0 else math.inf
        previous, x = x, x + step
        if not low < x < high:
            x = 0.5 * (low + high)
        if abs(x - previous) <= 1e-10 * (1.0 + x):
            break
    return x


@inner_no_alloc
def _cdf_and_density(x: float, stride: float, transform: Floats, n_nodes: int) -> tuple[float, float]:
    """Distribution function at x and its derivative, the density, by Davies' inversion sum:

    1/2 + sum_k transform[k] sin((k + 1/2) h x),   h: stride
    """
    angle = stride * x
    cos_step, sin_step = math.cos(angle), math.sin(angle)
    cosine, sine = math.cos(0.5 * angle), math.sin(0.5 * angle)
    cdf, density = 0.5, 0.0
    for k in range(n_nodes):
        cdf += transform[k] * sine
        density += transform[k] * (k + 0.5) * cosine
        # Rotation by the angle of a stride, from node k to node k + 1.
        cosine, sine = cosine * cos_step - sine * sin_step, sine * cos_step + cosine * sin_step
    return cdf, density * stride


@inner_no_alloc
def _noise_cdf(x: float, noise_kind: int) -> float:
    """Distribution function of the noise alone, normal or Student's t with 3 degrees of freedom."""
    if noise_kind == STUDENT:
        return 0.5 + (x / (SQRT_3 * (1.0 + x * x / 3.0)) + math.atan(x / SQRT_3)) / math.pi
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@inner_no_alloc
def _noise_density(x: float, noise_kind: int) -> float:
    """Density of the noise alone, the derivative of `_noise_cdf`."""
    if noise_kind == STUDENT:
        return 2.0 / (math.pi * SQRT_3 * (1.0 + x * x / 3.0) ** 2)
    return math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
