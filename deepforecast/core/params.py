"""Hyperparameters, declared once in the class body with default, range and meaning.

    class SeasonalNaive(Forecaster):
        season_length: int | Literal["auto"] = param(
            default="auto", at_least=1, help="number of steps per season"
        )

The constructor, its errors, the repr, the search space of `tune` and the command-line flags derive
from the declaration. A subclass that declares a parameter again changes its default and inherits
the options it does not set.
"""

from __future__ import annotations

import inspect
import math
import numbers
import operator
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from deepforecast.core.synonyms import suggest
from deepforecast.errors import ParameterError, ParameterTypeError, format_list, format_value, join_alternatives

NONE_TYPE = type(None)
TYPE_NAMES: dict[Any, str] = {
    int: "an integer", float: "a finite number", str: "a string", bool: "True or False", NONE_TYPE: "None",
    Callable: "a function",
}  # fmt: skip
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


def is_instance(value: Any, annotation: Any) -> bool:
    """Whether a value matches a type or a member of a union, including the elements of lists, tuples and mappings.

    Unlike `isinstance`, True and False are not numbers, a list matches a tuple type, and numpy
    numbers match Python's.
    """
    members = union_members(annotation)
    if len(members) > 1:
        return any(is_instance(value, member) for member in members)
    origin, inner = typing.get_origin(members[0]) or members[0], typing.get_args(members[0])
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
        if not isinstance(value, (list, tuple)):
            return False
        has_fixed_length = origin is tuple and inner and Ellipsis not in inner
        element_types = inner if has_fixed_length else (inner[:1] or (Any,)) * len(value)
        return len(value) == len(element_types) and all(map(is_instance, value, element_types))
    if origin in (dict, Mapping):
        key_type, value_type = inner or (Any, Any)
        return isinstance(value, Mapping) and all(
            is_instance(key, key_type) and is_instance(element, value_type) for key, element in value.items()
        )
    if origin is type:
        return isinstance(value, type) and (not inner or issubclass(value, inner))
    return isinstance(value, origin)


def is_choice(value: Any, choices: Sequence[Any]) -> bool:
    """Whether a value equals one of the choices and matches its type: neither True nor 1.0 matches 1."""
    return any(value is choice or (is_instance(value, type(choice)) and bool(value == choice)) for choice in choices)


def type_name(annotation: Any, bounds: str = "") -> str:
    """The name of a type in messages; `bounds` follows the names of numeric types.

    >>> type_name(list[int], " of at least 1"), type_name(str), type_name(tuple[float, float])
    ('a list of integers of at least 1', 'a string', 'a tuple of 2 finite numbers')
    >>> type_name(tuple[int | str, int]), type_name(dict[str, dict[str, int]])
    ('a tuple (an integer or a string, an integer)', 'a dict of dicts')
    """
    origin, inner = typing.get_origin(annotation) or annotation, typing.get_args(annotation)
    if origin in (int, float):
        return TYPE_NAMES[origin] + bounds
    if origin is typing.Literal:
        return join_alternatives([repr(choice) for choice in inner])
    if origin in (list, tuple, Sequence):
        return _sequence_name(origin, inner, bounds)
    if origin in (dict, Mapping):
        return "a dict of dicts" if inner and typing.get_origin(inner[1]) in (dict, Mapping) else "a dict"
    name = getattr(origin, "__name__", str(origin))
    return TYPE_NAMES.get(origin) or f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def _sequence_name(origin: Any, inner: tuple[Any, ...], bounds: str) -> str:
    """The name of a list or tuple type whose type arguments are `inner`."""
    has_fixed_length = origin is tuple and Ellipsis not in inner
    if has_fixed_length and (len(set(inner)) > 1 or any(len(union_members(position)) > 1 for position in inner)):
        positions = (" or ".join(map(type_name, union_members(position))) for position in inner)
        return f"a tuple ({', '.join(positions)})" + (f", its numbers{bounds}" if bounds else "")
    container = "a tuple" if origin is tuple else "a list"
    elements = [member for element in inner for member in union_members(element) if member not in (Any, Ellipsis)]
    if not elements:
        return container
    names = dict.fromkeys(PLURAL_NAMES.get(element) or type_name(element) for element in elements)
    length = f"{len(inner)} " if has_fixed_length else ""
    return f"{container} of {length}{' or '.join(names)}{bounds if set(elements) <= {int, float} else ''}"


