"""Mutation testing: change the code on purpose, one mutant at a time, and check that the tests fail (`make mutants`).

The mutants are listed in tests/mutants/*.yaml; README.md there describes the format. Each worker has a copy of the project in
a temporary folder: the mutant is written there, its tests run, and the copy is restored. This process imports the third-party
libraries once; each test runs in a fork of it, which saves their import time.
"""

from __future__ import annotations

import argparse
import compileall
import gc
import importlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatch
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from py_compile import PycInvalidationMode
from types import ModuleType
from typing import Any

from edits import Edit, GoneError, StaleError

PROJECT = Path(__file__).resolve().parents[2]
SECONDS = 300  # time limit of one test; a mutant on which it hangs is unproven
HUNG = -1  # in place of an exit status
FAILED = 1  # pytest's exit status when tests ran and failed; others mean that they did not run
PRELOAD_FROM = 10  # tests; for fewer, importing everything takes longer than it saves
PRELOAD = """
    pytest hypothesis numpy pandas pyarrow narwhals scipy.stats scipy.optimize scipy.signal scipy.linalg numba joblib
    threadpoolctl safetensors.numpy matplotlib.figure matplotlib.pyplot tqdm yaml torch pytorch_lightning
    sklearn.linear_model sklearn.ensemble sklearn.pipeline sklearn.preprocessing sklearn.base
    statsmodels.api statsmodels.tsa.api statsmodels.tsa.statespace.api optuna optuna.importance sqlalchemy
""".split()
ENVIRONMENT = {
    **dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"], "1"),
    "MPLBACKEND": "Agg",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
}
KEYS = {"name", "tests", "symbol", "file", "old", "new", "content", "edits"}


@dataclass(frozen=True)
class Mutant:
    """Edits that break one rule, and the tests that have to fail on them."""

    name: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]

    def changed(self, root: Path) -> dict[Path, str]:
        """The files to write, with their new text."""
        texts: dict[Path, str] = {}
        for edit in self.edits:
            path = edit.path(root)
            text = texts[path] if path in texts else path.read_text("utf-8") if path.is_file() else None
            texts[path] = edit.apply(text)
        return texts


@dataclass(frozen=True)
class Outcome:
    """The verdict on one mutant: all but `caught` are errors."""

    name: str
    verdict: str
    reason: str = ""
    seconds: float = 0.0

    def print(self) -> None:
        """Print a line of the table."""
        reason = f"\n{'':18}{self.reason}" if self.reason else ""
        print(f"{self.verdict:<9}{self.seconds:6.1f} s  {self.name}{reason}", flush=True)


@dataclass(frozen=True)
class Run:
    """Tests to run in one child process, without writing byte code where the sources are mutated."""

    tests: tuple[str, ...]
    kernels_cache: Path | None = None
    write_bytecode: bool = False


Job = Callable[[Path], Generator[Run, tuple[int, str], Any]]
"""Given a copy of the project, yields what to run there, receives exit status and output, and returns its findings."""


def main(arguments: list[str] | None = None) -> int:
    """Judge the selected mutants and print a table; the exit status is 0 if all were caught."""
    options = command_line().parse_args(arguments)
    try:
        mutants = read_all(options.root / "tests" / "mutants", options.only)
    except ValueError as error:
        print(error)
        return 1
    if not mutants:
        print(f"0 mutants{' match ' + ' '.join(options.only) if options.only else ''}")
        return 1
    unfit = [outcome for outcome in (fit(mutant, options.root) for mutant in mutants) if outcome]
    for outcome in unfit:
        outcome.print()
    if options.dry:
        print(f"{len(mutants)} mutants: {len(mutants) - len(unfit)} can be applied, {len(unfit)} cannot")
        return 1 if unfit else 0
    names = {outcome.name for outcome in unfit}
    verdicts = Counter(outcome.verdict for outcome in unfit)
    status = judge_all([mutant for mutant in mutants if mutant.name not in names], options.root, options.jobs, verdicts)
    print(f"{len(mutants)} mutants: " + ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items()))
    return 1 if status or set(verdicts) != {"caught"} else 0


def command_line() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(prog="tests/mutants/run.py", description="Check that tests fail on each mutant.")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="names of mutants; * matches any letters")
    parser.add_argument("--jobs", type=int, default=2, help="number of workers (2)")
    parser.add_argument("--dry", action="store_true", help="only check that the mutants can be applied")
    parser.add_argument("--root", type=Path, default=PROJECT, help="the project (the one this file is in)")
    return parser


