"""Inputs of networks: gathered windows (`Batch`), and scaled inputs of a body (`Inputs`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from deepforecast.data.windows import WindowColumns
from deepforecast.nn.devices import place


@dataclass(frozen=True)
class Batch:
    """A batch of windows: `input_size` time steps up to the cutoff and `horizon` steps after it.

    The target is in float64 and its own units, with NaN for missing values; covariates are
    standardised. `past` has all numeric covariates up to the cutoff, the future covariates first;
    `future` has the future covariates over the horizon. Categories are codes from 1; 0 is a
    category not seen in fit. `loc` and `scale` are those of the whole series, read by scalers of
    scope "series". `weight` is the observation weight of each target, from 0 to 1; None: all are 1.
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
    weight: Tensor | None = None  # (B, H) float32

    def __len__(self) -> int:
        return self.y.shape[0]

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Batch:
        """Return the batch on another device; without float64 there, `y`, `loc`, `scale` and `target`
        stay on the CPU.
        """
        device = torch.device(device)
        return self._map(lambda tensor: place(tensor, device, non_blocking))

    def pin_memory(self) -> Batch:
        """Return the batch with the tensors on the CPU in pinned (page-locked) memory."""
        return self._map(lambda tensor: tensor.pin_memory() if tensor.device.type == "cpu" else tensor)

    def select_windows(self, begin: int, end: int) -> Batch:
        """Return the windows `begin` to `end`."""
        return self._map(lambda tensor: tensor[begin:end])

    def _map(self, function: Callable[[Tensor], Tensor]) -> Batch:
        """Return the batch with the function applied to every tensor."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(
            self, **{name: function(value) for name, value in values.items() if value is not None}
        )


@dataclass(frozen=True)
class Inputs:
    """Inputs of the body of a network: scaled, float32, categories as embedding vectors.

    `y` is 0 where the value is missing; `observed` is 0 there, else 1. Only bodies with
    `uses_series_id` get `static_codes`, the codes of the static categories, and `level`, which is
    loc / scale of the window: y = 0 corresponds to z = -level.
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
        """Values, mask, past and static features concatenated: (batch, input_size, 2 + past + static)."""
        length = self.y.shape[1]
        features = [self.y.unsqueeze(-1), self.observed.unsqueeze(-1), self.past]
        if self.static.shape[1]:
            features.append(self.static.unsqueeze(1).expand(-1, length, -1))
        return torch.cat(features, dim=-1)

    @property
    def future_features(self) -> Tensor:
        """Future and static features concatenated: (batch, horizon, future + static)."""
        if not self.static.shape[1]:
            return self.future
        return torch.cat(
            [self.future, self.static.unsqueeze(1).expand(-1, self.future.shape[1], -1)], dim=-1
        )


@dataclass(frozen=True)
class InputSizes:
    """Widths of the fields of `Inputs` and of the output of the body, and what the columns are.

    Parameters
    ----------
    input_size : int
        Time steps up to the cutoff.
    horizon : int
        Time steps after the cutoff.
    out_features : int
        Width of the output of the body per step, which the head takes.
    past, future, static : int, default 0
        Widths of the past, future and static covariates, embeddings included.
    season : int, default 1
        Season length in time steps, 1: none.
    location_slice : slice, optional
        Output features that are locations in units of z, see `Head.location_slice`.
    cyclic_columns : tuple of (int, int)
        Per cyclic calendar feature the column of its sine in `past` and in `future`; its cosine is
        the next column.
    window_columns : WindowColumns, optional
        Names of the columns.
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
