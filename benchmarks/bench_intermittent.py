"""Models of intermittent demand compared with statsforecast on one store of M5 (CA_1): CPU seconds, errors, coverage.

    python benchmarks/bench_intermittent.py [--rounds 3]

Requires the benchmark data (DEEPFORECAST_DATA). Timed are `fit` and `predict` of point forecasts (deepforecast),
and `forecast` (statsforecast), for 28 days of every item on one thread; medians. The environment of statsforecast
is created if necessary.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from common_statsforecast import describe_machine, max_relative_difference, mean_scaled_error, peer_python, run_model, run_peer

from deepforecast import ADIDA, IMAPA, TSB, Croston, Naive, datasets

HORIZON = 28
MIN_SPEEDUP = 5  # of all six models together
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
    train, test = (part.assign(unique_id=part["unique_id"].astype(str), y=part["y"].astype(float)) for part in (train, test))
    scale = train.groupby("unique_id")["y"].agg(lambda y: np.sqrt(np.mean(np.diff(y) ** 2)))
    python, rows, total_seconds, versions = peer_python(), [], [0.0, 0.0], ""
    for name, model in MODELS.items():
        peer_results = run_peer(python, train, "D", HORIZON, name, rounds)
        results = run_model(model, train, "D", rounds)
        versions, speedup = peer_results["versions"], peer_results["seconds"] / results["seconds"]
        total_seconds[0], total_seconds[1] = total_seconds[0] + results["seconds"], total_seconds[1] + peer_results["seconds"]
        rmsse = mean_scaled_error(results["forecast"], test, scale**2, np.square) ** 0.5
        forecast, peer_forecast = results["forecast"], peer_results["forecast"]
        share_equal = np.mean(np.abs(forecast - peer_forecast) <= 1e-6 * np.maximum(1e-3, peer_forecast))
        rows.append(
            f"| `{model!r}` | {results['seconds']:.3f} | {peer_results['seconds']:.3f} | {speedup:.1f} | {rmsse:.4f} | "
            f"{100 * share_equal:.1f} % ({max_relative_difference(forecast, peer_forecast):.1g}) | "
            f"{share_above_bounds(model, train, test)} |"
        )
        print(rows[-1], file=sys.stderr, flush=True)
    lines = [
        "# Intermittent demand: comparison with statsforecast",
        "",
        f"M5, store CA_1: {train['unique_id'].nunique():,} items, {len(train):,} days, {100 * (train['y'] == 0).mean():.0f} %",
        f"of them without a sale; horizon {HORIZON}. CPU seconds on one thread, including data conversion (`Naive`:",
        f"{run_model(Naive(horizon=HORIZON), train, 'D', rounds)['seconds']:.3f} s), medians of {rounds} runs. RMSSE: root of "
        "the mean over items of the squared error divided by that of naive forecasts in the history.",
        "Equal: share of equal forecasts (to 1e-6), and the largest difference. Above: share of the days above the upper",
        "bound, and at or above it; for correct coverage, 2.5 and 10 % lie between these.",
        "",
        "| model | deepforecast | statsforecast | speedup | RMSSE | equal | above hi-95 | above hi-80 |",
        "|---|---|---|---|---|---|---|---|",
        *rows,
        f"| all six | {total_seconds[0]:.3f} | {total_seconds[1]:.3f} | {total_seconds[1] / total_seconds[0]:.1f} | | | | |",
        "",
        describe_machine(versions),
        "Forecasts differ for demand in every period (`sba`: statsforecast applies its factor of 95 % there, too), for items",
        "on which all smoothing parameters fit equally well, and for the few items whose sum of squares has two minima (the",
        "golden-section search may end in the worse one).",
    ]
    print("\n".join(lines))
    (Path(__file__).parent / "results" / "intermittent.md").write_text("\n".join([*lines, ""]), encoding="utf-8")
    return int(total_seconds[1] / total_seconds[0] < MIN_SPEEDUP)


def share_above_bounds(model: Croston | TSB | ADIDA | IMAPA, train: pd.DataFrame, test: pd.DataFrame) -> str:
    """Shares of the days above the upper bounds, and at or above them."""
    forecasts = model.fit(train, freq="D").predict(level=[80, 95]).sort_values(["unique_id", "ds"])
    y = test.sort_values(["unique_id", "ds"])["y"].to_numpy()
    upper_bounds = (forecasts[f"{model.name}-hi-{level}"].to_numpy() for level in (95, 80))
    return " | ".join(f"{100 * (y > upper).mean():.1f} to {100 * (y >= upper).mean():.1f} %" for upper in upper_bounds)


if __name__ == "__main__":
    sys.exit(main())
