"""The warm server: a process that has imported what jobs need and holds their data, and is forked for every job.

Requests come on standard input and answers go to standard output, one JSON object a line:

    {"suite": ..., "folder": ..., "together": n, "peers": [...]}       first: what is run; answered by {"jobs": [...]}
    {"rehearse": [names of jobs]}      before the first of them, if at all: nothing is compiled or imported in a job then;
                                       answered by {"models": how many}, {} after each, {"seconds": of all of it}
    {"run": name of a job}             answered, when it is over, by its row

Each job is a process group of its own, ended as a whole when it takes longer or holds more than it may, and by the guard when
the server's input ends (its owner was stopped, killed or is done) or the server itself is gone. The server starts no thread,
so that what is forked from it can.
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

from deepforecast.benchmark.energy import Meter
from deepforecast.benchmark.guard import Guard, kill
from deepforecast.benchmark.rows import HISTORY, Row
from deepforecast.benchmark.suite import Entry
from deepforecast.errors import format_value

LOOK = 0.1  # seconds between two looks at the clock and the memory of the jobs


@dataclass
class Running:
    """A job under way: its process, since when, until when, with how much memory, and where it leaves its row and words."""

    job: Any
    row: Row
    pid: int
    began: float
    until: float
    most_mb: float
    left: IO[bytes]
    words: IO[bytes]
    meter: Meter
    stopped: str = ""


class Server:
    """What is held between jobs: the suite, and the task whose data are at hand."""

    def __init__(self, asked: dict[str, Any], guard: Guard) -> None:
        from deepforecast.benchmark.checks import refuse_idle_parameters
        from deepforecast.benchmark.job import jobs_of
        from deepforecast.benchmark.peer import Places
        from deepforecast.benchmark.suite import suite_of_mapping

        self.suite = suite_of_mapping(asked["suite"])
        if not self.suite.cut:  # what is left of a suite may well have no use for them
            refuse_idle_parameters(self.suite)
        self.folder = Path(asked["folder"])
        self.together = int(asked["together"])
        self.places = Places(*map(Path, asked["peers"])) if asked.get("peers") else Places.usual()
        self.jobs = {job.name: job for job in jobs_of(self.suite)}
        self.running: dict[int, Running] = {}
        self.held: tuple[int, Any] = (-1, None)
        self.guard = guard
        self.compiling: set[str] = set()  # models whose kernels may not all be kept yet

    def prepared(self, number: int) -> Any:
        """The task's data, loaded when it is first asked for; or the error that was met."""
        from deepforecast.benchmark.data import last_rows, prepare, sampled
        from deepforecast.benchmark.job import file_name, write_parquet

        if self.held[0] != number:
            self.held = (number, None)
            try:
                found = prepare(self.suite.tasks[number])
                path = self.folder / HISTORY / f"{file_name(found.task.name)}.parquet"
                write_parquet(path, last_rows(found, sampled(found, self.suite.sample)))
                self.held = (number, found)
            except Exception as error:  # a dataset that is not there is told by each of its jobs
                self.held = (number, error)
        return self.held[1]

    def rehearse(self, names: list[str], say: Callable[[dict[str, Any]], None]) -> None:
        """Fit every model of these jobs once."""
        from deepforecast.benchmark.rehearsal import chosen, rehearse

        began, limits = time.perf_counter(), [(self.entry(name), self.limit(name)) for name in names]
        models = chosen(limits)
        say({"models": len(models)})
        for entry, well in rehearse(models, self.guard):
            self.compiling |= set() if well else {entry.model}
            say({})
        say({"seconds": round(time.perf_counter() - began, 1)})

    def limit(self, name: str) -> float:
        """Seconds that a job may take."""
        return self.suite.tasks[self.jobs[name].task].time_limit or self.suite.time_limit

    def entry(self, name: str) -> Entry:
        """The model of a job."""
        job = self.jobs[name]
        return self.suite.entries(self.suite.tasks[job.task])[job.entry]

    def begin(self, name: str) -> Row | None:
        """Fork for a job; its row, if it is over before it began."""
        from deepforecast.benchmark.job import file_name, start
        from deepforecast.evaluation.compare import told

        job = self.jobs[name]
        prepared = self.prepared(job.task)
        task = self.suite.tasks[job.task]
        if isinstance(prepared, Exception):
            entry = self.entry(name)
            return Row(
                suite=self.suite.suite, task=task.name, dataset=task.dataset or "generated", model=entry.name, seed=job.seed,
                job=job.name, settings=job.settings, library=entry.peer or "deepforecast", status="failed",
                error=format_value(f"data: {told(prepared)}", 2000), cut=self.suite.cut,
            )  # fmt: skip
        row = start(self.suite, prepared, job)
        row = replace(row, files={"history": f"{HISTORY}/{file_name(task.name)}.parquet"})
        left, words = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115  # without names: nothing stays
        meter, began = Meter.start(self.together == 1), time.perf_counter()
        pid = os.fork()
        if not pid:
            self._child(job, prepared, left, words)
        most_mb = task.memory_limit or self.suite.memory_limit
        self.running[pid] = Running(job, row, pid, began, began + self.limit(name), most_mb, left, words, meter)
        self.guard.begun(pid)
        return None

    def _child(self, job: Any, prepared: Any, left: IO[bytes], words: IO[bytes]) -> NoReturn:
        """Run the job in a process of its own, leave its row, and end without ado."""
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            self.guard.forget()
            with open(os.devnull, "rb") as nothing:
                os.dup2(nothing.fileno(), 0)
            for number in (1, 2):
                os.dup2(words.fileno(), number)
            row = self._run(job, prepared)
            left.write(row.line())
            left.flush()
        except BaseException as error:
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)

    def _run(self, job: Any, prepared: Any) -> Row:
        from deepforecast.benchmark.job import run_job
        from deepforecast.benchmark.peer import run_peer
        from deepforecast.core.threads import as_worker

        with as_worker() if self.together > 1 else nullcontext():  # jobs side by side would wait for each other's threads
            if self.entry(job.name).peer:
                return run_peer(self.suite, prepared, job, self.folder, self.places)
            return run_job(self.suite, prepared, job, self.folder)

    def over(self) -> list[Row]:
        """The rows of jobs that have ended, after those that may not go on were stopped."""
        found = []
        for one in list(self.running.values()):
            self._stop_if_beyond(one)
            pid, status, used = os.wait4(one.pid, os.WNOHANG)
            if pid:
                del self.running[pid]
                kill(pid, os.killpg)  # what it started and left
                self.guard.over(pid)
                row = _row(one, status, used)
                if row.status == "timeout" and self.entry(row.job).model in self.compiling:
                    row = replace(row, error=f"{row.error}; its kernels were still being compiled: run it again with --retry")
                found.append(row)
                one.left.close()
                one.words.close()
        return found

    def _stop_if_beyond(self, one: Running) -> None:
        if one.stopped:
            return
        if time.perf_counter() > one.until:
            one.stopped = "timeout"
        elif one.most_mb < _held_mb(one.pid):
            one.stopped = "memory"
        if one.stopped:
            kill(one.pid)

    def stop(self) -> None:
        """End every job."""
        for pid in self.running:
            kill(pid)


