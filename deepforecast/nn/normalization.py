"""Normalisation layers by name, over the last axis."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deepforecast.errors import ParameterError, format_value


def normalization(name: str | None, width: int) -> nn.Module:
    """Return the normalisation layer (..., width) -> (..., width) of this name; None: the identity.

    Examples
    --------
    >>> normalization("batch", 8)
    BatchNorm()
    """
    if name not in NORMALIZATIONS:
        raise ParameterError(
            f"`normalization` must be one of {', '.join(map(repr, NORMALIZATIONS))}, got {format_value(name)}.",
            parameter="normalization",
            value=name,
        )
    return NORMALIZATIONS[name](width)


class BatchNorm(nn.Module):
    """Batch normalisation over all axes but the last (Ioffe and Szegedy 2015, arXiv:1502.03167).

    As `nn.BatchNorm1d`, but for inputs (..., width). A single vector has no variance and is normalised
    by the running statistics, in training too. Splitting a batch changes the gradient.
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, width: int, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))
        self.register_buffer("running_mean", torch.zeros(width))
        self.register_buffer("running_var", torch.ones(width))

    def forward(self, hidden: Tensor) -> Tensor:
        """Normalise (..., width)."""
        vectors = hidden.reshape(-1, hidden.shape[-1])
        normalized = F.batch_norm(
            vectors,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            training=self.training and vectors.shape[0] > 1,
            momentum=self.momentum,
            eps=self.eps,
        )
        return normalized.view(hidden.shape)


NORMALIZATIONS: dict[str | None, Callable[[int], nn.Module]] = {
    None: nn.Identity,
    "layer": nn.LayerNorm,
    "batch": BatchNorm,
    "rms": nn.RMSNorm,
}
"""Normalisation layers by name."""
