"""What a search costs and what it finds: `python benchmarks/bench_tune.py [small] [pruning] [tables]`, by default the first.

small    a trial of an LSTM of 16 for 20 steps on one window; what a trial costs beyond fit and predict, with a journal
pruning  40 trials of an LSTM on NN5 that may end early, beside 40 that do not: score and seconds
tables   30 trials of LSTM, Transformer and LightGBM on M4 hourly, NN5 and EPF-NP: gain over the defaults on windows held out
The last two need DEEPFORECAST_DATA; their tables go to benchmarks/results/tune.md. One thread; CPU seconds where it says so.
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

from deepforecast import LSTM, LightGBM, Study, Transformer, WindowMean, cross_validate, datasets, tune

RESULTS = Path(__file__).parent / "results" / "tune.md"
SMALL = {"learning_rate": {"low": 1e-4, "high": 1e-2, "log": True}, "dropout": (0.0, 0.3), "weight_decay": (0.0, 0.1)}
TRIALS, STEPS = 30, 200


def timed(work: Any) -> tuple[float, float, Any]:
    """Seconds by the clock, of the CPU, and what came of it."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = work()
    return time.perf_counter() - wall, time.process_time() - cpu, found


def small() -> list[str]:
    """A small trial, and what is added to it."""
    frame = datasets.generate(1, 200, seed=1)
    network = LSTM(horizon=12, hidden_size=16, max_steps=20, input_size=24)
    lines = ["| what | ms by the clock | ms of the CPU |", "|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        for name, model, space, count in (
            ("LSTM", network, SMALL, 30), ("WindowMean", WindowMean(horizon=12), {"window": (2, 190)}, 100),
        ):  # fmt: skip
            options = Study(n_windows=1, space=space, pruner=None)
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


def pruning() -> list[str]:
    """The same search with and without early ends."""
    frame = datasets.load("nn5_daily")
    model = LSTM(horizon=28, max_steps=STEPS)
    lines = ["| 40 trials of LSTM on NN5 | best MASE | CPU s | ended early |", "|---|---|---|---|"]
    for pruner in (None, "median", "hyperband"):
        options = Study(n_windows=1, pruner=pruner)
        _, cpu, found = timed(lambda o=options: tune(model, frame, n_trials=40, options=o))
        ended = int((found.trials["state"] == "pruned").sum())
        lines.append(f"| {pruner or 'all to their end'} | {found.best_value:.4f} | {cpu:.0f} | {ended} |")
        print(lines[-1], flush=True)
    return lines


def tables() -> list[str]:
    """What the best of 30 trials keeps of its gain on a window that was not searched."""
    models = [LSTM(max_steps=STEPS), Transformer(max_steps=STEPS), LightGBM()]
    lines = ["| data | model | default | best | gain | default held out | best held out | gain held out | optimism | min |",
             "|---|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for name, horizon in (("m4_hourly", 48), ("nn5_daily", 28), ("epf_np", 24)):
        frame = datasets.load(name)
        for model in models:
            options = Study(n_windows=1, holdout=1)
            ready = model.clone(horizon=horizon)
            wall, _, found = timed(lambda m=ready, f=frame, o=options: tune(m, f, n_trials=TRIALS, options=o))
            usual, best = found.holdout.iloc[0], found.holdout.iloc[1]
            lines.append(
                f"| {name} | {type(model).__name__} | {usual['search']:.4f} | {best['search']:.4f} | {best['gain']:.1%} | "
                f"{usual['held_out']:.4f} | {best['held_out']:.4f} | {best['gain_held_out']:.1%} | {best['optimism']:.1%} | "
                f"{wall / 60:.1f} |"
            )
            print(lines[-1], flush=True)
    return lines


def main() -> None:
    """Run what is named."""
    warnings.simplefilter("ignore")
    for name in sys.argv[1:] or ["small"]:
        lines = {"small": small, "pruning": pruning, "tables": tables}[name]()
        print("\n".join(lines))
        if name != "small":
            before = RESULTS.read_text() if RESULTS.exists() else "# Searches\n"
            RESULTS.write_text(f"{before}\n## {name}, load {os.getloadavg()[0]:.0f}\n\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
