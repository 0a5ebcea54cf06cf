"""What is done once is done before the jobs: kernels are compiled and kept, libraries imported where jobs are forked."""

from __future__ import annotations

import importlib
import logging
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import IO, NoReturn

from deepforecast.benchmark.suite import Entry, Task
from deepforecast.core import registry
from deepforecast.core.params import declared
from deepforecast.core.threads import as_worker, waiting_passively

LOG = logging.getLogger(__name__)
NETWORKS = "networks"
LONGEST = 300.0  # seconds, after which jobs begin all the same
SHORT = {"max_steps": 1, "season_length": 7}  # given to the models that declare them, whatever steps they were asked for
PLAIN = ("baselines.", "statistical.", "additive.", "regression.linear_model")  # compute with kernels of ours and with numpy


def rehearse(entries: Iterable[Entry], stopped: Callable[[], bool]) -> None:
    """Fit each model once on a few rows in a process of its own, and import here what was imported there.

    Kernels that are kept by then are loaded here, on one thread: this process starts none, so it can be forked. Whatever goes
    wrong will be told by the jobs.
    """
    every = {_alike(entry): entry for entry in entries if not entry.peer}
    chosen = [every[name] for name in sorted(every, key=lambda name: name != NETWORKS)]  # which import the most
    with tempfile.TemporaryFile("w+b") as left:
        pid = os.fork()
        if not pid:
            _child(chosen, left)
        until = time.perf_counter() + LONGEST
        while not os.waitpid(pid, os.WNOHANG)[0]:
            if stopped() or time.perf_counter() > until:
                with suppress(ProcessLookupError):
                    os.kill(pid, 9)
                until = float("inf")
            time.sleep(0.02)
        left.seek(0)
        names = left.read().decode().split()
    with waiting_passively():
        for name in names:
            try:
                importlib.import_module(name)
            except Exception as error:  # what cannot be imported here the jobs import by themselves, or tell
                LOG.debug("rehearsal: %s was not imported: %s", name, error)
    with as_worker():
        for entry in chosen:
            if _module(entry).removeprefix("deepforecast.models.").startswith(PLAIN) and not stopped():
                _once(entry)


def _alike(entry: Entry) -> str:
    """Networks import the same and compile nothing: one stands for all. Others stand for themselves."""
    return NETWORKS if _module(entry).startswith("deepforecast.models.neural.") else entry.model


def _module(entry: Entry) -> str:
    from deepforecast.core.index import MODELS

    return MODELS.get(entry.model, "")


def _child(entries: list[Entry], left: IO[bytes]) -> NoReturn:
    before = set(sys.modules)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    try:
        for entry in entries:
            _once(entry)
            left.seek(0)
            left.write("\n".join(name for name in sys.modules if name not in before).encode())
            left.flush()
    finally:
        os._exit(0)


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
            known = declared(registry.get(entry.model))
            given = {name: value for name, value in SHORT.items() if name in known}
            own = {name: value for name, value in entry.parameters.items() if name != "max_steps"}
            model = build(replace(entry, parameters=own), Task(dataset="-", parameters=given)).clone(horizon=7)
            rows = Rows.of(prepared.panel, prepared.plan)
            rows.columns = dict(run(model, prepared.panel, prepared.plan, "auto", prepared.levels).columns)
            scores(rows.frame(prepared.panel), model.name, prepared)
    except Exception as error:  # its jobs will tell
        LOG.debug("rehearsal: %s failed: %s", entry.name, error)
