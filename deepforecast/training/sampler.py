"""Batches of a training run, and their device.

The windows of a step depend on seed and step only, so that an interrupted run can be resumed exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch

from deepforecast.data.frames import Ints
from deepforecast.data.windows import WindowArrays, WindowIndex
from deepforecast.nn.batch import Batch, WindowStore, has_float64

MAX_VALIDATION_WINDOWS = 16_384
"""Largest number of windows per validation, which could otherwise take more time than training."""

MEMORY_FRACTION = 0.5
"""Largest share of a device's free memory for the windows."""


@dataclass
class WindowSampler:
    """The batches of steps `first_step` to `stop_step - 1`, gathered on the device of the windows.

    Parameters
    ----------
    windows : WindowStore
    rows : WindowArrays
    window_index : WindowIndex
        Index of the training windows, from which they are drawn.
    batch_size : int
    seed : int
    by_series : bool
        Whether series are drawn with equal probability, instead of windows.
    stop_step : int
    first_step : int, default 0
    accumulate_grad_batches : int, default 1
        Batches per step; together they have the windows of a single batch of their total size.
    epoch : int, default 0
        Epoch of a user's own Trainer.
    """

    windows: WindowStore
    rows: WindowArrays
    window_index: WindowIndex
    batch_size: int
    seed: int
    by_series: bool
    stop_step: int
    first_step: int = 0
    accumulate_grad_batches: int = 1
    epoch: int = 0

    @property
    def sampler(self) -> WindowSampler:
        """The sampler itself: Lightning calls `set_epoch` of a loader's sampler."""
        return self

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch; each has other windows."""
        self.epoch = epoch

    def __len__(self) -> int:
        return (self.stop_step - self.first_step) * self.accumulate_grad_batches

    def __iter__(self) -> Iterator[Batch]:
        for step in range(self.first_step, self.stop_step):
            yield from self.step_batches(step + self.epoch * (self.stop_step - self.first_step))

    def step_batches(self, step: int) -> Iterator[Batch]:
        """Yield the batches of one step."""
        series, cutoff = self.window_index.draw(
            self.seed, step, self.batch_size * self.accumulate_grad_batches, self.by_series
        )
        for first in range(0, self.batch_size * self.accumulate_grad_batches, self.batch_size):
            batch_slice = slice(first, first + self.batch_size)
            yield gather_batch(
                self.windows, self.rows, series[batch_slice],
                cutoff[batch_slice], self.window_index.n_training_rows,
            )  # fmt: skip


@dataclass
class EvaluationWindows:
    """Windows for validation or prediction, in batches: all, or a fixed sample of `max_windows`."""

    windows: WindowStore
    rows: WindowArrays
    window_index: WindowIndex
    batch_size: int
    max_windows: int = MAX_VALIDATION_WINDOWS

    def __len__(self) -> int:
        return -(-len(self.window_numbers) // self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        for first in range(0, len(self.window_numbers), self.batch_size):
            yield gather_batch(
                self.windows,
                self.rows,
                *self.window_index.locate(self.window_numbers[first : first + self.batch_size]),
            )

    @cached_property
    def window_numbers(self) -> Ints:
        """Sorted numbers of the windows in `window_index`."""
        n_windows = len(self.window_index)
        if n_windows <= self.max_windows:
            return np.arange(n_windows)
        return np.sort(
            np.random.default_rng(0).choice(
                n_windows, self.max_windows, replace=False, shuffle=False
            )
        )


def gather_batch(
    windows: WindowStore,
    rows: WindowArrays,
    series: Ints,
    cutoff: Ints,
    n_usable: Ints | None = None,
) -> Batch:
    """Gather the windows of these series and cutoffs, each (batch,).

    A cutoff is the number of time steps of the series before it. `n_usable` (series,) is the number
    of leading time steps of each series that may be targets; later targets become NaN. None: all.
    """
    device = windows.y.device
    start, time = rows.window_start(series, cutoff)
    batch = windows.gather(*(torch.from_numpy(index).to(device) for index in (start, time, series)))
    if n_usable is None or batch.target is None:
        return batch
    n_targets = torch.from_numpy(n_usable[series] - cutoff).to(device)
    is_held_out = torch.arange(windows.horizon, device=device) >= n_targets.unsqueeze(1)
    return replace(batch, target=batch.target.masked_fill(is_held_out, torch.nan))


def place_on_device(windows: WindowStore, device: torch.device) -> WindowStore:
    """Return the windows on the device if they fit into its memory, else unchanged.

    Batches of windows that are not on the device are moved one by one, also on a device without
    float64, for which the CPU scales them.
    """
    if windows.y.device == device or not has_float64(device) or windows.nbytes > MEMORY_FRACTION * free_memory(device):
        return windows
    return windows.to(device)


def free_memory(device: torch.device) -> float:
    """Return the free memory of a device in bytes; 0 if unknown, infinite for the CPU."""
    if device.type == "cuda":
        return float(torch.cuda.mem_get_info(device)[0])
    if device.type == "mps":
        return float(torch.mps.recommended_max_memory() - torch.mps.current_allocated_memory())
    return math.inf if device.type == "cpu" else 0.0


def to_device(batch: Batch, device: torch.device) -> Batch:
    """Return the batch on the device; for CUDA it is copied from pinned memory, asynchronously."""
    if batch.past.device == device:
        return batch
    if device.type == "cuda":
        return batch.pin_memory().to(device, non_blocking=True)
    return batch.to(device)
