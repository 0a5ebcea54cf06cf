"""Frequency of forecasts far outside of the history, with and without a warning, for all models except networks.

    python benchmarks/bench_sanity.py [--scale 1.0] [model ...]

Requires the benchmark data (DEEPFORECAST_DATA). A violation is a 95 % prediction interval wider than 20 times the range of
the history, or a point forecast outside of it by more than 3 times that range. Each model is fitted with the horizon of the
dataset and forecasts that horizon, 180 and 400 steps. Samples are drawn with the seed SEED; `--scale` multiplies their sizes.

The daily air-quality series on which the defect was found are not public; `air_quality` generates similar ones: positive,
skewed, 1,646 daily values with weekly and yearly seasons and heavy-tailed multiplicative noise.
"""

from __future__ import annotations

import argparse
import re
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import deepforecast
from deepforecast import datasets
from deepforecast.core import registry
from deepforecast.errors import DataWarning, DeepForecastError

RESULTS = Path(__file__).parent / "results" / "sanity.md"
SEED = 20261119
LEVEL, MAX_WIDTH, MAX_DISTANCE = 95, 20.0, 3.0
LONG_HORIZONS = (180, 400)
FAMILIES = ("baselines", "statistical", "regression", "additive.prophet")
SERIES_SHARES = {
    **{"AutoARIMA": 0.04, "ARIMA": 0.2, "UnobservedComponents": 0.04, "Prophet": 0.1},
    **{"Regression": 0.2, "CatBoost": 0.1, "XGBoost": 0.2, "GradientBoosting": 0.1, "LightGBM": 0.5},
}
"""Share of the series of each dataset that a model is fitted to (at least MIN_SERIES series); 1 for other models."""
MIN_SERIES = 12
MAX_LENGTH = 2_000
"""Of longer series, only the last MAX_LENGTH values are used."""


@dataclass(frozen=True)
class Data:
    """A dataset: season length, horizon, number of sampled series, and whether they are daily (stricter limit)."""

    read: Callable[[], pd.DataFrame]
    season: int
    horizon: int
    sample: int
    daily: bool = False


def stored(name: str) -> Callable[[], pd.DataFrame]:
    """The training part of a dataset."""
    return lambda: datasets.load(name, split="train")[["unique_id", "ds", "y"]]


def daily_means(*names: str) -> Callable[[], pd.DataFrame]:
    """Daily means of datasets with a higher frequency."""

    def read() -> pd.DataFrame:
        parts = []
        for name in names:
            frame = datasets.load(name)
            keys = [name + "-" + frame["unique_id"].astype(str), frame["ds"].dt.floor("D")]
            parts.append(frame["y"].astype(float).groupby(keys).mean().rename_axis(["unique_id", "ds"]).reset_index())
        return pd.concat(parts, ignore_index=True)

    return read


def air_quality(count: int = 100, length: int = 1646) -> pd.DataFrame:
    """Series like daily means of air-quality stations (see the module's docstring)."""
    generator = np.random.default_rng(SEED)
    day, parts = np.arange(length), []
    for number in range(count):
        yearly = generator.uniform(0.2, 0.6) * np.cos(2 * np.pi * (day / 365.25 + generator.uniform()))
        weekly = 0.1 * np.sin(2 * np.pi * (day / 7 + generator.uniform()))
        shocks = generator.uniform(0.25, 0.45) * generator.standard_t(5, length)
        persistence, noise = generator.uniform(0.5, 0.8), np.zeros(length)
        for step in range(1, length):
            noise[step] = persistence * noise[step - 1] + shocks[step]
        y = np.exp(generator.uniform(1.5, 4.0) + yearly + weekly + noise)
        days = pd.date_range("2015-01-01", periods=length, freq="D")
        parts.append(pd.DataFrame({"unique_id": f"air-{number:03d}", "ds": days, "y": y}))
    return pd.concat(parts, ignore_index=True)


