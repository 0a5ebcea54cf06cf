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
from deepforecast.testing import fixtures
from deepforecast.testing.assertions import expect, expect_error, expect_same
from deepforecast.testing.check import requires, rule
from deepforecast.testing.fixtures import HORIZON
from deepforecast.testing.subject import Subject


@rule()
def fit_returns_self(subject: Subject) -> None:
    """`fit` returns the model itself."""
    model = subject.make()
    expect(model.fit(fixtures.one_series()) is model, "fit must return the model itself")


@rule()
def fit_leaves_params_and_frame(subject: Subject) -> None:
    """`fit` changes neither the parameters nor the values, dtypes, index and attrs of the frame."""
    frame = _read_only_copy(fixtures.daily_panel())
    original = frame.copy(deep=True)
    model = subject.make()
    parameters = model.get_params(deep=False)
    model.fit(frame)
    changed = [name for name, value in parameters.items() if getattr(model, name) is not value]
    expect(not changed, f"fit changes the parameters {', '.join(changed)}")
    for inner_model in (value for value in parameters.values() if isinstance(value, Forecaster)):
        expect("state_" not in vars(inner_model), "fit fits the model given as a parameter, not a copy of it")
    _expect_unchanged(frame, original, "fit")
    model.predict(frame=frame)
    _expect_unchanged(frame, original, "predict(frame=...)")


@rule()
def fit_twice_gives_the_same(subject: Subject) -> None:
    """A second `fit` gives the forecast of a new model, whatever was fitted before."""
    model, frame, expected = subject.make(), fixtures.one_series(), subject.fitted_on_series().predict(level=subject.levels)
    model.fit(fixtures.replace_target(fixtures.one_series("s1"), 3 * fixtures.one_series("s1")["y"])).predict()
    expect_same(model.fit(frame).predict(level=subject.levels), expected, "the forecast of a fit after another")
    expect_same(model.fit(frame).predict(level=subject.levels), expected, "the forecast after fitting again")


@rule()
def failed_fit_leaves_the_model(subject: Subject) -> None:
    """A failed `fit` leaves the state of the model unchanged."""
    frame = fixtures.daily_panel()
    doubled = fixtures.concat(frame, frame.iloc[[5]])
    model = subject.fitted_copy()
    with expect_error(DataError, "s0", when="a row is doubled"):
        model.fit(doubled)
    expect_same(model.predict(), subject.fitted().predict(), "the forecast after a fit that failed")
    fresh = subject.make()
    with expect_error(DataError, "s0", when="a row is doubled"):
        fresh.fit(doubled)
    with expect_error(NotFittedError, "fit", when="the only fit failed"):
        fresh.predict()


@rule()
def predict_changes_nothing(subject: Subject) -> None:
    """`predict`, `simulate` and `explain` do not change the model and are repeatable."""
    model = subject.fitted_copy()
    state_before = deepcopy(_serialized_state(model))
    parameters = model.get_params(deep=False)
    first = model.predict(level=subject.levels)
    model.predict(HORIZON + 2)
    model.predict(frame=fixtures.one_series("s1"))
    if subject.capabilities.simulates:
        model.simulate(2)
    if subject.capabilities.explains:
        model.explain()
    expect_same(model.predict(level=subject.levels), first, "the forecast asked for again")
    state_after = _serialized_state(model)
    changed = [name for name in state_before if name not in state_after or not _is_equal(state_before[name], state_after[name])]
    expect(
        state_before.keys() == state_after.keys() and not changed,
        f"predict changes the state: {', '.join(changed or state_after.keys() - state_before.keys())}",
    )
    expect(all(getattr(model, name) is value for name, value in parameters.items()), "predict changes a parameter")


def _serialized_state(model: Forecaster) -> dict[str, Any]:
    """The state, what other libraries made of it as a file would hold it."""
    state = model.state_
    return dict(state_leaves(replace(state, learned=model._serialize(state.learned, SkopsSerializer(allow_any=True)))))


