"""Seasonalities, events and regressors as they are declared, dicts of dicts, read and refused by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from deepforecast.core.kinds import is_a
from deepforecast.errors import ParameterError, ParameterTypeError, shown, some

MODES = ("additive", "multiplicative")


class Field(NamedTuple):
    """A key of a declaration: what its value is in words, and whether a value is that."""

    words: str
    holds: Callable[[Any], bool]
    required: bool = False


def _number(value: Any) -> bool:
    return is_a(value, float) and math.isfinite(value) and value > 0


PRIOR = Field("a number above 0", _number)
MODE = Field("'additive' or 'multiplicative'", lambda value: value in MODES)
SEASON = {
    "period": Field("a number above 0, in days", _number, True),
    "order": Field("an integer of at least 1", lambda value: is_a(value, int) and value >= 1, True),
    "prior_scale": PRIOR,
    "mode": MODE,
    "condition": Field("the name of a column known ahead", lambda value: isinstance(value, str)),
}
EVENT = {
    "dates": Field("a list of dates", lambda value: isinstance(value, (list, tuple)) and len(value) > 0, True),
    "lower_window": Field("an integer of at most 0", lambda value: is_a(value, int) and -366 <= value <= 0),
    "upper_window": Field("an integer of at least 0", lambda value: is_a(value, int) and 0 <= value <= 366),
    "prior_scale": PRIOR,
    "mode": MODE,
}
REGRESSOR = {
    "prior_scale": PRIOR,
    "mode": MODE,
    "standardize": Field("'auto', True or False", lambda value: isinstance(value, bool) or value == "auto"),
}


def declared(given: Any, name: str, allowed: Mapping[str, Field]) -> dict[str, dict[str, Any]]:
    """The declarations of a parameter by the name of each, checked."""
    found: dict[str, dict[str, Any]] = {}
    for one, said in (given or {}).items():
        if not isinstance(one, str) or not one:
            raise ParameterTypeError(f"{name} is a dict whose keys are names; got {shown(one)} ({type(one).__name__}).")
        if not isinstance(said, Mapping):
            raise ParameterTypeError(f"{name}[{one!r}] is a dict with {some(list(allowed))}; got {shown(said)}.")
        unknown = [key for key in said if key not in allowed]
        if unknown:
            raise ParameterError(f"{name}[{one!r}] takes {some(list(allowed), most=9)}; it has {shown(unknown[0])}.")
        for key, field in allowed.items():
            if field.required and key not in said:
                raise ParameterError(f"{name}[{one!r}] needs {key!r}, {field.words}.")
            if key in said and not field.holds(said[key]):
                raise ParameterError(f"{name}[{one!r}]: {key!r} is {field.words}; got {shown(said[key])}.")
        found[one] = dict(said)
    return found


def day_numbers(dates: Any, name: str, integer: bool) -> tuple[int, ...]:
    """Dates as days since 1970, or as they are where time is counted in integers."""
    found = []
    for one in dates:
        try:
            if integer != is_a(one, int):
                raise ValueError
            found.append(int(one) if integer else int(stamp(one, "D").astype(np.int64)))
        except (ValueError, OverflowError):
            wanted = "an integer, as time is counted in integers" if integer else "a date such as '2024-12-24'"
            raise ParameterError(f"{name} holds {shown(one)}; each of its dates is {wanted}.") from None
        if not integer and np.isnat(stamp(one, "D")):
            raise ParameterError(f"{name} holds {shown(one)}; each of its dates is a date such as '2024-12-24'.")
    return tuple(sorted(set(found)))


def stamp(one: Any, unit: str) -> np.datetime64:
    """A date as numpy counts it. One with a time zone counts by the clock on its wall, as rows do, not by that of Greenwich.

    >>> stamp("2024-12-25 00:00+01:00", "D"), stamp("2024-12-25", "D")
    (np.datetime64('2024-12-25'), np.datetime64('2024-12-25'))
    """
    try:
        read = one if isinstance(one, datetime) else datetime.fromisoformat(str(one))
        one = read.replace(tzinfo=None) if read.tzinfo is not None else one
    except ValueError:
        pass  # what numpy reads beside: a year, a month
    found: np.datetime64 = np.datetime64(str(one).replace(" ", "T")).astype(f"M8[{unit}]")
    return found
