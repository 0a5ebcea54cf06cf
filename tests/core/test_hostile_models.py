"""Model files made to do harm, whose checksum is true: only what they say of a model is wrong.

Whatever is put into one, loading raises `ModelFileError` that names the path, or gives a model that forecasts finite numbers or
refuses to by an error of the library. The corpus is also read in a child process under an audit hook.
"""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import deepforecast
from deepforecast import Conformal, Forecaster, Mean, Naive, Naive2, SeasonalNaive
from deepforecast.core import encoding
from deepforecast.core.manifest import to_manifest
from deepforecast.errors import DataWarning, DeepForecastError, ModelFileError
from tests.frames import P, converted

ANSI = "\x1b[2J\x1b]0;owned\x07\r\n\u202e"
HOLIDAYS = pd.offsets.CustomBusinessDay(holidays=["2023-01-02"])
Manifest = dict[str, Any]
Arrays = dict[str, np.ndarray]


def noisy() -> pd.DataFrame:
    frame = P(3, 40)
    return frame.assign(y=frame.y + np.random.default_rng(0).normal(size=len(frame)))


def seasonal() -> Forecaster:
    table = converted(noisy().astype({"unique_id": "category"}), "pyarrow")
    return Conformal(SeasonalNaive(season_length=7), horizon=3, method="adaptive").fit(table)


def on_business_days() -> Forecaster:
    stamps = pd.date_range("2023-01-01", periods=30, freq=HOLIDAYS, tz="Europe/Berlin").as_unit("us")
    frame = pd.DataFrame({"unique_id": 7, "ds": stamps, "y": np.arange(30.0) + 5})
    return Naive2(horizon=3, season_length=4).fit(frame, freq=HOLIDAYS)


def by_number() -> Forecaster:
    return Naive(horizon=3).fit(pd.DataFrame({"ds": np.arange(20, dtype="int32"), "y": np.arange(20.0)}), freq=1)


GOOD: dict[str, Callable[[], Forecaster]] = {
    "daily": lambda: Naive(horizon=3).fit(noisy()),
    "seasonal": seasonal,
    "pooled": lambda: Conformal(Mean(), horizon=3, pool=True).fit(converted(noisy(), "polars")),
    "business": on_business_days,
    "numbered": by_number,
}


def parts(name: str) -> tuple[Manifest, Arrays]:
    model = GOOD[name]()
    return to_manifest(model, model.fitted_state())


def changed(manifest: Manifest, place: tuple[Any, ...], value: Any) -> Manifest:
    """The manifest with another value at a place; a callable changes what holds it."""
    manifest = copy.deepcopy(manifest)
    held: Any = manifest
    for key in place[:-1]:
        held = held[key]
    if callable(value):
        value(held, place[-1])
    else:
        held[place[-1]] = value
    return manifest


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a tree, the inner ones after the outer."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, held in inner:
        yield (*at, key)
        yield from places(held, (*at, key))


def removed(held: Any, key: Any) -> None:
    del held[key]


def everywhere(value: Any, new: Any) -> Any:
    """Every text replaced."""
    if isinstance(value, dict):
        return {key: everywhere(held, new) for key, held in value.items()}
    if isinstance(value, list):
        return [everywhere(held, new) for held in value]
    return new if isinstance(value, str) else value


# -- the corpus: a name says what is done, the words are a piece of the reason ---------------------------------------------



def zoned(name: str) -> dict[str, str]:
    return {"unit": "us", "tz": name, "dtype": f"datetime64[us, {name}]"}


