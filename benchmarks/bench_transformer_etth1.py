"""`Transformer` as it comes on ETTh1 as the literature scores it: horizon 96, mean squared error of every test window.

    python benchmarks/bench_transformer_etth1.py [--inputs 96] [--seeds 1] [--patches] [--quick]

Needs the data folder (DEEPFORECAST_DATA). Columns are standardised by their first 8,640 rows, from which alone is learned, one
network for all seven columns; the 2,880 rows after them, which the literature stops by, are not looked at. Each row of the
2,880 after these is a cutoff as far as its horizon is known, none dropped. Nothing but the window and the seed is said: every
other parameter is the default. With --patches also what these do, on the validation rows. Published: Informer 0.865, Autoformer
0.449; asked: at most 0.45 with windows of 96 to 336 rows.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
import pandas as pd
from bench_neural_etth1 import HORIZON, TEST, TRAIN, forecasts, standardised
from beside_neural import write

from deepforecast import Transformer

ASKED = 0.45


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", nargs="*", type=int, default=[96])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="few steps, every 24th window: only that it runs")
    parser.add_argument("--patches", action="store_true", help="also what patches do, on the validation rows")
    given = parser.parse_args()
    frame = standardised()
    train = frame[frame.groupby("unique_id").cumcount() < TRAIN]
    lines = [
        "# Transformer on ETTh1, at its defaults",
        "",
        f"Horizon {HORIZON}, {7 * (TEST - HORIZON + 1):,} windows.",
        "",
        "| window | seed | MSE | MAE | asked | fit, CPU s | forecasts, CPU s |",
        "|---|---|---|---|---|---|---|",
    ]
    for rows in given.inputs:
        for seed in range(given.seeds):
            start = time.process_time()
            model = Transformer(horizon=HORIZON, input_size=rows, seed=seed, **({"max_steps": 10} if given.quick else {}))
            model.fit(train)
            middle = time.process_time()
            errors = np.concatenate([told - true for told, true in forecasts(model, frame, 24 if given.quick else 1, rows)])
            spent = f"{middle - start:.0f} | {time.process_time() - middle:.0f}"
            lines.append(f"| {rows} | {seed} | {(errors**2).mean():.4f} | {abs(errors).mean():.4f} | <= {ASKED} | {spent} |")
            print(lines[-1], flush=True)
    if given.patches:
        lines += patches(frame, train, given.quick)
    write("transformer_etth1", lines, given.quick)
    return 0


def patches(frame: pd.DataFrame, train: pd.DataFrame, quick: bool) -> list[str]:
    """Rows one by one beside patches of them, all else alike."""
    lines = ["", "Window 96, d_model 32, 300 steps of 64 windows; every 24th window of the validation rows, two seeds.", ""]
    lines += ["| patch_length | validation MSE | fit, CPU s |", "|---|---|---|"]
    for length in (1, 4, 8, 16):
        errors, seconds = [], []
        for seed in range(1 if quick else 2):
            steps = 3 if quick else 300
            start = time.process_time()
            told = {"d_model": 32, "batch_size": 64, "max_steps": steps, "seed": seed, "patch_length": length}
            model = Transformer(horizon=HORIZON, input_size=96, **told).fit(train)
            seconds.append(time.process_time() - start)
            errors.append(np.concatenate([said - true for said, true in forecasts(model, frame, 24, 96, TRAIN)]))
        mse = ", ".join(f"{(one**2).mean():.4f}" for one in errors)
        lines.append(f"| {length} | {mse} | {np.mean(seconds):.0f} |")
        print(lines[-1], flush=True)
    return lines


if __name__ == "__main__":
    sys.exit(main())
