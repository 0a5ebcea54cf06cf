"""The rows of a frame of forecasts, sorted by series, cutoff and time.

A *forecast* is what one series gets from one cutoff; once sorted its points are neighbours. A frame that comes sorted, as
`predict` and `cross_validate` give it, is not sorted again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from deepforecast.data import frames
from deepforecast.data.calendar import format_timestamp
from deepforecast.data.columns import Columns
from deepforecast.data.forecast_names import CUTOFF, SAMPLE
from deepforecast.data.frames import Ints, TimeType
from deepforecast.data.id_runs import Runs, find_runs
from deepforecast.errors import DataError, format_value
from deepforecast.evaluation.clock import finer_unit, in_unit, read_stamps


@dataclass(frozen=True, eq=False)
class Cutoffs:
    """Which cutoff each forecast has: its number in `column`, a column of the caller's, and its stamp on the rows' clock."""

    number: Ints
    column: Any
    raw: Ints


@dataclass(frozen=True, eq=False)
class ForecastRows:
    """The points of all forecasts: those of forecast i are `indptr[i]:indptr[i + 1]`, of series number `series[i]`.

    `ids` are the ids of the series in the caller's library (None without an id column), `order` the permutation of the caller's
    rows (None: they came sorted), `samples` the rows a point has in a frame of sample paths, 0 in others.
    """

    names: Columns
    library: str
    ids: Any
    order: Ints | None
    indptr: Ints
    series: Ints
    raw: Ints
    time: TimeType
    samples: int
    cutoffs: Cutoffs | None

    def __len__(self) -> int:
        """The number of forecasts."""
        return len(self.series)

    @property
    def forecast_of_point(self) -> Ints:
        """The number of the forecast each point belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.indptr))

    @property
    def first_stamps(self) -> Ints:
        """The first stamp of each forecast."""
        return self.raw[self.indptr[:-1]]

    def sorted(self, values: Any) -> Any:
        """A column in the order of the points: one value a point, or in a frame of sample paths (samples, points)."""
        values = values if self.order is None else values[self.order]
        return values if not self.samples else values.reshape(-1, self.samples).T

    def label(self, series: int) -> str:
        """The id of a series as it is written in messages."""
        return "the series" if self.ids is None else f"series {format_value(self.ids[int(series)])}"

    def where(self, point: int) -> str:
        """`series A at 2024-01-31, cutoff 2024-01-24` for messages."""
        one = int(np.searchsorted(self.indptr, point, side="right")) - 1
        text = f"{self.label(int(self.series[one]))} at {format_timestamp(int(self.raw[point]), self.time)}"
        return text if self.cutoffs is None else f"{text}, cutoff {format_timestamp(int(self.cutoffs.raw[one]), self.time)}"

    def where_forecast(self, forecast: int) -> str:
        """The same of a forecast: its first point."""
        return self.where(int(self.indptr[forecast]))


