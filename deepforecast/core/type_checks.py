"""Run-time checks of values against the type annotations of hyperparameters, and names of types for messages."""

from __future__ import annotations

import builtins
import inspect
import numbers
import sys
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from deepforecast.errors import ParameterTypeError

NONE_TYPE = type(None)
TYPE_NAMES = {int: "an integer", float: "a finite number", str: "a string", bool: "True or False", NONE_TYPE: "None"}
PLURAL_NAMES = {int: "integers", float: "finite numbers", str: "strings"}


def union_members(annotation: Any) -> tuple[Any, ...]:
    """The members of a union, `None` as its type. Any other annotation is its own only member.

    >>> union_members(int | list[int] | None) == (int, list[int], type(None))
    True
    """
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return tuple(inner_member for member in typing.get_args(annotation) for inner_member in union_members(member))
    if typing.get_origin(annotation) is typing.Annotated:
        return union_members(typing.get_args(annotation)[0])
    return (NONE_TYPE if annotation is None else annotation,)


def is_instance(value: Any, expected_type: Any) -> bool:
    """Whether a value matches a type, including the elements of lists, tuples and mappings.

    Unlike `isinstance`, True and False are not numbers, a list matches a tuple type, and numpy
    numbers match Python's.
    """
    origin, inner = typing.get_origin(expected_type) or expected_type, typing.get_args(expected_type)
    if origin is Any:
        return True
    if origin is typing.Literal:
        return is_choice(value, inner)
    if origin is bool:
        return isinstance(value, (bool, np.bool_))
    if origin is int:
        return isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if origin is float:
        return isinstance(value, numbers.Real) and not isinstance(value, bool)
    if origin in (list, tuple, Sequence):
        return isinstance(value, (list, tuple)) and _elements_match(value, inner, is_tuple_type=origin is tuple)
    if origin in (dict, Mapping):
        return isinstance(value, Mapping) and (not inner or _pairs_match(value, *inner))
    if origin is type:
        return isinstance(value, type) and (not inner or issubclass(value, inner))
    return isinstance(value, origin)


def is_choice(value: Any, choices: Sequence[Any]) -> bool:
    """Whether a value equals one of the choices and matches its type: neither True nor 1.0 matches 1."""
    return any(value is choice or (is_instance(value, type(choice)) and bool(value == choice)) for choice in choices)


def type_name(expected_type: Any, bounds: str = "") -> str:
    """The name of a type in messages; `bounds` follows the names of numeric types.

    >>> type_name(list[int], " of at least 1"), type_name(str), type_name(tuple[float, float])
    ('a list of integers of at least 1', 'a string', 'a tuple of 2 finite numbers')
    >>> type_name(tuple[int | str, int]), type_name(dict[str, dict[str, int]])
    ('a tuple (an integer or a string, an integer)', 'a dict of dicts')
    """
    origin, inner = typing.get_origin(expected_type) or expected_type, typing.get_args(expected_type)
    if origin in (int, float):
        return TYPE_NAMES[origin] + bounds
    if origin is typing.Literal:
        return format_choices(inner)
    is_fixed_tuple = origin is tuple and Ellipsis not in inner
    if is_fixed_tuple and (len(set(inner)) > 1 or any(len(union_members(inner_type)) > 1 for inner_type in inner)):
        positions = (" or ".join(map(type_name, union_members(inner_type))) for inner_type in inner)
        return f"a tuple ({', '.join(positions)})" + (f", its numbers{bounds}" if bounds else "")
    if origin in (list, tuple, Sequence):
        element_types = [inner_type for inner_type in inner if inner_type is not Ellipsis]
        container = "a tuple" if origin is tuple else "a list"
        length_text = f"{len(element_types)} " if origin is tuple and Ellipsis not in inner and inner else ""
        alternatives = [
            inner_type for element_type in element_types for inner_type in union_members(element_type) if inner_type is not Any
        ]
        names = list(dict.fromkeys(PLURAL_NAMES.get(inner_type) or type_name(inner_type) for inner_type in alternatives))
        element_bounds = bounds if set(element_types) <= {int, float} else ""
        return container + (f" of {length_text}{' or '.join(names)}{element_bounds}" if names else "")
    if origin in (dict, Mapping):
        value_type = inner[1] if len(inner) > 1 else Any
        is_nested = (typing.get_origin(value_type) or value_type) in (dict, Mapping)
        return "a dict of dicts" if is_nested else "a dict"
    name = getattr(origin, "__name__", str(origin))
    return TYPE_NAMES.get(origin) or f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def format_choices(choices: Sequence[Any]) -> str:
    """Choices as written in messages.

    >>> format_choices(("a", "b", None))
    "'a', 'b' or None"
    """
    return join_alternatives([repr(choice) for choice in choices])


def join_alternatives(words: Sequence[str]) -> str:
    """The words separated by commas, the last one by "or".

    >>> join_alternatives(["'auto'", "an integer", "None"])
    "'auto', an integer or None"
    """
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def resolve_annotation(annotation: Any, cls: type, name: str) -> Any:
    """The annotation of a parameter, evaluated if it is a string; only types, unions and `Literal` are allowed."""
    if isinstance(annotation, str):
        module = sys.modules.get(cls.__module__)
        names = {**vars(builtins), **vars(typing), **(vars(module) if module is not None else {}), cls.__name__: cls}
        try:
            annotation = typing.get_type_hints(types.SimpleNamespace(__annotations__={name: annotation}), names)[name]
        except (NameError, AttributeError, SyntaxError, TypeError) as error:
            raise ParameterTypeError(
                f"{cls.__name__}.{name}: the annotation {annotation!r} cannot be evaluated ({error}). "
                "Import its names at the top of the module."
            ) from error
    for member in union_members(annotation):
        origin = typing.get_origin(member) or member
        if not (inspect.isclass(origin) or origin in (Any, typing.Literal)):
            raise ParameterTypeError(
                f"{cls.__name__}.{name}: values cannot be checked against the annotation {member!r}. "
                "Use types, unions or Literal."
            )
    return annotation


def _elements_match(values: Sequence[Any], element_types: tuple[Any, ...], is_tuple_type: bool) -> bool:
    """Whether the elements match: of a tuple type, one type per position, unless it ends with `...`; else the first type."""
    if not element_types:
        return True
    if is_tuple_type and Ellipsis not in element_types:
        return len(values) == len(element_types) and all(
            _matches(value, expected_type) for value, expected_type in zip(values, element_types, strict=True)
        )
    return all(_matches(value, element_types[0]) for value in values)


def _pairs_match(values: Mapping[Any, Any], key_type: Any, value_type: Any) -> bool:
    return all(_matches(key, key_type) and _matches(value, value_type) for key, value in values.items())


def _matches(value: Any, annotation: Any) -> bool:
    return any(is_instance(value, member) for member in union_members(annotation))
