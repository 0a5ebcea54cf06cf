"""The additive attention score, computed in chunks to save memory.

Its tanh has one number per window, query, key and hidden unit: stored for the gradient, 256 windows
of 168 time steps, 24 queries and 64 units would take 260 MB. Here a chunk fits into the cache, and
the backward pass computes its tanh again (activation checkpointing).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

CHUNK_SIZE = 1 << 18
"""Numbers per chunk (1 MB in float32)."""


def additive(queries: Tensor, keys: Tensor, direction: Tensor) -> Tensor:
    """Compute v . tanh(q + k) for all pairs of queries and keys (Bahdanau et al. 2015).

    Parameters
    ----------
    queries : Tensor of shape (batch, queries, dim)
        Queries after their linear map, W_q q.
    keys : Tensor of shape (batch, keys, dim)
        Keys after their linear map, W_k k.
    direction : Tensor of shape (dim,)
        The vector v.

    Returns
    -------
    Tensor of shape (batch, queries, keys)

    Examples
    --------
    >>> additive(torch.zeros(1, 1, 2), torch.tensor([[[0.0, 0.0], [9.0, 9.0]]]), torch.ones(2)).round().tolist()
    [[[0.0, 2.0]]]
    """
    if not torch.is_grad_enabled():
        return _forward(queries, keys, direction)
    # A single query needs little memory, and torch's autograd is twice as fast.
    if queries.shape[1] == 1:
        return torch.matmul(torch.tanh(queries + keys), direction).unsqueeze(1)
    return AdditiveScoreFunction.apply(queries, keys, direction)  # type: ignore[no-any-return, no-untyped-call]


class AdditiveScoreFunction(torch.autograd.Function):
    """The additive score with a gradient written by hand, which recomputes the tanh."""

    @staticmethod
    def forward(context: Any, queries: Tensor, keys: Tensor, direction: Tensor) -> Tensor:
        """Compute the scores chunk by chunk."""
        context.save_for_backward(queries, keys, direction)
        return _forward(queries, keys, direction)

    @staticmethod
    def backward(context: Any, *upstream: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Compute the gradients with respect to queries, keys and direction.

        With t = tanh(q + k) and the upstream gradient g: dL/dv = sum of g t; dL/dq and dL/dk are
        the sums of g v (1 - t^2) over keys and queries.
        """
        queries, keys, direction = context.saved_tensors
        gradient = upstream[0]
        query_gradients: list[Tensor] = []
        key_gradients: list[Tensor] = []
        direction_gradient = torch.zeros_like(direction)
        for chunk in _chunks(queries, keys):
            activations = (queries[chunk].unsqueeze(2) + keys[chunk].unsqueeze(1)).tanh_()
            weighted_gradient = gradient[chunk].unsqueeze(-1)
            direction_gradient += torch.mv(
                activations.flatten(0, 2).t(), gradient[chunk].reshape(-1)
            )
            derivative = activations.square_().neg_().add_(1).mul_(weighted_gradient)  # g (1 - t^2)
            query_gradients.append(derivative.sum(2) * direction)
            key_gradients.append(derivative.sum(1) * direction)
        return torch.cat(query_gradients), torch.cat(key_gradients), direction_gradient


def _forward(queries: Tensor, keys: Tensor, direction: Tensor) -> Tensor:
    """Compute the scores (batch, queries, keys) chunk by chunk, without a graph for gradients."""
    scores = [
        torch.matmul((queries[chunk].unsqueeze(2) + keys[chunk].unsqueeze(1)).tanh_(), direction)
        for chunk in _chunks(queries, keys)
    ]
    return scores[0] if len(scores) == 1 else torch.cat(scores)


def _chunks(queries: Tensor, keys: Tensor) -> list[slice]:
    """Return slices of windows whose tanh has at most about `CHUNK_SIZE` numbers, at least one slice."""
    n_windows, n_queries, width = queries.shape
    chunk_length = max(CHUNK_SIZE // max(n_queries * keys.shape[1] * width, 1), 1)
    chunks = [slice(begin, begin + chunk_length) for begin in range(0, n_windows, chunk_length)]
    return chunks or [slice(0, 0)]
