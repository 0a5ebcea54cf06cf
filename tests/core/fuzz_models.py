"""Mutated model files whose checksum is valid, loaded and used: run as a program by `test_fuzz_models.py`.

Each mutation changes one value of a file: an integer, a float, a shape or a dtype of an array, or a value of the manifest. The
program prints a line before each mutation and one for each problem. A mutation that takes more than CPU_SECONDS ends it by
SIGPROF, which also interrupts compiled loops; that limit is of processor time, so a busy machine does not matter.
"""

from __future__ import annotations

import copy
import json
import os
import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

import deepforecast
from deepforecast import Forecaster
from deepforecast.core import encoding, registry
from deepforecast.core.manifest import to_manifest
from deepforecast.errors import DeepForecastError, ModelFileError
from deepforecast.testing import fixtures
from deepforecast.testing.subject import Subject, make_subjects

Manifest = dict[str, Any]
Arrays = dict[str, np.ndarray]
UNCHANGED = "unchanged"
CPU_SECONDS = 30.0
INTEGERS = (2**62, -1, 10**8, 10**5, 10_000, 2**31, 10**6, 7, 3, 0, -(2**63), 2**63 - 1)
FLOATS = (np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0, 5e-324, -1.0, 1e18, 0.5)
VALUES = (None, True, -1, 0, 3, 10**6, 10**9, 2**31, 2**62, 0.5, -0.5, 1e308, "", "lag_1000000000", "9D", [], {}, {"tree": {}},
          {"array": "a0"}, {"list": []})  # fmt: skip


