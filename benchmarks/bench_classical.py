"""Classical models on the M4 and M1 competitions, through the public API, compared with published results.

    python benchmarks/bench_classical.py [--share 0.05] [--workers 2] [--kept FOLDER] [model ...]

Requires the benchmark data (DEEPFORECAST_DATA). `--share`: fraction of the series of each group, evenly spaced
(1: all). `--kept`: folder that caches forecasts and run times of each model and group. The model "Median" is
the median of AutoETS, AutoCES, AutoARIMA and DynamicTheta, as in the sixth-ranked method of M4. Published
results: Mcompetitions/M4-methods, "Evaluation and Ranks.xlsx" (M4), and autogluon/fev (M1). OWA is computed from
the totals.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd

import deepforecast
from deepforecast import datasets, score
from deepforecast.benchmark.published_results import find_published

RESULTS = Path(__file__).parent / "results" / "classical.md"
MODELS = ("AutoETS", "AutoTheta", "Theta", "DynamicTheta", "AutoCES", "AutoARIMA")
MEDIAN = ("AutoETS", "AutoCES", "AutoARIMA", "DynamicTheta")
M4_GROUPS = ("yearly", "quarterly", "monthly", "weekly", "daily", "hourly")
M1_GROUPS = {"yearly": (1, 6), "quarterly": (4, 8), "monthly": (12, 18)}


@dataclass
class Group:
    """Results of one group of series by model: errors of each series, and run times."""

    competition: str
    name: str
    series: int
    errors: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)  # (model, metric) -> error of each series
    wall: dict[str, float] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--workers", type=int, default=-1)
    parser.add_argument("--kept", type=Path)
    args = parser.parse_args()
    with joblib.parallel_config(n_jobs=args.workers):
        groups = [run("M1", name, *M1_GROUPS[name], args) for name in M1_GROUPS]
        for name in M4_GROUPS:
            card = datasets.card(f"m4_{name}")
            groups.append(run("M4", name, card.season_length, card.horizon, args))
    lines = report(groups, args)
    print("\n".join(lines))
    if args.share == 1.0 and set(args.models) >= set(MODELS):
        RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")


def load_group(competition: str, name: str, season: int, share: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training and test part of a group, restricted to a share of the series."""
    if competition == "M4":
        train, test = (datasets.load(f"m4_{name}", split=split) for split in ("train", "test"))
    else:
        train, test = (datasets.load("m1", split=split) for split in ("train", "test"))
        series_info = datasets.table("m1", "info")
        group_ids = series_info.loc[series_info["frequency"] == season, "unique_id"].astype(str)
        train, test = (part[part["unique_id"].astype(str).isin(set(group_ids))] for part in (train, test))
    ids = train["unique_id"].astype(str).unique()
    sampled_ids = set(ids[np.unique(np.linspace(0, len(ids) - 1, max(1, round(share * len(ids)))).astype(int))])
    train, test = (part[part["unique_id"].astype(str).isin(sampled_ids)].reset_index(drop=True) for part in (train, test))
    return train, test


def run(competition: str, name: str, season: int, horizon: int, args: Any) -> Group:
    """Fit, forecast and score every model on one group."""
    train, test = load_group(competition, name, season, args.share)
    group, forecasts = Group(competition, name, train["unique_id"].nunique()), test[["unique_id", "ds"]]
    for model in args.models:
        model_forecasts, group.wall[model], group.cpu[model] = forecast(model, group, train, (season, horizon), args.kept)
        forecasts = forecasts.merge(model_forecasts, on=["unique_id", "ds"], validate="1:1")
        print(f"{competition} {name}: {model} {group.wall[model]:.1f} s", file=sys.stderr, flush=True)
    if set(MEDIAN) <= set(args.models):
        forecasts["Median"] = forecasts[list(MEDIAN)].median(axis=1)
    assert len(forecasts) == len(test)
    scores = score(forecasts, actual=test, train=train, metrics=["smape", "mase"], by="series", season_length=season)
    for model, model_scores in scores.groupby("model"):
        for metric in ("smape", "mase"):
            group.errors[model, metric] = model_scores[metric].to_numpy()
    return group


def forecast(
    model: str, group: Group, train: pd.DataFrame, season_and_horizon: tuple[int, int], cache: Path | None
) -> tuple[pd.DataFrame, float, float]:
    """Forecasts of one model with wall and CPU seconds, from the cache if they are there."""
    file = None if cache is None else cache / f"{group.competition}_{group.name}_{group.series}_{model}.parquet"
    if file is not None and file.exists():
        return pd.read_parquet(file), *json.loads(file.with_suffix(".json").read_text())
    wall, cpu = time.perf_counter(), time.process_time()
    season_length, horizon = season_and_horizon
    forecasts = getattr(deepforecast, model)(season_length=season_length).fit(train, freq=1).predict(horizon)
    seconds = time.perf_counter() - wall, time.process_time() - cpu
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.with_suffix(".json").write_text(json.dumps(seconds))
        forecasts.to_parquet(file)
    return forecasts, *seconds


def report(groups: list[Group], args: Any) -> list[str]:
    """The results of both competitions as tables."""
    lines = ["# Classical models on M4 and M1", ""]
    for competition in ("M4", "M1"):
        competition_groups = [group for group in groups if group.competition == competition]
        group_names = [group.name for group in competition_groups]
        lines += [f"## {competition}: {sum(group.series for group in competition_groups):,} series", ""]
        lines += [row("", [*group_names, "total", "OWA"]), "|---" * (len(group_names) + 3) + "|"]
        for model in dict.fromkeys(model for group in competition_groups for model, _ in group.errors):
            totals = {}
            for metric in ("smape", "mase"):
                errors = [group.errors[model, metric] for group in competition_groups]
                totals[metric] = float(np.concatenate(errors).mean())
                owa = ""
                if competition == "M4" and metric == "mase":
                    naive2 = {name: published("m4", "Naive2", name) for name in totals}
                    owa = f"{sum(totals[name] / naive2[name] for name in totals) / 2:.4f}"
                means = [f"{group_errors.mean():.3f}" for group_errors in errors]
                lines.append(row(f"{model} {metric}", [*means, f"{totals[metric]:.4f}", owa]))
                datasets_of_groups = [*(f"{competition.lower()}_{name}" for name in group_names), competition.lower()]
                published_values = [published(dataset, model, metric) for dataset in datasets_of_groups]
                if any(published_values):
                    lines.append(row("*published*", [*("" if value is None else str(value) for value in published_values), ""]))
        for clock in ("wall", "cpu"):
            for model in args.models:
                seconds = [getattr(group, clock)[model] for group in competition_groups]
                cells = [*(f"{value:.2f}" for value in seconds), f"{sum(seconds):.1f}", ""]
                lines.append(row(f"{model}: {clock} seconds", cells))
        lines.append("")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [*lines, f"Fit and predict; {args.workers} workers (-1: one per CPU); peak memory {peak:,.0f} MB."]


def published(dataset: str, model: str, metric: str) -> float | None:
    """The published result, if there is one."""
    return next((result.value for result in find_published(dataset, metric=metric) if result.model == model), None)


def row(head: str, cells: list[str]) -> str:
    return f"| {head} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
