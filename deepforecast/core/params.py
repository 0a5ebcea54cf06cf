"""Hyperparameters: declared once with default, range and meaning; constructor, errors, repr, search space and flags follow.

    class SeasonalNaive(Forecaster):
        season_length: int | Literal["auto"] = param(default="auto", at_least=1, help="number of steps per season")

A subclass that declares a parameter again gives it another default and keeps what it does not say of it.
"""

from __future__ import annotations

import math
import numbers
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any

from deepforecast.core.kinds import alternatives, is_a, is_one_of, listed, name_of
from deepforecast.errors import ParameterError, ParameterTypeError, shown, some


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED = _Required()


@dataclass(frozen=True)
class Param:
    """One declared hyperparameter.

    `choices` are the values of the `Literal` types in its annotation; `declared` lists the options that its own declaration
    sets, so that a subclass which declares the parameter again inherits the others. For the rest see `param`.
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
        """No default: the caller has to give it."""
        return self.default is REQUIRED

    @property
    def searched(self) -> bool:
        """A search may vary it."""
        return self.search is not None or self.low is not None or self.high is not None

    def check(self, value: Any) -> None:
        """Raise `ParameterTypeError` or `ParameterError` unless the value is legal."""
        if is_one_of(value, self.choices or ()):
            return
        kinds = alternatives(self.annotation)
        if not any(is_a(value, kind) for kind in self._free(kinds)):
            if any(is_a(value, kind) for kind in (*kinds, *map(type, self.choices or ()))):
                raise ParameterError(f"{self.name} is {self._rule(kinds)}; got {_told(value)}.")
            found = f"{_told(value)} ({type(value).__name__}).{_hint(value, kinds)}"
            raise ParameterTypeError(f"{self.name} is {self._rule(kinds)}; got {found}")
        if not any(kind is Any or Any in typing.get_args(kind) for kind in kinds) and not self._within(value):
            raise ParameterError(f"{self.name} is {self._rule(kinds)}; got {_told(value)}.")

    def _free(self, kinds: Sequence[Any]) -> list[Any]:
        """The kinds of which any value does: those that no choice is of."""
        return [kind for kind in kinds if not any(is_a(one, kind) for one in self.choices or ())]

    def _within(self, value: Any) -> bool:
        if isinstance(value, (list, tuple)):
            return all(self._within(item) for item in value)
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            return True
        number: Any = value  # compared as it is: float() would overflow on a long integer
        return (
            (isinstance(value, numbers.Integral) or math.isfinite(number))
            and (self.at_least is None or number >= self.at_least)
            and (self.above is None or number > self.above)
            and (self.at_most is None or number <= self.at_most)
            and (self.below is None or number < self.below)
        )

    def _rule(self, kinds: Sequence[Any]) -> str:
        """What is legal, in words."""
        words = (("of at least", self.at_least), ("above", self.above), ("of at most", self.at_most), ("below", self.below))
        bounds = " and ".join(f"{word} {bound:,}" for word, bound in words if bound is not None)
        free = [kind for kind in self._free(kinds) if kind is not type(None)]
        last = [None] if type(None) in kinds and None not in (self.choices or ()) else []
        told = [listed([*(self.choices or ())])] if self.choices else []
        told += [name_of(kind, bounds and f" {bounds}") for kind in free] + [repr(one) for one in last]
        return " or ".join([", ".join(told[:-1]), told[-1]] if len(told) > 1 else told)


OPTIONS = {field.name for field in fields(Param)} - {"default", "name", "annotation", "choices", "declared"}


def param(*, default: Any = REQUIRED, **options: Any) -> Any:
    """Declare a hyperparameter in the body of a model class.

    The annotation states its type, and as `Literal[...]` its choices:
    `season_length: int | Literal["auto"] = param(default="auto", at_least=1, help="number of steps per season")`.

    Parameters
    ----------
    default : object, optional
        Value if the caller passes none. Without a default the parameter is required.
    help : str
        What the parameter means, for the docstring, error messages and the command line.
    at_least, above, at_most, below : float, optional
        Bounds of a number, or of the numbers in a list.
    low, high : float, optional
        Range that `tune` searches, on a logarithmic scale if `log`, in multiples of `step` if given.
    search : sequence, optional
        Values that `tune` tries, instead of a range.
    when : callable, optional
        Takes the values of the other parameters; `tune` searches this one only where it returns True.
    expensive : bool, default False
        Whether larger values make a fit slower.
    group : str, default ""
        Heading under which the docstring lists the parameter; "" is the main list.
    kw_only : bool, default True
        Whether the parameter can only be passed by keyword. False is for what a wrapper wraps.
    convert : callable, optional
        Turns a value such as a frame into plain data, and returns plain data unchanged.
    """
    unknown = sorted(set(options) - OPTIONS)
    if unknown:
        raise ParameterTypeError(
            f"`param` has no option {some(unknown)}. Use {some(sorted(OPTIONS), most=20)}; choices are `Literal` types "
            "in the annotation."
        )
    if options.get("search") is not None:
        options["search"] = tuple(options["search"])
    return Param(default, **options, declared=tuple(options))


def declared(cls: type) -> dict[str, Param]:
    """The hyperparameters of a class in the order of its constructor, those of its bases first."""
    found: dict[str, Param] = {}
    for base in reversed(cls.__mro__):
        found |= vars(base).get("_own_params", {})
    return found


def values(cls: type, args: tuple[Any, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """The full set of values for a constructor call, each checked; the very objects given."""
    params: dict[str, Param] = cls._params  # type: ignore[attr-defined]
    positional = [name for name, one in ordered(params) if not one.kw_only]
    if len(args) > len(positional):
        raise _too_many_positional(cls, positional, args[len(positional)])
    held = dict(zip(positional, args, strict=False))
    duplicates = [name for name in held if name in given]
    if duplicates:
        raise ParameterTypeError(f"{cls.__name__} got multiple values for {some(duplicates)}: by position and by keyword.")
    held.update(given)
    refuse_unknown(cls, held)
    for name, one in params.items():
        if name in held:
            held[name] = one.convert(held[name]) if one.convert is not None else held[name]
            one.check(held[name])
        elif one.required:
            what = f"{name} ({one.help})" if one.help else name
            raise ParameterTypeError(f"{cls.__name__} needs {what}. Say {cls.__name__}({name}=...).")
        else:
            held[name] = one.default
    return {name: held[name] for name in params}


def _too_many_positional(cls: type, positional: Sequence[str], value: Any) -> ParameterTypeError:
    """The error for an argument that must be passed by keyword, with the keywords it may be meant for."""
    params: dict[str, Param] = cls._params  # type: ignore[attr-defined]
    allowed = f"only {some(positional)} by position" if positional else "keyword arguments only"
    meant = [name for name in ("horizon", "season_length") if name in params and _legal(params[name], value)]
    calls = " or ".join(f"{cls.__name__}({name}={shown(value)})" for name in meant)
    return ParameterTypeError(f"{cls.__name__} takes {allowed}, got {_told(value)}. Use {calls or 'its keyword'}.")


def changed(model: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """All values of a model with some of them changed, checked as on construction; those of a wrapped one by `model__name`."""
    nested = {name: value for name, value in given.items() if "__" in name}
    own = {name: value for name, value in given.items() if "__" not in name}
    refuse_unknown(type(model), {**own, **{name.partition("__")[0]: None for name in nested}})
    checked = values(type(model), (), {**model.get_params(deep=False), **own})
    for name, value in nested.items():
        outer, _, inner = name.partition("__")
        if not hasattr(type(checked[outer]), "_params"):
            raise ParameterTypeError(f"{name} is a parameter of a model in {outer}; {outer} is {shown(checked[outer])}.")
        checked[outer] = checked[outer].clone().set_params(**{inner: value})
    return checked


def written(model: Any) -> str:
    """A model as it is constructed: the parameters that are not their defaults."""
    said = [(name, getattr(model, name), one.default) for name, one in declared(type(model)).items()]
    parts = [f"{name}={value!r}" for name, value, default in said if not _same(value, default)]
    return f"{type(model).__name__}({', '.join(parts)})"


def refuse_unknown(cls: type, given: Mapping[str, Any]) -> None:
    """Raise `ParameterTypeError` for names the class does not declare, with the nearest that it does."""
    params: dict[str, Param] = cls._params  # type: ignore[attr-defined]
    for name in given:
        if name not in params:
            near = get_close_matches(name, params, n=3)
            hint = f"Did you mean {some(near)}?" if near else f"It takes {some(list(params), most=40)}."
            raise ParameterTypeError(f"{cls.__name__} has no parameter {shown(name)}. {hint}")


def sample(cls: type, choose: Any) -> dict[str, Any]:
    """A configuration drawn from the search ranges. `choose` has `suggest_int`, `suggest_float`, `suggest_categorical` (an
    Optuna trial, or `Draws(seed)`)."""
    every = declared(cls)
    searched = {name: one for name, one in every.items() if one.searched}
    return sample_from(searched, {name: one.default for name, one in every.items()}, choose)


def sample_from(ranges: Mapping[str, Param], around: Mapping[str, Any], choose: Any) -> dict[str, Any]:
    """The same from these ranges, in their order; `around`: values of the parameters that are not, or not yet, drawn."""
    drawn: dict[str, Any] = {}
    for name, one in ranges.items():
        if one.when is not None and not one.when({**around, **drawn}):
            continue
        if one.search is not None:
            drawn[name] = choose.suggest_categorical(name, list(one.search))
        elif counted(one):
            drawn[name] = choose.suggest_int(name, one.low, one.high, log=one.log, step=one.step or 1)
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
        if step is not None:
            return low + step * self._random.randrange(int((high - low) / step + 1e-9) + 1)
        if log:
            return min(max(math.exp(self._random.uniform(math.log(low), math.log(high))), low), high)
        return self._random.uniform(low, high)

    def suggest_int(self, name: str, low: int, high: int, *, log: bool = False, step: int = 1) -> int:
        """A whole number in the range."""
        if log:
            return round(self.suggest_float(name, low, high, log=True))
        return self._random.randrange(low, high + 1, step)


def _legal(one: Param, value: Any) -> bool:
    try:
        one.check(value)
    except ParameterError:
        return False
    return True


def _same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and bool(value == default))


def _told(value: Any) -> str:
    return f"'{shown(value)}'" if isinstance(value, str) else shown(value)


def _hint(value: Any, kinds: Sequence[Any]) -> str:
    made = isinstance(value, type) and any(isinstance(kind, type) and issubclass(value, kind) for kind in kinds)
    return f" Did you mean {value.__name__}()?" if made else ""


def counted(one: Param) -> bool:
    """It is searched in whole numbers."""
    kinds = alternatives(one.annotation)
    return int in kinds and float not in kinds


def ordered(params: Mapping[str, Param]) -> list[tuple[str, Param]]:
    """Parameters as in the constructor: what may be given by position before the rest, what must be given before what may."""
    return sorted(params.items(), key=lambda item: (item[1].kw_only, not item[1].required))
