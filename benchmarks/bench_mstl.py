"""MSTL beside statsforecast's on hourly series of M4, seasons 24 and 168; STL beside statsmodels' on monthly ones.

    python benchmarks/bench_mstl.py [--series 100]

Needs the data folder (DEEPFORECAST_DATA). What is timed is `fit`, then `predict` (ours) and `forecast` (theirs) of 48 hours, on
one thread; once with the usual model of the rest (AutoETS without a season), once with the naive one: the decomposition alone.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from beside_statsforecast import apart, machine, ours, peer_python, scores, theirs
from statsmodels.tsa.seasonal import STL

from deepforecast import MSTL, Naive, datasets, decompose

HORIZON = 48
NEEDED = 5  # times faster
MODELS = {
    "mstl": MSTL(horizon=HORIZON, season_length=[24, 168]),
    "mstl_naive": MSTL(horizon=HORIZON, season_length=[24, 168], trend_model=Naive()),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=100)
    count = parser.parse_args().series
    train, test = hourly(count)
    scale = train.groupby("unique_id")["y"].agg(lambda y: np.mean(np.abs(y.to_numpy()[24:] - y.to_numpy()[:-24])))
    python, rows, ratios, versions = peer_python(), [], [], ""
    for name, model in MODELS.items():
        peer = theirs(python, train, "1", HORIZON, name)
        mine = ours(model, train, 1)
        versions, ratio = peer["versions"], peer["seconds"] / mine["seconds"]
        ratios.append(ratio)
        errors = [scores(one["forecast"], test, scale, np.abs) for one in (mine, peer)]
        rows.append(
            f"| `{model!r}` | {mine['seconds']:.2f} | {peer['seconds']:.2f} | {ratio:.0f} | {errors[0]:.3f} | {errors[1]:.3f} "
            f"| {apart(mine['forecast'], peer['forecast']):.1g} |"
        )
        print(rows[-1], file=sys.stderr, flush=True)
    lines = [
        "# MSTL beside statsforecast, STL beside statsmodels",
        "",
        f"{count} hourly series of M4 ({len(train):,} rows), seasons 24 and 168, {HORIZON} hours ahead; CPU seconds on one "
        "thread.",
        "",
        "| model | ours | theirs | times | MASE ours | MASE theirs | largest difference |",
        "|---|---|---|---|---|---|---|",
        *rows,
        "",
        *monthly(),
        "",
        machine(versions),
    ]
    print("\n".join(lines))
    (Path(__file__).parent / "results" / "mstl.md").write_text("\n".join([*lines, ""]), encoding="utf-8")
    return int(min(ratios) < NEEDED)


def hourly(count: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Some series of M4 and what followed."""
    both = [datasets.load("m4_hourly", split=split)[["unique_id", "ds", "y"]] for split in ("train", "test")]
    train, test = (one.assign(unique_id=one["unique_id"].astype(str), y=one["y"].astype(float)) for one in both)
    ids = sorted(train["unique_id"].unique())
    kept = {ids[place] for place in np.unique(np.linspace(0, len(ids) - 1, count).astype(int))}
    return tuple(one[one["unique_id"].isin(kept)].reset_index(drop=True) for one in (train, test))  # type: ignore[return-value]


def monthly() -> list[str]:
    """The table of the decomposition alone."""
    rng = np.random.default_rng(0)
    lines = [
        "200 series of 240 months, `seasonal_window=7`, `seasonal_degree=1`: statsmodels' `STL(y, period=12).fit()` in a loop.",
        "",
        "| | ours | theirs | times | largest difference |",
        "|---|---|---|---|---|",
    ]
    parts = [np.cumsum(rng.normal(size=240)) + np.tile(3 * rng.normal(size=12), 20) + rng.normal(size=240) for _ in range(200)]
    stamps = pd.date_range("2000-01-01", periods=240, freq="MS")
    frame = pd.concat([pd.DataFrame({"unique_id": f"{i:03d}", "ds": stamps, "y": y}) for i, y in enumerate(parts)])
    for robust in (False, True):
        given: dict[str, Any] = {"seasonal_window": 7, "seasonal_degree": 1, "robust": robust}
        decompose(frame.head(240), **given)
        start = time.process_time()
        found = decompose(frame, **given)
        mine, start = time.process_time() - start, time.process_time()
        wanted = np.concatenate([STL(y, period=12, robust=robust).fit().trend for y in parts])
        peer = time.process_time() - start
        away = float(np.max(np.abs(found["trend"].to_numpy() - wanted)))
        lines.append(f"| robust={robust} | {mine:.2f} | {peer:.2f} | {peer / mine:.0f} | {away:.1g} |")
    return lines


if __name__ == "__main__":
    sys.exit(main())
