"""A panel on a device, and windows of it gathered by their places: no window is copied before it is asked for."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from deepforecast.data.windows import Rows
from deepforecast.nn.batch import Batch


@dataclass(frozen=True)
class Windows:
    """Rows of all series one after the other, with so many empty rows between them that no window holds rows of two.

    A window is where it begins: `rows[begin : begin + input_size + horizon]`. Missing values are NaN.
    """

    y: Tensor  # (N,) float64
    numbers: Tensor  # (N, P) float32
    codes: Tensor  # (N, p) int64
    clock: Tensor  # (T, C) float32, by time
    static: Tensor  # (series, S)
    static_codes: Tensor  # (series, s)
    place: Tensor  # (series, 1) float64
    spread: Tensor  # (series, 1) float64
    input_size: int
    horizon: int
    ahead: int  # of the numbers, those known ahead
    ahead_codes: int

    @classmethod
    def of(cls, rows: Rows, device: torch.device | str = "cpu") -> Windows:
        """From arrays; they are not copied where the device is the CPU."""
        held: dict[str, Any] = {one.name: getattr(rows, one.name) for one in fields(cls)}
        arrays = {name: torch.from_numpy(value).to(device) for name, value in held.items() if isinstance(value, np.ndarray)}
        return cls(**{**held, **arrays})

    def to(self, device: torch.device | str) -> Windows:
        """The same on another device."""
        held: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self)}
        moved: dict[str, Any] = {name: value.to(device) for name, value in held.items() if isinstance(value, Tensor)}
        return replace(self, **moved)

    @property
    def bytes(self) -> int:
        """How much memory its arrays take."""
        held = (getattr(self, one.name) for one in fields(self))
        return sum(value.numel() * value.element_size() for value in held if isinstance(value, Tensor))

    def gather(self, begin: Tensor, time: Tensor, series: Tensor) -> Batch:
        """The windows that begin at these rows, at these rows of the clock, of these series; each (B,)."""
        length = self.input_size
        y = _cut(self.y.unsqueeze(1), begin, length + self.horizon).squeeze(2)
        numbers = _cut(self.numbers, begin, length + self.horizon)
        codes = _cut(self.codes, begin, length + self.horizon)
        clock = _cut(self.clock, time, length + self.horizon)
        return Batch(
            y[:, :length],
            torch.cat([numbers[:, :length], clock[:, :length]], dim=2) if self.clock.shape[1] else numbers[:, :length],
            torch.cat([numbers[:, length:, : self.ahead], clock[:, length:]], dim=2),
            self.static.index_select(0, series),
            codes[:, :length],
            codes[:, length:, : self.ahead_codes],
            self.static_codes.index_select(0, series),
            self.place.index_select(0, series),
            self.spread.index_select(0, series),
            y[:, length:],
        )


def _cut(rows: Tensor, begin: Tensor, length: int) -> Tensor:
    """(N, C) -> (B, length, C): one copy of whole stretches, no index for each value."""
    count, width = rows.shape
    if not width:
        return rows.new_empty((len(begin), length, 0))
    views = rows.as_strided((count - length + 1, length, width), (width, width, 1))
    return views.index_select(0, begin)
