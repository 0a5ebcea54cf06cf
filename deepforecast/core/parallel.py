"""Local work over many series: the one way through which it reaches more than one CPU, or another machine.

On joblib, so that `joblib.parallel_config(backend="dask", ...)` around any call of this library sends the work there.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import numpy as np

from deepforecast.core import threads
from deepforecast.core.exit_codes import ending
from deepforecast.core.progress import Tick, counting, silent
from deepforecast.errors import ParameterError, ParameterTypeError, TrainingError, shown

T = TypeVar("T")
OnLost: TypeAlias = Callable[[int, TrainingError], T]

MOST_CHUNKS = 256
"""Without a known cost: enough for balance and for a progress bar, few enough that 100,000 short series do not drown."""

SHORTEST = {"threads": 0.02, "processes": 0.5}
LONGEST = 2.0
"""Seconds a chunk is meant to take at least (or starting it costs more) and at most (or a lost or interrupted one does)."""


def map_chunks(
    work: Callable[[slice], T],
    n_items: int,
    *,
    workers: int | None = None,
    prefer: Literal["threads", "processes"] = "threads",
    cost: float | Sequence[float] | np.ndarray | None = None,
    progress: bool | None = None,
    label: str = "series",
    timeout: float | None = None,
) -> list[T]:
    """Call `work(part)` for consecutive slices that cover `range(n_items)`; the results in their order.

    Where the slices are cut follows from `n_items`, `cost` and `prefer` only, and every slice computes with one BLAS and
    OpenMP thread, so the results are the same bits for any number of workers, one (which is this thread) included.

    workers: how many at a time; -1 for all; None for what `joblib.parallel_config` says, else one for each available CPU.
        Inside another call's worker it is always one.
    prefer: "threads" for work that releases the GIL, "processes" for other work. `work` then travels to the workers
        with what it holds: large arrays as read-only memory maps, the rest anew with each slice.
    cost: expected seconds of one item or of each, by a formula of its size and never by the clock, so that slices are
        of a sensible and even length. Work that is too short to be worth a worker stays in this thread.
    progress: a bar on stderr; by default in terminals and notebooks. `label` says what the items are, there and in errors.
    timeout: seconds a slice may take before its worker counts as hung; not kept where there are no workers.

    A lost worker (killed, crashed, hung) is replaced, what it held is tried once more, and only then `TrainingError`
    names those items. An error raised by `work` comes back as it is, with a note that names the items.

    >>> totals = map_chunks(lambda part: sum(range(1000)[part]), 1000, workers=1)
    >>> len(totals), sum(totals)
    (250, 499500)
    """
    _check(workers)
    parts = cut(n_items, cost, prefer)
    crew = _crew(workers, prefer) if len(parts) > 1 or timeout is not None else None
    return _run_slices(_Job(work, label, os.getpid(), timeout), parts, crew, progress)


def map_items(
    work: Callable[[slice], T],
    names: Sequence[str],
    *,
    on_lost: OnLost[T],
    workers: int | None = None,
    progress: bool | None = None,
    label: str = "items",
) -> list[T]:
    """Call `work(slice(i, i + 1))` for each item in worker processes: `map_chunks` for items that may kill their worker.

    An item whose worker was lost twice gets `on_lost(item, error)` as its result, and the others go on; the error names it.
    """
    _check(workers)
    parts = [slice(item, item + 1) for item in range(len(names))]
    return _run_slices(_Job(work, label, os.getpid(), None, names), parts, _crew(workers, "processes"), progress, on_lost)


def _run_slices(
    job: _Job[T], parts: list[slice], crew: _Crew | None, progress: bool | None, on_lost: OnLost[T] | None = None
) -> list[T]:
    with counting(parts[-1].stop if parts else 0, job.label, progress, alone=True) as tick:
        if crew is None:
            with threads.limited(1):
                return [_inline(job, part, tick) for part in parts]
        with crew.turn, threads.limited(1) if crew.in_threads else nullcontext():
            return _Spread(job, parts, crew, tick, on_lost).results()


def cut(n_items: int, cost: float | Sequence[float] | np.ndarray | None, prefer: str) -> list[slice]:
    """Cut `range(n_items)` into slices, from sizes alone.

    >>> cut(5, [0.1, 0.1, 3.0, 0.5, 0.6], "processes")
    [slice(0, 3, None), slice(3, 4, None), slice(4, 5, None)]
    """
    if cost is None:
        size = max(1, math.ceil(n_items / MOST_CHUNKS))
        return [slice(start, min(start + size, n_items)) for start in range(0, n_items, size)]
    each = np.broadcast_to(np.asarray(cost, dtype=np.float64), n_items)
    ends = np.cumsum(each)
    total = float(ends[-1]) if n_items else 0.0
    if not (math.isfinite(total) and bool((each >= 0).all())):
        raise ParameterError("The cost of an item is a finite number of seconds, at least 0. Leave it out if it is not known.")
    wanted = min(max(total / (MOST_CHUNKS // 2), SHORTEST[prefer]), LONGEST)
    # Items belong together if they would begin within the same stretch of `wanted` seconds.
    stretch = (ends - each) // wanted
    starts = [0, *(np.flatnonzero(np.diff(stretch)) + 1).tolist(), n_items] if n_items else []
    return [slice(start, stop) for start, stop in pairwise(starts)]


@dataclass(frozen=True)
class _Job(Generic[T]):
    """What a worker has to know beside its slice."""

    work: Callable[[slice], T]
    label: str
    driver: int
    timeout: float | None
    names: Sequence[str] = ()  # of the items, where each is a slice


@dataclass(frozen=True)
class _Crew:
    """How many workers of which kind, and whose turn it is: several callers share one pool of processes."""

    n_jobs: int
    prefer: str
    in_threads: bool
    as_they_come: bool
    wrapped: bool
    turn: AbstractContextManager[Any]


def _crew(workers: int | None, prefer: str) -> _Crew | None:
    """Find the workers to use, or None for the calling thread itself. Loads joblib only if it may be needed."""
    alone = workers is None and "joblib" not in sys.modules and threads.available_cpus() == 1
    if workers == 1 or _working.get() or alone:
        return None
    with threads.unset("KMP_INIT_AT_FORK"):  # joblib's import sets it
        from joblib.parallel import get_active_backend

    backend, configured = get_active_backend()
    nested = configured is None and bool(getattr(backend, "nesting_level", 0))  # in a worker of a joblib loop of the caller's
    if workers is None and (configured == 1 or nested):
        return None
    backend, _ = get_active_backend(prefer=prefer)
    in_threads = bool(getattr(backend, "uses_threads", False))
    if not in_threads and _processes_are_out_of_reach():
        return None
    n_jobs = next((n for n in (workers, configured, backend.default_n_jobs) if n not in (None, 1)), threads.available_cpus())
    if n_jobs == -1 and type(backend).__module__.startswith("joblib._parallel_backends"):
        n_jobs = threads.available_cpus()
    if backend.effective_n_jobs(n_jobs) == 1:
        return None
    as_they_come = bool(getattr(backend, "supports_return_generator", False))
    wrapped = type(backend).__name__ == "MultiprocessingBackend"
    return _Crew(n_jobs, prefer, in_threads, as_they_come, wrapped, nullcontext() if in_threads else _processes.turn)


@contextmanager
def beside_others() -> Iterator[None]:
    """Work inside the block as a worker of `map_chunks` does: on one thread, starting no other, showing no bar."""
    token = _working.set(True)
    try:
        with silent(), threads.as_worker():
            yield
    finally:
        _working.reset(token)


def configured() -> bool:
    """Whether the user has said by `joblib.parallel_config` where work goes."""
    if "joblib" not in sys.modules:
        return False
    from joblib.parallel import get_active_backend

    backend, n_jobs = get_active_backend()
    return n_jobs not in (None, 1) or type(backend).__name__ != "LokyBackend"


def _check(workers: int | None) -> None:
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int)):
        raise ParameterTypeError(f"workers is an integer or None, not {shown(workers)}. Give 1 for the calling thread alone.")
    if workers is not None and workers < 1 and workers != -1:
        raise ParameterError(f"workers is at least 1, or -1 for every CPU, not {workers}. Leave it out for the usual number.")


def _processes_are_out_of_reach() -> bool:
    """Tell whether this process can't have a pool: a daemon, without output, or forked from one whose pool it still sees."""
    import multiprocessing

    if multiprocessing.current_process().daemon:
        return True
    try:  # both are flushed when a process is started: here they may be None, closed, or a pipe that nobody reads
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except (AttributeError, OSError, ValueError):
        return True
    _processes.owner = _processes.owner or os.getpid()
    return _processes.owner != os.getpid()


