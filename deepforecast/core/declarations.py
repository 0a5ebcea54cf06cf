"""The `param` declarations of a class body, taken up when the class is made: whole, sound, and the constructor's signature."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Mapping
from dataclasses import replace
from typing import dataclass_transform

from deepforecast.core.params import REQUIRED, Param, declared_params, in_constructor_order, is_integer_param, param
from deepforecast.core.type_checks import resolve_annotation, union_members
from deepforecast.errors import ParameterError, ParameterTypeError


@dataclass_transform(kw_only_default=True, field_specifiers=(param,))
class ParameterizedClass:
    """Base of classes that declare parameters with `param`: type checkers derive the constructor of each subclass."""


SEARCH_OPTIONS = ("low", "high", "log", "step", "search", "when")  # where a search looks: said as a whole or inherited as a whole


def collect_params(cls: type) -> None:
    """Take the `param` declarations of a class body up: called once for each class, when it is made."""
    inherited: dict[str, Param] = {}
    for base in reversed(cls.__mro__[1:]):
        inherited |= _read_declarations(base, inherited)
    declared_here = _read_declarations(cls, inherited)
    cls._own_params = declared_here  # type: ignore[attr-defined]
    for name in vars(cls):
        if name in inherited and name not in declared_here:
            raise ParameterTypeError(
                f"{cls.__name__}.{name} is a parameter of {cls.__mro__[1].__name__} and stays one. To change its default, "
                f"declare it again: {name}: ... = param(...)."
            )
    cls._params = declared_params(cls)  # type: ignore[attr-defined]
    cls.__signature__ = _signature(cls._params)  # type: ignore[attr-defined]


def _read_declarations(cls: type, inherited: Mapping[str, Param]) -> dict[str, Param]:
    """The declarations of one class, made whole; its body then holds them no more."""
    if "_own_params" in vars(cls):
        return dict(vars(cls)["_own_params"])
    declarations = {name: value for name, value in vars(cls).items() if isinstance(value, Param)}
    for name in declarations:
        delattr(cls, name)
    completed = {name: _complete_declaration(name, declaration, cls, inherited.get(name)) for name, declaration in declarations.items()}
    if completed:
        cls._own_params = completed  # type: ignore[attr-defined]
    return completed


def _complete_declaration(name: str, declaration: Param, cls: type, inherited_param: Param | None) -> Param:
    """The declaration with its name, its annotation and what an inherited one of that name says beyond it."""
    annotations = inspect.get_annotations(cls)
    if name not in annotations:
        raise ParameterTypeError(f"{cls.__name__}.{name} needs an annotation of what it takes, e.g. {name}: int = param(...).")
    _check_name(name, cls)
    if inherited_param is not None:
        own_options = {key: getattr(declaration, key) for key in declaration.declared}
        search_options = {key: getattr(declaration, key) for key in SEARCH_OPTIONS} if set(SEARCH_OPTIONS) & set(declaration.declared) else {}
        declaration = replace(inherited_param, default=declaration.default, **{**search_options, **own_options})
    annotation = resolve_annotation(annotations[name], cls, name)
    literals = [member for member in union_members(annotation) if typing.get_origin(member) is typing.Literal]
    choices = tuple(value for member in literals for value in typing.get_args(member)) or None
    declaration = replace(declaration, name=name, annotation=annotation, choices=choices)
    _check_declaration(declaration, cls)
    return declaration


def _check_name(name: str, cls: type) -> None:
    """Names that mean something else: attributes of the class, and `a__b`, by which set_params reaches into a wrapped model."""
    if hasattr(cls, name):
        raise ParameterTypeError(f"{cls.__name__}.{name} cannot be a parameter: the class has an attribute of that name.")
    if name.strip("_") != name or "__" in name:
        raise ParameterTypeError(f"{cls.__name__}.{name}: a parameter's name has no underscore at an end, nor two in a row.")


def _check_declaration(declaration: Param, cls: type) -> None:
    """A default and search values are legal, and a range is one that can be searched."""
    location = f"{cls.__name__}.{declaration.name}"
    if type(declaration.default).__hash__ is None:
        type_name = type(declaration.default).__name__
        raise ParameterTypeError(f"{location}: all objects share a default, so it cannot be a {type_name}. Use a tuple or None.")
    if declaration.is_searched:
        _check_search(declaration, location)
    limits = [limit for limit in (declaration.low, declaration.high) if limit is not None]
    for value in [declaration.default, *(declaration.search or ()), *limits]:
        if value is not REQUIRED:
            try:
                declaration.check(value)
            except ParameterError as error:
                raise type(error)(f"{cls.__name__}: what is declared of a parameter is legal for it. {error}") from None


def _check_search(declaration: Param, location: str) -> None:
    if declaration.low is None or declaration.high is None:
        if declaration.low is not None or declaration.high is not None or declaration.search is None:
            raise ParameterError(f"{location}: a search range has both low and high.")
        return
    if declaration.search is not None:
        raise ParameterError(f"{location}: a search looks in a range (low, high) or among values (search), not both.")
    if declaration.low > declaration.high or (declaration.log and declaration.low <= 0) or (declaration.step is not None and (declaration.step <= 0 or declaration.log)):
        raise ParameterError(f"{location}: a search goes up from low to high in positive steps, or with log from above 0 without.")
    all_integers = all(isinstance(end, int) for end in (declaration.low, declaration.high, declaration.step or 1))
    if not (all_integers if is_integer_param(declaration) else float in union_members(declaration.annotation)):
        raise ParameterError(f"{location}: a search range is of whole numbers for an integer, of numbers for a number.")


def _signature(params: Mapping[str, Param]) -> inspect.Signature:
    parameter_class = inspect.Parameter
    return inspect.Signature(
        [
            parameter_class(
                name,
                parameter_class.KEYWORD_ONLY if param.kw_only else parameter_class.POSITIONAL_OR_KEYWORD,
                default=parameter_class.empty if param.required else param.default,
                annotation=param.annotation,
            )
            for name, param in in_constructor_order(params)
        ]
    )
