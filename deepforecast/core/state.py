"""The state of a fitted model: arrays by series, shared values and the series they belong to; bounds of its integers."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.core.conformal import Calibration
from deepforecast.core.encoding import InvalidManifest
from deepforecast.data.calendar import PER_DAY
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.frequency import GRIDS
from deepforecast.data.panel import Panel, Series
from deepforecast.errors import CapabilityError, format_value

if TYPE_CHECKING:
    from deepforecast.core.fallback import Fallback


@dataclass(frozen=True)
class LearnedState:
    """What a model learned: the return value of `_fit`.

    by_series: arrays whose first axis is the series.
    shared: arrays, numbers, strings, and lists and dicts (with string keys) of these.
    history: the rows it was fitted on, if the model needs them later; not saved.
    series: ids and last timestamps of the series, set when the state is passed to hooks; stored in `State`.
    """

    by_series: Mapping[str, Any] = field(default_factory=dict)
    shared: Mapping[str, Any] = field(default_factory=dict)
    history: Panel | None = field(default=None, compare=False, repr=False)
    series: Series | None = field(default=None, compare=False, repr=False)

    def __getitem__(self, name: str) -> Any:
        if not (self.by_series or self.shared):
            raise CapabilityError(
                "The model has no parameters, as it could be fitted to none of the series, which naive methods forecast.",
                hint="Use failures_ to see the reasons, and pass longer series.",
            )
        return self.by_series[name] if name in self.by_series else self.shared[name]

    def take(self, numbers: Ints) -> LearnedState:
        """The state of the series with these numbers, in this order."""
        history = None if self.history is None else self.history.take(numbers)
        series = None if self.series is None else self.series.take(numbers)
        arrays = {name: values[numbers] for name, values in self.by_series.items()}
        return replace(self, by_series=arrays, history=history, series=series)

    def put(self, numbers: Ints, source: LearnedState) -> LearnedState:
        """A copy with the arrays of these series replaced by those of `source`."""
        arrays = {name: values.copy() for name, values in self.by_series.items()}
        for name, values in arrays.items():
            values[numbers] = source.by_series[name]
        return replace(self, by_series=arrays)

    def join(self, added: LearnedState) -> LearnedState:
        """Append the series of another state; the shared values do not change."""
        arrays = {name: np.concatenate([values, added.by_series[name]]) for name, values in self.by_series.items()}
        return replace(self, by_series=arrays, history=None, series=None)


@dataclass(frozen=True)
class State:
    """The state of a fitted model.

    series: ids, columns, calendar and last timestamps.
    learned: what the model learned from them.
    categories: categories by covariate, None for a numeric one.
    static: static covariates.
    calibration: errors for conformal intervals.
    fingerprint: number of rows of the training panel and a checksum of values and timestamps (not cryptographic).
    undeclared: columns without a role, which were ignored with a warning.
    value_range: minimum and maximum of each series, shape (series, 2); None in files of version 0.1.0.
    fallback: what became of series that the model could not fit; they are in none of the other fields. None: all were fitted.
    """

    series: Series
    learned: LearnedState
    categories: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    static: Mapping[str, Any] = field(default_factory=dict)
    calibration: Calibration | None = None
    fingerprint: str = ""
    undeclared: tuple[str, ...] = ()
    value_range: Floats | None = None
    fallback: Fallback | None = None

    @property
    def all_series(self) -> Series:
        """The series, and those that the model could not fit."""
        return self.series if self.fallback is None else self.fallback.series

    @property
    def all_ranges(self) -> Floats | None:
        """`value_range` of all series, NaN for those that the model could not fit."""
        if self.fallback is None or self.value_range is None:
            return self.value_range
        ranges = np.full((len(self.all_series), 2), np.nan)
        ranges[self.fallback.fitted] = self.value_range
        return ranges

    @property
    def n_rows(self) -> int:
        """Number of rows of the training panel, from `fingerprint`; 0 if unknown."""
        digits = self.fingerprint.partition("-")[0]
        return int(digits) if digits.isdecimal() and len(digits) < 19 else 0  # 19 digits may exceed int64

    @property
    def has_histories(self) -> bool:
        """Whether the state has the ends of series to forecast from; False for a model saved with `histories=False`."""
        return self.fallback is not None or len(self.series) > 0

    @property
    def learned_with_series(self) -> LearnedState:
        """`learned` with `series` set, as hooks receive it."""
        return replace(self.learned, series=self.series)

    def take(self, numbers: Ints) -> State:
        """The state of some of `all_series`, in this order."""
        fallback = None
        if self.fallback is not None:
            numbers, fallback = self.fallback.take(numbers)
        return replace(
            self,
            series=self.series.take(numbers),
            learned=self.learned.take(numbers),
            static={name: covariate.take(numbers) for name, covariate in self.static.items()},
            calibration=None if self.calibration is None else self.calibration.take(numbers),
            value_range=None if self.value_range is None else self.value_range[numbers],
            fallback=fallback,
        )


def require_histories(state: State, name: str, hint: str = "Pass frame=, the histories to forecast from.") -> State:
    """Return the state; raise if it was saved without the series seen in fit. `name` is that of the model."""
    if state.has_histories:
        return state
    raise CapabilityError(
        f"{name} was saved without histories, so it cannot continue the series seen in fit.", hint=hint, parameter="frame"
    )


def fingerprint(panel: Panel) -> str:
    """Number of rows of a panel and a CRC-32 of ids, timestamps and values, as "rows-checksum".

    Independent of the unit of time and the library of the frame.
    """
    series, calendar, last = panel.series, panel.series.calendar, panel.series.last
    day = 1 if calendar.frequency.base in GRIDS else PER_DAY.get(calendar.time.unit, 1)
    time_fields = (*calendar.frequency, calendar.step / day, int(last[0]) // day, int(last[0]) % day / day)
    ids = () if series.native_ids is None else series.native_ids
    categories = {name: covariate.categories for name, covariate in {**panel.covariates, **panel.static}.items()}
    text_fields = (*ids, *time_fields, series.columns.future, series.columns.past, categories)
    weights = () if panel.weight is None else (panel.weight,)
    checksum = zlib.crc32("\0".join(map(str, text_fields)).encode("utf-8", "surrogatepass"))
    steps, remainder = np.divmod(last - last[0], calendar.step)
    covariates = map(attrgetter("values"), (*panel.covariates.values(), *panel.static.values()))
    for array in (panel.y, panel.indptr, steps, remainder / calendar.step, *covariates, *weights):
        checksum = zlib.crc32(np.ascontiguousarray(array).data, checksum)
    return f"{len(panel.y)}-{checksum:08x}"


MAX_GAP = 1_000_000  # missing values at the end of a series; as large as the maximum horizon
MAX_SIMULATED_GAP = 100_000  # the same for models that simulate them
MAX_TOTAL_GAPS, MAX_MEAN_GAP = 10_000_000, 1_000  # total over all series: a constant plus an average per series


def check_integers(learned: LearnedState, name: str, minimum: Any, maximum: Any) -> Ints:
    """A learned array of integers, shape (series,) or (series, columns); raises `InvalidManifest` if one is out of range.

    `minimum` and `maximum` are scalars or have one element per column.
    """
    values = learned.by_series.get(name)
    column_shape = np.broadcast(minimum, maximum).shape
    if values is None or values.dtype != np.int64 or values.shape[1:] != column_shape:
        n_columns = column_shape[0] if column_shape else "one"
        raise InvalidManifest(f"the learned {name!r} must be {n_columns} int64 for each series")
    outside = (values < minimum) | (values > maximum)
    if outside.any():
        raise InvalidManifest(f"the learned {name!r} must be between {minimum} and {maximum}, got {values[outside][0]:,}")
    return np.asarray(values)


def check_floats(learned: LearnedState, names: Sequence[str], shape: tuple[int, ...], finite: bool = False) -> None:
    """Raise `InvalidManifest` unless these arrays are float64 of shape (series, *shape)."""
    for name in names:
        values = learned.by_series.get(name)
        if values is None or values.dtype != np.float64 or values.shape[1:] != shape:
            raise InvalidManifest(f"the learned {name!r} must be float64 of shape {shape} for each series")
        if finite and not np.isfinite(values).all():
            raise InvalidManifest(f"the learned {name!r} must be finite")


def check_vectors(learned: LearnedState, names: Sequence[str]) -> None:
    """Raise `InvalidManifest` unless those of these arrays that the model has are one number for each series."""
    for name in names:
        values = learned.by_series.get(name)
        if values is not None and (values.ndim != 1 or values.dtype not in (np.float64, np.int64, np.bool_)):
            raise InvalidManifest(f"the learned {name!r} must be one number for each series")


def check_gaps(learned: LearnedState, max_gap: int = MAX_GAP) -> None:
    """Raise `InvalidManifest` if "age", the number of missing values at the end of each series, is too large."""
    gaps = check_integers(learned, "age", 0, max_gap)
    maximum = MAX_TOTAL_GAPS + MAX_MEAN_GAP * len(gaps)
    if gaps.sum() > maximum:
        raise InvalidManifest(f"the series must end with at most {maximum:,} missing values together, got {gaps.sum():,}")


def check_integer(value: Any, name: str, minimum: int, maximum: int) -> int:
    """Return an integer; raise `InvalidManifest` if it is not an integer or out of range."""
    if not isinstance(value, int) or isinstance(value, bool) or not minimum <= value <= maximum:
        raise InvalidManifest(f"{name} must be an integer between {minimum:,} and {maximum:,}, got {format_value(value)}")
    return value


def value_range(panel: Panel, known_range: Floats | None = None, numbers: Ints | None = None) -> Floats:
    """The smallest and the largest value of each series, shape (series, 2).

    `known_range` is the range of earlier observations, which is included; `numbers` is the row of
    each series in it, -1 for a new one.
    """
    first_rows = panel.indptr[:-1]
    extremes = np.empty((len(first_rows), 2))
    np.fmin.reduceat(panel.y, first_rows, out=extremes[:, 0])
    np.fmax.reduceat(panel.y, first_rows, out=extremes[:, 1])
    if known_range is not None and numbers is not None and len(known_range):
        known_rows = np.where(numbers[:, None] >= 0, known_range[numbers], np.nan)
        extremes[:, 0] = np.fmin(extremes[:, 0], known_rows[:, 0])
        extremes[:, 1] = np.fmax(extremes[:, 1], known_rows[:, 1])
    return extremes
