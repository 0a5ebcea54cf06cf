"""Thread numbers, OpenMP's waiting policy and the allocator: the one place that touches any of them.

Nothing happens on import, and whatever is set is put back afterwards. Nothing here warns: what was set, by whom,
and what could not be done and why is in `status()`, which `deepforecast doctor` prints.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from deepforecast.core.cpus import affinity, quota
from deepforecast.core.lightgbm_threads import max_threads
from deepforecast.core.shared_libraries import load_counts

PASSIVE = {"OMP_WAIT_POLICY": "PASSIVE", "KMP_BLOCKTIME": "0"}
"""What `passive_waiting` sets: the first is read by every OpenMP, the second by Intel's and LLVM's only."""

_WAITING_VARIABLES = (*PASSIVE, "GOMP_SPINCOUNT", "KMP_LIBRARY")


def available_cpus() -> int:
    """Count the CPUs this process may use, at least 1: by affinity, by the quota of its control groups, by joblib's variable.

    >>> available_cpus() >= 1
    True
    """
    joblib_limit = os.environ.get("LOKY_MAX_CPU_COUNT", "")
    return max(1, min(affinity(), math.ceil(min(quota(), 1e9)), int(joblib_limit) if joblib_limit.isdecimal() else sys.maxsize))


def allowed_threads() -> int:
    """Count the threads the work at hand may use: at most the available CPUs and OMP_NUM_THREADS.

    One inside a worker of `map_chunks`, and one in a forked process: the threads of OpenMP do not
    survive a fork, and it waits for them forever.
    """
    if is_forked():
        return 1
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()  # of nested levels
    limit = int(first) if first.isdecimal() and int(first) else sys.maxsize
    return _thread_limit.get() or min(available_cpus(), limit)


def torch_threads() -> int:
    """Count the threads a network may use: `allowed_threads`, or those set in torch if fewer."""
    with _limits.lock:  # inside a block of `limit_threads`, torch has the number of the block
        pools = _limits.initial if _limits.stack else []
        torch_limits = [number for pool, number in pools if pool.name == "torch"]
    return min([allowed_threads(), *(torch_limits or [sys.modules["torch"].get_num_threads()])])


def is_forked() -> bool:
    """Whether this process was forked from one that had loaded the library."""
    return os.getpid() != _loading_pid


@contextmanager
def one_thread_if_forked() -> Iterator[None]:
    """Compute on one thread inside the block if this process was forked: see `allowed_threads`."""
    if not is_forked():
        yield
        return
    with limit_threads(1):
        yield


def stay_on_one_thread_if_forked() -> None:
    """Let BLAS, OpenMP, torch and LightGBM use one thread from now on, if this process was forked.

    For copies and pickles of models, whose parts are read after the call that can set the number.
    """
    if is_forked():
        with _limits.lock:
            for pool in _pools():
                pool.set(1)


@contextmanager
def limit_threads(threads: int) -> Iterator[None]:
    """Let BLAS, OpenMP and, where they are loaded, torch and LightGBM use `threads` threads inside the block.

    Blocks may be nested, and several threads may be inside one at the same time: the innermost number counts, and when
    the last has left, everything is as it was before the first. BLAS libraries know one number for the whole process;
    OpenMP and torch know one a thread, so each thread that computes enters a block of its own.
    """
    thread_id = threading.get_ident()
    with _limits.lock:
        first = not _limits.stack
        if first:
            _limits.initial = [(pool, pool.get()) for pool in _pools()]
        _limits.stack.append((thread_id, threads))
    try:
        with _limits.lock:
            for pool, _ in _limits.initial:
                pool.set(threads)
            if first:
                # What would not be set (BLAS, while another thread is in a block of threadpoolctl's) is not ours to restore.
                _limits.initial = [(pool, initial_number) for pool, initial_number in _limits.initial if initial_number == threads or pool.get() != initial_number]
        yield
    finally:
        with _limits.lock:
            # The entry to go is the latest of this thread, which need not be the latest of all.
            del _limits.stack[max(entry for entry, (owner, _) in enumerate(_limits.stack) if owner == thread_id)]
            own_counts = [number for owner, number in _limits.stack if owner == thread_id]
            all_counts = [number for _, number in _limits.stack]
            for pool, initial_count in _limits.initial:
                remaining = own_counts if pool.per_thread else all_counts
                pool.set(remaining[-1] if remaining else initial_count)


@contextmanager
def limit_torch_threads(threads: int) -> Iterator[None]:
    """`limit_threads` for torch in the calling thread alone, at a fiftieth of the price: for a pass that calls nothing else."""
    torch = sys.modules["torch"]
    previous = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(previous)


def thread_counts() -> list[tuple[str, int]]:
    """How many threads each library uses that has threads of its own."""
    return [(pool.name, pool.get()) for pool in _pools()]


@contextmanager
def as_worker() -> Iterator[None]:
    """Be one of several workers inside the block: one thread for every library, and nothing nested starts more."""
    token = _thread_limit.set(1)
    try:
        with limit_threads(1):
            yield
    finally:
        _thread_limit.reset(token)


@contextmanager
def passive_waiting(*libraries: str) -> Iterator[None]:
    """Make the OpenMP libraries that are loaded inside the block sleep, not spin, while they wait. For first imports.

    `with waiting_passively("torch"): import torch`. OpenMP reads the environment once, when it is loaded, so the
    variables are set around that import only (through `putenv`, which it sees) and the effect outlives them. A
    variable of the user's own is left alone. Nothing to do, and no cost, where all `libraries` are imported already.

    What it buys and costs (torch 2.13 with its libgomp, 2 threads on 2 cores, a training step of an LSTM of 64 on 256 x 96):
    idle threads use 0.06 CPUs instead of 1.03; the step takes 49 ms instead of 27 on a quiet machine (44 on one
    thread, which does not wait at all), 48 instead of 85 beside one busy process, 101 instead of 334 beside two.
    LightGBM 4.7, 2 threads: 1.26 s instead of 0.91 on a quiet machine (1.69 on one thread), 1.2 s instead of 25 beside ten busy
    processes; to spin 1,000 times first keeps the 0.91 s but takes 6.3 there. Run: python benchmarks/bench_waiting.py
    """
    thread_id = threading.get_ident()
    if (libraries and all(name in sys.modules for name in libraries)) or _wait_policies.owner == thread_id:
        yield
        return
    with _wait_policies.lock, warnings.catch_warnings():  # imports add filters of their own
        user_variables = {name: os.environ[name] for name in _WAITING_VARIABLES if name in os.environ}
        loaded_before = _openmp_threads()
        _wait_policies.owner = thread_id
        if not user_variables:
            os.environ.update(PASSIVE)
        try:
            yield
        finally:
            policy = _describe_variables(user_variables) if user_variables else "passively, set by deepforecast"
            # Looked up before the environment is restored: it also makes an OpenMP that reads it late read it now.
            _wait_policies.policies.update({path: policy for path in _openmp_threads() if path not in loaded_before})
            if not user_variables:
                for name in PASSIVE:
                    os.environ.pop(name, None)
            _wait_policies.owner = None


@contextmanager
def keep_unset(*names: str) -> Iterator[None]:
    """Unset those of these environment variables again that were not set before the block: some imports set them."""
    new = [name for name in names if name not in os.environ]
    try:
        yield
    finally:
        for name in new:
            os.environ.pop(name, None)


@contextmanager
def keep_buffers() -> Iterator[str]:
    """Keep freed memory in the process inside the block, instead of handing large buffers back and faulting them in again.

    Gives the empty string, or the reason why this cannot be done here. Training loops that allocate buffers above 32 MB
    in each step spend half their time in page faults without it (48 MB: 536 faults and 3.1 ms, with it none and 1.2 ms).
    """
    reason = _keep_buffers_obstacle()
    if reason:
        yield reason
        return
    with _buffers.lock:
        _buffers.users += 1
        if _buffers.users == 1:
            _mallopt(mmap_max=0, trim_threshold=2**31 - 1, mmap_threshold=32 * 2**20)
    try:
        yield ""
    finally:
        with _buffers.lock:
            _buffers.users -= 1
            if not _buffers.users:
                # glibc moves its thresholds by itself until one is set by hand, and this cannot be turned on again.
                # So they go to the end of that road, where a process is that has once freed a large buffer.
                _mallopt(mmap_max=65536, trim_threshold=64 * 2**20, mmap_threshold=32 * 2**20)
                _libc().malloc_trim(0)


def status() -> dict[str, str]:
    """Say what is in force, who set it, and what could not be done and why. For `deepforecast doctor`."""
    cpu_quota = quota()
    report = {
        "cpus": f"{available_cpus()} usable ({os.cpu_count()} in the machine, {affinity()} by affinity, "
        + ("no quota)" if cpu_quota == math.inf else f"{cpu_quota:g} by quota)")
    }
    user_variables = {name: os.environ[name] for name in _WAITING_VARIABLES if name in os.environ}
    default_policy = _describe_variables(user_variables) if user_variables else "by spinning first: loaded before deepforecast could set OMP_WAIT_POLICY"
    loaded = _openmp_threads()
    for path, threads in loaded.items():
        report[f"openmp {_short_path(path)}"] = f"{threads} threads, waits {_wait_policies.policies.get(path, default_policy)}"
    if not loaded:
        report["openmp"] = f"not loaded yet; will wait {_describe_variables(user_variables) if user_variables else 'passively if deepforecast loads it'}"
    if not user_variables and any(path not in _wait_policies.policies for path in loaded):
        report["way out"] = (
            "import deepforecast's models before torch and lightgbm, or set OMP_WAIT_POLICY=PASSIVE before Python starts"
        )
    for pool in _pools():
        if not pool.name.startswith("openmp"):
            threads = pool.get()
            report[pool.name] = f"{threads} threads" if threads > 0 else "no limit of threads"
    buffer_status = _keep_buffers_obstacle() or ("freed buffers are kept now" if _buffers.users else "freed buffers can be kept while training")
    report["allocator"] = f"{_libc_name() or 'not glibc'}: {buffer_status}"
    return report


# --- thread pools -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Pool:
    """A library with threads of its own: how many, and whether that number belongs to the calling thread alone."""

    name: str
    per_thread: bool
    get: Any
    set: Any


@dataclass
class _Limits:
    """The blocks of `limit_threads` in force, as (thread, number), and the numbers from before the first of them."""

    lock: Any = field(default_factory=threading.RLock)
    stack: list[tuple[int, int]] = field(default_factory=list)
    initial: list[tuple[_Pool, int]] = field(default_factory=list)


@dataclass
class _LibraryCache:
    """The libraries found by the last look, and how many had been loaded then."""

    load_counts: tuple[int, int] | None = None
    libraries: list[Any] = field(default_factory=list)


def _pools() -> list[_Pool]:
    pools = []
    torch = sys.modules.get("torch")
    if hasattr(torch, "set_num_threads"):  # not while another thread is still importing it
        pools.append(_Pool("torch", True, torch.get_num_threads, torch.set_num_threads))  # type: ignore[union-attr]
    lightgbm: Any = getattr(sys.modules.get("lightgbm.basic"), "_LIB", None)
    if hasattr(lightgbm, "LGBM_SetMaxThreads"):  # models are read and written on the threads of the last training
        pools.append(_Pool("lightgbm", False, partial(max_threads, lightgbm), lightgbm.LGBM_SetMaxThreads))
    for library in _controllers():
        name = f"{library.user_api} {_short_path(library.filepath)}"
        pools.append(_Pool(name, library.user_api == "openmp", library.get_num_threads, partial(_set_threads, library)))
    return pools


def _controllers() -> list[Any]:
    """threadpoolctl's handles of the libraries with threads. It goes through all that is loaded: only if that has changed."""
    counts = load_counts()
    if counts is None or counts != _library_cache.load_counts:
        _library_cache.libraries = _threadpoolctl().ThreadpoolController().lib_controllers
        _library_cache.load_counts = counts  # if the look itself loaded something, there will be another
    return _library_cache.libraries


