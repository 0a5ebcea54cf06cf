"""Positions and labels of axis ticks."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from deepforecast.plotting.chart import Array, Axis
from deepforecast.plotting.style import format_compact
from deepforecast.plotting.timestamps import find_time_zone

# How years, months, days, hours, minutes and seconds are written: at a tick, where a larger unit begins, at the axis' end.
TIME_TICKS = ["%Y", "%b", "%d %b", "%H:%M", "%H:%M", "%S.%f"]
TIME_STARTS = ["", "%Y", "%b", "%d %b", "%H:%M", "%H:%M"]
TIME_OFFSETS = ["", "%Y", "%Y", "%d %b %Y", "%d %b %Y", "%d %b %Y %H:%M"]
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_STEPS = [1, 2, 2.5, 5, 10]


class Ticks(NamedTuple):
    """Positions as in `limits.axis_range`, a label for each, and the date they share."""

    positions: Array
    labels: list[str]
    shared: str = ""


def find_ticks(axis: Axis, low: float, high: float, max_ticks: int) -> Ticks:
    """About `max_ticks` ticks at most between `low` and `high`.

    >>> find_ticks(Axis(), 0.0, 1.0, 5).labels
    ['0', '0.2', '0.4', '0.6', '0.8', '1']
    >>> find_ticks(Axis(kind="log"), -2.0, 2.0, 5).labels
    ['0.01', '0.1', '1', '10', '100']
    """
    from matplotlib.ticker import MaxNLocator, MultipleLocator

    if axis.kind == "names":
        return Ticks(np.arange(float(len(axis.names))), list(axis.names))
    if axis.kind == "time":
        return _time_ticks(axis, low, high, max_ticks)
    if axis.kind == "log":
        return _log_ticks(low, high)
    is_integer = axis.kind == "integer"
    locator = MaxNLocator(nbins=max_ticks, integer=is_integer, steps=[1, 2, 5, 10] if is_integer else _STEPS)
    values = (MultipleLocator(axis.tick_multiple) if axis.tick_multiple else locator).tick_values(low, high)
    positions = np.asarray(values)
    positions = positions[(positions >= low) & (positions <= high)]
    return Ticks(positions, _numbers(positions))


def _time_ticks(axis: Axis, low: float, high: float, max_ticks: int) -> Ticks:
    """Ticks of a time axis, in microseconds since 1970."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num, num2date

    zone = find_time_zone(axis.zone)
    ends = date2num(np.array([low, high]).astype("M8[us]"))  # type: ignore[no-untyped-call]
    locator = AutoDateLocator(tz=zone, minticks=2, maxticks=max(5, max_ticks))  # type: ignore[no-untyped-call]
    days = np.asarray(locator.tick_values(*num2date(ends, zone)))  # type: ignore[no-untyped-call]
    days = days[(days >= ends[0]) & (days <= ends[1])]
    forms = {"formats": TIME_TICKS, "offset_formats": TIME_OFFSETS, "zero_formats": TIME_STARTS}
    numbered = {name: [form.replace("%b", "<%m>") for form in texts] for name, texts in forms.items()}
    formatter: Any = ConciseDateFormatter(locator, zone, **numbered)  # type: ignore[no-untyped-call]
    labels = [_name_months(label) for label in formatter.format_ticks(days)]
    return Ticks(days * 86_400e6, labels, _name_months(formatter.get_offset()))


def _name_months(text: str) -> str:
    """Replace `<01>` by `Jan`; `%b` would depend on the locale."""
    return re.sub(r"<(\d\d)>", lambda month: MONTHS[int(month[1]) - 1], text)


def _log_ticks(low: float, high: float) -> Ticks:
    """Ticks of a log axis, in powers of ten; also at 2 and 5 if there are few."""
    powers = np.arange(np.floor(low), np.ceil(high) + 1)
    if high - low > 8:
        powers = powers[:: int(np.ceil((high - low) / 8))]
    values = (
        10.0**powers
        if high - low > 2
        else np.concatenate([10.0**powers * factor for factor in (1, 2, 5)])
    )
    values = np.sort(values[(np.log10(values) >= low) & (np.log10(values) <= high)])
    return Ticks(np.log10(values), [format_compact(float(value)) for value in values])


def _numbers(positions: Array) -> list[str]:
    """Labels with the decimals that the tick step needs, and thousands separators."""
    if len(positions) == 0:
        return []
    step = float(np.diff(positions).min()) if len(positions) > 1 else abs(float(positions[0])) or 1.0
    if not 1e-4 <= np.abs(positions).max() < 1e13:
        return [f"{value:g}" for value in positions]
    decimals = next(
        (digits for digits in range(12) if abs(round(step, digits) - step) < 1e-6 * step), 12
    )
    texts = [
        f"{value + 0.0:.{decimals}f}" if abs(value) < 1e4 else f"{value:,.{decimals}f}"
        for value in positions
    ]
    return [text.rstrip("0").rstrip(".") if "." in text else text for text in texts]