class _Processes:
    """The pool of processes that joblib keeps: which process it belongs to, and whose turn it is to use it."""

    owner: int | None = None
    turn = threading.Lock()


class _Spread(Generic[T]):
    """One round over all slices, and then, while workers get lost, what they held once more."""

    def __init__(self, job: _Job[T], parts: list[slice], crew: _Crew, tick: Tick, on_lost: OnLost[T] | None) -> None:
        self.job, self.parts, self.crew, self.tick, self.on_lost = job, parts, crew, tick, on_lost
        self.done: dict[int, T] = {}
        self.said: dict[int, list[tuple[type[Warning], str]]] = {}

    def results(self) -> list[T]:
        while todo := [place for place in range(len(self.parts)) if place not in self.done]:
            lost = self._round(todo)
            if lost and self.crew.in_threads:  # which cannot be ended, so nothing would be better the second time
                raise self._given_up(lost, "")
            for place in lost.held if lost else ():
                # One at a time: a slice that takes its worker with it again is then known for certain.
                if again := self._round([place]):
                    error = self._given_up(again, ", nor did the one that tried again")
                    if self.on_lost is None:
                        raise error
                    self.done[place], self.said[place] = self.on_lost(place, error), []
                    self.tick(1)
        for place in sorted(self.said):
            for category, text in self.said[place]:
                warnings.warn(text, category, stacklevel=3)
        return [self.done[place] for place in range(len(self.parts))]

    def _round(self, todo: list[int]) -> _Lost | None:
        """Run the slices `todo`. If a worker was lost: those that were out at that moment, and the error."""
        from joblib import Parallel

        out: dict[int, None] = {}
        left = iter(todo)
        crew, limit = self.crew, self.job.timeout
        if limit is not None and not crew.in_threads:
            limit += 5.0  # a worker watches its own time, by the monotonic clock; this is for one that was stopped
        pool = Parallel(
            n_jobs=crew.n_jobs,
            prefer=crew.prefer,
            return_as="generator_unordered" if crew.as_they_come else "list",
            batch_size=1,
            pre_dispatch="n_jobs + 1",
            timeout=limit,
        )
        try:
            with _closing(pool(self._tasks(left, out)), left) as answers:
                for place, value, said in answers:
                    self.done[place], self.said[place] = value, said
                    del out[place]
                    self.tick(self.parts[place].stop - self.parts[place].start)
        except Exception as error:
            if _from_work(error) or not out:
                raise
            return _Lost(list(out), error)
        return None

    def _tasks(self, left: Iterator[int], out: dict[int, None]) -> Iterator[Any]:
        job: Any = self.job
        if self.crew.wrapped:  # the one backend that cannot send a function defined inside another
            from joblib import wrap_non_picklable_objects

            job = wrap_non_picklable_objects(job, keep_wrapper=False)
        for place in left:
            out[place] = None
            yield _remote, (job, place, self.parts[place]), {}

    def _given_up(self, lost: _Lost, tried: str) -> TrainingError:
        if self.job.names:
            error = TrainingError(f"{shown(self.job.names[lost.held[0]])}: its worker process {ending(lost.error)}")
            error.__cause__ = lost.error
            return error
        lines = str(lost.error).splitlines() or [""]
        exit_codes = next((line for line in lines if "exit codes" in line), lines[0])
        reason = f"{type(lost.error).__name__}: {exit_codes.rstrip('.')}"
        allowed = "" if self.job.timeout is None else f" (allowed: {self.job.timeout:g} s)"
        error = TrainingError(
            f"A worker process must return its results; the one with {_named(self.job.label, self.parts[lost.held[0]])} "
            f"did not{allowed}{tried}: {shown(reason, 200)}. Run with workers=1 to see what happens there."
        )
        error.__cause__ = lost.error
        return error


