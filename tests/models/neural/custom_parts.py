"""A loss, a loss with weights and a head of a user, as an importable module."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from deepforecast import Head
from deepforecast.nn.heads.base import softplus_floor


def power_loss(prediction: Tensor, target: Tensor) -> Tensor:
    """|error|^1.5, elementwise."""
    return (prediction - target).abs() ** 1.5


class TiltedLoss(nn.Module):
    """Mean pinball loss with a learned scale, which has no other effect than that it is trained."""

    def __init__(self, tilt: float = 0.5) -> None:
        super().__init__()
        self.tilt = tilt
        self.weight = nn.Parameter(torch.tensor([2.0]))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, prediction: Tensor, target: Tensor) -> Tensor:
        """Mean loss."""
        self.calls += 1
        error = target - prediction
        return torch.maximum(self.tilt * error, (self.tilt - 1) * error).mean() + 0.01 * self.weight.square().sum()


class WideLaplace(Head):
    """Laplace distribution with scale at least `floor`."""

    out_features = 2

    def __init__(self, floor: float = 0.1) -> None:
        super().__init__()
        self.floor = floor

    @property
    def settings(self) -> dict[str, float]:
        """Constructor arguments."""
        return {"floor": self.floor}

    def loss(self, raw: Tensor, target: Tensor, scaling: object) -> Tensor:
        """Negative log-density."""
        scale = self.floor + softplus_floor(raw[..., 1])
        return (target - raw[..., 0]).abs() / scale + scale.log()

    def median(self, raw: Tensor) -> Tensor:
        """Location."""
        return raw[..., 0]

    def _mean(self, raw: Tensor) -> Tensor:
        return raw[..., 0]

    def _quantiles(self, raw: Tensor, p: Tensor, scale: Tensor) -> Tensor:
        spread = self.floor + softplus_floor(raw[..., 1:])
        return raw[..., :1] - spread * (p - 0.5).sign() * torch.log1p(-2 * (p - 0.5).abs())


class PositiveCounts(WideLaplace):
    """A head with other facts: a distribution of counts."""

    support = "nonnegative"
    is_count = True


class Forgetful(nn.Module):
    """A loss that does not keep its argument under its name."""

    def __init__(self, tilt: float) -> None:
        super().__init__()
        self.other = tilt

    def forward(self, prediction: Tensor, target: Tensor) -> Tensor:
        """Mean loss."""
        return self.other * (prediction - target).abs().mean()
