"""A network that is asked for one quantile at a time, with its probability as an input."""

from __future__ import annotations

import math
from typing import Any, ClassVar, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from deepforecast.data.whole import whole_number
from deepforecast.nn.head import Head
from deepforecast.nn.inverse import interpolated
from deepforecast.nn.losses import pinball
from deepforecast.nn.scaling import Scale

DRAWS = 4  # probabilities a step is asked for while training, one from each quarter
KNOTS = 201  # probabilities it is asked for in a forecast, from 0 to 1; sorted, and straight lines between them


@final
class ImplicitQuantile(Head):
    """Any quantile: cosines of its probability modulate the `features` that are read, the first of which is a place.

    While training the probabilities are drawn from torch's generator, otherwise they are evenly spaced. (Dabney et al. 2018;
    Gouttes et al. 2021.)
    """

    name: ClassVar[str] = "implicit_quantile"

    def __init__(self, features: int = 32, cosines: int = 64) -> None:
        super().__init__()
        self.width = 1 + whole_number(features, "features", most=10_000)
        self.cosines = whole_number(cosines, "cosines", most=10_000)
        self.embed = nn.Linear(self.cosines, features)
        self.out = nn.Linear(features, 1)

    @property
    def settings(self) -> dict[str, Any]:
        """Its sizes."""
        return {"features": self.width - 1, "cosines": self.cosines}

    @property
    def location(self) -> slice:
        """The first."""
        return slice(0, 1)

    def median(self, raw: Tensor) -> Tensor:
        """Among the others."""
        return self._sorted(raw)[..., KNOTS // 2]

    def loss(self, raw: Tensor, target: Tensor, scale: Scale) -> Tensor:
        """Twice the pinball loss, its mean over some probabilities."""
        within = torch.rand(*target.shape, DRAWS, dtype=raw.dtype, device=raw.device) if self.training else 0.5
        p = (torch.arange(DRAWS, dtype=raw.dtype, device=raw.device) + within) / DRAWS  # (B, H, DRAWS) or (DRAWS,)
        return pinball(self.values(raw, p), target, 2 * p - 1)

    def values(self, raw: Tensor, p: Tensor) -> Tensor:
        """The quantiles (..., N) of p (..., N) or (N,), as the network gives them: they may cross."""
        number = torch.arange(self.cosines, dtype=raw.dtype, device=raw.device)
        embedded = functional.linear(torch.cos(math.pi * p.unsqueeze(-1) * number), *_typed(self.embed, raw))
        modulated = raw[..., 1:].unsqueeze(-2) * (1 + functional.relu(embedded))  # (..., N, features)
        away = functional.linear(functional.silu(modulated), *_typed(self.out, raw)).squeeze(-1)
        return raw[..., :1] + away

    def _mean(self, raw: Tensor) -> Tensor:
        found = self._sorted(raw)
        return torch.trapezoid(found, dim=-1) / (KNOTS - 1)

    def _quantiles(self, raw: Tensor, p: Tensor, spread: Tensor) -> Tensor:
        return interpolated(self._sorted(raw), _knots(raw), p)

    def _sorted(self, raw: Tensor) -> Tensor:
        """(..., KNOTS). The same for whatever is asked, so that what one quantile is does not hang on which others are."""
        return self.values(raw, _knots(raw)).sort(-1).values


def _knots(raw: Tensor) -> Tensor:
    return torch.linspace(0, 1, KNOTS, dtype=raw.dtype, device=raw.device)


def _typed(layer: nn.Linear, raw: Tensor) -> tuple[Tensor, Tensor]:
    return layer.weight.to(raw.dtype), layer.bias.to(raw.dtype)