def resolve_annotation(annotation: Any, cls: type, name: str) -> Any:
    """The annotation of a parameter, evaluated if it is a string; only types, unions and `Literal` are allowed."""
    if isinstance(annotation, str):
        names = {**vars(typing), **vars(sys.modules.get(cls.__module__, typing)), cls.__name__: cls}
        try:
            annotation = typing.get_type_hints(types.SimpleNamespace(__annotations__={name: annotation}), names)[name]
        except (NameError, AttributeError, SyntaxError, TypeError) as error:
            raise ParameterTypeError(
                f"{cls.__name__}.{name}: the annotation {annotation!r} cannot be evaluated ({error}).",
                hint="Import its names at the top of the module.",
            ) from error
    for member in union_members(annotation):
        origin = typing.get_origin(member) or member
        if not (inspect.isclass(origin) or origin in (Any, typing.Literal)):
            raise ParameterTypeError(
                f"{cls.__name__}.{name}: values cannot be checked against the annotation {member!r}.",
                hint="Use types, unions or Literal.",
            )
    return annotation


class Not:
    """Any value but these, for another parameter in `param(needs=...)`."""

    def __init__(self, *values: Any) -> None:
        self.values = values


Rule = tuple[str, Callable[[Mapping[str, Any]], bool]]
MAX_LISTED = 3
"""Largest number of choices that the fix of an error lists."""


class Needs:
    """The condition under which a parameter has an effect; a function of the values of all parameters.

    `declared` is `param(needs=...)`: a mapping from other parameters to the value they must have or
    to `Not` with the values they must not have, or a pair of a rule in words and a function.

    >>> needs = Needs({"head": "bins", "scaler": Not("none")})
    >>> needs({"head": "bins", "scaler": "robust"}), needs({"head": "bins", "scaler": "none"})
    (True, False)
    >>> needs.help
    "Used only with head='bins', not with scaler='none'."
    """

    def __init__(self, declared: Mapping[str, Any] | Rule) -> None:
        self.conditions: Mapping[str, Any] = {}
        self.rule = ""
        self.holds: Callable[[Mapping[str, Any]], bool] | None = None
        if isinstance(declared, tuple):
            self.rule, self.holds = declared
        else:
            self.conditions = declared

    def __call__(self, values: Mapping[str, Any]) -> bool:
        """Whether the parameter has an effect with these values."""
        if self.holds is not None:
            return self.holds(values)
        return all(_is_met(condition, values[name]) for name, condition in self.conditions.items())

    @property
    def help(self) -> str:
        """The condition as a sentence for the help of the parameter."""
        required = [_assignment(name, value) for name, value in self.conditions.items() if not isinstance(value, Not)]
        excluded = [_assignment(name, value) for name, value in self.conditions.items() if isinstance(value, Not)]
        without = f"with {' or '.join(excluded)}" if excluded else ""
        if not required and not self.rule:
            return f"Not used {without}."
        return f"Used only with {self.rule or ' and '.join(required)}{without and ', not ' + without}."

    def explain(self, values: Mapping[str, Any], params: Mapping[str, Param]) -> tuple[str, str]:
        """Why these values do not meet the condition, to follow "has no effect", and a fix."""
        if self.rule:
            return f"without {self.rule}", f"Set {self.rule}"
        name = next(name for name, condition in self.conditions.items() if not _is_met(condition, values[name]))
        condition, reason = self.conditions[name], f"with {_assignment(name, values[name])}"
        if not isinstance(condition, Not):
            return reason, f"Set {_assignment(name, condition)}"
        choices = [choice for choice in params[name].choices if _is_met(condition, choice)]
        if 0 < len(choices) <= MAX_LISTED:
            return reason, f"Set {_assignment(name, Not(*choices))}"
        return reason, f"Set `{name}`" if values[name] is None else f"Set another `{name}`"


def _is_met(condition: Any, value: Any) -> bool:
    value = tuple(value) if isinstance(value, list) else value
    return value not in condition.values if isinstance(condition, Not) else bool(value == condition)


def _assignment(name: str, value: Any) -> str:
    """`name=value`, for several values in a `Not` with commas and "or"."""
    values = value.values if isinstance(value, Not) else (value,)
    return f"{name}={join_alternatives([format_value(repr(alternative)) for alternative in values])}"


REQUIRED = inspect.Parameter.empty


class Bound(NamedTuple):
    """A comparison with a bound, and its symbol."""

    holds: Callable[[Any, float], bool]
    symbol: str


