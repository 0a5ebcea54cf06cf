"""How often the intervals of the classical models hold what comes: series drawn from the models, and monthly series of M4.

    python benchmarks/bench_intervals.py [--drawn 2000] [--series 1000] [--write] [model ...]

C1, C2: independent series drawn from a process, 200 and 30 values, each fitted by its own model and by automatic ones; the
share of the next values inside the bands. C3 (needs the data folder, DEEPFORECAST_DATA): monthly series of M4, evenly spread;
ACD is the distance of the coverage of 95 % bands from .95, MSIS the scaled interval score, as the competition had them.
Published for its ETS benchmark: ACD .016, MSIS 8.297. `--series 0` leaves M4 out, `--drawn 0` the drawn series.
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
AHEAD = 12
AUTOMATIC = ("AutoETS", "AutoTheta", "AutoCES", "AutoARIMA", "MSTL", "Theta", "DynamicTheta")
C1 = {80: (2.9, 5.0), 95: (1.6, 5.0)}  # points at the first and the last step
C2 = 6.0
C3 = (0.036, 1.1 * 8.297)


def smooth(shocks: np.ndarray, alpha: float, beta: float = 0.0, gamma: float = 0.0, season: int = 12) -> np.ndarray:
    """ETS(A,N,N) or ETS(A,A,A) from a level of 0, a slope of 0.1 and a wave of a season."""
    level, slope = np.zeros(len(shocks)), np.full(len(shocks), 0.1 if beta else 0.0)
    wave = np.tile((5 if gamma else 0) * np.sin(2 * np.pi * np.arange(season) / season), (len(shocks), 1))
    y = np.empty_like(shocks)
    for t in range(shocks.shape[1]):
        y[:, t] = level + slope + wave[:, t % season] + shocks[:, t]
        level = level + slope + alpha * shocks[:, t]
        slope, wave[:, t % season] = slope + beta * shocks[:, t], wave[:, t % season] + gamma * shocks[:, t]
    return y


def autoregressive(shocks: np.ndarray) -> np.ndarray:
    """AR(1) of 0.6 around 0, from its own distribution."""
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
    """What is fitted to a process."""
    from deepforecast import ARIMA, ETS, MSTL, SES, AutoARIMA, AutoCES, AutoETS, AutoTheta, Theta

    length = 12 if process == "ETS(A,A,A)" else 1
    own = {
        "ETS(A,N,N)": ("SES", SES()),
        "ETS(A,A,A)": ("ETS(A,A,A)", ETS(error="additive", trend="additive", seasonal="additive", season_length=12)),
        "AR(1)": ("ARIMA(1,0,0)", ARIMA(order=(1, 0, 0))),
        "random walk": ("ARIMA(0,1,0)", ARIMA(order=(0, 1, 0))),
        "walk with drift": ("ARIMA(0,1,0) with drift", ARIMA(order=(0, 1, 0), constant=True)),
    }
    yield own[process]
    several = [AutoETS(season_length=length), AutoTheta(season_length=length), AutoCES(season_length=length)]
    several += [Theta(season_length=length), AutoARIMA(season_length=length)]
    if length > 1:
        several.append(MSTL(season_length=length))
    yield from ((type(one).__name__, one) for one in several)


def drawn(process: str, series: int, rows: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Histories as a frame, and what follows."""
    y = PROCESSES[process](np.random.default_rng([rows, len(process)]).normal(size=(series, rows + AHEAD)))
    ids = np.repeat(np.arange(series), rows)
    frame = pd.DataFrame({"unique_id": ids, "ds": np.tile(np.arange(rows), series), "y": y[:, :rows].ravel()})
    return frame, y[:, rows:]


def coverage(model: Any, frame: pd.DataFrame, ahead: np.ndarray) -> dict[int, tuple[float, float]]:
    """Percent inside at the first and the last step, by level."""
    found = model.fit(frame, freq=1).predict(AHEAD, level=LEVELS)
    inside = {}
    for level in LEVELS:
        low, high = (found[f"{model.name}-{side}-{level}"].to_numpy().reshape(ahead.shape) for side in ("lo", "hi"))
        held = 100 * ((ahead >= low) & (ahead <= high)).mean(axis=0)
        inside[level] = float(held[0]), float(held[-1])
    return inside


