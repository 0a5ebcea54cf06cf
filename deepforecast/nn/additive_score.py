"""The additive score, whose tanh is of every number of every key for every query: in pieces, so that none of them is kept.

Kept for the gradient, 256 windows of 168 rows, 24 steps and 64 numbers would be 260 MB. A piece fits into the cache, and its
tanh is computed once more on the way back.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

CHUNK_SIZE = 1 << 18
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
    return AdditiveScoreFunction.apply(queries, keys, direction)  # type: ignore[no-any-return, no-untyped-call]


class AdditiveScoreFunction(torch.autograd.Function):
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
        gradient, query_gradients, key_gradients = upstream[0], [], []
        direction_gradient = torch.zeros_like(direction)
        for chunk in _chunks(queries, keys):
            activations = (queries[chunk].unsqueeze(2) + keys[chunk].unsqueeze(1)).tanh_()
            weighted_gradient = gradient[chunk].unsqueeze(-1)
            direction_gradient += torch.mv(activations.flatten(0, 2).t(), gradient[chunk].reshape(-1))
            slope = activations.square_().neg_().add_(1).mul_(weighted_gradient)
            query_gradients.append(slope.sum(2) * direction)
            key_gradients.append(slope.sum(1) * direction)
        return torch.cat(query_gradients), torch.cat(key_gradients), direction_gradient


def _forward(queries: Tensor, keys: Tensor, direction: Tensor) -> Tensor:
    scores = [
        torch.matmul((queries[chunk].unsqueeze(2) + keys[chunk].unsqueeze(1)).tanh_(), direction)
        for chunk in _chunks(queries, keys)
    ]
    return scores[0] if len(scores) == 1 else torch.cat(scores)


def _chunks(queries: Tensor, keys: Tensor) -> list[slice]:
    """Windows that make a piece together."""
    windows, n_queries, width = queries.shape
    chunk_length = max(CHUNK_SIZE // max(n_queries * keys.shape[1] * width, 1), 1)
    return [slice(first, first + chunk_length) for first in range(0, windows, chunk_length)] or [slice(0, 0)]
