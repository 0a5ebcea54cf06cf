"""One job: a model on a prepared task with a seed. What comes of it, whatever that is, becomes a row."""

from __future__ import annotations

import hashlib
import json
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.benchmark.data import Prepared, sampled
from deepforecast.benchmark.rows import FORECASTS, SERIES, Row
from deepforecast.benchmark.suite import Entry, Suite, Task, is_model
from deepforecast.core import registry
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.params import declared_params
from deepforecast.errors import DataWarning, DependencyError, TrainingWarning, format_value
from deepforecast.evaluation.compare import Run, checked, run, told
from deepforecast.evaluation.cross_validation import Rows
from deepforecast.evaluation.metrics import get
from deepforecast.evaluation.score import score
from deepforecast.evaluation.warm_up import warm_up
from deepforecast.io.atomic import replace_file

if TYPE_CHECKING:
    import pandas as pd

MEANING = 1  # of a suite's words: raised where the same suite comes to give other numbers
LONGEST = 2_000  # characters of an error that a row keeps
MOST_SAID = 20
SAMPLED_WINDOWS = 3


@dataclass(frozen=True)
class Job:
    """Which job: places in the suite, the seed, its name and the hash of its settings."""

    task: int
    entry: int
    seed: int
    name: str
    settings: str


def jobs_of(suite: Suite) -> list[Job]:
    """Every job of a suite, task after task; a model without a seed runs once, whatever the number of seeds."""
    found = []
    for number, task in enumerate(suite.tasks):
        for seed in suite.seeds:
            for place, entry in enumerate(suite.entries(task)):
                if seed == suite.seeds[0] or entry.peer or is_seeded(entry):
                    name = file_name(f"{task.name}-{entry.name}-{seed}")
                    found.append(Job(number, place, seed, name, settings_of(task, entry, seed)))
    return found


def settings_of(task: Task, entry: Entry, seed: int) -> str:
    """SHA-256 of all that decides the forecasts and their metrics."""
    import deepforecast

    held = asdict(task)
    for key in ("models", "peers", "time_limit", "memory_limit"):
        held.pop(key)
    everything = {
        "meaning": MEANING, "version": deepforecast.__version__, "task": held, "model": asdict(entry), "seed": seed,
    }  # fmt: skip
    return hashlib.sha256(json.dumps(everything, sort_keys=True, default=str).encode()).hexdigest()


def file_name(text: str) -> str:
    """`text` as the name of a file on any system.

    >>> file_name("m4/yearly-statsforecast AutoETS-0")
    'm4_yearly-statsforecast_AutoETS-0'
    """
    plain = "".join(sign if sign.isascii() and (sign.isalnum() or sign in "-.") else "_" for sign in text)
    return plain if len(plain) <= 120 else f"{plain[:100]}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def is_seeded(entry: Entry) -> bool:
    """Whether a seed makes a difference to the model; one that cannot be made is run once, to say so."""
    try:
        return any(name.rpartition("__")[2] == "seed" for name in build(entry, Task(dataset="-")).get_params())
    except Exception:  # whatever it is, the job itself will tell it
        return False


def build(entry: Entry, task: Task, season: int | None = None) -> Forecaster:
    """The model of an entry, with the season and what the task gives to every model that declares it and has a use for it."""
    cls = registry.get(entry.model)
    known = declared_params(cls)
    told: dict[str, Any] = {} if season is None else {"season_length": season}
    told = {name: value for name, value in {**told, **task.parameters}.items() if name in known}
    own = {name: _nested(value) for name, value in entry.parameters.items()}
    if entry.name != cls.__name__:
        own["alias"] = entry.name
    idle = {name for name, _ in getattr(cls(**{**told, **own}), "_idle", tuple)()}  # as a season is to an ARIMA without one
    return cls(**{**{name: value for name, value in told.items() if name not in idle}, **own})


def start(suite: Suite, prepared: Prepared, job: Job) -> Row:
    """The row of a job before it has run."""
    task = prepared.task
    entry = suite.entries(task)[job.entry]
    return Row(
        suite=suite.suite, task=task.name, dataset=task.dataset or "generated", model=entry.name, seed=job.seed, job=job.name,
        settings=job.settings, library=entry.peer or "deepforecast", cut=suite.cut, **prepared.facts(),
    )  # fmt: skip


def run_job(suite: Suite, prepared: Prepared, job: Job, folder: Path | None) -> Row:
    """Fit, forecast and score a model of ours; its files go to `folder`."""
    row, entry = start(suite, prepared, job), suite.entries(prepared.task)[job.entry]
    try:
        model = build(entry, prepared.task, season_told(prepared)).clone(horizon=prepared.plan.horizon)
    except Exception as error:  # a model that cannot be made is a row like any other
        return replace(row, status="failed", error=told(error)[:LONGEST])
    row = replace(row, parameters=format_value(repr(model), 1000))
    warm_up(model, prepared.panel, prepared.levels)  # not only in `run`: what compiles in the block below runs twice
    with _noted() as said, _compiling() as compiled:
        found = run(model, prepared.panel, prepared.plan, prepared.refit, prepared.levels, seed=job.seed)
    if compiled and not found.error:  # what is compiled is kept on disk: the first user's wait is no property of the model
        with _noted():
            found = run(model, prepared.panel, prepared.plan, prepared.refit, prepared.levels, seed=job.seed)
    row = replace(row, said=tuple(said), unused=tuple(found.unused), **_costs(found))
    return judged(row, found, prepared, suite.sample, folder)


