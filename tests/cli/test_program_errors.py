"""Errors of the library on the command line: they name the option of their parameter, if the command has it."""

from __future__ import annotations

from pathlib import Path

import pytest

GAPS = "unique_id,ds,y\n" + "".join(f"a,2024-01-{day:02d},{day % 7}\n" for day in range(1, 31) if day != 9)


def test_an_error_names_the_option_of_its_parameter(run, folder: Path) -> None:
    (folder / "gaps.csv").write_text(GAPS)
    base = ["cross-validate", "gaps.csv", "--model", "Naive2", "--horizon", "3", "--n-windows", "1"]
    assert run(*base).refusal().rstrip().endswith("within each training window. (option --missing)")
    assert run(*base, "--missing", "interpolate").status == 0


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("cross-validate sales.csv --model Naive --horizon 3 --step-size 0", "--step-size"),
        ("cross-validate sales.csv --model Naive --horizon 0", "--horizon"),
        ("cross-validate sales.csv --model Naive --horizon 3 --level 120", "--level"),
        ("check sales.csv --freq nonsense", "--freq"),
    ],
)
def test_a_bad_value_names_its_option(line: str, option: str, run) -> None:
    assert f"(option {option})" in run(*line.split()).refusal()


def test_an_option_that_the_command_lacks_is_not_named(run, folder: Path) -> None:
    assert run("fit", "sales.csv", "--model", "Conformal", "--set", "model=Naive", "--save", "m.dfc", "--horizon", "3").status == 0
    refused = run("predict", "m.dfc", "--level", "99.9").refusal()
    assert "calibration errors per step" in refused
    assert "(option" not in refused


def test_json_errors_have_the_attributes_of_the_error(run, folder: Path) -> None:
    (folder / "gaps.csv").write_text(GAPS)
    ran = run("cross-validate", "gaps.csv", "--model", "Naive2", "--horizon", "3", "--n-windows", "1", "--json")
    error = ran.facts["error"]
    assert (error["type"], error["parameter"]) == ("DataError", "missing")
    assert error["hint"].startswith("Set missing='interpolate'")
    assert error["message"].startswith("Naive2 cannot handle missing values")


def test_findings_of_an_empty_file_have_a_hint(run, folder: Path) -> None:
    (folder / "empty.csv").write_text("unique_id,ds,y\n")
    ran = run("check", "empty.csv")
    assert ran.status == 1
    assert "hint: Pass the history of at least one series; " in ran.out


def test_relative_metrics_have_their_reference(run) -> None:
    base = ["cross-validate", "sales.csv", "--model", "Naive", "Naive2", "--horizon", "3", "--json"]
    ran = run(*base, "--metrics", "owa", "--reference", "Naive2")
    assert {row["model"]: row["owa"] for row in ran.facts["scores"]}["Naive2"] == 1.0
