"""What the benchmarks of Theta and CES share: monthly series of M4, runs that take turns, the table."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from beside_statsforecast import HERE, PEER, machine, peer_python

from deepforecast import datasets, score

SEASON, HORIZON = 12, 18
LENGTHS = (120, 300)
NEEDED = 20  # times faster

Losses = Callable[[Any], np.ndarray]


def beside(name: str, models: dict[str, Any], losses: Losses, series: int, rounds: int) -> tuple[list[str], float, str]:
    """Rows of the table, how many times faster the first model is than the peer's, and what it ran on."""
    train, test = monthly(series)
    python, spent, found, lost = peer_python(), dict[str, list[float]](), dict[str, pd.DataFrame](), dict[str, np.ndarray]()
    few = train[train["unique_id"].isin(train["unique_id"].unique()[:4])]
    for model in models.values():
        model.clone().fit(few, freq=1).predict()  # compiles
    for turn in range(rounds):
        for label, model in models.items():
            start = time.process_time()
            fitted = model.clone().fit(train, freq=1)
            forecast = fitted.predict()
            spent.setdefault(label, []).append(time.process_time() - start)
            found[label], lost[label] = forecast, losses(fitted)
        if turn < 2:  # the peer's takes long
            seconds, versions, forecast, lost[PEER] = theirs(python, train, name)
            spent.setdefault(PEER, []).append(seconds)
            found[PEER] = test[["unique_id", "ds"]].assign(**{PEER: forecast})
    rows = []
    median = {label: statistics.median(each) for label, each in spent.items()}
    for label, each in median.items():
        errors = score(found[label], actual=test, train=train, metrics=["smape", "mase"], season_length=SEASON)
        away = lost[label] - lost[PEER]
        rows.append(
            f"| {label} | {1e6 * each / train['unique_id'].nunique():,.0f} | {median[PEER] / each:.1f} | "
            f"{errors['smape'].iloc[0]:.3f} | {errors['mase'].iloc[0]:.4f} | {away.mean():+.4f} | {np.mean(away > 1e-4):.1%} |"
        )
    return rows, median[PEER] / median[next(iter(models))], machine(versions)


def monthly(series: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Some monthly series of M4 of medium length, evenly spread, and what followed, sorted."""
    both = [datasets.load("m4_monthly", split=split)[["unique_id", "ds", "y"]] for split in ("train", "test")]
    train, test = (one.assign(unique_id=one["unique_id"].astype(str), y=one["y"].astype(float)) for one in both)
    rows = train.groupby("unique_id").size()
    ids = sorted(rows.index[(rows >= LENGTHS[0]) & (rows <= LENGTHS[1])])
    kept = {ids[place] for place in np.unique(np.linspace(0, len(ids) - 1, series).astype(int))}
    some = [one[one["unique_id"].isin(kept)].sort_values(["unique_id", "ds"], ignore_index=True) for one in (train, test)]
    return some[0], some[1]


def theirs(python: Path, train: pd.DataFrame, name: str) -> tuple[float, str, np.ndarray, np.ndarray]:
    """The peer's model in a process of its own: CPU seconds, versions, forecasts, and the loss of each series."""
    with tempfile.TemporaryDirectory() as folder:
        panel, out = str(Path(folder, "panel.parquet")), str(Path(folder, "out.parquet"))
        train.to_parquet(panel)
        env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}
        command = [str(python), str(HERE / "peers" / f"smoothing_{PEER}.py"), panel, str(SEASON), str(HORIZON), name, out]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=env)
        found = pd.read_parquet(out)
    said = json.loads(done.stdout.splitlines()[-1])
    loss = found["loss"].to_numpy()[::HORIZON]
    return said["seconds"], said["versions"], found["forecast"].to_numpy(), np.log(loss) if name == "theta" else loss
