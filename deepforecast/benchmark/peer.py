"""A job of another library: its own environment is given a folder, and writes its forecasts there.

    history.parquet    unique_id, ds, y, covariates: every row up to the last cutoff
    future.parquet     unique_id, cutoff, ds, columns known ahead: one row a forecast that is asked for
    static.parquet     unique_id and the static columns, if there are any
    job.json           name, model, parameters, horizon, freq, season_length, level, columns, refit, windows, size, seed,
                       time_limit, threads

`<environment>/bin/python -P forecast_<peer>.py <folder>` answers with

    forecasts.parquet  unique_id, ds, cutoff, <name>, <name>-lo-80 ...: the rows of future.parquet
    timing.json        fit_seconds, predict_seconds, fit_cpu, predict_cpu, peak_memory_mb, versions

The folder is new for every job, so that what is read was written by that environment in this run.
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

from deepforecast.benchmark.data import Prepared
from deepforecast.benchmark.job import LONGEST, Job, judged, start, write_parquet
from deepforecast.benchmark.rows import PEERS, Row
from deepforecast.benchmark.suite import Entry, Suite
from deepforecast.core.threads import allowed_threads
from deepforecast.errors import DataError, format_list, format_value
from deepforecast.evaluation.compare import Run
from deepforecast.evaluation.cross_validation import Rows

if TYPE_CHECKING:
    import pandas as pd

KEYS = ["unique_id", "cutoff", "ds"]
CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Places:
    """Where the adapters `forecast_<peer>.py` lie, and the environments `<peer>/bin/python`."""

    adapters: Path = CHECKOUT / "benchmarks" / "peers"
    environments: Path = CHECKOUT / "build" / "peers"

    @classmethod
    def usual(cls) -> Places:
        """Those of a checkout; `DEEPFORECAST_PEERS` names another folder of environments."""
        named = os.environ.get("DEEPFORECAST_PEERS", "").strip()
        return cls(environments=Path(named)) if named else cls()

    def python(self, peer: str) -> Path:
        """The interpreter of a peer."""
        return self.environments / peer / "bin" / "python"

    def adapter(self, peer: str) -> Path:
        """The script that is run there."""
        return self.adapters / f"forecast_{peer}.py"

    def lacking(self, peer: str) -> str:
        """What is not there, in words."""
        if not self.adapter(peer).is_file():
            return f"there is no adapter {self.adapter(peer).name} in {self.adapters.name}"
        if not self.python(peer).is_file():
            return f"there is no environment of {peer}; make it with: sh benchmarks/peers/make-env {peer}"
        return ""


def run_peer(suite: Suite, prepared: Prepared, job: Job, folder: Path, places: Places) -> Row:
    """Ask a peer for its forecasts and score them as ours are."""
    row, entry = start(suite, prepared, job), suite.entries(prepared.task)[job.entry]
    lacking = places.lacking(entry.peer)
    if lacking:
        return replace(row, status="not run", error=lacking)
    row = replace(row, parameters=format_value(f"{entry.model} {json.dumps(dict(entry.parameters), default=str)}", 1000))
    desk = folder / PEERS / job.name
    shutil.rmtree(desk, ignore_errors=True)
    desk.mkdir(parents=True)
    limit = prepared.task.time_limit or suite.time_limit
    asked = hand_over(desk, entry, prepared, job.seed, limit)
    command = [str(places.python(entry.peer)), "-P", str(places.adapter(entry.peer)), str(desk)]
    alone = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=alone, check=False)
    if done.returncode:
        words = [line for line in done.stderr.splitlines() if line.strip()]
        told = format_value(words[-1], LONGEST) if words else "it said nothing"
        return replace(row, status="failed", error=f"{entry.peer} ended with exit code {done.returncode}: {told}")
    try:
        columns, timing = taken_over(desk, entry.name, asked, prepared)
    except (DataError, OSError, ValueError, KeyError) as error:
        return replace(row, status="failed", error=format_value(f"{entry.peer}: {type(error).__name__}: {error}", LONGEST))
    row = replace(
        row, fit_seconds=timing.get("fit_seconds"), predict_seconds=timing.get("predict_seconds"),
        fit_cpu=timing.get("fit_cpu"), predict_cpu=timing.get("predict_cpu"), peak_mb=timing.get("peak_memory_mb"),
        versions={str(key): str(value) for key, value in (timing.get("versions") or {}).items()},
        said=tuple(format_value(str(timing["note"]), 300) for _ in range(1) if timing.get("note")),
    )  # fmt: skip
    return judged(row, Run(entry.name, columns), prepared, suite.sample, folder)


def hand_over(desk: Path, entry: Entry, prepared: Prepared, seed: int, limit: float) -> pd.DataFrame:
    """Write the job's files; the rows of future.parquet are given back."""
    frame = _plain(prepared.history)
    future = asked_rows(prepared)
    known, static = list(prepared.columns["future"]), list(prepared.columns["static"])
    if known:
        future = future.merge(frame[["unique_id", "ds", *known]], on=["unique_id", "ds"], how="left", validate="m:1")
    last = future.groupby("unique_id", sort=False)["cutoff"].max()
    seen = frame["ds"].to_numpy() <= frame["unique_id"].map(last).to_numpy()
    write_parquet(desk / "history.parquet", frame.loc[seen, ["unique_id", "ds", "y", *known, *prepared.columns["past"]]])
    write_parquet(desk / "future.parquet", future)
    if static:
        write_parquet(desk / "static.parquet", frame.drop_duplicates("unique_id")[["unique_id", *static]])
    refit = prepared.refit
    said = {
        "name": entry.name, "model": entry.model, "parameters": dict(entry.parameters), "horizon": prepared.plan.horizon,
        "freq": _freq(prepared), "season_length": prepared.season, "level": list(prepared.levels),
        "columns": {role: list(names) for role, names in prepared.columns.items()},
        "refit": 1 if refit == "auto" else int(refit), "windows": prepared.plan.n_windows, "size": prepared.plan.train_size,
        "seed": seed, "time_limit": limit, "threads": allowed_threads(),
    }  # fmt: skip
    (desk / "job.json").write_text(json.dumps(said, indent=1), "utf-8")
    return future


