"""Regression models with `differences="auto"` next to `differences=None`, on daily, yearly, quarterly and monthly data.

    python benchmarks/bench_differences.py [set ...] [--models LinearModel LightGBM] [--values auto none]
    python benchmarks/bench_differences.py --alone [--models LinearModel LightGBM] [--strategies recursive direct]

Needs the data folder (DEEPFORECAST_DATA). Large sets are sampled, evenly over their series. Series measured more often than
once a day are averaged by day. MASE over all series and windows; the model is fitted once, before the first window.
With `--alone` each series of the daily means, and of 13 kinds of generated ones, has a model of its own.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import deepforecast
from deepforecast import BacktestOptions, cross_validate, datasets
from deepforecast.errors import DataError, DataWarning

RESULTS = Path(__file__).resolve().parent / "results" / "differences.md"


@dataclass(frozen=True)
class Task:
    """A set, how it is read, and the windows on which forecasts are judged."""

    dataset: str
    season: int
    horizon: int
    n_windows: int = 1
    freq: Any = "D"
    future: tuple[str, ...] = ()
    series: int | None = None
    by_day: bool = False
    missing: str = "auto"
    daily: bool = True


def other(dataset: str, season: int, horizon: int, series: int = 100) -> Task:
    """A set whose time is an integer and whose last `horizon` observations are its test part."""
    return Task(dataset, season, horizon, freq=1, series=series, daily=False)


def daily_means(dataset: str, future: tuple[str, ...] = ()) -> Task:
    """Daily means of a set measured more often."""
    return Task(dataset, 7, 28, 6, future=future, by_day=True)


PROMOTIONS = ("open", "promo", "state_holiday", "school_holiday")
TASKS: dict[str, Task] = {
    "nn5_daily": Task("nn5_daily", 7, 56, series=60),
    "m5_ca_1": Task("m5_ca_1", 7, 28, 2, future=("event", "event_type", "snap"), series=200),
    "rossmann": Task("rossmann", 7, 42, future=PROMOTIONS, series=100, missing="interpolate"),
    "exchange_rate": Task("exchange_rate", 7, 28, 6),
    "epf_np by day": daily_means("epf_np"),
    "epf_pjm by day": daily_means("epf_pjm"),
    "epf_np by day, covariates": daily_means("epf_np", ("grid_load_forecast", "wind_power_forecast")),
    "etth1 by day": daily_means("etth1"),
    "ettm2 by day": daily_means("ettm2"),
    "vic_elec by day": daily_means("vic_elec"),
    "vic_elec by day, covariates": daily_means("vic_elec", ("holiday", "temperature")),
    "m4_daily": Task("m4_daily", 7, 14, freq=1, series=60),
    "m4_weekly": other("m4_weekly", 1, 13, 100),
    "m1_yearly": other("m1_yearly", 1, 6),
    "m1_quarterly": other("m1_quarterly", 4, 8),
    "m1_monthly": other("m1_monthly", 12, 18),
    "m4_yearly": other("m4_yearly", 1, 6),
    "m4_quarterly": other("m4_quarterly", 4, 8),
    "m4_monthly": other("m4_monthly", 12, 18),
}
MODELS: dict[str, Callable[..., Any]] = {
    "LinearModel": deepforecast.LinearModel,
    "Regression('ridge')": lambda **given: deepforecast.Regression("ridge", **given),
    "LightGBM": lambda **given: deepforecast.LightGBM(n_estimators=100, learning_rate=0.1, **given),
    "GradientBoosting": lambda **given: deepforecast.GradientBoosting(n_estimators=100, learning_rate=0.1, **given),
    "XGBoost": lambda **given: deepforecast.XGBoost(n_estimators=100, learning_rate=0.1, **given),
    "CatBoost": lambda **given: deepforecast.CatBoost(n_estimators=100, learning_rate=0.1, **given),
}


def generated(n_series: int = 5, seed: int = 303) -> Iterator[tuple[str, np.ndarray]]:
    """Single daily series of 400 to 900 days and what kind they are."""
    random = np.random.default_rng(seed)
    for _ in range(n_series):
        n = int(random.choice([400, 600, 900]))
        t, walk = np.arange(n), random.normal(0, 1, n).cumsum()
        week = random.uniform(0.4, 1.3, 7)[t % 7]
        one, other = (np.where(t < random.uniform(0.2, 0.95) * n, 0, random.uniform(-60, 120)) for _ in range(2))
        slow, slower = (np.convolve(random.normal(0, 1, n + 199), share ** np.arange(200), "valid") for share in (0.7, 0.95))
        noise, year = random.normal(0, 1, n), np.sin(2 * np.pi * (t + random.integers(365)) / 365.25)
        rare = random.standard_t(3, n) * (random.random(n) < 0.03)
        yield "level shift", (100 + one) * week + 5 * noise
        yield "two level shifts", 150 + one + other + 8 * noise
        yield "random walk", 100 + walk
        yield "random walk and week", 100 + walk + random.uniform(1, 10) * week
        yield "random walk of each weekday", 100 + 3 * random.normal(0, 1, (n // 7 + 1, 7)).cumsum(axis=0).ravel()[:n] + slow
        yield "noise", 50 + 5 * noise
        yield "autoregression", 50 + slower + random.uniform(0, 5) * week
        yield "week", 100 * week * (1 + 0.1 * noise)
        yield "year and week", 20 + 10 * year + 2 * slow + random.uniform(0, 3) * week
        yield "ramp", (100 + random.uniform(-0.1, 0.5) * t) * week * (1 + 0.05 * noise)
        yield "late ramp", 100 + 0.3 * np.maximum(t - random.uniform(0.3, 0.95) * n, 0) + 10 * week + 3 * noise
        yield "log page views", 8 + random.uniform(0.001, 0.004) * t + 0.3 * week + 0.15 * slower + 0.5 * rare
        yield "growth", np.exp(random.uniform(0.001, 0.004) * t) * week * (1 + 0.05 * noise)


def alone() -> Iterator[tuple[str, np.ndarray]]:
    """Series that have a model of their own, and where they come from."""
    for name, task in TASKS.items():
        if task.by_day and not task.future:
            for _, one in load(task).groupby("unique_id"):
                yield f"{name}, each alone", one["y"].to_numpy()[1:]  # the first day may not be whole, either
    yield from generated()


def run_alone(models: list[str], strategies: list[str]) -> list[dict[str, Any]]:
    """For each source of series the errors with "auto" over those with None: their mean and the largest."""
    found = []
    for model, strategy in ((model, strategy) for model in models for strategy in strategies):
        ratios: dict[str, list[float]] = {}
        for source, y in alone():
            frame = pd.DataFrame({"unique_id": "y", "ds": pd.date_range("2018-01-01", periods=len(y)), "y": y})
            errors = [_error(MODELS[model], strategy, frame, differences) for differences in ("auto", None)]
            ratios.setdefault(source, []).append(errors[0] / errors[1])
        for source, values in ratios.items():
            row = {"set": source, "model": model, "strategy": strategy, "alone": [round(one, 4) for one in values]}
            found.append(row)
            print(json.dumps(row), flush=True)
    return found


def _error(number: Callable[..., Any], strategy: str, frame: pd.DataFrame, differences: Any) -> float:
    """The mean absolute error of models that are fitted before every one of 4 windows of 28 days and (recursive ones) of 14."""
    total = 0.0
    for horizon in (14, 28) if strategy == "recursive" else (28,):
        model = number(horizon=horizon, strategy=strategy, differences=differences, alias="model")
        forecasts = cross_validate(model, frame, n_windows=4, refit=True)
        total += float((forecasts["y"] - forecasts["model"]).abs().mean())
    return total


def load(task: Task) -> pd.DataFrame:
    """Training and test part, one after the other."""
    parts = [datasets.load(task.dataset, split=split) for split in ("train", "test")]
    frame = pd.concat([part[["unique_id", "ds", "y", *task.future]] for part in parts], ignore_index=True)
    frame["unique_id"] = frame["unique_id"].astype(str)
    texts = [name for name in task.future if not pd.api.types.is_numeric_dtype(frame[name])]
    frame = frame.astype(dict.fromkeys(texts, "category"))
    ids = frame["unique_id"].unique()
    if task.series is not None and task.series < len(ids):
        chosen = ids[np.linspace(0, len(ids) - 1, task.series).astype(int)]
        frame = frame[frame["unique_id"].isin(chosen)]
    if task.by_day:
        frame["ds"] = frame["ds"].dt.floor("D")
        frame = frame.groupby(["unique_id", "ds"], as_index=False).mean()
        frame = frame[frame["ds"] < frame["ds"].max()]  # the last day may not be whole
    return frame.sort_values(["unique_id", "ds"], ignore_index=True)


def mase(frame: pd.DataFrame, forecasts: pd.DataFrame, name: str, season: int) -> float:
    """Mean over series of the mean absolute error, over that of the seasonal naive forecast before the first window."""
    first = forecasts.groupby("unique_id")["cutoff"].min()
    errors = (forecasts["y"] - forecasts[name]).abs().groupby(forecasts["unique_id"]).mean()
    history = frame[frame["ds"] <= frame["unique_id"].map(first)]
    steps = history.groupby("unique_id")["y"].diff(season).abs().groupby(history["unique_id"]).mean()
    return float((errors / steps[steps > 0]).dropna().mean())


def run(name: str, task: Task, models: list[str], strategies: list[str], values: dict[str, Any]) -> list[dict[str, Any]]:
    """Every model and strategy on one set."""
    frame, found = load(task), []
    for model, strategy in ((model, strategy) for model in models for strategy in strategies):
        if strategy == "direct_multioutput" and model not in ("LinearModel", "Regression('ridge')"):
            continue
        row: dict[str, Any] = {"set": name, "model": model, "strategy": strategy}
        for label, differences in values.items():
            fitted = MODELS[model](
                horizon=task.horizon,
                season_length=task.season,
                strategy=strategy,
                differences=differences,
                alias="model",
                missing=task.missing,
            )
            start = time.perf_counter()
            try:
                forecasts = cross_validate(
                    fitted, frame, n_windows=task.n_windows, freq=task.freq, refit=False,
                    columns={"future": list(task.future)}, options=BacktestOptions(align="series"),
                )  # fmt: skip
            except DataError as error:
                row[label] = None
                print(name, model, strategy, label, str(error)[:150], flush=True)
                continue
            row[label] = round(mase(frame, forecasts, "model", task.season), 4)
            row[f"{label} seconds"] = round(time.perf_counter() - start, 2)
        found.append(row)
        print(json.dumps(row), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=list(TASKS))
    parser.add_argument("--models", nargs="*", default=["LinearModel", "LightGBM"], choices=list(MODELS))
    parser.add_argument("--strategies", nargs="*", default=["recursive", "direct", "direct_multioutput", "blocks"])
    parser.add_argument("--values", nargs="*", default=["auto", "none"], help="auto, none, 1, 7, 7,1, season,1 ...")
    parser.add_argument("--json", type=Path, help="file that rows are appended to")
    parser.add_argument("--earlier", type=Path, help="such a file of an earlier version, to compare with")
    parser.add_argument("--alone", action="store_true", help="models of single series")
    parser.add_argument("--write", action="store_true", help="write the rows of --json to results/differences.md, run nothing")
    given = parser.parse_args()
    if given.write:
        RESULTS.write_text(page(read(given.json), read(given.earlier) if given.earlier else {}), encoding="utf-8")
        return
    warnings.simplefilter("ignore", DataWarning)
    for name in [None] if given.alone else given.sets:
        if name is None:
            rows = run_alone(given.models, given.strategies)
        else:
            values = {text: parsed(text, TASKS[name].season) for text in given.values}
            rows = run(name, TASKS[name], given.models, given.strategies, values)
        if given.json:
            with given.json.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)


def read(path: Path) -> dict[tuple[str, str, str], dict[str, Any]]:
    """The rows of a file by set, model and strategy."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {(row["set"], row["model"], row["strategy"]): row for row in rows}


