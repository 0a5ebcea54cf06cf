"""Validation of a suite before data are loaded: unknown names, and windows that are too long for the datasets."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from deepforecast import datasets
from deepforecast.benchmark.suite import Entry, Suite, Task, is_model, parse_entries
from deepforecast.benchmark.task_data import horizon_of, window_count
from deepforecast.core import registry
from deepforecast.core.params import declared_params
from deepforecast.errors import DeepForecastError, ParameterError, format_list, format_value, pluralize, validate_integer
from deepforecast.evaluation.metrics import get

FILE_PARAMS = {
    "checkpoint_dir", "trainer", "default_root_dir", "dirpath", "logger", "callbacks",  # networks
    "train_dir", "allow_writing_files", "save_snapshot", "snapshot_file", "output_model",  # boosted trees
}  # fmt: skip
"""Parameters that may write files outside of the folder of the run."""


def refuse_unknown_names(suite: Suite, where: str) -> None:
    """Raise on unknown datasets, models, metrics or reference, and on windows longer than every series.

    Parameters
    ----------
    suite : Suite
        Suite to check.
    where : str
        Name of its file in messages.

    Raises
    ------
    ParameterError
        With the location of the first invalid name or setting.
    """
    suite_entries = all_entries(suite)
    refuse_unknown_models(suite_entries, where)
    refuse_files(suite_entries, where)
    _refuse_unknown_model(suite.reference, f"{where}: reference", {entry.name for entry in suite_entries})
    for task in suite.tasks:
        location = f"{where}: {format_value(task.name)}"
        _refuse_files_of(task.parameters, location)
        try:
            _check_data(task)
            _check_metrics(task.metrics)
            _refuse_long_windows(task)
        except ParameterError as error:
            raise ParameterError(f"{location}: {error}") from None


def all_entries(suite: Suite) -> list[Entry]:
    """Return the models listed by the suite and its tasks; empty if it uses the default models."""
    of_tasks = [
        entry
        for task in suite.tasks
        for entry in (*parse_entries(task.models, task.name), *parse_entries(task.peers, task.name))
    ]
    return [*(suite.models or ()), *suite.peers, *of_tasks]


def refuse_unknown_models(models: Iterable[Entry], where: str) -> None:
    """Raise on models that are not registered, also nested ones; models of peers are not checked."""
    for name in dict.fromkeys(
        name for entry in models if not entry.peer for name in (entry.model, *_nested_models(entry.parameters))
    ):
        _refuse_unknown_model(name, f"{where}: models", ())


def refuse_files(models: Iterable[Entry], where: str) -> None:
    """Raise on parameters that may write files elsewhere, also in nested models and peers."""
    for entry in models:
        _refuse_files_of(entry.parameters, f"{where}: {format_value(entry.name)}")


def _refuse_files_of(parameters: Mapping[str, Any], where: str) -> None:
    for name, value in parameters.items():
        if name in FILE_PARAMS and value is not None:
            raise ParameterError(
                f"{where}: `{name}` cannot be set in a benchmark, as it may write files outside of the folder of the run, "
                f"got {format_value(value)}.",
                hint="Use the default, None.",
            )
        for inner in value if isinstance(value, list | tuple) else [value]:
            if isinstance(inner, Mapping):
                _refuse_files_of(inner, where)


def refuse_unused_parameters(suite: Suite) -> None:
    """Raise on parameters of a task that none of its models declares; imports the models."""
    for task in suite.tasks:
        try:
            declared_names = {
                name for entry in suite.entries(task) if not entry.peer for name in declared_params(registry.get(entry.model))
            }
        except DeepForecastError:  # a model that cannot be imported: reported by its jobs
            continue
        unused = [name for name in task.parameters if name not in declared_names]
        if unused:
            rule = "parameters of a task must be declared by at least one of its models"
            raise ParameterError(f"{task.name}: {rule}, got {_suggest_names(unused[0], declared_names)}")


def _nested_models(parameters: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the models nested in parameters."""
    for value in parameters.values():
        if is_model(value):
            yield from (str(value["model"]), *_nested_models(value.get("parameters") or {}))


def _refuse_unknown_model(name: str, where: str, aliases: Iterable[str]) -> None:
    model_names = {*registry.names(), *aliases}
    if name not in model_names:
        raise ParameterError(f"{where}: a model must be registered, got {_suggest_names(name, model_names)}")


def _suggest_names(name: str, valid_names: Iterable[str]) -> str:
    """Return an unknown name with similar or all valid names, for a message."""
    by_lower = {candidate.lower(): candidate for candidate in valid_names}
    close_matches = [by_lower[candidate] for candidate in difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.5)]
    hint = (
        f"; did you mean {' or '.join(close_matches)}?"
        if close_matches
        else f". Available: {format_list(sorted(valid_names), max_shown=100)}."
    )
    return format_value(name) + hint


def _check_data(task: Task) -> None:
    if task.generate is None:
        datasets.card(task.dataset)
        return
    try:
        inspect.signature(datasets.generate).bind(**task.generate)
    except TypeError as error:
        raise ParameterError(f"generate must be arguments of datasets.generate ({error}).") from None


def _check_metrics(names: Sequence[str]) -> None:
    for name in names:
        get(name.rpartition("-")[0] if name.rpartition("-")[2].isdecimal() else name)


def _refuse_long_windows(task: Task) -> None:
    """Raise if the windows need more rows than the longest series of the dataset can have."""
    horizon, count = horizon_of(task), window_count(task)
    n_learning_rows = task.scaling.rows if task.scaling is not None else 1
    n_required = horizon + (count - 1) * (task.windows.step or horizon) + n_learning_rows
    if task.generate is not None:
        default_length = inspect.signature(datasets.generate).parameters["length"].default
        max_rows = validate_integer(task.generate.get("length", default_length), "generate: length")
    else:
        card = datasets.card(task.dataset)
        max_rows = card.rows - card.series + 1
    max_rows = max_rows if task.part is None or task.part.last is None else min(max_rows, task.part.last)
    if n_required > max_rows:
        raise ParameterError(
            f"{pluralize(count, 'window')} of horizon {horizon} and {pluralize(n_learning_rows, 'training row')} require "
            f"{pluralize(n_required, 'row')}, but the series of the task have at most {max_rows:,}.",
            hint=f"Set a shorter horizon{' or fewer windows' if count > 1 else ''}.",
        )
