"""Validation of the options of additive models: seasonalities, events, regressors (dicts of dicts) and changepoints."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from deepforecast.core.params import is_instance
from deepforecast.data.frames import Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, ParameterError, ParameterTypeError, format_list, format_value, pluralize

MODES = ("additive", "multiplicative")

UNITS = {86_400: "s", 86_400_000: "ms", 86_400_000_000: "us", 86_400_000_000_000: "ns"}  # by their number per day


class Field(NamedTuple):
    """A key of a declaration: description of its value, validator, and whether it is required."""

    description: str
    is_valid: Callable[[Any], bool]
    required: bool = False


def _is_positive_number(value: Any) -> bool:
    return is_instance(value, float) and math.isfinite(value) and value > 0


PRIOR = Field("a positive number", _is_positive_number)
MODE = Field("'additive' or 'multiplicative'", lambda value: value in MODES)
SEASON = {
    "period": Field("a positive number, in days", _is_positive_number, True),
    "order": Field("an integer of at least 1", lambda value: is_instance(value, int) and value >= 1, True),
    "prior_scale": PRIOR,
    "mode": MODE,
    "condition": Field("the name of a future covariate", lambda value: isinstance(value, str)),
}
EVENT = {
    "dates": Field("a list of dates", lambda value: isinstance(value, (list, tuple)) and len(value) > 0, True),
    "lower_window": Field("an integer from -366 to 0", lambda value: is_instance(value, int) and -366 <= value <= 0),
    "upper_window": Field("an integer from 0 to 366", lambda value: is_instance(value, int) and 0 <= value <= 366),
    "prior_scale": PRIOR,
    "mode": MODE,
}
REGRESSOR = {
    "prior_scale": PRIOR,
    "mode": MODE,
    "standardize": Field("'auto', True or False", lambda value: isinstance(value, bool) or value == "auto"),
}


def read_declarations(declarations: Any, name: str, allowed: Mapping[str, Field]) -> dict[str, dict[str, Any]]:
    """Copies of the dicts in parameter `name`, by label; a list of dates is the dict of an event.

    `ParameterError` if a key is not in `allowed`, missing or has an invalid value; `ParameterTypeError` for other types.
    """
    checked: dict[str, dict[str, Any]] = {}
    for label, fields in (declarations or {}).items():
        if not isinstance(label, str) or not label:
            raise ParameterTypeError(
                f"`{name}` must be a dict with names as keys, got {format_value(label)} "
                f"({type(label).__name__}).", parameter=name, value=label
            )
        if allowed is EVENT and isinstance(fields, (list, tuple)):
            fields = {"dates": fields}
        if not isinstance(fields, Mapping):
            raise ParameterTypeError(
                f"{name}[{label!r}] must be a dict with keys from {format_list(list(allowed))}, got {format_value(fields)}.",
                parameter=name,
            )
        unknown = [key for key in fields if key not in allowed]
        if unknown:
            raise ParameterError(
                f"Unknown key '{format_value(unknown[0])}' in {name}[{label!r}].",
                hint=f"Available: {format_list(list(allowed), max_shown=9)}.",
                parameter=name,
            )
        for key, field in allowed.items():
            if field.required and key not in fields:
                raise ParameterError(
                    f"{name}[{label!r}] must have the key {key!r} with {field.description} as its value.",
                    parameter=name,
                )
            if key in fields and not field.is_valid(fields[key]):
                raise ParameterError(
                    f"{name}[{label!r}]: {key!r} must be {field.description}, got "
                    f"{format_value(fields[key])}.",
                    parameter=name,
                )
        checked[label] = dict(fields)
    return checked


def plain_events(events: Any) -> Any:
    """Events with their dates as lists of strings or integers, for comparison and serialization.

    Invalid values are returned unchanged; `read_declarations` refuses them.
    """
    if not isinstance(events, Mapping):
        return events
    if all(_is_plain(event) for event in events.values()):
        return events
    return {
        name: {**event, "dates": _plain_dates(event.get("dates"))} if isinstance(event, Mapping) and "dates" in event
        else _plain_dates(event)
        for name, event in events.items()
    }  # fmt: skip


def holidays_as_events(holidays: Any) -> Any:
    """Holidays as a dict of events, from a DataFrame with the columns of Prophet or from a dict.

    The columns are holiday, ds and, optionally, lower_window, upper_window and prior_scale. A
    country and None are returned unchanged.
    """
    if holidays is None or isinstance(holidays, str):
        return holidays
    if isinstance(holidays, Mapping):
        return plain_events(holidays)
    from deepforecast.data import frames

    try:
        table = frames.to_narwhals(holidays, "holidays")
    except DataError:
        raise ParameterTypeError(
            "`holidays` must be a country such as 'DE', a dict of events, or a DataFrame with the columns holiday and ds, got "
            f"{format_value(holidays)}.", parameter="holidays", value=holidays
        ) from None
    missing_columns = [name for name in ("holiday", "ds") if name not in table.columns]
    if missing_columns or not len(table):
        remedy = f"Add {format_list(missing_columns)}." if missing_columns else "Set holidays=None if there are no holidays."
        raise ParameterError(
            "`holidays` must be a non-empty DataFrame with the columns holiday and ds, got "
            f"{pluralize(len(table), 'row')} with the columns {format_list(table.columns) or '(none)'}.",
            hint=remedy,
            parameter="holidays",
        )
    events: dict[str, Any] = {}
    for row in table.iter_rows(named=True):
        name, event = _read_event(row)
        merged = events.setdefault(name, {**event, "dates": []})
        if {**merged, "dates": []} != {**event, "dates": []}:
            raise ParameterError(
                "`holidays` must have the same lower_window, upper_window and prior_scale in all rows of a holiday, got "
                f"different ones for {format_value(name)}.",
                hint="Use two names for the holiday.",
                parameter="holidays",
            )
        merged["dates"] += event["dates"]
    return events


def _read_event(row: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Name and declaration of the holiday in a row of a DataFrame; missing values of optional columns are left out."""
    name, date = row["holiday"], row["ds"]
    if _is_missing(name) or not str(name):
        raise ParameterError(
            f"`holidays` must have a name in each row of the column holiday, got {name!r} at {date}.",
            hint="Add a name, or drop the row.",
            parameter="holidays", value=name,
        )
    day_numbers([date], f"`holidays` of {format_value(str(name))}", is_instance(date, int))  # raises for invalid dates
    event: dict[str, Any] = {"dates": _plain_dates([date])}
    for key in ("lower_window", "upper_window", "prior_scale"):
        value: Any = row.get(key)
        if _is_missing(value):
            continue
        if key != "prior_scale" and is_instance(value, float) and math.isfinite(value) and value == int(value):
            value = int(value)  # integer columns with missing values are float in pandas
        if not EVENT[key].is_valid(value):
            value_text = format_value(repr(value) if isinstance(value, str) else value)
            raise ParameterError(
                f"`holidays`: {key} of {format_value(str(name))} must be {EVENT[key].description}, got {value_text}.",
                parameter="holidays",
                value=value_text
            )
        event[key] = float(value) if key == "prior_scale" else value
    return str(name), event


