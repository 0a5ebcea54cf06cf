"""`deepforecast cross-validate`."""

from __future__ import annotations

import io
import itertools
from pathlib import Path

import pandas as pd
import pytest

from deepforecast import Naive, SeasonalNaive, cross_validate, score

TWO = [
    "cross-validate",
    "sales.csv",
    "--model",
    "naive",
    "--model",
    "SeasonalNaive:season_length=7,alias=Weekly",
    "--horizon",
    "7",
]


def data(folder: Path) -> pd.DataFrame:
    return pd.read_csv(folder / "sales.csv", dtype={"unique_id": str}, parse_dates=["ds"])


def test_scores_are_those_of_the_library(run, folder: Path) -> None:
    ran = run(*TWO, "--n-windows", "2", "--level", "80", "--json")
    assert (ran.status, ran.err) == (0, "")
    models = [Naive(), SeasonalNaive(season_length=7, alias="Weekly")]
    forecasts = cross_validate(models, data(folder), horizon=7, n_windows=2, level=80)
    expected = score(forecasts, train=data(folder))
    pd.testing.assert_frame_equal(pd.DataFrame(ran.facts["scores"]), expected, check_dtype=False)


def test_the_table(run) -> None:
    ran = run(*TWO, "--metrics", "mae", "mase")
    lines = ran.out.splitlines()
    assert lines[0].split() == ["model", "mae", "mase"]
    assert [line.split()[0] for line in lines[1:]] == ["Naive", "Weekly"]


def test_forecasts_go_to_a_file_or_to_standard_output(run, folder: Path) -> None:
    to_file, to_output = run(*TWO, "--output", "cv.csv"), run(*TWO, "--output", "-")
    assert to_file.out.splitlines()[-1] == "42 rows of forecasts written to cv.csv."
    assert to_output.out == (folder / "cv.csv").read_text()
    assert to_output.err.splitlines() == to_file.out.splitlines()[:-1]
    frame = pd.read_csv(io.StringIO(to_output.out))
    assert frame.columns.tolist() == ["unique_id", "ds", "cutoff", "y", "Naive", "Weekly"]


def test_windows_steps_gaps_and_sizes(run, folder: Path) -> None:
    options = ["--n-windows", "4", "--step-size", "2", "--gap", "1", "--train-size", "20", "--refit", "2", "--seed", "1"]
    assert run(*TWO, *options, "--output", "cv.csv").status == 0
    frame = pd.read_csv(folder / "cv.csv", parse_dates=["ds", "cutoff"])
    cutoffs = sorted(frame["cutoff"].unique())
    assert [later - earlier for earlier, later in itertools.pairwise(cutoffs)] == [pd.Timedelta(days=2)] * 3
    assert (frame["ds"].min() - cutoffs[0]).days == 2


def test_scores_by_series_and_step(run) -> None:
    scores = run(*TWO, "--by", "series", "step", "--metrics", "mae", "--json").facts["scores"]
    assert len(scores) == 2 * 2 * 7


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["cross-validate", "sales.csv", "--horizon", "7"], "required: --model"),
        (["cross-validate", "sales.csv", "--model", "naive"], "Pass --horizon STEPS."),
        ([*TWO, "--n-windows", "0"], "must be at least 1, got 0. (option --n-windows)"),
        ([*TWO, "--n-windows", "1000"], "`n_windows` must leave at least one series"),
        ([*TWO, "--step-size", "0"], "must be at least 1, got 0. (option --step-size)"),
        ([*TWO, "--refit", "sometimes"], "refit"),
        ([*TWO, "--gap", "-1"], "gap"),
        ([*TWO, "--metrics", "mse2"], "Unknown metric 'mse2'"),
        ([*TWO, "--model", "Naive"], "Naive"),
        ([*TWO, "--model", "Nave"], "must be a registered name, got 'Nave'"),
        ([*TWO, "--by", "colour"], "--by: invalid choice"),
        ([*TWO, "--level", "0"], "`level` must be between"),
        ([*TWO, "--n-jobs", "0"], "n_jobs"),
    ],
)
def test_what_cannot_be_is_refused(run, arguments: list[str], said: str) -> None:
    assert said in run(*arguments).refusal()
