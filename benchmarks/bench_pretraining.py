"""What pretraining gains: M4 to M1 monthly and M4 to NN5 daily, with 1 %, 10 % and 100 % of the target's series.

    python benchmarks/bench_pretraining.py [--targets "M1 monthly" ...] [--seeds 1 2 3] [--quick]

A small Transformer is pretrained on M4 series of the same frequency by each objective, and fine-tuned on a part of the
series of the target; next to it the same network is trained on that part from scratch, and fitted (supervised) to M4
before. `zero-shot` forecasts without the target's series, where the network can. All forecast the test part of all series
of the target with `predict(frame=...)`. MASE (mean over the series), its mean and range over the seeds, and CPU seconds of
pretraining. Results in results/pretraining.md. Requires the benchmark data (DEEPFORECAST_DATA).
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from common_neural import write

from deepforecast import DecoderOnly, SeasonalNaive, Transformer, datasets, score


class Target(NamedTuple):
    """A data set, the M4 series to pretrain on, and the forecasts."""

    name: str
    source: str
    horizon: int
    season: int
    input_size: int
    patch_length: int


TARGETS = {
    "M1 monthly": Target("m1", "m4_monthly", 18, 12, 48, 6),
    "NN5 daily": Target("nn5_daily", "m4_daily", 56, 7, 112, 7),
}
OBJECTIVES: dict[str, Any] = {
    "masked patches": "masked_patches",
    "masked spans": "masked_spans",
    "next patch": "next_patch",
    "next window": "next_window",
    "permutation order": "permutation_order",
    "masked patches + next window": {"masked_patches": 1.0, "next_window": 0.5},
}
SHARES = (0.01, 0.1, 1.0)
N_SOURCE = 2000  # series of M4
PRETRAINING_STEPS = 600
FINE_TUNING_STEPS = 200


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--targets", nargs="+", choices=TARGETS, default=list(TARGETS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--quick", action="store_true", help="few steps and one seed, to check that the script runs")
    args = parser.parse_args()
    seeds = args.seeds[:1] if args.quick else args.seeds
    scale = 0.02 if args.quick else 1.0
    lines = ["# Pretraining on M4, fine-tuning on other series", "", f"Seeds {seeds}; mean of MASE (lowest to highest).", ""]
    for key in args.targets:
        lines += table(key, seeds, scale)
    write("pretraining", lines, args.quick or set(args.targets) < set(TARGETS) or len(seeds) < 3)
    return 0


def table(key: str, seeds: list[int], scale: float) -> list[str]:
    """The rows of one target."""
    target = TARGETS[key]
    train, test = load(target.name, target.season)
    source, _ = load(target.source, target.season)
    ids = source["unique_id"].unique()
    source = source[source["unique_id"].isin(ids[:: max(len(ids) // N_SOURCE, 1)])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        naive = SeasonalNaive(season_length=target.season, horizon=target.horizon, alias="model").fit(train)
        lines = [f"## {key}: {train['unique_id'].nunique()} series; SeasonalNaive {mase(naive, train, test, target):.3f}", ""]
        columns = ["", *(f"{share:.0%} of the series" for share in SHARES), "zero-shot", "pretraining, CPU s"]
        lines += ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
        for name, models in methods(target, source, scale):
            rows = [row(models(seed), train, test, target, scale) for seed in seeds]
            cells = [cell([values[position] for values in rows]) for position in range(len(SHARES) + 1)]
            lines.append(f"| {name} | " + " | ".join(cells) + f" | {np.mean([values[-1] for values in rows]):.0f} |")
            print(lines[-1], flush=True)
    return [*lines, ""]


def load(name: str, season: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training and test part with time steps counted from the start of each series, as in M4."""
    train, test = (datasets.load(name, split=split)[["unique_id", "ds", "y"]] for split in ("train", "test"))
    if name == "m1":
        info = datasets.table("m1", "info")
        monthly = set(info.loc[info["frequency"] == season, "unique_id"].astype(str))
        train, test = (part[part["unique_id"].astype(str).isin(monthly)] for part in (train, test))
    train, test = (part.assign(unique_id=part["unique_id"].astype(str)).reset_index(drop=True) for part in (train, test))
    lengths = train.groupby("unique_id").size()
    train["ds"] = train.groupby("unique_id").cumcount()
    test["ds"] = test.groupby("unique_id").cumcount() + test["unique_id"].map(lengths)
    return train, test


def methods(target: Target, source: pd.DataFrame, scale: float) -> Iterator[tuple[str, Callable[[int], tuple[Any, float]]]]:
    """Names, and functions from a seed to a model (pretrained or not) and its CPU seconds."""
    steps = max(int(PRETRAINING_STEPS * scale), 2)
    options: dict[str, Any] = {
        "horizon": target.horizon, "input_size": target.input_size, "patch_length": target.patch_length,
        "season_length": target.season, "calendar": None, "alias": "model", "trainer": {"accelerator": "cpu"},
        "sample_by": "series", "batch_size": 128,
    }  # fmt: skip

    def timed(train: Callable[[], Any]) -> tuple[Any, float]:
        started = time.process_time()
        return train(), time.process_time() - started

    transformer = {**options, "stride": target.patch_length}
    yield "Transformer, from scratch", lambda seed: (Transformer(seed=seed, **transformer), 0.0)
    for name, objective in OBJECTIVES.items():
        yield f"Transformer, {name}", lambda seed, objective=objective: timed(
            lambda: Transformer(seed=seed, **transformer).pretrain(source, objective, max_steps=steps)
        )
    yield "Transformer, fitted to M4", lambda seed: timed(
        lambda: Transformer(seed=seed, max_steps=steps, **transformer).fit(source)
    )
    yield "DecoderOnly, from scratch", lambda seed: (DecoderOnly(seed=seed, **options), 0.0)
    yield "DecoderOnly, next patch", lambda seed: timed(
        lambda: DecoderOnly(seed=seed, **options).pretrain(source, "next_patch", max_steps=steps)
    )


def row(prepared: tuple[Any, float], train: pd.DataFrame, test: pd.DataFrame, target: Target, scale: float) -> list[float]:
    """MASE by share of the series and without any (NaN if the network cannot forecast then), and CPU seconds."""
    model, seconds = prepared
    ids, steps = train["unique_id"].unique(), max(int(FINE_TUNING_STEPS * scale), 2)
    rng = np.random.default_rng(model.seed)
    values = []
    for share in SHARES:
        part = train[train["unique_id"].isin(rng.choice(ids, max(round(share * len(ids)), 1), replace=False))]
        if seconds:
            tuned = model.clone()
            tuned.state_ = model.state_
            tuned.fine_tune(part, max_steps=steps)
        else:
            tuned = model.clone(max_steps=steps).fit(part)
        values.append(mase(tuned, train, test, target))
    can_forecast = seconds and model.state_.learned.shared.get("pretraining", {}).get("trains_forecast", True)
    return [*values, mase(model, train, test, target) if can_forecast else np.nan, seconds]


def mase(model: Any, train: pd.DataFrame, test: pd.DataFrame, target: Target) -> float:
    """Mean absolute scaled error of the forecasts after the training part, the mean over the series."""
    forecast = model.predict(frame=train)
    scores = score(forecast, actual=test, train=train, metrics=["mase"], season_length=target.season)
    return float(scores["mase"].iloc[0])


def cell(values: list[float]) -> str:
    """Mean and range of the values over the seeds."""
    if np.isnan(values).any():
        return "–"
    return f"{np.mean(values):.3f} ({min(values):.3f}–{max(values):.3f})"


if __name__ == "__main__":
    sys.exit(main())