@dataclass(frozen=True)
class _Lost:
    held: list[int]
    error: Exception


def _inline(job: _Job[T], part: slice, tick: Tick) -> T:
    value = _noted(job, part)
    tick(part.stop - part.start)
    return value


def _remote(job: _Job[T], place: int, part: slice) -> tuple[int, T, list[tuple[type[Warning], str]]]:
    """Run in a worker: one slice, on one thread, with its warnings brought home."""
    with beside_others():
        if os.getpid() == job.driver:
            return place, _noted(job, part), []
        _end_with(job.driver)
        with _watched(job.timeout), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            value = _noted(job, part)
        return place, value, list(dict.fromkeys((each.category, str(each.message)) for each in caught))


def _noted(job: _Job[T], part: slice) -> T:
    try:
        return job.work(part)
    except Exception as error:
        error.add_note(f"{_NOTE} {_named(job.label, part)}")
        raise


def _from_work(error: BaseException) -> bool:
    return any(note.startswith(_NOTE) for note in getattr(error, "__notes__", ()))


def _named(label: str, part: slice) -> str:
    return f"{label} {part.start} to {part.stop - 1} (counted from 0)"


@contextmanager
def _watched(timeout: float | None) -> Iterator[None]:
    """End this worker if the block takes longer; by a thread of C, so that a kernel that holds the GIL is no shelter."""
    if timeout is None:
        yield
        return
    import faulthandler

    faulthandler.dump_traceback_later(timeout, exit=True, file=2)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def _end_with(driver: int) -> None:
    """See to it, once, that this worker does not outlive the process that started it, however that ended."""
    if _Guard.on or not hasattr(os, "getppid") or os.getppid() != driver:
        return
    _Guard.on = True

    def guard() -> None:
        while os.getppid() == driver:
            time.sleep(2.0)
        os._exit(1)

    threading.Thread(target=guard, name="deepforecast-guard", daemon=True).start()


class _Guard:
    on = False


@contextmanager
def _closing(answers: Any, left: Iterator[int]) -> Iterator[Any]:
    """Stop the workers if the block is left early (Ctrl-C)."""
    try:
        yield answers
    except BaseException:
        deque(left, maxlen=0)  # so that nothing is sent any more; joblib's thread trips over what it sends while it stops
        time.sleep(0.05)
        if hasattr(answers, "close"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # joblib's remark that there was more to do
                answers.close()
        raise


_NOTE = "This happened while working on"
_working: ContextVar[bool] = ContextVar("deepforecast_working", default=False)
_processes = _Processes()
