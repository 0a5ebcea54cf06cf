"""Parallel execution over series, with joblib.

`joblib.parallel_config(backend="dask", ...)` around any call of this library runs it on that
backend.
"""

from __future__ import annotations

import faulthandler
import math
import os
import re
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import numpy as np

from deepforecast.core import threads
from deepforecast.core.monitor import Tick, hide_progress, progress_bar
from deepforecast.errors import ParameterError, ParameterTypeError, TrainingError, format_value

T = TypeVar("T")
OnLost: TypeAlias = Callable[[int, TrainingError], T]
CaughtWarnings: TypeAlias = list[tuple[type[Warning], str]]

MAX_CHUNKS = 256
"""Number of chunks without a known cost: enough to balance the load, few enough to keep overhead small."""

MIN_SECONDS = {"threads": 0.02, "processes": 0.5}
MAX_SECONDS = 2.0
"""Targeted minimum duration of a chunk (overhead of starting it) and maximum (work lost with a worker)."""


def map_chunks(
    work: Callable[[slice], T],
    n_items: int,
    *,
    n_jobs: int | None = None,
    prefer: Literal["threads", "processes"] = "threads",
    cost: float | Sequence[float] | np.ndarray | None = None,
    progress: bool | None = None,
    label: str = "series",
    timeout: float | None = None,
) -> list[T]:
    """Call `work` for consecutive slices of `range(n_items)`, possibly in parallel.

    The slices depend only on `n_items`, `cost` and `prefer`, and each is computed with one BLAS and
    OpenMP thread, so results are bit-identical for any number of workers.

    Parameters
    ----------
    work : callable
        Takes a slice.
    n_items : int
        Number of items.
    n_jobs : int, optional
        Number of workers, -1 for one per available CPU. By default that of
        `joblib.parallel_config`, or one per available CPU. Always one inside a worker.
    prefer : {"threads", "processes"}, default "threads"
        "threads" for work that releases the GIL, "processes" otherwise. `work` is then pickled for
        each slice; large arrays are passed as read-only memory maps.
    cost : float or sequence of float, optional
        Expected seconds per item, estimated from its size, not measured, so that slices have
        similar durations. Short work is done in the calling thread.
    progress : bool, optional
        Whether to show a progress bar; by default in terminals and notebooks.
    label : str, default "series"
        Name of the items in the progress bar and in errors.
    timeout : float, optional
        Seconds after which the worker of a slice counts as hung; ignored without workers.

    Returns
    -------
    list
        Results of the slices, in their order.

    Raises
    ------
    TrainingError
        If a worker was lost (killed, crashed, hung) and was lost again when its slice was retried.

    Notes
    -----
    Exceptions of `work` are raised with a note that names the items.

    Examples
    --------
    >>> totals = map_chunks(lambda part: sum(range(1000)[part]), 1000, n_jobs=1)
    >>> len(totals), sum(totals)
    (250, 499500)
    """
    _check_n_jobs(n_jobs)
    slices = split_by_cost(n_items, cost, prefer)
    pool = _find_workers(n_jobs, prefer) if len(slices) > 1 or timeout is not None else None
    return _run_slices(_Job(work, label, timeout), slices, pool, progress)


def map_items(
    work: Callable[[slice], T],
    names: Sequence[str],
    *,
    on_lost: OnLost[T],
    n_jobs: int | None = None,
    progress: bool | None = None,
    label: str = "items",
) -> list[T]:
    """Call `work(slice(i, i + 1))` for each item in worker processes, for items that may crash their worker.

    The result of an item whose worker was lost twice is `on_lost(item, error)`; the other items are
    not affected.
    """
    _check_n_jobs(n_jobs)
    slices = [slice(index, index + 1) for index in range(len(names))]
    return _run_slices(_Job(work, label, names=names), slices, _find_workers(n_jobs, "processes"), progress, on_lost)


