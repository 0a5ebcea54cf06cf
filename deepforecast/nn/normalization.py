"""Normalisation of hidden vectors by name: the last axis is what is normalised, whatever stands before it."""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from deepforecast.errors import ParameterError, shown


class BatchNorm(nn.BatchNorm1d):
    """Every feature to mean 0 and variance 1 over all windows and rows of a batch in training; by running figures after it.

    As `nn.BatchNorm1d`, but over the last axis of (..., D). A batch of a single row has no variance: it is normalised by the
    running figures in training, too. Beware: the batch cannot be cut into pieces without changing the gradient.
    """

    def forward(self, input: Tensor) -> Tensor:
        """(..., D) -> (..., D)."""
        rows = input.reshape(-1, input.shape[-1])
        if self.training and len(rows) > 1:
            return super().forward(rows).view_as(input)
        found = F.batch_norm(rows, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        return found.view_as(input)


NORMALIZATIONS: dict[str | None, Callable[[int], nn.Module]] = {
    None: nn.Identity,
    "layer": nn.LayerNorm,
    "batch": BatchNorm,
    "rms": nn.RMSNorm,
}
"""What may stand where a normalisation is asked for by name."""


def normalization(name: str | None, width: int) -> nn.Module:
    """The layer (..., width) -> (..., width) of this name; of None one that does nothing.

    >>> normalization("layer", 8)
    LayerNorm((8,), eps=1e-05, elementwise_affine=True)
    """
    if name not in NORMALIZATIONS:
        raise ParameterError(f"normalization is one of {', '.join(map(repr, NORMALIZATIONS))}, got {shown(name)}.")
    return NORMALIZATIONS[name](width)
