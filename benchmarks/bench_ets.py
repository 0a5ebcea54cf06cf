"""AutoETS compared with statsforecast on monthly series of M4: CPU seconds, AICc, errors; and the scaling of its run time.

    python benchmarks/bench_ets.py [--series 1000] [--rounds 3]

Requires the benchmark data (DEEPFORECAST_DATA). Timed are `fit` and `predict`: of all series in one frame
(deepforecast), or of one array after the other (statsforecast, one run). The AICc of both libraries is computed
by the same function from the estimated parameters and initial states.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common_smoothing import HORIZON, LENGTHS, SEASON, load_monthly
from common_statsforecast import HERE, PEER, describe_machine, peer_python

from deepforecast import AutoETS, score
from deepforecast.kernels.ets.filter import filter_series, model_arrays
from deepforecast.models.statistical._form_selection import information_criteria

MIN_SPEEDUP = 100
SERIES_COUNTS, SERIES_LENGTHS = (250, 500, 1000, 2000), (60, 120, 240, 480, 960)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    train, test = load_monthly(args.series)
    run_model(train[train["unique_id"].isin(train["unique_id"].unique()[:4])])  # compiles
    runs = [run_model(train) for _ in range(args.rounds)]
    estimates, seconds = runs[0][1], statistics.median(run[0] for run in runs)
    peer_seconds, versions, peer_estimates, peer_forecast = run_peer(train)
    lengths = train.groupby("unique_id").size().to_numpy()
    values = {"AutoETS": aicc(estimates, train, lengths), PEER: aicc(peer_estimates, train, lengths)}
    constants = lengths * (np.log(2 * np.pi / lengths) + 1.0)
    evaluator_difference = float(np.max(np.abs(values[PEER] - constants - peer_estimates["aicc"])))
    forecasts = {"AutoETS": runs[0][2], PEER: test[["unique_id", "ds"]].assign(**{PEER: peer_forecast})}
    rows = []
    for name, model_seconds in (("AutoETS", seconds), (PEER, peer_seconds)):
        errors = score(forecasts[name], actual=test, train=train, metrics=["smape", "mase"], season_length=SEASON)
        rows.append(
            f"| {name} | {1e3 * model_seconds / len(lengths):,.3f} | {peer_seconds / model_seconds:.0f} | "
            f"{values[name].mean():,.2f} | {errors['smape'].iloc[0]:.3f} | {errors['mase'].iloc[0]:.4f} |"
        )
    aicc_difference = values["AutoETS"] - values[PEER]
    lines = [
        "# AutoETS compared with statsforecast",
        "",
        f"{len(lengths):,} monthly series of M4 with {LENGTHS[0]} to {LENGTHS[1]} values, horizon {HORIZON}; one run.",
        "",
        "| | CPU ms per series | speedup | mean AICc | sMAPE | MASE |",
        "|---|---|---|---|---|---|",
        *rows,
        "",
        f"The AICc of deepforecast is lower by more than 0.001 on {np.mean(aicc_difference < -1e-3):.1%} of the series and "
        f"higher on {np.mean(aicc_difference > 1e-3):.1%} (by at most {aicc_difference.max():.2f}). The AICc of statsforecast "
        f"computed here and by statsforecast itself differ by at most {evaluator_difference:.1g}, apart from a constant.",
        "",
        *scaling_tables(),
        "",
        describe_machine(versions),
    ]
    print("\n".join(lines))
    (Path(__file__).parent / "results" / "ets.md").write_text("\n".join([*lines, ""]), encoding="utf-8")
    return int(peer_seconds / seconds < MIN_SPEEDUP or aicc_difference.mean() > 0)


def run_model(train: pd.DataFrame) -> tuple[float, dict[str, np.ndarray], pd.DataFrame]:
    """CPU seconds, estimates, and forecasts of AutoETS."""
    start = time.process_time()
    fitted = AutoETS(horizon=HORIZON, season_length=SEASON).fit(train, freq=1)
    forecast = fitted.predict()
    seconds = time.process_time() - start
    learned = fitted.state_.learned
    return (
        seconds,
        {
            "form": learned["form"],
            "rates": learned["rates"],
            "states": learned["start"],
            "parameters": learned["criteria"][:, 1],
        },
        forecast,
    )


def run_peer(
    train: pd.DataFrame, season: int = SEASON, horizon: int = HORIZON
) -> tuple[float, str, dict[str, Any], np.ndarray]:
    """Run the peer in a separate process: CPU seconds, versions, estimates, forecasts."""
    with tempfile.TemporaryDirectory() as folder:
        panel, out = str(Path(folder, "panel.parquet")), str(Path(folder, "out.parquet"))
        train.to_parquet(panel)
        env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}
        command = [str(peer_python()), str(HERE / "peers" / f"ets_{PEER}.py"), panel, str(season), str(horizon), out]
        process = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=env)
        rows = pd.read_parquet(out)
    measurement, by_series = json.loads(process.stdout.splitlines()[-1]), rows.iloc[::horizon]
    form = [
        ("AM".index(name[0]), "NAM".index(name[1]), int(name[3:] == "D"), "NAM".index(name[2])) for name in by_series["form"]
    ]
    states = ["level", "slope", *(f"factor_{i}" for i in range(season))]
    estimates = {
        "form": np.array(form, np.int64),
        "rates": by_series[["alpha", "beta", "gamma", "phi"]].to_numpy(np.float64),
        "states": by_series[states].to_numpy(np.float64),
        "parameters": by_series["parameters"].to_numpy(np.float64) - 1.0,
        "aicc": by_series["aicc"].to_numpy(np.float64),
    }
    return measurement["seconds"], measurement["versions"], estimates, rows["forecast"].to_numpy()


def aicc(estimates: dict[str, Any], train: pd.DataFrame, lengths: np.ndarray) -> np.ndarray:
    """The AICc of each series, from parameters and initial states."""
    y, indptr = train["y"].to_numpy(np.float64), np.concatenate([[0], np.cumsum(lengths)])
    models = model_arrays(estimates["form"], estimates["rates"], estimates["states"], np.zeros(len(lengths)))
    mean, _ = filter_series(models, y, np.zeros(len(y)), indptr)
    is_multiplicative = np.repeat(estimates["form"][:, 0] == 1, lengths)
    errors = np.where(is_multiplicative, (y - mean) / mean, y - mean)
    squares = np.add.reduceat(errors**2, indptr[:-1])
    logs = np.add.reduceat(np.where(is_multiplicative, np.log(np.abs(mean)), 0.0), indptr[:-1])
    likelihood = -0.5 * lengths * (np.log(2 * np.pi * squares / lengths) + 1.0) - logs
    return information_criteria(likelihood, estimates["parameters"], lengths.astype(np.float64))["aicc"]


def scaling_tables() -> list[str]:
    """Tables of CPU time per series by number and length of generated series."""
    lines = ["| series of 120 values | " + " | ".join(f"{number:,}" for number in SERIES_COUNTS) + " |"]
    lines.append("|---" * (len(SERIES_COUNTS) + 1) + "|")
    by_count = [f"{fit_milliseconds(number, 120):.3f}" for number in SERIES_COUNTS]
    lines.append("| CPU ms per series | " + " | ".join(by_count) + " |")
    lines += ["", "| values of 500 series | " + " | ".join(f"{length:,}" for length in SERIES_LENGTHS) + " |"]
    lines.append("|---" * (len(SERIES_LENGTHS) + 1) + "|")
    by_length = [f"{1e3 * fit_milliseconds(500, length) / length:.2f}" for length in SERIES_LENGTHS]
    lines.append("| CPU µs per value | " + " | ".join(by_length) + " |")
    return lines


def fit_milliseconds(n_series: int, length: int) -> float:
    """CPU milliseconds per series for random walks with a season and noise."""
    random = np.random.default_rng(0)
    season = np.tile(np.sin(np.arange(SEASON)), length // SEASON + 1)[:length]
    noise = random.normal(0, 0.03, (n_series, length))
    y = np.exp(4 + np.cumsum(random.normal(0, 0.02, (n_series, length)), axis=1) + 0.1 * season + noise)
    keys = {"unique_id": np.repeat(np.arange(n_series), length), "ds": np.tile(np.arange(length), n_series)}
    frame = pd.DataFrame({**keys, "y": y.reshape(-1)})
    start = time.process_time()
    AutoETS(horizon=HORIZON, season_length=SEASON).fit(frame, freq=1)
    return 1e3 * (time.process_time() - start) / n_series


if __name__ == "__main__":
    sys.exit(main())
