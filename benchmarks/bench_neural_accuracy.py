"""LSTM and GRU with default parameters, compared with neuralforecast at its defaults and SeasonalNaive, on public data.

    python benchmarks/bench_neural_accuracy.py [dataset ...] [--models LSTM GRU] [--kept FOLDER] [--quick]
    python benchmarks/bench_neural_accuracy.py --validation --no-peer --models MLP --changes '[{}, {"scaler": "level"}]'

Requires the benchmark data (DEEPFORECAST_DATA): M4 hourly and weekly, NN5 (the test part), Nord Pool prices with load
and wind forecasts as future covariates (each day of the test part, one fit). MASE is scaled by the seasonal naive
errors of the training part. neuralforecast has no default input size; three horizons are used. `--kept`: folder that
caches forecasts and run times of neuralforecast. `--validation` scores on the end of the training part, to choose defaults,
also with `--changes`, a JSON list of parameters that differ from the defaults.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common_neural import Measurement, peer, write

import deepforecast
from deepforecast import SeasonalNaive, cross_validate, datasets


@dataclass(frozen=True)
class Data:
    """A dataset: season length, frequency, future covariates; `rolled`: rolling forecasts over the test part."""

    season: int
    freq: Any
    future: tuple[str, ...] = ()
    rolled: bool = False


DATASETS = {
    "m4_hourly": Data(24, 1),
    "m4_weekly": Data(1, 1),
    "nn5_daily": Data(7, "D"),
    "epf_np": Data(24, "h", ("grid_load_forecast", "wind_power_forecast"), rolled=True),
}
KEYS = ["unique_id", "ds", "y"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=list(DATASETS))
    parser.add_argument("--models", nargs="*", default=["LSTM", "GRU"])
    parser.add_argument("--quick", action="store_true", help="only M4 weekly with 50 steps, to check that the script runs")
    parser.add_argument("--asleep", action="store_true", help="passive OpenMP waiting, for machines under load")
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--kept", type=Path)
    parser.add_argument("--validation", action="store_true", help="score on the end of the training part, to choose defaults")
    parser.add_argument("--changes", type=json.loads, default=[{}], help="with --validation: JSON list of parameters to change")
    args = parser.parse_args()
    if args.quick:
        args.sets, args.models, args.asleep = ["m4_weekly"], ["LSTM"], True
    if args.changes != [{}] and not args.validation:
        parser.error("--changes must be used with --validation: defaults are not chosen on the test part.")
    if args.asleep:
        os.environ.update(OMP_WAIT_POLICY="PASSIVE", KMP_BLOCKTIME="0")
    lines = [
        "# LSTM and GRU with default parameters, compared with neuralforecast",
        "",
        "| dataset | series | model | MASE | seconds | CPU seconds |",
        "|---|---|---|---|---|---|",
    ]
    for name in args.sets:
        rows = run(name, DATASETS[name], args)
        lines += rows
        print("\n".join(rows), flush=True)
    write("neural_accuracy", lines, args.quick or args.validation or set(args.sets) < set(DATASETS) or args.no_peer)
    return 0


def run(name: str, data: Data, args: Any) -> list[str]:
    """The rows of all models on one dataset."""
    train, test = (read(name, split, data) for split in ("train", "test"))
    horizon = datasets.card(name).horizon
    windows = 200 if args.validation else test.groupby("unique_id").size().min() // horizon
    windows = int(windows) if data.rolled else 0
    if args.validation:
        is_validation = train.groupby("unique_id").cumcount(ascending=False) < max(windows, 1) * horizon
        train, test = train[~is_validation], train[is_validation]
    if windows:
        test = test[test.groupby("unique_id").cumcount() < windows * horizon]
    steps = {"max_steps": 50} if args.quick else {}
    naive = SeasonalNaive(horizon=horizon, season_length=data.season)
    results = {"SeasonalNaive": run_model(naive, train, test, data, windows)}
    for kind in args.models:
        for change in args.changes:
            model = getattr(deepforecast, kind)(horizon=horizon, **{**steps, **change})
            label = ", ".join([kind, *(f"{param}={value!r}" for param, value in change.items())])
            results[label] = run_model(model, train, test, data, windows)
        if not args.no_peer:
            settings = {"model": kind, "horizon": horizon, "freq": data.freq, "future": list(data.future), "windows": windows}
            settings["steps"] = steps.get("max_steps")
            peer_run = partial(run_peer, train, test, settings)
            results[f"neuralforecast {kind}"] = cached(args.kept, f"{name}-{kind}", peer_run)
    return [
        f"| {name} | {train['unique_id'].nunique():,} | {label} | {mase(train, test, forecasts, data.season):.3f} | "
        f"{seconds['wall']:.1f} | {seconds['cpu']:.1f} |"
        for label, (forecasts, seconds) in results.items()
    ]


def read(name: str, split: str, data: Data) -> pd.DataFrame:
    """A part of a dataset with the columns that are used, sorted."""
    frame = datasets.load(name, split=split)[[*KEYS, *data.future]]
    frame = frame.assign(unique_id=frame["unique_id"].astype(str), y=frame["y"].astype(float))
    return frame.sort_values(["unique_id", "ds"], ignore_index=True)


def run_model(
    model: Any, train: pd.DataFrame, test: pd.DataFrame, data: Data, windows: int
) -> tuple[pd.DataFrame, Measurement]:
    """Forecasts of the test part (unique_id, ds, forecast), and wall-clock and CPU seconds."""
    uses = data.future and model.capabilities.future
    columns, covariates = ({"future": list(data.future)}, list(data.future)) if uses else (None, [])
    wall, cpu = time.perf_counter(), time.process_time()
    if windows:
        frame = pd.concat([train, test])[[*KEYS, *covariates]]
        forecasts = cross_validate(
            model, frame, n_windows=windows, step_size=model.horizon, refit=False, columns=columns, freq=data.freq
        )
    else:
        model.fit(train[[*KEYS, *covariates]], freq=data.freq, columns=columns)
        forecasts = model.predict(future=test[["unique_id", "ds", *covariates]] if uses else None)
    seconds = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    return forecasts.rename(columns={model.name: "forecast"})[["unique_id", "ds", "forecast"]], seconds


def cached(folder: Path | None, name: str, run: Any) -> tuple[pd.DataFrame, Measurement]:
    """The result of `run`, from the cache if it is there."""
    if folder is None:
        return run()
    forecasts_file, seconds_file = folder / f"{name}.parquet", folder / f"{name}.json"
    if not seconds_file.exists():
        forecasts, seconds = run()
        folder.mkdir(parents=True, exist_ok=True)
        forecasts.to_parquet(forecasts_file)
        seconds_file.write_text(json.dumps(seconds), encoding="utf-8")
    return pd.read_parquet(forecasts_file), json.loads(seconds_file.read_text(encoding="utf-8"))


def run_peer(train: pd.DataFrame, test: pd.DataFrame, settings: Measurement) -> tuple[pd.DataFrame, Measurement]:
    """The same for neuralforecast, in its own environment."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: str(Path(folder, f"{name}.parquet")) for name in ("train", "ahead", "out")}
        (pd.concat([train, test]) if settings["windows"] else train).to_parquet(paths["train"])
        test.drop(columns="y").to_parquet(paths["ahead"])
        future = paths["ahead"] if settings["future"] and not settings["windows"] else None
        measurement = peer("neural_accuracy_neuralforecast.py", "neuralforecast", {**settings, **paths, "ahead": future})
        forecasts = pd.read_parquet(paths["out"])
    return forecasts.rename(columns={"peer": "forecast"})[["unique_id", "ds", "forecast"]], measurement


def mase(train: pd.DataFrame, test: pd.DataFrame, forecasts: pd.DataFrame, season: int) -> float:
    """MASE, averaged over all series."""
    evaluated = test.merge(forecasts.astype({"unique_id": str}), on=["unique_id", "ds"], validate="1:1")
    if len(evaluated) < len(test):
        raise RuntimeError(f"Every row of the test part must have a forecast; {len(test) - len(evaluated)} have none.")
    errors = (evaluated["y"] - evaluated["forecast"]).abs().groupby(evaluated["unique_id"]).mean()
    by_series = train.groupby("unique_id")["y"]
    naive_errors = by_series.apply(lambda y: np.nanmean(np.abs(y.to_numpy()[season:] - y.to_numpy()[:-season])))
    return float((errors / naive_errors[errors.index]).mean())


if __name__ == "__main__":
    sys.exit(main())
