"""Features of regressors and networks: lags, the calendar and holidays."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
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
DAILY = ("day_of_week", "day_of_month", "month")
DEFAULT_FEATURES = {"D": DAILY, "B": DAILY, "C": DAILY, "W": ("week",)}


def default_features(calendar: Calendar) -> tuple[str, ...]:
    """The default features of a frequency: those that vary between its steps; none for integer time and years."""
    base = calendar.frequency.base
    if not base:
        return ()
    if base in TICKS and base != "D":
        step = calendar.frequency.n * TICKS[base]
        steps_per_day = TICKS["D"] // step if step < TICKS["D"] else 0
        within_day: tuple[str, ...] = ("minute", "hour") if steps_per_day > 24 else ("hour",)
        return (*(within_day if steps_per_day > 1 else ()), "day_of_week", "month")
    if base in DEFAULT_FEATURES:
        return DEFAULT_FEATURES[base]
    if base[0] in "YA" or base.startswith("BY"):  # years
        return ()
    return ("quarter",) if "Q" in base[:2] else ("month",)


def validate_features(names: Any, calendar: Calendar) -> tuple[str, ...]:
    """The requested features, after validation; "auto": the default ones of the frequency; None: none."""
    if names == "auto":
        return default_features(calendar)
    unknown = [feature for feature in names or () if feature not in NAMES]
    if unknown:
        raise ParameterError(
            f"`calendar` must be 'auto', None or a list of {format_list(list(NAMES), max_shown=20)}, "
            f"got {format_value(unknown[0])}.",
            parameter="calendar",
        )
    if names and not calendar.frequency.base:
        raise ParameterError(
            f"`calendar` cannot be used with integer time, got {format_list(list(names))}.",
            hint="Set calendar=None.",
            parameter="calendar",
        )
    duplicates = [feature for index, feature in enumerate(names or ()) if feature in names[:index]]
    if duplicates:
        raise ParameterError(
            f"`calendar` cannot contain a feature more than once, got duplicates of {format_list(duplicates)}.",
            hint="Remove the duplicates.",
            parameter="calendar",
        )
    return tuple(names or ())


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
    _country_holidays(country, [1970])
    return country


def compute_features(calendar: Calendar, positions: Ints, names: tuple[str, ...]) -> Floats:
    """Features as an array (positions, names); hours, days, weeks ... are counted from 0."""
    if not names:
        return np.empty((positions.size, 0))
    unique_positions, rows = unique_times(np.ascontiguousarray(positions.reshape(-1)))
    days, within = local_days(calendar, unique_positions)
    table = np.stack([_compute_feature(days, within, name) for name in names], axis=1)
    return np.asarray(table[rows], dtype=np.float64)


def cyclic_features(calendar: Calendar, positions: Ints, names: tuple[str, ...]) -> Any:
    """Features for networks as float32 (n, width), cyclic ones as sine and cosine."""
    if not names:
        return np.empty((positions.size, 0), dtype=np.float32)
    unique_positions, rows = unique_times(positions)
    days, minutes = local_days(calendar, unique_positions)
    table = np.concatenate([_cyclic_table(name)[_compute_feature(days, minutes, name)] for name in names], axis=1)
    return table[rows]


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
    unique_positions, rows = unique_times(np.ascontiguousarray(positions.reshape(-1)))
    days, _ = local_days(calendar, unique_positions)
    years = range(*(np.array([days.min() - 7, days.max() + 380]).astype("M8[D]").astype("M8[Y]").astype(int) + 1970))
    holidays = _country_holidays(country, list(years) or [1970])
    holiday_days = np.array(sorted(np.datetime64(day, "D").astype(np.int64) for day in holidays), dtype=np.int64)
    holiday_days = np.concatenate([[-(2**40)], holiday_days, [2**40]])  # sentinels before and after all holidays
    next_index = np.searchsorted(holiday_days, days)
    following = holiday_days[np.minimum(next_index, len(holiday_days) - 1)]
    distance = np.minimum(following - days, days - holiday_days[next_index - 1])
    return (np.isin(days, holiday_days)).astype(np.float64)[rows], np.minimum(distance, 7).astype(np.float64)[rows]


def _country_holidays(country: str, years: list[int]) -> Any:
    """The holidays (dates as keys) of a country ("DE") or subdivision ("DE-BY"); an unknown one raises `ParameterError`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of the holidays package itself
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
    return holidays.country_holidays(code, subdiv=subdivision or None, years=years)


