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

WORKER, OUTCOME, GIVEN_CONFIGURATION, ATTEMPT, INTERRUPTED, WITHDRAWN = (
    "worker",
    "told",
    "given",
    "attempt",
    "interrupted",
    "withdrawn",
)
ACTIVE_MARKS = set[str]()  # marks of the running trials of this process; its other ones are dead
FIRST_SEEN = dict[Any, float]()  # `time.monotonic` when this process first saw trials of others
UNCLAIMED_SECONDS = 300.0  # seconds after which a trial without a worker counts as dead


def filter_budget_trials(trials: Sequence[FrozenTrial], retries: int) -> list[FrozenTrial]:
    """Trials that count: started, and neither withdrawn nor repeated under another number."""
    return [trial for trial in trials if trial.state != TrialState.WAITING and not is_replaced(trial, retries)]


def budget_trials(study: optuna.Study, retries: int) -> list[FrozenTrial]:
    """Trials of a study that count, read from its storage."""
    return filter_budget_trials(study.get_trials(deepcopy=False), retries)


def is_replaced(trial: FrozenTrial, retries: int) -> bool:
    """Whether another trial replaces this one."""
    if trial.state != TrialState.FAIL or OUTCOME in trial.user_attrs:
        return False
    gone = WITHDRAWN in trial.user_attrs or INTERRUPTED in trial.user_attrs
    return gone or int(trial.user_attrs.get(ATTEMPT, 1)) <= retries


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
    """Enqueue dead trials that were not requeued, because that process died too or could not write.

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
    """Describe the process of a trial, with a unique mark."""
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
    worker_attrs = trial.user_attrs.get(WORKER)
    if not isinstance(worker_attrs, dict):
        started = trial.datetime_start
        return started is not None and _seconds_since((trial._trial_id, started), started.timestamp()) > UNCLAIMED_SECONDS
    is_alive = is_process_alive(worker_attrs.get("host"), worker_attrs.get("pid"), worker_attrs.get("began"))
    if is_alive and int(worker_attrs["pid"]) == os.getpid():
        return worker_attrs.get("mark") not in ACTIVE_MARKS
    if is_alive is not None:
        return not is_alive
    return _seconds_since(worker_attrs.get("mark"), float(worker_attrs.get("at", 0.0))) > heartbeat_timeout + float(
        worker_attrs.get("limit") or 0.0
    )


def _seconds_since(mark: Any, since: float) -> float:
    """Seconds since then, or since this process first saw it, in case a clock was set back."""
    return max(time.time() - since, time.monotonic() - FIRST_SEEN.setdefault(mark, time.monotonic()))


def _host_key() -> str:
    """This machine or container, within which process ids are unique."""
    machine = _read_text("/etc/machine-id")[:12]
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    return f"{socket.gethostname()}/{machine}/{space}"


def _process_start(pid: int) -> str | None:
    """Start time of a process, empty if unknown; None if it does not exist."""
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
