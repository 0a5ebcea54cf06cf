"""Strict reading of suites: every key is known, every value of its kind, and an error says where it stands."""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from deepforecast.errors import ParameterError, format_list, format_value

T = TypeVar("T")
WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false", list: "a list", dict: "a mapping"}


def text_to_mapping(text: str, where: str, lines: str = "suite, tasks, ...") -> Mapping[str, Any]:
    """A YAML document that is a mapping; nothing in it is run, and no key stands twice. `lines`: what it holds, in words."""
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]  # yaml is not typed
        """Plain YAML, but that a key given twice is an error."""

    def mapping(loader: Any, node: Any) -> dict[Any, Any]:
        keys = [loader.construct_object(key, deep=True) for key, _ in node.value]
        twice = [key for at, key in enumerate(keys) if key in keys[:at]]
        if twice:
            line = node.start_mark.line + 1
            raise ParameterError(f"{where}: a key is given once; {format_list(twice)} stands twice in the mapping of line {line}.")
        return {key: loader.construct_object(value, deep=True) for key, (_, value) in zip(keys, node.value, strict=True)}

    Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)
    try:
        loader = Loader(text)
        try:
            found = loader.get_single_data()
        finally:
            loader.dispose()
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        if isinstance(error, ParameterError):
            raise
        told = format_value(" ".join(str(error).split()), 300)
        raise ParameterError(f"{where} is a YAML file; it could not be read: {told}.") from error
    if not isinstance(found, Mapping):
        raise ParameterError(f"{where} is a mapping of keys to values ({lines}); it holds {format_value(found)}.")
    return found


def made(cls: type[T], given: Any, where: str) -> T:
    """A dataclass from a mapping; `where` is how messages name it, such as `tasks[2]`."""
    if not isinstance(given, Mapping):
        raise ParameterError(f"{where} is a mapping; got {format_value(given)} ({type(given).__name__}).")
    kinds = typing.get_type_hints(cls)
    known = {one.name: one for one in fields(cls)}  # type: ignore[arg-type]  # a dataclass
    for key, value in given.items():
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there is {format_list(known, max_shown=30)}."
            raise ParameterError(f"{where} has no key {format_value(key)}; {hint}")
        if not is_of(value, kinds[key]):
            raise ParameterError(f"{where}.{key} is {word(kinds[key])}; got {format_value(value)} ({type(value).__name__}).")
    lacking = [n for n, one in known.items() if n not in given and one.default is MISSING and one.default_factory is MISSING]
    if lacking:
        raise ParameterError(f"{where} needs {format_list(lacking)}.")
    try:
        return cls(**{str(key): _plain(value, kinds[key]) for key, value in given.items()})
    except ParameterError as error:
        raise ParameterError(f"{where}: {error}") from None


def is_of(value: Any, kind: Any) -> bool:
    """Whether a plain value is of a kind, as annotations write it; a whole number is a number, True is none."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(is_of(value, one) for one in inner)
    if origin is tuple:
        return isinstance(value, list | tuple) and all(is_of(one, inner[0]) for one in value)
    if origin is not None and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(isinstance(key, str) for key in value)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def word(kind: Any) -> str:
    """A kind in words."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(word(one) for one in inner)
    if origin is tuple:
        return f"a list, each of it {word(inner[0])}"
    if origin is not None and issubclass(origin, Mapping):
        return "a mapping"
    return "null" if kind is type(None) else "anything" if kind is Any else WORDS.get(kind, str(kind))


def _plain(value: Any, kind: Any) -> Any:
    """Lists as tuples, where tuples are declared."""
    kinds = typing.get_args(kind) if typing.get_origin(kind) in (typing.Union, types.UnionType) else (kind,)
    tuples = any(typing.get_origin(one) is tuple for one in kinds)
    return tuple(value) if tuples and isinstance(value, Sequence) and not isinstance(value, str) else value
