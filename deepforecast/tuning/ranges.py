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

MAX_EXPENSIVE_RATIO = 2  # times its default: as far as a dear parameter is searched without a GPU
MAX_SPAN = 1.8e308  # of a number
FIXED_PARAMS = {
    "seed": "the seed is not tuned: it would find luck. n_seeds= tries each configuration with several",
    "horizon": "the horizon is what is asked for. Say horizon= of tune()",
    "alias": "an alias changes no forecast. Leave it out",
}

Ranges = Mapping[str, Param]
DrawFunction = Callable[[Any], Mapping[str, Any]]


def resolve_ranges(model: Forecaster, space: Any, seasons: tuple[int, ...] = (), rows: int = 0) -> Ranges | DrawFunction:
    """The ranges of one model: as it declares them, without what the caller said of it; or as they are given. `seasons`,
    `rows`: of the data, where they are known."""
    if callable(space):
        return space  # type: ignore[no-any-return]
    searchable = _searchable_params(model)
    if space is None:
        without_gpu = not _has_gpu(model)
        data_params = {name: replace(searchable[name][0], search=tuple(choices)) for name, choices in _choices_by_data(model, seasons, rows).items()}
        searchable |= {name: (param, searchable[name][1]) for name, param in data_params.items()}
        return {name: _limit_expensive(param) if without_gpu else param for name, (param, is_set) in searchable.items() if param.is_searched and not is_set}
    if not isinstance(space, Mapping):
        raise ParameterTypeError(f"space is a dict of ranges or a function of a trial; got {format_value(space)}.")
    if not space:
        raise ParameterError("space names at least one parameter; it is empty. Leave it out for the declared ranges.")
    return {name: _parse_range(model, searchable, name, value) for name, value in space.items()}


def refuse_fixed(names: Iterable[str], prefix: str) -> None:
    """Refuse what no search may vary."""
    for name in names:
        if (base_name := name.rpartition("__")[2]) in FIXED_PARAMS:
            raise ParameterError(f"{prefix} what may be tuned; {FIXED_PARAMS[base_name]}.")


def is_in_range(value: Any, param: Param) -> bool:
    """Whether a search could draw this value."""
    if param.search is not None:
        return any(type(value) is type(choice) and value == choice for choice in param.search)
    if isinstance(value, bool) or not isinstance(value, int | float) or param.low is None or param.high is None:
        return False
    steps = 0.0 if param.step is None else (value - param.low) / param.step
    return param.low <= value <= param.high and abs(steps - round(steps)) < 1e-9 and (not is_integer_param(param) or float(value).is_integer())


def format_range(param: Param) -> str:
    """A range in words."""
    if param.search is not None:
        return f"one of {[*param.search]!r}"
    extra = (" on a logarithm" if param.log else "") + (f" in steps of {param.step}" if param.step else "")
    return f"{param.low} to {param.high}{extra}"


def _searchable_params(model: Forecaster, prefix: str = "") -> dict[str, tuple[Param, bool]]:
    """Each parameter that may be searched, those of wrapped models too, and whether the caller said its value."""
    searchable: dict[str, tuple[Param, bool]] = {}
    for name, param in declared_params(type(model)).items():
        value = getattr(model, name)
        if isinstance(value, Forecaster):
            searchable |= _searchable_params(value, f"{prefix}{name}__")
        elif name not in FIXED_PARAMS:
            inner = param if not prefix or param.when is None else replace(param, when=_unprefixed_condition(param.when, prefix))
            searchable[prefix + name] = (replace(inner, name=prefix + name), not _is_default(value, param))
    return searchable


def _choices_by_data(model: Forecaster, seasons: tuple[int, ...], rows: int, prefix: str = "") -> dict[str, Sequence[Any]]:
    """Choices that hang on the horizon and on the data, those of wrapped models too."""
    choices_by_name = {prefix + name: choices for name, choices in model._search_choices(seasons, rows).items()}
    for name, value in model.get_params(deep=False).items():
        if isinstance(value, Forecaster):
            choices_by_name |= _choices_by_data(value, seasons, rows, f"{prefix}{name}__")
    return choices_by_name


def _unprefixed_condition(when: Callable[[Mapping[str, Any]], bool], prefix: str) -> Callable[[Mapping[str, Any]], bool]:
    """The same condition, told the values of a wrapped model by the names it gives them."""

    def condition(values: Mapping[str, Any]) -> bool:
        return when({name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)})

    return condition


def _is_default(value: Any, param: Param) -> bool:
    return value is param.default or (type(value) is type(param.default) and bool(value == param.default))


