"""Transformer and Seq2Seq on Nord Pool prices with load and wind forecasts as future covariates: MSE of all test windows.

    python benchmarks/bench_attention_epf.py [Transformer] [Seq2Seq] [--seeds 1] [--quick]

Requires the benchmark data (DEEPFORECAST_DATA). The models are trained on the first 36,691 rows, which also
determine the standardisation; input 168, horizon 24. The test part are the last 10,483 rows, with a window at
every row. The settings of the Transformer were chosen on the 5,242 validation rows in between, not on the
test part; those of Seq2Seq were not tuned. Wang et al. (2024, TimeXer) report 0.236; the better of the two
models must be below.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np
import pandas as pd
from common_neural import write

import deepforecast
from deepforecast import datasets

FUTURE_COVARIATES = ["grid_load_forecast", "wind_power_forecast"]
INPUT, HORIZON, TRAIN, TEST = 168, 24, 36_691, 41_933
COMMON: dict[str, Any] = {"head": "point", "loss": "mse", "scaler": "standard", "batch_size": 128}
SETTINGS: dict[str, dict[str, Any]] = {
    "Transformer": {**COMMON, "max_steps": 400, "dropout": 0.1},
    "Seq2Seq": {**COMMON, "max_steps": 350, "dropout": 0.05, "teacher_forcing": "free", "decoding": "greedy"},
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=list(SETTINGS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="few steps, to check that the script runs")
    args = parser.parse_args()
    frame = load_standardised()
    lines = [
        "# Transformer and Seq2Seq on Nord Pool prices",
        "",
        "| model | seed | validation MSE | MSE | MAE | required | fit, CPU s |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in args.models:
        for seed in range(args.seeds):
            start = time.process_time()
            settings = {**SETTINGS[name], **({"max_steps": 3} if args.quick else {})}
            model = getattr(deepforecast, name)(horizon=HORIZON, input_size=INPUT, seed=seed, **settings)
            model.fit(frame[:TRAIN], columns={"future": FUTURE_COVARIATES})
            seconds = time.process_time() - start
            validation_errors = forecast_errors(model, frame[:TEST], TRAIN)
            errors = forecast_errors(model, frame, TEST)
            metrics = f"{(validation_errors**2).mean():.4f} | {(errors**2).mean():.4f} | {abs(errors).mean():.4f}"
            lines.append(f"| {name} | {seed} | {metrics} | < 0.236 | {seconds:.0f} |")
            print(lines[-1], flush=True)
    write("attention_epf", lines, args.quick)
    return 0


def load_standardised() -> pd.DataFrame:
    """All rows, with the price standardised by the training rows."""
    parts = [datasets.load("epf_np", split=split) for split in ("train", "test")]
    frame = pd.concat(parts).sort_values("ds", ignore_index=True)
    y = frame["y"].to_numpy(dtype=float)
    frame = frame.assign(unique_id="np", y=(y - y[:TRAIN].mean()) / y[:TRAIN].std())
    return frame[["unique_id", "ds", "y", *FUTURE_COVARIATES]]


def forecast_errors(model: Any, frame: pd.DataFrame, first_row: int) -> np.ndarray:
    """Forecast errors of all windows from row `first_row` on, of shape (windows, horizon)."""
    predictor, errors = model.predictor(), []
    frame = frame[first_row - INPUT :]
    y, times = windows(frame["y"].to_numpy()), windows(frame["ds"].to_numpy())
    covariates = {name: windows(frame[name].to_numpy(dtype=float)) for name in FUTURE_COVARIATES}
    for first_window in range(0, len(y), 1024):
        batch = slice(first_window, first_window + 1024)
        past = {name: values[batch, :INPUT] for name, values in covariates.items()}
        future = {name: values[batch, INPUT:] for name, values in covariates.items()}
        forecasts = predictor(y[batch, :INPUT], past=past, future=future, last_time=times[batch, INPUT - 1])
        errors.append(forecasts.points - y[batch, INPUT:])
    return np.concatenate(errors)


def windows(values: np.ndarray) -> np.ndarray:
    """All windows of shape (windows, INPUT + HORIZON), one per cutoff."""
    return np.lib.stride_tricks.sliding_window_view(values, INPUT + HORIZON)


if __name__ == "__main__":
    sys.exit(main())
