"""LSTM and GRU at their defaults beside neuralforecast's at its defaults and SeasonalNaive, on real data.

    python benchmarks/bench_neural_accuracy.py [set ...] [--models LSTM GRU] [--kept FOLDER] [--quick]

Needs the data folder (DEEPFORECAST_DATA): M4 hourly and weekly, NN5 (what follows the training part), Nord Pool's prices with
load and wind known ahead (each day of the test part, one model). MASE by the changes over one season in the training part. The
peer has no default for how far it looks back: three horizons. `--kept`: what the peer said and how long it took stays in that
folder, and what is there is not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from beside_neural import Said, peer, write

import deepforecast
from deepforecast import SeasonalNaive, cross_validate, datasets


@dataclass(frozen=True)
class Data:
    """A set: its season, how time is counted, the columns known ahead; `rolled`: the test part day after day."""

    season: int
    freq: Any
    future: tuple[str, ...] = ()
    rolled: bool = False


SETS = {
    "m4_hourly": Data(24, 1),
    "m4_weekly": Data(1, 1),
    "nn5_daily": Data(7, "D"),
    "epf_np": Data(24, "h", ("grid_load_forecast", "wind_power_forecast"), rolled=True),
}
KEYS = ["unique_id", "ds", "y"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=list(SETS))
    parser.add_argument("--models", nargs="*", default=["LSTM", "GRU"])
    parser.add_argument("--quick", action="store_true", help="weekly alone, 50 steps of all: only that it runs")
    parser.add_argument("--asleep", action="store_true", help="idle threads sleep: for a machine that does other work too")
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--kept", type=Path)
    parser.add_argument("--validation", action="store_true", help="on the end of the training part: what defaults are tuned by")
    given = parser.parse_args()
    if given.quick:
        given.sets, given.models, given.asleep = ["m4_weekly"], ["LSTM"], True
    if given.asleep:
        os.environ.update(OMP_WAIT_POLICY="PASSIVE", KMP_BLOCKTIME="0")
    lines = [
        "# LSTM and GRU at their defaults beside neuralforecast's",
        "",
        "| set | series | model | MASE | seconds | CPU seconds |",
        "|---|---|---|---|---|---|",
    ]
    for name in given.sets:
        found = run(name, SETS[name], given)
        lines += found
        print("\n".join(found), flush=True)
    write("neural_accuracy", lines, given.quick or given.validation or set(given.sets) < set(SETS) or given.no_peer)
    return 0


def run(name: str, data: Data, given: Any) -> list[str]:
    """All models on one set, as rows."""
    train, test = (read(name, split, data) for split in ("train", "test"))
    horizon = datasets.card(name).horizon
    windows = 200 if given.validation else test.groupby("unique_id").size().min() // horizon
    windows = int(windows) if data.rolled else 0
    if given.validation:
        end = train.groupby("unique_id").cumcount(ascending=False) < max(windows, 1) * horizon
        train, test = train[~end], train[end]
    if windows:
        test = test[test.groupby("unique_id").cumcount() < windows * horizon]
    steps = {"max_steps": 50} if given.quick else {}
    found = {"SeasonalNaive": ours(SeasonalNaive(horizon=horizon, season_length=data.season), train, test, data, windows)}
    for kind in given.models:
        model = getattr(deepforecast, kind)(horizon=horizon, **steps)
        found[kind] = ours(model, train, test, data, windows)
        if not given.no_peer:
            told = {"model": kind, "horizon": horizon, "freq": data.freq, "future": list(data.future), "windows": windows}
            told["steps"] = steps.get("max_steps")
            found[f"neuralforecast {kind}"] = kept(given.kept, f"{name}-{kind}", lambda told=told: theirs(train, test, told))
    return [
        f"| {name} | {train['unique_id'].nunique():,} | {who} | {mase(train, test, one, data.season):.3f} | "
        f"{said['wall']:.1f} | {said['cpu']:.1f} |"
        for who, (one, said) in found.items()
    ]


def read(name: str, split: str, data: Data) -> pd.DataFrame:
    """Sorted, the columns that are used."""
    frame = datasets.load(name, split=split)[[*KEYS, *data.future]]
    frame = frame.assign(unique_id=frame["unique_id"].astype(str), y=frame["y"].astype(float))
    return frame.sort_values(["unique_id", "ds"], ignore_index=True)


def ours(model: Any, train: pd.DataFrame, test: pd.DataFrame, data: Data, windows: int) -> tuple[pd.DataFrame, Said]:
    """Forecasts of the rows of the test part, `unique_id, ds, forecast`, and seconds."""
    uses = data.future and model.capabilities.future
    columns, chosen = ({"future": list(data.future)}, list(data.future)) if uses else (None, [])
    wall, cpu = time.perf_counter(), time.process_time()
    if windows:
        whole = pd.concat([train, test])[[*KEYS, *chosen]]
        found = cross_validate(
            model, whole, n_windows=windows, step_size=model.horizon, refit=False, columns=columns, freq=data.freq
        )
    else:
        model.fit(train[[*KEYS, *chosen]], freq=data.freq, columns=columns)
        found = model.predict(future=test[["unique_id", "ds", *chosen]] if uses else None)
    said = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    return found.rename(columns={model.name: "forecast"})[["unique_id", "ds", "forecast"]], said


def kept(folder: Path | None, name: str, run: Any) -> tuple[pd.DataFrame, Said]:
    """What is in the folder by that name, or else what the run brings, which stays there."""
    if folder is None:
        return run()
    forecasts, seconds = folder / f"{name}.parquet", folder / f"{name}.json"
    if not seconds.exists():
        found, said = run()
        folder.mkdir(parents=True, exist_ok=True)
        found.to_parquet(forecasts)
        seconds.write_text(json.dumps(said), encoding="utf-8")
    return pd.read_parquet(forecasts), json.loads(seconds.read_text(encoding="utf-8"))


def theirs(train: pd.DataFrame, test: pd.DataFrame, told: Said) -> tuple[pd.DataFrame, Said]:
    """The same by neuralforecast, in its own environment."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {one: str(Path(folder, f"{one}.parquet")) for one in ("train", "ahead", "out")}
        (pd.concat([train, test]) if told["windows"] else train).to_parquet(paths["train"])
        test.drop(columns="y").to_parquet(paths["ahead"])
        ahead = paths["ahead"] if told["future"] and not told["windows"] else None
        said = peer("neural_accuracy_neuralforecast.py", "neuralforecast", {**told, **paths, "ahead": ahead})
        found = pd.read_parquet(paths["out"])
    return found.rename(columns={"peer": "forecast"})[["unique_id", "ds", "forecast"]], said


def mase(train: pd.DataFrame, test: pd.DataFrame, found: pd.DataFrame, season: int) -> float:
    """The mean over all series."""
    both = test.merge(found.astype({"unique_id": str}), on=["unique_id", "ds"], validate="1:1")
    if len(both) < len(test):
        raise RuntimeError(f"{len(test) - len(both)} rows of the test part have no forecast.")
    errors = (both["y"] - both["forecast"]).abs().groupby(both["unique_id"]).mean()
    naive = train.groupby("unique_id")["y"].apply(lambda y: np.nanmean(np.abs(y.to_numpy()[season:] - y.to_numpy()[:-season])))
    return float((errors / naive[errors.index]).mean())


if __name__ == "__main__":
    sys.exit(main())
