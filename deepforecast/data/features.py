"""Features of regressors, networks and additive models: lags, the calendar, holidays, and trends with changepoints."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.data.calendar import PER_DAY, Calendar, to_local, unique_times
from deepforecast.data.frequency import TICKS
from deepforecast.errors import DependencyError, ParameterError, format_list, format_value

if TYPE_CHECKING:
    from deepforecast.data.frames import Floats, Ints

PERIODS = {"minute": 60, "hour": 24, "day_of_week": 7, "day_of_month": 31, "day_of_year": 366, "week": 53, "month": 12,
           "quarter": 4}  # fmt: skip
"""Cyclic features and their periods."""

FLAGS = ("month_end", "business_day")
NAMES = (*PERIODS, *FLAGS)
MINUTES = 1440  # minutes per day
FIRST_YEAR, LAST_YEAR = 1995, 2045
"""Names of holidays are collected over these years, independent of the data, so that all series have
the same holiday columns.
"""
DAILY = ("day_of_week", "day_of_month", "month")
DEFAULT_FEATURES = {"D": DAILY, "B": DAILY, "C": DAILY, "W": ("week",)}


def default_features(calendar: Calendar) -> tuple[str, ...]:
    """The default features of a frequency: those that vary between its steps; none for integer time and years."""
    base = calendar.frequency.base
    if not base:
        return ()
    if base in TICKS and base != "D":
        steps_per_day = TICKS["D"] // (calendar.frequency.n * TICKS[base])
        within_day = ("minute", "hour") if steps_per_day > 24 else ("hour",) if steps_per_day > 1 else ()
        return (*within_day, "day_of_week", "month")
    if base in DEFAULT_FEATURES:
        return DEFAULT_FEATURES[base]
    if base[0] in "YA" or base.startswith("BY"):  # years
        return ()
    return ("quarter",) if "Q" in base[:2] else ("month",)


def validate_features(names: Any, calendar: Calendar) -> tuple[str, ...]:
    """The requested features, after validation; "auto": the default ones of the frequency; None: none."""
    if names == "auto":
        return default_features(calendar)
    features: tuple[str, ...] = tuple(names or ())
    unknown = [name for name in features if name not in NAMES]
    duplicates = [name for index, name in enumerate(features) if name in features[:index]]
    if unknown:
        rule, hint = f"must be 'auto', None or a list of {format_list(NAMES, max_shown=20)}, got {format_value(unknown[0])}", ""
    elif features and not calendar.frequency.base:
        rule, hint = f"cannot be used with integer time, got {format_list(features)}", "Set calendar=None."
    elif duplicates:
        rule, hint = f"cannot contain a feature more than once, got duplicates of {format_list(duplicates)}", "Remove them."
    else:
        return features
    raise ParameterError(f"`calendar` {rule}.", hint=hint, parameter="calendar")


def validate_country(country: str | None, calendar: Calendar) -> str | None:
    """The country code, after validation, which requires the package holidays."""
    if country is None:
        return None
    if not calendar.frequency.base:
        raise ParameterError(
            "`holidays` cannot be used with integer time.",
            hint="Set holidays=None, or use dates as time column.",
            parameter="holidays",
        )
    _country_holidays(country, (1970,))
    return country


def compute_features(calendar: Calendar, positions: Ints, names: tuple[str, ...]) -> Floats:
    """Features as an array (positions, names); hours, days, weeks ... are counted from 0."""
    if not names:
        return np.empty((positions.size, 0))
    days, minutes, rows = _unique_local_days(calendar, positions)
    table = np.stack([_compute_feature(days, minutes, name) for name in names], axis=1)
    return np.asarray(table[rows], dtype=np.float64)


def cyclic_features(calendar: Calendar, positions: Ints, names: tuple[str, ...]) -> Any:
    """Features for networks as float32 (n, width), cyclic ones as sine and cosine."""
    if not names:
        return np.empty((positions.size, 0), dtype=np.float32)
    days, minutes, rows = _unique_local_days(calendar, positions)
    return np.concatenate([_cyclic_table(name)[_compute_feature(days, minutes, name)] for name in names], axis=1)[rows]


@cache
def _cyclic_table(name: str) -> Any:
    """The encoding of all values of a feature, float32 (values, width)."""
    return np.stack(encode_cyclic(np.arange(float(PERIODS.get(name, 2))), name), axis=1).astype(np.float32)


def encode_cyclic(values: Floats, name: str) -> tuple[Floats, ...]:
    """Sine and cosine of a cyclic feature; flags are unchanged."""
    if name not in PERIODS:
        return (values,)
    angle = 2 * np.pi * values / PERIODS[name]
    return (np.sin(angle), np.cos(angle))


def holiday_features(calendar: Calendar, positions: Ints, country: str) -> tuple[Floats, Floats]:
    """Whether each local day is a holiday (1 or 0), and the days to the nearest holiday before or after it, at most 7."""
    days, _, rows = _unique_local_days(calendar, positions)
    holidays = _country_holidays(country, _years(days.min() - 7, days.max() + 7))
    distant = 2**40  # more days than any holiday is from 1970
    holiday_days = np.array([-distant, *sorted(map(_day_number, holidays)), distant], dtype=np.int64)
    next_index = np.searchsorted(holiday_days, days)
    distance = np.minimum(holiday_days[next_index] - days, days - holiday_days[next_index - 1])
    return (distance == 0).astype(np.float64)[rows], np.minimum(distance, 7).astype(np.float64)[rows]


def country_holiday_names(country: str) -> tuple[str, ...]:
    """The sorted English names of all holidays of a country ("DE") or subdivision ("DE-BY")."""
    names_by_day = _names_by_day(country, tuple(range(FIRST_YEAR, LAST_YEAR)))
    return tuple(sorted({name for names in names_by_day.values() for name in names}))


def holiday_dates(country: str, first: int, last: int) -> dict[str, list[int]]:
    """The days (since 1970) of each holiday by name, in the years of the days `first` to `last` (since 1970)."""
    dates_by_name: dict[str, list[int]] = {}
    for day, names in _names_by_day(country, _years(first, last + 1)).items():
        for name in names:
            dates_by_name.setdefault(name, []).append(day)
    return dates_by_name


@lru_cache(maxsize=64)
def _names_by_day(country: str, years: tuple[int, ...]) -> dict[int, list[str]]:
    """The names of the holidays of each day (since 1970) that is one."""
    holidays = _country_holidays(country, years)
    return {_day_number(day): holidays.get_list(day) for day in holidays}


def _country_holidays(country: str, years: tuple[int, ...]) -> Any:
    """The holidays (dates as keys) of a country ("DE") or subdivision ("DE-BY"); an unknown one raises `ParameterError`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the holidays package itself
        try:
            import holidays
        except ImportError:
            raise DependencyError(
                "Holiday features require the package holidays, which is not installed.", hint="Run: pip install holidays"
            ) from None
        code, _, subdivision = country.partition("-")
        subdivisions = holidays.list_supported_countries().get(code)
        if subdivisions is None or (subdivision and subdivision not in subdivisions):
            raise ParameterError(
                "`holidays` must be the code of a country known to the package holidays ('DE', 'US') or "
                f"of a subdivision ('DE-BY', 'US-CA'), got {format_value(country) or 'an empty string'}.",
                parameter="holidays",
            )
        return holidays.country_holidays(code, subdiv=subdivision or None, years=years, expand=False, language="en_US")


