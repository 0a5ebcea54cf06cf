"""Fit and predict do what they say and nothing else."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from deepforecast.core.forecaster import Forecaster
from deepforecast.core.skops_objects import SkopsSerializer
from deepforecast.data.frames import Frame
from deepforecast.errors import DataError, NotFittedError
from deepforecast.testing import worlds
from deepforecast.testing.check import able, rule
from deepforecast.testing.expect import expect, expect_same, refused
from deepforecast.testing.subject import Subject
from deepforecast.testing.worlds import HORIZON


@rule()
def fit_returns_self(subject: Subject) -> None:
    """fit gives the model itself."""
    model = subject.make()
    expect(model.fit(worlds.one()) is model, "fit does not give the model itself")


@rule()
def fit_leaves_params_and_frame(subject: Subject) -> None:
    """fit changes neither the parameters nor the frame: values, dtypes, index and attrs."""
    frame = _read_only(worlds.daily())
    before = frame.copy(deep=True)
    model = subject.make()
    given = model.get_params(deep=False)
    model.fit(frame)
    changed = [name for name, value in given.items() if getattr(model, name) is not value]
    expect(not changed, f"fit changes the parameters {', '.join(changed)}")
    for held in (value for value in given.values() if isinstance(value, Forecaster)):
        expect("state_" not in vars(held), "fit fits the model given as a parameter, not a copy of it")
    _expect_untouched(frame, before, "fit")
    model.predict(frame=frame)
    _expect_untouched(frame, before, "predict(frame=...)")


@rule()
def fit_twice_gives_the_same(subject: Subject) -> None:
    """A second fit starts fresh, whatever was fitted in between: the forecast is that of a new model."""
    model, frame, wanted = subject.make(), worlds.one(), subject.alone().predict(level=subject.levels)
    model.fit(worlds.with_y(worlds.one("s1"), 3 * worlds.one("s1")["y"])).predict()
    expect_same(model.fit(frame).predict(level=subject.levels), wanted, "the forecast of a fit after another")
    expect_same(model.fit(frame).predict(level=subject.levels), wanted, "the forecast after fitting again")


@rule()
def failed_fit_leaves_the_model(subject: Subject) -> None:
    """A fit that fails leaves the model as it was: with its old fit, or without one."""
    frame = worlds.daily()
    doubled = worlds.together(frame, frame.iloc[[5]])
    model = subject.fitted_copy()
    with refused(DataError, "s0", when="a row is doubled"):
        model.fit(doubled)
    expect_same(model.predict(), subject.fitted().predict(), "the forecast after a fit that failed")
    fresh = subject.make()
    with refused(DataError, "s0", when="a row is doubled"):
        fresh.fit(doubled)
    with refused(NotFittedError, "fit", when="the only fit failed"):
        fresh.predict()


@rule()
def predict_changes_nothing(subject: Subject) -> None:
    """predict, simulate and explain leave the model as it is, and give the same when asked again."""
    model = subject.fitted_copy()
    before = deepcopy(_kept(model))
    given = model.get_params(deep=False)
    first = model.predict(level=subject.levels)
    model.predict(HORIZON + 2)
    model.predict(frame=worlds.one("s1"))
    if subject.capabilities.simulates:
        model.simulate(2)
    if subject.capabilities.explains:
        model.explain()
    expect_same(model.predict(level=subject.levels), first, "the forecast asked for again")
    after = _kept(model)
    changed = [name for name in before if name not in after or not _equal(before[name], after[name])]
    expect(
        before.keys() == after.keys() and not changed,
        f"predict changes the state: {', '.join(changed or after.keys() - before.keys())}",
    )
    expect(all(getattr(model, name) is value for name, value in given.items()), "predict changes a parameter")


def _kept(model: Forecaster) -> dict[str, Any]:
    """The state, what other libraries made of it as a file would hold it."""
    state = model.state_
    return dict(leaves(replace(state, learned=model._serialize(state.learned, SkopsSerializer(allow_any=True)))))


@rule()
def not_fitted_is_said(subject: Subject) -> None:
    """predict, save, update and the like before fit raise NotFittedError, which says to call fit."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        for name, act in _needing_a_fit(subject, path):
            with refused(NotFittedError, "fit", when=f"{name} comes before fit"):
                act()
        expect(not path.exists(), "save before fit leaves a file")


