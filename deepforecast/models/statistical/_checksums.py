"""Which rows a model has seen, by number, start and checksum: so that a history can be told to begin with them."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from deepforecast.core.state import LearnedState
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel

RANGES = (-(2**63), 0, 0, 0), (2**63 - 1, 2**62, 2**32 - 1, 2**32 - 1)  # of first row, number of rows and both checksums


@dataclass(frozen=True)
class HistoryChecksum:
    """Of each series: the place of its first row, how many there are, and two checksums (CRC-32, Adler-32) of their values."""

    begin: Ints
    count: Ints
    checksums: Ints

    @classmethod
    def from_panel(cls, panel: Panel) -> HistoryChecksum:
        """All rows of a panel."""
        nothing = np.tile(np.array([0, 1], np.int64), (len(panel), 1))
        return cls(panel.start // panel.calendar.step, np.zeros(len(panel), np.int64), nothing).extend(panel)

    @classmethod
    def from_learned(cls, learned: LearnedState) -> HistoryChecksum:
        """What `arrays` put down."""
        begin, count, *_ = learned["known"].T
        return cls(begin, count, learned["known"][:, 2:])

    def arrays(self) -> dict[str, Ints]:
        """To be kept in `LearnedState.by_series`."""
        return {"known": np.column_stack([self.begin, self.count, self.checksums])}

    def take(self, numbers: Ints) -> HistoryChecksum:
        """Some of the series."""
        return HistoryChecksum(self.begin[numbers], self.count[numbers], self.checksums[numbers])

    def extend(self, panel: Panel) -> HistoryChecksum:
        """With the rows of a panel after them."""
        values, bounds = _bytes(panel.y), 8 * panel.indptr
        checksums = np.array(
            [
                (zlib.crc32(values[begin:end], int(crc)), zlib.adler32(values[begin:end], int(adler)))
                for begin, end, (crc, adler) in zip(bounds[:-1], bounds[1:], self.checksums, strict=True)
            ],
            np.int64,
        )
        return HistoryChecksum(self.begin, self.count + panel.lengths, checksums.reshape(-1, 2))

    def matching_rows(self, panel: Panel) -> Ints:
        """How many rows of each series of a panel are these, where it begins with them; -1 where it does not."""
        is_same = (panel.lengths >= self.count) & (panel.start // panel.calendar.step == self.begin)
        leading_rows = panel.between(np.zeros(len(panel), np.int64), np.minimum(self.count, panel.lengths))
        checksum = HistoryChecksum.from_panel(leading_rows)
        is_same &= (checksum.checksums == self.checksums).all(axis=1)
        return np.where(is_same, self.count, -1)


def _bytes(y: Floats) -> memoryview:
    """The values as they count: one missing value is like another, and -0 is 0."""
    return memoryview(np.where(np.isnan(y), np.nan, y + 0.0).tobytes())
