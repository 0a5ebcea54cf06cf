"""The page of a run, made from the files of a run alone."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast.benchmark import report_figures, report_tables
from deepforecast.benchmark.job_results import RESULTS, SUITE, Row
from deepforecast.benchmark.report import load_run, render_page, verdict, write_report
from deepforecast.benchmark.report_figures import rank_diagram
from deepforecast.benchmark.suite import parse_suite
from deepforecast.errors import DataError, ParameterTypeError, SaveError
from deepforecast.evaluation.critical_difference import friedman
from deepforecast.evaluation.report_figures import calibration_marks
from deepforecast.plotting.chart import Dots, Line

LEVELS = {"coverage-50": 0.45, "coverage-80": 0.7}
TASKS = {"etth1-96": 96, "daily": 7}
MODELS = {"SeasonalNaive": 1.0, "LSTM": 0.6, "<b>Odd</b>": 0.8}
YAML = {
    "suite": "small", "what": "two tasks", "reference": "SeasonalNaive", "models": ["Naive"],
    "tasks": [
        {"dataset": "etth1", "task": "etth1-96", "metrics": ["mse", "mae", "coverage"], "level": [50, 80]},
        {"generate": {"n_series": 3, "length": 50}, "task": "daily", "metrics": ["mse", "coverage"], "horizon": 7},
    ],
}  # fmt: skip


def row(model: str, task: str, error: float, seed: int = 0) -> Row:
    job = f"{task}-{list(MODELS).index(model)}-{seed}"
    files = {kind: f"{kind}/{job if kind != 'history' else task}.parquet" for kind in ("forecasts", "series", "history")}
    return Row(
        suite="small", task=task, dataset=task.partition("-")[0], model=model, seed=seed, job=job, settings="0",
        metrics={"mse": error + seed / 100, "mae": error / 2, **LEVELS}, fit_seconds=2 * error, predict_seconds=0.1,
        peak_mb=9.0, horizon=TASKS[task], windows=2, series=3, files=files, started="2026-11-19T01:02:03+00:00",
        parameters=f"{model}()", versions={"deepforecast": "0.1.0"}, machine={"cores": "2"},
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return made(tmp_path)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page, made once."""
    return render_page(load_run(made(tmp_path_factory.mktemp("run"))))


def made(tmp_path: Path) -> Path:
    """A run of three models on two tasks, one with two seeds, one that failed once."""
    held = [row(model, task, error * (1 + place)) for place, task in enumerate(TASKS) for model, error in MODELS.items()]
    held.append(row("LSTM", "daily", 1.2, seed=1))
    lost = replace(held[0], model="Transformer", job="x", status="memory", error="over 8,000 MiB <i>", metrics={}, files={})
    (tmp_path / SUITE).write_text(json.dumps(parse_suite(YAML, "small").to_mapping()))  # JSON is YAML
    (tmp_path / RESULTS).write_bytes(b"".join(one.to_json() for one in [*held, lost]))
    for one in held:
        for kind, frame in frames(one).items():
            path = tmp_path / one.files[kind]
            path.parent.mkdir(exist_ok=True)
            frame.to_parquet(path)
    return tmp_path


def frames(one: Row) -> dict[str, pd.DataFrame]:
    ids, past = ["a", "b", "c"], pd.date_range("2024-01-01", periods=20)
    history = pd.concat([pd.DataFrame({"unique_id": key, "ds": past, "y": np.arange(20.0)}) for key in ids])
    ahead = pd.concat([
        pd.DataFrame({"unique_id": key, "ds": pd.date_range(cutoff, periods=5)[1:], "cutoff": cutoff, "y": 1.0, one.model: 1.5})
        for key in ids for cutoff in past[[15, 19]]
    ])  # fmt: skip
    errors = one.metrics["mse"] * np.array([0.3, 0.1, 0.2])
    return {"history": history, "forecasts": ahead, "series": pd.DataFrame({"unique_id": ids, "mse": errors, "mae": errors})}


def section(text: str, anchor: str) -> str:
    found = re.search(rf'<section id="{anchor}">(.*?)</section>', text, re.DOTALL)
    assert found is not None, anchor
    return found[1]


def words(text: str) -> str:
    plain = re.sub(r"<svg.*?</svg>", " ", text, flags=re.DOTALL).replace("<wbr>", "")
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", plain)))


def test_the_page_says_who_leads_by_how_much_and_what_each_task_shows(text: str) -> None:
    assert "LSTM leads by mse: 40 % less error than SeasonalNaive" in words(text)
    board = words(section(text, "leaderboard"))
    assert board.index("LSTM") < board.index("<b>Odd</b>") < board.index("SeasonalNaive")
    tasks = words(section(text, "tasks"))
    assert "horizon 96, 2 windows, 3 series; sorted by mse" in tasks
    assert re.search(r"mse +mae +coverage-50 +coverage-80 +seconds", tasks)  # in the order of the suite
    assert re.search(r"Transformer on etth1-96 +memory: over 8,000 MiB <i>", words(section(text, "failures")))
    assert "Run on 2026-11-19, with deepforecast 0.1.0." in words(text)


def test_published_figures_stand_below_and_are_marked(text: str) -> None:
    tasks = section(text, "tasks")
    first, second = tasks.split("<h3>")[1:]
    assert re.search(r'class="failed" title="[^"]+"><th scope="row"><span class="name">DLinear</span><small>published', first)
    assert "0.375" in first
    assert "published</small>" not in second


def test_names_and_errors_are_text(text: str) -> None:
    assert "<b>Odd" not in text
    assert "MiB <i>" not in text


