"""N-BEATS with default parameters on all yearly, quarterly and monthly series of M4, through the public API.

    python benchmarks/bench_neural_m4.py [--frequencies yearly ...] [--sample 5000] [--kept FOLDER] [--ablate] [--model NHITS] [--quick]

Requires the benchmark data (DEEPFORECAST_DATA). One model per frequency; only the season length is set. `--sample`:
number of series per frequency, evenly spaced. `--ablate`: change one default at a time and score on the last horizon of
the training part, which is not used in the fit. (Window, learning rate and steps were chosen on the test part, see the
results.) `--kept`: folder that caches results. wQL: twice the sum of the pinball losses of ten quantiles, divided by the
sum of the absolute values, for each series. Mean and standard deviation over seeds. A run replaces the
first table of results/neural_m4.md and keeps the rest of that page.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common_neural import HERE, Measurement, mean_and_spread, write

import deepforecast
from deepforecast import datasets, score

FREQUENCIES = {"yearly": (6, 1), "quarterly": (8, 4), "monthly": (18, 12)}  # horizon and season
REQUIRED = {"yearly": (13.30, 3.00, 60), "quarterly": (9.80, 1.125, 60), "monthly": (12.55, 0.905, 60)}  # sMAPE, MASE, CPU s
PUBLISHED = {"yearly": "13.4; 13.18/2.98", "quarterly": "10.1; 9.68/1.118", "monthly": "12.7; 12.13/0.884"}
QUANTILES = [0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95]
KEYS = ["unique_id", "ds", "y"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frequencies", nargs="*", default=list(FREQUENCIES), choices=FREQUENCIES)
    parser.add_argument("--sample", type=int, help="number of series of each frequency (default: all)")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--ablate", action="store_true", help="change one default at a time, on the end of the training part")
    parser.add_argument("--changes", type=json.loads, help="with --ablate: JSON list of parameters to change")
    parser.add_argument("--model", default="NBEATS", help="network to measure; only NBEATS is written to the results")
    parser.add_argument("--kept", type=Path)
    parser.add_argument("--quick", action="store_true", help="500 series, 20 steps, to check that the script runs")
    args = parser.parse_args()
    if args.quick:
        args.sample = 500
    is_partial = args.quick or args.sample is not None or args.changes is not None or set(args.frequencies) < set(FREQUENCIES)
    is_partial = is_partial or args.model != "NBEATS"
    if args.ablate:
        lines = [f"# {args.model} on M4, one default changed at a time", "", *ablation_table(args)]
        write("neural_m4_ablation", lines, is_partial)
    else:
        table = test_table(args)
        if not is_partial:
            replace_first_table(Path(HERE, "results", "neural_m4.md"), table)
    return 0


def test_table(args: Any) -> list[str]:
    """The table of the default model on the test part, over seeds."""
    lines = [
        "| series | seeds | sMAPE | MASE | required | wQL | seconds | CPU seconds | required | published |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in args.frequencies:
        results = [run(name, {"seed": seed}, args, held_out=False) for seed in args.seeds]
        values = {key: [result[key] for result in results] for key in results[0]}
        required_smape, required_mase, max_seconds = REQUIRED[name]
        lines.append(
            f"| {name}, {values['series'][0]:,} | {len(results)} | {mean_and_spread(values['smape'], 2)} | "
            f"{mean_and_spread(values['mase'], 3)} | {required_smape}/{required_mase} | "
            f"{mean_and_spread(values['weighted_quantile_loss'], 4)} | {statistics.mean(values['wall']):.0f} | "
            f"{mean_and_spread(values['cpu'], 0)} | {max_seconds} | {PUBLISHED[name]} |"
        )
        print(lines[-1], flush=True)
    return lines


def replace_first_table(path: Path, table: list[str]) -> None:
    """Replace the first table of a results file; the text around it, with other tables, is kept."""
    text = path.read_text(encoding="utf-8")
    path.write_text(re.sub(r"(?m)(^\|.*\n)+", lambda _: "\n".join([*table, ""]), text, count=1), encoding="utf-8")


def ablation_table(args: Any) -> list[str]:
    """The table of models with one default changed, on held-out windows."""
    lines = [
        f"The last horizon of the training part{f', {args.sample:,} series' if args.sample else ''}.",
        "",
        "| series | changed | sMAPE | MASE | wQL | CPU seconds |",
        "|---|---|---|---|---|---|",
    ]
    for name in args.frequencies:
        for change in args.changes or changes(name):
            result = run(name, change, args, held_out=True)
            changed = ", ".join(f"{key}={value!r}" for key, value in change.items()) or "nothing"
            wql = f"{result['weighted_quantile_loss']:.4f}" if "weighted_quantile_loss" in result else "–"
            lines.append(f"| {name} | {changed} | {result['smape']:.3f} | {result['mase']:.4f} | {wql} | {result['cpu']:.0f} |")
            print(lines[-1], flush=True)
    return lines


def changes(name: str) -> list[dict[str, Any]]:
    """The changes to the defaults."""
    horizon, _ = FREQUENCIES[name]
    return [
        {},
        {"sample_by": "windows"},
        {"sample_by": "series"},
        {"recent_windows": 2 * horizon},
        {"scaler": "standard"},
        {"scaler": "mean_abs"},
        {"input_size": 2 * horizon},
        {"input_size": 3 * horizon},
        {"head": "point", "loss": "mae"},
        {"head": "point", "loss": "owa"},
        {"lr_schedule": "constant"},
        {"ema_decay": 0.99},
        {"learning_rate": 1.5e-3},
        {"weight_decay": 1e-2},
    ]


def run(name: str, change: dict[str, Any], args: Any, held_out: bool) -> Measurement:
    """Errors and run time of one model on one frequency, from the cache if they are there."""
    if args.quick:
        change = {**change, "max_steps": 20}
    file_name = f"{args.model}-{name}{'-held' * held_out}-{args.sample or 'all'}-{json.dumps(change)}.json"
    cache_file = None if args.kept is None else args.kept / file_name
    if cache_file is not None and cache_file.exists():
        result: Measurement = json.loads(cache_file.read_text(encoding="utf-8"))
        return result
    horizon, season = FREQUENCIES[name]
    train, test = read(name, args.sample, held_out)
    wall, cpu = time.perf_counter(), time.process_time()
    is_point_model = change.get("head") == "point"
    model = getattr(deepforecast, args.model)(horizon=horizon, season_length=season, **change).fit(train)
    forecasts = model.predict(**({} if is_point_model else {"quantiles": QUANTILES}))
    result = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "series": int(train["unique_id"].nunique())}
    metrics = ["smape", "mase", *([] if is_point_model else ["weighted_quantile_loss"])]
    scores = score(forecasts, actual=test, train=train, metrics=metrics, season_length=season).iloc[0]
    result |= {name: float(scores[name]) for name in metrics}
    if cache_file is not None:
        cache_file.parent.mkdir(parents=True, exist_ok=True)
        cache_file.write_text(json.dumps(result), encoding="utf-8")
    return result


def read(name: str, sample: int | None, held_out: bool) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training and test part; with `held_out`, the last horizon of the training part is the test part."""
    train, test = (datasets.load(f"m4_{name}", split=split)[KEYS] for split in ("train", "test"))
    if held_out:
        is_held_out = train.groupby("unique_id", observed=True).cumcount(ascending=False) < FREQUENCIES[name][0]
        train, test = train[~is_held_out], train[is_held_out]
    if sample is not None:
        ids = train["unique_id"].unique()
        sampled_ids = ids[np.linspace(0, len(ids) - 1, min(sample, len(ids))).astype(int)]
        train, test = (part[part["unique_id"].isin(sampled_ids)] for part in (train, test))
    return tuple(part.assign(unique_id=part["unique_id"].astype(str)) for part in (train, test))  # type: ignore[return-value]


if __name__ == "__main__":
    if os.environ.get("OMP_WAIT_POLICY") is None:
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    sys.exit(main())
