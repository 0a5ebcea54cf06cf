"""Prediction intervals of networks with and without tail calibration, on public data and short generated panels.

    python benchmarks/bench_network_intervals.py [--sets "M1 monthly" ...] [model ...]

Each network is fitted once on the training part, at defaults and with `intervals="uncalibrated"`, and
forecasts the test part; EPF in 146 forecasts of a day, three days apart, by `predict(frame=...)` with the
8 weeks before. Coverage of the 80 % and 95 % intervals, also by thirds of the horizon, interval score and MASE
(both divided by the error of the seasonal naive forecast in the training part), and CPU seconds of
fit and forecasts. A run replaces the rows of its models and sets in results/network_intervals.md. Requires the benchmark
data (DEEPFORECAST_DATA).

"Weekly with rare peaks" are 10 generated panels of eight weekly series of 150 weeks, the last 13 of which are forecast, also
with `intervals="conformal"` (80 % alone: the panels are too short for 95 %). The figures are means over the panels.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from bench_coverage import BENCHMARKS, HISTORY, Benchmark, load
from common_neural import table_rows

from deepforecast.core import registry

RESULTS = Path(__file__).resolve().parent / "results" / "network_intervals.md"
COMMAND = "benchmarks/bench_network_intervals.py"
MODELS = ("MLP", "LSTM", "DLinear", "GRU", "NBEATS", "NHITS", "TiDE", "TCN", "Transformer", "Seq2Seq", "DeepAR", "xLSTM", "DecoderOnly",
          "PatchTST", "TFT", "TimeXer")  # fmt: skip
PEAKS = "Weekly with rare peaks"
PEAK_MODELS = MODELS[:3]
N_PANELS, N_SERIES, N_WEEKS = 10, 8, 150  # generated
SETS = {
    "EPF Nord Pool": BENCHMARKS["EPF Nord Pool hourly"],
    "EPF PJM": Benchmark(
        "epf_pjm", 24, "h", future=("system_load_forecast", "zonal_comed_load_forecast"), n_windows=146
    ),
    "NN5 daily": BENCHMARKS["NN5 daily"],
    "M1 monthly": BENCHMARKS["M1 monthly"],
    PEAKS: Benchmark(PEAKS, 13, "W"),
}
SEASONS = {"h": 24, "D": 7, "MS": 12, "W": 52}
LEVELS = (80, 95)
COLUMNS = (
    "set", "model", "intervals", "coverage of 80 %", "of 95 %", "80 % by third of the horizon", "interval score 80",
    "interval score 95", "MASE", "fit CPU s", "forecast CPU s",
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), help="data sets (default: all)")
    parser.add_argument("model", nargs="*", help="models to measure (default: all)")
    args = parser.parse_args()
    rows = {tuple(row[:3]): row for row in table_rows(RESULTS)}
    for key in args.sets:
        for name in args.model or (PEAK_MODELS if key == PEAKS else MODELS):
            for intervals in ("uncalibrated", None, *(["conformal"] if key == PEAKS else [])):
                row = measure(name, key, intervals)
                rows[tuple(row[:3])] = row
                print(*row, sep=" | ", flush=True)
                write_rows(rows)
    return 0


def measure(name: str, key: str, intervals: str | None) -> list[str]:
    """One row of the table: a model on a set, with or without calibration."""
    benchmark = SETS[key]
    levels = LEVELS[:1] if intervals == "conformal" else LEVELS
    model = registry.get(name)(
        horizon=benchmark.horizon, alias="model", intervals=intervals, trainer={"accelerator": "cpu"}
    )
    panels = [peak_panel(seed) for seed in range(N_PANELS)] if key == PEAKS else [load(benchmark, None)]
    evaluated, seconds = zip(*(evaluate(model, train, test, benchmark, levels) for train, test in panels), strict=True)
    joined = pd.concat(evaluated)
    third = (3 * joined["step"]) // benchmark.horizon
    inside = {level: joined["y"].between(joined[f"model-lo-{level}"], joined[f"model-hi-{level}"]) for level in levels}
    mase = ((joined["y"] - joined["model"]).abs() / joined["scale"]).mean()
    missing = ["–"] * (len(LEVELS) - len(levels))
    return [
        key, name, intervals or "calibrated", *(f"{100 * inside[level].mean():.1f}" for level in levels), *missing,
        " / ".join(f"{100 * share:.0f}" for share in inside[80].groupby(third).mean()),
        *(f"{interval_score(joined, level):.3f}" for level in levels), *missing, f"{mase:.3f}",
        *(f"{value:.1f}" for value in np.mean(seconds, axis=0)),
    ]  # fmt: skip


def evaluate(
    model: Any, train: pd.DataFrame, test: pd.DataFrame, benchmark: Benchmark, levels: tuple[int, ...]
) -> tuple[pd.DataFrame, tuple[float, float]]:
    """Forecasts next to the observed values, with the scale of each series, and CPU seconds of fit and forecasts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the figures show what the warnings tell
        started = time.process_time()
        model.fit(train, freq=benchmark.freq, columns={"future": benchmark.future})
        fitted = time.process_time()
        forecasts = forecast(model, train, test, benchmark, levels)
        finished = time.process_time()
    joined = test[["unique_id", "ds", "y"]].merge(forecasts, on=["unique_id", "ds"])
    joined["scale"] = joined["unique_id"].map(naive_errors(train, SEASONS[benchmark.freq])).to_numpy()
    return joined[joined["y"].notna()], (fitted - started, finished - fitted)


