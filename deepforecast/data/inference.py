"""The frequency the data look like, from all series at once; None where they cannot tell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deepforecast.data.calendar import PER_DAY, to_local
from deepforecast.data.frames import Ints, TimeType
from deepforecast.data.frequency import TICKS, WEEKDAYS, Frequency

MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
MOSTLY = 0.5  # share of neighbours that must be one step apart before a step is believed


def infer(raw: Ints, indptr: Ints, time: TimeType) -> Frequency | None:
    """The frequency of the sorted stamps of a ragged panel.

    Weekday-only daily data is business-daily; daily, hourly ... data with holes keeps its step.
    """
    if len(raw) < 2:
        return None
    pairs = Pairs(indptr[1:-1] - 1, len(raw) - len(indptr) + 1)
    found = _infer(raw, indptr, pairs, time) if pairs.count > 0 else None
    if time.tz not in (None, "UTC") and (found is None or found.base not in TICKS or found.base == "D"):
        return _infer(to_local(raw, time), indptr, pairs, time)  # local midnights are 23 or 25 hours apart twice a year
    return found


@dataclass(frozen=True)
class Pairs:
    """Neighbours within a series: all `count` of the flat array but those at `bounds`, which belong to two series."""

    bounds: Ints
    count: int

    def gaps(self, values: Ints) -> Ints:
        """Differences of neighbours; at the bounds some gap that occurs elsewhere, so that nothing need be copied."""
        gaps = np.diff(values)
        if len(self.bounds):
            inside = np.ones(min(len(gaps), len(self.bounds) + 1), dtype=bool)
            inside[self.bounds[self.bounds < len(inside)]] = False
            gaps[self.bounds] = gaps[np.argmax(inside)]
        return gaps

    def share(self, holds: NDArray[np.bool_]) -> float:
        """The share of the pairs for which a condition holds."""
        holds[self.bounds] = False
        return float(np.count_nonzero(holds) / self.count)

    def mostly(self, gaps: Ints, step: int) -> bool:
        """Every gap is a multiple of the step, and most are one step."""
        share = self.share(gaps == step)
        return share == 1 or (share >= MOSTLY and not (gaps % step).any())


def _infer(raw: Ints, indptr: Ints, pairs: Pairs, time: TimeType) -> Frequency | None:
    gaps = pairs.gaps(raw)
    step = int(gaps.min())
    if step <= 0:
        return None
    even = pairs.share(gaps == step) == 1
    if not time.unit:
        return Frequency(step) if pairs.mostly(gaps, step) else None
    day = PER_DAY[time.unit]
    if even and (step < day or step % (7 * day) and step < 28 * day):
        return _tick(step, time.unit)
    if even and step < 28 * day:
        weekdays = (raw[indptr[:-1]] // day + 3) % 7
        return _weekly(step // day, weekdays)
    if step % day == 0 and (even or not (gaps % day).any()):
        del gaps
        return _of_months(raw, pairs, day) if step >= 28 * day else _of_days(raw // day, pairs)
    return _tick(step, time.unit) if pairs.mostly(gaps, step) else None


def _weekly(step: int, weekdays: Ints) -> Frequency | None:
    return Frequency(step // 7, "W", WEEKDAYS[weekdays[0]]) if (weekdays == weekdays[0]).all() else None


def _tick(step: int, unit: str) -> Frequency:
    nanoseconds = step * (TICKS["D"] // PER_DAY[unit])
    base = next(name for name, size in TICKS.items() if nanoseconds % size == 0)
    return Frequency(nanoseconds // TICKS[base], base)


def _of_days(days: Ints, pairs: Pairs) -> Frequency | None:
    gaps = pairs.gaps(days)
    step = int(gaps.min())
    weekday = (days + 3) % 7
    if step % 7 == 0 and pairs.mostly(gaps, step):
        return _weekly(step, weekday)
    if step == 1 and (weekday < 5).all() and pairs.share((gaps == 1) | ((gaps == 3) & (weekday[1:] == 0))) >= MOSTLY:
        return Frequency(1, "B")
    return Frequency(step, "D") if pairs.mostly(gaps, step) else None


def _of_months(raw: Ints, pairs: Pairs, day: int) -> Frequency | None:
    import pandas as pd

    codes, few = pd.factorize(raw)  # the stamps of a panel repeat from series to series
    days = few // day
    months = days.view("M8[D]").astype("M8[M]")
    place = _place_in_month(days, months.astype("M8[D]").view(np.int64), (months + 1).astype("M8[D]").view(np.int64) - 1)
    if place is None:
        return None
    number = months.view(np.int64)
    gaps = pairs.gaps(number[codes])
    step, month = int(gaps.min()), int(number[0]) % 12
    if not pairs.mostly(gaps, step) or ((number - number[0]) % np.gcd(step, 12)).any():
        return None
    business, end = place
    if step % 12 == 0:
        return Frequency(step // 12, f"{business}Y{end}", MONTHS[month])
    if step % 3 == 0:
        return Frequency(step // 3, f"{business}Q{end}", MONTHS[month % 3 if end == "S" else 9 + month % 3])
    return Frequency(step, f"{business}M{end}")


def _place_in_month(days: Ints, first: Ints, last: Ints) -> tuple[str, str] | None:
    """("", "S") for first days, ("", "E") for last days, ("B", ...) for first and last business days."""
    if (days == first).all():
        return "", "S"
    if (days == last).all():
        return "", "E"
    weekday = (first + 3) % 7
    if (days == first + np.where(weekday > 4, 7 - weekday, 0)).all():
        return "B", "S"
    weekday = (last + 3) % 7
    if (days == last - np.maximum(weekday - 4, 0)).all():
        return "B", "E"
    return None
