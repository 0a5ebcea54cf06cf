"""The rehearsal before the jobs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from deepforecast.benchmark.rehearsal import _once
from deepforecast.benchmark.suite import Entry


def test_a_network_of_a_million_steps_is_rehearsed_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    met: list[Any] = []

    def stop(model: Any, *given: Any) -> Any:
        met.append(model)
        raise RuntimeError

    monkeypatch.setattr(import_module("deepforecast.evaluation.compare"), "run", stop)
    _once(Entry(model="DLinear", parameters={"max_steps": 1_000_000, "input_size": 14}))
    assert [(model.max_steps, model.input_size) for model in met] == [(1, 14)]
