"""Ranges of a search, as declared by the model or set by the caller."""

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

MAX_EXPENSIVE_RATIO = 2  # without a GPU, expensive parameters are searched up to this multiple of the default
MAX_SPAN = 1.8e308  # largest float64
# parameters that cannot be tuned: the reason and the fix, which end the sentence of the error
FIXED_PARAMS = {
    "seed": "because the best seed is luck. Set `n_seeds` to average each configuration over several seeds",
    "horizon": "because it is part of the task. Pass `horizon` to tune()",
    "alias": "because it does not change forecasts. Leave it out",
}

Ranges = Mapping[str, Param]
DrawFunction = Callable[[Any], Mapping[str, Any]]


def resolve_ranges(model: Forecaster, space: Any, seasons: tuple[int, ...] = (), n_rows: int = 0) -> Ranges | DrawFunction:
    """The ranges of one model: `space`, or the declared ones without parameters that were set
    explicitly.

    `seasons`: usual season lengths of the frequency. `n_rows`: number of rows of the longest series to
    train on; 0: unknown.
    """
    if callable(space):
        return space  # type: ignore[no-any-return]
    searchable = _searchable_params(model)
    if space is None:
        without_gpu = not _has_gpu(model)
        data_params = {
            name: replace(searchable[name][0], search=tuple(choices))
            for name, choices in _choices_by_data(model, seasons, n_rows).items()
        }
        searchable |= {name: (param, searchable[name][1]) for name, param in data_params.items()}
        return {
            name: _limit_expensive(param) if without_gpu else param
            for name, (param, is_set) in searchable.items()
            if param.is_searched and not is_set
        }
    if not isinstance(space, Mapping):
        raise ParameterTypeError(
            f"`space` must be a dict of ranges or a function of a trial, got {format_value(space)}.",
            parameter="space",
            value=space,
        )
    if not space:
        raise ParameterError(
            "`space` must contain at least one parameter, got an empty dict.",
            hint="Add one, or omit `space` for the declared ranges.",
            parameter="space",
        )
    return {name: _parse_range(model, searchable, name, value) for name, value in space.items()}


def refuse_fixed(names: Iterable[str], prefix: str) -> None:
    """Refuse parameters that cannot be tuned."""
    for name in names:
        if (base_name := name.rpartition("__")[2]) in FIXED_PARAMS:
            raise ParameterError(f"`{prefix}` cannot contain {base_name!r}, {FIXED_PARAMS[base_name]}.", parameter=prefix)


def is_in_range(value: Any, param: Param) -> bool:
    """Whether the range has this value."""
    if param.search is not None:
        return any(type(value) is type(choice) and value == choice for choice in param.search)
    if isinstance(value, bool) or not isinstance(value, int | float) or param.low is None or param.high is None:
        return False
    steps = 0.0 if param.step is None else (value - param.low) / param.step
    return (
        param.low <= value <= param.high
        and abs(steps - round(steps)) < 1e-9
        and (not is_integer_param(param) or float(value).is_integer())
    )


def format_range(param: Param) -> str:
    """A range as text."""
    if param.search is not None:
        return f"one of {[*param.search]!r}"
    extra = (" on a log scale" if param.log else "") + (f" in steps of {param.step}" if param.step else "")
    return f"{param.low} to {param.high}{extra}"


def _searchable_params(model: Forecaster, prefix: str = "") -> dict[str, tuple[Param, bool]]:
    """Parameters that can be searched, including those of wrapped models, and whether they were set
    explicitly."""
    searchable: dict[str, tuple[Param, bool]] = {}
    for name, param in declared_params(type(model)).items():
        value = getattr(model, name)
        if isinstance(value, Forecaster):
            searchable |= _searchable_params(value, f"{prefix}{name}__")
        elif name not in FIXED_PARAMS:
            inner = (
                param if not prefix or param.when is None else replace(param, when=_unprefixed_condition(param.when, prefix))
            )
            searchable[prefix + name] = (replace(inner, name=prefix + name), not _is_default(value, param))
    return searchable


def _choices_by_data(model: Forecaster, seasons: tuple[int, ...], n_rows: int, prefix: str = "") -> dict[str, Sequence[Any]]:
    """Choices that depend on the horizon and the data, including those of wrapped models."""
    choices_by_name = {prefix + name: choices for name, choices in model._search_choices(seasons, n_rows).items()}
    for name, value in model.get_params(deep=False).items():
        if isinstance(value, Forecaster):
            choices_by_name |= _choices_by_data(value, seasons, n_rows, f"{prefix}{name}__")
    return choices_by_name


def _unprefixed_condition(when: Callable[[Mapping[str, Any]], bool], prefix: str) -> Callable[[Mapping[str, Any]], bool]:
    """The condition of a wrapped model, for values with prefixed names."""

    def condition(values: Mapping[str, Any]) -> bool:
        return when({name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)})

    return condition


def _is_default(value: Any, param: Param) -> bool:
    return value is param.default or (type(value) is type(param.default) and bool(value == param.default))


def _limit_expensive(param: Param) -> Param:
    """Limit an expensive parameter to twice its default."""
    if not param.expensive or param.high is None or not isinstance(param.default, int | float):
        return param
    return replace(param, high=max(min(param.high, MAX_EXPENSIVE_RATIO * param.default), param.low or 0))


