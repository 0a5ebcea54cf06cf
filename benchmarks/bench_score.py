"""`score` on 5 models x 100,000 series x 18 steps, compared with `evaluate` of utilsforecast.

    python benchmarks/bench_score.py

Required: six metrics in at most 3 s. Calls are interleaved and medians reported, so that changes of the machine load
affect all equally; before the measurement, the results of both are checked for equality.
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

SERIES, STEPS, MODELS, HISTORY, ROUNDS, MAX_SECONDS = 100_000, 18, 5, 72, 5, 3.0
POINT = ["mae", "rmse", "mape", "smape", "bias", "wape"]
SCALED = ["mae", "rmse", "mape", "smape", "mase", "rmsse"]
RESULTS = Path(__file__).parent / "results" / "score.md"


def main() -> int:
    forecasts, train = generate_frames()
    check_agreement(forecasts, train)
    calls_by_name = calls(forecasts, train)
    seconds: dict[str, list[float]] = {name: [] for name in calls_by_name}
    for number in range(ROUNDS):
        for name, call in calls_by_name.items():
            start = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - start)
        print(f"round {number + 1} of {ROUNDS}", file=sys.stderr, flush=True)
    median = {name: statistics.median(times) for name, times in seconds.items()}
    text = "\n".join(report(median)) + "\n"
    print(text)
    RESULTS.write_text(text, encoding="utf-8")
    return int(median["six metrics, pandas"] > MAX_SECONDS)


def generate_frames() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Forecasts with text ids, actual values and intervals, sorted as by `predict`, and the monthly histories."""
    random = np.random.default_rng(0)
    ids = pd.Series([f"series_{number:06d}" for number in range(SERIES)])
    times = pd.date_range("2015-01-31", periods=HISTORY + STEPS, freq="ME")
    y = random.lognormal(3, 0.5, (SERIES, HISTORY + STEPS))
    train = {"unique_id": ids.repeat(HISTORY).array, "ds": np.tile(times[:HISTORY], SERIES), "y": y[:, :HISTORY].ravel()}
    forecasts = {"unique_id": ids.repeat(STEPS).array, "ds": np.tile(times[HISTORY:], SERIES), "y": y[:, HISTORY:].ravel()}
    for number in range(MODELS):
        name, point = f"model_{number}", forecasts["y"] * random.lognormal(0, 0.2, SERIES * STEPS)
        forecasts |= {name: point, f"{name}-lo-80": point * 0.8, f"{name}-hi-80": point * 1.2}
    return pd.DataFrame(forecasts), pd.DataFrame(train)


def calls(forecasts: pd.DataFrame, train: pd.DataFrame) -> dict[str, Callable[[], Any]]:
    """The calls to measure by name; those of utilsforecast begin with "peer: "."""
    points = forecasts[[name for name in forecasts if "-" not in name]]
    points_polars, train_polars = pl.from_pandas(points), pl.from_pandas(train)
    by_series = score(points, metrics="mae", by="series")["mae"].to_numpy().reshape(SERIES, MODELS).T
    peer_losses = [getattr(losses, name) for name in POINT]
    peer_scaled_losses = [scaled_loss(name) for name in SCALED]
    interval_losses = [losses.coverage, losses.winkler_score]
    return {
        "six metrics, pandas": partial(score, points, metrics=POINT),
        "peer: six metrics, pandas": partial(evaluate, points, peer_losses, agg_fn="mean"),
        "six metrics, polars": partial(score, points_polars, metrics=POINT),
        "peer: six metrics, polars": partial(evaluate, points_polars, peer_losses, agg_fn="mean"),
        "six with scales from 72 months, pandas": partial(score, points, metrics=SCALED, train=train),
        "peer: six with scales from 72 months, pandas": partial(
            evaluate, points, peer_scaled_losses, train_df=train, agg_fn="mean"
        ),
        "six with scales from 72 months, polars": partial(score, points_polars, metrics=SCALED, train=train_polars),
        "peer: six with scales from 72 months, polars": partial(
            evaluate, points_polars, peer_scaled_losses, train_df=train_polars, agg_fn="mean"
        ),
        "six metrics by series, pandas": partial(score, points, metrics=POINT, by="series"),
        "peer: six metrics by series, pandas": partial(evaluate, points, peer_losses),
        "coverage and Winkler score, pandas": partial(score, forecasts, metrics=["coverage", "winkler"]),
        "peer: coverage and Winkler score, pandas": partial(evaluate, forecasts, interval_losses, level=[80], agg_fn="mean"),
        "six metrics by step, pandas": partial(score, points, metrics=POINT, by="step"),
        "six metrics, rows in any order": partial(score, points.sample(frac=1, random_state=0), metrics=POINT),
        "six metrics, actual values matched from 9,000,000 rows": partial(
            score, points.drop(columns="y"), actual=pd.concat([train, points[["unique_id", "ds", "y"]]]), metrics=POINT
        ),
        "bootstrap intervals, 1,000 resamples": partial(mean_interval, by_series),
        "signed-rank tests of all pairs": partial(pairwise, by_series),
    }


def scaled_loss(name: str) -> Callable[..., Any]:
    """A loss of utilsforecast, with the season length if it has this parameter."""
    loss = getattr(losses, name)
    if name not in ("mase", "rmsse"):
        return loss  # type: ignore[no-any-return]
    with_season = partial(loss, seasonality=12)
    with_season.__name__ = name  # type: ignore[attr-defined]
    return with_season


def check_agreement(forecasts: pd.DataFrame, train: pd.DataFrame) -> None:
    """Raise if the results of both libraries differ."""
    sampled_ids = forecasts["unique_id"].iloc[: 500 * STEPS : STEPS]
    rows, history = (frame[frame["unique_id"].isin(sampled_ids)] for frame in (forecasts, train))
    points = rows[[name for name in rows if "-" not in name]]
    names = list(dict.fromkeys([*POINT, *SCALED]))
    peer_scores = evaluate(points, [scaled_loss(name) for name in names], train_df=history).set_index(["metric", "unique_id"])
    scores = score(points, metrics=names, train=history, by="series")
    for name in names:
        values = scores.pivot(index="unique_id", columns="model", values=name)
        expected = peer_scores.loc[name][values.columns] * (200 if name == "smape" else 1)  # utilsforecast: 0 to 1
        np.testing.assert_allclose(values, expected.loc[values.index], rtol=1e-9, atol=1e-12, err_msg=name)


def report(median: dict[str, float]) -> list[str]:
    lines = [
        f"# score, {date.today()}",
        "",
        f"{MODELS} models x {SERIES:,} series x {STEPS} steps; {', '.join(POINT)}, or with scales {', '.join(SCALED)}.",
        f"Required: at most {MAX_SECONDS:g} s for six metrics.",
        "",
        f"Command: `python benchmarks/bench_score.py` · Python {platform.python_version()}, pandas {version('pandas')}, "
        f"polars {version('polars')}, utilsforecast {version('utilsforecast')}, {platform.machine()}; medians of {ROUNDS} "
        "interleaved rounds.",
        "",
        "| call | seconds | seconds, utilsforecast | speedup |",
        "|---|---|---|---|",
    ]
    for name, seconds in median.items():
        if not name.startswith("peer: "):
            peer_seconds = median.get(f"peer: {name}")
            peer_cells = " | " if peer_seconds is None else f"{peer_seconds:.2f} | {peer_seconds / seconds:.1f}"
            lines.append(f"| {name} | {seconds:.2f} | {peer_cells} |")
    return lines


if __name__ == "__main__":
    raise SystemExit(main())