CASES: dict[str, tuple[str, tuple[Any, ...], Any, str]] = {
    "model_is_a_path": ("daily", ("model",), "os.system", "Unknown model 'os.system'"),
    "model_is_a_module": ("daily", ("model",), "deepforecast.models.baselines.naive", "Unknown model"),
    "library_is_a_module": (
        "daily",
        ("series", "library"),
        "os",
        "library must be one of pandas, polars, pyarrow, got os",
    ),
    "library_of_other_ids": ("daily", ("series", "library"), "polars", "Stored ids must have a supported dtype"),
    "dtype_of_ids_is_a_path": ("daily", ("series", "ids", "dtype"), "os.system", "ids"),
    "dtype_of_time_is_a_path": ("daily", ("series", "time", "dtype"), "os.system", "unknown type"),
    "array_is_a_path": ("daily", ("series", "last", "array"), "os.system", "array os.system is missing"),
    "extra_key_in_the_manifest": ("daily", ("_instantiator",), "os.system", "the manifest must have the keys"),
    "extra_key_in_the_parameters": (
        "daily",
        ("parameters", "_target_"),
        "os.system",
        "Naive has no parameter _target_",
    ),
    "dunder_parameter": ("daily", ("parameters", "__class__"), "os.system", "Naive has no parameter __class__"),
    "state_as_parameter": ("daily", ("parameters", "state_"), {"tree": {}}, "Naive has no parameter state_"),
    "extra_key_in_the_series": ("daily", ("series", "py/object"), "os.system", "the series must have the keys"),
    "extra_key_in_the_columns": (
        "daily",
        ("series", "columns", "__class__"),
        "os.system",
        "columns must have the keys",
    ),
    "extra_key_in_the_ids": ("daily", ("series", "ids", "__reduce__"), ["os.system"], "ids"),
    "extra_key_in_the_time": ("daily", ("series", "time", "_args_"), [], "the time type must have the keys"),
    "extra_key_in_the_state": ("daily", ("learned", "__class__"), "os.system", "the learned state must have the keys"),
    "extra_key_in_an_array": ("daily", ("series", "last", "__class__"), "x", "an array must have the keys"),
    "extra_key_in_a_wrapped_model": (
        "seasonal",
        ("parameters", "model", "_target_"),
        "os.system",
        "a model must have the keys",
    ),
    "extra_key_in_the_calibration": (
        "seasonal",
        ("calibration", "_target_"),
        "os.system",
        "the calibration must have the keys",
    ),
    "versions_of_anything": ("daily", ("versions", "os.system"), "1", "'versions' must have the keys"),
    "seed_that_is_not_the_models": ("daily", ("seed",), 3, "seed must equal that of the parameters, None, got 3"),
    "float_for_a_count": ("daily", ("series", "step"), 1.5, "step must be a positive integer"),
    "long_integer": ("daily", ("series", "step"), 10**90, "step must be a positive integer"),
    "control_characters_in_the_model": ("daily", ("model",), ANSI, "Unknown model"),
    "control_characters_in_the_freq": ("daily", ("series", "freq"), ANSI, "freq"),
    "control_characters_in_a_parameter": ("daily", ("parameters", "missing"), ANSI, "`missing` must be 'auto'"),
    "horizon_of_code": (
        "daily",
        ("parameters", "horizon"),
        "__import__('os')",
        "`horizon` must be an integer of at least 1",
    ),
    "horizon_of_a_list": (
        "daily",
        ("parameters", "horizon"),
        {"list": [3], "tuple": False},
        "`horizon` must be an integer",
    ),
    "horizon_of_nothing": ("daily", ("parameters", "horizon"), -1, "`horizon` must be an integer of at least 1"),
    "horizon_of_true": ("daily", ("parameters", "horizon"), True, "`horizon` must be an integer of at least 1"),
    "alias_of_a_number": ("daily", ("parameters", "alias"), 3, "`alias` must be a string or None"),
    "wrapped_text": ("seasonal", ("parameters", "model"), "Naive", "`model` must be a Forecaster"),
    "season_of_code": (
        "seasonal",
        ("parameters", "model", "parameters", "season_length"),
        "__import__('os')",
        "season",
    ),
    "huge_calibration_rate": ("seasonal", ("calibration", "rate"), 1e300, "rate of the calibration"),
    "zone_of_a_file": ("business", ("series", "time"), zoned("dateutil//etc/passwd"), "unknown type"),
    "zone_of_a_path": ("business", ("series", "time"), zoned("../../etc/passwd"), "unknown type"),
    "zone_of_another_dtype": ("business", ("series", "time", "tz"), "Asia/Tokyo", "unknown type"),
    "freq_of_ages": ("daily", ("series", "freq"), "999999999999D", "does not match freq|stamps of a forecast"),
    "freq_of_nothing": ("daily", ("series", "freq"), "0D", "freq"),
    "freq_of_weeks": ("daily", ("series", "freq"), "W-SUN", "does not match freq|stamps of a forecast"),
    "freq_of_a_number": ("daily", ("series", "freq"), "1", "freq"),
    "freq_of_many_digits": ("numbered", ("series", "freq"), "9" * 5000, "freq"),
    "step_of_zero": ("daily", ("series", "step"), 0, "step must be a positive integer"),
    "step_of_another_freq": ("daily", ("series", "step"), 2, "does not match freq"),
    "holidays_that_are_none": ("business", ("series", "custom", "holidays"), ["never"], "ValueError|holidays"),
    "no_working_day": ("business", ("series", "custom", "weekmask"), "0000000", "ValueError|weekmask"),
    "no_column_for_the_time": ("daily", ("series", "columns", "time"), "unique_id", "one role"),
    "a_column_of_covariates": ("daily", ("series", "columns", "future"), ["x"], "categories of the covariates must have the keys"),
    "static_from_nowhere": ("daily", ("static", "x"), {"array": "a3"}, "the static covariates must have the keys"),
    "a_parameter_of_another_model": (
        "daily",
        ("parameters", "season_length"),
        7,
        "Naive has no parameter season_length",
    ),
    "another_model_s_state": ("daily", ("model",), "SeasonalNaive", "SeasonalNaive|season"),
    "no_calibration": ("seasonal", ("calibration",), None, "arrays to which the manifest does not refer"),
    "method_of_calibration": ("seasonal", ("calibration", "method"), "os.system", "must have a known method"),
    "an_array_twice": ("daily", ("series", "last"), {"array": "a0"}, "refers to it twice"),
    "learned_of_text": ("daily", ("learned", "by_series"), "os.system", "must be mappings of names to values"),
    "learned_of_a_list": ("daily", ("learned", "by_series"), {"list": []}, "must be mappings of names to values"),
    "everything_is_missing": ("daily", ("learned", "by_series"), {"tree": {}}, "arrays|KeyError"),
}


