from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import joblib
import numpy as np
import psutil
import pytest
from joblib import parallel_config, register_parallel_backend
from joblib._parallel_backends import ThreadingBackend

from deepforecast.core import threads
from deepforecast.core.parallel import MAX_CHUNKS, MAX_SECONDS, map_chunks, map_items, split_by_cost
from deepforecast.errors import ParameterError, ParameterTypeError, TrainingError

SECOND = 1.0
"""Cost of an item that makes each item a slice of its own."""


def covered(parts: list[slice]) -> list[int]:
    return [item for part in parts for item in range(part.start, part.stop)]


class TestCut:
    @pytest.mark.parametrize("n_items", [0, 1, 2, 255, 256, 257, 1000, 100_000])
    def test_covers_everything_once_in_few_slices(self, n_items):
        parts = split_by_cost(n_items, None, "threads")
        assert covered(parts) == list(range(n_items))
        assert len(parts) <= MAX_CHUNKS

    @pytest.mark.parametrize("prefer", ["threads", "processes"])
    def test_by_cost(self, prefer):
        cost = np.random.default_rng(0).lognormal(-4, 3, 5000)
        parts = split_by_cost(5000, cost, prefer)
        assert covered(parts) == list(range(5000))
        assert max(cost[part].sum() - cost[part.stop - 1] for part in parts) <= MAX_SECONDS

    def test_short_work_stays_in_one_slice_and_long_items_stand_alone(self):
        assert len(split_by_cost(100, 1e-6, "threads")) == 1
        assert len(split_by_cost(100, 1e-3, "processes")) == 1
        assert len(split_by_cost(100, 1e-3, "threads")) == 5
        assert len(split_by_cost(7, 3.0, "processes")) == 7

    def test_nothing(self):
        assert split_by_cost(0, 1.0, "threads") == []
        assert map_chunks(lambda part: part, 0) == []

    @pytest.mark.parametrize("cost", [[1.0, -1.0], [1.0, float("nan")], float("inf")])
    def test_refused(self, cost):
        with pytest.raises(ParameterError, match="finite number of seconds"):
            split_by_cost(2, cost, "threads")


class TestResults:
    @pytest.mark.parametrize("prefer", ["threads", "processes"])
    def test_same_bits_for_any_number_of_workers(self, prefer):
        values = np.random.default_rng(1).normal(size=(300, 40, 30))

        def work(part):
            import numpy

            return [numpy.linalg.svd(each, compute_uv=False) for each in values[part]]

        results = [
            list(itertools.chain.from_iterable(map_chunks(work, 300, n_jobs=workers, prefer=prefer))) for workers in (1, 2, 4)
        ]
        assert len(results[0]) == 300
        for other in results[1:]:
            np.testing.assert_array_equal(results[0], other)

    @pytest.mark.parametrize("prefer", ["threads", "processes"])
    def test_order_is_kept_when_the_first_is_the_slowest(self, prefer):
        def work(part):
            import time

            time.sleep(0.2 if part.start == 0 else 0.0)
            return part.start

        assert map_chunks(work, 9, n_jobs=2, prefer=prefer, cost=SECOND) == list(range(9))

    def test_work_is_spread_over_threads(self):
        both = threading.Barrier(2)
        map_chunks(lambda part: both.wait(20), 2, n_jobs=2, cost=SECOND)

    def test_work_is_spread_over_processes(self, tmp_path):
        def work(part):
            import os
            import time

            (tmp_path / str(os.getpid())).touch()
            for _ in range(4800):  # until the other one works too
                if len(os.listdir(tmp_path)) > 1:
                    break
                time.sleep(0.05)
            return os.getpid()

        seen = set(map_chunks(work, 4, n_jobs=2, prefer="processes", cost=SECOND))
        assert len(seen) == 2
        assert os.getpid() not in seen

    def test_one_worker_is_the_calling_thread_and_loads_no_joblib(self):
        code = """
        import sys, threading
        from deepforecast.core.parallel import map_chunks
        print(set(map_chunks(lambda part: threading.current_thread() is threading.main_thread(), 1000, n_jobs=1)))
        map_chunks(lambda part: 0, 10, cost=1e-6)
        print({"joblib", "tqdm", "pandas", "torch"} & set(sys.modules))
        """
        assert run(code).stdout.split() == ["{True}", "set()"]

    def test_many_short_series_do_not_drown(self):
        values = np.random.default_rng(2).normal(size=(100_000, 20))
        totals = map_chunks(lambda part: values[part].sum(axis=1), 100_000, n_jobs=2)
        assert len(totals) < 1000, "slices: each costs as much as a hundred series or more"
        np.testing.assert_array_equal(np.concatenate(totals), values.sum(axis=1))

    def test_fits_in_four_threads_at_once(self):
        def work(part):
            return part.start

        results = {}

        def fit(number):
            results[number] = map_chunks(work, 20 + number, n_jobs=2, prefer="processes", cost=SECOND)

        fits = [threading.Thread(target=fit, args=(number,)) for number in range(4)]
        for each in fits:
            each.start()
        for each in fits:
            each.join(60)
        assert results == {number: list(range(20 + number)) for number in range(4)}


