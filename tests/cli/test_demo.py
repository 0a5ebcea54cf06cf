"""`deepforecast demo`."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from deepforecast import load
from deepforecast.cli import demo
from deepforecast.cli.demo import _command_name

FILES = ["attention.png", "forecast.csv", "forecast.png", "model.dfc", "report.html"]


def test_the_demo_shows_its_steps_and_writes_its_files(run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "TRIALS", 2)
    monkeypatch.setattr(demo, "PANEL_SERIES", 4)
    monkeypatch.setattr(demo, "PANEL_MODELS", [name.replace("max_steps=100", "max_steps=5") for name in demo.PANEL_MODELS])
    monkeypatch.setattr(demo, "ATTENTION", demo.ATTENTION.replace("max_steps=100", "max_steps=5"))
    ran = run("demo", "--output", "first/look")
    assert ran.status == 0
    warned = ran.err.splitlines()  # one for each comparison
    assert len(warned) == 2
    assert all(re.match(r"warning: \d\d % prediction intervals cover less than", line) for line in warned)
    assert [f"[{number}/8]" in ran.out for number in range(1, 9)] == [True] * 8
    assert max(map(len, ran.out.splitlines())) <= 100
    assert sorted(path.name for path in (folder / "first" / "look").iterdir()) == FILES
    forecast = pd.read_csv(folder / "first" / "look" / "forecast.csv", parse_dates=["ds"])
    assert forecast["ds"].tolist() == list(pd.date_range("1961-01-01", periods=24, freq="MS"))
    for picture in ("forecast.png", "attention.png"):
        assert (folder / "first" / "look" / picture).read_bytes().startswith(b"\x89PNG")
    assert load(folder / "first" / "look" / "model.dfc").predict(12).shape == (12, 3)
    assert "LSTM " in ran.out
    assert "and, in a browser, first/look/report.html." in ran.out


@pytest.mark.slow
def test_as_json(run) -> None:
    facts = run("demo", "--json").facts
    assert len(facts["steps"]) == 8
    assert facts["seconds"] == pytest.approx(sum(step["seconds"] for step in facts["steps"]))
    assert sorted(Path(path).name for path in facts["files"]) == [name for name in FILES if name != "model.dfc"]


def test_the_next_command_is_one_that_the_shell_finds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.argv", [".venv/bin/deepforecast", "demo"])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _command_name() == ".venv/bin/deepforecast"
    (tmp_path / "deepforecast").touch(mode=0o755)
    assert _command_name() == "deepforecast"


def test_a_place_that_cannot_be_written_to_is_refused_at_once(run) -> None:
    ran = run("demo", "--output", "sales.csv")
    assert "cannot be written" in ran.refusal()
