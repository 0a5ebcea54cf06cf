"""What the library says of Python, said of options; only of those that the command has."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from deepforecast.cli.message_translation import MessageTranslator
from deepforecast.cli.parser import Parser

FIT = " (in deepforecast fit)"
GAPS = "unique_id,ds,y\n" + "".join(f"a,2024-01-{day:02d},{day % 7}\n" for day in range(1, 31) if day != 9)


def wording(*options: str) -> MessageTranslator:
    parser = Parser("deepforecast x", "", "")
    for name in options:
        parser.add_argument(name)
    parser.add_argument("--pool", action=argparse.BooleanOptionalAction)
    parser.add_argument("--horizon", metavar="STEPS")
    return MessageTranslator(parser.options)


@pytest.mark.parametrize(
    ("said", "worded"),
    [
        ("Say missing='interpolate', 'ffill' or 'zero': filled", "Say --missing interpolate, ffill or zero: filled"),
        ('or missing="interpolate".', "or --missing interpolate."),
        ("options=BacktestOptions(align='calendar') does, align='series' too", "--align calendar does, --align series too"),
        ("Declare them in columns= or drop them.", "Declare them in --future, --past and --static or drop them."),
        ("e.g. columns={'id': 'shop'}, or drop", "e.g. --id shop, or drop"),
        ("e.g. freq='D' (check(frame, freq='D') shows", "e.g. --freq D (deepforecast check with --freq D shows"),
        ("See check(frame).", "See deepforecast check."),
        ("looks like freq='W-WED' from", "looks like --freq W-WED from"),
        ("n_windows=50 with horizon=7 (step 7)", "--windows 50 with --horizon 7 (step 7)"),
        ("`step_size` must be at least 1, got 0.", "--step must be at least 1, got 0."),
        ("Say missing='zero' or 'ffill': filled", "Say --missing zero or ffill: filled"),
        ("another alias=, or point='mean' there", f"another --alias ...{FIT}, or --point mean{FIT} there"),
        ("wrap it: Conformal(model).", "wrap it: --model Conformal --set model=NAME (in deepforecast fit)."),
        ("it needs a horizon: Conformal(model, horizon=...).", "it needs a horizon: --horizon STEPS."),
        ("(Conformal(model, adaptation_rate=0.1, or pool=True))",
         "(--model Conformal --set model=NAME with --adaptation-rate 0.1, or --pool (in deepforecast fit))"),
        ("e.g. predict(level=[80, 95]).", "e.g. --level 80 95."),
        ("Save one first: model.save(path).", "Save one first: deepforecast fit with --save FILE."),
        ("; compare() runs models", "; deepforecast compare runs models"),
        ("choose a model whose capabilities.future is true;", "choose one of deepforecast models with future covariates;"),
        ("a model whose capabilities.domain is 'real'.", "one whose domain is real in deepforecast models --json."),
        ("score(board.forecasts, metrics='owa', train=frame, reference='Naive2')",
         "deepforecast cross-validate with --metrics owa --reference Naive2"),
        ("Pass predict(horizon=...).", "Pass --horizon STEPS."),
        ("it needs a horizon: Naive(horizon=...).", "it needs a horizon: --horizon STEPS."),
        ("pool=True is for all, pool=False for each", "--pool is for all, --no-pool for each"),
        ("is in the frame or in static=; add it", "is in the frame or in --static-data; add it"),
        ("Run with n_jobs=1 to see", "Run with --n-jobs 1 to see"),
    ],
)
def test_ways_out_are_options(said: str, worded: str) -> None:
    options = "--missing --align --future --past --static --static-data --freq --windows --id --n-jobs --step --level"
    assert wording(*options.split())(said) == worded


@pytest.mark.parametrize(
    "said",
    [
        "Naive(horizon=3, pool=True) was fitted", "Conformal(model=Naive(), pool=True)", "Say season_length=7",
        "needs future= with x", "series horizon=x", "a pool=x b", "BacktestOptions(train_size=1)", "columns=", "columns=['a']",
        "x.pool=True", "-horizon=3", "model.future_frame(horizon) gives", "later n_windows must be at least 1",
    ],
)  # fmt: skip
def test_the_rest_stays_as_it_is(said: str) -> None:
    assert wording()(said) == said


@pytest.mark.parametrize(
    ("said", "worded"),
    [
        ("Give the model another alias=.", "Give the model another MODEL:alias=...."),
        ("Say intervals='conformal', or Conformal(model).", "Say MODEL:intervals=conformal, or Conformal(model)."),
        ("windows: Conformal(model, n_windows=..., or pool=True)", "windows: Conformal(model, n_windows=..., or pool=True)"),
    ],
)
def test_where_models_are_named_with_their_parameters_the_way_out_is_so_written(said: str, worded: str) -> None:
    assert wording("--models", "--windows")(said) == worded


LINES = {  # wrong command line -> the fix in terms of options
    "predict nope.dfc": "Save one first: deepforecast fit with --save FILE.",
    "fit sales.csv --model Conformal --set model=Naive --save m.dfc":
        "`horizon` must be set, because Conformal calibrates each step. Pass --horizon VALUE.",
    "fit sales.csv --model Conformal:model=Naive --save m.dfc": "Use --model Conformal --set model=Naive.",
    "fit priced.csv --model AutoTheta --future price --save m.dfc": "; deepforecast compar",
    "predict banded.dfc --level 99.9": "--model Conformal --set model=NAME with --pool (in deepforecast fit).",
    "cross-validate sales.csv --model Naive --horizon 7 --windows 30":
        "--windows 30 with --horizon 7 (step 7, gap 0) requires 1",
    "cross-validate sales.csv --model Naive Naive --horizon 3": "Set MODEL:alias=... on the others.",
    "cross-validate sales.csv --model Naive --horizon 3 --step 0": "--step must be at least 1, got 0.",
    "cross-validate sales.csv --model Naive --horizon 3 --metrics coverage":
        "Pass --level when forecasting, e.g. --level 80 95.",
    "cross-validate sales.csv --model Naive --horizon 3 --metrics owa": "Pass --reference, the name of a model column",
    "compare sales.csv --horizon 3 --metrics owa": "deepforecast cross-validate with --metrics owa --reference Naive2.",
    "compare sales.csv --horizon 3 --plot board.bmp": "must end in .png, .svg or .pdf, got board.bmp.",
    "fit sales.csv --model Naive --target ds --save m.dfc": "these are repeated: ds (time, target).",
    "frobnicate": "Available: check, fit, predict, cross-validate, compare, tune, benchmark, models, doctor, demo.",
}


@pytest.mark.parametrize("line", LINES)
def test_no_way_out_is_one_of_python(line: str, run, folder: Path) -> None:
    rows = (folder / "sales.csv").read_text().splitlines()
    (folder / "priced.csv").write_text("\n".join([f"{rows[0]},price", *(f"{row},{at % 5}" for at, row in enumerate(rows[1:]))]))
    if "banded.dfc" in line:
        fit = "fit sales.csv --model Conformal --set model=Naive --horizon 3 --save banded.dfc"
        assert run(*fit.split()).status == 0
    refused = run(*line.split()).refusal()
    assert LINES[line] in refused
    assert not any(python in refused for python in ("()", "=...)", "model.", "n_windows", "step_size"))


def test_findings_name_options_and_an_empty_file_a_way_out(run, folder: Path) -> None:
    (folder / "gaps.csv").write_text(GAPS)
    ran = run("check", "gaps.csv")
    assert "or --missing interpolate (in deepforecast fit)" in ran.out
    assert run("check", "gaps.csv", "--json").facts["findings"][0]["hint"].endswith(f"--missing interpolate{FIT}")
    (folder / "empty.csv").write_text("unique_id,ds,y\n")
    ran = run("check", "empty.csv")
    assert ran.status == 1
    assert "see the message" not in ran.out
    assert "hint: Pass the history of at least one series." in ran.out


def test_relative_metrics_have_their_reference(run) -> None:
    base = ["cross-validate", "sales.csv", "--model", "Naive", "Naive2", "--horizon", "3", "--json"]
    ran = run(*base, "--metrics", "owa", "--reference", "Naive2")
    assert {row["model"]: row["owa"] for row in ran.facts["scores"]}["Naive2"] == 1.0


def test_before_a_command_is_known_nothing_is_worded() -> None:
    assert MessageTranslator()("Say missing='zero', check(frame)") == "Say missing='zero', check(frame)"


def test_a_message_of_the_library_names_an_option_that_works(run, folder: Path) -> None:
    (folder / "gaps.csv").write_text(GAPS)
    base = ["--horizon", "3", "--windows", "1"]
    refused = run("cross-validate", "gaps.csv", "--model", "Naive2", *base).refusal()
    assert "Set --missing interpolate, ffill or zero to fill" in refused
    board = run("compare", "gaps.csv", "--models", "Naive2", "Naive", *base, "--json")
    assert "--missing interpolate" in board.facts["leaderboard"][1]["error"]
    for command in ("cross-validate", "compare"):
        assert run(command, "gaps.csv", "--model", "Naive2", *base, "--missing", "interpolate").status == 0
    assert run("fit", "gaps.csv", "--model", "Naive2", "--missing", "ffill", "--save", "m.dfc").status == 0
    assert "Set --missing interpolate" in run("fit", "gaps.csv", "--model", "Naive2", "--save", "m.dfc").refusal()


def test_a_warning_of_the_library_names_an_option_that_works(run, folder: Path) -> None:
    frame = "".join(f"a,2024-01-{day:02d},{day % 7}\n" for day in range(1, 31))
    frame += "".join(f"b,2024-01-{day:02d},{day % 5}\n" for day in range(1, 21))
    (folder / "ends.csv").write_text("unique_id,ds,y\n" + frame)
    arguments = ["cross-validate", "ends.csv", "--model", "Naive", "--horizon", "3", "--windows", "2"]
    ran = run(*arguments, "--align", "calendar")
    assert ran.err.endswith("Pass --align series to count cutoffs from the end of each series.\n")
    assert run(*arguments, "--align", "series").err == ""