def corpus() -> Iterator[tuple[str, Manifest, Arrays]]:
    """Every file by its name, the good ones first."""
    whole = {name: parts(name) for name in GOOD}
    for name, (manifest, arrays) in whole.items():
        yield f"good_{name}", manifest, arrays
        for number, text in enumerate(["os.system", "builtins.eval", ANSI, "{0.__class__}"]):
            yield f"every_text_{number}_{name}", everywhere(manifest, text), arrays
    for name, (good, place, value, _) in CASES.items():
        manifest, arrays = whole[good]
        yield name, changed(manifest, place, value), arrays


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "files").mkdir()
    for name, manifest, arrays in corpus():
        encoding.write_archive(folder / "files" / name, manifest, arrays)
    return folder


@pytest.mark.parametrize("name", CASES)
def test_what_a_manifest_says_is_refused_by_name(name: str, folder: Path) -> None:
    path = folder / "files" / name
    with pytest.raises(ModelFileError, match=CASES[name][3]) as caught:
        deepforecast.load(path)
    assert str(path) in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1500


# What the child runs: the good files first, so that all they need is imported; then every file under the hook.
CODE = """
import json, os, pickle, socket, subprocess, sys, time, warnings
import deepforecast
from deepforecast.errors import DeepForecastError

watched, events = None, []

def hook(event, args):
    if watched is None or event not in WATCHED:
        return
    if event == "open" and isinstance(args[0], int):
        return
    if event == "open" and not args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and allowed(os.fsdecode(args[0])):
        return
    if event == "import" and args[0] in sys.modules:
        return
    events.append(f"{event} {args[0]!r}"[:200])
    raise RuntimeError(f"forbidden: {event}")

def allowed(name):
    known = name.endswith("entry_points.txt") or name in sys.path  # which models there are, for a name that is none
    return name == watched or known or "zoneinfo" in name or "tzdata" in name

WATCHED = {
    "pickle.find_class", "import", "exec", "compile", "os.system", "os.exec", "os.fork", "os.posix_spawn", "subprocess.Popen",
    "socket.connect", "socket.bind", "open", "os.remove", "os.rename", "os.mkdir", "os.symlink", "os.chmod", "ctypes.dlopen",
}

def observed(act, path):
    global watched
    events.clear()
    found, start, watched = {"error": None}, time.process_time(), path
    try:
        act()
    except BaseException as error:
        watched = None
        found |= {"error": type(error).__name__, "says": str(error), "ours": isinstance(error, DeepForecastError)}
    watched = None
    return {**found, "events": events.copy(), "seconds": time.process_time() - start}

def forecast(path):
    model = deepforecast.load(path)
    repr(model)
    model.predict(3, level=80)

os.chdir(sys.argv[1])
files = sorted(os.listdir("files"))
for name in files:
    if name.startswith("good"):
        forecast(f"files/{name}")
code, connection, found = compile("1", "x", "exec"), socket.socket(), {}
sys.addaudithook(hook)
with warnings.catch_warnings():
    warnings.simplefilter("error")
    for name in files:
        found[name] = observed(lambda: forecast(f"files/{name}"), f"files/{name}")
class Evil:
    def __reduce__(self):
        return os.system, ("touch harmed",)
data = pickle.dumps(Evil())
controls = {
    "pickle.find_class": lambda: pickle.loads(data),
    "import": lambda: __import__("wave"),
    "exec": lambda: exec(code),
    "compile": lambda: compile("1", "x", "eval"),
    "os.system": lambda: os.system("touch harmed"),
    "subprocess.Popen": lambda: subprocess.Popen(["touch", "harmed"]),
    "socket.connect": lambda: connection.connect(("127.0.0.1", 9)),
    "open": lambda: open("files/good_daily", "r+b"),
    "open ": lambda: open("/etc/passwd", "rb"),
}
controls = {name: observed(act, "files/good_daily") for name, act in controls.items()}
with open("/proc/self/status") as status:
    memory = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
print(json.dumps({"files": found, "controls": controls, "memory": memory}))
"""