def read_all(folder: Path, only: Iterable[str] = ()) -> list[Mutant]:
    """The mutants of all YAML files whose names match."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    entries = chain.from_iterable(yaml.load(path.read_text("utf-8"), loader) or [] for path in sorted(folder.glob("*.yaml")))
    mutants = [read(entry) for entry in entries]
    repeated = [name for name, count in Counter(mutant.name for mutant in mutants).items() if count > 1]
    if repeated:
        raise ValueError(f"names of mutants must be unique, and these are repeated: {', '.join(repeated)}")
    return [mutant for mutant in mutants if not only or any(fnmatch(mutant.name, pattern) for pattern in only)]


def read(entry: dict[str, Any]) -> Mutant:
    """One mutant of a YAML file."""
    edits = []
    for fields in entry.get("edits", [entry]):
        target, new = fields.get("symbol", fields.get("file")), fields.get("new", fields.get("content"))
        if not target or new is None or ("content" in fields) == ("old" in fields) or set(entry) - KEYS:
            raise ValueError(f"a mutant must have symbol or file, and old and new (or content), got {entry}")
        edits.append(Edit(target, fields.get("old"), new))
    return Mutant(entry["name"], tuple(edits), tuple(entry.get("tests", ())))


def fit(mutant: Mutant, root: Path) -> Outcome | None:
    """The verdict on a mutant that cannot be judged, None for others."""
    try:
        mutant.changed(root)
    except GoneError as error:
        return Outcome(mutant.name, "gone", str(error))
    except StaleError as error:
        return Outcome(mutant.name, "stale", str(error))
    return None if mutant.tests else Outcome(mutant.name, "unproven", "no tests are listed")


def judge_all(mutants: list[Mutant], root: Path, workers: int, verdicts: Counter[str]) -> int:
    """Run the tests without mutants, then on each one; prints and counts the verdicts."""
    by_file = defaultdict(list)
    for test in dict.fromkeys(test for mutant in mutants for test in mutant.tests):
        by_file[test.partition("::")[0]].append(test)
    if not by_file:
        return 1
    os.environ.update(ENVIRONMENT)
    for name in [name for name in os.environ if name.startswith(("GIT_", "PYTEST_ADDOPTS", "PYTEST_XDIST"))]:
        del os.environ[name]
    if sum(map(len, by_file.values())) >= PRELOAD_FROM:
        preload()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies = [copy_project(root, Path(folder, str(n), "project")) for n in range(min(workers, len(mutants)))]
        print(f"{len(mutants)} mutants, {len(copies)} workers; first their tests without mutants", flush=True)
        failures = [output for output in run_jobs([sound(tests) for tests in by_file.values()], copies) if output]
        if failures:
            print(*failures, "the tests above must pass without mutants: repair them first", sep="\n")
            return 1
        for outcome in run_jobs([judge(mutant) for mutant in mutants], copies):
            outcome.print()
            verdicts[outcome.verdict] += 1
    return 0


def preload() -> None:
    """Import third-party libraries, which the children inherit; nothing of the project, which the mutants change."""
    for name in PRELOAD:
        if find_spec(name.partition(".")[0]):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()


def copy_project(root: Path, target: Path) -> Path:
    """A repository of all files that git does not ignore, with their byte code and the compiled kernels."""
    listed = git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    paths = [root / name for name in listed.split("\0") if name]
    for path in [*paths, *root.glob("deepforecast/kernels/**/__pycache__/*.nb[ic]")]:
        if path.is_file():
            copied = target / path.relative_to(root)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, copied)
    git(target, "init", "-q")
    git(target, "add", "-A")
    # Byte code that is checked by the hash of its source is never stale, whatever the time stamps.
    compileall.compile_dir(target, quiet=2, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
    return target


def git(folder: Path, *arguments: str) -> str:
    """Run git in the folder."""
    command = ["git", "-c", "core.autocrlf=false", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def sound(tests: list[str]) -> Job:
    """Run the tests of one file without mutants; returns the output if they fail."""

    def job(copy: Path) -> Generator[Run, tuple[int, str], str]:
        status, output = yield Run(tuple(tests), write_bytecode=True)
        return output if status else ""

    return job


def judge(mutant: Mutant) -> Job:
    """Apply the mutant, check that each of its tests fails, and restore the copy."""

    def job(copy: Path) -> Generator[Run, tuple[int, str], Outcome]:
        begin = time.monotonic()
        texts = mutant.changed(copy)
        originals = {path: path.read_bytes() if path.exists() else None for path in texts}
        cache = copy.with_name("kernels") if any("kernels" in path.parts for path in texts) else None
        verdict, reason = "caught", ""
        try:
            for path, text in texts.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, "utf-8", newline="")
            for test in mutant.tests:
                verdict, reason = verdict_on(test, *(yield Run((test,), cache)))
                if verdict != "caught":
                    break
        finally:
            for path, content in originals.items():
                path.unlink() if content is None else path.write_bytes(content)
            git(copy, "clean", "-qfd")
            if cache:
                shutil.rmtree(cache, ignore_errors=True)
        return Outcome(mutant.name, verdict, reason, time.monotonic() - begin)

    return job


def verdict_on(test: str, status: int, output: str) -> tuple[str, str]:
    """Verdict and reason from pytest's exit status for one test with the mutant applied."""
    if status == FAILED:
        return "caught", ""
    if status == 0:
        return "survived", f"{test} passes with the mutant"
    if status == HUNG:
        return "unproven", f"{test} did not end within {SECONDS} s"
    return "unproven", f"{test} did not run (pytest's exit status {status}): {output.strip()[-300:]}"


