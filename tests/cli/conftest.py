"""What the tests of the command line share: a folder with small data files, and a way to run a command in it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from deepforecast.cli import main


@dataclass(frozen=True)
class Ran:
    """What a command printed and its exit code."""

    status: int
    out: str
    err: str

    @property
    def facts(self) -> Any:
        """The JSON object it printed."""
        return json.loads(self.out)

    def refusal(self) -> str:
        """The error's text: wrong use or bad data end with code 2, a line on standard error and nothing else."""
        assert self.status == 2, (self.status, self.out, self.err)
        assert self.out == ""
        lines = self.err.splitlines()
        assert len(lines) == 1, lines
        assert lines[0].startswith("error: ")
        assert lines[0].isprintable()
        return lines[0].removeprefix("error: ")


Run = Callable[..., Ran]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, with `sales.csv`: two series of 70 days."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "sales.csv").write_text(sales())
    return tmp_path


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in that folder."""

    def one(*arguments: str) -> Ran:
        capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return Ran(status, said.out, said.err)

    return one


def sales(ids: tuple[str, ...] = ("007", "a8"), days: int = 70) -> str:
    """A CSV file with a weekly season."""
    lines = ["unique_id,ds,y"]
    for number, name in enumerate(ids):
        for day in range(days):
            value = 20 * (number + 1) + 0.1 * day + 5 * math.sin(2 * math.pi * day / 7)
            lines.append(f"{name},{date(2024, 1, 1) + timedelta(day)},{value:.4f}")
    return "\n".join(lines) + "\n"
