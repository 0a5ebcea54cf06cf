"""What every adapter of a peer shares: reads the job folder, cuts its windows, keeps the clock, writes the forecasts.

Imported by `forecast_<peer>.py` in the peer's own environment; needs pandas alone and nothing of this project. An adapter is
an object with `fit(train) -> fitted`, `predict(fitted, context, ahead) -> frame` with the columns unique_id, ds, point,
lo-80 ..., and `roles`, the covariates it passes on; `refits = True` where the library keeps no parameters from one window to
the next, and `prepare(history, future)` for what is done once before the clock runs. README.md of this folder describes it.
"""

import json
import os
import resource
import sys
import time
import traceback
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else None
TOLD = json.loads((FOLDER / "job.json").read_text()) if FOLDER else {}
for name in ("OMP", "MKL", "OPENBLAS", "NUMBA"):  # before any library reads them
    os.environ[f"{name}_NUM_THREADS"] = str(TOLD.get("threads", 1))

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402

# by length of season the frequency of stand-in stamps where a library takes no integer time, and its days
CALENDAR = {
    1: ("YS", 366), 4: ("QS", 92), 12: ("MS", 31), 52: ("W", 7), 7: ("D", 1), 24: ("h", 1 / 24), 48: ("30min", 1 / 48),
    96: ("15min", 1 / 96),
}  # fmt: skip


@dataclass
class Job:
    """A job as the engine wrote it; `quantiles` are those of its levels, `notes` what the reader of the row should know."""

    name: str
    model: str
    parameters: dict
    horizon: int
    freq: object
    season_length: int | None
    level: list
    columns: dict
    refit: int
    windows: int
    seed: int
    threads: int
    notes: list = field(default_factory=list)

    @property
    def season(self):
        return int(self.season_length or 1)

    @property
    def quantiles(self):
        """Of each level its lower and upper quantile, rounded as libraries name their columns: {"lo-80": 0.1, "hi-80": 0.9}."""
        found = {}
        for level in self.level:
            found[f"lo-{level}"], found[f"hi-{level}"] = (round(0.5 + sign * level / 200, 6) for sign in (-1, 1))
        return found

    @property
    def future(self):
        return list(self.columns.get("future", []))

    def note(self, text):
        if text not in self.notes:
            self.notes.append(text)


def job():
    """The job of the folder named on the command line."""
    return Job(**{name: TOLD[name] for name in Job.__dataclass_fields__ if name in TOLD})


def static():
    """The frame of columns that are constant per series, or None."""
    path = FOLDER / "static.parquet"
    return pd.read_parquet(path) if path.is_file() else None


def model_of(module, name, **given):
    """The class `name` of a module, made with the parameters; an unknown name says what there is."""
    kinds = {kind: one for kind, one in vars(module).items() if hasattr(one, "fit") and not kind.startswith("_")}
    if name not in kinds:
        raise ValueError(f"{module.__name__} has no model {name}; it has {', '.join(sorted(kinds))}")
    return kinds[name](**given)


def takes(kind, name):
    """Whether the constructor of a class has a parameter of this name."""
    import inspect

    return name in inspect.signature(kind).parameters


