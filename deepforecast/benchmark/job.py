"""A job: one model on one prepared task with one seed; its result or error becomes a row."""

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

from deepforecast.benchmark.job_results import FORECASTS, SERIES, Row
from deepforecast.benchmark.suite import Entry, Suite, Task, is_model
from deepforecast.benchmark.task_data import PreparedTask, sample_ids
from deepforecast.core import registry
from deepforecast.core.atomic import replace_file
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.params import declared_params, unused_parameters
from deepforecast.errors import DataWarning, DependencyError, TrainingWarning, format_value
from deepforecast.evaluation.compare import ModelRun, check_forecasts, format_error, run_model
from deepforecast.evaluation.cross_validation import BacktestRows
from deepforecast.evaluation.metrics import get
from deepforecast.evaluation.score import score
from deepforecast.evaluation.warm_up import warm_up

if TYPE_CHECKING:
    import pandas as pd

SUITE_VERSION = 1  # increase if the same suite gives different results
MAX_ERROR_LENGTH = 2_000  # characters
MAX_WARNINGS = 20
N_SAMPLED_WINDOWS = 3


@dataclass(frozen=True)
class Job:
    """One model on one task with one seed.

    Parameters
    ----------
    task : int
        Index of the task in the suite.
    entry : int
        Index of the model in `Suite.entries` of the task.
    seed : int
        Seed of the model.
    name : str
        Unique name, used for file names.
    settings : str
        Hash of the settings (see `hash_settings`).
    """

    task: int
    entry: int
    seed: int
    name: str
    settings: str


def list_jobs(suite: Suite) -> list[Job]:
    """Return all jobs of a suite, task by task; models without a seed run once."""
    jobs = []
    for task_index, task in enumerate(suite.tasks):
        for seed in suite.seeds:
            for entry_index, entry in enumerate(suite.entries(task)):
                if seed == suite.seeds[0] or entry.peer or is_seeded(entry):
                    name = file_name(f"{task.name}-{entry.name}-{seed}")
                    jobs.append(Job(task_index, entry_index, seed, name, hash_settings(task, entry, seed)))
    return jobs


def hash_settings(task: Task, entry: Entry, seed: int) -> str:
    """Return the SHA-256 of all settings that determine forecasts and metrics.

    Limits on time and memory, and the other models of the task, are not included.
    """
    import deepforecast

    task_fields = asdict(task)
    for key in ("models", "peers", "time_limit", "memory_limit"):
        task_fields.pop(key)
    settings = {
        "meaning": SUITE_VERSION,
        "version": deepforecast.__version__,
        "task": task_fields,
        "model": asdict(entry),
        "seed": seed,
    }
    return hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest()


def file_name(text: str) -> str:
    """Return `text` as a file name that is valid on any system.

    Names over 120 characters are truncated and extended by a hash.

    Examples
    --------
    >>> file_name("m4/yearly-statsforecast AutoETS-0")
    'm4_yearly-statsforecast_AutoETS-0'
    """
    plain = "".join(
        character if character.isascii() and (character.isalnum() or character in "-.") else "_" for character in text
    )
    return plain if len(plain) <= 120 else f"{plain[:100]}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def is_seeded(entry: Entry) -> bool:
    """Whether the model has a seed.

    False if the model cannot be constructed: its only job reports the error.
    """
    try:
        return any(name.rpartition("__")[2] == "seed" for name in build_model(entry, Task(dataset="-")).get_params())
    except Exception:  # reported by the job
        return False


def build_model(entry: Entry, task: Task, season: int | None = None) -> Forecaster:
    """Build the model of an entry.

    Parameters
    ----------
    entry : Entry
        Model class and parameters.
    task : Task
        Its `parameters` are passed to the model if the model declares and uses them; those of
        the entry take precedence.
    season : int, optional
        Passed as `season_length` under the same condition.

    Returns
    -------
    Forecaster
        Not fitted; its name is that of the entry.
    """
    cls = registry.get(entry.model)
    declared_names = declared_params(cls)
    given_params: dict[str, Any] = {} if season is None else {"season_length": season}
    given_params = {name: value for name, value in {**given_params, **task.parameters}.items() if name in declared_names}
    entry_params = {name: _build_nested(value) for name, value in entry.parameters.items()}
    if entry.name != cls.__name__:
        entry_params["alias"] = entry.name
    unused = unused_parameters(cls(**{**given_params, **entry_params}))  # e.g. season_length of a non-seasonal ARIMA
    return cls(**{**{name: value for name, value in given_params.items() if name not in unused}, **entry_params})


