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

import builtins
import inspect
import math
import numbers
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any

import numpy as np

from deepforecast.core.needs import Needs
from deepforecast.core.synonyms import suggest
from deepforecast.errors import ParameterError, ParameterTypeError, format_list, format_value, join_alternatives

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


def resolve_annotation(annotation: Any, cls: type, name: str) -> Any:
    """The annotation of a parameter, evaluated if it is a string; only types, unions and `Literal` are allowed."""
    if isinstance(annotation, str):
        module = sys.modules.get(cls.__module__)
        names = {**vars(builtins), **vars(typing), **(vars(module) if module is not None else {}), cls.__name__: cls}
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


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED = _Required()


@dataclass(frozen=True)
class Param:
    """One declared hyperparameter.

    `choices` are the values of the `Literal` types in its annotation; `declared` lists the options
    that its own declaration sets, so that a subclass which declares the parameter again inherits
    the others. For the rest see `param`.
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
    choices: tuple[Any, ...] | None = None
    declared: tuple[str, ...] = ()

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
        return self.needs is None or self.needs(values) or is_choice(values[self.name], (self.off,))

    def check(self, value: Any) -> None:
        """Raise `ParameterTypeError` or `ParameterError` unless the value is valid."""
        if is_choice(value, self.choices or ()):
            return
        members = union_members(self.annotation)
        if not any(is_instance(value, member) for member in self._unlimited_types(members)):
            if any(is_instance(value, member) for member in (*members, *map(type, self.choices or ()))):
                raise ParameterError(
                    f"`{self.name}` must be {self._describe_rule(members)}, got {_format_argument(value)}.",
                    parameter=self.name,
                    value=value,
                )
            description = f"{_format_argument(value)} ({type(value).__name__}).{_instance_hint(value, members)}"
            raise ParameterTypeError(
                f"`{self.name}` must be {self._describe_rule(members)}, got {description}",
                parameter=self.name,
                value=value,
            )
        if not any(member is Any or Any in typing.get_args(member) for member in members) and not self._is_within_bounds(value):
            raise ParameterError(
                f"`{self.name}` must be {self._describe_rule(members)}, got {_format_argument(value)}.",
                parameter=self.name,
                value=value,
            )

    def _unlimited_types(self, members: Sequence[Any]) -> list[Any]:
        """The types whose values are not restricted to choices."""
        return [member for member in members if not any(is_instance(choice, member) for choice in self.choices or ())]

    def _is_within_bounds(self, value: Any) -> bool:
        """Whether a number, or each number in a list, is finite and within the bounds; True for other types."""
        if isinstance(value, (list, tuple)):
            return all(self._is_within_bounds(element) for element in value)
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            return True
        number: Any = value  # not float(value), which overflows for very large integers
        return (
            (isinstance(value, numbers.Integral) or math.isfinite(number))
            and (self.at_least is None or number >= self.at_least)
            and (self.above is None or number > self.above)
            and (self.at_most is None or number <= self.at_most)
            and (self.below is None or number < self.below)
        )

    def _describe_rule(self, members: Sequence[Any]) -> str:
        """The valid values in words, to follow "must be"."""
        words = (("at least", self.at_least), ("above", self.above), ("at most", self.at_most), ("below", self.below))
        bounds = " and ".join(f"{word} {bound:,}" for word, bound in words if bound is not None)
        bounds = f" of {bounds}" if bounds.startswith("at") else bounds and f" {bounds}"
        types = [member for member in self._unlimited_types(members) if member is not type(None)]
        alternatives = [*map(repr, self.choices or ()), *(type_name(member, bounds) for member in types)]
        if type(None) in members and None not in (self.choices or ()):
            alternatives.append("None")
        return join_alternatives(alternatives)


OPTIONS = {field.name for field in fields(Param)} - {"default", "name", "annotation", "choices", "declared"}


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


def declared_params(cls: type) -> dict[str, Param]:
    """The hyperparameters of a class by name, those of its bases first."""
    params: dict[str, Param] = {}
    for base in reversed(cls.__mro__):
        params |= vars(base).get("_own_params", {})
    return params


def resolve_values(cls: type, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Values of all parameters for a constructor call, validated; the objects passed are not copied."""
    params: dict[str, Param] = cls._params  # type: ignore[attr-defined]
    positional = [name for name, param in in_constructor_order(params) if not param.kw_only]
    if len(args) > len(positional):
        raise _positional_error(cls, positional, args[len(positional)])
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
            values[name] = param.convert(values[name]) if param.convert is not None else values[name]
            param.check(values[name])
        elif param.required:
            meaning = f" ({param.help})" if param.help else ""
            raise ParameterTypeError(
                f"{cls.__name__} requires `{name}`{meaning}.",
                hint=f"Pass {cls.__name__}({name}=...).",
                parameter=name,
            )
        else:
            values[name] = param.default
    return {name: values[name] for name in params}


def _positional_error(cls: type, positional: Sequence[str], value: Any) -> ParameterTypeError:
    """The error for an argument that must be passed by keyword; suggests keywords for which the value is valid."""
    params: dict[str, Param] = cls._params  # type: ignore[attr-defined]
    allowed = f"only {format_list(positional)} by position" if positional else "keyword arguments only"
    candidates = [name for name in ("horizon", "season_length") if name in params and _is_valid(params[name], value)]
    calls = " or ".join(f"{cls.__name__}({name}={format_value(value)})" for name in candidates)
    return ParameterTypeError(
        f"{cls.__name__} takes {allowed}, got {_format_argument(value)}.", hint=f"Use {calls or 'its keyword'}."
    )


