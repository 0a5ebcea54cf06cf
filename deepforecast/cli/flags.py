"""Command-line options made from the declared parameters of a model."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from deepforecast.cli.model_names import parse_pair
from deepforecast.cli.parameter_values import element_types, is_list, is_mapping, is_model, is_object, member_types, parse_value
from deepforecast.cli.parser import Parser
from deepforecast.core.params import Param, declared_params, refuse_unknown
from deepforecast.errors import ParameterError, format_list

PARAMETER_PREFIX = "parameter."  # of parameter names in the argparse namespace
DEFAULTS = {"on_failure": "fallback"}  # of the command line, where they differ from those of the models


def add_flags(parser: Parser, cls: type) -> None:
    """Add an option for each parameter; models and mappings are set with `--set`."""
    group = parser.add_argument_group(f"parameters of {cls.__name__}", (cls.__doc__ or "").partition("\n")[0].strip())
    by_set = {}
    for name, declared in declared_params(cls).items():
        parameter = replace(declared, default=DEFAULTS.get(name, declared.default))
        try:
            value_types = member_types(parameter.annotation)
            if str not in value_types and any(is_model(value_type) or is_mapping(value_type) for value_type in value_types):
                raise argparse.ArgumentError(None, "set with --set")
            group.add_argument(f"--{name.replace('_', '-')}", dest=PARAMETER_PREFIX + name, **_argparse_settings(parameter))
        except argparse.ArgumentError:  # also if the command has an option of that name
            by_set[name] = parameter
    set_help = "; ".join(f"{name}: {describe_parameter(parameter)}" for name, parameter in by_set.items())
    example = "horizon=12" if not by_set else f"{next(iter(by_set))}=..."
    group.add_argument(
        "--set", dest="set", metavar="NAME=VALUE", action="append", default=[],
        help=_escape_percent(f"set any parameter by name, e.g. {example}" + (f" ({set_help})" if set_help else "")),
    )  # fmt: skip
    parser.subject = cls.__name__
    parser.set_only = [f"--{name.replace('_', '-')}" for name in by_set]


def parse_parameters(values: argparse.Namespace, cls: type) -> dict[str, Any]:
    """Return the given parameters as keyword arguments of the constructor."""
    raw_values: dict[str, Any] = {
        name[len(PARAMETER_PREFIX) :]: value for name, value in vars(values).items() if name.startswith(PARAMETER_PREFIX)
    }
    for text in values.set:
        name, value = parse_pair(text)
        refuse_unknown(cls, {name: value})
        if name in raw_values:
            raise ParameterError(
                f"Each parameter must be given once; {name} is given more than once.", hint="Drop the repetitions."
            )
        raw_values[name] = value
    return {name: value if isinstance(value, bool) else parse_value(value, cls, name) for name, value in raw_values.items()}


def describe_parameter(parameter: Param) -> str:
    """Return meaning, type, range and default of a parameter.

    Examples
    --------
    >>> from deepforecast import SeasonalNaive
    >>> describe_parameter(declared_params(SeasonalNaive)["season_length"])
    "number of time steps per season; 'auto': inferred from the frequency of the data (auto or an integer of at least 1; default auto)"
    """
    values = describe_values(parameter)
    default = "required" if parameter.required else f"default {_format_value(parameter.default)}"
    return f"{parameter.full_help.removesuffix('.')} ({'; '.join(clause for clause in (values, default) if clause)})"


def _argparse_settings(parameter: Param) -> Mapping[str, Any]:
    """The keyword arguments of `add_argument` for a parameter: a switch for booleans, otherwise one
    value or several."""
    value_types = {
        value_type for value_type in member_types(parameter.annotation) if value_type is not type(None) and not is_object(value_type)
    }
    shared = {"default": argparse.SUPPRESS, "help": _escape_percent(describe_parameter(parameter))}
    if value_types == {bool}:
        return {**shared, "action": argparse.BooleanOptionalAction}
    metavar = (
        "{" + ",".join(map(_format_value, parameter.choices)) + "}" if parameter.choices and value_types <= {str} else "VALUE"
    )
    return {**shared, "metavar": metavar, **({"nargs": "+"} if any(map(is_list, value_types)) else {})}


def describe_values(parameter: Param) -> str:
    """Describe the values that a parameter takes; empty for parameters of any type."""
    words = [_format_value(choice) for choice in parameter.choices]
    for value_type in member_types(parameter.annotation):
        is_described = any(type(choice) is value_type for choice in parameter.choices)
        if is_described or value_type in (type(None), Any) or is_object(value_type):
            continue
        word = _TYPE_NAMES.get(value_type) or (
            "a model"
            if is_model(value_type)
            else "a list" + ", each number or none" * (type(None) in element_types(value_type))
            if is_list(value_type)
            else "JSON"
            if is_mapping(value_type)
            else str(value_type)
        )
        limits = _describe_range(parameter) if value_type in (int, float) or is_list(value_type) else ""
        words.append(word + (" of values" if limits and is_list(value_type) else "") + limits)
    return format_list(words, max_shown=len(words)) if len(words) < 2 else ", ".join(words[:-1]) + " or " + words[-1]


_TYPE_NAMES: dict[Any, str] = {int: "an integer", float: "a number", str: "text", bool: "true or false"}


def _describe_range(parameter: Param) -> str:
    """The bounds of a parameter as text with a leading space, e.g. " of at least 1 and below 5"; empty
    without bounds."""
    bounds = (
        ("of at least", parameter.at_least),
        ("above", parameter.above),
        ("of at most", parameter.at_most),
        ("below", parameter.below),
    )
    limits = [f"{word} {bound if isinstance(bound, int) else f'{bound:g}'}" for word, bound in bounds if bound is not None]
    return f" {' and '.join(limits)}" if limits else ""


def _format_value(value: Any) -> str:
    return "none" if value is None else str(value)


def _escape_percent(text: str) -> str:
    # argparse applies % formatting to help texts
    return text.replace("%", "%%")
