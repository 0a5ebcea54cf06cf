from __future__ import annotations

import os
import time

import optuna
import pytest
from optuna.trial import TrialState

from deepforecast.tuning import trial_recovery
from deepforecast.tuning.storage import silence_optuna


@pytest.fixture
def study():
    with silence_optuna():
        yield optuna.create_study()


def running(study, **said):
    trial = study.ask()
    trial.suggest_float("x", 0, 1)
    if said:
        trial.set_user_attr(trial_recovery.WORKER, {**trial_recovery.describe_worker(None), **said})
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
    monkeypatch.setattr(trial_recovery, "ACTIVE_MARKS", {"here"})
    if "ago" in said:
        said = {**said, "at": time.time() - said["ago"]}
    running(study, **said)
    assert trial_recovery.fail_dead_trials(study, retries=1, heartbeat_timeout=100.0) == dead
    assert [one.state for one in study.trials] == ([TrialState.FAIL, TrialState.WAITING] if dead else [TrialState.RUNNING])


def test_a_clock_that_was_set_back_keeps_nobody_alive(study, monkeypatch):
    running(study, host="elsewhere", at=time.time() + 1e6)
    study.ask()
    begin = time.monotonic()
    monkeypatch.setattr(time, "time", lambda: 0.0)
    for later, dead in ((0, 0), (110, 1), (310, 1), (320, 0)):
        monkeypatch.setattr(time, "monotonic", lambda now=begin + later: now)
        assert trial_recovery.fail_dead_trials(study, retries=1, heartbeat_timeout=100.0) == dead


def test_a_zombie_is_dead(study):
    child = os.fork()
    if child == 0:
        os._exit(0)
    began = trial_recovery._process_start(os.getpid())
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)  # it has ended, and is a zombie until it is waited for
    assert trial_recovery._process_start(child) is None
    assert began is not None
    os.waitpid(child, 0)


def test_what_died_is_tried_again_with_its_parameters_and_counts_once(study):
    for attempt in (1, 2):
        trial = running(study, pid=2**22 + 1)
        assert trial.user_attrs.get(trial_recovery.ATTEMPT, 1) == attempt
        trial_recovery.fail_dead_trials(study, retries=1, heartbeat_timeout=1.0)
    first, second = study.trials
    assert first.params == second.params
    assert trial_recovery.filter_budget_trials(study.trials, retries=1) == [second]
    assert not trial_recovery.is_replaced(second, retries=1)


def test_what_was_interrupted_is_tried_again_as_often_as_it_takes(study):
    for _ in range(4):
        trial = running(study, pid=os.getpid())
        trial.set_user_attr(trial_recovery.INTERRUPTED, True)
        trial_recovery.requeue(study, study.tell(trial, state=TrialState.FAIL), retries=1)
    assert trial_recovery.filter_budget_trials(study.trials, retries=1) == []
    assert len({one.params["x"] for one in study.trials[:4]}) == 1


def test_two_who_bury_queue_once(study):
    running(study, pid=2**22 + 1)
    assert trial_recovery.fail_dead_trials(study, 1, 1.0) == 1
    assert trial_recovery.fail_dead_trials(study, 1, 1.0) == 0
    assert len(study.trials) == 2


def test_what_failed_by_itself_counts(study):
    trial = running(study, pid=os.getpid())
    trial.set_user_attr(trial_recovery.OUTCOME, {"reason": "x"})
    trial_recovery.requeue(study, study.tell(trial, state=TrialState.FAIL), retries=1)
    assert len(trial_recovery.filter_budget_trials(study.trials, retries=1)) == 1
    assert len(study.trials) == 1


def test_what_nobody_queued_is_queued_once(study):
    running(study, pid=os.getpid()).set_user_attr(trial_recovery.WITHDRAWN, True)
    for _ in range(2):
        running(study, pid=os.getpid())
    for number in range(3):
        study.tell(number, state=TrialState.FAIL)
    marks = [one.user_attrs[trial_recovery.WORKER]["mark"] for one in study.trials]
    trial_recovery.requeue_lost(study, 1, marks[2])
    assert [one.user_attrs["again"] for one in study.trials[3:]] == [2]
    for _ in range(2):
        trial_recovery.requeue_lost(study, 1)
        assert [one.user_attrs["again"] for one in study.trials[3:]] == [2, 1]
