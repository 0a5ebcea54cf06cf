"""Implicit quantile network: a head with the probability as an input."""

from __future__ import annotations

import math
from typing import Any, ClassVar, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from deepforecast.errors import validate_integer
from deepforecast.nn.head import Head
from deepforecast.nn.inverse_cdf import interpolate_quantiles
from deepforecast.nn.losses import pinball
from deepforecast.nn.scaling import Scale

N_TRAINING_PROBABILITIES = 4  # per step in training, one from each quarter of (0, 1)
N_KNOTS = 201  # grid from 0 to 1 in forecasts, linearly interpolated


@final
class ImplicitQuantileHead(Head):
    """Implicit quantile network: cosine features of the probability p modulate the features of the
    body.

    q(p) = raw_0 + out(silu(raw_1.. * (1 + relu(W cos(pi k p) + b)))), k = 0, 1, ... In training the
    probabilities are drawn at random, otherwise they are evenly spaced. Quantiles are sorted, so
    that they do not cross.

    Parameters
    ----------
    features : int, default 32
        Number of features per step besides the location.
    cosines : int, default 64
        Number of cosine features of p.

    References
    ----------
    Dabney, Ostrovski, Silver, Munos (2018), arXiv:1806.06923; Gouttes, Rasul, Koren, Stephan,
    Naghibi (2021), arXiv:2107.03743.
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
        """Number of features and of cosines."""
        return {"features": self.out_features - 1, "cosines": self.cosines}

    @property
    def location_slice(self) -> slice:
        """The first feature."""
        return slice(0, 1)

    def median(self, raw: Tensor) -> Tensor:
        """Return the median of the sorted quantiles."""
        return self._sorted_values(raw)[..., N_KNOTS // 2]

    def loss(self, raw: Tensor, target: Tensor, scaling: Scale) -> Tensor:
        """Compute twice the pinball loss, averaged over `N_TRAINING_PROBABILITIES` probabilities."""
        offset: Tensor | float = 0.5  # within each of the N equal parts of (0, 1)
        if self.training:
            offset = torch.rand(*target.shape, N_TRAINING_PROBABILITIES, dtype=raw.dtype, device=raw.device)
        index = torch.arange(N_TRAINING_PROBABILITIES, dtype=raw.dtype, device=raw.device)
        p = (index + offset) / N_TRAINING_PROBABILITIES  # (batch, horizon, N) or (N,)
        return pinball(self.values(raw, p), target, 2 * p - 1)

    def values(self, raw: Tensor, p: Tensor) -> Tensor:
        """Return the quantiles (..., N) at p (..., N) or (N,) without sorting: they may cross."""
        frequency = torch.arange(self.cosines, dtype=raw.dtype, device=raw.device)
        embedded = functional.linear(
            torch.cos(math.pi * p.unsqueeze(-1) * frequency), *_weights_as(self.embed, raw)
        )
        # (..., N, features)
        modulated = raw[..., 1:].unsqueeze(-2) * (1 + functional.relu(embedded))
        deviations = functional.linear(
            functional.silu(modulated), *_weights_as(self.out, raw)
        ).squeeze(-1)
        return raw[..., :1] + deviations

    def _mean(self, raw: Tensor) -> Tensor:
        quantiles = self._sorted_values(raw)
        return torch.trapezoid(quantiles, dim=-1) / (N_KNOTS - 1)

    def _quantiles(self, raw: Tensor, p: Tensor, scale: Tensor) -> Tensor:
        return interpolate_quantiles(self._sorted_values(raw), _knots(raw), p)

    def _sorted_values(self, raw: Tensor) -> Tensor:
        """Return sorted quantiles (..., N_KNOTS) on a fixed grid, so that a quantile does not
        depend on which others are requested.
        """
        return self.values(raw, _knots(raw)).sort(-1).values


def _knots(raw: Tensor) -> Tensor:
    """Return the probabilities of the grid, (N_KNOTS,)."""
    return torch.linspace(0, 1, N_KNOTS, dtype=raw.dtype, device=raw.device)


def _weights_as(layer: nn.Linear, raw: Tensor) -> tuple[Tensor, Tensor]:
    """Return weight and bias of the layer in the dtype and on the device of `raw`."""
    return layer.weight.to(raw), layer.bias.to(raw)