BOUNDS = {
    "at_least": Bound(operator.ge, ">="), "above": Bound(operator.gt, ">"),
    "at_most": Bound(operator.le, "<="), "below": Bound(operator.lt, "<"),
}  # fmt: skip


@dataclass(frozen=True)
class Param:
    """One declared hyperparameter.

    `declared` lists the options that its own declaration sets, so that a subclass which declares
    the parameter again inherits the others. For the rest see `param`.
    """

    default: Any
    help: str = ""
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None
    low: float | None = None
    high: float | None = None
    log: bool = False
    step: float | None = None
    search: tuple[Any, ...] | None = None
    needs: Needs | None = None
    off: Any = ...  # no such value
    when: Callable[[Mapping[str, Any]], bool] | None = None
    expensive: bool = False
    group: str = ""
    kw_only: bool = True
    convert: Callable[[Any], Any] | None = None
    name: str = ""
    annotation: Any = Any
    declared: tuple[str, ...] = ()

    @cached_property
    def members(self) -> tuple[Any, ...]:
        """The types of which the value must have one."""
        return union_members(self.annotation)

    @cached_property
    def choices(self) -> tuple[Any, ...]:
        """The values of the `Literal` types in the annotation."""
        literals = [member for member in self.members if typing.get_origin(member) is typing.Literal]
        return tuple(choice for literal in literals for choice in typing.get_args(literal))

    @cached_property
    def limits(self) -> dict[str, float]:
        """The bounds that are set, by the name of the option."""
        return {name: getattr(self, name) for name in BOUNDS if getattr(self, name) is not None}

    @property
    def required(self) -> bool:
        """Whether the parameter has no default."""
        return self.default is REQUIRED

    @property
    def is_searched(self) -> bool:
        """Whether `tune` varies the parameter."""
        return self.search is not None or self.low is not None or self.high is not None

    @property
    def full_help(self) -> str:
        """The help with the condition under which the parameter has an effect."""
        return self.help if self.needs is None else ". ".join(filter(None, [self.help.removesuffix("."), self.needs.help]))

    def has_effect(self, values: Mapping[str, Any]) -> bool:
        """Whether `needs` is met by the values of all parameters, or the own value is `off`."""
        return self.needs is None or self.needs(values) or _is_met(self.off, values[self.name])

    def accepts(self, value: Any) -> bool:
        """Whether the value is one of the choices, or has one of the other types and is within the bounds."""
        if is_choice(value, self.choices):
            return True
        is_unbounded = any(member is Any or Any in typing.get_args(member) for member in self.members)
        has_type = any(is_instance(value, member) for member in self._unlimited_types)
        return has_type and (is_unbounded or self._is_within_bounds(value))

    def check(self, value: Any) -> None:
        """Raise `ParameterTypeError` or `ParameterError` unless the value is valid."""
        if self.accepts(value):
            return
        error_class, text, hint = ParameterError, _format_argument(value), ""
        if not any(is_instance(value, expected_type) for expected_type in (*self.members, *map(type, self.choices))):
            error_class, text = ParameterTypeError, f"{text} ({type(value).__name__})"
            if isinstance(value, type) and any(isinstance(member, type) and issubclass(value, member) for member in self.members):
                hint = f"Did you mean {value.__name__}()?"
        raise error_class(f"`{self.name}` must be {self._rule}, got {text}.", hint=hint, parameter=self.name, value=value)

    @cached_property
    def _unlimited_types(self) -> list[Any]:
        """The types whose values are not restricted to choices."""
        return [member for member in self.members if not any(is_instance(choice, member) for choice in self.choices)]

    def _is_within_bounds(self, value: Any) -> bool:
        """Whether a number, or each number in a list, is finite and within the bounds; True for other types."""
        if isinstance(value, (list, tuple)):
            return all(self._is_within_bounds(element) for element in value)
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            return True
        is_finite = isinstance(value, numbers.Integral) or math.isfinite(value)  # a large integer has no float
        return is_finite and all(BOUNDS[name].holds(value, limit) for name, limit in self.limits.items())

    @property
    def _rule(self) -> str:
        """The valid values in words, to follow "must be"."""
        bounds = " and ".join(f"{name.replace('_', ' ')} {limit:,}" for name, limit in self.limits.items())
        bounds = f" of {bounds}" if bounds.startswith("at") else bounds and f" {bounds}"
        none_last = sorted(self._unlimited_types, key=lambda member: member is NONE_TYPE)
        return join_alternatives([*map(repr, self.choices), *(type_name(member, bounds) for member in none_last)])