def _limit_expensive(param: Param) -> Param:
    """A dear parameter to twice its default at most."""
    if not param.expensive or param.high is None or not isinstance(param.default, int | float):
        return param
    return replace(param, high=max(min(param.high, MAX_EXPENSIVE_RATIO * param.default), param.low or 0))


def _has_gpu(model: Forecaster) -> bool:
    """Whether its fits would run on one."""
    if getattr(model, "accelerator", "cpu") == "cpu":
        return False
    with passive_waiting("torch"):
        from deepforecast.training.hardware import device_type
    return device_type(str(model.accelerator)) != "cpu"  # type: ignore[attr-defined]


def _parse_range(model: Forecaster, searchable: Mapping[str, tuple[Param, bool]], name: Any, value: Any) -> Param:
    """A range as the caller says it, checked against the declaration."""
    refuse_fixed([str(name)], "space holds")
    if name not in searchable:
        if name not in model.get_params():
            refuse_unknown(type(model), {str(name): value})
        declaration = Param(None, name=str(name))  # of a regressor of one's own
    else:
        declaration = searchable[name][0]
    unrestricted = replace(declaration, low=None, high=None, log=False, step=None, search=None, when=None, expensive=False)
    parsed = _apply_range(unrestricted, declaration, value)
    for choice in parsed.search or (parsed.low, parsed.high):
        if name in searchable:
            unrestricted.check(choice)
    return parsed


def _apply_range(unrestricted: Param, declaration: Param, value: Any) -> Param:
    if isinstance(value, Mapping):
        unknown = set(value) - {"low", "high", "log", "step", "choices"}
        is_malformed = not isinstance(value.get("log", False), bool) or not isinstance(value.get("choices", []), list | tuple)
        if unknown or is_malformed or not ({"low", "high"} <= set(value) or set(value) == {"choices"}):
            raise ParameterError(f"A range is {{'low': 1, 'high': 9}}, with 'log': True or 'step', or {{'choices': [...]}}; "
                                 f"got {format_value(dict(value))} for {unrestricted.name}.")  # fmt: skip
        if "choices" in value:
            return _apply_range(unrestricted, declaration, list(value["choices"]))
        return _numeric_range(unrestricted, value["low"], value["high"], value.get("log", False), value.get("step"))
    if isinstance(value, tuple) and len(value) == 2 and all(type(element) in (int, float) for element in value):
        return _numeric_range(unrestricted, *value, declaration.log and value[0] > 0, None)
    if isinstance(value, list | tuple) and value:
        return replace(unrestricted, search=tuple(_to_tuple(unrestricted, element) for element in value))
    raise ParameterError(f"A range is (low, high), a list of choices or {{'low': 1, 'high': 9}}; got {format_value(value)} for "
                         f"{unrestricted.name}.")  # fmt: skip


def _to_tuple(unrestricted: Param, value: Any) -> Any:
    """A list where only a tuple is legal, as files of ranges have no tuples."""
    if not isinstance(value, list):
        return value
    try:
        unrestricted.check(value)
    except ParameterError:
        return tuple(value)
    return value


def _numeric_range(unrestricted: Param, low: Any, high: Any, log: bool, step: Any) -> Param:
    numbers = [low, high, *([] if step is None else [step])]
    if any(isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number) for number in numbers):
        raise ParameterTypeError(f"The ends of a range are numbers; got {format_value(low)} and {format_value(high)} for {unrestricted.name}.")
    if not low <= high or (log and (low <= 0 or step is not None)) or (step is not None and step <= 0):
        rule = "a range runs from low to high, in steps above 0; of a logarithm low is above 0, and it takes no step"
        raise ParameterError(f"{rule[0].upper()}{rule[1:]}; got {format_value((low, high))} for {unrestricted.name}.")
    if unrestricted.annotation is Any and all(isinstance(number, int) for number in numbers):
        unrestricted = replace(unrestricted, annotation=int)
    if is_integer_param(unrestricted) and not all(isinstance(number, int) or float(number).is_integer() for number in numbers):
        raise ParameterTypeError(f"{unrestricted.name} is a whole number; its range is {format_value((low, high))}.")
    if not math.isfinite(high - low):
        raise ParameterError(f"A range is narrower than {MAX_SPAN:.1g}; got {format_value((low, high))} for {unrestricted.name}.")
    if step is not None:  # where its last step ends
        first, last, by = (Decimal(str(number)) for number in (low, high, step))
        high = type(high)(last - (last - first) % by)
    if is_integer_param(unrestricted):
        low, high, step = int(low), int(high), None if step is None else int(step)
    return replace(unrestricted, low=low, high=high, log=log, step=step)