def main() -> None:
    """Serve until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the owner hears it too, and says when to stop
    guard = Guard(0)
    answers = os.fdopen(os.dup(1), "wb", buffering=0)

    def say(what: dict[str, Any]) -> None:
        answers.write(json.dumps(what).encode() + b"\n")

    os.dup2(2, 1)  # whatever prints, prints elsewhere
    requests = Requests(0)
    first = requests.wait()
    if first is None:
        return
    try:
        server = Server(first, guard)
    except Exception as error:
        say({"error": f"{type(error).__name__}: {error}"})
        return
    say({"jobs": [asdict(job) for job in server.jobs.values()]})
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    try:
        while requests.open or server.running:
            for asked in requests.there(wake, LOOK if server.running else 60.0):
                if "rehearse" in asked:
                    server.rehearse(asked["rehearse"], say)
                    continue
                row = server.begin(asked["run"])
                if row is not None:
                    answers.write(row.line())
            if not requests.open:
                break
            for row in server.over():
                answers.write(row.line())
    except BrokenPipeError:  # nobody listens
        pass
    finally:
        server.stop()


class Requests:
    """Lines of the input, as they come."""

    def __init__(self, number: int) -> None:
        self.number, self.rest, self.open = number, b"", True

    def wait(self) -> dict[str, Any] | None:
        """The first of them; None where the input ends before."""
        while self.open:
            found = self.there(None, 60.0)
            if found:
                return found[0]
        return None

    def there(self, wake: int | None, seconds: float) -> list[dict[str, Any]]:
        """Those that have come after at most so many seconds, or as soon as `wake` has something to read."""
        ready, _, _ = select.select([self.number, *([] if wake is None else [wake])], [], [], seconds)
        if wake in ready and wake is not None:
            os.read(wake, 4096)
        if self.number not in ready:
            return []
        held = os.read(self.number, 1 << 20)
        self.open, self.rest = bool(held), self.rest + held
        *lines, self.rest = self.rest.split(b"\n")
        return [json.loads(line) for line in lines]


def _row(one: Running, status: int, used: Any) -> Row:
    """The row a job left, with what its process took; or what became of it."""
    one.left.seek(0)
    line = one.left.read()
    given = json.loads(line) if line.endswith(b"\n") else None
    row = one.row if given is None or one.stopped else Row.of({**given, "files": {**one.row.files, **given["files"]}})
    if one.stopped or given is None:
        row = replace(row, status=one.stopped or "lost", error=_why(one, status))
    return replace(
        row, job_seconds=time.perf_counter() - one.began, job_cpu=used.ru_utime + used.ru_stime,
        energy_joules=one.meter.joules(),
    )  # fmt: skip


def _why(one: Running, status: int) -> str:
    if one.stopped == "timeout":
        return f"stopped after {one.until - one.began:.0f} s, the time limit of a job"
    if one.stopped == "memory":
        return f"stopped beyond {one.most_mb:,.0f} MiB, the memory limit of a job"
    one.words.seek(0)
    words = [line for line in one.words.read()[-4000:].decode("utf-8", "replace").splitlines() if line.strip()]
    how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit code {os.WEXITSTATUS(status)}"
    return f"its process ended with {how}; it last said: {format_value(words[-1], 500) if words else 'nothing'}"


def _held_mb(pid: int) -> float:
    """What a process and those it started hold in memory, pages that several share counted each time; 0 if it is not told."""
    total, waiting = 0.0, [pid]
    while waiting:
        one = waiting.pop()
        try:
            pages = int(Path(f"/proc/{one}/statm").read_bytes().split()[1])
            waiting += map(int, Path(f"/proc/{one}/task/{one}/children").read_bytes().split())
        except (OSError, IndexError, ValueError):
            continue
        total += pages * os.sysconf("SC_PAGESIZE") / 2**20
    return total


if __name__ == "__main__":
    main()
