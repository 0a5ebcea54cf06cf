"""The runner of the mutation tests on a toy project; and all mutants can be applied."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import yaml

RUNNER = Path(__file__).with_name("run.py")
CODE = '''"""A toy."""

FACTOR = 2


def double(x):
    if x is None:
        return None
    return FACTOR * x


class Number:
    def double(self):
        return double(self.x)

    def __init__(self, x):
        # FACTOR = 2
        self.x = x
'''
TESTS = """
import subprocess, sys, time
import deepforecast

def test_double():
    assert deepforecast.double(3) == 6

def test_zero():
    assert deepforecast.double(0) == 0

def test_in_another_process():
    program = "import deepforecast; assert deepforecast.double(3) == 6"
    subprocess.run([sys.executable, "-c", program], check=True)

def test_method():
    assert deepforecast.Number(2).double() == 4

def test_hangs():
    if deepforecast.double(3) != 6:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        open("../child", "w").write(str(child.pid))
        time.sleep(60)
"""
TEST_FILES = """
from pathlib import Path

def test_files():
    assert [path.name for path in Path("deepforecast").glob("*.py")] == ["__init__.py"]
"""
BREAK = {"symbol": "deepforecast:double", "old": "FACTOR * x", "new": "3 * x"}
DOUBLE = "tests/test_toy.py::test_double"
MUTANTS = {
    "caught": {**BREAK, "tests": [DOUBLE, "tests/test_toy.py::test_in_another_process"]},
    "caught_constant": {
        **BREAK,
        "symbol": "deepforecast:",
        "old": "FACTOR = 2",
        "new": "FACTOR = 4",
        "tests": [DOUBLE],
    },
    "caught_file": {
        "file": "deepforecast/double.py",
        "content": "slip = 1 +\n",
        "tests": ["tests/test_files.py"],
    },
    "survived": {**BREAK, "tests": [DOUBLE, "tests/test_toy.py::test_zero"]},
    "stale": {**BREAK, "old": "FACTOR * y", "tests": [DOUBLE]},
    "stale_repeated": {**BREAK, "old": "return", "tests": [DOUBLE]},
    "gone": {**BREAK, "symbol": "deepforecast:triple", "tests": [DOUBLE]},
    "gone_module": {**BREAK, "symbol": "deepforecast.triple:double", "tests": [DOUBLE]},
    "unproven": BREAK,
    "unproven_broken": {**BREAK, "new": "FACTOR *", "tests": [DOUBLE]},
}


def run(root: Path, *arguments: str, seconds: int | None = None) -> tuple[int, list[str]]:
    """Exit status and lines of the command, which is a process of its own because it forks."""
    program = f"import run; run.SECONDS = {seconds or 'run.SECONDS'}; raise SystemExit(run.main())"
    env = {**os.environ, "PYTHONPATH": str(RUNNER.parent)}
    command = [sys.executable, "-c", program, "--root", str(root), *arguments]
    child = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert not child.stderr
    return child.returncode, child.stdout.splitlines()


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A checkout with a package, its tests, and no mutants."""
    for folder in ("deepforecast", "tests/mutants"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "deepforecast/__init__.py").write_text(CODE)
    (tmp_path / "tests/test_toy.py").write_text(TESTS)
    (tmp_path / "tests/test_files.py").write_text(TEST_FILES)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


def add(toy: Path, *names: str) -> None:
    """Put these mutants into the toy project."""
    mutants = [{"name": name, **MUTANTS[name]} for name in names]
    (toy / "tests/mutants/toy.yaml").write_text(yaml.safe_dump(mutants, sort_keys=False))


def changed(old: str, new: str, symbol: str = "deepforecast:double") -> str:
    """The toy package after an edit."""
    program = (
        f"from run import Edit; print(Edit({symbol!r}, {old!r}, {new!r}).apply({CODE!r}), end='')"
    )
    return subprocess.check_output([sys.executable, "-c", program], cwd=RUNNER.parent, text=True)


def test_each_verdict(toy: Path) -> None:
    add(toy, *MUTANTS)
    status, lines = run(toy, "--jobs", "2")
    assert status == 1
    verdicts = {line.split()[-1]: line.split()[0] for line in lines if " s  " in line}
    assert verdicts == {name: name.partition("_")[0] for name in MUTANTS}
    assert "test_zero passes with the mutant" in "\n".join(lines)
    assert lines[-1].startswith("10 mutants: ")
    assert (toy / "deepforecast/__init__.py").read_text() == CODE
    assert not (toy / "deepforecast/double.py").exists()


def test_caught_mutants_exit_with_0(toy: Path) -> None:
    add(toy, "caught", "caught_constant", "survived")
    status, lines = run(toy, "--only", "cau*")
    assert (status, lines[-1]) == (0, "2 mutants: 2 caught")


@pytest.mark.parametrize("verdict", ["survived", "stale", "gone", "unproven"])
def test_any_other_verdict_alone_exits_with_1(toy: Path, verdict: str) -> None:
    add(toy, verdict)
    assert run(toy)[0] == 1


def test_dry_run_tests_nothing(toy: Path) -> None:
    add(toy, "survived", "unproven_broken")
    assert run(toy, "--dry") == (0, ["2 mutants: 2 can be applied, 0 cannot"])
    add(toy, "survived", "gone")
    assert run(toy, "--dry")[0] == 1


def test_a_test_that_fails_without_mutants_ends_the_run(toy: Path) -> None:
    add(toy, "caught")
    (toy / "deepforecast/__init__.py").write_text(CODE.replace("FACTOR = 2\n\n", "FACTOR = 5\n\n"))
    status, lines = run(toy)
    assert status == 1
    assert "must pass without mutants" in lines[-1]


def test_a_hanging_test_is_killed_with_its_children(toy: Path) -> None:
    mutant = {"name": "hangs", **BREAK, "tests": ["tests/test_toy.py::test_hangs"]}
    (toy / "tests/mutants/toy.yaml").write_text(yaml.safe_dump([mutant]))
    marker = toy / "child"
    (toy / "tests/test_toy.py").write_text(TESTS.replace("../child", str(marker)))
    status, lines = run(toy, seconds=10)
    assert status == 1
    assert any(line.endswith("test_hangs did not end within 10 s") for line in lines)
    child = int(marker.read_text())
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


def test_names_are_unique_and_matched(toy: Path) -> None:
    add(toy, "caught")
    assert run(toy, "--only", "cought") == (1, ["0 mutants match cought"])
    add(toy, "caught", "caught")
    assert run(toy, "--dry")[1] == ["names of mutants must be unique, got twice: caught"]


def test_unknown_keys_are_refused(toy: Path) -> None:
    mutant = {"name": "typo", **BREAK, "test": [DOUBLE]}
    (toy / "tests/mutants/toy.yaml").write_text(yaml.safe_dump([mutant]))
    assert run(toy, "--dry")[0] == 1


def test_snippets_are_written_without_indentation() -> None:
    old = "if x is None:\n    return None"
    assert changed(old=old, new="") == CODE.replace("    if x is None:\n        return None\n", "")
    expected = CODE.replace(
        "    if x is None:\n        return None\n", "    while x:\n        return None\n"
    )
    assert changed(old=old, new="while x:\n    return None") == expected
    method = changed(
        symbol="deepforecast:Number.double", old="return double(self.x)", new="if self:\n    pass"
    )
    assert method == CODE.replace(
        "        return double(self.x)\n", "        if self:\n            pass\n"
    )


def test_every_mutant_can_be_applied() -> None:
    status, lines = run(RUNNER.parents[2], "--dry")
    assert status == 0, "\n".join(lines)
