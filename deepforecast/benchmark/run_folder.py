"""The folder of a run: one suite, one writing process at a time; later calls append to it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from deepforecast.benchmark.job_results import FORECASTS, HISTORY, PEERS, RESULTS, SERIES, SUITE, Row
from deepforecast.benchmark.suite import Suite, Task, suite_from_mapping
from deepforecast.benchmark.yaml_parsing import parse_mapping
from deepforecast.core.atomic import replace_file
from deepforecast.errors import DataError, ParameterError, SaveError, format_value


def load_run_suite(folder: str | Path) -> Suite:
    """Read the suite of a run; raises `DataError` if the folder is not that of a run."""
    path = Path(folder, SUITE)
    if not path.is_file():
        raise DataError(f"The folder of a run must contain {SUITE}; {format_value(str(folder))} does not.")
    return suite_from_mapping(parse_mapping(path.read_text("utf-8"), SUITE))


def write_suite(folder: Path, suite: Suite) -> None:
    """Write the suite to the folder of a run, merged with the one stored there.

    Raises
    ------
    ParameterError
        If the folder contains the run of another suite.
    SaveError
        If the file cannot be written.
    """
    import yaml

    if (folder / SUITE).is_file():
        suite = merge_suites(load_run_suite(folder), suite_from_mapping(suite.to_mapping()), folder)
    text = yaml.safe_dump(suite.to_mapping(), sort_keys=False, allow_unicode=True, width=120)
    try:
        replace_file(folder / SUITE, [text.encode()])
    except OSError as error:
        raise SaveError(f"The run cannot be written to {format_value(str(folder))}: {error.strerror}.") from error


def merge_suites(stored: Suite, current: Suite, folder: Path) -> Suite:
    """Merge the subsets of one suite that several calls run in the same folder.

    Parameters
    ----------
    stored : Suite
        Suite of the earlier calls.
    current : Suite
        Suite of this call.
    folder : Path
        Folder of the run, for messages.

    Returns
    -------
    Suite
        Tasks, models, peers, seeds and restrictions of both.

    Raises
    ------
    ParameterError
        If the suites differ in their names or in the settings of a task.
    """
    hint = "A folder must contain the run of one suite. "
    hint += f"Use another folder for {format_value(current.suite)}, or remove {format_value(str(folder))}."
    if stored.suite != current.suite:
        raise ParameterError(f"{format_value(str(folder))} contains a run of suite {format_value(stored.suite)}.", hint=hint)
    tasks = {task.name: task for task in stored.tasks}
    for task in current.tasks:
        if task.name not in tasks:
            tasks[task.name] = task
            continue
        stored_fields, current_fields = _comparable_fields(tasks[task.name]), _comparable_fields(task)
        changed_field = next((name for name in current_fields if current_fields[name] != stored_fields[name]), None)
        if changed_field:
            stored_value, current_value = stored_fields[changed_field], current_fields[changed_field]
            description = (
                f"{changed_field} of {format_value(task.name)} was {format_value(stored_value)} "
                f"and is {format_value(current_value)}"
            )
            raise ParameterError(
                f"{format_value(str(folder))} contains a run of suite {format_value(stored.suite)} with other settings: "
                f"{description}.",
                hint=hint,
            )
        tasks[task.name] = task
    models = None
    if stored.models is not None and current.models is not None:
        models = tuple({entry.name: entry for entry in (*stored.models, *current.models)}.values())
    return replace(
        current,
        tasks=tuple(tasks.values()),
        models=models,
        peers=tuple({entry.name: entry for entry in (*stored.peers, *current.peers)}.values()),
        seeds=tuple(dict.fromkeys((*stored.seeds, *current.seeds))),
        cut=tuple(dict.fromkeys((*stored.cut, *current.cut))) if stored.cut and current.cut else (),
    )


def _comparable_fields(task: Task) -> Mapping[str, Any]:
    """Return the fields of a task that must agree between calls, without subsets and limits."""
    slice_spec = task.part and replace(task.part, series=None)
    ignored = {"models", "peers", "time_limit", "memory_limit"}
    fields = {name: value for name, value in vars(task).items() if name not in ignored}
    fields["windows"] = replace(task.windows, count=1, test=None)
    fields["part"] = None if slice_spec is None or slice_spec == type(slice_spec)() else slice_spec
    if task.generate is not None:
        fields["generate"] = {name: value for name, value in task.generate.items() if name != "n_series"}
    return fields


def append_row(results_file: Any, row: Row) -> None:
    """Append a row to the results file and flush it to disk."""
    os.write(results_file.fileno(), row.to_json())
    os.fsync(results_file.fileno())


@contextmanager
def open_results(folder: Path) -> Iterator[Any]:
    """Open the results file of a run for appending, with an exclusive lock.

    Creates the folder, and removes temporary files and an incomplete last line left by an
    interrupted run.

    Raises
    ------
    SaveError
        If the folder cannot be written, or another process is using it.
    """
    import fcntl  # not available on Windows

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for subfolder in (FORECASTS, SERIES, HISTORY, PEERS):
            for unfinished in (folder / subfolder).glob(".deepforecast-*.tmp"):
                unfinished.unlink()
        results_file = open(folder / RESULTS, "ab+")  # noqa: SIM115
    except OSError as error:
        raise SaveError(f"The run cannot be written to {format_value(str(folder))}: {error.strerror}.") from error
    with results_file:
        try:
            fcntl.flock(results_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise SaveError(
                f"A folder must be used by one run at a time; another process is writing to {format_value(str(folder))}."
            ) from error
        results_file.seek(0)
        end = results_file.read().rfind(b"\n") + 1
        results_file.truncate(end)
        results_file.seek(0, os.SEEK_END)
        yield results_file
