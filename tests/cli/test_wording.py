"""What the library says of Python, said of options; only of those that the command has."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from deepforecast.cli.parser import Parser
from deepforecast.cli.wording import Wording

GAPS = "unique_id,ds,y\n" + "".join(f"a,2024-01-{day:02d},{day % 7}\n" for day in range(1, 31) if day != 9)


def wording(*options: str) -> Wording:
    parser = Parser("deepforecast x", "", "")
    for name in options:
        parser.add_argument(name)
    parser.add_argument("--pool", action=argparse.BooleanOptionalAction)
    parser.add_argument("--horizon", metavar="STEPS")
    return Wording(parser.options)


@pytest.mark.parametrize(
    ("said", "worded"),
    [
        ("Say missing='interpolate', 'ffill' or 'zero': filled", "Say --missing interpolate, ffill or zero: filled"),
        ('or missing="interpolate".', "or --missing interpolate."),
        ("options=Backtest(align='calendar') does, align='series' too", "--align calendar does, --align series too"),
        ("Declare them in columns= or drop them.", "Declare them in --future, --past and --static or drop them."),
        ("e.g. columns={'id': 'shop'}, or drop", "e.g. --id shop, or drop"),
        ("e.g. freq='D' (check(frame, freq='D') shows", "e.g. --freq D (deepforecast check with --freq D shows"),
        ("See check(frame).", "See deepforecast check."),
        ("looks like freq='W-WED' from", "looks like --freq W-WED from"),
        ("n_windows=50 windows of horizon 7 (step 7)", "--windows 50 windows of horizon 7 (step 7)"),
        ("Say predict(horizon=...).", "Say --horizon STEPS."),
        ("it needs a horizon: Naive(horizon=...).", "it needs a horizon: --horizon STEPS."),
        ("pool=True is for all, pool=False for each", "--pool is for all, --no-pool for each"),
        ("is in the frame or in static=; add it", "is in the frame or in --static-data; add it"),
        ("Run with workers=1 to see", "Run with --workers 1 to see"),
    ],
)
def test_ways_out_are_options(said: str, worded: str) -> None:
    options = "--missing --align --future --past --static --static-data --freq --windows --id --workers"
    assert wording(*options.split())(said) == worded


@pytest.mark.parametrize(
    "said",
    [
        "Naive(horizon=3, pool=True) was fitted", "(Conformal(model, pool=True))", "Say season_length=7",
        "needs future= with x", "series horizon=x", "a pool=x b", "Backtest(gap=1)", "columns=", "columns=['a']",
        "x.pool=True", "-horizon=3",
    ],
)  # fmt: skip
def test_the_rest_stays_as_it_is(said: str) -> None:
    assert wording()(said) == said


def test_before_a_command_is_known_nothing_is_worded() -> None:
    assert Wording()("Say missing='zero', check(frame)") == "Say missing='zero', check(frame)"


def test_a_message_of_the_library_names_an_option_that_works(run, folder: Path) -> None:
    (folder / "gaps.csv").write_text(GAPS)
    base = ["--horizon", "3", "--windows", "1"]
    refused = run("cross-validate", "gaps.csv", "--model", "Naive2", *base).refusal()
    assert "Say --missing interpolate, ffill or zero: filled" in refused
    board = run("compare", "gaps.csv", "--models", "Naive2", "Naive", *base, "--json")
    assert "--missing interpolate" in board.facts["leaderboard"][1]["error"]
    for command in ("cross-validate", "compare"):
        assert run(command, "gaps.csv", "--model", "Naive2", *base, "--missing", "interpolate").status == 0
    assert run("fit", "gaps.csv", "--model", "Naive2", "--missing", "ffill", "--save", "m.dfc").status == 0
    assert "Say --missing interpolate" in run("fit", "gaps.csv", "--model", "Naive2", "--save", "m.dfc").refusal()


def test_a_warning_of_the_library_names_an_option_that_works(run, folder: Path) -> None:
    frame = "".join(f"a,2024-01-{day:02d},{day % 7}\n" for day in range(1, 31))
    frame += "".join(f"b,2024-01-{day:02d},{day % 5}\n" for day in range(1, 21))
    (folder / "ends.csv").write_text("unique_id,ds,y\n" + frame)
    arguments = ["cross-validate", "ends.csv", "--model", "Naive", "--horizon", "3", "--windows", "2"]
    ran = run(*arguments, "--align", "calendar")
    assert ran.err.endswith("With --align series cutoffs follow the end of each series.\n")
    assert run(*arguments, "--align", "series").err == ""