def initial_row(suite: Suite, prepared: PreparedTask, job: Job) -> Row:
    """Return the row of a job before it has run: its identity and the size of its task."""
    task = prepared.task
    entry = suite.entries(task)[job.entry]
    return Row(
        suite=suite.suite, task=task.name, dataset=task.dataset or "generated", model=entry.name, seed=job.seed, job=job.name,
        settings=job.settings, library=entry.peer or "deepforecast", cut=suite.cut, **prepared.row_fields(),
    )  # fmt: skip


def run_job(suite: Suite, prepared: PreparedTask, job: Job, folder: Path | None) -> Row:
    """Fit a model of this library, forecast all windows and score the forecasts.

    Parameters
    ----------
    suite : Suite
        Suite of the job.
    prepared : PreparedTask
        Data of its task.
    job : Job
        The job to run.
    folder : Path or None
        Folder of the run, which receives the files of the job; None: no files.

    Returns
    -------
    Row
        Metrics and costs, or status "failed" with the error; exceptions of the model are caught.
    """
    row, entry = initial_row(suite, prepared, job), suite.entries(prepared.task)[job.entry]
    try:
        model = build_model(entry, prepared.task, given_season_length(prepared)).clone(horizon=prepared.plan.horizon)
    except Exception as error:  # a model that cannot be constructed
        return replace(row, status="failed", error=format_error(error)[:MAX_ERROR_LENGTH])
    row = replace(row, parameters=format_value(repr(model), 1000))
    warm_up(model, prepared.panel, prepared.levels)  # also here: a compilation in the block below repeats the run
    with _record_warnings() as warning_texts, _record_compilations() as compiled:
        model_run = run_model(model, prepared.panel, prepared.plan, prepared.refit, prepared.levels, seed=job.seed)
    if compiled and not model_run.error:  # kernels are cached on disk now: measure the time without compilation
        with _record_warnings():
            model_run = run_model(model, prepared.panel, prepared.plan, prepared.refit, prepared.levels, seed=job.seed)
    row = replace(row, warnings=tuple(warning_texts), unused=tuple(model_run.unused), **_run_costs(model_run))
    return score_run(row, model_run, prepared, suite.sample, folder)


def given_season_length(prepared: PreparedTask) -> int | None:
    """Return the season length passed to the models.

    It is that of the task or, for an integer time index, that of the dataset. None otherwise:
    models infer one or several season lengths from the frequency.
    """
    return prepared.task.season_length or (None if prepared.panel.calendar.time.unit else prepared.season_length)


def score_run(row: Row, model_run: ModelRun, prepared: PreparedTask, sample: int, folder: Path | None) -> Row:
    """Score the forecasts of a model and write the files of the job.

    Parameters
    ----------
    row : Row
        Row of the job so far.
    model_run : ModelRun
        Forecasts or error of the model.
    prepared : PreparedTask
        Data of the task.
    sample : int
        Number of series whose forecasts are saved.
    folder : Path or None
        Folder of the run; None: no files.

    Returns
    -------
    Row
        The row with metrics and files, or with status "failed" or "not run" and the error.
    """
    start_time, start_cpu = time.perf_counter(), time.process_time()
    rows = BacktestRows.from_plan(prepared.panel, prepared.plan)
    model_run = model_run if model_run.error else check_forecasts(model_run, rows, prepared.panel)
    if model_run.error:
        is_missing_package = isinstance(model_run.cause, DependencyError)  # an optional dependency is not installed
        return replace(row, status="not run" if is_missing_package else "failed", error=model_run.error[:MAX_ERROR_LENGTH])
    rows.columns = dict(model_run.columns)
    frame = rows.frame(prepared.panel)
    try:
        metrics, by_series = compute_metrics(frame, model_run.name, prepared)
    except Exception as error:  # forecasts that cannot be scored
        return replace(row, status="failed", error=f"scoring: {format_error(error)}"[:MAX_ERROR_LENGTH])
    files: dict[str, str] = {}
    if folder is not None:
        files = _write_files(folder, row.job, frame, by_series, prepared, sample)
    seconds, cpu = time.perf_counter() - start_time, time.process_time() - start_cpu
    return replace(row, metrics=metrics, files=files, score_seconds=seconds, score_cpu=cpu)


