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
from deepforecast.testing import plain
from deepforecast.testing.check import rule
from deepforecast.testing.expect import expect, refused
from deepforecast.testing.subject import Subject
from deepforecast.testing.worlds import HORIZON

PLAIN_KINDS = {int, float, str, bool, type(None), list, tuple}


@rule()
def constructor_only_stores(subject: Subject) -> None:
    """The constructor stores the very objects it is given and nothing else."""
    given = {**subject.parameters, "alias": "".join(["some", " name"]), "horizon": np.int64(HORIZON)}
    model = subject.cls(**given)
    for name, one in params.declared_params(subject.cls).items():
        value = given.get(name, one.default)
        expect(getattr(model, name) is value, f"{name} is {getattr(model, name)!r}, not the very object given")
    more = sorted(set(vars(model)) - set(params.declared_params(subject.cls)))
    expect(not more, f"the constructor also sets {', '.join(more)}")


@rule()
def unknown_parameters_are_refused(subject: Subject) -> None:
    """An unknown parameter is an error that names it and the nearest known one."""
    with refused(ParameterTypeError, "horizn", "horizon", when="constructed with horizn=3"):
        subject.make(horizn=3)
    with refused(ParameterTypeError, "horizn", "horizon", when="set_params(horizn=3)"):
        subject.make().set_params(horizn=3)


@rule()
def illegal_values_are_refused(subject: Subject) -> None:
    """A value out of range or of the wrong type is an error that names the parameter, on construction and in set_params."""
    model = subject.make()
    before = model.get_params(deep=False)
    for name, value in illegal(subject.cls):
        with refused(ParameterError, name, when=f"constructed with {name}={value!r}"):
            subject.make(**{name: value})
        with refused(ParameterError, name, when=f"set_params({name}={value!r})"):
            model.set_params(**{"alias": "changed", name: value})
        changed = [key for key, value in model.get_params(deep=False).items() if value is not before[key]]
        expect(not changed, f"set_params was refused for {name}={value!r} and yet changed {', '.join(changed)}")


@rule()
def set_params_sets(subject: Subject) -> None:
    """set_params gives the model itself, changes what it names and leaves the rest."""
    model = subject.make()
    before = model.get_params(deep=False)
    expect(model.set_params(horizon=HORIZON + 2, alias="other") is model, "set_params does not give the model itself")
    expect(
        (model.horizon, model.alias, model.name) == (HORIZON + 2, "other", "other"), "set_params does not set horizon and alias"
    )
    rest = [name for name, value in before.items() if name not in ("horizon", "alias") and getattr(model, name) is not value]
    expect(not rest, f"set_params(horizon=..., alias=...) changes {', '.join(rest)}")
    for name, held in before.items():
        if isinstance(held, Forecaster):
            model.set_params(**{f"{name}__alias": "inner"})
            expect(getattr(model, name).alias == "inner", f"set_params({name}__alias=...) does not set the alias of {name}")
            expect(held.alias != "inner", f"set_params({name}__alias=...) changes the very {name} that was given")


@rule()
def clone_is_equal_and_unfitted(subject: Subject) -> None:
    """A clone has the same parameters, some changed if asked, nothing that was learned, and no wrapped model in common."""
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
    other = model.clone(alias="other")
    expect(other.alias == "other" and other != model, "clone(alias='other') does not change the alias")
    expect(other.set_params(alias=model.alias) == model, "clone(alias='other') changes more than the alias")


@rule(packages=("sklearn",))
def scikit_learn_clones(subject: Subject) -> None:
    """`sklearn.base.clone` accepts the model and gives an equal one that is not fitted."""
    from sklearn.base import clone

    model = subject.fitted()
    copy = clone(model)
    expect(copy is not model and copy == model, "sklearn.base.clone does not give an equal copy")
    expect("state_" not in vars(copy), "sklearn.base.clone keeps what was learned")


@rule()
def repr_rebuilds(subject: Subject) -> None:
    """The repr is a call that gives an equal model."""
    for model in (subject.make(), subject.make(alias='it\'s "so"'), subject.make(horizon=None)):
        text = repr(model)
        expect(plain.evaluated(text, plain.classes_in(model)) == model, f"{text} does not give an equal model")


@rule()
def json_survives(subject: Subject) -> None:
    """Parameters are plain values and models: after JSON they give an equal model."""
    model = subject.make()
    text = json.dumps(plain.as_plain(model), allow_nan=False)
    expect(plain.from_plain(json.loads(text), plain.classes_in(model)) == model, f"{text} does not give an equal model")


@rule()
def equality_is_by_parameters(subject: Subject) -> None:
    """Models are equal if class and parameters are; what compares equal hashes equal, or has no hash."""
    one, same, other = subject.make(), subject.make(), subject.make(horizon=HORIZON + 1)
    expect(one == same and one == subject.fitted(), "models with the same parameters are not equal")
    expect(one != other and one != "text", "models with other parameters, or text, are equal")
    try:
        hashes = {hash(one), hash(same)}
    except TypeError:
        return
    expect(len(hashes) == 1, "equal models have different hashes")


@rule()
def sampled_configurations_build(subject: Subject) -> None:
    """Every configuration drawn from the declared search ranges is legal."""
    for seed in range(20):
        drawn = params.sample(subject.cls, params.RandomTrial(seed))
        model = subject.make(**drawn)
        kept = {name: getattr(model, name) for name in drawn}
        expect(kept == drawn, f"the configuration {drawn} became {kept}")


def illegal(cls: type[Forecaster]) -> Iterator[tuple[str, Any]]:
    """Values just outside what each parameter declares, and of other types."""
    for name, one in params.declared_params(cls).items():
        kinds = {typing.get_origin(kind) or kind for kind in union_members(one.annotation)}
        beyond = [bound + away for bound, away in ((one.at_least, -1), (one.at_most, 1)) if bound is not None]
        beyond += [bound for bound in (one.above, one.below) if bound is not None]
        if kinds & {int, float}:
            yield from ((name, int(value) if float(value).is_integer() else value) for value in beyond)
        if kinds & {list, tuple}:
            yield from ((name, [value]) for value in beyond)
        if float in kinds:
            yield from ((name, float(text)) for text in ("nan", "inf"))
        if int in kinds and float not in kinds:
            yield name, 2.5
        if kinds & {int, float} and bool not in kinds:
            yield name, True
        if any(isinstance(choice, str) for choice in one.choices or ()):
            yield name, "no such choice"
        if kinds <= PLAIN_KINDS | {typing.Literal}:
            yield name, object()
