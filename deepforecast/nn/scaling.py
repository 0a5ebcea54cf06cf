"""Scaling of windows, in float64 before anything becomes float32, and its exact inverse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from deepforecast.nn.batch import Batch

Scaler = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""Function of y (0 where missing), the mask of observed values and their number (at least 1), to
loc and scale, each (batch, 1).
"""


@dataclass(frozen=True)
class Scale:
    """Scale of a window: y = loc + scale * z. A constant window has scale 0: its y is loc for every
    z.

    `naive` is the mean absolute (seasonal) difference of the window in units of z, if there is a
    target and the head needs it; otherwise 1.
    """

    loc: Tensor  # (B, 1) float64
    scale: Tensor  # (B, 1) float64
    naive: Tensor  # (B, 1) float32

    @property
    def level(self) -> Tensor:
        """Level in units of z, loc / scale: (batch, 1) float32."""
        return (self.loc / _divisor(self.scale)).float()

    def unstandardize(self, z: Tensor) -> Tensor:
        """Compute loc + scale * z for z (batch, ...), float64."""
        shape = (-1, *(1,) * (z.ndim - 1))
        return self.loc.view(shape) + self.scale.view(shape) * z.double()

    def standardize(self, y: Tensor) -> Tensor:
        """Compute (y - loc) / scale for y (batch, ...), float64."""
        shape = (-1, *(1,) * (y.ndim - 1))
        return (y - self.loc.view(shape)) / _divisor(self.scale).view(shape)


def scale_window(
    batch: Batch, scaler: str, season: int, allow_shift: bool, level_ratio: Tensor | None = None
) -> tuple[Tensor, Tensor, Scale]:
    """Scale the windows of a batch.

    Parameters
    ----------
    batch : Batch
    scaler : str
        Name in `SCALER_FUNCTIONS`; a name that ends in "/series" uses loc and scale of the whole
        series.
    season : int
        Season length of the naive error, 0: not needed.
    allow_shift : bool
        Whether loc may differ from 0; False for nonnegative distributions.
    level_ratio : Tensor, optional
        Factor of the scale of "level", see `level_ratio`.

    Returns
    -------
    z : Tensor of shape (batch, input_size)
        Scaled values, 0 where missing.
    mask : Tensor of shape (batch, input_size)
        1 where observed, else 0.
    scale : Scale
    """
    y, observed = torch.nan_to_num(batch.y, 0.0), (batch.y == batch.y)
    mask64 = observed.double()
    count = mask64.sum(1, keepdim=True).clamp(min=1.0)
    if scaler.endswith("/series"):
        loc, scale = batch.loc, batch.scale
    else:
        loc, scale = SCALER_FUNCTIONS[scaler if allow_shift else "mean_abs"](y, mask64, count)
        if scaler == "level" and level_ratio is not None:
            scale = scale * level_ratio
    unless_constant = torch.where(scale > 0, scale, torch.full_like(scale, torch.inf))
    z, mask = ((y - loc) / unless_constant * mask64).float(), mask64.float()
    naive = (
        _naive(z, mask, season)
        if season and batch.target is not None
        else z.new_ones((z.shape[0], 1))
    )
    return z, mask, Scale(loc, scale, naive)


def series_scale(y: Tensor, scaler: str) -> tuple[Tensor, Tensor]:
    """Return loc and scale of whole series (series, steps) with NaN for missing values."""
    mask = (y == y).double()
    return SCALER_FUNCTIONS[scaler](
        torch.nan_to_num(y, 0.0), mask, mask.sum(1, keepdim=True).clamp(min=1.0)
    )


def level_ratio(y: Tensor) -> float:
    """Return the median over windows of mean |y - last value| / mean |y|."""
    mask = (y == y).double()
    values, count = torch.nan_to_num(y, 0.0), mask.sum(1, keepdim=True).clamp(min=1.0)
    distance, size = _last(values, mask, count)[1], _level(values, mask, count)[1]
    ratios = (distance / _divisor(size))[size > 0]
    return float(ratios.median()) if len(ratios) else 1.0


def _divisor(scale: Tensor) -> Tensor:
    return torch.where(scale > 0, scale, torch.ones_like(scale))


