"""Windows of neural models: padded and standardized arrays of a panel, and their index.

A window consists of `input_size` rows before a cutoff and `horizon` rows after it. Only this module
separates past and future.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from deepforecast.data import features as featuress
from deepforecast.data.calendar import Calendar
from deepforecast.data.components import TimeFeatures
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel


@dataclass(frozen=True)
class WindowColumns:
    """The input columns of a network and their standardization, learned in `fit`.

    Numeric and categorical columns each list the future covariates (`n_future`, `n_future_codes`)
    before the past ones. `counts` is the number of categories of each categorical column, `loc` and
    `scale` the mean and standard deviation of each numeric one, `calendar` the calendar features.
    """

    input_size: int
    horizon: int
    numeric: tuple[str, ...]
    n_future: int
    categorical: tuple[str, ...]
    n_future_codes: int
    static: tuple[str, ...]
    static_codes: tuple[str, ...]
    counts: Mapping[str, int]
    loc: Mapping[str, float]
    scale: Mapping[str, float]
    calendar: tuple[str, ...]
    time_features: TimeFeatures | None = None

    @property
    def uses_time(self) -> bool:
        """Whether the network has calendar or time features."""
        return bool(self.calendar) or self.time_features is not None

    @property
    def calendar_width(self) -> int:
        """Number of calendar columns (two per cyclic feature) and time features."""
        width = sum(2 if name in featuress.PERIODS else 1 for name in self.calendar)
        return width if self.time_features is None else width + self.time_features.width

    @property
    def cyclic_columns(self) -> tuple[tuple[int, int], ...]:
        """For each cyclic feature, the column of its sine before and after the cutoff."""
        pairs, offset = [], 0
        for name in self.calendar:
            if name in featuress.PERIODS:
                pairs.append((len(self.numeric) + offset, self.n_future + offset))
            offset += 2 if name in featuress.PERIODS else 1
        return tuple(pairs)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for model files."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        record = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
        return {**record, "time_features": None if self.time_features is None else self.time_features.to_dict()}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> WindowColumns:
        """Create from plain values, the inverse of `to_dict`."""
        values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in record.items()}
        if values.get("time_features") is not None:
            values["time_features"] = TimeFeatures.from_dict(values["time_features"])
        return cls(**values)

    def standardize(self, name: str, values: Floats) -> Floats:
        """Standardize a numeric column; missing values and constant columns (scale 0) are 0."""
        return np.nan_to_num((values - self.loc[name]) / (self.scale[name] or np.inf), nan=0.0).astype(np.float32)

    def calendar_values(self, calendar: Calendar, positions: Ints) -> Any:
        """The calendar columns at positions, (positions, calendar_width)."""
        features = featuress.cyclic_features(calendar, positions, self.calendar)
        if self.time_features is None:
            return features
        return np.concatenate([features, self.time_features.evaluate(calendar, positions)], axis=1)


def fit_window_columns(panel: Panel, input_size: int, horizon: int, calendar: tuple[str, ...]) -> WindowColumns:
    """The input columns of a panel, with the mean and standard deviation over all its rows (0 for constant columns)."""
    names = panel.series.columns
    covariates = {**panel.covariates, **panel.static}

    def select(candidates: tuple[str, ...], is_categorical: bool) -> tuple[str, ...]:
        available = [name for name in candidates if name in covariates]
        return tuple(name for name in available if (covariates[name].categories is not None) == is_categorical)

    future_names = select(names.future, is_categorical=False)
    future_code_names = select(names.future, is_categorical=True)
    static_names = select(tuple(panel.static), is_categorical=False)
    static_code_names = select(tuple(panel.static), is_categorical=True)
    numeric = (*future_names, *select(names.past, is_categorical=False))
    categorical = (*future_code_names, *select(names.past, is_categorical=True))
    loc, scale = {}, {}
    for name in (*numeric, *static_names):
        values = covariates[name].values
        observed = values[~np.isnan(values)]
        # the mean of equal values may differ from them by rounding, and the residual would be
        # scaled to 1
        is_constant = bool(len(observed)) and observed.min() == observed.max()
        loc[name] = float(observed[0] if is_constant else observed.mean()) if len(observed) else 0.0
        max_deviation = float(np.abs(observed - loc[name]).max()) if len(observed) else 0.0
        scale[name] = 0.0
        if max_deviation > 0:  # relative to the largest deviation, so that no square overflows
            scale[name] = float(np.sqrt(np.mean(((observed - loc[name]) / max_deviation) ** 2)) * max_deviation)
    return WindowColumns(
        input_size=input_size,
        horizon=horizon,
        numeric=numeric,
        n_future=len(future_names),
        categorical=categorical,
        n_future_codes=len(future_code_names),
        static=static_names,
        static_codes=static_code_names,
        counts={name: len(covariates[name].categories or ()) for name in (*categorical, *static_code_names)},
        loc=loc,
        scale=scale,
        calendar=calendar,
    )


@dataclass(frozen=True)
class WindowArrays:
    """The rows of all series, each preceded by padding so that no window spans two series.

    `first` is the first row of each series, `first_time` the row of `calendar` at that time. The
    target `y` is NaN and the covariates are 0 in the padding. Category codes are counted from 1; 0
    is unknown. `loc` and `scale` (series, 1) standardize `y`; here they are 0 and 1.
    """

    y: Floats
    numeric: Any
    category_codes: Ints
    calendar: Any
    static: Any
    static_codes: Ints
    loc: Floats
    scale: Floats
    input_size: int
    horizon: int
    n_future: int
    n_future_codes: int
    first: Ints
    first_time: Ints
    lengths: Ints

    def window_start(self, series: Ints, cutoff: Ints) -> tuple[Ints, Ints]:
        """The first row and the first calendar row of windows.

        `cutoff` is the number of rows of the series before it. If it is less than `input_size`, a
        window begins in the padding.
        """
        start = cutoff - self.input_size
        return self.first[series] + start, self.first_time[series] + start


def window_arrays(panel: Panel, columns: WindowColumns) -> WindowArrays:
    """The arrays of a panel for the windows of these columns; `loc` and `scale` are 0 and 1."""
    input_size, horizon, calendar = columns.input_size, columns.horizon, panel.calendar
    n_series = len(panel)
    padding = max(input_size, horizon)  # before each series; the last one is followed by `horizon` rows
    first_rows = panel.indptr[:-1] + padding * np.arange(1, n_series + 1)
    n_rows = len(panel.y) + padding * n_series + horizon
    in_series = np.ones(n_rows, dtype=bool)  # a mask takes less memory than row indices
    in_series[first_rows[:, None] - padding + np.arange(padding)] = False
    in_series[n_rows - horizon :] = False
    y = np.full(n_rows, np.nan)
    y[in_series] = panel.y
    numeric = np.zeros((n_rows, len(columns.numeric)), dtype=np.float32)
    for column, name in enumerate(columns.numeric):
        numeric[in_series, column] = columns.standardize(name, panel.covariates[name].values)
    category_codes = np.zeros((n_rows, len(columns.categorical)), dtype=np.int64)
    for column, name in enumerate(columns.categorical):
        category_codes[in_series, column] = panel.covariates[name].values.astype(np.int64) + 1
    first_position = int(panel.start.min())
    steps = np.arange(-input_size, (int(panel.series.last.max()) - first_position) // calendar.step + 1 + horizon)
    static, static_codes = static_arrays(columns, panel.static, n_series)
    return WindowArrays(
        y=y,
        numeric=numeric,
        category_codes=category_codes,
        calendar=columns.calendar_values(calendar, first_position + calendar.step * steps),
        static=static,
        static_codes=static_codes,
        loc=np.zeros((n_series, 1)),
        scale=np.ones((n_series, 1)),
        input_size=input_size,
        horizon=horizon,
        n_future=columns.n_future,
        n_future_codes=columns.n_future_codes,
        first=first_rows,
        first_time=(panel.start - first_position) // calendar.step + input_size,
        lengths=panel.lengths,
    )


def static_arrays(columns: WindowColumns, static: Mapping[str, Covariate], n_series: int) -> tuple[Any, Ints]:
    """The numeric and the categorical static columns of `n_series` series; codes are counted from 1, 0 is unknown."""
    numeric = np.zeros((n_series, len(columns.static)), dtype=np.float32)
    for column, name in enumerate(columns.static):
        numeric[:, column] = columns.standardize(name, static[name].values)
    category_codes = np.zeros((n_series, len(columns.static_codes)), dtype=np.int64)
    for column, name in enumerate(columns.static_codes):
        category_codes[:, column] = static[name].values.astype(np.int64) + 1
    return numeric, category_codes


@dataclass(frozen=True)
class WindowIndex:
    """The windows of a panel: series i has the cutoffs `first_cutoff[i]` to `last_cutoff[i]`.

    Windows are counted and located, not listed.

    `order` sorts series by their values rather than their ids, so that draws do not depend on the
    ids.
    """

    order: Ints
    first_cutoff: Ints
    last_cutoff: Ints
    n_training_rows: Ints | None = None  # number of training rows of each series; None: all

    @cached_property
    def cumulative_counts(self) -> Ints:
        """Number of windows up to and including each series, in the order of `order`."""
        return np.cumsum((self.last_cutoff - self.first_cutoff + 1)[self.order])

    def __len__(self) -> int:
        return int(self.cumulative_counts[-1])

    def locate(self, numbers: Ints) -> tuple[Ints, Ints]:
        """Series and cutoff of windows by number (from 0); the last window of a series has its last cutoff."""
        rank = np.searchsorted(self.cumulative_counts, numbers, side="right")
        series = self.order[rank]
        return series, self.last_cutoff[series] - (self.cumulative_counts[rank] - 1 - numbers)

    def draw(self, seed: int, step: int, n_windows: int, by_series: bool) -> tuple[Ints, Ints]:
        """Draw series and cutoff of the windows of a training step, with replacement, determined by seed and step.

        With `by_series` all series have equal weight, otherwise all windows.
        """
        random = np.random.default_rng([seed, step])
        if not by_series:
            return self.locate(random.integers(len(self), size=n_windows))
        series = self.order[random.integers(len(self.order), size=n_windows)]
        return series, random.integers(self.first_cutoff[series], self.last_cutoff[series] + 1)


def training_windows(
    panel: Panel, input_size: int, horizon: int, n_validation: int = 0, max_recent: int | None = None
) -> WindowIndex:
    """The training windows of a panel without the last `n_validation` rows of each series.

    Windows of series shorter than a window extend into the padding; series with fewer than two rows
    have none. `max_recent` limits the number of windows of each series to the most recent ones.
    """
    lengths = panel.lengths - n_validation
    last_cutoff = np.maximum(np.where(lengths > horizon, lengths - horizon, lengths - 1), 0)
    first_cutoff = np.minimum(np.where(lengths >= input_size + horizon, input_size, 1), last_cutoff)
    if max_recent is not None:
        first_cutoff = np.maximum(first_cutoff, last_cutoff - max_recent + 1)
    usable = np.flatnonzero(lengths >= 2)
    covariates = [*sorted(panel.static.items()), *sorted(panel.covariates.items())]
    covariate_values = [covariate.values for _, covariate in covariates]
    covariate_keys = [values if len(values) == len(panel) else _sums(values, panel) for values in covariate_values]
    target_keys = (
        _sums(panel.y, panel),
        np.nan_to_num(panel.y[panel.indptr[1:] - 1]),  # last value
        np.nan_to_num(panel.y[panel.indptr[:-1]]),  # first value
        panel.lengths,
    )
    keys = [panel.start, *covariate_keys, *target_keys]  # lexsort sorts by the last key first
    return WindowIndex(
        usable[np.lexsort([key[usable] for key in keys])], first_cutoff, last_cutoff, lengths if n_validation else None
    )


def _sums(values: Any, panel: Panel) -> Any:
    """The sum of the rows of each series; NaN counts as 0."""
    return np.add.reduceat(np.nan_to_num(values) if np.isnan(values).any() else values, panel.indptr[:-1])


def validation_windows(panel: Panel, horizon: int, n_rows: int) -> WindowIndex:
    """The windows whose forecast steps are within the last `n_rows` rows of a series longer than that.

    If `n_rows` is less than the horizon, a series has one window, with the cutoff `n_rows` before its end.
    """
    first_cutoff = np.maximum(panel.lengths - n_rows, 1)
    last_cutoff = np.maximum(panel.lengths - min(horizon, n_rows), first_cutoff)
    return WindowIndex(np.flatnonzero(panel.lengths > n_rows), first_cutoff, last_cutoff)