def of_processes(series: int, rows: int, wanted: list[str]) -> list[str]:
    """A table of C1 or C2; the model's own process is held to the bar."""
    lines = [row("process", ["model", *(f"{level} %, step {step}" for level in LEVELS for step in (1, AHEAD)), "CPU s"])]
    lines.append("|---" * 7 + "|")
    for process in PROCESSES:
        frame, ahead = drawn(process, series, rows)
        for number, (name, model) in enumerate(models(process)):
            if wanted and type(model).__name__ not in wanted:
                continue
            few = max(series // 5, 1) if name == "AutoARIMA" else series  # the search for an order takes long
            clock = time.process_time()
            inside = coverage(model, frame[frame["unique_id"] < few], ahead[:few])
            clock = time.process_time() - clock
            bars = {level: C1[level] if rows > 100 else (C2, C2) for level in LEVELS}
            cells = [
                f"{found:.1f}{'' if number or abs(found - level) <= bar else ' (!)'}"
                for level in LEVELS
                for found, bar in zip(inside[level], bars[level], strict=True)
            ]
            lines.append(row(process, [name if few == series else f"{name} ({few})", *cells, f"{clock:.1f}"]))
            print(lines[-1], flush=True)
    return lines


def of_m4(series: int, wanted: list[str]) -> list[str]:
    """A table of C3."""
    train, test = (datasets.load("m4_monthly", split=split) for split in ("train", "test"))
    ids = train["unique_id"].astype(str).unique()
    kept = set(ids[np.unique(np.linspace(0, len(ids) - 1, min(series, len(ids))).astype(int))])
    train, test = (one[one["unique_id"].astype(str).isin(kept)].reset_index(drop=True) for one in (train, test))
    thirds = ("steps 1-6", "7-12", "13-18")
    lines = [row("model", ["80 %", "95 %", "ACD", "MSIS", *(f"95 %, {one}" for one in thirds), "CPU s"]), "|---" * 9 + "|"]
    for name in wanted or AUTOMATIC:
        clock = time.process_time()
        found = getattr(deepforecast, name)(season_length=12).fit(train, freq=1).predict(18, level=LEVELS)
        clock = time.process_time() - clock
        found = found.assign(unique_id=found["unique_id"].astype(str))
        both = test.assign(unique_id=test["unique_id"].astype(str)).merge(found, on=["unique_id", "ds"], validate="1:1")
        held = {level: both["y"].between(both[f"{name}-lo-{level}"], both[f"{name}-hi-{level}"]) for level in LEVELS}
        scores = score(found, actual=test, train=train, metrics=["msis"], season_length=12)
        msis = float(scores["msis-95"].iloc[0])
        step = both.groupby("unique_id", observed=True).cumcount()
        parts = [f"{held[95][step // 6 == third].mean():.3f}" for third in range(3)]
        distance = abs(held[95].mean() - 0.95)
        marks = ["" if good else " (!)" for good in (distance <= C3[0], msis <= C3[1])]
        cells = [f"{held[80].mean():.3f}", f"{held[95].mean():.3f}", f"{distance:.3f}{marks[0]}", f"{msis:.3f}{marks[1]}"]
        lines.append(row(name, [*cells, *parts, f"{clock:.1f}"]))
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*")
    parser.add_argument("--drawn", type=int, default=2000)
    parser.add_argument("--series", type=int, default=1000)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = ["# Coverage of the classical models' intervals", ""]
    for rows, name in ((200, "C1"), (30, "C2")) if given.drawn else ():
        lines += [f"## {name}: {given.drawn:,} drawn series of {rows} values", ""]
        lines += [*of_processes(given.drawn, rows, given.models), ""]
    if given.series:
        lines += [f"## C3: {given.series:,} monthly series of M4, 18 months ahead", "", *of_m4(given.series, given.models), ""]
    lines += ["(!): outside the bar. C1: 2.9 and 1.6 points at the first step, 5 at the last; C2: 6; C3: ACD .036, MSIS 9.13."]
    if given.write:
        RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")


def row(head: str, found: list[str]) -> str:
    return f"| {head} | {' | '.join(found)} |"


if __name__ == "__main__":
    main()
