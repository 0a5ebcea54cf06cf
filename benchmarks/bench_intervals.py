"""Coverage of the prediction intervals of the classical models, on simulated series and on monthly series of M4.

    python benchmarks/bench_intervals.py [--drawn 2000] [--series 1000] [--write] [model ...]

C1, C2: independent series simulated from a process, with 200 and 30 values, each fitted by the true model and by
automatic ones; the coverage is that of the next values. C3 (requires the benchmark data, DEEPFORECAST_DATA):
evenly spaced monthly series of M4; ACD is the absolute difference of the coverage of 95 % intervals from .95,
MSIS the mean scaled interval score, as defined by the competition. Published for its ETS benchmark: ACD .016,
MSIS 8.297. `--series 0` omits M4, `--drawn 0` the simulated series.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import deepforecast
from deepforecast import datasets, score

RESULTS = Path(__file__).parent / "results" / "intervals.md"
LEVELS = [80, 95]
HORIZON = 12
AUTOMATIC = ("AutoETS", "AutoTheta", "AutoCES", "AutoARIMA", "MSTL", "Theta", "DynamicTheta")
C1_TOLERANCE = {80: (2.9, 5.0), 95: (1.6, 5.0)}  # percentage points at the first and the last step
C2_TOLERANCE = 6.0
C3_LIMITS = (0.036, 1.1 * 8.297)


def smooth(shocks: np.ndarray, alpha: float, beta: float = 0.0, gamma: float = 0.0, season: int = 12) -> np.ndarray:
    """ETS(A,N,N) or ETS(A,A,A) with initial level 0, trend 0.1 and a sinusoidal season."""
    level, slope = np.zeros(len(shocks)), np.full(len(shocks), 0.1 if beta else 0.0)
    seasonal = np.tile((5 if gamma else 0) * np.sin(2 * np.pi * np.arange(season) / season), (len(shocks), 1))
    y = np.empty_like(shocks)
    for t in range(shocks.shape[1]):
        y[:, t] = level + slope + seasonal[:, t % season] + shocks[:, t]
        level = level + slope + alpha * shocks[:, t]
        slope, seasonal[:, t % season] = slope + beta * shocks[:, t], seasonal[:, t % season] + gamma * shocks[:, t]
    return y


def autoregressive(shocks: np.ndarray) -> np.ndarray:
    """AR(1) with coefficient 0.6 and mean 0, from its stationary distribution."""
    y = shocks.copy()
    y[:, 0] /= np.sqrt(1 - 0.36)
    for t in range(1, y.shape[1]):
        y[:, t] += 0.6 * y[:, t - 1]
    return y


PROCESSES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "ETS(A,N,N)": lambda shocks: smooth(shocks, 0.3),
    "ETS(A,A,A)": lambda shocks: smooth(shocks, 0.3, 0.05, 0.2),
    "AR(1)": autoregressive,
    "random walk": lambda shocks: shocks.cumsum(axis=1),
    "walk with drift": lambda shocks: (shocks + 0.3).cumsum(axis=1),
}


def models(process: str) -> Iterator[tuple[str, Any]]:
    """Yield the models fitted to a process, the true one first."""
    from deepforecast import ARIMA, ETS, MSTL, SES, AutoARIMA, AutoCES, AutoETS, AutoTheta, Theta

    length = 12 if process == "ETS(A,A,A)" else 1
    true_models = {
        "ETS(A,N,N)": ("SES", SES()),
        "ETS(A,A,A)": ("ETS(A,A,A)", ETS(error="additive", trend="additive", seasonal="additive", season_length=12)),
        "AR(1)": ("ARIMA(1,0,0)", ARIMA(order=(1, 0, 0))),
        "random walk": ("ARIMA(0,1,0)", ARIMA(order=(0, 1, 0))),
        "walk with drift": ("ARIMA(0,1,0) with drift", ARIMA(order=(0, 1, 0), constant=True)),
    }
    yield true_models[process]
    automatic_models = [AutoETS(season_length=length), AutoTheta(season_length=length), AutoCES(season_length=length)]
    automatic_models += [Theta(season_length=length), AutoARIMA(season_length=length)]
    if length > 1:
        automatic_models.append(MSTL(season_length=length))
    yield from ((type(model).__name__, model) for model in automatic_models)


def simulate_histories(process: str, series: int, rows: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Simulated histories as a frame, and the values that follow."""
    y = PROCESSES[process](np.random.default_rng([rows, len(process)]).normal(size=(series, rows + HORIZON)))
    ids = np.repeat(np.arange(series), rows)
    frame = pd.DataFrame({"unique_id": ids, "ds": np.tile(np.arange(rows), series), "y": y[:, :rows].ravel()})
    return frame, y[:, rows:]


