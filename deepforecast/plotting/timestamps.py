"""Timestamps as arrays, and time zones by name."""

from __future__ import annotations

import re
from datetime import UTC, timedelta, timezone, tzinfo
from typing import TYPE_CHECKING, Any

from deepforecast.data.key_columns import read_timestamps
from deepforecast.plotting.chart import Array

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d\d):?(\d\d)")


def timestamp_array(column: nw.Series[Any]) -> tuple[Array, str | None]:
    """Timestamps as `datetime64[us]` (UTC if zoned) or `int64`, and the zone name."""
    integers, time_type = read_timestamps(column, column.name)
    if not time_type.unit:
        return integers, None
    return integers.view(f"M8[{time_type.unit}]").astype("M8[us]"), time_type.tz


def find_time_zone(name: str | None) -> tzinfo:
    """Time zone of a name or an offset such as `+02:00`; UTC if unknown.

    >>> find_time_zone("UTC+02:00")
    datetime.timezone(datetime.timedelta(seconds=7200))
    """
    from zoneinfo import ZoneInfo

    offset = _OFFSET.fullmatch(name or "")
    if offset is not None:
        sign, hours, minutes = offset.groups()
        span = timedelta(hours=int(hours), minutes=int(minutes))
    try:
        return ZoneInfo(name or "UTC") if offset is None else timezone(-span if sign == "-" else span)
    except (KeyError, ValueError):
        return UTC


def zone_title(name: str | None) -> str:
    """Axis title: the time zone that is shown.

    >>> zone_title("Europe/Berlin"), zone_title("tzfile('somewhere')"), zone_title(None)
    ('Europe/Berlin', 'UTC', '')
    """
    return "" if name is None else name if find_time_zone(name) is not UTC else "UTC"


def format_timestamp(stamp: Any) -> str:
    """Timestamp for messages, without time of day at midnight.

    >>> import numpy as np
    >>> format_timestamp(np.datetime64("2024-01-31T00:00:00.000000")), format_timestamp(np.int64(7))
    ('2024-01-31', '7')
    """
    return str(stamp).removesuffix(".000000").removesuffix("T00:00:00")
