"""What a file says of time and its parts is held against what a fit would have said: nothing of it is believed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from deepforecast.core.bounds import LONGEST_STEPPED_GAP, check_floats, check_gaps, check_integers
from deepforecast.core.manifest import Unfit
from deepforecast.core.state import Learned
from deepforecast.data.moments import Moments
from deepforecast.data.parts import ALWAYS, AUTO, EVENT, HOLIDAY, REGRESSOR, SEASON, Part
from deepforecast.errors import shown, some

WIDEST = 10_000  # columns of all parts together
LONGEST_SAMPLED = 10_000  # steps since the fit of a series whose intervals are those of 1,000 sample paths
FAR = 2**62  # a clock that no stamp reaches
KEPT = {str: lambda one: type(one) is str, int: lambda one: type(one) is int and abs(one) < 10**8}
KINDS = (SEASON, HOLIDAY, EVENT, REGRESSOR)


def checked(said: Any, numbers: list[str], country: str | None) -> None:
    """`Unfit` where a file's moments are none; `numbers`: columns known ahead, which conditions are among; `country`: whose
    holidays the model's parameters say."""
    names = [one.name for one in fields(Moments)]
    if not isinstance(said, dict) or set(said) != set(names):
        raise Unfit(f"its time has the fields {some(names)}; found {shown(said, 200)}")
    _number(said["start"], "start", -FAR, FAR, int)
    _number(said["span"], "span", 1, FAR, int)
    _number(said["values"], "values", 1, FAR, int)
    if said["country"] != country:
        raise Unfit(f"the country of its holidays is {shown(country)}; found {shown(said['country'])}")
    if not isinstance(said["changes"], list) or len(said["changes"]) > WIDEST:
        raise Unfit(f"changes of its slope are a list; found {shown(said['changes'], 200)}")
    for one in said["changes"]:
        _number(one, "a change of slope", -1e18, 1e18, float)
    check_parts(said["parts"], numbers, said["country"])


def check_parts(parts: Any, conditions: list[str] | None, country: str | None) -> int:
    """The columns of all parts together; `Unfit` where a file's parts are none. `conditions`: columns that may be one."""
    if not isinstance(parts, list):
        raise Unfit(f"its parts are a list; found {shown(parts, 200)}")
    for part in parts:
        _part(part, conditions, country)
    names, columns = {part["name"] for part in parts}, sum(part["columns"] for part in parts)
    if len(names) < len(parts) or columns > WIDEST:
        raise Unfit("its parts have two of one name, or more columns than there can be")
    return int(columns)


def check_prophet(learned: Learned, country: str | None, growth: str) -> None:
    """`Unfit` where the arrays of a file are not those of its parts, or a series stands too long after its fit."""
    columns = check_parts(learned["parts"], None, country)
    check_floats(learned, ["coefficients", "centre", "unit"], (columns,))
    check_floats(learned, ["delta", "changes"], learned["delta"].shape[1:2])
    check_floats(learned, ["rate", "offset", "size", "shift", "scale", "deviation", "objective", "steady"], ())
    for name in ("start", "end"):
        check_integers(learned, name, -FAR, FAR)
    check_integers(learned, "span", 0, FAR)
    check_integers(learned, "count", 0, FAR)
    series = learned.series
    if series is not None:
        since = (series.last - learned["end"]) // series.calendar.step
        check_gaps(replace(learned, by_series={"age": since}), LONGEST_SAMPLED if growth == "logistic" else LONGEST_STEPPED_GAP)


def _part(said: Any, numbers: list[str] | None, country: str | None) -> None:
    """One part: its fields, their types, and as many columns as they make."""
    wanted = {one.name: one.type for one in fields(Part)}
    if not isinstance(said, dict) or set(said) != set(wanted):
        raise Unfit(f"a part of it has the fields {some(list(wanted), most=20)}; found {shown(said, 200)}")
    for name in ("name", "kind", "condition", "when", "standardize"):
        if not isinstance(said[name], str):
            raise Unfit(f"{name} of a part is a text; found {shown(said[name])}")
    for name in ("columns", "order"):
        _number(said[name], name, 0, WIDEST, int)
    for name in ("prior_scale", "period", "span", "apart"):
        _number(said[name], name, 0.0, 1e300, float)
    _number(said["lower"], "lower", -366, 0, int)
    _number(said["upper"], "upper", 0, 366, int)
    if not isinstance(said["multiplies"], bool) or said["kind"] not in KINDS or said["when"] not in (AUTO, ALWAYS):
        raise Unfit(f"a part is one of {some(KINDS)}; found {shown(said, 200)}")
    for name, kind in (("names", str), ("days", int)):
        if not isinstance(said[name], list) or not all(map(KEPT[kind], said[name])):
            raise Unfit(f"{name} of a part is a list; found {shown(said[name], 200)}")
    if said["condition"] and numbers is not None and said["condition"] not in numbers:
        raise Unfit(f"the condition of a part is a column known ahead; found {shown(said['condition'])}")
    if said["prior_scale"] <= 0.0 or said["columns"] != _columns(said) or (said["kind"] == HOLIDAY and country is None):
        raise Unfit(f"a part has other columns than its kind makes, or no scale; found {shown(said, 200)}")


def _columns(said: Mapping[str, Any]) -> int:
    if said["kind"] == SEASON:
        return 2 * int(said["order"]) if said["period"] > 0.0 and said["order"] > 0 else -1
    if said["kind"] == EVENT:
        return int(said["upper"]) - int(said["lower"]) + 1
    return len(said["names"]) or int(said["kind"] == REGRESSOR)


def _number(value: Any, what: str, least: float, most: float, kind: type) -> None:
    fits = type(value) is int or (kind is float and type(value) is float)
    if not fits or not math.isfinite(value) or not least <= value <= most:
        raise Unfit(f"{what} of its time is a number from {least:g} to {most:g}; found {shown(value)}")
