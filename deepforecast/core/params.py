"""Hyperparameters: declared once with default, range and meaning; all else (constructor, errors, repr, search space, flags) follows.

    class SeasonalNaive(Forecaster):
        season_length: int | str = param("auto", at_least=1, choices=("auto",), help="steps after which the season repeats")
"""

from __future__ import annotations

import inspect
import math
import numbers
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deepforecast.errors import ParameterError, ParameterTypeError, shown, some


@dataclass(frozen=True)
class Param:
    """One declared hyperparameter. `at_least`, `above`, `at_most`, `below` bound what is legal; `low`, `high`, `log`, `step`
    (or `search`, a list) say where a search looks; `when` names a condition on the other parameters for searching it."""

    default: Any
    help: str = ""
    choices: tuple[Any, ...] | None = None
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None
    low: float | None = None
    high: float | None = None
    log: bool = False
    step: float | None = None
    search: tuple[Any, ...] | None = None
    when: Callable[[Mapping[str, Any]], bool] | None = None
    positional: bool = False
    name: str = ""
    annotation: Any = Any

    @property
    def required(self) -> bool:
        """No default: the caller has to give it."""
        return self.default is REQUIRED

    @property
    def searched(self) -> bool:
        """A search may vary it."""
        return self.search is not None or self.low is not None

    def check(self, value: Any) -> None:
        """Raise `ParameterTypeError` or `ParameterError` unless the value is legal."""
        if self.choices is not None and _is_one_of(value, self.choices):
            return
        kinds = _alternatives(self.annotation)
        if self.choices is not None and set(kinds) <= {str, type(None), bool}:
            raise ParameterError(f"{self.name} is one of {_listed(self.choices)}; got {shown(value)}.")
        if not any(_is_a(value, kind) for kind in kinds):
            raise ParameterTypeError(f"{self.name} is {self._described(kinds)}; got {shown(value)} ({type(value).__name__}).")
        for item in value if isinstance(value, (list, tuple)) else (value,):
            self._check_range(item)

    def _check_range(self, value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            if self.choices is not None and isinstance(value, str):
                raise ParameterError(f"{self.name} is {self._described(_alternatives(self.annotation))}; got {shown(value)}.")
            return
        number = float(value)
        bounds = (
            (self.at_least, number >= (self.at_least or 0), "at least"),
            (self.above, number > (self.above or 0), "above"),
            (self.at_most, number <= (self.at_most or 0), "at most"),
            (self.below, number < (self.below or 0), "below"),
        )
        broken = any(bound is not None and not holds for bound, holds, _ in bounds)
        if broken or not math.isfinite(number):
            rule = " and ".join(f"{word} {bound:g}" for bound, _, word in bounds if bound is not None) or "finite"
            raise ParameterError(f"{self.name} is {rule}; got {shown(value)}.")

    def _described(self, kinds: Sequence[Any]) -> str:
        words = [_listed(self.choices)] if self.choices is not None else []
        words += [_kind_name(kind) for kind in kinds if not (self.choices is not None and kind in (str, type(None)))]
        return " or ".join(words)


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED = _Required()


def param(default: Any = REQUIRED, **declared: Any) -> Any:
    """Declare a hyperparameter in the body of a model class: see `Param` for what can be said of it."""
    for key in ("choices", "search"):
        if declared.get(key) is not None:
            declared[key] = tuple(declared[key])
    return Param(default, **declared)


def declared(cls: type) -> dict[str, Param]:
    """The hyperparameters of a class in the order of its constructor, those of its bases first."""
    return dict(vars(cls).get("_params") or _collected(cls))


def _collected(cls: type) -> dict[str, Param]:
    found: dict[str, Param] = {}
    for base in reversed(cls.__mro__):
        for name, value in vars(base).get("_own_params", {}).items():
            found[name] = value
    return found


def collect(cls: type) -> None:
    """Take the `param` declarations of a class body up: called once for each class, when it is made."""
    own = {name: value for name, value in vars(cls).items() if isinstance(value, Param)}
    for name in own:
        delattr(cls, name)
    annotations = inspect.get_annotations(cls)
    kinds = {name: _resolved(annotations.get(name, "Any"), cls) for name in own}
    cls._own_params = {n: _replace(p, name=n, annotation=kinds[n]) for n, p in own.items()}  # type: ignore[attr-defined]
    cls._params = _collected(cls)  # type: ignore[attr-defined]
    cls.__signature__ = _signature(cls._params)  # type: ignore[attr-defined]


def values(cls: type, args: tuple[Any, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """The full set of values for a constructor call, each checked; the very objects given."""
    params: dict[str, Param] = cls._params  # type: ignore[attr-defined]
    places = [p.name for p in sorted(params.values(), key=lambda p: not p.required) if p.positional]
    if len(args) > len(places):
        names = ", ".join(places) or "none"
        raise ParameterTypeError(f"{cls.__name__} takes {len(places)} parameter(s) by position ({names}), the others by name; got {len(args)}.")
    held = dict(zip(places, args, strict=False))
    twice = [name for name in held if name in given]
    if twice:
        raise ParameterTypeError(f"{cls.__name__}: {some(twice)} was given twice, by position and by name.")
    held.update(given)
    refuse_unknown(cls, held)
    for name, one in params.items():
        if name not in held:
            if one.required:
                raise ParameterTypeError(f"{cls.__name__} needs {name}: {one.help}.")
            held[name] = one.default
        else:
            one.check(held[name])
    return {name: held[name] for name in params}


def refuse_unknown(cls: type, given: Mapping[str, Any]) -> None:
    """Raise `ParameterTypeError` for names the class does not declare, with the nearest that it does."""
    params: dict[str, Param] = cls._params  # type: ignore[attr-defined]
    for name in given:
        if name not in params:
            from difflib import get_close_matches

            near = get_close_matches(name, params, n=3)
            hint = f"Did you mean {some(near)}?" if near else f"It takes {some(list(params), most=40)}."
            raise ParameterTypeError(f"{cls.__name__} has no parameter {shown(name)}. {hint}")


def sample(cls: type, choose: Any) -> dict[str, Any]:
    """A configuration drawn from the search ranges. `choose` has `suggest_int`, `suggest_float`, `suggest_categorical` (an
    Optuna trial, or `Draws(seed)`)."""
    drawn: dict[str, Any] = {}
    for name, one in declared(cls).items():
        if not one.searched or (one.when is not None and not one.when({**_defaults(cls), **drawn})):
            continue
        if one.search is not None:
            drawn[name] = choose.suggest_categorical(name, list(one.search))
        elif int in _alternatives(one.annotation) and float not in _alternatives(one.annotation):
            drawn[name] = choose.suggest_int(name, int(one.low or 0), int(one.high or 0), log=one.log, step=int(one.step or 1))
        else:
            drawn[name] = choose.suggest_float(name, one.low, one.high, log=one.log, step=one.step)
    return drawn


class Draws:
    """Seeded uniform draws with the face of an Optuna trial: random configurations without a study."""

    def __init__(self, seed: int) -> None:
        import random

        self._random = random.Random(seed)

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        """One of the choices."""
        return self._random.choice(list(choices))

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False, step: float | None = None) -> float:
        """A number in the range."""
        if log:
            return math.exp(self._random.uniform(math.log(low), math.log(high)))
        value = self._random.uniform(low, high)
        return value if step is None else low + round((value - low) / step) * step

    def suggest_int(self, name: str, low: int, high: int, *, log: bool = False, step: int = 1) -> int:
        """A whole number in the range."""
        if log:
            return min(high, round(self.suggest_float(name, low, high, log=True)))
        return self._random.randrange(low, high + 1, step)


def _defaults(cls: type) -> dict[str, Any]:
    return {name: one.default for name, one in declared(cls).items()}


def _replace(one: Param, **changes: Any) -> Param:
    from dataclasses import replace

    return replace(one, **changes)


def _signature(params: Mapping[str, Param]) -> inspect.Signature:
    kinds = inspect.Parameter
    ordered = sorted(params.values(), key=lambda p: not p.positional)
    return inspect.Signature(
        [
            kinds(
                p.name,
                kinds.POSITIONAL_OR_KEYWORD if p.positional else kinds.KEYWORD_ONLY,
                default=kinds.empty if p.required else p.default,
                annotation=p.annotation,
            )
            for p in sorted(ordered, key=lambda p: (not p.positional, not p.required))
        ]
    )


def _resolved(annotation: Any, cls: type) -> Any:
    if not isinstance(annotation, str):
        return annotation
    import builtins
    import sys

    names = {**vars(builtins), **vars(typing), **vars(sys.modules[cls.__module__])}
    return typing.get_type_hints(types.SimpleNamespace(__annotations__={"x": annotation}), names)["x"]


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    """The members of a union."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return typing.get_args(annotation)
    return (annotation,)


def _is_a(value: Any, kind: Any) -> bool:
    origin = typing.get_origin(kind) or kind
    if origin is typing.Any:
        return True
    if origin is bool:
        return isinstance(value, bool)
    if origin is int:
        return isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if origin is float:
        return isinstance(value, numbers.Real) and not isinstance(value, bool)
    if origin in (list, tuple):
        inner = [arg for arg in typing.get_args(kind) if arg is not Ellipsis] or [Any]
        return isinstance(value, (list, tuple)) and all(any(_is_a(item, i) for i in inner) for item in value)
    if origin is dict or origin is Mapping:
        return isinstance(value, Mapping)
    if isinstance(origin, type):
        return isinstance(value, origin)
    return callable(value) if origin is Callable else True


def _is_one_of(value: Any, choices: tuple[Any, ...]) -> bool:
    return any(value is one or (type(value) is type(one) and value == one) for one in choices)


def _listed(choices: Sequence[Any] | None) -> str:
    return ", ".join(repr(one) for one in choices or ())


def _kind_name(kind: Any) -> str:
    if kind is type(None):
        return "None"
    return {int: "an integer", float: "a number", str: "text", bool: "True or False"}.get(kind, getattr(kind, "__name__", str(kind)))
