from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import deepforecast
from deepforecast import Conformal, Drift, Forecaster, Mean, Naive, Naive2, SeasonalMean, SeasonalNaive, WindowMean, param
from deepforecast.core import encoding, registry
from deepforecast.core.forecast import Forecast, PointForecast
from deepforecast.core.manifest import to_manifest
from deepforecast.core.state import LearnedState
from deepforecast.data.panel import Panel
from deepforecast.errors import DependencyError, ModelFileError, NotFittedError, ParameterTypeError, SaveError
from tests.frames import FREQUENCIES, LIBRARIES, ZONES, D, P, converted, joined, same
from tests.helpers_models import FutureRegression, PooledRegression

MODELS: list[Forecaster] = [
    Naive(), SeasonalNaive(season_length=7), SeasonalMean(season_length=7), WindowMean(window=5), Drift(), Mean(),
    Naive2(season_length=7), Conformal(SeasonalNaive(season_length=7), method="adaptive"), Conformal(Mean(), pool=True),
]  # fmt: skip


@pytest.fixture
def registered() -> Iterator[Any]:
    """Registers classes for one test."""
    before = dict(registry._registered)
    yield registry.register
    registry._registered.clear()
    registry._registered.update(before)


def noisy(k: int = 3, n: int = 40) -> pd.DataFrame:
    frame = P(k, n)
    return frame.assign(y=frame.y + np.random.default_rng(0).normal(size=len(frame)))


def there_and_back(model: Forecaster, folder: Path) -> Any:
    model.save(folder / "model.dfc")
    loaded = deepforecast.load(folder / "model.dfc")
    assert loaded == model
    assert type(loaded) is type(model)
    assert loaded.state_.fingerprint == model.state_.fingerprint
    return loaded


# -- what is loaded forecasts what was saved -------------------------------------------------------------------------


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_loaded_model_forecasts_as_the_saved_one(model: Forecaster, library: str, tmp_path: Path) -> None:
    frame = noisy()
    model = model.clone(horizon=3).fit(converted(frame, library))
    loaded = there_and_back(model, tmp_path)
    for level in (None, [50, 80]):
        same(loaded.predict(level=level), model.predict(level=level))
    if model.capabilities.simulates:
        same(loaded.simulate(5, seed=3), model.simulate(5, seed=3))
    same(loaded.explain(), model.explain())
    history = converted(frame.groupby("unique_id").head(30), library)
    same(loaded.predict(frame=history), model.predict(frame=history))
    new = converted(P(3, 50)[lambda one: one.ds > frame.ds.max()], library)
    same(loaded.update(new).predict(), model.update(new).predict())
    assert there_and_back(loaded, tmp_path).predict().shape == model.predict().shape


