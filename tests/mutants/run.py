"""Break the package on purpose, one rule at a time, and see the rule's test fail: `make mutants`.

Each tests/mutants/<name>.patch is a unified diff whose head names the tests that have to fail on it, one a line:
`# test: tests/room/test_file.py::test_name`. The project is copied to a temporary folder; there the named tests have to
pass as the project is, and each of them has to fail with the patch applied. Exit status 1 if any mutant is not caught.
"""

from __future__ import annotations

import argparse
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
SECONDS = 300  # for one test; one that hangs on its mutant has not failed
HUNG = -1  # in the place of an exit status
FAILED = 1  # pytest's exit status for tests that ran and failed; others mean that they did not run


@dataclass(frozen=True)
class Mutant:
    """One patch, and the tests that have to fail on it."""

    path: Path
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """What came of one mutant: only `caught` is well."""

    mutant: Mutant
    verdict: str
    why: str = ""
    seconds: float = 0.0


def main(arguments: list[str] | None = None) -> int:
    """The command: judge the mutants asked for, print a table, and tell by the exit status whether all were caught."""
    options = command_line().parse_args(arguments)
    mutants = read_all(options.root / "tests" / "mutants", options.only)
    if not mutants:
        print("0 mutants" + (f" match {' '.join(options.only)}" if options.only else ": tests/mutants holds no patch yet"))
        return 1 if options.only else 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies = [copy_project(options.root, Path(folder, str(n))) for n in range(min(options.jobs, len(mutants)))]
        print(f"{len(mutants)} mutants, {len(copies)} at a time; first their tests on the package as it is", flush=True)
        if not sound(copies[0], mutants):
            return 1
        outcomes = [shown(outcome) for outcome in judge_all(mutants, copies)]
    counts = Counter(outcome.verdict for outcome in outcomes)
    print(f"{len(outcomes)} mutants: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return 0 if set(counts) == {"caught"} else 1


def command_line() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(prog="tests/mutants/run.py", description="See each mutant's test fail.")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="names of patches, with * for any letters")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time (2)")
    parser.add_argument("--root", type=Path, default=PROJECT, help="the project (the one this file is in)")
    return parser


def read_all(folder: Path, only: list[str]) -> list[Mutant]:
    """The patches of a folder with the tests each one names."""
    paths = [path for path in sorted(folder.glob("*.patch")) if not only or any(fnmatch(path.stem, name) for name in only)]
    return [Mutant(path, tuple(re.findall(r"^# test: *(\S.*?) *$", path.read_text("utf-8"), re.MULTILINE))) for path in paths]


def copy_project(root: Path, target: Path) -> Path:
    """The project's files as they stand, new ones too, in a repository of their own whose index remembers them."""
    listed = git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").stdout
    for name in filter(None, listed.split("\0")):
        if (root / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, target / name)
    git(target, "init", "-q")
    git(target, "add", "-A", "-f")
    return target


def sound(copy: Path, mutants: list[Mutant]) -> bool:
    """Whether the named tests pass without any patch: a failure that was there before proves nothing."""
    tests = list(dict.fromkeys(test for mutant in mutants for test in mutant.tests))
    status, output = run_tests(copy, tests) if tests else (0, "")
    if status != 0:
        print(output)
        print("the tests above do not pass on the package as it is: put that right first")
    return status == 0


def judge_all(mutants: list[Mutant], copies: list[Path]) -> Iterator[Outcome]:
    """Judge every mutant in a copy that no other uses meanwhile."""
    free: queue.SimpleQueue[Path] = queue.SimpleQueue()
    for copy in copies:
        free.put(copy)

    def in_a_free_copy(mutant: Mutant) -> Outcome:
        copy = free.get()
        try:
            return judge(mutant, copy)
        finally:
            free.put(copy)

    with ThreadPoolExecutor(len(copies)) as pool:
        yield from pool.map(in_a_free_copy, mutants)


def judge(mutant: Mutant, copy: Path) -> Outcome:
    """Apply the patch, see each of its tests fail, and restore the copy."""
    if not mutant.tests:
        return Outcome(mutant, "unproven", "its head has no line '# test: tests/...::test_name'")
    begin = time.monotonic()
    applied = git(copy, "apply", str(mutant.path.resolve()), check=False)
    if applied.returncode != 0:
        return Outcome(mutant, "stale", f"the patch no longer applies: {applied.stderr.strip()}")
    try:
        verdicts = (verdict_of(test, copy) for test in mutant.tests)
        verdict, why = next((found for found in verdicts if found[0] != "caught"), ("caught", ""))
    finally:
        git(copy, "checkout", "-q", "--", ".")
        git(copy, "clean", "-qfdx")
    return Outcome(mutant, verdict, why, time.monotonic() - begin)


def verdict_of(test: str, copy: Path) -> tuple[str, str]:
    """What one test made of the patch that is applied in `copy`."""
    status, output = run_tests(copy, [test])
    if status == FAILED:
        return "caught", ""
    if status == 0:
        return "survived", f"{test} passes all the same"
    if status == HUNG:
        return "unproven", f"{test} did not end within {SECONDS} s"
    return "unproven", f"{test} did not run (pytest's exit status {status}): {output.strip()[-300:]}"


def run_tests(copy: Path, tests: list[str]) -> tuple[int, str]:
    """pytest's exit status and output, with the copy's package in the place of the one that is installed."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", *tests]
    # Without byte code: a file changed twice in one second would be run as it was before.
    env = {**plain_environment(), "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    child = subprocess.Popen(command, cwd=copy, env=env, text=True, start_new_session=True, **pipes)
    try:
        output, _ = child.communicate(timeout=SECONDS * max(1, len(tests)))
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)  # with whatever it started
        return HUNG, child.communicate()[0]
    return child.returncode, output


def git(folder: Path, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run git in `folder`, and in no repository that the caller's environment may name."""
    command = ["git", "-c", "core.autocrlf=false", *arguments]
    return subprocess.run(command, cwd=folder, env=plain_environment(), check=check, capture_output=True, text=True)


def plain_environment() -> dict[str, str]:
    """The environment less what would point git or pytest elsewhere."""
    foreign = ("GIT_", "PYTEST_ADDOPTS", "PYTEST_XDIST")
    return {name: value for name, value in os.environ.items() if not name.startswith(foreign)}


def shown(outcome: Outcome) -> Outcome:
    """Prints the outcome's line of the table."""
    why = f"\n{'':18}{outcome.why}" if outcome.why else ""
    print(f"{outcome.verdict:<9}{outcome.seconds:6.1f} s  {outcome.mutant.path.stem}{why}", flush=True)
    return outcome


if __name__ == "__main__":
    sys.exit(main())
