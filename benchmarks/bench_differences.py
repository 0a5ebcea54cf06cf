"""Regression models with `differences="auto"` and `differences=None` on daily, yearly, quarterly and monthly data.

    python benchmarks/bench_differences.py [set ...] [--models LinearModel LightGBM] [--values auto none]
    python benchmarks/bench_differences.py --alone [--models LinearModel LightGBM] [--strategies recursive direct]

Requires the benchmark data (DEEPFORECAST_DATA). Of large datasets, evenly spaced series are used. Series with
a frequency above daily are averaged by day. The metric is MASE over all series and windows; models are fitted
once, before the first window. With `--alone` a separate model is fitted to each series of the daily means, and
of 13 kinds of generated series.
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
    """A dataset, how it is read, and its windows."""

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


def integer_time_task(dataset: str, season: int, horizon: int, series: int = 100) -> Task:
    """A dataset with integer time whose last `horizon` observations are the test part."""
    return Task(dataset, season, horizon, freq=1, series=series, daily=False)


def daily_means(dataset: str, future: tuple[str, ...] = ()) -> Task:
    """Daily means of a dataset with a higher frequency."""
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
    "m4_weekly": integer_time_task("m4_weekly", 1, 13, 100),
    "m1_yearly": integer_time_task("m1_yearly", 1, 6),
    "m1_quarterly": integer_time_task("m1_quarterly", 4, 8),
    "m1_monthly": integer_time_task("m1_monthly", 12, 18),
    "m4_yearly": integer_time_task("m4_yearly", 1, 6),
    "m4_quarterly": integer_time_task("m4_quarterly", 4, 8),
    "m4_monthly": integer_time_task("m4_monthly", 12, 18),
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
    """Yield kind and values of generated daily series of 400 to 900 days."""
    random = np.random.default_rng(seed)
    for _ in range(n_series):
        n = int(random.choice([400, 600, 900]))
        t, walk = np.arange(n), random.normal(0, 1, n).cumsum()
        week = random.uniform(0.4, 1.3, 7)[t % 7]
        shift, second_shift = (np.where(t < random.uniform(0.2, 0.95) * n, 0, random.uniform(-60, 120)) for _ in range(2))
        slow, slower = (np.convolve(random.normal(0, 1, n + 199), share ** np.arange(200), "valid") for share in (0.7, 0.95))
        noise, year = random.normal(0, 1, n), np.sin(2 * np.pi * (t + random.integers(365)) / 365.25)
        rare = random.standard_t(3, n) * (random.random(n) < 0.03)
        yield "level shift", (100 + shift) * week + 5 * noise
        yield "two level shifts", 150 + shift + second_shift + 8 * noise
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


def single_series() -> Iterator[tuple[str, np.ndarray]]:
    """Yield source and values of the series that get separate models."""
    for name, task in TASKS.items():
        if task.by_day and not task.future:
            for _, series in load(task).groupby("unique_id"):
                yield f"{name}, separate models", series["y"].to_numpy()[1:]  # the first day may be incomplete, too
    yield from generated()


def run_single_series(models: list[str], strategies: list[str]) -> list[dict[str, Any]]:
    """Ratios of the errors with "auto" to those with None, by source of the series, model and strategy."""
    rows = []
    for model, strategy in ((model, strategy) for model in models for strategy in strategies):
        ratios: dict[str, list[float]] = {}
        for source, y in single_series():
            frame = pd.DataFrame({"unique_id": "y", "ds": pd.date_range("2018-01-01", periods=len(y)), "y": y})
            errors = [_total_error(MODELS[model], strategy, frame, differences) for differences in ("auto", None)]
            ratios.setdefault(source, []).append(errors[0] / errors[1])
        for source, values in ratios.items():
            row = {"set": source, "model": model, "strategy": strategy, "alone": [round(ratio, 4) for ratio in values]}
            rows.append(row)
            print(json.dumps(row), flush=True)
    return rows


def _total_error(make_model: Callable[..., Any], strategy: str, frame: pd.DataFrame, differences: Any) -> float:
    """Sum over horizons (28; recursive models: 14 and 28) of the mean absolute error over 4 windows with refits."""
    total = 0.0
    for horizon in (14, 28) if strategy == "recursive" else (28,):
        model = make_model(horizon=horizon, strategy=strategy, differences=differences, alias="model")
        forecasts = cross_validate(model, frame, n_windows=4, refit=True)
        total += float((forecasts["y"] - forecasts["model"]).abs().mean())
    return total


def load(task: Task) -> pd.DataFrame:
    """Load training and test part as one frame."""
    parts = [datasets.load(task.dataset, split=split) for split in ("train", "test")]
    frame = pd.concat([part[["unique_id", "ds", "y", *task.future]] for part in parts], ignore_index=True)
    frame["unique_id"] = frame["unique_id"].astype(str)
    categorical = [name for name in task.future if not pd.api.types.is_numeric_dtype(frame[name])]
    frame = frame.astype(dict.fromkeys(categorical, "category"))
    ids = frame["unique_id"].unique()
    if task.series is not None and task.series < len(ids):
        sampled_ids = ids[np.linspace(0, len(ids) - 1, task.series).astype(int)]
        frame = frame[frame["unique_id"].isin(sampled_ids)]
    if task.by_day:
        frame["ds"] = frame["ds"].dt.floor("D")
        frame = frame.groupby(["unique_id", "ds"], as_index=False).mean()
        frame = frame[frame["ds"] < frame["ds"].max()]  # the last day may be incomplete
    return frame.sort_values(["unique_id", "ds"], ignore_index=True)


def mase(frame: pd.DataFrame, forecasts: pd.DataFrame, name: str, season: int) -> float:
    """MASE: mean absolute error divided by that of seasonal naive forecasts before the first window, averaged over series."""
    first_cutoff = forecasts.groupby("unique_id")["cutoff"].min()
    errors = (forecasts["y"] - forecasts[name]).abs().groupby(forecasts["unique_id"]).mean()
    history = frame[frame["ds"] <= frame["unique_id"].map(first_cutoff)]
    naive_errors = history.groupby("unique_id")["y"].diff(season).abs().groupby(history["unique_id"]).mean()
    return float((errors / naive_errors[naive_errors > 0]).dropna().mean())


def run(name: str, task: Task, models: list[str], strategies: list[str], values: dict[str, Any]) -> list[dict[str, Any]]:
    """Run every model and strategy on one dataset."""
    frame, rows = load(task), []
    for model, strategy in ((model, strategy) for model in models for strategy in strategies):
        if strategy == "direct_multioutput" and model not in ("LinearModel", "Regression('ridge')"):
            continue
        row: dict[str, Any] = {"set": name, "model": model, "strategy": strategy}
        for label, differences in values.items():
            model_instance = MODELS[model](
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
                    model_instance, frame, n_windows=task.n_windows, freq=task.freq, refit=False,
                    columns={"future": list(task.future)}, options=BacktestOptions(align="series"),
                )  # fmt: skip
            except DataError as error:
                row[label] = None
                print(name, model, strategy, label, str(error)[:150], flush=True)
                continue
            row[label] = round(mase(frame, forecasts, "model", task.season), 4)
            row[f"{label} seconds"] = round(time.perf_counter() - start, 2)
        rows.append(row)
        print(json.dumps(row), flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=list(TASKS))
    parser.add_argument("--models", nargs="*", default=["LinearModel", "LightGBM"], choices=list(MODELS))
    parser.add_argument("--strategies", nargs="*", default=["recursive", "direct", "direct_multioutput", "blocks"])
    parser.add_argument("--values", nargs="*", default=["auto", "none"], help="auto, none, 1, 7, 7,1, season,1 ...")
    parser.add_argument("--json", type=Path, help="file to append the rows to")
    parser.add_argument("--earlier", type=Path, help="file of rows of an earlier version, for comparison")
    parser.add_argument("--alone", action="store_true", help="fit a separate model to each series")
    parser.add_argument("--write", action="store_true", help="only write the rows of --json to results/differences.md")
    args = parser.parse_args()
    if args.write:
        RESULTS.write_text(page(read(args.json), read(args.earlier) if args.earlier else {}), encoding="utf-8")
        return
    warnings.simplefilter("ignore", DataWarning)
    for name in [None] if args.alone else args.sets:
        if name is None:
            rows = run_single_series(args.models, args.strategies)
        else:
            values = {text: parse_differences(text, TASKS[name].season) for text in args.values}
            rows = run(name, TASKS[name], args.models, args.strategies, values)
        if args.json:
            with args.json.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)


def read(path: Path) -> dict[tuple[str, str, str], dict[str, Any]]:
    """The rows of a file by dataset, model and strategy."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {(row["set"], row["model"], row["strategy"]): row for row in rows}


