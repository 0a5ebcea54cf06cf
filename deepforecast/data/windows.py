"""Windows of a panel, rows before and after a cutoff: of backtests, and of neural models.

A window of a backtest has all rows before the cutoff, or `train_size` of them. A window of a neural
model has `input_size` rows before it, and is cut from padded and standardized arrays. Only this
module separates past and future.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepforecast.data.calendar import Calendar
from deepforecast.data.components import TimeFeatures, with_lists
from deepforecast.data.covariates import Covariate
from deepforecast.data.features import PERIODS, cyclic_features
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError, pluralize


@dataclass(frozen=True)
class BacktestPlan:
    """A backtest of `n_windows` cutoffs, `step` rows apart.

    Each is followed by `gap` skipped rows and `horizon` test rows. `train_size` is the number of
    training rows (None: all before the cutoff). `align="series"` counts cutoffs back from the end
    of each series, so that every series is in every window. If series end at different times, the
    training rows of one series may be later than the cutoff of another. `align="calendar"` counts
    from the latest end of all series, so that no training row is after the cutoff of any series. A
    series is then in the windows in which it has `min_observations` values before the cutoff and
    test rows after it (all of them with `full_windows`). With `align="series"` a series that is too short for a
    window is an error, or not in it if `skips_short`.
    """

    horizon: int
    n_windows: int
    step: int
    gap: int = 0
    train_size: int | None = None
    align: str = "series"
    min_observations: int = 1
    full_windows: bool = False
    skips_short: bool = False

    @property
    def n_test_rows(self) -> int:
        """Number of rows from the first cutoff to the end of the last window."""
        return self.horizon + self.gap + (self.n_windows - 1) * self.step


@dataclass(frozen=True)
class BacktestWindow:
    """A cutoff with training rows `train_start[i]:cutoff[i]` of series `series[i]`, counted within the series."""

    number: int
    series: Ints
    train_start: Ints
    cutoff: Ints

    def history(self, panel: Panel) -> Panel:
        """A panel with a copy of the training rows."""
        selected = panel if len(self.series) == len(panel) else panel.take(self.series)
        return selected.between(self.train_start, self.cutoff)

    def test_rows(self, panel: Panel, gap: int, horizon: int) -> tuple[Ints, NDArray[np.bool_]]:
        """The test rows as indices of `panel.y`, shape (series, horizon), and a mask of those that exist."""
        rows = self.cutoff[:, None] + gap + np.arange(horizon)
        exists = rows < panel.lengths[self.series][:, None]
        return panel.indptr[:-1][self.series][:, None] + np.where(exists, rows, 0), exists


def backtest_windows(panel: Panel, plan: BacktestPlan) -> list[BacktestWindow]:
    """The windows of a plan, the oldest first; raises `ParameterError` if the series are too short for them."""
    if plan.train_size is not None and plan.train_size < plan.min_observations:
        raise ParameterError(
            f"`train_size` must be at least {plan.min_observations}, the number of observations that training "
            f"requires, got {plan.train_size}.",
            parameter="train_size",
            value=plan.train_size,
        )
    by_series = plan.align == "series"
    # number of rows from the start of each series to the end of the last window
    end = panel.lengths if by_series else (int(panel.series.last.max()) - panel.start) // panel.calendar.step + 1
    short = np.flatnonzero(panel.lengths < plan.n_test_rows + plan.min_observations)
    if by_series and len(short) and not plan.skips_short:
        raise _too_many_windows_error(panel, plan, short, pluralize(int(panel.lengths[short[0]]), "row"))
    # future covariates are known only for existing rows
    requires_all_rows = plan.full_windows or bool(panel.series.columns.future)
    n_required_rows = plan.gap + (plan.horizon if requires_all_rows else 1)
    observed_before, first_rows = _cumulative_observed(panel), panel.indptr[:-1]
    windows = []
    for window_number in range(plan.n_windows):
        cutoff = np.clip(end - plan.n_test_rows + window_number * plan.step, 0, panel.lengths)
        train_start = np.zeros_like(cutoff) if plan.train_size is None else np.maximum(cutoff - plan.train_size, 0)
        n_observed = observed_before[first_rows + cutoff] - observed_before[first_rows + train_start]
        is_usable = (n_observed >= plan.min_observations) & (cutoff + n_required_rows <= panel.lengths)
        series = np.flatnonzero(is_usable)
        if by_series and len(series) < len(panel) and not plan.skips_short:
            too_short = np.flatnonzero(~is_usable)
            length_text = f"{n_observed[too_short[0]]} non-missing values before cutoff {window_number + 1}"
            raise _too_many_windows_error(panel, plan, too_short, length_text)
        if not len(series):
            raise ParameterError(
                f"`n_windows` must leave at least one series with {pluralize(plan.min_observations, 'value')} "
                f"before each cutoff and rows after it; with n_windows={plan.n_windows} cutoff "
                f"{window_number + 1} (counted from the earliest) has none.",
                hint="Use fewer windows.",
                parameter="n_windows",
            )
        windows.append(BacktestWindow(window_number, series, train_start[series], cutoff[series]))
    return windows


def rows_until_observed(panel: Panel, min_observations: int) -> Ints:
    """For each series, the smallest number of rows from its start that contain `min_observations` non-missing values.

    If a series has fewer values, the result is larger than its number of rows.
    """
    observed_before = _cumulative_observed(panel)
    rows = np.searchsorted(observed_before, observed_before[panel.indptr[:-1]] + min_observations)
    return np.asarray(rows - panel.indptr[:-1], dtype=np.int64)


def _cumulative_observed(panel: Panel) -> Ints:
    """The number of non-missing targets before each flat row."""
    return np.concatenate([[0], np.cumsum(~panel.missing(), dtype=np.int64)])


def _too_many_windows_error(panel: Panel, plan: BacktestPlan, short: Ints, length_text: str) -> ParameterError:
    """The error for the series `short`; `length_text` is what the first of them has."""
    labels = panel.series.labels(short)
    description = f"{labels} has"
    if len(short) > 1:
        description = f"{labels} have fewer: the first, {panel.series.label(int(short[0]))}, has"
    return ParameterError(
        f"n_windows={plan.n_windows} with horizon={plan.horizon} (step {plan.step}, gap "
        f"{plan.gap}) requires {pluralize(plan.min_observations, 'value')} for training and "
        f"{pluralize(plan.n_test_rows, 'row')} after them; series {description} {length_text}.",
        hint="Use fewer windows or a shorter horizon, or leave these series out.",
    )


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
        width = len(self.calendar) + len(self.cyclic_columns)
        return width if self.time_features is None else width + self.time_features.width

    @property
    def cyclic_columns(self) -> tuple[tuple[int, int], ...]:
        """For each cyclic feature, the column of its sine before and after the cutoff."""
        pairs, offset = [], 0
        for name in self.calendar:
            if name in PERIODS:
                pairs.append((len(self.numeric) + offset, self.n_future + offset))
            offset += 2 if name in PERIODS else 1
        return tuple(pairs)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for model files."""
        return asdict(self, dict_factory=with_lists)

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
        features = cyclic_features(calendar, positions, self.calendar)
        if self.time_features is None:
            return features
        return np.concatenate([features, self.time_features.evaluate(calendar, positions)], axis=1)


