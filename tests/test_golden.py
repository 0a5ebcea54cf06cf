"""Golden forecasts: comparing two commits, the stored summary, and that no model is left out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from deepforecast.core.registry import MODELS
from tests.golden import forecasts
from tests.golden.comparison import differences

ROOT = Path(__file__).resolve().parents[1]
BASE = {
    "case": {"predict point": np.array([1.0, np.nan, 0.0, np.inf]), "stamps": np.array([3.0])},
    "other": {},
}


def changed(position: int, value: float) -> dict[str, dict[str, np.ndarray]]:
    point = BASE["case"]["predict point"].copy()
    point[position] = value
    return {**BASE, "case": {**BASE["case"], "predict point": point}}


def test_equal_cases_have_no_differences() -> None:
    assert differences(BASE, changed(1, -np.nan)) == []  # any NaN equals any other
    assert differences(BASE, {**BASE, "new": {"predict point": np.array([1.0])}}) == []


def test_one_bit_is_a_difference() -> None:
    (line,) = differences(BASE, changed(0, np.nextafter(1.0, 2.0)))
    size = "1 of 4 values, at most 2.2e-16 relative"
    assert line == f"case: predict point[0]: 1.0 became 1.0000000000000002 ({size})"


def test_a_case_has_one_line() -> None:
    new = {"case": {name: array + 1 for name, array in BASE["case"].items()}, "other": {}}
    (line,) = differences(BASE, new)
    assert line.startswith("case: predict point[0]: 1.0 became 2.0 (2 of 4 values, at most")
    assert line.endswith("; 1 more of 2 arrays")


@pytest.mark.parametrize(
    ("position", "value", "size"), [(2, -0.0, "0.0e+00"), (0, np.nan, "inf"), (1, 1.0, "inf")]
)
def test_signed_zero_and_missing_values_are_differences(
    position: int, value: float, size: str
) -> None:
    (line,) = differences(BASE, changed(position, value))
    assert line.startswith(f"case: predict point[{position}]")
    assert f"at most {size} relative" in line


def test_missing_cases_and_arrays_are_differences() -> None:
    new = {"case": {"predict point": np.array([1.0])}}
    shape = "case: predict point has shape (1,), not (4,)"
    assert differences(BASE, new) == ["other: missing", "case|stamps: missing", shape]
    assert differences(BASE, new, ["oth*", "case|stamps"]) == [shape]


def test_dropped_patterns_must_match_a_missing_case() -> None:
    assert differences(BASE, {"other": {}}, ["case"]) == []
    expected = ["dropped pattern 'other' matches no missing case"]
    assert differences(BASE, BASE, ["other"]) == expected


def test_every_installed_model_has_cases() -> None:
    names = [name.partition(",")[0].partition(".")[0] for name in forecasts.cases()]
    assert [model for model in MODELS if forecasts.installed(model) and model not in names] == []


def test_a_mutated_case_deviates_from_its_stored_summary() -> None:
    name = "Drift, daily"
    (arrays,) = forecasts.record(name).values()
    expected = forecasts.stored()[name]
    assert forecasts.deviations(name, arrays, expected) == []
    arrays["predict point"] = arrays["predict point"] * (1 + 1e-5)
    (line,) = forecasts.deviations(name, arrays, expected)
    assert line.startswith("Drift, daily: predict is summarised by [")
    del arrays["predict point"]
    assert len(forecasts.deviations(name, arrays, expected)) == 1


@pytest.mark.slow
def test_forecasts_agree_with_the_stored_summary() -> None:
    threads = {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.golden.forecasts", "--check"]
    environment = {**os.environ, **threads, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600
    )
    assert (done.returncode, done.stderr) == (0, "")
