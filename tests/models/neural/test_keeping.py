"""A network's file: equal forecasts from a whole one, `ModelFileError` from any other, and no memory taken for what it says."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import LSTM, MLP, NBEATS, DLinear, load
from deepforecast.datasets import generate
from deepforecast.errors import ModelFileError
from deepforecast.io import bundle
from deepforecast.training.importing import ALONE
from tests.models.neural.test_ahead import fitted
from tests.training.test_setting import run

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


def test_loading_waits_for_nobody_and_draws_from_no_generator_of_others(file: tuple[MLP, Path]) -> None:
    """Another thread trains for as long as it likes."""
    import torch

    model, path = file
    with ThreadPoolExecutor(1) as pool, ALONE:
        before, filters = torch.get_rng_state(), list(warnings.filters)
        found = pool.submit(lambda: load(path).predict()).result(timeout=10)
        assert torch.equal(torch.get_rng_state(), before)
        assert warnings.filters == filters
    pd.testing.assert_frame_equal(found, model.predict(), check_exact=True)


WITHOUT_LIGHTNING = """
import sys
for name in ("pytorch_lightning", "lightning_fabric", "lightning", "torchmetrics"):
    sys.modules[name] = None  # to import it is an error
from deepforecast import load
from deepforecast.datasets import generate
for path in sys.argv[1:]:
    model, frame = load(path), generate(2, 60)
    found = [model.predict(9, level=80), model.predict(frame=frame), model.simulate(2), model.update(frame.tail(1).assign(
        ds=frame.ds.max() + (frame.ds[1] - frame.ds[0]))).predict(), model.predictor()]
    if model.capabilities.explains:
        model.explain()
    model.save(path + ".again")
    print(type(model).__name__, len(found[0]))
"""


@pytest.mark.slow
def test_a_loaded_network_needs_no_lightning(tmp_path: Path) -> None:
    frame, paths = generate(2, 60), []
    given: dict[str, Any] = {"horizon": 3, "input_size": 8, "max_steps": 1}
    models = [DLinear(**given), LSTM(**given, hidden_size=4), MLP(**given, hidden=[4]), NBEATS(**given, hidden=[4])]
    for one in models:
        paths.append(str(tmp_path / type(one).__name__))
        one.fit(frame).save(paths[-1])
    done = run(WITHOUT_LIGHTNING, *paths, folder=tmp_path)
    assert (done.stderr, done.stdout.split()) == ("", ["DLinear", "18", "LSTM", "18", "MLP", "18", "NBEATS", "18"])


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