@pytest.fixture(scope="module")
def outcome(folder: Path) -> Any:
    environment = {**os.environ, "PYTHONPATH": str(Path(deepforecast.__file__).parents[1])}
    command = [sys.executable, "-c", CODE, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_loading_a_hostile_file_only_reads(outcome: Any, folder: Path) -> None:
    for name, found in outcome["files"].items():
        assert found["events"] == [], name
        assert found["seconds"] < 10
        assert found["error"] is None or (found["ours"] and found["says"].isprintable()), (name, found)
        assert (found["error"] is None) <= (name not in CASES)
        assert (found["error"] is not None) <= (not name.startswith("good"))
    assert outcome["memory"] < 600
    assert sorted(path.name for path in folder.iterdir()) == ["files"]


@pytest.mark.slow
def test_the_hook_sees_what_it_has_to(outcome: Any) -> None:
    for name, found in outcome["controls"].items():
        assert found["error"] == "RuntimeError", name
        assert any(event.startswith(name.strip()) for event in found["events"]), name


# -- and anything else, at every place ------------------------------------------------------------------------------------

POISON = [
    None, True, -1, 0, 10**9, 10**18, 0.5, 1e308, "", "os.system", "999999999999D", ANSI, [], ["os.system"], {}, {"tree": {}},
    {"array": "a0"}, {"list": []}, {"model": "Naive", "parameters": {}}, removed,
]  # fmt: skip
OTHER_ARRAYS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "float32": lambda a: a.astype("f4"), "float64": lambda a: a.astype("f8"), "int8": lambda a: np.zeros(a.shape, "i1"),
    "bool": lambda a: np.zeros(a.shape, bool), "uint64": lambda a: np.zeros(a.shape, "u8"), "empty": lambda a: a[:0],
    "longer": lambda a: np.concatenate([a, a[:1]]), "shorter": lambda a: a[:-1], "deeper": lambda a: a[None],
    "flat": lambda a: a.reshape(-1), "wider": lambda a: np.repeat(a[..., None], 2, -1), "single": lambda a: np.array(3.0),
    "nan": lambda a: np.full(a.shape, np.nan), "inf": lambda a: np.full(a.shape, np.inf),
    "huge": lambda a: np.full(a.shape, 1e308), "negative": lambda a: -np.abs(a.astype("f8")),
    "least": lambda a: np.full(a.shape, -(2**63)),
    "most": lambda a: np.full(a.shape, 2**63 - 1), "minus one": lambda a: np.full(a.shape, -1),
}  # fmt: skip


