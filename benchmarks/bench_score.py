"""`score` on 5 models x 100,000 series x 18 steps beside utilsforecast's `evaluate`. Run: python benchmarks/bench_score.py

The figure to keep: six metrics in 3 s at most. Calls are interleaved and medians taken, so that a busy minute hits all alike;
before the clock starts, both have to give the same numbers.
"""

from __future__ import annotations

import platform
import statistics
import sys
import time
from collections.abc import Callable
from datetime import date
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from utilsforecast import losses
from utilsforecast.evaluation import evaluate

from deepforecast import score
from deepforecast.evaluation.significance import mean_interval, pairwise

SERIES, STEPS, MODELS, HISTORY, ROUNDS, CEILING = 100_000, 18, 5, 72, 5, 3.0
POINT = ["mae", "rmse", "mape", "smape", "bias", "wape"]
SCALED = ["mae", "rmse", "mape", "smape", "mase", "rmsse"]
RESULTS = Path(__file__).parent / "results" / "score.md"


def main() -> int:
    forecasts, train = frames()
    agree(forecasts, train)
    jobs = calls(forecasts, train)
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for number in range(ROUNDS):
        for name, call in jobs.items():
            started = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - started)
        print(f"round {number + 1} of {ROUNDS}", file=sys.stderr, flush=True)
    median = {name: statistics.median(taken) for name, taken in seconds.items()}
    text = "\n".join(report(median)) + "\n"
    print(text)
    RESULTS.write_text(text, encoding="utf-8")
    return int(median["six metrics, pandas"] > CEILING)


def frames() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Forecasts with text ids, actual values and intervals, sorted as predict gives them, and the monthly history before."""
    random = np.random.default_rng(0)
    ids = pd.Series([f"series_{number:06d}" for number in range(SERIES)])
    stamps = pd.date_range("2015-01-31", periods=HISTORY + STEPS, freq="ME")
    y = random.lognormal(3, 0.5, (SERIES, HISTORY + STEPS))
    train = {"unique_id": ids.repeat(HISTORY).array, "ds": np.tile(stamps[:HISTORY], SERIES), "y": y[:, :HISTORY].ravel()}
    ahead = {"unique_id": ids.repeat(STEPS).array, "ds": np.tile(stamps[HISTORY:], SERIES), "y": y[:, HISTORY:].ravel()}
    for number in range(MODELS):
        name, point = f"model_{number}", ahead["y"] * random.lognormal(0, 0.2, SERIES * STEPS)
        ahead |= {name: point, f"{name}-lo-80": point * 0.8, f"{name}-hi-80": point * 1.2}
    return pd.DataFrame(ahead), pd.DataFrame(train)


def calls(forecasts: pd.DataFrame, train: pd.DataFrame) -> dict[str, Callable[[], Any]]:
    """What is timed, by name; "peer: " is the same by utilsforecast."""
    points = forecasts[[name for name in forecasts if "-" not in name]]
    of_polars, train_of_polars = pl.from_pandas(points), pl.from_pandas(train)
    by_series = score(points, metrics="mae", by="series")["mae"].to_numpy().reshape(SERIES, MODELS).T
    theirs = [getattr(losses, name) for name in POINT]
    scaled = [scaled_loss(name) for name in SCALED]
    bands = [losses.coverage, losses.winkler_score]
    return {
        "six metrics, pandas": partial(score, points, metrics=POINT),
        "peer: six metrics, pandas": partial(evaluate, points, theirs, agg_fn="mean"),
        "six metrics, polars": partial(score, of_polars, metrics=POINT),
        "peer: six metrics, polars": partial(evaluate, of_polars, theirs, agg_fn="mean"),
        "six with scales from 72 months, pandas": partial(score, points, metrics=SCALED, train=train),
        "peer: six with scales from 72 months, pandas": partial(evaluate, points, scaled, train_df=train, agg_fn="mean"),
        "six with scales from 72 months, polars": partial(score, of_polars, metrics=SCALED, train=train_of_polars),
        "peer: six with scales from 72 months, polars": partial(
            evaluate, of_polars, scaled, train_df=train_of_polars, agg_fn="mean"
        ),
        "six metrics by series, pandas": partial(score, points, metrics=POINT, by="series"),
        "peer: six metrics by series, pandas": partial(evaluate, points, theirs),
        "coverage and Winkler score, pandas": partial(score, forecasts, metrics=["coverage", "winkler"]),
        "peer: coverage and Winkler score, pandas": partial(evaluate, forecasts, bands, level=[80], agg_fn="mean"),
        "six metrics by step, pandas": partial(score, points, metrics=POINT, by="step"),
        "six metrics, rows in any order": partial(score, points.sample(frac=1, random_state=0), metrics=POINT),
        "six metrics, actual values matched from 9,000,000 rows": partial(
            score, points.drop(columns="y"), actual=pd.concat([train, points[["unique_id", "ds", "y"]]]), metrics=POINT
        ),
        "bootstrap intervals, 1,000 resamples": partial(mean_interval, by_series),
        "signed-rank tests of all pairs": partial(pairwise, by_series),
    }


def scaled_loss(name: str) -> Callable[..., Any]:
    """A loss of utilsforecast, with the season where it takes one."""
    loss = getattr(losses, name)
    if name not in ("mase", "rmsse"):
        return loss  # type: ignore[no-any-return]
    with_season = partial(loss, seasonality=12)
    with_season.__name__ = name  # type: ignore[attr-defined]
    return with_season


def agree(forecasts: pd.DataFrame, train: pd.DataFrame) -> None:
    """Refuse to compare speeds where the numbers differ."""
    few = forecasts["unique_id"].iloc[: 500 * STEPS : STEPS]
    rows, before = (frame[frame["unique_id"].isin(few)] for frame in (forecasts, train))
    points = rows[[name for name in rows if "-" not in name]]
    names = list(dict.fromkeys([*POINT, *SCALED]))
    theirs = evaluate(points, [scaled_loss(name) for name in names], train_df=before).set_index(["metric", "unique_id"])
    ours = score(points, metrics=names, train=before, by="series")
    for name in names:
        found = ours.pivot(index="unique_id", columns="model", values=name)
        expected = theirs.loc[name][found.columns] * (200 if name == "smape" else 1)  # theirs runs from 0 to 1
        np.testing.assert_allclose(found, expected.loc[found.index], rtol=1e-9, atol=1e-12, err_msg=name)


def report(median: dict[str, float]) -> list[str]:
    lines = [
        f"# score, {date.today()}",
        "",
        f"{MODELS} models x {SERIES:,} series x {STEPS} steps; {', '.join(POINT)}, or with scales {', '.join(SCALED)}.",
        f"To keep: {CEILING:g} s for six metrics.",
        "",
        f"Command: `python benchmarks/bench_score.py` · Python {platform.python_version()}, pandas {version('pandas')}, polars "
        f"{version('polars')}, utilsforecast {version('utilsforecast')}, {platform.machine()}; medians of {ROUNDS} interleaved "
        "rounds.",
        "",
        "| what | seconds | utilsforecast | ratio |",
        "|---|---|---|---|",
    ]
    for name, taken in median.items():
        if not name.startswith("peer: "):
            peer = median.get(f"peer: {name}")
            beside = " | " if peer is None else f"{peer:.2f} | {peer / taken:.1f}"
            lines.append(f"| {name} | {taken:.2f} | {beside} |")
    return lines


if __name__ == "__main__":
    raise SystemExit(main())