def _has_gpu(model: Forecaster) -> bool:
    """Whether the model would be trained on a GPU."""
    if not hasattr(model, "trainer"):  # not a network
        return False
    accelerator = (model.trainer or {}).get("accelerator", "auto")
    if accelerator == "cpu":
        return False
    with passive_waiting("torch"):
        from deepforecast.training.process import device_type

        return device_type(str(accelerator)) != "cpu"


def _parse_range(model: Forecaster, searchable: Mapping[str, tuple[Param, bool]], name: Any, value: Any) -> Param:
    """A range of the caller, validated against the declaration."""
    refuse_fixed([str(name)], "space")
    if name not in searchable:
        if name not in model.get_params():
            refuse_unknown(type(model), {str(name): value})
        declaration = Param(None, name=str(name))  # a parameter of a custom regressor
    else:
        declaration = searchable[name][0]
    unrestricted = replace(declaration, low=None, high=None, log=False, step=None, search=None, when=None, expensive=False)
    parsed = _apply_range(unrestricted, declaration, value)
    for choice in parsed.search or (parsed.low, parsed.high):
        if name in searchable:
            unrestricted.check(choice)
    return parsed


def _apply_range(unrestricted: Param, declaration: Param, value: Any) -> Param:
    """The parameter with a range of the caller: a dict, a tuple of two numbers, or a list of choices.

    `unrestricted`: the parameter without a range. A tuple of numbers is on a log scale if the range of
    the `declaration` is and its lower bound is positive.
    """
    if isinstance(value, Mapping):
        unknown = set(value) - {"low", "high", "log", "step", "choices"}
        is_malformed = not isinstance(value.get("log", False), bool) or not isinstance(value.get("choices", []), list | tuple)
        if unknown or is_malformed or not ({"low", "high"} <= set(value) or set(value) == {"choices"}):
            raise ParameterError(
                f"The range of {unrestricted.name} must be a dict such as {{'low': 1, 'high': 9}}, optionally with 'log': True "
                f"or 'step', or {{'choices': [...]}}, got {format_value(dict(value))}.",
                parameter="space",
            )
        if "choices" in value:
            return _apply_range(unrestricted, declaration, list(value["choices"]))
        log = value.get("log", False)
        return _numeric_range(unrestricted, value["low"], value["high"], log=log, step=value.get("step"))
    if isinstance(value, tuple) and len(value) == 2 and all(type(element) in (int, float) for element in value):
        return _numeric_range(unrestricted, *value, declaration.log and value[0] > 0, None)
    if isinstance(value, list | tuple) and value:
        return replace(unrestricted, search=tuple(_to_tuple(unrestricted, element) for element in value))
    raise ParameterError(
        f"The range of {unrestricted.name} must be a tuple (low, high), a non-empty list of choices or a dict such as "
        f"{{'low': 1, 'high': 9}}, got {format_value(value)}.",
        parameter="space",
    )


def _to_tuple(unrestricted: Param, value: Any) -> Any:
    """Convert a list to a tuple if the parameter accepts only tuples, which YAML files do not
    have."""
    if not isinstance(value, list):
        return value
    try:
        unrestricted.check(value)
    except ParameterError:
        return tuple(value)
    return value


def _numeric_range(unrestricted: Param, low: Any, high: Any, log: bool, step: Any) -> Param:
    """The parameter with a range of numbers; `high` is lowered to the last value reached by steps."""
    bounds = [low, high, *([] if step is None else [step])]
    if any(isinstance(bound, bool) or not isinstance(bound, int | float) or not math.isfinite(bound) for bound in bounds):
        raise ParameterTypeError(
            f"The bounds and the step of the range of {unrestricted.name} must be finite numbers, got "
            f"{', '.join(map(format_value, bounds))}.",
            parameter="space",
        )
    if not low <= high:
        raise ParameterError(
            f"'low' cannot be above 'high' in the range of {unrestricted.name}, got {low} and {high}.", parameter="space"
        )
    if step is not None and step <= 0:
        raise ParameterError(f"'step' must be positive in the range of {unrestricted.name}, got {step}.", parameter="space")
    if log and low <= 0:
        raise ParameterError(
            f"'low' must be positive on a log scale, got {low} in the range of {unrestricted.name}.", parameter="space"
        )
    if log and step is not None:
        raise ParameterError(
            f"'log' and 'step' cannot be combined in the range of {unrestricted.name}.", hint="Drop one of them.",
            parameter="space",
        )
    if unrestricted.annotation is Any and all(isinstance(bound, int) for bound in bounds):
        unrestricted = replace(unrestricted, annotation=int)
    if is_integer_param(unrestricted) and not all(isinstance(bound, int) or float(bound).is_integer() for bound in bounds):
        raise ParameterTypeError(
            f"The range of {unrestricted.name} must have integer bounds, got {format_value((low, high))}.", parameter="space"
        )
    if not math.isfinite(high - low):
        raise ParameterError(
            f"The range of {unrestricted.name} must be narrower than {MAX_SPAN:.1g}, got {format_value((low, high))}.",
            parameter="space",
        )
    if step is not None:  # the largest value reached by steps
        # Decimal: 0.3 is a multiple of 0.1
        exact_low, exact_high, exact_step = (Decimal(str(bound)) for bound in (low, high, step))
        high = type(high)(exact_high - (exact_high - exact_low) % exact_step)
    if is_integer_param(unrestricted):
        low = int(low)
        high = int(high)
        step = None if step is None else int(step)
    return replace(unrestricted, low=low, high=high, log=log, step=step)