@rule()
def predict_before_fit_is_refused(subject: Subject) -> None:
    """`predict`, `save`, `update` etc. before `fit` raise NotFittedError with the hint to call `fit`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        for name, call in _calls_before_fit(subject, path):
            with expect_error(NotFittedError, "fit", when=f"{name} comes before fit"):
                call()
        expect(not path.exists(), "save before fit leaves a file")


@rule(packages=("sklearn",))
def not_fitted_error_is_scikit_learns(subject: Subject) -> None:
    """The NotFittedError of `predict` is also a NotFittedError of scikit-learn."""
    from sklearn.exceptions import NotFittedError as Theirs

    with expect_error(Theirs, "fit", when="predict comes before fit"):
        try:
            subject.make().predict()
        except NotFittedError as error:
            expect(isinstance(error, Theirs), "it is not sklearn.exceptions.NotFittedError")
            raise


@rule(requires("by_series"))
def fine_tuning_learns_from_new_histories(subject: Subject) -> None:
    """`fine_tune` returns the model itself and learns from the given series, including new ones."""
    history, _ = fixtures.split(10)
    model = subject.make().fit(history[history["unique_id"] != "s1"])
    expect(model.fine_tune(fixtures.daily_panel()) is model, "fine_tune does not give the model itself")
    forecast = model.predict()
    expect(list(forecast["unique_id"].unique()) == fixtures.series_ids(), "fine_tune does not take up a new series")
    expect(np.isfinite(forecast[model.name]).all(), "the forecast after fine_tune is not finite")


def state_leaves(value: Any, path: str = "state") -> Iterator[tuple[str, Any]]:
    """Yield all arrays and plain values in nested dataclasses, mappings and lists, with their paths."""
    children: Mapping[Any, Any]
    if is_dataclass(value) and not isinstance(value, type):
        children = {field.name: getattr(value, field.name) for field in fields(value)}
    elif isinstance(value, Mapping):
        children = value
    elif isinstance(value, (list, tuple)):
        children = dict(enumerate(value))
    else:
        yield path, value
        return
    for name, child in children.items():
        yield from state_leaves(child, f"{path}.{name}")


def _is_equal(first: Any, second: Any) -> bool:
    if hasattr(first, "to_numpy"):
        first, second = first.to_numpy(), second.to_numpy()
    if isinstance(first, np.ndarray):
        same = first == second
        return bool(np.all(same | ((first != first) & (second != second))))
    return bool(first == second or first is second)


def _calls_before_fit(subject: Subject, path: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    model = subject.make()
    yield "predict", model.predict
    yield "predict(frame=...)", lambda: model.predict(frame=fixtures.daily_panel())
    yield "save", lambda: model.save(path)
    yield "update", lambda: model.update(fixtures.daily_panel())
    yield "fine_tune", lambda: model.fine_tune(fixtures.daily_panel())
    yield "future_frame", model.future_frame
    if subject.capabilities.simulates:
        yield "simulate", lambda: model.simulate(2)
    if subject.capabilities.explains:
        yield "explain", model.explain


def _read_only_copy(frame: Frame) -> Frame:
    """A copy of a frame whose numbers cannot be written to, with an odd index and a note."""
    y, timestamps = frame["y"].to_numpy().copy(), frame["ds"].to_numpy().copy()
    y.flags.writeable = timestamps.flags.writeable = False
    read_only = pd.DataFrame({"unique_id": frame["unique_id"].to_numpy(), "ds": timestamps, "y": y}, copy=False)
    read_only.index = pd.Index(np.arange(len(read_only))[::-1] * 3, name="ds")
    read_only.attrs["source"] = "a note"
    return read_only


def _expect_unchanged(frame: Frame, original: Frame, method: str) -> None:
    expect(list(frame.columns) == list(original.columns), f"{method} changes the columns of the frame")
    expect((frame.dtypes == original.dtypes).all(), f"{method} changes dtypes of the frame")
    expect(
        frame.index.equals(original.index) and frame.index.name == original.index.name,
        f"{method} changes the index of the frame",
    )
    expect(frame.equals(original), f"{method} changes values of the frame")
    expect(frame.attrs == original.attrs, f"{method} changes the attrs of the frame")
