"""Quantiles of noise plus a trend whose slope goes on changing: exact, without a draw.

Changes of slope come at random (a Poisson process, `count` of them expected until the step) and are Laplace distributed, so
what one that came a share w of the way before the step adds is w times a Laplace number. The characteristic function of their
sum has a closed form,

    exp(count * (arctan(a v) / (a v) - 1)),      a: the mean size of what a change at the very start adds,

and the distribution of it and of the noise follows by Davies' sum (1973, *Biometrika* 60), whose error is the probability of
what lies further out than 2 pi over its stride. All is in units of the noise; where that is next to nothing beside the
changes, the case that none came is kept apart, and the others see a little more noise than there is.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compiling import announced, bare, lean

Floats = NDArray[np.float64]

WIDEST = 20.0  # the largest a that is computed as it is
NODES = 8000
SMALL = 1e-9  # a spread of changes beside that of the noise that is nothing
NORMAL, STUDENT = 0, 1
THREE = math.sqrt(3.0)


def quantiles(noise: Floats, change: Floats, count: Floats, probabilities: Floats, student: bool = False) -> Floats:
    """Quantiles (places, probabilities) of noise of a deviation plus changes of a size, `count` of them expected.

    student: the noise is Student's t with 3 degrees of freedom, `noise` its scale.

    >>> quantiles(np.ones(1), np.zeros(1), np.zeros(1), np.array([0.1, 0.5, 0.975])).round(3)
    array([[-1.282,  0.   ,  1.96 ]])
    """
    upper, back = np.unique(np.maximum(probabilities, 1.0 - probabilities), return_inverse=True)
    found, plain = np.empty((len(noise), len(upper))), _plain(upper, student)
    most = 1e-5 if student else 1e-9
    asked = np.minimum(upper, 1.0 - most)
    beyond = np.maximum(plain - _plain(np.full(1, 1.0 - most), student), 0.0)
    tail = np.log(np.maximum(most / np.maximum(1.0 - upper, 1e-300), 1.0))
    levels = np.stack([asked, np.minimum(plain, 1e12), beyond, tail])
    with announced("the bands of an additive model"):
        _quantiles(np.stack([noise, change, count]), levels, int(student), found, np.empty(NODES))
    sign = np.where(probabilities == 0.5, 0.0, np.where(probabilities > 0.5, 1.0, -1.0))
    return np.asarray(found[:, back] * sign)


def _plain(probabilities: Floats, student: bool) -> Floats:
    """Quantiles of the noise alone, in its units."""
    from scipy.special import ndtri, stdtrit

    return np.asarray(stdtrit(3.0, probabilities) if student else ndtri(probabilities))


@lean
def _quantiles(spread: Floats, levels: Floats, kind: int, found: Floats, waves: Floats) -> None:
    noise, change, count = spread[0], spread[1], spread[2]
    asked, plain, beyond, tail = levels[0], levels[1], levels[2], levels[3]
    for place in range(len(noise)):
        unit = max(noise[place], 1e-9 * change[place])
        wide = change[place] / unit if unit > 0.0 else 0.0
        both = wide * math.sqrt(2.0 * count[place] / 3.0)
        if both <= SMALL:
            for p in range(len(asked)):
                found[place, p] = unit * plain[p]
            continue
        held = min(wide, WIDEST)
        stride, nodes = _waves(held, count[place], kind if wide <= WIDEST else NORMAL, waves)
        reach = math.pi / stride
        for p in range(len(asked)):
            guess = min(plain[p] * math.sqrt(1.0 + both * both), 0.9 * reach * wide / held)
            x = _inverse(asked[p], guess, wide / held, math.exp(-count[place]), kind, stride, waves, nodes)
            found[place, p] = unit * (x + beyond[p] + wide * tail[p])


@bare
def _waves(wide: float, count: float, kind: int, waves: Floats) -> tuple[float, int]:
    """The characteristic function at the nodes, over pi and the number of the node; their stride and how many there are."""
    length = 16.0 + wide * (60.0 + 16.0 * math.sqrt(count)) + (500.0 if kind == STUDENT else 0.0)
    last = 20.0 if kind == STUDENT else 8.2
    nodes = min(int(last * length / (2.0 * math.pi)) + 1, len(waves))
    stride = 2.0 * math.pi / length
    for k in range(nodes):
        v = (k + 0.5) * stride
        noise = math.log1p(THREE * v) - THREE * v if kind == STUDENT else -0.5 * v * v
        waves[k] = math.exp(noise + count * (math.atan(wide * v) / (wide * v) - 1.0)) / (math.pi * (k + 0.5))
    return stride, nodes


@bare
def _inverse(
    wanted: float, guess: float, times: float, none: float, kind: int, stride: float, waves: Floats, nodes: int
) -> float:
    """Where the distribution function is `wanted`, at least 1 / 2: Newton's steps inside a bracket."""
    if wanted <= 0.5:
        return 0.0
    low, high, x = 0.0, math.pi / stride * times, guess
    for _ in range(200):
        value, slope = _distribution(x / times, stride, waves, nodes)
        slope /= times
        if times > 1.0:  # no change came: the noise as it is, not as it was widened
            value += none * (_plain_distribution(x, kind) - _plain_distribution(x / times, NORMAL))
            slope += none * (_plain_density(x, kind) - _plain_density(x / times, NORMAL) / times)
        if value < wanted:
            low = x
        else:
            high = x
        step = (wanted - value) / slope if slope > 0.0 else math.inf
        before, x = x, x + step
        if not low < x < high:
            x = 0.5 * (low + high)
        if abs(x - before) <= 1e-10 * (1.0 + x):
            break
    return x


@bare
def _distribution(x: float, stride: float, waves: Floats, nodes: int) -> tuple[float, float]:
    """Davies' sum, and its slope."""
    angle = stride * x
    turn_cos, turn_sin = math.cos(angle), math.sin(angle)
    c, s = math.cos(0.5 * angle), math.sin(0.5 * angle)
    value, slope = 0.5, 0.0
    for k in range(nodes):
        value += waves[k] * s
        slope += waves[k] * (k + 0.5) * c
        c, s = c * turn_cos - s * turn_sin, s * turn_cos + c * turn_sin
    return value, slope * stride


@bare
def _plain_distribution(x: float, kind: int) -> float:
    if kind == STUDENT:
        return 0.5 + (x / (THREE * (1.0 + x * x / 3.0)) + math.atan(x / THREE)) / math.pi
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@bare
def _plain_density(x: float, kind: int) -> float:
    if kind == STUDENT:
        return 2.0 / (math.pi * THREE * (1.0 + x * x / 3.0) ** 2)
    return math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
