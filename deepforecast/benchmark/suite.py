"""Benchmark suites: datasets, windows, models and metrics, read from YAML.

    suite: quick
    what: small datasets included in the package
    models: [Naive, SeasonalNaive, {model: DLinear, parameters: {max_steps: 200}}]     # default: every registered model
    defaults: {metrics: [mase, smape]}
    tasks:
      - dataset: air_passengers
        windows: {count: 3}

The keys are the fields of `Suite`, `Task`, `Windows`, `Slice`, `Scaling` and `Entry` (the field `part` of a
task is the key `slice`). `defaults` contains keys of a task that apply to all tasks without them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from deepforecast.benchmark.yaml_parsing import parse_dataclass, parse_mapping
from deepforecast.errors import ParameterError, format_list, format_value

BUILT_IN_SUITES = Path(__file__).parent / "suites"
CHECKOUT_SUITES = Path(__file__).resolve().parents[2] / "benchmarks" / "suites"  # only in a checkout
METRICS = ("mase", "smape")


@dataclass(frozen=True, kw_only=True)
class Windows:
    """Cutoffs of the forecasts.

    Parameters
    ----------
    count : int, default 1
        Number of windows, counted back from the end of each series.
    test : int, optional
        Size of the test part in rows: use all windows that lie in the last `test` rows, in place
        of `count`.
    step : int, optional
        Number of rows between cutoffs. Defaults to the horizon.
    refit : "auto", bool or int, default "auto"
        Whether to fit the models at each cutoff, or at every k-th.
    size : int, optional
        Number of training rows before each cutoff (a sliding window). Defaults to all.
    """

    count: int = 1
    test: int | None = None
    step: int | None = None
    refit: int | bool | str = "auto"
    size: int | None = None

    def __post_init__(self) -> None:
        for name in ("count", "test", "step", "size"):
            _check_minimum(name, getattr(self, name), 1)
        if isinstance(self.refit, str) and self.refit != "auto":
            raise ParameterError(f"refit must be auto, true, false or a number of windows, got {format_value(self.refit)}.")


@dataclass(frozen=True, kw_only=True)
class Slice:
    """Part of a dataset.

    Parameters
    ----------
    series : int, optional
        Number of series, drawn at random.
    seed : int, default 0
        Seed of the draw.
    ids : tuple of str or int
        Ids of the series to use.
    last : int, optional
        Number of rows of each series, the last ones.
    """

    series: int | None = None
    seed: int = 0
    ids: tuple[str | int, ...] = ()
    last: int | None = None

    def __post_init__(self) -> None:
        _check_minimum("series", self.series, 1)
        _check_minimum("last", self.last, 2)
        _check_minimum("seed", self.seed, 0)


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """Standardisation of each series by the mean and standard deviation of its first rows.

    Forecasts and metrics refer to the standardised values.

    Parameters
    ----------
    rows : int
        Number of rows that determine the scale; they must end before the first cutoff, since
        test data must not affect it.
    kind : {"standard"}
        Kind of scaling.
    """

    rows: int
    kind: str = "standard"

    def __post_init__(self) -> None:
        _check_minimum("rows", self.rows, 2)
        if self.kind != "standard":
            raise ParameterError(f"kind must be standard, got {format_value(self.kind)}.")


@dataclass(frozen=True, kw_only=True)
class Task:
    """A dataset with a horizon and windows.

    Parameters
    ----------
    dataset : str
        Name of the dataset.
    task : str
        Name of the task. Defaults to that of the dataset.
    generate : mapping, optional
        Arguments of `datasets.generate` (n_series, length, freq, seed), for generated series in
        place of a dataset.
    part : Slice, optional
        Part of the dataset to use. Defaults to all of it.
    horizon, season_length : int, optional
        Forecast horizon and season length. Default to those of the dataset card.
    windows : Windows
        Cutoffs of the forecasts.
    scaling : Scaling, optional
        Standardisation of the series.
    columns : {"card", "none"} or mapping, default "card"
        Covariates: those of the dataset card, none, or names by role (future, past, static).
    metrics : tuple of str, default ("mase", "smape")
        Metrics; the first one ranks the models.
    level : tuple of float
        Coverage of the prediction intervals in percent.
    parameters : mapping
        Parameters for every model that declares them; those of the model take precedence.
    models, peers : tuple
        Models and peers in place of those of the suite.
    time_limit, memory_limit : float, optional
        Limits in place of those of the suite.
    """

    dataset: str = ""
    task: str = ""
    generate: Mapping[str, Any] | None = None
    part: Slice | None = None
    horizon: int | None = None
    windows: Windows = field(default_factory=Windows)
    scaling: Scaling | None = None
    season_length: int | None = None
    columns: str | Mapping[str, Any] = "card"
    metrics: tuple[str, ...] = ()
    level: tuple[float, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    models: tuple[Any, ...] = ()
    peers: tuple[Any, ...] = ()
    time_limit: float | None = None
    memory_limit: float | None = None

    def __post_init__(self) -> None:
        if bool(self.dataset) == (self.generate is not None):
            raise ParameterError("a task must have either a dataset or generate, not both.")
        for name in ("horizon", "season_length"):
            _check_minimum(name, getattr(self, name), 1)
        if isinstance(self.columns, str) and self.columns not in ("card", "none"):
            raise ParameterError(f"columns must be card, none or a mapping of roles, got {format_value(self.columns)}.")
        invalid = [level for level in self.level if not 0 < level < 100]
        if invalid:
            raise ParameterError(f"level must be in (0, 100), got {format_list(invalid)}.")

    @property
    def name(self) -> str:
        """Name of the task in rows."""
        return self.task or self.dataset


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A model of a suite.

    Parameters
    ----------
    model : str
        Registered name of the model, or its name in the peer library.
    parameters : mapping
        Parameters of the model.
    alias : str
        Name in rows. Defaults to `model`, for peers to "<peer> <model>".
    peer : str
        Name of the peer library; empty for models of this library.
    """

    model: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    alias: str = ""
    peer: str = ""

    @property
    def name(self) -> str:
        """Name of the model in rows."""
        return self.alias or (f"{self.peer} {self.model}" if self.peer else self.model)


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A benchmark suite.

    Parameters
    ----------
    suite : str
        Name of the suite.
    tasks : tuple of Task
        Datasets with their horizons and windows.
    what : str
        Description of the suite.
    models : tuple of Entry, optional
        Models of tasks without their own. Defaults to all registered models without required
        parameters.
    peers : tuple of Entry
        Models of other libraries.
    reference : str, default "SeasonalNaive"
        Reference model of the skill scores.
    seeds : tuple of int, default (0,)
        Models with a seed run once with each.
    time_limit : float, default 600
        Time limit of each job in seconds.
    memory_limit : float, default 8000
        Memory limit of each job in MiB.
    sample : int, default 12
        Number of series per task whose forecasts are saved.
    cut : tuple of str
        Restrictions of the suite in this run (see `SuiteSubset`).
    """

    suite: str
    tasks: tuple[Task, ...]
    what: str = ""
    models: tuple[Entry, ...] | None = None
    peers: tuple[Entry, ...] = ()
    reference: str = "SeasonalNaive"
    seeds: tuple[int, ...] = (0,)
    time_limit: float = 600.0
    memory_limit: float = 8000.0
    sample: int = 12
    cut: tuple[str, ...] = ()

    def entries(self, task: Task) -> list[Entry]:
        """Return the models of a task; models and peers alternate, so that changes of the machine load affect both equally."""
        own_entries = parse_entries(task.models, "models") if task.models else self.models
        ours = list(default_entries() if own_entries is None else own_entries)
        theirs = list(parse_entries(task.peers, "peers") if task.peers else self.peers)
        interleaved = [entry for pair in zip(ours, theirs, strict=False) for entry in pair]
        return [*interleaved, *ours[len(theirs) :], *theirs[len(ours) :]]

    def to_mapping(self) -> dict[str, Any]:
        """Return the suite as plain values for JSON and YAML; `suite_from_mapping` inverts it."""
        mapping: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return mapping


def find_suite(name: str) -> Path:
    """Return the file of a suite.

    Parameters
    ----------
    name : str
        Name of a suite of the package or of benchmarks/suites in a checkout, or the path of a
        YAML file.

    Raises
    ------
    ParameterError
        If there is no such suite or file.
    """
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        if not path.is_file():
            raise ParameterError(
                f"A suite must be a name or the path of a YAML file; the file {format_value(name)} does not exist."
            )
        return path
    suites = known_suites()
    if name not in suites:
        available = format_list(suites, max_shown=30)
        raise ParameterError(f"Unknown suite {format_value(name)}.", hint=f"Use {available}, or pass the path of a YAML file.")
    return suites[name]


def known_suites() -> dict[str, Path]:
    """Return the files of the available suites by name."""
    return {path.stem: path for folder in (CHECKOUT_SUITES, BUILT_IN_SUITES) for path in sorted(folder.glob("*.yaml"))}


def load_suite(name: str | Path) -> Suite:
    """Load a suite by name or path.

    Raises
    ------
    ParameterError
        If the file does not exist or is not a valid suite.

    Examples
    --------
    >>> load_suite("quick").suite
    'quick'
    """
    path = find_suite(str(name))
    return parse_suite(parse_mapping(path.read_text("utf-8"), path.name), path.name)


def parse_suite(mapping: Mapping[str, Any], where: str) -> Suite:
    """Build a suite from a mapping, and check that its datasets, models and metrics exist.

    Parameters
    ----------
    mapping : mapping
        Contents of a suite file.
    where : str
        Name of the file in messages.

    Raises
    ------
    ParameterError
        If a key, value or name is invalid.
    """
    from deepforecast.benchmark.suite_checks import refuse_unknown_names  # imports this module

    suite = build_suite(mapping, where)
    refuse_unknown_names(suite, where)
    return suite


def build_suite(mapping: Mapping[str, Any], where: str) -> Suite:
    """Build a suite from a mapping without checking the names of datasets, models and metrics."""
    suite_fields = dict(mapping)
    defaults, tasks = suite_fields.pop("defaults", {}), suite_fields.pop("tasks", None)
    if not isinstance(tasks, list | tuple) or not tasks:
        raise ParameterError(f"{where}: tasks must be a list of at least one task, got {format_value(tasks)}.")
    if not isinstance(defaults, Mapping):
        raise ParameterError(f"{where}: defaults must be a mapping with the keys of a task, got {format_value(defaults)}.")
    merged = [
        parse_task({**defaults, **task_fields} if isinstance(task_fields, Mapping) else task_fields, f"tasks[{index}]")
        for index, task_fields in enumerate(tasks)
    ]
    models = suite_fields.pop("models", None)
    model_entries = None if models is None else parse_entries(models, "models")
    suite = parse_dataclass(
        Suite, {**suite_fields, "tasks": (), "peers": parse_entries(suite_fields.pop("peers", ()), "peers")}, where
    )
    suite = replace(suite, tasks=tuple(merged), models=model_entries)
    return _check_suite(suite, where)


def suite_from_mapping(mapping: Mapping[str, Any]) -> Suite:
    """Build a suite from the result of `Suite.to_mapping`."""
    suite_fields = {key: value for key, value in mapping.items() if value is not None}
    suite_fields["tasks"] = [{key: value for key, value in task.items() if value is not None} for task in suite_fields["tasks"]]
    for task in suite_fields["tasks"]:
        task |= {"slice": task.pop("part")} if "part" in task else {}
        task.pop("dataset") if not task["dataset"] else None
    return build_suite(suite_fields, "suite")


def parse_task(mapping: Any, where: str) -> Task:
    """Build a task from a mapping; the key `slice` becomes the field `part`."""
    task_fields = dict(mapping) if isinstance(mapping, Mapping) else mapping
    if isinstance(task_fields, dict):
        if "slice" in task_fields:
            task_fields["part"] = task_fields.pop("slice")
        for key, cls in (("part", Slice), ("windows", Windows), ("scaling", Scaling)):
            if task_fields.get(key) is not None:
                task_fields[key] = parse_dataclass(cls, task_fields[key], f"{where}.{'slice' if key == 'part' else key}")
    return parse_dataclass(Task, task_fields, where)


def parse_entries(models: Any, where: str) -> tuple[Entry, ...]:
    """Parse a list of models.

    Parameters
    ----------
    models : iterable of str, mapping or Entry
        Names, or mappings with the keys model, parameters, alias and peer.
    where : str
        Location in messages, e.g. "models".

    Raises
    ------
    ParameterError
        If a model is invalid, or two have the same name.
    """
    if isinstance(models, str) or not isinstance(models, Iterable):
        raise ParameterError(f"{where} must be a list of models, got {format_value(models)}.")
    parsed = [
        entry
        if isinstance(entry, Entry)
        else parse_dataclass(Entry, {"model": entry} if isinstance(entry, str) else entry, f"{where}[{number}]")
        for number, entry in enumerate(models)
    ]
    names = [entry.name for entry in parsed]
    duplicates = [name for index, name in enumerate(names) if name in names[:index]]
    if duplicates:
        raise ParameterError(
            f"{where}: model names must be unique, got more than once: {format_list(duplicates)}.",
            hint="Set `alias`.",
        )
    return tuple(parsed)


def is_model(value: Any) -> bool:
    """Whether a parameter value is a nested model, e.g. {model: Naive, parameters: {...}}."""
    has_model_keys = isinstance(value, Mapping) and "model" in value and set(value) <= {"model", "parameters", "alias"}
    return has_model_keys and isinstance(value.get("parameters") or {}, Mapping)


def default_entries() -> tuple[Entry, ...]:
    """Return all registered models without required parameters."""
    from deepforecast.core import registry
    from deepforecast.core.params import declared_params

    def needs_no_arguments(name: str) -> bool:
        return not any(param.required for key, param in declared_params(registry.get(name)).items() if key != "horizon")

    return tuple(Entry(model=name) for name in registry.names() if needs_no_arguments(name))


def _check_suite(suite: Suite, where: str) -> Suite:
    names = [task.name for task in suite.tasks]
    duplicates = [name for index, name in enumerate(names) if name in names[:index]]
    if duplicates:
        raise ParameterError(f"{where}: task names must be unique, got more than once: {format_list(duplicates)}.", hint="Set `task`.")
    unnamed = [index for index, name in enumerate(names) if not name]
    if unnamed:
        raise ParameterError(f"{where}: tasks[{unnamed[0]}] has generated series and must have a name.", hint="Set `task`.")
    if not suite.seeds or len(set(suite.seeds)) < len(suite.seeds) or min(suite.seeds) < 0:
        raise ParameterError(
            f"{where}: seeds must be distinct integers of at least 0, got {format_list(suite.seeds) or 'none'}."
        )
    for key in ("time_limit", "memory_limit"):
        for limit in [getattr(suite, key), *(getattr(task, key) for task in suite.tasks)]:
            if limit is not None and not (limit > 0 and math.isfinite(limit)):
                raise ParameterError(f"{where}: {key} must be above 0, got {format_value(limit)}.")
    if suite.sample < 0:
        raise ParameterError(f"{where}: sample must be at least 0, got {suite.sample}.")
    for task in suite.tasks:
        parse_entries(task.models, f"{task.name}.models")
    return suite


def _check_minimum(name: str, value: int | None, minimum: int) -> None:
    if value is not None and value < minimum:
        raise ParameterError(f"{name} must be at least {minimum}, got {value}.")