def _set_threads(library: Any, threads: int) -> None:
    """Set the number without keeping to ourselves the right to set it, which threadpoolctl gives to one thread at a time."""
    library.set_num_threads(threads)
    getattr(library, "clear_controlling_thread", int)()


def _openmp_threads() -> dict[str, int]:
    """Path and threads of each OpenMP library that is loaded."""
    loaded = _threadpoolctl().threadpool_info()
    return {library["filepath"]: library["num_threads"] for library in loaded if library["user_api"] == "openmp"}


def _threadpoolctl() -> Any:
    with keep_unset("KMP_DUPLICATE_LIB_OK"):  # its import sets it
        import threadpoolctl

    return threadpoolctl


def _short_path(path: str) -> str:
    """Folder and name of a library, enough to see whose copy it is."""
    return "/".join(Path(path).parts[-2:])


@dataclass
class _WaitPolicies:
    """How each OpenMP library (by path) that was loaded under `passive_waiting` waits."""

    lock: Any = field(default_factory=threading.Lock)
    owner: int | None = None
    policies: dict[str, str] = field(default_factory=dict)


def _describe_variables(variables: dict[str, str]) -> str:
    return "as the environment says: " + " ".join(f"{name}={value}" for name, value in variables.items())


# --- allocator ----------------------------------------------------------------------------------------------------------


