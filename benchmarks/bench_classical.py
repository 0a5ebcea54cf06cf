"""The classical models on the M4 and M1 competitions, through the public API, beside the published figures.

    python benchmarks/bench_classical.py [--share 0.05] [--workers 2] [--kept FOLDER] [model ...]

Needs the data folder (DEEPFORECAST_DATA). `--share`: that part of the series of each group, evenly spread (1: all of them).
`--kept`: forecasts and seconds of each model and group stay in that folder, and what is there is not run again. The
last row is the median of AutoETS, AutoCES, AutoARIMA and DynamicTheta, the recipe of the competition's sixth entry.
Published: Mcompetitions/M4-methods, "Evaluation and Ranks.xlsx" (M4), autogluon/fev (M1). OWA is once, on the totals.
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
M4 = ("yearly", "quarterly", "monthly", "weekly", "daily", "hourly")
M1 = {"yearly": (1, 6), "quarterly": (4, 8), "monthly": (12, 18)}


@dataclass
class Group:
    """What came of one group of series: errors of each, and seconds, by model."""

    contest: str
    name: str
    series: int
    errors: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)  # (model, metric) -> one a series
    wall: dict[str, float] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--workers", type=int, default=-1)
    parser.add_argument("--kept", type=Path)
    given = parser.parse_args()
    with joblib.parallel_config(n_jobs=given.workers):
        groups = [run("M1", name, *M1[name], given) for name in M1]
        for name in M4:
            card = datasets.card(f"m4_{name}")
            groups.append(run("M4", name, card.season_length, card.horizon, given))
    lines = report(groups, given)
    print("\n".join(lines))
    if given.share == 1.0 and set(given.models) >= set(MODELS):
        RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")


def frames(contest: str, name: str, season: int, share: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Histories and what followed."""
    if contest == "M4":
        train, test = (datasets.load(f"m4_{name}", split=split) for split in ("train", "test"))
    else:
        train, test = (datasets.load("m1", split=split) for split in ("train", "test"))
        info = datasets.table("m1", "info")
        chosen = info.loc[info["frequency"] == season, "unique_id"].astype(str)
        train, test = (one[one["unique_id"].astype(str).isin(set(chosen))] for one in (train, test))
    ids = train["unique_id"].astype(str).unique()
    kept = set(ids[np.unique(np.linspace(0, len(ids) - 1, max(1, round(share * len(ids)))).astype(int))])
    return tuple(one[one["unique_id"].astype(str).isin(kept)].reset_index(drop=True) for one in (train, test))  # type: ignore[return-value]


def run(contest: str, name: str, season: int, horizon: int, given: Any) -> Group:
    """Fit, forecast and score every model on one group."""
    train, test = frames(contest, name, season, given.share)
    group, forecasts = Group(contest, name, train["unique_id"].nunique()), test[["unique_id", "ds"]]
    for model in given.models:
        found, group.wall[model], group.cpu[model] = forecast(model, group, train, (season, horizon), given.kept)
        forecasts = forecasts.merge(found, on=["unique_id", "ds"], validate="1:1")
        print(f"{contest} {name}: {model} {group.wall[model]:.1f} s", file=sys.stderr, flush=True)
    if set(MEDIAN) <= set(given.models):
        forecasts["Median"] = forecasts[list(MEDIAN)].median(axis=1)
    assert len(forecasts) == len(test)
    scores = score(forecasts, actual=test, train=train, metrics=["smape", "mase"], by="series", season_length=season)
    for model, found in scores.groupby("model"):
        for metric in ("smape", "mase"):
            group.errors[model, metric] = found[metric].to_numpy()
    return group


def forecast(
    model: str, group: Group, train: pd.DataFrame, needs: tuple[int, int], kept: Path | None
) -> tuple[pd.DataFrame, float, float]:
    """One model's forecasts of a group with wall and CPU seconds, made now or found in `kept`."""
    file = None if kept is None else kept / f"{group.contest}_{group.name}_{group.series}_{model}.parquet"
    if file is not None and file.exists():
        return pd.read_parquet(file), *json.loads(file.with_suffix(".json").read_text())
    wall, cpu = time.perf_counter(), time.process_time()
    found = getattr(deepforecast, model)(season_length=needs[0]).fit(train, freq=1).predict(needs[1])
    spent = time.perf_counter() - wall, time.process_time() - cpu
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.with_suffix(".json").write_text(json.dumps(spent))
        found.to_parquet(file)
    return found, *spent


def report(groups: list[Group], given: Any) -> list[str]:
    """Both contests as tables."""
    series = {contest: sum(one.series for one in groups if one.contest == contest) for contest in ("M4", "M1")}
    lines = ["# The classical models on M4 and M1", ""]
    for contest in ("M4", "M1"):
        some = [one for one in groups if one.contest == contest]
        lines += [f"## {contest}: {series[contest]:,} series", ""]
        lines += [row("", [*(one.name for one in some), "total", "OWA"]), "|---" * (len(some) + 3) + "|"]
        for model in dict.fromkeys(model for one in some for model, _ in one.errors):
            totals = {}
            for metric in ("smape", "mase"):
                errors = [one.errors[model, metric] for one in some]
                totals[metric] = float(np.concatenate(errors).mean())
                owa = ""
                if contest == "M4" and metric == "mase":
                    naive2 = {each: published("m4", "Naive2", each) for each in totals}
                    owa = f"{sum(totals[each] / naive2[each] for each in totals) / 2:.4f}"
                found = [f"{one.mean():.3f}" for one in errors]
                lines.append(row(f"{model} {metric}", [*found, f"{totals[metric]:.4f}", owa]))
                names = [*(f"{contest.lower()}_{one.name}" for one in some), contest.lower()]
                known = [published(name, model, metric) for name in names]
                if any(known):
                    lines.append(row("*published*", [*("" if one is None else str(one) for one in known), ""]))
        for what in ("wall", "cpu"):
            for model in given.models:
                spent = [getattr(one, what)[model] for one in some]
                lines.append(row(f"{model}: {what} seconds", [*(f"{one:.2f}" for one in spent), f"{sum(spent):.1f}", ""]))
        lines.append("")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [*lines, f"Fit and predict; {given.workers} workers (-1: one for each CPU); peak memory {peak:,.0f} MB."]


def published(dataset: str, model: str, metric: str) -> float | None:
    """The published figure, if there is one."""
    return next((one.value for one in find_published(dataset, metric=metric) if one.model == model), None)


def row(head: str, found: list[str]) -> str:
    return f"| {head} | {' | '.join(found)} |"


if __name__ == "__main__":
    main()
