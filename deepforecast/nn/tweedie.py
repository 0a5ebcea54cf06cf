"""The Tweedie distribution of power 1.5: nothing at many steps, amounts of any size at the others."""

from __future__ import annotations

import math
from typing import Any, ClassVar, final

import numpy as np
import torch
from torch import Tensor

from deepforecast.nn.head import Head, Support, exact, positive
from deepforecast.nn.inverse import Numbers, rising
from deepforecast.nn.scaling import Scale

MOST = 64  # steps to a quantile: Newton's, six or so; halvings where they leave the bracket


@final
class Tweedie(Head):
    """Mean and dispersion: the variance is dispersion * mean^1.5. The sum of a Poisson number of exponential amounts, so that 0
    has a probability of its own, and all else a density.

    Of this power alone the density is known in closed form (by a Bessel function), and the distribution is that of noncentral
    chi-square: no deviance in place of a likelihood, levels and paths as from any other head. In units of z as in those of y:
    a multiple of it is a Tweedie distribution too. (Tweedie 1984; Dunn, Smyth 2005.)
    """

    name: ClassVar[str] = "tweedie"
    support: ClassVar[Support] = "nonnegative"
    width = 2

    def loss(self, raw: Tensor, target: Tensor, scale: Scale) -> Tensor:
        """Its negative log density, of 0 its negative log probability; in float64, as Bessel functions of large numbers ask."""
        given, y = exact(raw), exact(target).clamp_min(0)
        mean, dispersion = _parameters(given)
        away = 2 * (mean.sqrt() - y.sqrt()).square() / (dispersion * mean.sqrt())
        some = torch.where(y > 0, y, torch.ones_like(y))
        bend = torch.special.i1e(4 * some.sqrt() / dispersion)
        density = math.log(2) - dispersion.log() - 0.5 * some.log() + bend.log()
        return (away - torch.where(y > 0, density, torch.zeros_like(y))).to(raw)

    def median(self, raw: Tensor) -> Tensor:
        """The mean: the median is 0 wherever most values are."""
        return positive(raw[..., 0])

    def _mean(self, raw: Tensor) -> Tensor:
        return positive(raw[..., 0])

    def _quantiles(self, raw: Tensor, p: Tensor, spread: Tensor) -> Tensor:
        mean, dispersion = (one.unsqueeze(-1) for one in _parameters(raw))
        rate = (2 * mean.sqrt() / dispersion).expand_as(p)
        flat = (one.detach().cpu().numpy().reshape(-1) for one in (p, 2 * rate))
        x = torch.as_tensor(_square_quantiles(*flat), dtype=p.dtype, device=p.device).view(p.shape)
        return rising(0.25 * dispersion * mean.sqrt() * x, p)


def _parameters(raw: Tensor) -> tuple[Tensor, Tensor]:
    return positive(raw[..., 0]), positive(raw[..., 1])


def _square_quantiles(p: Numbers, off: Numbers) -> Numbers:
    """Where the noncentral chi-square distribution of no degrees of freedom, `off` its noncentrality, reaches p; both (n,).

    By Newton's steps for the root of the value, which for large `off` is normal around that of `off`.
    """
    from scipy.special import ndtri

    found, there = np.zeros_like(p), np.flatnonzero(p > np.exp(-0.5 * off))
    goal, centre = p[there], np.sqrt(off[there])
    low, high = np.zeros_like(goal), centre + 45.0
    root = np.clip(centre + ndtri(goal), 0.1, high)
    for _ in range(MOST):
        if not len(there):
            break
        short = _below(root, centre) < goal
        low, high = np.where(short, root, low), np.where(short, high, root)
        fresh = _stepped(root, centre, goal)
        fresh = np.where((fresh > low) & (fresh < high), fresh, 0.5 * (low + high))
        done = np.abs(fresh - root) <= 1e-13 * fresh
        found[there] = fresh**2
        left = ~done
        there, goal, centre, low, high, root = (one[left] for one in (there, goal, centre, low, high, fresh))
    return found


def _stepped(root: Numbers, centre: Numbers, goal: Numbers) -> Numbers:
    """Newton's step; not finite where the density is 0."""
    from scipy.special import i1e

    density = centre * i1e(centre * root) * np.exp(-0.5 * (root - centre) ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(root - (_below(root, centre) - goal) / density)


def _below(root: Numbers, centre: Numbers) -> Numbers:
    """The probability of no more than root², `centre`² the noncentrality: with no degrees of freedom, by that with two."""
    from scipy.special import chndtr, i0e

    two: Any = chndtr(root**2, 2.0, centre**2)
    return np.asarray(two + i0e(centre * root) * np.exp(-0.5 * (root - centre) ** 2))