def _run_slices(
    job: _Job[T], slices: list[slice], pool: _Workers | None, progress: bool | None, on_lost: OnLost[T] | None = None
) -> list[T]:
    """Run the slices in the calling thread (`pool` None) or by workers; `on_lost` replaces the result of a lost slice."""
    with progress_bar(slices[-1].stop if slices else 0, job.label, progress, alone=True) as tick:
        if pool is None:
            with threads.limit_threads(1):
                results = []
                for chunk in slices:
                    results.append(_run_with_note(job, chunk))
                    tick(chunk.stop - chunk.start)
                return results
        with threads.limit_threads(1) if pool.in_threads else _processes_lock:
            return _Dispatcher(job, slices, pool, tick, on_lost).run()


def split_by_cost(n_items: int, cost: float | Sequence[float] | np.ndarray | None, prefer: str) -> list[slice]:
    """Split `range(n_items)` into slices of similar cost.

    >>> split_by_cost(5, [0.1, 0.1, 3.0, 0.5, 0.6], "processes")
    [slice(0, 3, None), slice(3, 4, None), slice(4, 5, None)]
    """
    if cost is None:
        chunk_length = max(1, math.ceil(n_items / MAX_CHUNKS))
        return [slice(start, min(start + chunk_length, n_items)) for start in range(0, n_items, chunk_length)]
    costs = np.broadcast_to(np.asarray(cost, dtype=np.float64), n_items)
    end_times = np.cumsum(costs)  # if the items were computed one after the other
    total_seconds = float(end_times[-1]) if n_items else 0.0
    if not (math.isfinite(total_seconds) and bool((costs >= 0).all())):
        raise ParameterError(
            "`cost` must be a finite number of seconds of at least 0.",
            hint="Leave out `cost` if it is unknown.",
            parameter="cost",
        )
    target_seconds = min(max(total_seconds / (MAX_CHUNKS // 2), MIN_SECONDS[prefer]), MAX_SECONDS)
    # Items are in one slice if they would start within the same period of `target_seconds` seconds.
    period = (end_times - costs) // target_seconds
    bounds = [0, *(np.flatnonzero(np.diff(period)) + 1).tolist(), n_items] if n_items else []
    return [slice(start, stop) for start, stop in pairwise(bounds)]


@dataclass(frozen=True)
class _Job(Generic[T]):
    """What a worker needs besides its slice; `driver` is the id of the process that started the workers."""

    work: Callable[[slice], T]
    label: str
    timeout: float | None = None
    names: Sequence[str] = ()  # of the items, if each slice is one item
    driver: int = field(default_factory=os.getpid)


@dataclass(frozen=True)
class _Workers:
    """Number and kind of workers; `backend` is joblib's."""

    n_jobs: int
    prefer: str
    in_threads: bool
    backend: Any


def _find_workers(requested: int | None, prefer: str) -> _Workers | None:
    """The workers to use, or None for the calling thread. Imports joblib only if it may be needed."""
    is_single_cpu = requested is None and "joblib" not in sys.modules and threads.available_cpus() == 1
    if requested == 1 or _inside_worker.get() or is_single_cpu:
        return None
    with threads.keep_unset("KMP_INIT_AT_FORK"):  # joblib's import sets it
        from joblib.parallel import get_active_backend

    backend, configured = get_active_backend()
    is_nested = configured is None and bool(getattr(backend, "nesting_level", 0))  # inside a joblib worker of the caller
    if requested is None and (configured == 1 or is_nested):
        return None
    backend, _ = get_active_backend(prefer=prefer)
    in_threads = bool(getattr(backend, "uses_threads", False))
    if not in_threads and not _can_start_processes():
        return None
    n_jobs = next((n for n in (requested, configured, backend.default_n_jobs) if n not in (None, 1)), threads.available_cpus())
    if n_jobs == -1 and type(backend).__module__.startswith("joblib._parallel_backends"):
        n_jobs = threads.available_cpus()
    if backend.effective_n_jobs(n_jobs) == 1:
        return None
    return _Workers(n_jobs, prefer, in_threads, backend)


@contextmanager
def in_worker() -> Iterator[None]:
    """Run the block like a worker of `map_chunks`: on one thread, without nested workers and progress bars."""
    with threads.set_variable(_inside_worker, True), hide_progress(), threads.as_worker():
        yield


def has_user_backend() -> bool:
    """Whether the user has configured a backend with `joblib.parallel_config`."""
    if "joblib" not in sys.modules:
        return False
    from joblib.parallel import get_active_backend

    backend, n_jobs = get_active_backend()
    return n_jobs not in (None, 1) or type(backend).__name__ != "LokyBackend"


def _check_n_jobs(n_jobs: int | None) -> None:
    is_integer = isinstance(n_jobs, int) and not isinstance(n_jobs, bool)
    if n_jobs is not None and not (is_integer and (n_jobs >= 1 or n_jobs == -1)):
        error_type = ParameterError if is_integer else ParameterTypeError
        raise error_type(
            f"`n_jobs` must be a positive integer, or -1 for all CPUs, got {format_value(n_jobs)}.",
            hint="Leave out `n_jobs` for the default.",
            parameter="n_jobs",
            value=n_jobs,
        )


def _can_start_processes() -> bool:
    """Whether this process can have a pool: it has output streams, is no daemon and not forked from a process with a pool."""
    import multiprocessing

    try:  # starting a process flushes them; they may be None, closed, or a broken pipe
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except (AttributeError, OSError, ValueError):
        return False
    return not multiprocessing.current_process().daemon and _pool_owner() == os.getpid()


@dataclass
class _Dispatcher(Generic[T]):
    """Runs all slices, and retries those whose worker was lost once; `replies` are results and warnings by slice number."""

    job: _Job[T]
    slices: list[slice]
    workers: _Workers
    tick: Tick
    on_lost: OnLost[T] | None
    replies: dict[int, tuple[T, CaughtWarnings]] = field(default_factory=dict)

    def run(self) -> list[T]:
        """Return the results of all slices in their order, and issue the warnings of the workers."""
        numbers = range(len(self.slices))
        while pending := [number for number in numbers if number not in self.replies]:
            lost, cause = self._run_round(pending)
            if lost and self.workers.in_threads:  # threads cannot be killed, so a retry would hang again
                raise self._lost_worker_error(lost[0], cause)
            for number in lost:
                # One at a time, to know which slice crashes its worker.
                lost_again, cause = self._run_round([number])
                if lost_again:
                    error = self._lost_worker_error(number, cause)
                    if self.on_lost is None:
                        raise error
                    self.replies[number] = self.on_lost(number, error), []
                    self.tick(1)
        for number in numbers:
            for category, text in self.replies[number][1]:
                warnings.warn(text, category, stacklevel=3)
        return [self.replies[number][0] for number in numbers]

    def _run_round(self, pending: list[int]) -> tuple[list[int], Exception | None]:
        """Run slices; if a worker was lost, return the slices that were running and the error of joblib."""
        from joblib import Parallel

        running: dict[int, None] = {}
        remaining = iter(pending)
        workers, time_limit = self.workers, self.job.timeout
        if time_limit is not None and not workers.in_threads:
            time_limit += 5.0  # workers enforce the limit themselves; this is for a worker that was suspended
        executor = Parallel(
            n_jobs=workers.n_jobs,
            prefer=workers.prefer,
            return_as="generator_unordered" if getattr(workers.backend, "supports_return_generator", False) else "list",
            batch_size=1,
            pre_dispatch="n_jobs + 1",
            timeout=time_limit,
        )
        try:
            with _closing(executor(self._tasks(remaining, running)), remaining) as replies:
                for number, value, caught in replies:
                    self.replies[number] = value, caught
                    del running[number]
                    self.tick(self.slices[number].stop - self.slices[number].start)
        except Exception as error:
            if any(note.startswith(_NOTE) for note in getattr(error, "__notes__", ())) or not running:
                raise  # the error of the work
            return list(running), error
        return [], None

    def _tasks(self, remaining: Iterator[int], running: dict[int, None]) -> Iterator[Any]:
        """joblib's tasks for the remaining slices; each is added to `running` when joblib takes it."""
        job: Any = self.job
        if type(self.workers.backend).__name__ == "MultiprocessingBackend":  # it cannot pickle nested functions
            from joblib import wrap_non_picklable_objects

            job = wrap_non_picklable_objects(job, keep_wrapper=False)
        for number in remaining:
            running[number] = None
            yield _run_in_worker, (job, number, self.slices[number]), {}

    def _lost_worker_error(self, number: int, cause: Exception | None) -> TrainingError:
        """The error for a slice whose worker was lost: how it ended, from the exit codes in the error of joblib."""
        exits = re.findall(r"\b(SIG[A-Z0-9]+|EXIT)\((-?\d+)\)", str(cause))
        # joblib ends the other workers by SIGTERM
        name, code = min(exits, key=lambda name_and_code: name_and_code[0] == "SIGTERM", default=("", ""))
        hint = "Run with n_jobs=1 to see what happens."
        if name == "SIGKILL":
            end, hint = "ended with signal SIGKILL, probably for lack of memory", "Use fewer series or a smaller n_jobs."
        elif name:
            end = f"ended with exit status {code}" if name == "EXIT" else f"ended with signal {name}"
        else:
            first_line = str(cause).split("\n")[0].rstrip(".")
            reason = f"{type(cause).__name__}: {first_line}"
            end = f"did not return its results: {format_value(reason, 200)}"
        names, limit = self.job.names, self.job.timeout
        items = format_value(names[number]) if names else _describe_slice(self.job.label, self.slices[number])
        allowed = "" if limit is None else f" (allowed: {limit:g} s)"
        error = TrainingError(f"{items}: its worker process {end}{allowed}.", hint=hint)
        error.__cause__ = cause
        return error


def _run_in_worker(job: _Job[T], number: int, chunk: slice) -> tuple[int, T, CaughtWarnings]:
    """Run a slice in a worker, on one thread, and return its warnings, too."""
    with in_worker():
        if os.getpid() == job.driver:
            return number, _run_with_note(job, chunk), []
        _exit_with_driver(job.driver)
        if job.timeout is not None:  # exits from a C thread, which works even if a kernel holds the GIL
            faulthandler.dump_traceback_later(job.timeout, exit=True, file=2)
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                value = _run_with_note(job, chunk)
        finally:
            faulthandler.cancel_dump_traceback_later()
        return number, value, list(dict.fromkeys((warning.category, str(warning.message)) for warning in caught))


def _run_with_note(job: _Job[T], chunk: slice) -> T:
    """Run a slice; its exceptions get a note that names the items."""
    try:
        return job.work(chunk)
    except Exception as error:
        error.add_note(f"{_NOTE} {_describe_slice(job.label, chunk)}")
        raise


def _describe_slice(label: str, chunk: slice) -> str:
    return f"{label} {chunk.start} to {chunk.stop - 1} (counted from 0)"


@cache  # once per process
def _exit_with_driver(driver: int) -> None:
    """Start a thread that exits this worker when its parent process has ended."""
    if not hasattr(os, "getppid") or os.getppid() != driver:
        return

    def watch_parent() -> None:
        while os.getppid() == driver:
            time.sleep(2.0)
        os._exit(1)

    threading.Thread(target=watch_parent, name="deepforecast-guard", daemon=True).start()


@contextmanager
def _closing(replies: Any, remaining: Iterator[int]) -> Iterator[Any]:
    """Stop the workers if the block is left early (Ctrl-C)."""
    try:
        yield replies
    except BaseException:
        deque(remaining, maxlen=0)  # send no further tasks, on which joblib's thread would fail while it stops
        time.sleep(0.05)
        if hasattr(replies, "close"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # joblib warns about unfinished tasks
                replies.close()
        raise


_NOTE = "This happened while working on"
_inside_worker: ContextVar[bool] = ContextVar("deepforecast_working", default=False)
_processes_lock = threading.Lock()  # of joblib's pool of processes, which callers share
_pool_owner = cache(os.getpid)  # the process that first used the pool; processes forked from it remember it, too
