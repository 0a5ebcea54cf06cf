"""Where a search looks: ranges as the models declare them, or as the caller says; and from a trial to a model."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from deepforecast.core.forecaster import Forecaster
from deepforecast.core.params import Param, is_integer_param, sample_from
from deepforecast.errors import ParameterError, ParameterTypeError, format_list, format_value
from deepforecast.tuning.ranges import Drawing, Ranges, inside, range_text, ranges_for, refuse_fixed

MODEL = "model"  # the parameter that says which model, where there are several
SCALARS = (type(None), bool, int, float, str)  # of choices that a storage keeps as they are


@dataclass(frozen=True)
class Configuration:
    """What a trial tries: one of the models, and the parameters that are not as it has them."""

    model: int
    params: Mapping[str, Any]


@dataclass(frozen=True)
class Space:
    """The models, and for each its ranges (or a function that draws)."""

    models: tuple[Forecaster, ...]
    ranges: tuple[Ranges | Drawing, ...]

    @property
    def names(self) -> list[str]:
        """Of the models."""
        return [model.name for model in self.models]

    def draw(self, trial: Any) -> Configuration:
        """What an Optuna trial is to try."""
        number, chosen = 0, self._chosen(trial, 0)
        if len(self.models) > 1:
            number = self.names.index(trial.suggest_categorical(MODEL, self.names))
            chosen = self._chosen(trial, number)
        ranges = self.ranges[number]
        if callable(ranges):
            return Configuration(number, _drawn_by(ranges, chosen))
        return Configuration(number, sample_from(ranges, self.models[number].get_params(), chosen))

    def draw_given(self, trial: Any, given: Configuration) -> None:
        """Let a trial know a configuration that is tried whatever it would draw, as far as it can name its parameters."""
        if len(self.models) > 1:
            trial.suggest_categorical(MODEL, self.names)
        chosen, ranges = self._chosen(trial, given.model), self.ranges[given.model]
        values = {**self.models[given.model].get_params(), **given.params}
        for name in self._sayable(given):
            sample_from({name: replace(ranges[name], when=None)}, values, chosen)  # type: ignore[index]

    def spelled(self, given: Configuration) -> dict[str, Any]:
        """A configuration as an Optuna trial would hold it: what it can name."""
        said: dict[str, Any] = {MODEL: self.names[given.model]} if len(self.models) > 1 else {}
        values = {**self.models[given.model].get_params(), **given.params}
        prefix = self._prefix(given.model)
        for name in self._sayable(given):
            one: Param = self.ranges[given.model][name]  # type: ignore[index]
            said[prefix + name] = values[name] if one.search is None else label(values[name], one.search)
        return said

    def shown(self, tried: Configuration) -> dict[str, Any]:
        """A configuration as a frame has it, beside those that are drawn: no words among numbers."""
        ranges, prefix = self.ranges[tried.model], self._prefix(tried.model)
        found: dict[str, Any] = {}
        if callable(ranges):
            return found
        for name, value in self.searched(tried).items():
            choices = ranges[name].search if name in ranges else None
            if choices is not None:
                value = label(value, [*choices, value])
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if number or any(not isinstance(one, int | float) for one in choices or ()):
                found[prefix + name] = value
        return found

    def built(self, tried: Configuration) -> Forecaster:
        """The model of a configuration."""
        model = self.models[tried.model].clone()
        return model.set_params(**tried.params) if tried.params else model

    def searched(self, tried: Configuration) -> dict[str, Any]:
        """The values of all parameters that are searched, also where they are as the model has them."""
        ranges = self.ranges[tried.model]
        values = {**self.models[tried.model].get_params(), **tried.params}
        names = [] if callable(ranges) else [name for name, one in ranges.items() if one.when is None or one.when(values)]
        return {name: values[name] for name in dict.fromkeys([*names, *tried.params]) if name in values}

    def key(self, tried: Configuration) -> str:
        """The same for configurations that are the same model."""
        model, ranges = self.models[tried.model], self.ranges[tried.model]
        names = sorted({*tried.params, *(() if callable(ranges) else ranges)})
        values = {**model.get_params(), **tried.params}
        said = repr([(name, values.get(name)) for name in names])
        return f"{tried.model}-{sha256(said.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"

    def told(self) -> dict[str, Any]:
        """What tells this space from others, as text."""
        told: dict[str, Any] = {}
        for model, ranges in zip(self.models, self.ranges, strict=True):
            if callable(ranges):
                told[model.name] = f"function {getattr(ranges, '__qualname__', type(ranges).__name__)}"
            else:
                told[model.name] = {name: range_text(one) for name, one in ranges.items()}
        return told

    def grid(self) -> dict[str, list[Any]]:
        """Every value of every parameter, for a sampler that tries them all; refused where they are not finitely many."""
        if len(self.models) > 1 or callable(self.ranges[0]):
            raise ParameterError("sampler='grid' takes one model with a dict of ranges. Say another sampler.")
        found: dict[str, list[Any]] = {}
        for name, one in self.ranges[0].items():
            if one.search is not None:
                found[name] = [label(value, one.search) for value in one.search]
            elif one.low is not None and one.high is not None and (is_integer_param(one) or (one.step and not one.log)):
                count = math.floor((one.high - one.low) / (one.step or 1) + 1e-9) + 1
                found[name] = [one.low + place * (one.step or 1) for place in range(count)]
            else:
                raise ParameterError(
                    f"sampler='grid' needs so many values of each parameter; {name} is drawn from {range_text(one)}. Say "
                    f"space={{'{name}': [...]}} with the values to try."
                )
        return found

    def _sayable(self, given: Configuration) -> list[str]:
        """Those searched parameters whose value in a configuration lies in their range."""
        ranges = self.ranges[given.model]
        if callable(ranges):
            return []
        values = {**self.models[given.model].get_params(), **given.params}
        return [
            name for name, one in ranges.items() if (one.when is None or one.when(values)) and inside(values.get(name), one)
        ]

    def _chosen(self, trial: Any, number: int) -> Chosen:
        return Chosen(trial, self._prefix(number))

    def _prefix(self, number: int) -> str:
        return f"{self.names[number]}." if len(self.models) > 1 else ""


@dataclass(frozen=True)
class Chosen:
    """A trial that takes choices of any kind, and has names of its own for each model."""

    trial: Any
    prefix: str = ""

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        """One of the choices."""
        labels = [label(one, choices) for one in choices]
        return choices[labels.index(self.trial.suggest_categorical(self.prefix + name, labels))]

    def suggest_int(self, name: str, low: int, high: int, *, log: bool = False, step: int = 1) -> int:
        """A whole number in the range."""
        return int(self.trial.suggest_int(self.prefix + name, low, high, log=log, step=step))

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False, step: float | None = None) -> float:
        """A number in the range."""
        return float(self.trial.suggest_float(self.prefix + name, low, high, log=log, step=step))


def space_for(
    models: Sequence[Forecaster], given: Any, seasons: tuple[int, ...] = (), rows: int = 0, empty: bool = False
) -> Space:
    """The space of a search; `given` as in `TuningOptions.space`, `seasons` and `rows` (to learn from, 0: unknown) of the data.
    `empty`: whether one model may have nothing that is searched."""
    several = len(models) > 1
    if several:
        refuse_strangers([model.name for model in models], given)
    said = [given if not several else (given or {}).get(model.name) for model in models]
    ranges = tuple(ranges_for(model, one, seasons, rows) for model, one in zip(models, said, strict=True))
    if not several and not empty and not callable(ranges[0]) and not ranges[0]:
        raise ParameterError(
            f"{models[0].name} declares no parameter that a search varies, or all are fixed by what you said of it. Name "
            "some: options=TuningOptions(space={'parameter': (low, high)})."
        )
    return Space(tuple(models), ranges)


def refuse_strangers(names: Sequence[str], given: Any) -> None:
    """Of several models a space is said by their names."""
    if given is not None and not isinstance(given, Mapping):
        raise ParameterTypeError("With several models space is a dict: model -> ranges or a function of a trial.")
    unknown = [name for name in given or () if name not in names]
    if unknown:
        raise ParameterError(f"With several models space is a dict with their names, {format_list(names)}; got {format_list(unknown)}.")


def label(value: Any, choices: Sequence[Any]) -> Any:
    """A choice as a storage keeps it: itself, or its text."""
    return value if all(isinstance(one, SCALARS) for one in choices) else repr(value)


def written(params: Mapping[str, Any]) -> str:
    """Parameters as text that `read` takes back, where all are plain values."""
    return repr(dict(params))


def read(text: str) -> dict[str, Any]:
    """Parameters of a text by `written`; nothing in it is run."""
    found: dict[str, Any] = ast.literal_eval(text)
    return found


def _drawn_by(function: Drawing, chosen: Chosen) -> dict[str, Any]:
    found = function(chosen)
    if not isinstance(found, Mapping) or not all(isinstance(name, str) for name in found):
        raise ParameterTypeError(f"space(trial) gives a dict of parameters; got {format_value(found)} ({type(found).__name__}).")
    refuse_fixed(found, "space(trial) gives")
    return dict(found)