@dataclass
class _Buffers:
    """How many blocks of `keep_buffers` are entered."""

    lock: Any = field(default_factory=threading.Lock)
    users: int = 0


def _libc() -> Any:
    import ctypes

    return ctypes.CDLL(None)


def _mallopt(*, mmap_max: int, trim_threshold: int, mmap_threshold: int) -> None:
    # The numbers of the options are those of malloc.h.
    for option, value in ((-4, mmap_max), (-1, trim_threshold), (-3, mmap_threshold)):
        _libc().mallopt(option, value)


def _libc_name() -> str:
    """Name and version where the C library is glibc, else empty."""
    try:
        name = os.confstr("CS_GNU_LIBC_VERSION") if hasattr(os, "confstr") else None
    except (ValueError, OSError):
        return ""
    return name if name and name.startswith("glibc") else ""


def _keep_buffers_obstacle() -> str:
    """Why `keep_buffers` must do nothing here, or empty."""
    if not _libc_name():
        return "only glibc's allocator can be told to keep freed buffers"
    preloaded = [name for name in ("jemalloc", "tcmalloc", "mimalloc") if name in os.environ.get("LD_PRELOAD", "")]
    if preloaded:
        return f"{preloaded[0]} is preloaded and manages its buffers itself"
    user_variables = [name for name in os.environ if name.startswith("MALLOC_") and name.endswith("_")]
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    if user_variables or "malloc.mmap" in tunables or "malloc.trim" in tunables:
        return f"the environment sets the allocator already: {(user_variables or ['GLIBC_TUNABLES'])[0]}"
    return ""


_loading_pid = os.getpid()
_thread_limit: ContextVar[int | None] = ContextVar("deepforecast_share", default=None)
_limits = _Limits()
_library_cache = _LibraryCache()
_wait_policies = _WaitPolicies()
_buffers = _Buffers()
