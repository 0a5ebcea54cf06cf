from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deepforecast.benchmark.job_results import FORECASTS, RESULTS, Row, read_rows
from deepforecast.benchmark.suite import Suite, parse_suite
from deepforecast.benchmark.suite_run import RunOptions, _needs_run, run_suite
from deepforecast.benchmark.suite_subset import SuiteSubset
from deepforecast.errors import ParameterError

ENDLESS = {"model": "LSTM", "parameters": {"max_steps": 10**7}}
QUIET = RunOptions(progress=False, rehearse=False)
OWNER = """
import sys
from deepforecast.benchmark.suite_run import RunOptions, run_suite
run_suite(sys.argv[1], sys.argv[2], options=RunOptions(progress=False, rehearse=False))
"""


def suite(*models: object, **changed: object) -> Suite:
    made = {"task": "made", "generate": {"n_series": 2, "length": 50, "freq": "D"}, "horizon": 5, "season_length": 7}
    return parse_suite({"suite": "s", "models": list(models), "tasks": [made], **changed}, "s")


def rows_by_model(rows: list[Row]) -> dict[str, Row]:
    return {row.model: row for row in rows}


@pytest.mark.slow
def test_a_run_goes_on_where_it_ended_and_runs_nothing_twice(tmp_path: Path) -> None:
    asked = suite("Naive", {"model": "LinearModel", "parameters": {"lags": [100]}})
    found = rows_by_model(run_suite(asked, tmp_path, options=RunOptions(progress=False)))
    assert (found["Naive"].status, found["LinearModel"].status) == ("ok", "failed")
    naive = found["Naive"]
    assert naive.job_seconds is not None
    assert naive.job_seconds >= (naive.fit_seconds or 0) + (naive.predict_seconds or 0)
    assert "numpy" in naive.versions
    assert naive.machine["rehearsal"].endswith(" s before the first job")
    assert naive.started
    assert (tmp_path / naive.files["forecasts"]).is_file()
    assert (tmp_path / naive.files["history"]).is_file()
    before = (tmp_path / RESULTS).read_bytes()
    assert rows_by_model(run_suite(asked, tmp_path, options=QUIET)) == found
    assert (tmp_path / RESULTS).read_bytes() == before
    more = run_suite(suite("Naive", "Mean"), tmp_path, options=QUIET)
    assert [row.model for row in more] == ["Naive", "Mean"]
    assert (tmp_path / RESULTS).read_bytes().count(b"\n") == 3
    run_suite(asked, tmp_path, options=RunOptions(progress=False, rehearse=False, retry=True))
    assert (tmp_path / RESULTS).read_bytes().count(b"\n") == 4


@pytest.mark.slow
def test_limits_of_time_and_memory_are_kept_and_the_others_go_on(tmp_path: Path) -> None:
    asked = suite(ENDLESS, "Naive", time_limit=20)
    found = rows_by_model(run_suite(asked, tmp_path / "time", options=QUIET))
    assert (found["LSTM"].status, found["Naive"].status) == ("timeout", "ok")
    assert "time limit" in found["LSTM"].error
    asked = suite(ENDLESS, time_limit=60, memory_limit=5)
    (row,) = run_suite(asked, tmp_path / "memory", options=RunOptions(progress=False, rehearse=False, jobs=2))
    assert row.status == "memory"
    assert "5 MiB" in row.error


@pytest.mark.slow
def test_a_suite_that_is_refused_does_not_block_the_corrected_one(tmp_path: Path) -> None:
    task = {"dataset": "nile", "horizon": 3}
    misspelled, corrected = (suite("Naive", tasks=[one]) for one in ({**task, "parameters": {"max_stepz": 3}}, task))
    with pytest.raises(ParameterError, match="got max_stepz"):
        run_suite(misspelled, tmp_path, options=QUIET)
    assert [row.status for row in run_suite(corrected, tmp_path, options=QUIET)] == ["ok"]


@pytest.mark.slow
def test_a_task_that_cannot_be_is_a_failure_of_each_job_and_the_others_go_on(tmp_path: Path) -> None:
    short = {"dataset": "macrodata_panel", "horizon": 203}  # which one series of all could hold, for all it knows before
    asked = parse_suite({"suite": "s", "models": ["Naive", "Mean"], "tasks": [short, {"dataset": "nile"}]}, "s")
    first, second, *there = run_suite(asked, tmp_path, options=QUIET)
    assert [row.status for row in (first, second, *there)] == ["failed", "failed", "ok", "ok"]
    assert first.error == second.error
    assert "macrodata_panel: n_windows=1 with horizon=203" in first.error
    assert "has 203 rows" in first.error


def under(pid: int) -> list[int]:
    """Every process below one."""
    found = []
    try:
        children = [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    for child in children:
        found += [child, *under(child)]
    return found


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def wait_for(true: object, seconds: float = 120.0) -> None:
    until = time.monotonic() + seconds
    while not true():  # type: ignore[operator]
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_stopped_leaves_whole_rows_and_no_process(tmp_path: Path, how: signal.Signals) -> None:
    path, folder = tmp_path / "s.yaml", tmp_path / "run"
    asked = suite("Naive", ENDLESS, "Mean")
    path.write_text(json.dumps({
        "suite": "s", "models": ["Naive", ENDLESS, "Mean"],
        "tasks": [{"task": "made", "generate": {"n_series": 2, "length": 50, "freq": "D"}, "horizon": 5, "season_length": 7}],
    }))  # fmt: skip
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(path), str(folder)], stderr=subprocess.PIPE)
    results = folder / RESULTS
    wait_for(lambda: results.exists() and results.read_bytes().count(b"\n") == 1)
    wait_for(lambda: len(under(owner.pid)) > 1)
    below = under(owner.pid)
    began = time.monotonic()
    owner.send_signal(how)
    owner.communicate()
    assert time.monotonic() - began < 60
    wait_for(lambda: not any(alive(pid) for pid in below))
    assert [row.model for row in read_rows(folder)] == ["Naive"]
    assert not list((folder / FORECASTS).glob(".*"))
    before = results.read_bytes()
    again = run_suite(asked, folder, cut=SuiteSubset(time_limit=20), options=QUIET)
    assert [(row.model, row.status) for row in again] == [("Naive", "ok"), ("LSTM", "timeout"), ("Mean", "ok")]
    assert results.read_bytes().startswith(before)


@pytest.mark.parametrize(
    ("status", "settings", "retry", "again"),
    [
        ("ok", "same", False, False),
        ("ok", "same", True, False),
        ("ok", "other", False, True),
        ("failed", "same", False, False),
        ("failed", "same", True, True),
        ("timeout", "same", True, True),
        ("lost", "same", False, True),
        ("not run", "same", False, True),
    ],
)
def test_which_jobs_are_run_again(status: str, settings: str, retry: bool, again: bool) -> None:
    row = Row(suite="s", task="t", dataset="d", model="Naive", seed=0, job="j", settings=settings, status=status)
    assert _needs_run(row, {"settings": "same"}, retry) == again
    assert _needs_run(None, {"settings": "same"}, retry)


def test_jobs_are_counted_from_one() -> None:
    with pytest.raises(ParameterError, match="jobs"):
        RunOptions(jobs=0)
