"""Positional encodings: sinusoidal, learned, rotary (RoPE), ALiBi and calendar.

Positions are counted from the cutoff on one axis: 0 is the last time step of the window, 1 the
first step of the horizon.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from deepforecast.errors import ParameterError, format_value
from deepforecast.nn.multihead import AttentionMask

if TYPE_CHECKING:
    from jaxtyping import Float

    from deepforecast.nn.multihead import Rotation

ENCODINGS: tuple[str | None, ...] = ("sinusoidal", "learned", "rotary", "alibi", "calendar", None)
"""Names of the encodings.

"sinusoidal" (Vaswani et al. 2017, arXiv:1706.03762), "learned" (one vector per position), "rotary"
(RoPE, Su et al. 2021, arXiv:2104.09864), "alibi" (Press et al. 2022, arXiv:2108.12409), "calendar"
(harmonics of the cyclic calendar features), or None.
"""

MAX_WAVELENGTH = 10_000.0  # longest wavelength in time steps, divided by 2 pi


@dataclass(frozen=True)
class TokenPositions:
    """Positions of the tokens of the window (`past`) and of the horizon (`future`).

    A patch has the position of its last time step.
    """

    past: tuple[int, ...]
    future: tuple[int, ...]


class PositionalEncoding(nn.Module):
    """Positional encoding of the tokens of one network.

    Parameters
    ----------
    encoding : str or None
        One of `ENCODINGS`.
    token_positions : TokenPositions
    width : int
        Width of the tokens (d_model).
    n_heads : int
        Number of heads; "rotary" needs an even width per head.
    cyclic_columns : sequence of (int, int)
        For "calendar": per cyclic feature the column of its sine in the past and in the future
        covariates; its cosine is the next column.
    """

    past: Tensor  # (past, width)
    future: Tensor  # (future, width)
    cos_past: Tensor  # (past, dim)
    sin_past: Tensor
    cos_future: Tensor
    sin_future: Tensor
    past_bias: Tensor  # (1, heads, past, past)
    future_bias: Tensor  # (1, heads, future, future)
    cross_bias: Tensor  # (1, heads, future, past)

    def __init__(
        self,
        encoding: str | None,
        token_positions: TokenPositions,
        width: int,
        n_heads: int,
        cyclic_columns: Sequence[tuple[int, int]] = (),
    ) -> None:
        super().__init__()
        if encoding not in ENCODINGS:
            raise ParameterError(
                f"`positional_encoding` must be one of {', '.join(map(repr, ENCODINGS))}, got {format_value(encoding)}.",
                parameter="positional_encoding",
                value=encoding
            )
        self.encoding = encoding
        self.width = width
        self.cyclic_columns = tuple(cyclic_columns)
        past = torch.tensor(token_positions.past, dtype=torch.float64)
        future = torch.tensor(token_positions.future, dtype=torch.float64)
        if encoding == "sinusoidal":
            self._register_tables(
                past=sinusoidal_encoding(past, width), future=sinusoidal_encoding(future, width)
            )
        elif encoding == "learned":
            self.past = nn.Parameter(0.02 * torch.randn(len(past), width))
            if len(future):  # an empty parameter would never get a gradient
                self.future = nn.Parameter(0.02 * torch.randn(len(future), width))
        elif encoding == "rotary":
            head_width = _rotary_width(width, n_heads)
            cos_past, sin_past = rotary_angles(past, head_width)
            cos_future, sin_future = rotary_angles(future, head_width)
            self._register_tables(
                cos_past=cos_past, sin_past=sin_past, cos_future=cos_future, sin_future=sin_future
            )
        elif encoding == "alibi":
            head_slopes = alibi_slopes(n_heads)
            self._register_tables(
                past_bias=alibi_bias(past, past, head_slopes), future_bias=alibi_bias(future, future, head_slopes),
                cross_bias=alibi_bias(future, past, head_slopes),
            )  # fmt: skip
        elif encoding == "calendar" and not cyclic_columns:
            raise ParameterError(
                "positional_encoding='calendar' requires cyclic calendar features, and the network has none.",
                hint="Set e.g. "
                "calendar=['hour', 'day_of_week'], or use positional_encoding='sinusoidal'.",
                parameter="positional_encoding",
            )

    def add_to(
        self,
        tokens: Float[Tensor, "batch tokens width"],
        columns: Float[Tensor, "batch tokens columns"],
        is_future: bool,
        first: int = 0,
    ) -> Float[Tensor, "batch tokens width"]:
        """Add the encoding to tokens if it is sinusoidal, learned or of the calendar.

        The other encodings change the attention scores; for these the tokens are returned
        unchanged.

        Parameters
        ----------
        tokens : Tensor
        columns : Tensor
            Covariates of the tokens, used by "calendar" only.
        is_future : bool
            Whether the tokens belong to the horizon.
        first : int, default 0
            Index of the first token.
        """
        if self.encoding in ("sinusoidal", "learned"):
            table: Tensor = self.future if is_future else self.past
            return tokens + table[first : first + tokens.shape[1]]
        if self.encoding == "calendar":
            return tokens + calendar_encoding(
                columns, [pair[is_future] for pair in self.cyclic_columns], self.width
            )
        return tokens

    def past_mask(
        self, bias: Float[Tensor, "#batch 1 #queries keys"], first: int = 0, stop: int | None = None
    ) -> AttentionMask:
        """Return the mask of the window's self-attention, from tokens `first` to `stop` to those up to
        `stop`; `bias` masks the padding.
        """
        if self.encoding == "alibi":
            return AttentionMask(self.past_bias[:, :, first:stop, :stop] + bias)
        rotation = self.rotation(False, first, stop)
        return AttentionMask(bias, query_rotation=rotation, key_rotation=rotation)

    def future_mask(self, causal: bool, n_tokens: int) -> AttentionMask:
        """Return the mask of the self-attention among the first `n_tokens` tokens of the horizon."""
        if self.encoding == "alibi":
            bias = self.future_bias[:, :, :n_tokens, :n_tokens]
            return AttentionMask(
                bias + torch.full_like(bias[0, 0], -torch.inf).triu(1) if causal else bias
            )
        rotation = self.rotation(True, 0, n_tokens)
        return AttentionMask(None, causal, rotation, rotation)

    def cross_mask(self, bias: Float[Tensor, "batch 1 1 keys"], n_tokens: int) -> AttentionMask:
        """Return the mask of the attention from the first `n_tokens` tokens of the horizon to the
        window; `bias` masks the padding.

        The keys are rotated when they are projected, by `rotation(is_future=False)`.
        """
        if self.encoding == "alibi":
            bias = self.cross_bias[:, :, :n_tokens] + bias
        return AttentionMask(bias, query_rotation=self.rotation(True, 0, n_tokens))

    def step_masks(
        self, step_index: int, bias: Float[Tensor, "batch 1 1 keys"]
    ) -> tuple[AttentionMask, AttentionMask]:
        """Return the masks of one decoder step: of its self-attention and of its attention to the
        window; `bias` masks the padding.
        """
        if self.encoding == "alibi":
            self_bias = self.future_bias[:, :, step_index : step_index + 1, : step_index + 1]
            cross_bias = self.cross_bias[:, :, step_index : step_index + 1] + bias
            return AttentionMask(self_bias), AttentionMask(cross_bias)
        rotation = self.rotation(True, step_index, step_index + 1)
        return AttentionMask(None, query_rotation=rotation, key_rotation=rotation), AttentionMask(
            bias, query_rotation=rotation
        )

    def rotation(self, is_future: bool, first: int = 0, stop: int | None = None) -> Rotation | None:
        """Return the rotary angles of positions `first` to `stop`; None for other encodings."""
        if self.encoding != "rotary":
            return None
        if is_future:
            return self.cos_future[first:stop], self.sin_future[first:stop]
        return self.cos_past[first:stop], self.sin_past[first:stop]

    def _register_tables(self, **tables: Tensor) -> None:
        for name, table in tables.items():
            self.register_buffer(name, table.float(), persistent=False)


def sinusoidal_encoding(
    positions: Float[Tensor, "positions"], width: int
) -> Float[Tensor, "positions width"]:
    """Compute the sinusoidal encoding (Vaswani et al. 2017, section 3.5).

    Columns 2i and 2i + 1 are sin and cos of position / 10000^(2i / width).

    Examples
    --------
    >>> (100 * sinusoidal_encoding(torch.tensor([0.0, 1.0]), 4)).round().tolist()
    [[0.0, 100.0, 0.0, 100.0], [84.0, 54.0, 1.0, 100.0]]
    """
    n_pairs = (width + 1) // 2
    frequencies = MAX_WAVELENGTH ** (-torch.arange(n_pairs, dtype=positions.dtype) * 2 / width)
    angle = positions.unsqueeze(1) * frequencies
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :width]


def rotary_angles(positions: Float[Tensor, "positions"], width: int) -> Rotation:
    """Compute the cosines and the sines of position / 10000^(2i / width) (Su et al. 2021, eq. 15).

    Columns i and i + width / 2 are equal.
    """
    frequencies = MAX_WAVELENGTH ** (-torch.arange(width // 2, dtype=positions.dtype) * 2 / width)
    angle = (positions.unsqueeze(1) * frequencies).repeat(1, 2)
    return angle.cos(), angle.sin()


def alibi_slopes(n_heads: int) -> Float[Tensor, "heads"]:
    """Compute the ALiBi slopes, from 2^(-8 / heads) down to 2^-8 (Press et al. 2022).

    Examples
    --------
    >>> alibi_slopes(4).tolist()
    [0.25, 0.0625, 0.015625, 0.00390625]
    """
    return 2.0 ** (-8.0 * torch.arange(1, n_heads + 1, dtype=torch.float64) / n_heads)


def alibi_bias(
    queries: Float[Tensor, "queries"], keys: Float[Tensor, "keys"], slopes: Float[Tensor, "heads"]
) -> Float[Tensor, "1 heads queries keys"]:
    """Compute the bias -slope * |query position - key position|.

    `queries` and `keys` are positions.
    """
    return -slopes[None, :, None, None] * (queries.unsqueeze(1) - keys.unsqueeze(0)).abs()


def calendar_encoding(
    columns: Float[Tensor, "batch tokens columns"], sine_columns: Sequence[int], width: int
) -> Float[Tensor, "batch tokens width"]:
    """Compute harmonics of the cyclic calendar features.

    From sin(a) and cos(a) of a phase a (e.g. the hour of the day) the harmonics sin(k a), cos(k a),
    k = 1, 2, ... follow by the angle addition theorems, until the width is filled.
    """
    n_harmonics = math.ceil(width / (2 * len(sine_columns)))
    sine = torch.stack([columns[..., column] for column in sine_columns], dim=-1)
    cosine = torch.stack([columns[..., column + 1] for column in sine_columns], dim=-1)
    encodings = [sine, cosine]
    sine_k, cosine_k = sine, cosine  # sin(k a), cos(k a)
    for _ in range(n_harmonics - 1):
        sine_k, cosine_k = sine_k * cosine + cosine_k * sine, cosine_k * cosine - sine_k * sine
        encodings += [sine_k, cosine_k]
    return torch.cat(encodings, dim=-1)[..., :width]


def _rotary_width(width: int, n_heads: int) -> int:
    """Return the width of a head, or raise `ParameterError` if it is odd."""
    if width % (2 * n_heads):
        raise ParameterError(
            f"`d_model` must be divisible by 2 * `n_heads` for positional_encoding='rotary', got d_model={width} and "
            f"n_heads={n_heads}.",
            hint=f"Use d_model={2 * n_heads * max(width // (2 * n_heads), 1)} or another encoding.",
            parameter="d_model",
        )
    return width // n_heads
