"""Mutation testing: apply one small bug at a time and check that the tests fail (`make mutants`).

The mutants are listed in tests/mutants/*.yaml; README.md there describes the format. Each worker
has a copy of the project in a temporary folder: the mutant is written there, its tests run, and the
copy is restored. This process imports the third-party libraries once; each test runs in a fork of
it, which saves their import time.
"""

from __future__ import annotations

import argparse
import ast
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
import traceback
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

PROJECT = Path(__file__).resolve().parents[2]
SECONDS = 300  # time limit of one test; a mutant on which it hangs is unproven
HUNG = -1  # in place of an exit status
FAILED = 1  # pytest's exit status when tests ran and failed; others mean that they did not run
PRELOAD_FROM = 10  # tests; for fewer, importing everything takes longer than it saves
# fmt: off
PRELOAD = [
    *("pytest", "hypothesis", "numpy", "pandas", "pyarrow", "narwhals", "numba", "joblib", "tqdm"),
    *("threadpoolctl", "yaml", "scipy.stats", "scipy.optimize", "scipy.signal", "scipy.linalg"),
    *("torch", "safetensors.torch", "pytorch_lightning", "matplotlib.figure", "matplotlib.pyplot"),
    *("sklearn.base", "sklearn.linear_model", "sklearn.ensemble", "sklearn.pipeline"),
    *("sklearn.preprocessing", "statsmodels.api", "statsmodels.tsa.api"),
    *("statsmodels.tsa.statespace.api", "optuna", "optuna.importance", "sqlalchemy"),
]
# fmt: on
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
ENVIRONMENT = {
    **dict.fromkeys(THREADS, "1"),  # a process with threads cannot be forked safely
    "MPLBACKEND": "Agg",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
}
KEYS = {"name", "tests", "symbol", "file", "old", "new", "content", "edits"}
Span = tuple[int, int]  # start and end of a piece of text, in characters


class GoneError(Exception):
    """The symbol, or its file, does not exist."""


class StaleError(Exception):
    """The text to replace does not occur exactly once."""


@dataclass(frozen=True)
class Edit:
    """Replace `old` by `new` in a symbol or another file; without `old`, `new` is a new file."""

    target: str
    old: str | None
    new: str

    @property
    def is_symbol(self) -> bool:
        """Whether the target is a symbol (module:name), not a path."""
        return ":" in self.target

    def path(self, root: Path) -> Path:
        """The file to change."""
        if not self.is_symbol:
            return root / self.target
        stem = root / self.target.partition(":")[0].replace(".", "/")
        return stem / "__init__.py" if stem.is_dir() else stem.with_suffix(".py")

    def apply(self, text: str | None) -> str:
        """The changed text of the file, which is None where there is no such file."""
        if self.old is None:
            if text is not None:
                raise StaleError(f"{self.target} exists already, and the mutant is to add it")
            return self.new
        if text is None:
            raise GoneError(f"{self.target.partition(':')[0]} does not exist")
        spans = (
            symbol_spans(text, self.target.partition(":")[2])
            if self.is_symbol
            else [(0, len(text))]
        )
        if not spans:
            raise GoneError(f"{self.target} does not exist")
        return replace_once(text, spans, self.old, self.new, self.target)


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
            text = (
                texts[path]
                if path in texts
                else path.read_text("utf-8")
                if path.is_file()
                else None
            )
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
    """Tests to run in one child process; no byte code is written from mutated sources."""

    tests: tuple[str, ...]
    kernels_cache: Path | None = None
    mutated: bool = True


Job = Callable[[Path], Generator[Run, tuple[int, str], Any]]
"""Yields what to run in a copy, receives exit status and output, and returns its findings."""


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
        applied = len(mutants) - len(unfit)
        print(f"{len(mutants)} mutants: {applied} can be applied, {len(unfit)} cannot")
        return 1 if unfit else 0
    names = {outcome.name for outcome in unfit}
    verdicts = Counter(outcome.verdict for outcome in unfit)
    fitting = [mutant for mutant in mutants if mutant.name not in names]
    if fitting and not judge_all(fitting, options.root, options.jobs, verdicts):
        return 1
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    user, system = os.times()[2:4]
    print(f"{user + system:.0f} s of CPU time")
    print(f"{len(mutants)} mutants: {counts}")
    return 0 if set(verdicts) == {"caught"} else 1


