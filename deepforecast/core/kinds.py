"""Annotations of hyperparameters read as kinds of values: what is one, and what it is called in a message."""

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

NONE = type(None)
NAMES = {int: "an integer", float: "a finite number", str: "text", bool: "True or False", NONE: "None"}
MANY = {int: "integers", float: "finite numbers", str: "texts"}


def alternatives(annotation: Any) -> tuple[Any, ...]:
    """The members of a union, `None` as its type; one annotation alone is its only member.

    >>> alternatives(int | list[int] | None) == (int, list[int], type(None))
    True
    """
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return tuple(kind for member in typing.get_args(annotation) for kind in alternatives(member))
    if typing.get_origin(annotation) is typing.Annotated:
        return alternatives(typing.get_args(annotation)[0])
    return (NONE if annotation is None else annotation,)


def is_a(value: Any, kind: Any) -> bool:
    """Whether a value is of a kind. True and False are no numbers, a list does for a tuple, numpy's numbers for Python's."""
    origin, inner = typing.get_origin(kind) or kind, typing.get_args(kind)
    if origin is Any:
        return True
    if origin is typing.Literal:
        return is_one_of(value, inner)
    if origin is bool:
        return isinstance(value, (bool, np.bool_))
    if origin is int:
        return isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if origin is float:
        return isinstance(value, numbers.Real) and not isinstance(value, bool)
    if origin in (list, tuple, Sequence):
        return isinstance(value, (list, tuple)) and _items_are(value, inner, fixed=origin is tuple)
    if origin in (dict, Mapping):
        return isinstance(value, Mapping) and (not inner or _pairs_are(value, *inner))
    if origin is type:
        return isinstance(value, type) and (not inner or issubclass(value, inner))
    return isinstance(value, origin)


def is_one_of(value: Any, choices: Sequence[Any]) -> bool:
    """Whether a value is among the choices, and of the kind of the choice: True is not 1, 1.0 is not either."""
    return any(value is one or (is_a(value, type(one)) and bool(value == one)) for one in choices)


def name_of(kind: Any, bounds: str = "") -> str:
    """A kind as it is called in messages; `bounds` are said of its numbers.

    >>> name_of(list[int], " of at least 1"), name_of(str), name_of(tuple[float, float]), name_of(tuple[int | str, int])
    ('a list of integers of at least 1', 'text', 'a tuple of 2 finite numbers', 'a tuple (an integer or text, an integer)')
    """
    origin, inner = typing.get_origin(kind) or kind, typing.get_args(kind)
    if origin in (int, float):
        return NAMES[origin] + bounds
    if origin is typing.Literal:
        return listed(inner)
    if origin is tuple and Ellipsis not in inner and len(set(inner)) > 1:
        places = (" or ".join(map(name_of, alternatives(one))) for one in inner)
        return f"a tuple ({', '.join(places)})" + (f", its numbers{bounds}" if bounds else "")
    if origin in (list, tuple, Sequence):
        items = [one for one in inner if one is not Ellipsis]
        count = f"{len(items)} " if origin is tuple and Ellipsis not in inner and inner else ""
        kinds = [one for item in items for one in alternatives(item) if one is not Any]
        members = list(dict.fromkeys(MANY.get(one) or name_of(one) for one in kinds))
        about = bounds if set(items) <= {int, float} else ""
        return f"a {'tuple' if origin is tuple else 'list'}" + (f" of {count}{' or '.join(members)}{about}" if members else "")
    if origin in (dict, Mapping):
        return "a dict"
    return NAMES.get(origin) or f"a {getattr(origin, '__name__', str(origin))}"


def listed(choices: Sequence[Any]) -> str:
    """Choices as they are written in a message: 'a', 'b' or None.

    >>> listed(("a", "b", None))
    "'a', 'b' or None"
    """
    words = [repr(one) for one in choices]
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def resolved(annotation: Any, cls: type, name: str) -> Any:
    """The annotation of a parameter as an object, checked to be one that values can be held against."""
    if isinstance(annotation, str):
        module = sys.modules.get(cls.__module__)
        names = {**vars(builtins), **vars(typing), **(vars(module) if module is not None else {}), cls.__name__: cls}
        try:
            annotation = typing.get_type_hints(types.SimpleNamespace(__annotations__={name: annotation}), names)[name]
        except (NameError, AttributeError, SyntaxError, TypeError) as error:
            raise ParameterTypeError(
                f"{cls.__name__}.{name}: the annotation {annotation!r} has to be understood where the class is made ({error}). "
                "Import its names at the top of the module."
            ) from error
    for kind in alternatives(annotation):
        origin = typing.get_origin(kind) or kind
        if not (inspect.isclass(origin) or origin in (Any, typing.Literal)):
            raise ParameterTypeError(
                f"{cls.__name__}.{name}: no value can be held against the annotation {kind!r}. Use types, unions or Literal."
            )
    return annotation


def _items_are(values: Sequence[Any], inner: tuple[Any, ...], fixed: bool) -> bool:
    if not inner:
        return True
    if fixed and Ellipsis not in inner:
        return len(values) == len(inner) and all(_is_any(value, kind) for value, kind in zip(values, inner, strict=True))
    return all(_is_any(value, inner[0]) for value in values)


def _pairs_are(values: Mapping[Any, Any], key: Any, held: Any) -> bool:
    return all(_is_any(name, key) and _is_any(value, held) for name, value in values.items())


def _is_any(value: Any, annotation: Any) -> bool:
    return any(is_a(value, kind) for kind in alternatives(annotation))
