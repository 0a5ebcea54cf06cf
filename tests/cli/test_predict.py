"""`deepforecast predict`."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from deepforecast import DLinear, Naive, SeasonalNaive


@pytest.fixture
def model(run) -> str:
    assert run("fit", "sales.csv", "--model", "SeasonalNaive", "--horizon", "2", "--save", "model.dfc").status == 0
    return "model.dfc"


def test_csv_on_standard_output(run, model: str) -> None:
    ran = run("predict", model, "--level", "95", "80")
    assert (ran.status, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0] == "unique_id,ds,SeasonalNaive," + ",".join(
        f"SeasonalNaive-{e}-{v}" for v in (80, 95) for e in ("lo", "hi")
    )
    assert [line.split(",")[:2] for line in lines[1:]] == [[n, f"2024-03-{d}"] for n in ("007", "a8") for d in (11, 12)]


def test_a_table_in_a_terminal(run, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deepforecast.cli.streams.is_terminal", lambda stream: True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert run("predict", model, "--horizon", "1").out.splitlines()[0].split() == ["unique_id", "ds", "SeasonalNaive"]
    assert run("predict", model, "--horizon", "1", "--output", "-").out.startswith("unique_id,ds,SeasonalNaive\n")


def test_levels_and_quantiles_are_exact(run, model: str) -> None:
    facts = run("predict", model, "--level", "99.5", "--quantiles", "0.1", "0.9", "--json").facts
    assert list(facts["forecasts"][0])[3:] == [f"SeasonalNaive-{end}" for end in ("lo-99.5", "hi-99.5", "q-0.1", "q-0.9")]
    assert (facts["rows"], facts["model"]) == (4, "SeasonalNaive(horizon=2, on_failure='fallback')")


@pytest.mark.parametrize("name", ["f.csv", "f.parquet"])
def test_files(run, folder: Path, model: str, name: str) -> None:
    ran = run("predict", model, "--output", name)
    assert ran.out == f"4 rows written to {name}.\n"
    found = pd.read_parquet(folder / name) if name.endswith("parquet") else pd.read_csv(folder / name, dtype={"unique_id": str})
    assert found["unique_id"].tolist() == ["007", "007", "a8", "a8"]
    assert run("predict", model, "--output", name, "--json").facts["output"] == name


def test_other_histories(run, folder: Path, model: str) -> None:
    rows = "".join(f"007,2024-05-{day:02d},{day}\n" for day in range(1, 20))
    (folder / "later.csv").write_text("unique_id,ds,y\n" + rows)
    facts = run("predict", model, "--data", "later.csv", "--json").facts
    assert [(row["ds"], row["SeasonalNaive"]) for row in facts["forecasts"]] == [("2024-05-20", 13.0), ("2024-05-21", 14.0)]


def test_a_model_saved_without_histories_forecasts_from_data(run, folder: Path) -> None:
    frame = pd.DataFrame({"unique_id": "a", "ds": pd.date_range("2024-01-01", periods=30), "y": range(30)})
    frame.to_csv(folder / "a.csv", index=False)
    DLinear(horizon=1, input_size=7, max_steps=1).fit(frame).save(folder / "d.dfc", histories=False)
    assert [row["ds"] for row in run("predict", "d.dfc", "--data", "a.csv", "--json").facts["forecasts"]] == ["2024-01-31"]
    for options in ([], ["--data", "a.csv", "--future-template", "f.csv"]):
        ran = run("predict", "d.dfc", *options)
        assert (ran.status, "saved without histories" in ran.err) == (2, True)
    assert not (folder / "f.csv").exists()


def test_ids_that_were_whole_numbers_are_again(run, folder: Path) -> None:
    frame = pd.DataFrame(
        {"unique_id": [30, 30, 4, 4], "ds": list(pd.date_range("2024-01-01", periods=2)) * 2, "y": [1.0, 2, 3, 4]}
    )
    Naive(horizon=1).fit(frame).save(folder / "n.dfc")
    frame.to_csv(folder / "n.csv", index=False)
    ran = run("predict", "n.dfc", "--data", "n.csv")
    assert (ran.err, ran.out) == ("", "unique_id,ds,Naive\n4,2024-01-03,4.0\n30,2024-01-03,2.0\n")


def test_models_of_other_libraries(run, folder: Path) -> None:
    import polars as pl

    frame = pl.DataFrame({"ds": pd.date_range("2024-01-01", periods=3).to_list(), "y": [1.0, 2.0, 3.0]})
    Naive(horizon=1).fit(frame).save(folder / "p.dfc")
    assert run("predict", "p.dfc").out == "ds,Naive\n2024-01-04,3.0\n"


def test_times_with_a_zone_survive(run, folder: Path) -> None:
    hours = pd.date_range("2024-03-29", "2024-03-31 01:00", freq="h", tz="Europe/Berlin")
    pd.DataFrame({"ds": hours, "y": 1.0}).to_csv(folder / "zone.csv", index=False)
    common = ["--model", "Naive", "--horizon", "2", "--save", "z.dfc"]
    assert run("fit", "zone.csv", "--time-zone", "Europe/Berlin", *common).status == 0
    stamps = [row["ds"] for row in run("predict", "z.dfc", "--json").facts["forecasts"]]
    assert stamps == ["2024-03-31 03:00:00+02:00", "2024-03-31 04:00:00+02:00"]


def test_spreadsheet_formulas_among_the_ids(run, folder: Path) -> None:
    frame = pd.DataFrame({"unique_id": "=cmd|' /C calc'!A0", "ds": pd.date_range("2024-01-01", periods=3), "y": 1.0})
    Naive(horizon=1).fit(frame).save(folder / "evil.dfc")
    plain, safe = run("predict", "evil.dfc"), run("predict", "evil.dfc", "--spreadsheet-safe")
    assert "\n=cmd|" in plain.out
    assert plain.err.startswith("warning: Text that spreadsheets run as a formula")
    assert "\n'=cmd|" in safe.out
    assert safe.err == ""


def test_future_data_for_a_model_without_covariates_is_left_out_aloud(run, folder: Path, model: str) -> None:
    (folder / "future.csv").write_text("unique_id,ds,promo\n007,2024-03-11,1\n")
    ran = run("predict", model, "--future-data", "future.csv")
    assert ran.status == 0
    assert ran.err.startswith("warning: future= is ignored")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.dfc"], "nowhere.dfc"),
        (["sales.csv"], "sales.csv"),
        (["model.dfc", "--horizon", "0"], "`horizon` must be at least 1"),
        (["model.dfc", "--horizon", "two"], "--horizon: invalid int value: 'two'"),
        (["model.dfc", "--level", "100"], "`level` must be between 0 and 100"),
        (["model.dfc", "--level", "nan"], "`level` must be between"),
        (["model.dfc", "--level", "high"], "--level: must be a number, got 'high'"),
        (["model.dfc", "--quantiles", "1.5"], "`quantiles` must be between 0 and 1"),
        (["bare.dfc"], "Naive was fitted without one. Pass --horizon STEPS"),
        (["model.dfc", "--data", "nowhere.csv"], "nowhere.csv cannot be read"),
        (["model.dfc", "--output", "forecast"], "must end in .csv, .parquet or .pq"),
        (["model.dfc", "--output", "no\0way.csv"], "cannot be written"),
    ],
)
def test_what_cannot_be_is_refused(run, folder: Path, model: str, arguments: list[str], said: str) -> None:
    frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=9), "y": 1.0})
    Naive().fit(frame).save(folder / "bare.dfc")
    (folder / "short.csv").write_text("unique_id,ds,y\n007,2024-05-01,1\n")
    assert said in run("predict", *arguments).refusal()


def test_json_holds_no_nan(run, folder: Path) -> None:
    frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=15), "y": 7.0})
    SeasonalNaive(horizon=1).fit(frame).save(folder / "c.dfc")
    assert json.loads(run("predict", "c.dfc", "--json").out)["forecasts"] == [{"ds": "2024-01-16", "SeasonalNaive": 7.0}]


def test_a_column_the_model_does_not_know_is_left_out_without_advice_that_predict_cannot_take(run, folder: Path) -> None:
    frame = pd.DataFrame({"unique_id": "a", "ds": pd.date_range("2024-01-01", periods=3), "y": [1.0, 2.0, 3.0]})
    Naive(horizon=1).fit(frame).save(folder / "plain.dfc")
    frame.assign(promo=1).to_csv(folder / "promo.csv", index=False)
    ran = run("predict", "plain.dfc", "--data", "promo.csv")
    assert ran.status == 0
    assert ran.err == "warning: Columns without a role are left out: promo. The model was fitted without them.\n"
