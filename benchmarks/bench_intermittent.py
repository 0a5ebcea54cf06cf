"""Croston's family beside statsforecast's on the sales of a store (M5, CA_1): CPU seconds, errors, coverage of the bands.

    python benchmarks/bench_intermittent.py [--rounds 3]

Needs the data folder (DEEPFORECAST_DATA). What is timed is `fit`, then `predict` of the forecast alone (ours) and `forecast`
(theirs) of 28 days for every item, on one thread; medians. The peer's environment is made if it is not there.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from beside_statsforecast import apart, machine, ours, peer_python, scores, theirs

from deepforecast import ADIDA, IMAPA, TSB, Croston, Naive, datasets

HORIZON = 28
NEEDED = 5  # times faster, all six together
MODELS = {
    "classic": Croston(horizon=HORIZON),
    "sba": Croston(horizon=HORIZON, variant="sba"),
    "optimized": Croston(horizon=HORIZON, variant="optimized"),
    "tsb": TSB(horizon=HORIZON, alpha_size=0.1, alpha_probability=0.1),
    "adida": ADIDA(horizon=HORIZON),
    "imapa": IMAPA(horizon=HORIZON),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    train, test = (datasets.load("m5_ca_1", split=split)[["unique_id", "ds", "y"]] for split in ("train", "test"))
    train, test = (one.assign(unique_id=one["unique_id"].astype(str), y=one["y"].astype(float)) for one in (train, test))
    scale = train.groupby("unique_id")["y"].agg(lambda y: np.sqrt(np.mean(np.diff(y) ** 2)))
    python, rows, total, versions = peer_python(), [], [0.0, 0.0], ""
    for name, model in MODELS.items():
        peer = theirs(python, train, "D", HORIZON, name, rounds)
        mine = ours(model, train, "D", rounds)
        versions, ratio = peer["versions"], peer["seconds"] / mine["seconds"]
        total[0], total[1] = total[0] + mine["seconds"], total[1] + peer["seconds"]
        error = scores(mine["forecast"], test, scale**2, np.square) ** 0.5
        same = np.mean(np.abs(mine["forecast"] - peer["forecast"]) <= 1e-6 * np.maximum(1e-3, peer["forecast"]))
        rows.append(
            f"| `{model!r}` | {mine['seconds']:.3f} | {peer['seconds']:.3f} | {ratio:.1f} | {error:.4f} | {100 * same:.1f} % "
            f"({apart(mine['forecast'], peer['forecast']):.1g}) | {covered(model, train, test)} |"
        )
        print(rows[-1], file=sys.stderr, flush=True)
    lines = [
        "# Intermittent demand beside statsforecast",
        "",
        f"M5, store CA_1: {train['unique_id'].nunique():,} items, {len(train):,} days, {100 * (train['y'] == 0).mean():.0f} %",
        f"of them without a sale; {HORIZON} days ahead. CPU seconds on one thread, from frame to frame (`Naive` takes",
        f"{ours(Naive(horizon=HORIZON), train, 'D', rounds)['seconds']:.3f}), medians of {rounds} runs. RMSSE: root of "
        "the mean of squared errors over those of the naive forecast in the history. Equal: to 1e-6 (and the largest "
        "difference). Above:",
        "share of the days above the upper bound, and at or above it; where bands are right, 2.5 and 10 % lie between.",
        "",
        "| model | ours | theirs | times | RMSSE | equal | above hi-95 | above hi-80 |",
        "|---|---|---|---|---|---|---|---|",
        *rows,
        f"| all six | {total[0]:.3f} | {total[1]:.3f} | {total[1] / total[0]:.1f} | | | | |",
        "",
        machine(versions),
        "Where forecasts differ: demand in every period (`sba`: theirs takes off 5 % there, too), items that all smoothing",
        "parameters fit alike, and the few whose squares have two minima (golden sections may end in the worse).",
    ]
    print("\n".join(lines))
    (Path(__file__).parent / "results" / "intermittent.md").write_text("\n".join([*lines, ""]), encoding="utf-8")
    return int(total[1] / total[0] < NEEDED)


def covered(model: Croston | TSB | ADIDA | IMAPA, train: pd.DataFrame, test: pd.DataFrame) -> str:
    """Shares of the days beyond the upper bounds, without and with those at it."""
    found = model.fit(train, freq="D").predict(level=[80, 95]).sort_values(["unique_id", "ds"])
    y = test.sort_values(["unique_id", "ds"])["y"].to_numpy()
    upper = (found[f"{model.name}-hi-{level}"].to_numpy() for level in (95, 80))
    return " | ".join(f"{100 * (y > one).mean():.1f} to {100 * (y >= one).mean():.1f} %" for one in upper)


if __name__ == "__main__":
    sys.exit(main())
