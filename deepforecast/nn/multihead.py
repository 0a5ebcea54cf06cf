"""Several heads that look at once: each compares its own share of the numbers, scaled dot products, a masked softmax.

Arithmetic first: `attention` on queries (B, heads, Q, w), keys and values (B, heads, K, w), w = width / heads. What may not be
looked at, and what distance takes off a score, is one tensor that is added to the scores: see `AttentionMask`. Then the weights:
`SelfAttention` and `CrossAttention`. Nothing but sums of products is computed unless somebody asks for the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deepforecast.errors import ParameterError

Rotation = tuple[Tensor, Tensor]
"""Cosines and sines, each (rows, w), by which pairs of numbers are turned: see `apply_rotary`."""


@dataclass(frozen=True)
class AttentionMask:
    """How scores are changed before the softmax.

    `bias`: to scores of (B, heads, Q, K), in any shape that spreads to it; minus infinity hides a key. `causal`: a query sees
    the keys up to its own place alone. `query_rotation`, `key_rotation`: by how much each row of theirs is turned.
    """

    bias: Tensor | None = None
    causal: bool = False
    query_rotation: Rotation | None = None
    key_rotation: Rotation | None = None


NO_MASK = AttentionMask()


def attention(query: Tensor, keys: Tensor, values: Tensor, mask: AttentionMask = NO_MASK, attention_maps: list[Tensor] | None = None) -> Tensor:
    """What the queries find, (B, heads, Q, w). A query that may see nothing finds zeros, and so do gradients.

    The weights are never there as a whole (memory grows with Q + K), unless they are to be `attention_maps`.
    """
    if attention_maps is None:
        context: Tensor = F.scaled_dot_product_attention(query, keys, values, attn_mask=mask.bias, is_causal=mask.causal)
        return context
    attention_maps.append(attention_weights(query, keys, mask))
    return torch.matmul(attention_maps[-1], values)


def attention_weights(query: Tensor, keys: Tensor, mask: AttentionMask = NO_MASK) -> Tensor:
    """How much the queries take of each key: (B, heads, Q, K), rows that add up to 1, or all zeros where nothing is seen."""
    scores = query @ keys.transpose(-1, -2) * query.shape[-1] ** -0.5
    if mask.bias is not None:
        scores = scores + mask.bias
    if mask.causal:
        future_keys = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(future_keys, -torch.inf)
    visible = scores > -torch.inf
    weights: Tensor = scores.masked_fill(~visible, torch.finfo(scores.dtype).min).softmax(-1) * visible
    return weights


def padding_bias(valid: Tensor) -> Tensor:
    """What is added to scores so that only valid keys are seen: (B, K) of 1 and 0 -> (B, 1, 1, K) of 0 and minus infinity.

    >>> padding_bias(torch.tensor([[0.0, 1.0]])).flatten().tolist()
    [-inf, 0.0]
    """
    return valid.log()[:, None, None, :]


def apply_rotary(heads: Tensor, rotation: Rotation | None) -> Tensor:
    """Rows (..., rows, w) whose numbers i and i + w / 2 are turned as a pair, each pair at a speed of its own.

    The product of two rows so turned hangs on the difference of their places alone.
    """
    if rotation is None:
        return heads
    first, second = heads.chunk(2, dim=-1)
    return heads * rotation[0] + torch.cat([-second, first], dim=-1) * rotation[1]


class SelfAttention(nn.Module):
    """Rows look at each other. Queries, keys and values come out of one product."""

    def __init__(self, width: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = check_heads(width, n_heads)
        self.in_proj, self.out_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        init_projection(self.in_proj)

    def forward(self, inputs: Tensor, mask: AttentionMask = NO_MASK, attention_maps: list[Tensor] | None = None) -> Tensor:
        """(B, L, D) -> (B, L, D)."""
        query, keys, values = split_heads(self.in_proj(inputs), 3, self.n_heads)
        query, keys = apply_rotary(query, mask.query_rotation), apply_rotary(keys, mask.key_rotation)
        return cast(Tensor, self.out_proj(merge_heads(attention(query, keys, values, mask, attention_maps))))

    def step(self, token: Tensor, cache: Tensor, number: int, cache_size: int, mask: AttentionMask = NO_MASK) -> tuple[Tensor, Tensor]:
        """One row more, (B, D), that looks at itself and those before it: what it finds, and the cache after it.

        `cache` (B, 2, heads, T, w): keys and values so far. One that is full grows to `cache_size` rows, into which later steps are
        written where they are; whoever wants gradients gives room for the one at hand alone, and each step has its own.
        """
        projections = self.in_proj(token).view(token.shape[0], 3, self.n_heads, 1, -1)
        query, new_entry = apply_rotary(projections[:, 0], mask.query_rotation), projections[:, 1:]
        if mask.key_rotation is not None:
            new_entry = torch.stack([apply_rotary(projections[:, 1], mask.key_rotation), projections[:, 2]], 1)
        if cache.shape[3] > number:
            cache[:, :, :, number : number + 1] = new_entry
        else:
            unused = new_entry.new_empty(*new_entry.shape[:3], cache_size - number - 1, new_entry.shape[4])
            cache = torch.cat([cache, new_entry, unused], dim=3)
        cached = cache[:, :, :, : number + 1]
        return self.out_proj(attention(query, cached[:, 0], cached[:, 1], mask).flatten(1)), cache


class CrossAttention(nn.Module):
    """Queries look at the rows of another sequence, whose keys and values are made once for all layers: see `KeyValueProjection`."""

    def __init__(self, width: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = check_heads(width, n_heads)
        self.in_proj, self.out_proj = nn.Linear(width, width), nn.Linear(width, width)
        init_projection(self.in_proj)

    def forward(
        self, inputs: Tensor, keys: Tensor, values: Tensor, mask: AttentionMask = NO_MASK, attention_maps: list[Tensor] | None = None
    ) -> Tensor:
        """(B, Q, D), and keys and values of (B, heads, K, w), which are turned already -> (B, Q, D)."""
        query = self.in_proj(inputs).view(*inputs.shape[:2], self.n_heads, -1).transpose(1, 2)
        query = apply_rotary(query, mask.query_rotation)
        return cast(Tensor, self.out_proj(merge_heads(attention(query, keys, values, mask, attention_maps))))


class KeyValueProjection(nn.Module):
    """Keys and values of encoded rows for every layer of a decoder, in one product."""

    def __init__(self, width: int, n_heads: int, n_layers: int) -> None:
        super().__init__()
        self.n_heads, self.n_layers = check_heads(width, n_heads), n_layers
        self.in_proj = nn.Linear(width, 2 * n_layers * width)
        init_projection(self.in_proj)

    def forward(self, encoded: Tensor, rotation: Rotation | None = None) -> list[Tensor]:
        """(B, K, D) -> keys, then values, of the first layer, then of the second, and so on: each (B, heads, K, w)."""
        projections = split_heads(self.in_proj(encoded), 2 * self.n_layers, self.n_heads)
        return [projection if index % 2 else apply_rotary(projection, rotation) for index, projection in enumerate(projections)]


def check_heads(width: int, n_heads: int) -> int:
    """The number of heads, if each gets as many of the numbers."""
    if width % n_heads:
        raise ParameterError(
            f"Heads share out d_model evenly, and {width} numbers do not go into {n_heads} heads. Say "
            f"n_heads={_nearest_divisor(width, n_heads)} or d_model={max(round(width / n_heads), 1) * n_heads}."
        )
    return n_heads


def split_heads(projected: Tensor, n_parts: int, n_heads: int) -> list[Tensor]:
    """(B, L, parts * D) -> so many of (B, heads, L, w), without a copy. (So cut, their gradients are joined in one copy.)"""
    windows, length, width = projected.shape
    shape = windows, length, n_heads, width // (n_parts * n_heads)
    return [chunk.view(shape).transpose(1, 2) for chunk in projected.chunk(n_parts, dim=-1)]


def merge_heads(heads: Tensor) -> Tensor:
    """(B, heads, L, w) -> (B, L, D)."""
    return heads.transpose(1, 2).flatten(2)


def init_projection(projection: nn.Linear) -> None:
    """First weights after Glorot, each D x D block by itself; no bias."""
    width = projection.in_features
    with torch.no_grad():
        for first in range(0, projection.out_features, width):
            nn.init.xavier_uniform_(projection.weight[first : first + width])
    nn.init.zeros_(projection.bias)


def _nearest_divisor(width: int, n_heads: int) -> int:
    return min((divisor for divisor in range(1, width + 1) if width % divisor == 0), key=lambda divisor: abs(divisor - n_heads))