def _is_missing(value: Any) -> bool:
    """Whether a value is None, NaN or NaT."""
    import pandas as pd

    return bool(pd.api.types.is_scalar(value) and pd.isna(value))


def _is_plain(event: Any) -> bool:
    """Whether the dates of an event are a list of strings or integers."""
    dates = event.get("dates") if isinstance(event, Mapping) else event
    return isinstance(dates, (list, tuple)) and all(type(date) in (str, int) for date in dates)


def _plain_dates(dates: Any) -> Any:
    """A list of the dates as strings or, with integer time, integers; other values than a list unchanged."""
    if isinstance(dates, (str, Mapping)) or not hasattr(dates, "__iter__"):
        return dates
    return [_plain_date(date) for date in dates]


def _plain_date(date: Any) -> Any:
    """A date as a string, without a time of midnight; an integer as int."""
    if type(date) in (str, int):
        return date
    if is_instance(date, int):
        return int(date)
    text = str(date).replace("T", " ")
    return text.removesuffix(".000000000").removesuffix(" 00:00:00")


def day_numbers(dates: Any, name: str, integer: bool) -> tuple[int, ...]:
    """Dates as numbers of days since 1970 or, with integer time, integers; sorted, without duplicates.

    `ParameterError` for other values; `name` is that of the parameter in the message.
    """
    days = []
    for date in dates:
        try:
            if integer != is_instance(date, int):
                raise ValueError
            days.append(int(date) if integer else int(to_datetime64(date, "D").astype(np.int64)))
        except (ValueError, OverflowError):
            expected = "integers with integer time" if integer else "dates such as '2024-12-24'"
            raise ParameterError(f"{name} must contain {expected}, got {format_value(date)}.") from None
        if not integer and np.isnat(to_datetime64(date, "D")):
            raise ParameterError(f"{name} must contain dates such as '2024-12-24', got {format_value(date)}.")
    return tuple(sorted(set(days)))


