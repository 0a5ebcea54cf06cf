"""What is done once is done before the jobs: kernels are compiled and kept, libraries imported where jobs are forked."""

from __future__ import annotations

import importlib
import logging
import os
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import NoReturn

from deepforecast.benchmark.guard import Guard, kill
from deepforecast.benchmark.suite import Entry, Task
from deepforecast.core import registry
from deepforecast.core.params import declared_params
from deepforecast.core.threads import as_worker, passive_waiting

LOG = logging.getLogger(__name__)
NETWORKS = "networks"
LONGEST = 300.0  # seconds for all of them, after which jobs begin all the same
SHORT = {"max_steps": 1, "season_length": 7}  # given to the models that declare them, whatever steps they were asked for
PLAIN = ("baselines.", "statistical.", "additive.", "regression.linear_model")  # compute with kernels of ours and with numpy


def chosen(entries: Iterable[tuple[Entry, float]]) -> list[tuple[Entry, float]]:
    """Of the models of all jobs, each with the seconds of its job, those that are rehearsed, with the seconds of all its jobs.

    As long each may take: without it every one of its jobs would compile.
    """
    found: dict[str, tuple[Entry, float]] = {}
    for entry, limit in entries:
        if not entry.peer:
            name = _alike(entry)
            found[name] = (entry, limit + found.get(name, (entry, 0.0))[1])
    return [found[name] for name in sorted(found, key=lambda name: name != NETWORKS)]  # which import the most


def rehearse(models: Iterable[tuple[Entry, float]], guard: Guard) -> Iterator[tuple[Entry, bool]]:
    """Fit each model once on a few rows in a process of its own, and import here what was imported there.

    Gives each, and whether it came to its end in time. One that did not is left to its jobs, and so are all after `LONGEST`.
    Kernels that are kept by then are loaded here, on one thread: this process starts none, so it can be forked. Whatever goes
    wrong will be told by the jobs.
    """
    until = time.monotonic() + LONGEST
    waiting, well, names = list(models), list[Entry](), dict[str, None]()
    while waiting and time.monotonic() < until:
        with _child([entry for entry, _ in waiting], guard) as told:
            while waiting:
                entry, limit = waiting.pop(0)
                found = _imported(told, min(limit, until - time.monotonic()))
                yield entry, found is not None
                if found is None:  # the others go on in another process
                    break
                names |= dict.fromkeys(found)
                well.append(entry)
    with passive_waiting():
        for name in names:
            try:
                importlib.import_module(name)
            except Exception as error:  # what cannot be imported here the jobs import by themselves, or tell
                LOG.debug("rehearsal: %s was not imported: %s", name, error)
    with as_worker():
        for entry in well:
            if _module(entry).removeprefix("deepforecast.models.").startswith(PLAIN):
                _once(entry)


def _alike(entry: Entry) -> str:
    """Networks import the same and compile nothing: one stands for all. Others stand for themselves."""
    return NETWORKS if _module(entry).startswith("deepforecast.models.neural.") else entry.model


def _module(entry: Entry) -> str:
    from deepforecast.core.index import MODELS

    return MODELS.get(entry.model, "")


@contextmanager
def _child(entries: list[Entry], guard: Guard) -> Iterator[Connection]:
    """A process that fits these, one after the other, and tells after each what it has imported. It ends with the block."""
    told, telling = Pipe(duplex=False)
    pid = os.fork()
    if not pid:
        guard.forget()
        _fit_all(entries, telling)
    guard.begun(pid)
    telling.close()
    try:
        yield told
    finally:
        told.close()
        kill(pid)
        os.waitpid(pid, 0)
        guard.over(pid)


def _fit_all(entries: list[Entry], telling: Connection) -> NoReturn:
    before = set(sys.modules)
    silence = os.open(os.devnull, os.O_RDWR)
    try:
        os.setsid()
        for number in (0, 1, 2):
            os.dup2(silence, number)
        for entry in entries:
            _once(entry)
            telling.send_bytes("\n".join(name for name in sys.modules if name not in before).encode())
    finally:
        os._exit(0)


def _imported(told: Connection, seconds: float) -> list[str] | None:
    """What the next model imported; None where it took longer or its process ended."""
    try:
        return told.recv_bytes().decode().split() if told.poll(seconds) else None
    except EOFError:
        return None


def _once(entry: Entry) -> None:
    """Fit, forecast and score a model on ninety days of two series."""
    from deepforecast.benchmark.data import prepare
    from deepforecast.benchmark.job import build, scores
    from deepforecast.evaluation.compare import run
    from deepforecast.evaluation.cross_validation import Rows

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            prepared = prepare(Task(task="rehearsal", generate={"n_series": 2, "length": 90}, horizon=7, level=(80.0,)))
            known = declared_params(registry.get(entry.model))
            given = {name: value for name, value in SHORT.items() if name in known}
            own = {name: value for name, value in entry.parameters.items() if name != "max_steps"}
            model = build(replace(entry, parameters=own), Task(dataset="-", parameters=given)).clone(horizon=7)
            rows = Rows.of(prepared.panel, prepared.plan)
            rows.columns = dict(run(model, prepared.panel, prepared.plan, "auto", prepared.levels).columns)
            scores(rows.frame(prepared.panel), model.name, prepared)
    except Exception as error:  # its jobs will tell
        LOG.debug("rehearsal: %s failed: %s", entry.name, error)
