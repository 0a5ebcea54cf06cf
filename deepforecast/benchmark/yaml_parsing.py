"""Strict parsing of YAML files into dataclasses: unknown keys and wrong types raise errors with their location."""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from deepforecast.errors import ParameterError, format_list, format_value

T = TypeVar("T")
TYPE_NAMES = {int: "an integer", float: "a number", str: "text", bool: "true or false", list: "a list", dict: "a mapping"}


def parse_mapping(text: str, where: str, lines: str = "suite, tasks, ...") -> Mapping[str, Any]:
    """Parse a YAML mapping with the safe loader.

    Parameters
    ----------
    text : str
        Contents of the file.
    where : str
        Name of the file in messages.
    lines : str
        Description of the expected keys in messages.

    Raises
    ------
    ParameterError
        If the text is not YAML, not a mapping, or has duplicate keys.
    """
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]  # yaml is not typed
        """Safe loader that raises on duplicate keys."""

    def mapping(loader: Any, node: Any) -> dict[Any, Any]:
        keys = [loader.construct_object(key, deep=True) for key, _ in node.value]
        duplicates = [key for index, key in enumerate(keys) if key in keys[:index]]
        if duplicates:
            line = node.start_mark.line + 1
            raise ParameterError(
                f"{where}: keys must be unique, got more than once in the mapping of line {line}: {format_list(duplicates)}."
            )
        return {key: loader.construct_object(value, deep=True) for key, (_, value) in zip(keys, node.value, strict=True)}

    Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)
    try:
        loader = Loader(text)
        try:
            document = loader.get_single_data()
        finally:
            loader.dispose()
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        if isinstance(error, ParameterError):
            raise
        message = format_value(" ".join(str(error).split()), 300)
        raise ParameterError(f"{where} must be a valid YAML file: {message}.") from error
    if not isinstance(document, Mapping):
        raise ParameterError(f"{where} must be a mapping ({lines}), got {format_value(document)}.")
    return document


def parse_dataclass(cls: type[T], mapping: Any, where: str) -> T:
    """Build a dataclass from a mapping.

    Parameters
    ----------
    cls : type
        The dataclass.
    mapping : mapping
        Values of its fields.
    where : str
        Location in messages, e.g. `tasks[2]`.

    Raises
    ------
    ParameterError
        If a key is unknown or missing, or a value has the wrong type.
    """
    if not isinstance(mapping, Mapping):
        raise ParameterError(f"{where} must be a mapping, got {format_value(mapping)} ({type(mapping).__name__}).")
    type_hints = typing.get_type_hints(cls)
    known_fields = {field_spec.name: field_spec for field_spec in fields(cls)}  # type: ignore[arg-type]  # a dataclass
    for key, value in mapping.items():
        if key not in known_fields:
            close_matches = difflib.get_close_matches(str(key), known_fields, n=1)
            hint = f"did you mean {close_matches[0]}?" if close_matches else f"use {format_list(known_fields, max_shown=30)}."
            raise ParameterError(f"{where} has no key {format_value(key)}; {hint}")
        if not matches_type(value, type_hints[key]):
            raise ParameterError(
                f"{where}.{key} must be {type_name(type_hints[key])}, got {format_value(value)} ({type(value).__name__})."
            )
    missing = [
        field_name
        for field_name, field_spec in known_fields.items()
        if field_name not in mapping and field_spec.default is MISSING and field_spec.default_factory is MISSING
    ]
    if missing:
        raise ParameterError(f"{where} must have {format_list(missing)}.")
    try:
        return cls(**{str(key): _lists_to_tuples(value, type_hints[key]) for key, value in mapping.items()})
    except ParameterError as error:
        raise ParameterError(f"{where}: {error}") from None


def matches_type(value: Any, annotation: Any) -> bool:
    """Whether a value of YAML matches a type annotation; integers match float, but booleans do not match int."""
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation is Any:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(matches_type(value, member) for member in inner)
    if origin is tuple:
        return isinstance(value, list | tuple) and all(matches_type(element, inner[0]) for element in value)
    if origin is not None and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(isinstance(key, str) for key in value)
    if annotation is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, annotation) and (annotation is bool or not isinstance(value, bool))


def type_name(annotation: Any) -> str:
    """Return a type annotation in words, for messages."""
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(type_name(member) for member in inner)
    if origin is tuple:
        return f"a list, each element {type_name(inner[0])}"
    if origin is not None and issubclass(origin, Mapping):
        return "a mapping"
    return (
        "null" if annotation is type(None) else "anything" if annotation is Any else TYPE_NAMES.get(annotation, str(annotation))
    )


def _lists_to_tuples(value: Any, annotation: Any) -> Any:
    """Convert a list to a tuple if the annotation is a tuple."""
    members = typing.get_args(annotation) if typing.get_origin(annotation) in (typing.Union, types.UnionType) else (annotation,)
    tuples = any(typing.get_origin(member) is tuple for member in members)
    return tuple(value) if tuples and isinstance(value, Sequence) and not isinstance(value, str) else value
