"""A peer is another program: here a few lines that forecast the last value, run by an interpreter of its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas as pd
import pytest

from deepforecast.benchmark.job import Job, run_job
from deepforecast.benchmark.peer import PeerPaths, run_peer, write_inputs
from deepforecast.benchmark.suite import Entry, Suite, Task, Windows
from deepforecast.benchmark.task_data import PreparedTask, prepare_task

TASK = Task(task="made", generate={"n_series": 3, "length": 40, "freq": "D", "seed": 3}, horizon=4, season_length=7,
            level=(80.0,), windows=Windows(count=2), metrics=("mae", "coverage"))  # fmt: skip
THEIRS = Entry(model="Last", peer="fake", parameters={"a": 1})
SUITE = Suite(suite="s", tasks=(TASK,), models=(Entry(model="Naive"),), peers=(THEIRS,))
JOB = Job(0, 1, 0, "made-fake_Last-0", "hash")
ADAPTER = """
import json, sys
from pathlib import Path
import pandas as pd
desk = Path(sys.argv[1])
asked = json.loads((desk / "job.json").read_text())
history, future = pd.read_parquet(desk / "history.parquet"), pd.read_parquet(desk / "future.parquet")
last = history.rename(columns={"ds": "cutoff", "y": asked["name"]})[["unique_id", "cutoff", asked["name"]]]
found = future.merge(last, on=["unique_id", "cutoff"])
found[asked["name"] + "-lo-80"] = found[asked["name"]] - 1
found[asked["name"] + "-hi-80"] = found[asked["name"]] + 1
WRONG
found.sample(frac=1, random_state=0).to_parquet(desk / "forecasts.parquet")
(desk / "timing.json").write_text(json.dumps({"fit_seconds": 1.5, "predict_seconds": 0.5, "peak_memory_mb": 7.0,
                                              "versions": {"fake": "1.0"}}))
"""


@pytest.fixture(scope="module")
def prepared() -> PreparedTask:
    return prepare_task(TASK)


def places(folder: Path, wrong: str = "") -> PeerPaths:
    python = folder / "environments" / "fake" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    (folder / "forecast_fake.py").write_text(ADAPTER.replace("WRONG", wrong))
    return PeerPaths(folder, folder / "environments")


@pytest.mark.slow
def test_a_peers_forecasts_are_scored_as_ours_are(tmp_path: Path, prepared: PreparedTask) -> None:
    row = run_peer(SUITE, prepared, JOB, tmp_path / "run", places(tmp_path))
    assert (row.status, row.error, row.library, row.model) == ("ok", "", "fake", "fake Last")
    assert row.metrics["mae"] == pytest.approx(run_job(SUITE, prepared, Job(0, 0, 0, "j", "h"), None).metrics["mae"])
    assert "coverage-80" in row.metrics
    assert (row.fit_seconds, row.predict_seconds, row.peak_mb, row.versions) == (1.5, 0.5, 7.0, {"fake": "1.0"})
    desk = tmp_path / "run" / "peers" / JOB.name
    told = json.loads((desk / "job.json").read_text())
    assert told["refit"] == 1
    assert told["parameters"] == {"a": 1}
    history, future = pd.read_parquet(desk / "history.parquet"), pd.read_parquet(desk / "future.parquet")
    assert history["ds"].max() == future["cutoff"].max()  # nothing after the last cutoff is handed over
    assert "y" not in future


def test_integer_time_has_an_integer_step(tmp_path: Path) -> None:
    integer = prepare_task(Task(task="i", generate={"n_series": 1, "length": 30, "freq": 1}, horizon=2, season_length=4))
    write_inputs(tmp_path, THEIRS, integer, 0, 60.0)
    told = json.loads((tmp_path / "job.json").read_text())
    assert (told["freq"], told["season_length"]) == (1, 4)
    assert pd.read_parquet(tmp_path / "history.parquet")["ds"].tolist() == list(range(1, 29))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("found = found.iloc[1:]", "is missing (1 in total)"),
        ("found = pd.concat([found, found])", "must not have duplicate rows"),
        ("found = found.rename(columns={asked['name']: 'other'})", "fake Last is missing"),
        ("raise SystemError('no such model')", "exit code 1: SystemError: no such model"),
        ("sys.exit(0)", "ended without"),
    ],
)
def test_what_a_peer_does_wrong_is_its_row(tmp_path: Path, prepared: PreparedTask, wrong: str, told: str) -> None:
    row = run_peer(SUITE, prepared, JOB, tmp_path / "run", places(tmp_path, wrong))
    assert row.status == "failed"
    assert told in row.error


def test_forecasts_of_an_earlier_run_are_not_read(tmp_path: Path, prepared: PreparedTask) -> None:
    desk = tmp_path / "run" / "peers" / JOB.name
    desk.mkdir(parents=True)
    (desk / "forecasts.parquet").write_bytes(b"old")
    there = places(tmp_path)
    (tmp_path / "forecast_fake.py").write_text("")
    row = run_peer(SUITE, prepared, JOB, tmp_path / "run", there)
    assert row.status == "failed"
    assert "ended without" in row.error


def test_a_peer_that_is_not_there_was_not_run(tmp_path: Path, prepared: PreparedTask) -> None:
    assert run_peer(SUITE, prepared, JOB, tmp_path, PeerPaths(tmp_path, tmp_path)).status == "not run"
    (tmp_path / "forecast_fake.py").write_text("")
    row = run_peer(SUITE, prepared, JOB, tmp_path, PeerPaths(tmp_path, tmp_path))
    assert (row.status, "make-env fake" in row.error) == ("not run", True)