class Counting(ThreadingBackend):
    """A backend that another package might register."""

    submitted = 0
    supports_generators = True

    @property
    def supports_return_generator(self):
        return self.supports_generators

    def submit(self, func, callback=None):
        type(self).submitted += 1
        return super().submit(func, callback)


class Whole(Counting):
    """One that cannot hand over results as they come, like that of ray."""

    submitted = 0
    supports_generators = False


class TestConfiguration:
    def kinds(self, **options):
        def work(part):
            import os
            import threading

            return os.getpid(), threading.current_thread() is threading.main_thread()

        seen = set(map_chunks(work, 4, cost=SECOND, **options))
        here = {pid == os.getpid() for pid, _ in seen}
        return {"process"} if here == {False} else {"caller"} if seen == {(os.getpid(), True)} else {"thread"}

    def test_backend_of_the_user(self):
        with parallel_config(backend="loky", n_jobs=2):
            assert self.kinds(prefer="threads") == {"process"}
        with parallel_config(backend="threading", n_jobs=2):
            assert self.kinds(prefer="processes") == {"thread"}
        with parallel_config(backend="threading"):
            assert self.kinds(prefer="processes", n_jobs=2) == {"thread"}

    def test_number_of_workers_of_the_user(self):
        with parallel_config(n_jobs=1):
            assert self.kinds() == {"caller"}
        with parallel_config(n_jobs=2):
            assert self.kinds() == {"thread"}
            assert self.kinds(n_jobs=1) == {"caller"}
            assert self.kinds(prefer="processes") == {"process"}

    def test_usual_number_of_workers(self, monkeypatch):
        monkeypatch.setattr(threads, "available_cpus", lambda: 1)
        assert self.kinds() == {"caller"}
        monkeypatch.setattr(threads, "available_cpus", lambda: 2)
        assert self.kinds() == {"thread"}
        assert self.kinds(n_jobs=-1) == {"thread"}

    @pytest.mark.parametrize("backend", ["loky", "multiprocessing"])
    def test_processes_take_functions_defined_inside_others(self, backend):
        values = np.arange(4.0)
        with parallel_config(backend=backend):
            assert map_chunks(lambda part: float(values[part].sum()), 4, n_jobs=2, cost=SECOND) == [0.0, 1.0, 2.0, 3.0]
            assert self.kinds(n_jobs=2) == {"process"}

    @pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
    def test_in_a_loop_of_the_caller_there_are_workers_enough(self, backend):
        def one(workers):
            seen = map_chunks(lambda part: time.sleep(0.05) or threading.get_ident(), 6, n_jobs=workers, cost=SECOND)
            return len(set(seen))

        wrapped = joblib.wrap_non_picklable_objects(one)
        loop = joblib.Parallel(n_jobs=2, backend=backend)
        assert loop(joblib.delayed(wrapped)(workers) for workers in (None, None)) == [1, 1]

    @pytest.mark.parametrize("backend", [Counting, Whole])
    def test_backend_of_another_package(self, backend):
        register_parallel_backend("counting", backend)
        with parallel_config(backend="counting", n_jobs=2):
            before = backend.submitted
            assert map_chunks(lambda part: part.start, 10, cost=SECOND) == list(range(10))
            assert backend.submitted == before + 10

    @pytest.mark.parametrize(
        ("workers", "error"), [(0, ParameterError), (-2, ParameterError), (1.0, ParameterTypeError), (True, ParameterTypeError)]
    )
    def test_refused(self, workers, error):
        with pytest.raises(error, match="`n_jobs` must be"):
            map_chunks(lambda part: 0, 1, n_jobs=workers)