def fit_window_columns(panel: Panel, input_size: int, horizon: int, calendar: tuple[str, ...]) -> WindowColumns:
    """The input columns of a panel, with the mean and standard deviation over all its rows (0 for constant columns)."""
    covariates = {**panel.covariates, **panel.static}
    roles = (panel.series.columns.future, panel.series.columns.past, panel.static)
    # The numeric and the categorical ones of the columns that the panel has.
    future, past, static = (
        tuple(name for name in names if name in covariates and covariates[name].categories is None) for names in roles
    )
    future_codes, past_codes, static_codes = (
        tuple(name for name in names if name in covariates and covariates[name].categories is not None) for names in roles
    )
    loc_scale = {name: _loc_and_scale(covariates[name].values) for name in (*future, *past, *static)}
    return WindowColumns(
        input_size=input_size,
        horizon=horizon,
        numeric=(*future, *past),
        n_future=len(future),
        categorical=(*future_codes, *past_codes),
        n_future_codes=len(future_codes),
        static=static,
        static_codes=static_codes,
        counts={name: len(covariates[name].categories or ()) for name in (*future_codes, *past_codes, *static_codes)},
        loc={name: loc for name, (loc, _) in loc_scale.items()},
        scale={name: scale for name, (_, scale) in loc_scale.items()},
        calendar=calendar,
    )


