"""The layers of "Attention Is All You Need" (Vaswani et al. 2017): rows look at each other and at another sequence, and go
through a small network each by itself; what each of these finds is added to what went into it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deepforecast.errors import ParameterError, format_value
from deepforecast.nn.dropout import Dropout
from deepforecast.nn.multihead import NO_MASK, AttentionMask, CrossAttention, SelfAttention
from deepforecast.nn.normalization import normalization

ACTIVATIONS = ("relu", "gelu", "swiglu")
NORM_ORDERS = ("pre", "post")


@dataclass(frozen=True)
class LayerOptions:
    """What a layer is.

    `norm_order`: of what goes into each part ("pre") or of the sum that comes out ("post") is normalised. `dropout`: share of what
    each part finds that is not added, in training.
    """

    d_model: int = 64
    n_heads: int = 4
    dim_feedforward: int = 256
    activation: str = "relu"
    norm_order: str = "pre"
    normalization: str | None = "layer"
    dropout: float = 0.0


@dataclass(frozen=True)
class DecodingPosition:
    """Which step it is, counted from 0, and for how many a cache that is full is to have room."""

    step: int
    cache_size: int


class ResidualLayer(nn.Module):
    """Parts one after the other, each added to what went into it."""

    def __init__(self, options: LayerOptions, n_sublayers: int) -> None:
        super().__init__()
        if options.norm_order not in NORM_ORDERS:
            raise ParameterError(f"norm_order is one of {', '.join(map(repr, NORM_ORDERS))}; got {format_value(options.norm_order)}.")
        self.norm_first = options.norm_order == "pre"
        self.norms = nn.ModuleList([normalization(options.normalization, options.d_model) for _ in range(n_sublayers)])
        self.attention = SelfAttention(options.d_model, options.n_heads)
        self.feedforward = FeedForward(options.d_model, options.dim_feedforward, options.activation)
        self.drop = Dropout(options.dropout)

    def sublayer(self, index: int, inputs: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        """The rows, and to them what a part makes of them: normalised before it, or the sum after it."""
        norm = self.norms[index]
        hidden = function(norm(inputs) if self.norm_first else inputs)
        hidden = inputs + (self.drop(hidden) if self.training else hidden)
        return hidden if self.norm_first else cast(Tensor, norm(hidden))


class EncoderLayer(ResidualLayer):
    """Rows look at each other, then each goes through the small network."""

    def __init__(self, options: LayerOptions) -> None:
        super().__init__(options, 2)

    def forward(self, inputs: Tensor, mask: AttentionMask = NO_MASK, attention_maps: list[Tensor] | None = None) -> Tensor:
        """(B, L, D) -> (B, L, D). `attention_maps`: a list that gets the weights, (B, heads, L, L)."""
        inputs = self.sublayer(0, inputs, lambda hidden: self.attention(hidden, mask, attention_maps))
        return self.sublayer(1, inputs, self.feedforward)


class DecoderLayer(ResidualLayer):
    """Steps look at each other, then at what was encoded, then each goes through the small network."""

    def __init__(self, options: LayerOptions) -> None:
        super().__init__(options, 3)
        self.cross = CrossAttention(options.d_model, options.n_heads)

    def forward(
        self, steps: Tensor, keys: Tensor, values: Tensor, masks: tuple[AttentionMask, AttentionMask], attention_maps: list[Tensor] | None = None
    ) -> Tensor:
        """Steps (B, H, D), keys and values of what was encoded (B, heads, K, w) -> (B, H, D).

        `masks`: of the steps at each other, and at what was encoded. `attention_maps` gets the weights of both, (B, heads, H, H) and
        (B, heads, H, K).
        """
        steps = self.sublayer(0, steps, lambda hidden: self.attention(hidden, masks[0], attention_maps))
        steps = self.sublayer(1, steps, lambda hidden: self.cross(hidden, keys, values, masks[1], attention_maps))
        return self.sublayer(2, steps, self.feedforward)

    def step(
        self, token: Tensor, cache: Tensor, memory: tuple[Tensor, Tensor], position: DecodingPosition, masks: tuple[AttentionMask, AttentionMask]
    ) -> tuple[Tensor, Tensor]:
        """The step after those in the cache, (B * N, D): what comes of it, (B * N, D), and the cache after it.

        `memory`: keys and values (B, heads, K, w), at which the N paths of a window, side by side, look together.
        """
        new_caches: list[Tensor] = []

        def attend_to_self(hidden: Tensor) -> Tensor:
            attended, new_cache = self.attention.step(hidden, cache, position.step, position.cache_size, masks[0])
            new_caches.append(new_cache)
            return attended

        def attend_to_memory(hidden: Tensor) -> Tensor:
            paths = hidden.view(memory[0].shape[0], -1, hidden.shape[1])
            return cast(Tensor, self.cross(paths, *memory, masks[1])).view(hidden.shape)

        token = self.sublayer(1, self.sublayer(0, token, attend_to_self), attend_to_memory)
        return self.sublayer(2, token, self.feedforward), new_caches[0]


class Encoder(nn.Module):
    """Layers on top of each other, normalised at the end."""

    def __init__(self, options: LayerOptions, n_layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([EncoderLayer(options) for _ in range(n_layers)])
        self.norm = normalization(options.normalization, options.d_model)

    def forward(self, inputs: Tensor, mask: AttentionMask = NO_MASK, attention_maps: list[Tensor] | None = None) -> Tensor:
        """(B, L, D) -> (B, L, D)."""
        for layer in self.layers:
            inputs = layer(inputs, mask, attention_maps)
        return cast(Tensor, self.norm(inputs))


class Decoder(nn.Module):
    """Layers on top of each other, normalised at the end. Keys and values of all of them are handed in: see `Memory`."""

    def __init__(self, options: LayerOptions, n_layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([DecoderLayer(options) for _ in range(n_layers)])
        self.norm = normalization(options.normalization, options.d_model)

    def forward(
        self, steps: Tensor, memory: Sequence[Tensor], masks: tuple[AttentionMask, AttentionMask], attention_maps: list[Tensor] | None = None
    ) -> Tensor:
        """Steps (B, H, D) and memory, keys and values of each layer (B, heads, K, w) -> (B, H, D)."""
        for layer, keys, values in zip(self.layers, memory[::2], memory[1::2], strict=True):
            steps = layer(steps, keys, values, masks, attention_maps)
        return cast(Tensor, self.norm(steps))

    def step(
        self, token: Tensor, caches: Sequence[Tensor], memory: Sequence[Tensor], position: DecodingPosition, masks: tuple[AttentionMask, AttentionMask]
    ) -> tuple[Tensor, list[Tensor]]:
        """The step after those in the caches, one a layer, (B * N, D): what comes of it, and the caches after it."""
        new_caches = []
        for index, layer in enumerate(self.layers):
            pair = memory[2 * index], memory[2 * index + 1]
            token, cache = cast(DecoderLayer, layer).step(token, caches[index], pair, position, masks)
            new_caches.append(cache)
        return cast(Tensor, self.norm(token)), new_caches


class FeedForward(nn.Module):
    """A hidden layer for each row by itself: (..., D) -> (..., D). SwiGLU: one half of it opens and closes the other."""

    def __init__(self, width: int, dim_feedforward: int, activation: str) -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ParameterError(f"activation is one of {', '.join(map(repr, ACTIVATIONS))}; got {format_value(activation)}.")
        self.activation = activation
        self.linear1 = nn.Linear(width, 2 * dim_feedforward if activation == "swiglu" else dim_feedforward)
        self.linear2 = nn.Linear(dim_feedforward, width)

    def forward(self, inputs: Tensor) -> Tensor:
        """(..., D) -> (..., D)."""
        hidden = self.linear1(inputs.flatten(0, -2))
        if self.activation == "swiglu":
            gate, value = hidden.chunk(2, dim=-1)
            hidden = F.silu(gate) * value
        else:  # in place where the gradient needs the result alone: which costs nothing as long as it is no view of another
            hidden = F.gelu(hidden) if self.activation == "gelu" else torch.relu_(hidden)
        return cast(Tensor, self.linear2(hidden)).view(inputs.shape)
