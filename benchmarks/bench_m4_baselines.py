"""The baselines against the official table of the M4 competition, on all 100,000 series, through the public API.

    python benchmarks/bench_m4_baselines.py [group ...]

Needs the M4 data in the data folder (DEEPFORECAST_DATA). Every cell of the table below has to agree to 0.0005, and Naive2 and
the seasonal naive with the organisers' own forecasts file, on every series. Exit status 1 otherwise.
Official table: Mcompetitions/M4-methods, "Evaluation and Ranks.xlsx"; total: the mean over all series.
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
CALLED = {"Naive2": "Naive2", "Naive": "Naive", "SeasonalNaive": "sNaive"}  # by the official table


def official(model: str, metric: str) -> tuple[float | None, ...]:
    """A row of the official table; None where it has no figure."""
    held = {one.dataset: one.value for one in every if one.model == CALLED[model] and one.metric == metric.lower()}
    return tuple(held.get(name) for name in SETS)


every = [one for name in SETS for one in find_published(name)]
ROWS = {(model, metric): official(model, metric) for model in CALLED for metric in ("sMAPE", "MASE")}
OFFICIAL = {key: row for key, row in ROWS.items() if any(row)}
THEIRS = {"Naive2": "Naive2!", "SeasonalNaive": "sNaive"}  # columns of the organisers' file, one of a name of ours
TOLERANCE = 0.0005
SAME = 1e-6  # relative: both the data and the official forecasts are stored as float32


@dataclass
class Group:
    """What came of one frequency, by model: errors of each series, seconds, the furthest from the official forecasts."""

    name: str
    smape: dict[str, np.ndarray] = field(default_factory=dict)
    mase: dict[str, np.ndarray] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    distance: dict[str, float] = field(default_factory=dict)


def main() -> int:
    chosen = sys.argv[1:] or list(GROUPS)
    begin = time.perf_counter()
    groups = [run(name) for name in chosen]
    lines = report(groups, time.perf_counter() - begin)
    print("\n".join(lines))
    wrong = disagreements(groups)
    print("\n".join(wrong) or "every cell and every official forecast agrees")
    if not wrong and list(chosen) == list(GROUPS):
        RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return 1 if wrong else 0


def run(name: str) -> Group:
    """Fit, forecast and score the three baselines on one frequency."""
    card = datasets.card(f"m4_{name}")
    season, horizon = card.season_length, card.horizon
    train, test = (datasets.load(f"m4_{name}", split=split) for split in ("train", "test"))
    group, forecasts = Group(name), test[["unique_id", "ds"]]
    for model in (Naive(), SeasonalNaive(season_length=season), Naive2(season_length=season)):
        started = time.perf_counter()
        forecast = model.fit(train, freq=1).predict(horizon)
        group.seconds[model.name] = time.perf_counter() - started
        forecasts = forecasts.merge(forecast, on=["unique_id", "ds"], validate="1:1")
    started = time.perf_counter()
    scores = score(forecasts, actual=test, train=train, metrics=["smape", "mase"], by="series", season_length=season)
    group.seconds["score"] = time.perf_counter() - started
    assert len(forecasts) == len(test) == card.series * horizon
    assert "left_out" not in scores
    for model, found in scores.groupby("model"):
        group.smape[model], group.mase[model] = found["smape"].to_numpy(), found["mase"].to_numpy()
    official = datasets.table(f"m4_{name}", "official_forecasts")
    known = forecasts.merge(official, on=["unique_id", "ds"], validate="1:1", suffixes=("", "!"))
    for model, theirs in THEIRS.items():
        expected = known[theirs].to_numpy(np.float64)
        group.distance[model] = float(np.max(np.abs(known[model].to_numpy() - expected) / np.abs(expected)))
    print(f"m4_{name}: {card.series:,} series, {len(train):,} rows", file=sys.stderr, flush=True)
    return group


def cells(groups: list[Group], model: str, metric: str) -> list[float]:
    """The mean over the series of each group, then over all series."""
    errors = [getattr(group, metric.lower())[model] for group in groups]
    return [float(found.mean()) for found in errors] + [float(np.concatenate(errors).mean())]


def disagreements(groups: list[Group]) -> list[str]:
    """Every cell that is not the official one, every forecast that is not the organisers'."""
    wrong = []
    for (model, metric), row in OFFICIAL.items():
        expected = dict(zip((*GROUPS, "total"), row, strict=True))
        found = dict(zip([*(group.name for group in groups), "total"], cells(groups, model, metric), strict=True))
        if len(groups) < len(GROUPS):
            found.pop("total")
        wrong += [
            f"{model} {metric} {name}: {value:.5f}, official {expected[name]}"
            for name, value in found.items()
            if expected[name] is not None and not abs(value - expected[name]) <= TOLERANCE + 1e-9
        ]
    wrong += [
        f"{model} on m4_{group.name}: {distance:.2g} (relative) away from the organisers' forecasts"
        for group in groups
        for model, distance in group.distance.items()
        if not distance <= SAME
    ]
    return wrong


def report(groups: list[Group], seconds: float) -> list[str]:
    """The table as markdown, with what it took."""
    names = [group.name for group in groups]
    lines = ["# Baselines on M4, against the official table", "", row("", [*names, "total"]), "|---" * (len(names) + 2) + "|"]
    for model in ("Naive2", "Naive", "SeasonalNaive"):
        for metric in ("sMAPE", "MASE"):
            lines.append(row(f"{model} {metric}", [f"{value:.5f}" for value in cells(groups, model, metric)]))
            if (model, metric) in OFFICIAL:
                official = dict(zip((*GROUPS, "total"), OFFICIAL[model, metric], strict=True))
                lines.append(row("*official*", ["–" if official[n] is None else str(official[n]) for n in (*names, "total")]))
    for model in THEIRS:
        distances = [group.distance[model] for group in groups]
        found = [f"{value:.1e}" for value in (*distances, max(distances))]
        lines.append(row(f"{model}: furthest from the official forecasts, relative", found))
    for what in ("Naive", "SeasonalNaive", "Naive2", "score"):
        spent = [group.seconds[what] for group in groups]
        label = "seconds to score all three by series" if what == "score" else f"{what}: seconds for fit and predict"
        lines.append(row(label, [f"{one:.3f}" for one in (*spent, sum(spent))]))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [
        *lines,
        "",
        f"Loading, fitting, forecasting, joining and scoring: {seconds:.1f} s; peak memory {peak:,.0f} MB.",
        f"pandas {pd.__version__}, numpy {np.__version__}; data and official forecasts are stored as float32.",
    ]


def row(head: str, found: list[str]) -> str:
    return f"| {head} | {' | '.join(found)} |"


if __name__ == "__main__":
    sys.exit(main())
