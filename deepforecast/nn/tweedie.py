"""The Tweedie distribution of power 1.5: nothing at many steps, amounts of any size at the others."""

from __future__ import annotations

import math
from typing import Any, ClassVar, final

import numpy as np
import torch
from torch import Tensor

from deepforecast.nn.head import Head, Support, as_float64, softplus_floor
from deepforecast.nn.inverse_cdf import Float64Array, make_monotone
from deepforecast.nn.scaling import Scale

MAX_ITERATIONS = 64  # steps to a quantile: Newton's, six or so; halvings where they leave the bracket


@final
class TweedieHead(Head):
    """Mean and dispersion: the variance is dispersion * mean^1.5. The sum of a Poisson number of exponential amounts, so that 0
    has a probability of its own, and all else a density.

    Of this power alone the density is known in closed form (by a Bessel function), and the distribution is that of noncentral
    chi-square: no deviance in place of a likelihood, levels and paths as from any other head. In units of z as in those of y:
    a multiple of it is a Tweedie distribution too. (Tweedie 1984; Dunn, Smyth 2005.)
    """

    name: ClassVar[str] = "tweedie"
    support: ClassVar[Support] = "nonnegative"
    out_features = 2

    def loss(self, raw: Tensor, target: Tensor, scaling: Scale) -> Tensor:
        """Its negative log density, of 0 its negative log probability; in float64, as Bessel functions of large numbers ask."""
        parameters, y = as_float64(raw), as_float64(target).clamp_min(0)
        mean, dispersion = _parameters(parameters)
        deviance = 2 * (mean.sqrt() - y.sqrt()).square() / (dispersion * mean.sqrt())
        positive_y = torch.where(y > 0, y, torch.ones_like(y))
        bessel = torch.special.i1e(4 * positive_y.sqrt() / dispersion)
        density = math.log(2) - dispersion.log() - 0.5 * positive_y.log() + bessel.log()
        return (deviance - torch.where(y > 0, density, torch.zeros_like(y))).to(raw)

    def median(self, raw: Tensor) -> Tensor:
        """The mean: the median is 0 wherever most values are."""
        return softplus_floor(raw[..., 0])

    def _mean(self, raw: Tensor) -> Tensor:
        return softplus_floor(raw[..., 0])

    def _quantiles(self, raw: Tensor, p: Tensor, scale: Tensor) -> Tensor:
        mean, dispersion = (tensor.unsqueeze(-1) for tensor in _parameters(raw))
        rate = (2 * mean.sqrt() / dispersion).expand_as(p)
        arrays = (tensor.detach().cpu().numpy().reshape(-1) for tensor in (p, 2 * rate))
        x = torch.as_tensor(_noncentral_chi2_quantiles(*arrays), dtype=p.dtype, device=p.device).view(p.shape)
        return make_monotone(0.25 * dispersion * mean.sqrt() * x, p)


def _parameters(raw: Tensor) -> tuple[Tensor, Tensor]:
    return softplus_floor(raw[..., 0]), softplus_floor(raw[..., 1])


def _noncentral_chi2_quantiles(p: Float64Array, noncentrality: Float64Array) -> Float64Array:
    """Where the noncentral chi-square distribution of no degrees of freedom, `noncentrality` its noncentrality, reaches p; both (n,).

    By Newton's steps for the root of the value, which for large `noncentrality` is normal around that of `noncentrality`.
    """
    from scipy.special import ndtri

    quantiles, active = np.zeros_like(p), np.flatnonzero(p > np.exp(-0.5 * noncentrality))
    probabilities, centre = p[active], np.sqrt(noncentrality[active])
    low, high = np.zeros_like(probabilities), centre + 45.0
    root = np.clip(centre + ndtri(probabilities), 0.1, high)
    for _ in range(MAX_ITERATIONS):
        if not len(active):
            break
        too_low = _noncentral_chi2_cdf(root, centre) < probabilities
        low, high = np.where(too_low, root, low), np.where(too_low, high, root)
        new_root = _newton_step(root, centre, probabilities)
        new_root = np.where((new_root > low) & (new_root < high), new_root, 0.5 * (low + high))
        converged = np.abs(new_root - root) <= 1e-13 * new_root
        quantiles[active] = new_root**2
        unconverged = ~converged
        active, probabilities, centre, low, high, root = (array[unconverged] for array in (active, probabilities, centre, low, high, new_root))
    return quantiles


def _newton_step(root: Float64Array, centre: Float64Array, probability: Float64Array) -> Float64Array:
    """Newton's step; not finite where the density is 0."""
    from scipy.special import i1e

    density = centre * i1e(centre * root) * np.exp(-0.5 * (root - centre) ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(root - (_noncentral_chi2_cdf(root, centre) - probability) / density)


def _noncentral_chi2_cdf(root: Float64Array, centre: Float64Array) -> Float64Array:
    """The probability of no more than root², `centre`² the noncentrality: with no degrees of freedom, by that with two."""
    from scipy.special import chndtr, i0e

    two: Any = chndtr(root**2, 2.0, centre**2)
    return np.asarray(two + i0e(centre * root) * np.exp(-0.5 * (root - centre) ** 2))