def _day_number(day: date) -> int:
    """The days since 1970."""
    return int(np.datetime64(day, "D").astype(np.int64))


def _years(first: int, last: int) -> tuple[int, ...]:
    """The years from that of the day `first` to that of the day `last` (days since 1970)."""
    first_year, last_year = np.array([first, last]).astype("M8[D]").astype("M8[Y]").astype(int) + 1970
    return tuple(range(int(first_year), int(last_year) + 1))


def _unique_local_days(calendar: Calendar, positions: Ints) -> tuple[Ints, Ints, Ints]:
    """The local day (since 1970) and the minutes since local midnight of each distinct position, and the row of each position."""
    unique_positions, rows = unique_times(np.ascontiguousarray(positions.reshape(-1)))
    timestamps = calendar.timestamps(unique_positions)
    if calendar.time.tz not in (None, "UTC"):
        timestamps = to_local(timestamps, calendar.time)
    day = PER_DAY[calendar.time.unit]
    days = timestamps // day
    return days, (timestamps - days * day) * MINUTES // day, rows


def _compute_feature(days: Ints, minutes: Ints, name: str) -> Ints:
    """One feature of local days (since 1970) and minutes since midnight, counted from 0."""
    if name in ("minute", "hour"):
        return minutes % 60 if name == "minute" else minutes // 60
    weekday = (days + 3) % 7  # 1970 began on a Thursday
    if name in ("day_of_week", "business_day"):
        return weekday if name == "day_of_week" else np.asarray(weekday < 5, dtype=np.int64)
    if name == "month_end":
        return np.asarray(_days_since_start(days + 1, "M") == 0, dtype=np.int64)
    if name in ("day_of_month", "day_of_year"):
        return _days_since_start(days, "M" if name == "day_of_month" else "Y")
    if name == "week":  # ISO 8601: the week of its Thursday, from 0
        return _days_since_start(days - weekday + 3, "Y") // 7
    month = days.astype("M8[D]").astype("M8[M]").astype(np.int64) % 12
    return month // 3 if name == "quarter" else month


