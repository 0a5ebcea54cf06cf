from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

from deepforecast.errors import ParameterError, SaveError, TrainingError, TrainingWarning
from deepforecast.tuning import storage as storages
from deepforecast.tuning import workers
from tests.tuning.bent import happen
from tests.tuning.calls import call
from tests.tuning.served import mariadb, postgresql

ROOT = Path(__file__).resolve().parents[2]


def started(*arguments, new_group=False, heard=True):
    command = [sys.executable, "-m", "tests.tuning.calls", *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    heard_by = subprocess.PIPE if heard else subprocess.DEVNULL
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=heard_by, stderr=heard_by, text=True,
                            start_new_session=new_group)  # fmt: skip


def ended(process, seconds=240):
    output, errors = process.communicate(timeout=seconds)
    assert process.returncode == 0, errors
    return json.loads(output)


def until(condition, seconds=240.0):
    begin = time.monotonic()
    while not condition():
        assert time.monotonic() - begin < seconds
        time.sleep(0.05)


def study_of(storage):
    with storages.silence_optuna():
        return optuna.load_study(storage=storages.open_storage(str(storage)), study_name="raced")


def states(study, *wanted):
    return [one for one in study.get_trials(deepcopy=False) if one.state in wanted]


def test_killed_by_minus_9_at_most_the_running_trial_is_lost_and_the_same_call_goes_on(tmp_path):
    path, mark = tmp_path / "study.log", tmp_path / "killed"
    process = started(path, 8, f"some-kill:{mark}")
    process.communicate(timeout=240)
    assert process.returncode == -signal.SIGKILL
    study = study_of(path)
    before = states(study, TrialState.COMPLETE)
    running = states(study, TrialState.RUNNING)
    assert len(running) == 1
    found = call(str(path), 8, f"some-kill:{mark}")
    assert len(found.trials) == 8
    assert set(found.trials["state"]) == {"complete"}
    assert found.trials["number"].is_unique
    assert {one.number for one in before} <= set(found.trials["number"])
    again = found.trials[found.trials["attempt"] == 2]
    assert again["away"].tolist() == [running[0].params["away"]]
    assert study.trials[running[0].number].state == TrialState.FAIL


def test_a_trial_that_always_kills_its_process_is_a_failure_in_the_end(tmp_path):
    path = tmp_path / "study.log"
    with pytest.warns(TrainingWarning, match="its process died"):
        found = call(str(path), 3, "some-always-kill", n_jobs=2)
    assert len(found.trials) == 3
    dead = found.trials[found.trials["away"] < 0]
    assert set(dead["state"]) == {"failed"}
    assert set(dead["attempt"]) == {2}
    assert set(dead["reason"]) == {"its process died"}
    assert set(found.trials[found.trials["away"] >= 0]["state"]) == {"complete"}


def killed_at_work(study, processes):
    """Kill one of them in the middle of a trial; the process and the number of the trial."""
    begin = time.monotonic()
    while time.monotonic() - begin < 240:
        for one in processes:
            os.kill(one.pid, signal.SIGSTOP)
            mine = [held for held in states(study, TrialState.RUNNING)
                    if held.user_attrs.get("worker", {}).get("pid") == one.pid and held.params]  # fmt: skip
            if mine:
                one.kill()
                one.communicate()
                return one, mine[0].number
            os.kill(one.pid, signal.SIGCONT)
            time.sleep(0.05)
    raise AssertionError("none was ever at work")


def shared_out(study, processes, storage, n_trials):
    """What holds of a study that several processes worked on, of which one was killed in the middle of a trial."""
    victim, number = killed_at_work(study, processes)
    for one in processes:
        if one is not victim:
            ended(one)
    found = call(storage, n_trials, "sleep:0.2")
    assert len(found.trials) == n_trials
    assert set(found.trials["state"]) == {"complete"}
    assert found.trials["number"].is_unique
    assert found.trials["away"].is_unique
    assert (found.trials["start"] == "default").sum() == 1
    assert not states(study, TrialState.RUNNING, TrialState.WAITING)
    assert study.trials[number].state == TrialState.FAIL
    again = [one for one in study.trials if one.user_attrs.get("again") == number]
    assert [one.state for one in again] == [TrialState.COMPLETE]
    assert again[0].params == study.trials[number].params
    assert len(study.trials) <= n_trials + 1 + 3  # the one that was killed, and at most one that each of the others gave back
    return found


@pytest.mark.slow
def test_several_processes_of_one_call_share_the_trials(tmp_path):
    found = call(None, 12, "sleep:0.05", n_jobs=3)
    assert len(found.trials) == 12
    assert set(found.trials["state"]) == {"complete"}
    assert found.trials["away"].is_unique
    drawn = call(None, 8, "sleep:0.05", n_jobs=2, sampler=optuna.samplers.RandomSampler(seed=1))
    assert drawn.trials["away"].is_unique  # by each worker from a stream of its own
    workers = {one.user_attrs["worker"]["pid"] for one in found.study.trials}
    assert len(workers) > 1
    assert os.getpid() not in workers
    with pytest.raises(TrainingError, match="it broke at"):
        call(None, 3, "raise", n_jobs=2)


def test_what_cannot_be_sent_to_other_processes_is_said():
    def locked(actual, forecast, lock=threading.Lock()):  # noqa: B008
        return 0.0

    with pytest.raises(ParameterError, match=r"must be picklable with n_jobs=2.*cannot pickle.*n_jobs=1"):
        call(None, 3, n_jobs=2, metric=locked)