class TestNested:
    @pytest.mark.parametrize("prefer", ["threads", "processes"])
    def test_workers_have_one_thread_and_start_none(self, prefer):
        def work(part):
            import threading

            from threadpoolctl import threadpool_info

            from deepforecast.core.parallel import map_chunks
            from deepforecast.core.threads import allowed_threads

            me = threading.get_ident()
            inner = set(map_chunks(lambda part: threading.get_ident() == me, 10, n_jobs=4, cost=1.0))
            return {each["num_threads"] for each in threadpool_info()}, allowed_threads(), inner

        for seen in map_chunks(work, 4, n_jobs=2, prefer=prefer, cost=SECOND):
            assert seen == ({1}, 1, {True})

    def test_the_caller_has_its_threads_back(self, monkeypatch):
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        pools = [(pool, pool.get()) for pool in threads._pools()]
        try:
            for pool, _ in pools:
                pool.set(3)
            map_chunks(lambda part: 0, 10, n_jobs=2, cost=SECOND)
            map_chunks(lambda part: 0, 10, n_jobs=1, cost=SECOND)
            assert {pool.get() for pool, _ in pools} == {3}
        finally:
            for pool, before in pools:
                pool.set(before)
        assert threads.allowed_threads() == threads.available_cpus()

    def test_alone_the_work_may_use_all_threads_for_what_it_starts_itself(self, monkeypatch):
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        assert map_chunks(lambda part: threads.allowed_threads(), 1, n_jobs=1) == [threads.available_cpus()]


