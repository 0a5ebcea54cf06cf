"""Multi-head scaled dot-product attention (Vaswani et al. 2017, arXiv:1706.03762).

`attention` is the arithmetic on queries (batch, heads, queries, dim), keys and values (batch,
heads, keys, dim) with dim = width / heads; `SelfAttention` and `CrossAttention` hold the weights.
Padding, causality and ALiBi are additive biases on the scores, see `AttentionMask`. The attention
weights are materialised only on request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deepforecast.errors import ParameterError

if TYPE_CHECKING:
    from jaxtyping import Float

    Rotation = tuple[Float[Tensor, "positions dim"], Float[Tensor, "positions dim"]]
    """Cosines and sines of rotary angles, see `apply_rotary`."""


@dataclass(frozen=True)
class AttentionMask:
    """Changes to the attention scores before the softmax, and rotary embeddings.

    Parameters
    ----------
    bias : Tensor, optional
        Added to the scores, broadcast to (batch, heads, queries, keys); -inf masks a key. ALiBi
        enters here too.
    causal : bool, default False
        Whether query i attends to keys 0..i only.
    query_rotation, key_rotation : Rotation, optional
        Rotary angles of queries and keys.
    memory_bias : Tensor, optional
        Segment memory of Transformer-XL (Dai et al. 2019, arXiv:1901.02860): bias of a second copy of
        the keys and values, which pass no gradient to the tokens they come from. `bias` masks the
        tokens of other segments, `memory_bias` all but those of the segments remembered. Only
        `SelfAttention.forward` uses it.
    """

    bias: Float[Tensor, "#batch #heads #queries keys"] | None = None
    causal: bool = False
    query_rotation: Rotation | None = None
    key_rotation: Rotation | None = None
    memory_bias: Float[Tensor, "#batch #heads #queries keys"] | None = None


NO_MASK = AttentionMask()
"""Full attention without positional bias."""


def attention(
    query: Float[Tensor, "batch heads queries dim"],
    keys: Float[Tensor, "batch heads keys dim"],
    values: Float[Tensor, "batch heads keys dim"],
    mask: AttentionMask = NO_MASK,
    attention_maps: list[Float[Tensor, "batch heads _ _"]] | None = None,
) -> Float[Tensor, "batch heads queries dim"]:
    """Compute scaled dot-product attention, softmax(q k^T / sqrt(dim) + bias) v.

    Vaswani et al. (2017), eq. 1. A query whose keys are all masked returns zeros and has zero
    gradient.

    Parameters
    ----------
    query : Tensor
    keys, values : Tensor
    mask : AttentionMask
        Only its bias and `causal` are used: queries and keys are rotated already.
    attention_maps : list of Tensor, optional
        List to which the weights (batch, heads, queries, keys) are appended. They are materialised
        only if it is passed; otherwise memory grows with queries + keys.
    """
    if attention_maps is None:
        context: Tensor = F.scaled_dot_product_attention(
            query, keys, values, attn_mask=mask.bias, is_causal=mask.causal
        )
        return context
    attention_maps.append(attention_weights(query, keys, mask))
    return torch.matmul(attention_maps[-1], values)


def attention_weights(
    query: Float[Tensor, "batch heads queries dim"],
    keys: Float[Tensor, "batch heads keys dim"],
    mask: AttentionMask = NO_MASK,
) -> Float[Tensor, "batch heads queries keys"]:
    """Compute softmax(q k^T / sqrt(dim) + bias).

    The weights of a query sum to 1 over the keys, or are 0 if all keys are masked.
    """
    scores = query @ keys.transpose(-1, -2) * query.shape[-1] ** -0.5
    if mask.bias is not None:
        scores = scores + mask.bias
    if mask.causal:
        future_keys = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(future_keys, -torch.inf)
    visible = scores > -torch.inf
    # The smallest float in place of -inf keeps the softmax of a fully masked query finite.
    weights: Tensor = (
        scores.masked_fill(~visible, torch.finfo(scores.dtype).min).softmax(-1) * visible
    )
    return weights


def padding_bias(valid: Float[Tensor, "batch keys"]) -> Float[Tensor, "batch 1 1 keys"]:
    """Convert a mask of valid keys, 1 or 0, to a bias, 0 or -inf.

    Examples
    --------
    >>> padding_bias(torch.tensor([[0.0, 1.0]])).flatten().tolist()
    [-inf, 0.0]
    """
    return valid.log()[:, None, None, :]


def apply_rotary(
    heads: Float[Tensor, "*shape positions dim"], rotation: Rotation | None
) -> Float[Tensor, "*shape positions dim"]:
    """Rotate pairs of features by their position (RoPE; Su et al. 2021, arXiv:2104.09864, eq. 34).

    Features i and i + dim / 2 form a pair; each pair has its own frequency. The dot product of a
    rotated query and a rotated key depends on the difference of their positions only.

    Parameters
    ----------
    heads : Tensor
    rotation : Rotation or None
        None: return `heads` unchanged.
    """
    if rotation is None:
        return heads
    first, second = heads.chunk(2, dim=-1)  # the two features of each pair
    return heads * rotation[0] + torch.cat([-second, first], dim=-1) * rotation[1]


class SelfAttention(nn.Module):
    """Multi-head self-attention. Queries, keys and values come from one matrix product.

    Parameters
    ----------
    width : int
        Width of the tokens (d_model).
    n_heads : int
        Number of heads, a divisor of `width`.
    """

    def __init__(self, width: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = check_heads(width, n_heads)
        self.in_proj, self.out_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        init_projection(self.in_proj)

    def forward(
        self,
        inputs: Float[Tensor, "batch tokens width"],
        mask: AttentionMask = NO_MASK,
        attention_maps: list[Float[Tensor, "batch heads _ _"]] | None = None,
        caches: list[Float[Tensor, "batch 2 heads tokens dim"]] | None = None,
    ) -> Float[Tensor, "batch tokens width"]:
        """Attend among the tokens; keys and values are appended to `caches`, for `step`."""
        query, keys, values = split_heads(self.in_proj(inputs), 3, self.n_heads)
        query = apply_rotary(query, mask.query_rotation)
        keys = apply_rotary(keys, mask.key_rotation)
        if caches is not None:
            caches.append(torch.stack([keys, values], dim=1))
        if mask.memory_bias is not None and mask.bias is not None:
            _, memory_keys, memory_values = split_heads(
                self.in_proj(inputs.detach()), 3, self.n_heads
            )
            keys = torch.cat([apply_rotary(memory_keys, mask.key_rotation), keys], dim=2)
            values = torch.cat([memory_values, values], dim=2)
            mask = AttentionMask(torch.cat([mask.memory_bias, mask.bias], dim=-1))
        return cast(
            Tensor, self.out_proj(merge_heads(attention(query, keys, values, mask, attention_maps)))
        )

    def step(
        self,
        token: Float[Tensor, "paths width"],
        cache: Float[Tensor, "paths 2 heads capacity dim"],
        token_index: int,
        cache_size: int,
        mask: AttentionMask = NO_MASK,
    ) -> tuple[Float[Tensor, "paths width"], Float[Tensor, "paths 2 heads new_capacity dim"]]:
        """Attend from one new token to itself and the cached tokens before it.

        Parameters
        ----------
        token : Tensor
        cache : Tensor
            Keys and values of earlier tokens (key-value cache).
        token_index : int
            Index of the token, from 0.
        cache_size : int
            Capacity of a new cache, if the token does not fit into `cache`. Later tokens are written
            into it in place. A caller who needs gradients must pass `token_index + 1`, to get a new
            cache at every step.
        mask : AttentionMask

        Returns
        -------
        attended : Tensor
        cache : Tensor
        """
        projections = self.in_proj(token).view(token.shape[0], 3, self.n_heads, 1, -1)
        query, new_entry = apply_rotary(projections[:, 0], mask.query_rotation), projections[:, 1:]
        if mask.key_rotation is not None:
            new_entry = torch.stack(
                [apply_rotary(projections[:, 1], mask.key_rotation), projections[:, 2]], 1
            )
        if cache.shape[3] > token_index:
            cache[:, :, :, token_index : token_index + 1] = new_entry
        else:
            unused = new_entry.new_empty(
                *new_entry.shape[:3], cache_size - token_index - 1, new_entry.shape[4]
            )
            cache = torch.cat([cache, new_entry, unused], dim=3)
        cached = cache[:, :, :, : token_index + 1]
        context = attention(query, cached[:, 0], cached[:, 1], mask)
        return self.out_proj(context.flatten(1)), cache


class CrossAttention(nn.Module):
    """Multi-head attention to another sequence, with keys and values from `KeyValueProjection`.

    Parameters
    ----------
    width : int
        Width of the tokens (d_model).
    n_heads : int
        Number of heads, a divisor of `width`.
    """

    def __init__(self, width: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = check_heads(width, n_heads)
        self.in_proj, self.out_proj = nn.Linear(width, width), nn.Linear(width, width)
        init_projection(self.in_proj)

    def forward(
        self,
        inputs: Float[Tensor, "batch queries width"],
        keys: Float[Tensor, "batch heads keys dim"],
        values: Float[Tensor, "batch heads keys dim"],
        mask: AttentionMask = NO_MASK,
        attention_maps: list[Float[Tensor, "batch heads _ _"]] | None = None,
    ) -> Float[Tensor, "batch queries width"]:
        """Attend from the tokens to another sequence, whose keys are rotated already."""
        query = self.in_proj(inputs).view(*inputs.shape[:2], self.n_heads, -1).transpose(1, 2)
        query = apply_rotary(query, mask.query_rotation)
        return cast(
            Tensor, self.out_proj(merge_heads(attention(query, keys, values, mask, attention_maps)))
        )


class KeyValueProjection(nn.Module):
    """Keys and values of the encoder outputs for all decoder layers, in one matrix product.

    Parameters
    ----------
    width : int
        Width of the tokens (d_model).
    n_heads : int
        Number of heads.
    n_layers : int
        Number of decoder layers.
    """

    def __init__(self, width: int, n_heads: int, n_layers: int) -> None:
        super().__init__()
        self.n_heads, self.n_layers = check_heads(width, n_heads), n_layers
        self.in_proj = nn.Linear(width, 2 * n_layers * width)
        init_projection(self.in_proj)

    def forward(
        self, encoded: Float[Tensor, "batch keys width"], rotation: Rotation | None = None
    ) -> list[Float[Tensor, "batch heads keys dim"]]:
        """Project to [keys of layer 1, values of layer 1, keys of layer 2, ...].

        The keys are rotated.
        """
        projections = split_heads(self.in_proj(encoded), 2 * self.n_layers, self.n_heads)
        return [
            projection if index % 2 else apply_rotary(projection, rotation)
            for index, projection in enumerate(projections)
        ]


def check_heads(width: int, n_heads: int) -> int:
    """Return `n_heads`, or raise `ParameterError` if it does not divide the width."""
    if width % n_heads:
        nearest_multiple = max(round(width / n_heads), 1) * n_heads
        raise ParameterError(
            f"`d_model` must be divisible by `n_heads`, got d_model={width} and n_heads={n_heads}.",
            hint="Use "
            f"n_heads={_nearest_divisor(width, n_heads)} or d_model={nearest_multiple}.",
            parameter="d_model",
        )
    return n_heads


def split_heads(
    projected: Float[Tensor, "batch tokens parts_width"], n_parts: int, n_heads: int
) -> list[Float[Tensor, "batch heads tokens dim"]]:
    """Split `n_parts` projections side by side into views with an axis of heads.

    No copy is made, and with `chunk` autograd joins the gradients in a single copy.
    """
    n_windows, n_tokens, total_width = projected.shape
    shape = n_windows, n_tokens, n_heads, total_width // (n_parts * n_heads)
    return [chunk.view(shape).transpose(1, 2) for chunk in projected.chunk(n_parts, dim=-1)]


def merge_heads(
    heads: Float[Tensor, "batch heads tokens dim"]
) -> Float[Tensor, "batch tokens width"]:
    """Concatenate the heads."""
    return heads.transpose(1, 2).flatten(2)


def init_projection(projection: nn.Linear) -> None:
    """Initialise each width x width block as Glorot and Bengio (2010), and the bias with 0, in place."""
    width = projection.in_features
    with torch.no_grad():
        for begin in range(0, projection.out_features, width):
            nn.init.xavier_uniform_(projection.weight[begin : begin + width])
    nn.init.zeros_(projection.bias)


def _nearest_divisor(width: int, n_heads: int) -> int:
    """Return the divisor of the width that is nearest to `n_heads`, the smaller one of two."""
    return min(
        (divisor for divisor in range(1, width + 1) if width % divisor == 0),
        key=lambda divisor: abs(divisor - n_heads),
    )
