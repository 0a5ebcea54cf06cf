"""Alignment task: every attention score on series that repeat after a known lag, compared with no attention.

    python benchmarks/bench_alignment.py [score ...] [--seeds 3] [--quick]

The series are noise with period 120; the input window has 200 rows, the horizon is 24. Each target value
equals exactly one row of the window. Models are trained on 300 series and tested on 128 others, with
positional encodings of rows and steps. The encoder is a convolution with kernel size 1, so that each
encoder output depends on one row only (recurrent layers pass information on to later rows, where attention
could find it as well). Without attention the encoder is recurrent, since nothing else passes information
from the rows to the decoder. The attention weight is the mean weight of the row that equals the target, as
returned by `explain()`; the error is the mean absolute error (0.80 for uninformed forecasts of this noise,
whose standard deviation is 1).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import Any

import numpy as np
import pandas as pd
from common_neural import write

from deepforecast import Seq2Seq

LAG, INPUT, HORIZON, N_TRAIN, N_TEST = 120, 200, 24, 300, 128
COMMON: dict[str, Any] = {
    "head": "point",
    "scaler": "standard",
    "positional_encoding": True,
    "hidden_size": 32,
    "batch_size": 32,
    "learning_rate": 5e-3,
}
POINTWISE_ENCODER: dict[str, Any] = {"encoder": "convolutional", "kernel_size": 1}
SETTINGS: dict[str, dict[str, Any]] = {
    "general": {"max_steps": 600},
    "additive": {"max_steps": 600},
    # may attend to all rows but the target: the values of a window sum to 0, so this is as informative
    "location": {"max_steps": 600},
    "dot": {"max_steps": 800},
    "gaussian": {"max_steps": 600},
    "scaled_dot": {"max_steps": 800, "learned_scale": True},
    "cosine": {"max_steps": 600, "learned_scale": True},
    "none": {"max_steps": 600},
}
REQUIRED_WEIGHT = {"general": 0.9, "additive": 0.9, "dot": 0.8}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scores", nargs="*", default=list(SETTINGS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="few steps, to check that the script runs")
    args = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    lines = [
        "# Attention on the alignment task",
        "",
        f"Input {INPUT}, horizon {HORIZON}, batch size 32, lag {LAG}; {args.seeds} seeds, smallest and largest value.",
        "",
        "| score | parameters | steps | attention weight | required | mean absolute error | fit, CPU s |",
        "|---|---|---|---|---|---|---|",
    ]
    errors_by_score: dict[str, list[float]] = {}
    for name in args.scores:
        settings = {**SETTINGS[name], **({"max_steps": 5} if args.quick else {})}
        results = [run(name, settings, seed) for seed in range(1 if args.quick else args.seeds)]
        weights, errors, fit_seconds = map(list, zip(*results, strict=True))
        errors_by_score[name] = errors
        parameters = ", ".join(f"{key}={value}" for key, value in settings.items() if key != "max_steps") or "-"
        weight_range = "-" if name == "none" else f"{min(weights):.3f} to {max(weights):.3f}"
        required = f">= {REQUIRED_WEIGHT[name]}" if name in REQUIRED_WEIGHT else "-"
        lines.append(
            f"| {name} | {parameters} | {settings['max_steps']} | {weight_range} | {required} | "
            f"{min(errors):.3f} to {max(errors):.3f} | {np.median(fit_seconds):.0f} |"
        )
        print(lines[-1], flush=True)
    if {"none", "dot", "general", "additive"} <= set(errors_by_score):
        worst_error = max(max(errors_by_score[name]) for name in ("general", "additive", "dot"))
        ratio = min(errors_by_score["none"]) / worst_error
        scores = "general, additive and dot"
        lines += ["", f"Without attention the error is {ratio:.1f} times that of the worst of {scores} (required: 3)."]
    write("alignment", lines, args.quick or set(args.scores) < set(SETTINGS))
    return 0


def run(name: str, settings: dict[str, Any], seed: int) -> tuple[float, float, float]:
    """Attention weight of the target row, mean absolute error, and CPU seconds of the fit."""
    score: dict[str, Any] = {"attention": None} if name == "none" else {"attention": name, **POINTWISE_ENCODER}
    model = Seq2Seq(horizon=HORIZON, input_size=INPUT, seed=seed, **score, **COMMON, **settings)
    start = time.process_time()
    model.fit(periodic_noise(N_TRAIN, 400, seed=0))
    seconds = time.process_time() - start
    frame = periodic_noise(N_TEST, INPUT + HORIZON, seed=1)
    history, future = frame[frame["ds"] < INPUT], frame[frame["ds"] >= INPUT]
    error = np.abs(model.predict(frame=history)["Seq2Seq"].to_numpy() - future["y"].to_numpy()).mean()
    if name == "none":
        return np.nan, float(error), seconds
    weights = model.explain(frame=history)
    return float(weights.loc[weights["ds"] - weights["lag"] == LAG, "weight"].mean()), float(error), seconds


def periodic_noise(series: int, length: int, seed: int) -> pd.DataFrame:
    """Noise with period LAG."""
    noise = np.random.default_rng(seed).normal(size=(series, LAG))
    y = np.tile(noise, (1, -(-length // LAG)))[:, :length]
    ids = np.repeat(np.arange(series), length)
    return pd.DataFrame({"unique_id": ids, "ds": np.tile(np.arange(length), series), "y": y.reshape(-1)})


if __name__ == "__main__":
    sys.exit(main())
