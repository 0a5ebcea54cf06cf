"""Run a suite: jobs are sent to the server, their rows are written one by one, and a run can be resumed."""

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

from deepforecast.benchmark.job_results import Row, read_rows
from deepforecast.benchmark.peer import PeerPaths
from deepforecast.benchmark.run_folder import append_row, open_results, write_suite
from deepforecast.benchmark.suite import Suite, load_suite
from deepforecast.benchmark.suite_subset import FULL_SUITE, SuiteSubset, select_subset
from deepforecast.core.monitor import progress_bar
from deepforecast.errors import DataError, DependencyError, ParameterError, format_value, validate_integer
from deepforecast.evaluation.environment import describe_environment

RETRIED_STATUSES = ("lost", "not run")  # rerun by the next call


@dataclass(frozen=True)
class RunOptions:
    """Options of `run_suite`.

    Parameters
    ----------
    jobs : int, default 1
        Number of jobs to run in parallel.
    retry : bool, default False
        Whether to run jobs again that failed or exceeded a limit.
    peers : PeerPaths, optional
        Locations of the peer libraries. Defaults to those of the checkout.
    progress : bool, optional
        Whether to show a progress bar; None: in terminals and notebooks.
    rehearse : bool, default True
        Whether to fit each model once on a few rows before the first job, so that jobs neither
        compile kernels nor import libraries. The time for each model is limited by the sum of
        the time limits of its jobs, the total by 300 s; rows report it in `machine`.
    """

    jobs: int = 1
    retry: bool = False
    peers: PeerPaths | None = None
    progress: bool | None = None
    rehearse: bool = True

    def __post_init__(self) -> None:
        validate_integer(self.jobs, "jobs")


DEFAULT_OPTIONS = RunOptions()


def run_suite(
    suite: Suite | str | Path,
    folder: str | Path,
    *,
    cut: SuiteSubset = FULL_SUITE,
    options: RunOptions = DEFAULT_OPTIONS,
) -> list[Row]:
    """Run a suite.

    Jobs with a row in the folder are not run again: repeating a call resumes an interrupted run.

    Parameters
    ----------
    suite : Suite, str or Path
        The suite, its name, or the path of its YAML file.
    folder : str or Path
        Folder of the run, created if necessary.
    cut : SuiteSubset, default FULL_SUITE
        The part of the suite to run.
    options : RunOptions
        Parallel jobs, retries, peers, progress bar and rehearsal.

    Returns
    -------
    list of Row
        Rows of the jobs of the suite.

    Raises
    ------
    ParameterError
        If the suite is invalid, or the folder contains the run of another suite.
    DependencyError
        If the system has no `os.fork` (Windows).
    SaveError
        If the folder cannot be written or is used by another run.
    """
    if not hasattr(os, "fork"):
        raise DependencyError("Benchmarks need os.fork, which this system does not provide.", hint="Use Linux or macOS.")
    subset_suite = select_subset(suite if isinstance(suite, Suite) else load_suite(suite), cut)
    run_folder = Path(folder)
    with open_results(run_folder) as results_file:
        rows = {row.job: row for row in read_rows(run_folder)} if results_file.tell() else {}
        with start_server(subset_suite, run_folder, options) as server:
            # Written only after the server has accepted the suite: a corrected suite can use the same folder.
            write_suite(run_folder, subset_suite)
            jobs = server.jobs
            pending = [job["name"] for job in jobs if _needs_run(rows.get(job["name"]), job, options.retry)]
            environment = _run_environment(options.jobs)
            if pending and options.rehearse:
                environment["machine"]["rehearsal"] = f"{server.rehearse(pending, options.progress):.1f} s before the first job"
            with progress_bar(len(pending), "jobs", options.progress) as tick:
                for row in server.rows(pending, options.jobs):
                    row = replace(row, versions={**environment["versions"], **row.versions}, machine=environment["machine"])
                    append_row(results_file, row)
                    rows[row.job] = row
                    tick(1)
    return [rows[job["name"]] for job in jobs if job["name"] in rows]


@contextmanager
def start_server(suite: Suite, folder: Path, options: RunOptions) -> Iterator[ServerClient]:
    """Start a server for the suite; the server and its jobs end with the block."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-P", "-m", "deepforecast.benchmark.server"]
    with tempfile.TemporaryFile() as stderr_file:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr_file, env=environment, bufsize=0
        )
        try:
            yield ServerClient(process, stderr_file, suite, folder, options)
        finally:
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]  # piped
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class ServerClient:
    """Client of a server process.

    Parameters
    ----------
    process : subprocess.Popen
        The server.
    stderr_file : file
        Its stderr.
    suite : Suite
        Suite to run.
    folder : Path
        Folder of the run.
    options : RunOptions
        Parallel jobs and peers.

    Raises
    ------
    ParameterError
        If the server refuses the suite.
    """

    def __init__(self, process: Any, stderr_file: Any, suite: Suite, folder: Path, options: RunOptions) -> None:
        self.process, self.stderr_file = process, stderr_file
        peers = options.peers
        self._send({
            "suite": suite.to_mapping(), "folder": str(folder.resolve()), "together": options.jobs,
            "peers": None if peers is None else [str(peers.adapters.resolve()), str(peers.environments.resolve())],
        })  # fmt: skip
        answer = self._receive()
        if "error" in answer:
            raise ParameterError(f"The suite cannot be run: {answer['error']}")
        self.jobs: list[dict[str, Any]] = answer["jobs"]

    def rehearse(self, names: Sequence[str], progress: bool | None) -> float:
        """Rehearse the models of these jobs; return the seconds it took."""
        self._send({"rehearse": list(names)})
        with progress_bar(self._receive()["models"], "models compiled and imported", progress) as tick:
            while "seconds" not in (answer := self._receive()):
                tick(1)
        return float(answer["seconds"])

    def rows(self, names: Sequence[str], n_parallel: int) -> Iterator[Row]:
        """Run jobs, `n_parallel` at a time; yield their rows as they finish."""
        started: dict[str, str] = {}
        pending = list(names)
        while pending or started:
            while pending and len(started) < n_parallel:
                name = pending.pop(0)
                started[name] = datetime.now(UTC).isoformat(timespec="seconds")
                self._send({"run": name})
            row = Row.from_mapping(self._receive())
            yield replace(row, started=started.pop(row.job))

    def _send(self, request: Mapping[str, Any]) -> None:
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
        except BrokenPipeError as error:
            raise self._server_error() from error

    def _receive(self) -> dict[str, Any]:
        line = bytearray()
        while not line.endswith(b"\n"):
            chunk = self.process.stdout.readline()
            if not chunk:
                raise self._server_error()
            line += chunk
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _server_error(self) -> DataError:
        self.process.wait(10)
        self.stderr_file.seek(0)
        lines = [line for line in self.stderr_file.read()[-4000:].decode("utf-8", "replace").splitlines() if line.strip()]
        message = format_value(lines[-1], 500) if lines else "none"
        return DataError(
            f"The benchmark server ended unexpectedly; its last output: {message}.", hint="Repeat the call to resume."
        )


def _needs_run(row: Row | None, job: Mapping[str, Any], retry: bool) -> bool:
    if row is None or row.settings != job["settings"] or row.status in RETRIED_STATUSES:
        return True
    return retry and row.status != "ok"


def _run_environment(jobs: int) -> dict[str, dict[str, str]]:
    environment = describe_environment()
    load_text = f"{jobs} in parallel, load {os.getloadavg()[0]:.1f} at the start"
    return {"versions": environment["versions"], "machine": {**environment["machine"], "jobs": load_text}}