class Clock:
    """Stamps that stand in for integer time in libraries that take dates alone; real stamps pass as they are."""

    def __init__(self, told, *frames):
        self.freq, self.integer = told.freq, not isinstance(told.freq, str)
        if self.integer:
            self.first, self.step = min(int(frame["ds"].min()) for frame in frames), int(told.freq)
            periods = (max(int(frame["ds"].max()) for frame in frames) - self.first) // self.step + 1
            name, days = CALENDAR.get(told.season, ("D", 1))
            self.freq = name if periods * days < 366 * 400 else "D"  # stamps in nanoseconds end in 2262
            self.stamps = pd.date_range("1750-01-01", periods=periods, freq=self.freq)
            told.note(f"integer time: steps stand on stamps of frequency {self.freq}")

    def to_stamps(self, frame):
        if not self.integer:
            return frame
        return frame.assign(ds=self.stamps[(frame["ds"].to_numpy() - self.first) // self.step])

    def back(self, frame):
        if not self.integer:
            return frame
        return frame.assign(ds=self.first + self.step * self.stamps.get_indexer(pd.DatetimeIndex(frame["ds"])))


def run(told, adapter, libraries):
    """Forecast all windows of the job and write what came of it; an error ends in one line that says it."""
    try:
        _run(told, adapter, libraries)
    except Exception as error:
        traceback.print_exc()
        raise SystemExit(f"{type(error).__name__}: {' '.join(str(error).split())[:500]}") from None


def _run(told, adapter, libraries):
    history, future = pd.read_parquet(FOLDER / "history.parquet"), pd.read_parquet(FOLDER / "future.parquet")
    unused = [name for role in ("future", "past", "static") if role not in adapter.roles for name in told.columns.get(role, [])]
    if unused:
        told.note(f"columns not used: {', '.join(unused)}")
    if hasattr(adapter, "prepare"):
        adapter.prepare(history, future)
    refit = told.refit
    if getattr(adapter, "refits", False) and refit != 1 and told.windows > 1:
        told.note("fitted again at every window: the library keeps no parameters beyond a fit")
        refit = 1
    seconds = dict.fromkeys(("fit_seconds", "fit_cpu", "predict_seconds", "predict_cpu"), 0.0)
    begin, found, fitted = _held(), [], None
    for number, (context, ahead) in enumerate(_windows(history, future)):
        if fitted is None or (refit and number % refit == 0):
            with _clock(seconds, "fit"):
                fitted = adapter.fit(context)
        with _clock(seconds, "predict"):
            said = adapter.predict(fitted, context, ahead)
        found.append(_matched(said, ahead, told))
    peak = max(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - begin, 0.0)
    pd.concat(found, ignore_index=True).to_parquet(FOLDER / "forecasts.parquet", index=False)
    versions = {"python": sys.version.split()[0]} | {name: _version(name) for name in libraries}
    report = seconds | {"peak_memory_mb": peak, "versions": versions, "note": "; ".join(told.notes)}
    (FOLDER / "timing.json").write_text(json.dumps(report, indent=1))


def _windows(history, future):
    """Of each window the rows up to its cutoffs and the rows asked for; window w is the w-th cutoff of each series."""
    number = future.groupby("unique_id")["cutoff"].rank(method="dense").astype(int)
    for window in sorted(number.unique()):
        ahead = future[number == window].reset_index(drop=True)
        cutoff = history["unique_id"].map(ahead.drop_duplicates("unique_id").set_index("unique_id")["cutoff"])
        yield history[history["ds"] <= cutoff].reset_index(drop=True), ahead


def _matched(said, ahead, told):
    """The forecasts in the order and with the keys of the rows asked for."""
    wanted = ["point", *told.quantiles]
    lacking = [name for name in wanted if name not in said.columns]
    if lacking:
        raise ValueError(f"the forecast has no column {lacking[0]}; it has {', '.join(map(str, said.columns))}")
    said = said[["unique_id", "ds", *wanted]].drop_duplicates(["unique_id", "ds"])
    said = said.assign(ds=said["ds"].astype(ahead["ds"].dtype), unique_id=said["unique_id"].astype(ahead["unique_id"].dtype))
    joined = ahead[["unique_id", "ds", "cutoff"]].merge(said, on=["unique_id", "ds"], how="left")
    values = joined[wanted].to_numpy(float)
    if not np.isfinite(values).all():
        row = joined.loc[~np.isfinite(values).all(axis=1)].iloc[0]
        count = int((~np.isfinite(values).all(axis=1)).sum())
        raise ValueError(
            f"{count} of {len(joined)} forecasts are missing or no numbers, first {row['unique_id']} at {row['ds']}"
        )
    joined[wanted] = values
    names = {"point": told.name} | {name: f"{told.name}-{name}" for name in told.quantiles}
    return joined.rename(columns=names)


class _clock:
    """Adds wall clock and CPU (of children too) of a block to the seconds."""

    def __init__(self, seconds, name):
        self.seconds, self.name = seconds, name

    def __enter__(self):
        self.wall, self.cpu = time.perf_counter(), _cpu()

    def __exit__(self, *error):
        self.seconds[f"{self.name}_seconds"] += time.perf_counter() - self.wall
        self.seconds[f"{self.name}_cpu"] += _cpu() - self.cpu


def _cpu():
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def _held():
    """MiB that the process holds now; where the system does not say, the most it ever held."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _version(name):
    try:
        return version(name)
    except PackageNotFoundError:
        return "?"
