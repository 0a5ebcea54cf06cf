"""Frequencies: parsing, usual season lengths, and the arithmetic of calendar grids.

Grids are weeks, months, quarters, years and business days. Point 0 of a grid is the first at or
after 1970-01-01 (business days: 1969-12-29, custom ones: after 0001-01-01).
"""

from __future__ import annotations

import re
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from deepforecast.errors import ParameterError, ParameterTypeError, format_value

if TYPE_CHECKING:
    from deepforecast.data.frames import Ints

# spellings of older pandas, polars and common use -> spelling of pandas 2.2 and later
SPELLINGS = {
    "M": "ME", "Q": "QE", "Y": "YE", "A": "YE", "BM": "BME", "BQ": "BQE", "BY": "BYE", "BA": "BYE", "AS": "YS",
    "BAS": "BYS", "CBM": "CBME", "H": "h", "T": "min", "S": "s", "L": "ms", "U": "us", "N": "ns", "d": "D",
}  # fmt: skip
# polars: start or end, month or weekday are inferred from the data
POLARS_BASES = ("mo", "q", "y", "w")
# nanoseconds of each tick, a period of constant length
TICKS = {"D": 86_400_000_000_000, "h": 3_600_000_000_000, "min": 60_000_000_000,
         "s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}  # fmt: skip
PER_YEAR = {"W": 52, "MS": 12, "ME": 12, "BMS": 12, "BME": 12, "CBMS": 12, "CBME": 12,
            "QS": 4, "QE": 4, "BQS": 4, "BQE": 4, "YS": 1, "YE": 1, "BYS": 1, "BYE": 1}  # fmt: skip
PER_WEEK = {"D": 7, "B": 5, "C": 5}
WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
FREQUENCY_HINT = (
    "Pass a pandas offset or alias such as '15min', 'D', 'B', 'W-SUN', 'MS', 'ME', 'QE', or an integer for integer time."
)


class Frequency(NamedTuple):
    """A time step: `n` times `base`, or `n` units of integer time if `base` is empty."""

    n: int
    base: str = ""
    anchor: str = ""
    # the pandas offset of one `base` if the alias does not determine it (custom holidays)
    offset: Any = None

    def __str__(self) -> str:
        return f"{self.n if self.n != 1 or not self.base else ''}{self.alias}"

    @property
    def alias(self) -> str:
        """The pandas alias of one base period."""
        return f"{self.base}-{self.anchor}" if self.anchor else self.base


def parse_frequency(freq: Any) -> Frequency:
    """Parse a frequency: an alias, a pandas offset, a duration or a positive integer.

    Examples
    --------
    >>> [str(parse_frequency(text)) for text in ("H", "3M", "1d", "Q")], parse_frequency(5).n
    (['h', '3ME', 'D', 'QE-DEC'], 5)
    """
    if isinstance(freq, Frequency):
        return freq
    if isinstance(freq, str):
        return _from_alias(freq)
    if hasattr(freq, "__index__") and not isinstance(freq, bool | np.bool_):
        if int(freq) < 1:
            rule = "must be at least 1 for integer time"
            raise _frequency_error(rule, int(freq), hint="Pass the step between two timestamps.")
        return Frequency(int(freq))
    if hasattr(freq, "freqstr") and hasattr(freq, "n"):
        return _from_offset(freq, str(freq.freqstr))
    if hasattr(freq, "total_seconds") or isinstance(freq, np.timedelta64):
        from pandas import Timedelta

        nanoseconds = int(Timedelta(freq).as_unit("ns").value)
        if nanoseconds < 1:
            raise _frequency_error("must be positive", str(freq))
        return tick_frequency(nanoseconds)
    raise ParameterTypeError(
        f"`freq` must be an alias, a pandas offset or an integer, got {format_value(freq)} ({type(freq).__name__}).",
        hint=FREQUENCY_HINT,
        parameter="freq",
        value=freq,
    )


@lru_cache(maxsize=256)
def tick_frequency(nanoseconds: int) -> Frequency:
    """Convert a duration to a multiple of the largest tick that divides it.

    Examples
    --------
    >>> str(tick_frequency(5_400_000_000_000)), str(tick_frequency(172_800_000_000_000))
    ('90min', '2D')
    """
    base = next(name for name, tick_nanoseconds in TICKS.items() if nanoseconds % tick_nanoseconds == 0)
    return Frequency(nanoseconds // TICKS[base], base)


@lru_cache(maxsize=256)
def season_length(frequency: Frequency) -> int:
    """The main season length in steps.

    Raises `ParameterError` if the frequency has no usual season.

    Examples
    --------
    >>> [season_length(parse_frequency(f)) for f in ("15min", "30min", "h", "D", "B", "W", "MS", "QE", "YE", "2h", "3MS")]
    [96, 48, 24, 7, 5, 52, 12, 4, 1, 12, 4]
    """
    lengths = seasons(frequency)
    if not lengths:
        raise ParameterError(
            f"season_length='auto' cannot be used with freq={str(frequency)!r}, which has no usual season.",
            hint="Set season_length (1: non-seasonal).",
        )
    return lengths[0]


def seasons(frequency: Frequency) -> tuple[int, ...]:
    """All usual season lengths, shortest first (hourly: 24, 168); empty if there is none."""
    n, base = frequency.n, frequency.base
    if base in PER_YEAR:
        per_year = PER_YEAR[base]
        return (max(1, per_year // n),) if per_year % n == 0 or n % per_year == 0 else ()
    if base in PER_WEEK:
        return (PER_WEEK[base],) if n == 1 else ()
    if base in TICKS:
        step, day = n * TICKS[base], TICKS["D"]
        if step < TICKS["min"] or day % step:
            return ()
        return (day // step, 7 * day // step) if step < day else (7,)
    return ()


def _from_alias(text: str) -> Frequency:
    """Parse an alias such as "15min", "W-SUN" or "2Q"; text of another form is parsed or rejected by pandas."""
    from pandas.tseries.frequencies import to_offset

    n, alias = 1, text
    match = re.fullmatch(r"\s*(\d*)([A-Za-z]+)(?:-([A-Za-z]{3}))?\s*", text)
    if match is not None and int(match[1] or 1) > 0:  # not "1h30min", "1.5h", "0D"
        n, base, anchor = int(match[1] or 1), SPELLINGS.get(match[2], match[2]), (match[3] or "").upper()
        if base == "m":
            hint = f"Pass '{match[1]}min', '{match[1]}MS' or '{match[1]}ME'."
            raise _frequency_error("cannot have the unit m, which can mean minutes or months", text, hint=hint)
        if (base in POLARS_BASES or base in TICKS) and not anchor:
            return Frequency(n, base)  # the anchor of `POLARS_BASES` is inferred from the data
        base = "W" if base == "w" else base
        alias = f"{base}-{anchor}" if anchor else base
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecation warnings of old spellings
        try:
            offset = to_offset(alias)
        except (ValueError, KeyError, AttributeError, TypeError, OverflowError):
            offset = None
    if offset is None:
        raise _frequency_error("must be a known alias", text)
    return _from_offset(offset, text, n)


def _from_offset(offset: Any, text: str, times: int = 1) -> Frequency:
    """The frequency of `times` a pandas offset; `text` is what the user passed, for error messages."""
    n = int(offset.n) * times
    if n < 1:
        raise _frequency_error("must be positive", text)
    if getattr(offset, "offset", None):
        raise _frequency_error("cannot shift business days by hours", text, hint="Shift the time column instead.")
    match = re.fullmatch(r"\d*([A-Za-z]+)(?:-([A-Za-z]{3}))?", offset.base.freqstr)
    base, anchor = (SPELLINGS.get(match[1], match[1]), match[2] or "") if match is not None else ("", "")
    if base not in TICKS and base not in PER_YEAR and base not in PER_WEEK:
        units = "seconds or fractions of them, minutes, hours, days, business days, weeks, months, quarters or years"
        raise _frequency_error(f"must be in {units}", text)
    if base == "W" and not anchor:
        return Frequency(n, "w")  # a week without an anchor, which is inferred from the data
    is_custom = base.startswith("C") and (str(offset.weekmask) != "Mon Tue Wed Thu Fri" or len(offset.holidays) > 0)
    return Frequency(n, base, anchor, offset.base if is_custom else None)


def _frequency_error(rule: str, value: Any, hint: str = FREQUENCY_HINT) -> ParameterError:
    """The error for a value of `freq` that breaks a rule."""
    return ParameterError(f"`freq` {rule}, got {format_value(repr(value))}.", hint=hint, parameter="freq", value=value)


GRIDS = frozenset(PER_YEAR) | frozenset(PER_WEEK) - {"D"}  # bases with grid points; the others have a constant step
OFF_GRID = np.iinfo(np.int64).min  # number of a day that is not a grid point
CUSTOM_START = -719_162  # 0001-01-01, so that business days are only counted forward


def point_numbers(frequency: Frequency, days: Ints) -> Ints:
    """Grid point numbers of days (since 1970-01-01).

    Days that are not grid points have the number `OFF_GRID`.
    """
    if frequency.base == "W":
        days_since_anchor = days - _weekday_shift(frequency)
        return np.where(days_since_anchor % 7 == 0, days_since_anchor // 7, OFF_GRID)
    if frequency.base in PER_WEEK:
        return _business_numbers(frequency, days)
    between, first = _months(frequency)
    months = days.view("M8[D]").astype("M8[M]").view(np.int64)
    numbers = (months - first) // between
    return np.where(_day_in_month(frequency, numbers * between + first) == days, numbers, OFF_GRID)


def point_days(frequency: Frequency, numbers: Ints) -> Ints:
    """Days (since 1970-01-01) of grid points, the inverse of `point_numbers`."""
    if frequency.base == "W":
        return numbers * 7 + _weekday_shift(frequency)
    if frequency.base in PER_WEEK:
        if frequency.offset is None:
            return numbers // 5 * 7 + numbers % 5 - 3  # the inverse of `_business_numbers`
        start = np.datetime64(CUSTOM_START, "D")
        return _as_days(np.busday_offset(start, numbers, roll="forward", busdaycal=frequency.offset.calendar))
    between, first = _months(frequency)
    return _day_in_month(frequency, numbers * between + first)


def _business_numbers(frequency: Frequency, days: Ints) -> Ints:
    """Numbers of business days: counted from Monday 1969-12-29, custom ones from 0001-01-01."""
    if frequency.offset is None:
        weekday = (days + 3) % 7  # 1970-01-01 was a Thursday
        return np.where(weekday < 5, (days + 3) // 7 * 5 + weekday, OFF_GRID)
    dates, calendar = days.view("M8[D]"), frequency.offset.calendar
    numbers = np.busday_count(np.datetime64(CUSTOM_START, "D"), dates, busdaycal=calendar)
    return np.where(np.is_busday(dates, busdaycal=calendar), numbers, OFF_GRID)


def _weekday_shift(frequency: Frequency) -> int:
    """The first day at or after 1970-01-01, a Thursday (3), on the weekday of the anchor."""
    return (WEEKDAYS.index(frequency.anchor) - 3) % 7


def _months(frequency: Frequency) -> tuple[int, int]:
    """Months between grid points, and the month of point 0 since January 1970."""
    between = 12 // PER_YEAR[frequency.base]
    return between, MONTHS.index(frequency.anchor) % between if frequency.anchor else 0


def _day_in_month(frequency: Frequency, months: Ints) -> Ints:
    """The first or last (business) day of months since January 1970."""
    at_start = frequency.base.endswith("S")
    months = months if at_start else months + 1
    day = _as_days(months.view("M8[M]")) - (0 if at_start else 1)
    if len(frequency.base) == 2:  # "MS", "ME": calendar days, not business days
        return day
    if frequency.offset is not None:
        roll: Any = "forward" if at_start else "backward"
        return _as_days(np.busday_offset(day.view("M8[D]"), 0, roll=roll, busdaycal=frequency.offset.calendar))
    weekday = (day + 3) % 7
    return day + np.where(weekday > 4, 7 - weekday if at_start else 4 - weekday, 0)


def _as_days(dates: Any) -> Ints:
    return np.asarray(dates).astype("M8[D]").view(np.int64)