def page(rows: Mapping[tuple[str, str, str], Any], earlier: Mapping[tuple[str, str, str], Any]) -> str:
    """The table of results."""
    lines = [
        '# Regression models: `differences="auto"` next to `differences=None`',
        "",
        "MASE over all series and windows; seconds of fit and forecasts (one thread, a machine shared with",
        'other jobs). `before`: what `differences="auto"` had when tests alone chose it and direct steps',
        "accumulated changes. Trees: 100, learning rate 0.1. Where the tests suggest differences, `auto` costs two fits",
        "more (of fewer than 20 series up to six), on at most 100 series and 20,000 observations.",
        "",
        "| set | model | strategy | None | auto | auto to None | before | s None | s auto |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for key in sorted((key for key in rows if key[0] in TASKS), key=order):
        row, (name, model, strategy) = rows[key], key
        before = earlier.get(key, {}).get("auto")
        ratio = f"{100 * (row['auto'] / row['none'] - 1):+.1f} %"
        seconds = f"{row['none seconds']:.1f} | {row['auto seconds']:.1f}"
        shown = "" if before is None else f"{before:.3f}"
        scores = f"{row['none']:.3f} | {row['auto']:.3f} | {ratio} | {shown}"
        lines.append(f"| {name} | {model} | {strategy} | {scores} | {seconds} |")
    daily = [row["auto"] / row["none"] - 1 for key, row in rows.items() if key[0] in TASKS and TASKS[key[0]].daily]
    worst = f"{100 * max(daily):+.1f} %"
    both = [(earlier[key]["auto"], row["auto"]) for key, row in rows.items() if key[0] in TASKS and key in earlier]
    lost = f"`before` was more than 2 % better in {sum(one < 0.98 * auto for one, auto in both)} of {len(both)} rows"
    won = f"more than 2 % worse in {sum(one > 1.02 * auto for one, auto in both)}"
    lines += ["", f"Daily sets: `auto` to None at worst {worst}. {lost}, {won}.", "", *page_alone(rows, earlier)]
    command = f"`python benchmarks/bench_differences.py`, {time.strftime('%Y-%m-%d')}."
    return "\n".join([*lines, command, ""])


def page_alone(rows: Mapping[tuple[str, str, str], Any], earlier: Mapping[tuple[str, str, str], Any]) -> list[str]:
    """The table of single series."""
    lines = [
        "## Models of single series (`--alone`)",
        "",
        "Mean absolute error with `auto` over that with None: mean over the series, and the worst of them. 4 windows of 14 and",
        "of 28 days (direct: of 28), the model fitted before each. Generated series: seed 303, not used to choose the rule.",
        "`before`: what asked a gain of 5 % from one fit, twice its standard error over windows.",
        "",
        "| series | number | model | strategy | mean | worst | mean before | worst before |",
        "|---|---|---|---|---|---|---|---|",
    ]
    whole: dict[tuple[str, str], list[list[float]]] = {}
    for key, row in rows.items():
        if "alone" in row:
            both = [row["alone"], earlier[key]["alone"]]
            lines.append(_line_alone(key[0], key[1], key[2], both))
            every = whole.setdefault(key[1:], [[], []])
            for values, more in zip(every, both, strict=True):
                values.extend(more)
    lines += [_line_alone("all", model, strategy, both) for (model, strategy), both in whole.items()]
    return [*lines, ""]


def _line_alone(source: str, model: str, strategy: str, both: list[list[float]]) -> str:
    """One row of it: the ratios now and before."""
    shown = " | ".join(f"{np.mean(ratios):.3f} | {max(ratios):.3f}" for ratios in both)
    return f"| {source} | {len(both[0])} | {model} | {strategy} | {shown} |"


def order(key: tuple[str, str, str]) -> tuple[int, int, str]:
    """Sets and models as they are listed above."""
    return list(TASKS).index(key[0]), list(MODELS).index(key[1]), key[2]


def parsed(text: str, season: int) -> list[int] | str | None:
    """A value of `differences` from the command line."""
    if text in ("auto", "none"):
        return "auto" if text == "auto" else None
    lags = [season if part == "season" else int(part) for part in text.split(",")]
    return sorted(set(lags), reverse=True)


if __name__ == "__main__":
    main()