class TestErrors:
    @pytest.mark.parametrize(("workers", "prefer"), [(1, "threads"), (2, "threads"), (2, "processes")])
    def test_come_back_with_the_items(self, workers, prefer):
        def work(part):
            if part.start <= 7 < part.stop:
                raise KeyError("seven")
            return 0

        with pytest.raises(KeyError, match="seven") as caught:
            map_chunks(work, 20, n_jobs=workers, prefer=prefer, cost=SECOND, label="windows")
        assert caught.value.__notes__ == ["This happened while working on windows 7 to 7 (counted from 0)"]

    @pytest.mark.parametrize(("workers", "prefer"), [(1, "threads"), (2, "threads"), (2, "processes")])
    def test_warnings_come_back(self, workers, prefer):
        def work(part):
            import warnings

            warnings.warn(f"item {part.start // 4}", UserWarning, stacklevel=1)

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            map_chunks(work, 8, n_jobs=workers, prefer=prefer, cost=SECOND)
        assert {str(each.message) for each in caught} == {"item 0", "item 1"}
        assert {each.category for each in caught} == {UserWarning}

    def test_work_that_cannot_be_sent(self):
        lock = threading.Lock()
        with pytest.raises(TrainingError, match=r"series 0 to 0 .*its worker process did not return its results: PicklingError"):
            map_chunks(lambda part: lock.locked(), 4, n_jobs=2, prefer="processes", cost=SECOND)

    def test_a_result_that_cannot_be_sent(self):
        def work(part):
            import threading

            return threading.Lock() if part.start == 2 else 0

        with pytest.raises(TrainingError, match=r"series 2 to 2 .*its worker process did not return its results"):
            map_chunks(work, 4, n_jobs=2, prefer="processes", cost=SECOND)

    def test_worker_that_dies_once_is_replaced(self, tmp_path):
        mark = tmp_path / "died"

        def work(part):
            import os

            if part.start == 3 and not mark.exists():
                mark.touch()
                os._exit(1)
            return part.start

        assert map_chunks(work, 8, n_jobs=2, prefer="processes", cost=SECOND) == list(range(8))
        assert mark.exists()

    def test_item_whose_worker_is_lost_twice_keeps_no_other_from_its_result(self, tmp_path, capsys):
        log = tmp_path / "tried"

        def work(part):
            import os

            with log.open("a") as file:
                file.write(f"{part.start} ")
            if part.start in (1, 4):
                os._exit(3)
            return part.start

        lost = []
        names = [f"Model{item}" for item in range(6)]
        found = map_items(work, names, on_lost=lambda item, error: lost.append(error) or -item, n_jobs=2, progress=True)
        assert found == [0, -1, 2, 3, -4, 5]
        assert [str(error) for error in lost] == [
            f"Model{item}: its worker process ended with exit status 3. Run with n_jobs=1 to see what happens."
            for item in (1, 4)
        ]
        tried = log.read_text().split()
        assert all(1 <= tried.count(item) <= 2 for item in "012345")
        assert "6/6" in capsys.readouterr().err

    def test_an_item_whose_worker_is_killed_is_told_of_memory(self):
        def work(part):
            import os
            import signal

            os.kill(os.getpid(), signal.SIGKILL)

        lost = []
        map_items(work, ["boom", "boom too"], on_lost=lambda item, error: lost.append(str(error)), n_jobs=2)
        ending = (
            "its worker process ended with signal SIGKILL, probably for lack of memory. Use fewer series or a smaller n_jobs."
        )
        assert lost == [f"boom: {ending}", f"boom too: {ending}"]

    def test_worker_that_dies_twice_raises_naming_its_series(self, tmp_path):
        log = tmp_path / "tried"

        def work(part):
            import os

            if 500 in range(part.start, part.stop):
                with log.open("a") as file:
                    file.write("x")
                os._exit(1)
            return part.start

        with pytest.raises(TrainingError, match=r"series 500 to 503 .*its worker process ended with exit status 1\."):
            map_chunks(work, 1000, n_jobs=4, prefer="processes")
        assert log.read_text() == "xx"

    @pytest.mark.slow
    def test_worker_that_hangs_is_replaced(self, tmp_path, capfd):
        mark = tmp_path / "hung"

        def work(part):
            import time

            if part.start == 1 and not mark.exists():
                mark.touch()
                time.sleep(1000)
            return part.start

        start = time.monotonic()
        assert map_chunks(work, 4, n_jobs=2, prefer="processes", cost=SECOND, timeout=5.0) == list(range(4))
        assert time.monotonic() - start < 240
        said = capfd.readouterr().err
        assert "Timeout (0:00:05)!" in said
        assert "in work" in said

    @pytest.mark.slow
    def test_worker_that_hangs_twice_raises_naming_its_series(self):
        def work(part):
            import time

            if part.start == 2:
                time.sleep(1000)
            return part.start

        start = time.monotonic()
        with pytest.raises(TrainingError, match=r"series 2 to 2 .*allowed: 5 s"):
            map_chunks(work, 4, n_jobs=2, prefer="processes", cost=SECOND, timeout=5.0)
        assert time.monotonic() - start < 240

    @pytest.mark.slow
    def test_worker_that_is_stopped_is_replaced(self, tmp_path):
        mark = tmp_path / "stopped"

        def work(part):
            import os
            import signal

            if part.start == 2 and not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGSTOP)
            return part.start

        start = time.monotonic()
        assert map_chunks(work, 4, n_jobs=2, prefer="processes", cost=SECOND, timeout=5.0) == list(range(4))
        assert time.monotonic() - start < 240

    def test_a_thread_that_hangs_is_left_behind(self):
        done = threading.Event()

        def work(part):
            if part.start == 1:
                done.wait(3600)

        start = time.monotonic()
        with pytest.raises(TrainingError, match=r"series 1 to 1 .*did not return its results: TimeoutError.* \(allowed: 3 s\)"):
            map_chunks(work, 4, n_jobs=2, cost=SECOND, timeout=3.0)
        done.set()
        assert time.monotonic() - start < 240


LONG = """
import sys, time
from deepforecast.core.parallel import map_chunks

def work(part):
    import os, time
    open(sys.argv[1] + str(part.start) + "-" + str(os.getpid()), "w").close()
    time.sleep(600)

map_chunks(work, 50, n_jobs=2, prefer=sys.argv[2], cost=1.0)
"""


