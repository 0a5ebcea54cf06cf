from __future__ import annotations

import os
from pathlib import Path

import pytest

from deepforecast.benchmark.job_results import RESULTS, SUITE, Row, read_rows
from deepforecast.benchmark.run_folder import load_run_suite, open_results, write_suite
from deepforecast.benchmark.suite import Suite, parse_suite
from deepforecast.benchmark.suite_subset import SuiteSubset, select_subset
from deepforecast.errors import DataWarning, ParameterError, SaveError

MADE = {"task": "made", "generate": {"n_series": 4, "length": 50}, "horizon": 5}
TASKS = [{"dataset": "nile"}, MADE]


def suite(name: str = "s", **changed: object) -> Suite:
    return parse_suite({"suite": name, "models": ["Naive", "Mean"], "tasks": TASKS, "seeds": [0, 1], **changed}, "s")


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (suite("t"), "contains a run of suite s. .* another folder for t, or remove"),
        (suite(tasks=[{"dataset": "nile", "horizon": 3}]), "of suite s with other settings: horizon of nile was None and is 3"),
        (suite(tasks=[{"dataset": "co2", "task": "nile"}]), "dataset of nile was nile and is co2"),
        (suite(tasks=[{**MADE, "generate": {"n_series": 4, "length": 60}}]), "generate of made was"),
        (suite(tasks=[{**MADE, "windows": {"step": 2}}]), "windows of made was"),
        (suite(tasks=[{**MADE, "metrics": ["mae"]}]), "metrics of made was"),
    ],
)
def test_a_folder_holds_one_suite_and_keeps_it(other: Suite, told: str, tmp_path: Path) -> None:
    write_suite(tmp_path, suite())
    before = (tmp_path / SUITE).read_bytes()
    with pytest.raises(ParameterError, match=told):
        write_suite(tmp_path, other)
    assert (tmp_path / SUITE).read_bytes() == before


def test_the_same_suite_goes_on_with_more_models_and_other_limits(tmp_path: Path) -> None:
    write_suite(tmp_path, suite())
    write_suite(tmp_path, suite())
    assert load_run_suite(tmp_path) == suite()
    more = suite(models=[{"model": "LinearModel", "parameters": {"lags": (1, 2)}}], time_limit=5)
    for _ in range(2):
        write_suite(tmp_path, more)
    found = load_run_suite(tmp_path)
    assert [one.model for one in found.models or ()] == ["Naive", "Mean", "LinearModel"]
    assert found.time_limit == 5


def test_what_several_calls_cut_out_of_a_suite_is_put_together(tmp_path: Path) -> None:
    for task, seed in (("nile", 0), ("made", 1)):
        write_suite(tmp_path, select_subset(suite(), SuiteSubset(tasks=[task], seeds=[seed], series=2, windows=1)))
    found = load_run_suite(tmp_path)
    assert ([task.name for task in found.tasks], found.seeds) == (["nile", "made"], (0, 1))
    assert found.cut == ("only tasks nile", "seeds 0 of 0, 1", "only tasks made", "seeds 1 of 0, 1", "made: 2 of 4 series")
    write_suite(tmp_path, suite())
    assert load_run_suite(tmp_path) == suite()  # nothing is cut any more


def test_what_was_never_finished_is_cut_off_before_more_is_written(tmp_path: Path) -> None:
    row = Row(suite="s", task="t", dataset="d", model="Naive", seed=0, job="j", settings="0")
    (tmp_path / RESULTS).write_bytes(row.to_json() + row.to_json()[:40])
    with pytest.warns(DataWarning):
        read_rows(tmp_path)
    with open_results(tmp_path) as results:
        os.write(results.fileno(), row.to_json())
    assert (tmp_path / RESULTS).read_bytes() == row.to_json() * 2


def test_a_folder_holds_one_run_at_a_time(tmp_path: Path) -> None:
    with open_results(tmp_path), pytest.raises(SaveError, match="one run at a time"), open_results(tmp_path):
        pass


def test_a_folder_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SaveError, match="The run cannot be written to"), open_results(tmp_path / "file"):
        pass
