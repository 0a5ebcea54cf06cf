"""A panel with series that cannot be fitted (`on_failure="fallback"`), compared with the fit of the other series alone.

    python benchmarks/bench_difficult_series.py [--series 100000] [--failing 300] [--repeats 3] [--models AutoETS ...]

300 of 100,000 monthly series have one value, two values or none. Each model is fitted to the panel with them and to the
good series alone, in turn; the table shows medians, their ratio (budget: 1.05) and the number of series with a forecast.
Writes benchmarks/results/difficult_series.md.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
import warnings
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import deepforecast

RESULTS = Path(__file__).parent / "results" / "difficult_series.md"
BUDGET, ROWS, HORIZON = 1.05, 60, 12
PARAMETERS: dict[str, dict[str, Any]] = {"LightGBM": {"n_estimators": 50}}


def generate_panels(n_series: int, n_failing: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The good series, and all series."""
    rng = np.random.default_rng(0)
    season = 10 * np.sin(np.arange(ROWS) * np.pi / 6)
    y = 50 + season + rng.normal(size=(n_series, ROWS)).cumsum(axis=1) / 4
    months = pd.date_range("2020-01-01", periods=ROWS, freq="MS")
    frame = pd.DataFrame({"unique_id": np.repeat(np.arange(n_series), ROWS), "ds": np.tile(months, n_series), "y": y.reshape(-1)})
    step = n_series // n_failing
    failing = (frame["unique_id"] % step == 0) & (frame["unique_id"] < step * n_failing)
    row = frame.groupby("unique_id").cumcount()
    kind = frame["unique_id"] // step % 3  # one value, two values, none
    kept = ~failing | (row >= ROWS - 1) | ((kind == 1) & (row >= ROWS - 2))
    everything = frame[kept].assign(y=frame["y"].mask(failing & (kind == 2)))
    return frame[~failing].reset_index(drop=True), everything.reset_index(drop=True)


def seconds_and_forecasts(model: Any, frame: pd.DataFrame) -> tuple[float, int]:
    """Seconds of fit and predict, and the number of series with a forecast."""
    start = time.perf_counter()
    forecast = model.clone().fit(frame).predict()
    return time.perf_counter() - start, len(forecast) // HORIZON


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=100_000)
    parser.add_argument("--failing", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--models", nargs="+", default=["SeasonalNaive", "AutoETS", "LightGBM"])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    good, everything = generate_panels(options.series, options.failing)
    lines = []
    for name in options.models:
        cls, parameters = getattr(deepforecast, name), PARAMETERS.get(name, {})
        plain, tolerant = (cls(horizon=HORIZON, on_failure=mode, **parameters) for mode in ("raise", "fallback"))
        seconds_and_forecasts(plain, good.iloc[: 100 * ROWS])  # compiles
        times: dict[str, list[float]] = {"good": [], "all": []}
        for _ in range(options.repeats):
            times["good"].append(seconds_and_forecasts(plain, good)[0])
            seconds, n_forecasts = seconds_and_forecasts(tolerant, everything)
            times["all"].append(seconds)
        alone, together = statistics.median(times["good"]), statistics.median(times["all"])
        fitted = tolerant.clone().fit(everything)
        used = fitted.failures_["model"].replace("", "none").value_counts().to_dict()
        ratio = together / alone
        verdict = "yes" if ratio <= BUDGET else "NO"
        lines.append(f"| {name} | {alone:.2f} | {together:.2f} | {ratio:.3f} | {verdict} | {n_forecasts:,} | {used} |")
        print(lines[-1], flush=True)
    text = f"""# Panels with series that cannot be fitted

`python benchmarks/bench_difficult_series.py --series {options.series} --failing {options.failing} --repeats {options.repeats}`

{options.series:,} series, of which {options.failing:,} cannot be fitted; medians of {options.repeats} runs that alternate;
{platform.machine()}, Python {platform.python_version()}, {date.today().isoformat()}.

| model | good series alone, s | all series, s | ratio | within {BUDGET} | series with a forecast | models of the failures |
|---|---|---|---|---|---|---|
"""
    RESULTS.write_text(text + "\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
