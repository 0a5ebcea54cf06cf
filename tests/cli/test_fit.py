"""`deepforecast fit`."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd
import pytest

from deepforecast import Conformal, Naive, SeasonalNaive, load
from deepforecast.cli.fit import find_model_name


def test_fits_and_saves(run, folder: Path) -> None:
    ran = run("fit", "sales.csv", "--model", "seasonal-naive", "--horizon", "14", "--season-length", "7", "--save", "model.dfc")
    assert (ran.status, ran.err) == (0, "")
    fitted = "SeasonalNaive(horizon=14, on_failure='fallback', season_length=7) fitted to 2 series of 140 rows, freq D, in "
    assert ran.out.startswith(fitted)
    assert ran.out.count("\n") == 1
    model = load(folder / "model.dfc")
    frame = pd.read_csv(folder / "sales.csv", dtype={"unique_id": str}, parse_dates=["ds"])
    expected = SeasonalNaive(horizon=14, season_length=7).fit(frame).predict(level=80)
    pd.testing.assert_frame_equal(model.predict(level=80), expected, check_dtype=False)


def test_as_json(run) -> None:
    facts = run("fit", "sales.csv", "--model=Naive", "--save", "m.dfc", "--json").facts
    assert facts.pop("seconds") >= 0
    model = "Naive(on_failure='fallback')"
    assert facts == {"model": model, "series": 2, "failed_series": 0, "rows": 140, "freq": "D", "saved": "m.dfc"}


def test_series_that_cannot_be_fitted_are_forecast_by_a_naive_method(run, folder: Path) -> None:
    days = "".join(f"a,2024-01-{day:02d},{day % 7}\n" for day in range(1, 31)) + "b,2024-01-30,4\n"
    (folder / "short.csv").write_text("unique_id,ds,y\n" + days)
    base = ["fit", "short.csv", "--model", "SeasonalNaive", "--horizon", "2", "--save", "m.dfc"]
    ran = run(*base, "--json")
    assert ran.facts["failed_series"] == 1
    assert load(folder / "m.dfc").failures_["model"].tolist() == ["Naive"]
    assert "requires at least 7 values per series" in run(*base, "--on-failure", "raise").refusal()


def test_parameters_without_a_flag(run, folder: Path) -> None:
    arguments = ["--set", "model=SeasonalNaive:season_length=7", "--set", "horizon=2", "--n-windows", "30"]
    assert run("fit", "sales.csv", "--model", "Conformal", *arguments, "--save", "m.dfc").status == 0
    expected = Conformal(SeasonalNaive(season_length=7), horizon=2, n_windows=30, on_failure="fallback")
    assert load(folder / "m.dfc") == expected


@pytest.mark.parametrize(("said", "holidays"), [("DE", "DE"), ('{"strike": ["2024-01-09"]}', {"strike": ["2024-01-09"]})])
def test_holidays_of_prophet_are_a_flag(run, folder: Path, said: str, holidays: object) -> None:
    assert run("fit", "sales.csv", "--model", "Prophet", "--holidays", said, "--save", "m.dfc").status == 0
    assert load(folder / "m.dfc").holidays == holidays


def test_own_column_names_and_formats(run, folder: Path) -> None:
    (folder / "own.csv").write_text("shop;day;sold\n" + "".join(f"007;{i:02d}.01.2024;{i},5\n" for i in range(1, 20)))
    names = ["--id", "shop", "--time", "day", "--target", "sold"]
    ran = run("fit", "own.csv", "--model", "Naive", *names, "--date-format", "%d.%m.%Y", "--separator", ";", "--decimal", ",",
              "--horizon", "1", "--save", "m.dfc")  # fmt: skip
    assert ran.status == 0
    assert run("predict", "m.dfc").out == "shop,day,Naive\n007,2024-01-20,19.5\n"


def test_parquet_and_standard_input(run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.read_csv(folder / "sales.csv", parse_dates=["ds"])
    frame.assign(unique_id=frame["unique_id"].map({"007": 30, "a8": 4})).to_parquet(folder / "sales.parquet")
    assert run("fit", "sales.parquet", "--model", "Naive", "--horizon", "1", "--save", "m.dfc").status == 0
    assert run("predict", "m.dfc", "--json").facts["forecasts"][0]["unique_id"] == 4
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((folder / "sales.csv").read_bytes())))
    assert run("fit", "-", "--model", "Naive", "--save", "m.dfc", "--json").facts["rows"] == 140


def test_a_fit_that_fails_leaves_the_old_model(run, folder: Path) -> None:
    assert run("fit", "sales.csv", "--model", "Naive", "--save", "m.dfc").status == 0
    before = (folder / "m.dfc").read_bytes()
    (folder / "bad.csv").write_text("ds,y\n2024-01-01,inf\n2024-01-02,1\n")
    run("fit", "bad.csv", "--model", "Naive", "--freq", "D", "--save", "m.dfc").refusal()
    assert (folder / "m.dfc").read_bytes() == before
    assert isinstance(load(folder / "m.dfc"), Naive)


def test_help_without_a_model_says_how_to_see_its_parameters(run) -> None:
    assert "fit --model NAME --help shows the parameters" in run("fit", "--help").out


@pytest.mark.parametrize(
    ("arguments", "name"),
    [(["--model", "A"], "A"), (["--model=A", "x"], "A"), (["--model"], None), (["--model", "--help"], None), ([], None)],
)
def test_the_model_is_looked_up_before_the_rest(arguments: list[str], name: str | None) -> None:
    assert find_model_name(arguments) == name


GOOD = ["fit", "sales.csv", "--model", "SeasonalNaive", "--save", "m.dfc"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fit", "sales.csv"], "required: --model, --save"),
        (["fit", "sales.csv", "--horizon", "3", "--save", "m.dfc"], "--model NAME must be given"),
        (["fit", "sales.csv", "--modl", "Naive"], "has no option --modl. Did you mean --model?"),
        (
            ["fit", "sales.csv", "--model", "SeasnalNaive", "--save", "m.dfc"],
            "must be a registered name, got 'SeasnalNaive'. Did you mean SeasonalNaive",
        ),
        ([*GOOD, "--seson-length", "7"], "SeasonalNaive has no option --seson-length. Did you mean --season-length?"),
        ([*GOOD, "--season-length", "0"], "`season_length` must be"),
        ([*GOOD, "--season-length", "weekly"], "`season_length` must be"),
        ([*GOOD, "--season-length", "1.5"], "`season_length` must be"),
        ([*GOOD, "--horizon", "0"], "`horizon` must be"),
        ([*GOOD, "--missing", "maybe"], "`missing` must be"),
        ([*GOOD, "--season-length", "100", "--on-failure", "raise"], "SeasonalNaive requires at least 100 values per series"),
        ([*GOOD, "--freq", "W"], "freq"),
        ([*GOOD, "--static", "size"], "size"),
        (["fit", "sales.csv", "--model", "Conformal", "--save", "m.dfc"], "Conformal requires `model`"),
        (["fit", "sales.csv", "--model", "Naive", "--save", "."], ". must be a file, but is a folder"),
        (["fit", "ambiguous.csv", "--model", "Naive", "--save", "m.dfc"], "Column ds must contain ISO-8601 timestamps"),
    ],
)
def test_what_cannot_be_is_refused(run, folder: Path, arguments: list[str], said: str) -> None:
    (folder / "ambiguous.csv").write_text("ds,y\n05/01/2024,1\n06/01/2024,2\n")
    assert said in run(*arguments).refusal()
    assert not (folder / "m.dfc").exists()


def test_where_the_model_cannot_be_saved_is_said_before_the_data_are_read(run, folder: Path) -> None:
    (folder / "notes.txt").write_text("mine")
    message = run("fit", "absent.csv", "--model", "Naive", "--horizon", "3", "--save", "notes.txt").refusal()
    assert "--save must be a new file or a model file, got notes.txt" in message


def test_a_model_is_named_once(run, folder: Path) -> None:
    ran = run("fit", "sales.csv", "--model", "Conformal", "--model", "Naive", "--horizon", "3", "--save", "m.dfc")
    assert ran.status == 2
    assert "--model must be given once, got Conformal and Naive" in ran.err
    assert "--model Conformal --set model=Naive" in ran.err
    assert not (folder / "m.dfc").exists()


def test_a_wrapper_without_a_model_says_how_to_give_one(run) -> None:
    ran = run("fit", "sales.csv", "--model", "Conformal", "--horizon", "3", "--save", "m.dfc")
    assert ran.status == 2
    assert "Pass Conformal(model=...)." in ran.err


@pytest.mark.parametrize("name", ["missing='ffill'", "horizon=3", "missing=zero"])
def test_ids_that_look_like_options_stay_as_they_are(run, folder: Path, name: str) -> None:
    rows = [f"{name},2024-01-{day:02d},{day}" for day in (1, 2, 2, 3)]
    (folder / "odd.csv").write_text("\n".join(["unique_id,ds,y", *rows, ""]))
    ran = run("fit", "odd.csv", "--model", "Naive", "--horizon", "3", "--save", "m.dfc")
    assert ran.status == 2
    assert f"series {name}, first at 2024-01-02" in ran.err
