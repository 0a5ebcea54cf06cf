"""Checksums of the training data, to recognize histories that begin with the training data."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from deepforecast.core.state import LearnedState
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel

RANGES = (-(2**63), 0, 0, 0), (2**63 - 1, 2**62, 2**32 - 1, 2**32 - 1)
"""Smallest and largest values of the columns of `arrays`: time of the first row, number of rows, both checksums."""


@dataclass(frozen=True)
class HistoryChecksum:
    """Time index of the first row, number of rows, and CRC-32 and Adler-32 of the values, of each series."""

    first_time: Ints
    n_rows: Ints
    checksums: Ints  # (series, 2)

    @classmethod
    def from_panel(cls, panel: Panel) -> HistoryChecksum:
        """The checksums of all rows of a panel."""
        initial = np.tile(np.array([0, 1], np.int64), (len(panel), 1))  # of no bytes
        return cls(panel.start // panel.calendar.step, np.zeros(len(panel), np.int64), initial).extend(panel)

    @classmethod
    def from_learned(cls, learned: LearnedState) -> HistoryChecksum:
        """Read the checksums from the array that `arrays` returns."""
        first_time, n_rows, *_ = learned["history_checksum"].T
        return cls(first_time, n_rows, learned["history_checksum"][:, 2:])

    def arrays(self) -> dict[str, Ints]:
        """The entry of `LearnedState.by_series`: first time, number of rows, both checksums, (series, 4)."""
        return {"history_checksum": np.column_stack([self.first_time, self.n_rows, self.checksums])}

    def take(self, series: Ints) -> HistoryChecksum:
        """Select series."""
        return HistoryChecksum(self.first_time[series], self.n_rows[series], self.checksums[series])

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
        return HistoryChecksum(self.first_time, self.n_rows + panel.lengths, checksums.reshape(-1, 2))

    def matching_rows(self, panel: Panel) -> Ints:
        """Number of rows that were summed up of each series; -1 if its history in the panel does not begin with them."""
        is_same = (panel.lengths >= self.n_rows) & (panel.start // panel.calendar.step == self.first_time)
        leading_rows = panel.between(np.zeros(len(panel), np.int64), np.minimum(self.n_rows, panel.lengths))
        checksum = HistoryChecksum.from_panel(leading_rows)
        is_same &= (checksum.checksums == self.checksums).all(axis=1)
        return np.where(is_same, self.n_rows, -1)


def _bytes(y: Floats) -> memoryview:
    """The bytes of the values, with the same bytes for all NaN and for both zeros."""
    return memoryview(np.where(np.isnan(y), np.nan, y + 0.0).tobytes())
