"""The layers of "Attention Is All You Need" (Vaswani et al. 2017): rows look at each other and at another sequence, and go
through a small network each by itself; what each of these finds is added to what went into it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deepforecast.errors import ParameterError, shown
from deepforecast.nn.dropout import Dropout
from deepforecast.nn.multihead import PLAIN, CrossAttention, Look, SelfAttention
from deepforecast.nn.normalization import normalization

ACTIVATIONS = ("relu", "gelu", "swiglu")
ORDERS = ("pre", "post")


@dataclass(frozen=True)
class LayerOptions:
    """What a layer is.

    `order`: of what goes into each part ("pre") or of the sum that comes out ("post") is normalised. `dropout`: share of what
    each part finds that is not added, in training.
    """

    width: int = 64
    n_heads: int = 4
    feedforward: int = 256
    activation: str = "relu"
    order: str = "pre"
    normalization: str | None = "layer"
    dropout: float = 0.0


@dataclass(frozen=True)
class At:
    """Which step it is, counted from 0, and for how many a cache that is full is to have room."""

    number: int
    room: int


class Layer(nn.Module):
    """Parts one after the other, each added to what went into it."""

    def __init__(self, options: LayerOptions, parts: int) -> None:
        super().__init__()
        if options.order not in ORDERS:
            raise ParameterError(f"norm_order is one of {', '.join(map(repr, ORDERS))}; got {shown(options.order)}.")
        self.before = options.order == "pre"
        self.norms = nn.ModuleList([normalization(options.normalization, options.width) for _ in range(parts)])
        self.attention = SelfAttention(options.width, options.n_heads)
        self.feedforward = FeedForward(options.width, options.feedforward, options.activation)
        self.drop = Dropout(options.dropout)

    def added(self, part: int, rows: Tensor, act: Callable[[Tensor], Tensor]) -> Tensor:
        """The rows, and to them what a part makes of them: normalised before it, or the sum after it."""
        norm = self.norms[part]
        found = act(norm(rows) if self.before else rows)
        found = rows + (self.drop(found) if self.training else found)
        return found if self.before else cast(Tensor, norm(found))


class EncoderLayer(Layer):
    """Rows look at each other, then each goes through the small network."""

    def __init__(self, options: LayerOptions) -> None:
        super().__init__(options, 2)

    def forward(self, rows: Tensor, look: Look = PLAIN, kept: list[Tensor] | None = None) -> Tensor:
        """(B, L, D) -> (B, L, D). `kept`: a list that gets the weights, (B, heads, L, L)."""
        rows = self.added(0, rows, lambda one: self.attention(one, look, kept))
        return self.added(1, rows, self.feedforward)


class DecoderLayer(Layer):
    """Steps look at each other, then at what was encoded, then each goes through the small network."""

    def __init__(self, options: LayerOptions) -> None:
        super().__init__(options, 3)
        self.cross = CrossAttention(options.width, options.n_heads)

    def forward(
        self, steps: Tensor, keys: Tensor, values: Tensor, looks: tuple[Look, Look], kept: list[Tensor] | None = None
    ) -> Tensor:
        """Steps (B, H, D), keys and values of what was encoded (B, heads, K, w) -> (B, H, D).

        `looks`: of the steps at each other, and at what was encoded. `kept` gets the weights of both, (B, heads, H, H) and
        (B, heads, H, K).
        """
        steps = self.added(0, steps, lambda one: self.attention(one, looks[0], kept))
        steps = self.added(1, steps, lambda one: self.cross(one, keys, values, looks[1], kept))
        return self.added(2, steps, self.feedforward)

    def step(
        self, row: Tensor, cache: Tensor, memory: tuple[Tensor, Tensor], at: At, looks: tuple[Look, Look]
    ) -> tuple[Tensor, Tensor]:
        """The step after those in the cache, (B * N, D): what comes of it, (B * N, D), and the cache after it.

        `memory`: keys and values (B, heads, K, w), at which the N paths of a window, side by side, look together.
        """
        held: list[Tensor] = []

        def itself(one: Tensor) -> Tensor:
            found, after = self.attention.step(one, cache, at.number, at.room, looks[0])
            held.append(after)
            return found

        def across(one: Tensor) -> Tensor:
            paths = one.view(memory[0].shape[0], -1, one.shape[1])
            return cast(Tensor, self.cross(paths, *memory, looks[1])).view(one.shape)

        row = self.added(1, self.added(0, row, itself), across)
        return self.added(2, row, self.feedforward), held[0]


class Encoder(nn.Module):
    """Layers on top of each other, normalised at the end."""

    def __init__(self, options: LayerOptions, n_layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([EncoderLayer(options) for _ in range(n_layers)])
        self.norm = normalization(options.normalization, options.width)

    def forward(self, rows: Tensor, look: Look = PLAIN, kept: list[Tensor] | None = None) -> Tensor:
        """(B, L, D) -> (B, L, D)."""
        for layer in self.layers:
            rows = layer(rows, look, kept)
        return cast(Tensor, self.norm(rows))


class Decoder(nn.Module):
    """Layers on top of each other, normalised at the end. Keys and values of all of them are handed in: see `Memory`."""

    def __init__(self, options: LayerOptions, n_layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([DecoderLayer(options) for _ in range(n_layers)])
        self.norm = normalization(options.normalization, options.width)

    def forward(
        self, steps: Tensor, memory: Sequence[Tensor], looks: tuple[Look, Look], kept: list[Tensor] | None = None
    ) -> Tensor:
        """Steps (B, H, D) and memory, keys and values of each layer (B, heads, K, w) -> (B, H, D)."""
        for layer, keys, values in zip(self.layers, memory[::2], memory[1::2], strict=True):
            steps = layer(steps, keys, values, looks, kept)
        return cast(Tensor, self.norm(steps))

    def step(
        self, row: Tensor, caches: Sequence[Tensor], memory: Sequence[Tensor], at: At, looks: tuple[Look, Look]
    ) -> tuple[Tensor, list[Tensor]]:
        """The step after those in the caches, one a layer, (B * N, D): what comes of it, and the caches after it."""
        after = []
        for place, layer in enumerate(self.layers):
            pair = memory[2 * place], memory[2 * place + 1]
            row, cache = cast(DecoderLayer, layer).step(row, caches[place], pair, at, looks)
            after.append(cache)
        return cast(Tensor, self.norm(row)), after


class FeedForward(nn.Module):
    """A hidden layer for each row by itself: (..., D) -> (..., D). SwiGLU: one half of it opens and closes the other."""

    def __init__(self, width: int, hidden: int, activation: str) -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ParameterError(f"activation is one of {', '.join(map(repr, ACTIVATIONS))}; got {shown(activation)}.")
        self.activation = activation
        self.into = nn.Linear(width, 2 * hidden if activation == "swiglu" else hidden)
        self.out = nn.Linear(hidden, width)

    def forward(self, rows: Tensor) -> Tensor:
        """(..., D) -> (..., D)."""
        inside = self.into(rows.flatten(0, -2))
        if self.activation == "swiglu":
            gate, value = inside.chunk(2, dim=-1)
            inside = F.silu(gate) * value
        else:  # in place where the gradient needs the result alone: which costs nothing as long as it is no view of another
            inside = F.gelu(inside) if self.activation == "gelu" else torch.relu_(inside)
        return cast(Tensor, self.out(inside)).view(rows.shape)
