"""The frequency the data look like, from all series at once; None where they cannot tell."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.data.calendar import PER_DAY, distinct, local_clock, to_local
from deepforecast.data.frequency import MONTHS, TICKS, WEEKDAYS, Frequency, ticks
from deepforecast.data.grids import OFF_GRID, point_numbers

if TYPE_CHECKING:
    from deepforecast.data.frames import Ints
    from deepforecast.data.times import TimeType

MOSTLY = 0.5  # share of neighbours that must be one step apart before a step is believed
STRAY = 0.1  # share of stamps beside the grid up to which they are the mistake, and not the grid


def infer(raw: Ints, indptr: Ints, time: TimeType) -> Frequency | None:
    """The frequency of the sorted stamps of a ragged panel.

    Weekday-only daily data is business-daily; daily, hourly ... data with holes keeps its step.
    """
    if len(raw) < len(indptr):
        return None  # no series has two rows
    gaps = np.diff(raw)
    gaps[indptr[1:-1] - 1] = gaps[indptr[np.argmax(np.diff(indptr))]]  # between two series: some gap that occurs within one
    step, longest = int(gaps.min()), int(gaps.max())
    del gaps
    if step <= 0:
        return None
    if not time.unit and step == longest:
        return Frequency(step)
    if time.unit and step == longest and time.tz in (None, "UTC"):
        nanoseconds = step * (TICKS["D"] // PER_DAY[time.unit])
        if nanoseconds < 7 * TICKS["D"]:
            return ticks(nanoseconds)
    return _uneven(raw, indptr, time, step)


def may_be_business_days(found: Frequency, raw: Ints, indptr: Ints, time: TimeType) -> bool:
    """Whether daily series each lie within one Monday to Friday: then nothing tells days from business days."""
    if found != Frequency(1, "D"):
        return False
    days = (raw if time.tz in (None, "UTC") else to_local(raw, time)) // PER_DAY[time.unit]
    weekday = (days + 3) % 7  # day 0 was a Thursday
    monday = days - weekday
    return bool((weekday < 5).all() and (monday == np.repeat(monday[indptr[:-1]], np.diff(indptr))).all())


def strays(raw: Ints, indptr: Ints, time: TimeType) -> tuple[Frequency, Ints] | None:
    """Where `infer` finds none: the frequency nearly all stamps have, and the rows of the few beside it; None if many are."""
    for beside in (_beside_steps, _beside_months):
        rows = beside(raw, indptr, time)
        if 0 < len(rows) <= STRAY * len(raw):
            kept = np.ones(len(raw), dtype=bool)
            kept[rows] = False
            usual = infer(raw[kept], np.unique(np.append(0, np.cumsum(kept))[indptr]), time)
            if usual is not None:
                return usual, rows
    return None


def _beside_steps(raw: Ints, indptr: Ints, time: TimeType) -> Ints:
    """The rows beside the grid of their own series, where steps are of one length: days, hours, weeks, integers."""
    gaps = np.delete(np.diff(raw), indptr[1:-1] - 1)
    step, count = _usual(gaps) if len(gaps) else (0, 0)
    if step <= 0 or count < MOSTLY * len(gaps):
        return raw[:0]
    if time.tz not in (None, "UTC") and step % PER_DAY[time.unit] == 0:  # the same hour by the clock, not every 24 hours
        raw = local_clock(raw, time, _usual(to_local(raw, time) % PER_DAY[time.unit])[0])
    phase, begin = raw % step, indptr[:-1]
    mixed = np.flatnonzero(np.minimum.reduceat(phase, begin) != np.maximum.reduceat(phase, begin))  # each has a grid of its own
    return np.concatenate([raw[:0], *(_beside(phase, int(indptr[one]), int(indptr[one + 1])) for one in mixed)])


def _beside_months(raw: Ints, indptr: Ints, time: TimeType) -> Ints:
    """The rows beside the first or last (business) days of months, where nearly all are such days."""
    day = PER_DAY.get(time.unit, 0)
    if not day:
        return raw[:0]
    local = raw if time.tz in (None, "UTC") else to_local(raw, time)
    days, clock = local // day, local % day
    bases = (point_numbers(Frequency(1, base), days) == OFF_GRID for base in ("MS", "ME", "BMS", "BME"))
    return min((np.flatnonzero(off | (clock != _usual(clock)[0])) for off in bases), key=len)


def _beside(phase: Ints, begin: int, end: int) -> Ints:
    """The rows of a series whose phase is not its usual one."""
    return begin + np.flatnonzero(phase[begin:end] != _usual(phase[begin:end])[0])


def _usual(values: Ints) -> tuple[int, int]:
    """The most frequent of some whole numbers, and how often it is there."""
    found, counts = np.unique(values, return_counts=True)
    return int(found[np.argmax(counts)]), int(counts.max())


def _uneven(raw: Ints, indptr: Ints, time: TimeType, step: int) -> Frequency | None:
    """`infer` where gaps differ, are a week or longer, or local time counts."""
    near = Neighbours.of(indptr)
    day = PER_DAY.get(time.unit, 0)
    zoned = time.tz not in (None, "UTC")
    even = None
    if not day or step % day or zoned:
        if near.share(near.gaps(raw), step) >= MOSTLY:
            even = Frequency(step) if not day else ticks(step * (TICKS["D"] // day))
        if not zoned or (even is not None and even.base != "D"):
            return even
    few, rows = distinct(raw)
    near = replace(near, rows=rows)
    if zoned:  # local midnights are 23 or 25 hours apart twice a year
        few = local_clock(few, time, int((to_local(raw[:2], time) % day).min()))
    days = few // day
    time_of_day = few - days * day
    if (time_of_day != time_of_day[0]).any() and near.gaps(time_of_day).any():
        return None if even is None else Frequency(24 * even.n, "h")  # whole days in absolute time only
    return _of_days(days, near)


@dataclass(frozen=True)
class Neighbours:
    """Rows of a flat array that follow each other within a series: all `count` of them but those at `bounds`.

    `rows`: which of the values at hand each row has, where rows repeat them.
    """

    bounds: Ints
    count: int
    typical: int
    rows: Any = ...

    @classmethod
    def of(cls, indptr: Ints) -> Neighbours:
        """The neighbours in a panel, one of whose series has two rows."""
        return cls(indptr[1:-1] - 1, int(indptr[-1]) - len(indptr) + 1, int(indptr[np.argmax(np.diff(indptr))]))

    def gaps(self, values: Ints) -> Ints:
        """Differences of neighbours; between two series some gap that occurs within one, so that nothing need be left out."""
        gaps: Ints = np.diff(values[self.rows])
        gaps[self.bounds] = gaps[self.typical]
        return gaps

    def share(self, gaps: Ints, step: int) -> float:
        """The share of neighbours one step apart; 0 where some are no whole number of steps apart."""
        one = gaps == step
        one[self.bounds] = False
        share = np.count_nonzero(one) / self.count
        return 0.0 if share < 1 and (gaps % step).any() else share


def _of_days(days: Ints, near: Neighbours) -> Frequency | None:
    """Days, business days, weeks or months: the calendar on which most neighbours are one step apart."""
    gaps = near.gaps(days)
    step = int(gaps.min())
    monthly = _of_months(days, near) if step >= 28 else None
    if monthly is not None:
        return monthly
    daily = near.share(gaps, step)
    del gaps
    weekday = (days + 3) % 7
    if step % 7 == 0:
        return Frequency(step // 7, "W", WEEKDAYS[weekday[0]]) if daily >= MOSTLY and (weekday == weekday[0]).all() else None
    if daily < 1 and (weekday < 5).all():
        gaps = near.gaps(point_numbers(Frequency(1, "B"), days))
        step_of_business = int(gaps.min())
        if near.share(gaps, step_of_business) >= max(MOSTLY, daily):
            return Frequency(step_of_business, "B")
    return Frequency(step, "D") if daily >= MOSTLY else None


def _of_months(days: Ints, near: Neighbours) -> Frequency | None:
    """Months, quarters or years, whose first or last (business) days all of `days` are."""
    for base in ("MS", "ME", "BMS", "BME"):
        numbers = point_numbers(Frequency(1, base), days)
        if (numbers != OFF_GRID).all():
            break
    else:
        return None
    gaps = near.gaps(numbers)
    step = int(gaps.min())
    if near.share(gaps, step) < MOSTLY:
        return None
    months = numbers % 12
    if step % 12 == 0 and (months == months[0]).all():
        return Frequency(step // 12, base.replace("M", "Y"), MONTHS[months[0]])
    if step % 3 == 0 and (months % 3 == months[0] % 3).all():
        return Frequency(step // 3, base.replace("M", "Q"), MONTHS[months[0] % 3 + (0 if base.endswith("S") else 9)])
    return Frequency(step, base)
