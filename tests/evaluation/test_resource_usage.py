"""What work costs: the highest memory of the block alone, blank where it cannot be told; the process stays as it was."""

from __future__ import annotations

import mmap
import threading
import time
from pathlib import Path

import pytest

from deepforecast.evaluation import resource_usage
from deepforecast.evaluation.resource_usage import measure_resources

can_measure = pytest.mark.skipif(
    resource_usage.memory_mb() is None, reason="this system does not report the memory of a process"
)


SAMPLES: list[float | None] = []  # the memory at each sample


@pytest.fixture(autouse=True)
def recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    memory_mb = resource_usage.memory_mb
    monkeypatch.setattr(resource_usage, "memory_mb", lambda: SAMPLES.append(memory_mb()) or SAMPLES[-1])


def allocate(size: int) -> mmap.mmap:
    """New memory of the system: an array may be given some that the process has freed before."""
    memory = mmap.mmap(-1, size)
    for page in range(0, size, mmap.PAGESIZE):
        memory[page] = 1
    return memory


def work(megabytes: int, watched: bool = True) -> None:
    """Hold memory until it has been measured."""
    memory, n_samples = allocate(megabytes * 1_000_000), len(SAMPLES)
    while watched and len(SAMPLES) < n_samples + 2:
        time.sleep(0.001)
    memory.close()


def highest_ever() -> int:
    """What the system remembers as the highest memory of this process, in KB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


@can_measure
def test_peak_is_that_of_the_block_whatever_came_before() -> None:
    work(200, watched=False)
    with measure_resources() as cost:
        work(80)
    with measure_resources() as again:
        work(40)
    assert cost.peak_mb == pytest.approx(76, abs=12)
    assert again.peak_mb == pytest.approx(38, abs=12)
    assert cost.seconds > 0


@can_measure
def test_what_is_still_held_at_the_end_is_seen_however_short_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource_usage, "SAMPLE_INTERVAL", 60.0)
    with measure_resources() as cost:
        memory = allocate(40_000_000)
    assert cost.peak_mb == pytest.approx(len(memory) / 2**20, abs=12)


@can_measure
def test_measuring_leaves_peak_memory_counter_and_threads_alone() -> None:
    work(100, watched=False)
    before, threads = highest_ever(), threading.active_count()
    with measure_resources():
        work(10)
    assert highest_ever() >= before
    assert threading.active_count() == threads


@can_measure
def test_work_that_fails_is_measured_too() -> None:
    def interrupted() -> None:
        with measure_resources() as measurement:
            costs.append(measurement)
            work(40)
            raise KeyboardInterrupt

    costs: list[resource_usage.ResourceUsage] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    (cost,) = costs
    assert cost.peak_mb == pytest.approx(38, abs=12)
    assert cost.seconds > 0


@pytest.mark.parametrize("content", [None, "", "12"], ids=["no such file", "an empty one", "a short one"])
def test_blank_where_the_system_does_not_tell(content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if content is not None:
        (tmp_path / "statm").write_text(content)
    monkeypatch.setattr(resource_usage, "STATM", tmp_path / "statm")
    with measure_resources() as cost:
        pass
    assert cost.peak_mb is None
    assert cost.seconds > 0


def test_blank_for_blocks_that_meet_and_known_again_after_them() -> None:
    inside, ready, costs = threading.Event(), threading.Event(), []

    def other() -> None:
        with measure_resources() as cost:
            costs.append(cost)
            ready.set()
            inside.wait(240)

    thread = threading.Thread(target=other)
    thread.start()
    ready.wait(240)
    with measure_resources() as cost:
        inside.set()
    thread.join(240)
    assert cost.peak_mb is None
    assert costs[0].peak_mb is None
    with measure_resources() as alone:
        pass
    assert (alone.peak_mb is None) == (resource_usage.memory_mb() is None)
