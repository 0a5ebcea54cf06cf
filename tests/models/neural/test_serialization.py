"""A network's file: equal forecasts from a whole one, `ModelFileError` from any other, and no memory taken for what it says."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import LSTM, MLP, NBEATS, DLinear, Seq2Seq, load
from deepforecast.core import encoding
from deepforecast.datasets import generate
from deepforecast.errors import ModelFileError, SaveError
from deepforecast.training.process import TRAINING_LOCK
from tests.models.neural.test_predict import fitted
from tests.training.test_trainer import run

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


def test_scalar_weights_are_saved(tmp_path: Path) -> None:
    model = Seq2Seq(horizon=3, input_size=8, hidden_size=4, max_steps=1, start_value="learned", learned_scale=True)
    model.fit(generate(2, 60)).save(tmp_path / "model")
    pd.testing.assert_frame_equal(load(tmp_path / "model").predict(), model.predict(), check_exact=True)


def test_loading_waits_for_nobody_and_draws_from_no_generator_of_others(file: tuple[MLP, Path]) -> None:
    """Another thread trains for as long as it likes."""
    import torch

    model, path = file
    with ThreadPoolExecutor(1) as pool, TRAINING_LOCK:
        before, filters = torch.get_rng_state(), list(warnings.filters)
        found = pool.submit(lambda: load(path).predict()).result(timeout=240)
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
    given: dict[str, Any] = {"horizon": 3, "input_size": 8, "max_steps": 2, "intervals": "uncalibrated"}
    models = [DLinear(**given), LSTM(**given, hidden_size=4), MLP(**given, hidden_sizes=[4]), NBEATS(**given, hidden_sizes=[4])]
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
        tree(manifest, "window_columns")[name] = value

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
    return lambda manifest, arrays: tree(manifest, "training_record").update({name: value})


def season(value: Any) -> Callable[[Any, Any], None]:
    return lambda manifest, arrays: tree(manifest).update({"season_length": value})


@pytest.mark.parametrize(
    "change",
    [
        *(channel("horizon", one) for one in (HUGE, -1, 0, "7", 2.5, None, True, 5)),
        *(channel("input_size", one) for one in (HUGE, -1, "7", 23)),
        *(channel("numeric", one) for one in ("text", {"list": ["x"]}, {"list": [1]})),
        channel("n_future", HUGE), channel("calendar", {"list": ["second"]}), channel("counts", {"tree": {"x": HUGE}}),
        channel("loc", 3), channel("more", 3),
        weight(lambda one: one[:-1]), weight(lambda one: one.astype(np.float64)), weight(no_number), lost, added,
        parameter("hidden_sizes", {"list": [HUGE, HUGE], "tuple": False}),
        parameter("hidden_sizes", {"list": [8] * 50, "tuple": False}),
        record("best_step", HUGE), record("best_step", "3"), record("stop_reason", 3), record("loss", {"list": []}),
        *(season(one) for one in (HUGE, -1, "7")),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(change: Callable[[Any, Any], None], file: tuple[MLP, Path], tmp_path: Path) -> None:
    manifest, arrays = encoding.read_archive(file[1])
    change(manifest, arrays)
    encoding.write_archive(tmp_path / "other.dfc", manifest, arrays)
    with pytest.raises(ModelFileError):
        load(tmp_path / "other.dfc")


# -- faults and damage of a network's file -------------------------------------------------------------------------


def test_truncated_model_file_is_refused(file: tuple[MLP, Path], tmp_path: Path) -> None:
    whole, cut = file[1].read_bytes(), tmp_path / "cut.dfc"
    for part in range(64):
        cut.write_bytes(whole[: len(whole) * part // 64])
        with pytest.raises(ModelFileError, match=r"cut\.dfc"):
            load(cut)


def test_flipped_bits_of_a_model_file_are_refused(file: tuple[MLP, Path], tmp_path: Path) -> None:
    whole, other = file[1].read_bytes(), tmp_path / "other.dfc"
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(whole), 100):
        held = bytearray(whole)
        held[place] ^= 1 << int(rng.integers(8))
        other.write_bytes(bytes(held))
        with pytest.raises(ModelFileError):
            load(other)


def test_failed_save_leaves_the_old_file_and_the_model(
    file: tuple[MLP, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, path = fitted("MLP", seed=1), tmp_path / "model.dfc"
    path.write_bytes(file[1].read_bytes())
    before = model.predict()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(SaveError, match=r"model\.dfc"):
        model.save(path)
    monkeypatch.undo()
    assert [one.name for one in tmp_path.iterdir()] == ["model.dfc"]
    pd.testing.assert_frame_equal(load(path).predict(), file[0].predict(), check_exact=True)
    pd.testing.assert_frame_equal(model.predict(), before, check_exact=True)


def scaled(factor: float) -> Callable[[Any, Any], None]:
    def change(manifest: Any, arrays: Any) -> None:
        for held in tree(manifest, "weights").values():
            arrays[held["array"]] = arrays[held["array"]] * np.float32(factor)

    return change


def swapped(manifest: Any, arrays: Any) -> None:
    """Two weights of other shapes change places."""
    held = tree(manifest, "weights")
    shapes = {name: arrays[one["array"]].shape for name, one in held.items()}
    one = next(iter(shapes))
    other = next(name for name in shapes if shapes[name] != shapes[one])
    held[one], held[other] = held[other], held[one]


def one_array_for_all(manifest: Any, arrays: Any) -> None:
    """The bytes of one are said to be those of all."""
    held = tree(manifest, "weights")
    first = next(iter(held.values()))["array"]
    for one in list(held.values())[1:]:
        del arrays[one["array"]]
        one["array"] = first


@pytest.mark.parametrize("change", [scaled(1e30), swapped, one_array_for_all], ids=["huge", "swapped", "shared"])
def test_weights_that_are_others_are_refused(
    change: Callable[[Any, Any], None], file: tuple[MLP, Path], tmp_path: Path
) -> None:
    manifest, arrays = encoding.read_archive(file[1])
    change(manifest, arrays)
    encoding.write_archive(tmp_path / "other.dfc", manifest, arrays)
    with pytest.raises(ModelFileError, match=r"other\.dfc"):
        load(tmp_path / "other.dfc")


HOSTILE: dict[str, list[tuple[str, Any]]] = {
    "LSTM": [("hidden_size", HUGE), ("n_layers", HUGE), ("decoder_size", HUGE), ("decoder_layers", HUGE), ("hidden_size", 17),
             ("n_layers", 3), ("head", "bins"), ("scaler", "revin"), ("bidirectional", True)],
    "NBEATS": [("blocks", HUGE), ("degree", HUGE), ("hidden_sizes", {"list": [HUGE], "tuple": False}),
               ("stacks", {"list": ["trend"] * 10**5, "tuple": False}), ("blocks", 2), ("head", "mixture")],
    "NHITS": [("blocks", HUGE), ("hidden_sizes", {"list": [HUGE], "tuple": False}),
              *((name, {"list": [1] * 10**5, "tuple": False}) for name in ("n_pool_kernel_size", "n_freq_downsample")),
              ("n_freq_downsample", {"list": [1, 1, 1], "tuple": False})],
    "TiDE": [("hidden_size", HUGE), ("encoder_layers", HUGE), ("temporal_width", HUGE), ("decoder_output_dim", 17),
             ("normalization", "layer")],
    "TCN": [("hidden_size", HUGE), ("n_layers", HUGE), ("n_layers", 12), ("kernel_size", HUGE), ("weight_norm", False)],
    "DLinear": [("moving_average", HUGE), ("scaler", "level"), ("quantiles", {"list": [0.1], "tuple": False})],
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_parameters_that_are_others_take_no_memory_and_are_refused(name: str, tmp_path: Path) -> None:
    import tracemalloc

    model = fitted(name, hidden_sizes=[8], blocks=1) if name == "NBEATS" else fitted(name)
    model.save(tmp_path / "model.dfc")
    for parameter_name, value in HOSTILE[name]:
        manifest, arrays = encoding.read_archive(tmp_path / "model.dfc")
        parameter(parameter_name, value)(manifest, arrays)
        encoding.write_archive(tmp_path / "other.dfc", manifest, arrays)
        tracemalloc.start()
        begin = time.process_time()
        with pytest.raises(ModelFileError):
            load(tmp_path / "other.dfc")
        assert tracemalloc.get_traced_memory()[1] < 50e6, parameter_name
        tracemalloc.stop()
        assert time.process_time() - begin < 10, parameter_name


def test_a_running_variance_below_zero_is_refused(tmp_path: Path) -> None:
    model = fitted("MLP", normalization="batch")
    model.save(tmp_path / "model.dfc")
    manifest, arrays = encoding.read_archive(tmp_path / "model.dfc")
    held = next(one for name, one in tree(manifest, "weights").items() if name.endswith("running_var"))
    arrays[held["array"]] = -arrays[held["array"]] - 1
    encoding.write_archive(tmp_path / "other.dfc", manifest, arrays)
    with pytest.raises(ModelFileError):
        load(tmp_path / "other.dfc")
