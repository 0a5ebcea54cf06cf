"""Distributions over all numbers, and over the positive: their negative log density in z, mean and quantiles in closed form."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar, final

import torch
from torch import Tensor
from torch.special import ndtri

from deepforecast.nn.head import Head, Support, positive
from deepforecast.nn.inverse import rising, student
from deepforecast.nn.scaling import Scale

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
LEAST_VALUE = 1e-12  # of a logarithm


class Centred(Head):
    """What the symmetric ones share: the first number read is mean and median."""

    @property
    def location(self) -> slice:
        """The first."""
        return slice(0, 1)

    def median(self, raw: Tensor) -> Tensor:
        """The place."""
        return raw[..., 0]

    def _mean(self, raw: Tensor) -> Tensor:
        return raw[..., 0]


class Stretched(Head):
    """What a standard distribution, moved and stretched, gives: its quantiles are numbers that hang on no window."""

    @abstractmethod
    def away(self, p: Tensor) -> Tensor:
        """Quantiles of the standard distribution."""

    @abstractmethod
    def at(self, raw: Tensor, away: Tensor) -> Tensor:
        """Values (..., N) from raw (..., width) and the standard one's (..., N)."""

    def _quantiles(self, raw: Tensor, p: Tensor, spread: Tensor) -> Tensor:
        return self.at(raw, self.away(p))


@final
class Normal(Centred, Stretched):
    """Mean and deviation."""

    name: ClassVar[str] = "normal"
    width = 2

    def loss(self, raw: Tensor, target: Tensor, scale: Scale) -> Tensor:
        """Its negative log density."""
        place, deviation = raw[..., 0], positive(raw[..., 1])
        return 0.5 * ((target - place) / deviation).square() + deviation.log() + HALF_LOG_TWO_PI

    def away(self, p: Tensor) -> Tensor:
        """Of the standard normal distribution."""
        found: Tensor = ndtri(p)
        return found

    def at(self, raw: Tensor, away: Tensor) -> Tensor:
        """Around the mean."""
        return raw[..., :1] + positive(raw[..., 1:]) * away


@final
class Laplace(Centred, Stretched):
    """Median and mean absolute deviation: heavier tails than the normal's."""

    name: ClassVar[str] = "laplace"
    width = 2

    def loss(self, raw: Tensor, target: Tensor, scale: Scale) -> Tensor:
        """Its negative log density."""
        place, width = raw[..., 0], positive(raw[..., 1])
        return (target - place).abs() / width + width.log() + math.log(2)

    def away(self, p: Tensor) -> Tensor:
        """Of mean absolute deviation 1."""
        tail = torch.minimum(p, 1 - p)  # exact in both
        far = -(2 * tail).log()
        return torch.where(p < 0.5, -far, far)

    def at(self, raw: Tensor, away: Tensor) -> Tensor:
        """Around the median."""
        return raw[..., :1] + positive(raw[..., 1:]) * away


@final
class StudentT(Centred):
    """Place, width and degrees of freedom, more than 2 of them: tails as heavy as the data's."""

    name: ClassVar[str] = "student_t"
    width = 3

    def loss(self, raw: Tensor, target: Tensor, scale: Scale) -> Tensor:
        """Its negative log density."""
        place, width, freedom = raw[..., 0], positive(raw[..., 1]), 2 + positive(raw[..., 2])
        away = (0.5 * (freedom + 1)) * torch.log1p(((target - place) / width).square() / freedom)
        return away + width.log() + 0.5 * (freedom * math.pi).log() - half_step(0.5 * freedom)

    def _quantiles(self, raw: Tensor, p: Tensor, spread: Tensor) -> Tensor:
        away = student(p, 2 + positive(raw[..., 2:]))
        return rising(raw[..., :1] + positive(raw[..., 1:2]) * away, p)


@final
class LogNormal(Stretched):
    """Mean and deviation of the logarithm: positive values that vary the more the larger they are; 1e-12 of z is the least."""

    name: ClassVar[str] = "lognormal"
    support: ClassVar[Support] = "positive"
    width = 2

    def loss(self, raw: Tensor, target: Tensor, scale: Scale) -> Tensor:
        """Its negative log density."""
        logarithm, deviation = target.clamp_min(LEAST_VALUE).log(), positive(raw[..., 1])
        away = 0.5 * ((logarithm - raw[..., 0]) / deviation).square()
        return away + deviation.log() + logarithm + HALF_LOG_TWO_PI

    def median(self, raw: Tensor) -> Tensor:
        """The exponential of the logarithm's."""
        return raw[..., 0].exp()

    def _mean(self, raw: Tensor) -> Tensor:
        return (raw[..., 0] + 0.5 * positive(raw[..., 1]).square()).exp()

    def away(self, p: Tensor) -> Tensor:
        """Of the standard normal distribution."""
        found: Tensor = ndtri(p)
        return found

    def at(self, raw: Tensor, away: Tensor) -> Tensor:
        """Exponentials around that of the logarithm's mean."""
        return (raw[..., :1] + positive(raw[..., 1:]) * away).exp()


def half_step(a: Tensor) -> Tensor:
    """log Γ(a + 1/2) - log Γ(a) for a of 1 and more, to 1e-7 in float32 too, where the difference of the two is lost.

    Stirling's series at a + 5, and five steps of Γ(x + 1) = x Γ(x) back.
    """
    far = 1 / (a + 5)
    square = far * far
    series = -0.5 * far.log() - far * (1 / 8 - square * (1 / 192 - square * (1 / 640 - square * (17 / 14336))))
    back = 1 + 0.5 / a
    for number in range(1, 5):
        back = back * (1 + 0.5 / (a + number))
    return series - back.log()
