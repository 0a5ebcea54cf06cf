"""What is compiled or imported once is no cost of a model: it happens before anything is timed, on made-up values."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numba
import numpy as np
import pytest
from numba.core import event

from deepforecast import MLP, AutoETS, Conformal, Naive, TuningOptions, compare, param, tune
from deepforecast.benchmark import job
from deepforecast.benchmark.suite import Entry, Suite, Task
from deepforecast.benchmark.task_data import prepare_task
from deepforecast.core import registry
from deepforecast.data.panel import Panel
from deepforecast.errors import DataWarning, DependencyError
from deepforecast.evaluation import warm_up as module
from deepforecast.evaluation.resource_usage import ResourceUsage
from tests.evaluation.boards import LastValue, seasonal

FRAME = seasonal(3)


class Compiling(LastValue):
    """Compiles a kernel in its first fit, and writes down the values that it is fitted on."""

    warm_up_params: ClassVar[dict[str, Any]] = {}
    log: str | None = param(default=None, help="file that the values of each fit are added to")
    kernel: ClassVar[Any] = staticmethod(numba.njit(lambda y: y.sum()))

    def _fit(self, panel: Panel, monitor: Any) -> Any:
        type(self).kernel(panel.y)
        if self.log:
            with open(self.log, "a") as file:
                file.write(f"{os.getpid()} {' '.join(map(str, panel.y))}\n")
        return super()._fit(panel, monitor)


class Refusing(Compiling):
    """Can be fitted on the data of these tests only."""

    def _fit(self, panel: Panel, monitor: Any) -> Any:
        if panel.y.mean() < 50:
            raise ValueError("never seen such values")
        return super()._fit(panel, monitor)


class Updating(LastValue):
    """Compiles a kernel when its state moves on."""

    warm_up_params: ClassVar[dict[str, Any]] = {}
    kernel: ClassVar[Any] = staticmethod(numba.njit(lambda y: y.sum()))

    def _advance(self, learned: Any, panel: Panel, fresh: bool) -> Any:
        type(self).kernel(panel.y)
        return super()._advance(learned, panel, fresh)


@pytest.fixture(autouse=True)
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is compiled in this process."""
    monkeypatch.setattr(module, "_warm_keys", set())
    for model in (Compiling, Updating):
        model.kernel = staticmethod(numba.njit(lambda y: y.sum()))


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """Kernels compiled in all, and while a model was measured."""
    counts = {"all": 0, "timed": 0, "timing": 0}

    class Listener(event.Listener):
        def on_start(self, _: Any) -> None:
            counts["all"] += 1
            counts["timed"] += counts["timing"]

        def on_end(self, _: Any) -> None:
            pass

    @contextmanager
    def measured() -> Iterator[ResourceUsage]:
        counts["timing"] = 1
        with event.install_listener("numba:compile", Listener()):
            yield ResourceUsage()
        counts["timing"] = 0

    monkeypatch.setattr(sys.modules[compare.__module__], "measure_resources", measured)
    with event.install_listener("numba:compile", Listener()):
        yield counts


@pytest.mark.parametrize("wrapped", [lambda model: model, lambda model: Conformal(model)], ids=["bare", "in a wrapper"])
@pytest.mark.parametrize("series", [1, 12], ids=["without trials", "with trials"])
def test_kernels_are_compiled_before_a_model_is_timed(wrapped: Any, series: int, compiled: dict[str, int]) -> None:
    board = compare([wrapped(Compiling(alias="inner")), Naive()], seasonal(series), horizon=3, n_windows=2)
    assert not board.failed
    assert (compiled["all"] > 0, compiled["timed"]) == (True, 0)


def test_kernels_of_an_update_are_compiled_before_a_model_is_timed(compiled: dict[str, int]) -> None:
    assert not compare([Updating(), Naive()], FRAME[:48], horizon=3, n_windows=2, refit=False).failed
    assert (compiled["all"] > 0, compiled["timed"]) == (True, 0)


