"""What can be told of a suite before anything is loaded: names that nothing has, horizons that its datasets cannot hold."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from deepforecast import datasets
from deepforecast.benchmark.data import horizon_of, window_count
from deepforecast.benchmark.suite import Entry, Suite, Task, entries, is_model
from deepforecast.core import registry
from deepforecast.core.params import declared_params
from deepforecast.data.integers import validate_integer
from deepforecast.errors import DeepForecastError, ParameterError, format_list, format_value, pluralize
from deepforecast.evaluation.metrics import get

OUTSIDE = {
    "checkpoint_dir", "trainer", "default_root_dir", "dirpath", "logger", "callbacks",  # networks
    "train_dir", "allow_writing_files", "save_snapshot", "snapshot_file", "output_model",  # boosted trees
}  # fmt: skip


def refuse_unknown(suite: Suite, where: str) -> None:
    """Refuse datasets, models, metrics and a reference that there are not, and windows no series is long enough for."""
    own = entries_of(suite)
    refuse_unknown_models(own, where)
    refuse_files(own, where)
    _refuse_model(suite.reference, f"{where}: reference", {entry.name for entry in own})
    for task in suite.tasks:
        told = f"{where}: {format_value(task.name)}"
        _refuse_files_of(task.parameters, told)
        try:
            _known_data(task)
            _known_metrics(task.metrics)
            _refuse_too_long(task)
        except ParameterError as error:
            raise ParameterError(f"{told}: {error}") from None


def entries_of(suite: Suite) -> list[Entry]:
    """The models that a suite names, and those of its tasks; none where it takes all there are."""
    of_tasks = [entry for task in suite.tasks for entry in (*entries(task.models, task.name), *entries(task.peers, task.name))]
    return [*(suite.models or ()), *suite.peers, *of_tasks]


def refuse_unknown_models(models: Iterable[Entry], where: str) -> None:
    """Refuse models of ours that there are not; those of peers are known to them."""
    for name in dict.fromkeys(name for entry in models if not entry.peer for name in (entry.model, *_within(entry.parameters))):
        _refuse_model(name, f"{where}: models", ())


def refuse_files(models: Iterable[Entry], where: str) -> None:
    """Refuse parameters by which a model, one within it or a peer's would write files of its own."""
    for entry in models:
        _refuse_files_of(entry.parameters, f"{where}: {format_value(entry.name)}")


def _refuse_files_of(parameters: Mapping[str, Any], where: str) -> None:
    for name, value in parameters.items():
        if name in OUTSIDE and value is not None:
            raise ParameterError(
                f"{where}: `{name}` cannot be set in a benchmark, as it may write files outside of the folder of the run. "
                "Leave it out."
            )
        for inner in value if isinstance(value, list | tuple) else [value]:
            if isinstance(inner, Mapping):
                _refuse_files_of(inner, where)


def refuse_idle_parameters(suite: Suite) -> None:
    """Refuse what a task tells all its models and none of them declares. Imports the models."""
    for task in suite.tasks:
        try:
            known = {name for entry in suite.entries(task) if not entry.peer for name in declared_params(registry.get(entry.model))}
        except DeepForecastError:  # a model that cannot be imported: its jobs will tell
            continue
        idle = [name for name in task.parameters if name not in known]
        if idle:
            rule = "parameters of a task are given to the models that have them"
            raise ParameterError(f"{task.name}: {rule}; none has {_near(idle[0], known)}")


def _within(parameters: Mapping[str, Any]) -> Iterator[str]:
    """The models that are parameters of another."""
    for value in parameters.values():
        if is_model(value):
            yield from (str(value["model"]), *_within(value.get("parameters") or {}))


def _refuse_model(name: str, where: str, aliases: Iterable[str]) -> None:
    known = {*registry.names(), *aliases}
    if name not in known:
        raise ParameterError(f"{where}: no model is called {_near(name, known)}")


def _near(name: str, known: Iterable[str]) -> str:
    """A name nobody has, and those that look like it."""
    by_lower = {one.lower(): one for one in known}
    near = [by_lower[one] for one in difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.5)]
    hint = f"; did you mean {' or '.join(near)}?" if near else f". There is {format_list(sorted(known), max_shown=100)}."
    return format_value(name) + hint


def _known_data(task: Task) -> None:
    if task.generate is None:
        datasets.card(task.dataset)
        return
    try:
        inspect.signature(datasets.generate).bind(**task.generate)
    except TypeError as error:
        raise ParameterError(f"generate takes what datasets.generate does ({error}).") from None


def _known_metrics(names: Sequence[str]) -> None:
    for name in names:
        get(name.rpartition("-")[0] if name.rpartition("-")[2].isdecimal() else name)


def _refuse_too_long(task: Task) -> None:
    """Refuse windows that need more rows than the longest series can have."""
    horizon, count = horizon_of(task), window_count(task)
    learned = task.scaling.rows if task.scaling is not None else 1
    needed = horizon + (count - 1) * (task.windows.step or horizon) + learned
    if task.generate is not None:
        usual = inspect.signature(datasets.generate).parameters["length"].default
        most = validate_integer(task.generate.get("length", usual), "generate: length")
    else:
        card = datasets.card(task.dataset)
        most = card.rows - card.series + 1
    most = most if task.part is None or task.part.last is None else min(most, task.part.last)
    if needed > most:
        raise ParameterError(
            f"{pluralize(count, 'window')} of horizon {horizon} and {pluralize(learned, 'row')} to learn from are {pluralize(needed, 'row')}, "
            f"and no series has more than {most:,}. Give a shorter horizon{' or fewer windows' if count > 1 else ''}."
        )
