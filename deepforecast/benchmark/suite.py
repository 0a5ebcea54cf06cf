"""A suite: which datasets are forecast how, by which models, scored by what. Data, read from YAML.

    suite: quick
    what: small real sets that ship
    models: [Naive, SeasonalNaive, {model: DLinear, parameters: {max_steps: 200}}]     # default: every registered model
    defaults: {metrics: [mase, smape]}
    tasks:
      - dataset: air_passengers
        windows: {count: 3}

Whatever a task may say can stand in `defaults` for all of them. What there is to say: the fields below.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from deepforecast.benchmark.reading import made, text_to_mapping
from deepforecast.errors import ParameterError, format_list, format_value

BUILT_IN = Path(__file__).parent / "suites"
OTHERS = Path(__file__).resolve().parents[2] / "benchmarks" / "suites"  # of a checkout
METRICS = ("mase", "smape")


@dataclass(frozen=True, kw_only=True)
class Windows:
    """Cutoffs: `count` of them, counted back from the end in steps of `step` rows (default: the horizon); or, with `test`, all
    whose forecasts lie in the last `test` rows. `refit`: "auto", true, false, or every k windows. `size`: rows learned from."""

    count: int = 1
    test: int | None = None
    step: int | None = None
    refit: int | bool | str = "auto"
    size: int | None = None

    def __post_init__(self) -> None:
        for name in ("count", "test", "step", "size"):
            _at_least(name, getattr(self, name), 1)
        if isinstance(self.refit, str) and self.refit != "auto":
            raise ParameterError(f"refit is auto, true, false or a number of windows; got {format_value(self.refit)}.")


@dataclass(frozen=True, kw_only=True)
class Slice:
    """Part of a dataset: `series` of them drawn at random by `seed`, or those named in `ids`; of each the `last` rows alone."""

    series: int | None = None
    seed: int = 0
    ids: tuple[str | int, ...] = ()
    last: int | None = None

    def __post_init__(self) -> None:
        _at_least("series", self.series, 1)
        _at_least("last", self.last, 2)
        _at_least("seed", self.seed, 0)


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """Each series less its mean and over its standard deviation, both of its first `rows` rows: forecasts and metrics are of
    these units. `rows` end before the first cutoff, or the scale would know what is forecast."""

    rows: int
    kind: str = "standard"

    def __post_init__(self) -> None:
        _at_least("rows", self.rows, 2)
        if self.kind != "standard":
            raise ParameterError(f"kind is standard; got {format_value(self.kind)}.")


@dataclass(frozen=True, kw_only=True)
class Task:
    """A dataset with a horizon and windows.

    `task`: its name (default: that of the dataset). `generate`: series made here instead of a dataset's, as
    `datasets.generate` takes it (n_series, length, freq, seed). `horizon`, `season_length`: default those of the card.
    `columns`: "card" gives the covariates of the card, "none" none, a mapping names them. `parameters`: given to every model
    that declares them, under those the model brings itself. `models`: instead of those of the suite.
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
            raise ParameterError("a task has a dataset, or says what to generate, and not both.")
        for name in ("horizon", "season_length"):
            _at_least(name, getattr(self, name), 1)
        if isinstance(self.columns, str) and self.columns not in ("card", "none"):
            raise ParameterError(f"columns is card, none or a mapping of roles; got {format_value(self.columns)}.")
        wrong = [one for one in self.level if not 0 < one < 100]
        if wrong:
            raise ParameterError(f"level holds numbers in (0, 100); got {format_list(wrong)}.")

    @property
    def name(self) -> str:
        """How rows name it."""
        return self.task or self.dataset


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A model, or a peer's: its name, parameters, and the name it has in the rows."""

    model: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    alias: str = ""
    peer: str = ""

    @property
    def name(self) -> str:
        """How rows name it."""
        return self.alias or (f"{self.peer} {self.model}" if self.peer else self.model)


@dataclass(frozen=True, kw_only=True)
class Suite:
    """The whole. `reference`: the model that skill is measured against. `seeds`: models that have a seed run once with each.
    `time_limit` (seconds) and `memory_limit` (MiB) hold for each job. `sample`: series whose forecasts are kept."""

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
        """The models of a task, ours and peers' turn by turn, so that neither has the quiet half of a run for itself."""
        said = entries(task.models, "models") if task.models else self.models
        ours = list(every_model() if said is None else said)
        theirs = list(entries(task.peers, "peers") if task.peers else self.peers)
        mixed = [one for pair in zip(ours, theirs, strict=False) for one in pair]
        return [*mixed, *ours[len(theirs) :], *theirs[len(ours) :]]

    def to_mapping(self) -> dict[str, Any]:
        """Plain values, as JSON and YAML have them."""
        found: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return found


