"""Text to the value of a declared parameter. Ranges are not looked at here: the model's constructor does that."""

from __future__ import annotations

import json
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from deepforecast.core.forecaster import Forecaster
from deepforecast.core.params import Param, declared_params
from deepforecast.core.type_checks import union_members
from deepforecast.errors import ParameterError, format_value

NOTHING = object()
WORDS = {"true": True, "false": False, "yes": True, "no": False}


def value_of(text: str | Sequence[str], cls: type, name: str) -> Any:
    """What `text` means for parameter `name` of a model; text that means nothing is left for the model to refuse."""
    one = declared_params(cls)[name]
    words = [text] if isinstance(text, str) else list(text)
    kinds = kinds_of(one.annotation)
    lists = [kind for kind in kinds if is_list(kind)]
    if len(words) > 1 and lists:
        return [_single(word, _inner(lists[0]), one) for word in words]
    if len(words) > 1:
        raise ParameterError(f"{name} takes one value; got {format_value(' '.join(words))!r}.")
    for choice in one.choices or ():
        if words[0].lower() == str(choice).lower():
            return choice
    return _single(words[0], kinds, one)


def kinds_of(annotation: Any) -> tuple[Any, ...]:
    """The types of a union, or the one type; a `Literal` is of the types of its values."""
    kinds: dict[Any, None] = {}
    for kind in union_members(annotation):
        literal = typing.get_origin(kind) is typing.Literal
        kinds |= dict.fromkeys(map(type, typing.get_args(kind)) if literal else (kind,))
    return tuple(kinds)


def is_list(kind: Any) -> bool:
    """Whether values of this kind hold several."""
    return (typing.get_origin(kind) or kind) in (list, tuple, Sequence)


def is_model(kind: Any) -> bool:
    """Whether values of this kind are models."""
    return isinstance(kind, type) and issubclass(kind, Forecaster)


def is_mapping(kind: Any) -> bool:
    """Whether values of this kind are dicts."""
    origin = typing.get_origin(kind) or kind
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _single(text: str, kinds: Sequence[Any], one: Param) -> Any:
    if type(None) in kinds and text.lower() == "none":
        return None
    if bool in kinds and text.lower() in WORDS:
        return WORDS[text.lower()]
    for kind in (int, float):
        if kind in kinds and (found := _number(text, kind)) is not NOTHING:
            return found
    for kind in kinds:
        if is_list(kind):
            return [_single(word.strip(), _inner(kind), one) for word in text.strip("[]() ").split(",") if word.strip()]
        if is_mapping(kind) and (str not in kinds or text.lstrip().startswith("{")):
            return _mapping(text, one.name)
        if is_model(kind):
            from deepforecast.cli.model_names import build

            return build(text)
    return text


def _inner(kind: Any) -> tuple[Any, ...]:
    inner = [arg for arg in typing.get_args(kind) if arg is not Ellipsis]
    return tuple(member for arg in inner for member in kinds_of(arg)) or (int, float, str)


def _number(text: str, kind: type) -> Any:
    try:
        return kind(text)
    except ValueError:
        return NOTHING


def _mapping(text: str, name: str) -> Any:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ParameterError(f"""{name} is a JSON object, e.g. '{{"key": 1}}'; got {format_value(text)!r}.""")
    return found
