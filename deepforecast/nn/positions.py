"""Where a row stands, told to layers that would see rows in no order: waves added to it, turns of its numbers, or a price on
distance. Rows are counted from the cutoff on one axis for both sides: 0 is the last one seen, 1 the first step ahead."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from deepforecast.errors import ParameterError, format_value
from deepforecast.nn.multihead import AttentionMask, Rotation

ENCODINGS: tuple[str | None, ...] = ("sinusoidal", "learned", "rotary", "alibi", "calendar", None)
"""What may be asked for: waves of the row's number (Vaswani et al. 2017), a learned vector each, turns (RoPE, Su et al. 2021),
a price on distance (ALiBi, Press et al. 2022), waves of the calendar (its circles wound around several times), nothing."""

MAX_WAVELENGTH = 10_000.0  # times 2 pi, the longest wave, in rows


@dataclass(frozen=True)
class TokenPositions:
    """Rows by their numbers: of the window, and of the steps ahead; of patches, those of their last rows."""

    past: tuple[int, ...]
    future: tuple[int, ...]


class PositionalEncoding(nn.Module):
    """What layers of one network are told of places, by the name of the way.

    `cyclic_columns`: for "calendar", the columns (behind, ahead) where each sine stands, its cosine next to it.
    """

    past: Tensor  # (behind, D) and (ahead, D)
    future: Tensor
    cos_past: Tensor  # (behind, w), and so on
    sin_past: Tensor
    cos_future: Tensor
    sin_future: Tensor
    past_bias: Tensor  # (1, heads, behind, behind)
    future_bias: Tensor
    cross_bias: Tensor  # (1, heads, ahead, behind)

    def __init__(
        self, encoding: str | None, token_positions: TokenPositions, width: int, n_heads: int, cyclic_columns: Sequence[tuple[int, int]] = ()
    ) -> None:
        super().__init__()
        if encoding not in ENCODINGS:
            raise ParameterError(f"positions is one of {', '.join(map(repr, ENCODINGS))}; got {format_value(encoding)}.")
        self.encoding, self.width, self.cyclic_columns = encoding, width, tuple(cyclic_columns)
        past, future = (torch.tensor(positions, dtype=torch.float64) for positions in (token_positions.past, token_positions.future))
        if encoding == "sinusoidal":
            self._register_tables(past=sinusoidal_encoding(past, width), future=sinusoidal_encoding(future, width))
        elif encoding == "learned":
            self.past = nn.Parameter(0.02 * torch.randn(len(past), width))
            self.future = nn.Parameter(0.02 * torch.randn(len(future), width))
        elif encoding == "rotary":
            past_rotation, future_rotation = (rotary_angles(positions, _rotary_width(width, n_heads)) for positions in (past, future))
            self._register_tables(cos_past=past_rotation[0], sin_past=past_rotation[1], cos_future=future_rotation[0], sin_future=future_rotation[1])
        elif encoding == "alibi":
            head_slopes = alibi_slopes(n_heads)
            self._register_tables(
                past_bias=alibi_bias(past, past, head_slopes), future_bias=alibi_bias(future, future, head_slopes),
                cross_bias=alibi_bias(future, past, head_slopes),
            )  # fmt: skip
        elif encoding == "calendar" and not cyclic_columns:
            raise ParameterError(
                "positions='calendar' counts by what comes round in the date, and the network is given none of it. Say "
                "calendar=['hour', 'day_of_week'] or the like, or positions='sinusoidal'."
            )

    def add_to(self, tokens: Tensor, columns: Tensor, is_future: bool, first: int = 0) -> Tensor:
        """Tokens (B, n, D) with their places added; `columns` (B, n, C): what is known of their rows, for the calendar.

        `is_future`: steps ahead, from the one of number `first` on.
        """
        if self.encoding in ("sinusoidal", "learned"):
            table: Tensor = self.future if is_future else self.past
            return tokens + table[first : first + tokens.shape[1]]
        if self.encoding == "calendar":
            return tokens + calendar_encoding(columns, [pair[is_future] for pair in self.cyclic_columns], self.width)
        return tokens

    def past_mask(self, bias: Tensor) -> AttentionMask:
        """Rows of the window among themselves; `bias` (B, 1, 1, K) hides what is none."""
        if self.encoding == "alibi":
            return AttentionMask(self.past_bias + bias)
        rotation = self.rotation(is_future=False)
        return AttentionMask(bias, query_rotation=rotation, key_rotation=rotation)

    def future_mask(self, causal: bool, count: int) -> AttentionMask:
        """The first `count` steps ahead among themselves; `causal`: each sees those before it and itself."""
        if self.encoding == "alibi":
            bias = self.future_bias[:, :, :count, :count]
            return AttentionMask(bias + torch.full_like(bias[0, 0], -torch.inf).triu(1) if causal else bias)
        rotation = self.rotation(True, 0, count)
        return AttentionMask(None, causal, rotation, rotation)

    def cross_mask(self, bias: Tensor, count: int) -> AttentionMask:
        """They at rows of the window, whose keys are turned by `rotation(ahead=False)` when they are made."""
        bias = self.cross_bias[:, :, :count] + bias if self.encoding == "alibi" else bias
        return AttentionMask(bias, query_rotation=self.rotation(True, 0, count))

    def step_masks(self, number: int, bias: Tensor) -> tuple[AttentionMask, AttentionMask]:
        """Of the step of this number: at itself and those before it, and at rows of the window."""
        if self.encoding == "alibi":
            self_bias = self.future_bias[:, :, number : number + 1, : number + 1]
            return AttentionMask(self_bias), AttentionMask(self.cross_bias[:, :, number : number + 1] + bias)
        rotation = self.rotation(True, number, number + 1)
        return AttentionMask(None, query_rotation=rotation, key_rotation=rotation), AttentionMask(bias, query_rotation=rotation)

    def rotation(self, is_future: bool, first: int = 0, stop: int | None = None) -> Rotation | None:
        """By how much rows are turned, where they are."""
        if self.encoding != "rotary":
            return None
        if is_future:
            return self.cos_future[first:stop], self.sin_future[first:stop]
        return self.cos_past[first:stop], self.sin_past[first:stop]

    def _register_tables(self, **tables: Tensor) -> None:
        for name, table in tables.items():
            self.register_buffer(name, table.float(), persistent=False)


def sinusoidal_encoding(positions: Tensor, width: int) -> Tensor:
    """Sines and cosines of the places, (n,) -> (n, width), side by side, from waves of 2 pi rows to such of 10,000 times that.

    >>> (100 * sinusoidal_encoding(torch.tensor([0.0, 1.0]), 4)).round().tolist()
    [[0.0, 100.0, 0.0, 100.0], [84.0, 54.0, 1.0, 100.0]]
    """
    pairs = (width + 1) // 2
    frequencies = MAX_WAVELENGTH ** (-torch.arange(pairs, dtype=positions.dtype) * 2 / width)
    angle = positions.unsqueeze(1) * frequencies
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :width]


def rotary_angles(positions: Tensor, width: int) -> Rotation:
    """Cosine and sine of the angles by which a head's numbers are turned at these places: (n,) -> two of (n, width)."""
    frequencies = MAX_WAVELENGTH ** (-torch.arange(width // 2, dtype=positions.dtype) * 2 / width)
    angle = (positions.unsqueeze(1) * frequencies).repeat(1, 2)
    return angle.cos(), angle.sin()


def alibi_slopes(n_heads: int) -> Tensor:
    """What a row of distance costs each head, (heads,): from 2^(-8 / heads) down to 2^-8.

    >>> alibi_slopes(4).tolist()
    [0.25, 0.0625, 0.015625, 0.00390625]
    """
    return 2.0 ** (-8.0 * torch.arange(1, n_heads + 1, dtype=torch.float64) / n_heads)


def alibi_bias(queries: Tensor, keys: Tensor, slopes: Tensor) -> Tensor:
    """What distance takes off the scores: places (Q,) and (K,), prices (heads,) -> (1, heads, Q, K)."""
    return -slopes[None, :, None, None] * (queries.unsqueeze(1) - keys.unsqueeze(0)).abs()


def calendar_encoding(columns: Tensor, sine_columns: Sequence[int], width: int) -> Tensor:
    """Waves of the calendar, (B, n, C) -> (B, n, width): around each circle once, twice, ... up to where the width is full.

    A circle is the sine and the cosine of a phase, as of the hour in the day; k times around is the k-th power of the complex
    number they are.
    """
    n_harmonics = math.ceil(width / (2 * len(sine_columns)))
    sine = torch.stack([columns[..., column] for column in sine_columns], dim=-1)
    cosine = torch.stack([columns[..., column + 1] for column in sine_columns], dim=-1)
    s, c, encodings = sine, cosine, [sine, cosine]
    for _ in range(n_harmonics - 1):
        s, c = s * cosine + c * sine, c * cosine - s * sine
        encodings += [s, c]
    return torch.cat(encodings, dim=-1)[..., :width]


def _rotary_width(width: int, n_heads: int) -> int:
    """Numbers of a head, if they come in pairs."""
    if width % (2 * n_heads):
        raise ParameterError(
            f"positions='rotary' turns pairs of numbers, and d_model={width} with n_heads={n_heads} leaves each head "
            f"{width // n_heads}. Say d_model={2 * n_heads * max(width // (2 * n_heads), 1)} or other positions."
        )
    return width // n_heads