def _days_since_start(days: Ints, unit: str) -> Ints:
    """The days since the start of the month ("M") or year ("Y") of each day (since 1970)."""
    return days - days.astype("M8[D]").astype(f"M8[{unit}]").astype("M8[D]").astype(np.int64)


WINDOWS = ("mean", "std", "min", "max", "quantile")
FEATURE_KINDS = ("lag", "difference", *WINDOWS, "expanding_mean", "expanding_std", "expanding_min", "expanding_max", "ewm")
MAX_LAG = 1_000_000
OTHER_LAG = r"(@(?P<lag>\d+))?"  # of the last value, if it is not the default
WINDOW = r"(?P<size>\d+)(x(?P<stride>\d+))?"
LAG_FEATURE_FORMS = (
    r"(?P<kind>lag)_(?P<lag>\d+)",
    rf"(?P<kind>difference)_(?P<stride>\d+){OTHER_LAG}",
    rf"(?P<kind>mean|std|min|max)_{WINDOW}{OTHER_LAG}",
    rf"(?P<kind>quantile)_{WINDOW}_(?P<level>0?\.\d+){OTHER_LAG}",
    rf"(?P<kind>expanding_(mean|std|min|max)){OTHER_LAG}",
    rf"(?P<kind>ewm)_(?P<level>0?\.\d+|1){OTHER_LAG}",
)
EXAMPLES = "'lag_7', 'mean_28', 'std_28@7', 'quantile_28_0.9', 'mean_4x7', 'expanding_max', 'ewm_0.3', 'difference_7'"


@dataclass(frozen=True)
class LagFeature:
    """A statistic of `size` values, `stride` rows apart, the last one `lag` rows before the row.

    `level` is the probability of a quantile, or the smoothing parameter of an exponentially
    weighted mean.
    """

    kind: str
    lag: int = 1
    size: int = 1
    stride: int = 1
    level: float = 0.0

    @property
    def n_rows_needed(self) -> int:
        """Number of previous rows needed for a complete feature."""
        return self.lag + (self.size - 1) * self.stride

    @property
    def influence(self) -> float:
        """Approximate weight of a single value; 0 for single lags and expanding windows."""
        weight_by_kind = {"std": self.size**-0.5, "ewm": self.level, "difference": 1.0}
        return 1 / self.size if self.kind in ("mean", "min", "max", "quantile") else weight_by_kind.get(self.kind, 0.0)

    def __str__(self) -> str:
        """The name of the feature, the inverse of `parse_lag_feature`."""
        if self.kind == "lag":
            return f"lag_{self.lag}"
        # all significant digits, so that names are unique
        level = f"_{np.format_float_positional(self.level, trim='-')}" if self.kind in ("quantile", "ewm") else ""
        default_lag, body = 1, f"{self.kind}{level}"
        if self.kind == "difference":
            body = f"difference_{self.stride}"
        elif self.kind in WINDOWS:
            default_lag = self.stride
            body = f"{self.kind}_{self.size}{f'x{self.stride}' if self.stride > 1 else ''}{level}"
        return body if self.lag == default_lag else f"{body}@{self.lag}"


