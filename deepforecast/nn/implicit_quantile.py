"""A network that is asked for one quantile at a time, with its probability as an input."""

from __future__ import annotations

import math
from typing import Any, ClassVar, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from deepforecast.data.integers import validate_integer
from deepforecast.nn.head import Head
from deepforecast.nn.inverse_cdf import interpolate_quantiles
from deepforecast.nn.losses import pinball
from deepforecast.nn.scaling import Scale

N_TRAINING_PROBABILITIES = 4  # probabilities a step is asked for while training, one from each quarter
N_KNOTS = 201  # probabilities it is asked for in a forecast, from 0 to 1; sorted, and straight lines between them


@final
class ImplicitQuantileHead(Head):
    """Any quantile: cosines of its probability modulate the `features` that are read, the first of which is a place.

    While training the probabilities are drawn from torch's generator, otherwise they are evenly spaced. (Dabney et al. 2018;
    Gouttes et al. 2021.)
    """

    name: ClassVar[str] = "implicit_quantile"

    def __init__(self, features: int = 32, cosines: int = 64) -> None:
        super().__init__()
        self.out_features = 1 + validate_integer(features, "features", maximum=10_000)
        self.cosines = validate_integer(cosines, "cosines", maximum=10_000)
        self.embed = nn.Linear(self.cosines, features)
        self.out = nn.Linear(features, 1)

    @property
    def settings(self) -> dict[str, Any]:
        """Its sizes."""
        return {"features": self.out_features - 1, "cosines": self.cosines}

    @property
    def location_slice(self) -> slice:
        """The first."""
        return slice(0, 1)

    def median(self, raw: Tensor) -> Tensor:
        """Among the others."""
        return self._sorted_values(raw)[..., N_KNOTS // 2]

    def loss(self, raw: Tensor, target: Tensor, scaling: Scale) -> Tensor:
        """Twice the pinball loss, its mean over some probabilities."""
        offset = torch.rand(*target.shape, N_TRAINING_PROBABILITIES, dtype=raw.dtype, device=raw.device) if self.training else 0.5
        p = (torch.arange(N_TRAINING_PROBABILITIES, dtype=raw.dtype, device=raw.device) + offset) / N_TRAINING_PROBABILITIES  # (B, H, DRAWS) or (DRAWS,)
        return pinball(self.values(raw, p), target, 2 * p - 1)

    def values(self, raw: Tensor, p: Tensor) -> Tensor:
        """The quantiles (..., N) of p (..., N) or (N,), as the network gives them: they may cross."""
        frequency = torch.arange(self.cosines, dtype=raw.dtype, device=raw.device)
        embedded = functional.linear(torch.cos(math.pi * p.unsqueeze(-1) * frequency), *_weights_as(self.embed, raw))
        modulated = raw[..., 1:].unsqueeze(-2) * (1 + functional.relu(embedded))  # (..., N, features)
        deviations = functional.linear(functional.silu(modulated), *_weights_as(self.out, raw)).squeeze(-1)
        return raw[..., :1] + deviations

    def _mean(self, raw: Tensor) -> Tensor:
        quantiles = self._sorted_values(raw)
        return torch.trapezoid(quantiles, dim=-1) / (N_KNOTS - 1)

    def _quantiles(self, raw: Tensor, p: Tensor, scale: Tensor) -> Tensor:
        return interpolate_quantiles(self._sorted_values(raw), _knots(raw), p)

    def _sorted_values(self, raw: Tensor) -> Tensor:
        """(..., KNOTS). The same for whatever is asked, so that what one quantile is does not hang on which others are."""
        return self.values(raw, _knots(raw)).sort(-1).values


def _knots(raw: Tensor) -> Tensor:
    return torch.linspace(0, 1, N_KNOTS, dtype=raw.dtype, device=raw.device)


def _weights_as(layer: nn.Linear, raw: Tensor) -> tuple[Tensor, Tensor]:
    return layer.weight.to(raw.dtype), layer.bias.to(raw.dtype)
