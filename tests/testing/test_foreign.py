"""A model of another package: found by its entry point, held to every rule, and caught where it breaks one.

The package is installed as pip would leave it, a folder of metadata on the path, and looked at in child processes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from deepforecast import testing
from deepforecast.core.registry import MODELS

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "tests" / "dummy_package"
CHECK = """
import json, sys
from deepforecast import testing
from deepforecast.core import registry
from importlib import import_module
loaded = "dummy_forecasts" in sys.modules
names = registry.names()
for module in sys.argv[3:]:
    import_module(module)
report = testing.run(sys.argv[1].split(","), only=sys.argv[2].split(",") if sys.argv[2] else None)
rows = [[row.model, row.rule, row.outcome, row.reason] for row in report.rows]
print(json.dumps({"names": names, "loaded": loaded, "rows": rows}))
"""


def install(folder: Path) -> Path:
    """What pip leaves of the package in `folder`, besides its modules."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text("utf-8"))["project"]
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n", "utf-8")
    groups = {
        group: "\n".join(f"{name} = {value}" for name, value in points.items())
        for group, points in project["entry-points"].items()
    }
    (info / "entry_points.txt").write_text("".join(f"[{group}]\n{text}\n" for group, text in groups.items()), "utf-8")
    return folder


def in_a_child(installed: Path, models: str, only: str = "", *modules: str) -> dict[str, Any]:
    """The checks of `models` in a process that has the package on its path."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (installed, PACKAGE, ROOT))), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-W", "error", "-c", CHECK, models, only, *modules]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=240, cwd=installed)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def found(installed: Path) -> dict[str, Any]:
    """All checks of the foreign model."""
    return in_a_child(installed, "PooledRegression")


def test_it_is_found_by_its_entry_point(found: dict[str, Any]) -> None:
    assert found["names"] == sorted([*MODELS, "PooledRegression"])
    assert not found["loaded"]


@pytest.mark.parametrize("rule", [check.name for check in testing.checks()])
def test_it_keeps(found: dict[str, Any], rule: str) -> None:
    """The rule, unless it does not apply: which do not is the next test."""
    ((_, _, outcome, reason),) = [row for row in found["rows"] if row[1] == rule]
    assert outcome in ("passed", "skipped"), reason


def test_it_is_skipped_for_what_it_cannot_do_only(found: dict[str, Any]) -> None:
    reasons = {reason for _, _, outcome, reason in found["rows"] if outcome == "skipped"}
    assert reasons == {
        "capabilities.local is False",
        "capabilities.by_series is False",
        "capabilities.domain is real",
        "capabilities.missing is False",
        "capabilities.explains is False",
        "capabilities.distribution is None",
        "capabilities.simulates is False",
        "capabilities.weights is False",
        "capabilities: covariates of every role and kind can be used",
        "the model has no method fitted_values",
        "no parameter seed is declared",
        "the model has no network (no method device_step)",
    }


@pytest.mark.parametrize(
    ("model", "rule", "said"),
    [
        ("Forgetful", "effect_of_a_future_number", "it changes the forecast by 0 on average"),
        ("Restless", "fit_twice_gives_the_same", "a second fit on other data must give the forecast of a new model"),
        ("Headstrong", "fit_leaves_params_and_frame", "fit must not change parameters, but changed lags"),
    ],
)
def test_a_broken_model_is_caught_by_name_and_rule(installed: Path, model: str, rule: str, said: str) -> None:
    rows = in_a_child(installed, model, rule, "dummy_forecasts.broken")["rows"]
    ((name, _, outcome, reason),) = rows
    assert (name, outcome) == (model, "failed")
    assert reason.startswith(f"{model} breaks {rule} (")
    assert said in reason
