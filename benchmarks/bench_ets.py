"""AutoETS beside statsforecast's on monthly series of M4: CPU seconds, AICc by one evaluator, errors; and what makes it longer.

    python benchmarks/bench_ets.py [--series 1000] [--rounds 3]

Needs the data folder (DEEPFORECAST_DATA). Timed are `fit` and `predict` of all series as a frame (ours), and of one after
another as an array (theirs, once). AICc: from the parameters and first states found, by one pass over the series.
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
from beside_smoothing import HORIZON, LENGTHS, SEASON, monthly
from beside_statsforecast import HERE, PEER, machine, peer_python

from deepforecast import AutoETS, score
from deepforecast.kernels.ets.filter import filter_series, model_arrays
from deepforecast.models.statistical._form_selection import information_criteria

NEEDED = 100  # times faster
NUMBERS, STRETCHES = (250, 500, 1000, 2000), (60, 120, 240, 480, 960)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    train, test = monthly(given.series)
    ours(train[train["unique_id"].isin(train["unique_id"].unique()[:4])])  # compiles
    runs = [ours(train) for _ in range(given.rounds)]
    mine, seconds = runs[0][1], statistics.median(run[0] for run in runs)
    spent, versions, theirs, forecast = peers(train)
    lengths = train.groupby("unique_id").size().to_numpy()
    values = {"AutoETS": aicc(mine, train, lengths), PEER: aicc(theirs, train, lengths)}
    constant = lengths * (np.log(2 * np.pi / lengths) + 1.0)
    off = float(np.max(np.abs(values[PEER] - constant - theirs["aicc"])))
    found = {"AutoETS": runs[0][2], PEER: test[["unique_id", "ds"]].assign(**{PEER: forecast})}
    rows = []
    for name, each in (("AutoETS", seconds), (PEER, spent)):
        errors = score(found[name], actual=test, train=train, metrics=["smape", "mase"], season_length=SEASON)
        rows.append(
            f"| {name} | {1e3 * each / len(lengths):,.3f} | {spent / each:.0f} | {values[name].mean():,.2f} | "
            f"{errors['smape'].iloc[0]:.3f} | {errors['mase'].iloc[0]:.4f} |"
        )
    away = values["AutoETS"] - values[PEER]
    lines = [
        "# AutoETS beside statsforecast's",
        "",
        f"{len(lengths):,} monthly series of M4 with {LENGTHS[0]} to {LENGTHS[1]} values, {HORIZON} months ahead; one run.",
        "",
        "| | CPU ms a series | times | mean AICc | sMAPE | MASE |",
        "|---|---|---|---|---|---|",
        *rows,
        "",
        f"Our AICc is lower by more than 0.001 on {np.mean(away < -1e-3):.1%} of the series and higher on "
        f"{np.mean(away > 1e-3):.1%} (at most by {away.max():.2f}). Theirs by this evaluator and by their own are {off:.1g} "
        "apart at most, but for a constant.",
        "",
        *growth(),
        "",
        machine(versions),
    ]
    print("\n".join(lines))
    (Path(__file__).parent / "results" / "ets.md").write_text("\n".join([*lines, ""]), encoding="utf-8")
    return int(spent / seconds < NEEDED or away.mean() > 0)


def ours(train: pd.DataFrame) -> tuple[float, dict[str, np.ndarray], pd.DataFrame]:
    """CPU seconds, what was found, and the forecast."""
    start = time.process_time()
    fitted = AutoETS(horizon=HORIZON, season_length=SEASON).fit(train, freq=1)
    forecast = fitted.predict()
    seconds = time.process_time() - start
    learned = fitted.state_.learned
    return seconds, {
        "form": learned["form"],
        "rates": learned["rates"],
        "states": learned["start"],
        "parameters": learned["criteria"][:, 1],
    }, forecast


def peers(
    train: pd.DataFrame, season: int = SEASON, horizon: int = HORIZON
) -> tuple[float, str, dict[str, Any], np.ndarray]:
    """The peer's in a process of its own: CPU seconds, versions, what was found, forecasts."""
    with tempfile.TemporaryDirectory() as folder:
        panel, out = str(Path(folder, "panel.parquet")), str(Path(folder, "out.parquet"))
        train.to_parquet(panel)
        env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}
        command = [str(peer_python()), str(HERE / "peers" / f"ets_{PEER}.py"), panel, str(season), str(horizon), out]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=env)
        rows = pd.read_parquet(out)
    said, each = json.loads(done.stdout.splitlines()[-1]), rows.iloc[::horizon]
    form = [("AM".index(one[0]), "NAM".index(one[1]), int(one[3:] == "D"), "NAM".index(one[2])) for one in each["form"]]
    states = ["level", "slope", *(f"factor_{i}" for i in range(season))]
    found = {
        "form": np.array(form, np.int64),
        "rates": each[["alpha", "beta", "gamma", "phi"]].to_numpy(np.float64),
        "states": each[states].to_numpy(np.float64),
        "parameters": each["parameters"].to_numpy(np.float64) - 1.0,
        "aicc": each["aicc"].to_numpy(np.float64),
    }
    return said["seconds"], said["versions"], found, rows["forecast"].to_numpy()