OPTIONS = {field.name for field in fields(Param)} - {"default", "name", "annotation", "declared"}


def param(*, default: Any = REQUIRED, **options: Any) -> Any:
    """Declare a hyperparameter in the body of a model class.

    The annotation states its type, and as `Literal[...]` its choices: `season_length: int |
    Literal["auto"] = param(default="auto", at_least=1, help="number of steps per season")`.

    Parameters
    ----------
    default : object, optional
        Value if the caller passes none. Without a default the parameter is required.
    help : str
        What the parameter means, for the docstring, error messages and the command line.
    at_least, above, at_most, below : float, optional
        Bounds of a number, or of the numbers in a list.
    low, high : float, optional
        Range that `tune` searches, on a logarithmic scale if `log`, in multiples of `step` if
        given.
    search : sequence, optional
        Values that `tune` tries, instead of a range.
    needs : dict or tuple, optional
        When the parameter has an effect: a dict from other parameters to the value they must have,
        or to `Not(value, ...)` with those they must not have, as in {"head": "bins", "patience":
        Not(None)}; or a pair of a rule in words and a function of all values. Where it is not met,
        `tune` does not search the parameter, and `refuse_unused_parameters` raises an error unless
        it has its default.
    off : object, optional
        A value that leaves out what the parameter describes, and is allowed even where `needs` is
        not met.
    when : callable, optional
        Takes the values of the other parameters; `tune` searches this one only where it returns
        True. By default it follows from `needs`.
    expensive : bool, default False
        Whether larger values make a fit slower.
    group : str, default ""
        Heading under which the docstring lists the parameter; "" is the main list.
    kw_only : bool, default True
        Whether the parameter can only be passed by keyword. False is for the model that a wrapper wraps.
    convert : callable, optional
        Turns a value such as a frame into plain data, and returns plain data unchanged.
    """
    unknown_options = sorted(set(options) - OPTIONS)
    if unknown_options:
        raise ParameterTypeError(
            f"Unknown options of `param`: {format_list(unknown_options)}.",
            hint=f"Use {format_list(sorted(OPTIONS), max_shown=20)}; choices are `Literal` types in the annotation.",
        )
    if options.get("search") is not None:
        options["search"] = tuple(options["search"])
    if "needs" in options:
        options["needs"] = Needs(options["needs"]) if options["needs"] else None
    return Param(default, **options, declared=tuple(options))


def declared_params(cls: type[Any]) -> dict[str, Param]:
    """The hyperparameters of a class by name, those of its bases first."""
    return dict(cls._params)


