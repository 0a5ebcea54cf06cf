"""AutoARIMA beside statsforecast's on monthly series of M4, and on an hourly one: CPU seconds, errors, AICc.

    python benchmarks/bench_arima.py [--series 60]

Needs the data folder (DEEPFORECAST_DATA). Timed are `fit` and `predict` of all series as a frame (ours, on one thread), and of
one after another as an array (theirs); one run. AICc are compared where both take as many differences: others are of other
data. The hourly series: 700 hours of M4, season 24, which the peer takes most of a minute for.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from beside_smoothing import HORIZON, SEASON, monthly
from beside_statsforecast import HERE, PEER, machine, peer_python

from deepforecast import AutoARIMA, datasets, score

NEEDED = 30  # times faster
HOURS, DAY, LIMIT = 700, 24, 1.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=60)
    given = parser.parse_args()
    train, test = monthly(given.series)
    hours = datasets.load("m4_hourly", split="train")
    hours = hours[hours["unique_id"] == hours["unique_id"].iloc[0]].head(HOURS)
    hours = hours.assign(unique_id="H1", y=hours["y"].astype(float))[["unique_id", "ds", "y"]]
    with tempfile.TemporaryDirectory() as folder:
        rows, ratio, versions = beside(train, test, Path(folder))
        ours, _, _ = timed(hours, DAY, 2 * DAY)
        seconds, _, _ = theirs(hours, DAY, 2 * DAY, Path(folder))
    lines = [
        "# AutoARIMA beside statsforecast's",
        "",
        f"{given.series:,} monthly series of M4 with 120 to 300 values, {HORIZON} months ahead; one run.",
        "",
        *rows,
        "",
        f"One hourly series of {len(hours)} values, season {DAY}: {ours:.2f} CPU s (statsforecast {seconds:.1f}).",
        "",
        versions,
    ]
    print("\n".join(lines))
    (HERE / "results" / "arima.md").write_text("\n".join([*lines, ""]), encoding="utf-8")
    return int(ratio < NEEDED or ours > LIMIT)


def beside(train: pd.DataFrame, test: pd.DataFrame, folder: Path) -> tuple[list[str], float, str]:
    """The table, how many times faster ours is, and what it ran on."""
    series = train["unique_id"].nunique()
    head = train[train["unique_id"] == train["unique_id"].iloc[0]]
    AutoARIMA(horizon=HORIZON, season_length=SEASON).fit(head, freq=1).predict()  # compiles
    spent, forecast, table = timed(train, SEASON, HORIZON)
    seconds, versions, found = theirs(train, SEASON, HORIZON, folder)
    other = test[["unique_id", "ds"]].assign(**{PEER: found["forecast"].to_numpy()})
    mine = pd.DataFrame({"order": [plain(one) for one in table["order"]], "aicc": table["aicc"].to_numpy()})
    peers = found.iloc[::HORIZON].reset_index(drop=True)
    same = np.array([same_differences(a, b) for a, b in zip(mine["order"], peers["order"], strict=True)])
    away = (mine["aicc"] - peers["aicc"])[same]
    rows = ["| | CPU ms a series | times | sMAPE | MASE |", "|---|---|---|---|---|"]
    for label, each, ahead in (("AutoARIMA", spent, forecast), (PEER, seconds, other)):
        errors = score(ahead, actual=test, train=train, metrics=["smape", "mase"], season_length=SEASON)
        smape, mase = errors["smape"].iloc[0], errors["mase"].iloc[0]
        rows.append(f"| {label} | {1e3 * each / series:,.1f} | {seconds / each:.1f} | {smape:.3f} | {mase:.4f} |")
    rows += [
        "",
        f"Differences agree on {same.sum()} of {series} series; there AICc is {away.mean():+.3f} beside theirs on the average "
        f"({(away < -0.01).sum()} lower, {(away > 0.01).sum()} higher, {away.max():+.2f} at most).",
    ]
    return rows, seconds / spent, machine(versions)


def timed(frame: pd.DataFrame, season: int, horizon: int) -> tuple[float, pd.DataFrame, pd.DataFrame]:
    """CPU seconds of ours, the forecast, and the orders."""
    start = time.process_time()
    model = AutoARIMA(horizon=horizon, season_length=season).fit(frame, freq=1)
    forecast = model.predict()
    return time.process_time() - start, forecast, model.parameters()


def theirs(frame: pd.DataFrame, season: int, horizon: int, folder: Path) -> tuple[float, str, pd.DataFrame]:
    """CPU seconds of the peer in a process of its own, its version, forecasts, AICc and orders."""
    panel, out = str(folder / "panel.parquet"), str(folder / "out.parquet")
    frame.to_parquet(panel)
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}
    command = [str(peer_python()), str(HERE / "peers" / f"arima_{PEER}.py"), panel, str(season), str(horizon), out]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=env)
    said = json.loads(done.stdout.splitlines()[-1])
    return said["seconds"], said["versions"], pd.read_parquet(out)


def plain(order: str) -> str:
    """ "(2,1,1)(0,1,0)[12] with drift" as "2,1,1,0,1,0"."""
    parts = order.split("[")[0].split(" ")[0].strip("()").split(")(")
    return ",".join([*parts[0].split(","), *(parts[1].split(",") if len(parts) > 1 else "000")])


def same_differences(one: str, other: str) -> bool:
    """Whether two orders take as many differences of both kinds."""
    return one.split(",")[1::3] == other.split(",")[1::3]


if __name__ == "__main__":
    sys.exit(main())
