"""What a network is given: named fields, gathered for a batch of windows, and as its body sees them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from deepforecast.data.windows import Channels


@dataclass(frozen=True)
class Batch:
    """Windows as they were gathered: the target in float64 and its own units, missing values as NaN; columns standardised.

    Rows run over the `input_size` rows up to the cutoff (L) and the `horizon` rows after it (H). `past` holds every column of
    numbers over the rows up to the cutoff, those known ahead first; `future` these over the rows after it. Categories are codes
    from 1, with 0 for one never seen. `place` and `spread`: shift and scale of the series, where it is scaled as a whole.
    """

    y: Tensor  # (B, L) float64
    past: Tensor  # (B, L, P) float32
    future: Tensor  # (B, H, F) float32
    static: Tensor  # (B, S) float32
    past_codes: Tensor  # (B, L, p) int64
    future_codes: Tensor  # (B, H, f) int64
    static_codes: Tensor  # (B, s) int64
    place: Tensor  # (B, 1) float64
    spread: Tensor  # (B, 1) float64
    target: Tensor | None = None  # (B, H) float64

    def __len__(self) -> int:
        return self.y.shape[0]

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Batch:
        """The same on another device."""
        return self._each(lambda one: one.to(device, non_blocking=non_blocking))

    def pinned(self) -> Batch:
        """The same in memory that a GPU copies from by itself."""
        return self._each(lambda one: one.pin_memory())

    def rows(self, begin: int, end: int) -> Batch:
        """Some of its windows."""
        return self._each(lambda one: one[begin:end])

    def _each(self, act: object) -> Batch:
        held = {one.name: getattr(self, one.name) for one in fields(self)}
        return replace(self, **{name: act(value) for name, value in held.items() if value is not None})  # type: ignore[operator]


@dataclass(frozen=True)
class Inputs:
    """What the body of a network sees: everything scaled, in float32, categories as vectors of numbers.

    `y` is zero where nothing was `seen` (1.0 where there was a value, else 0.0). For bodies that look up: `codes`, of fixed
    categories as they are, and `level`, how far 0 lies below the place of the scale, in units of its spread.
    """

    y: Tensor  # (B, L)
    seen: Tensor  # (B, L)
    past: Tensor  # (B, L, P)
    future: Tensor  # (B, H, F)
    static: Tensor  # (B, S)
    codes: Tensor | None = None  # (B, s)
    level: Tensor | None = None  # (B, 1)

    @property
    def rows(self) -> Tensor:
        """All that is known of the rows up to the cutoff side by side: (B, L, 2 + P + S)."""
        length = self.y.shape[1]
        parts = [self.y.unsqueeze(-1), self.seen.unsqueeze(-1), self.past]
        if self.static.shape[1]:
            parts.append(self.static.unsqueeze(1).expand(-1, length, -1))
        return torch.cat(parts, dim=-1)

    @property
    def ahead(self) -> Tensor:
        """All that is known of the steps ahead: (B, H, F + S)."""
        if not self.static.shape[1]:
            return self.future
        return torch.cat([self.future, self.static.unsqueeze(1).expand(-1, self.future.shape[1], -1)], dim=-1)


@dataclass(frozen=True)
class Sizes:
    """How wide the fields of `Inputs` are, and what is to come out: `width` numbers for each of `horizon` steps.

    `season`: rows after which the series repeat, 1 where none is known. `location`: those of the numbers that come out that lie
    on the scale of the window, as the head reads them. `circles`: of each thing in the date that comes round, the columns of
    its sine in `past` and in `future`; its cosine stands next to it. `channels`: where the columns come from.
    """

    input_size: int
    horizon: int
    width: int
    past: int = 0
    future: int = 0
    static: int = 0
    season: int = 1
    location: slice | None = None
    circles: tuple[tuple[int, int], ...] = ()
    channels: Channels | None = None

    @property
    def rows(self) -> int:
        """Width of `Inputs.rows`."""
        return 2 + self.past + self.static

    @property
    def ahead(self) -> int:
        """Width of `Inputs.ahead`."""
        return self.future + self.static
