"""Whether attention finds the answer: every score on a task whose answer sits at a known lag, and how far one gets without.

    python benchmarks/bench_alignment.py [score ...] [--seeds 3] [--quick]

Noise that comes again after 120 rows; 200 rows are looked at, 24 steps are forecast: of each step's value one row tells, and
no other. Learned from 300 series, asked of 128 others. Rows and steps are told where they stand (positional_encoding=True). Each row
is encoded by itself (convolutions of one row), so that what stands in it is found in its own vector alone: recurrent layers
hand it on to the rows after it, where attention finds it as well. Without attention the encoder is recurrent, as nothing else
brings the rows to the decoder. The mass is the mean weight on the row that holds the answer, as `explain()` has it; the error
is the mean absolute one, of noise of deviation 1 (who knows nothing has 0.80).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import Any

import numpy as np
import pandas as pd
from beside_neural import write

from deepforecast import Seq2Seq

LAG, INPUT, HORIZON, LEARNED, ASKED = 120, 200, 24, 300, 128
COMMON: dict[str, Any] = {
    "head": "point",
    "scaler": "standard",
    "positional_encoding": True,
    "hidden_size": 32,
    "batch_size": 32,
    "learning_rate": 5e-3,
}
BY_ROW: dict[str, Any] = {"encoder": "convolutional", "kernel_size": 1}
SETTINGS: dict[str, dict[str, Any]] = {
    "general": {"max_steps": 600},
    "additive": {"max_steps": 600},
    "location": {"max_steps": 600},  # it may look at all rows but the answer: of values whose mean is 0 that tells as much
    "dot": {"max_steps": 800},
    "gaussian": {"max_steps": 600},
    "scaled_dot": {"max_steps": 800, "learned_scale": True},
    "cosine": {"max_steps": 600, "learned_scale": True},
    "none": {"max_steps": 600},
}
LEAST = {"general": 0.9, "additive": 0.9, "dot": 0.8}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scores", nargs="*", default=list(SETTINGS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="few steps: only that it runs")
    given = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    lines = [
        "# Attention on the alignment task",
        "",
        f"Input {INPUT}, horizon {HORIZON}, batches of 32, the answer {LAG} rows back; {given.seeds} seeds, worst and best.",
        "",
        "| score | beside it | steps | mass on the answer | asked | mean absolute error | fit, CPU s |",
        "|---|---|---|---|---|---|---|",
    ]
    errors: dict[str, list[float]] = {}
    for name in given.scores:
        told = {**SETTINGS[name], **({"max_steps": 5} if given.quick else {})}
        found = [run(name, told, seed) for seed in range(1 if given.quick else given.seeds)]
        mass, error, seconds = (list(one) for one in zip(*found, strict=True))
        errors[name] = error
        beside = ", ".join(f"{key}={value}" for key, value in told.items() if key != "max_steps") or "-"
        shown = "-" if name == "none" else f"{min(mass):.3f} to {max(mass):.3f}"
        asked = f">= {LEAST[name]}" if name in LEAST else "-"
        lines.append(
            f"| {name} | {beside} | {told['max_steps']} | {shown} | {asked} | {min(error):.3f} to {max(error):.3f} | "
            f"{np.median(seconds):.0f} |"
        )
        print(lines[-1], flush=True)
    if {"none", "dot", "general", "additive"} <= set(errors):
        worst = max(max(errors[name]) for name in ("general", "additive", "dot"))
        lines += ["", f"Without attention the error is {min(errors['none']) / worst:.1f} times that of the worst of general, "
                      "additive and dot (asked: 3)."]  # fmt: skip
    write("alignment", lines, given.quick or set(given.scores) < set(SETTINGS))
    return 0


def run(name: str, told: dict[str, Any], seed: int) -> tuple[float, float, float]:
    """Mass on the answer, mean absolute error, and seconds of the fit."""
    score: dict[str, Any] = {"attention": None} if name == "none" else {"attention": name, **BY_ROW}
    model = Seq2Seq(horizon=HORIZON, input_size=INPUT, seed=seed, **score, **COMMON, **told)
    start = time.process_time()
    model.fit(copies(LEARNED, 400, seed=0))
    seconds = time.process_time() - start
    frame = copies(ASKED, INPUT + HORIZON, seed=1)
    history, ahead = frame[frame["ds"] < INPUT], frame[frame["ds"] >= INPUT]
    error = np.abs(model.predict(frame=history)["Seq2Seq"].to_numpy() - ahead["y"].to_numpy()).mean()
    if name == "none":
        return np.nan, float(error), seconds
    looked = model.explain(frame=history)
    return float(looked.loc[looked["ds"] - looked["lag"] == LAG, "weight"].mean()), float(error), seconds


def copies(series: int, length: int, seed: int) -> pd.DataFrame:
    """Noise that comes again after LAG rows."""
    noise = np.random.default_rng(seed).normal(size=(series, LAG))
    y = np.tile(noise, (1, -(-length // LAG)))[:, :length]
    ids = np.repeat(np.arange(series), length)
    return pd.DataFrame({"unique_id": ids, "ds": np.tile(np.arange(length), series), "y": y.reshape(-1)})


if __name__ == "__main__":
    sys.exit(main())
