from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from deepforecast import ARIMA, AutoETS, Naive, SeasonalNaive, compare
from deepforecast.benchmark.job import Job, build_model, file_name, given_season_length, hash_settings, list_jobs, run_job
from deepforecast.benchmark.suite import Entry, Suite, Task, Windows
from deepforecast.benchmark.task_data import PreparedTask, load_frame, prepare_task
from deepforecast.evaluation.score import score

TASK = Task(
    task="made", generate={"n_series": 3, "length": 60, "freq": "D", "seed": 3}, horizon=7, season_length=7, level=(80.0,),
    metrics=("mase", "smape", "coverage"), windows=Windows(count=2),
)  # fmt: skip
MODELS = (
    Entry(model="SeasonalNaive"),
    Entry(model="Naive", alias="Last"),
    Entry(model="LinearModel", parameters={"lags": [100]}),
    Entry(model="Naive", alias="Wrong", parameters={"width": 3}),
    Entry(model="Conformal", parameters={"model": {"model": "SeasonalNaive", "parameters": {"season_length": 7}}}),
    Entry(model="LSTM"),
)
SUITE = Suite(suite="s", tasks=(TASK,), models=MODELS, seeds=(0, 1), sample=2)


@pytest.fixture(scope="module")
def prepared() -> PreparedTask:
    return prepare_task(TASK)


def run(prepared: PreparedTask, place: int, folder: Path | None = None, seed: int = 0) -> object:
    return run_job(SUITE, prepared, Job(0, place, seed, f"job{place}", "hash"), folder)


def test_a_job_is_what_compare_makes_of_it(prepared: PreparedTask, tmp_path: Path) -> None:
    row = run_job(SUITE, prepared, Job(0, 0, 0, "job", "hash"), tmp_path)
    assert (row.status, row.error, row.model, row.windows, row.series) == ("ok", "", "SeasonalNaive", 2, 3)
    frame = load_frame(TASK)
    board = compare([SeasonalNaive(season_length=7)], frame, horizon=7, n_windows=2, level=80, freq="D")
    each = score(board.forecasts, metrics=["mase", "smape", "coverage"], train=frame, by="series", freq="D", season_length=7)
    written = pd.read_parquet(tmp_path / row.files["series"])
    assert written["mase"].to_numpy() == pytest.approx(each["mase"].to_numpy())
    assert row.metrics["mase"] == pytest.approx(each["mase"].mean())
    assert row.metrics["coverage-80"] == pytest.approx(each["coverage-80"].mean())
    kept = pd.read_parquet(tmp_path / row.files["forecasts"])
    wanted = board.forecasts[board.forecasts["unique_id"].isin(["s0", "s2"])]
    assert kept["SeasonalNaive-hi-80"].to_numpy() == pytest.approx(wanted["SeasonalNaive-hi-80"].to_numpy())
    assert None not in (row.fit_seconds, row.predict_seconds, row.fit_cpu, row.score_seconds)


def test_failures_are_rows(prepared: PreparedTask) -> None:
    short, wrong = run(prepared, 2), run(prepared, 3)
    assert short.status == wrong.status == "failed"  # type: ignore[attr-defined]
    assert "100" in short.error  # type: ignore[attr-defined]
    assert "width" in wrong.error  # type: ignore[attr-defined]


def test_names_and_nested_models(prepared: PreparedTask) -> None:
    assert run(prepared, 1).model == "Last"  # type: ignore[attr-defined]
    assert run(prepared, 4).status == "ok"  # type: ignore[attr-defined]


def test_only_models_with_a_seed_run_for_each() -> None:
    jobs = list_jobs(SUITE)
    assert [(job.entry, job.seed) for job in jobs] == [(place, 0) for place in range(6)] + [(5, 1)]
    assert len({job.name for job in jobs}) == len({job.settings for job in jobs}) == 7


def test_settings_follow_what_decides_the_numbers_and_nothing_else() -> None:
    entry = MODELS[0]
    same = hash_settings(replace(TASK, time_limit=3.0, models=("Naive",)), entry, 0)
    assert same == hash_settings(TASK, entry, 0)
    others = {
        hash_settings(replace(TASK, horizon=8), entry, 0),
        hash_settings(replace(TASK, metrics=("mae",)), entry, 0),
        hash_settings(TASK, replace(entry, parameters={"season_length": 3}), 0),
        hash_settings(TASK, entry, 1),
    }
    assert len(others | {same}) == 5


def test_parameters_of_a_task_go_to_the_models_that_declare_them() -> None:
    task = replace(TASK, parameters={"season_length": 5, "max_steps": 3})
    assert build_model(Entry(model="Naive"), task) == Naive()
    assert build_model(Entry(model="AutoETS"), task) == AutoETS(season_length=5)
    assert build_model(Entry(model="AutoETS", parameters={"season_length": 4}), task) == AutoETS(season_length=4)


def test_what_a_task_tells_all_models_is_left_out_where_it_has_no_effect() -> None:
    assert build_model(Entry(model="ARIMA"), TASK, 7) == ARIMA()
    seasonal = {"seasonal_order": [1, 0, 0]}
    assert build_model(Entry(model="ARIMA", parameters=seasonal), TASK, 7).season_length == 7
    own = {"season_length": 7}  # what an entry says is its own affair: fit refuses it
    assert build_model(Entry(model="ARIMA", parameters=own), TASK, 7) == ARIMA(season_length=7)


def test_seasons_are_told_on_integer_time_and_where_the_task_says() -> None:
    made = {"n_series": 1, "length": 40, "freq": 1}
    integer = Task(task="i", generate=made, horizon=2, season_length=4)
    assert given_season_length(prepare_task(integer)) == 4
    assert given_season_length(prepare_task(Task(dataset="air_passengers"))) is None
    assert given_season_length(prepare_task(Task(dataset="air_passengers", season_length=6))) == 6


def test_names_of_files_hold_on_any_system() -> None:
    assert file_name("a/b:c d") == "a_b_c_d"
    long = file_name("x" * 500)
    assert len(long) <= 120
    assert long != file_name("x" * 499)