def to_datetime64(date: Any, unit: str) -> np.datetime64:
    """Convert a date to datetime64, truncated to `unit`; one with a time zone to its local time.

    >>> str(to_datetime64("2024-12-25 00:00+01:00", "D")), str(to_datetime64("2024-12-25", "D"))
    ('2024-12-25', '2024-12-25')
    """
    try:
        parsed = date if isinstance(date, datetime) else datetime.fromisoformat(str(date))
        date = parsed.replace(tzinfo=None) if parsed.tzinfo is not None else date
    except ValueError:
        pass  # numpy also parses years and months
    converted: np.datetime64 = np.datetime64(str(date).replace(" ", "T")).astype(f"M8[{unit}]")
    return converted


def read_changepoints(changepoints: Sequence[Any], per_day: int) -> Ints:
    """Changepoints as sorted integers without duplicates, in clock units since 1970 or, with integer time, unchanged.

    The clock has `per_day` units per day; 1 for dates and for integer time.
    """
    return np.array(sorted({_to_clock(changepoint, per_day) for changepoint in changepoints}), dtype=np.int64)


def refuse_outside(changepoints: Sequence[Any], panel: Panel, start: Ints, end: Ints, per_day: int) -> None:
    """Raise `ParameterError` unless all changepoints lie within the history of every series.

    `start` and `end` are the first and last time of each series, in clock units.
    """
    times = read_changepoints(changepoints, per_day)
    if not len(times):
        return
    outside = np.flatnonzero((start > times[0]) | (end < times[-1]))
    if len(outside):
        raise ParameterError(
            f"`changepoints` must lie within the history of every series, got {format_value(min(map(str, changepoints)))} to "
            f"{format_value(max(map(str, changepoints)))}, which is not covered by the history of series: "
            f"{panel.series.labels(outside)}.",
            hint="Drop the changepoints outside, or use `n_changepoints`.",
            parameter="changepoints", series=panel.series.id_texts(outside),
        )


def check_changepoints(changepoints: Sequence[Any], integer: bool) -> None:
    """Raise `ParameterError` unless all changepoints are dates or, with integer time, integers."""
    for changepoint in changepoints:
        try:
            if integer != is_instance(changepoint, int) or (not integer and np.isnat(to_datetime64(changepoint, "s"))):
                raise ValueError
        except (ValueError, OverflowError):
            expected = "an integer, as the time is" if integer else "a date such as '2024-12-24'"
            raise ParameterError(
                f"Each item of `changepoints` must be {expected}, got {format_value(changepoint)}.",
                parameter="changepoints",
            ) from None


def _to_clock(changepoint: Any, per_day: int) -> int:
    """An integer unchanged, a date as number of clock units since 1970."""
    if is_instance(changepoint, int):
        return int(changepoint)
    return int(to_datetime64(changepoint, UNITS.get(per_day, "D")).astype(np.int64))
