"""Restriction of a suite to some models, tasks, seeds, series and windows, recorded in the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from deepforecast.benchmark.suite import Entry, Suite, Task, parse_entries
from deepforecast.benchmark.suite_checks import all_entries, refuse_files, refuse_unknown_models
from deepforecast.benchmark.task_data import limit_series, window_count
from deepforecast.errors import ParameterError, format_list, format_value, validate_integer


@dataclass(frozen=True, kw_only=True)
class SuiteSubset:
    """Part of a suite to run; None keeps that of the suite.

    Parameters
    ----------
    models : sequence of str or mapping, optional
        Models to run: names, which keep the parameters of the suite, or mappings as in a suite
        file. Peers then run only if they are listed in `peers`.
    peers : sequence of str, optional
        Peers to run: names of libraries, or of their models in the suite.
    tasks : sequence of str, optional
        Tasks to run: patterns of their names, e.g. `etth1-*`.
    seeds : sequence of int, optional
        Seeds in place of those of the suite.
    series, windows : int, optional
        Largest number of series and of windows (the last ones) per task.
    time_limit : float, optional
        Time limit of each job in seconds, in place of those of the suite and its tasks.
    """

    models: Sequence[str | Mapping[str, Any]] | None = None
    peers: Sequence[str] | None = None
    tasks: Sequence[str] | None = None
    seeds: Sequence[int] | None = None
    series: int | None = None
    windows: int | None = None
    time_limit: float | None = None

    def __post_init__(self) -> None:
        for name in ("models", "peers", "tasks", "seeds"):
            choice = getattr(self, name)
            if choice is not None and (isinstance(choice, str) or not list(choice)):
                raise ParameterError(f"{name} must be a non-empty list, got {format_value(choice)}.", parameter=name)
        for name in ("series", "windows"):
            if getattr(self, name) is not None:
                validate_integer(getattr(self, name), name)
        if self.time_limit is not None and not self.time_limit > 0:
            raise ParameterError(
                f"time_limit must be a number of seconds above 0, got {format_value(self.time_limit)}.", parameter="time_limit"
            )


FULL_SUITE = SuiteSubset()


def select_subset(suite: Suite, cut: SuiteSubset) -> Suite:
    """Restrict a suite.

    Parameters
    ----------
    suite : Suite
        The full suite.
    cut : SuiteSubset
        The part to keep.

    Returns
    -------
    Suite
        Its field `cut` describes the restrictions.

    Raises
    ------
    ParameterError
        If a model, peer or task does not exist.
    """
    descriptions: list[str] = list(suite.cut)
    if cut.models is not None:
        suite = _select_models(suite, cut.models)
        descriptions.append(
            f"only models {', '.join(entry if isinstance(entry, str) else str(entry['model']) for entry in cut.models)}"
        )
    if cut.peers is not None or cut.models is not None:
        suite, description = _select_peers(suite, cut.peers or ())
        descriptions += [description] if description else []
    if cut.tasks is not None:
        suite = _select_tasks(suite, cut.tasks)
        descriptions.append(f"only tasks {', '.join(cut.tasks)}")
    if cut.seeds is not None and tuple(cut.seeds) != suite.seeds:
        descriptions.append(f"seeds {', '.join(map(str, cut.seeds))} of {', '.join(map(str, suite.seeds))}")
        suite = replace(suite, seeds=tuple(validate_integer(entry, "a seed", minimum=0) for entry in cut.seeds))
    tasks = []
    for task in suite.tasks:
        limited_task, description = limit_series(task, cut.series)
        shortened_task, window_description = _limit_windows(limited_task, cut.windows)
        tasks.append(shortened_task)
        descriptions += [entry for entry in (description, window_description) if entry]
    if cut.time_limit is not None:
        suite = replace(suite, time_limit=float(cut.time_limit))
        tasks = [replace(task, time_limit=None) for task in tasks]
    return replace(suite, tasks=tuple(tasks), cut=tuple(descriptions))


def _select_models(suite: Suite, models: Sequence[str | Mapping[str, Any]]) -> Suite:
    requested = parse_entries(models, "models")
    known_names = {entry.name for entry in all_entries(suite)}
    refuse_unknown_models([entry for entry in requested if entry.name not in known_names], f"suite {suite.suite}")
    refuse_files(requested, f"suite {suite.suite}")
    task_models = [
        _match_entries(requested, parse_entries(task.models, task.name)) if task.models else () for task in suite.tasks
    ]
    tasks = tuple(replace(task, models=models) for task, models in zip(suite.tasks, task_models, strict=True))
    return replace(suite, models=_match_entries(requested, suite.models or ()), tasks=tasks)


def _match_entries(requested: Sequence[Entry], available: Sequence[Entry]) -> tuple[Entry, ...]:
    """Replace entries given by name only by those of the suite."""
    by_name = {entry.name: entry for entry in available}
    return tuple(entry if entry.parameters or entry.alias else by_name.get(entry.name, entry) for entry in requested)


def _select_peers(suite: Suite, names: Sequence[str]) -> tuple[Suite, str]:
    entries_by_name = {
        entry.name: entry
        for entry in (
            *suite.peers,
            *(task_entry for task in suite.tasks for task_entry in parse_entries(task.peers, task.name)),
        )
    }
    valid_names = {entry.peer for entry in entries_by_name.values()} | set(entries_by_name)
    unknown = [name for name in names if name not in valid_names]
    if unknown:
        available = format_list(sorted(valid_names), max_shown=30) or "none"
        raise ParameterError(
            f"peers of suite {suite.suite} must be from {available}, got {format_list(unknown)}.", parameter="peers"
        )

    def select_entries(peer_entries: Sequence[Entry]) -> tuple[Entry, ...]:
        return tuple(entry for entry in peer_entries if entry.name in names or entry.peer in names)

    removed = [name for name, entry in entries_by_name.items() if not select_entries([entry])]
    tasks = tuple(replace(task, peers=select_entries(parse_entries(task.peers, task.name))) for task in suite.tasks)
    return replace(suite, peers=select_entries(suite.peers), tasks=tasks), f"without {', '.join(removed)}" if removed else ""


def _select_tasks(suite: Suite, patterns: Sequence[str]) -> Suite:
    for pattern in patterns:
        if not any(fnmatchcase(task.name, pattern) for task in suite.tasks):
            available = format_list([task.name for task in suite.tasks], max_shown=30)
            raise ParameterError(
                f"tasks must match a task of suite {suite.suite}, got {format_value(pattern)}.", hint=f"Available: {available}.",
                parameter="tasks",
            )
    return replace(
        suite,
        tasks=tuple(task for task in suite.tasks if any(fnmatchcase(task.name, task_pattern) for task_pattern in patterns)),
    )


def _limit_windows(task: Task, max_windows: int | None) -> tuple[Task, str]:
    if max_windows is None or (count := window_count(task)) <= max_windows:
        return task, ""
    shortened_task = replace(task, windows=replace(task.windows, count=max_windows, test=None))
    return shortened_task, f"{task.name}: the last {max_windows} of {count} windows"
