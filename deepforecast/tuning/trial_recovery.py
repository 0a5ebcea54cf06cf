"""What a study knows of its trials beyond Optuna: which count, whose process works on them, which died and are tried again.

A trial that ends here leaves a note (`OUTCOME`) before its state is set. One that failed without it died: killed, out of memory,
cut off. It does not count and is put in the queue again, `retries` times.
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

WORKER, OUTCOME, GIVEN_CONFIGURATION, ATTEMPT, INTERRUPTED, WITHDRAWN = "worker", "told", "given", "attempt", "interrupted", "withdrawn"
ACTIVE_MARKS = set[str]()  # marks of the trials that this process works on: any other of its own is dead
FIRST_SEEN = dict[Any, float]()  # when this process saw trials of others first, of `time.monotonic`
UNCLAIMED_SECONDS = 300.0  # seconds after which a trial that nobody said to work on counts as dead


def filter_budget_trials(trials: Sequence[FrozenTrial], retries: int) -> list[FrozenTrial]:
    """Those that use up the budget: begun, and neither given back nor tried again under another number."""
    return [trial for trial in trials if trial.state != TrialState.WAITING and not is_replaced(trial, retries)]


def budget_trials(study: optuna.Study, retries: int) -> list[FrozenTrial]:
    """Those of a study, as its storage has them now."""
    return filter_budget_trials(study.get_trials(deepcopy=False), retries)


def is_replaced(trial: FrozenTrial, retries: int) -> bool:
    """Whether another trial stands for it."""
    if trial.state != TrialState.FAIL or OUTCOME in trial.user_attrs:
        return False
    gone = WITHDRAWN in trial.user_attrs or INTERRUPTED in trial.user_attrs
    return gone or int(trial.user_attrs.get(ATTEMPT, 1)) <= retries


def requeue(study: optuna.Study, trial: FrozenTrial, retries: int) -> None:
    """Put a trial that died in the queue again, if it may be."""
    if WITHDRAWN in trial.user_attrs or not is_replaced(trial, retries):
        return
    previous_attempt = int(trial.user_attrs.get(ATTEMPT, 1))
    kept_attrs = {name: trial.user_attrs[name] for name in (GIVEN_CONFIGURATION, "start") if name in trial.user_attrs}
    attempt = previous_attempt if INTERRUPTED in trial.user_attrs else previous_attempt + 1
    trial_params = {**trial.system_attrs.get("fixed_params", {}), **trial.params}
    study.enqueue_trial(trial_params, user_attrs={**kept_attrs, ATTEMPT: attempt, "again": trial.number})


def requeue_lost(study: optuna.Study, retries: int, mark: str | None = None) -> None:
    """Queue what ended without a note and was not queued: who should have was torn from it too, or could not write.
    `mark`: only what was worked on under it."""
    trials = study.get_trials(deepcopy=False)
    requeued = {trial.user_attrs.get("again") for trial in trials}
    for trial in trials:
        is_selected = mark is None or trial.user_attrs.get(WORKER, {}).get("mark") == mark
        if is_selected and trial.number not in requeued:
            requeue(study, trial, retries)


def fail_dead_trials(study: optuna.Study, retries: int, heartbeat_timeout: float) -> int:
    """Mark trials whose process has died as failed, and queue them again; how many there were."""
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
    """Who works on a trial: this process, under a mark that no other trial has; `worker_name`: as which worker of a call."""
    return {"host": _host_key(), "pid": os.getpid(), "began": _process_start(os.getpid()), "at": time.time(), "limit": timeout,
            "mark": uuid.uuid4().hex, "hired": worker_name}  # fmt: skip


def process_key() -> str:
    """This process, as `is_process_alive` knows it again."""
    return f"{_host_key()}|{os.getpid()}|{_process_start(os.getpid())}"


def is_process_alive(host: object, pid: object, began: object) -> bool | None:
    """Whether a process is still there; None where it is one of another machine."""
    if host != _host_key() or not str(pid).isdecimal():
        return None
    return _process_start(int(str(pid))) == began


def _is_dead(trial: FrozenTrial, heartbeat_timeout: float) -> bool:
    worker_attrs = trial.user_attrs.get(WORKER)
    if not isinstance(worker_attrs, dict):
        started = trial.datetime_start
        return started is not None and _seconds_since((trial._trial_id, started), started.timestamp()) > UNCLAIMED_SECONDS
    is_alive = is_process_alive(worker_attrs.get("host"), worker_attrs.get("pid"), worker_attrs.get("began"))
    if is_alive and int(worker_attrs["pid"]) == os.getpid():
        return worker_attrs.get("mark") not in ACTIVE_MARKS
    if is_alive is not None:
        return not is_alive
    return _seconds_since(worker_attrs.get("mark"), float(worker_attrs.get("at", 0.0))) > heartbeat_timeout + float(worker_attrs.get("limit") or 0.0)


def _seconds_since(mark: Any, since: float) -> float:
    """Seconds since then, or since this process saw it first, if a clock was set back."""
    return max(time.time() - since, time.monotonic() - FIRST_SEEN.setdefault(mark, time.monotonic()))


def _host_key() -> str:
    """This machine, or this container on it: where a process number means one process."""
    machine = _read_text("/etc/machine-id")[:12]
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    return f"{socket.gethostname()}/{machine}/{space}"


def _process_start(pid: int) -> str | None:
    """When a process began, as far as the system tells; None where there is none, or it is over."""
    text = _read_text(f"/proc/{pid}/stat")
    if text:
        fields = text.rpartition(")")[2].split()
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
