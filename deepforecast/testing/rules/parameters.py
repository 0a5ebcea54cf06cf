"""Parameters: stored as given, invalid ones refused with their name, unchanged by clone, repr and JSON."""

from __future__ import annotations

import json
import typing
from collections.abc import Iterator
from typing import Any

import numpy as np
import optuna

from deepforecast.core import params
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.params import union_members
from deepforecast.errors import ParameterError, ParameterTypeError
from deepforecast.testing import plain_values
from deepforecast.testing.assertions import expect, expect_error
from deepforecast.testing.check import rule
from deepforecast.testing.fixtures import HORIZON
from deepforecast.testing.subject import Subject
from deepforecast.tuning.space import PrefixedTrial, sample_from
from deepforecast.tuning.storage import silence_optuna

PLAIN_TYPES = {int, float, str, bool, type(None), list, tuple}


@rule()
def constructor_only_stores(subject: Subject) -> None:
    """The constructor stores the given objects and nothing else."""
    arguments = {**subject.parameters, "alias": "".join(["some", " name"]), "horizon": np.int64(HORIZON)}
    model = subject.cls(**arguments)
    for name, param in params.declared_params(subject.cls).items():
        value = arguments.get(name, param.default)
        expect(
            getattr(model, name) is value,
            f"the constructor must store the {name} that was passed, {value!r}, got {getattr(model, name)!r}",
        )
    extra_names = sorted(set(vars(model)) - set(params.declared_params(subject.cls)))
    expect(not extra_names, f"the constructor must set parameters only, but also sets {', '.join(extra_names)}")


@rule()
def unknown_parameters_are_refused(subject: Subject) -> None:
    """An unknown parameter raises an error that names it and the closest match."""
    with expect_error(ParameterTypeError, "horizn", "horizon", when="the model is constructed with horizn=3"):
        subject.make(horizn=3)
    with expect_error(ParameterTypeError, "horizn", "horizon", when="set_params(horizn=3) is called"):
        subject.make().set_params(horizn=3)


@rule()
def illegal_values_are_refused(subject: Subject) -> None:
    """A value out of range or of the wrong type raises an error with the parameter in constructor and `set_params`."""
    model = subject.make()
    original = model.get_params(deep=False)
    for name, value in illegal_values(subject.cls):
        with expect_error(ParameterError, name, when=f"the model is constructed with {name}={value!r}"):
            subject.make(**{name: value})
        with expect_error(ParameterError, name, when=f"set_params({name}={value!r}) is called"):
            model.set_params(**{"alias": "changed", name: value})
        changed = [key for key, value in model.get_params(deep=False).items() if value is not original[key]]
        expect(
            not changed, f"a failed set_params({name}={value!r}) must not change parameters, but changed {', '.join(changed)}"
        )


@rule()
def set_params_sets(subject: Subject) -> None:
    """`set_params` returns the model itself and changes only the given parameters."""
    model = subject.make()
    original = model.get_params(deep=False)
    expect(model.set_params(horizon=HORIZON + 2, alias="other") is model, "set_params must return the model itself")
    expect(
        (model.horizon, model.alias, model.name) == (HORIZON + 2, "other", "other"),
        f"set_params(horizon={HORIZON + 2}, alias='other') must set these parameters and the name, got horizon={model.horizon}, "
        f"alias={model.alias!r}, name={model.name!r}",
    )
    changed = [
        name for name, value in original.items() if name not in ("horizon", "alias") and getattr(model, name) is not value
    ]
    expect(not changed, f"set_params(horizon=..., alias=...) must change these only, but changed {', '.join(changed)}")
    for name, original_value in original.items():
        if isinstance(original_value, Forecaster):
            model.set_params(**{f"{name}__alias": "inner"})
            alias = getattr(model, name).alias
            expect(alias == "inner", f"set_params({name}__alias='inner') must set the alias of {name}, got {alias!r}")
            expect(
                original_value.alias != "inner",
                f"set_params({name}__alias='inner') must replace {name} by a clone, but changed the object that was passed",
            )


