"""Losses of a point, element by element, all in scaled units z (y = place + spread * z)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from deepforecast.nn.scaling import Scale

Loss = Callable[[Tensor, Tensor, Scale], Tensor]
"""Of point (B, H), target (B, H) and the scale of the windows: (B, H)."""

MIN_NAIVE_ERROR = 1e-4  # a smaller change from row to row is rounding: such a series would outweigh all others
SMAPE_EPSILON = 1e-4  # of |y| + |point| in units of z: below it the slope of sMAPE has no bound


def absolute(point: Tensor, target: Tensor, scaling: Scale) -> Tensor:
    """|target - point|."""
    return functional.l1_loss(point, target, reduction="none")


def squared(point: Tensor, target: Tensor, scaling: Scale) -> Tensor:
    """(target - point)²."""
    return functional.mse_loss(point, target, reduction="none")


def huber(point: Tensor, target: Tensor, scaling: Scale) -> Tensor:
    """Half the square up to 1, straight beyond."""
    return functional.huber_loss(point, target, reduction="none")


def mase(point: Tensor, target: Tensor, scaling: Scale) -> Tensor:
    """|target - point| in units of the naive forecast's error in the window; that of z where the naive forecast has none."""
    naive = torch.where(scaling.naive > MIN_NAIVE_ERROR, scaling.naive, 1.0)
    return absolute(point, target, scaling) / naive


def smape(point: Tensor, target: Tensor, scaling: Scale) -> Tensor:
    """2 |y - point| / (|y| + |point|) of the unscaled values, between 0 and 2; 0 where both are 0.

    Divided by the spread, so that no size of the series leaves the range of float32: y / spread = place / spread + z. A window
    that does not vary has spread 0, and nothing to be learned from: its forecast is its place.
    """
    level = torch.where(scaling.scale > 0, scaling.loc / scaling.scale, torch.inf).to(point.dtype)
    size = (level + target).abs() + (level + point).abs()
    return 2 * absolute(point, target, scaling) / (size + SMAPE_EPSILON)


def owa(point: Tensor, target: Tensor, scaling: Scale) -> Tensor:
    """sMAPE in percent / 13.5 + MASE / 1.9: both in units of what Naive2 has on M4, as its overall weighted average."""
    return smape(point, target, scaling) * (100 / 13.5) + mase(point, target, scaling) / 1.9


LOSSES: dict[str, Loss] = {
    "mae": absolute,
    "mse": squared,
    "huber": huber,
    "mase": mase,
    "smape": smape,
    "owa": owa,
}
"""By the name users say."""


def pinball(values: Tensor, target: Tensor, tilt: Tensor) -> Tensor:
    """Mean over the last axis of twice the pinball loss: values (..., Q), target (...), tilt = 2 p - 1 (Q,) or (..., Q).

    Twice, so that of the median alone it is the absolute error: |d| + (2 p - 1) d = 2 max(p d, (p - 1) d).
    """
    errors = target.unsqueeze(-1) - values
    return torch.addcmul(errors.abs(), errors, tilt).mean(-1)
