"""The rows of a run: one JSON line a job in `results.jsonl`, written whole, and how they are read.

A run is a folder, and everything that is ever said of it follows from these files:

    suite.yaml                 the suite as it was run, with what the command line changed
    results.jsonl              one row a job, appended when the job is over
    forecasts/<job>.parquet    forecasts of the sampled series: unique_id, ds, cutoff, y, <model>, <model>-lo-80 ...
    series/<job>.parquet       the metrics of each series: unique_id and a column a metric
    history/<task>.parquet     rows of the sampled series before the last cutoff: unique_id, ds, y (scaled as the task says)
    peers/<job>/               the folder a peer was given, and what it wrote

A job is one (task, model, seed). A task is a dataset, sliced and scaled, with a horizon and windows; a suite may hold several
tasks of one dataset. `job` is the name of its files and made of the three. A job that is run again (after an interruption,
or with other settings) is a new row; the last row of a job counts.
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
    """What came of one job. Times are seconds, memory is MiB (2**20 bytes); None is what could not be known.

    - `status`: "ok"; "failed" (`error` says how); "timeout" and "memory" (beyond the limits of the job, and stopped); "lost"
      (the process ended without a word); "not run" (a package or a peer's environment is not there).
    - `metrics`: by column name as `score` has them ("mase", "coverage-80"), over all series and windows of the task.
    - `fit_seconds`, `predict_seconds`: wall clock, summed over windows and refits; `fit_cpu`, `predict_cpu`: CPU likewise.
      `score_seconds`, `score_cpu`: of the metrics. `job_seconds`: wall clock of the whole job, from being asked for to its row.
      `job_cpu`: CPU of its process and those it started. `peak_mb`: the most held beyond what it began with (data loaded).
    - `energy_joules`: of the whole processor package over the job, where the system lets it be read.
    - `settings`: SHA-256 of all that decides the forecasts (task, model, parameters, seed, versions of the suite's meaning).
    - `series`, `rows`, `length`: series judged, rows of their histories, rows of the longest. `horizon`, `windows`: as run.
    - `unused`: declared covariates the model could not use. `warnings`: its warnings.
    - `cut`: what of the suite was left out for this run ("series 2,000 of 48,000"), nothing if nothing was.
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
        """A row from what its line says; what only a newer version knows is left aside."""
        field_names = {entry.name for entry in fields(cls)}
        row_fields: dict[str, Any] = {key: entry for key, entry in mapping.items() if key in field_names}
        row_fields |= {key: tuple(entry) for key, entry in row_fields.items() if isinstance(entry, list)}
        return cls(**row_fields)

    def to_json(self) -> bytes:
        """The row as it stands in the file: one line of JSON, in ASCII; metrics in the order of the suite."""
        return json.dumps(asdict(self), allow_nan=False).encode("ascii") + b"\n"


def read_rows(folder: str | Path) -> list[Row]:
    """Read the latest row of each job of a run. An unfinished last line is reported and ignored.

    >>> import tempfile
    >>> row = Row(suite="s", task="t", dataset="d", model="Naive", seed=0, job="t-Naive-0", settings="0")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, RESULTS).write_bytes(row.to_json() + row.to_json())
    ...     [one.job for one in read_rows(folder)]
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
    """Rows as a frame: a column a field, a column `metric:<name>` a metric; versions, machine and files stay dicts.

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
    """A file of a row as a frame: its `forecasts`, the metrics of each `series`, or the `history` of its task."""
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