@rule(packages=("sklearn",))
def not_fitted_is_scikit_learns(subject: Subject) -> None:
    """What predict raises before fit is scikit-learn's NotFittedError too."""
    from sklearn.exceptions import NotFittedError as Theirs

    with refused(Theirs, "fit", when="predict comes before fit"):
        try:
            subject.make().predict()
        except NotFittedError as error:
            expect(isinstance(error, Theirs), "it is not sklearn.exceptions.NotFittedError")
            raise


@rule(able("by_series"))
def fine_tuning_goes_on(subject: Subject) -> None:
    """fine_tune gives the model itself and learns from the histories given, series unknown so far included."""
    before, _ = worlds.split(10)
    model = subject.make().fit(before[before["unique_id"] != "s1"])
    expect(model.fine_tune(worlds.daily()) is model, "fine_tune does not give the model itself")
    found = model.predict()
    expect(list(found["unique_id"].unique()) == worlds.ids(), "fine_tune does not take up a new series")
    expect(np.isfinite(found[model.name]).all(), "the forecast after fine_tune is not finite")


def leaves(value: Any, path: str = "state") -> Iterator[tuple[str, Any]]:
    """Every array and plain value inside nested dataclasses, mappings and lists, with its path."""
    inner: Mapping[Any, Any]
    if is_dataclass(value) and not isinstance(value, type):
        inner = {field.name: getattr(value, field.name) for field in fields(value)}
    elif isinstance(value, Mapping):
        inner = value
    elif isinstance(value, (list, tuple)):
        inner = dict(enumerate(value))
    else:
        yield path, value
        return
    for name, held in inner.items():
        yield from leaves(held, f"{path}.{name}")


def _equal(one: Any, other: Any) -> bool:
    if hasattr(one, "to_numpy"):
        one, other = one.to_numpy(), other.to_numpy()
    if isinstance(one, np.ndarray):
        same = one == other
        return bool(np.all(same | ((one != one) & (other != other))))
    return bool(one == other or one is other)


def _needing_a_fit(subject: Subject, path: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    model = subject.make()
    yield "predict", model.predict
    yield "predict(frame=...)", lambda: model.predict(frame=worlds.daily())
    yield "save", lambda: model.save(path)
    yield "update", lambda: model.update(worlds.daily())
    yield "fine_tune", lambda: model.fine_tune(worlds.daily())
    yield "future_frame", model.future_frame
    if subject.capabilities.simulates:
        yield "simulate", lambda: model.simulate(2)
    if subject.capabilities.explains:
        yield "explain", model.explain


def _read_only(frame: Frame) -> Frame:
    """A copy of a frame whose numbers cannot be written to, with an odd index and a note."""
    y, stamps = frame["y"].to_numpy().copy(), frame["ds"].to_numpy().copy()
    y.flags.writeable = stamps.flags.writeable = False
    made = pd.DataFrame({"unique_id": frame["unique_id"].to_numpy(), "ds": stamps, "y": y}, copy=False)
    made.index = pd.Index(np.arange(len(made))[::-1] * 3, name="ds")
    made.attrs["source"] = "a note"
    return made


def _expect_untouched(frame: Frame, before: Frame, act: str) -> None:
    expect(list(frame.columns) == list(before.columns), f"{act} changes the columns of the frame")
    expect((frame.dtypes == before.dtypes).all(), f"{act} changes dtypes of the frame")
    expect(frame.index.equals(before.index) and frame.index.name == before.index.name, f"{act} changes the index of the frame")
    expect(frame.equals(before), f"{act} changes values of the frame")
    expect(frame.attrs == before.attrs, f"{act} changes the attrs of the frame")
