"""Windows of a panel on a device (`WindowStore`), batches of them (`Batch`), and the inputs of a body (`Inputs`).

Windows are scaled and quantiles computed in float64. On a device without float64 (MPS), these tensors
stay on the CPU, see `place`; the network itself is in float32 and runs on the device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deepforecast.core.forecast import unused_name
from deepforecast.data.features import PERIODS
from deepforecast.data.windows import WindowArrays, WindowColumns
from deepforecast.nn.layers import embedding_width

if TYPE_CHECKING:
    from jaxtyping import Float, Float64, Int, Shaped


@dataclass(frozen=True)
class Batch:
    """A batch of windows: `input_size` time steps up to the cutoff and `horizon` steps after it.

    The target is in float64 and its own units, with NaN for missing values; covariates are
    standardised. `past` has all numeric covariates up to the cutoff, the future covariates first;
    `future` has the future covariates over the horizon. Categories are codes from 1; 0 is a
    category not seen in fit. `loc` and `scale` are those of the whole series, read by scalers of
    scope "series". `weight` is the observation weight of each target, from 0 to 1, `past_weight` that
    of each time step up to the cutoff; None: all are 1.
    """

    y: Float64[Tensor, "batch time"]
    past: Float[Tensor, "batch time past"]
    future: Float[Tensor, "batch horizon future"]
    static: Float[Tensor, "batch static"]
    past_codes: Int[Tensor, "batch time past_codes"]
    future_codes: Int[Tensor, "batch horizon future_codes"]
    static_codes: Int[Tensor, "batch static_codes"]
    loc: Float64[Tensor, "batch 1"]
    scale: Float64[Tensor, "batch 1"]
    target: Float64[Tensor, "batch horizon"] | None = None
    weight: Float[Tensor, "batch horizon"] | None = None
    past_weight: Float[Tensor, "batch time"] | None = None

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

    y: Float[Tensor, "batch time"]
    observed: Float[Tensor, "batch time"]
    past: Float[Tensor, "batch time past"]
    future: Float[Tensor, "batch horizon future"]
    static: Float[Tensor, "batch static"]
    static_codes: Int[Tensor, "batch static_codes"] | None = None
    level: Float[Tensor, "batch 1"] | None = None

    @property
    def past_features(self) -> Float[Tensor, "batch time past_features"]:
        """Values, mask, past and static features concatenated."""
        length = self.y.shape[1]
        features = [self.y.unsqueeze(-1), self.observed.unsqueeze(-1), self.past]
        if self.static.shape[1]:
            features.append(self.static.unsqueeze(1).expand(-1, length, -1))
        return torch.cat(features, dim=-1)

    @property
    def future_features(self) -> Float[Tensor, "batch horizon future_features"]:
        """Future and static features concatenated."""
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
    def known_columns(self) -> tuple[int, ...]:
        """Columns of `past` that are also in `future`, in the order of `future`.

        Numeric future covariates are the first of the numeric ones, those of the calendar and the
        embeddings of future categorical covariates follow the numeric ones.

        Examples
        --------
        >>> InputSizes(input_size=8, horizon=4, out_features=1, past=3, future=2).known_columns
        (0, 1)
        """
        columns = self.window_columns
        if columns is None:
            return tuple(range(self.future))
        n_numeric, n_future = len(columns.numeric), columns.n_future
        return (*range(n_future), *range(n_numeric, n_numeric + self.future - n_future))

    @property
    def past_features(self) -> int:
        """Width of `Inputs.past_features`."""
        return 2 + self.past + self.static

    @property
    def future_features(self) -> int:
        """Width of `Inputs.future_features`."""
        return self.future + self.static

    @property
    def future_positions(self) -> tuple[int, ...]:
        """Columns of `past` that hold the future covariates, in the order of `future`.

        Without `window_columns`, `past` begins with them.

        Examples
        --------
        >>> InputSizes(input_size=4, horizon=2, out_features=1, past=3, future=2).future_positions
        (0, 1)
        """
        columns = self.window_columns
        if columns is None:
            return tuple(range(self.future))
        # Calendar features and embeddings follow all numeric columns; those known in the future come first.
        begin = len(columns.numeric)
        return (*range(columns.n_future), *range(begin, begin + self.future - columns.n_future))


def input_variables(
    sizes: InputSizes,
) -> tuple[list[tuple[str, int]], list[tuple[str, int]], list[tuple[str, int]]]:
    """Return the name and number of columns of each variable in `past`, in `future` and in `static`, in order.

    A cyclic calendar feature has two columns, a categorical covariate those of its embedding. Without
    `window_columns` every column is a variable, and `past` begins with those of `future`.

    Examples
    --------
    >>> input_variables(InputSizes(input_size=4, horizon=2, out_features=1, past=2, future=1, static=1))
    ([('x0', 1), ('x1', 1)], [('x0', 1)], [('s0', 1)])
    """
    columns = sizes.window_columns
    if columns is None:
        past = [(f"x{index}", 1) for index in range(sizes.past)]
        return past, past[: sizes.future], [(f"s{index}", 1) for index in range(sizes.static)]
    numeric = [(name, 1) for name in columns.numeric]
    covariates = {*columns.numeric, *columns.categorical}
    calendar = [(unused_name(name, covariates), 2 if name in PERIODS else 1) for name in columns.calendar]
    codes = [(name, embedding_width(columns.counts[name])) for name in columns.categorical]
    static = [(name, 1) for name in columns.static]
    static_codes = [(name, embedding_width(columns.counts[name])) for name in columns.static_codes]
    return (
        [*numeric, *calendar, *codes],
        [*numeric[: columns.n_future], *calendar, *codes[: columns.n_future_codes]],
        [*static, *static_codes],
    )


@dataclass(frozen=True)
class WindowStore:
    """Time steps of all series on a device, concatenated with NaN padding in between so that no window
    contains values of two series.

    A window consists of the rows `start` to `start + input_size + horizon - 1`. Missing values are
    NaN.
    """

    y: Float64[Tensor, "rows"]
    numeric: Float[Tensor, "rows numeric"]
    category_codes: Int[Tensor, "rows codes"]
    calendar: Float[Tensor, "times calendar"]  # one row per timestamp
    static: Float[Tensor, "series static"]
    static_codes: Int[Tensor, "series static_codes"]
    loc: Float64[Tensor, "series 1"]
    scale: Float64[Tensor, "series 1"]
    input_size: int
    horizon: int
    n_future: int  # numeric future covariates come first
    n_future_codes: int
    weight: Float[Tensor, "rows"] | None = None  # observation weights

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

    def gather(
        self,
        start: Int[Tensor, "batch"],
        calendar_start: Int[Tensor, "batch"],
        series: Int[Tensor, "batch"],
    ) -> Batch:
        """Gather a batch of windows.

        Parameters
        ----------
        start, calendar_start : Tensor
            First row of each window in `y` and in `calendar`.
        series : Tensor
            Index of the series of each window.
        """
        length = self.input_size
        total_length = length + self.horizon
        y = slice_windows(self.y.unsqueeze(1), start, total_length).squeeze(2)
        numeric = slice_windows(self.numeric, start, total_length)
        category_codes = slice_windows(self.category_codes, start, total_length)
        calendar = slice_windows(self.calendar, calendar_start, total_length)
        weight = past_weight = None
        if self.weight is not None:
            weights = slice_windows(self.weight.unsqueeze(1), start, total_length).squeeze(2)
            past_weight, weight = weights[:, :length], weights[:, length:]
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
            past_weight=past_weight,
        )


def slice_windows(
    rows: Shaped[Tensor, "rows columns"], start: Int[Tensor, "batch"], length: int
) -> Shaped[Tensor, "batch time columns"]:
    """Slice windows of `length` rows, each copied as one contiguous block."""
    n_rows, width = rows.shape
    if not width:
        return rows.new_empty((len(start), length, 0))
    # Entry i of the overlapping view is the window that starts at row i.
    views = rows.as_strided((n_rows - length + 1, length, width), (width, width, 1))
    return views.index_select(0, start)


_without_float64: ContextVar[frozenset[str]] = ContextVar("without_float64", default=frozenset({"mps"}))


def has_float64(device: torch.device) -> bool:
    """Return whether the device can hold float64 tensors."""
    return device.type not in _without_float64.get()


def place(
    values: Shaped[Tensor, "*shape"] | NDArray[Any],
    device: torch.device,
    non_blocking: bool = False,
) -> Shaped[Tensor, "*shape"]:
    """Move a tensor or array to the device, or to the CPU if it is float64 and the device has none.

    Examples
    --------
    >>> with without_float64("meta"):
    ...     [place(torch.ones(1, dtype=dtype), torch.device("meta")).device.type for dtype in (torch.float32, torch.float64)]
    ['meta', 'cpu']
    """
    if not isinstance(values, Tensor):
        values = torch.from_numpy(np.require(values, requirements=["C", "W"]))
    if values.device == device:
        return values
    if values.dtype is torch.float64 and not has_float64(device):
        return values.cpu()
    return values.to(device, non_blocking=non_blocking)


def as_float64(values: Shaped[Tensor, "*shape"]) -> Float64[Tensor, "*shape"]:
    """Convert to float64, on the CPU if the device has no float64."""
    return values.double() if has_float64(values.device) else values.cpu().double()


@contextmanager
def without_float64(*device_types: str) -> Iterator[None]:
    """Treat devices of these types as devices without float64 inside the block, for checks."""
    token = _without_float64.set(_without_float64.get() | set(device_types))
    try:
        yield
    finally:
        _without_float64.reset(token)