def aicc(found: dict[str, Any], train: pd.DataFrame, lengths: np.ndarray) -> np.ndarray:
    """From parameters and first states, for both alike."""
    y, indptr = train["y"].to_numpy(np.float64), np.concatenate([[0], np.cumsum(lengths)])
    begin = model_arrays(found["form"], found["rates"], found["states"], np.zeros(len(lengths)))
    mean, _ = filter_series(begin, y, np.zeros(len(y)), indptr)
    product = np.repeat(found["form"][:, 0] == 1, lengths)
    errors = np.where(product, (y - mean) / mean, y - mean)
    squares = np.add.reduceat(errors**2, indptr[:-1])
    logs = np.add.reduceat(np.where(product, np.log(np.abs(mean)), 0.0), indptr[:-1])
    likelihood = -0.5 * lengths * (np.log(2 * np.pi * squares / lengths) + 1.0) - logs
    return information_criteria(likelihood, found["parameters"], lengths.astype(np.float64))["aicc"]


def growth() -> list[str]:
    """CPU milliseconds a series against their number and length, on series made for it."""
    lines = ["| series of 120 values | " + " | ".join(f"{number:,}" for number in NUMBERS) + " |"]
    lines.append("|---" * (len(NUMBERS) + 1) + "|")
    lines.append("| CPU ms a series | " + " | ".join(f"{spent(number, 120):.3f}" for number in NUMBERS) + " |")
    lines += ["", "| values of 500 series | " + " | ".join(f"{length:,}" for length in STRETCHES) + " |"]
    lines.append("|---" * (len(STRETCHES) + 1) + "|")
    lines.append("| CPU µs a value | " + " | ".join(f"{1e3 * spent(500, length) / length:.2f}" for length in STRETCHES) + " |")
    return lines


def spent(number: int, length: int) -> float:
    """CPU milliseconds a series: random walks with a season and noise."""
    random = np.random.default_rng(0)
    season = np.tile(np.sin(np.arange(SEASON)), length // SEASON + 1)[:length]
    noise = random.normal(0, 0.03, (number, length))
    y = np.exp(4 + np.cumsum(random.normal(0, 0.02, (number, length)), axis=1) + 0.1 * season + noise)
    keys = {"unique_id": np.repeat(np.arange(number), length), "ds": np.tile(np.arange(length), number)}
    frame = pd.DataFrame({**keys, "y": y.reshape(-1)})
    start = time.process_time()
    AutoETS(horizon=HORIZON, season_length=SEASON).fit(frame, freq=1)
    return 1e3 * (time.process_time() - start) / number


if __name__ == "__main__":
    sys.exit(main())
