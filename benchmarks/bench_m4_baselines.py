"""Baselines on all 100,000 series of the M4 competition, through the public API, compared with the official results.

    python benchmarks/bench_m4_baselines.py [group ...]

Requires the M4 data (DEEPFORECAST_DATA). Every cell of the table must agree with the official table to 0.0005,
and the forecasts of Naive2 and the seasonal naive method with those of the organisers on every series;
otherwise the exit status is 1. Official table: Mcompetitions/M4-methods, "Evaluation and Ranks.xlsx"; the total is the
mean over all series.
"""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from deepforecast import Naive, Naive2, SeasonalNaive, datasets, score
from deepforecast.benchmark.published_results import find_published

RESULTS = Path(__file__).parent / "results" / "m4_baselines.md"
GROUPS = ("yearly", "quarterly", "monthly", "weekly", "daily", "hourly")
SETS = (*(f"m4_{name}" for name in GROUPS), "m4")
OFFICIAL_NAMES = {"Naive2": "Naive2", "Naive": "Naive", "SeasonalNaive": "sNaive"}  # names in the official table


def official_row(model: str, metric: str) -> tuple[float | None, ...]:
    """A row of the official table; None for missing values."""
    values = {
        result.dataset: result.value
        for result in published_results
        if result.model == OFFICIAL_NAMES[model] and result.metric == metric.lower()
    }
    return tuple(values.get(name) for name in SETS)


published_results = [result for name in SETS for result in find_published(name)]
ROWS = {(model, metric): official_row(model, metric) for model in OFFICIAL_NAMES for metric in ("sMAPE", "MASE")}
OFFICIAL = {key: row for key, row in ROWS.items() if any(row)}
OFFICIAL_COLUMNS = {"Naive2": "Naive2!", "SeasonalNaive": "sNaive"}
"""Columns of the official forecasts; "!" marks those with the same name as ours."""
TOLERANCE = 0.0005
RELATIVE_TOLERANCE = 1e-6  # data and official forecasts are stored as float32


@dataclass
class Group:
    """Results of one frequency by model: errors of each series, seconds, largest difference from the official forecasts."""

    name: str
    smape: dict[str, np.ndarray] = field(default_factory=dict)
    mase: dict[str, np.ndarray] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    distance: dict[str, float] = field(default_factory=dict)


def main() -> int:
    names = sys.argv[1:] or list(GROUPS)
    start = time.perf_counter()
    groups = [run(name) for name in names]
    lines = report(groups, time.perf_counter() - start)
    print("\n".join(lines))
    differences = disagreements(groups)
    print("\n".join(differences) or "all cells and forecasts agree with the official ones")
    if not differences and list(names) == list(GROUPS):
        RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return 1 if differences else 0


def run(name: str) -> Group:
    """Fit, forecast and score the three baselines on one frequency."""
    card = datasets.card(f"m4_{name}")
    season, horizon = card.season_length, card.horizon
    train, test = (datasets.load(f"m4_{name}", split=split) for split in ("train", "test"))
    group, forecasts = Group(name), test[["unique_id", "ds"]]
    for model in (Naive(), SeasonalNaive(season_length=season), Naive2(season_length=season)):
        start = time.perf_counter()
        forecast = model.fit(train, freq=1).predict(horizon)
        group.seconds[model.name] = time.perf_counter() - start
        forecasts = forecasts.merge(forecast, on=["unique_id", "ds"], validate="1:1")
    start = time.perf_counter()
    scores = score(forecasts, actual=test, train=train, metrics=["smape", "mase"], by="series", season_length=season)
    group.seconds["score"] = time.perf_counter() - start
    assert len(forecasts) == len(test) == card.series * horizon
    assert "left_out" not in scores
    for model, model_scores in scores.groupby("model"):
        group.smape[model], group.mase[model] = model_scores["smape"].to_numpy(), model_scores["mase"].to_numpy()
    official = datasets.table(f"m4_{name}", "official_forecasts")
    compared = forecasts.merge(official, on=["unique_id", "ds"], validate="1:1", suffixes=("", "!"))
    for model, column in OFFICIAL_COLUMNS.items():
        expected = compared[column].to_numpy(np.float64)
        group.distance[model] = float(np.max(np.abs(compared[model].to_numpy() - expected) / np.abs(expected)))
    print(f"m4_{name}: {card.series:,} series, {len(train):,} rows", file=sys.stderr, flush=True)
    return group


def cells(groups: list[Group], model: str, metric: str) -> list[float]:
    """Means over the series of each group, and over all series."""
    errors = [getattr(group, metric.lower())[model] for group in groups]
    return [float(group_errors.mean()) for group_errors in errors] + [float(np.concatenate(errors).mean())]


def disagreements(groups: list[Group]) -> list[str]:
    """Descriptions of the cells and forecasts that differ from the official ones."""
    differences = []
    for (model, metric), row in OFFICIAL.items():
        expected = dict(zip((*GROUPS, "total"), row, strict=True))
        values = dict(zip([*(group.name for group in groups), "total"], cells(groups, model, metric), strict=True))
        if len(groups) < len(GROUPS):
            values.pop("total")
        differences += [
            f"{model} {metric} {name}: {value:.5f}, official {expected[name]}"
            for name, value in values.items()
            if expected[name] is not None and not abs(value - expected[name]) <= TOLERANCE + 1e-9
        ]
    differences += [
        f"{model} on m4_{group.name}: relative difference of {distance:.2g} from the official forecasts"
        for group in groups
        for model, distance in group.distance.items()
        if not distance <= RELATIVE_TOLERANCE
    ]
    return differences


def report(groups: list[Group], seconds: float) -> list[str]:
    """The results page."""
    names = [group.name for group in groups]
    lines = ["# Baselines on M4, compared with the official results", ""]
    lines += [row("", [*names, "total"]), "|---" * (len(names) + 2) + "|"]
    for model in ("Naive2", "Naive", "SeasonalNaive"):
        for metric in ("sMAPE", "MASE"):
            lines.append(row(f"{model} {metric}", [f"{value:.5f}" for value in cells(groups, model, metric)]))
            if (model, metric) in OFFICIAL:
                official = dict(zip((*GROUPS, "total"), OFFICIAL[model, metric], strict=True))
                lines.append(row("*official*", ["–" if official[n] is None else str(official[n]) for n in (*names, "total")]))
    for model in OFFICIAL_COLUMNS:
        distances = [group.distance[model] for group in groups]
        cell_texts = [f"{value:.1e}" for value in (*distances, max(distances))]
        lines.append(row(f"{model}: largest relative difference from the official forecasts", cell_texts))
    for operation in ("Naive", "SeasonalNaive", "Naive2", "score"):
        seconds_by_group = [group.seconds[operation] for group in groups]
        label = "seconds to score all three by series" if operation == "score" else f"{operation}: seconds for fit and predict"
        lines.append(row(label, [f"{value:.3f}" for value in (*seconds_by_group, sum(seconds_by_group))]))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [
        *lines,
        "",
        f"Loading, fitting, forecasting, joining and scoring: {seconds:.1f} s; peak memory {peak:,.0f} MB.",
        f"pandas {pd.__version__}, numpy {np.__version__}; data and official forecasts are stored as float32.",
    ]


def row(head: str, cells: list[str]) -> str:
    return f"| {head} | {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
