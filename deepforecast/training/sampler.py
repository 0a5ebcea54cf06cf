"""The batches of a training run: windows drawn by seed and step, so that a run cut short goes on as if it had not been."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch

from deepforecast.data.frames import Ints
from deepforecast.data.windows import Places, Rows
from deepforecast.nn.batch import Batch
from deepforecast.nn.windows import Windows

MOST = 16_384
"""Windows of a look at validation: of 10,000 series it would else cost more than the training."""


@dataclass
class Steps:
    """The batches of steps `begin` to `end`, gathered where the windows live.

    `parts`: batches whose gradients make one step. What they hold together is what one batch as large as all would.
    """

    windows: Windows
    rows: Rows
    places: Places
    size: int
    seed: int
    evenly: bool
    end: int
    begin: int = 0
    parts: int = 1
    epoch: int = 0  # of a Trainer of the user's: passes before

    @property
    def sampler(self) -> Steps:
        """Itself: Lightning tells the sampler of its batches which epoch begins."""
        return self

    def set_epoch(self, epoch: int) -> None:
        """Another pass has other windows."""
        self.epoch = epoch

    def __len__(self) -> int:
        return (self.end - self.begin) * self.parts

    def __iter__(self) -> Iterator[Batch]:
        for step in range(self.begin, self.end):
            yield from self.of(step + self.epoch * (self.end - self.begin))

    def of(self, step: int) -> Iterator[Batch]:
        """The batches of one step."""
        series, cutoff = self.places.draw(self.seed, step, self.size * self.parts, self.evenly)
        for begin in range(0, self.size * self.parts, self.size):
            part = slice(begin, begin + self.size)
            yield gathered(self.windows, self.rows, series[part], cutoff[part], self.places.until)


class Several:
    """Some steps in a row, with the number of each batch in its step."""

    def __init__(self, steps: Steps, begin: int, end: int) -> None:
        self.steps, self.begin, self.end = steps, begin, end

    def __iter__(self) -> Iterator[tuple[int, Batch]]:
        for step in range(self.begin, self.end):
            yield from enumerate(self.steps.of(step))


class Grouped:
    """All steps, `count` at a time."""

    def __init__(self, steps: Steps, count: int) -> None:
        self.steps, self.count = steps, count

    def __len__(self) -> int:
        return -(-(self.steps.end - self.steps.begin) // self.count)

    def __iter__(self) -> Iterator[Several]:
        for begin in range(self.steps.begin, self.steps.end, self.count):
            yield Several(self.steps, begin, min(begin + self.count, self.steps.end))


@dataclass
class Every:
    """All windows of some places, in batches, or `MOST` of them drawn once: what validation looks at, the same each time."""

    windows: Windows
    rows: Rows
    places: Places
    size: int

    def __len__(self) -> int:
        return -(-len(self.numbers) // self.size)

    def __iter__(self) -> Iterator[Batch]:
        for begin in range(0, len(self.numbers), self.size):
            yield gathered(self.windows, self.rows, *self.places.at(self.numbers[begin : begin + self.size]))

    @cached_property
    def numbers(self) -> Ints:
        """Which of the windows."""
        count = len(self.places)
        if count <= MOST:
            return np.arange(count)
        return np.sort(np.random.default_rng(0).choice(count, MOST, replace=False, shuffle=False))


def gathered(windows: Windows, rows: Rows, series: Ints, cutoff: Ints, until: Ints | None = None) -> Batch:
    """The windows of these series and cutoffs. `until`: of each series so many rows are targets, and none after them."""
    device = windows.y.device
    begin, time = rows.begin(series, cutoff)
    batch = windows.gather(*(torch.from_numpy(one).to(device) for one in (begin, time, series)))
    if until is None or batch.target is None:
        return batch
    left = torch.from_numpy(until[series] - cutoff).to(device)
    beyond = torch.arange(windows.horizon, device=device) >= left.unsqueeze(1)
    return replace(batch, target=batch.target.masked_fill(beyond, torch.nan))