def read_rows(table: nw.DataFrame[Any], names: Columns) -> ForecastRows:
    """Read, check and sort the id, time, cutoff and sample columns."""
    raw, time = read_stamps(table, names.time, "forecasts")
    runs = find_runs(table[names.id], names.id) if names.id is not None else Runs(np.zeros(1, np.int64), np.zeros(1, np.int64), 1)
    series, cut = np.arange(runs.count), None
    if CUTOFF in table.columns:
        raw, time, cut = _one_clock(table, raw, time, names)
        runs, series = _by_cutoff(runs, cut)
    order, indptr, samples = _layout(table, runs, raw)
    firsts = indptr[:-1] if order is None else order[indptr[:-1]]
    raw = raw if order is None else raw[order]
    one = samples or 1
    first_of_series = firsts[np.searchsorted(series, np.arange(series[-1] + 1))]
    ids = None if names.id is None else frames.take_rows(table[names.id], first_of_series)
    cutoffs = None if cut is None else _cutoffs(table, cut[firsts], firsts)
    rows = ForecastRows(names, frames.library_name(table), ids, order, indptr // one, series, raw[::one], time, samples, cutoffs)
    _check(rows)
    return rows


def _one_clock(table: nw.DataFrame[Any], raw: Ints, time: TimeType, names: Columns) -> tuple[Ints, TimeType, Ints]:
    cut, cut_time = read_stamps(table, CUTOFF, "forecasts")
    unit = finer_unit(time, cut_time, f"{names.time} and {CUTOFF}")
    return in_unit(raw, time, unit), TimeType(unit, time.tz, time.dtype), in_unit(cut, cut_time, unit)


def _by_cutoff(runs: Runs, cut: Ints) -> tuple[Runs, Ints]:
    """Runs of equal (id, cutoff) instead of equal ids, and the series of each such pair in sorted order."""
    import pandas as pd

    begins = np.concatenate([[True], cut[1:] != cut[:-1]])
    begins[runs.starts] = True
    starts = np.flatnonzero(begins)
    rank = runs.rank[np.searchsorted(runs.starts, starts, side="right") - 1]
    number, stamps = pd.factorize(cut[starts], sort=True)
    pair, pairs = pd.factorize(rank * len(stamps) + number, sort=True)
    return Runs(starts, pair.astype(np.int64), len(pairs)), np.asarray(pairs // len(stamps))


def _layout(table: nw.DataFrame[Any], runs: Runs, raw: Ints) -> tuple[Ints | None, Ints, int]:
    """Order and bounds of the forecasts, and the number of samples of each point."""
    if SAMPLE not in table.columns:
        return *runs.layout(raw), 0
    import pandas as pd

    if not table[SAMPLE].dtype.is_integer() or table[SAMPLE].null_count():
        raise DataError(f"Column {SAMPLE} numbers the sample paths: integers, none missing; it holds {table[SAMPLE].dtype}.")
    sample, numbers = pd.factorize(np.asarray(table[SAMPLE].to_numpy()), sort=True)
    count = len(numbers)
    step = pd.factorize(raw, sort=True)[0]
    key = step.astype(np.int64) * count + sample
    order, indptr = runs.layout(key)
    key = key if order is None else key[order]
    whole = len(key) % count == 0 and bool((key.reshape(-1, count) == key[::count, None] + np.arange(count)).all())
    if not whole or (key[::count] % count).any() or (indptr % count).any():
        raise DataError(
            f"Every series and step has each of the {count} sample paths once; some has not. Drop doubled rows, or score each "
            "set of paths apart."
        )
    return order, indptr, count


def _cutoffs(table: nw.DataFrame[Any], cut: Ints, rows: Ints) -> Cutoffs:
    _, first, number = np.unique(cut, return_index=True, return_inverse=True)
    return Cutoffs(number.astype(np.int64), frames.take_rows(table[CUTOFF], rows[first]), cut)


def _check(rows: ForecastRows) -> None:
    """No key twice, and every stamp after its cutoff."""
    same = rows.raw[1:] == rows.raw[:-1]
    same[rows.indptr[1:-1] - 1] = False
    if same.any():
        key = [name for name in (rows.names.id, rows.names.time, None if rows.cutoffs is None else CUTOFF) if name]
        hint = f" Forecasts from several cutoffs need the column {CUTOFF}." if rows.cutoffs is None else ""
        raise DataError(
            f"({', '.join(key)}) is unique in forecasts; it is doubled for {rows.where(int(np.argmax(same)))} "
            f"({np.count_nonzero(same)} such rows in all). Drop the duplicates.{hint}"
        )
    if rows.cutoffs is not None:
        early = np.flatnonzero(rows.first_stamps <= rows.cutoffs.raw)
        if len(early):
            raise DataError(
                f"A forecast lies after its cutoff; {rows.where_forecast(int(early[0]))} does not ({len(early)} forecasts in "
                f"all). Column {CUTOFF} holds the last stamp learned from."
            )
