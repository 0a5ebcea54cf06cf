"""`deepforecast benchmark`: what it asks of the engine and what it shows; the engine itself is tested in tests/benchmark."""

from __future__ import annotations

import re
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from deepforecast.benchmark import suite_run
from deepforecast.benchmark.job_results import Row
from deepforecast.benchmark.suite import BUILT_IN_SUITES, load_suite
from deepforecast.cli.benchmark import parse_entry

SUITE = """
suite: small
models: [Naive, SeasonalNaive]
tasks: [{task: made, generate: {n_series: 2, length: 50, freq: D}, horizon: 5, season_length: 7}]
"""
ROW = Row(
    suite="small", task="made", dataset="generated", model="Naive", seed=0, job="a", settings="0", metrics={"mase": 1.5},
    fit_seconds=0.5, predict_seconds=0.25, peak_mb=12.0,
)  # fmt: skip
ROWS = [
    ROW,
    replace(ROW, model="SeasonalNaive", job="b", metrics={"mase": 1.0}),
    replace(ROW, model="LSTM", job="c", metrics={}, status="timeout", error="stopped after 5 s", fit_seconds=None),
]


@pytest.fixture
def asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the engine is asked; it answers with ROWS."""
    (folder / "small.yaml").write_text(SUITE)
    held: list[Any] = []

    def answer(suite: Any, folder: Any, *, options: Any) -> list[Row]:
        held.append((suite, folder, options))
        return ROWS

    monkeypatch.setattr(suite_run, "run_suite", answer)
    return held


def test_the_board_and_what_went_wrong(run: Any, asked: list[Any]) -> None:
    ran = run("benchmark", "small.yaml", "--output", "out", "--n-jobs", "2", "--retry")
    lines = ran.out.splitlines()
    assert lines[0].split()[:3] == ["model", "skill", "wins"]
    assert lines[1].split()[:3] == ["SeasonalNaive", "0", "1.00"]
    assert "timeout: LSTM on made (stopped after 5 s)" in ran.out
    assert lines[-1] == "Written: out."
    assert ran.status == 1
    suite, where, options = asked[0]
    assert (suite.suite, where, options.jobs, options.retry) == ("small", "out", 2, True)


def test_every_suite_named_in_the_help_ships(run: Any) -> None:
    text = run("benchmark", "--help").out
    named = re.findall(r"deepforecast benchmark (?:audit )?(\S+)", text.partition("examples:")[2])
    assert {"quick", "mine.yaml"} == set(named)
    assert "etth1" not in text
    assert "quick" in {path.stem for path in BUILT_IN_SUITES.glob("*.yaml")}
    assert any(fnmatchcase(task.name, "air*") for task in load_suite("quick").tasks)


def test_without_a_folder_nothing_is_kept_and_that_is_said(run: Any, asked: list[Any]) -> None:
    ran = run("benchmark", "small.yaml")
    assert "pass --output FOLDER to save them" in ran.err
    assert not Path(asked[0][1]).exists()


def test_a_run_never_replaces_the_suite_file_of_the_user(run: Any, asked: list[Any], folder: Path) -> None:
    (folder / "suite.yaml").write_text(SUITE)
    message = run("benchmark", "suite.yaml", "--output", ".").refusal()
    assert message == (
        "--output must be a folder without the suite that is run: ./suite.yaml would be replaced. Pass another folder."
    )
    assert (folder / "suite.yaml").read_text() == SUITE
    (folder / "results.jsonl").write_text("")  # of an earlier run, whose record of the suite this is
    assert run("benchmark", "suite.yaml", "--output", ".").status == 1


def test_the_rehearsal_of_this_call_is_counted(run: Any, asked: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Warm-up" not in run("benchmark", "small.yaml").out
    told = {"rehearsal": "12.3 s before the first job"}
    before = replace(ROW, machine={"rehearsal": "9.9 s"}, started="2020-01-01")
    rows = [before, replace(ROW, machine=told, started="9999-01-01")]
    monkeypatch.setattr(suite_run, "run_suite", lambda *_, **__: rows)
    assert "(compilation and imports before the jobs): 12.3 s before the first job.\n" in run("benchmark", "small.yaml").out
    assert "9.9 s" not in run("benchmark", "small.yaml").out


def test_as_json(run: Any, asked: list[Any]) -> None:
    facts = run("benchmark", "small.yaml", "--series", "1", "--models", "Naive", "--json").facts
    assert [one["model"] for one in facts["leaderboard"]] == ["SeasonalNaive", "Naive", "LSTM"]
    assert facts["leaderboard"][1]["skill"] == pytest.approx(-0.5)
    assert facts["failed"] == [{"job": "c", "status": "timeout", "error": "stopped after 5 s"}]
    assert facts["cut"] == ["only models Naive", "made: 1 of 2 series"]


def test_an_audit(run: Any, asked: list[Any]) -> None:
    ran = run("benchmark", "audit", "small.yaml")
    assert (ran.status, asked) == (0, [])
    assert "2 audits: 0 leaks, 0 failed" in ran.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere"], "Unknown suite nowhere"),
        (["nowhere.yaml"], "the file nowhere.yaml does not exist"),
        (["quick", "m1"], "Exactly one suite must be given, got quick m1"),
        (["audit"], "Exactly one suite must be given, got none"),
        (["quick", "--models", "Naiv"], "Did you mean Naive"),
        (["quick", "--series", "0"], "series"),
        (["quick", "--time-limit", "-1"], "time_limit"),
        (["quick", "--n-jobs", "0"], "jobs"),
        (["quick", "--metric", "rmse"], "(mase, smape, wape, weighted_quantile_loss, coverage-80), got rmse"),
        (["quick", "--metric", "coverage"], "coverage-80), got coverage"),
    ],
)
def test_wrong_use_is_refused(run: Any, asked: list[Any], words: list[str], told: str) -> None:
    assert told in run("benchmark", *words).refusal()


def test_a_metric_of_the_suite_decides_and_another_is_refused_before_the_run(run: Any, asked: list[Any]) -> None:
    assert "(mase, smape), got rmse" in run("benchmark", "small.yaml", "--metric", "rmse").refusal()
    assert asked == []
    assert "mase of suite small" in run("benchmark", "small.yaml", "--metric", "mase").out


def test_models_are_told_with_what_they_were_given() -> None:
    assert parse_entry("Naive") == {"model": "Naive", "parameters": {}}
    assert parse_entry("LSTM:max_steps=5,alias=Short") == {"model": "LSTM", "parameters": {"max_steps": 5}, "alias": "Short"}
    wrapped = {"model": "Conformal", "parameters": {"model": {"model": "Naive", "parameters": {}}}}
    assert parse_entry("Conformal(Naive())") == wrapped


def test_a_page_is_written_where_asked_and_what_cannot_be_is_said_first(run: Any, asked: list[Any], monkeypatch: Any) -> None:
    from deepforecast.benchmark import report

    written: list[Any] = []
    monkeypatch.setattr(report, "write_report", lambda folder, path, *, metric: written.append((folder, path, metric)))
    run("benchmark", "small.yaml", "--output", "out", "--report", "page.html")
    assert written == [("out", "page.html", None)]
    assert "page.txt" in run("benchmark", "small.yaml", "--report", "page.txt").refusal()
    assert len(asked) == 1
