"""Where the ticks of an axis stand, and what is written at them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from deepforecast.plotting.chart import Array, Axis
from deepforecast.plotting.clock import zone_of
from deepforecast.plotting.style import short_number

# How years, months, days, hours, minutes and seconds are written: at a tick, where a larger unit begins, at the axis' end.
TIME_TICKS = ["%Y", "%b", "%d %b", "%H:%M", "%H:%M", "%S.%f"]
TIME_STARTS = ["", "%Y", "%b", "%d %b", "%H:%M", "%H:%M"]
TIME_OFFSETS = ["", "%Y", "%Y", "%d %b %Y", "%d %b %Y", "%d %b %Y %H:%M"]
_STEPS = [1, 2, 2.5, 5, 10]


class Ticks(NamedTuple):
    """Positions on the axis as `limits.reach` counts them, a label for each, and a date that all of them share."""

    at: Array
    labels: list[str]
    shared: str = ""


def ticks(axis: Axis, low: float, high: float, most: int) -> Ticks:
    """At most about `most` ticks between `low` and `high`.

    >>> ticks(Axis(), 0.0, 1.0, 5).labels
    ['0', '0.2', '0.4', '0.6', '0.8', '1']
    >>> ticks(Axis(kind="log"), -2.0, 2.0, 5).labels
    ['0.01', '0.1', '1', '10', '100']
    """
    from matplotlib.ticker import MaxNLocator, MultipleLocator

    if axis.kind == "names":
        return Ticks(np.arange(float(len(axis.names))), list(axis.names))
    if axis.kind == "time":
        return _time_ticks(axis, low, high, most)
    if axis.kind == "log":
        return _log_ticks(low, high)
    whole = axis.kind == "integer"
    locator = MaxNLocator(nbins=most, integer=whole, steps=[1, 2, 5, 10] if whole else _STEPS)
    values = (MultipleLocator(axis.every) if axis.every else locator).tick_values(low, high)
    at = np.asarray(values)
    at = at[(at >= low) & (at <= high)]
    return Ticks(at, _numbers(at))


def _time_ticks(axis: Axis, low: float, high: float, most: int) -> Ticks:
    """Limits and positions are microseconds since 1970."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num, num2date

    zone = zone_of(axis.zone)
    ends = date2num(np.array([low, high]).astype("M8[us]"))  # type: ignore[no-untyped-call]
    locator = AutoDateLocator(tz=zone, minticks=2, maxticks=max(5, most))  # type: ignore[no-untyped-call]
    days = np.asarray(locator.tick_values(*num2date(ends, zone)))  # type: ignore[no-untyped-call]
    days = days[(days >= ends[0]) & (days <= ends[1])]
    forms = {"formats": TIME_TICKS, "offset_formats": TIME_OFFSETS, "zero_formats": TIME_STARTS}
    formatter: Any = ConciseDateFormatter(locator, zone, **forms)  # type: ignore[no-untyped-call]
    labels = formatter.format_ticks(days)
    return Ticks(days * 86_400e6, labels, formatter.get_offset())


def _log_ticks(low: float, high: float) -> Ticks:
    """Limits and positions are powers of ten: whole ones, and twos and fives between where there are few."""
    powers = np.arange(np.floor(low), np.ceil(high) + 1)
    if high - low > 8:
        powers = powers[:: int(np.ceil((high - low) / 8))]
    values = (
        10.0**powers
        if high - low > 2
        else np.concatenate([10.0**powers * one for one in (1, 2, 5)])
    )
    values = np.sort(values[(np.log10(values) >= low) & (np.log10(values) <= high)])
    return Ticks(np.log10(values), [short_number(float(value)) for value in values])


def _numbers(at: Array) -> list[str]:
    """As many decimals as the step between two ticks needs; thousands from five digits on."""
    if len(at) == 0:
        return []
    step = float(np.diff(at).min()) if len(at) > 1 else abs(float(at[0])) or 1.0
    if not 1e-4 <= np.abs(at).max() < 1e13:
        return [f"{value:g}" for value in at]
    decimals = next(
        (digits for digits in range(12) if abs(round(step, digits) - step) < 1e-6 * step), 12
    )
    texts = [
        f"{value + 0.0:.{decimals}f}" if abs(value) < 1e4 else f"{value:,.{decimals}f}"
        for value in at
    ]
    return [text.rstrip("0").rstrip(".") if "." in text else text for text in texts]
