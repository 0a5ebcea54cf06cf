"""Networks on few short series: as they are by default, and with 500 steps of 256 windows, which large panels take.

    python benchmarks/bench_small_panels.py [MODEL ...] [--quick]

AirPassengers, 1, 10 and 60 drawn series of M1 monthly, 10 of its quarterly ones, 3 of NN5; the last horizon and, by
the defaults, of the one before it, on whose like the 8 passes of `models.neural._fit` were chosen. MASE by the season,
interval score at 80 % by the same scale (smaller is better), coverage, CPU seconds of a fit and its forecast. Needs
DEEPFORECAST_DATA.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from beside_neural import write

import deepforecast
from deepforecast import datasets

SETS = [
    ("air_passengers", 1, 12, 12, 1), ("m1_monthly", 1, 18, 12, 4), ("m1_monthly", 10, 18, 12, 2),
    ("m1_monthly", 60, 18, 12, 1), ("m1_quarterly", 10, 8, 4, 1), ("nn5_daily", 3, 28, 7, 1),
]  # fmt: skip
"""Name, series drawn at a time, horizon, season, draws."""
MODELS = ("MLP", "NBEATS", "LSTM")
LONG = {"max_steps": 500, "batch_size": 256}
UNITS = {"m1_monthly": "M", "m1_quarterly": "Q"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--quick", action="store_true", help="the first set alone")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    told = __doc__.split("\n\n")[2].strip()
    lines = ["# Networks on few short series", "", "`python benchmarks/bench_small_panels.py`: " + told, "",
             "| set | series | model | steps | window | MASE | interval score | coverage of 80 % | CPU s |",
             "|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
    pairs: dict[Any, list[Any]] = {}
    for name, count, horizon, season, draws in SETS[: 1 if given.quick else None]:
        panels = [drawn(name, count, seed) for seed in range(draws)]
        for model in ("SeasonalNaive", *given.models):
            ways = {"": {}} if model == "SeasonalNaive" else {"default": {}, "500 of 256": LONG}
            for way, options in ways.items():
                for window, cut in (("before", horizon), ("last", 0))[bool(way and options) :]:
                    tried = getattr(deepforecast, model)(horizon=horizon, **options)
                    seen = np.mean([measured(tried.clone(), one, season, cut) for one in panels], axis=0)
                    if options or not cut:
                        pairs.setdefault((name, count, model), []).append(seen)
                    told = " | ".join(f"{value:.{digits}f}" for value, digits in zip(seen, (3, 2, 2, 1), strict=True))
                    lines.append(f"| {name} | {count} | {model} | {way} | {window} | {told} |")
                    print(lines[-1], flush=True)
    both = np.array([pair for pair in pairs.values() if len(pair) == 2])
    mase, score, _, spent = (both[:, 0] / both[:, 1]).T
    told = f"better interval score in {(score < 1).sum()} of {len(both)} cases and the better MASE in {(mase < 1).sum()}"
    lines += ["", f"On the last horizon the defaults have the {told}, in {np.median(spent):.0%} of the seconds (median)."]
    write("small_panels", lines, given.quick)


def drawn(name: str, count: int, seed: int) -> pd.DataFrame:
    """So many series; integers as months or quarters. Those too short for two windows and two seasons are not drawn."""
    frame = datasets.load(name)[["unique_id", "ds", "y"]]
    sizes = frame.groupby("unique_id").size()
    ids = sizes.index[sizes >= 60 if name == "m1_monthly" else sizes >= 24]
    frame = frame[frame["unique_id"].isin(np.random.default_rng(seed).choice(ids, count, replace=False))]
    if name in UNITS:
        frame = frame.assign(ds=pd.PeriodIndex.from_ordinals(frame["ds"].to_numpy(), freq=UNITS[name]).to_timestamp())
    return frame


def measured(model: Any, frame: pd.DataFrame, season: int, cut: int) -> tuple[float, float, float, float]:
    """MASE, interval score, coverage, CPU seconds, of the last window but for `cut` rows."""
    frame = frame[frame.groupby("unique_id").cumcount(ascending=False) >= cut]
    held = frame.groupby("unique_id").cumcount(ascending=False) < model.horizon
    begin = time.process_time()
    found = model.fit(frame[~held]).predict(level=80)
    spent = time.process_time() - begin
    rows = frame[held].merge(found, on=["unique_id", "ds"])
    y, middle, low, high = (rows[one] for one in ("y", model.name, f"{model.name}-lo-80", f"{model.name}-hi-80"))
    steps = frame[~held].groupby("unique_id")["y"].apply(lambda one: one.diff(season).abs().mean())
    scale = rows["unique_id"].map(steps)
    missed = (low - y).clip(lower=0) + (y - high).clip(lower=0)
    score = (high - low + 10 * missed) / scale
    return ((y - middle).abs() / scale).mean(), score.mean(), ((y >= low) & (y <= high)).mean(), spent


if __name__ == "__main__":
    main()
