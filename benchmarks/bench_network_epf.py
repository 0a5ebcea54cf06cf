"""Networks on electricity prices at the windows of fev-bench: accuracy, coverage and cost of the fit, by seed.

    python benchmarks/bench_network_epf.py [--sets NP PJM] [--seeds 1 2 3] [model ...]
    python benchmarks/bench_network_epf.py --held-out 100 --changes '[{}, {"input_size": 168}]' [model ...]

Tasks epf_np and epf_pjm of fev-bench: the last 20 windows of 24 hours, one after the other, with load (and wind) forecasts
as future covariates. Every network is fitted once, on all hours before the first window, and forecasts each window by
`predict(frame=...)` from the 8 weeks before it. MASE as in fev: the errors of a window are divided by the mean absolute
seasonal difference (24 hours) of all hours before the window, and averaged over windows. A run replaces the rows of its
models and sets in results/network_epf.md.

`--held-out N` compares defaults without the test windows: the N windows before them are forecast by a network fitted before
those. `--changes` is a JSON list of parameters that differ from the defaults. These rows are in
results/network_epf_held_out.md. Requires the benchmark data (DEEPFORECAST_DATA).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from bench_coverage import HISTORY
from common_neural import mean_and_spread, table_rows

from deepforecast import datasets
from deepforecast.core import registry

FOLDER = Path(__file__).resolve().parent / "results"
SETS = {
    "NP": ("epf_np", ("grid_load_forecast", "wind_power_forecast")),
    "PJM": ("epf_pjm", ("system_load_forecast", "zonal_comed_load_forecast")),
}
REQUIRED = {"NP": 0.74, "PJM": 0.40}  # MASE of the best network
HORIZON, N_WINDOWS, SEASON = 24, 20, 24
LEVELS = (80, 95)
MODELS = ("SeasonalNaive", "DLinear", "MLP", "NBEATS", "LSTM", "GRU", "Transformer", "Seq2Seq")
COLUMNS = ("set", "model", "parameters", "seeds", "MASE", "MASE by seed", "coverage of 80 %", "of 95 %", "fit CPU s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="*", help="models to measure (default: all)")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--held-out", type=int, metavar="N", help="forecast the N windows before the test windows instead")
    parser.add_argument("--changes", type=json.loads, default=[{}], help="JSON list of parameters that differ from the defaults")
    args = parser.parse_args()
    path = FOLDER / ("network_epf_held_out.md" if args.held_out else "network_epf.md")
    rows = {tuple(row[:3]): row for row in table_rows(path)}
    for change in args.changes:
        for key in args.sets:
            for name in args.model or MODELS:
                row = measure(name, key, change, [0] if name == "SeasonalNaive" else args.seeds, args.held_out)
                rows[tuple(row[:3])] = row
                print(*row, sep=" | ", flush=True)
                write_rows(path, rows, args.held_out)
    return 0


def measure(name: str, key: str, change: dict[str, Any], seeds: list[int], held_out: int | None) -> list[str]:
    """One row of the table: mean and standard deviation over seeds."""
    frame, future = load(key, held_out)
    params = [change if name == "SeasonalNaive" else {**change, "seed": seed} for seed in seeds]
    results = [run(name, frame, future, held_out or N_WINDOWS, seeded) for seeded in params]
    parameters = ", ".join(f"{param}={value!r}" for param, value in change.items()) or "defaults"
    cells = [mean_and_spread([result[column] for result in results], digits) for column, digits in (
        ("mase", 3), (80, 1), (95, 1), ("seconds", 1),
    )]  # fmt: skip
    by_seed = " ".join(f"{result['mase']:.3f}" for result in results)
    label = f"{key}, {held_out} windows" if held_out else key
    return [label, name, parameters, str(len(seeds)), cells[0], by_seed, *cells[1:]]


def load(key: str, held_out: int | None) -> tuple[pd.DataFrame, list[str]]:
    """All hours up to the end of the last window, and the future covariates."""
    dataset, future = SETS[key]
    parts = [datasets.load(dataset, split=split) for split in ("train", "test")]
    frame = pd.concat(parts)[["unique_id", "ds", "y", *future]].sort_values("ds", ignore_index=True)
    return frame[: len(frame) - N_WINDOWS * HORIZON] if held_out else frame, list(future)


def run(name: str, frame: pd.DataFrame, future: list[str], n_windows: int, params: dict[str, Any]) -> dict[Any, float]:
    """MASE, coverage in percent and CPU seconds of the fit of one model."""
    model = registry.get(name)(horizon=HORIZON, alias="model", **params)
    if not model.capabilities.future:
        frame, future = frame[["unique_id", "ds", "y"]], []
    first = len(frame) - n_windows * HORIZON
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the figures show what the warnings tell
        started = time.process_time()
        model.fit(frame[:first], columns={"future": future})
        seconds = time.process_time() - started
        windows = [forecast(model, frame, cutoff) for cutoff in range(first, len(frame), HORIZON)]
    joined = pd.concat(windows)
    covered = {level: 100 * joined["y"].between(joined[f"model-lo-{level}"], joined[f"model-hi-{level}"]).mean() for level in LEVELS}
    return {"mase": joined["scaled_error"].mean(), "seconds": seconds, **covered}


def forecast(model: Any, frame: pd.DataFrame, cutoff: int) -> pd.DataFrame:
    """Forecasts and actual values of the window after the first `cutoff` hours, with absolute errors scaled as in fev."""
    window = frame[cutoff : cutoff + HORIZON]
    table = model.predict(frame=frame[cutoff - HISTORY : cutoff], future=window.drop(columns="y"), level=list(LEVELS))
    actual, past = window["y"].to_numpy(), frame["y"].to_numpy()[:cutoff]
    scale = np.abs(past[SEASON:] - past[:-SEASON]).mean()
    return table.assign(y=actual, scaled_error=np.abs(actual - table["model"].to_numpy()) / scale)


def write_rows(path: Path, rows: dict[tuple[str, ...], list[str]], held_out: int | None) -> None:
    """Write the results file."""
    order = {name: number for number, name in enumerate(MODELS)}
    keys = sorted(rows, key=lambda key: (key[0], key[2] != "defaults", key[2], order[key[1]]))
    required = " and ".join(f"{mase:.2f} ({key})" for key, mase in REQUIRED.items())
    windows = (
        ["The windows before the test windows, each network fitted before them (`--held-out`)."]
        if held_out
        else [
            f"The last 20 windows of 24 hours, each network fitted once before them. Required: MASE at most {required}",
            "with one network. SeasonalNaive has the MASE that fev publishes for it (1.7613 and 0.5812).",
        ]
    )
    lines = [
        f"# Networks on electricity prices{', held-out windows' if held_out else ' at the windows of fev-bench'}", "",
        "`python benchmarks/bench_network_epf.py`", "", *windows,
        "Mean ± standard deviation over seeds. MASE is scaled by the hours before each window (season 24), as in fev.", "",
        f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|",
        *(f"| {' | '.join(rows[key])} |" for key in keys),
    ]  # fmt: skip
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