@dataclass
class Worker:
    """A copy of the project, the job that uses it, and the child process that runs its tests."""

    copy: Path
    job: Generator[Run, tuple[int, str], Any] | None = None
    pid: int = 0
    deadline: float = 0.0
    finished: list[Any] = field(default_factory=list)

    @property
    def log(self) -> Path:
        """Where the child writes."""
        return self.copy.with_name("log")

    def begin(self, job: Job) -> None:
        """Start a job."""
        self.job = job(self.copy)
        self._go_on(None)

    def poll(self) -> None:
        """Go on with the job if the child has ended; end it at its deadline."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            self._end_group()
            self._go_on((os.waitstatus_to_exitcode(status), self._output()))
        elif time.monotonic() > self.deadline:
            self.kill()
            self._go_on((HUNG, self._output()))

    def kill(self) -> None:
        """End the child and whatever it started."""
        self._end_group()
        os.waitpid(self.pid, 0)

    def _go_on(self, answer: tuple[int, str] | None) -> None:
        assert self.job is not None
        try:
            run = self.job.send(answer)
        except StopIteration as stop:
            self.finished.append(stop.value)
            self.job = None
        else:
            self.pid = fork(run, self.copy, self.log)
            self.deadline = time.monotonic() + SECONDS * len(run.tests)

    def _end_group(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def _output(self) -> str:
        return self.log.read_text("utf-8", errors="replace")


def run_jobs(jobs: list[Job], copies: list[Path]) -> Iterator[Any]:
    """Run the jobs, one per copy at a time, and yield what they return."""
    queue = iter(jobs)
    workers = [Worker(copy) for copy in copies]
    try:
        while True:
            for worker in workers:
                if worker.job:
                    worker.poll()
                yield from worker.finished
                worker.finished.clear()
                if not worker.job and (job := next(queue, None)):
                    worker.begin(job)
            if not any(worker.job for worker in workers):
                return
            time.sleep(0.01)
    finally:
        for worker in workers:
            if worker.job:
                worker.kill()
                worker.job.close()


def fork(run: Run, copy: Path, log: Path) -> int:
    """Fork a child that runs pytest in the copy; returns its process id."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return pid
    status = 3  # pytest's own for internal errors
    try:
        os.setsid()
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, 1)
        os.dup2(file, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        status = run_tests(run, copy)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


def run_tests(run: Run, copy: Path) -> int:
    """Run pytest in this process, with the copy in place of the installed package; returns its exit status."""
    os.chdir(copy)
    sys.path[0] = str(copy)  # in place of this file's folder
    sys.modules["__main__"] = ModuleType("__main__")  # processes that a test spawns must not import this file
    sys.argv = ["pytest"]
    os.environ["PYTHONPATH"] = str(copy)
    if not run.write_bytecode:
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    if run.kernels_cache:
        os.environ["NUMBA_CACHE_DIR"] = str(run.kernels_cache)
        if "numba" in sys.modules:
            sys.modules["numba"].config.reload_config()
    import pytest

    base = copy.with_name("temporary")
    return int(pytest.main(["-x", "-q", "--no-header", "-p", "no:cacheprovider", f"--basetemp={base}", *run.tests]))


if __name__ == "__main__":
    sys.exit(main())
