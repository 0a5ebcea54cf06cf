"""Collects the `param` declarations of a class when it is created; builds its signature and Parameters section."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Iterable, Mapping
from dataclasses import replace
from textwrap import fill
from typing import Any, ClassVar, dataclass_transform

from deepforecast.core.params import (
    BOUNDS,
    NONE_TYPE,
    Needs,
    Param,
    declared_params,
    in_constructor_order,
    is_integer_param,
    param,
    resolve_annotation,
    union_members,
)
from deepforecast.errors import ParameterError, ParameterTypeError, format_list

WIDTH = 100
SECTION = re.compile(r"^(?=\w[\w ]*\n-{3,}$|>>> )", re.MULTILINE)  # before the header of a section, or an example


def with_parameters(cls: type) -> str:
    """The docstring of a class with its parameters inserted before the first section or example.

    `horizon` comes first, then the parameters of the class itself, then those of its bases;
    parameters with a group are listed under "Other Parameters".
    """
    text = inspect.cleandoc(vars(cls).get("__doc__") or "")
    if not text or "Parameters\n---" in text:
        return text
    params = declared_params(cls)
    names = [name for base in cls.__mro__ for name in vars(base).get("_own_params", ())]
    ordered = [params[name] for name in dict.fromkeys(["horizon", *names]) if name in params]
    sections = [
        _section("Parameters", (param for param in ordered if not param.group)),
        _section("Other Parameters", (param for param in ordered if param.group)),
    ]
    summary, *rest = SECTION.split(text, maxsplit=1)
    if rest and rest[0].startswith(">>> "):
        rest.insert(0, "Examples\n--------")
    examples = "\n".join(rest)
    return "\n\n".join(part.strip("\n") for part in (summary, *sections, examples) if part.strip()) + "\n"


def describe_type(param: Param) -> str:
    """Type, range and default of a parameter, as numpydoc writes them.

    >>> from deepforecast import LSTM
    >>> describe_type(declared_params(LSTM)["dropout"])
    'float in [0, 1), default 0.0'
    """
    names = " or ".join(_name(member, _interval(param)) for member in param.members if member is not NONE_TYPE)
    if param.required:
        return names
    if param.default is None:
        return f"{names}, optional"
    return f"{names}{' or None' if NONE_TYPE in param.members else ''}, default {_literal(param.default)}"


def _section(title: str, params: Iterable[Param]) -> str:
    lines = [title, "-" * len(title)]
    for declaration in params:
        text = declaration.full_help[:1].upper() + declaration.full_help[1:]
        sentence = text if text.endswith((".", "!", "?")) else f"{text}."
        lines += [
            f"{declaration.name} : {describe_type(declaration)}",
            fill(sentence, WIDTH - 8, initial_indent="    ", subsequent_indent="    "),
        ]
    return "\n".join(lines) if len(lines) > 2 else ""


def _interval(param: Param) -> str:
    """The bounds of a parameter as text to follow its type: " in [0, 1)", " >= 1", " < 1" or ""."""
    if len(param.limits) == 2:
        low, high = param.limits.values()
        return f" in {'(' if param.at_least is None else '['}{low}, {high}{')' if param.at_most is None else ']'}"
    return "".join(f" {BOUNDS[name].symbol} {limit}" for name, limit in param.limits.items())


def _name(member: Any, interval: str) -> str:
    """The name of a type as numpydoc writes it; `interval` follows the names of numeric types."""
    origin, inner = typing.get_origin(member) or member, typing.get_args(member)
    if origin is typing.Literal:
        values = ", ".join(map(_literal, inner))
        return f"{{{values}}}" if len(inner) > 1 else values
    if origin in (int, float):
        return str(origin.__name__) + interval
    if inner:
        members = dict.fromkeys(_name(argument, "") for arg in inner if arg is not Ellipsis for argument in union_members(arg))
        return f"{origin.__name__.lower()} of {' or '.join(members)}{interval}"
    return "None" if member is NONE_TYPE else getattr(origin, "__name__", str(origin)).replace("Any", "object")


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


@dataclass_transform(kw_only_default=True, field_specifiers=(param,))
class ParameterizedClass:
    """Base of classes that declare parameters with `param`.

    Type checkers derive the constructor of each subclass from the declarations.
    """

    _has_needs: ClassVar[bool] = False  # whether a parameter has an effect only with some values of others


SEARCH_OPTIONS = {"low", "high", "log", "step", "search", "when"}  # inherited all or none


def collect_params(cls: type[Any]) -> None:
    """Collect the `param` declarations of a class and set its signature; called once, when the class is created."""
    inherited: dict[str, Param] = {}
    for base in reversed(cls.__mro__[1:]):
        inherited |= _read_declarations(base, inherited)
    declared_here = _read_declarations(cls, inherited)
    cls._own_params, cls._params = declared_here, inherited | declared_here
    for name in vars(cls):
        if name in inherited and name not in declared_here:
            raise ParameterTypeError(
                f"{cls.__name__}.{name} must be declared with param(...), because {cls.__mro__[1].__name__} declares it as a "
                "parameter.",
                hint=f"To change its default, use {name}: ... = param(default=...).",
            )
    for name, declaration in cls._params.items():
        unknown = declaration.needs.conditions.keys() - cls._params if declaration.needs else ()
        if unknown:
            raise ParameterTypeError(
                f"{cls.__name__}.{name}: the keys of `needs` must be parameters, got {format_list(sorted(unknown))}."
            )
    cls._has_needs = any(param.needs is not None for param in cls._params.values())
    kinds = {True: inspect.Parameter.KEYWORD_ONLY, False: inspect.Parameter.POSITIONAL_OR_KEYWORD}
    cls.__signature__ = inspect.Signature(
        [
            inspect.Parameter(name, kinds[param.kw_only], default=param.default, annotation=param.annotation)
            for name, param in in_constructor_order(cls._params)
        ]
    )


def _read_declarations(cls: type[Any], inherited: Mapping[str, Param]) -> dict[str, Param]:
    """The completed declarations of one class, which are deleted from its body."""
    if "_own_params" in vars(cls):
        return dict(vars(cls)["_own_params"])
    declarations = {name: value for name, value in vars(cls).items() if isinstance(value, Param)}
    for name in declarations:
        delattr(cls, name)
    completed = {
        name: _complete_declaration(name, declaration, cls, inherited.get(name)) for name, declaration in declarations.items()
    }
    if completed:
        cls._own_params = completed
    return completed


def _complete_declaration(name: str, declaration: Param, cls: type, inherited_param: Param | None) -> Param:
    """The declaration with its name, its annotation and the options it inherits from a base class."""
    annotations = inspect.get_annotations(cls)
    if name not in annotations:
        raise ParameterTypeError(f"{cls.__name__}.{name} must have a type annotation, e.g. {name}: int = param(...).")
    if hasattr(cls, name):
        raise ParameterTypeError(f"{cls.__name__}.{name} cannot be a parameter: the class has an attribute of that name.")
    if name.strip("_") != name or "__" in name:  # `set_params` reads a__b as parameter b of the model a
        raise ParameterTypeError(
            f"{cls.__name__}.{name}: the name of a parameter cannot start or end with an underscore, or have two in a row."
        )
    if inherited_param is not None:
        options = {"default", *declaration.declared}
        if options & SEARCH_OPTIONS:
            options |= SEARCH_OPTIONS
        declaration = replace(inherited_param, **{option: getattr(declaration, option) for option in options})
    if declaration.when is None or isinstance(declaration.when, Needs):
        declaration = replace(declaration, when=declaration.needs)
    declaration = replace(declaration, name=name, annotation=resolve_annotation(annotations[name], cls, name))
    _check_declaration(declaration, cls)
    return declaration


def _check_declaration(declaration: Param, cls: type) -> None:
    """Check that the default, the search range and the search values are valid."""
    location = f"{cls.__name__}.{declaration.name}"
    if type(declaration.default).__hash__ is None:
        type_name = type(declaration.default).__name__
        raise ParameterTypeError(
            f"{location}: the default cannot be a {type_name}, as all instances would share it.", hint="Use a tuple or None."
        )
    if problem := _search_problem(declaration):
        raise ParameterError(f"{location}: {problem}")
    values = [] if declaration.required else [declaration.default]
    values += declaration.search or [limit for limit in (declaration.low, declaration.high) if limit is not None]
    for value in values:
        try:
            declaration.check(value)
        except ParameterError as error:
            raise type(error)(f"{cls.__name__}: default, `search`, `low` and `high` must be valid values. {error}") from None


def _search_problem(declaration: Param) -> str:
    """What is wrong with `search` or the range `low` to `high`; "" if nothing is."""
    low, high, step, log = declaration.low, declaration.high, declaration.step, declaration.log
    if low is None and high is None:
        return ""
    if low is None or high is None:
        return "a search range must have both `low` and `high`. Set both."
    if declaration.search is not None:
        return "`search` cannot be combined with `low` and `high`. Use one of them."
    if low > high:
        return f"`low` must not exceed `high`, got low={low} and high={high}."
    if log and low <= 0:
        return f"`low` must be above 0 with log=True, got {low}."
    if step is not None and (step <= 0 or log):
        return f"`step` must be positive and cannot be used with log=True, got {step}."
    all_integers = all(isinstance(end, int) for end in (low, high, step or 1))
    if all_integers if is_integer_param(declaration) else float in declaration.members:
        return ""
    return (
        "only numeric parameters can have `low` and `high`, and integer parameters must have integer `low`, `high` and "
        f"`step`, got low={low}, high={high} and step={step}."
    )
