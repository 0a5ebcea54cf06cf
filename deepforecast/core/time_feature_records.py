"""Validation of time features and components from untrusted model files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from deepforecast.core.encoding import InvalidManifest
from deepforecast.data.components import ALWAYS, AUTO, EVENT, HOLIDAY, REGRESSOR, SEASON, ComponentSpec, TimeFeatures
from deepforecast.errors import format_list, format_value

MAX_COLUMNS = 10_000  # columns of all components together
MAX_CLOCK = 2**62  # beyond any timestamp
TYPE_CHECKS = {str: lambda element: type(element) is str, int: lambda element: type(element) is int and abs(element) < 10**8}
KINDS = (SEASON, HOLIDAY, EVENT, REGRESSOR)


def check_time_features(record: Any, future_names: list[str], country: str | None) -> None:
    """Raise `InvalidManifest` unless the record of time features in a file is valid.

    `future_names`: future covariates, which may be conditions; `country`: that of the parameters of the model.
    """
    names = [entry.name for entry in fields(TimeFeatures)]
    if not isinstance(record, dict) or set(record) != set(names):
        raise InvalidManifest(
            f"the time features must have the fields {format_list(names, max_shown=9)}, got {format_value(record, 200)}"
        )
    _check_number(record["start"], "start", -MAX_CLOCK, MAX_CLOCK, int)
    _check_number(record["span"], "span", 1, MAX_CLOCK, int)
    _check_number(record["n_values"], "n_values", 1, MAX_CLOCK, int)
    if record["country"] != country:
        raise InvalidManifest(
            f"'country' of the time features must be {format_value(country)}, as in the parameters, got "
            f"{format_value(record['country'])}"
        )
    if not isinstance(record["changepoints"], list) or len(record["changepoints"]) > MAX_COLUMNS:
        raise InvalidManifest(
            f"'changepoints' of the time features must be a list of at most {MAX_COLUMNS:,} numbers, got "
            f"{format_value(record['changepoints'], 200)}"
        )
    for entry in record["changepoints"]:
        _check_number(entry, "changepoints", -1e18, 1e18, float)
    check_components(record["components"], future_names, record["country"])


def check_components(components: Any, conditions: list[str] | None, country: str | None) -> int:
    """Return the number of columns of all components; `InvalidManifest` if a component is invalid.

    `conditions`: covariates that may be conditions; None: conditions are not checked.
    """
    if not isinstance(components, list):
        raise InvalidManifest(f"the components of the model must be a list, got {format_value(components, 200)}")
    for component in components:
        _check_component(component, conditions, country)
    names, columns = {component["name"] for component in components}, sum(component["columns"] for component in components)
    if len(names) < len(components) or columns > MAX_COLUMNS:
        raise InvalidManifest(
            f"the components of the model must have unique names and at most {MAX_COLUMNS:,} columns together, got "
            f"{len(components)} components with {len(names)} different names and {columns:,} columns"
        )
    return int(columns)


def _check_component(component: Any, future_names: list[str] | None, country: str | None) -> None:
    """Raise `InvalidManifest` unless fields, types and number of columns of a component are valid."""
    expected = {field.name: field.type for field in fields(ComponentSpec)}
    if not isinstance(component, dict) or set(component) != set(expected):
        raise InvalidManifest(
            f"a component must have the fields {format_list(list(expected), max_shown=20)}, got "
            f"{format_value(component, 200)}"
        )
    for name in ("name", "kind", "condition", "when", "standardize"):
        if not isinstance(component[name], str):
            raise InvalidManifest(
                f"{name!r} of a component must be a string, got {format_value(component[name])}"
            )
    for name in ("columns", "order"):
        _check_number(component[name], name, 0, MAX_COLUMNS, int)
    for name in ("prior_scale", "period", "min_span", "max_gap"):
        _check_number(component[name], name, 0.0, 1e300, float)
    _check_number(component["lower"], "lower", -366, 0, int)
    _check_number(component["upper"], "upper", 0, 366, int)
    is_known = component["kind"] in KINDS and component["when"] in (AUTO, ALWAYS)
    if not isinstance(component["multiplicative"], bool) or not is_known:
        raise InvalidManifest(
            f"a component must have 'kind' from {format_list(KINDS)}, 'when' from {format_list((AUTO, ALWAYS))} and a bool as "
            f"'multiplicative', got {format_value(component, 200)}"
        )
    for name, expected_type in (("names", str), ("days", int)):
        if not isinstance(component[name], list) or not all(map(TYPE_CHECKS[expected_type], component[name])):
            raise InvalidManifest(
                f"{name!r} of a component must be a list of {expected_type.__name__}, got {format_value(component[name], 200)}"
            )
    if component["condition"] and future_names is not None and component["condition"] not in future_names:
        raise InvalidManifest(
            "'condition' of a component must be a future covariate, got "
            f"{format_value(component['condition'])}"
        )
    if (
        component["prior_scale"] <= 0.0
        or component["columns"] != _n_columns(component)
        or (component["kind"] == HOLIDAY and country is None)
    ):
        raise InvalidManifest(
            "a component must have the number of columns of its kind, a positive prior_scale, and a country if it has "
            f"holidays, got {format_value(component, 200)}"
        )


def _n_columns(component: Mapping[str, Any]) -> int:
    """Number of columns of a component of its kind; -1 for an invalid season."""
    if component["kind"] == SEASON:
        return 2 * int(component["order"]) if component["period"] > 0.0 and component["order"] > 0 else -1
    if component["kind"] == EVENT:
        return int(component["upper"]) - int(component["lower"]) + 1
    return len(component["names"]) or int(component["kind"] == REGRESSOR)


def _check_number(value: Any, label: str, minimum: float, maximum: float, expected_type: type) -> None:
    """Raise `InvalidManifest` unless a value is a finite number of this type (integers are floats, too) in the range."""
    has_type = type(value) is int or (expected_type is float and type(value) is float)
    if not has_type or not math.isfinite(value) or not minimum <= value <= maximum:
        expected = "an integer" if expected_type is int else "a number"
        raise InvalidManifest(
            f"{label!r} of the time features or a component must be {expected} from {minimum:g} to {maximum:g}, got "
            f"{format_value(value)}"
        )