def local_days(calendar: Calendar, positions: Ints) -> tuple[Ints, Ints]:
    """The local day (since 1970) of each position, and the minutes since local midnight."""
    timestamps = calendar.timestamps(positions)
    if calendar.time.tz not in (None, "UTC"):
        timestamps = to_local(timestamps, calendar.time)
    day = PER_DAY[calendar.time.unit]
    days = timestamps // day
    return np.asarray(days), np.asarray((timestamps - days * day) * MINUTES // day)


def _compute_feature(days: Ints, minutes: Ints, name: str) -> Ints:
    """One feature of local days (since 1970) and minutes since midnight, counted from 0."""
    if name in ("minute", "hour"):
        return minutes % 60 if name == "minute" else minutes // 60
    weekday = (days + 3) % 7  # 1970 began on a Thursday
    if name in ("day_of_week", "business_day"):
        return weekday if name == "day_of_week" else np.asarray(weekday < 5, dtype=np.int64)
    dates = days.astype("M8[D]")
    months = dates.astype("M8[M]")
    if name == "month_end":
        return np.asarray((dates + 1).astype("M8[M]") != months, dtype=np.int64)
    if name == "day_of_month":
        return np.asarray(days - months.astype("M8[D]").astype(np.int64))
    if name == "day_of_year":
        return np.asarray(days - dates.astype("M8[Y]").astype("M8[D]").astype(np.int64))
    if name == "week":  # ISO 8601: the week of its Thursday, from 0
        thursday = days - weekday + 3
        return np.asarray((thursday - thursday.astype("M8[D]").astype("M8[Y]").astype("M8[D]").astype(np.int64)) // 7)
    month = months.astype(np.int64) % 12
    return np.asarray(month // 3 if name == "quarter" else month)


FIRST_YEAR, LAST_YEAR = 1995, 2045
"""Names are collected over these years, independent of the data, so that all series have the
same holiday columns.
"""


@lru_cache(maxsize=16)
def country_holiday_names(country: str) -> tuple[str, ...]:
    """The sorted English names of all holidays of a country ("DE") or subdivision ("DE-BY")."""
    names_by_day = _names_by_day(country, tuple(range(FIRST_YEAR, LAST_YEAR)))
    return tuple(sorted({name for names in names_by_day.values() for name in names}))


def holiday_dates(country: str, first: int, last: int) -> dict[str, list[int]]:
    """The days (since 1970) of each holiday by name, in the years of the days `first` to `last` (since 1970)."""
    import numpy as np

    years = np.array([first, last + 1]).astype("M8[D]").astype("M8[Y]").astype(int) + 1970
    dates_by_name: dict[str, list[int]] = {}
    for day, names in _names_by_day(country, tuple(range(int(years[0]), int(years[1]) + 1))).items():
        for name in names:
            dates_by_name.setdefault(name, []).append(day)
    return dates_by_name


@lru_cache(maxsize=64)
def _names_by_day(country: str, years: tuple[int, ...]) -> dict[int, list[str]]:
    """The names of the holidays of each day (since 1970) that is one."""
    import numpy as np

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the holidays package itself
        import holidays

        code, _, subdivision = country.partition("-")
        country_holidays = holidays.country_holidays(
            code, subdiv=subdivision or None, years=years, expand=False, language="en_US"
        )
        days = {day: int(np.datetime64(day, "D").astype(np.int64)) for day in country_holidays}
        return {number: country_holidays.get_list(day) for day, number in days.items()}


WINDOWS = ("mean", "std", "min", "max", "quantile")
FEATURE_KINDS = ("lag", "difference", *WINDOWS, "expanding_mean", "expanding_std", "expanding_min", "expanding_max", "ewm")
MAX_LAG = 1_000_000
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
        default_lag = self.stride if self.stride > 1 and self.kind in WINDOWS else 1
        end = f"@{self.lag}" if self.lag != default_lag else ""
        if self.kind == "lag":
            return f"lag_{self.lag}"
        if self.kind == "difference":
            return f"difference_{self.stride}{end}"
        if self.kind == "ewm":
            return f"ewm_{_format_level(self.level)}{end}"
        if self.kind.startswith("expanding"):
            return f"{self.kind}{end}"
        stride = f"x{self.stride}" if self.stride > 1 else ""
        level = f"_{_format_level(self.level)}" if self.kind == "quantile" else ""
        return f"{self.kind}_{self.size}{stride}{level}{end}"


def parse_lag_feature(name: str) -> LagFeature:
    """Parse the name of a lag feature.

    Examples
    --------
    >>> parse_lag_feature("mean_4x7"), str(parse_lag_feature("quantile_28_0.9@2"))
    (LagFeature(kind='mean', lag=7, size=4, stride=7, level=0.0), 'quantile_28_0.9@2')
    """
    body, separator, end = name.partition("@")
    feature = _parse_window(body) or _parse_single(body)
    if feature is None or (separator and (feature.kind == "lag" or not _is_count(end))):
        raise ParameterError(f"A lag feature must have a name such as {EXAMPLES}, got '{format_value(name)}'.")
    return feature if not separator else LagFeature(feature.kind, int(end), feature.size, feature.stride, feature.level)


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


def _parse_window(body: str) -> LagFeature | None:
    """The feature of a window such as `mean_28`, `mean_4x7` or `quantile_28_0.9`; None if `body` is not one."""
    match = re.fullmatch(r"(mean|std|min|max|quantile)_(\d+)(?:x(\d+))?(?:_(0?\.\d+))?", body)
    if match is None or not _is_count(match[2]) or (match[3] and not _is_count(match[3])):
        return None
    level = float(match[4] or 0)
    if (match[1] == "quantile") != (0 < level < 1) or (match[1] == "std" and int(match[2]) == 1):
        return None
    stride = int(match[3] or 1)
    return LagFeature(match[1], stride, int(match[2]), stride, level)


def _parse_single(body: str) -> LagFeature | None:
    """The feature of `lag_7`, `difference_7`, `ewm_0.3` or `expanding_max`; None if `body` is not such a name."""
    feature_kind, _, number = body.rpartition("_")
    if body in FEATURE_KINDS and body.startswith("expanding"):
        return LagFeature(body)
    if feature_kind == "lag" and _is_count(number):
        return LagFeature("lag", int(number))
    if feature_kind == "difference" and _is_count(number):
        return LagFeature("difference", lag=1, size=2, stride=int(number))
    if feature_kind == "ewm" and re.fullmatch(r"(0?\.\d+|1)", number) and 0 < float(number) <= 1:
        return LagFeature("ewm", level=float(number))
    return None


def _format_level(level: float) -> str:
    """A probability as text with all significant digits, so that names are unique."""
    return np.format_float_positional(level, trim="-")


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and 1 <= int(text) <= MAX_LAG
