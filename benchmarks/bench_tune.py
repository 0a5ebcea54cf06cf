"""What a search costs and what it finds: `python benchmarks/bench_tune.py small` (or what is below, with its arguments).

small    a trial of an LSTM of 16 for 20 steps on one window; what a trial costs beyond fit and predict, with a journal
storages 40 trials of WindowMean on a journal and on SQLite: commits, seconds by the clock and of the CPU
pruning  40 trials of an LSTM on NN5 that may end early, beside 40 that do not: score and seconds, by seeds of the sampler
tables   30 trials of LSTM, Transformer and LightGBM on M4 hourly, NN5 and EPF-NP: gain over the defaults on windows held out
`pruning` and `tables` need DEEPFORECAST_DATA; their tables are kept in benchmarks/results/tune.md. One thread, CPU seconds.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import pandas as pd

from deepforecast import LSTM, LightGBM, Transformer, TuningOptions, WindowMean, cross_validate, datasets, tune

SMALL = {"learning_rate": {"low": 1e-4, "high": 1e-2, "log": True}, "dropout": (0.0, 0.3), "weight_decay": (0.0, 0.1)}
TRIALS, STEPS = 30, 50


def timed(work: Any) -> tuple[float, float, Any]:
    """Seconds by the clock, of the CPU, and what came of it."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = work()
    return time.perf_counter() - wall, time.process_time() - cpu, found


def small(*_: str) -> list[str]:
    """A small trial, and what is added to it."""
    frame = datasets.generate(1, 200, seed=1)
    network = LSTM(horizon=12, hidden_size=16, max_steps=20, input_size=24)
    lines = ["| what | ms by the clock | ms of the CPU |", "|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        for name, model, space, count in (
            ("LSTM", network, SMALL, 30), ("WindowMean", WindowMean(horizon=12), {"window": (2, 190)}, 100),
        ):  # fmt: skip
            options = TuningOptions(n_windows=1, space=space, pruner=None)
            tune(model, frame, n_trials=2, options=options)  # what is loaded and compiled is there now
            bare = timed(lambda m=model, c=count: [cross_validate(m, frame, n_windows=1) for _ in range(c)])
            study = str(Path(folder, f"{name}.log"))
            full = timed(lambda m=model, c=count, o=options, s=study: tune(m, frame, n_trials=c, storage=s, options=o))
            inside = full[2].trials["seconds"].sum()
            for what, wall, cpu in (
                (f"{name}: cross_validate, one window", bare[0], bare[1]), (f"{name}: a trial on a journal", full[0], full[1]),
                (f"{name}: a trial beyond its own fit, forecast and score", full[0] - inside, float("nan")),
            ):  # fmt: skip
                lines.append(f"| {what} | {1e3 * wall / count:.1f} | {1e3 * cpu / count:.1f} |")
    return lines


def storages(*_: str) -> list[str]:
    """What each kind of file costs beyond the trials."""
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    commits: list[Any] = []
    event.listen(Engine, "commit", commits.append)
    frame, options = datasets.generate(5, 120), TuningOptions(space={"window": (1, 60)})
    lines = ["| storage | commits | s by the clock | s of the CPU |", "|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        for name in ("study.log", "study.db"):
            tune(WindowMean(horizon=7), frame, n_trials=2, storage=Path(folder, f"first-{name}"), options=options)
            commits.clear()
            study = Path(folder, name)
            wall, cpu, _ = timed(lambda s=study: tune(WindowMean(horizon=7), frame, n_trials=40, storage=s, options=options))
            lines.append(f"| {name} | {len(commits)} | {wall:.2f} | {cpu:.2f} |")
    return lines


def pruning(*seeds: str) -> list[str]:
    """The same search with and without early ends, by some seeds of the sampler."""
    frame = daily_cash()
    model = LSTM(horizon=28, **NETWORK)
    tune(model, frame, n_trials=2, options=TuningOptions(n_windows=1))  # what is loaded and compiled is there now
    lines = ["| seed | all to their end | with early ends | worse by | CPU s | CPU s with early ends | of it | ended early |",
             "|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for seed in map(int, seeds or "012"):
        both = [TuningOptions(n_windows=1, pruner=one, trial_timeout=None, seed=seed) for one in (None, "median")]
        full, early = (timed(lambda o=one: tune(model, frame, n_trials=40, options=o)) for one in both)
        best, found = full[2].best_value, early[2].best_value
        lines.append(
            f"| {seed} | {best:.4f} | {found:.4f} | {found / best - 1:.1%} | {full[1]:.0f} | {early[1]:.0f} | "
            f"{early[1] / full[1]:.0%} | {(early[2].trials['state'] == 'pruned').sum()} |"
        )
        print(lines[-1], flush=True)
    return lines


def tables(*wanted: str) -> list[str]:
    """What the best of 30 trials keeps of its gain where the search did not look."""
    lines = ["| data | model | default | best | gain | default held out | best held out | gain held out | optimism | CPU min |",
             "|---|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for name, (load, horizon, windows) in TASKS.items():
        for model in (LSTM(**LONGER), Transformer(**LONGER), LightGBM()):
            if wanted and not {name, model.name} <= set(wanted):
                continue
            frame = load()
            columns = {"future": [one for one in frame if one not in ("unique_id", "ds", "y")]}
            options = TuningOptions(n_windows=windows, holdout=windows, trial_timeout=None)
            ready = model.clone(horizon=horizon)
            _, cpu, found = timed(
                lambda m=ready, f=frame, c=columns, o=options: tune(m, f, n_trials=TRIALS, columns=c, options=o)
            )
            usual, best = found.holdout.iloc[0], found.holdout.iloc[1]
            lines.append(
                f"| {name} | {model.name} | {usual['search']:.4f} | {best['search']:.4f} | {best['gain']:.1%} | "
                f"{usual['held_out']:.4f} | {best['held_out']:.4f} | {best['gain_held_out']:.1%} | {best['optimism']:.1%} | "
                f"{cpu / 60:.1f} |"
            )
            print(lines[-1], found.best_params, flush=True)
    return lines


def hourly() -> Any:
    """Forty series of M4 hourly, their integers as hours."""
    frame = some(datasets.load("m4_hourly"), 40)
    return frame.assign(ds=pd.Timestamp("2015-01-01") + pd.to_timedelta(frame["ds"], unit="h"))


def daily_cash() -> Any:
    """All of NN5."""
    return datasets.load("nn5_daily")


def prices() -> Any:
    """The last year of the prices of Nord Pool, with load and wind as forecast the day before."""
    return datasets.load("epf_np").tail(365 * 24)


def some(frame: Any, count: int) -> Any:
    """So many series, evenly spread."""
    ids = frame["unique_id"].unique()
    return frame[frame["unique_id"].isin(ids[:: len(ids) // count][:count])]


NETWORK = {"max_steps": STEPS, "batch_size": 16}
LONGER = {"max_steps": 100, "batch_size": 32}
TASKS = {"m4_hourly": (hourly, 48, 1), "nn5_daily": (daily_cash, 28, 1), "epf_np": (prices, 24, 28)}


def main() -> None:
    """Run what is named."""
    warnings.simplefilter("ignore")
    name, *rest = sys.argv[1:] or ["small"]
    print("\n".join({"small": small, "storages": storages, "pruning": pruning, "tables": tables}[name](*rest)))


if __name__ == "__main__":
    main()
