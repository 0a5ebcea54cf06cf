"""Several heads that look at once: each compares its own share of the numbers, scaled dot products, a masked softmax.

Arithmetic first: `looked` on queries (B, heads, Q, w), keys and values (B, heads, K, w), w = width / heads. What may not be
looked at, and what distance takes off a score, is one tensor that is added to the scores: see `Look`. Then the weights:
`SelfAttention` and `CrossAttention`. Nothing but sums of products is computed unless somebody asks for the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deepforecast.errors import ParameterError

Turns = tuple[Tensor, Tensor]
"""Cosines and sines, each (rows, w), by which pairs of numbers are turned: see `turned`."""


@dataclass(frozen=True)
class Look:
    """How scores are changed before the softmax.

    `added`: to scores of (B, heads, Q, K), in any shape that spreads to it; minus infinity hides a key. `causal`: a query sees
    the keys up to its own place alone. `queries`, `keys`: by how much each row of theirs is turned.
    """

    added: Tensor | None = None
    causal: bool = False
    queries: Turns | None = None
    keys: Turns | None = None


PLAIN = Look()


def looked(query: Tensor, keys: Tensor, values: Tensor, look: Look = PLAIN, kept: list[Tensor] | None = None) -> Tensor:
    """What the queries find, (B, heads, Q, w). A query that may see nothing finds zeros, and so do gradients.

    The weights are never there as a whole (memory grows with Q + K), unless they are to be `kept`.
    """
    if kept is None:
        found: Tensor = F.scaled_dot_product_attention(query, keys, values, attn_mask=look.added, is_causal=look.causal)
        return found
    kept.append(weights(query, keys, look))
    return torch.matmul(kept[-1], values)


def weights(query: Tensor, keys: Tensor, look: Look = PLAIN) -> Tensor:
    """How much the queries take of each key: (B, heads, Q, K), rows that add up to 1, or all zeros where nothing is seen."""
    scores = query @ keys.transpose(-1, -2) * query.shape[-1] ** -0.5
    if look.added is not None:
        scores = scores + look.added
    if look.causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(later, -torch.inf)
    seen = scores > -torch.inf
    found: Tensor = scores.masked_fill(~seen, torch.finfo(scores.dtype).min).softmax(-1) * seen
    return found


def hidden(valid: Tensor) -> Tensor:
    """What is added to scores so that only valid keys are seen: (B, K) of 1 and 0 -> (B, 1, 1, K) of 0 and minus infinity.

    >>> hidden(torch.tensor([[0.0, 1.0]])).flatten().tolist()
    [-inf, 0.0]
    """
    return valid.log()[:, None, None, :]


def turned(heads: Tensor, turns: Turns | None) -> Tensor:
    """Rows (..., rows, w) whose numbers i and i + w / 2 are turned as a pair, each pair at a speed of its own.

    The product of two rows so turned hangs on the difference of their places alone.
    """
    if turns is None:
        return heads
    first, second = heads.chunk(2, dim=-1)
    return heads * turns[0] + torch.cat([-second, first], dim=-1) * turns[1]


class SelfAttention(nn.Module):
    """Rows look at each other. Queries, keys and values come out of one product."""

    def __init__(self, width: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = checked(width, n_heads)
        self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        begun(self.into)

    def forward(self, rows: Tensor, look: Look = PLAIN, kept: list[Tensor] | None = None) -> Tensor:
        """(B, L, D) -> (B, L, D)."""
        query, keys, values = split(self.into(rows), 3, self.n_heads)
        query, keys = turned(query, look.queries), turned(keys, look.keys)
        return cast(Tensor, self.out(joined(looked(query, keys, values, look, kept))))

    def step(self, row: Tensor, cache: Tensor, number: int, room: int, look: Look = PLAIN) -> tuple[Tensor, Tensor]:
        """One row more, (B, D), that looks at itself and those before it: what it finds, and the cache after it.

        `cache` (B, 2, heads, T, w): keys and values so far. One that is full grows to `room` rows, into which later steps are
        written where they are; whoever wants gradients gives room for the one at hand alone, and each step has its own.
        """
        parts = self.into(row).view(row.shape[0], 3, self.n_heads, 1, -1)
        query, fresh = turned(parts[:, 0], look.queries), parts[:, 1:]
        if look.keys is not None:
            fresh = torch.stack([turned(parts[:, 1], look.keys), parts[:, 2]], 1)
        if cache.shape[3] > number:
            cache[:, :, :, number : number + 1] = fresh
        else:
            rest = fresh.new_empty(*fresh.shape[:3], room - number - 1, fresh.shape[4])
            cache = torch.cat([cache, fresh, rest], dim=3)
        known = cache[:, :, :, : number + 1]
        return self.out(looked(query, known[:, 0], known[:, 1], look).flatten(1)), cache


class CrossAttention(nn.Module):
    """Queries look at the rows of another sequence, whose keys and values are made once for all layers: see `Memory`."""

    def __init__(self, width: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = checked(width, n_heads)
        self.into, self.out = nn.Linear(width, width), nn.Linear(width, width)
        begun(self.into)

    def forward(
        self, rows: Tensor, keys: Tensor, values: Tensor, look: Look = PLAIN, kept: list[Tensor] | None = None
    ) -> Tensor:
        """(B, Q, D), and keys and values of (B, heads, K, w), which are turned already -> (B, Q, D)."""
        query = self.into(rows).view(*rows.shape[:2], self.n_heads, -1).transpose(1, 2)
        query = turned(query, look.queries)
        return cast(Tensor, self.out(joined(looked(query, keys, values, look, kept))))


class Memory(nn.Module):
    """Keys and values of encoded rows for every layer of a decoder, in one product."""

    def __init__(self, width: int, n_heads: int, n_layers: int) -> None:
        super().__init__()
        self.n_heads, self.n_layers = checked(width, n_heads), n_layers
        self.into = nn.Linear(width, 2 * n_layers * width)
        begun(self.into)

    def forward(self, rows: Tensor, turns: Turns | None = None) -> list[Tensor]:
        """(B, K, D) -> keys, then values, of the first layer, then of the second, and so on: each (B, heads, K, w)."""
        parts = split(self.into(rows), 2 * self.n_layers, self.n_heads)
        return [part if place % 2 else turned(part, turns) for place, part in enumerate(parts)]


def checked(width: int, n_heads: int) -> int:
    """The number of heads, if each gets as many of the numbers."""
    if width % n_heads:
        raise ParameterError(
            f"Heads share out d_model evenly, and {width} numbers do not go into {n_heads} heads. Say "
            f"n_heads={_nearest(width, n_heads)} or d_model={max(round(width / n_heads), 1) * n_heads}."
        )
    return n_heads


def split(rows: Tensor, parts: int, n_heads: int) -> list[Tensor]:
    """(B, L, parts * D) -> so many of (B, heads, L, w), without a copy. (So cut, their gradients are joined in one copy.)"""
    windows, length, width = rows.shape
    shape = windows, length, n_heads, width // (parts * n_heads)
    return [part.view(shape).transpose(1, 2) for part in rows.chunk(parts, dim=-1)]


def joined(heads: Tensor) -> Tensor:
    """(B, heads, L, w) -> (B, L, D)."""
    return heads.transpose(1, 2).flatten(2)


def begun(into: nn.Linear) -> None:
    """First weights after Glorot, each D x D block by itself; no bias."""
    width = into.in_features
    with torch.no_grad():
        for begin in range(0, into.out_features, width):
            nn.init.xavier_uniform_(into.weight[begin : begin + width])
    nn.init.zeros_(into.bias)


def _nearest(width: int, n_heads: int) -> int:
    return min((one for one in range(1, width + 1) if width % one == 0), key=lambda one: abs(one - n_heads))
