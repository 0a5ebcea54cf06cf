"""Parameters: stored as given, refused by name, and the same after clone, repr and JSON."""

from __future__ import annotations

import json
import typing
from collections.abc import Iterator
from typing import Any

import numpy as np

from deepforecast.core import params
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.type_checks import union_members
from deepforecast.errors import ParameterError, ParameterTypeError
from deepforecast.testing import plain_values
from deepforecast.testing.assertions import expect, expect_error
from deepforecast.testing.check import rule
from deepforecast.testing.fixtures import HORIZON
from deepforecast.testing.subject import Subject

PLAIN_TYPES = {int, float, str, bool, type(None), list, tuple}


@rule()
def constructor_only_stores(subject: Subject) -> None:
    """The constructor stores the given objects and nothing else."""
    arguments = {**subject.parameters, "alias": "".join(["some", " name"]), "horizon": np.int64(HORIZON)}
    model = subject.cls(**arguments)
    for name, param in params.declared_params(subject.cls).items():
        value = arguments.get(name, param.default)
        expect(getattr(model, name) is value, f"{name} is {getattr(model, name)!r}, not the very object given")
    extra_names = sorted(set(vars(model)) - set(params.declared_params(subject.cls)))
    expect(not extra_names, f"the constructor also sets {', '.join(extra_names)}")


@rule()
def unknown_parameters_are_refused(subject: Subject) -> None:
    """An unknown parameter raises an error that names it and the closest match."""
    with expect_error(ParameterTypeError, "horizn", "horizon", when="constructed with horizn=3"):
        subject.make(horizn=3)
    with expect_error(ParameterTypeError, "horizn", "horizon", when="set_params(horizn=3)"):
        subject.make().set_params(horizn=3)


@rule()
def illegal_values_are_refused(subject: Subject) -> None:
    """A value out of range or of the wrong type raises an error with the parameter in constructor and `set_params`."""
    model = subject.make()
    original = model.get_params(deep=False)
    for name, value in illegal_values(subject.cls):
        with expect_error(ParameterError, name, when=f"constructed with {name}={value!r}"):
            subject.make(**{name: value})
        with expect_error(ParameterError, name, when=f"set_params({name}={value!r})"):
            model.set_params(**{"alias": "changed", name: value})
        changed = [key for key, value in model.get_params(deep=False).items() if value is not original[key]]
        expect(not changed, f"set_params was refused for {name}={value!r} and yet changed {', '.join(changed)}")


@rule()
def set_params_sets(subject: Subject) -> None:
    """`set_params` returns the model itself and changes only the given parameters."""
    model = subject.make()
    original = model.get_params(deep=False)
    expect(model.set_params(horizon=HORIZON + 2, alias="other") is model, "set_params does not give the model itself")
    expect(
        (model.horizon, model.alias, model.name) == (HORIZON + 2, "other", "other"), "set_params does not set horizon and alias"
    )
    changed = [
        name for name, value in original.items() if name not in ("horizon", "alias") and getattr(model, name) is not value
    ]
    expect(not changed, f"set_params(horizon=..., alias=...) changes {', '.join(changed)}")
    for name, original_value in original.items():
        if isinstance(original_value, Forecaster):
            model.set_params(**{f"{name}__alias": "inner"})
            expect(getattr(model, name).alias == "inner", f"set_params({name}__alias=...) does not set the alias of {name}")
            expect(original_value.alias != "inner", f"set_params({name}__alias=...) changes the very {name} that was given")


@rule()
def clone_is_equal_and_unfitted(subject: Subject) -> None:
    """A clone has the same parameters except given changes, is not fitted and shares no wrapped model."""
    model = subject.fitted()
    copy = model.clone()
    expect(type(copy) is type(model) and copy == model, f"the clone {copy!r} is not equal to {model!r}")
    expect("state_" not in vars(copy), "the clone of a fitted model is fitted")
    shared = [
        name
        for name, value in model.get_params(deep=False).items()
        if isinstance(value, Forecaster) and getattr(copy, name) is value
    ]
    expect(not shared, f"the clone shares {', '.join(shared)} with its original")
    renamed = model.clone(alias="other")
    expect(renamed.alias == "other" and renamed != model, "clone(alias='other') does not change the alias")
    expect(renamed.set_params(alias=model.alias) == model, "clone(alias='other') changes more than the alias")


@rule(packages=("sklearn",))
def scikit_learn_clones(subject: Subject) -> None:
    """`sklearn.base.clone` returns an equal, unfitted model."""
    from sklearn.base import clone

    model = subject.fitted()
    copy = clone(model)
    expect(copy is not model and copy == model, "sklearn.base.clone does not give an equal copy")
    expect("state_" not in vars(copy), "sklearn.base.clone keeps what was learned")


@rule()
def repr_rebuilds_the_model(subject: Subject) -> None:
    """Evaluating the repr gives an equal model."""
    for model in (subject.make(), subject.make(alias='it\'s "so"'), subject.make(horizon=None)):
        text = repr(model)
        expect(
            plain_values.evaluate(text, plain_values.collect_classes(model)) == model, f"{text} does not give an equal model"
        )


@rule()
def parameters_survive_json(subject: Subject) -> None:
    """Parameters survive a round trip through JSON."""
    model = subject.make()
    text = json.dumps(plain_values.to_plain(model), allow_nan=False)
    expect(
        plain_values.from_plain(json.loads(text), plain_values.collect_classes(model)) == model,
        f"{text} does not give an equal model",
    )


@rule()
def equality_is_by_parameters(subject: Subject) -> None:
    """Models are equal if class and parameters are equal; equal models have equal hashes, or none."""
    model, equal_model, different_model = subject.make(), subject.make(), subject.make(horizon=HORIZON + 1)
    expect(model == equal_model and model == subject.fitted(), "models with the same parameters are not equal")
    expect(model != different_model and model != "text", "models with other parameters, or text, are equal")
    try:
        hashes = {hash(model), hash(equal_model)}
    except TypeError:
        return
    expect(len(hashes) == 1, "equal models have different hashes")


@rule()
def sampled_configurations_are_valid(subject: Subject) -> None:
    """Every configuration sampled from the declared search space is valid."""
    for seed in range(20):
        configuration = params.sample(subject.cls, params.RandomTrial(seed))
        model = subject.make(**configuration)
        stored = {name: getattr(model, name) for name in configuration}
        expect(stored == configuration, f"the configuration {configuration} became {stored}")


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
        if any(isinstance(choice, str) for choice in param.choices or ()):
            yield name, "no such choice"
        if accepted_types <= PLAIN_TYPES | {typing.Literal}:
            yield name, object()
