"""Jobs of other libraries ("peers"), which run in their own environments and exchange files in a folder.

    history.parquet    unique_id, ds, y, covariates: every row up to the last cutoff
    future.parquet     unique_id, cutoff, ds, future covariates: one row per requested forecast
    static.parquet     unique_id and the static columns, if there are any
    job.json           name, model, parameters, horizon, freq, season_length, level, columns, refit, windows, size, seed,
                       time_limit, threads

`<environment>/bin/python -P forecast_<peer>.py <folder>` writes

    forecasts.parquet  unique_id, ds, cutoff, <name>, <name>-lo-80 ...: the rows of future.parquet
    timing.json        fit_seconds, predict_seconds, fit_cpu, predict_cpu, peak_memory_mb, versions

The folder is created for every job, so that files of earlier runs are never read.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.benchmark.job import MAX_ERROR_LENGTH, Job, initial_row, score_run, write_parquet
from deepforecast.benchmark.job_results import PEERS, Row
from deepforecast.benchmark.suite import Entry, Suite
from deepforecast.benchmark.task_data import PreparedTask
from deepforecast.core.threads import allowed_threads
from deepforecast.errors import DataError, format_list, format_value
from deepforecast.evaluation.compare import ModelRun
from deepforecast.evaluation.cross_validation import BacktestRows

if TYPE_CHECKING:
    import pandas as pd

KEY_COLUMNS = ["unique_id", "cutoff", "ds"]
CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class PeerPaths:
    """Locations of the peer libraries.

    Parameters
    ----------
    adapters : Path, default benchmarks/peers of the checkout
        Folder of the scripts `forecast_<peer>.py`.
    environments : Path, default build/peers of the checkout
        Folder of the environments `<peer>/bin/python`.
    """

    adapters: Path = CHECKOUT / "benchmarks" / "peers"
    environments: Path = CHECKOUT / "build" / "peers"

    @classmethod
    def default(cls) -> PeerPaths:
        """Return the folders of the checkout; `DEEPFORECAST_PEERS` overrides the folder of environments."""
        environments_path = os.environ.get("DEEPFORECAST_PEERS", "").strip()
        return cls(environments=Path(environments_path)) if environments_path else cls()

    def python(self, peer: str) -> Path:
        """Return the Python interpreter of a peer."""
        return self.environments / peer / "bin" / "python"

    def adapter(self, peer: str) -> Path:
        """Return the adapter script of a peer."""
        return self.adapters / f"forecast_{peer}.py"

    def missing_reason(self, peer: str) -> str:
        """Return which file of a peer is missing and how to create it; empty if none is."""
        if not self.adapter(peer).is_file():
            return f"the adapter {self.adapter(peer).name} is not in the folder {self.adapters.name}"
        if not self.python(peer).is_file():
            return f"the environment of {peer} does not exist; use sh benchmarks/peers/make-env {peer}"
        return ""


def run_peer(suite: Suite, prepared: PreparedTask, job: Job, folder: Path, paths: PeerPaths) -> Row:
    """Run a model of a peer and score its forecasts like those of this library.

    Parameters
    ----------
    suite : Suite
        Suite of the job.
    prepared : PreparedTask
        Data of its task.
    job : Job
        The job to run.
    folder : Path
        Folder of the run.
    paths : PeerPaths
        Locations of the adapters and environments.

    Returns
    -------
    Row
        Metrics and costs; status "failed" if the adapter fails or its forecasts are incomplete,
        "not run" if the adapter or the environment is missing.
    """
    row, entry = initial_row(suite, prepared, job), suite.entries(prepared.task)[job.entry]
    missing = paths.missing_reason(entry.peer)
    if missing:
        return replace(row, status="not run", error=missing)
    row = replace(row, parameters=format_value(f"{entry.model} {json.dumps(dict(entry.parameters), default=str)}", 1000))
    peer_folder = folder / PEERS / job.name
    shutil.rmtree(peer_folder, ignore_errors=True)
    peer_folder.mkdir(parents=True)
    limit = prepared.task.time_limit or suite.time_limit
    requested = write_inputs(peer_folder, entry, prepared, job.seed, limit)
    command = [str(paths.python(entry.peer)), "-P", str(paths.adapter(entry.peer)), str(peer_folder)]
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
    process = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment, check=False)
    if process.returncode:
        lines = [line for line in process.stderr.splitlines() if line.strip()]
        message = format_value(lines[-1], MAX_ERROR_LENGTH) if lines else "no output on stderr"
        return replace(row, status="failed", error=f"{entry.peer} ended with exit code {process.returncode}: {message}")
    try:
        columns, timing = read_forecasts(peer_folder, entry.name, requested, prepared)
    except (DataError, OSError, ValueError, KeyError) as error:
        return replace(
            row, status="failed", error=format_value(f"{entry.peer}: {type(error).__name__}: {error}", MAX_ERROR_LENGTH)
        )
    row = replace(
        row, fit_seconds=timing.get("fit_seconds"), predict_seconds=timing.get("predict_seconds"),
        fit_cpu=timing.get("fit_cpu"), predict_cpu=timing.get("predict_cpu"), peak_mb=timing.get("peak_memory_mb"),
        versions={str(key): str(value) for key, value in (timing.get("versions") or {}).items()},
        warnings=tuple(format_value(str(timing["note"]), 300) for _ in range(1) if timing.get("note")),
    )  # fmt: skip
    return score_run(row, ModelRun(entry.name, columns), prepared, suite.sample, folder)


def write_inputs(peer_folder: Path, entry: Entry, prepared: PreparedTask, seed: int, limit: float) -> pd.DataFrame:
    """Write the input files of a job.

    Parameters
    ----------
    peer_folder : Path
        Folder of the job.
    entry : Entry
        Model of the peer.
    prepared : PreparedTask
        Data of the task.
    seed : int
        Seed of the model.
    limit : float
        Time limit in seconds.

    Returns
    -------
    DataFrame
        The rows of future.parquet.
    """
    frame = _with_text_ids(prepared.history)
    future = requested_rows(prepared)
    future_columns, static_columns = list(prepared.columns["future"]), list(prepared.columns["static"])
    if future_columns:
        future = future.merge(frame[["unique_id", "ds", *future_columns]], on=["unique_id", "ds"], how="left", validate="m:1")
    last = future.groupby("unique_id", sort=False)["cutoff"].max()
    is_history = frame["ds"].to_numpy() <= frame["unique_id"].map(last).to_numpy()
    write_parquet(
        peer_folder / "history.parquet",
        frame.loc[is_history, ["unique_id", "ds", "y", *future_columns, *prepared.columns["past"]]],
    )
    write_parquet(peer_folder / "future.parquet", future)
    if static_columns:
        write_parquet(peer_folder / "static.parquet", frame.drop_duplicates("unique_id")[["unique_id", *static_columns]])
    refit = prepared.refit
    job_fields = {
        "name": entry.name, "model": entry.model, "parameters": dict(entry.parameters), "horizon": prepared.plan.horizon,
        "freq": _frequency(prepared), "season_length": prepared.season_length, "level": list(prepared.levels),
        "columns": {role: list(names) for role, names in prepared.columns.items()},
        "refit": 1 if refit == "auto" else int(refit), "windows": prepared.plan.n_windows, "size": prepared.plan.train_size,
        "seed": seed, "time_limit": limit, "threads": allowed_threads(),
    }  # fmt: skip
    (peer_folder / "job.json").write_text(json.dumps(job_fields, indent=1), "utf-8")
    return future


def requested_rows(prepared: PreparedTask) -> pd.DataFrame:
    """Return id, cutoff and timestamp of each evaluated row, in the order of the forecasts of a run."""
    import pandas as pd

    rows = BacktestRows.from_plan(prepared.panel, prepared.plan)
    series = prepared.panel.series
    ids = np.asarray(pd.Series(series.native_ids).astype(str))[rows.series]
    return pd.DataFrame({"unique_id": ids, "cutoff": series.time_column(rows.cutoff), "ds": series.time_column(rows.position)})


def read_forecasts(
    peer_folder: Path, name: str, requested: pd.DataFrame, prepared: PreparedTask
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read and validate the output files of a peer.

    Parameters
    ----------
    peer_folder : Path
        Folder of the job.
    name : str
        Name of the forecast column.
    requested : DataFrame
        Rows of future.parquet.
    prepared : PreparedTask
        Levels of the task.

    Returns
    -------
    columns : dict of str to ndarray
        Forecasts of the requested rows, with interval bounds if the peer wrote them.
    timing : dict
        Contents of timing.json.

    Raises
    ------
    DataError
        If files, columns or forecasts are missing, or rows occur twice.
    """
    import pandas as pd

    path = peer_folder / "forecasts.parquet"
    if not path.is_file():
        raise DataError("A peer must write forecasts.parquet, but it ended without writing the file.")
    forecasts = pd.read_parquet(path)
    forecast_columns = [name, *(f"{name}-{end}-{level:g}" for level in prepared.levels for end in ("lo", "hi"))]
    missing = [column for column in (*KEY_COLUMNS, *forecast_columns[:1]) if column not in forecasts]
    if missing:
        raise DataError(
            f"forecasts.parquet must have the columns {format_list(KEY_COLUMNS)}, {name}; {format_list(missing)} is missing."
        )
    forecast_columns = [column for column in forecast_columns if column in forecasts]
    forecasts = forecasts.astype({"unique_id": str, "ds": requested["ds"].dtype, "cutoff": requested["cutoff"].dtype})
    if forecasts.duplicated(KEY_COLUMNS).any():
        raise DataError("forecasts.parquet must not have duplicate rows of unique_id, cutoff and ds.")
    merged = requested[KEY_COLUMNS].merge(
        forecasts[[*KEY_COLUMNS, *forecast_columns]], on=KEY_COLUMNS, how="left", validate="1:1"
    )
    is_missing = merged[forecast_columns].isna().any(axis=1)
    if is_missing.any():
        first = merged.loc[is_missing].iloc[0]
        raise DataError(
            f"forecasts.parquet must contain every requested forecast; {first.unique_id} at {first.ds} is missing "
            f"({int(is_missing.sum())} in total)."
        )
    timing = json.loads((peer_folder / "timing.json").read_text("utf-8"))
    return {column: merged[column].to_numpy(np.float64) for column in forecast_columns}, timing


def _frequency(prepared: PreparedTask) -> str | int:
    """Return the pandas alias, or the step of an integer time index."""
    calendar = prepared.panel.calendar
    return calendar.freq if calendar.time.unit else int(calendar.frequency.n)


def _with_text_ids(frame: pd.DataFrame) -> pd.DataFrame:
    """Convert the ids to str."""
    return frame.astype({"unique_id": str})