def test_seeds_are_means_with_intervals(text: str) -> None:
    daily = section(text, "tasks").split("<h3>")[2]
    line = next(part for part in daily.split("<tr") if "LSTM" in part)
    assert ">1.205<small>" in line  # of 1.2 and 1.21


def test_forecasts_are_those_of_the_best_series_the_median_and_the_worst(text: str) -> None:
    shown = words(section(text, "forecasts"))
    assert re.search(r"Best: b, mse 0.06 .*Median: c, mse 0.12 .*Worst: a, mse 0.18", shown)


def test_the_same_run_is_the_same_page_and_reaches_nowhere(text: str, folder: Path) -> None:
    assert text == render_page(load_run(folder))
    assert "default-src 'none'" in text
    assert not re.findall(r'(?:src|href)="(?!#|data:)[^"]*"', re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL))


def test_another_metric_may_decide(folder: Path) -> None:
    assert "by mae" in verdict(load_run(folder, "mae"))


def test_one_task_is_compared_over_its_series(folder: Path) -> None:
    lines = [line for line in (folder / RESULTS).read_bytes().splitlines(keepends=True) if b'"task": "daily"' in line]
    (folder / RESULTS).write_bytes(b"".join(lines))
    text = render_page(load_run(folder))
    assert "With a single task, the uncertainty of this ranking cannot be estimated." in words(text)
    assert "Mean rank over 3 series; 1 is best." in words(section(text, "differ"))


def test_models_that_are_not_told_apart_are_joined_by_a_bar() -> None:
    one = friedman([[1.0, 2.0, 1.5, 3.0], [2.0, 2.5, 2.5, 3.5], [3.0, 2.6, 9.0, 4.0]])
    drawn = rank_diagram(["A", "B", "C"], one)
    (panel,) = drawn.chart.panels
    assert list(panel.y.names) == ["C   3", "B   2", "A   1"]
    bars = [mark for mark in panel.marks if isinstance(mark, Line)]
    assert [sorted(np.round(bar.y).tolist()) for bar in bars] == [[1, 2], [0, 1]]  # A with B, B with C


def test_it_is_written_whole_or_not_at_all(folder: Path, tmp_path: Path) -> None:
    write_report(folder, tmp_path / "new" / "page.html")
    assert (tmp_path / "new" / "page.html").read_text().startswith("<!DOCTYPE html>")
    with pytest.raises(SaveError, match=r"results\.jsonl"):
        write_report(folder, folder / RESULTS / "page.html")
    with pytest.raises(ParameterTypeError, match=r"`path` must be a str or pathlib\.Path"):
        write_report(folder, 3)  # type: ignore[arg-type]


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"suite\.yaml"):
        write_report(tmp_path, tmp_path / "page.html")


def test_a_run_without_any_result_is_refused(folder: Path) -> None:
    bad: list[Any] = [json.loads(line) for line in (folder / RESULTS).read_bytes().splitlines() if b'"memory"' in line]
    (folder / RESULTS).write_bytes(Row(**bad[0]).to_json())
    with pytest.raises(DataError, match="No job of the run has scored forecasts"):
        render_page(load_run(folder))


def test_a_coverage_that_decides_is_no_error(folder: Path) -> None:
    rows = [json.loads(line) for line in (folder / RESULTS).read_bytes().splitlines()]
    good = [one for one in rows if one["status"] == "ok"]
    near = [{**one, "metrics": {"coverage-80": 0.75 if one["model"] == "LSTM" else 0.7}} for one in good]
    (folder / RESULTS).write_bytes(b"".join(Row.from_mapping(one).to_json() for one in near))
    run = load_run(folder)
    assert "LSTM leads by coverage-80: 50 % less distance from the nominal level than SeasonalNaive" in verdict(run)
    assert "tasks of the distance from the nominal level divided by that of SeasonalNaive" in words(
        report_tables.leaderboard_table(run)
    )
    assert "against distance from the nominal level: lower left" in words(report_figures.cost_figure(run))


def test_settings_say_what_was_set(text: str) -> None:
    settings = words(section(text, "settings"))
    assert re.search(r"models +Naive +", settings)
    assert not re.search(r"(alias|peer|parameters): none|not set", settings)


def test_what_befell_several_jobs_alike_is_told_once_with_their_seeds(folder: Path) -> None:
    rows = [json.loads(line) for line in (folder / RESULTS).read_bytes().splitlines()]
    gru = {**rows[0], "model": "GRU", "status": "failed", "error": "no"}
    bad = [Row.from_mapping({**gru, "seed": seed, "job": f"g{seed}"}) for seed in (0, 1)]
    other = [replace(bad[0], model="Mean", job="m"), replace(bad[0], seed=2, job="g2", error="else")]
    (folder / RESULTS).write_bytes(b"".join(one.to_json() for one in [*map(Row.from_mapping, rows), *bad, *other]))
    failures = words(section(render_page(load_run(folder)), "failures"))
    assert re.search(r"GRU \(seeds 0, 1\), Mean on etth1-96 +failed: no", failures)
    assert re.search(r"GRU \(seed 2\) on etth1-96 +failed: else", failures)


def test_the_report_says_where_models_are_shifted(text: str) -> None:
    shown = section(text, "coverage")
    assert "Models are shifted horizontally to avoid overlaps" in words(shown)
    assert 'id="coverage-plot"' in shown
    curves = [(name, np.full((3, 2), 0.6)) for name in "ABC"]
    marks = calibration_marks([50.0, 80.0], curves)
    assert sorted(mark.x.mean() for mark in marks if isinstance(mark, Dots)) == [64.75, 65.0, 65.25]
