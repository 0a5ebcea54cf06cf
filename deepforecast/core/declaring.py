"""The `param` declarations of a class body, taken up when the class is made: whole, sound, and the constructor's signature."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Mapping
from dataclasses import replace
from typing import dataclass_transform

from deepforecast.core.kinds import alternatives, resolved
from deepforecast.core.params import REQUIRED, Param, counted, declared, ordered, param
from deepforecast.errors import ParameterError, ParameterTypeError


@dataclass_transform(kw_only_default=True, field_specifiers=(param,))
class Declared:
    """Base of classes that declare parameters with `param`: type checkers derive the constructor of each subclass."""


SEARCH = ("low", "high", "log", "step", "search", "when")  # where a search looks: said as a whole or inherited as a whole


def collect(cls: type) -> None:
    """Take the `param` declarations of a class body up: called once for each class, when it is made."""
    inherited: dict[str, Param] = {}
    for base in reversed(cls.__mro__[1:]):
        inherited |= _taken_up(base, inherited)
    own = _taken_up(cls, inherited)
    cls._own_params = own  # type: ignore[attr-defined]
    for name in vars(cls):
        if name in inherited and name not in own:
            raise ParameterTypeError(
                f"{cls.__name__}.{name} is a parameter of {cls.__mro__[1].__name__} and stays one. To change its default, "
                f"declare it again: {name}: ... = param(...)."
            )
    cls._params = declared(cls)  # type: ignore[attr-defined]
    cls.__signature__ = _signature(cls._params)  # type: ignore[attr-defined]


def _taken_up(cls: type, inherited: Mapping[str, Param]) -> dict[str, Param]:
    """The declarations of one class, made whole; its body then holds them no more."""
    if "_own_params" in vars(cls):
        return dict(vars(cls)["_own_params"])
    found = {name: value for name, value in vars(cls).items() if isinstance(value, Param)}
    for name in found:
        delattr(cls, name)
    own = {name: _whole(name, one, cls, inherited.get(name)) for name, one in found.items()}
    if own:
        cls._own_params = own  # type: ignore[attr-defined]
    return own


def _whole(name: str, one: Param, cls: type, before: Param | None) -> Param:
    """The declaration with its name, its annotation and what an inherited one of that name says beyond it."""
    annotations = inspect.get_annotations(cls)
    if name not in annotations:
        raise ParameterTypeError(f"{cls.__name__}.{name} needs an annotation of what it takes, e.g. {name}: int = param(...).")
    _refuse_name(name, cls)
    if before is not None:
        kept = {key: getattr(one, key) for key in one.declared}
        searched = {key: getattr(one, key) for key in SEARCH} if set(SEARCH) & set(one.declared) else {}
        one = replace(before, default=one.default, **{**searched, **kept})
    annotation = resolved(annotations[name], cls, name)
    literals = [kind for kind in alternatives(annotation) if typing.get_origin(kind) is typing.Literal]
    choices = tuple(value for kind in literals for value in typing.get_args(kind)) or None
    one = replace(one, name=name, annotation=annotation, choices=choices)
    _refuse_unsound(one, cls)
    return one


def _refuse_name(name: str, cls: type) -> None:
    """Names that mean something else: attributes of the class, and `a__b`, by which set_params reaches into a wrapped model."""
    if hasattr(cls, name):
        raise ParameterTypeError(f"{cls.__name__}.{name} cannot be a parameter: the class has an attribute of that name.")
    if name.strip("_") != name or "__" in name:
        raise ParameterTypeError(f"{cls.__name__}.{name}: a parameter's name has no underscore at an end, nor two in a row.")


def _refuse_unsound(one: Param, cls: type) -> None:
    """A default and search values are legal, and a range is one that can be searched."""
    where = f"{cls.__name__}.{one.name}"
    if type(one.default).__hash__ is None:
        kind = type(one.default).__name__
        raise ParameterTypeError(f"{where}: all objects share a default, so it cannot be a {kind}. Use a tuple or None.")
    if one.searched:
        _refuse_search(one, where)
    ends = [end for end in (one.low, one.high) if end is not None]
    for value in [one.default, *(one.search or ()), *ends]:
        if value is not REQUIRED:
            try:
                one.check(value)
            except ParameterError as error:
                raise type(error)(f"{cls.__name__}: what is declared of a parameter is legal for it. {error}") from None


def _refuse_search(one: Param, where: str) -> None:
    if one.low is None or one.high is None:
        if one.low is not None or one.high is not None or one.search is None:
            raise ParameterError(f"{where}: a search range has both low and high.")
        return
    if one.search is not None:
        raise ParameterError(f"{where}: a search looks in a range (low, high) or among values (search), not both.")
    if one.low > one.high or (one.log and one.low <= 0) or (one.step is not None and (one.step <= 0 or one.log)):
        raise ParameterError(f"{where}: a search goes up from low to high in positive steps, or with log from above 0 without.")
    whole = all(isinstance(end, int) for end in (one.low, one.high, one.step or 1))
    if not (whole if counted(one) else float in alternatives(one.annotation)):
        raise ParameterError(f"{where}: a search range is of whole numbers for an integer, of numbers for a number.")


def _signature(params: Mapping[str, Param]) -> inspect.Signature:
    kinds = inspect.Parameter
    return inspect.Signature(
        [
            kinds(
                name,
                kinds.KEYWORD_ONLY if one.kw_only else kinds.POSITIONAL_OR_KEYWORD,
                default=kinds.empty if one.required else one.default,
                annotation=one.annotation,
            )
            for name, one in ordered(params)
        ]
    )
