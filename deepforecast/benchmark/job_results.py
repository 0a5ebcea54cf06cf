"""Result rows of a run: one JSON line per job in `results.jsonl`.

A run is a folder with these files, from which all reports are computed:

    suite.yaml                 the suite as it was run, including the changes made on the command line
    results.jsonl              one row per job, appended when the job has ended
    forecasts/<job>.parquet    forecasts of the sampled series: unique_id, ds, cutoff, y, <model>, <model>-lo-80 ...
    series/<job>.parquet       metrics of each series: unique_id and one column per metric
    history/<task>.parquet     last rows of the sampled series: unique_id, ds, y (scaled as in the task)
    peers/<job>/               input and output files of a peer library

A job is a combination of task, model and seed; its name combines the three and is used for file names.
A task is a dataset, sliced and scaled, with a horizon and windows; a suite may contain several tasks of
one dataset. A job that is run again (after an interruption, or with other settings) appends a new row;
the last row of a job counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepforecast.errors import DataError, format_value, warn

if TYPE_CHECKING:
    import pandas as pd

RESULTS, SUITE = "results.jsonl", "suite.yaml"
FORECASTS, SERIES, HISTORY, PEERS = "forecasts", "series", "history", "peers"
OWN_LIBRARY = "deepforecast"
STATUSES = ("ok", "failed", "timeout", "memory", "lost", "not run")


@dataclass(frozen=True, kw_only=True)
class Row:
    """Result of one job.

    Times are in seconds, memory is in MiB (2**20 bytes); None means unknown.

    Parameters
    ----------
    suite, task, dataset, model : str
        Names of the suite, task, dataset ("generated" without one) and model.
    seed : int
        Seed of the model.
    job : str
        Name of the job.
    settings : str
        SHA-256 of all settings that determine the forecasts: task, model, parameters, seed,
        versions of the library and of the suite format.
    library : str
        "deepforecast", or the name of a peer.
    status : str
        "ok"; "failed", with `error`; "timeout" or "memory": the job exceeded a limit and was
        stopped; "lost": its process ended without a result; "not run": a package or the
        environment of a peer is missing.
    error : str
        Type and message of the error.
    metrics : mapping of str to float
        Metrics over all series and windows of the task, named as the columns of `score`
        ("mase", "coverage-80").
    fit_seconds, predict_seconds : float, optional
        Wall-clock time, summed over windows and refits.
    fit_cpu, predict_cpu : float, optional
        CPU time, summed over windows and refits.
    score_seconds, score_cpu : float, optional
        Wall-clock and CPU time to compute the metrics.
    job_seconds : float, optional
        Wall-clock time of the whole job, from its start to its row.
    job_cpu : float, optional
        CPU time of its process and of their child processes.
    peak_mb : float, optional
        Peak memory beyond that at the start of the job, when the data are loaded.
    energy_joules : float, optional
        Energy of the whole CPU package during the job, if the system permits reading it.
    horizon, windows : int, optional
        Forecast horizon and number of windows.
    series, rows, length : int, optional
        Number of evaluated series, number of rows of their histories, rows of the longest one.
    season_length : int, optional
        Season length of the metrics.
    parameters : str
        The model with its parameters.
    unused : sequence of str
        Declared covariates that the model could not use.
    warnings : sequence of str
        Warnings of the model.
    cut : sequence of str
        Restrictions of the suite in this run, e.g. "m4_monthly: 2,000 of 48,000 series"; empty for the
        full suite.
    files : mapping of str to str
        Files of the job by kind, relative to the folder of the run.
    started : str
        Start time in UTC.
    versions, machine : mapping of str to str
        Versions of packages; description of the machine.
    """

    suite: str
    task: str
    dataset: str
    model: str
    seed: int
    job: str
    settings: str
    library: str = OWN_LIBRARY
    status: str = "ok"
    error: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    fit_seconds: float | None = None
    predict_seconds: float | None = None
    fit_cpu: float | None = None
    predict_cpu: float | None = None
    score_seconds: float | None = None
    score_cpu: float | None = None
    job_seconds: float | None = None
    job_cpu: float | None = None
    peak_mb: float | None = None
    energy_joules: float | None = None
    horizon: int | None = None
    windows: int | None = None
    series: int | None = None
    rows: int | None = None
    length: int | None = None
    season_length: int | None = None
    parameters: str = ""
    unused: Sequence[str] = ()
    warnings: Sequence[str] = ()
    cut: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    started: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    machine: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> Row:
        """Build a row from its JSON object; fields of newer versions are ignored."""
        field_names = {row_field.name for row_field in fields(cls)}
        row_fields: dict[str, Any] = {key: value for key, value in mapping.items() if key in field_names}
        row_fields |= {key: tuple(value) for key, value in row_fields.items() if isinstance(value, list)}
        return cls(**row_fields)

    def to_json(self) -> bytes:
        """Return the row as one line of JSON in ASCII, with the metrics in the order of the suite."""
        return json.dumps(asdict(self), allow_nan=False).encode("ascii") + b"\n"


def read_rows(folder: str | Path) -> list[Row]:
    """Read the latest row of each job of a run.

    An incomplete last line, left by an interrupted run, is ignored with a `DataWarning`.

    Raises
    ------
    DataError
        If the folder has no results, or a line is not a row.

    Examples
    --------
    >>> import tempfile
    >>> row = Row(suite="s", task="t", dataset="d", model="Naive", seed=0, job="t-Naive-0", settings="0")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, RESULTS).write_bytes(row.to_json() + row.to_json())
    ...     [row.job for row in read_rows(folder)]
    ['t-Naive-0']
    """
    path = Path(folder, RESULTS)
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError as error:
        raise DataError(f"The folder of a run must contain {RESULTS}; {format_value(str(folder))} does not.") from error
    if lines[-1]:
        warn(f"The last line of {path} is incomplete (the run was interrupted) and is ignored.")
    rows_by_job: dict[str, Row] = {}
    for number, line in enumerate(lines[:-1]):
        row = _parse_row(line, number + 1, path)
        rows_by_job.pop(row.job, None)
        rows_by_job[row.job] = row
    return list(rows_by_job.values())


def rows_to_frame(rows: Iterable[Row]) -> pd.DataFrame:
    """Return rows as a frame.

    Returns
    -------
    DataFrame
        One column per field, and `metric:<name>` per metric; versions, machine and files are
        columns of dicts.

    Examples
    --------
    >>> row = Row(suite="s", task="t", dataset="d", model="Naive", seed=0, job="j", settings="0", metrics={"mae": 1.5})
    >>> rows_to_frame([row])[["model", "status", "metric:mae"]].values.tolist()
    [['Naive', 'ok', 1.5]]
    """
    import pandas as pd

    field_names = [field.name for field in fields(Row) if field.name != "metrics"]
    row_list = list(rows)
    frame = pd.DataFrame([{name: getattr(row, name) for name in field_names} for row in row_list], columns=field_names)
    for name in dict.fromkeys(name for row in row_list for name in row.metrics):
        frame[f"metric:{name}"] = [float(row.metrics.get(name, float("nan"))) for row in row_list]
    return frame


def read_file(folder: str | Path, row: Row, file_kind: str) -> pd.DataFrame:
    """Read a file of a job.

    Parameters
    ----------
    folder : str or Path
        Folder of the run.
    row : Row
        Row of the job.
    file_kind : {"forecasts", "series", "history"}
        Forecasts of the sampled series, metrics of each series, or history of the task.

    Returns
    -------
    DataFrame

    Raises
    ------
    DataError
        If the row has no such file.
    """
    import pandas as pd

    if file_kind not in row.files:
        has = ", ".join(row.files) or "none"
        raise DataError(f"The row of job {format_value(row.job)} must list a file {format_value(file_kind)}; it lists {has}.")
    return pd.read_parquet(Path(folder, row.files[file_kind]))


def _parse_row(line: bytes, number: int, path: Path) -> Row:
    try:
        row = Row.from_mapping(json.loads(line))
    except (ValueError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path}: each line must be the row of a job; line {number} is not ({format_value(str(error))})."
        ) from error
    if row.status not in STATUSES:
        raise DataError(
            f"{path}: the status of a row must be one of {', '.join(STATUSES)}; line {number} has {format_value(row.status)}."
        )
    return row
