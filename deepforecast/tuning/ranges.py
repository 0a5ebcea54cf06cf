"""The ranges of a search: from the declarations of a model, kept affordable, or as the caller says them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from deepforecast.core.forecaster import Forecaster
from deepforecast.core.params import Param, declared_params, is_integer_param, refuse_unknown
from deepforecast.core.threads import passive_waiting
from deepforecast.errors import ParameterError, ParameterTypeError, format_value

DEAREST = 2  # times its default: as far as a dear parameter is searched without a GPU
LARGEST = 1.8e308  # of a number
FIXED = {
    "seed": "the seed is not tuned: it would find luck. n_seeds= tries each configuration with several",
    "horizon": "the horizon is what is asked for. Say horizon= of tune()",
    "alias": "an alias changes no forecast. Leave it out",
}

Ranges = Mapping[str, Param]
Drawing = Callable[[Any], Mapping[str, Any]]


def ranges_for(model: Forecaster, given: Any, seasons: tuple[int, ...] = (), rows: int = 0) -> Ranges | Drawing:
    """The ranges of one model: as it declares them, without what the caller said of it; or as they are given. `seasons`,
    `rows`: of the data, where they are known."""
    if callable(given):
        return given  # type: ignore[no-any-return]
    every = _every(model)
    if given is None:
        cheap = not _has_gpu(model)
        by_data = {name: replace(every[name][0], search=tuple(found)) for name, found in _by_data(model, seasons, rows).items()}
        every |= {name: (one, every[name][1]) for name, one in by_data.items()}
        return {name: _affordable(one) if cheap else one for name, (one, said) in every.items() if one.is_searched and not said}
    if not isinstance(given, Mapping):
        raise ParameterTypeError(f"space is a dict of ranges or a function of a trial; got {format_value(given)}.")
    if not given:
        raise ParameterError("space names at least one parameter; it is empty. Leave it out for the declared ranges.")
    return {name: _said(model, every, name, value) for name, value in given.items()}


def refuse_fixed(names: Iterable[str], holds: str) -> None:
    """Refuse what no search may vary."""
    for name in names:
        if (what := name.rpartition("__")[2]) in FIXED:
            raise ParameterError(f"{holds} what may be tuned; {FIXED[what]}.")


def inside(value: Any, one: Param) -> bool:
    """Whether a search could draw this value."""
    if one.search is not None:
        return any(type(value) is type(other) and value == other for other in one.search)
    if isinstance(value, bool) or not isinstance(value, int | float) or one.low is None or one.high is None:
        return False
    steps = 0.0 if one.step is None else (value - one.low) / one.step
    return one.low <= value <= one.high and abs(steps - round(steps)) < 1e-9 and (not is_integer_param(one) or float(value).is_integer())


def range_text(one: Param) -> str:
    """A range in words."""
    if one.search is not None:
        return f"one of {[*one.search]!r}"
    extra = (" on a logarithm" if one.log else "") + (f" in steps of {one.step}" if one.step else "")
    return f"{one.low} to {one.high}{extra}"


def _every(model: Forecaster, prefix: str = "") -> dict[str, tuple[Param, bool]]:
    """Each parameter that may be searched, those of wrapped models too, and whether the caller said its value."""
    found: dict[str, tuple[Param, bool]] = {}
    for name, one in declared_params(type(model)).items():
        value = getattr(model, name)
        if isinstance(value, Forecaster):
            found |= _every(value, f"{prefix}{name}__")
        elif name not in FIXED:
            inner = one if not prefix or one.when is None else replace(one, when=_inner(one.when, prefix))
            found[prefix + name] = (replace(inner, name=prefix + name), not _is_default(value, one))
    return found


def _by_data(model: Forecaster, seasons: tuple[int, ...], rows: int, prefix: str = "") -> dict[str, Sequence[Any]]:
    """Choices that hang on the horizon and on the data, those of wrapped models too."""
    found = {prefix + name: choices for name, choices in model._search_choices(seasons, rows).items()}
    for name, value in model.get_params(deep=False).items():
        if isinstance(value, Forecaster):
            found |= _by_data(value, seasons, rows, f"{prefix}{name}__")
    return found


def _inner(when: Callable[[Mapping[str, Any]], bool], prefix: str) -> Callable[[Mapping[str, Any]], bool]:
    """The same condition, told the values of a wrapped model by the names it gives them."""

    def told(values: Mapping[str, Any]) -> bool:
        return when({name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)})

    return told


def _is_default(value: Any, one: Param) -> bool:
    return value is one.default or (type(value) is type(one.default) and bool(value == one.default))


def _affordable(one: Param) -> Param:
    """A dear parameter to twice its default at most."""
    if not one.expensive or one.high is None or not isinstance(one.default, int | float):
        return one
    return replace(one, high=max(min(one.high, DEAREST * one.default), one.low or 0))


def _has_gpu(model: Forecaster) -> bool:
    """Whether its fits would run on one."""
    if getattr(model, "accelerator", "cpu") == "cpu":
        return False
    with passive_waiting("torch"):
        from deepforecast.training.hardware import device_type
    return device_type(str(model.accelerator)) != "cpu"  # type: ignore[attr-defined]


def _said(model: Forecaster, every: Mapping[str, tuple[Param, bool]], name: Any, value: Any) -> Param:
    """A range as the caller says it, checked against the declaration."""
    refuse_fixed([str(name)], "space holds")
    if name not in every:
        if name not in model.get_params():
            refuse_unknown(type(model), {str(name): value})
        known = Param(None, name=str(name))  # of a regressor of one's own
    else:
        known = every[name][0]
    plain = replace(known, low=None, high=None, log=False, step=None, search=None, when=None, expensive=False)
    one = _of(plain, known, value)
    for legal in one.search or (one.low, one.high):
        if name in every:
            plain.check(legal)
    return one


def _of(plain: Param, known: Param, value: Any) -> Param:
    if isinstance(value, Mapping):
        unknown = set(value) - {"low", "high", "log", "step", "choices"}
        bent = not isinstance(value.get("log", False), bool) or not isinstance(value.get("choices", []), list | tuple)
        if unknown or bent or not ({"low", "high"} <= set(value) or set(value) == {"choices"}):
            raise ParameterError(f"A range is {{'low': 1, 'high': 9}}, with 'log': True or 'step', or {{'choices': [...]}}; "
                                 f"got {format_value(dict(value))} for {plain.name}.")  # fmt: skip
        if "choices" in value:
            return _of(plain, known, list(value["choices"]))
        return _between(plain, value["low"], value["high"], value.get("log", False), value.get("step"))
    if isinstance(value, tuple) and len(value) == 2 and all(type(one) in (int, float) for one in value):
        return _between(plain, *value, known.log and value[0] > 0, None)
    if isinstance(value, list | tuple) and value:
        return replace(plain, search=tuple(_tupled(plain, one) for one in value))
    raise ParameterError(f"A range is (low, high), a list of choices or {{'low': 1, 'high': 9}}; got {format_value(value)} for "
                         f"{plain.name}.")  # fmt: skip


def _tupled(plain: Param, value: Any) -> Any:
    """A list where only a tuple is legal, as files of ranges have no tuples."""
    if not isinstance(value, list):
        return value
    try:
        plain.check(value)
    except ParameterError:
        return tuple(value)
    return value


def _between(plain: Param, low: Any, high: Any, log: bool, step: Any) -> Param:
    numbers = [low, high, *([] if step is None else [step])]
    if any(isinstance(one, bool) or not isinstance(one, int | float) or not math.isfinite(one) for one in numbers):
        raise ParameterTypeError(f"The ends of a range are numbers; got {format_value(low)} and {format_value(high)} for {plain.name}.")
    if not low <= high or (log and (low <= 0 or step is not None)) or (step is not None and step <= 0):
        rule = "a range runs from low to high, in steps above 0; of a logarithm low is above 0, and it takes no step"
        raise ParameterError(f"{rule[0].upper()}{rule[1:]}; got {format_value((low, high))} for {plain.name}.")
    if plain.annotation is Any and all(isinstance(one, int) for one in numbers):
        plain = replace(plain, annotation=int)
    if is_integer_param(plain) and not all(isinstance(one, int) or float(one).is_integer() for one in numbers):
        raise ParameterTypeError(f"{plain.name} is a whole number; its range is {format_value((low, high))}.")
    if not math.isfinite(high - low):
        raise ParameterError(f"A range is narrower than {LARGEST:.1g}; got {format_value((low, high))} for {plain.name}.")
    if step is not None:  # where its last step ends
        first, last, by = (Decimal(str(one)) for one in (low, high, step))
        high = type(high)(last - (last - first) % by)
    if is_integer_param(plain):
        low, high, step = int(low), int(high), None if step is None else int(step)
    return replace(plain, low=low, high=high, log=log, step=step)
