"""What a study knows of its trials beyond Optuna: which count, whose process works on them, which died and are tried again.

A trial that ends here leaves a note (`TOLD`) before its state is set. One that failed without it died: killed, out of memory,
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

WORKER, TOLD, GIVEN, ATTEMPT, INTERRUPTED, WITHDRAWN = "worker", "told", "given", "attempt", "interrupted", "withdrawn"
AT_WORK = set[str]()  # marks of the trials that this process works on: any other of its own is dead
SEEN = dict[Any, float]()  # when this process saw trials of others first, of `time.monotonic`
UNCLAIMED = 300.0  # seconds after which a trial that nobody said to work on counts as dead


def counting(trials: Sequence[FrozenTrial], retries: int) -> list[FrozenTrial]:
    """Those that use up the budget: begun, and neither given back nor tried again under another number."""
    return [one for one in trials if one.state != TrialState.WAITING and not replaced(one, retries)]


def counted(study: optuna.Study, retries: int) -> list[FrozenTrial]:
    """Those of a study, as its storage has them now."""
    return counting(study.get_trials(deepcopy=False), retries)


def replaced(trial: FrozenTrial, retries: int) -> bool:
    """Whether another trial stands for it."""
    if trial.state != TrialState.FAIL or TOLD in trial.user_attrs:
        return False
    gone = WITHDRAWN in trial.user_attrs or INTERRUPTED in trial.user_attrs
    return gone or int(trial.user_attrs.get(ATTEMPT, 1)) <= retries


def tried_again(study: optuna.Study, trial: FrozenTrial, retries: int) -> None:
    """Put a trial that died in the queue again, if it may be."""
    if WITHDRAWN in trial.user_attrs or not replaced(trial, retries):
        return
    before = int(trial.user_attrs.get(ATTEMPT, 1))
    kept = {name: trial.user_attrs[name] for name in (GIVEN, "start") if name in trial.user_attrs}
    attempt = before if INTERRUPTED in trial.user_attrs else before + 1
    params = {**trial.system_attrs.get("fixed_params", {}), **trial.params}
    study.enqueue_trial(params, user_attrs={**kept, ATTEMPT: attempt, "again": trial.number})


def queue_lost(study: optuna.Study, retries: int, mark: str | None = None) -> None:
    """Queue what ended without a note and was not queued: who should have was torn from it too, or could not write.
    `mark`: only what was worked on under it."""
    every = study.get_trials(deepcopy=False)
    again = {one.user_attrs.get("again") for one in every}
    for one in every:
        mine = mark is None or one.user_attrs.get(WORKER, {}).get("mark") == mark
        if mine and one.number not in again:
            tried_again(study, one, retries)


def bury(study: optuna.Study, retries: int, grace: float) -> int:
    """Mark trials whose process has died as failed, and queue them again; how many there were."""
    found = 0
    for one in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        if not _dead(one, grace):
            continue
        try:
            ended = study.tell(one.number, state=TrialState.FAIL)
        except (ValueError, RuntimeError):  # another process was faster (optuna.exceptions.UpdateFinishedTrialError is one)
            continue
        tried_again(study, ended, retries)
        found += 1
    return found


def worker(limit: float | None, hired: str = "") -> dict[str, Any]:
    """Who works on a trial: this process, under a mark that no other trial has; `hired`: as which worker of a call."""
    return {"host": _place(), "pid": os.getpid(), "began": _began(os.getpid()), "at": time.time(), "limit": limit,
            "mark": uuid.uuid4().hex, "hired": hired}  # fmt: skip


def process() -> str:
    """This process, as `lives` knows it again."""
    return f"{_place()}|{os.getpid()}|{_began(os.getpid())}"


def lives(host: object, pid: object, began: object) -> bool | None:
    """Whether a process is still there; None where it is one of another machine."""
    if host != _place() or not str(pid).isdecimal():
        return None
    return _began(int(str(pid))) == began


def _dead(trial: FrozenTrial, grace: float) -> bool:
    said = trial.user_attrs.get(WORKER)
    if not isinstance(said, dict):
        begin = trial.datetime_start
        return begin is not None and _waited((trial._trial_id, begin), begin.timestamp()) > UNCLAIMED
    known = lives(said.get("host"), said.get("pid"), said.get("began"))
    if known and int(said["pid"]) == os.getpid():
        return said.get("mark") not in AT_WORK
    if known is not None:
        return not known
    return _waited(said.get("mark"), float(said.get("at", 0.0))) > grace + float(said.get("limit") or 0.0)


def _waited(mark: Any, since: float) -> float:
    """Seconds since then, or since this process saw it first, if a clock was set back."""
    return max(time.time() - since, time.monotonic() - SEEN.setdefault(mark, time.monotonic()))


def _place() -> str:
    """This machine, or this container on it: where a process number means one process."""
    machine = _read("/etc/machine-id")[:12]
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    return f"{socket.gethostname()}/{machine}/{space}"


def _began(pid: int) -> str | None:
    """When a process began, as far as the system tells; None where there is none, or it is over."""
    text = _read(f"/proc/{pid}/stat")
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


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace").strip()
    except OSError:
        return ""
