"""Costs and gains of hyperparameter tuning: `python benchmarks/bench_tune.py small` (or another command with its arguments).

small     a trial of an LSTM with 16 units and 20 steps on one window; the overhead of a trial, with a journal
storages  40 trials of WindowMean with a journal and with SQLite: commits, wall-clock and CPU seconds
pruning   40 trials of an LSTM on NN5 with and without pruning: score and seconds, by seed of the sampler
tables    30 trials of LSTM, Transformer and LightGBM on M4 hourly, NN5 and EPF-NP: gain over the defaults on holdout windows

`pruning` and `tables` require DEEPFORECAST_DATA; their tables are in benchmarks/results/tune.md. One thread, CPU seconds.
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
    """Wall-clock seconds, CPU seconds and the result of a function."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return time.perf_counter() - wall, time.process_time() - cpu, result


def small(*_: str) -> list[str]:
    """The cost of a small trial, and its overhead."""
    frame = datasets.generate(1, 200, seed=1)
    network = LSTM(horizon=12, hidden_size=16, max_steps=20, input_size=24)
    lines = ["| operation | wall-clock ms | CPU ms |", "|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        for name, model, space, count in (
            ("LSTM", network, SMALL, 30), ("WindowMean", WindowMean(horizon=12), {"window": (2, 190)}, 100),
        ):  # fmt: skip
            options = TuningOptions(n_windows=1, space=space, pruner=None)
            tune(model, frame, n_trials=2, options=options)  # imports and compiles
            cross_validation = timed(lambda m=model, c=count: [cross_validate(m, frame, n_windows=1) for _ in range(c)])
            study_file = str(Path(folder, f"{name}.log"))
            tuning = timed(lambda m=model, c=count, o=options, s=study_file: tune(m, frame, n_trials=c, storage=s, options=o))
            trial_seconds = tuning[2].trials["seconds"].sum()
            for operation, wall, cpu in (
                (f"{name}: cross_validate, one window", cross_validation[0], cross_validation[1]),
                (f"{name}: a trial with a journal", tuning[0], tuning[1]),
                (f"{name}: overhead of a trial beyond fit, forecast and score", tuning[0] - trial_seconds, float("nan")),
            ):  # fmt: skip
                lines.append(f"| {operation} | {1e3 * wall / count:.1f} | {1e3 * cpu / count:.1f} |")
    return lines


def storages(*_: str) -> list[str]:
    """The cost of each kind of storage."""
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    commits: list[Any] = []
    event.listen(Engine, "commit", commits.append)
    frame, options = datasets.generate(5, 120), TuningOptions(space={"window": (1, 60)})
    lines = ["| storage | commits | wall-clock s | CPU s |", "|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        for name in ("study.log", "study.db"):
            tune(WindowMean(horizon=7), frame, n_trials=2, storage=Path(folder, f"first-{name}"), options=options)
            commits.clear()
            study_file = Path(folder, name)
            model = WindowMean(horizon=7)
            wall, cpu, _ = timed(lambda m=model, s=study_file: tune(m, frame, n_trials=40, storage=s, options=options))
            lines.append(f"| {name} | {len(commits)} | {wall:.2f} | {cpu:.2f} |")
    return lines


def pruning(*seeds: str) -> list[str]:
    """The same search with and without pruning, for some seeds of the sampler."""
    frame = daily_cash()
    model = LSTM(horizon=28, **NETWORK)
    tune(model, frame, n_trials=2, options=TuningOptions(n_windows=1))  # imports and compiles
    lines = ["| seed | without pruning | with pruning | worse by | CPU s | CPU s with pruning | share | pruned trials |",
             "|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for seed in map(int, seeds or "012"):
        options_by_pruner = [
            TuningOptions(n_windows=1, pruner=pruner, trial_timeout=None, seed=seed) for pruner in (None, "median")
        ]
        full_run, pruned_run = (
            timed(lambda o=options: tune(model, frame, n_trials=40, options=o)) for options in options_by_pruner
        )
        full_value, pruned_value = full_run[2].best_value, pruned_run[2].best_value
        lines.append(
            f"| {seed} | {full_value:.4f} | {pruned_value:.4f} | {pruned_value / full_value - 1:.1%} | {full_run[1]:.0f} | "
            f"{pruned_run[1]:.0f} | {pruned_run[1] / full_run[1]:.0%} | {(pruned_run[2].trials['state'] == 'pruned').sum()} |"
        )
        print(lines[-1], flush=True)
    return lines


def tables(*selected: str) -> list[str]:
    """The gain of the best of 30 trials on holdout windows."""
    lines = [
        "| data | model | default | best | gain | default, holdout | best, holdout | gain, holdout | generalization gap | "
        "CPU min |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, (load, horizon, windows) in TASKS.items():
        for model in (LSTM(**LONGER), Transformer(**LONGER), LightGBM()):
            if selected and not {name, model.name} <= set(selected):
                continue
            frame = load()
            columns = {"future": [column for column in frame if column not in ("unique_id", "ds", "y")]}
            options = TuningOptions(n_windows=windows, holdout=windows, trial_timeout=None)
            prepared = model.clone(horizon=horizon)
            _, cpu, result = timed(
                lambda m=prepared, f=frame, c=columns, o=options: tune(m, f, n_trials=TRIALS, columns=c, options=o)
            )
            default, best = result.holdout.iloc[0], result.holdout.iloc[1]
            lines.append(
                f"| {name} | {model.name} | {default['search']:.4f} | {best['search']:.4f} | {best['gain']:.1%} | "
                f"{default['held_out']:.4f} | {best['held_out']:.4f} | {best['gain_held_out']:.1%} | {best['optimism']:.1%} | "
                f"{cpu / 60:.1f} |"
            )
            print(lines[-1], result.best_params, flush=True)
    return lines


def hourly() -> Any:
    """Forty series of M4 hourly with dates in place of integer time."""
    frame = evenly_spaced(datasets.load("m4_hourly"), 40)
    return frame.assign(ds=pd.Timestamp("2015-01-01") + pd.to_timedelta(frame["ds"], unit="h"))


def daily_cash() -> Any:
    """NN5."""
    return datasets.load("nn5_daily")


def prices() -> Any:
    """The last year of Nord Pool prices, with forecasts of load and wind as future covariates."""
    return datasets.load("epf_np").tail(365 * 24)


def evenly_spaced(frame: Any, count: int) -> Any:
    """Evenly spaced series of a frame."""
    ids = frame["unique_id"].unique()
    return frame[frame["unique_id"].isin(ids[:: len(ids) // count][:count])]


NETWORK = {"max_steps": STEPS, "batch_size": 16}
LONGER = {"max_steps": 100, "batch_size": 32}
TASKS = {"m4_hourly": (hourly, 48, 1), "nn5_daily": (daily_cash, 28, 1), "epf_np": (prices, 24, 28)}


def main() -> None:
    """Run the command given on the command line."""
    warnings.simplefilter("ignore")
    name, *rest = sys.argv[1:] or ["small"]
    print("\n".join({"small": small, "storages": storages, "pruning": pruning, "tables": tables}[name](*rest)))


if __name__ == "__main__":
    main()