def season_told(prepared: Prepared) -> int | None:
    """The season models are told: that of the task, and on integer time, which has none of its own, that of the dataset.

    Else they find the seasons of the frequency by themselves, of which there may be several.
    """
    return prepared.task.season_length or (None if prepared.panel.calendar.time.unit else prepared.season)


def judged(row: Row, found: Run, prepared: Prepared, sample: int, folder: Path | None) -> Row:
    """The row with the metrics of what was forecast, or the error it ended with; files are written."""
    started, before = time.perf_counter(), time.process_time()
    rows = Rows.of(prepared.panel, prepared.plan)
    found = found if found.error else checked(found, rows, prepared.panel)
    if found.error:
        lacking = isinstance(found.cause, DependencyError)  # an extra that is not installed is no failure of the model
        return replace(row, status="not run" if lacking else "failed", error=found.error[:LONGEST])
    rows.columns = dict(found.columns)
    frame = rows.frame(prepared.panel)
    try:
        metrics, by_series = scores(frame, found.name, prepared)
    except Exception as error:  # a forecast that cannot be scored is a failure of its model
        return replace(row, status="failed", error=f"scoring: {told(error)}"[:LONGEST])
    files: dict[str, str] = {}
    if folder is not None:
        files = _written(folder, row.job, frame, by_series, prepared, sample)
    seconds, cpu = time.perf_counter() - started, time.process_time() - before
    return replace(row, metrics=metrics, files=files, score_seconds=seconds, score_cpu=cpu)


def scores(frame: pd.DataFrame, name: str, prepared: Prepared) -> tuple[dict[str, float], pd.DataFrame]:
    """The metrics of one model over everything, and by series; what is not defined is left out of the first."""
    needs = {need for one in prepared.metrics for need in get(one.rpartition("-")[0] or one).needs}
    asked: dict[str, Any] = {
        "metrics": list(prepared.metrics), "models": [name], "freq": prepared.panel.calendar.frequency,
        "columns": {"id": "unique_id", "time": "ds", "target": "y"}, "season_length": prepared.season,
        "train": prepared.history[["unique_id", "ds", "y"]] if needs & {"scale", "squared_scale"} else None,
    }  # fmt: skip
    whole = score(frame, **asked).drop(columns="model").iloc[0]
    by_series = score(frame, by="series", **asked).drop(columns="model")
    return {str(key): float(value) for key, value in whole.items() if np.isfinite(value)}, by_series


def _costs(found: Run) -> dict[str, Any]:
    names = ("fit_seconds", "predict_seconds", "fit_cpu", "predict_cpu", "peak_mb")
    costs = {name: getattr(found, name) for name in names}
    return {name: None if cost is None or np.isnan(cost) else float(cost) for name, cost in costs.items()}


def _written(
    folder: Path, job: str, frame: pd.DataFrame, by_series: pd.DataFrame, prepared: Prepared, sample: int
) -> dict[str, str]:
    """The files of a job, each whole or not there."""
    files = {SERIES: f"{SERIES}/{job}.parquet"}
    write_parquet(folder / files[SERIES], by_series.astype({"unique_id": str}))
    ids = sampled(prepared, sample)
    if ids:
        kept = frame[frame["unique_id"].isin(set(ids))]
        windows = kept.groupby("unique_id", sort=False, observed=True)["cutoff"].rank(method="dense").to_numpy()
        wanted = np.unique(np.linspace(1, prepared.plan.n_windows, SAMPLED_WINDOWS).astype(int))
        files[FORECASTS] = f"{FORECASTS}/{job}.parquet"
        write_parquet(folder / files[FORECASTS], kept[np.isin(windows, wanted)].astype({"unique_id": str}))
    return files


def write_parquet(path: Path, frame: pd.DataFrame) -> None:
    """A frame as a parquet file that is whole or not there."""
    held = BytesIO()
    frame.reset_index(drop=True).to_parquet(held, compression="zstd")
    replace_file(path, [held.getvalue()])


def _nested(value: Any) -> Any:
    """A parameter, made if it is a model."""
    if is_model(value):
        given = {name: _nested(one) for name, one in (value.get("parameters") or {}).items()}
        return registry.get(value["model"])(**given, **({"alias": value["alias"]} if value.get("alias") else {}))
    return value


@contextmanager
def _noted() -> Iterator[list[str]]:
    """What is warned of inside, in a few words each; what other libraries say of themselves is left to them."""
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield said
    for one in caught:
        text = format_value(str(one.message), 300)
        if issubclass(one.category, DataWarning | TrainingWarning) and text not in said and len(said) < MOST_SAID:
            said.append(text)


@contextmanager
def _compiling() -> Iterator[list[str]]:
    """What was compiled inside, for the first time on this machine."""
    seen: list[str] = []
    if "numba" not in sys.modules:
        yield seen
        return
    from numba.core import event

    class Seen(event.Listener):  # type: ignore[misc]  # numba is not typed
        def on_start(self, event: Any) -> None:
            seen.append("one")

        def on_end(self, event: Any) -> None:
            pass

    with event.install_listener("numba:compile", Seen()):
        yield seen
