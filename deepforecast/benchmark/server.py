"""The benchmark server: a process that imports the libraries and loads the data once, and is forked for every job.

It reads requests from standard input and writes answers to standard output, one JSON object per line:

    {"suite": ..., "folder": ..., "together": n, "peers": [...]}
        The first request. Answer: {"jobs": [...]}.
    {"rehearse": [names of jobs]}
        Optional, before the first job: compiles and imports what the jobs need.
        Answers: {"models": count}, {} after each model, {"seconds": total}.
    {"run": name of a job}
        Answer, when the job has ended: its row.

Each job is a process group, which is killed if it exceeds its limits of time or memory. The guard process
kills it if the input of the server is closed (its parent process was stopped, killed or has finished) or
the server ends. The server starts no threads, so that forked processes can.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any, NoReturn

from deepforecast.benchmark.energy import EnergyMeter
from deepforecast.benchmark.job_results import HISTORY, Row
from deepforecast.benchmark.process_guard import Guard, kill_process
from deepforecast.benchmark.suite import Entry
from deepforecast.errors import format_value

POLL_SECONDS = 0.1  # between checks of the limits of jobs


@dataclass
class RunningJob:
    """A running job.

    Parameters
    ----------
    job : Job
        The job.
    row : Row
        Its row before the run.
    pid : int
        Process id, also that of the process group.
    started, deadline : float
        Start and time limit, as values of `time.perf_counter`.
    max_mb : float
        Memory limit in MiB.
    row_file, output_file : binary file
        Temporary files that receive the row and the output of the process.
    meter : EnergyMeter
        Energy since the start.
    stop_reason : {"", "timeout", "memory"}
        Why the job was killed, if it was.
    """

    job: Any
    row: Row
    pid: int
    started: float
    deadline: float
    max_mb: float
    row_file: IO[bytes]
    output_file: IO[bytes]
    meter: EnergyMeter
    stop_reason: str = ""


class Server:
    """State of the server: the suite, the loaded task and the running jobs.

    Parameters
    ----------
    request : dict
        The first request (see the module).
    guard : Guard
        Kills the jobs if the server ends.

    Raises
    ------
    ParameterError
        If the suite is invalid.
    """

    def __init__(self, request: dict[str, Any], guard: Guard) -> None:
        from deepforecast.benchmark.job import list_jobs
        from deepforecast.benchmark.peer import PeerPaths
        from deepforecast.benchmark.suite import suite_from_mapping
        from deepforecast.benchmark.suite_checks import refuse_unused_parameters

        self.suite = suite_from_mapping(request["suite"])
        if not self.suite.cut:  # the models of a subset need not use every task parameter
            refuse_unused_parameters(self.suite)
        self.folder = Path(request["folder"])
        self.n_parallel = int(request["together"])
        self.peer_paths = PeerPaths(*map(Path, request["peers"])) if request.get("peers") else PeerPaths.default()
        self.jobs = {job.name: job for job in list_jobs(self.suite)}
        self.running: dict[int, RunningJob] = {}
        self.loaded_task: tuple[int, Any] = (-1, None)
        self.guard = guard
        self.compiling: set[str] = set()  # models whose rehearsal did not finish: kernels may be missing in the cache

    def load_task(self, number: int) -> Any:
        """Return the prepared task, loaded at the first call, or the exception that was raised by loading it."""
        from deepforecast.benchmark.job import file_name, write_parquet
        from deepforecast.benchmark.task_data import plot_history, prepare_task, sample_ids

        if self.loaded_task[0] != number:
            self.loaded_task = (number, None)
            try:
                prepared_task = prepare_task(self.suite.tasks[number])
                path = self.folder / HISTORY / f"{file_name(prepared_task.task.name)}.parquet"
                write_parquet(path, plot_history(prepared_task, sample_ids(prepared_task, self.suite.sample)))
                self.loaded_task = (number, prepared_task)
            except Exception as error:  # reported by each job of the task, e.g. a missing dataset
                self.loaded_task = (number, error)
        return self.loaded_task[1]

    def rehearse(self, names: list[str], send: Callable[[dict[str, Any]], None]) -> None:
        """Rehearse the models of some jobs.

        Parameters
        ----------
        names : list of str
            Names of the jobs.
        send : callable
            Sends an answer: the number of models, one after each model, and the total time.
        """
        from deepforecast.benchmark.rehearsal import rehearse, select_models

        start_time, limits = time.perf_counter(), [(self.entry(name), self.limit(name)) for name in names]
        models = select_models(limits)
        send({"models": len(models)})
        for entry, completed in rehearse(models, self.guard):
            self.compiling |= set() if completed else {entry.model}
            send({})
        send({"seconds": round(time.perf_counter() - start_time, 1)})

    def limit(self, name: str) -> float:
        """Return the time limit of a job in seconds."""
        return self.suite.tasks[self.jobs[name].task].time_limit or self.suite.time_limit

    def entry(self, name: str) -> Entry:
        """Return the model of a job."""
        job = self.jobs[name]
        return self.suite.entries(self.suite.tasks[job.task])[job.entry]

    def start_job(self, name: str) -> Row | None:
        """Fork a process for a job. Returns None, or the row of the job if its data cannot be loaded."""
        from deepforecast.benchmark.job import file_name, initial_row
        from deepforecast.evaluation.compare import format_error

        job = self.jobs[name]
        prepared = self.load_task(job.task)
        task = self.suite.tasks[job.task]
        if isinstance(prepared, Exception):
            entry = self.entry(name)
            return Row(
                suite=self.suite.suite, task=task.name, dataset=task.dataset or "generated", model=entry.name, seed=job.seed,
                job=job.name, settings=job.settings, library=entry.peer or "deepforecast", status="failed",
                error=format_value(f"data: {format_error(prepared)}", 2000), cut=self.suite.cut,
            )  # fmt: skip
        row = initial_row(self.suite, prepared, job)
        row = replace(row, files={"history": f"{HISTORY}/{file_name(task.name)}.parquet"})
        row_file, output_file = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115  # deleted when closed
        meter, start_time = EnergyMeter.start(self.n_parallel == 1), time.perf_counter()
        pid = os.fork()
        if not pid:
            self._run_child(job, prepared, row_file, output_file)
        max_mb = task.memory_limit or self.suite.memory_limit
        self.running[pid] = RunningJob(
            job, row, pid, start_time, start_time + self.limit(name), max_mb, row_file, output_file, meter
        )
        self.guard.register(pid)
        return None

    def _run_child(self, job: Any, prepared: Any, row_file: IO[bytes], output_file: IO[bytes]) -> NoReturn:
        """Run the job in the forked process, write its row, and exit."""
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            self.guard.close()
            with open(os.devnull, "rb") as null_file:
                os.dup2(null_file.fileno(), 0)
            for fd in (1, 2):
                os.dup2(output_file.fileno(), fd)
            row = self._run_job(job, prepared)
            row_file.write(row.to_json())
            row_file.flush()
        except BaseException as error:
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)

    def _run_job(self, job: Any, prepared: Any) -> Row:
        from deepforecast.benchmark.job import run_job
        from deepforecast.benchmark.peer import run_peer
        from deepforecast.core.threads import as_worker

        with as_worker() if self.n_parallel > 1 else nullcontext():  # parallel jobs must not oversubscribe the CPUs
            if self.entry(job.name).peer:
                return run_peer(self.suite, prepared, job, self.folder, self.peer_paths)
            return run_job(self.suite, prepared, job, self.folder)

    def finished_rows(self) -> list[Row]:
        """Kill jobs that exceed their limits, and return the rows of the jobs that have ended."""
        rows = []
        for running_job in list(self.running.values()):
            self._enforce_limits(running_job)
            pid, status, usage = os.wait4(running_job.pid, os.WNOHANG)
            if pid:
                del self.running[pid]
                kill_process(pid, os.killpg)  # child processes that are still running
                self.guard.unregister(pid)
                row = _finished_row(running_job, status, usage)
                if row.status == "timeout" and self.entry(row.job).model in self.compiling:
                    row = replace(row, error=f"{row.error}; its kernels were still being compiled: use --retry to run it again")
                rows.append(row)
                running_job.row_file.close()
                running_job.output_file.close()
        return rows

    def _enforce_limits(self, running_job: RunningJob) -> None:
        if running_job.stop_reason:
            return
        if time.perf_counter() > running_job.deadline:
            running_job.stop_reason = "timeout"
        elif running_job.max_mb < _memory_mb(running_job.pid):
            running_job.stop_reason = "memory"
        if running_job.stop_reason:
            kill_process(running_job.pid)

    def stop(self) -> None:
        """Kill all jobs."""
        for pid in self.running:
            kill_process(pid)


def main() -> None:
    """Serve requests until the input is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C reaches the parent process too, which then closes the input
    guard = Guard(0)
    answers = os.fdopen(os.dup(1), "wb", buffering=0)

    def send(answer: dict[str, Any]) -> None:
        answers.write(json.dumps(answer).encode() + b"\n")

    os.dup2(2, 1)  # printed text must not mix with the answers
    requests = RequestReader(0)
    first_request = requests.read_first()
    if first_request is None:
        return
    try:
        server = Server(first_request, guard)
    except Exception as error:
        send({"error": f"{type(error).__name__}: {error}"})
        return
    send({"jobs": [asdict(job) for job in server.jobs.values()]})
    wake_read_fd, wake_write_fd = os.pipe()
    os.set_blocking(wake_write_fd, False)
    signal.set_wakeup_fd(wake_write_fd, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    try:
        while requests.is_open or server.running:
            for request in requests.read_available(wake_read_fd, POLL_SECONDS if server.running else 60.0):
                if "rehearse" in request:
                    server.rehearse(request["rehearse"], send)
                    continue
                row = server.start_job(request["run"])
                if row is not None:
                    answers.write(row.to_json())
            if not requests.is_open:
                break
            for row in server.finished_rows():
                answers.write(row.to_json())
    except BrokenPipeError:  # the parent process has ended
        pass
    finally:
        server.stop()


class RequestReader:
    """Reads requests, one JSON object per line, from a file descriptor.

    Parameters
    ----------
    fd : int
        File descriptor to read from.

    Attributes
    ----------
    is_open : bool
        False after the end of the input.
    """

    def __init__(self, fd: int) -> None:
        self.fd, self.buffer, self.is_open = fd, b"", True

    def read_first(self) -> dict[str, Any] | None:
        """Wait for the first request and return it; None if the input ends before."""
        while self.is_open:
            requests = self.read_available(None, 60.0)
            if requests:
                return requests[0]
        return None

    def read_available(self, wake_fd: int | None, seconds: float) -> list[dict[str, Any]]:
        """Return the requests that have arrived, after waiting for input.

        Parameters
        ----------
        wake_fd : int or None
            File descriptor that ends the wait when it becomes readable; its data are discarded.
        seconds : float
            Longest time to wait.

        Returns
        -------
        list of dict
            Complete lines only; the rest is kept for the next call.
        """
        ready, _, _ = select.select([self.fd, *([] if wake_fd is None else [wake_fd])], [], [], seconds)
        if wake_fd in ready and wake_fd is not None:
            os.read(wake_fd, 4096)
        if self.fd not in ready:
            return []
        chunk = os.read(self.fd, 1 << 20)
        self.is_open, self.buffer = bool(chunk), self.buffer + chunk
        *lines, self.buffer = self.buffer.split(b"\n")
        return [json.loads(line) for line in lines]


def _finished_row(running_job: RunningJob, status: int, usage: Any) -> Row:
    """Return the row of an ended job with its resource usage, or with its failure."""
    running_job.row_file.seek(0)
    line = running_job.row_file.read()
    row_fields = json.loads(line) if line.endswith(b"\n") else None
    row = (
        running_job.row
        if row_fields is None or running_job.stop_reason
        else Row.from_mapping({**row_fields, "files": {**running_job.row.files, **row_fields["files"]}})
    )
    if running_job.stop_reason or row_fields is None:
        row = replace(row, status=running_job.stop_reason or "lost", error=_describe_end(running_job, status))
    return replace(
        row, job_seconds=time.perf_counter() - running_job.started, job_cpu=usage.ru_utime + usage.ru_stime,
        energy_joules=running_job.meter.joules(),
    )  # fmt: skip


def _describe_end(running_job: RunningJob, status: int) -> str:
    if running_job.stop_reason == "timeout":
        return f"stopped after {running_job.deadline - running_job.started:.0f} s, the time limit of a job"
    if running_job.stop_reason == "memory":
        return f"stopped after exceeding {running_job.max_mb:,.0f} MiB, the memory limit of a job"
    running_job.output_file.seek(0)
    lines = [line for line in running_job.output_file.read()[-4000:].decode("utf-8", "replace").splitlines() if line.strip()]
    cause = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit code {os.WEXITSTATUS(status)}"
    return f"its process ended with {cause}; its last output: {format_value(lines[-1], 500) if lines else 'none'}"


def _memory_mb(pid: int) -> float:
    """Return the resident memory of a process and its children in MiB; 0 if unknown. Shared pages count repeatedly."""
    total, pending = 0.0, [pid]
    while pending:
        member_pid = pending.pop()
        try:
            pages = int(Path(f"/proc/{member_pid}/statm").read_bytes().split()[1])
            pending += map(int, Path(f"/proc/{member_pid}/task/{member_pid}/children").read_bytes().split())
        except (OSError, IndexError, ValueError):
            continue
        total += pages * os.sysconf("SC_PAGESIZE") / 2**20
    return total


if __name__ == "__main__":
    main()
