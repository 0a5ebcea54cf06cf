"""MSTL compared with statsforecast on hourly series of M4 (seasons 24 and 168), and STL compared with statsmodels.

    python benchmarks/bench_mstl.py [--series 100]

Requires the benchmark data (DEEPFORECAST_DATA). Timed are `fit` and `predict` (deepforecast), and `forecast`
(statsforecast), of 48 hours on one thread; with the default model of the seasonally adjusted series (non-seasonal
AutoETS), and with the naive model, so that only the decomposition counts.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common_statsforecast import describe_machine, max_relative_difference, mean_scaled_error, peer_python, run_model, run_peer
from statsmodels.tsa.seasonal import STL

from deepforecast import MSTL, Naive, datasets, decompose

HORIZON = 48
MIN_SPEEDUP = 5
MODELS = {
    "mstl": MSTL(horizon=HORIZON, season_length=[24, 168]),
    "mstl_naive": MSTL(horizon=HORIZON, season_length=[24, 168], trend_model=Naive()),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=100)
    count = parser.parse_args().series
    train, test = load_hourly(count)
    scale = train.groupby("unique_id")["y"].agg(lambda y: np.mean(np.abs(y.to_numpy()[24:] - y.to_numpy()[:-24])))
    python, rows, speedups, versions = peer_python(), [], [], ""
    for name, model in MODELS.items():
        peer_results = run_peer(python, train, "1", HORIZON, name)
        results = run_model(model, train, 1)
        versions, speedup = peer_results["versions"], peer_results["seconds"] / results["seconds"]
        speedups.append(speedup)
        errors = [mean_scaled_error(run["forecast"], test, scale, np.abs) for run in (results, peer_results)]
        rows.append(
            f"| `{model!r}` | {results['seconds']:.2f} | {peer_results['seconds']:.2f} | {speedup:.0f} | "
            f"{errors[0]:.3f} | {errors[1]:.3f} | "
            f"{max_relative_difference(results['forecast'], peer_results['forecast']):.1g} |"
        )
        print(rows[-1], file=sys.stderr, flush=True)
    lines = [
        "# MSTL compared with statsforecast, STL compared with statsmodels",
        "",
        f"{count} hourly series of M4 ({len(train):,} rows), seasons 24 and 168, horizon {HORIZON}; CPU seconds on one thread.",
        "",
        "| model | deepforecast | statsforecast | speedup | MASE, deepforecast | MASE, statsforecast | largest difference |",
        "|---|---|---|---|---|---|---|",
        *rows,
        "",
        *compare_stl(),
        "",
        describe_machine(versions),
    ]
    print("\n".join(lines))
    (Path(__file__).parent / "results" / "mstl.md").write_text("\n".join([*lines, ""]), encoding="utf-8")
    return int(min(speedups) < MIN_SPEEDUP)


def load_hourly(count: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training and test part of evenly spaced hourly series of M4."""
    parts = [datasets.load("m4_hourly", split=split)[["unique_id", "ds", "y"]] for split in ("train", "test")]
    train, test = (part.assign(unique_id=part["unique_id"].astype(str), y=part["y"].astype(float)) for part in parts)
    ids = sorted(train["unique_id"].unique())
    sampled_ids = {ids[position] for position in np.unique(np.linspace(0, len(ids) - 1, count).astype(int))}
    train, test = (part[part["unique_id"].isin(sampled_ids)].reset_index(drop=True) for part in (train, test))
    return train, test


def compare_stl() -> list[str]:
    """The table of the comparison of STL with statsmodels, on generated series."""
    rng = np.random.default_rng(0)
    lines = [
        "200 series of 240 months, `seasonal_window=7`, `seasonal_degree=1`: statsmodels' `STL(y, period=12).fit()` in a loop.",
        "",
        "| | deepforecast | statsmodels | speedup | largest difference |",
        "|---|---|---|---|---|",
    ]
    series = [np.cumsum(rng.normal(size=240)) + np.tile(3 * rng.normal(size=12), 20) + rng.normal(size=240) for _ in range(200)]
    times = pd.date_range("2000-01-01", periods=240, freq="MS")
    frame = pd.concat([pd.DataFrame({"unique_id": f"{i:03d}", "ds": times, "y": y}) for i, y in enumerate(series)])
    for robust in (False, True):
        options: dict[str, Any] = {"seasonal_window": 7, "seasonal_degree": 1, "robust": robust}
        decompose(frame.head(240), **options)
        start = time.process_time()
        components = decompose(frame, **options)
        seconds, start = time.process_time() - start, time.process_time()
        expected = np.concatenate([STL(y, period=12, robust=robust).fit().trend for y in series])
        peer_seconds = time.process_time() - start
        difference = float(np.max(np.abs(components["trend"].to_numpy() - expected)))
        cells = f"{seconds:.2f} | {peer_seconds:.2f} | {peer_seconds / seconds:.0f} | {difference:.1g}"
        lines.append(f"| robust={robust} | {cells} |")
    return lines


if __name__ == "__main__":
    sys.exit(main())
