"""The rehearsal before the jobs."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from typing import Any

import pytest

from deepforecast.benchmark.rehearsal import _rehearse_model, select_models
from deepforecast.benchmark.suite import Entry

# Three models of four fall by the way: one takes too long, one ends its process, one comes after the time for all is over.
FOUR = """
import json, os, time
from types import SimpleNamespace
from deepforecast.benchmark import rehearsal
from deepforecast.benchmark.suite import Entry

ended, loaded, here = [], [], os.getpid()
guard = SimpleNamespace(close=lambda: None, register=lambda pid: None, unregister=ended.append)

def once(entry):
    if os.getpid() == here:
        loaded.append(entry.model)
    elif entry.model == "Mean":
        time.sleep(15)
    elif entry.model == "Drift":
        os._exit(1)
    else:
        import colorsys

rehearsal._rehearse_model = once
models = [(Entry(model=name), 0.5 if name == "Mean" else 30.0) for name in ("Mean", "Naive", "Drift", "SES")]
tried = []
for entry, well in rehearsal.rehearse(models, guard):
    tried.append((entry.model, well))
    if entry.model == "Drift":
        rehearsal.time.monotonic = lambda: float("inf")
import sys
print(json.dumps([tried, loaded, len(ended), "colorsys" in sys.modules]))
"""


def test_a_model_that_takes_longer_than_it_may_is_left_aside_and_the_others_go_on() -> None:
    ran = subprocess.run([sys.executable, "-c", FOUR], capture_output=True, text=True, timeout=240, check=True)
    tried, loaded, processes, imported = json.loads(ran.stdout)
    assert tried == [["Mean", False], ["Naive", True], ["Drift", False]]
    assert loaded == ["Naive"]
    assert processes == 2
    assert imported


def test_a_model_may_take_as_long_as_all_its_jobs_and_one_network_stands_for_all() -> None:
    jobs = [("Naive", 30.0), ("LSTM", 30.0), ("Naive", 20.0), ("DLinear", 30.0)]
    every = [*((Entry(model=name), limit) for name, limit in jobs), (Entry(model="AutoETS", peer="other"), 30.0)]
    assert [(entry.model, limit) for entry, limit in select_models(every)] == [("DLinear", 60.0), ("Naive", 50.0)]


def test_a_network_of_a_million_steps_is_rehearsed_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    met: list[Any] = []

    def stop(model: Any, *given: Any) -> Any:
        met.append(model)
        raise RuntimeError

    monkeypatch.setattr(import_module("deepforecast.evaluation.compare"), "run_model", stop)
    _rehearse_model(Entry(model="DLinear", parameters={"max_steps": 1_000_000, "input_size": 14}))
    assert [(model.max_steps, model.input_size) for model in met] == [(1, 14)]
