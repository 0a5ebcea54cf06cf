"""What of a suite is run: fewer models, tasks, seeds, series or windows, each said in the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from deepforecast.benchmark.checks import entries_of, refuse_files, refuse_unknown_models
from deepforecast.benchmark.data import limited, window_count
from deepforecast.benchmark.suite import Entry, Suite, Task, entries
from deepforecast.data.integers import validate_integer
from deepforecast.errors import ParameterError, format_list, format_value


@dataclass(frozen=True, kw_only=True)
class Cut:
    """`models`: these alone, by name with what the suite says of them, or as a suite names them; then `peers` run only where
    they are asked for, by the name of the library or of one of its models in the suite. `tasks`: those whose name fits one
    of these patterns (`etth1-*`). `seeds`: instead of the suite's. `series`, `windows`: at most so many of each task, the
    last windows. `time_limit`: of each job, in seconds, instead of the suite's."""

    models: Sequence[str | Mapping[str, Any]] | None = None
    peers: Sequence[str] | None = None
    tasks: Sequence[str] | None = None
    seeds: Sequence[int] | None = None
    series: int | None = None
    windows: int | None = None
    time_limit: float | None = None

    def __post_init__(self) -> None:
        for name in ("models", "peers", "tasks", "seeds"):
            given = getattr(self, name)
            if given is not None and (isinstance(given, str) or not list(given)):
                raise ParameterError(f"{name} is a list with at least one of them; got {format_value(given)}.")
        for name in ("series", "windows"):
            if getattr(self, name) is not None:
                validate_integer(getattr(self, name), name)
        if self.time_limit is not None and not self.time_limit > 0:
            raise ParameterError(f"time_limit is a number of seconds above 0; got {format_value(self.time_limit)}.")


WHOLE = Cut()


def adjusted(suite: Suite, cut: Cut) -> Suite:
    """The suite with what is left of it; its `cut` says what is not."""
    said: list[str] = list(suite.cut)
    if cut.models is not None:
        suite = _of_models(suite, cut.models)
        said.append(f"models {', '.join(one if isinstance(one, str) else str(one['model']) for one in cut.models)} alone")
    if cut.peers is not None or cut.models is not None:
        suite, words = _of_peers(suite, cut.peers or ())
        said += [words] if words else []
    if cut.tasks is not None:
        suite = _of_tasks(suite, cut.tasks)
        said.append(f"tasks {', '.join(cut.tasks)} alone")
    if cut.seeds is not None and tuple(cut.seeds) != suite.seeds:
        said.append(f"seeds {', '.join(map(str, cut.seeds))} of {', '.join(map(str, suite.seeds))}")
        suite = replace(suite, seeds=tuple(validate_integer(one, "a seed", minimum=0) for one in cut.seeds))
    tasks = []
    for task in suite.tasks:
        short, words = limited(task, cut.series)
        fewer, more = _of_windows(short, cut.windows)
        tasks.append(fewer)
        said += [one for one in (words, more) if one]
    if cut.time_limit is not None:
        suite = replace(suite, time_limit=float(cut.time_limit))
        tasks = [replace(task, time_limit=None) for task in tasks]
    return replace(suite, tasks=tuple(tasks), cut=tuple(said))


def _of_models(suite: Suite, models: Sequence[str | Mapping[str, Any]]) -> Suite:
    asked = entries(models, "models")
    held = {one.name for one in entries_of(suite)}
    refuse_unknown_models([one for one in asked if one.name not in held], f"suite {suite.suite}")
    refuse_files(asked, f"suite {suite.suite}")
    own = [_known(asked, entries(task.models, task.name)) if task.models else () for task in suite.tasks]
    tasks = tuple(replace(task, models=models) for task, models in zip(suite.tasks, own, strict=True))
    return replace(suite, models=_known(asked, suite.models or ()), tasks=tasks)


def _known(asked: Sequence[Entry], own: Sequence[Entry]) -> tuple[Entry, ...]:
    """What is asked for by name alone is as the suite has it."""
    held = {one.name: one for one in own}
    return tuple(one if one.parameters or one.alias else held.get(one.name, one) for one in asked)


def _of_peers(suite: Suite, names: Sequence[str]) -> tuple[Suite, str]:
    every = {one.name: one for one in (*suite.peers, *(e for task in suite.tasks for e in entries(task.peers, task.name)))}
    known = {one.peer for one in every.values()} | set(every)
    unknown = [name for name in names if name not in known]
    if unknown:
        there = format_list(sorted(known), max_shown=30) or "none"
        raise ParameterError(f"Suite {suite.suite} has the peers {there}; got {format_list(unknown)}.")

    def kept(own: Sequence[Entry]) -> tuple[Entry, ...]:
        return tuple(one for one in own if one.name in names or one.peer in names)

    left = [name for name, one in every.items() if not kept([one])]
    tasks = tuple(replace(task, peers=kept(entries(task.peers, task.name))) for task in suite.tasks)
    return replace(suite, peers=kept(suite.peers), tasks=tasks), f"without {', '.join(left)}" if left else ""


def _of_tasks(suite: Suite, patterns: Sequence[str]) -> Suite:
    for pattern in patterns:
        if not any(fnmatchcase(task.name, pattern) for task in suite.tasks):
            there = format_list([task.name for task in suite.tasks], max_shown=30)
            raise ParameterError(f"No task of suite {suite.suite} fits {format_value(pattern)}. There is {there}.")
    return replace(suite, tasks=tuple(task for task in suite.tasks if any(fnmatchcase(task.name, one) for one in patterns)))


def _of_windows(task: Task, most: int | None) -> tuple[Task, str]:
    if most is None or (count := window_count(task)) <= most:
        return task, ""
    fewer = replace(task, windows=replace(task.windows, count=most, test=None))
    return fewer, f"{task.name}: the last {most} of {count} windows"
