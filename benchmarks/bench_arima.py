"""AutoARIMA compared with statsforecast on monthly series of M4 and on an hourly series: CPU seconds, errors, AICc.

    python benchmarks/bench_arima.py [--series 60]

Requires the benchmark data (DEEPFORECAST_DATA). Timed are `fit` and `predict`: of all series in one frame on
one thread (deepforecast), or of one array after the other (statsforecast); one run. AICc values are compared
only if both libraries take the same differences, since they are not comparable otherwise. The hourly series
has 700 values of M4 and season length 24; statsforecast needs most of a minute for it.
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
from common_smoothing import HORIZON, SEASON, load_monthly
from common_statsforecast import HERE, PEER, describe_machine, peer_python

from deepforecast import AutoARIMA, datasets, score

MIN_SPEEDUP = 30
N_HOURLY_VALUES, HOURLY_SEASON, MAX_SECONDS = 700, 24, 1.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=60)
    args = parser.parse_args()
    train, test = load_monthly(args.series)
    hourly = datasets.load("m4_hourly", split="train")
    hourly = hourly[hourly["unique_id"] == hourly["unique_id"].iloc[0]].head(N_HOURLY_VALUES)
    hourly = hourly.assign(unique_id="H1", y=hourly["y"].astype(float))[["unique_id", "ds", "y"]]
    with tempfile.TemporaryDirectory() as folder:
        rows, speedup, versions = compare_monthly(train, test, Path(folder))
        hourly_seconds, _, _ = run_model(hourly, HOURLY_SEASON, 2 * HOURLY_SEASON)
        peer_hourly_seconds, _, _ = run_peer(hourly, HOURLY_SEASON, 2 * HOURLY_SEASON, Path(folder))
    lines = [
        "# AutoARIMA compared with statsforecast",
        "",
        f"{args.series:,} monthly series of M4 with 120 to 300 values, horizon {HORIZON}; one run.",
        "",
        *rows,
        "",
        f"One hourly series of {len(hourly)} values, season length {HOURLY_SEASON}: {hourly_seconds:.2f} CPU s "
        f"(statsforecast {peer_hourly_seconds:.1f}).",
        "",
        versions,
    ]
    print("\n".join(lines))
    (HERE / "results" / "arima.md").write_text("\n".join([*lines, ""]), encoding="utf-8")
    return int(speedup < MIN_SPEEDUP or hourly_seconds > MAX_SECONDS)


def compare_monthly(train: pd.DataFrame, test: pd.DataFrame, folder: Path) -> tuple[list[str], float, str]:
    """The rows of the table, the speedup over the peer, and the versions."""
    series = train["unique_id"].nunique()
    head = train[train["unique_id"] == train["unique_id"].iloc[0]]
    AutoARIMA(horizon=HORIZON, season_length=SEASON).fit(head, freq=1).predict()  # compiles
    seconds, forecast, table = run_model(train, SEASON, HORIZON)
    peer_seconds, versions, peer_results = run_peer(train, SEASON, HORIZON, folder)
    peer_forecast = test[["unique_id", "ds"]].assign(**{PEER: peer_results["forecast"].to_numpy()})
    orders = pd.DataFrame({"order": [normalize_order(order) for order in table["order"]], "aicc": table["aicc"].to_numpy()})
    peer_orders = peer_results.iloc[::HORIZON].reset_index(drop=True)
    is_same = np.array([same_differences(a, b) for a, b in zip(orders["order"], peer_orders["order"], strict=True)])
    difference = (orders["aicc"] - peer_orders["aicc"])[is_same]
    rows = ["| | CPU ms per series | speedup | sMAPE | MASE |", "|---|---|---|---|---|"]
    for label, model_seconds, forecasts in (("AutoARIMA", seconds, forecast), (PEER, peer_seconds, peer_forecast)):
        errors = score(forecasts, actual=test, train=train, metrics=["smape", "mase"], season_length=SEASON)
        smape, mase = errors["smape"].iloc[0], errors["mase"].iloc[0]
        rows.append(
            f"| {label} | {1e3 * model_seconds / series:,.1f} | {peer_seconds / model_seconds:.1f} | {smape:.3f} | {mase:.4f} |"
        )
    rows += [
        "",
        f"The differences agree on {is_same.sum()} of {series} series. On these, the AICc of deepforecast minus that of "
        f"statsforecast is {difference.mean():+.3f} on average ({(difference < -0.01).sum()} lower, "
        f"{(difference > 0.01).sum()} higher, at most {difference.max():+.2f}).",
    ]
    return rows, peer_seconds / seconds, describe_machine(versions)


def run_model(frame: pd.DataFrame, season: int, horizon: int) -> tuple[float, pd.DataFrame, pd.DataFrame]:
    """CPU seconds of AutoARIMA, its forecasts, and a table of orders and AICc."""
    start = time.process_time()
    model = AutoARIMA(horizon=horizon, season_length=season).fit(frame, freq=1)
    forecast = model.predict()
    return time.process_time() - start, forecast, model.parameters()


def run_peer(frame: pd.DataFrame, season: int, horizon: int, folder: Path) -> tuple[float, str, pd.DataFrame]:
    """Run the peer in a separate process: CPU seconds, versions, and a table of forecasts, AICc and orders."""
    panel, out = str(folder / "panel.parquet"), str(folder / "out.parquet")
    frame.to_parquet(panel)
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}
    command = [str(peer_python()), str(HERE / "peers" / f"arima_{PEER}.py"), panel, str(season), str(horizon), out]
    process = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=env)
    measurement = json.loads(process.stdout.splitlines()[-1])
    return measurement["seconds"], measurement["versions"], pd.read_parquet(out)


def normalize_order(order: str) -> str:
    """Convert "(2,1,1)(0,1,0)[12] with drift" to "2,1,1,0,1,0"."""
    parts = order.split("[")[0].split(" ")[0].strip("()").split(")(")
    return ",".join([*parts[0].split(","), *(parts[1].split(",") if len(parts) > 1 else "000")])


def same_differences(order: str, other: str) -> bool:
    """Whether two orders have the same numbers of differences and of seasonal differences."""
    return order.split(",")[1::3] == other.split(",")[1::3]


if __name__ == "__main__":
    sys.exit(main())
