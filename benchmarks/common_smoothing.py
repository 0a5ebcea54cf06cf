"""Functions shared by the benchmarks of Theta and CES: monthly series of M4, alternating runs, the table."""

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
from common_statsforecast import HERE, PEER, describe_machine, peer_python

from deepforecast import datasets, score

SEASON, HORIZON = 12, 18
LENGTHS = (120, 300)
MIN_SPEEDUP = 20

Losses = Callable[[Any], np.ndarray]


def compare_with_peer(
    name: str, models: dict[str, Any], losses: Losses, series: int, rounds: int
) -> tuple[list[str], float, str]:
    """Compare models with one of the peer.

    Returns the rows of the table, the speedup of the first model over the peer, and the versions.
    """
    train, test = load_monthly(series)
    python, seconds = peer_python(), dict[str, list[float]]()
    forecasts, losses_by_model = dict[str, pd.DataFrame](), dict[str, np.ndarray]()
    few = train[train["unique_id"].isin(train["unique_id"].unique()[:4])]
    for model in models.values():
        model.clone().fit(few, freq=1).predict()  # compiles
    for round_number in range(rounds):
        for label, model in models.items():
            start = time.process_time()
            fitted = model.clone().fit(train, freq=1)
            forecast = fitted.predict()
            seconds.setdefault(label, []).append(time.process_time() - start)
            forecasts[label], losses_by_model[label] = forecast, losses(fitted)
        if round_number < 2:  # the peer is slow
            peer_seconds, versions, forecast, losses_by_model[PEER] = run_peer(python, train, name)
            seconds.setdefault(PEER, []).append(peer_seconds)
            forecasts[PEER] = test[["unique_id", "ds"]].assign(**{PEER: forecast})
    rows = []
    median = {label: statistics.median(times) for label, times in seconds.items()}
    for label, label_seconds in median.items():
        errors = score(forecasts[label], actual=test, train=train, metrics=["smape", "mase"], season_length=SEASON)
        difference = losses_by_model[label] - losses_by_model[PEER]
        rows.append(
            f"| {label} | {1e6 * label_seconds / train['unique_id'].nunique():,.0f} | {median[PEER] / label_seconds:.1f} | "
            f"{errors['smape'].iloc[0]:.3f} | {errors['mase'].iloc[0]:.4f} | {difference.mean():+.4f} | "
            f"{np.mean(difference > 1e-4):.1%} |"
        )
    return rows, median[PEER] / median[next(iter(models))], describe_machine(versions)


def load_monthly(series: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training and test part of monthly series of M4 of medium length, evenly spaced over the dataset, sorted."""
    columns = ["unique_id", "ds", "y"]
    parts = [datasets.load("m4_monthly", split=split)[columns] for split in ("train", "test")]
    parts = [part.assign(unique_id=part["unique_id"].astype(str), y=part["y"].astype(float)) for part in parts]
    lengths = parts[0].groupby("unique_id").size()
    ids = sorted(lengths.index[(lengths >= LENGTHS[0]) & (lengths <= LENGTHS[1])])
    sampled_ids = {ids[position] for position in np.unique(np.linspace(0, len(ids) - 1, series).astype(int))}
    train, test = (
        part[part["unique_id"].isin(sampled_ids)].sort_values(["unique_id", "ds"], ignore_index=True) for part in parts
    )
    return train, test


def run_peer(python: Path, train: pd.DataFrame, name: str) -> tuple[float, str, np.ndarray, np.ndarray]:
    """Run a model of the peer in a separate process: CPU seconds, versions, forecasts, and the loss of each series."""
    with tempfile.TemporaryDirectory() as folder:
        panel, out = str(Path(folder, "panel.parquet")), str(Path(folder, "out.parquet"))
        train.to_parquet(panel)
        env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}
        command = [str(python), str(HERE / "peers" / f"smoothing_{PEER}.py"), panel, str(SEASON), str(HORIZON), name, out]
        process = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=env)
        forecasts = pd.read_parquet(out)
    measurement = json.loads(process.stdout.splitlines()[-1])
    loss = forecasts["loss"].to_numpy()[::HORIZON]
    loss = np.log(loss) if name == "theta" else loss
    return measurement["seconds"], measurement["versions"], forecasts["forecast"].to_numpy(), loss
