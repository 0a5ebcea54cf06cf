from __future__ import annotations

import contextlib
import importlib.util
import math
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy  # noqa: F401 (for the BLAS it brings)
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from deepforecast.core import threads


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity to set")
def test_available_cpus_follows_the_affinity():
    one = min(os.sched_getaffinity(0))
    code = f"import os; os.sched_setaffinity(0, {{{one}}}); from deepforecast.core.threads import *; print(available_cpus())"
    assert run(code) == "1"


def group(root: Path, line: str, **files: str) -> Path:
    """A fake machine: what /proc says about the process, and the files of its control groups."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(line)
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name.replace("__", "/").replace("DOT", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("line", "files", "cpus"),
    [
        ("0::/\n", {"cpuDOTmax": "150000 100000\n"}, 1.5),
        ("0::/\n", {"cpuDOTmax": "max 100000\n"}, math.inf),
        ("0::/a/b\n", {"a__b__cpuDOTmax": "max 100000", "a__cpuDOTmax": "50000 100000"}, 0.5),
        ("0::/not/here\n", {"cpuDOTmax": "300000 100000"}, 3.0),
        ("0::/a\n", {"unified__a__cpuDOTmax": "200000 100000"}, 2.0),
        ("4:cpu,cpuacct:/x\n", {"cpu__x__cpuDOTcfs_quota_us": "250000", "cpu__x__cpuDOTcfs_period_us": "100000"}, 2.5),
        ("4:cpu:/x\n", {"cpu__cpuDOTcfs_quota_us": "400000\n", "cpu__cpuDOTcfs_period_us": "100000\n"}, 4.0),
        ("4:cpu:/\n", {"cpu__cpuDOTcfs_quota_us": "-1", "cpu__cpuDOTcfs_period_us": "100000"}, math.inf),
        ("3:cpuset:/\n", {"cpu__cpuDOTcfs_quota_us": "100000", "cpu__cpuDOTcfs_period_us": "100000"}, math.inf),
        ("0::/\n", {"cpuDOTmax": "nonsense"}, math.inf),
        ("", {}, math.inf),
        ("nonsense\n", {}, math.inf),
    ],
)
def test_quota(tmp_path, line, files, cpus):
    assert threads.quota(group(tmp_path, line, **files)) == cpus


def test_available_cpus_is_at_least_one(monkeypatch):
    monkeypatch.delenv("LOKY_MAX_CPU_COUNT", raising=False)
    monkeypatch.setattr(threads, "quota", lambda: 0.2)
    assert threads.available_cpus() == 1
    monkeypatch.setattr(threads, "quota", lambda: 1.2)
    monkeypatch.setattr(threads, "affinity", lambda: 8)
    assert threads.available_cpus() == 2
    monkeypatch.setattr(threads, "quota", lambda: math.inf)
    assert threads.available_cpus() == 8
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "3")
    assert threads.available_cpus() == 3
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "many")
    assert threads.available_cpus() == 8


@pytest.mark.parametrize(
    ("variable", "wanted"),
    [("1", 1), ("3", 3), ("2,4", 2), (" 2 ", 2), ("9", 4), ("0", 4), ("many", 4), ("", 4)],
)
def test_allowed_threads_honour_omp_num_threads(monkeypatch, variable, wanted):
    monkeypatch.setattr(threads, "available_cpus", lambda: 4)
    monkeypatch.setenv("OMP_NUM_THREADS", variable)
    assert threads.allowed_threads() == wanted
    with threads.as_worker():
        assert threads.allowed_threads() == 1


def test_networks_use_no_more_threads_than_are_set_in_torch(monkeypatch):
    import torch

    monkeypatch.setattr(threads, "available_cpus", lambda: 4)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = torch.get_num_threads()
    try:
        for number, wanted in ((1, 1), (3, 3), (7, 4)):
            torch.set_num_threads(number)
            assert threads.torch_threads() == wanted
            with threads.limit_threads(2):
                assert threads.torch_threads() == wanted, "of the caller, not of the block"
            assert torch.get_num_threads() == number
    finally:
        torch.set_num_threads(before)


def test_a_forked_process_computes_on_one_thread():
    code = """
import os
from deepforecast.core import threads
threads.available_cpus = lambda: 4
os.environ.pop("OMP_NUM_THREADS", None)
assert threads.allowed_threads() == 4 and not threads.is_forked()
pid = os.fork()
if not pid:
    with threads.one_thread_if_forked():
        os._exit(0 if threads.allowed_threads() == 1 and threads.is_forked() else 1)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    assert run(code) == "0"


