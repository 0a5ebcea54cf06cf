"""`deepforecast check`."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest


def test_good_data(run) -> None:
    ran = run("check", "sales.csv")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "2 series, 140 rows, freq D, 2024-01-01 to 2024-03-10",
        "No errors: models can be fitted to these data.",
    ]


def test_findings_and_exit_code(run, folder: Path) -> None:
    lines = (folder / "sales.csv").read_text().splitlines()
    (folder / "gap.csv").write_text("\n".join([*lines[:5], *lines[7:]]))
    (folder / "double.csv").write_text("\n".join([*lines, lines[3]]))
    gap, double = run("check", "gap.csv"), run("check", "double.csv")
    assert gap.status == 0
    assert "warning  gaps (2): 007, first at 2024-01-05" in gap.out
    assert double.status == 1
    assert "error    duplicates (1): 007, first at 2024-01-03" in double.out
    assert double.out.splitlines()[-1] == "Errors: models refuse these data."
    assert "hint: use a model with capabilities.missing, or set --missing interpolate" in gap.out
    assert "hint: Drop or aggregate the duplicates" in double.out
    assert "one id column (option --id of a fit) must" in run("fit", "double.csv", "--model", "Naive", "--save", "m").refusal()


def test_series_without_values_are_an_error_only_if_there_are_no_others(run, folder: Path) -> None:
    empty = "".join(f"empty,2024-01-{day:02d},\n" for day in range(1, 31))
    (folder / "some.csv").write_text((folder / "sales.csv").read_text() + empty)
    (folder / "none.csv").write_text("unique_id,ds,y\n" + empty)
    for name, status, severity in (("some.csv", 0, "warning"), ("none.csv", 1, "error")):
        checked, fitted = run("check", name), run("fit", name, "--model", "Naive", "--horizon", "2", "--save", "m")
        assert (checked.status, bool(fitted.status)) == (status, bool(status))
        assert f"{severity:8s} all missing (1): empty" in checked.out
        assert "pass --on-failure fallback" in checked.out


def test_as_json(run, folder: Path) -> None:
    (folder / "odd.csv").write_text("ds,y\n2024-01-01,1\n2024-01-02,\n2024-01-03,inf\n2024-01-04,4\n")
    ran = run("check", "odd.csv", "--json")
    assert ran.status == 1
    assert ran.facts["ok"] is False
    assert {finding["problem"] for finding in ran.facts["findings"]} >= {"infinite", "missing"}
    assert ran.facts["summary"]["rows"] == 4


def test_a_row_for_each_series_goes_to_a_file_or_standard_output(run, folder: Path) -> None:
    assert run("check", "sales.csv", "--output", "series.csv").status == 0
    table = pd.read_csv(folder / "series.csv", dtype={"unique_id": str})
    assert table["unique_id"].tolist() == ["007", "a8"]
    assert table["rows"].tolist() == [70, 70]
    assert run("check", "sales.csv", "--output", "-").out == (folder / "series.csv").read_text()


def test_frequencies_are_what_is_said(run) -> None:
    ran = run("check", "sales.csv", "--freq", "W")
    assert ran.status == 1
    assert "error    off the grid of" in ran.out


def test_whole_number_frequencies(run, folder: Path) -> None:
    (folder / "steps.csv").write_text("ds,y\n" + "".join(f"{i},{i % 3}\n" for i in range(0, 50, 5)))
    assert run("check", "steps.csv", "--freq", "5", "--json").facts["summary"]["freq"] == "5"


def test_control_characters_of_ids_are_escaped_in_the_terminal(run, folder: Path) -> None:
    (folder / "evil.csv").write_text(
        'unique_id,ds,y\n"\x1b[2J\x07",2024-01-01,5\n"\x1b[2J\x07",2024-01-02,5\n"\x1b[2J\x07",2024-01-02,5\n'
    )
    ran = run("check", "evil.csv")
    assert ran.status == 1
    assert "\\x1b[2J\\x07" in ran.out
    assert all(line.isprintable() for line in (ran.out + ran.err).splitlines())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.csv"], "nowhere.csv cannot be read"),
        (
            ["sales.csv", "--target", "sold"],
            "sales.csv must have the columns unique_id, ds, sold, but it lacks sold and has unique_id, ds, y",
        ),
        (["sales.csv", "--id", "y"], "y"),
        (["sales.csv", "--freq", "X"], "freq"),
        (["sales.csv", "--freq", "0"], "freq"),
        (["sales.csv", "--date-format", "%d/%m/%Y"], "Column ds cannot be parsed with --date-format %d/%m/%Y"),
        (["sales.csv", "--time-zone", "Mars/Olympus"], "--time-zone must be a name such as"),
        (["sales.csv", "--separator", ";"], "has only one column,"),
        (["sales.csv", "--output", "x.xlsx"], "must end in .csv, .parquet or .pq"),
        (["sales.csv", "--output", "sales.csv/x.csv"], "cannot be written"),
    ],
)
def test_what_cannot_be_is_refused(run, arguments: list[str], said: str) -> None:
    assert said in run("check", *arguments).refusal()


def test_declared_covariates_are_looked_at(run, folder: Path) -> None:
    rows = [f"2024-01-{day:02d},{day % 7},{'' if day == 9 else day % 5},1" for day in range(1, 31)]
    (folder / "promo.csv").write_text("\n".join(["ds,y,promo,holiday", *rows]))
    ran = run("check", "promo.csv", "--future", "promo", "holiday")
    assert ran.status == 0
    assert "warning  promo missing (1): the series, first at 2024-01-09" in ran.out
    assert "warning  holiday constant (1): the series" in ran.out


def test_weights_are_checked(run, folder: Path) -> None:
    rows = [f"2024-01-{day:02d},{day % 7},{-1 if day == 9 else 2}" for day in range(1, 31)]
    (folder / "weights.csv").write_text("\n".join(["ds,y,w", *rows]))
    ran = run("check", "weights.csv", "--weight", "w")
    assert ran.status == 1
    assert "error    w invalid (1): the series, first at 2024-01-09" in ran.out