class TestInterrupted:
    """Each in a child process that is stopped from outside; nothing may be left of it."""

    def started(self, tmp_path, prefer):
        script = tmp_path / "long.py"
        script.write_text(LONG)
        folder = tmp_path / "began"
        folder.mkdir()
        child = subprocess.Popen(
            [sys.executable, str(script), f"{folder}/", prefer], stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        deadline = time.monotonic() + 240
        while len(list(folder.iterdir())) < 2:
            assert time.monotonic() < deadline
            assert child.poll() is None, child.stderr.read()
            time.sleep(0.05)
        return child, psutil.Process(child.pid).children(recursive=True)

    def gone(self, processes, seconds):
        return not psutil.wait_procs(processes, timeout=seconds)[1]

    @pytest.mark.slow
    @pytest.mark.parametrize("prefer", ["threads", "processes"])
    @pytest.mark.parametrize("group", [False, True])
    def test_ctrl_c_ends_at_once_and_leaves_nothing(self, tmp_path, prefer, group):
        child, others = self.started(tmp_path, prefer)
        start = time.monotonic()
        (os.killpg if group else os.kill)(child.pid, signal.SIGINT)
        _, said = child.communicate(timeout=240)
        assert time.monotonic() - start < 240
        assert child.returncode == -signal.SIGINT
        assert said.rstrip().endswith("KeyboardInterrupt")
        assert self.gone(others, 60)

    @pytest.mark.parametrize("prefer", ["threads", "processes"])
    def test_ctrl_c_between_two_results(self, monkeypatch, prefer):
        def interrupted(bar, count=1):
            raise KeyboardInterrupt

        monkeypatch.setattr("tqdm.tqdm.update", interrupted)
        with pytest.raises(KeyboardInterrupt):
            map_chunks(lambda part: 0, 50, n_jobs=2, prefer=prefer, cost=SECOND, progress=True)
        monkeypatch.undo()
        assert map_chunks(lambda part: 0, 50, n_jobs=2, prefer=prefer, cost=SECOND) == [0] * 50

    @pytest.mark.slow
    def test_workers_do_not_outlive_their_driver(self, tmp_path):
        child, others = self.started(tmp_path, "processes")
        assert len(others) >= 2
        child.kill()
        child.wait(240)
        child.stderr.close()  # to read it would be to wait for all who share it
        assert self.gone(others, 240)


BARE = """
import os, sys, time
from deepforecast.core.parallel import map_chunks
if sys.stdout:
    time.sleep(0.2)  # until nobody reads, in one case
    sys.stdout.write("to nobody")
done = map_chunks(lambda part: part.start, 4, n_jobs=2, prefer="processes", cost=1.0)
open(sys.argv[1], "w").write(str(done))
os._exit(0)
"""


class TestAround:
    def test_worker_processes_from_a_script_without_main_guard(self, tmp_path):
        script = tmp_path / "plain.py"
        script.write_text(
            "from deepforecast.core.parallel import map_chunks\n"
            "def work(part):\n    return part.start\n"
            "print(map_chunks(work, 4, n_jobs=2, prefer='processes', cost=1.0))\n"
        )
        child = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=240)
        assert (child.stdout, child.stderr) == ("[0, 1, 2, 3]\n", "")

    def test_workers_in_a_daemonic_process(self):
        code = """
        import multiprocessing, os
        from deepforecast.core.parallel import map_chunks

        def inside(_):
            return map_chunks(lambda part: os.getpid(), 3, n_jobs=2, prefer="processes", cost=1.0) == [os.getpid()] * 3

        if __name__ == "__main__":
            with multiprocessing.get_context("fork").Pool(1) as pool:
                print(pool.map(inside, [0]))
        """
        child = run(code)
        assert (child.stdout, child.stderr) == ("[True]\n", "")

    def test_fork_after_use_of_workers(self):
        code = """
        import os
        from deepforecast.core.parallel import map_chunks

        def use(prefer):
            return map_chunks(lambda part: part.start, 6, n_jobs=2, prefer=prefer, cost=1.0) == list(range(6))

        print(use("threads"), use("processes"), flush=True)
        child = os.fork()
        if not child:
            print(use("threads"), use("processes"), flush=True)
            os._exit(0)
        print(os.waitpid(child, 0)[1], use("processes"))
        """
        child = run(code)
        assert (child.stdout, child.stderr) == ("True True\nTrue True\n0 True\n", "")

    @pytest.mark.parametrize("how", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", "| true"])
    def test_workers_without_standard_streams(self, tmp_path, how):
        script = tmp_path / "bare.py"
        script.write_text(BARE)
        answer = tmp_path / "answer"
        buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        command = ["sh", "-c", f'"$0" "$1" "$2" {how}', sys.executable, str(script), str(answer)]
        subprocess.run(command, timeout=240, check=False, env=buffered)
        assert answer.read_text() == "[0, 1, 2, 3]"

    def test_bar_counts_items_and_goes_to_stderr(self, capsys):
        map_chunks(lambda part: 0, 20, n_jobs=1, cost=SECOND, progress=True, label="windows")
        map_chunks(lambda part: 0, 20, n_jobs=2, cost=SECOND, progress=True, label="windows")
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.count("windows: 100%") == 2
        assert "20/20" in said.err

    def test_no_bar_outside_a_terminal_nor_inside_another_call(self, capsys, monkeypatch):
        map_chunks(lambda part: 0, 20, n_jobs=1, cost=SECOND)
        assert capsys.readouterr() == ("", "")
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        map_chunks(lambda part: time.sleep(0.1), 8, n_jobs=1, cost=SECOND, label="outer")
        assert "outer" in capsys.readouterr().err
        map_chunks(lambda part: map_chunks(lambda part: time.sleep(0.1), 8, n_jobs=1, cost=SECOND), 1, progress=False)
        assert capsys.readouterr() == ("", "")

    def test_workers_leave_the_environment_unchanged(self):
        code = """
        import os, warnings
        import numpy  # has filters of its own
        for name in [name for name in os.environ if name.startswith("KMP")]:
            del os.environ[name]  # of the process that started this one
        before, filters = dict(os.environ), list(warnings.filters)
        from deepforecast.core.parallel import map_chunks
        map_chunks(lambda part: 0, 4, n_jobs=2, cost=1.0)
        map_chunks(lambda part: 0, 4, n_jobs=2, prefer="processes", cost=1.0, progress=True)
        print(before == dict(os.environ), [each for each in warnings.filters if each not in filters])
        """
        assert run(code).stdout == "True []\n"

    def test_nothing_is_left_on_disk(self, tmp_path, monkeypatch):
        monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(tmp_path))
        values = np.ones(1_000_000)
        totals = map_chunks(lambda part: float(values[part].sum()), 1_000_000, n_jobs=2, prefer="processes")
        assert sum(totals) == 1_000_000
        joblib.externals.loky.get_reusable_executor().shutdown(wait=True)
        assert list(tmp_path.iterdir()) == []


def run(code: str) -> subprocess.CompletedProcess[str]:
    child = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=240)
    assert child.returncode == 0, child.stderr
    return child


@pytest.mark.parametrize("workers", [1, 2])
def test_work_in_the_calling_thread_has_one_thread_of_blas(workers):
    """As it has in any worker: or the bits of a product would depend on where it was computed."""

    def work(part):
        from threadpoolctl import threadpool_info

        return {each["num_threads"] for each in threadpool_info()}

    with threads.limit_threads(2):
        for seen in map_chunks(work, 3, n_jobs=workers, cost=SECOND if workers > 1 else 1e-6):
            assert seen == {1}
        assert work(slice(0, 1)) == {2}


@pytest.mark.parametrize("prefer", ["threads", "processes"])
@pytest.mark.parametrize("cost", [None, 0.05, SECOND])
def test_slices_are_cut_the_same_for_any_number_of_workers(prefer, cost):
    """Or sums over a slice would depend on who computes them."""
    number = 300 if cost is None else 9
    wanted = split_by_cost(number, cost, prefer)
    for workers in (1, 2, 4, -1):
        assert map_chunks(lambda part: part, number, n_jobs=workers, prefer=prefer, cost=cost) == wanted