def _loc_and_scale(values: Floats) -> tuple[float, float]:
    """Mean and standard deviation of the values that are not missing; 0 for both if there are none."""
    observed = values[~np.isnan(values)]
    if not len(observed):
        return 0.0, 0.0
    # the mean of equal values may differ from them by rounding, and the residual would be scaled to 1
    loc = float(observed[0] if observed.min() == observed.max() else observed.mean())
    max_deviation = float(np.abs(observed - loc).max())
    if not max_deviation > 0:
        return loc, 0.0
    # relative to the largest deviation, so that no square overflows
    return loc, float(np.sqrt(np.mean(((observed - loc) / max_deviation) ** 2)) * max_deviation)


@dataclass(frozen=True)
class WindowArrays:
    """The rows of all series, each preceded by padding so that no window spans two series.

    `first` is the first row of each series, `first_time` the row of `calendar` at that time. The
    target `y` is NaN and the covariates are 0 in the padding. Category codes are counted from 1; 0
    is unknown. `loc` and `scale` (series, 1) standardize `y`; here they are 0 and 1. `weight` are the
    observation weights as float32, divided by the largest one; None: all are equal.
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
    weight: Any = None

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
    weight = None
    if panel.weight is not None:
        weight = np.zeros(n_rows, dtype=np.float32)
        weight[in_series] = panel.weight / (panel.weight.max() or 1.0)  # float32 holds weights in any unit
    numeric, category_codes = _input_arrays(columns, columns.numeric, columns.categorical, panel.covariates, n_rows, in_series)
    first_position = int(panel.start.min())
    steps = np.arange(-input_size, (int(panel.series.last.max()) - first_position) // calendar.step + 1 + horizon)
    static, static_codes = _input_arrays(columns, columns.static, columns.static_codes, panel.static, n_series)
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
        weight=weight,
    )


def static_arrays(columns: WindowColumns, static: Mapping[str, Covariate], n_series: int) -> tuple[Any, Ints]:
    """The numeric and the categorical static columns of `n_series` series; codes are counted from 1, 0 is unknown."""
    return _input_arrays(columns, columns.static, columns.static_codes, static, n_series)


def _input_arrays(
    columns: WindowColumns,
    numeric_names: tuple[str, ...],
    categorical_names: tuple[str, ...],
    covariates: Mapping[str, Covariate],
    n_rows: int,
    rows: Any = slice(None),
) -> tuple[Any, Ints]:
    """Standardized numbers and category codes, with the values of the covariates in `rows` and 0 in the others."""
    numeric = np.zeros((n_rows, len(numeric_names)), dtype=np.float32)
    for column, name in enumerate(numeric_names):
        numeric[rows, column] = columns.standardize(name, covariates[name].values)
    category_codes = np.zeros((n_rows, len(categorical_names)), dtype=np.int64)
    for column, name in enumerate(categorical_names):
        category_codes[rows, column] = covariates[name].values.astype(np.int64) + 1
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
    panel: Panel, input_size: int, horizon: int, n_validation: int | Ints = 0, max_recent: int | None = None
) -> WindowIndex:
    """The training windows of a panel without the last `n_validation` rows (an integer, or one per series) of each series.

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
    keys = [  # lexsort sorts by the last key first
        panel.start,
        *(() if panel.weight is None else (_sums(panel.weight, panel),)),
        *(values if len(values) == len(panel) else _sums(values, panel) for values in covariate_values),
        _sums(panel.y, panel),
        np.nan_to_num(panel.y[panel.indptr[1:] - 1]),  # last value
        np.nan_to_num(panel.y[panel.indptr[:-1]]),  # first value
        panel.lengths,
    ]
    order = usable[np.lexsort([key[usable] for key in keys])]
    return WindowIndex(order, first_cutoff, last_cutoff, lengths if np.any(n_validation) else None)


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
