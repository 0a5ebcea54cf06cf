from __future__ import annotations

from pathlib import Path

import pytest

from deepforecast import Naive
from deepforecast.testing import fixtures, fresh_interpreter
from deepforecast.testing.assertions import RuleBroken
from deepforecast.testing.subject import make_subjects
from tests.testing.toys import Last


def test_one_process_serves_all(tmp_path: Path) -> None:
    Naive(horizon=2).fit(fixtures.daily_panel()).save(tmp_path / "model")
    first = fresh_interpreter.load_and_forecast(Naive, tmp_path / "model", None)
    child = fresh_interpreter._start_child()
    assert fresh_interpreter.load_and_forecast(Naive, tmp_path / "model", [80]).columns.keys() == {
        "Naive",
        "Naive-lo-80",
        "Naive-hi-80",
    }
    assert fresh_interpreter._start_child() is child
    assert first.repr == "Naive(horizon=2)"
    assert first.imported_trainers == []


def test_what_fails_there_is_said_here(tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes(b"no model")
    with pytest.raises(RuleBroken, match="load and predict must work in a new process, got ModelFileError"):
        fresh_interpreter.load_and_forecast(Naive, tmp_path / "model", None)


def test_a_process_that_dies_is_noticed_and_replaced(tmp_path: Path) -> None:
    child = fresh_interpreter._start_child()
    child.kill()
    child.wait()
    with pytest.raises(RuleBroken, match="must not exit, but ended with status -9"):
        fresh_interpreter.load_and_forecast(Naive, tmp_path / "model", None)
    Naive(horizon=2).fit(fixtures.daily_panel()).save(tmp_path / "model")
    assert fresh_interpreter.load_and_forecast(Naive, tmp_path / "model", None).repr == "Naive(horizon=2)"


def test_only_what_another_process_can_import() -> None:
    assert fresh_interpreter.requires_importable_module(make_subjects("Naive")[0]) is None
    (subject,) = make_subjects(Last)
    subject.cls = type("Last", (Last,), {"__module__": "__main__"})
    assert fresh_interpreter.requires_importable_module(subject) == "no other process can import the module __main__"