def parse_lag_feature(name: str) -> LagFeature:
    """Parse the name of a lag feature.

    Examples
    --------
    >>> parse_lag_feature("mean_4x7"), str(parse_lag_feature("quantile_28_0.9@2"))
    (LagFeature(kind='mean', lag=7, size=4, stride=7, level=0.0), 'quantile_28_0.9@2')
    """
    match = next(filter(None, (re.fullmatch(form, name, re.ASCII) for form in LAG_FEATURE_FORMS)), None)
    fields = {} if match is None else {key: text for key, text in match.groupdict().items() if text is not None}
    kind, level = fields.get("kind"), float(fields.get("level", 0))
    counts = {key: int(fields[key]) for key in ("lag", "size", "stride") if key in fields}
    is_valid = all(1 <= count <= MAX_LAG for count in counts.values()) and (kind != "std" or counts["size"] > 1)
    if kind in ("quantile", "ewm"):
        is_valid = is_valid and level > 0 and (level < 1 or kind == "ewm")
    if kind is None or not is_valid:
        raise ParameterError(f"A lag feature must have a name such as {EXAMPLES}, got '{format_value(name)}'.")
    default_lag = counts.get("stride", 1) if kind in WINDOWS else 1
    default_size = 2 if kind == "difference" else 1
    return LagFeature(kind, **{"lag": default_lag, "size": default_size, **counts}, level=level)


def lag_features(lags: int | Sequence[int]) -> tuple[LagFeature, ...]:
    """The lags 1 to `lags`, or those of a list."""
    numbers = list(range(1, min(lags, MAX_LAG + 1) + 1)) if isinstance(lags, int) else [int(lag) for lag in lags]
    if not numbers or min(numbers) < 1 or max(numbers) > MAX_LAG or len(set(numbers)) < len(numbers):
        raise ParameterError(
            f"`lags` must contain at least one lag, without duplicates and from 1 to {MAX_LAG:,}, got {format_value(lags)}.",
            hint="Pass a list, e.g. [1, 7], or the largest lag, e.g. 7 for the lags 1 to 7.",
            parameter="lags",
            value=lags,
        )
    return tuple(LagFeature("lag", lag) for lag in numbers)


def scale_time(clock: Ints, start: Any, span: Any) -> Floats:
    """Times on a scale from 0 at the first to 1 at the last value of a history, which starts at `start` and lasts `span`."""
    return np.asarray((clock - start) / span)


def place_changepoints(time: Floats, n_changepoints: int, fraction: float) -> Floats:
    """Changepoints at values evenly spaced over the first `fraction` of the values, as in Prophet.

    There are fewer than `n_changepoints` if there are too few values; none is at the first value.
    """
    n_candidates = int(np.floor(len(time) * fraction))
    n_changepoints = min(n_changepoints, n_candidates - 1)
    if n_changepoints < 1:
        return np.empty(0)
    return np.asarray(time[np.linspace(0, n_candidates - 1, n_changepoints + 1).round().astype(int)[1:]])


def hinges(time: Floats, changes: Sequence[float] | Floats) -> Floats:
    """Hinge functions max(t - s_j, 0), (rows, changepoints)."""
    return np.asarray(np.maximum(time[:, None] - np.asarray(changes)[None, :], 0.0))
