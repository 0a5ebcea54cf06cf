"""LightGBM with default parameters compared with mlforecast (same features and trees), SeasonalNaive and AutoETS.

    python benchmarks/bench_regression_accuracy.py [dataset ...]

Requires the benchmark data (DEEPFORECAST_DATA): M4 hourly and weekly, NN5, one store of M5, Rossmann with promotions and
holidays as future covariates. mlforecast gets the lags, windows, differences, calendar features and covariates that
deepforecast selected.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

import deepforecast
from deepforecast import AutoETS, LightGBM, SeasonalNaive, datasets, fill_gaps, score
from deepforecast.models.regression._plan import Plan

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "regression_accuracy.md"
PANDAS_NAMES = {"day_of_week": "dayofweek", "day_of_month": "day"}  # calendar features in pandas


@dataclass(frozen=True)
class Data:
    """A dataset: season lengths, frequency, future covariates, and largest number of series."""

    seasons: list[int]
    freq: Any
    future: tuple[str, ...] = ()
    most: int | None = None


DATASETS = {
    "m4_hourly": Data([24, 168], 1),
    "m4_weekly": Data([1], 1),
    "nn5_daily": Data([7], "D"),
    "m5_ca_1": Data([7], "D", ("event", "event_type", "snap")),
    "rossmann": Data([7], "D", ("open", "promo", "state_holiday", "school_holiday")),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=list(DATASETS))
    args = parser.parse_args()
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    lines = [
        "# LightGBM compared with mlforecast with the same features, on public data",
        "",
        "MASE and WAPE over all series; wall-clock seconds of fit and predict on two cores under load.",
        "",
        "| dataset | series | model | MASE | WAPE | seconds |",
        "|---|---|---|---|---|---|",
    ]
    for name in args.sets:
        lines += run(name, DATASETS[name])
        print("\n".join(lines[-4:]), flush=True)
    lines += ["", f"`python benchmarks/bench_regression_accuracy.py`, {time.strftime('%Y-%m-%d')}, two cores."]
    if set(args.sets) >= set(DATASETS):
        RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")


def run(name: str, data: Data) -> list[str]:
    """The rows of all models on one dataset."""
    train, test = (datasets.load(name, split=split) for split in ("train", "test"))
    horizon, season = datasets.card(name).horizon, data.seasons[0]
    keys, columns = ["unique_id", "ds", "y"], {"future": list(data.future)}
    train, test = (part[[*keys, *data.future]].assign(unique_id=part["unique_id"].astype(str)) for part in (train, test))
    future = test.drop(columns="y") if data.future else None
    forecasts, seconds = test[["unique_id", "ds"]], {}
    model_with_covariates = LightGBM(horizon=horizon, season_length=data.seasons)
    local_models = [(cls(horizon=horizon, season_length=season), {}) for cls in (SeasonalNaive, AutoETS)]
    for model, roles in [(model_with_covariates, columns), *local_models]:
        start = time.perf_counter()
        history = train if roles else train[keys]
        model.fit(history, freq=data.freq, columns=roles or None)
        model_forecasts = model.predict(future=future if roles and data.future else None)
        seconds[model.name] = time.perf_counter() - start
        forecasts = forecasts.merge(model_forecasts, on=["unique_id", "ds"], validate="1:1")
    start = time.perf_counter()
    filled = fill_gaps(train, freq=data.freq, columns=columns)  # mlforecast does not accept missing values
    is_numeric = pd.api.types.is_numeric_dtype
    filled = filled.fillna({name: 0 if is_numeric(filled[name]) else filled[name].mode()[0] for name in train.columns})
    peer_forecasts = peer(filled, future, settings(model_with_covariates, data, horizon))
    seconds["mlforecast"] = time.perf_counter() - start
    peer_forecasts = peer_forecasts.rename(columns={"forecast": "mlforecast"})
    forecasts = forecasts.merge(peer_forecasts[["unique_id", "ds", "mlforecast"]], on=["unique_id", "ds"], validate="1:1")
    scores = score(forecasts, actual=test[keys], train=train[keys], metrics=["mase", "wape"], season_length=season)
    n_series = f"{train['unique_id'].nunique():,}"
    return [
        f"| {name} | {n_series} | {row.model} | {row.mase:.3f} | {row.wape:.4f} | {seconds[row.model]:.1f} |"
        for row in scores.itertuples()
    ]


def settings(model: LightGBM, data: Data, horizon: int) -> dict[str, Any]:
    """The features selected by deepforecast as settings of mlforecast."""
    plan = Plan.from_dict(model.state_.learned["plan"])
    windows = [feature for feature in plan.design.target_features if feature.kind != "lag"]
    return {
        "lags": [feature.lag for feature in plan.design.target_features if feature.kind == "lag"],
        "windows": [(feature.kind, feature.size) for feature in windows if feature.stride == 1],
        "seasonal": [(feature.size, feature.stride) for feature in windows if feature.stride > 1],
        "calendar": [PANDAS_NAMES.get(feature, feature) for feature in plan.design.calendar],
        "differences": list(plan.target.differences),
        "scale": True,
        "freq": data.freq,
        "horizon": horizon,
        "lightgbm": {
            "n_estimators": model.n_estimators, "num_leaves": model.num_leaves, "learning_rate": model.learning_rate,
            "min_child_samples": model.min_child_samples, "subsample": model.subsample, "subsample_freq": 1,
            "colsample_bytree": model.colsample_bytree, "n_jobs": 2, "verbosity": -1, "random_state": 0,
        },
    }  # fmt: skip


def peer(train: pd.DataFrame, future: pd.DataFrame | None, settings: dict[str, Any]) -> pd.DataFrame:
    """Run mlforecast in its own environment; creates the environment if necessary."""
    environments = os.environ.get("DEEPFORECAST_PEERS")
    folder = Path(environments, "mlforecast") if environments else HERE.parent / "build" / "peers" / "mlforecast"
    subprocess.run(["sh", str(HERE / "peers" / "make-env"), "mlforecast", str(folder)], check=True)
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as data_folder:
        panel, future_path, out = (Path(data_folder, f"{name}.parquet") for name in ("panel", "future", "out"))
        train.to_parquet(panel)
        if future is not None:
            future.to_parquet(future_path)
            settings = {**settings, "future": str(future_path)}
        script = str(HERE / "peers" / "regression_mlforecast.py")
        command = [str(folder / "bin" / "python"), "-W", "ignore", script, str(panel), json.dumps(settings), str(out)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env)
        return pd.read_parquet(out).assign(unique_id=lambda frame: frame["unique_id"].astype(str))


if __name__ == "__main__":
    assert deepforecast.__file__
    sys.exit(main())
