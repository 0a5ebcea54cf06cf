from __future__ import annotations

import math
import pickle
import threading
import time

import pytest

from deepforecast.core.monitor import SILENT, STEPS_PER_FOLD, Monitor


def test_silent_never_stops():
    SILENT.report(1.0, 1)
    SILENT.fold(3).report(1.0, 1, n_steps=1)
    assert not SILENT.should_stop
    assert not SILENT.fold(3).should_stop
    assert SILENT.time_left() == math.inf


def test_a_fold_is_not_the_whole():
    assert SILENT.is_outermost
    assert not SILENT.fold(0).is_outermost


def test_reports_reach_the_callback_as_they_are():
    seen = []
    Monitor(lambda value, step: seen.append((value, step))).report(2, step=700, n_steps=1000)
    assert seen == [(2.0, 700)]
    assert type(seen[0][0]) is float


def test_the_callback_stops_the_fit_and_its_folds():
    monitor = Monitor(lambda value, step: value > 1)
    fold = monitor.fold(0)
    fold.report(1.0, 1, n_steps=2)
    assert not fold.should_stop
    fold.report(1.1, 2, n_steps=2)
    assert fold.should_stop
    assert monitor.should_stop
    assert monitor.fold(1).should_stop
    assert monitor.cancelled
    assert fold.cancelled
    assert not Monitor(deadline=time.monotonic() - 1).fold(0).cancelled


def test_a_report_after_the_stop_does_not_start_it_again():
    monitor = Monitor(lambda value, step: value > 1)
    monitor.report(2.0, 1)
    monitor.report(0.0, 2)
    assert monitor.should_stop


@pytest.mark.parametrize("steps", [1, 3, 7, 100, 999])
def test_folds_weigh_equally_however_many_steps_they_take(steps):
    seen = []
    monitor = Monitor(lambda value, step: seen.append(step))
    for number in range(3):
        fold = monitor.fold(number)
        for step in range(1, steps + 1):
            fold.report(0.0, step, n_steps=steps)
        assert seen[-1] == STEPS_PER_FOLD * (number + 1)
    assert seen == sorted(set(seen))
    assert {(step - 1) // STEPS_PER_FOLD for step in seen} == {0, 1, 2}
    assert len(seen) == 3 * min(steps, STEPS_PER_FOLD) if steps != 999 else len(seen) <= 3 * STEPS_PER_FOLD


def test_steps_beyond_the_announced_stay_in_the_fold():
    seen = []
    fold = Monitor(lambda value, step: seen.append(step)).fold(0)
    fold.report(0.0, 50, n_steps=10)
    fold.report(0.0, 60, n_steps=10)
    Monitor(lambda value, step: seen.append(step)).fold(0).report(0.0, 10 * STEPS_PER_FOLD)
    assert seen == [STEPS_PER_FOLD, STEPS_PER_FOLD]


def test_time_is_up():
    late, early = Monitor(deadline=time.monotonic() - 1), Monitor(deadline=time.monotonic() + 1000)
    assert late.should_stop
    assert late.fold(0).should_stop
    assert late.time_left() < 0
    assert not early.fold(0).should_stop
    assert 900 < early.fold(0).time_left() <= 1000


def test_stopped_from_another_thread():
    button = threading.Event()
    fold = Monitor(stop_when=button.is_set).fold(0)
    assert not fold.should_stop
    threading.Thread(target=button.set).start()
    button.wait(10)
    assert fold.should_stop


def test_one_report_at_a_time():
    inside, most, lock = 0, 0, threading.Lock()

    def slow(value, step):
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        time.sleep(0.001)
        with lock:
            inside -= 1

    monitor = Monitor(slow)

    def fit(number):
        for step in range(1, 6):
            monitor.fold(number).report(0.0, step, n_steps=5)

    fits = [threading.Thread(target=fit, args=(number,)) for number in range(4)]
    for each in fits:
        each.start()
    for each in fits:
        each.join()
    assert most == 1


def test_what_goes_to_a_worker():
    there = pickle.loads(pickle.dumps(Monitor(deadline=time.monotonic() + 1000)))
    assert 900 < there.time_left() <= 1000
    assert pickle.loads(pickle.dumps(SILENT)).time_left() == math.inf
    for monitor in (Monitor(lambda value, step: False), Monitor(stop_when=lambda: False), SILENT.fold(0)):
        with pytest.raises(TypeError, match="n_jobs=1"):
            pickle.dumps(monitor)


def test_who_listens_sees_what_was_learned_so_far():
    seen = []
    monitor = Monitor(lambda value, step: seen.append(monitor.snapshot()))
    fold = monitor.fold(1)
    fold.report(1.0, 1, n_steps=3)
    state = [0]
    fold.set_snapshot(lambda: state[0])
    fold.report(1.0, 2, n_steps=3)
    state[0] = 7
    fold.report(1.0, 3, n_steps=3)
    fold.set_snapshot(None)
    assert seen == [None, 0, 7]
    assert monitor.snapshot() is None


def test_nothing_is_kept_for_who_does_not_listen():
    SILENT.fold(0).set_snapshot(lambda: 1)
    assert SILENT.snapshot() is None
