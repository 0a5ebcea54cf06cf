"""Settings of thread counts, OpenMP's wait policy and the memory allocator.

Nothing is set on import, and all settings are restored afterwards. There are no warnings:
`status()`, which `deepforecast doctor` prints, reports what is set, by whom, and what cannot be set
and why.
"""

from __future__ import annotations

import ctypes
import math
import os
import platform
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from deepforecast.errors import pluralize

T = TypeVar("T")


def affinity() -> int:
    """Number of CPUs that the scheduler may use for this process."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache  # reading takes as long as fitting a series
def quota(root: Path = Path("/")) -> float:
    """The CPU quota of the control groups of this process and their parents; infinity without a quota."""
    quotas = [math.inf]
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, _, names_and_path = line.partition(":")
        names, _, path = names_and_path.partition(":")
        if names and "cpu" not in names.split(","):
            continue
        mounts = (names, "cpu", "cpu,cpuacct") if names else ("", "unified")
        # A container may see the path of its host here, and its own group as the root, so check all parents.
        group = PurePosixPath(path.lstrip("/"))
        quotas += [
            _group_quota(root / "sys/fs/cgroup" / mount / directory)
            for mount in mounts
            for directory in (group, *group.parents)
        ]
    return min(quotas)


def _group_quota(group: Path) -> float:
    """CPU quota of one control group: `cpu.max` in version 2, two files in version 1."""
    numbers = _read(group / "cpu.max").split() or [
        *_read(group / "cpu.cfs_quota_us").split(),
        *_read(group / "cpu.cfs_period_us").split(),
    ]
    try:
        quota, period = (float(number) for number in numbers)
    except ValueError:  # "max", or no such files
        return math.inf
    return quota / period if quota > 0 and period > 0 else math.inf


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


class _LibraryInfo(ctypes.Structure):
    """`struct dl_phdr_info` of link.h; the last two are the numbers of libraries loaded and unloaded."""

    _fields_ = (
        *(("address", ctypes.c_size_t), ("name", ctypes.c_char_p), ("headers", ctypes.c_void_p)),
        *(("count", ctypes.c_uint16), ("adds", ctypes.c_ulonglong), ("subs", ctypes.c_ulonglong)),
    )


_InfoReader = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_LibraryInfo), ctypes.c_size_t, ctypes.c_void_p)


def load_counts() -> tuple[int, int] | None:
    """Numbers of shared libraries loaded and unloaded so far, as counted by the linker (Linux only), else None.

    >>> load_counts() == load_counts()
    True
    """
    counts: list[tuple[int, int]] = []

    def read_first(library: Any, info_size: int, _data: Any) -> int:
        if info_size >= ctypes.sizeof(_LibraryInfo):  # older C libraries do not report counts
            counts.append((library.contents.adds, library.contents.subs))
        return 1  # stop after the first library, as all report the same counts

    if sys.platform == "linux":
        _libc().dl_iterate_phdr(_InfoReader(read_first), None)
    return counts[0] if counts else None


PASSIVE = {"OMP_WAIT_POLICY": "passive", "KMP_BLOCKTIME": "0"}  # lower case: in a Turkish locale I is not i
"""Variables set by `passive_waiting`: the first is read by all OpenMP libraries, the second by those of Intel and LLVM."""

_WAITING_VARIABLES = (*PASSIVE, "GOMP_SPINCOUNT", "KMP_LIBRARY")


def available_cpus() -> int:
    """Number of CPUs this process may use, by CPU affinity, control groups and LOKY_MAX_CPU_COUNT.

    >>> available_cpus() >= 1
    True
    """
    return max(1, math.ceil(min(affinity(), quota(), _environment_limit("LOKY_MAX_CPU_COUNT"))))


def allowed_threads() -> int:
    """Number of threads for computations: at most the available CPUs and OMP_NUM_THREADS.

    One inside a worker of `map_chunks`, and one in a forked process, as OpenMP would wait forever
    for its threads, which do not survive a fork.
    """
    if is_forked():
        return 1
    limit = _environment_limit("OMP_NUM_THREADS") or math.inf
    return _thread_limit.get() or int(min(available_cpus(), limit))


def _environment_limit(variable: str) -> float:
    """The number that an environment variable sets, the first of those for several nesting levels; infinite without one."""
    number = os.environ.get(variable, "").partition(",")[0].strip()
    return int(number) if number.isdecimal() else math.inf


def torch_threads() -> int:
    """Number of threads for torch: the smaller of `allowed_threads` and the number set in torch."""
    with _limits_lock:  # inside `limit_threads`, torch has the limited number
        pools = _initial_numbers if _limit_stack else []
        torch_limits = [number for pool, number in pools if pool.name == "torch"]
    return min([allowed_threads(), *(torch_limits or [sys.modules["torch"].get_num_threads()])])


def is_forked() -> bool:
    """Whether this process was forked after this module was loaded."""
    return os.getpid() != _loading_pid


@contextmanager
def one_thread_if_forked() -> Iterator[None]:
    """Limit the block to one thread if this process was forked (see `allowed_threads`)."""
    with limit_threads(1) if is_forked() else nullcontext():
        yield


def stay_on_one_thread_if_forked() -> None:
    """Limit BLAS, OpenMP, torch and LightGBM to one thread permanently, if this process was forked.

    For copying and pickling models, whose parts are read after the last call that could restore the
    number.
    """
    if is_forked():
        with _limits_lock:
            for pool in _pools():
                pool.set(1)


@contextmanager
def limit_threads(threads: int) -> Iterator[None]:
    """Limit BLAS, OpenMP and, if loaded, torch and LightGBM to `threads` threads inside the block.

    Blocks may be nested and entered by several threads at once. The innermost limit holds, and the
    initial numbers are restored when the last block is left. BLAS libraries have one number per
    process; OpenMP and torch have one per thread, so each computing thread must enter a block.
    """
    thread_id = threading.get_ident()
    with _limits_lock:
        is_outermost = not _limit_stack
        if is_outermost:
            _initial_numbers[:] = [(pool, pool.get()) for pool in _pools()]
        _limit_stack.append((thread_id, threads))
    try:
        with _limits_lock:
            for pool, _ in _initial_numbers:
                pool.set(threads)
            if is_outermost:
                # Do not restore what could not be set (BLAS, while another thread uses threadpoolctl).
                _initial_numbers[:] = [
                    (pool, initial_number)
                    for pool, initial_number in _initial_numbers
                    if initial_number == threads or pool.get() != initial_number
                ]
        yield
    finally:
        with _limits_lock:
            # Remove the last entry of this thread, which need not be the last of all.
            del _limit_stack[max(entry for entry, (owner, _) in enumerate(_limit_stack) if owner == thread_id)]
            for pool, initial_number in _initial_numbers:
                limits = [limit for owner, limit in _limit_stack if owner == thread_id or not pool.per_thread]
                pool.set(limits[-1] if limits else initial_number)


@contextmanager
def limit_torch_threads(threads: int) -> Iterator[None]:
    """`limit_threads` for torch in the calling thread only, 50 times as fast: for code that calls only torch."""
    torch = sys.modules["torch"]
    previous = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(previous)


def thread_counts() -> list[tuple[str, int]]:
    """Name and number of threads of each library with a thread pool."""
    return [(pool.name, pool.get()) for pool in _pools()]


@contextmanager
def set_variable(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Set a context variable inside the block."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


@contextmanager
def as_worker() -> Iterator[None]:
    """Limit the block, including nested parallel calls, to one thread per library."""
    with set_variable(_thread_limit, 1), limit_threads(1):
        yield


@contextmanager
def passive_waiting(*libraries: str) -> Iterator[None]:
    """Make OpenMP libraries that are first imported inside the block wait passively (sleep) instead of spinning.

    `with passive_waiting("torch"): import torch`. OpenMP reads the environment once, when it is
    loaded, so the variables are set only during the import, and the effect lasts. Variables set by
    the user are not changed. Does nothing if all `libraries` are imported already.

    Costs and benefits (torch 2.13 with its libgomp, 2 threads on 2 cores, training step of an LSTM
    of size 64 on 256 x 96): idle threads use 0.06 CPUs instead of 1.03; a step takes 49 ms instead
    of 27 on an idle machine (44 on one thread, which never waits), 48 instead of 85 with another
    busy process, 101 instead of 334 with two. LightGBM 4.7, 2 threads: 1.26 s instead of 0.91 on an
    idle machine (1.69 on one thread), 1.2 s instead of 25 with ten busy processes; spinning 1,000
    times first keeps the 0.91 s but takes 6.3 s there. Measured by benchmarks/bench_waiting.py.
    """
    thread_id = threading.get_ident()
    global _importing_thread
    if (libraries and all(name in sys.modules for name in libraries)) or _importing_thread == thread_id:
        yield
        return
    with _importing_lock, warnings.catch_warnings(), keep_unset(*PASSIVE):  # imports add filters of their own
        user_policy = _user_policy()
        loaded_before = _openmp_threads()
        _importing_thread = thread_id
        if not user_policy:
            os.environ.update(PASSIVE)
        try:
            yield
        finally:
            # Before restoring the environment: this also makes OpenMP libraries that read it lazily read it now.
            new_libraries = _openmp_threads().keys() - loaded_before.keys()
            _wait_policies.update(dict.fromkeys(new_libraries, user_policy or "passively, set by deepforecast"))
            _importing_thread = None


@contextmanager
def keep_unset(*names: str) -> Iterator[None]:
    """Unset environment variables after the block that were not set before it, as some imports set them."""
    new = [name for name in names if name not in os.environ]
    try:
        yield
    finally:
        for name in new:
            os.environ.pop(name, None)


@contextmanager
def keep_buffers() -> Iterator[str]:
    """Keep freed memory in the process inside the block, instead of returning large buffers to the system.

    Yields "", or the reason why this is impossible. Training loops that allocate buffers above 32
    MB in each step otherwise spend half of their time in page faults (48 MB: 536 faults and 3.1 ms,
    instead of none and 1.2 ms).
    """
    global _buffer_users
    reason = _keep_buffers_obstacle()
    if reason:
        yield reason
        return
    with _buffers_lock:
        _buffer_users += 1
        if _buffer_users == 1:
            _mallopt(mmap_max=0, trim_threshold=2**31 - 1, mmap_threshold=32 * 2**20)
    try:
        yield ""
    finally:
        with _buffers_lock:
            _buffer_users -= 1
            if not _buffer_users:
                # glibc adapts its thresholds until one is set, and this cannot be undone. So set them to their maximum,
                # which they have in a process that once freed a large buffer.
                _mallopt(mmap_max=65536, trim_threshold=64 * 2**20, mmap_threshold=32 * 2**20)
                _libc().malloc_trim(0)


def status() -> dict[str, str]:
    """Report thread counts, wait policies and the allocator, for `deepforecast doctor`."""
    cpu_quota = quota()
    report = {
        "cpus": f"{available_cpus()} usable ({os.cpu_count()} in the machine, {affinity()} by affinity, "
        + ("no quota)" if cpu_quota == math.inf else f"{cpu_quota:g} by quota)")
    }
    loaded, user_policy = _openmp_threads(), _user_policy()
    default_policy = user_policy or "by spinning first: loaded before deepforecast could set OMP_WAIT_POLICY"
    for path, threads in loaded.items():
        policy = _wait_policies.get(path, default_policy)
        report[f"openmp {_short_path(path)}"] = f"{pluralize(threads, 'thread')}, waits {policy}"
    if not loaded:
        report["openmp"] = f"not loaded yet; will wait {user_policy or 'passively if deepforecast loads it'}"
    if not user_policy and loaded.keys() - _wait_policies.keys():
        report["hint"] = (
            "import deepforecast's models before torch and lightgbm, or set OMP_WAIT_POLICY=PASSIVE before Python starts"
        )
    for name, threads in thread_counts():
        if not name.startswith("openmp"):
            report[name] = pluralize(threads, "thread") if threads > 0 else "no limit of threads"
    buffer_status = "freed buffers are kept now" if _buffer_users else "freed buffers can be kept while training"
    report["allocator"] = f"{_libc_name() or 'not glibc'}: {_keep_buffers_obstacle() or buffer_status}"
    return report


# --- thread pools -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Pool:
    """The thread pool of a library; `per_thread`: whether its number of threads is set per calling thread."""

    name: str
    per_thread: bool
    get: Any
    set: Any


def _pools() -> list[_Pool]:
    """The thread pools of the loaded libraries."""
    pools = []
    torch = sys.modules.get("torch")
    if hasattr(torch, "set_num_threads"):  # False while another thread is importing it
        pools.append(_Pool("torch", True, torch.get_num_threads, torch.set_num_threads))  # type: ignore[union-attr]
    lightgbm: Any = getattr(sys.modules.get("lightgbm.basic"), "_LIB", None)
    if hasattr(lightgbm, "LGBM_SetMaxThreads"):  # reading and writing models uses the threads of the last training

        def lightgbm_limit() -> int:
            limit = ctypes.c_int(0)
            lightgbm.LGBM_GetMaxThreads(ctypes.byref(limit))
            return limit.value  # -1: no limit

        pools.append(_Pool("lightgbm", False, lightgbm_limit, lightgbm.LGBM_SetMaxThreads))
    for library in _controllers():
        name = f"{library.user_api} {_short_path(library.filepath)}"
        pools.append(_Pool(name, library.user_api == "openmp", library.get_num_threads, partial(_set_threads, library)))
    return pools


def _controllers() -> list[Any]:
    """threadpoolctl's controllers; listed again only if a library was loaded, as this is slow."""
    counts = load_counts()  # from before listing, which may itself load a library
    if counts is None:
        _list_controllers.cache_clear()
    return _list_controllers(counts)