@pytest.mark.parametrize("freq", FREQUENCIES)
def test_every_frequency(freq: str, tmp_path: Path) -> None:
    model = Naive(horizon=4).fit(D("A", 30, freq), freq=freq)
    same(there_and_back(model, tmp_path).predict(), model.predict())


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("freq", ["D", "h", "W-MON", "ME"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_every_time_zone(library: str, freq: str, zone: str | None, tmp_path: Path) -> None:
    model = Naive(horizon=30).fit(converted(D("A", 40, freq, tz=zone), library), freq=freq)
    same(there_and_back(model, tmp_path).predict(), model.predict())


STAMPS = pd.date_range("2024-01-01", periods=12)
TIMES = {
    **{unit: STAMPS.as_unit(unit) for unit in ("s", "ms", "us", "ns")},
    "arrow": STAMPS.astype("timestamp[us][pyarrow]"),
    "arrow zoned": STAMPS.tz_localize("Asia/Tokyo").astype(pd.ArrowDtype(pa.timestamp("ns", "Asia/Tokyo"))),
    "arrow dates": pd.array([stamp.date() for stamp in STAMPS], dtype=pd.ArrowDtype(pa.date32())),
    **{kind: pd.array(np.arange(12), dtype=kind) for kind in ("int8", "int64", "Int32", "uint16", "int64[pyarrow]")},
}


@pytest.mark.parametrize("kind", TIMES)
def test_every_type_of_time(kind: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"ds": TIMES[kind], "y": np.arange(12.0)})
    model = Naive(horizon=4).fit(frame, freq=1 if "nt" in kind else "D")
    same(there_and_back(model, tmp_path).predict(), model.predict())


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
@pytest.mark.parametrize("kind", [pa.timestamp("s"), pa.timestamp("ns"), pa.date32(), pa.int16(), pa.uint32()], ids=str)
def test_types_of_time_of_other_libraries(kind: Any, library: str, tmp_path: Path) -> None:
    stamps = pa.array(range(12), kind) if pa.types.is_integer(kind) else pa.array(STAMPS).cast(kind)
    table: Any = pa.table({"ds": stamps, "y": np.arange(12.0)})
    if library == "polars":
        import polars as pl

        table = pl.DataFrame(table)
    model = Naive(horizon=4).fit(table, freq=1 if pa.types.is_integer(kind) else "D")
    same(there_and_back(model, tmp_path).predict(), model.predict())


@pytest.mark.parametrize(
    "freq",
    [
        pd.offsets.CustomBusinessDay(holidays=["2024-01-01", "2024-02-14"]),
        pd.offsets.CustomBusinessDay(n=2, weekmask="Sun Mon Tue Wed Thu"),
        pd.offsets.CustomBusinessMonthBegin(holidays=["2024-01-01", "2024-02-01"]),
        pd.offsets.CustomBusinessMonthEnd(weekmask="Mon Wed Fri"),
    ],
    ids=str,
)
def test_calendars_of_the_callers_own(freq: Any, tmp_path: Path) -> None:
    frame = pd.DataFrame({"ds": pd.date_range("2023-01-01", periods=20, freq=freq), "y": np.arange(20.0)})
    model = Naive(horizon=30).fit(frame, freq=freq)
    loaded = there_and_back(model, tmp_path)
    same(loaded.predict(), model.predict())
    same(loaded.predict(frame=frame.head(15)), model.predict(frame=frame.head(15)))


def test_ids_of_any_kind_survive_save_and_load(tmp_path: Path) -> None:
    names = ["", " a", "a", "A", "日本", "a/b", "..", "x" * 300, "\x1b[2J\r\n", "../../etc/passwd"]
    model = Naive(horizon=2).fit(joined(*(D(name, 9).assign(y=float(n)) for n, name in enumerate(names))))
    loaded = there_and_back(model, tmp_path)
    same(loaded.predict(), model.predict())
    assert sorted(loaded.predict().unique_id.unique()) == sorted(names)
    assert [path.name for path in tmp_path.iterdir()] == ["model.dfc"]
    for ids in (np.array([30, 4, 200]), pd.Categorical(["b", "a", "c"], ["c", "b", "a", "z"], ordered=True)):
        frame = joined(*(D(f"{n}", 9).assign(unique_id=[one] * 9) for n, one in enumerate(ids)))
        frame["unique_id"] = frame.unique_id.astype(ids.dtype)
        model = Naive(horizon=2).fit(frame)
        same(there_and_back(model, tmp_path).predict(), model.predict())


def test_a_series_without_ids_and_columns_of_the_callers_own(tmp_path: Path) -> None:
    frame = D("A", 30).drop(columns="unique_id").rename(columns={"ds": "Tag", "y": "Umsatz (€)\xa0"})
    model = Naive(horizon=2).fit(frame, columns={"time": "Tag", "target": "Umsatz (€)\xa0"})
    loaded = there_and_back(model, tmp_path)
    same(loaded.predict(), model.predict())
    same(loaded.predict(frame=frame), model.predict(frame=frame))


def test_covariates_of_every_kind(tmp_path: Path, registered: Any) -> None:
    registered(PooledRegression)
    rng = np.random.default_rng(0)
    frame = noisy().assign(x=rng.normal(size=120), kind=pd.Categorical(["a", "b", "a", "a"] * 30), past=rng.normal(size=120))
    shops = pd.DataFrame({"unique_id": ["s003", "s002", "s001"], "size": [1.0, 2.0, 4.0], "town": ["x", "y", "x"]})
    columns = {"future": ["x", "kind"], "past": ["past"], "static": ["size", "town"]}
    model = PooledRegression(horizon=2).fit(frame, columns=columns, static=shops.astype({"town": "category"}))
    loaded = there_and_back(model, tmp_path)
    future = model.future_frame().assign(x=1.0, kind=pd.Categorical(["b"] * 6, ["b", "c"]))
    same(loaded.predict(future=future), model.predict(future=future))
    same(loaded.predict(future=future, frame=frame), model.predict(future=future, frame=frame))  # static ones are in the file


def test_thousands_of_categories_are_no_trouble(tmp_path: Path, registered: Any) -> None:
    registered(FutureRegression)
    names = [f"a rather long name of category number {n}" for n in range(30_000)]
    model = FutureRegression(horizon=2).fit(D("A", 40).assign(x=pd.Categorical(["one"] * 40)), columns={"future": ["x"]})
    state = model.state_
    learned = LearnedState({"weights": np.zeros((1, 30_002))})
    model.state_ = state.__class__(state.series, learned, {"x": ("one", *names)}, {}, None)
    assert there_and_back(model, tmp_path).state_.categories["x"] == ("one", *names)


def test_model_loaded_in_a_new_process_gives_the_same_bits(tmp_path: Path) -> None:
    want = {}
    for number, model in enumerate(MODELS):
        model.clone(horizon=3).fit(noisy()).save(tmp_path / f"{number}.dfc")
        want[str(number)] = model.clone(horizon=3).fit(noisy()).predict(level=80).iloc[:, 2:].to_numpy().tobytes().hex()
    code = """
import json, sys, deepforecast
found = {}
for number in range(int(sys.argv[2])):
    model = deepforecast.load(f"{sys.argv[1]}/{number}.dfc")
    found[number] = model.predict(level=80).iloc[:, 2:].to_numpy().tobytes().hex()
loaded = [name for name in ("torch", "matplotlib", "sklearn", "statsmodels", "optuna") if name in sys.modules]
print(json.dumps([found, loaded]))
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(deepforecast.__file__).parents[1])}
    command = [sys.executable, "-W", "error", "-c", code, str(tmp_path), str(len(MODELS))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [want, []]


# -- parameters -----------------------------------------------------------------------------------------------------------


class Parametric(Naive):
    """A parameter of every kind."""

    size: int = param(default=1)
    rate: float = param(default=0.5)
    flag: bool = param(default=True)
    kind: str | None = param(default=None)
    lags: list[int] | tuple[int, ...] | None = param(default=None)
    nested: Any = param(default=None)
    options: dict[str, Any] | None = param(default=None)


def test_parameters_of_every_type(tmp_path: Path, registered: Any) -> None:
    registered(Parametric)
    model = Parametric(
        horizon=np.int64(3), alias="日本 \x1b", size=np.int8(7), rate=np.float32(0.1), flag=np.False_, kind="a", lags=[1, 7],
        nested=(Naive(), [SeasonalNaive(season_length=7), (1, None)], {"list": {"model": [True, 2.5]}, "tree": {}}),
        options={"a": {"b": (1, 2)}, "array": "a0", "": None},
    ).fit(noisy())  # fmt: skip
    loaded = there_and_back(model, tmp_path)
    assert isinstance(loaded.lags, list)
    assert isinstance(loaded.options["a"]["b"], tuple)
    assert type(loaded.horizon) is int
    same(loaded.predict(), model.predict())
    assert isinstance(there_and_back(Parametric(horizon=2, lags=(1, 7)).fit(noisy()), tmp_path).lags, tuple)


VALUES = [np.ones(3), {1, 2}, b"a", len, Naive, {1: 2}, {"a": object()}, float("nan"), 10**30]


@pytest.mark.parametrize("value", VALUES, ids=lambda one: type(one).__name__)
def test_a_parameter_that_has_no_place_in_a_file_is_refused_by_name(value: Any, tmp_path: Path, registered: Any) -> None:
    registered(Parametric)
    model = Parametric(horizon=2, nested=[value]).fit(noisy())
    (tmp_path / "model").write_bytes(b"before")
    with pytest.raises(SaveError) as caught:
        model.save(tmp_path / "model")
    assert str(tmp_path / "model") in str(caught.value)
    assert (tmp_path / "model").read_bytes() == b"before"
    assert len(model.predict()) == 6


def test_a_class_that_could_not_be_found_again_is_not_saved(tmp_path: Path, registered: Any) -> None:
    for model in (Parametric(horizon=2), Conformal(Parametric(), horizon=2)):
        with pytest.raises(SaveError, match="Parametric must be registered; decorate it with @deepforecast"):
            model.fit(noisy()).save(tmp_path / "model")

    class Naive(Drift):  # of the same name as one that is found
        pass

    with pytest.raises(SaveError, match="Naive must be registered"):
        Naive(horizon=2).fit(D("A", 30)).save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_bands_asked_for_after_the_fit_are_not_saved_as_if_they_were_there(tmp_path: Path) -> None:
    model = Naive(horizon=2).fit(noisy()).set_params(intervals="conformal")
    with pytest.raises(NotFittedError):
        model.save(tmp_path / "model")
    assert there_and_back(model.fit(noisy()), tmp_path).predict(level=80).shape == (6, 5)


# -- paths ----------------------------------------------------------------------------------------------------------------


def test_a_path_without_a_file_is_said(tmp_path: Path) -> None:
    for path in (tmp_path / "none", str(tmp_path / "no folder" / "none")):
        with pytest.raises(ModelFileError, match=r"There is no file at .*none\. Save one first: model\.save\(path\)"):
            deepforecast.load(path)
    with pytest.raises(ModelFileError, match="the path is a folder, not a file"):
        deepforecast.load(tmp_path)
    for wrong in (None, 3, [tmp_path]):
        with pytest.raises(ParameterTypeError, match="`path` must be a string"):
            deepforecast.load(wrong)


def test_save_wants_a_fitted_model(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        Naive(horizon=2).save(tmp_path / "model")
    (tmp_path / "file").write_bytes(b"x")
    model = Naive(horizon=2).fit(noisy())
    with pytest.raises(SaveError, match="file"):
        model.save(tmp_path / "file" / "model")


@pytest.mark.parametrize("trusted", ["builtins.eval", [3], (None,)])
def test_trusted_is_a_list_of_names(trusted: Any, tmp_path: Path) -> None:
    Naive(horizon=2).fit(noisy()).save(tmp_path / "model")
    with pytest.raises(ParameterTypeError, match=r"`trusted` must be a tuple of names 'module\.Class'"):
        deepforecast.load(tmp_path / "model", trusted=trusted)
    assert len(deepforecast.load(tmp_path / "model", trusted=["mine.Class"]).predict()) == 6


# -- other packages, other releases ---------------------------------------------------------------------------------------


class Elsewhere(Forecaster):
    """A model as another package would have it, with arrays of its own."""

    depth: int = param(default=2)

    def _fit(self, panel: Panel, monitor: Any) -> LearnedState:
        layers = [np.arange(3, dtype=np.float32), {"bias": np.ones((2, 2), np.int8)}]
        shared = {"weights": {"layers": layers, "names": ["a", None, True, 2.5]}, "n": 3}
        return LearnedState({"last": panel.y[panel.indptr[1:] - 1], "on": np.ones(len(panel), bool)}, shared)

    def _forecast(self, learned: LearnedState, steps: int, future: Any) -> Forecast:
        layer, other = learned["weights"]["layers"]
        total = float(layer.sum() + other["bias"].sum())
        return PointForecast(np.repeat((learned["last"] + total + learned["n"])[:, None], steps, axis=1), self.name)


def test_a_model_of_another_package_is_found_by_its_entry_point(
    tmp_path: Path, registered: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from importlib.metadata import EntryPoint

    point = EntryPoint("Elsewhere", f"{__name__}:Elsewhere", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point])
    model = Elsewhere(horizon=2).fit(noisy())
    loaded = there_and_back(model, tmp_path)
    same(loaded.predict(), model.predict())
    weights = loaded.state_.learned["weights"]
    assert weights["names"] == ["a", None, True, 2.5]
    assert weights["layers"][0].dtype == np.float32
    registry._registered.pop("Elsewhere")
    monkeypatch.setattr(registry, "entry_points", lambda group: [])
    with pytest.raises(ModelFileError, match=r"model\.dfc.*Unknown model 'Elsewhere'"):
        deepforecast.load(tmp_path / "model.dfc")


def test_parameters_that_came_later_than_the_file_have_their_defaults(tmp_path: Path) -> None:
    manifest, arrays = to_manifest(model := Naive(horizon=2).fit(noisy()), model.state_)
    del manifest["parameters"]["point"]
    encoding.write_archive(tmp_path / "model", manifest, arrays)
    assert deepforecast.load(tmp_path / "model") == model


class Drawing(Naive):
    seed: int | None = param(default=0, at_least=0, help="of what it draws")


@pytest.mark.parametrize("seed", [0, 7, None])
def test_the_seed_stands_in_the_manifest_beside_versions_and_data(tmp_path: Path, registered: Any, seed: int | None) -> None:
    registered(Drawing)
    model = Drawing(horizon=2, seed=seed).fit(noisy())
    manifest, arrays = to_manifest(model, model.state_)
    assert manifest["seed"] == seed
    assert manifest["data"] == model.state_.fingerprint
    assert manifest["versions"]["deepforecast"] == deepforecast.__version__
    assert there_and_back(model, tmp_path).seed == seed
    for said in (False if seed == 0 else seed == 7, "os.system", 8):
        encoding.write_archive(tmp_path / "other", {**manifest, "seed": said}, arrays)
        with pytest.raises(ModelFileError, match="seed must equal"):
            deepforecast.load(tmp_path / "other")


@pytest.mark.parametrize("key", ["seed", "value_range"])
def test_a_manifest_that_lacks_a_key_is_refused(key: str, tmp_path: Path) -> None:
    manifest, arrays = to_manifest(model := Naive(horizon=2).fit(noisy()), model.state_)
    del manifest[key]
    encoding.write_archive(tmp_path / "model", manifest, arrays)
    with pytest.raises(ModelFileError, match="the manifest must have the keys"):
        deepforecast.load(tmp_path / "model")


def test_a_model_of_polars_frames_without_polars_names_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Naive(horizon=2).fit(converted(noisy(), "polars")).save(tmp_path / "model")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(DependencyError, match="pip install polars"):
        deepforecast.load(tmp_path / "model")


@pytest.mark.parametrize("columns", [{"static": ["st", "sc"]}, {"future": ["x", "b"], "static": ["st"]}], ids=str)
def test_the_order_of_columns_is_kept(columns: dict[str, Any], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    ids = np.repeat(["a", "b"], 60)
    frame = pd.DataFrame({
        "unique_id": ids, "ds": np.tile(pd.date_range("2024-01-01", periods=60), 2), "y": rng.normal(size=120).cumsum(),
        "st": (ids == "b") * 1.0, "sc": pd.Categorical(ids), "x": rng.normal(size=120), "b": rng.normal(size=120),
    })  # fmt: skip
    roles = [name for names in columns.values() for name in names]
    model = deepforecast.LinearModel(horizon=3, lags=5).fit(frame[["unique_id", "ds", "y", *roles]], columns=columns)
    model.save(tmp_path / "m")
    loaded = deepforecast.load(tmp_path / "m")
    future = model.future_frame().assign(x=1.0, b=2.0)[["unique_id", "ds", "x", "b"]] if "future" in columns else None
    assert list(loaded.state_.categories) == list(model.state_.categories)
    assert list(loaded.state_.static) == list(model.state_.static)
    pd.testing.assert_frame_equal(loaded.predict(future=future), model.predict(future=future))