def change_values(model: Any, changes: Mapping[str, Any]) -> dict[str, Any]:
    """All parameter values of a model with some changed, validated; `model__name` is a parameter of a wrapped model."""
    nested = {name: value for name, value in changes.items() if "__" in name}
    direct = {name: value for name, value in changes.items() if "__" not in name}
    refuse_unknown(type(model), {**direct, **{name.partition("__")[0]: None for name in nested}})
    checked = resolve_values(type(model), (), {**model.get_params(deep=False), **direct})
    for name, value in nested.items():
        outer, _, inner = name.partition("__")
        if not hasattr(type(checked[outer]), "_params"):
            raise ParameterTypeError(
                f"`{name}` cannot be set: `{outer}` must be a model, got {format_value(checked[outer])}.", parameter=name
            )
        checked[outer] = checked[outer].clone().set_params(**{inner: value})
    return checked


def format_model(model: Any) -> str:
    """The constructor call of a model, with the parameters that differ from their defaults."""
    values_and_defaults = [(name, getattr(model, name), param.default) for name, param in declared_params(type(model)).items()]
    arguments = [f"{name}={value!r}" for name, value, default in values_and_defaults if not _is_same(value, default)]
    return f"{type(model).__name__}({', '.join(arguments)})"


def refuse_unknown(cls: type, names: Mapping[str, Any]) -> None:
    """Raise `ParameterTypeError` for an undeclared name and suggest similar ones."""
    params: dict[str, Param] = cls._params  # type: ignore[attr-defined]
    for name in names:
        if name not in params:
            similar = get_close_matches(name, params, n=3)
            hint = suggest(name, params) or (
                f"Did you mean {format_list(similar)}?" if similar else f"Available: {format_list(list(params), max_shown=40)}."
            )
            raise ParameterTypeError(f"{cls.__name__} has no parameter {format_value(name)}.", hint=hint, parameter=name)


def sample(cls: type, choose: Any) -> dict[str, Any]:
    """Draw a configuration from the search ranges of a class.

    `choose` is an Optuna trial or a `RandomTrial`.
    """
    params = declared_params(cls)
    searched = {name: param for name, param in params.items() if param.is_searched}
    return sample_from(searched, {name: param.default for name, param in params.items()}, choose)


def sample_from(ranges: Mapping[str, Param], base_values: Mapping[str, Any], choose: Any) -> dict[str, Any]:
    """Draw a configuration from `ranges`, in their order.

    `base_values` are the values of parameters that are not drawn, or not yet; `Param.when` reads
    them.
    """
    configuration: dict[str, Any] = {}
    for name, param in ranges.items():
        if param.when is not None and not param.when({**base_values, **configuration}):
            continue
        if param.search is not None:
            configuration[name] = choose.suggest_categorical(name, list(param.search))
        elif is_integer_param(param):
            configuration[name] = choose.suggest_int(name, param.low, param.high, log=param.log, step=param.step or 1)
        else:
            configuration[name] = choose.suggest_float(name, param.low, param.high, log=param.log, step=param.step)
    return configuration


class RandomTrial:
    """Seeded uniform draws with the interface of an Optuna trial."""

    def __init__(self, seed: int) -> None:
        import random

        self._random = random.Random(seed)

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        """Draw one of the choices."""
        return self._random.choice(list(choices))

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False, step: float | None = None) -> float:
        """Draw a number in [low, high]."""
        if step is not None:
            return low + step * self._random.randrange(int((high - low) / step + 1e-9) + 1)
        if log:
            return min(max(math.exp(self._random.uniform(math.log(low), math.log(high))), low), high)
        return self._random.uniform(low, high)

    def suggest_int(self, name: str, low: int, high: int, *, log: bool = False, step: int = 1) -> int:
        """Draw an integer in [low, high]."""
        if log:
            return round(self.suggest_float(name, low, high, log=True))
        return self._random.randrange(low, high + 1, step)


def _is_valid(param: Param, value: Any) -> bool:
    """Whether `param.check` accepts the value."""
    try:
        param.check(value)
    except ParameterError:
        return False
    return True


def _is_same(value: Any, default: Any) -> bool:
    """Whether a value is the default or equals it and has the same type: 1 is not True."""
    return value is default or (type(value) is type(default) and bool(value == default))


def _format_argument(value: Any) -> str:
    return f"'{format_value(value)}'" if isinstance(value, str) else format_value(value)


def _instance_hint(value: Any, members: Sequence[Any]) -> str:
    is_class = isinstance(value, type) and any(isinstance(member, type) and issubclass(value, member) for member in members)
    return f" Did you mean {value.__name__}()?" if is_class else ""


def is_integer_param(param: Param) -> bool:
    """Whether the parameter takes integers but no other numbers."""
    members = union_members(param.annotation)
    return int in members and float not in members


def in_constructor_order(params: Mapping[str, Param]) -> list[tuple[str, Param]]:
    """Parameters in the order of the constructor: positional before keyword-only, required before optional."""
    return sorted(params.items(), key=lambda entry: (entry[1].kw_only, not entry[1].required))


def unused_parameters(model: Any) -> list[str]:
    """The parameters that have no effect with the values of the others."""
    params: dict[str, Param] = type(model)._params
    values = {name: getattr(model, name) for name in params}
    return [name for name, param in params.items() if not param.has_effect(values)]


def refuse_unused_parameters(model: Any) -> None:
    """Raise if a parameter differs from its default but has no effect with the values of the others."""
    params: dict[str, Param] = type(model)._params
    values = {name: getattr(model, name) for name in params}
    for name, value in values.items():
        needs = params[name].needs
        if needs is not None and value != params[name].default and not params[name].has_effect(values):
            reason, fix = needs.explain(values, params)
            raise ParameterError(
                f"{model.name}: {name}={_format_argument(value)} has no effect {reason}.",
                hint=f"{fix}, or omit `{name}`.",
                parameter=name,
                value=value,
            )