DATASETS = {
    "M1 yearly": Data(stored("m1_yearly"), 1, 6, 181),
    "M1 quarterly": Data(stored("m1_quarterly"), 4, 8, 203),
    "M1 monthly": Data(stored("m1_monthly"), 12, 18, 617),
    "M4 yearly": Data(stored("m4_yearly"), 1, 6, 500),
    "M4 quarterly": Data(stored("m4_quarterly"), 4, 8, 500),
    "M4 monthly": Data(stored("m4_monthly"), 12, 18, 500),
    "M4 weekly": Data(stored("m4_weekly"), 52, 13, 60),
    "M4 daily": Data(stored("m4_daily"), 7, 14, 100),
    "M4 hourly": Data(stored("m4_hourly"), 24, 48, 60),
    "NN5": Data(stored("nn5_daily"), 7, 56, 111, daily=True),
    "M5": Data(stored("m5_ca_1"), 7, 28, 300, daily=True),
    "EPF daily means": Data(daily_means("epf_np", "epf_pjm"), 7, 28, 2, daily=True),
    "ETT daily means": Data(daily_means("etth1", "ettm2"), 7, 28, 14),
    "air quality, generated": Data(air_quality, 7, 180, 100),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*")
    parser.add_argument("--scale", type=float, default=1.0)
    args = parser.parse_args()
    names = args.models or [
        name
        for name in registry.names()
        if registry.get(name).__module__.removeprefix("deepforecast.models.").startswith(FAMILIES)
    ]
    records = []
    for set_name, data in DATASETS.items():
        frame = data.read()
        for name in names:
            record = measure(name, frame, data, args.scale)
            records.append({"set": set_name, "daily": data.daily, "model": name, **record})
            print(set_name, name, record, flush=True)
    lines = report(pd.DataFrame(records))
    print("\n".join(lines))
    if not args.models:
        RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return 0


def sampled(frame: pd.DataFrame, count: int) -> pd.DataFrame:
    """The last MAX_LENGTH values of `count` series drawn at random with SEED, sorted."""
    ids = np.sort(frame["unique_id"].astype(str).unique())
    drawn = np.random.default_rng(SEED).permutation(ids)[:count]
    frame = frame.assign(unique_id=frame["unique_id"].astype(str), y=frame["y"].astype(float))
    frame = frame[frame["unique_id"].isin(drawn)].sort_values(["unique_id", "ds"])
    return frame.groupby("unique_id").tail(MAX_LENGTH).reset_index(drop=True)


def measure(name: str, frame: pd.DataFrame, data: Data, scale: float) -> dict[str, Any]:
    """Violations and warned series of a model on a dataset by horizon, and CPU seconds."""
    count = min(max(round(scale * SERIES_SHARES.get(name, 1.0) * data.sample), MIN_SERIES), data.sample)
    frame, start = sampled(frame, count), time.process_time()
    model = getattr(deepforecast, name)(horizon=data.horizon, **parameters(name, data))
    if not pd.api.types.is_integer_dtype(frame["ds"]):
        freq: Any = "D"
    elif name == "Prophet":
        frame, freq = dated(frame, data.season)
    else:
        freq = 1
    record: dict[str, Any] = {"series": frame["unique_id"].nunique()}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(frame, freq=freq)
        record |= {f"at {steps}": outside(model, frame, steps) for steps in (data.horizon, *LONG_HORIZONS)}
    except DeepForecastError as error:
        record["error"] = str(error)[:200]
    return {**record, "seconds": round(time.process_time() - start, 1)}


def parameters(name: str, data: Data) -> dict[str, Any]:
    """Season length of seasonal models, since it cannot be inferred from integer time; regressor of `Regression`."""
    if name == "Regression":
        return {"season_length": data.season, "regressor": "ridge"}
    declared = getattr(deepforecast, name)().get_params()
    if name in ("ARIMA", "CES", "ETS"):  # not seasonal at their defaults
        return {}
    return {key: data.season for key in ("season_length", "window") if declared.get(key) == "auto"}


def dated(frame: pd.DataFrame, season: int) -> tuple[pd.DataFrame, str]:
    """Replace integer time by dates with a frequency of this season length."""
    freq = {1: "YS", 4: "QS", 12: "MS", 52: "W-SUN", 7: "D", 24: "h"}[season]
    steps = frame.groupby("unique_id").cumcount().to_numpy()
    dates = pd.date_range("1700-01-01", periods=int(steps.max()) + 1, freq=freq, unit="s")
    return frame.assign(ds=dates[steps]), freq


def outside(model: Any, frame: pd.DataFrame, steps: int) -> tuple[int, int, int]:
    """Number of series with a violation, lower bound of those without a warning, and number of series warned of."""
    level = LEVEL if model.capabilities.distribution else None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        forecast = model.predict(steps, level=level)
    history = frame.groupby("unique_id")["y"].agg(["min", "max"])
    lowest, highest = (history[side].reindex(forecast["unique_id"]).to_numpy() for side in ("min", "max"))
    extent = highest - lowest
    point = forecast[model.name].to_numpy()
    violated = np.maximum(point - highest, lowest - point) > MAX_DISTANCE * extent + 1e-9 * np.abs(highest)
    if level is not None:
        width = (forecast[f"{model.name}-hi-{level}"] - forecast[f"{model.name}-lo-{level}"]).to_numpy()
        violated |= width > MAX_WIDTH * extent + 1e-9 * np.abs(highest)
    series = forecast["unique_id"][violated].unique()
    texts = [str(warning.message) for warning in caught if warning.category is DataWarning]
    text = " ".join(warning for warning in texts if "far outside the history" in warning)
    warned = max([int(number) for number in re.findall(r"(\d+) in all", text)], default=0) if text else 0
    warned = warned or (len([name for name in frame["unique_id"].unique() if re.search(rf"\b{name}\b", text)]) if text else 0)
    return len(series), max(len(series) - warned, 0), warned


def report(records: pd.DataFrame) -> list[str]:
    """The table by model: violations, those without a warning, and warned series, at several horizons."""
    horizons = [name for name in records if name.startswith("at ")]
    dataset_horizons = [name for name in horizons if name not in ("at 180", "at 400")]
    rows = []
    for name, group in records.groupby("model", sort=False):
        public = group[~group["set"].str.contains("generated")]
        cells = [total(public, dataset_horizons), total(public[public["daily"]], ["at 180"])]
        cells.append(total(public, ["at 180", "at 400"]))
        generated = total(group[group["set"].str.contains("generated")], ["at 180", "at 400"])
        rows.append(f"| {name} | " + " | ".join([*cells, generated]) + f" | {group['seconds'].sum():,.0f} |")
    errors = records[records["error"].notna()] if "error" in records else records.iloc[:0]
    errors = errors.drop_duplicates([name for name in ("model", "error") if name in errors])
    return [
        "# Forecasts far outside the history",
        "",
        f"{LEVEL} % intervals wider than {MAX_WIDTH:g} times the range of the history, or points outside of it by more than "
        f"{MAX_DISTANCE:g} times that range. Each cell: series with such a forecast / of these without a warning / series "
        f"warned of / forecasts of a series in total. Seed {SEED}; datasets: {', '.join(DATASETS)}.",
        "",
        "| model | dataset horizon | daily datasets, 180 steps | public datasets, 180 and 400 steps | generated | CPU s |",
        "|---|---|---|---|---|---|",
        *rows,
        "",
        *[f"- {row['model']}, {row['set']}: {row['error']}" for _, row in errors.iterrows()],
    ]


def total(group: pd.DataFrame, columns: list[str]) -> str:
    """Sums over datasets and horizons, as a cell."""
    cells = [(cell, row["series"]) for _, row in group.iterrows() for cell in row[columns] if isinstance(cell, tuple)]
    if not cells:
        return "none"
    violations, silent, warned = np.sum([cell for cell, _ in cells], axis=0)
    return f"{violations} / {silent} / {warned} / {sum(count for _, count in cells):,}"


if __name__ == "__main__":
    raise SystemExit(main())
