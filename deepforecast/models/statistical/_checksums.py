"""Checksums of the training data, to recognize histories that begin with it."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from deepforecast.core.state import LearnedState
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel

RANGES = (-(2**63), 0, 0, 0), (2**63 - 1, 2**62, 2**32 - 1, 2**32 - 1)  # of first row, number of rows and the two checksums


@dataclass(frozen=True)
class HistoryChecksum:
    """Time index of the first row, number of rows, and CRC-32 and Adler-32 of each series."""

    begin: Ints
    count: Ints
    checksums: Ints

    @classmethod
    def from_panel(cls, panel: Panel) -> HistoryChecksum:
        """The checksums of all rows of a panel."""
        initial = np.tile(np.array([0, 1], np.int64), (len(panel), 1))
        return cls(panel.start // panel.calendar.step, np.zeros(len(panel), np.int64), initial).extend(panel)

    @classmethod
    def from_learned(cls, learned: LearnedState) -> HistoryChecksum:
        """The inverse of `arrays`."""
        begin, count, *_ = learned["known"].T
        return cls(begin, count, learned["known"][:, 2:])

    def arrays(self) -> dict[str, Ints]:
        """The entry of `LearnedState.by_series`."""
        return {"known": np.column_stack([self.begin, self.count, self.checksums])}

    def take(self, numbers: Ints) -> HistoryChecksum:
        """Select series."""
        return HistoryChecksum(self.begin[numbers], self.count[numbers], self.checksums[numbers])

    def extend(self, panel: Panel) -> HistoryChecksum:
        """The checksums after appending the rows of a panel."""
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
        """Number of rows of each series, or -1 if the panel does not begin with them."""
        is_same = (panel.lengths >= self.count) & (panel.start // panel.calendar.step == self.begin)
        leading_rows = panel.between(np.zeros(len(panel), np.int64), np.minimum(self.count, panel.lengths))
        checksum = HistoryChecksum.from_panel(leading_rows)
        is_same &= (checksum.checksums == self.checksums).all(axis=1)
        return np.where(is_same, self.count, -1)


def _bytes(y: Floats) -> memoryview:
    """The bytes of the values, with one NaN and one zero."""
    return memoryview(np.where(np.isnan(y), np.nan, y + 0.0).tobytes())
