"""A mixture of normal distributions: more than one hump, any skew."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, final

import torch
from torch import Tensor
from torch.special import ndtr, ndtri

from deepforecast.data.whole import whole_number
from deepforecast.nn.distributions import HALF_LOG_TWO_PI
from deepforecast.nn.head import Head, positive
from deepforecast.nn.inverse import bisected, rising
from deepforecast.nn.scaling import Scale


@final
class Mixture(Head):
    """`n` normal distributions with their shares. For raw numbers of 0 they lie side by side, so that each finds its part."""

    name: ClassVar[str] = "mixture"
    places: Tensor

    def __init__(self, n: int = 3) -> None:
        super().__init__()
        self.n = whole_number(n, "n", most=1000)
        self.width = 3 * self.n
        apart = ndtri((torch.arange(self.n, dtype=torch.float64) + 0.5) / self.n)
        self.register_buffer("places", apart.float(), persistent=False)

    @property
    def settings(self) -> dict[str, Any]:
        """How many."""
        return {"n": self.n}

    @property
    def location(self) -> slice:
        """The means."""
        return slice(self.n, 2 * self.n)

    def median(self, raw: Tensor) -> Tensor:
        """As finely as the type of raw tells values apart near the parts."""
        shares, places, deviations = self.parts(raw)
        below = partial(cumulated, weights=shares.exp(), places=places, deviations=deviations)
        return bisected(below, raw.new_tensor(0.5), places.amin(-1), places.amax(-1), halvings=26)

    def parts(self, raw: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Log shares, means and deviations, (..., n) each."""
        shares, places, deviations = raw.chunk(3, dim=-1)
        return shares.log_softmax(-1), places + self.places, positive(deviations)

    def loss(self, raw: Tensor, target: Tensor, scale: Scale) -> Tensor:
        """Its negative log density."""
        shares, places, deviations = self.parts(raw)
        away = 0.5 * ((target.unsqueeze(-1) - places) / deviations).square()
        return HALF_LOG_TWO_PI - (shares - away - deviations.log()).logsumexp(-1)

    def _mean(self, raw: Tensor) -> Tensor:
        shares, places, _ = self.parts(raw)
        return (shares.exp() * places).sum(-1)

    def _quantiles(self, raw: Tensor, p: Tensor, spread: Tensor) -> Tensor:
        """Halved in upon between the least and the largest of the parts' own, from the side whose tail is the finer."""
        shares, places, deviations = (one.unsqueeze(-2) for one in self.parts(raw))  # (..., 1, n)
        side, tail = torch.where(p < 0.5, 1.0, -1.0).to(p), torch.minimum(p, 1 - p)
        mirrored = side.unsqueeze(-1) * places  # the upper half is the lower one of the mirrored distribution
        own = ndtri(tail).unsqueeze(-1) * deviations + mirrored
        below = partial(cumulated, weights=shares.exp(), places=mirrored, deviations=deviations)
        return rising(side * bisected(below, tail, own.amin(-1), own.amax(-1)), p)


def cumulated(value: Tensor, weights: Tensor, places: Tensor, deviations: Tensor) -> Tensor:
    """The probability of no more than `value` (...), from parts (..., n)."""
    chance: Tensor = ndtr((value.unsqueeze(-1) - places) / deviations)
    return (weights * chance).sum(-1)