def test_a_benchmark_job_compiles_before_its_only_run(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task(task="made", generate={"n_series": 2, "length": 40, "freq": "D", "seed": 3}, horizon=3)
    suite, runs, compare_run = Suite(suite="s", tasks=(task,), models=(Entry(model="Naive"),)), [], job.run_model
    monkeypatch.setattr(job, "build_model", lambda *_: Compiling())
    monkeypatch.setattr(job, "run_model", lambda *given, **named: runs.append(given) or compare_run(*given, **named))
    assert job.run_job(suite, prepare_task(task), job.Job(0, 0, 0, "job", "hash"), None).status == "ok"
    assert len(runs) == 1  # what compiles in a run is run again


def values(log: Path) -> list[np.ndarray]:
    return [np.array(line.split()[1:], dtype=float) for line in log.read_text().splitlines()]


def test_made_up_values_have_the_signs_and_gaps_of_the_data_and_none_of_their_values(tmp_path: Path) -> None:
    log, frame = tmp_path / "log", FRAME.copy()
    frame.loc[0:5, "y"] = [-3.0, np.nan, 0.0, -120.0, 0.0, np.nan]
    with pytest.warns(DataWarning, match="missing values"):
        compare([Compiling(log=str(log)), Naive()], frame[:48], horizon=3, n_windows=2)
    first = values(log)[0]
    assert len(first) < 48
    assert not set(first[first != 0]) & set(frame["y"])
    assert np.isnan(first).any()
    panel = module._synthetic_panel(Panel.from_frame(frame[:48]), Compiling())
    tail = frame["y"].to_numpy()[48 - len(panel.y) : 48]
    assert np.array_equal(np.sign(panel.y)[~np.isnan(panel.y)], np.sign(tail)[~np.isnan(panel.y)])


def test_second_comparison_in_a_process_warms_up_nothing(tmp_path: Path) -> None:
    log, counts = tmp_path / "log", [0]
    for _ in range(2):
        compare([Compiling(log=str(log)), Naive()], FRAME[:48], horizon=3, n_windows=2)
        counts.append(len(values(log)))
    assert np.diff(counts).tolist() == [3, 2]


def test_model_without_warm_up_params_is_fitted_on_the_data_only(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted: list[Panel] = []
    fit = LastValue._fit
    monkeypatch.setattr(LastValue, "_fit", lambda self, panel, monitor: fitted.append(panel) or fit(self, panel, monitor))
    compare([LastValue(), Naive()], FRAME[:48], horizon=3, n_windows=2)
    assert [len(panel.y) for panel in fitted] == [42, 45]


def test_failed_warm_up_fails_no_model(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, module.__name__):
        assert not compare([Refusing(), Naive()], FRAME, horizon=3, n_windows=2).failed
    assert "never seen such values" in caplog.text


@pytest.mark.slow
def test_each_worker_process_warms_up_its_models(tmp_path: Path) -> None:
    models = [Compiling(alias=alias, log=str(tmp_path / alias)) for alias in "AB"]
    compare(models, FRAME[:48], horizon=3, n_windows=2, n_jobs=2)
    for alias in "AB":
        lines = (tmp_path / alias).read_text().splitlines()
        assert str(os.getpid()) not in {line.split()[0] for line in lines}
        assert values(tmp_path / alias)[0].mean() < 50 < values(tmp_path / alias)[-1].mean()


def test_trials_of_tune_are_timed_without_compilation(tmp_path: Path) -> None:
    log = tmp_path / "log"
    model = Compiling(horizon=3, log=str(log))
    tune(model, FRAME, n_trials=2, options=TuningOptions(n_windows=2, space={"pause": [0.0, 1e-6]}))
    means = [fit.mean() for fit in values(log)]
    assert means[0] < 50
    assert min(means[2:]) > 50


@pytest.mark.slow
@pytest.mark.parametrize("name", registry.names())
def test_every_model_can_be_warmed_up(name: str, caplog: pytest.LogCaptureFixture) -> None:
    required = {"Regression": {"regressor": "knn"}, "Conformal": {"model": AutoETS()}, "ARIMA": {"order": (1, 0, 0)}}
    model = registry.get(name)(horizon=12, **required.get(name, {}))
    with caplog.at_level(logging.DEBUG, module.__name__):
        module.warm_up(model, Panel.from_frame(FRAME), [80])
    missing = [record for record in caplog.records if isinstance(record.args[1], DependencyError)]
    assert caplog.records == missing


def test_warm_up_of_a_network_runs_nothing_of_the_users() -> None:
    model = MLP(
        horizon=3, max_epochs=5, validation_size=3, patience=2, trainer={"callbacks": [object()]}, checkpoint_dir="folder"
    )
    (cheap,) = module._cheap_models(Conformal(model))
    assert (cheap.max_steps, cheap.trainer, cheap.checkpoint_dir) == (1, None, None)


FIRST_RUN = """
from deepforecast import AutoETS, Naive, compare, datasets
from numba.core import event
from deepforecast.evaluation.resource_usage import ResourceUsage
import sys

class Listener(event.Listener):
    def on_start(self, _): print("compiled", timing)
    def on_end(self, _): pass

class Measured:
    def __enter__(self):
        global timing
        timing = True
        return ResourceUsage()
    def __exit__(self, *_):
        global timing
        timing = False

timing = False
sys.modules[compare.__module__].measure_resources = Measured
event.register("numba:compile", Listener())
compare([AutoETS(), Naive()], datasets.load("air_passengers"), horizon=12, n_windows=2, level=80)
"""


@pytest.mark.slow
def test_first_run_on_a_machine_times_no_compilation(tmp_path: Path) -> None:
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", FIRST_RUN], env=env, capture_output=True, text=True, timeout=600, check=True)
    assert set(done.stdout.splitlines()) == {"compiled False"}