def compute_metrics(frame: pd.DataFrame, name: str, prepared: PreparedTask) -> tuple[dict[str, float], pd.DataFrame]:
    """Compute the metrics of a task.

    Parameters
    ----------
    frame : DataFrame
        Forecasts with actual values, as returned by `cross_validate`.
    name : str
        Forecast column of the model.
    prepared : PreparedTask
        Metrics, levels and history of the task.

    Returns
    -------
    overall : dict of str to float
        Metrics over all series and windows; undefined ones are omitted.
    by_series : DataFrame
        Metrics of each series.
    """
    needs = {need for metric_name in prepared.metrics for need in get(metric_name.rpartition("-")[0] or metric_name).needs}
    score_options: dict[str, Any] = {
        "metrics": list(prepared.metrics), "models": [name], "freq": prepared.panel.calendar.frequency,
        "columns": {"id": "unique_id", "time": "ds", "target": "y"}, "season_length": prepared.season_length,
        "train": prepared.history[["unique_id", "ds", "y"]] if needs & {"scale", "squared_scale"} else None,
    }  # fmt: skip
    overall = score(frame, **score_options).drop(columns="model").iloc[0]
    by_series = score(frame, by="series", **score_options).drop(columns="model")
    return {str(key): float(value) for key, value in overall.items() if np.isfinite(value)}, by_series


def _run_costs(model_run: ModelRun) -> dict[str, Any]:
    """Return seconds and memory as fields of a row; unknown values are None."""
    names = ("fit_seconds", "predict_seconds", "fit_cpu", "predict_cpu", "peak_mb")
    costs = {name: getattr(model_run, name) for name in names}
    return {name: None if cost is None or np.isnan(cost) else float(cost) for name, cost in costs.items()}


def _write_files(
    folder: Path, job: str, frame: pd.DataFrame, by_series: pd.DataFrame, prepared: PreparedTask, sample: int
) -> dict[str, str]:
    """Write metrics by series and sampled forecasts of a job, each file atomically; return the file names."""
    files = {SERIES: f"{SERIES}/{job}.parquet"}
    write_parquet(folder / files[SERIES], by_series.astype({"unique_id": str}))
    ids = sample_ids(prepared, sample)
    if ids:
        sampled_rows = frame[frame["unique_id"].isin(set(ids))]
        windows = sampled_rows.groupby("unique_id", sort=False, observed=True)["cutoff"].rank(method="dense").to_numpy()
        sampled_windows = np.unique(np.linspace(1, prepared.plan.n_windows, N_SAMPLED_WINDOWS).astype(int))
        files[FORECASTS] = f"{FORECASTS}/{job}.parquet"
        write_parquet(folder / files[FORECASTS], sampled_rows[np.isin(windows, sampled_windows)].astype({"unique_id": str}))
    return files


def write_parquet(path: Path, frame: pd.DataFrame) -> None:
    """Write a frame as parquet, atomically."""
    buffer = BytesIO()
    frame.reset_index(drop=True).to_parquet(buffer, compression="zstd")
    replace_file(path, [buffer.getvalue()])


def _build_nested(value: Any) -> Any:
    """Return a parameter value; a nested model specification becomes a model."""
    if is_model(value):
        parameters = {name: _build_nested(parameter) for name, parameter in (value.get("parameters") or {}).items()}
        return registry.get(value["model"])(**parameters, **({"alias": value["alias"]} if value.get("alias") else {}))
    return value


@contextmanager
def _record_warnings() -> Iterator[list[str]]:
    """Collect the data and training warnings of the block, shortened; other warnings are ignored."""
    warning_texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield warning_texts
    for warning in caught:
        text = format_value(str(warning.message), 300)
        if (
            issubclass(warning.category, DataWarning | TrainingWarning)
            and text not in warning_texts
            and len(warning_texts) < MAX_WARNINGS
        ):
            warning_texts.append(text)


@contextmanager
def _record_compilations() -> Iterator[list[str]]:
    """Yield a list with one entry per numba compilation in the block; kernels loaded from the cache do not count."""
    compilations: list[str] = []
    if "numba" not in sys.modules:
        yield compilations
        return
    from numba.core import event

    class CompileListener(event.Listener):  # type: ignore[misc]  # numba is not typed
        def on_start(self, event: Any) -> None:
            compilations.append("compiled")

        def on_end(self, event: Any) -> None:
            pass

    with event.install_listener("numba:compile", CompileListener()):
        yield compilations
