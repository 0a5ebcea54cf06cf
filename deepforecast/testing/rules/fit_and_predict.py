"""`fit` and `predict` return what they document and have no side effects."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from deepforecast.core.encoding import SkopsSerializer
from deepforecast.core.forecaster import Forecaster
from deepforecast.data.frames import Frame
from deepforecast.errors import DataError, NotFittedError
from deepforecast.testing import fixtures
from deepforecast.testing.assertions import expect, expect_error, expect_finite, expect_same
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
    expect(
        not changed, f"fit must not change parameters, but changed {', '.join(changed)}. Return what is learned in LearnedState"
    )
    for inner_model in (value for value in parameters.values() if isinstance(value, Forecaster)):
        expect(
            "state_" not in vars(inner_model),
            f"fit must not fit the model that was passed as a parameter, {inner_model!r}. Use its clone() in `_fit`",
        )
    _expect_unchanged(frame, original, "fit")
    model.predict(frame=frame)
    _expect_unchanged(frame, original, "predict(frame=...)")


@rule()
def fit_twice_gives_the_same(subject: Subject) -> None:
    """A second `fit` gives the forecast of a new model, independent of earlier fits."""
    model = subject.make()
    frame = fixtures.one_series()
    expected = subject.fitted_on_series().predict(level=subject.levels)
    model.fit(fixtures.replace_target(fixtures.one_series("s1"), 3 * fixtures.one_series("s1")["y"])).predict()
    expect_same(
        model.fit(frame).predict(level=subject.levels),
        expected,
        "a second fit on other data must give the forecast of a new model",
    )
    expect_same(
        model.fit(frame).predict(level=subject.levels), expected, "a repeated fit on the same data must give the same forecast"
    )


@rule()
def failed_fit_leaves_the_model(subject: Subject) -> None:
    """A failed `fit` leaves the state of the model unchanged."""
    frame = fixtures.daily_panel()
    with_duplicate = fixtures.concat(frame, frame.iloc[[5]])
    model = subject.fitted_copy()
    with expect_error(DataError, "s0", when="a row is duplicated"):
        model.fit(with_duplicate)
    expect_same(model.predict(), subject.fitted().predict(), "a failed fit must not change the forecast")
    unfitted = subject.make()
    with expect_error(DataError, "s0", when="a row is duplicated"):
        unfitted.fit(with_duplicate)
    with expect_error(NotFittedError, "fit", when="predict is called after the only fit failed"):
        unfitted.predict()


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
    expect_same(model.predict(level=subject.levels), first, "a repeated predict must give the same forecast")
    state_after = _serialized_state(model)
    changed = [name for name in state_before if name not in state_after or not _is_equal(state_before[name], state_after[name])]
    expect(
        state_before.keys() == state_after.keys() and not changed,
        "predict, simulate and explain must not change the fitted state, but changed "
        f"{', '.join(changed or state_after.keys() - state_before.keys())}. Copy arrays before changing them",
    )
    changed_parameters = [name for name, value in parameters.items() if getattr(model, name) is not value]
    expect(
        not changed_parameters,
        f"predict, simulate and explain must not change parameters, but changed {', '.join(changed_parameters)}",
    )


def _serialized_state(model: Forecaster) -> dict[str, Any]:
    """Return the leaves of the state, with objects of other libraries serialized as in a file."""
    state = model.state_
    return dict(state_leaves(replace(state, learned=model._serialize(state.learned, SkopsSerializer(allow_any=True)))))


@rule()
def predict_before_fit_is_refused(subject: Subject) -> None:
    """`predict`, `save`, `update` etc. before `fit` raise NotFittedError with the hint to call `fit`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        for name, call in _calls_before_fit(subject, path):
            with expect_error(NotFittedError, "fit", when=f"{name} is called before fit"):
                call()
        expect(not path.exists(), "save before fit must not create a file, but did")


@rule(packages=("sklearn",))
def not_fitted_error_is_scikit_learns(subject: Subject) -> None:
    """The NotFittedError of `predict` is also a NotFittedError of scikit-learn."""
    from sklearn.exceptions import NotFittedError as SklearnNotFittedError

    with expect_error(SklearnNotFittedError, "fit", when="predict is called before fit"):
        try:
            subject.make().predict()
        except NotFittedError as error:
            expect(
                isinstance(error, SklearnNotFittedError),
                f"the error of predict before fit must be a sklearn.exceptions.NotFittedError, got {type(error).__mro__[:-1]}",
            )
            raise


@rule(requires("by_series"))
def fine_tuning_learns_from_new_histories(subject: Subject) -> None:
    """`fine_tune` returns the model itself and is trained on the given series, including new ones."""
    history, _ = fixtures.split(10)
    model = subject.make().fit(history[history["unique_id"] != "s1"])
    expect(model.fine_tune(fixtures.daily_panel()) is model, "fine_tune must return the model itself")
    forecast = model.predict()
    forecast_ids = list(forecast["unique_id"].unique())
    expect(
        forecast_ids == fixtures.series_ids(),
        f"fine_tune must add new series: the forecast must have {fixtures.series_ids()}, got {forecast_ids}",
    )
    expect_finite(forecast, model.name, "the forecast after fine_tune")


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
    """Whether two values are equal; arrays and columns elementwise, NaN being equal to NaN."""
    if hasattr(first, "to_numpy"):
        first, second = first.to_numpy(), second.to_numpy()
    if isinstance(first, np.ndarray):
        same = first == second
        return bool(np.all(same | ((first != first) & (second != second))))
    return bool(first == second or first is second)


def _calls_before_fit(subject: Subject, path: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Names and calls of all methods that must raise before `fit`."""
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
    """Return a copy of a frame with read-only arrays, an unusual index and an entry in attrs."""
    y = frame["y"].to_numpy().copy()
    timestamps = frame["ds"].to_numpy().copy()
    y.flags.writeable = timestamps.flags.writeable = False
    read_only = pd.DataFrame({"unique_id": frame["unique_id"].to_numpy(), "ds": timestamps, "y": y}, copy=False)
    read_only.index = pd.Index(np.arange(len(read_only))[::-1] * 3, name="ds")
    read_only.attrs["source"] = "a note"
    return read_only


def _expect_unchanged(frame: Frame, original: Frame, method: str) -> None:
    """Expect columns, dtypes, index, values and attrs of a frame to equal those of a copy made before
    the call of `method`."""
    names = list(frame.columns)
    original_names = list(original.columns)
    expect(names == original_names, f"{method} must not change the columns of the frame, got {names} from {original_names}")
    changed_dtypes = frame.dtypes[frame.dtypes != original.dtypes].to_dict()
    expect(not changed_dtypes, f"{method} must not change the dtypes of the frame, got {changed_dtypes}")
    expect(
        frame.index.equals(original.index) and frame.index.name == original.index.name,
        f"{method} must not change the index of the frame, got {frame.index!r}",
    )
    changed_columns = [name for name in names if not frame[name].equals(original[name])]
    expect(not changed_columns, f"{method} must not change values of the frame, but changed columns {changed_columns}")
    expect(frame.attrs == original.attrs, f"{method} must not change the attrs of the frame, got {frame.attrs}")