def command_line() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(
        prog="tests/mutants/run.py", description="Check that tests fail on each mutant."
    )
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="NAME",
        help="names of mutants; * matches any letters",
    )
    parser.add_argument("--jobs", type=int, default=2, help="number of workers (2)")
    parser.add_argument(
        "--dry", action="store_true", help="only check that the mutants can be applied"
    )
    parser.add_argument(
        "--root", type=Path, default=PROJECT, help="the project (the one this file is in)"
    )
    return parser


def read_all(folder: Path, only: Iterable[str] = ()) -> list[Mutant]:
    """The mutants of all YAML files whose names match."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    entries = chain.from_iterable(
        yaml.load(path.read_text("utf-8"), loader) or [] for path in sorted(folder.glob("*.yaml"))
    )
    mutants = [read(entry) for entry in entries]
    repeated = [
        name for name, count in Counter(mutant.name for mutant in mutants).items() if count > 1
    ]
    if repeated:
        raise ValueError(f"names of mutants must be unique, got twice: {', '.join(repeated)}")
    return [
        mutant
        for mutant in mutants
        if not only or any(fnmatch(mutant.name, pattern) for pattern in only)
    ]


def read(entry: dict[str, Any]) -> Mutant:
    """One mutant of a YAML file."""
    edits = []
    for fields in entry.get("edits", [entry]):
        target, new = (
            fields.get("symbol", fields.get("file")),
            fields.get("new", fields.get("content")),
        )
        if (
            not target
            or new is None
            or ("content" in fields) == ("old" in fields)
            or set(entry) - KEYS
        ):
            raise ValueError(
                f"a mutant must have symbol or file, and old and new or content, got {entry}"
            )
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


def symbol_spans(text: str, name: str) -> list[Span]:
    """Where the symbol is defined, decorators included; no name: outside of functions and classes.

    A name defined several times (overloads, the branches of an `if`) has several spans.
    """
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    spans = [
        (starts[first - 1], starts[node.end_lineno or first])
        for qualified_name, first, node in definitions(ast.parse(text))
        if qualified_name == name or (not name and "." not in qualified_name)
    ]
    if name:
        return spans
    edges = [0, *(edge for span in spans for edge in span), len(text)]
    return list(zip(edges[::2], edges[1::2], strict=True))


def definitions(tree: ast.AST, prefix: str = "") -> list[tuple[str, int, ast.stmt]]:
    """Qualified name, first line and node of each function and class not inside a function."""
    found = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found.append((prefix + node.name, first, node))
            if isinstance(node, ast.ClassDef):
                found += definitions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.stmt | ast.ExceptHandler):
            found += definitions(node, prefix)
    return found


def replace_once(text: str, spans: list[Span], old: str, new: str, target: str) -> str:
    """Replace the only occurrence of `old` in the spans.

    `old` and `new` are written without the indentation of the source. An empty `new` for complete
    lines deletes them.
    """
    matches = {match for span in spans for match in occurrences(text, span, old)}
    if len(matches) != 1:
        count = "not found" if not matches else f"found {len(matches)} times"
        raise StaleError(f"`old` must occur once in {target}, and is {count}: {old}")
    ((start, end, indent, at_line_start),) = matches
    replacement = indented(new, indent, at_line_start)
    if not new and at_line_start and text[end : end + 1] == "\n":
        end += 1
    if text[start:end] == replacement:
        raise StaleError(f"`old` and `new` are the same in {target}")
    return text[:start] + replacement + text[end:]


def occurrences(text: str, span: Span, old: str) -> list[tuple[int, int, str, bool]]:
    """Start, end and indentation of each occurrence, and whether it starts a line."""
    first_line = old.split("\n", 1)[0]
    fragment = first_line.lstrip(" ")
    own_indent = len(first_line) - len(fragment)
    found = []
    position = text.find(fragment, *span)
    while position >= 0:
        line_start = text.rfind("\n", 0, position) + 1
        line = text[line_start:]
        width = len(line) - len(line.lstrip(" "))
        indent = " " * (width - own_indent)
        at_line_start = position == line_start + width
        start = line_start if at_line_start else position
        raw = indented(old, indent, at_line_start)
        if (
            own_indent <= (width if at_line_start else 0)
            and text.startswith(raw, start)
            and start + len(raw) <= span[1]
        ):
            found.append((start, start + len(raw), indent, at_line_start))
        position = text.find(fragment, position + 1, span[1])
    return found


def indented(snippet: str, indent: str, with_first_line: bool) -> str:
    """The snippet with every line indented, blank lines and perhaps the first one excepted."""
    lines = snippet.split("\n")
    return "\n".join(
        indent + line if line and (i or with_first_line) else line for i, line in enumerate(lines)
    )


def judge_all(mutants: list[Mutant], root: Path, workers: int, verdicts: Counter[str]) -> bool:
    """Print and count the verdict on each mutant; False if tests fail without mutants."""
    by_file = defaultdict(list)
    for test in dict.fromkeys(test for mutant in mutants for test in mutant.tests):
        by_file[test.partition("::")[0]].append(test)
    os.environ.update(ENVIRONMENT)
    for name in list(os.environ):
        if name.startswith(("GIT_", "PYTEST_ADDOPTS", "PYTEST_XDIST")):
            del os.environ[name]
    if sum(map(len, by_file.values())) >= PRELOAD_FROM:
        preload()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        count = min(workers, len(mutants))
        copies = [Path(folder, str(number), "project") for number in range(count)]
        copy_project(root, copies[0])
        for copy in copies[1:]:
            shutil.copytree(copies[0], copy)
        print(f"{len(mutants)} mutants; first their tests without mutants", flush=True)
        failures = 0
        for output in run_jobs([sound(tests) for tests in by_file.values()], copies):
            if output:
                print(output, flush=True)
                failures += 1
        if failures:
            print("the tests above must pass without mutants: repair them first")
            return False
        for outcome in run_jobs([judge(mutant) for mutant in mutants], copies):
            outcome.print()
            verdicts[outcome.verdict] += 1
    return True


def preload() -> None:
    """Import third-party libraries for all children; nothing of the project: it is mutated."""
    for name in PRELOAD:
        if find_spec(name.partition(".")[0]):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()


def copy_project(root: Path, target: Path) -> None:
    """Make a repository of the files git does not ignore, with byte code and compiled kernels."""
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
    compileall.compile_dir(
        target / "deepforecast", quiet=2, invalidation_mode=PycInvalidationMode.CHECKED_HASH
    )


def git(folder: Path, *arguments: str) -> str:
    """Run git in the folder."""
    command = ["git", "-c", "core.autocrlf=false", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def sound(tests: list[str]) -> Job:
    """Run the tests of one file without mutants; returns the output if they fail."""

    def job(copy: Path) -> Generator[Run, tuple[int, str], str]:
        status, output = yield Run(tuple(tests), mutated=False)
        return output if status else ""

    return job


def judge(mutant: Mutant) -> Job:
    """Apply the mutant, check that each of its tests fails, and restore the copy."""

    def job(copy: Path) -> Generator[Run, tuple[int, str], Outcome]:
        begin = time.monotonic()
        texts = mutant.changed(copy)
        originals = {path: path.read_bytes() if path.exists() else None for path in texts}
        cache = (
            copy.with_name("kernels") if any("kernels" in path.parts for path in texts) else None
        )
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
    return (
        "unproven",
        f"{test} did not run (pytest's exit status {status}): {output.strip()[-300:]}",
    )


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
        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background jobs
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, 1)
        os.dup2(file, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        status = run_tests(run, copy)
    except Exception:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def run_tests(run: Run, copy: Path) -> int:
    """Run pytest in this process, with the copy in place of the installed package."""
    os.chdir(copy)
    sys.path[0] = str(copy)  # in place of this file's folder
    sys.modules["__main__"] = ModuleType("__main__")  # spawned processes would import this file
    sys.argv = ["pytest"]
    os.environ["PYTHONPATH"] = str(copy)
    if run.mutated:
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    if run.kernels_cache:
        os.environ["NUMBA_CACHE_DIR"] = str(run.kernels_cache)
        if "numba" in sys.modules:
            sys.modules["numba"].config.reload_config()
    import pytest

    base = copy.with_name("temporary")
    options = ["-x"] if run.mutated else []
    options += ["-q", "--no-header", "-p", "no:cacheprovider", f"--basetemp={base}"]
    return int(pytest.main([*options, *run.tests]))


if __name__ == "__main__":
    sys.exit(main())
