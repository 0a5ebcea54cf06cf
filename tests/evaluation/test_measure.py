"""What work costs: the highest memory of the block alone, blank where it cannot be told."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from deepforecast.evaluation import measure
from deepforecast.evaluation.measure import measured

can_measure = pytest.mark.skipif(measure._reset() is None, reason="this system does not tell a process' highest memory")


def work(megabytes: int) -> float:
    return float(np.ones(megabytes * 125_000).sum())


@can_measure
def test_peak_is_that_of_the_block_whatever_came_before() -> None:
    work(200)
    with measured() as cost:
        work(80)
    with measured() as again:
        work(40)
    assert cost.peak_mb == pytest.approx(76, abs=12)
    assert again.peak_mb == pytest.approx(38, abs=12)
    assert cost.seconds > 0


@can_measure
def test_work_that_fails_is_measured_too() -> None:
    def interrupted() -> None:
        with measured() as measurement:
            costs.append(measurement)
            work(40)
            raise KeyboardInterrupt

    costs: list[measure.Cost] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    (cost,) = costs
    assert cost.peak_mb == pytest.approx(38, abs=12)
    assert cost.seconds > 0


def test_blank_where_the_counter_cannot_be_set_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "RESET", tmp_path / "none" / "clear_refs")
    with measured() as cost:
        work(10)
    assert cost.peak_mb is None


def test_blank_where_setting_back_does_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status = tmp_path / "status"
    status.write_text("VmHWM:\t  900000 kB\nVmRSS:\t  100000 kB\n")
    monkeypatch.setattr(measure, "RESET", tmp_path / "clear_refs")
    monkeypatch.setattr(measure, "STATUS", status)
    with measured() as cost:
        pass
    assert cost.peak_mb is None


def test_blank_for_blocks_that_meet_and_known_again_after_them() -> None:
    inside, ready, costs = threading.Event(), threading.Event(), []

    def other() -> None:
        with measured() as cost:
            costs.append(cost)
            ready.set()
            inside.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    ready.wait(10)
    with measured() as cost:
        inside.set()
    thread.join(10)
    assert cost.peak_mb is None
    assert costs[0].peak_mb is None
    with measured() as alone:
        pass
    assert (alone.peak_mb is None) == (measure._reset() is None)
