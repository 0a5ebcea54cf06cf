"""What a network is given: named fields, gathered for a batch of windows, and as its body sees them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from deepforecast.data.windows import WindowColumns


@dataclass(frozen=True)
class Batch:
    """Windows as they were gathered: the target in float64 and its own units, missing values as NaN; columns standardised.

    Rows run over the `input_size` rows up to the cutoff (L) and the `horizon` rows after it (H). `past` holds every column of
    numbers over the rows up to the cutoff, those known ahead first; `future` these over the rows after it. Categories are codes
    from 1, with 0 for one never seen. `loc` and `scale`: shift and scale of the series, where it is scaled as a whole.
    """

    y: Tensor  # (B, L) float64
    past: Tensor  # (B, L, P) float32
    future: Tensor  # (B, H, F) float32
    static: Tensor  # (B, S) float32
    past_codes: Tensor  # (B, L, p) int64
    future_codes: Tensor  # (B, H, f) int64
    static_codes: Tensor  # (B, s) int64
    loc: Tensor  # (B, 1) float64
    scale: Tensor  # (B, 1) float64
    target: Tensor | None = None  # (B, H) float64

    def __len__(self) -> int:
        return self.y.shape[0]

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Batch:
        """The same on another device."""
        return self._map(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> Batch:
        """The same in memory that a GPU copies from by itself."""
        return self._map(lambda tensor: tensor.pin_memory())

    def select_windows(self, begin: int, end: int) -> Batch:
        """Some of its windows."""
        return self._map(lambda tensor: tensor[begin:end])

    def _map(self, function: object) -> Batch:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: function(value) for name, value in values.items() if value is not None})  # type: ignore[operator]


@dataclass(frozen=True)
class Inputs:
    """What the body of a network sees: everything scaled, in float32, categories as vectors of numbers.

    `y` is zero where nothing was `observed` (1.0 where there was a value, else 0.0). For bodies that look up: `static_codes`, of fixed
    categories as they are, and `level`, how far 0 lies below the place of the scale, in units of its spread.
    """

    y: Tensor  # (B, L)
    observed: Tensor  # (B, L)
    past: Tensor  # (B, L, P)
    future: Tensor  # (B, H, F)
    static: Tensor  # (B, S)
    static_codes: Tensor | None = None  # (B, s)
    level: Tensor | None = None  # (B, 1)

    @property
    def past_features(self) -> Tensor:
        """All that is known of the rows up to the cutoff side by side: (B, L, 2 + P + S)."""
        length = self.y.shape[1]
        features = [self.y.unsqueeze(-1), self.observed.unsqueeze(-1), self.past]
        if self.static.shape[1]:
            features.append(self.static.unsqueeze(1).expand(-1, length, -1))
        return torch.cat(features, dim=-1)

    @property
    def future_features(self) -> Tensor:
        """All that is known of the steps ahead: (B, H, F + S)."""
        if not self.static.shape[1]:
            return self.future
        return torch.cat([self.future, self.static.unsqueeze(1).expand(-1, self.future.shape[1], -1)], dim=-1)


@dataclass(frozen=True)
class InputSizes:
    """How wide the fields of `Inputs` are, and what is to come out: `out_features` numbers for each of `horizon` steps.

    `season`: rows after which the series repeat, 1 where none is known. `location_slice`: those of the numbers that come out that lie
    on the scale of the window, as the head reads them. `cyclic_columns`: of each thing in the date that comes round, the columns of
    its sine in `past` and in `future`; its cosine stands next to it. `window_columns`: where the columns come from.
    """

    input_size: int
    horizon: int
    out_features: int
    past: int = 0
    future: int = 0
    static: int = 0
    season: int = 1
    location_slice: slice | None = None
    cyclic_columns: tuple[tuple[int, int], ...] = ()
    window_columns: WindowColumns | None = None

    @property
    def past_features(self) -> int:
        """Width of `Inputs.past_features`."""
        return 2 + self.past + self.static

    @property
    def future_features(self) -> int:
        """Width of `Inputs.future_features`."""
        return self.future + self.static
