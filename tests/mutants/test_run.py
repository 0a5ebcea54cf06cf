"""The runner of the mutants tells the caught from the surviving, on a toy project of one function and its tests.

And the patches that are here fit the code as it is: running them all takes minutes, seeing that they apply a second.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

CODE = "def double(x):\n    return 2 * x\n"
TESTS = """
import deepforecast

def test_double():
    assert deepforecast.double(3) == 6

def test_anything():
    assert deepforecast.double(0) == 0
"""
BREAK = """\
--- a/deepforecast/__init__.py
+++ b/deepforecast/__init__.py
@@ -1,2 +1,2 @@
 def double(x):
-    return 2 * x
+    return 3 * x
"""
PATCHES = {
    "caught": f"# test: tests/test_toy.py::test_double\nwhat a slip\n{BREAK}",
    "survived": f"# test: tests/test_toy.py::test_double\n# test: tests/test_toy.py::test_anything\n{BREAK}",
    "stale": f"# test: tests/test_toy.py::test_double\n{BREAK.replace('2 * x', '4 * x')}",
    "unproven": BREAK,
    "broken": f"# test: tests/test_toy.py::test_double\n{BREAK.replace('3 * x', '3 *')}",
}


@pytest.fixture(scope="module")
def runner() -> ModuleType:
    """run.py as a module: it lives among the tests, in no package."""
    spec = importlib.util.spec_from_file_location("mutants_run", Path(__file__).with_name("run.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a package, two tests, and no mutants."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # quicker
    for name in ("deepforecast", "tests/mutants"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "deepforecast" / "__init__.py").write_text(CODE)
    (tmp_path / "tests" / "test_toy.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


def add(toy: Path, *names: str) -> None:
    """Puts some of the patches into the toy project."""
    for name in names:
        (toy / "tests" / "mutants" / f"{name}.patch").write_text(PATCHES[name])


def test_no_mutants_is_said(runner: ModuleType, toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert runner.main(["--root", str(toy)]) == 0
    assert capsys.readouterr().out == "0 mutants: tests/mutants holds no patch yet\n"


def test_a_caught_mutant_is_well(runner: ModuleType, toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(toy, "caught", "survived")
    assert runner.main(["--root", str(toy), "--only", "cau*"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 mutants: 1 caught"
    assert (toy / "deepforecast" / "__init__.py").read_text() == CODE


def test_each_verdict(runner: ModuleType, toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(toy, *PATCHES)
    assert runner.main(["--root", str(toy), "--jobs", "2"]) == 1
    lines = capsys.readouterr().out.splitlines()
    said = {line.split()[-1]: line.split()[0] for line in lines[1:-1] if " s  " in line}
    assert said == {"caught": "caught", "survived": "survived", "stale": "stale", "unproven": "unproven", "broken": "unproven"}
    assert any("test_anything passes all the same" in line for line in lines)


@pytest.mark.parametrize("verdict", ["survived", "stale", "unproven", "broken"])
def test_any_other_verdict_alone_fails_the_run(runner: ModuleType, toy: Path, verdict: str) -> None:
    add(toy, verdict)
    assert runner.main(["--root", str(toy)]) == 1


def test_a_test_that_fails_anyway_proves_nothing(runner: ModuleType, toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(toy, "caught")
    (toy / "deepforecast" / "__init__.py").write_text("def double(x):\n    return x\n")
    assert runner.main(["--root", str(toy)]) == 1
    assert "do not pass on the package as it is" in capsys.readouterr().out


def test_a_name_that_matches_nothing_is_an_error(runner: ModuleType, toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(toy, "caught")
    assert runner.main(["--root", str(toy), "--only", "cought"]) == 1
    assert capsys.readouterr().out == "0 mutants match cought\n"


def test_a_hanging_test_has_not_failed(runner: ModuleType, toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "run_tests", lambda copy, tests: (runner.HUNG, ""))
    verdict, why = runner.verdict_of("tests/test_toy.py::test_double", toy)
    assert verdict == "unproven"
    assert "did not end within" in why


def test_a_hanging_test_is_ended(runner: ModuleType, toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "SECONDS", 0.2)
    (toy / "tests" / "test_toy.py").write_text("import time\ndef test_double():\n    time.sleep(60)\n")
    assert runner.run_tests(toy, ["tests/test_toy.py"])[0] == runner.HUNG


def test_every_patch_applies(runner: ModuleType) -> None:
    project = runner.PROJECT
    if shutil.which("git") is None or not (project / ".git").exists():
        pytest.skip("needs git and a checkout: patches are held against its files")
    patches = [mutant.path for mutant in runner.read_all(project / "tests" / "mutants", [])]
    stale = [path.stem for path in patches if runner.git(project, "apply", "--check", str(path), check=False).returncode]
    assert patches
    assert not stale, f"these patches no longer apply, make them anew: {' '.join(stale)}"