def state_leaves(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every value of a manifest that is not a dict or a list, and where it is."""
    if not isinstance(value, (dict, list)):
        yield at, value
        return
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield from state_leaves(inner, (*at, key))


def changed(manifest: Manifest, place: tuple[Any, ...], value: Any) -> Manifest:
    """The manifest with another value at a place."""
    manifest = copy.deepcopy(manifest)
    parent: Any = manifest
    for key in place[:-1]:
        parent = parent[key]
    parent[place[-1]] = value
    return manifest


def with_element(array: np.ndarray, index: int, value: Any) -> np.ndarray:
    """A copy of an array with another element."""
    array = array.copy()
    array.reshape(-1)[index] = value
    return array


def every_integer(manifest: Manifest, arrays: Arrays, values: tuple[int, ...]) -> Iterator[tuple[str, Manifest, Arrays]]:
    """Each integer that the model learned replaced in turn; of an array its first element."""
    learned = [
        (place, value) for place, value in state_leaves(manifest["learned"], ("learned",)) if not isinstance(value, bool)
    ]
    for place, value in learned:
        name = ".".join(str(key) for key in place if key not in ("tree", "list", "array"))
        array = arrays.get(value) if place[-1] == "array" else None
        for number in values:
            if isinstance(value, int):
                yield f"{name} = {number}", changed(manifest, place, number), arrays
            elif array is not None and array.dtype == np.int64 and array.size:
                yield f"{name}[0] = {number}", manifest, {**arrays, value: with_element(array, 0, number)}


def at_random(manifest: Manifest, arrays: Arrays, rng: np.random.Generator) -> tuple[str, Manifest, Arrays]:
    """One random change."""
    names = sorted(name for name in arrays if arrays[name].size)
    if rng.random() < 0.4:
        places = [place for place, _ in state_leaves(manifest) if place[0] not in ("versions", "data")]
        place, value = places[rng.integers(len(places))], VALUES[rng.integers(len(VALUES))]
        return f"manifest {place} = {value!r}", changed(manifest, place, value), arrays
    name = names[rng.integers(len(names))]
    array, index = arrays[name], int(rng.integers(arrays[name].size))
    described = f"array {name} {array.dtype} {array.shape}"
    if rng.random() < 0.3:
        kind, other = reshaped(array, rng)
        return f"{described} {kind}", manifest, {**arrays, name: other}
    if array.dtype.kind == "f":
        value: Any = FLOATS[rng.integers(len(FLOATS))]
    elif array.dtype.kind == "b":
        value = not array.reshape(-1)[index]
    else:
        information = np.iinfo(array.dtype)
        value = np.clip(INTEGERS[rng.integers(len(INTEGERS))], information.min, information.max)
    if rng.random() < 0.3:
        return f"{described} all = {value}", manifest, {**arrays, name: np.full_like(array, value)}
    return f"{described} [{index}] = {value}", manifest, {**arrays, name: with_element(array, index, value)}


def reshaped(array: np.ndarray, rng: np.random.Generator) -> tuple[str, np.ndarray]:
    """An array of another shape or dtype."""
    with np.errstate(all="ignore"):
        others = {
            "shorter": array[:-1] if array.ndim else array,
            "empty": array[:0] if array.ndim else array,
            "longer": np.concatenate([array, array[:1]]) if array.ndim else array,
            "flat": array.reshape(-1),
            "deeper": array[None],
            "narrower": array[..., :-1] if array.ndim > 1 else array.reshape(-1, 1),
            "wider": np.repeat(array[..., None], 2, -1),
            "without columns": array[:, :0] if array.ndim > 1 else array,
            "integers": np.nan_to_num(array, posinf=9.0, neginf=-9.0).astype(np.int64),
            "floats": array.astype(np.float64),
            "float32": array.astype(np.float32),
            "booleans": array.astype(np.bool_),
        }
    kind = sorted(others)[rng.integers(len(others))]
    return kind, np.ascontiguousarray(others[kind])


def problem(path: str) -> str | None:
    """What a file does that none may do; empty where it is refused, None where it gives a model that works or says why not."""
    try:
        model = deepforecast.load(path)
    except ModelFileError as error:
        return "" if path in str(error) else f"the error does not name the file: {error}"
    steps = {"predict": lambda: _finite(model), "from histories": lambda: model.predict(2, frame=fixtures.daily_panel())}
    if hasattr(model, "parameters"):
        steps["parameters"] = model.parameters
    if model.capabilities.simulates:
        steps["simulate"] = lambda: model.simulate(2, 2, seed=0)
    for name, step in steps.items():
        try:
            step()
        except DeepForecastError:
            continue
        except Exception as error:
            return f"{name}: {type(error).__name__}: {error}"
    return None


def _finite(model: Forecaster) -> None:
    level = None if model.capabilities.distribution is None else 80
    forecast = model.predict(2, level=level)
    numbers = forecast[[name for name in forecast if str(name).startswith(model.name)]].to_numpy(float)
    if not np.isfinite(numbers).all():
        raise ArithmeticError("a forecast is not finite")


def mutations(subject: Subject, values: tuple[int, ...], count: int, seed: int) -> Iterator[tuple[str, Manifest, Arrays]]:
    """The mutations of a model's file: every integer, then random ones."""
    model = subject.fitted()
    manifest, arrays = to_manifest(model, model.fitted_state())
    yield UNCHANGED, manifest, arrays
    yield from every_integer(manifest, arrays, values)
    rng = np.random.default_rng([seed, *subject.name.encode()])
    for _ in range(count):
        yield at_random(manifest, arrays, rng)


def installed() -> list[str]:
    """The registered models whose packages are there."""
    packages = {name: getattr(registry.get(name), "package", None) for name in registry.names()}
    return [name for name, package in packages.items() if package is None or find_spec(package) is not None]


def main(names: str, n_integers: int, count: int, seed: int, first: int = 0) -> None:
    """Fuzz the models of these names (a list with commas, or nothing for all), from mutation `first` on."""
    number = accepted = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.dfc")
        for subject in make_subjects(names.split(",") if names else installed()):
            for name, manifest, arrays in mutations(subject, INTEGERS[:n_integers], count, seed):
                number += 1
                if number <= first:
                    continue
                print(json.dumps({"number": number, "mutation": f"{subject.name}: {name}"}), flush=True)
                signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
                try:
                    encoding.write_archive(path, manifest, arrays)
                except DeepForecastError:
                    continue  # no such file can be written
                found = problem(path)
                accepted += found is None
                if found or (found is None) < (name == UNCHANGED):
                    print(json.dumps({"number": number, "mutation": f"{subject.name}: {name}", "problem": found}), flush=True)
    signal.setitimer(signal.ITIMER_PROF, 0.0)
    with open("/proc/self/status") as status:
        memory = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
    print(json.dumps({"number": number, "accepted": accepted, "megabytes": memory}), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1], *map(int, sys.argv[2:]))
