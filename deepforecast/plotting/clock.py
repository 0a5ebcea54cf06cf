"""Stamps as arrays to draw, and time zones by name."""

from __future__ import annotations

import re
from datetime import UTC, timedelta, timezone, tzinfo
from typing import TYPE_CHECKING, Any

from deepforecast.data.frames import read_timestamps
from deepforecast.plotting.chart import Array

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d\d):?(\d\d)")


def read_stamps(column: nw.Series[Any]) -> tuple[Array, str | None]:
    """The stamps as `datetime64[us]` (UTC where they have a zone) or `int64`, and the name of the zone."""
    raw, kind = read_timestamps(column, column.name)
    if not kind.unit:
        return raw, None
    return raw.view(f"M8[{kind.unit}]").astype("M8[us]"), kind.tz


def zone_of(name: str | None) -> tzinfo:
    """The time zone of this name, of an offset such as `+02:00` too; UTC where there is none of that name.

    >>> zone_of("UTC+02:00")
    datetime.timezone(datetime.timedelta(seconds=7200))
    """
    from zoneinfo import ZoneInfo

    offset = _OFFSET.fullmatch(name or "")
    if offset is not None:
        sign, hours, minutes = offset.groups()
        span = timedelta(hours=int(hours), minutes=int(minutes))
        return timezone(-span if sign == "-" else span)
    try:
        return ZoneInfo(name or "UTC")
    except (KeyError, ValueError):
        return UTC


def zone_title(name: str | None) -> str:
    """What stands under the axis: the zone that is really shown.

    >>> zone_title("Europe/Berlin"), zone_title("tzfile('somewhere')"), zone_title(None)
    ('Europe/Berlin', 'UTC', '')
    """
    return "" if name is None else name if zone_of(name) is not UTC else "UTC"


def text_of(stamp: Any) -> str:
    """A stamp in a message: no time of day where it is midnight.

    >>> import numpy as np
    >>> text_of(np.datetime64("2024-01-31T00:00:00.000000")), text_of(np.int64(7))
    ('2024-01-31', '7')
    """
    return str(stamp).removesuffix(".000000").removesuffix("T00:00:00")
