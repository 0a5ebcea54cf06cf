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
    """Time steps of all series on a device, concatenated with NaN padding in between so that no window
    contains values of two series.

    A window consists of the rows `start` to `start + input_size + horizon - 1`. Missing values are
    NaN.
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
    weight: Tensor | None = None  # (N,) float32, observation weights

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
        """Gather a batch of windows.

        Parameters
        ----------
        start, calendar_start : Tensor of shape (batch,)
            First row of each window in `y` and in `calendar`.
        series : Tensor of shape (batch,)
            Index of the series of each window.
        """
        length = self.input_size
        total_length = length + self.horizon
        y = slice_windows(self.y.unsqueeze(1), start, total_length).squeeze(2)
        numeric = slice_windows(self.numeric, start, total_length)
        category_codes = slice_windows(self.category_codes, start, total_length)
        calendar = slice_windows(self.calendar, calendar_start, total_length)
        weight = None  # of the targets
        if self.weight is not None:
            weight = slice_windows(self.weight.unsqueeze(1), start + length, self.horizon).squeeze(2)
        past = numeric[:, :length]
        if self.calendar.shape[1]:
            past = torch.cat([past, calendar[:, :length]], dim=2)
        return Batch(
            y=y[:, :length],
            past=past,
            future=torch.cat([numeric[:, length:, : self.n_future], calendar[:, length:]], dim=2),
            static=self.static.index_select(0, series),
            past_codes=category_codes[:, :length],
            future_codes=category_codes[:, length:, : self.n_future_codes],
            static_codes=self.static_codes.index_select(0, series),
            loc=self.loc.index_select(0, series),
            scale=self.scale.index_select(0, series),
            target=y[:, length:],
            weight=weight,
        )


def slice_windows(rows: Tensor, start: Tensor, length: int) -> Tensor:
    """Slice windows of (N, columns) to (batch, length, columns), each copied as one contiguous
    block.
    """
    n_rows, width = rows.shape
    if not width:
        return rows.new_empty((len(start), length, 0))
    # Entry i of the overlapping view is the window that starts at row i.
    views = rows.as_strided((n_rows - length + 1, length, width), (width, width, 1))
    return views.index_select(0, start)