@lru_cache(maxsize=1)
def _list_controllers(_load_counts: tuple[int, int] | None) -> list[Any]:
    return list(_threadpoolctl().ThreadpoolController().lib_controllers)


def _set_threads(library: Any, threads: int) -> None:
    """Set the number of threads, and release the right to set it, which threadpoolctl gives to one thread at a time."""
    library.set_num_threads(threads)
    getattr(library, "clear_controlling_thread", int)()


def _openmp_threads() -> dict[str, int]:
    """Number of threads of each loaded OpenMP library, by path."""
    loaded = _threadpoolctl().threadpool_info()
    return {library["filepath"]: library["num_threads"] for library in loaded if library["user_api"] == "openmp"}


def _threadpoolctl() -> Any:
    with keep_unset("KMP_DUPLICATE_LIB_OK"):  # its import sets it
        import threadpoolctl

    return threadpoolctl


def _short_path(path: str) -> str:
    """Folder and file name of a library."""
    return "/".join(Path(path).parts[-2:])


def _user_policy() -> str:
    """The wait policy that the environment sets, or ""."""
    variables = [f"{name}={os.environ[name]}" for name in _WAITING_VARIABLES if name in os.environ]
    return f"as set in the environment: {' '.join(variables)}" if variables else ""


# --- allocator ----------------------------------------------------------------------------------------------------------