def find(name: str) -> Path:
    """The file of a suite: a path, or the name of one that ships or, in a checkout, lies in benchmarks/suites."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        if not path.is_file():
            raise ParameterError(f"A suite is a name or the path of a YAML file; there is no file {format_value(name)}.")
        return path
    known = known_suites()
    if name not in known:
        there = format_list(known, max_shown=30)
        raise ParameterError(f"There is no suite {format_value(name)}. There is {there}; or give the path of a YAML file.")
    return known[name]


def known_suites() -> dict[str, Path]:
    """Names of suites and where they are."""
    return {path.stem: path for folder in (OTHERS, BUILT_IN) for path in sorted(folder.glob("*.yaml"))}


def load(name: str | Path) -> Suite:
    """The suite of that name or path.

    >>> load("quick").suite
    'quick'
    """
    path = find(str(name))
    return suite_of(text_to_mapping(path.read_text("utf-8"), path.name), path.name)


def suite_of(given: Mapping[str, Any], where: str) -> Suite:
    """A suite from what its file says; names that nothing has are refused."""
    from deepforecast.benchmark.checks import refuse_unknown  # which are made of what is defined here

    found = read(given, where)
    refuse_unknown(found, where)
    return found


def read(given: Mapping[str, Any], where: str) -> Suite:
    """A suite from what its file says, of whatever datasets and models."""
    rest = dict(given)
    defaults, tasks = rest.pop("defaults", {}), rest.pop("tasks", None)
    if not isinstance(tasks, list | tuple) or not tasks:
        raise ParameterError(f"{where}: tasks is a list of at least one task; got {format_value(tasks)}.")
    if not isinstance(defaults, Mapping):
        raise ParameterError(f"{where}: defaults is a mapping, keys as in a task; got {format_value(defaults)}.")
    merged = [task_of({**defaults, **one} if isinstance(one, Mapping) else one, f"tasks[{n}]") for n, one in enumerate(tasks)]
    models = rest.pop("models", None)
    own = None if models is None else entries(models, "models")
    found = made(Suite, {**rest, "tasks": (), "peers": entries(rest.pop("peers", ()), "peers")}, where)
    found = replace(found, tasks=tuple(merged), models=own)
    return _checked(found, where)


def suite_of_mapping(given: Mapping[str, Any]) -> Suite:
    """A suite from what `Suite.to_mapping` made of one."""
    rest = {key: value for key, value in given.items() if value is not None}
    rest["tasks"] = [{key: value for key, value in task.items() if value is not None} for task in rest["tasks"]]
    for task in rest["tasks"]:
        task |= {"slice": task.pop("part")} if "part" in task else {}
        task.pop("dataset") if not task["dataset"] else None
    return read(rest, "suite")


def task_of(given: Any, where: str) -> Task:
    """A task from what its file says; `slice` is its `part`."""
    rest = dict(given) if isinstance(given, Mapping) else given
    if isinstance(rest, dict):
        if "slice" in rest:
            rest["part"] = rest.pop("slice")
        for key, cls in (("part", Slice), ("windows", Windows), ("scaling", Scaling)):
            if rest.get(key) is not None:
                rest[key] = made(cls, rest[key], f"{where}.{'slice' if key == 'part' else key}")
    return made(Task, rest, where)


def entries(given: Any, where: str) -> tuple[Entry, ...]:
    """Models as a suite names them: a name, or a mapping with model, parameters and alias (and peer)."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ParameterError(f"{where} is a list of models; got {format_value(given)}.")
    found = [
        one if isinstance(one, Entry) else made(Entry, {"model": one} if isinstance(one, str) else one, f"{where}[{number}]")
        for number, one in enumerate(given)
    ]
    names = [one.name for one in found]
    twice = [name for at, name in enumerate(names) if name in names[:at]]
    if twice:
        raise ParameterError(f"{where}: each model has a name of its own; {format_list(twice)} is there twice. Give one an alias.")
    return tuple(found)


def is_model(value: Any) -> bool:
    """Whether a parameter is a model of its own, written as models are: {model: Naive, parameters: {...}}."""
    named = isinstance(value, Mapping) and "model" in value and set(value) <= {"model", "parameters", "alias"}
    return named and isinstance(value.get("parameters") or {}, Mapping)


def every_model() -> tuple[Entry, ...]:
    """Every registered model that can be made without being told what to wrap."""
    from deepforecast.core import registry
    from deepforecast.core.params import declared_params

    def whole(name: str) -> bool:
        return not any(one.required for key, one in declared_params(registry.get(name)).items() if key != "horizon")

    return tuple(Entry(model=name) for name in registry.names() if whole(name))


def _checked(suite: Suite, where: str) -> Suite:
    names = [task.name for task in suite.tasks]
    twice = [name for at, name in enumerate(names) if name in names[:at]]
    if twice:
        raise ParameterError(f"{where}: each task has a name of its own; {format_list(twice)} is there twice. Say task: ....")
    unnamed = [at for at, name in enumerate(names) if not name]
    if unnamed:
        raise ParameterError(f"{where}: tasks[{unnamed[0]}] generates its series and needs a name. Say task: ....")
    if not suite.seeds or len(set(suite.seeds)) < len(suite.seeds) or min(suite.seeds) < 0:
        raise ParameterError(f"{where}: seeds are whole numbers of at least 0, none twice; got {format_list(suite.seeds) or 'none'}.")
    for key in ("time_limit", "memory_limit"):
        for limit in [getattr(suite, key), *(getattr(task, key) for task in suite.tasks)]:
            if limit is not None and not (limit > 0 and math.isfinite(limit)):
                raise ParameterError(f"{where}: {key} is above 0; got {format_value(limit)}.")
    if suite.sample < 0:
        raise ParameterError(f"{where}: sample is at least 0; got {suite.sample}.")
    for task in suite.tasks:
        entries(task.models, f"{task.name}.models")
    return suite


def _at_least(name: str, value: int | None, least: int) -> None:
    if value is not None and value < least:
        raise ParameterError(f"{name} is at least {least}; got {value}.")
