"""Forecasts of one series out of a million: `predict(ids=...)`, `update`, `save` and `load`.

    python benchmarks/bench_predict_ids.py [--series 1000000] [--calls 100]

Series of 60 months each. The table shows the median over different ids (budget: 5 ms) and the seconds of the others.
Writes benchmarks/results/predict_ids.md.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import deepforecast

RESULTS = Path(__file__).parent / "results" / "predict_ids.md"
BUDGET_MS, ROWS = 5.0, 60


def seconds(function: Callable[[], Any]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def measure(model: Any, frame: pd.DataFrame, new: pd.DataFrame, ids: list[int]) -> str:
    """The row of a model in the table."""
    fit = seconds(lambda: model.fit(frame))
    first = 1000 * seconds(lambda: model.predict(ids=0))
    points, intervals = (
        1000 * statistics.median(seconds(lambda i=i, level=level: model.predict(ids=i, level=level)) for i in ids)
        for level in (None, 80)
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.dfc"
        save, load = seconds(lambda: model.save(path)), seconds(lambda: deepforecast.load(path))
        size = path.stat().st_size / 1e6
    update = seconds(lambda: model.update(new))
    verdict = "yes" if max(points, intervals) <= BUDGET_MS else "NO"
    return (
        f"| {type(model).__name__} | {points:.2f} | {intervals:.2f} | {verdict} | {first:.0f} | {fit:.1f} | {update:.1f} | "
        f"{save:.1f} | {load:.1f} | {size:.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=1_000_000)
    parser.add_argument("--calls", type=int, default=100)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    months = pd.date_range("2019-01-01", periods=ROWS + 1, freq="MS")
    frame = pd.DataFrame({
        "unique_id": np.repeat(np.arange(options.series), ROWS),
        "ds": np.tile(months[:-1], options.series),
        "y": 10 + rng.normal(size=options.series * ROWS),
    })
    new = pd.DataFrame({"unique_id": np.arange(options.series), "ds": months[-1], "y": 10.0})
    ids = rng.choice(options.series, options.calls, replace=False).tolist()
    lines = [measure(cls(horizon=12), frame, new, ids) for cls in (deepforecast.SeasonalNaive, deepforecast.SES)]
    print("\n".join(lines), flush=True)
    text = f"""# Forecasts of some ids

`python benchmarks/bench_predict_ids.py --series {options.series} --calls {options.calls}`

{options.series:,} series of {ROWS} months; medians over {options.calls} ids; {platform.machine()}, Python
{platform.python_version()}, {date.today().isoformat()}.

| model | points, ms | level=80, ms | within {BUDGET_MS:g} ms | first call, ms | fit, s | update, s | save, s | load, s | file, MB |
|---|---|---|---|---|---|---|---|---|---|
"""
    RESULTS.write_text(text + "\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
