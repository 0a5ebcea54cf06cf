"""Calendar features: hour, day of the week, month, end of month, holidays and others."""

from __future__ import annotations

import warnings
from functools import cache
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
            f"got {format_value(unknown[0])}."
        )
    if names and not calendar.frequency.base:
        raise ParameterError(f"`calendar` cannot be used with integer time, got {format_list(list(names))}. Set calendar=None.")
    duplicates = [feature for index, feature in enumerate(names or ()) if feature in names[:index]]
    if duplicates:
        raise ParameterError(
            f"`calendar` cannot contain a feature more than once, got duplicates of {format_list(duplicates)}. "
            "Remove the duplicates."
        )
    return tuple(names or ())


def validate_country(country: str | None, calendar: Calendar) -> str | None:
    """The country code, after validation, which requires the package holidays."""
    if country is None:
        return None
    if not calendar.frequency.base:
        raise ParameterError("`holidays` cannot be used with integer time. Set holidays=None, or use dates as time column.")
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
            "Holiday features require the package holidays, which is not installed. Run: pip install holidays"
        ) from None
    code, _, subdivision = country.partition("-")
    subdivisions = holidays.list_supported_countries().get(code)
    if subdivisions is None or (subdivision and subdivision not in subdivisions):
        raise ParameterError(
            "`holidays` must be the code of a country known to the package holidays ('DE', 'US') or "
            f"of a subdivision ('DE-BY', 'US-CA'), got {format_value(country) or 'an empty string'}."
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
