"""Windows brought to a common scale, in float64 before anything becomes float32, and forecasts brought back exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from deepforecast.nn.batch import Batch

Measure = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""(y with zeros where missing, seen, how many were seen, at least 1) -> place and spread, each (B, 1)."""


@dataclass(frozen=True)
class Scale:
    """How a window is scaled: y = place + spread * z. A window that does not vary has spread 0: whatever z is, y is its place.

    `naive` is the mean absolute change of the input from row to row (or from season to season), in units of z, where there is a
    target to learn from and a head that asks for it; else 1.
    """

    place: Tensor  # (B, 1) float64
    spread: Tensor  # (B, 1) float64
    naive: Tensor  # (B, 1) float32

    @property
    def level(self) -> Tensor:
        """How far 0 lies below the place, in units of the spread: (B, 1) float32."""
        return (self.place / _divisor(self.spread)).float()

    def back(self, z: Tensor) -> Tensor:
        """Values of z (B, ...) in units of the target, float64."""
        shape = (-1, *(1,) * (z.ndim - 1))
        return self.place.view(shape) + self.spread.view(shape) * z.double()

    def away(self, y: Tensor) -> Tensor:
        """Values of the target (B, ...) in units of z, float64."""
        shape = (-1, *(1,) * (y.ndim - 1))
        return (y - self.place.view(shape)) / _divisor(self.spread).view(shape)


def scaled(
    batch: Batch, scaler: str, season: int, moved: bool, ratio: Tensor | None = None
) -> tuple[Tensor, Tensor, Scale]:
    """The input (B, L) in units of z, zero where missing; which of it was seen (B, L); and the scale.

    `moved`: the scale may shift; else (of values that cannot be negative) it only stretches. `scaler` ends in "/series" where
    the scale is that of the whole series. `ratio`: of what "level" divides by to the size of the values. `season`: of the
    naive forecast, 0 where nobody asks for it.
    """
    y, seen = torch.nan_to_num(batch.y, 0.0), (batch.y == batch.y)
    there = seen.double()
    count = there.sum(1, keepdim=True).clamp(min=1.0)
    if scaler.endswith("/series"):
        place, spread = batch.place, batch.spread
    else:
        place, spread = MEASURES[scaler if moved else "mean_abs"](y, there, count)
        if scaler == "level" and ratio is not None:
            spread = spread * ratio
    unless_constant = torch.where(spread > 0, spread, torch.full_like(spread, torch.inf))
    z, told = ((y - place) / unless_constant * there).float(), there.float()
    naive = _naive(z, told, season) if season and batch.target is not None else z.new_ones((z.shape[0], 1))
    return z, told, Scale(place, spread, naive)


def of_series(y: Tensor, scaler: str) -> tuple[Tensor, Tensor]:
    """Place and spread of whole series (B, L) with NaN where missing."""
    seen = (y == y).double()
    return MEASURES[scaler](torch.nan_to_num(y, 0.0), seen, seen.sum(1, keepdim=True).clamp(min=1.0))


def ratio_of(y: Tensor) -> float:
    """How far windows (B, L) usually lie from their last value, as a share of their size: the median."""
    seen = (y == y).double()
    values, count = torch.nan_to_num(y, 0.0), seen.sum(1, keepdim=True).clamp(min=1.0)
    distance, size = _last(values, seen, count)[1], _level(values, seen, count)[1]
    shares = (distance / _divisor(size))[size > 0]
    return float(shares.median()) if len(shares) else 1.0


def _divisor(spread: Tensor) -> Tensor:
    return torch.where(spread > 0, spread, torch.ones_like(spread))


def _naive(z: Tensor, seen: Tensor, season: int) -> Tensor:
    lag = season if season < z.shape[1] else 1
    if z.shape[1] < 2:
        return torch.ones_like(z[:, :1])
    both = seen[:, lag:] * seen[:, :-lag]
    changes = ((z[:, lag:] - z[:, :-lag]).abs() * both).sum(1, keepdim=True)
    return changes / both.sum(1, keepdim=True).clamp(min=1.0)


def _standard(y: Tensor, seen: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    place = y.sum(1, keepdim=True) / count
    away = (y - place) * seen
    largest = away.abs().amax(1, keepdim=True)
    unit = away / _divisor(largest)  # squares of tiny and of huge values stay numbers
    return _unless_constant(place, (unit.square().sum(1, keepdim=True) / count).sqrt() * largest, y)


def _robust(y: Tensor, seen: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    empty = seen.sum(1, keepdim=True) == 0
    held = torch.where((seen > 0) | empty, y, torch.full_like(y, torch.inf)).sort(1).values
    places = [share * (count - 1) for share in (0.25, 0.5, 0.75)]
    low, middle, high = ((held.gather(1, at.floor().long()) + held.gather(1, at.ceil().long())) / 2 for at in places)
    _, wide = _standard(y, seen, count)
    spread = (high - low) / 1.349
    return middle, torch.where(spread > 0, spread, wide)


def _min_max(y: Tensor, seen: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    low = torch.where(seen > 0, y, torch.full_like(y, torch.inf)).amin(1, keepdim=True)
    high = torch.where(seen > 0, y, torch.full_like(y, -torch.inf)).amax(1, keepdim=True)
    empty = low > high
    return torch.where(empty, torch.zeros_like(low), low), torch.where(empty, torch.zeros_like(low), high - low)


def _mean_abs(y: Tensor, seen: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    spread = y.abs().sum(1, keepdim=True) / count
    return torch.zeros_like(spread), spread


def _last(y: Tensor, seen: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """From the last value seen; spread: the mean distance from it."""
    place = last_seen(y, seen)
    return _unless_constant(place, ((y - place).abs() * seen).sum(1, keepdim=True) / count, y)


def _level(y: Tensor, seen: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """From the last value seen; spread: the mean size of the values, so that errors are shares of it."""
    place, distance = _last(y, seen, count)
    return place, torch.where(distance > 0, y.abs().sum(1, keepdim=True) / count, torch.zeros_like(distance))


def _changes(y: Tensor, seen: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """From the last value seen; spread: the mean change from row to row."""
    both = seen[:, 1:] * seen[:, :-1]
    changes = ((y[:, 1:] - y[:, :-1]).abs() * both).sum(1, keepdim=True)
    place, wide = _last(y, seen, count)
    spread = changes / both.sum(1, keepdim=True).clamp(min=1.0)
    return place, torch.where(spread > 0, spread, wide)


def _none(y: Tensor, seen: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    return torch.zeros_like(count), torch.ones_like(count)


def _unless_constant(place: Tensor, spread: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """What rounding leaves of the spread of a constant is none: 1e-14 of its size, hundred times what rounding adds."""
    return place, torch.where(spread > 1e-14 * y.abs().amax(1, keepdim=True), spread, torch.zeros_like(spread))


def last_seen(y: Tensor, seen: Tensor) -> Tensor:
    """The last value that was seen of each window, (B, 1); zero where none was."""
    order = torch.arange(1, y.shape[1] + 1, device=y.device, dtype=y.dtype)
    return y.gather(1, (seen * order).argmax(1, keepdim=True))


MEASURES: dict[str, Measure] = {
    "standard": _standard,
    "robust": _robust,
    "min_max": _min_max,
    "mean_abs": _mean_abs,
    "last": _last,
    "level": _level,
    "revin": _standard,
    "difference": _changes,
    "none": _none,
}
