"""What a file says of time and its parts is held against what a fit would have said: nothing of it is believed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from deepforecast.core.integer_bounds import MAX_SIMULATED_GAP, check_floats, check_gaps, check_integers
from deepforecast.core.manifest import InvalidManifest
from deepforecast.core.state import LearnedState
from deepforecast.data.components import ALWAYS, AUTO, EVENT, HOLIDAY, REGRESSOR, SEASON, ComponentSpec
from deepforecast.data.time_features import TimeFeatures
from deepforecast.errors import format_list, format_value

MAX_COLUMNS = 10_000  # columns of all parts together
MAX_SIMULATED_STEPS = 10_000  # steps since the fit of a series whose intervals are those of 1,000 sample paths
MAX_CLOCK = 2**62  # a clock that no stamp reaches
TYPE_CHECKS = {str: lambda element: type(element) is str, int: lambda element: type(element) is int and abs(element) < 10**8}
KINDS = (SEASON, HOLIDAY, EVENT, REGRESSOR)


def check_moments(record: Any, future_names: list[str], country: str | None) -> None:
    """`InvalidManifest` where a file's moments are none; `future_names`: columns known ahead, which conditions are among; `country`: whose
    holidays the model's parameters say."""
    names = [entry.name for entry in fields(TimeFeatures)]
    if not isinstance(record, dict) or set(record) != set(names):
        raise InvalidManifest(f"its time has the fields {format_list(names)}; found {format_value(record, 200)}")
    _check_number(record["start"], "start", -MAX_CLOCK, MAX_CLOCK, int)
    _check_number(record["span"], "span", 1, MAX_CLOCK, int)
    _check_number(record["n_values"], "n_values", 1, MAX_CLOCK, int)
    if record["country"] != country:
        raise InvalidManifest(f"the country of its holidays is {format_value(country)}; found {format_value(record['country'])}")
    if not isinstance(record["changepoints"], list) or len(record["changepoints"]) > MAX_COLUMNS:
        raise InvalidManifest(f"changes of its slope are a list; found {format_value(record['changes'], 200)}")
    for entry in record["changepoints"]:
        _check_number(entry, "a change of slope", -1e18, 1e18, float)
    check_parts(record["components"], future_names, record["country"])


def check_parts(components: Any, conditions: list[str] | None, country: str | None) -> int:
    """The columns of all parts together; `InvalidManifest` where a file's parts are none. `conditions`: columns that may be one."""
    if not isinstance(components, list):
        raise InvalidManifest(f"its parts are a list; found {format_value(components, 200)}")
    for component in components:
        _check_component(component, conditions, country)
    names, columns = {component["name"] for component in components}, sum(component["columns"] for component in components)
    if len(names) < len(components) or columns > MAX_COLUMNS:
        raise InvalidManifest("its parts have two of one name, or more columns than there can be")
    return int(columns)


def check_prophet(learned: LearnedState, country: str | None, growth: str) -> None:
    """`InvalidManifest` where the arrays of a file are not those of its parts, or a series stands too long after its fit."""
    columns = check_parts(learned["parts"], None, country)
    check_floats(learned, ["coefficients", "centre", "unit"], (columns,))
    check_floats(learned, ["delta", "changes"], learned["delta"].shape[1:2])
    check_floats(learned, ["rate", "offset", "size", "shift", "scale", "deviation", "objective", "steady"], ())
    for name in ("start", "end"):
        check_integers(learned, name, -MAX_CLOCK, MAX_CLOCK)
    check_integers(learned, "span", 0, MAX_CLOCK)
    check_integers(learned, "count", 0, MAX_CLOCK)
    series = learned.series
    if series is not None:
        steps_since_fit = (series.last - learned["end"]) // series.calendar.step
        check_gaps(replace(learned, by_series={"age": steps_since_fit}), MAX_SIMULATED_STEPS if growth == "logistic" else MAX_SIMULATED_GAP)


def _check_component(component: Any, future_names: list[str] | None, country: str | None) -> None:
    """One part: its fields, their types, and as many columns as they make."""
    expected = {field.name: field.type for field in fields(ComponentSpec)}
    if not isinstance(component, dict) or set(component) != set(expected):
        raise InvalidManifest(f"a part of it has the fields {format_list(list(expected), max_shown=20)}; found {format_value(component, 200)}")
    for name in ("name", "kind", "condition", "when", "standardize"):
        if not isinstance(component[name], str):
            raise InvalidManifest(f"{name} of a part is a text; found {format_value(component[name])}")
    for name in ("columns", "order"):
        _check_number(component[name], name, 0, MAX_COLUMNS, int)
    for name in ("prior_scale", "period", "min_span", "max_gap"):
        _check_number(component[name], name, 0.0, 1e300, float)
    _check_number(component["lower"], "lower", -366, 0, int)
    _check_number(component["upper"], "upper", 0, 366, int)
    if not isinstance(component["multiplicative"], bool) or component["kind"] not in KINDS or component["when"] not in (AUTO, ALWAYS):
        raise InvalidManifest(f"a part is one of {format_list(KINDS)}; found {format_value(component, 200)}")
    for name, expected_type in (("names", str), ("days", int)):
        if not isinstance(component[name], list) or not all(map(TYPE_CHECKS[expected_type], component[name])):
            raise InvalidManifest(f"{name} of a part is a list; found {format_value(component[name], 200)}")
    if component["condition"] and future_names is not None and component["condition"] not in future_names:
        raise InvalidManifest(f"the condition of a part is a column known ahead; found {format_value(component['condition'])}")
    if component["prior_scale"] <= 0.0 or component["columns"] != _n_columns(component) or (component["kind"] == HOLIDAY and country is None):
        raise InvalidManifest(f"a part has other columns than its kind makes, or no scale; found {format_value(component, 200)}")


def _n_columns(component: Mapping[str, Any]) -> int:
    if component["kind"] == SEASON:
        return 2 * int(component["order"]) if component["period"] > 0.0 and component["order"] > 0 else -1
    if component["kind"] == EVENT:
        return int(component["upper"]) - int(component["lower"]) + 1
    return len(component["names"]) or int(component["kind"] == REGRESSOR)


def _check_number(value: Any, label: str, minimum: float, maximum: float, expected_type: type) -> None:
    fits = type(value) is int or (expected_type is float and type(value) is float)
    if not fits or not math.isfinite(value) or not minimum <= value <= maximum:
        raise InvalidManifest(f"{label} of its time is a number from {minimum:g} to {maximum:g}; found {format_value(value)}")