@cache
def _libc() -> Any:
    return ctypes.CDLL(None)


def _mallopt(*, mmap_max: int, trim_threshold: int, mmap_threshold: int) -> None:
    # Option numbers of malloc.h: M_MMAP_MAX, M_TRIM_THRESHOLD, M_MMAP_THRESHOLD.
    for option, value in ((-4, mmap_max), (-1, trim_threshold), (-3, mmap_threshold)):
        _libc().mallopt(option, value)


@cache
def _libc_name() -> str:
    """Name and version of the C library if it is glibc, else ""."""
    name, version = platform.libc_ver()
    return f"{name} {version}" if name == "glibc" else ""


def _keep_buffers_obstacle() -> str:
    """Why `keep_buffers` is impossible, or ""."""
    if not _libc_name():
        return "only glibc's allocator can keep freed buffers"
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
_limits_lock = threading.RLock()
_limit_stack: list[tuple[int, int]] = []  # the active blocks of `limit_threads`: thread and number
_initial_numbers: list[tuple[_Pool, int]] = []  # before the first of these blocks
_importing_lock = threading.Lock()
_importing_thread: int | None = None  # the thread inside `passive_waiting`
_wait_policies: dict[str, str] = {}  # of each OpenMP library (by path) that was loaded inside `passive_waiting`
_buffers_lock = threading.Lock()
_buffer_users = 0  # number of active blocks of `keep_buffers`
