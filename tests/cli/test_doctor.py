"""`deepforecast doctor`."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest

import deepforecast
from deepforecast.cli import doctor

ROOT = Path(__file__).resolve().parents[2]


def test_says_what_is_here(run) -> None:
    facts = run("doctor", "--no-gpu", "--json").facts
    assert facts["deepforecast"]["version"] == deepforecast.__version__
    assert "usable" in facts["threads"]["cpus"]
    assert facts["gpu"] == {"torch": "not checked (--no-gpu)"}
    assert set(facts["packages"]) == set(doctor.REQUIRED)
    assert facts["caches"]["temporary files"].endswith("(writable)")


def test_the_packages_are_those_of_the_project() -> None:
    said = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert {line.partition(">=")[0] for line in said} == set(doctor.REQUIRED)


def test_the_text(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "REQUIRED", ("numpy", "pandas"))
    ran = run("doctor", "--no-gpu")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.splitlines()[-1] == "All required packages are installed."
    assert all(
        f"\n{section}\n" in f"\n{ran.out}" for section in ("deepforecast", "packages", "threads", "gpu", "data", "caches")
    )


def test_a_missing_package_is_exit_code_1(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "REQUIRED", ("numpy", "no-such-package"))
    ran = run("doctor", "--no-gpu")
    assert ran.status == 1
    assert "Required packages are missing: no-such-package. Install" in ran.out


def test_where_data_are_looked_for(run, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("DEEPFORECAST_DATA", str(folder / "nowhere"))
    assert run("doctor", "--no-gpu", "--json").facts["data"][str(folder / "nowhere")] == "not found"


def asked(stdout: str = "", stderr: str = "", code: int = 0):
    def run(*arguments: object, **named: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], code, stdout, stderr)

    return run


def test_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", asked('{"cuda": ["A100", "A100"], "built for": "13.0", "mps": false}'))
    assert doctor._gpu("2.10") == {"torch": "2.10, built for 13.0", "devices": "A100, A100"}
    monkeypatch.setattr(subprocess, "run", asked('{"cuda": [], "built for": "CPU only", "mps": true}'))
    assert doctor._gpu("2.10")["devices"] == "Apple's (mps)"


def test_a_torch_that_breaks_or_hangs_does_not_break_the_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    def hangs(*arguments: object, **named: object) -> None:
        raise subprocess.TimeoutExpired("python", 30)

    monkeypatch.setattr(subprocess, "run", asked(stderr="...\nImportError: libcudart.so", code=1))
    assert doctor._gpu("2.10") == {"torch": "check failed: ImportError: libcudart.so"}
    monkeypatch.setattr(subprocess, "run", asked(code=-11))
    assert doctor._gpu("2.10") == {"torch": "check failed: exit code -11"}
    monkeypatch.setattr(subprocess, "run", hangs)
    assert doctor._gpu("2.10") == {"torch": "not checked: torch did not respond within 30 s"}
    assert doctor._gpu("missing") == {"torch": "not checked: torch is missing"}


@pytest.mark.slow
def test_torch_is_asked(run) -> None:
    if doctor._version("torch") == doctor.MISSING:
        pytest.skip("torch is not installed")
    assert "built for" in run("doctor", "--json").facts["gpu"]["torch"]
