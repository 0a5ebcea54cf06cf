"""Rehearsal: compiles kernels and imports libraries in the server process before jobs are forked from it."""

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

from deepforecast.benchmark.process_guard import Guard, kill_process
from deepforecast.benchmark.suite import Entry, Task
from deepforecast.core import registry
from deepforecast.core.params import declared_params
from deepforecast.core.threads import as_worker, passive_waiting

LOGGER = logging.getLogger(__name__)
NETWORKS = "networks"
MAX_SECONDS = 300.0  # in total, after which the jobs start
CHEAP_PARAMS = {"max_steps": 1, "season_length": 7}  # for models that declare them; max_steps of an entry is replaced
PRELOADED_MODULES = (
    "baselines.",
    "statistical.",
    "additive.",
    "regression.linear_model",
)  # use only kernels of this library and numpy


def select_models(entries: Iterable[tuple[Entry, float]]) -> list[tuple[Entry, float]]:
    """Select the models to rehearse.

    Parameters
    ----------
    entries : iterable of (Entry, float)
        Model and time limit of each job.

    Returns
    -------
    list of (Entry, float)
        Each model of this library once (one network for all networks), with the sum of the time
        limits of its jobs as its own limit: without the rehearsal each of them would compile.
    """
    selected: dict[str, tuple[Entry, float]] = {}
    for entry, limit in entries:
        if not entry.peer:
            name = _rehearsal_group(entry)
            selected[name] = (entry, limit + selected.get(name, (entry, 0.0))[1])
    networks_first = sorted(selected, key=lambda name: name != NETWORKS)  # they import the most
    return [selected[name] for name in networks_first]


def rehearse(models: Iterable[tuple[Entry, float]], guard: Guard) -> Iterator[tuple[Entry, bool]]:
    """Fit each model once on a few rows in a separate process, and import in this process what it imported.

    Compiled kernels are loaded in this process afterwards, on one thread: a process that is forked
    must not start threads. Errors are ignored, since the jobs report them.

    Parameters
    ----------
    models : iterable of (Entry, float)
        Models with their time limits, as returned by `select_models`.
    guard : Guard
        Kills the fitting process if this process ends.

    Yields
    ------
    entry : Entry
        A model.
    completed : bool
        Whether it finished in time. The others, and all models after `MAX_SECONDS`, compile and
        import in their jobs.
    """
    deadline = time.monotonic() + MAX_SECONDS
    pending, completed, names = list(models), list[Entry](), dict[str, None]()
    while pending and time.monotonic() < deadline:
        with _fitting_process([entry for entry, _ in pending], guard) as receiver:
            while pending:
                entry, limit = pending.pop(0)
                imported = _receive_imports(receiver, min(limit, deadline - time.monotonic()))
                yield entry, imported is not None
                if imported is None:  # the remaining models are fitted by a new process
                    break
                names |= dict.fromkeys(imported)
                completed.append(entry)
    with passive_waiting():
        for name in names:
            try:
                importlib.import_module(name)
            except Exception as error:  # the jobs import the module, or report the error
                LOGGER.debug("rehearsal: %s was not imported: %s", name, error)
    with as_worker():
        for entry in completed:
            if _module_name(entry).removeprefix("deepforecast.models.").startswith(PRELOADED_MODULES):
                _rehearse_model(entry)


def _rehearsal_group(entry: Entry) -> str:
    """Return the key of a model: one for all networks, which import the same modules and compile nothing."""
    return NETWORKS if _module_name(entry).startswith("deepforecast.models.neural.") else entry.model


def _module_name(entry: Entry) -> str:
    from deepforecast.core.registry import MODELS

    return MODELS.get(entry.model, "")


@contextmanager
def _fitting_process(entries: list[Entry], guard: Guard) -> Iterator[Connection]:
    """Run a process that fits the models one by one and sends the imported modules of each."""
    receiver, sender = Pipe(duplex=False)
    pid = os.fork()
    if not pid:
        guard.close()
        _fit_all(entries, sender)
    guard.register(pid)
    sender.close()
    try:
        yield receiver
    finally:
        receiver.close()
        kill_process(pid)
        os.waitpid(pid, 0)
        guard.unregister(pid)


def _fit_all(entries: list[Entry], sender: Connection) -> NoReturn:
    loaded = set(sys.modules)
    null_fd = os.open(os.devnull, os.O_RDWR)
    try:
        os.setsid()
        for fd in (0, 1, 2):
            os.dup2(null_fd, fd)
        for entry in entries:
            _rehearse_model(entry)
            sender.send_bytes("\n".join(name for name in sys.modules if name not in loaded).encode())
    finally:
        os._exit(0)


def _receive_imports(receiver: Connection, seconds: float) -> list[str] | None:
    """Return the modules imported by the next model; None after a timeout or the end of the process."""
    try:
        return receiver.recv_bytes().decode().split() if receiver.poll(seconds) else None
    except EOFError:
        return None


def _rehearse_model(entry: Entry) -> None:
    """Fit, forecast and score a model on two series of 90 days; errors are logged only."""
    from deepforecast.benchmark.job import build_model, compute_metrics
    from deepforecast.benchmark.task_data import prepare_task
    from deepforecast.evaluation.compare import run_model
    from deepforecast.evaluation.cross_validation import BacktestRows

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            prepared = prepare_task(Task(task="rehearsal", generate={"n_series": 2, "length": 90}, horizon=7, level=(80.0,)))
            declared_names = declared_params(registry.get(entry.model))
            task_params = {name: value for name, value in CHEAP_PARAMS.items() if name in declared_names}
            entry_params = {name: value for name, value in entry.parameters.items() if name != "max_steps"}
            model = build_model(replace(entry, parameters=entry_params), Task(dataset="-", parameters=task_params)).clone(
                horizon=7
            )
            rows = BacktestRows.from_plan(prepared.panel, prepared.plan)
            rows.columns = dict(run_model(model, prepared.panel, prepared.plan, "auto", prepared.levels).columns)
            compute_metrics(rows.frame(prepared.panel), model.name, prepared)
    except Exception as error:  # reported by its jobs
        LOGGER.debug("rehearsal: %s failed: %s", entry.name, error)