@pytest.mark.slow
def test_a_worker_that_hangs_before_its_first_trial_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "MAX_START_SECONDS", 20.0)
    hired = []
    hire = workers.WorkerPool.add_worker
    monkeypatch.setattr(workers.WorkerPool, "add_worker", lambda crew: hired.append(1) or hire(crew))
    found = call(None, 1, n_jobs=4, metric=Sent(str(tmp_path / "mark"), "sleep:300"))
    assert set(found.trials["state"]) == {"complete"}
    assert len(hired) == 2  # no more than there are trials, and one in the place of the first


@pytest.mark.slow
def test_workers_that_die_before_their_first_trial_are_not_replaced_for_ever(monkeypatch):
    monkeypatch.setattr(workers, "MAX_DEATHS", 1)
    with pytest.raises(TrainingError, match=r"3 in a row died before a trial\. .*exit codes"):
        call(None, 4, n_jobs=2, metric=Sent(None, "always-kill"))


class Sent:
    """A metric to which something happens where it arrives: once, if there is a mark to leave."""

    __name__ = "sent"

    def __init__(self, mark, fault):
        self.mark, self.fault = mark, fault

    def __call__(self, actual, forecast):
        return float(np.abs(actual - forecast).mean())

    def __reduce__(self):
        return arrived, (self.mark, self.fault)


def arrived(mark, fault):
    if mark is None or not Path(mark).exists():
        if mark is not None:
            Path(mark).touch()
        happen(fault, 0.0)
    return Sent(mark, fault)


@pytest.mark.slow
def test_four_processes_race_on_a_journal_and_one_is_killed(tmp_path):
    path = tmp_path / "study.log"
    processes = [started(path, 30, "sleep:0.2") for _ in range(4)]
    until(lambda: path.exists() and path.read_text().count('"worker"') > 8)
    shared_out(study_of(path), processes, str(path), 30)


@pytest.mark.slow
def test_processes_start_together_on_a_fresh_sqlite_file(tmp_path):
    path = tmp_path / "study.db"
    processes = [started(path, 10) for _ in range(4)]
    told = [ended(one) for one in processes]
    assert all(one["trials"] >= 1 for one in told)
    found = call(str(path), 10)
    assert len(found.trials) == 10
    assert (found.trials["start"] == "default").sum() == 1


@pytest.mark.slow
def test_ctrl_c_on_a_call_of_several_processes(tmp_path):
    path = tmp_path / "study.log"
    process = started(path, 400, "sleep:0.2", 2, new_group=True)
    until(lambda: path.exists() and path.read_text().count('"state":1') > 2)
    os.killpg(process.pid, signal.SIGINT)
    begin = time.monotonic()
    told = ended(process)
    assert time.monotonic() - begin < 60
    assert 0 < told["trials"] < 400
    study = study_of(path)
    assert not states(study, TrialState.RUNNING)
    found = call(str(path), told["trials"] + 1, "sleep:0.2")
    assert len(found.trials) == told["trials"] + 1


@pytest.mark.slow
def test_ctrl_c_twice_loses_nothing(tmp_path):
    path = tmp_path / "study.log"
    process = started(path, 400, "sleep:0.5")
    until(lambda: path.exists() and path.read_text().count('"state":1') > 1)
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.01)
    process.communicate(timeout=240)
    before = study_of(path)
    torn = [one.params for one in states(before, TrialState.FAIL, TrialState.RUNNING) if one.params]
    done = len(states(before, TrialState.COMPLETE))
    found = call(str(path), done + 2, "sleep:0.5")
    assert set(found.trials["state"]) == {"complete"}
    assert len(found.trials) == done + 2
    assert all(one in [trial.params for trial in states(found.study, TrialState.COMPLETE)] for one in torn)


@pytest.mark.slow
def test_workers_end_with_the_call_they_belong_to(tmp_path):
    path = tmp_path / "study.log"
    process = started(path, 400, "sleep:0.1", 2, heard=False)
    until(lambda: path.exists() and path.read_text().count('"worker"') > 4)
    process.kill()
    process.wait(240)
    workers = {one.user_attrs["worker"]["pid"] for one in study_of(path).trials if "worker" in one.user_attrs}
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))


@pytest.mark.slow
@pytest.mark.parametrize("server", [postgresql, mariadb])
def test_four_processes_race_on_a_real_server(server):
    with server() as running:
        call(running.url, 1, "sleep:0.2").study._storage._backend.engine.dispose()  # or its connections outlive the server
        processes = [started(running.url, 24, "sleep:0.2") for _ in range(4)]
        study = study_of(running.url)
        found = shared_out(study, processes, running.url, 24)
        for one in (study, found.study):
            one._storage._backend.engine.dispose()


@pytest.mark.slow
@pytest.mark.parametrize("server", [postgresql, mariadb])
def test_a_server_that_is_started_again_between_two_trials_or_stopped_in_one(server):
    with server() as running:
        found = call(running.url, 6, metric=at_call({5: lambda: (running.stop(), running.start())}))
        assert set(found.trials["state"]) == {"complete"}
        found.study._storage._backend.engine.dispose()
        with pytest.raises(SaveError, match=r"tester@127.*can no longer be read or written.*Best so far: \d"):
            call(running.url, 12, metric=at_call({5: running.stop}))
        running.start()
        found = call(running.url, 12, metric=at_call({}))
        assert set(found.trials["state"]) == {"complete"}
        assert len(found.trials) == 12
        assert (found.trials["attempt"] == 2).sum() == 1
        found.study._storage._backend.engine.dispose()


def at_call(acts):
    """A metric that does things when it is called for the n-th time."""
    count = iter(range(1, 1000))

    def watched(actual, forecast):
        acts.get(next(count), lambda: None)()
        return float(np.abs(actual - forecast).mean())

    return watched
