"""Residuals as arrays: standardized, numbered by horizon step, and their autocorrelation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepforecast.data.columns import CUTOFF, ModelColumns
from deepforecast.errors import DataError, format_value
from deepforecast.plotting.chart import Array
from deepforecast.plotting.frames import TidyFrame


@dataclass(frozen=True, eq=False)
class Residuals:
    """Residuals sorted by series, time and descending cutoff.

    `codes` number the series; `steps` are horizon steps, if there are cutoffs. Residuals of several
    series are divided by the standard deviation of their series.
    """

    values: Array
    stamps: Array
    codes: Array
    steps: Array | None
    n_series: int

    @property
    def finite(self) -> Array:
        """The residuals that are not missing."""
        return self.values[np.isfinite(self.values)]

    def latest(self) -> tuple[Array, Array]:
        """Residuals of the latest cutoff for each series and timestamp, and their series."""
        is_latest = np.ones(len(self.stamps), dtype=bool)
        is_latest[1:] = (self.stamps[1:] != self.stamps[:-1]) | (self.codes[1:] != self.codes[:-1])
        return self.values[is_latest], self.codes[is_latest]


def compute_residuals(table: TidyFrame, model: ModelColumns) -> Residuals:
    """Compute observed minus forecast for each row of `table`."""
    values = table.values(table.target) - table.values(model.name)
    if not np.isfinite(values).any():
        raise DataError(
            f"Residuals require rows with both an observed value and a forecast; there are none for model "
            f"{format_value(model.name)}.",
            hint="Pass for example the result of `cross_validate`.",
        )
    codes = table.codes()
    stamps = table.timestamps()
    cutoffs = table.timestamps(CUTOFF) if CUTOFF in table.frame.columns else None
    falling = np.zeros(len(stamps), dtype=np.int64) if cutoffs is None else -cutoffs.astype(np.int64)
    order = np.lexsort((falling, stamps, codes))
    steps = None if cutoffs is None else _horizon_steps(codes, cutoffs, stamps)[order]
    n_series = int(codes.max()) + 1
    values = values[order]
    codes = codes[order]
    if n_series > 1:
        values = values / _deviation(values, codes)[codes]
    return Residuals(values, stamps[order], codes, steps, n_series)


def autocorrelation(values: Array, codes: Array, lags: int) -> Array:
    """Autocorrelation at lags 1 to `lags`, pooled over series, without missing pairs.

    >>> autocorrelation(np.array([1.0, -1.0, 1.0, -1.0]), np.zeros(4, dtype=int), 2)
    array([-0.75,  0.5 ])
    """
    is_present = np.isfinite(values)
    mean = np.bincount(codes, np.where(is_present, values, 0.0)) / np.maximum(np.bincount(codes, is_present), 1)
    centred = np.where(is_present, values - mean[codes], 0.0)
    sums = float((centred * centred).sum()) or 1.0  # the last bit of @ depends on the number of threads
    correlations = np.empty(lags)
    for lag in range(1, lags + 1):
        same = codes[:-lag] == codes[lag:]
        correlations[lag - 1] = (centred[:-lag] * centred[lag:])[same].sum() / sums
    return correlations


def _deviation(values: Array, codes: Array) -> Array:
    """Standard deviation of each series; 1 for constant series."""
    is_present = np.isfinite(values)
    count = np.maximum(np.bincount(codes, is_present), 1)
    mean = np.bincount(codes, np.where(is_present, values, 0.0)) / count
    square = np.bincount(codes, np.where(is_present, values - mean[codes], 0.0) ** 2) / count
    return np.where(square > 0, np.sqrt(square), 1.0)


def _horizon_steps(codes: Array, cutoffs: Array, stamps: Array) -> Array:
    """Horizon step of each row: its rank within series and cutoff."""
    order = np.lexsort((stamps, cutoffs, codes))
    is_first = np.ones(len(order), dtype=bool)
    is_first[1:] = (codes[order][1:] != codes[order][:-1]) | (cutoffs[order][1:] != cutoffs[order][:-1])
    positions = np.arange(len(order))
    steps = np.empty(len(order), dtype=np.int64)
    steps[order] = positions - np.maximum.accumulate(np.where(is_first, positions, 0)) + 1
    return steps
