"""DLinear and NLinear on ETTh1 as the literature scores them: horizon 96, mean squared error of every window of the test part.

    python benchmarks/bench_neural_etth1.py [--seeds 3] [--quick]

Needs the data folder (DEEPFORECAST_DATA). Columns are standardised by their first 8,640 rows; 2,880 rows choose the weights;
the windows that end in the 2,880 rows after them are forecast, each row a cutoff, none dropped. Input 336, one network for all
seven columns. Zeng et al. 2023 have 0.375 (DLinear) and 0.374 (NLinear).
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from typing import Any

import numpy as np
import pandas as pd
from beside_neural import write

import deepforecast
from deepforecast import cross_validate, datasets

INPUT, HORIZON = 336, 96
TRAIN, VALIDATION, TEST = 8640, 2880, 2880
ASKED = {"DLinear": 0.375, "NLinear": 0.374}
SETTINGS: dict[str, dict[str, Any]] = {
    "DLinear": {"learning_rate": 5e-3, "batch_size": 224, "max_steps": 2000},
    "NLinear": {"learning_rate": 5e-3, "batch_size": 224, "max_steps": 2000},
}
BOTH: dict[str, Any] = {"head": "point", "loss": "mse", "scaler": "none", "calendar": None, "weight_decay": 0.0,
                        "validation_size": VALIDATION, "validate_every": 100}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="few steps, every 24th window: only that it runs")
    given = parser.parse_args()
    frame = standardised()
    lines = [
        "# DLinear and NLinear on ETTh1",
        "",
        f"Horizon {HORIZON}, input {INPUT}, {7 * (TEST - HORIZON + 1):,} windows; over {given.seeds} seeds.",
        "",
        "| model | MSE | MAE | asked | fit, CPU s | forecasts, CPU s | step kept |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in ASKED:
        found = [run(name, frame, seed, given.quick) for seed in range(1 if given.quick else given.seeds)]
        mse, mae, fit, ahead, kept = (statistics.median(one) for one in zip(*found, strict=True))
        spread = f"{min(one[0] for one in found):.4f} to {max(one[0] for one in found):.4f}"
        asked = f"{ASKED[name]} ± 1 %"
        lines.append(f"| {name} | {mse:.4f} ({spread}) | {mae:.4f} | {asked} | {fit:.1f} | {ahead:.1f} | {kept:.0f} |")
    write("neural_etth1", [*lines, "", compared(frame, given.quick)], given.quick)
    return 0


def standardised() -> pd.DataFrame:
    """The rows up to the end of the test part, each column by its train rows."""
    parts = [datasets.load("etth1", split=split)[["unique_id", "ds", "y"]] for split in ("train", "test")]
    frame = pd.concat(parts).astype({"unique_id": str, "y": float}).sort_values(["unique_id", "ds"], ignore_index=True)
    y = frame["y"].to_numpy().reshape(7, -1)
    y = (y - y[:, :TRAIN].mean(1, keepdims=True)) / y[:, :TRAIN].std(1, keepdims=True)
    return frame.assign(y=y.reshape(-1))


def model(name: str, seed: int, quick: bool) -> Any:
    """Through the public API alone."""
    told = {**BOTH, **SETTINGS[name], **({"max_steps": 50} if quick else {})}
    return getattr(deepforecast, name)(horizon=HORIZON, input_size=INPUT, seed=seed, **told)


def run(name: str, frame: pd.DataFrame, seed: int, quick: bool) -> tuple[float, ...]:
    """MSE, MAE, seconds of fit and of forecasts, the step that was kept."""
    start = time.process_time()
    before = frame[frame.groupby("unique_id").cumcount() < TRAIN + VALIDATION]
    fitted = model(name, seed, quick).fit(before)
    middle = time.process_time()
    errors = np.concatenate([told - true for told, true in forecasts(fitted, frame, 24 if quick else 1)])
    report = fitted.training_report_
    kept = float(report.loc[report["kept"], "step"].iloc[0])
    return float((errors**2).mean()), float(abs(errors).mean()), middle - start, time.process_time() - middle, kept


def forecasts(fitted: Any, frame: pd.DataFrame, stride: int, size: int = INPUT, begin: int = TRAIN + VALIDATION) -> Any:
    """Column by column: what is said after each cutoff, (windows, horizon), and what came. A window is a series of its own."""
    end = begin + TEST
    for _, column in frame.groupby("unique_id"):
        y, ds = column["y"].to_numpy(), column["ds"].to_numpy()
        views = np.lib.stride_tricks.sliding_window_view(y[begin - size : end], size + HORIZON)[::stride]
        stamps = np.lib.stride_tricks.sliding_window_view(ds[begin - size : end], size + HORIZON)[::stride, :size]
        ids = np.repeat(np.arange(len(views)), size)
        asked = pd.DataFrame({"unique_id": ids, "ds": stamps.reshape(-1), "y": views[:, :size].reshape(-1)})
        said = fitted.predict(frame=asked)[fitted.name].to_numpy()
        yield said.reshape(-1, HORIZON), views[:, size:]


def compared(frame: pd.DataFrame, quick: bool) -> str:
    """What the same forecasts cost through cross_validate with a step of one row: of a few cutoffs."""
    windows = 20 if quick else 200
    start = time.process_time()
    few = model("DLinear", 0, True).clone(max_steps=1)
    found = cross_validate(few, frame, n_windows=windows, step_size=1, refit=False)
    spent = time.process_time() - start
    fitted = few.fit(frame[frame.groupby("unique_id").cumcount() < TRAIN + VALIDATION])
    start = time.process_time()
    count = sum(len(said) for said, _ in forecasts(fitted, frame, 24 if quick else 1))
    each = 1e3 * (time.process_time() - start) / count
    return (
        f"A forecast through cross_validate(step_size=1, refit=False): {1e3 * spent / (len(found) / HORIZON):.2f} CPU ms (its "
        f"fit of one step included); as series of their own in predict(frame=...): {each:.2f}."
    )


if __name__ == "__main__":
    sys.exit(main())