def page(rows: Mapping[tuple[str, str, str], Any], earlier: Mapping[tuple[str, str, str], Any]) -> str:
    """The results page."""
    lines = [
        '# Regression models: `differences="auto"` and `differences=None`',
        "",
        "MASE over all series and windows; seconds of fit and forecasts (one thread, a machine shared with other",
        'jobs). `earlier`: MASE with `differences="auto"` in the version in which only unit root tests chose the',
        "differences, and direct forecasts accumulated changes. Trees: 100, learning rate 0.1. If the tests suggest",
        "differences, `auto` needs two more fits (up to six for fewer than 20 series), on at most 100 series and 20,000",
        "observations.",
        "",
        "| dataset | model | strategy | None | auto | change | earlier | None, s | auto, s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for key in sorted((key for key in rows if key[0] in TASKS), key=order):
        row, (name, model, strategy) = rows[key], key
        earlier_mase = earlier.get(key, {}).get("auto")
        ratio = f"{100 * (row['auto'] / row['none'] - 1):+.1f} %"
        seconds = f"{row['none seconds']:.1f} | {row['auto seconds']:.1f}"
        earlier_score = "" if earlier_mase is None else f"{earlier_mase:.3f}"
        scores = f"{row['none']:.3f} | {row['auto']:.3f} | {ratio} | {earlier_score}"
        lines.append(f"| {name} | {model} | {strategy} | {scores} | {seconds} |")
    daily = [row["auto"] / row["none"] - 1 for key, row in rows.items() if key[0] in TASKS and TASKS[key[0]].daily]
    worst_daily = f"{100 * max(daily):+.1f} %"
    mase_pairs = [(earlier[key]["auto"], row["auto"]) for key, row in rows.items() if key[0] in TASKS and key in earlier]
    n_better = sum(before < 0.98 * auto for before, auto in mase_pairs)
    n_worse = sum(before > 1.02 * auto for before, auto in mase_pairs)
    comparison = f"`earlier` was more than 2 % better in {n_better} of {len(mase_pairs)} rows, more than 2 % worse in {n_worse}"
    lines += ["", f"Daily datasets: largest change {worst_daily}. {comparison}.", "", *page_single_series(rows, earlier)]
    command = f"`python benchmarks/bench_differences.py`, {time.strftime('%Y-%m-%d')}."
    return "\n".join([*lines, command, ""])


def page_single_series(rows: Mapping[tuple[str, str, str], Any], earlier: Mapping[tuple[str, str, str], Any]) -> list[str]:
    """The section on separate models of single series."""
    lines = [
        "## Separate models of single series (`--alone`)",
        "",
        "Ratio of the mean absolute error with `auto` to that with None: mean and maximum over the series. 4 windows of 14 and",
        "of 28 days (direct: of 28), with a refit for each. Generated series: seed 303, not used to choose the rule.",
        "`earlier`: the version that required a gain of 5 % in one fit, and twice its standard error over windows.",
        "",
        "| series | number | model | strategy | mean | worst | mean, earlier | worst, earlier |",
        "|---|---|---|---|---|---|---|---|",
    ]
    ratios_by_model: dict[tuple[str, str], list[list[float]]] = {}
    for key, row in rows.items():
        if "alone" in row:
            ratios = [row["alone"], earlier[key]["alone"]]
            lines.append(_single_series_row(key[0], key[1], key[2], ratios))
            model_ratios = ratios_by_model.setdefault(key[1:], [[], []])
            for values, new_values in zip(model_ratios, ratios, strict=True):
                values.extend(new_values)
    lines += [_single_series_row("all", model, strategy, ratios) for (model, strategy), ratios in ratios_by_model.items()]
    return [*lines, ""]


def _single_series_row(source: str, model: str, strategy: str, ratios: list[list[float]]) -> str:
    """A row of the table: the ratios now and in the earlier version."""
    cells = " | ".join(f"{np.mean(version_ratios):.3f} | {max(version_ratios):.3f}" for version_ratios in ratios)
    return f"| {source} | {len(ratios[0])} | {model} | {strategy} | {cells} |"


def order(key: tuple[str, str, str]) -> tuple[int, int, str]:
    """Sort key: datasets and models in the order of their definition."""
    return list(TASKS).index(key[0]), list(MODELS).index(key[1]), key[2]


def parse_differences(text: str, season: int) -> list[int] | str | None:
    """Parse a value of `differences` from the command line."""
    if text in ("auto", "none"):
        return "auto" if text == "auto" else None
    lags = [season if part == "season" else int(part) for part in text.split(",")]
    return sorted(set(lags), reverse=True)


if __name__ == "__main__":
    main()
