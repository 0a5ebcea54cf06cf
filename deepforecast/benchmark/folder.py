"""The folder of a run: one suite and one writer; what later calls run of the suite is added to what is there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from deepforecast.benchmark.reading import text_to_mapping
from deepforecast.benchmark.rows import FORECASTS, HISTORY, PEERS, RESULTS, SERIES, SUITE, Row
from deepforecast.benchmark.suite import Suite, Task, suite_of_mapping
from deepforecast.errors import DataError, ParameterError, SaveError, format_value
from deepforecast.io.atomic import replace_file


def suite_of_run(folder: str | Path) -> Suite:
    """The suite as it was run."""
    path = Path(folder, SUITE)
    if not path.is_file():
        raise DataError(f"A run is a folder with a file {SUITE}; {format_value(str(folder))} has none.")
    return suite_of_mapping(text_to_mapping(path.read_text("utf-8"), SUITE))


def settle(folder: Path, suite: Suite) -> None:
    """Write the suite as it is run beside its results; a folder that holds another one is refused."""
    import yaml

    if (folder / SUITE).is_file():
        suite = joined(suite_of_run(folder), suite_of_mapping(suite.to_mapping()), folder)
    text = yaml.safe_dump(suite.to_mapping(), sort_keys=False, allow_unicode=True, width=120)
    try:
        replace_file(folder / SUITE, [text.encode()])
    except OSError as error:
        raise SaveError(f"A run is written to a folder; {format_value(str(folder))} cannot be: {error.strerror}.") from error


def joined(before: Suite, now: Suite, folder: Path) -> Suite:
    """The suite of a folder after another call: what each call cut out of it is there once either has run it."""
    way_out = f"A folder holds the run of one suite; give {format_value(now.suite)} another folder, or remove {format_value(str(folder))}."
    if before.suite != now.suite:
        raise ParameterError(f"{format_value(str(folder))} holds a run of suite {format_value(before.suite)}. {way_out}")
    tasks = {task.name: task for task in before.tasks}
    for task in now.tasks:
        was, asked = _asked(tasks.get(task.name, task)), _asked(task)
        other = next((name for name in asked if asked[name] != was[name]), None)
        if other:
            told = f"{other} of {format_value(task.name)} was {format_value(was[other])} and is {format_value(asked[other])}"
            raise ParameterError(f"{format_value(str(folder))} holds a run of another suite {format_value(before.suite)}: {told}. {way_out}")
        tasks[task.name] = task
    models = None
    if before.models is not None and now.models is not None:
        models = tuple({one.name: one for one in (*before.models, *now.models)}.values())
    return replace(
        now,
        tasks=tuple(tasks.values()),
        models=models,
        peers=tuple({one.name: one for one in (*before.peers, *now.peers)}.values()),
        seeds=tuple(dict.fromkeys((*before.seeds, *now.seeds))),
        cut=tuple(dict.fromkeys((*before.cut, *now.cut))) if before.cut and now.cut else (),
    )


def _asked(task: Task) -> Mapping[str, Any]:
    """What all models of a task are asked, but for what a call may cut and the limits of its jobs."""
    part = task.part and replace(task.part, series=None)
    same = {"models", "peers", "time_limit", "memory_limit"}
    held = {name: value for name, value in vars(task).items() if name not in same}
    held["windows"] = replace(task.windows, count=1, test=None)
    held["part"] = None if part is None or part == type(part)() else part
    if task.generate is not None:
        held["generate"] = {name: value for name, value in task.generate.items() if name != "n_series"}
    return held


def append(results: Any, row: Row) -> None:
    """One row at the end of the file, whole and on the disk."""
    os.write(results.fileno(), row.line())
    os.fsync(results.fileno())


@contextmanager
def written_to(folder: Path) -> Iterator[Any]:
    """The results file of a run, opened for one writer; what a stopped run left unfinished at its end is cut off."""
    import fcntl  # not on every system

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for part in (FORECASTS, SERIES, HISTORY, PEERS):
            for left in (folder / part).glob(".deepforecast-*.tmp"):
                left.unlink()
        results = open(folder / RESULTS, "ab+")  # noqa: SIM115
    except OSError as error:
        raise SaveError(f"A run is written to a folder; {format_value(str(folder))} cannot be: {error.strerror}.") from error
    with results:
        try:
            fcntl.flock(results, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise SaveError(f"A folder holds one run at a time; another process is writing to {format_value(str(folder))}.") from error
        results.seek(0)
        whole = results.read().rfind(b"\n") + 1
        results.truncate(whole)
        results.seek(0, os.SEEK_END)
        yield results
