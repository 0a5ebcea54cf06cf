"""Networks on few short series: with default training, and with 500 steps and batch size 256 as for large panels.

    python benchmarks/bench_small_panels.py [MODEL ...] [--quick]

AirPassengers; 1, 10 and 60 random series of M1 monthly, 10 of M1 quarterly, 3 of NN5. The last window and, with the
defaults, the window before it; the 8 passes of `models.neural._fit` were chosen on such earlier windows. MASE, interval
score at 80 % with the same scale (lower is better), coverage, CPU seconds of a fit and its forecast. Requires
DEEPFORECAST_DATA.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from common_neural import write

import deepforecast
from deepforecast import datasets

DATASETS = [
    ("air_passengers", 1, 12, 12, 1), ("m1_monthly", 1, 18, 12, 4), ("m1_monthly", 10, 18, 12, 2),
    ("m1_monthly", 60, 18, 12, 1), ("m1_quarterly", 10, 8, 4, 1), ("nn5_daily", 3, 28, 7, 1),
]  # fmt: skip
"""Name, number of series per draw, horizon, season length, number of draws."""
MODELS = ("MLP", "NBEATS", "LSTM")
LONG_TRAINING = {"max_steps": 500, "batch_size": 256}
PERIODS = {"m1_monthly": "M", "m1_quarterly": "Q"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--quick", action="store_true", help="only the first dataset")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    description = __doc__.split("\n\n")[2].strip()
    lines = ["# Networks on few short series", "", "`python benchmarks/bench_small_panels.py`: " + description, "",
             "| dataset | series | model | training | window | MASE | interval score | coverage of 80 % | CPU s |",
             "|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
    pairs: dict[Any, list[Any]] = {}
    for name, count, horizon, season, draws in DATASETS[: 1 if args.quick else None]:
        panels = [draw_series(name, count, seed) for seed in range(draws)]
        for model in ("SeasonalNaive", *args.models):
            variants = {"": {}} if model == "SeasonalNaive" else {"default": {}, "500 steps, batch size 256": LONG_TRAINING}
            for variant, options in variants.items():
                for window, cut in (("second to last", horizon), ("last", 0))[bool(variant and options) :]:
                    untrained = getattr(deepforecast, model)(horizon=horizon, **options)
                    results = np.mean([measure(untrained.clone(), panel, season, cut) for panel in panels], axis=0)
                    if options or not cut:
                        pairs.setdefault((name, count, model), []).append(results)
                    cells = " | ".join(f"{value:.{digits}f}" for value, digits in zip(results, (3, 2, 2, 1), strict=True))
                    lines.append(f"| {name} | {count} | {model} | {variant} | {window} | {cells} |")
                    print(lines[-1], flush=True)
    paired = np.array([pair for pair in pairs.values() if len(pair) == 2])
    mase, score, _, second_ratios = (paired[:, 0] / paired[:, 1]).T
    scores = (
        f"the better interval score in {(score < 1).sum()} of {len(paired)} cases and the better MASE in {(mase < 1).sum()}"
    )
    share = f"{np.median(second_ratios):.0%} of the seconds (median)"
    lines += ["", f"On the last window, the defaults have {scores}, in {share}."]
    write("small_panels", lines, args.quick)


def draw_series(name: str, count: int, seed: int) -> pd.DataFrame:
    """Random series that are long enough for two windows and two seasons, with integer time as months or quarters."""
    frame = datasets.load(name)[["unique_id", "ds", "y"]]
    sizes = frame.groupby("unique_id").size()
    ids = sizes.index[sizes >= 60 if name == "m1_monthly" else sizes >= 24]
    frame = frame[frame["unique_id"].isin(np.random.default_rng(seed).choice(ids, count, replace=False))]
    if name in PERIODS:
        frame = frame.assign(ds=pd.PeriodIndex.from_ordinals(frame["ds"].to_numpy(), freq=PERIODS[name]).to_timestamp())
    return frame


def measure(model: Any, frame: pd.DataFrame, season: int, n_cut: int) -> tuple[float, float, float, float]:
    """MASE, interval score, coverage and CPU seconds of the last window before the last `n_cut` rows."""
    frame = frame[frame.groupby("unique_id").cumcount(ascending=False) >= n_cut]
    is_test = frame.groupby("unique_id").cumcount(ascending=False) < model.horizon
    start = time.process_time()
    forecasts = model.fit(frame[~is_test]).predict(level=80)
    seconds = time.process_time() - start
    rows = frame[is_test].merge(forecasts, on=["unique_id", "ds"])
    y, point, low, high = (rows[column] for column in ("y", model.name, f"{model.name}-lo-80", f"{model.name}-hi-80"))
    naive_errors = frame[~is_test].groupby("unique_id")["y"].apply(lambda y: y.diff(season).abs().mean())
    scale = rows["unique_id"].map(naive_errors)
    violation = (low - y).clip(lower=0) + (y - high).clip(lower=0)
    score = (high - low + 10 * violation) / scale
    return ((y - point).abs() / scale).mean(), score.mean(), ((y >= low) & (y <= high)).mean(), seconds


if __name__ == "__main__":
    main()
