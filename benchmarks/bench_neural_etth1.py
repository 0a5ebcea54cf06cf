"""Networks on ETTh1 with the protocol of the literature: horizon 96, MSE of all windows of the test part.

    python benchmarks/bench_neural_etth1.py [--models DLinear ...] [--seeds 3] [--quick]

Requires the benchmark data (DEEPFORECAST_DATA). The series are standardised by their first 8,640 rows; the next 2,880
rows are the validation set; the 2,880 rows after them are the test part, with a cutoff at every row and no window
dropped. One network for all seven series. Zeng et al. (2023) report 0.375 (DLinear) and 0.374 (NLinear), Das et al. (2023)
0.375 (TiDE); the paper of NHITS has no ETTh1.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from typing import Any

import numpy as np
import pandas as pd
from common_neural import write

import deepforecast
from deepforecast import cross_validate, datasets

INPUT, HORIZON = 336, 96
TRAIN, VALIDATION, TEST = 8640, 2880, 2880
REQUIRED = {"DLinear": "0.375 ± 1 %", "NLinear": "0.374 ± 1 %", "NHITS": "0.378 + 2 %", "TiDE": "0.375 + 2 %"}
SETTINGS: dict[str, dict[str, Any]] = {
    "DLinear": {"learning_rate": 5e-3, "batch_size": 224, "max_steps": 2000},
    "NLinear": {"learning_rate": 5e-3, "batch_size": 224, "max_steps": 2000},
    "NHITS": {"learning_rate": 1e-3, "batch_size": 256, "max_steps": 1000, "scaler": "last",
              "n_pool_kernel_size": [16, 8, 1], "n_freq_downsample": [24, 12, 1]},
    "TiDE": {"learning_rate": 1e-3, "batch_size": 256, "max_steps": 1000, "scaler": "revin", "hidden_size": 512,
             "decoder_output_dim": 32, "temporal_decoder_dim": 16, "dropout": 0.5, "normalization": "layer", "calendar": "auto"},
}  # fmt: skip
COMMON: dict[str, Any] = {"head": "point", "loss": "mse", "scaler": "none", "calendar": None, "weight_decay": 0.0,
                        "validation_size": VALIDATION, "validate_every": 100}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=list(REQUIRED), choices=REQUIRED)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="few steps, every 24th window, to check that the script runs")
    args = parser.parse_args()
    frame = load_standardised()
    lines = [
        "# Networks on ETTh1",
        "",
        f"Horizon {HORIZON}, input {INPUT}, {7 * (TEST - HORIZON + 1):,} windows; medians over {args.seeds} seeds.",
        "",
        "| model | MSE | MAE | required | fit, CPU s | forecasts, CPU s | best step |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in args.models:
        results = [run(name, frame, seed, args.quick) for seed in range(1 if args.quick else args.seeds)]
        mse, mae, fit_seconds, predict_seconds, best_step = map(statistics.median, zip(*results, strict=True))
        mse_range = f"{min(result[0] for result in results):.4f} to {max(result[0] for result in results):.4f}"
        lines.append(
            f"| {name} | {mse:.4f} ({mse_range}) | {mae:.4f} | {REQUIRED[name]} | {fit_seconds:.1f} | "
            f"{predict_seconds:.1f} | {best_step:.0f} |"
        )
    write("neural_etth1", [*lines, "", compare_costs(frame, args.quick)], args.quick or args.models != list(REQUIRED))
    return 0


def load_standardised() -> pd.DataFrame:
    """All rows up to the end of the test part, each series standardised by its training rows."""
    parts = [datasets.load("etth1", split=split)[["unique_id", "ds", "y"]] for split in ("train", "test")]
    frame = pd.concat(parts).astype({"unique_id": str, "y": float}).sort_values(["unique_id", "ds"], ignore_index=True)
    y = frame["y"].to_numpy().reshape(7, -1)
    y = (y - y[:, :TRAIN].mean(1, keepdims=True)) / y[:, :TRAIN].std(1, keepdims=True)
    return frame.assign(y=y.reshape(-1))


def make_model(name: str, seed: int, quick: bool) -> Any:
    """Construct a model."""
    settings = {**COMMON, **SETTINGS[name], **({"max_steps": 50} if quick else {})}
    return getattr(deepforecast, name)(horizon=HORIZON, input_size=INPUT, seed=seed, **settings)


def run(name: str, frame: pd.DataFrame, seed: int, quick: bool) -> tuple[float, ...]:
    """MSE, MAE, CPU seconds of fit and of forecasts, and the step with the best validation loss."""
    start = time.process_time()
    training_rows = frame[frame.groupby("unique_id").cumcount() < TRAIN + VALIDATION]
    fitted = make_model(name, seed, quick).fit(training_rows)
    fitted_at = time.process_time()
    stride = 24 if quick else 1
    errors = np.concatenate([predicted - actual for predicted, actual in forecast_windows(fitted, frame, stride)])
    report = fitted.training_report_
    best_step = float(report.loc[report["selected"], "step"].iloc[0])
    seconds = fitted_at - start, time.process_time() - fitted_at
    return float((errors**2).mean()), float(abs(errors).mean()), *seconds, best_step


def forecast_windows(
    fitted: Any, frame: pd.DataFrame, stride: int, size: int = INPUT, first_row: int = TRAIN + VALIDATION
) -> Any:
    """Yield forecasts and actual values of each series, both of shape (windows, horizon).

    Each window is passed to `predict` as a separate series.
    """
    end = first_row + TEST
    for _, column in frame.groupby("unique_id"):
        y, ds = column["y"].to_numpy(), column["ds"].to_numpy()
        windows = np.lib.stride_tricks.sliding_window_view(y[first_row - size : end], size + HORIZON)[::stride]
        times = np.lib.stride_tricks.sliding_window_view(ds[first_row - size : end], size + HORIZON)[::stride, :size]
        ids = np.repeat(np.arange(len(windows)), size)
        histories = pd.DataFrame({"unique_id": ids, "ds": times.reshape(-1), "y": windows[:, :size].reshape(-1)})
        forecast = fitted.predict(frame=histories)[fitted.name].to_numpy()
        yield forecast.reshape(-1, HORIZON), windows[:, size:]


def compare_costs(frame: pd.DataFrame, quick: bool) -> str:
    """The cost of these forecasts with `cross_validate` and a step size of one row, measured on a few cutoffs."""
    windows = 20 if quick else 200
    start = time.process_time()
    model = make_model("DLinear", 0, True).clone(max_steps=1)
    forecasts = cross_validate(model, frame, n_windows=windows, step_size=1, refit=False)
    seconds = time.process_time() - start
    fitted = model.fit(frame[frame.groupby("unique_id").cumcount() < TRAIN + VALIDATION])
    start = time.process_time()
    count = sum(len(predicted) for predicted, _ in forecast_windows(fitted, frame, 24 if quick else 1))
    milliseconds = 1e3 * (time.process_time() - start) / count
    return (
        f"A forecast with cross_validate(step_size=1, refit=False): {1e3 * seconds / (len(forecasts) / HORIZON):.2f} CPU ms "
        f"(including a fit of one step); with windows as series in predict(frame=...): {milliseconds:.2f}."
    )


if __name__ == "__main__":
    sys.exit(main())
