"""Parsing of text to the value of a declared parameter; the constructor of the model checks its range."""

from __future__ import annotations

import json
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from deepforecast.core.forecaster import Forecaster
from deepforecast.core.params import Param, declared_params, union_members
from deepforecast.errors import ParameterError, format_value
from deepforecast.nn.names import Head

NO_NUMBER = object()
BOOLEAN_WORDS = {"true": True, "false": False, "yes": True, "no": False}


def parse_value(text: str | Sequence[str], cls: type, name: str) -> Any:
    """Parse the value of parameter `name`; text that cannot be parsed is returned for the model to reject."""
    parameter = declared_params(cls)[name]
    words = [text] if isinstance(text, str) else list(text)
    value_types = member_types(parameter.annotation)
    list_types = [value_type for value_type in value_types if is_list(value_type)]
    if len(words) > 1 and list_types:
        return [_parse_single(word, element_types(list_types[0]), parameter) for word in words]
    if len(words) > 1:
        raise ParameterError(f"{name} must be a single value, got '{format_value(' '.join(words))}'.")
    for choice in parameter.choices:
        if words[0].lower() == str(choice).lower():
            return choice
    return _parse_single(words[0], value_types, parameter)


def member_types(annotation: Any) -> tuple[Any, ...]:
    """Return the member types of an annotation; a `Literal` counts as the types of its values."""
    members: dict[Any, None] = {}
    for member in union_members(annotation):
        is_literal = typing.get_origin(member) is typing.Literal
        members |= dict.fromkeys(map(type, typing.get_args(member)) if is_literal else (member,))
    return tuple(members)


def is_list(value_type: Any) -> bool:
    """Whether the type is a list, tuple or sequence."""
    return (typing.get_origin(value_type) or value_type) in (list, tuple, Sequence)


def is_model(value_type: Any) -> bool:
    """Whether the type is a model class."""
    return isinstance(value_type, type) and issubclass(value_type, Forecaster)


def is_object(value_type: Any) -> bool:
    """Whether the type is that of functions or heads of networks, which text cannot express: only their names can be."""
    return typing.get_origin(value_type) is Callable or value_type is Head


def is_mapping(value_type: Any) -> bool:
    """Whether the type is a mapping."""
    origin = typing.get_origin(value_type) or value_type
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _parse_single(text: str, value_types: Sequence[Any], parameter: Param) -> Any:
    """Convert one text to the first of `value_types` that fits, in the order None, bool, int, float,
    list, dict, model, str."""
    if type(None) in value_types and text.lower() == "none":
        return None
    if bool in value_types and text.lower() in BOOLEAN_WORDS:
        return BOOLEAN_WORDS[text.lower()]
    for value_type in (int, float):
        if value_type in value_types and (parsed_number := _parse_number(text, value_type)) is not NO_NUMBER:
            return parsed_number
    for value_type in value_types:
        if is_list(value_type):
            return [
                _parse_single(word.strip(), element_types(value_type), parameter)
                for word in text.strip("[]() ").split(",")
                if word.strip()
            ]
        if is_mapping(value_type) and (str not in value_types or text.lstrip().startswith("{")):
            return _parse_mapping(text, parameter.name)
        if is_model(value_type):
            from deepforecast.cli.model_names import build_model

            return build_model(text)
    return text


def element_types(value_type: Any) -> tuple[Any, ...]:
    """Return the types of the elements of a list type."""
    arguments = [arg for arg in typing.get_args(value_type) if arg is not Ellipsis]
    return tuple(member for arg in arguments for member in member_types(arg)) or (int, float, str)


def _parse_number(text: str, number_type: type) -> Any:
    try:
        return number_type(text)
    except ValueError:
        return NO_NUMBER


def _parse_mapping(text: str, name: str) -> Any:
    """Parse a JSON object; `name`: the parameter, for messages."""
    try:
        mapping = json.loads(text)
    except ValueError:
        mapping = None
    if not isinstance(mapping, dict):
        raise ParameterError(f"""{name} must be a JSON object, e.g. '{{"key": 1}}', got {format_value(text)!r}.""")
    return mapping
