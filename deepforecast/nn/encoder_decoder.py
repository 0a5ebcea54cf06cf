"""Transformer encoder and decoder layers: attention and feed-forward sublayers with residual
connections.

Vaswani et al. (2017), "Attention Is All You Need", arXiv:1706.03762.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deepforecast.errors import ParameterError, format_value
from deepforecast.nn.layers import Dropout, normalization
from deepforecast.nn.multihead import NO_MASK, AttentionMask, CrossAttention, SelfAttention

if TYPE_CHECKING:
    from jaxtyping import Float

ACTIVATIONS = ("relu", "gelu", "swiglu")


@dataclass(frozen=True)
class LayerOptions:
    """Options of a Transformer layer.

    Parameters
    ----------
    d_model : int, default 64
        Width of the tokens.
    n_heads : int, default 4
    dim_feedforward : int, default 256
        Width of the hidden layer of the feed-forward network.
    activation : {"relu", "gelu", "swiglu"}, default "relu"
    norm_first : bool, default True
        Whether to normalise the input of each sublayer (Xiong et al. 2020, arXiv:2002.04745) rather
        than the sum after it.
    normalization : str, optional
        See `normalization`.
    dropout : float, default 0.0
        Dropout on the output of each sublayer.
    """

    d_model: int = 64
    n_heads: int = 4
    dim_feedforward: int = 256
    activation: str = "relu"
    norm_first: bool = True
    normalization: str | None = "layer"
    dropout: float = 0.0


@dataclass(frozen=True)
class DecodingPosition:
    """Index of a decoder step, from 0, and the capacity of a new cache, see `SelfAttention.step`."""

    step: int
    cache_size: int


class ResidualLayer(nn.Module):
    """Base class of layers whose sublayers are added to their input."""

    def __init__(self, options: LayerOptions, n_sublayers: int) -> None:
        super().__init__()
        self.norm_first = options.norm_first
        self.norms = nn.ModuleList(
            [normalization(options.normalization, options.d_model) for _ in range(n_sublayers)]
        )
        self.attention = SelfAttention(options.d_model, options.n_heads)
        self.feedforward = FeedForward(options.d_model, options.dim_feedforward, options.activation)
        self.drop = Dropout(options.dropout)

    def sublayer(
        self,
        index: int,
        inputs: Float[Tensor, "*shape width"],
        function: Callable[[Tensor], Tensor],
    ) -> Float[Tensor, "*shape width"]:
        """Compute x + f(norm(x)) (pre-norm) or norm(x + f(x)) (post-norm), with the norm of number `index`."""
        norm = self.norms[index]
        hidden = function(norm(inputs) if self.norm_first else inputs)
        hidden = inputs + (self.drop(hidden) if self.training else hidden)
        return hidden if self.norm_first else cast(Tensor, norm(hidden))

    def attend_step(
        self,
        token: Float[Tensor, "paths width"],
        cache: Float[Tensor, "paths 2 heads _ dim"],
        position: DecodingPosition,
        mask: AttentionMask,
    ) -> tuple[Float[Tensor, "paths width"], Float[Tensor, "paths 2 heads _ dim"]]:
        """Apply the self-attention sublayer to a new token; return it and the new cache, see
        `SelfAttention.step`.
        """
        new_caches: list[Tensor] = []  # one; `sublayer` returns the token only

        def attend(hidden: Tensor) -> Tensor:
            attended, new_cache = self.attention.step(
                hidden, cache, position.step, position.cache_size, mask
            )
            new_caches.append(new_cache)
            return attended

        token = self.sublayer(index=0, inputs=token, function=attend)
        return token, new_caches[0]


class EncoderLayer(ResidualLayer):
    """Self-attention, then a feed-forward network."""

    def __init__(self, options: LayerOptions) -> None:
        super().__init__(options, 2)

    def forward(
        self,
        inputs: Float[Tensor, "batch tokens width"],
        mask: AttentionMask = NO_MASK,
        attention_maps: list[Float[Tensor, "batch heads _ _"]] | None = None,
        caches: list[Float[Tensor, "batch 2 heads tokens dim"]] | None = None,
    ) -> Float[Tensor, "batch tokens width"]:
        """Apply both sublayers.

        The weights are appended to `attention_maps`, keys and values to `caches`.
        """
        inputs = self.sublayer(
            0, inputs, lambda hidden: self.attention(hidden, mask, attention_maps, caches)
        )
        return self.sublayer(1, inputs, self.feedforward)

    def step(
        self,
        token: Float[Tensor, "paths width"],
        cache: Float[Tensor, "paths 2 heads _ dim"],
        position: DecodingPosition,
        mask: AttentionMask,
    ) -> tuple[Float[Tensor, "paths width"], Float[Tensor, "paths 2 heads _ dim"]]:
        """Compute one new token, which attends to the cached ones before it; return it and the new
        cache.
        """
        token, cache = self.attend_step(token, cache, position, mask)
        return self.sublayer(1, token, self.feedforward), cache


class DecoderLayer(ResidualLayer):
    """Self-attention, attention to the encoder outputs, then a feed-forward network."""

    def __init__(self, options: LayerOptions) -> None:
        super().__init__(options, 3)
        self.cross = CrossAttention(options.d_model, options.n_heads)

    def forward(
        self,
        steps: Float[Tensor, "batch steps width"],
        keys: Float[Tensor, "batch heads keys dim"],
        values: Float[Tensor, "batch heads keys dim"],
        masks: tuple[AttentionMask, AttentionMask],
        attention_maps: list[Float[Tensor, "batch heads _ _"]] | None = None,
    ) -> Float[Tensor, "batch steps width"]:
        """Decode all steps in parallel.

        Parameters
        ----------
        steps : Tensor
        keys, values : Tensor
            Projections of the encoder outputs.
        masks : (AttentionMask, AttentionMask)
            Masks of the self-attention and of the attention to the encoder outputs.
        attention_maps : list of Tensor, optional
            List to which the weights (batch, heads, horizon, horizon) and (batch, heads, horizon,
            keys) are appended.
        """
        steps = self.sublayer(
            0, steps, lambda hidden: self.attention(hidden, masks[0], attention_maps)
        )
        steps = self.sublayer(
            1, steps, lambda hidden: self.cross(hidden, keys, values, masks[1], attention_maps)
        )
        return self.sublayer(2, steps, self.feedforward)

    def step(
        self,
        token: Float[Tensor, "paths width"],
        cache: Float[Tensor, "paths 2 heads capacity dim"],
        memory: tuple[Float[Tensor, "batch heads keys dim"], Float[Tensor, "batch heads keys dim"]],
        position: DecodingPosition,
        masks: tuple[AttentionMask, AttentionMask],
    ) -> tuple[Float[Tensor, "paths width"], Float[Tensor, "paths 2 heads new_capacity dim"]]:
        """Decode one step with a key-value cache.

        Parameters
        ----------
        token : Tensor
        cache : Tensor
        memory : (Tensor, Tensor)
            Keys and values of the encoder outputs, (batch, heads, keys, dim), shared by the N paths
            of a window.
        position : DecodingPosition
        masks : (AttentionMask, AttentionMask)

        Returns
        -------
        token : Tensor
        cache : Tensor
        """
        def attend_to_memory(hidden: Tensor) -> Tensor:
            paths = hidden.view(memory[0].shape[0], -1, hidden.shape[1])
            return cast(Tensor, self.cross(paths, *memory, masks[1])).view(hidden.shape)

        token, cache = self.attend_step(token, cache, position, masks[0])
        token = self.sublayer(1, token, attend_to_memory)
        return self.sublayer(2, token, self.feedforward), cache


class Encoder(nn.Module):
    """Stack of encoder layers with a final normalisation, which `final_norm=False` leaves out."""

    def __init__(self, options: LayerOptions, n_layers: int, final_norm: bool = True) -> None:
        super().__init__()
        self.layers = nn.ModuleList([EncoderLayer(options) for _ in range(n_layers)])
        self.norm = normalization(options.normalization if final_norm else None, options.d_model)

    def forward(
        self,
        inputs: Float[Tensor, "batch tokens width"],
        mask: AttentionMask = NO_MASK,
        attention_maps: list[Float[Tensor, "batch heads _ _"]] | None = None,
        caches: list[Float[Tensor, "batch 2 heads tokens dim"]] | None = None,
    ) -> Float[Tensor, "batch tokens width"]:
        """Apply the layers; the weights of each are appended to `attention_maps`, its keys and values
        to `caches`.
        """
        for layer in self.layers:
            inputs = layer(inputs, mask, attention_maps, caches)
        return cast(Tensor, self.norm(inputs))

    def step(
        self,
        token: Float[Tensor, "paths width"],
        caches: Sequence[Float[Tensor, "paths 2 heads _ dim"]],
        position: DecodingPosition,
        mask: AttentionMask,
    ) -> tuple[Float[Tensor, "paths width"], list[Float[Tensor, "paths 2 heads _ dim"]]]:
        """Compute one new token of a causal stack, with one cache per layer; return it and the new
        caches.
        """
        new_caches = []
        for layer, cache in zip(self.layers, caches, strict=True):
            token, new_cache = cast(EncoderLayer, layer).step(token, cache, position, mask)
            new_caches.append(new_cache)
        return cast(Tensor, self.norm(token)), new_caches


class Decoder(nn.Module):
    """Stack of decoder layers with a final normalisation; keys and values of the encoder outputs
    come from `KeyValueProjection`.

    `layer_class` is `DecoderLayer` or a subclass.
    """

    def __init__(
        self, options: LayerOptions, n_layers: int, layer_class: type[DecoderLayer] = DecoderLayer
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList([layer_class(options) for _ in range(n_layers)])
        self.norm = normalization(options.normalization, options.d_model)

    def forward(
        self,
        steps: Float[Tensor, "batch steps width"],
        memory: Sequence[Float[Tensor, "batch heads keys dim"]],
        masks: tuple[AttentionMask, AttentionMask],
        attention_maps: list[Float[Tensor, "batch heads _ _"]] | None = None,
    ) -> Float[Tensor, "batch steps width"]:
        """Decode all steps in parallel.

        `memory` is [keys of layer 1, values of layer 1, keys of layer 2, ...].
        """
        for layer, keys, values in zip(self.layers, memory[::2], memory[1::2], strict=True):
            steps = layer(steps, keys, values, masks, attention_maps)
        return cast(Tensor, self.norm(steps))

    def step(
        self,
        token: Float[Tensor, "paths width"],
        caches: Sequence[Float[Tensor, "paths 2 heads _ dim"]],
        memory: Sequence[Float[Tensor, "batch heads keys dim"]],
        position: DecodingPosition,
        masks: tuple[AttentionMask, AttentionMask],
    ) -> tuple[Float[Tensor, "paths width"], list[Float[Tensor, "paths 2 heads _ dim"]]]:
        """Decode one step, with one cache per layer; returns the output and the new caches."""
        new_caches = []
        for index, layer in enumerate(self.layers):
            pair = memory[2 * index], memory[2 * index + 1]
            token, cache = cast(DecoderLayer, layer).step(
                token, caches[index], pair, position, masks
            )
            new_caches.append(cache)
        return cast(Tensor, self.norm(token)), new_caches


class FeedForward(nn.Module):
    """Position-wise feed-forward network, (..., d_model) -> (..., d_model); SwiGLU: Shazeer (2020),
    arXiv:2002.05202.
    """

    def __init__(self, width: int, dim_feedforward: int, activation: str) -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ParameterError(
                f"`activation` must be one of {', '.join(map(repr, ACTIVATIONS))}, got {format_value(activation)}.",
                parameter="activation",
                value=activation
            )
        self.activation = activation
        self.linear1 = nn.Linear(
            width, 2 * dim_feedforward if activation == "swiglu" else dim_feedforward
        )
        self.linear2 = nn.Linear(dim_feedforward, width)

    def forward(self, inputs: Float[Tensor, "*shape width"]) -> Float[Tensor, "*shape width"]:
        """Apply the network to each token."""
        hidden = self.linear1(inputs.flatten(0, -2))
        if self.activation == "swiglu":
            gate, value = hidden.chunk(2, dim=-1)
            hidden = F.silu(gate) * value
        else:  # ReLU in place: its gradient needs the output only
            hidden = F.gelu(hidden) if self.activation == "gelu" else torch.relu_(hidden)
        return cast(Tensor, self.linear2(hidden)).view(inputs.shape)