def blas() -> set[int]:
    return {found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"}


@pytest.fixture
def three_threads():
    """A number that is neither the default here nor one a test sets."""
    pools = [(pool, pool.get()) for pool in threads._pools()]
    for pool, _ in pools:
        pool.set(3)
    yield
    for pool, before in pools:
        pool.set(before)


@pytest.mark.usefixtures("three_threads")
class TestLimited:
    def test_sets_and_restores(self):
        with threads.limit_threads(1):
            assert blas() == {1}
        assert blas() == {3}

    def test_nested(self):
        with threads.limit_threads(1):
            with threads.limit_threads(2):
                assert blas() == {2}
            assert blas() == {1}
        assert blas() == {3}

    def test_restores_after_an_error(self):
        with pytest.raises(KeyError), threads.limit_threads(1):
            raise KeyError
        assert blas() == {3}

    @pytest.mark.parametrize("first_out", [0, 1])
    def test_two_threads_that_overlap(self, first_out):
        inside, leave = [threading.Event(), threading.Event()], [threading.Event(), threading.Event()]

        def fit(number):
            if number:
                inside[0].wait(10)
            with threads.limit_threads(1):
                inside[number].set()
                leave[number].wait(10)

        fits = [threading.Thread(target=fit, args=(number,)) for number in range(2)]
        for each in fits:
            each.start()
        inside[1].wait(10)
        for number in (first_out, 1 - first_out):
            assert blas() == {1}
            leave[number].set()
            fits[number].join(10)
        assert blas() == {3}

    def test_a_limit_of_the_user_in_another_thread_stands(self):
        seen = []

        def fit():
            with threads.limit_threads(1):
                seen.append(blas())

        with threadpool_limits(2):
            other = threading.Thread(target=fit)
            other.start()
            other.join(10)
            assert blas() == {2}
        assert blas() == {3}
        assert len(seen) == 1

    def test_a_limit_of_the_user_that_ends_meanwhile_is_not_brought_back(self):
        inside, leave = threading.Event(), threading.Event()

        def fit():
            with threads.limit_threads(1):
                inside.set()
                leave.wait(10)

        other = threading.Thread(target=fit)
        with threadpool_limits(2):
            other.start()
            inside.wait(10)
        leave.set()
        other.join(10)
        assert blas() == {3}

    def test_a_worker_is_allowed_one_thread(self, monkeypatch):
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        monkeypatch.setattr(threads, "available_cpus", lambda: 3)
        with threads.as_worker():
            assert threads.allowed_threads() == 1
            assert blas() == {1}
        assert threads.allowed_threads() == 3


def openmp_of_torch() -> str:
    """Path of the OpenMP library that comes with torch, which can be loaded without torch."""
    folder = Path(importlib.util.find_spec("torch").submodule_search_locations[0])
    found = [*folder.glob("lib/libgomp*"), *folder.parent.glob("torch.libs/libgomp*")]
    if not found:
        pytest.skip("this torch has no libgomp of its own")
    return str(found[0])


LOAD = """
import ctypes, os
from deepforecast.core import threads
os.environ["OMP_DISPLAY_ENV"] = "true"
before = dict(os.environ)
with threads.passive_waiting():
    ctypes.CDLL({path!r})
assert dict(os.environ) == before, "environment changed"
print(threads.status())
"""


class TestWaiting:
    def test_the_variable_reaches_openmp_and_the_environment_is_as_before(self):
        child = subprocess.run([sys.executable, "-c", LOAD.format(path=openmp_of_torch())], capture_output=True, text=True)
        assert "OMP_WAIT_POLICY = 'PASSIVE'" in child.stderr
        assert "waits passively, set by deepforecast" in child.stdout
        assert "'hint'" not in child.stdout

    def test_what_the_user_set_stays(self):
        child = subprocess.run(
            [sys.executable, "-c", LOAD.format(path=openmp_of_torch())],
            capture_output=True,
            text=True,
            env=os.environ | {"OMP_WAIT_POLICY": "ACTIVE"},
        )
        assert "OMP_WAIT_POLICY = 'ACTIVE'" in child.stderr
        assert "waits as set in the environment: OMP_WAIT_POLICY=ACTIVE" in child.stdout

    def test_status_says_when_it_was_too_late(self):
        code = f"""
import ctypes
ctypes.CDLL({openmp_of_torch()!r})
from deepforecast.core import threads
with threads.passive_waiting():
    pass
for name, text in threads.status().items():
    print(name, text)
"""
        said = run(code)
        assert "loaded before deepforecast could set OMP_WAIT_POLICY" in said
        assert "hint import deepforecast's models before torch" in said

    def test_environment_is_restored_after_an_error_and_when_nested(self):
        before = dict(os.environ)
        with contextlib.suppress(ImportError), threads.passive_waiting():
            assert os.environ["OMP_WAIT_POLICY"] == "passive"
            with threads.passive_waiting():
                pass
            assert os.environ["OMP_WAIT_POLICY"] == "passive"
            raise ImportError
        assert dict(os.environ) == before

    def test_nothing_happens_if_the_library_is_imported_already(self):
        with threads.passive_waiting("numpy", "sys"):
            assert "OMP_WAIT_POLICY" not in os.environ

    @pytest.mark.slow
    def test_idle_threads_of_torch_sleep(self):
        """The effect outlives the variable: CPU seconds used while nothing but waiting is done."""
        code = """
import time
from deepforecast.core.threads import limit_threads, status, passive_waiting
if {passive}:
    with passive_waiting("torch"):
        import torch
else:
    import torch
with limit_threads(2):
    assert torch.get_num_threads() == 2
    x = torch.ones(2_000_000)
    x.add_(1.0)
    start = time.process_time()
    for _ in range(100):
        x.add_(1.0)
        time.sleep(0.002)
    print(time.process_time() - start)
"""
        passive, active = (float(run(code.format(passive=passive))) for passive in (True, False))
        assert passive < active / 2

    @pytest.mark.slow
    def test_torch_has_its_threads_back(self):
        code = """
import threading, torch
from deepforecast.core.threads import limit_threads
torch.set_num_threads(3)
seen = []
def fit():
    with limit_threads(1):
        seen.append(torch.get_num_threads())
    seen.append(torch.get_num_threads())
with limit_threads(2):
    fit()
fit()
other = threading.Thread(target=fit)
other.start()
other.join()
print(seen, torch.get_num_threads())
"""
        assert run(code) == "[1, 2, 1, 3, 1, 3] 3"


BUFFERS = """
import resource
import numpy as np
from deepforecast.core import threads

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        np.empty(48 * 2**20 // 8).fill(1.0)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def is_mapped(megabytes):
    buffer = np.empty(megabytes * 2**20 // 8)
    heaps = [line.split()[0] for line in open("/proc/self/maps").read().splitlines() if line.endswith("[heap]")]
    bounds = [[int(address, 16) for address in heap.split("-")] for heap in heaps]  # several where huge pages are advised
    return not any(start <= buffer.ctypes.data < end for start, end in bounds)

usual = faults()
with threads.keep_buffers() as reason, threads.keep_buffers():
    assert reason == "", reason
    faults()
    kept = faults()
    assert "kept now" in threads.status()["allocator"]
assert kept < usual / 5, (kept, usual)
assert faults() > usual / 2, usual
assert is_mapped(48)
assert not is_mapped(16)
"""


class TestBuffers:
    @pytest.mark.skipif(bool(threads._keep_buffers_obstacle()), reason=threads._keep_buffers_obstacle() or "can be kept here")
    def test_kept_inside_and_given_back_afterwards(self):
        """Pages faulted in by large buffers that are used once each, and where they lie afterwards. In a fresh heap."""
        run(BUFFERS)

    @pytest.mark.parametrize(
        ("variable", "value", "reason"),
        [
            ("LD_PRELOAD", "/usr/lib/libjemalloc.so.2", "jemalloc"),
            ("MALLOC_TRIM_THRESHOLD_", "100000", "MALLOC_TRIM_THRESHOLD_"),
            ("GLIBC_TUNABLES", "glibc.malloc.mmap_max=3", "GLIBC_TUNABLES"),
        ],
    )
    def test_left_alone_where_the_user_decided(self, monkeypatch, variable, value, reason):
        monkeypatch.setattr(threads, "_libc_name", lambda: "glibc 2.36")
        monkeypatch.setattr(threads, "_mallopt", lambda **options: pytest.fail("touched"))
        monkeypatch.setenv(variable, value)
        with threads.keep_buffers() as said:
            assert reason in said
        assert reason in threads.status()["allocator"]

    def test_elsewhere_it_says_why_not(self, monkeypatch):
        monkeypatch.setattr(threads, "_libc_name", lambda: "")
        with threads.keep_buffers() as said:
            assert "glibc" in said


def test_status_is_text_and_names_the_cpus():
    report = threads.status()
    assert all(isinstance(text, str) for text in report.values())
    assert report["cpus"].startswith(f"{threads.available_cpus()} usable ({os.cpu_count()} in the machine")
    assert {"allocator", "cpus"} <= set(report)
    assert any(name.startswith("blas") for name in report)


def test_import_and_status_load_nothing_heavy_and_change_nothing():
    code = """
import os, sys
before = dict(os.environ)
from deepforecast.core import threads
print(sorted({"numpy", "torch", "joblib", "threadpoolctl", "pandas"} & set(sys.modules)), dict(os.environ) == before)
threads.status()
print("torch" in sys.modules)
"""
    assert run(code) == "[] True\nFalse"


def run(code: str) -> str:
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240)
    assert child.returncode == 0, child.stderr
    return child.stdout.strip()