def resolve_values(cls: type, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Values of all parameters for a constructor call, validated; the objects passed are not copied."""
    params = declared_params(cls)
    positional = [name for name, param in in_constructor_order(params) if not param.kw_only]
    if len(args) > len(positional):
        value = args[len(positional)]
        allowed = f"only {format_list(positional)} by position" if positional else "keyword arguments only"
        candidates = [name for name in ("horizon", "season_length") if name in params and params[name].accepts(value)]
        calls = " or ".join(f"{cls.__name__}({name}={format_value(value)})" for name in candidates)
        raise ParameterTypeError(
            f"{cls.__name__} takes {allowed}, got {_format_argument(value)}.", hint=f"Use {calls or 'its keyword'}."
        )
    values = dict(zip(positional, args, strict=False))
    duplicates = [name for name in values if name in keywords]
    if duplicates:
        raise ParameterTypeError(
            f"{cls.__name__} got several values for {format_list(duplicates)}, by position and by keyword.", hint="Pass one."
        )
    values.update(keywords)
    refuse_unknown(cls, values)
    for name, param in params.items():
        if name in values:
            if param.convert is not None:
                values[name] = param.convert(values[name])
            param.check(values[name])
        elif param.required:
            meaning = f" ({param.help})" if param.help else ""
            hint = f"Pass {cls.__name__}({name}=...)."
            raise ParameterTypeError(f"{cls.__name__} requires `{name}`{meaning}.", hint=hint, parameter=name)
        else:
            values[name] = param.default
    return {name: values[name] for name in params}


def change_values(model: Any, changes: Mapping[str, Any]) -> dict[str, Any]:
    """All parameter values of a model with some changed, validated; `model__name` is a parameter of a wrapped model."""
    nested = {name: value for name, value in changes.items() if "__" in name}
    direct = {name: value for name, value in changes.items() if "__" not in name}
    refuse_unknown(type(model), [name.partition("__")[0] for name in changes])
    checked = resolve_values(type(model), (), {**model.get_params(deep=False), **direct})
    for name, value in nested.items():
        outer, _, inner = name.partition("__")
        if not hasattr(type(checked[outer]), "_own_params"):
            raise ParameterTypeError(
                f"`{name}` cannot be set: `{outer}` must be a model, got {format_value(checked[outer])}.", parameter=name
            )
        checked[outer] = checked[outer].clone().set_params(**{inner: value})
    return checked


def format_model(model: Any) -> str:
    """The constructor call of a model, with the parameters that differ from their defaults."""
    defaults = {name: param.default for name, param in declared_params(type(model)).items()}
    values = model.get_params(deep=False)
    arguments = [f"{name}={format_param(value)}" for name, value in values.items() if not _is_same(value, defaults[name])]
    return f"{type(model).__name__}({', '.join(arguments)})"


def format_param(value: Any) -> str:
    """The repr of a parameter, without memory addresses: functions by name, torch modules by class and settings.

    >>> format_param(format_param), format_param("mae")
    ('format_param', "'mae'")
    """
    if hasattr(value, "state_dict"):
        settings = (f"{name}={format_param(setting)}" for name, setting in read_settings(value).items())
        return f"{type(value).__name__}({', '.join(settings)})"
    return str(getattr(value, "__qualname__", None) or repr(value))


def equal_params(values: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
    """Whether parameters are equal; torch modules are if type, settings and weights are."""
    return values.keys() == others.keys() and all(_is_equal(value, others[name]) for name, value in values.items())


def _is_equal(value: Any, other: Any) -> bool:
    if value is other or not hasattr(value, "state_dict"):
        return bool(value == other)
    if type(value) is not type(other) or read_settings(value) != read_settings(other):
        return False
    weights, other_weights = value.state_dict(), other.state_dict()
    return weights.keys() == other_weights.keys() and all(
        np.array_equal(weights[name].numpy(force=True), other_weights[name].numpy(force=True)) for name in weights
    )


def read_settings(module: Any) -> dict[str, Any]:
    """The constructor arguments of a torch module: its `settings`, or attributes with the names of the arguments.

    Arguments without such an attribute are left out.
    """
    if hasattr(module, "settings"):
        return dict(module.settings)
    parameters = inspect.signature(type(module)).parameters
    return {name: getattr(module, name) for name in parameters if hasattr(module, name)}


def refuse_unknown(cls: type, names: Iterable[str]) -> None:
    """Raise `ParameterTypeError` for an undeclared name and suggest similar ones."""
    params = declared_params(cls)
    for name in names:
        if name not in params:
            similar = get_close_matches(name, params, n=3)
            hint = suggest(name, params) or (
                f"Did you mean {format_list(similar)}?" if similar else f"Available: {format_list(list(params), max_shown=40)}."
            )
            raise ParameterTypeError(f"{cls.__name__} has no parameter {format_value(name)}.", hint=hint, parameter=name)


def _is_same(value: Any, default: Any) -> bool:
    """Whether a value is the default or equals it and has the same type: 1 is not True."""
    return value is default or (type(value) is type(default) and bool(value == default))


def _format_argument(value: Any) -> str:
    return f"'{format_value(value)}'" if isinstance(value, str) else format_value(value)


def is_integer_param(param: Param) -> bool:
    """Whether the parameter takes integers but no other numbers."""
    return int in param.members and float not in param.members


def in_constructor_order(params: Mapping[str, Param]) -> list[tuple[str, Param]]:
    """Parameters in the order of the constructor: positional before keyword-only, required before optional."""
    return sorted(params.items(), key=lambda entry: (entry[1].kw_only, not entry[1].required))


def unused_parameters(model: Any) -> list[str]:
    """The parameters that have no effect with the values of the others."""
    values = model.get_params(deep=False)
    return [name for name, param in declared_params(type(model)).items() if not param.has_effect(values)]


def refuse_unused_parameters(model: Any) -> None:
    """Raise if a parameter differs from its default but has no effect with the values of the others."""
    params: dict[str, Param] = type(model)._params
    values = {name: getattr(model, name) for name in params}
    for name, param in params.items():
        value = values[name]
        if param.needs is not None and value != param.default and not param.has_effect(values):
            reason, fix = param.needs.explain(values, params)
            raise ParameterError(
                f"{model.name}: {name}={_format_argument(value)} has no effect {reason}.",
                hint=f"{fix}, or omit `{name}`.",
                parameter=name,
                value=value,
            )
