"""Distributions of counts: the likelihood is of the whole numbers y = spread * z, quantiles are whole in y and handed out in z.

All in float64: the logarithm of a large factorial leaves nothing of float32.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, final

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from deepforecast.nn.head import Head, Support, exact, positive
from deepforecast.nn.inverse import Numbers, least_counts
from deepforecast.nn.scaling import Scale

LEAST_RATE = 1e-100  # in units of y: what a window of nothing but zeros, whose spread is 0, gives


class Counts(Head):
    """What the distributions of counts share: `rate` is the mean of y before any zeros are added."""

    support: ClassVar[Support] = "nonnegative"
    counts: ClassVar[bool] = True

    def loss(self, raw: Tensor, target: Tensor, scale: Scale) -> Tensor:
        """Its negative log probability of y."""
        spread, given = exact(scale.spread), exact(raw)
        y = exact(target).clamp_min(0) * spread
        return self._surprise(given, y, _rate(given, spread)).to(raw)

    def median(self, raw: Tensor) -> Tensor:
        """The mean: the median is a step function of what is read, and 0 wherever most values are."""
        return self._mean(raw)

    def _mean(self, raw: Tensor) -> Tensor:
        return positive(raw[..., 0])

    def _quantiles(self, raw: Tensor, p: Tensor, spread: Tensor) -> Tensor:
        rate = _rate(raw, spread.squeeze(-1)).unsqueeze(-1)
        parts = torch.broadcast_tensors(*self._asked(raw, p), rate)  # type: ignore[no-untyped-call]
        chance, *given = (one.detach().cpu().numpy().reshape(-1) for one in parts)
        counts = self._least(chance, *given)
        found = torch.as_tensor(counts, dtype=p.dtype, device=p.device).view(p.shape)
        return torch.where(spread > 0, found / spread, 0.0)

    @abstractmethod
    def _surprise(self, raw: Tensor, y: Tensor, rate: Tensor) -> Tensor:
        """Negative log probability of y (B, H)."""

    def _asked(self, raw: Tensor, p: Tensor) -> tuple[Tensor, ...]:
        """p, and parameters (..., 1) besides the rate."""
        return (p,)

    @abstractmethod
    def _least(self, p: Numbers, *parameters: Numbers) -> Numbers:
        """Quantiles in y, of flat arrays: the parameters of `_asked`, then the rate."""


@final
class Poisson(Counts):
    """The rate alone: the variance is the mean."""

    name: ClassVar[str] = "poisson"
    width = 1

    def _surprise(self, raw: Tensor, y: Tensor, rate: Tensor) -> Tensor:
        return rate - y * rate.log() + torch.lgamma(y + 1)

    def _least(self, p: Numbers, *parameters: Numbers) -> Numbers:
        from scipy.special import pdtr

        (rate,) = parameters
        return least_counts(pdtr, p, _guess(p, rate, np.zeros_like(rate)), rate)


@final
class NegativeBinomial(Counts):
    """Rate and dispersion: the variance is rate + dispersion * rate²."""

    name: ClassVar[str] = "negative_binomial"
    width = 2

    def _surprise(self, raw: Tensor, y: Tensor, rate: Tensor) -> Tensor:
        return _surprise(y, rate, positive(raw[..., 1]))

    def _asked(self, raw: Tensor, p: Tensor) -> tuple[Tensor, ...]:
        return p, positive(raw[..., 1:2])

    def _least(self, p: Numbers, *parameters: Numbers) -> Numbers:
        return _least(p, *parameters)


@final
class ZeroInflated(Counts):
    """A negative binomial distribution and a share of further zeros: demand that comes now and then."""

    name: ClassVar[str] = "zero_inflated"
    width = 3

    def _surprise(self, raw: Tensor, y: Tensor, rate: Tensor) -> Tensor:
        of_counts = _surprise(y, rate, positive(raw[..., 1])) - logsigmoid(-raw[..., 2])
        return torch.where(y > 0, of_counts, -torch.logaddexp(logsigmoid(raw[..., 2]), -of_counts))

    def _mean(self, raw: Tensor) -> Tensor:
        return positive(raw[..., 0]) * torch.sigmoid(-raw[..., 2])

    def _asked(self, raw: Tensor, p: Tensor) -> tuple[Tensor, ...]:
        """The probability among the counts that are no further zeros; below 0 where it is one of these that is asked for."""
        left = (1 - p) / torch.sigmoid(-raw[..., 2:])
        return 1 - left, positive(raw[..., 1:2])

    def _least(self, p: Numbers, *parameters: Numbers) -> Numbers:
        return _least(p, *parameters)


def _rate(raw: Tensor, spread: Tensor) -> Tensor:
    return (positive(raw[..., 0]) * spread).clamp_min(LEAST_RATE)


def _surprise(y: Tensor, rate: Tensor, dispersion: Tensor) -> Tensor:
    """Negative log probability of the negative binomial distribution."""
    size = 1 / dispersion
    ways = torch.lgamma(size) + torch.lgamma(y + 1) - torch.lgamma(y + size)
    odds = dispersion * rate
    return ways + size * torch.log1p(odds) + y * torch.log1p(1 / odds)


def _least(p: Numbers, dispersion: Numbers, rate: Numbers) -> Numbers:
    """Quantiles of the negative binomial distribution."""
    from scipy.special import betainc

    def cumulated(count: Numbers, size: Numbers, share: Numbers) -> Numbers:
        return np.asarray(betainc(size, count + 1, share))

    return least_counts(cumulated, p, _guess(p, rate, dispersion), 1 / dispersion, 1 / (1 + dispersion * rate))


def _guess(p: Numbers, rate: Numbers, dispersion: Numbers) -> Numbers:
    """About the quantile: the normal distribution's, with the skew."""
    from scipy.special import ndtri

    deviation = np.sqrt(rate * (1 + dispersion * rate))
    skew = (1 + 2 * dispersion * rate) / deviation
    units = np.clip(ndtri(p), -40, 40)
    return np.asarray(rate + deviation * (units + skew * (units**2 - 1) / 6))
