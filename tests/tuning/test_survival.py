from __future__ import annotations

import os
import time

import optuna
import pytest
from optuna.trial import TrialState

from deepforecast.tuning import survival
from deepforecast.tuning.storage import quiet


@pytest.fixture
def study():
    with quiet():
        yield optuna.create_study()


def running(study, **said):
    trial = study.ask()
    trial.suggest_float("x", 0, 1)
    if said:
        trial.set_user_attr(survival.WORKER, {**survival.worker(None), **said})
    return trial


@pytest.mark.parametrize(
    ("said", "dead"),
    [
        ({"pid": os.getpid(), "mark": "here"}, False),
        ({"pid": os.getpid()}, True),  # its end could not be written down
        ({"began": "0"}, True),  # another process of that number
        ({"pid": 2**22 + 1}, True),
        ({"host": "elsewhere"}, False),
        ({"host": "elsewhere", "ago": 50}, False),
        ({"host": "elsewhere", "ago": 150}, True),
        ({"host": "elsewhere", "ago": 150, "limit": 100.0}, False),
        ({}, False),  # just asked for
    ],
)
def test_who_is_dead(study, said, dead, monkeypatch):
    said = dict(said)
    monkeypatch.setattr(survival, "AT_WORK", {"here"})
    if "ago" in said:
        said = {**said, "at": time.time() - said["ago"]}
    running(study, **said)
    assert survival.bury(study, retries=1, grace=100.0) == dead
    assert [one.state for one in study.trials] == ([TrialState.FAIL, TrialState.WAITING] if dead else [TrialState.RUNNING])


def test_a_clock_that_was_set_back_keeps_nobody_alive(study, monkeypatch):
    running(study, host="elsewhere", at=time.time() + 1e6)
    study.ask()
    begin = time.monotonic()
    monkeypatch.setattr(time, "time", lambda: 0.0)
    for later, dead in ((0, 0), (110, 1), (310, 1), (320, 0)):
        monkeypatch.setattr(time, "monotonic", lambda now=begin + later: now)
        assert survival.bury(study, retries=1, grace=100.0) == dead


def test_a_zombie_is_dead(study):
    child = os.fork()
    if child == 0:
        os._exit(0)
    began = survival._began(os.getpid())
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)  # it has ended, and is a zombie until it is waited for
    assert survival._began(child) is None
    assert began is not None
    os.waitpid(child, 0)


def test_what_died_is_tried_again_with_its_parameters_and_counts_once(study):
    for attempt in (1, 2):
        trial = running(study, pid=2**22 + 1)
        assert trial.user_attrs.get(survival.ATTEMPT, 1) == attempt
        survival.bury(study, retries=1, grace=1.0)
    first, second = study.trials
    assert first.params == second.params
    assert survival.counting(study.trials, retries=1) == [second]
    assert not survival.replaced(second, retries=1)


def test_what_was_interrupted_is_tried_again_as_often_as_it_takes(study):
    for _ in range(4):
        trial = running(study, pid=os.getpid())
        trial.set_user_attr(survival.INTERRUPTED, True)
        survival.tried_again(study, study.tell(trial, state=TrialState.FAIL), retries=1)
    assert survival.counting(study.trials, retries=1) == []
    assert len({one.params["x"] for one in study.trials[:4]}) == 1


def test_two_who_bury_queue_once(study):
    running(study, pid=2**22 + 1)
    assert survival.bury(study, 1, 1.0) == 1
    assert survival.bury(study, 1, 1.0) == 0
    assert len(study.trials) == 2


def test_what_failed_by_itself_counts(study):
    trial = running(study, pid=os.getpid())
    trial.set_user_attr(survival.TOLD, {"reason": "x"})
    survival.tried_again(study, study.tell(trial, state=TrialState.FAIL), retries=1)
    assert len(survival.counting(study.trials, retries=1)) == 1
    assert len(study.trials) == 1


def test_what_nobody_queued_is_queued_once(study):
    running(study, pid=os.getpid()).set_user_attr(survival.WITHDRAWN, True)
    for _ in range(2):
        running(study, pid=os.getpid())
    for number in range(3):
        study.tell(number, state=TrialState.FAIL)
    marks = [one.user_attrs[survival.WORKER]["mark"] for one in study.trials]
    survival.queue_lost(study, 1, marks[2])
    assert [one.user_attrs["again"] for one in study.trials[3:]] == [2]
    for _ in range(2):
        survival.queue_lost(study, 1)
        assert [one.user_attrs["again"] for one in study.trials[3:]] == [2, 1]
