"""Where a row stands, told to layers that would see rows in no order: waves added to it, turns of its numbers, or a price on
distance. Rows are counted from the cutoff on one axis for both sides: 0 is the last one seen, 1 the first step ahead."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from deepforecast.errors import ParameterError, shown
from deepforecast.nn.multihead import Look, Turns

POSITIONS: tuple[str | None, ...] = ("sinusoidal", "learned", "rotary", "alibi", "calendar", None)
"""What may be asked for: waves of the row's number (Vaswani et al. 2017), a learned vector each, turns (RoPE, Su et al. 2021),
a price on distance (ALiBi, Press et al. 2022), waves of the calendar (its circles wound around several times), nothing."""

LONGEST = 10_000.0  # times 2 pi, the longest wave, in rows


@dataclass(frozen=True)
class Places:
    """Rows by their numbers: of the window, and of the steps ahead; of patches, those of their last rows."""

    behind: tuple[int, ...]
    ahead: tuple[int, ...]


class Positions(nn.Module):
    """What layers of one network are told of places, by the name of the way.

    `circles`: for "calendar", the columns (behind, ahead) where each sine stands, its cosine next to it.
    """

    behind: Tensor  # (behind, D) and (ahead, D)
    ahead: Tensor
    cos_behind: Tensor  # (behind, w), and so on
    sin_behind: Tensor
    cos_ahead: Tensor
    sin_ahead: Tensor
    among_behind: Tensor  # (1, heads, behind, behind)
    among_ahead: Tensor
    between: Tensor  # (1, heads, ahead, behind)

    def __init__(
        self, kind: str | None, places: Places, width: int, n_heads: int, circles: Sequence[tuple[int, int]] = ()
    ) -> None:
        super().__init__()
        if kind not in POSITIONS:
            raise ParameterError(f"positions is one of {', '.join(map(repr, POSITIONS))}; got {shown(kind)}.")
        self.kind, self.width, self.circles = kind, width, tuple(circles)
        behind, ahead = (torch.tensor(one, dtype=torch.float64) for one in (places.behind, places.ahead))
        if kind == "sinusoidal":
            self._constant(behind=waves(behind, width), ahead=waves(ahead, width))
        elif kind == "learned":
            self.behind = nn.Parameter(0.02 * torch.randn(len(behind), width))
            self.ahead = nn.Parameter(0.02 * torch.randn(len(ahead), width))
        elif kind == "rotary":
            before, after = (turns(one, _pairs(width, n_heads)) for one in (behind, ahead))
            self._constant(cos_behind=before[0], sin_behind=before[1], cos_ahead=after[0], sin_ahead=after[1])
        elif kind == "alibi":
            price = slopes(n_heads)
            self._constant(
                among_behind=distance(behind, behind, price), among_ahead=distance(ahead, ahead, price),
                between=distance(ahead, behind, price),
            )  # fmt: skip
        elif kind == "calendar" and not circles:
            raise ParameterError(
                "positions='calendar' counts by what comes round in the date, and the network is given none of it. Say "
                "calendar=['hour', 'day_of_week'] or the like, or positions='sinusoidal'."
            )

    def onto(self, tokens: Tensor, columns: Tensor, ahead: bool, begin: int = 0) -> Tensor:
        """Tokens (B, n, D) with their places added; `columns` (B, n, C): what is known of their rows, for the calendar.

        `ahead`: steps ahead, from the one of number `begin` on.
        """
        if self.kind in ("sinusoidal", "learned"):
            table: Tensor = self.ahead if ahead else self.behind
            return tokens + table[begin : begin + tokens.shape[1]]
        if self.kind == "calendar":
            return tokens + wound(columns, [pair[ahead] for pair in self.circles], self.width)
        return tokens

    def behind_look(self, added: Tensor) -> Look:
        """Rows of the window among themselves; `added` (B, 1, 1, K) hides what is none."""
        if self.kind == "alibi":
            return Look(self.among_behind + added)
        turned = self.turned(ahead=False)
        return Look(added, queries=turned, keys=turned)

    def ahead_look(self, causal: bool, count: int) -> Look:
        """The first `count` steps ahead among themselves; `causal`: each sees those before it and itself."""
        if self.kind == "alibi":
            own = self.among_ahead[:, :, :count, :count]
            return Look(own + torch.full_like(own[0, 0], -torch.inf).triu(1) if causal else own)
        turned = self.turned(True, 0, count)
        return Look(None, causal, turned, turned)

    def between_look(self, added: Tensor, count: int) -> Look:
        """They at rows of the window, whose keys are turned by `turned(ahead=False)` when they are made."""
        added = self.between[:, :, :count] + added if self.kind == "alibi" else added
        return Look(added, queries=self.turned(True, 0, count))

    def step_looks(self, number: int, added: Tensor) -> tuple[Look, Look]:
        """Of the step of this number: at itself and those before it, and at rows of the window."""
        if self.kind == "alibi":
            own = self.among_ahead[:, :, number : number + 1, : number + 1]
            return Look(own), Look(self.between[:, :, number : number + 1] + added)
        turned = self.turned(True, number, number + 1)
        return Look(None, queries=turned, keys=turned), Look(added, queries=turned)

    def turned(self, ahead: bool, begin: int = 0, end: int | None = None) -> Turns | None:
        """By how much rows are turned, where they are."""
        if self.kind != "rotary":
            return None
        if ahead:
            return self.cos_ahead[begin:end], self.sin_ahead[begin:end]
        return self.cos_behind[begin:end], self.sin_behind[begin:end]

    def _constant(self, **tables: Tensor) -> None:
        for name, one in tables.items():
            self.register_buffer(name, one.float(), persistent=False)


def waves(places: Tensor, width: int) -> Tensor:
    """Sines and cosines of the places, (n,) -> (n, width), side by side, from waves of 2 pi rows to such of 10,000 times that.

    >>> (100 * waves(torch.tensor([0.0, 1.0]), 4)).round().tolist()
    [[0.0, 100.0, 0.0, 100.0], [84.0, 54.0, 1.0, 100.0]]
    """
    pairs = (width + 1) // 2
    speeds = LONGEST ** (-torch.arange(pairs, dtype=places.dtype) * 2 / width)
    angle = places.unsqueeze(1) * speeds
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :width]


def turns(places: Tensor, width: int) -> Turns:
    """Cosine and sine of the angles by which a head's numbers are turned at these places: (n,) -> two of (n, width)."""
    speeds = LONGEST ** (-torch.arange(width // 2, dtype=places.dtype) * 2 / width)
    angle = (places.unsqueeze(1) * speeds).repeat(1, 2)
    return angle.cos(), angle.sin()


def slopes(n_heads: int) -> Tensor:
    """What a row of distance costs each head, (heads,): from 2^(-8 / heads) down to 2^-8.

    >>> slopes(4).tolist()
    [0.25, 0.0625, 0.015625, 0.00390625]
    """
    return 2.0 ** (-8.0 * torch.arange(1, n_heads + 1, dtype=torch.float64) / n_heads)


def distance(queries: Tensor, keys: Tensor, price: Tensor) -> Tensor:
    """What distance takes off the scores: places (Q,) and (K,), prices (heads,) -> (1, heads, Q, K)."""
    return -price[None, :, None, None] * (queries.unsqueeze(1) - keys.unsqueeze(0)).abs()


def wound(columns: Tensor, sines: Sequence[int], width: int) -> Tensor:
    """Waves of the calendar, (B, n, C) -> (B, n, width): around each circle once, twice, ... up to where the width is full.

    A circle is the sine and the cosine of a phase, as of the hour in the day; k times around is the k-th power of the complex
    number they are.
    """
    often = math.ceil(width / (2 * len(sines)))
    sine = torch.stack([columns[..., place] for place in sines], dim=-1)
    cosine = torch.stack([columns[..., place + 1] for place in sines], dim=-1)
    s, c, found = sine, cosine, [sine, cosine]
    for _ in range(often - 1):
        s, c = s * cosine + c * sine, c * cosine - s * sine
        found += [s, c]
    return torch.cat(found, dim=-1)[..., :width]


def _pairs(width: int, n_heads: int) -> int:
    """Numbers of a head, if they come in pairs."""
    if width % (2 * n_heads):
        raise ParameterError(
            f"positions='rotary' turns pairs of numbers, and d_model={width} with n_heads={n_heads} leaves each head "
            f"{width // n_heads}. Say d_model={2 * n_heads * max(width // (2 * n_heads), 1)} or other positions."
        )
    return width // n_heads
