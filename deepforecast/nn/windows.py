"""A panel on a device, and the windows gathered from it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from deepforecast.data.windows import WindowArrays
from deepforecast.nn.batch import Batch


@dataclass(frozen=True)
class WindowStore:
    """Time steps of all series, concatenated with NaN padding in between so that no window spans
    two series.

    A window is given by its first row: `rows[start : start + input_size + horizon]`. Missing values
    are NaN.
    """

    y: Tensor  # (N,) float64
    numeric: Tensor  # (N, P) float32
    category_codes: Tensor  # (N, p) int64
    calendar: Tensor  # (T, C) float32, one row per timestamp
    static: Tensor  # (series, S)
    static_codes: Tensor  # (series, s)
    loc: Tensor  # (series, 1) float64
    scale: Tensor  # (series, 1) float64
    input_size: int
    horizon: int
    n_future: int  # numeric future covariates come first
    n_future_codes: int

    @classmethod
    def from_arrays(
        cls, window_arrays: WindowArrays, device: torch.device | str = "cpu"
    ) -> WindowStore:
        """Create a store from arrays, without a copy on the CPU."""
        values: dict[str, Any] = {
            field.name: getattr(window_arrays, field.name) for field in fields(cls)
        }
        arrays = {
            name: torch.from_numpy(value).to(device)
            for name, value in values.items()
            if isinstance(value, np.ndarray)
        }
        return cls(**{**values, **arrays})

    def to(self, device: torch.device | str) -> WindowStore:
        """Return the store on another device."""
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        tensors: dict[str, Any] = {
            name: value.to(device) for name, value in values.items() if isinstance(value, Tensor)
        }
        return replace(self, **tensors)

    @property
    def nbytes(self) -> int:
        """Memory of the tensors in bytes."""
        values = (getattr(self, field.name) for field in fields(self))
        return sum(
            value.numel() * value.element_size() for value in values if isinstance(value, Tensor)
        )

    def gather(self, start: Tensor, calendar_start: Tensor, series: Tensor) -> Batch:
        """Gather the windows that start at these rows of the panel and of the calendar, of these
        series; each (batch,).
        """
        length = self.input_size
        y = slice_windows(self.y.unsqueeze(1), start, length + self.horizon).squeeze(2)
        numeric = slice_windows(self.numeric, start, length + self.horizon)
        category_codes = slice_windows(self.category_codes, start, length + self.horizon)
        calendar = slice_windows(self.calendar, calendar_start, length + self.horizon)
        return Batch(
            y[:, :length],
            torch.cat([numeric[:, :length], calendar[:, :length]], dim=2)
            if self.calendar.shape[1]
            else numeric[:, :length],
            torch.cat([numeric[:, length:, : self.n_future], calendar[:, length:]], dim=2),
            self.static.index_select(0, series),
            category_codes[:, :length],
            category_codes[:, length:, : self.n_future_codes],
            self.static_codes.index_select(0, series),
            self.loc.index_select(0, series),
            self.scale.index_select(0, series),
            y[:, length:],
        )


def slice_windows(rows: Tensor, start: Tensor, length: int) -> Tensor:
    """Slice windows of (N, columns) to (batch, length, columns), each copied as one contiguous
    block.
    """
    count, width = rows.shape
    if not width:
        return rows.new_empty((len(start), length, 0))
    views = rows.as_strided((count - length + 1, length, width), (width, width, 1))
    return views.index_select(0, start)