def harmless(path: Path, manifest: Manifest, arrays: Arrays) -> None:
    """Written, it is refused on loading by an error that names the path, or forecasts, or says why not."""
    refused: DeepForecastError | None = None
    try:
        encoding.write_archive(path, manifest, arrays)
        model = deepforecast.load(path)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "(?s).*lie far outside the history", DataWarning)
            found = model.predict(3, level=80)
    except DeepForecastError as error:
        refused = error
    if refused is not None:
        assert str(refused).isprintable()
        assert str(path) in str(refused) or not isinstance(refused, ModelFileError)
        return
    found = found if isinstance(found, pd.DataFrame) else found.to_pandas()
    assert np.isfinite(found[[model.name, f"{model.name}-lo-80", f"{model.name}-hi-80"]].to_numpy(float)).all()
    assert (found[f"{model.name}-lo-80"] <= found[f"{model.name}-hi-80"]).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", GOOD)
def test_no_value_at_any_place_does_harm(name: str, tmp_path: Path) -> None:
    manifest, arrays = parts(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DataWarning)
        for place in places(manifest):
            for value in POISON:
                harmless(tmp_path / "file", changed(manifest, place, value), arrays)


@pytest.mark.parametrize("name", GOOD)
def test_no_array_does_harm(name: str, tmp_path: Path) -> None:
    manifest, arrays = parts(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for one, values in arrays.items():
            for change in OTHER_ARRAYS.values():
                harmless(tmp_path / "file", manifest, {**arrays, one: np.ascontiguousarray(change(values))})
            encoding.write_archive(tmp_path / "file", manifest, {key: held for key, held in arrays.items() if key != one})
            with pytest.raises(ModelFileError, match=f"the array {one} is missing"):
                deepforecast.load(tmp_path / "file")
        encoding.write_archive(tmp_path / "file", manifest, {**arrays, "more": np.zeros(3)})
        with pytest.raises(ModelFileError, match="arrays to which the manifest does not refer: more"):
            deepforecast.load(tmp_path / "file")


def test_an_id_that_is_there_twice(tmp_path: Path) -> None:
    manifest, arrays = parts("daily")
    same = {name: values.copy() for name, values in arrays.items()}
    same["a0"] = np.frombuffer(b"s001s001s003", dtype=np.uint8)
    encoding.write_archive(tmp_path / "file", manifest, same)
    with pytest.raises(ModelFileError, match="the ids must be unique"):
        deepforecast.load(tmp_path / "file")


def test_names_from_a_file_are_escaped_in_messages(tmp_path: Path) -> None:
    frame = noisy().replace({"unique_id": {"s002": ANSI}}).rename(columns={"ds": f"t{ANSI}", "y": f"y{ANSI}"})
    model = SeasonalNaive(horizon=3, season_length=7, alias=f"m{ANSI}").fit(
        frame, columns={"time": f"t{ANSI}", "target": f"y{ANSI}"}
    )
    model.save(tmp_path / "file")
    loaded = deepforecast.load(tmp_path / "file")
    assert list(loaded.predict().columns) == ["unique_id", f"t{ANSI}", f"m{ANSI}"]
    short = frame.groupby("unique_id").head(3)
    calls = (lambda: loaded.predict(frame=short), lambda: loaded.update(frame), lambda: loaded.fit(short))
    for call in calls:
        with pytest.raises(DeepForecastError) as caught:
            call()
        assert str(caught.value).isprintable()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        loaded.predict(frame=frame.drop(index=frame.index[[5, 50]]))
    assert len(said) == 1
    assert str(said[0].message).isprintable()


def test_a_horizon_beyond_all_memory_is_refused(tmp_path: Path) -> None:
    manifest, arrays = parts("daily")
    encoding.write_archive(tmp_path / "file", changed(manifest, ("parameters", "horizon"), 10**18), arrays)
    model = deepforecast.load(tmp_path / "file")
    with pytest.raises(DeepForecastError, match=r"at least 1 and at most 1,000,000, got 1,000,000,000,000,000,000\."):
        model.predict()
