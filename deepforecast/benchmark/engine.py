"""Running a suite: jobs are asked of the warm server, rows written down one by one, and a run that was stopped goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deepforecast.benchmark.cutting import WHOLE, Cut, adjusted
from deepforecast.benchmark.folder import append, settle, written_to
from deepforecast.benchmark.peer import Places
from deepforecast.benchmark.rows import Row, read
from deepforecast.benchmark.suite import Suite, load
from deepforecast.core.progress import progress_bar
from deepforecast.data.integers import validate_integer
from deepforecast.errors import DataError, DependencyError, ParameterError, format_value
from deepforecast.evaluation.surroundings import surroundings

AGAIN = ("lost", "not run")  # statuses that a later call may better


@dataclass(frozen=True)
class Run:
    """The rarer options: `jobs` side by side, `retry` of those that failed or took too long, where peers are, a bar or none.

    `rehearse`: fit each model once on a few rows before all jobs, so that no job compiles or imports; without it the first
    ones may. No model takes longer over it than its job may, all together not over 300 s, and each row says what it took.
    """

    jobs: int = 1
    retry: bool = False
    peers: Places | None = None
    progress: bool | None = None
    rehearse: bool = True

    def __post_init__(self) -> None:
        validate_integer(self.jobs, "jobs")


USUAL = Run()


def run(
    suite: Suite | str | Path,
    folder: str | Path,
    *,
    cut: Cut = WHOLE,
    options: Run = USUAL,
) -> list[Row]:
    """Run a suite, by its name, path or as it is, into `folder`; the rows of its jobs.

    What is in the folder already is not run again, so that the same call goes on where one was stopped.
    """
    if not hasattr(os, "fork"):
        raise DependencyError("Benchmarks fork a process for each job; this system cannot. Run them under Linux or macOS.")
    asked = adjusted(suite if isinstance(suite, Suite) else load(suite), cut)
    place = Path(folder)
    with written_to(place) as results:
        rows = {row.job: row for row in read(place)} if results.tell() else {}
        with served(asked, place, options) as server:
            settle(place, asked)  # a suite that the server refuses leaves nothing that keeps out the one mended
            wanted = server.jobs
            todo = [job["name"] for job in wanted if _to_run(rows.get(job["name"]), job, options.retry)]
            around = _around(options.jobs)
            if todo and options.rehearse:
                around["machine"]["rehearsal"] = f"{server.rehearse(todo, options.progress):.1f} s before the first job"
            with progress_bar(len(todo), "jobs", options.progress) as tick:
                for row in server.rows(todo, options.jobs):
                    row = replace(row, versions={**around["versions"], **row.versions}, machine=around["machine"])
                    append(results, row)
                    rows[row.job] = row
                    tick(1)
    return [rows[job["name"]] for job in wanted if job["name"] in rows]


@contextmanager
def served(suite: Suite, folder: Path, options: Run) -> Iterator[Client]:
    """A warm server for the suite; it and all its jobs end with the block."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-P", "-m", "deepforecast.benchmark.server"]
    with tempfile.TemporaryFile() as words:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=words, env=environment, bufsize=0
        )
        try:
            yield Client(process, words, suite, folder, options)
        finally:
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]  # piped
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Client:
    """The owner's end of a server."""

    def __init__(self, process: Any, words: Any, suite: Suite, folder: Path, options: Run) -> None:
        self.process, self.words = process, words
        peers = options.peers
        self._say({
            "suite": suite.to_mapping(), "folder": str(folder.resolve()), "together": options.jobs,
            "peers": None if peers is None else [str(peers.adapters.resolve()), str(peers.environments.resolve())],
        })  # fmt: skip
        found = self._answer()
        if "error" in found:
            raise ParameterError(f"The suite cannot be run: {found['error']}")
        self.jobs: list[dict[str, Any]] = found["jobs"]

    def rehearse(self, names: Sequence[str], progress: bool | None) -> float:
        """Have each model of these jobs fitted once on a few rows, so that no job compiles or imports; seconds it took."""
        self._say({"rehearse": list(names)})
        with progress_bar(self._answer()["models"], "models compiled and imported", progress) as tick:
            while "seconds" not in (said := self._answer()):
                tick(1)
        return float(said["seconds"])

    def rows(self, names: Sequence[str], together: int) -> Iterator[Row]:
        """Have jobs run, so many at a time; their rows as they come."""
        begun: dict[str, str] = {}
        waiting = list(names)
        while waiting or begun:
            while waiting and len(begun) < together:
                name = waiting.pop(0)
                begun[name] = datetime.now(UTC).isoformat(timespec="seconds")
                self._say({"run": name})
            row = Row.of(self._answer())
            yield replace(row, started=begun.pop(row.job))

    def _say(self, what: Mapping[str, Any]) -> None:
        try:
            self.process.stdin.write(json.dumps(what).encode() + b"\n")
        except BrokenPipeError as error:
            raise self._gone() from error

    def _answer(self) -> dict[str, Any]:
        line = bytearray()
        while not line.endswith(b"\n"):
            held = self.process.stdout.readline()
            if not held:
                raise self._gone()
            line += held
        found: dict[str, Any] = json.loads(line)
        return found

    def _gone(self) -> DataError:
        self.process.wait(10)
        self.words.seek(0)
        last = [line for line in self.words.read()[-4000:].decode("utf-8", "replace").splitlines() if line.strip()]
        told = format_value(last[-1], 500) if last else "nothing"
        return DataError(f"The benchmark's server ended by itself; it last said: {told}. The same call goes on from here.")


def _to_run(row: Row | None, job: Mapping[str, Any], retry: bool) -> bool:
    if row is None or row.settings != job["settings"] or row.status in AGAIN:
        return True
    return retry and row.status != "ok"


def _around(jobs: int) -> dict[str, dict[str, str]]:
    found = surroundings()
    told = f"{jobs} at a time, load {os.getloadavg()[0]:.1f} when they began"
    return {"versions": found["versions"], "machine": {**found["machine"], "jobs": told}}
