"""Learned quantiles: a fixed set of them that cannot cross, with straight lines between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, final

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from deepforecast.core.forecast import QuantileForecast, checked_quantiles
from deepforecast.nn.head import Head
from deepforecast.nn.inverse import interpolated
from deepforecast.nn.losses import pinball
from deepforecast.nn.scaling import Scale

DECILES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@final
class Quantiles(Head):
    """The quantiles of some probabilities and of 0.5, by the pinball loss. Between them straight lines; none outside.

    The median is read as it is, the others as steps away from it, each made positive: they cannot cross. For raw numbers of 0
    they are those of the standard normal distribution.
    """

    name: ClassVar[str] = "quantiles"
    steps: Tensor
    tilt: Tensor

    def __init__(self, probabilities: Sequence[float] = DECILES) -> None:
        super().__init__()
        self.probabilities = tuple(checked_quantiles([*probabilities, 0.5]))
        self.width, self.middle = len(self.probabilities), self.probabilities.index(0.5)
        known = torch.tensor(self.probabilities, dtype=torch.float64)
        self.register_buffer("steps", _steps(known, self.middle).float(), persistent=False)
        self.register_buffer("tilt", (2 * known - 1).float(), persistent=False)

    @property
    def settings(self) -> dict[str, Any]:
        """Its probabilities."""
        return {"probabilities": list(self.probabilities)}

    @property
    def reach(self) -> tuple[float, float]:
        """From the least to the largest that is learned."""
        return self.probabilities[0], self.probabilities[-1]

    @property
    def location(self) -> slice:
        """The median."""
        return slice(self.middle, self.middle + 1)

    def median(self, raw: Tensor) -> Tensor:
        """As it is read."""
        return raw[..., self.middle]

    def values(self, raw: Tensor) -> Tensor:
        """The quantiles learned, (..., width), rising."""
        away = functional.softplus(raw) @ self.steps.to(raw.dtype)
        return away + raw[..., self.location]

    def loss(self, raw: Tensor, target: Tensor, scale: Scale) -> Tensor:
        """Twice the pinball loss, its mean over the quantiles."""
        return pinball(self.values(raw), target, self.tilt)

    def _mean(self, raw: Tensor) -> Tensor:
        """Of the distribution of straight lines, its tails cut where the learning ends."""
        known = np.array([0.0, *self.probabilities, 1.0])
        share = np.diff(known) / 2
        share[[0, -1]] *= 2  # all of the tails lies at the outermost quantiles
        weights = share[:-1] + share[1:]
        return self._rising(raw) @ raw.new_tensor(weights)

    def _quantiles(self, raw: Tensor, p: Tensor, spread: Tensor) -> Tensor:
        if bool(((p < self.reach[0]) | (p > self.reach[1])).any()):
            self._refuse_outside(float(p.min()), float(p.max()))
        return interpolated(self._rising(raw), p.new_tensor(self.probabilities), p)

    def _rising(self, raw: Tensor) -> Tensor:
        return self.values(raw).cummax(-1).values  # the sums of many steps may differ by their rounding

    def _refuse_outside(self, *ends: float) -> None:
        empty = np.empty((0, 0, self.width))
        QuantileForecast(empty[..., 0], self.probabilities, empty).quantiles(sorted(set(ends)))


def _steps(known: Tensor, middle: int) -> Tensor:
    """How far each of the numbers read (first axis) moves each quantile (second), by the spacing of the normal distribution."""
    spacing = torch.special.ndtri(known).diff() / np.log(2)  # softplus(0) is log 2
    number = torch.arange(len(known))
    above = (number[:, None] > middle) & (number[None, :] >= number[:, None])
    below = (number[:, None] < middle) & (number[None, :] <= number[:, None])
    beside = torch.cat([spacing[:middle], spacing.new_zeros(1), spacing[middle:]])[:, None]  # the step on the middle's side
    return above * beside - below * beside
