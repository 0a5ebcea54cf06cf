"""Files of each kind of model with one value changed: `load` refuses them, or gives a model that works, and never hangs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deepforecast
from deepforecast import LightGBM, LinearModel, UnobservedComponents
from deepforecast.core import encoding
from deepforecast.core.encoding import InvalidManifest
from deepforecast.core.manifest import to_manifest
from deepforecast.core.registry import get
from deepforecast.core.state import (
    MAX_GAP,
    MAX_MEAN_GAP,
    MAX_TOTAL_GAPS,
    LearnedState,
    check_gaps,
    check_integer,
    check_integers,
)
from deepforecast.errors import DataWarning, ModelFileError
from deepforecast.models.statistical._form_selection import check_forms as check_form
from tests.core.fuzz_models import UNCHANGED, changed, with_element
from tests.frames import P

ROOT = Path(__file__).resolve().parents[2]
MEGABYTES = 1800.0  # of the whole program; the libraries it loads take half
QUICK = ["Naive", "ETS", "AutoETS", "AutoTheta", "AutoCES", "MSTL", "AutoARIMA", "Croston", "IMAPA", "LinearModel", "Conformal"]


def fuzzed(names: list[str], integers: int, count: int, seed: int) -> list[dict[str, Any]]:
    """What `fuzz_models` printed; a hang ends it by SIGPROF, and its last line names the mutation."""
    arguments = [",".join(names), str(integers), str(count), str(seed)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.core.fuzz_models", *arguments]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=3600)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (done.returncode, lines[-1:], done.stderr[-2000:])
    return lines


def check(lines: list[dict[str, Any]]) -> None:
    problems = [(line["mutation"], line["problem"]) for line in lines if "problem" in line]
    assert problems == []
    assert lines[-1]["megabytes"] < MEGABYTES
    assert lines[-1]["accepted"] > sum(line.get("mutation", "").endswith(f": {UNCHANGED}") for line in lines)


def test_mutated_files_of_some_models_are_refused_or_work() -> None:
    check(fuzzed(QUICK, integers=2, count=6, seed=1))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_mutated_files_of_every_model_are_refused_or_work(seed: int) -> None:
    check(fuzzed([], integers=12, count=60, seed=seed))


@pytest.mark.parametrize(
    ("name", "learned", "value", "message"),
    [
        ("ETS", "age", 2**62, r"'age' must be between 0 and 1000000, got 4,611,686,018,427,387,904"),
        ("AutoETS", "age", -1, r"'age' must be between 0 and 1000000, got -1"),
        ("Holt", "age", 10**8, "'age' must be between 0"),
        ("AutoTheta", "age", 100_001, "'age' must be between 0"),
        ("AutoCES", "age", 100_001, "'age' must be between 0"),
        ("MSTL", "rest.age", 2**62, "'age' must be between 0"),
        ("ETS", "form", 2, r"'form' must be between \[0, 0, 0, 0\] and \[1, 2, 1, 2\], got 2"),
        ("AutoCES", "form", 4, "'form' must be between 0 and 3, got 4"),
        ("AutoTheta", "phase", 7, "'phase' must be between 0 and 6, got 7"),
        ("AutoARIMA", "order", 10**6, "'order' must be between"),
        ("MSTL", "history_checksum", 3, "'history_checksum' must be 4 int64 for each series"),
    ],
)
def test_integers_out_of_range_are_refused_at_load(
    name: str, learned: str, value: int, message: str, tmp_path: Path
) -> None:
    cls: Any = get(name)
    season = {} if name in ("ETS", "Holt") else {"season_length": 7}
    model = cls(horizon=2, **season).fit(noisy())
    manifest, arrays = to_manifest(model, model.fitted_state())
    reference = manifest["learned"]["by_series"]["tree"][learned]["array"]
    array = arrays[reference][:, :-1] if learned == "history_checksum" else with_element(arrays[reference], 0, value)
    encoding.write_archive(tmp_path / "file", manifest, {**arrays, reference: array})
    with pytest.raises(ModelFileError, match=message):
        deepforecast.load(tmp_path / "file")


@pytest.mark.parametrize(
    ("name", "learned"),
    [("AutoETS", "rates"), ("Holt", "n_errors_since"), ("AutoTheta", "start_time"), ("CES", "start_time"), ("AutoCES", "age")],
)
def test_learned_arrays_of_another_shape_are_refused_at_load(name: str, learned: str, tmp_path: Path) -> None:
    cls: Any = get(name)
    model = cls(horizon=2).fit(noisy())
    manifest, arrays = to_manifest(model, model.fitted_state())
    reference = manifest["learned"]["by_series"]["tree"][learned]["array"]
    array = arrays[reference]
    encoding.write_archive(tmp_path / "file", manifest, {**arrays, reference: array[:, None] if array.ndim == 1 else array[:, :-1]})
    with pytest.raises(ModelFileError, match=f"the learned '{learned}' must be"):
        deepforecast.load(tmp_path / "file")


def test_names_of_parameters_that_are_no_text_are_refused_at_load(tmp_path: Path) -> None:
    model = UnobservedComponents(horizon=2, season_length=1).fit(noisy())
    manifest, arrays = to_manifest(model, model.fitted_state())
    place = ("learned", "shared", "tree", "names", "list", 1)
    encoding.write_archive(tmp_path / "file", changed(manifest, place, 3), arrays)
    with pytest.raises(ModelFileError, match="the names of the parameters must be strings"):
        deepforecast.load(tmp_path / "file")


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("block",), 2**31, "must match the past target values in the file"),
        (("block",), 0, "must match the past target values in the file"),
        (("block",), True, "must be integers, got True"),
        (("past", "list", 0), "lag_1000000", "must match the past target values in the file"),
        (("differences", "list", 0), 2**62, "must match the past target values in the file"),
        (("fourier", "list", 0, "list", 1), 2**62, "Fourier terms per season"),
        (("first",), "1", "must be integers"),
    ],
)
def test_a_plan_that_does_not_fit_its_arrays_is_refused_at_load(
    place: tuple[Any, ...], value: Any, message: str, tmp_path: Path
) -> None:
    model = LightGBM(horizon=2, lags=3, differences=[7], fourier=2, season_length=7).fit(noisy())
    manifest, arrays = to_manifest(model, model.fitted_state())
    place = ("learned", "shared", "tree", "plan", "tree", *place)
    encoding.write_archive(tmp_path / "file", changed(manifest, place, value), arrays)
    with pytest.raises(ModelFileError, match=message):
        deepforecast.load(tmp_path / "file")


@pytest.mark.parametrize(
    ("form", "longest"), [((0, 1, 1, 1), 1_000_000), ((1, 1, 0, 2), 50_000), ((0, 2, 0, 0), 10_000), ((0, 0, 0, 2), 10_000)]
)
def test_gaps_of_exponential_smoothing_are_bounded_by_the_work_of_the_form(form: tuple[int, ...], longest: int) -> None:
    shapes = {"start": 3, "state": 3, "rates": 4, "criteria": 3}
    learned = {"form": np.array([form]), **{name: np.zeros((1, width)) for name, width in shapes.items()}}
    check_form(LearnedState({**learned, "age": np.array([longest])}))
    with pytest.raises(InvalidManifest, match=f"'age' must be between 0 and {longest}, got"):
        check_form(LearnedState({**learned, "age": np.array([longest + 1])}))


@pytest.mark.parametrize(
    "parameters",
    [
        {"strategy": "direct", "differences": [7, 1]},
        {"strategy": "direct_multioutput", "differences": [1]},
        {"strategy": "blocks", "differences": [7], "fourier": 2, "season_length": 7},
        {"per_series": True, "differences": [7], "detrend": True, "transform": "log"},
    ],
)
def test_plans_of_every_strategy_fit_their_arrays(parameters: dict[str, Any], tmp_path: Path) -> None:
    model = LinearModel(horizon=10, lags=7, **parameters).fit(noisy())
    model.save(tmp_path / "file")
    assert deepforecast.load(tmp_path / "file").predict().equals(model.predict())


def test_gaps_of_all_series_together_are_bounded() -> None:
    count = 20
    most = (MAX_TOTAL_GAPS + MAX_MEAN_GAP * count) // count
    check_gaps(LearnedState({"age": np.full(count, most)}))
    with pytest.raises(InvalidManifest, match="must end with at most 10,020,000 missing values together"):
        check_gaps(LearnedState({"age": np.full(count, most + 1)}))
    check_gaps(LearnedState({"age": np.array([MAX_GAP, 0])}))
    with pytest.raises(InvalidManifest, match="'age' must be between 0 and 1000000"):
        check_gaps(LearnedState({"age": np.array([MAX_GAP + 1, 0])}))


@pytest.mark.parametrize("values", [np.zeros((2, 1), np.int64), np.zeros(2), np.zeros(2, np.int32)])
def test_integers_of_another_kind_are_refused(values: np.ndarray) -> None:
    with pytest.raises(InvalidManifest, match="'n' must be one int64 for each series"):
        check_integers(LearnedState({"n": values}), "n", 0, 1)
    with pytest.raises(InvalidManifest, match="'m' must be one int64"):
        check_integers(LearnedState({"n": values}), "m", 0, 1)


@pytest.mark.parametrize("value", [True, 1.0, "1", None, -1, 11])
def test_other_values_are_no_integer_in_range(value: Any) -> None:
    assert check_integer(10, "n", 0, 10) == 10
    with pytest.raises(InvalidManifest, match=r"n must be an integer between 0 and 10, got"):
        check_integer(value, "n", 0, 10)


def test_a_series_that_ended_long_ago_is_saved_and_loaded(tmp_path: Path) -> None:
    frame = noisy()
    frame.loc[frame.groupby("unique_id").tail(60).index, "y"] = np.nan
    for name in ("AutoETS", "AutoTheta", "AutoCES"):
        cls: Any = get(name)
        with pytest.warns(DataWarning, match="missing"):
            model = cls(horizon=2, season_length=7).fit(frame)
        model.save(tmp_path / "file")
        expected = model.predict(level=80)
        assert deepforecast.load(tmp_path / "file").predict(level=80).equals(expected)


def noisy() -> Any:
    """Three series of 100 days."""
    frame = P(3, 100)
    return frame.assign(y=30 + frame.y + np.random.default_rng(0).normal(size=len(frame)))
