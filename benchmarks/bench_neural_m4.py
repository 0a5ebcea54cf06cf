"""N-BEATS at its defaults on all yearly, quarterly and monthly series of M4, through the public API.

    python benchmarks/bench_neural_m4.py [--frequencies yearly ...] [--sample 5000] [--kept FOLDER] [--ablate] [--quick]

Needs the data folder (DEEPFORECAST_DATA). One model a frequency, told nothing but the season. `--sample`: so many series of
each, evenly spread. `--ablate`: one default changed at a time, scored on the last horizon of the training part, which is cut
off before the fit: what defaults are chosen by; the test part is not looked at. `--kept`: what was run stays in that folder and
is not run again. wQL: twice the pinball loss of ten quantiles, its sum over the sum of the values' sizes, series by series.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from beside_neural import Said, write

from deepforecast import NBEATS, datasets, score

FREQUENCIES = {"yearly": (6, 1), "quarterly": (8, 4), "monthly": (18, 12)}  # horizon and season
ASKED = {"yearly": (13.29, 2.99, 60), "quarterly": (9.72, 1.110, 90), "monthly": (12.30, 0.888, 150)}  # sMAPE, MASE, seconds
PUBLISHED = {"yearly": "13.4; 13.18/2.98", "quarterly": "10.1; 9.68/1.118", "monthly": "12.7; 12.13/0.884"}
QUANTILES = [0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95]
KEYS = ["unique_id", "ds", "y"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frequencies", nargs="*", default=list(FREQUENCIES), choices=FREQUENCIES)
    parser.add_argument("--sample", type=int, help="so many series of each frequency; all without")
    parser.add_argument("--ablate", action="store_true", help="one default changed at a time, on the end of the training part")
    parser.add_argument("--changes", type=json.loads, help="with --ablate: a JSON list of parameters, instead of the usual")
    parser.add_argument("--kept", type=Path)
    parser.add_argument("--quick", action="store_true", help="500 series, 20 steps: only that it runs")
    given = parser.parse_args()
    if given.quick:
        given.sample = 500
    lines = [f"# N-BEATS on M4{', one default changed at a time' if given.ablate else ''}", ""]
    lines += ablation(given) if given.ablate else tested(given)
    part = given.quick or given.sample is not None or given.changes is not None or set(given.frequencies) < set(FREQUENCIES)
    write("neural_m4_ablation" if given.ablate else "neural_m4", lines, part)
    return 0


def tested(given: Any) -> list[str]:
    """Defaults on the test part, as a table."""
    lines = [
        "Published: N-BEATS, a single run (sMAPE); the competition's winner (sMAPE/MASE).",
        "",
        "| series | sMAPE | MASE | asked | wQL | seconds | CPU seconds | asked | published |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in given.frequencies:
        said = run(name, {}, given, held_out=False)
        smape, mase, seconds = ASKED[name]
        lines.append(
            f"| {name}, {said['series']:,} | {said['smape']:.2f} | {said['mase']:.3f} | {smape}/{mase} | "
            f"{said['weighted_quantile_loss']:.4f} | {said['wall']:.0f} | {said['cpu']:.0f} | {seconds} | {PUBLISHED[name]} |"
        )
        print(lines[-1], flush=True)
    return lines


def ablation(given: Any) -> list[str]:
    """The same with one default changed, on held-out windows."""
    lines = [
        f"The last horizon of the training part{f', {given.sample:,} series' if given.sample else ''}.",
        "",
        "| series | changed | sMAPE | MASE | wQL | CPU seconds |",
        "|---|---|---|---|---|---|",
    ]
    for name in given.frequencies:
        for change in given.changes or changes(name):
            said = run(name, change, given, held_out=True)
            told = ", ".join(f"{key}={value!r}" for key, value in change.items()) or "nothing"
            wql = f"{said['weighted_quantile_loss']:.4f}" if "weighted_quantile_loss" in said else "–"
            lines.append(f"| {name} | {told} | {said['smape']:.3f} | {said['mase']:.4f} | {wql} | {said['cpu']:.0f} |")
            print(lines[-1], flush=True)
    return lines


def changes(name: str) -> list[dict[str, Any]]:
    """What is tried: the parts of the recipe, each taken away or replaced."""
    horizon, _ = FREQUENCIES[name]
    usual = NBEATS(horizon=horizon)
    other = "windows" if usual.sample_by == "series" else "series"
    return [
        {},
        {"sample_by": other},
        {"recent_windows": 2 * horizon},
        {"scaler": "standard"},
        {"scaler": "mean_abs"},
        {"input_size": 2 * horizon},
        {"input_size": 3 * horizon},
        {"head": "point", "loss": "mae"},
        {"head": "point", "loss": "owa"},
        {"lr_schedule": "constant"},
        {"ema_decay": 0.99},
        {"learning_rate": 3e-3},
        {"weight_decay": 1e-2},
    ]


def run(name: str, change: dict[str, Any], given: Any, held_out: bool) -> Said:
    """One model on one frequency: its errors and seconds."""
    if given.quick:
        change = {**change, "max_steps": 20}
    title = f"{name}{'-held' * held_out}-{given.sample or 'all'}-{json.dumps(change)}.json"
    kept = None if given.kept is None else given.kept / title
    if kept is not None and kept.exists():
        found: Said = json.loads(kept.read_text(encoding="utf-8"))
        return found
    horizon, season = FREQUENCIES[name]
    train, test = read(name, given.sample, held_out)
    wall, cpu = time.perf_counter(), time.process_time()
    points = change.get("head") == "point"
    model = NBEATS(horizon=horizon, season_length=season, **change).fit(train)
    said = model.predict(**({} if points else {"quantiles": QUANTILES}))
    found = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "series": int(train["unique_id"].nunique())}
    metrics = ["smape", "mase", *([] if points else ["weighted_quantile_loss"])]
    table = score(said, actual=test, train=train, metrics=metrics, season_length=season).iloc[0]
    found |= {name: float(table[name]) for name in metrics}
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(found), encoding="utf-8")
    return found


def read(name: str, sample: int | None, held_out: bool) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Histories and what followed, or the last horizon of the histories instead."""
    train, test = (datasets.load(f"m4_{name}", split=split)[KEYS] for split in ("train", "test"))
    if held_out:
        end = train.groupby("unique_id", observed=True).cumcount(ascending=False) < FREQUENCIES[name][0]
        train, test = train[~end], train[end]
    if sample is not None:
        names = train["unique_id"].unique()
        chosen = names[np.linspace(0, len(names) - 1, min(sample, len(names))).astype(int)]
        train, test = (one[one["unique_id"].isin(chosen)] for one in (train, test))
    return tuple(one.assign(unique_id=one["unique_id"].astype(str)) for one in (train, test))  # type: ignore[return-value]


if __name__ == "__main__":
    if os.environ.get("OMP_WAIT_POLICY") is None:
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    sys.exit(main())
