"""A network's file: equal forecasts from a whole one, `ModelFileError` from any other, and no memory taken for what it says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import MLP, load
from deepforecast.errors import ModelFileError
from deepforecast.io import bundle
from tests.models.neural.test_ahead import fitted

HUGE = 10**9


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> tuple[MLP, Path]:
    model, path = fitted("MLP"), tmp_path_factory.mktemp("model") / "model.dfc"
    model.save(path)
    return model, path


def test_equal_forecasts(file: tuple[MLP, Path]) -> None:
    model, path = file
    found = load(path)
    pd.testing.assert_frame_equal(found.predict(9, level=80), model.predict(9, level=80), check_exact=True)
    pd.testing.assert_frame_equal(found.simulate(3), model.simulate(3), check_exact=True)


def tree(manifest: Any, *names: str) -> Any:
    """A part of what was learned."""
    held = manifest["learned"]["shared"]["tree"]
    for name in names:
        held = held[name]["tree"]
    return held


def channel(name: str, value: Any) -> Callable[[Any, Any], None]:
    def change(manifest: Any, arrays: Any) -> None:
        tree(manifest, "channels")[name] = value

    return change


def weight(act: Callable[[np.ndarray], np.ndarray]) -> Callable[[Any, Any], None]:
    def change(manifest: Any, arrays: Any) -> None:
        key = next(iter(tree(manifest, "weights").values()))["array"]
        arrays[key] = act(arrays[key])

    return change


def lost(manifest: Any, arrays: Any) -> None:
    held = tree(manifest, "weights")
    del arrays[held.pop(next(iter(held)))["array"]]


def added(manifest: Any, arrays: Any) -> None:
    arrays["more"] = np.zeros(2, dtype=np.float32)
    tree(manifest, "weights")["more"] = {"array": "more"}


def no_number(values: np.ndarray) -> np.ndarray:
    values.flat[0] = np.nan
    return values


def parameter(name: str, value: Any) -> Callable[[Any, Any], None]:
    return lambda manifest, arrays: manifest["parameters"].update({name: value})


def record(name: str, value: Any) -> Callable[[Any, Any], None]:
    return lambda manifest, arrays: tree(manifest, "record").update({name: value})


def season(value: Any) -> Callable[[Any, Any], None]:
    return lambda manifest, arrays: tree(manifest).update({"season": value})


@pytest.mark.parametrize(
    "change",
    [
        *(channel("horizon", one) for one in (HUGE, -1, 0, "7", 2.5, None, True, 5)),
        *(channel("input_size", one) for one in (HUGE, -1, "7", 23)),
        *(channel("numbers", one) for one in ("text", {"list": ["x"]}, {"list": [1]})),
        channel("ahead", HUGE), channel("clock", {"list": ["second"]}), channel("counts", {"tree": {"x": HUGE}}),
        channel("centre", 3), channel("more", 3),
        weight(lambda one: one[:-1]), weight(lambda one: one.astype(np.float64)), weight(no_number), lost, added,
        parameter("hidden", {"list": [HUGE, HUGE], "tuple": False}), parameter("hidden", {"list": [8] * 50, "tuple": False}),
        record("kept", HUGE), record("kept", "3"), record("why", 3), record("loss", {"list": []}),
        *(season(one) for one in (HUGE, -1, "7")),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(change: Callable[[Any, Any], None], file: tuple[MLP, Path], tmp_path: Path) -> None:
    manifest, arrays = bundle.read(file[1])
    change(manifest, arrays)
    bundle.write(tmp_path / "other.dfc", manifest, arrays)
    with pytest.raises(ModelFileError):
        load(tmp_path / "other.dfc")