def asked_rows(prepared: Prepared) -> pd.DataFrame:
    """The rows that are judged, in the order of the columns of a run."""
    import pandas as pd

    rows = Rows.of(prepared.panel, prepared.plan)
    series = prepared.panel.series
    ids = np.asarray(pd.Series(series.native_ids).astype(str))[rows.series]
    return pd.DataFrame({"unique_id": ids, "cutoff": series.time_column(rows.cutoff), "ds": series.time_column(rows.position)})


def taken_over(desk: Path, name: str, asked: pd.DataFrame, prepared: Prepared) -> tuple[dict[str, Any], dict[str, Any]]:
    """The forecast columns a peer wrote, on the rows asked for, and its timing."""
    import pandas as pd

    path = desk / "forecasts.parquet"
    if not path.is_file():
        raise DataError("A peer writes forecasts.parquet; it ended without.")
    found = pd.read_parquet(path)
    wanted = [name, *(f"{name}-{end}-{level:g}" for level in prepared.levels for end in ("lo", "hi"))]
    lacking = [column for column in (*KEYS, *wanted[:1]) if column not in found]
    if lacking:
        raise DataError(f"forecasts.parquet has the columns {format_list(KEYS)}, {name}; it lacks {format_list(lacking)}.")
    wanted = [column for column in wanted if column in found]
    found = found.astype({"unique_id": str, "ds": asked["ds"].dtype, "cutoff": asked["cutoff"].dtype})
    if found.duplicated(KEYS).any():
        raise DataError("forecasts.parquet has a row once; it has some twice.")
    joined = asked[KEYS].merge(found[[*KEYS, *wanted]], on=KEYS, how="left", validate="1:1")
    empty = joined[wanted].isna().any(axis=1)
    if empty.any():
        first = joined.loc[empty].iloc[0]
        raise DataError(f"A forecast of {first.unique_id} at {first.ds} is missing ({int(empty.sum())} in all).")
    timing = json.loads((desk / "timing.json").read_text("utf-8"))
    return {column: joined[column].to_numpy(np.float64) for column in wanted}, timing


def _freq(prepared: Prepared) -> str | int:
    """A pandas alias, or how far two integers of time are apart."""
    calendar = prepared.panel.calendar
    return calendar.freq if calendar.time.unit else int(calendar.frequency.n)


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    """With ids as text."""
    return frame.astype({"unique_id": str})