@rule()
def clone_is_equal_and_unfitted(subject: Subject) -> None:
    """A clone has the same parameters except given changes, is not fitted and shares no wrapped model."""
    model = subject.fitted()
    cloned = model.clone()
    expect(type(cloned) is type(model) and cloned == model, f"clone must return an equal model, got {cloned!r} for {model!r}")
    expect("state_" not in vars(cloned), "clone must return an unfitted model, got one with `state_`")
    shared = [
        name
        for name, value in model.get_params(deep=False).items()
        if isinstance(value, Forecaster) and getattr(cloned, name) is value
    ]
    expect(not shared, f"clone must also clone models among the parameters, but shares {', '.join(shared)}")
    renamed = model.clone(alias="other")
    expect(renamed.alias == "other" and renamed != model, f"clone(alias='other') must change the alias, got {renamed!r}")
    expect(
        renamed.set_params(alias=model.alias) == model,
        f"clone(alias='other') must change the alias only, got {renamed!r} for {model!r} after the alias was set back",
    )


@rule(packages=("sklearn",))
def scikit_learn_clones(subject: Subject) -> None:
    """`sklearn.base.clone` returns an equal, unfitted model."""
    from sklearn.base import clone

    model = subject.fitted()
    cloned = clone(model)
    expect(
        cloned is not model and cloned == model, f"sklearn.base.clone must return an equal copy, got {cloned!r} for {model!r}"
    )
    expect("state_" not in vars(cloned), "sklearn.base.clone must return an unfitted model, got one with `state_`")


@rule()
def repr_rebuilds_the_model(subject: Subject) -> None:
    """Evaluating the repr gives an equal model."""
    for model in (subject.make(), subject.make(alias='it\'s "so"'), subject.make(horizon=None)):
        text = repr(model)
        evaluated = plain_values.evaluate(text, plain_values.collect_classes(model))
        expect(evaluated == model, f"evaluating the repr {text} must give an equal model, got {evaluated!r}")


@rule()
def parameters_survive_json(subject: Subject) -> None:
    """Parameters survive a round trip through JSON."""
    model = subject.make()
    text = json.dumps(plain_values.to_plain(model), allow_nan=False)
    restored = plain_values.from_plain(json.loads(text), plain_values.collect_classes(model))
    expect(restored == model, f"parameters restored from the JSON {text} must give an equal model, got {restored!r}")


@rule()
def equality_is_by_parameters(subject: Subject) -> None:
    """Models are equal if class and parameters are equal; equal models have equal hashes, or none."""
    model = subject.make()
    equal_model = subject.make()
    different_model = subject.make(horizon=HORIZON + 1)
    expect(
        model == equal_model and model == subject.fitted(),
        f"models with the same parameters must be equal, fitted or not; {model!r} is not",
    )
    expect(
        model != different_model and model != "text",
        f"{model!r} must not be equal to {different_model!r} or to a str, but is",
    )
    try:
        hashes = {hash(model), hash(equal_model)}
    except TypeError:
        return
    expect(len(hashes) == 1, f"equal models must have equal hashes, got {sorted(hashes)}")


@rule()
def sampled_configurations_are_valid(subject: Subject) -> None:
    """Every configuration sampled from the declared search space is valid."""
    declared = params.declared_params(subject.cls)
    searched = {name: param for name, param in declared.items() if param.is_searched}
    defaults = {name: param.default for name, param in declared.items()}
    with silence_optuna():
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for _ in range(20):
        configuration = sample_from(searched, defaults, PrefixedTrial(study.ask()))
        model = subject.make(**configuration)
        stored = {name: getattr(model, name) for name in configuration}
        expect(stored == configuration, f"the sampled configuration {configuration} must be stored as it is, got {stored}")


def illegal_values(cls: type[Forecaster]) -> Iterator[tuple[str, Any]]:
    """Yield values just outside the declared range of each parameter, and of other types."""
    for name, param in params.declared_params(cls).items():
        accepted_types = {typing.get_origin(member) or member for member in union_members(param.annotation)}
        beyond = [bound + step for bound, step in ((param.at_least, -1), (param.at_most, 1)) if bound is not None]
        beyond += [bound for bound in (param.above, param.below) if bound is not None]
        if accepted_types & {int, float}:
            yield from ((name, int(value) if float(value).is_integer() else value) for value in beyond)
        if accepted_types & {list, tuple}:
            yield from ((name, [value]) for value in beyond)
        if float in accepted_types:
            yield from ((name, float(text)) for text in ("nan", "inf"))
        if int in accepted_types and float not in accepted_types:
            yield name, 2.5
        if accepted_types & {int, float} and bool not in accepted_types:
            yield name, True
        if any(isinstance(choice, str) for choice in param.choices):
            yield name, "no such choice"
        if accepted_types <= PLAIN_TYPES | {typing.Literal}:
            yield name, object()
