"""The additive score, whose tanh is of every number of every key for every query: in pieces, so that none of them is kept.

Kept for the gradient, 256 windows of 168 rows, 24 steps and 64 numbers would be 260 MB. A piece fits into the cache, and its
tanh is computed once more on the way back.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

PIECE = 1 << 18
"""Numbers of a piece: 1 MB."""


def additive(queries: Tensor, keys: Tensor, direction: Tensor) -> Tensor:
    """v . tanh(q + k): (B, N, A), (B, L, A), (A,) -> (B, N, L).

    >>> additive(torch.zeros(1, 1, 2), torch.tensor([[[0.0, 0.0], [9.0, 9.0]]]), torch.ones(2)).round().tolist()
    [[[0.0, 2.0]]]
    """
    if not torch.is_grad_enabled():
        return _forward(queries, keys, direction)
    if queries.shape[1] == 1:  # of one query a window there is little to keep, and torch's own way is twice as fast
        return torch.matmul(torch.tanh(queries + keys), direction).unsqueeze(1)
    return Summed.apply(queries, keys, direction)  # type: ignore[no-any-return, no-untyped-call]


class Summed(torch.autograd.Function):
    """The score with its gradient by hand."""

    @staticmethod
    def forward(context: Any, queries: Tensor, keys: Tensor, direction: Tensor) -> Tensor:
        """Piece by piece."""
        context.save_for_backward(queries, keys, direction)
        return _forward(queries, keys, direction)

    @staticmethod
    def backward(context: Any, *upstream: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """With t = tanh(q + k) and g what comes from above: of v the sum of g t, of q and k sums of g v (1 - t^2)."""
        queries, keys, direction = context.saved_tensors
        above, of_queries, of_keys = upstream[0], [], []
        of_direction = torch.zeros_like(direction)
        for part in _pieces(queries, keys):
            bent = (queries[part].unsqueeze(2) + keys[part].unsqueeze(1)).tanh_()
            weighed = above[part].unsqueeze(-1)
            of_direction += torch.mv(bent.flatten(0, 2).t(), above[part].reshape(-1))
            slope = bent.square_().neg_().add_(1).mul_(weighed)
            of_queries.append(slope.sum(2) * direction)
            of_keys.append(slope.sum(1) * direction)
        return torch.cat(of_queries), torch.cat(of_keys), of_direction


def _forward(queries: Tensor, keys: Tensor, direction: Tensor) -> Tensor:
    found = [
        torch.matmul((queries[part].unsqueeze(2) + keys[part].unsqueeze(1)).tanh_(), direction)
        for part in _pieces(queries, keys)
    ]
    return found[0] if len(found) == 1 else torch.cat(found)


def _pieces(queries: Tensor, keys: Tensor) -> list[slice]:
    """Windows that make a piece together."""
    windows, asking, width = queries.shape
    each = max(PIECE // max(asking * keys.shape[1] * width, 1), 1)
    return [slice(begin, begin + each) for begin in range(0, windows, each)] or [slice(0, 0)]
