from __future__ import annotations

from pathlib import Path

import pytest

from deepforecast import Naive
from deepforecast.testing import elsewhere, worlds
from deepforecast.testing.expect import RuleBroken
from deepforecast.testing.subject import subjects
from tests.testing.toys import Last


def test_one_process_serves_all(tmp_path: Path) -> None:
    Naive(horizon=2).fit(worlds.daily()).save(tmp_path / "model")
    first = elsewhere.forecast(Naive, tmp_path / "model", None)
    child = elsewhere._child()
    assert elsewhere.forecast(Naive, tmp_path / "model", [80]).columns.keys() == {"Naive", "Naive-lo-80", "Naive-hi-80"}
    assert elsewhere._child() is child
    assert first.repr == "Naive(horizon=2)"
    assert first.trainers == []


def test_what_fails_there_is_said_here(tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes(b"no model")
    with pytest.raises(RuleBroken, match="in a fresh process: ModelFileError"):
        elsewhere.forecast(Naive, tmp_path / "model", None)


def test_a_process_that_dies_is_noticed_and_replaced(tmp_path: Path) -> None:
    child = elsewhere._child()
    child.kill()
    child.wait()
    with pytest.raises(RuleBroken, match="the fresh process ended with status -9"):
        elsewhere.forecast(Naive, tmp_path / "model", None)
    Naive(horizon=2).fit(worlds.daily()).save(tmp_path / "model")
    assert elsewhere.forecast(Naive, tmp_path / "model", None).repr == "Naive(horizon=2)"


def test_only_what_another_process_can_import() -> None:
    assert elsewhere.importable(subjects("Naive")[0]) is None
    (subject,) = subjects(Last)
    subject.cls = type("Last", (Last,), {"__module__": "__main__"})
    assert elsewhere.importable(subject) == "no other process can import the module __main__"