def coverage(model: Any, frame: pd.DataFrame, actual: np.ndarray) -> dict[int, tuple[float, float]]:
    """Coverage in percent at the first and the last step, by level."""
    forecasts = model.fit(frame, freq=1).predict(HORIZON, level=LEVELS)
    inside = {}
    for level in LEVELS:
        low, high = (forecasts[f"{model.name}-{side}-{level}"].to_numpy().reshape(actual.shape) for side in ("lo", "hi"))
        share_inside = 100 * ((actual >= low) & (actual <= high)).mean(axis=0)
        inside[level] = float(share_inside[0]), float(share_inside[-1])
    return inside


def process_table(series: int, rows: int, selected: list[str]) -> list[str]:
    """The table of C1 or C2; only the true model must be within the tolerance."""
    lines = [row("process", ["model", *(f"{level} %, step {step}" for level in LEVELS for step in (1, HORIZON)), "CPU s"])]
    lines.append("|---" * 7 + "|")
    for process in PROCESSES:
        frame, actual = simulate_histories(process, series, rows)
        for index, (name, model) in enumerate(models(process)):
            if selected and type(model).__name__ not in selected:
                continue
            n_fitted = max(series // 5, 1) if name == "AutoARIMA" else series  # its order search is slow
            start = time.process_time()
            inside = coverage(model, frame[frame["unique_id"] < n_fitted], actual[:n_fitted])
            seconds = time.process_time() - start
            tolerances = {level: C1_TOLERANCE[level] if rows > 100 else (C2_TOLERANCE, C2_TOLERANCE) for level in LEVELS}
            cells = [
                f"{share:.1f}{'' if index or abs(share - level) <= tolerance else ' (!)'}"
                for level in LEVELS
                for share, tolerance in zip(inside[level], tolerances[level], strict=True)
            ]
            lines.append(row(process, [name if n_fitted == series else f"{name} ({n_fitted})", *cells, f"{seconds:.1f}"]))
            print(lines[-1], flush=True)
    return lines


def m4_table(series: int, selected: list[str]) -> list[str]:
    """The table of C3."""
    train, test = (datasets.load("m4_monthly", split=split) for split in ("train", "test"))
    ids = train["unique_id"].astype(str).unique()
    sampled_ids = set(ids[np.unique(np.linspace(0, len(ids) - 1, min(series, len(ids))).astype(int))])
    train, test = (part[part["unique_id"].astype(str).isin(sampled_ids)].reset_index(drop=True) for part in (train, test))
    step_ranges = ("steps 1-6", "7-12", "13-18")
    columns = ["80 %", "95 %", "ACD", "MSIS", *(f"95 %, {steps}" for steps in step_ranges), "CPU s"]
    lines = [row("model", columns), "|---" * 9 + "|"]
    for name in selected or AUTOMATIC:
        start = time.process_time()
        forecasts = getattr(deepforecast, name)(season_length=12).fit(train, freq=1).predict(18, level=LEVELS)
        seconds = time.process_time() - start
        forecasts = forecasts.assign(unique_id=forecasts["unique_id"].astype(str))
        evaluated = test.assign(unique_id=test["unique_id"].astype(str))
        evaluated = evaluated.merge(forecasts, on=["unique_id", "ds"], validate="1:1")
        is_inside = {
            level: evaluated["y"].between(evaluated[f"{name}-lo-{level}"], evaluated[f"{name}-hi-{level}"]) for level in LEVELS
        }
        scores = score(forecasts, actual=test, train=train, metrics=["msis"], season_length=12)
        msis = float(scores["msis-95"].iloc[0])
        step = evaluated.groupby("unique_id", observed=True).cumcount()
        coverage_by_third = [f"{is_inside[95][step // 6 == third].mean():.3f}" for third in range(3)]
        distance = abs(is_inside[95].mean() - 0.95)
        marks = ["" if is_within else " (!)" for is_within in (distance <= C3_LIMITS[0], msis <= C3_LIMITS[1])]
        shares = [f"{is_inside[level].mean():.3f}" for level in LEVELS]
        cells = [*shares, f"{distance:.3f}{marks[0]}", f"{msis:.3f}{marks[1]}"]
        lines.append(row(name, [*cells, *coverage_by_third, f"{seconds:.1f}"]))
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*")
    parser.add_argument("--drawn", type=int, default=2000)
    parser.add_argument("--series", type=int, default=1000)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = ["# Coverage of the classical models' intervals", ""]
    for rows, name in ((200, "C1"), (30, "C2")) if args.drawn else ():
        lines += [f"## {name}: {args.drawn:,} simulated series of {rows} values", ""]
        lines += [*process_table(args.drawn, rows, args.models), ""]
    if args.series:
        lines += [f"## C3: {args.series:,} monthly series of M4, horizon 18", "", *m4_table(args.series, args.models), ""]
    c1_tolerance = "2.9 (80 %) and 1.6 (95 %) percentage points at the first step, 5 at the last"
    lines += [f"(!): outside of the tolerance. C1: {c1_tolerance}; C2: 6; C3: ACD .036, MSIS 9.13."]
    if args.write:
        RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")


def row(head: str, cells: list[str]) -> str:
    return f"| {head} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
