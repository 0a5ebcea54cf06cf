"""Transformer with default parameters on ETTh1, with the protocol of the literature: horizon 96, MSE of all test windows.

    python benchmarks/bench_transformer_etth1.py [--inputs 96] [--seeds 1] [--patches] [--quick]

Requires the benchmark data (DEEPFORECAST_DATA). The first 8,640 rows of each series are the training set and determine
the standardisation; one network for all seven series. The next 2,880 rows, which the literature uses for early stopping,
are not used. The 2,880 rows after them are the test part, with a cutoff at every row and no window dropped. Only the
input size and the seed are set. With --patches, patch lengths are compared on the validation rows. Published: Informer
0.865, Autoformer 0.449; required: at most 0.45 with an input of 96 to 336 rows.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
import pandas as pd
from bench_neural_etth1 import HORIZON, TEST, TRAIN, forecast_windows, load_standardised
from common_neural import write

from deepforecast import Transformer

MAX_MSE = 0.45


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", nargs="*", type=int, default=[96])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="few steps, every 24th window, to check that the script runs")
    parser.add_argument("--patches", action="store_true", help="also compare patch lengths, on the validation rows")
    args = parser.parse_args()
    frame = load_standardised()
    train = frame[frame.groupby("unique_id").cumcount() < TRAIN]
    lines = [
        "# Transformer on ETTh1, with default parameters",
        "",
        f"Horizon {HORIZON}, {7 * (TEST - HORIZON + 1):,} windows.",
        "",
        "| input | seed | MSE | MAE | required | fit, CPU s | forecasts, CPU s |",
        "|---|---|---|---|---|---|---|",
    ]
    for input_size in args.inputs:
        for seed in range(args.seeds):
            start = time.process_time()
            model = Transformer(horizon=HORIZON, input_size=input_size, seed=seed, **({"max_steps": 10} if args.quick else {}))
            model.fit(train)
            fitted_at = time.process_time()
            windows = forecast_windows(model, frame, 24 if args.quick else 1, input_size)
            errors = np.concatenate([predicted - actual for predicted, actual in windows])
            seconds = f"{fitted_at - start:.0f} | {time.process_time() - fitted_at:.0f}"
            mse, mae = (errors**2).mean(), abs(errors).mean()
            lines.append(f"| {input_size} | {seed} | {mse:.4f} | {mae:.4f} | <= {MAX_MSE} | {seconds} |")
            print(lines[-1], flush=True)
    if args.patches:
        lines += patch_table(frame, train, args.quick)
    write("transformer_etth1", lines, args.quick)
    return 0


def patch_table(frame: pd.DataFrame, train: pd.DataFrame, quick: bool) -> list[str]:
    """The table of patch lengths, with all other settings equal."""
    lines = ["", "Input 96, d_model 32, 300 steps, batch size 64; every 24th window of the validation rows, two seeds.", ""]
    lines += ["| patch_length | validation MSE | fit, CPU s |", "|---|---|---|"]
    for length in (1, 4, 8, 16):
        errors, seconds = [], []
        for seed in range(1 if quick else 2):
            steps = 3 if quick else 300
            start = time.process_time()
            settings = {"d_model": 32, "batch_size": 64, "max_steps": steps, "seed": seed, "patch_length": length}
            model = Transformer(horizon=HORIZON, input_size=96, **settings).fit(train)
            seconds.append(time.process_time() - start)
            windows = forecast_windows(model, frame, 24, 96, TRAIN)
            errors.append(np.concatenate([predicted - actual for predicted, actual in windows]))
        mse = ", ".join(f"{(seed_errors**2).mean():.4f}" for seed_errors in errors)
        lines.append(f"| {length} | {mse} | {np.mean(seconds):.0f} |")
        print(lines[-1], flush=True)
    return lines


if __name__ == "__main__":
    sys.exit(main())