def _naive(z: Tensor, mask: Tensor, season: int) -> Tensor:
    lag = season if season < z.shape[1] else 1
    if z.shape[1] < 2:
        return torch.ones_like(z[:, :1])
    both_observed = mask[:, lag:] * mask[:, :-lag]
    changes = ((z[:, lag:] - z[:, :-lag]).abs() * both_observed).sum(1, keepdim=True)
    return changes / both_observed.sum(1, keepdim=True).clamp(min=1.0)


def _standard(y: Tensor, mask: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    loc = y.sum(1, keepdim=True) / count
    deviation = (y - loc) * mask
    largest = deviation.abs().amax(1, keepdim=True)
    unit = deviation / _divisor(largest)  # squares neither underflow nor overflow
    return _unless_constant(loc, (unit.square().sum(1, keepdim=True) / count).sqrt() * largest, y)


def _robust(y: Tensor, mask: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    empty = mask.sum(1, keepdim=True) == 0
    sorted_values = torch.where((mask > 0) | empty, y, torch.full_like(y, torch.inf)).sort(1).values
    positions = [share * (count - 1) for share in (0.25, 0.5, 0.75)]
    low, middle, high = (
        (
            sorted_values.gather(1, position.floor().long())
            + sorted_values.gather(1, position.ceil().long())
        )
        / 2
        for position in positions
    )
    _, fallback = _standard(y, mask, count)
    scale = (high - low) / 1.349
    return middle, torch.where(scale > 0, scale, fallback)


def _min_max(y: Tensor, mask: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    low = torch.where(mask > 0, y, torch.full_like(y, torch.inf)).amin(1, keepdim=True)
    high = torch.where(mask > 0, y, torch.full_like(y, -torch.inf)).amax(1, keepdim=True)
    empty = low > high
    return torch.where(empty, torch.zeros_like(low), low), torch.where(
        empty, torch.zeros_like(low), high - low
    )


def _mean_abs(y: Tensor, mask: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    scale = y.abs().sum(1, keepdim=True) / count
    return torch.zeros_like(scale), scale


def _last(y: Tensor, mask: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """Last observed value; mean absolute distance from it."""
    loc = last_observed(y, mask)
    return _unless_constant(loc, ((y - loc).abs() * mask).sum(1, keepdim=True) / count, y)


def _level(y: Tensor, mask: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """Last observed value; mean absolute value, so that errors are relative."""
    loc, distance = _last(y, mask, count)
    return loc, torch.where(
        distance > 0, y.abs().sum(1, keepdim=True) / count, torch.zeros_like(distance)
    )


def _difference(y: Tensor, mask: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """Last observed value; mean absolute difference of consecutive values."""
    both_observed = mask[:, 1:] * mask[:, :-1]
    changes = ((y[:, 1:] - y[:, :-1]).abs() * both_observed).sum(1, keepdim=True)
    loc, fallback = _last(y, mask, count)
    scale = changes / both_observed.sum(1, keepdim=True).clamp(min=1.0)
    return loc, torch.where(scale > 0, scale, fallback)


def _none(y: Tensor, mask: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    return torch.zeros_like(count), torch.ones_like(count)


def _unless_constant(loc: Tensor, scale: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Set a scale below 1e-14 of the largest |y| to 0: a hundred times the rounding error of a
    constant window.
    """
    return loc, torch.where(
        scale > 1e-14 * y.abs().amax(1, keepdim=True), scale, torch.zeros_like(scale)
    )


def last_observed(y: Tensor, mask: Tensor) -> Tensor:
    """Return the last observed value of each window, (batch, 1); 0 if there is none."""
    order = torch.arange(1, y.shape[1] + 1, device=y.device, dtype=y.dtype)
    return y.gather(1, (mask * order).argmax(1, keepdim=True))


SCALER_FUNCTIONS: dict[str, Scaler] = {
    "standard": _standard,
    "robust": _robust,
    "min_max": _min_max,
    "mean_abs": _mean_abs,
    "last": _last,
    "level": _level,
    "revin": _standard,
    "difference": _difference,
    "none": _none,
}
