"""Elementwise losses of point forecasts, in scaled units z (y = loc + scale * z)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from deepforecast.nn.scaling import Scale

Loss = Callable[[Tensor, Tensor, Scale], Tensor]
"""Function of point (batch, horizon), target (batch, horizon) and `Scale`, to (batch, horizon); see `names.LOSS_FACTS`."""

CustomLoss = Callable[[Tensor, Tensor], Tensor]
"""Function of a user: predictions (n,) and targets (n,) of n observed time steps in units of z, to (n,) or the mean, ()."""

MIN_NAIVE_ERROR = 1e-4  # smaller naive errors are rounding; such series would dominate the loss
# Added to |y| + |point| in units of z, as the gradient of sMAPE is unbounded at 0.
SMAPE_EPSILON = 1e-4


def absolute(point: Tensor, target: Tensor, scaling: Scale) -> Tensor:
    """Compute |target - point|."""
    return functional.l1_loss(point, target, reduction="none")


def squared(point: Tensor, target: Tensor, scaling: Scale) -> Tensor:
    """Compute (target - point)^2."""
    return functional.mse_loss(point, target, reduction="none")


def huber(point: Tensor, target: Tensor, scaling: Scale) -> Tensor:
    """Compute the Huber loss with delta = 1: e^2 / 2 for |e| <= 1, |e| - 1/2 beyond."""
    return functional.huber_loss(point, target, reduction="none")


def mase(point: Tensor, target: Tensor, scaling: Scale) -> Tensor:
    """Compute |target - point| / (mean absolute error of the naive forecast in the window); the
    divisor is 1 if that error is 0.
    """
    naive = torch.where(scaling.naive > MIN_NAIVE_ERROR, scaling.naive, 1.0)
    return absolute(point, target, scaling) / naive


def smape(point: Tensor, target: Tensor, scaling: Scale) -> Tensor:
    """Compute 2 |y - point| / (|y| + |point|) in units of y, in [0, 2]; 0 where both are 0.

    Numerator and denominator are divided by the scale, y / scale = loc / scale + z, so that no
    magnitude of y exceeds float32. A constant window has scale 0 and loss 0: its forecast is its
    loc.
    """
    level = torch.where(scaling.scale > 0, scaling.loc / scaling.scale, torch.inf).to(point)
    denominator = (level + target).abs() + (level + point).abs()
    return 2 * absolute(point, target, scaling) / (denominator + SMAPE_EPSILON)


def owa(point: Tensor, target: Tensor, scaling: Scale) -> Tensor:
    """Compute sMAPE / 13.5 % + MASE / 1.9, twice the overall weighted average (OWA) of the M4
    competition; the divisors are about the errors of Naive2 there.
    """
    return smape(point, target, scaling) * (100 / 13.5) + mase(point, target, scaling) / 1.9


def pinball(values: Tensor, target: Tensor, tilt: Tensor) -> Tensor:
    """Compute twice the pinball loss, averaged over the last axis.

    2 max(p d, (p - 1) d) = |d| + (2 p - 1) d with d = target - value; for the median it is the
    absolute error.

    Parameters
    ----------
    values : Tensor of shape (..., Q)
    target : Tensor of shape (...)
    tilt : Tensor of shape (Q,) or (..., Q)
        2 p - 1.
    """
    errors = target.unsqueeze(-1) - values
    return torch.addcmul(errors.abs(), errors, tilt).mean(-1)
