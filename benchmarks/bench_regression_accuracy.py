"""LightGBM at its defaults beside mlforecast with the same features and trees, SeasonalNaive and AutoETS, on real data.

    python benchmarks/bench_regression_accuracy.py [set ...]

Needs the data folder (DEEPFORECAST_DATA): M4 hourly and weekly, NN5, an M5 store, Rossmann with its known-ahead promotions and
holidays. The peer is given the lags, windows, differences, calendar and covariates that ours chose by itself.
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
NAMES = {"day_of_week": "dayofweek", "day_of_month": "day"}  # of calendar features, as pandas calls them


@dataclass(frozen=True)
class Data:
    """A set: its seasons, how time is counted, the columns known ahead, and how many series at most."""

    seasons: list[int]
    freq: Any
    future: tuple[str, ...] = ()
    most: int | None = None


SETS = {
    "m4_hourly": Data([24, 168], 1),
    "m4_weekly": Data([1], 1),
    "nn5_daily": Data([7], "D"),
    "m5_ca_1": Data([7], "D", ("event", "event_type", "snap")),
    "rossmann": Data([7], "D", ("open", "promo", "state_holiday", "school_holiday")),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=list(SETS))
    given = parser.parse_args()
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    lines = [
        "# LightGBM beside mlforecast with the same features, on real data",
        "",
        "MASE and WAPE over all series; seconds of fit and predict (wall, two cores that did other work too).",
        "",
        "| set | series | model | MASE | WAPE | seconds |",
        "|---|---|---|---|---|---|",
    ]
    for name in given.sets:
        lines += run(name, SETS[name])
        print("\n".join(lines[-4:]), flush=True)
    lines += ["", f"`python benchmarks/bench_regression_accuracy.py`, {time.strftime('%Y-%m-%d')}, two cores."]
    if set(given.sets) >= set(SETS):
        RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")


def run(name: str, data: Data) -> list[str]:
    """All models on one set, as rows."""
    train, test = (datasets.load(name, split=split) for split in ("train", "test"))
    horizon, season = datasets.card(name).horizon, data.seasons[0]
    keys, columns = ["unique_id", "ds", "y"], {"future": list(data.future)}
    train, test = (one[[*keys, *data.future]].assign(unique_id=one["unique_id"].astype(str)) for one in (train, test))
    ahead = test.drop(columns="y") if data.future else None
    forecasts, seconds = test[["unique_id", "ds"]], {}
    ours = LightGBM(horizon=horizon, season_length=data.seasons)
    others = [(SeasonalNaive(horizon=horizon, season_length=season), {}), (AutoETS(horizon=horizon, season_length=season), {})]
    for model, declared in [(ours, columns), *others]:
        start = time.perf_counter()
        history = train if declared else train[keys]
        model.fit(history, freq=data.freq, columns=declared or None)
        found = model.predict(future=ahead if declared and data.future else None)
        seconds[model.name] = time.perf_counter() - start
        forecasts = forecasts.merge(found, on=["unique_id", "ds"], validate="1:1")
    start = time.perf_counter()
    whole = fill_gaps(train, freq=data.freq, columns=columns)  # it takes none
    numbers = pd.api.types.is_numeric_dtype
    whole = whole.fillna({name: 0 if numbers(whole[name]) else whole[name].mode()[0] for name in train.columns})
    theirs = peer(whole, ahead, settings(ours, data, horizon))
    seconds["mlforecast"] = time.perf_counter() - start
    theirs = theirs.rename(columns={"forecast": "mlforecast"})
    forecasts = forecasts.merge(theirs[["unique_id", "ds", "mlforecast"]], on=["unique_id", "ds"], validate="1:1")
    found = score(forecasts, actual=test[keys], train=train[keys], metrics=["mase", "wape"], season_length=season)
    count = f"{train['unique_id'].nunique():,}"
    return [
        f"| {name} | {count} | {row.model} | {row.mase:.3f} | {row.wape:.4f} | {seconds[row.model]:.1f} |"
        for row in found.itertuples()
    ]


def settings(model: LightGBM, data: Data, horizon: int) -> dict[str, Any]:
    """What ours chose, for the peer."""
    plan = Plan.from_dict(model.state_.learned["plan"])
    windows = [one for one in plan.design.target_features if one.kind != "lag"]
    return {
        "lags": [one.lag for one in plan.design.target_features if one.kind == "lag"],
        "windows": [(one.kind, one.size) for one in windows if one.stride == 1],
        "seasonal": [(one.size, one.stride) for one in windows if one.stride > 1],
        "calendar": [NAMES.get(one, one) for one in plan.design.calendar],
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


def peer(train: pd.DataFrame, ahead: pd.DataFrame | None, told: dict[str, Any]) -> pd.DataFrame:
    """mlforecast in its own environment, which is made if it is not there."""
    named = os.environ.get("DEEPFORECAST_PEERS")
    folder = Path(named, "mlforecast") if named else HERE.parent / "build" / "peers" / "mlforecast"
    subprocess.run(["sh", str(HERE / "peers" / "make-env"), "mlforecast", str(folder)], check=True)
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as place:
        panel, future, out = (Path(place, f"{one}.parquet") for one in ("panel", "future", "out"))
        train.to_parquet(panel)
        if ahead is not None:
            ahead.to_parquet(future)
            told = {**told, "future": str(future)}
        script = str(HERE / "peers" / "regression_mlforecast.py")
        given = [str(folder / "bin" / "python"), "-W", "ignore", script, str(panel), json.dumps(told), str(out)]
        subprocess.run(given, check=True, stdout=subprocess.DEVNULL, env=env)
        return pd.read_parquet(out).assign(unique_id=lambda frame: frame["unique_id"].astype(str))


if __name__ == "__main__":
    assert deepforecast.__file__
    sys.exit(main())
