"""The search space, and the conversion of trials to models."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from deepforecast.core.forecaster import Forecaster
from deepforecast.core.params import Param, format_param, is_integer_param
from deepforecast.errors import ParameterError, ParameterTypeError, format_list, format_value
from deepforecast.tuning.ranges import DrawFunction, Ranges, format_range, is_in_range, refuse_fixed, resolve_ranges

MODEL_PARAM = "model"  # the parameter that selects one of several models
SCALAR_TYPES = (type(None), bool, int, float, str)  # choices that a storage can save


@dataclass(frozen=True)
class Configuration:
    """The index of a model and the parameters to set on it."""

    model: int
    params: Mapping[str, Any]


@dataclass(frozen=True)
class Space:
    """Models with their ranges, or functions that sample parameters."""

    models: tuple[Forecaster, ...]
    ranges: tuple[Ranges | DrawFunction, ...]

    @property
    def names(self) -> list[str]:
        """Names of the models."""
        return [model.name for model in self.models]

    def draw(self, trial: Any) -> Configuration:
        """Sample a configuration from an Optuna trial."""
        model_index = 0
        prefixed_trial = self._prefixed_trial(trial, 0)
        if len(self.models) > 1:
            model_index = self.names.index(trial.suggest_categorical(MODEL_PARAM, self.names))
            prefixed_trial = self._prefixed_trial(trial, model_index)
        ranges = self.ranges[model_index]
        if callable(ranges):
            return Configuration(model_index, _call_draw_function(ranges, prefixed_trial))
        return Configuration(model_index, sample_from(ranges, self.models[model_index].get_params(), prefixed_trial))

    def draw_given(self, trial: Any, configuration: Configuration) -> None:
        """Record a given configuration in a trial, as far as its values lie in their ranges."""
        if len(self.models) > 1:
            trial.suggest_categorical(MODEL_PARAM, self.names)
        prefixed_trial = self._prefixed_trial(trial, configuration.model)
        ranges = self.ranges[configuration.model]
        values = {**self.models[configuration.model].get_params(), **configuration.params}
        for name in self._params_in_range(configuration):
            sample_from({name: replace(ranges[name], when=None)}, values, prefixed_trial)  # type: ignore[index]

    def to_trial_params(self, configuration: Configuration) -> dict[str, Any]:
        """The parameters of an Optuna trial for a configuration, as far as values lie in their
        ranges."""
        trial_params: dict[str, Any] = {MODEL_PARAM: self.names[configuration.model]} if len(self.models) > 1 else {}
        values = {**self.models[configuration.model].get_params(), **configuration.params}
        prefix = self._prefix(configuration.model)
        for name in self._params_in_range(configuration):
            param: Param = self.ranges[configuration.model][name]  # type: ignore[index]
            trial_params[prefix + name] = values[name] if param.search is None else choice_label(values[name], param.search)
        return trial_params

    def displayed_params(self, configuration: Configuration) -> dict[str, Any]:
        """Parameters of a given configuration for the table of trials, without texts in numeric
        columns."""
        ranges = self.ranges[configuration.model]
        prefix = self._prefix(configuration.model)
        displayed: dict[str, Any] = {}
        if callable(ranges):
            return displayed
        for name, value in self.searched_params(configuration).items():
            choices = ranges[name].search if name in ranges else None
            if choices is not None:
                value = choice_label(value, [*choices, value])
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if is_number or any(not isinstance(choice, int | float) for choice in choices or ()):
                displayed[prefix + name] = value
        return displayed

    def build_model(self, configuration: Configuration) -> Forecaster:
        """Create the model of a configuration."""
        model = self.models[configuration.model].clone()
        return model.set_params(**configuration.params) if configuration.params else model

    def searched_params(self, configuration: Configuration) -> dict[str, Any]:
        """Values of all searched parameters, including those equal to the ones of the model."""
        ranges = self.ranges[configuration.model]
        values = {**self.models[configuration.model].get_params(), **configuration.params}
        names = [] if callable(ranges) else [name for name, param in ranges.items() if param.when is None or param.when(values)]
        return {name: values[name] for name in dict.fromkeys([*names, *configuration.params]) if name in values}

    def configuration_key(self, configuration: Configuration) -> str:
        """A key that is equal for configurations of equal models."""
        model = self.models[configuration.model]
        ranges = self.ranges[configuration.model]
        names = sorted({*configuration.params, *(() if callable(ranges) else ranges)})
        values = {**model.get_params(), **configuration.params}
        representation = repr([(name, values.get(name)) for name in names])
        return f"{configuration.model}-{sha256(representation.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"

    def describe(self) -> dict[str, Any]:
        """Identify the space, as text."""
        description: dict[str, Any] = {}
        for model, ranges in zip(self.models, self.ranges, strict=True):
            if callable(ranges):
                description[model.name] = f"function {getattr(ranges, '__qualname__', type(ranges).__name__)}"
            else:
                description[model.name] = {name: format_range(param) for name, param in ranges.items()}
        return description

    def grid(self) -> dict[str, list[Any]]:
        """All values of each parameter for a grid search; `ParameterError` if there are infinitely
        many."""
        if len(self.models) > 1 or callable(self.ranges[0]):
            raise ParameterError(
                "sampler='grid' requires a single model and a dict of ranges as `space`.", hint="Use another sampler.",
                parameter="sampler",
            )
        values_by_name: dict[str, list[Any]] = {}
        for name, param in self.ranges[0].items():
            if param.search is not None:
                values_by_name[name] = [choice_label(value, param.search) for value in param.search]
            elif (
                param.low is not None and param.high is not None and (is_integer_param(param) or (param.step and not param.log))
            ):
                n_values = math.floor((param.high - param.low) / (param.step or 1) + 1e-9) + 1
                values_by_name[name] = [param.low + index * (param.step or 1) for index in range(n_values)]
            else:
                raise ParameterError(
                    f"sampler='grid' cannot be used with a continuous range, and {name} is {format_range(param)}.",
                    hint=f"Pass space={{'{name}': [...]}} with the values to try.",
                    parameter="sampler",
                )
        return values_by_name

    def _params_in_range(self, configuration: Configuration) -> list[str]:
        """The searched parameters whose value in a configuration lies in their range."""
        ranges = self.ranges[configuration.model]
        if callable(ranges):
            return []
        values = {**self.models[configuration.model].get_params(), **configuration.params}
        return [
            name
            for name, param in ranges.items()
            if (param.when is None or param.when(values)) and is_in_range(values.get(name), param)
        ]

    def _prefixed_trial(self, trial: Any, model_index: int) -> PrefixedTrial:
        return PrefixedTrial(trial, self._prefix(model_index))

    def _prefix(self, model_index: int) -> str:
        return f"{self.names[model_index]}." if len(self.models) > 1 else ""


@dataclass(frozen=True)
class PrefixedTrial:
    """A trial that accepts choices of any type and prefixes names with the model."""

    trial: Any
    prefix: str = ""

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        """Sample one of the choices."""
        labels = [choice_label(choice, choices) for choice in choices]
        return choices[labels.index(self.trial.suggest_categorical(self.prefix + name, labels))]

    def suggest_int(self, name: str, low: int, high: int, *, log: bool = False, step: int = 1) -> int:
        """Sample an integer."""
        return int(self.trial.suggest_int(self.prefix + name, low, high, log=log, step=step))

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False, step: float | None = None) -> float:
        """Sample a number."""
        return float(self.trial.suggest_float(self.prefix + name, low, high, log=log, step=step))


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


def make_space(
    models: Sequence[Forecaster], space: Any, seasons: tuple[int, ...] = (), n_rows: int = 0, may_be_empty: bool = False
) -> Space:
    """Create the search space.

    `space` is that of `TuningOptions`; `seasons` and `n_rows` are those of `resolve_ranges`;
    `may_be_empty`: whether a single model may have no searched parameter.
    """
    has_many_models = len(models) > 1
    if has_many_models:
        refuse_unknown_models([model.name for model in models], space)
    spaces = [space if not has_many_models else (space or {}).get(model.name) for model in models]
    ranges = tuple(
        resolve_ranges(model, model_space, seasons, n_rows) for model, model_space in zip(models, spaces, strict=True)
    )
    if not has_many_models and not may_be_empty and not callable(ranges[0]) and not ranges[0]:
        raise ParameterError(
            f"{models[0].name} must have at least one parameter to search, but the model declares no ranges or all of these "
            "parameters were set explicitly.",
            hint="Pass options=TuningOptions(space={'parameter': (low, high)}).",
            parameter="space",
        )
    return Space(tuple(models), ranges)


def refuse_unknown_models(names: Sequence[str], space: Any) -> None:
    """Refuse a space for several models that is not a dict with their names."""
    if space is not None and not isinstance(space, Mapping):
        raise ParameterTypeError(
            "With several models `space` must be a dict from model names to dicts of ranges or functions of a trial, got "
            f"{format_value(space)}.",
            parameter="space",
        )
    unknown = [name for name in space or () if name not in names]
    if unknown:
        raise ParameterError(
            f"With several models the keys of `space` must be names of models ({format_list(names)}), got "
            f"{format_list(unknown)}.",
            parameter="space",
        )


def choice_label(value: Any, choices: Sequence[Any]) -> Any:
    """A choice as stored: itself, or its repr if some choices cannot be stored."""
    return value if all(isinstance(choice, SCALAR_TYPES) for choice in choices) else format_param(value)


def format_params(parameters: Mapping[str, Any]) -> str:
    """Parameters as text for `parse_params`."""
    return repr(dict(parameters))


def parse_params(text: str) -> dict[str, Any]:
    """Parse a text of `format_params` without executing it."""
    parsed: dict[str, Any] = ast.literal_eval(text)
    return parsed


def _call_draw_function(function: DrawFunction, prefixed_trial: PrefixedTrial) -> dict[str, Any]:
    """The parameters that the function of the caller draws, validated."""
    drawn = function(prefixed_trial)
    if not isinstance(drawn, Mapping) or not all(isinstance(name, str) for name in drawn):
        raise ParameterTypeError(
            f"space(trial) must return a dict of parameters, got {format_value(drawn)} ({type(drawn).__name__}).",
            parameter="space",
        )
    refuse_fixed(drawn, "space(trial)")
    return dict(drawn)
