"""`deepforecast compare`."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd
import pytest

from deepforecast.cli.compare import baselines
from deepforecast.core import registry

THREE = ["compare", "sales.csv", "--models", "Naive", "SeasonalNaive", "Drift", "--horizon", "7", "--n-windows", "2"]


def test_the_leaderboard(run) -> None:
    ran = run(*THREE, "--level", "80")
    assert (ran.status, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0].startswith("3 models, 2 series, horizon 7, 2 windows; ranked by MASE")
    assert lines[2].split()[0] == "SeasonalNaive"
    assert "coverage-80" in ran.out
    assert max(map(len, lines)) <= 100


def test_as_json(run) -> None:
    facts = run(*THREE, "--metrics", "mae", "mase", "--json").facts
    assert facts["leaderboard"][0]["model"] == "SeasonalNaive"
    assert facts["leaderboard"][0]["mae"] < facts["leaderboard"][1]["mae"]
    assert (facts["failed"], facts["written"]) == ([], [])


def test_files(run, folder: Path) -> None:
    (folder / "out").mkdir()
    ran = run(*THREE, "--level", "80", "--report", "out/report.html", "--plot", "board.png", "--output", "cv.parquet")
    assert ran.out.splitlines()[-1] == "Written: out/report.html, board.png, cv.parquet."
    assert (folder / "board.png").read_bytes().startswith(b"\x89PNG")
    assert "SeasonalNaive" in (folder / "out" / "report.html").read_text()
    assert pd.read_parquet(folder / "cv.parquet").columns.tolist()[:4] == ["unique_id", "ds", "cutoff", "y"]


@pytest.mark.parametrize(("name", "start"), [("b.svg", b"<?xml"), ("b.pdf", b"%PDF")])
def test_other_pictures(run, folder: Path, name: str, start: bytes) -> None:
    assert run(*THREE, "--plot", name).status == 0
    assert (folder / name).read_bytes().startswith(start)


def test_forecasts_on_standard_output(run) -> None:
    ran = run(*THREE, "--output", "-")
    assert pd.read_csv(io.StringIO(ran.out)).columns.tolist()[:4] == ["unique_id", "ds", "cutoff", "y"]
    assert ran.err.startswith("3 models, 2 series")


def test_a_model_that_fails_is_a_row_and_exit_code_1(run) -> None:
    ran = run(*THREE, "--models", "SeasonalNaive:season_length=60,alias=Long", "--json")
    assert ran.status == 1
    assert ran.facts["failed"] == ["Long"]
    assert "Long requires at least 60" in ran.facts["leaderboard"][-1]["error"]
    told = run(*THREE, "--models", "SeasonalNaive:season_length=60,alias=Long")
    assert "Long failed: DataError: Long requires at least 60" in " ".join(told.out.split())


def test_all_baselines_if_none_is_named(run) -> None:
    facts = run("compare", "sales.csv", "--horizon", "7", "--n-windows", "1", "--json").facts
    assert sorted(row["model"] for row in facts["leaderboard"]) == baselines()
    assert {"Naive", "SeasonalNaive", "Naive2"} <= set(baselines()) < set(registry.names())
    told = run("compare", "sales.csv", "--horizon", "7", "--n-windows", "1").out.splitlines()
    assert (
        told[-1] == "Without --models the baselines are compared. Pass e.g. --models AutoETS AutoTheta LinearModel for others."
    )
    assert "No model was named" not in run(*THREE).out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compare", "nowhere.csv", "--horizon", "7"], "nowhere.csv cannot be read"),
        (["compare", "sales.csv"], "Pass --horizon STEPS"),
        ([*THREE, "--models", "Prophet9000"], "must be a registered name, got 'Prophet9000'"),
        ([*THREE, "--models", "Naive"], "Naive"),
        ([*THREE, "--n-windows", "0"], "must be at least 1, got 0. (option --n-windows)"),
        ([*THREE, "--n-windows", "50"], "`n_windows` must leave at least one series"),
        ([*THREE, "--metrics", "accuracy"], "Unknown metric 'accuracy'"),
        ([*THREE, "--report", "report.pdf"], "must end in .html"),
        ([*THREE, "--plot", "plot.jpg"], "must end in .png, .svg or .pdf"),
        ([*THREE, "--report", "sales.csv/r.html"], "cannot be written"),
        ([*THREE, "--horizon", "0"], "`horizon` must be at least 1"),
        ([*THREE, "--level", "200"], "`level` must be between 0 and 100"),
        (
            ["compare", "sales.csv", "--horizon", "7", "--models", "SeasonalNaive:season_length=60"],
            "All models failed, so there is nothing to compare",
        ),
    ],
)
def test_what_cannot_be_is_refused(run, arguments: list[str], said: str) -> None:
    assert said in run(*arguments).refusal()
