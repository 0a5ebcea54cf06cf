"""Recovery of trials whose process died.

A trial records its `OUTCOME` before its state is set. A failed trial without it died (killed, out
of memory, disconnected). It does not count and is enqueued again up to `retries` times.
"""

from __future__ import annotations

import os
import socket
import sys
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

# names of user attributes of a trial, as stored
WORKER = "worker"  # the process that runs it, see `describe_worker`
OUTCOME = "told"  # state, seconds, reason, ...; recorded before the state of the trial is set
GIVEN_CONFIGURATION = "given"  # the configuration of a trial that was not sampled
ATTEMPT = "attempt"  # 1, or more after its process died
INTERRUPTED = "interrupted"  # by Ctrl-C or the deadline of the search
WITHDRAWN = "withdrawn"  # its number was beyond the budget
ACTIVE_MARKS = set[str]()  # marks of the running trials of this process; running trials with other marks are dead
FIRST_SEEN = dict[Any, float]()  # `time.monotonic` when this process first saw trials of others
UNCLAIMED_SECONDS = 300.0  # seconds after which a trial without a worker counts as dead


def filter_budget_trials(trials: Sequence[FrozenTrial], retries: int) -> list[FrozenTrial]:
    """Trials that count: started, and neither withdrawn nor repeated under another number."""
    return [trial for trial in trials if trial.state != TrialState.WAITING and not is_replaced(trial, retries)]


def budget_trials(study: optuna.Study, retries: int) -> list[FrozenTrial]:
    """Trials of a study that count, read from its storage."""
    return filter_budget_trials(study.get_trials(deepcopy=False), retries)


def is_replaced(trial: FrozenTrial, retries: int) -> bool:
    """Whether a failed trial does not count, because it was withdrawn or interrupted or will be
    repeated."""
    if trial.state != TrialState.FAIL or OUTCOME in trial.user_attrs:
        return False
    is_abandoned = WITHDRAWN in trial.user_attrs or INTERRUPTED in trial.user_attrs
    return is_abandoned or int(trial.user_attrs.get(ATTEMPT, 1)) <= retries


def requeue(study: optuna.Study, trial: FrozenTrial, retries: int) -> None:
    """Enqueue a dead trial again, unless its retries are used up."""
    if WITHDRAWN in trial.user_attrs or not is_replaced(trial, retries):
        return
    previous_attempt = int(trial.user_attrs.get(ATTEMPT, 1))
    kept_attrs = {name: trial.user_attrs[name] for name in (GIVEN_CONFIGURATION, "start") if name in trial.user_attrs}
    attempt = previous_attempt if INTERRUPTED in trial.user_attrs else previous_attempt + 1
    trial_params = {**trial.system_attrs.get("fixed_params", {}), **trial.params}
    study.enqueue_trial(trial_params, user_attrs={**kept_attrs, ATTEMPT: attempt, "again": trial.number})


def requeue_lost(study: optuna.Study, retries: int, mark: str | None = None) -> None:
    """Enqueue dead trials that were not requeued, because the process that would have done so died too
    or could not write.

    `mark`: only the trial with this mark.
    """
    trials = study.get_trials(deepcopy=False)
    requeued = {trial.user_attrs.get("again") for trial in trials}
    for trial in trials:
        is_selected = mark is None or trial.user_attrs.get(WORKER, {}).get("mark") == mark
        if is_selected and trial.number not in requeued:
            requeue(study, trial, retries)


def fail_dead_trials(study: optuna.Study, retries: int, heartbeat_timeout: float) -> int:
    """Set trials of dead processes to failed, requeue them, and return their number."""
    n_dead = 0
    for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        if not _is_dead(trial, heartbeat_timeout):
            continue
        try:
            failed_trial = study.tell(trial.number, state=TrialState.FAIL)
        except (ValueError, RuntimeError):  # another process was faster (optuna.exceptions.UpdateFinishedTrialError is one)
            continue
        requeue(study, failed_trial, retries)
        n_dead += 1
    return n_dead


def describe_worker(timeout: float | None, worker_name: str = "") -> dict[str, Any]:
    """Describe the process of a trial, with a unique mark. `timeout`: time limit of the trial in seconds;
    `worker_name`: the name of the worker in its pool."""
    return {"host": _host_key(), "pid": os.getpid(), "began": _process_start(os.getpid()), "at": time.time(), "limit": timeout,
            "mark": uuid.uuid4().hex, "hired": worker_name}  # fmt: skip


def process_key() -> str:
    """The fields of `is_process_alive` for this process, joined by |."""
    return f"{_host_key()}|{os.getpid()}|{_process_start(os.getpid())}"


def is_process_alive(host: object, pid: object, began: object) -> bool | None:
    """Whether a process is alive; None if it is on another machine."""
    if host != _host_key() or not str(pid).isdecimal():
        return None
    return _process_start(int(str(pid))) == began


def _is_dead(trial: FrozenTrial, heartbeat_timeout: float) -> bool:
    """Whether the process of a running trial is dead.

    On this machine the process is looked up; a trial of this process is dead if its mark is not active. On
    another machine the trial counts as dead `heartbeat_timeout` seconds after its time limit, and without
    a recorded process after `UNCLAIMED_SECONDS`.
    """
    worker_attrs = trial.user_attrs.get(WORKER)
    if not isinstance(worker_attrs, dict):
        started = trial.datetime_start
        return started is not None and _seconds_since((trial._trial_id, started), started.timestamp()) > UNCLAIMED_SECONDS
    is_alive = is_process_alive(worker_attrs.get("host"), worker_attrs.get("pid"), worker_attrs.get("began"))
    if is_alive and int(worker_attrs["pid"]) == os.getpid():
        return worker_attrs.get("mark") not in ACTIVE_MARKS
    if is_alive is not None:
        return not is_alive
    time_limit = float(worker_attrs.get("limit") or 0.0)
    return _seconds_since(worker_attrs.get("mark"), float(worker_attrs.get("at", 0.0))) > heartbeat_timeout + time_limit


def _seconds_since(mark: Any, since: float) -> float:
    """Seconds since the time `since`, or since this process first saw `mark` if that is longer, in case
    a clock was set back."""
    return max(time.time() - since, time.monotonic() - FIRST_SEEN.setdefault(mark, time.monotonic()))


def _host_key() -> str:
    """This machine or container, within which process ids are unique."""
    machine = _read_text("/etc/machine-id")[:12]
    try:
        pid_namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        pid_namespace = ""
    return f"{socket.gethostname()}/{machine}/{pid_namespace}"


def _process_start(pid: int) -> str | None:
    """Start time of a process, empty if unknown; None if it does not exist."""
    stat_text = _read_text(f"/proc/{pid}/stat")
    if stat_text:
        fields = stat_text.rpartition(")")[2].split()
        # the first field is the state (Z: zombie, X: dead), the 20th the start time, see proc(5)
        return None if fields[0] in "ZX" else fields[19]
    if sys.platform == "linux" and os.path.isdir("/proc/self"):
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except (OSError, OverflowError):
        return ""
    return ""


def _read_text(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace").strip()
    except OSError:
        return ""
