"""The environment is described without names of users, machines or folders."""

from __future__ import annotations

import getpass
import platform
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy
import pytest

from deepforecast import __version__
from deepforecast.evaluation import environment


def test_versions_are_those_of_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "LIBRARIES", ("numpy", "a-library-nobody-has"))
    versions = environment.describe_environment()["versions"]
    assert versions == {"python": platform.python_version(), "deepforecast": __version__, "numpy": numpy.__version__}


def test_nothing_is_loaded_to_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "statsmodels", raising=False)
    assert "statsmodels" in environment.describe_environment()["versions"]
    assert "statsmodels" not in sys.modules


def test_the_machine_has_no_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told = str(environment.describe_environment())
    assert platform.node() not in told
    assert str(Path.home()) not in told
    assert getpass.getuser() not in told
    monkeypatch.setattr(environment, "CPU_INFO", tmp_path / "none")
    monkeypatch.setattr(environment, "MEMORY_INFO", tmp_path / "none")
    assert "memory" not in environment.describe_environment()["machine"]


def test_a_build_for_cpus_alone_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(package: str) -> str:
        if package != "xgboost-cpu":
            raise PackageNotFoundError(package)
        return "3.2.0"

    monkeypatch.setattr(environment, "version", version)
    assert environment.version_of("xgboost") == "3.2.0"
    assert environment.version_of("catboost") is None
