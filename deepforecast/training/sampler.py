"""The batches of a training run: windows drawn by seed and step, so that a run cut short goes on as if it had not been."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from deepforecast.data.frames import Ints
from deepforecast.data.windows import Places, Rows
from deepforecast.nn.batch import Batch
from deepforecast.nn.windows import Windows


@dataclass
class Steps:
    """Batch k of a run, for k from `begin`; gathered where the windows live."""

    windows: Windows
    rows: Rows
    places: Places
    size: int
    seed: int
    evenly: bool
    end: int
    begin: int = 0

    def __len__(self) -> int:
        return self.end - self.begin

    def __iter__(self) -> Iterator[Batch]:
        for step in range(self.begin, self.end):
            yield gathered(self.windows, self.rows, *self.places.draw(self.seed, step, self.size, self.evenly))


@dataclass
class Every:
    """All windows of some places, in batches: what validation looks at, the same each time."""

    windows: Windows
    rows: Rows
    places: Places
    size: int

    def __len__(self) -> int:
        return -(-len(self.places) // self.size)

    def __iter__(self) -> Iterator[Batch]:
        import numpy as np

        for begin in range(0, len(self.places), self.size):
            numbers = np.arange(begin, min(begin + self.size, len(self.places)))
            yield gathered(self.windows, self.rows, *self.places.at(numbers))


def gathered(windows: Windows, rows: Rows, series: Ints, cutoff: Ints) -> Batch:
    """The windows of these series and cutoffs."""
    device = windows.y.device
    begin, time = rows.begin(series, cutoff)
    return windows.gather(*(torch.from_numpy(one).to(device) for one in (begin, time, series)))