def peak_panel(seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training and test part of eight weekly series that grow by up to 0.4 % a week, with noise of 10 % and, in one
    week of 25, a peak of three to six times the level."""
    random, weeks = np.random.default_rng(seed), np.arange(N_WEEKS)
    shape = (N_SERIES, N_WEEKS)
    level = random.uniform(50, 500, (N_SERIES, 1)) * np.exp(random.uniform(0, 0.004, (N_SERIES, 1)) * weeks)
    noise = random.gamma(100, 0.01, shape)
    peaks = np.where(random.random(shape) < 1 / 25, random.uniform(3, 6, shape), 1.0)
    frame = pd.DataFrame(
        {
            "unique_id": np.repeat([f"s{number}" for number in range(N_SERIES)], N_WEEKS),
            "ds": np.tile(pd.date_range("2021-01-03", periods=N_WEEKS, freq="W"), N_SERIES),
            "y": (level * noise * peaks).ravel(),
        }
    )
    is_test = np.tile(weeks >= N_WEEKS - SETS[PEAKS].horizon, N_SERIES)
    return frame[~is_test], frame[is_test]


def forecast(
    model: Any, train: pd.DataFrame, test: pd.DataFrame, benchmark: Benchmark, levels: tuple[int, ...]
) -> pd.DataFrame:
    """Forecasts of the test part with intervals, and the number of each step (from 0)."""
    if benchmark.n_windows == 1:
        parts = [model.predict(level=list(levels))]
    else:
        whole, parts = pd.concat([train, test]), []
        for step in len(train) + 3 * benchmark.horizon * np.arange(benchmark.n_windows):
            history = whole.iloc[step - HISTORY : step]
            future = whole.iloc[step : step + benchmark.horizon].drop(columns="y")
            parts.append(model.predict(frame=history, future=future, level=list(levels)))
    return pd.concat([part.assign(step=part.groupby("unique_id").cumcount()) for part in parts])


def naive_errors(train: pd.DataFrame, season: int) -> pd.Series:
    """Mean absolute error of the seasonal naive forecast of each series."""
    changes = train.groupby("unique_id")["y"].diff(season).abs()
    return changes.groupby(train["unique_id"]).mean()


def interval_score(joined: pd.DataFrame, level: int) -> float:
    """Mean interval score, scaled (Gneiting and Raftery 2007)."""
    low, high, actual = joined[f"model-lo-{level}"], joined[f"model-hi-{level}"], joined["y"]
    missed = (low - actual).clip(lower=0) + (actual - high).clip(lower=0)
    return float(((high - low + 2 / (1 - level / 100) * missed) / joined["scale"]).mean())


def write_rows(rows: dict[tuple[str, ...], list[str]]) -> None:
    """Write results/network_intervals.md."""
    order = {name: number for number, name in enumerate((*SETS, *MODELS, "uncalibrated", "calibrated", "conformal"))}
    lines = [
        "# Prediction intervals of networks",
        "",
        f"`python {COMMAND}`: networks at defaults, fitted once, with the distribution",
        "as it is learned and calibrated on the tail of the training part (EPF: with factors from the 8 weeks before each",
        "forecast). Interval score and MASE: lower is better.",
        f"{PEAKS}: {N_PANELS} generated panels of {N_SERIES} series of {N_WEEKS} weeks, fit and forecast in the mean.",
        "",
        f"| {' | '.join(COLUMNS)} |",
        "|---" * len(COLUMNS) + "|",
        *(f"| {' | '.join(rows[key])} |" for key in sorted(rows, key=lambda key: [order[part] for part in key])),
    ]
    RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
