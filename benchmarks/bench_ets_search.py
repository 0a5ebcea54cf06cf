"""AutoETS' search: its criterion less the best of each candidate fitted alone, and its speed next to statsforecast's.

    python benchmarks/bench_ets_search.py [--series 1000] [--seed 0] [--timed 100]

The quarterly and monthly series of M1, and a sample of each of M4. Both sides use the same candidates, bounds and counts of
parameters; the soundness checks that follow the search are left out. Needs the data folder (DEEPFORECAST_DATA).
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from bench_ets import peers
from beside_statsforecast import machine

from deepforecast import AutoETS, datasets
from deepforecast.kernels.ets.estimation import Fits, Settings, fit
from deepforecast.kernels.ets.forms import Form
from deepforecast.models.statistical._form_selection import count_parameters, information_criteria

SETS = {"m1_quarterly": (4, 8), "m1_monthly": (12, 18), "m4_quarterly": (4, 8), "m4_monthly": (12, 18)}
FORMS = AutoETS()._forms()
SHARE, FAR, NEAR, FASTER, ROUNDS = 3 / 1000, 10.0, 2.0, 100, 3
"""At most this share of the series may end more than NEAR above the best form alone, none more than FAR."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=1000, help="of each sample of M4")
    parser.add_argument("--seed", type=int, default=0, help="of the samples")
    parser.add_argument("--timed", type=int, default=100, help="series of each set that statsforecast fits")
    arguments = parser.parse_args()
    lines, passed, versions = [], True, ""
    for name, (season, horizon) in SETS.items():
        frame = sample(name, arguments.series if name.startswith("m4") else None, arguments.seed)
        gaps = excess(frame, season)
        above = [int(np.sum(gaps > limit)) for limit in (NEAR, FAR)]
        few = frame[frame["unique_id"].isin(frame["unique_id"].unique()[:: max(1, len(gaps) // arguments.timed)])]
        cost = 1e3 * min(ours(frame, season, horizon) for _ in range(ROUNDS)) / len(gaps)
        peer_seconds, versions, _, _ = peers(few, season, horizon)
        peer_cost = 1e3 * peer_seconds / few["unique_id"].nunique()
        passed &= above[0] <= SHARE * len(gaps) and above[1] == 0 and peer_cost >= FASTER * cost
        cells = (f"{cost:.3f}", f"{peer_cost:.1f}", f"{peer_cost / cost:.0f}")
        lines.append(f"| {name} | {len(gaps):,} | {above[0]} | {above[1]} | {gaps.max():.2f} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    page = [
        "# AutoETS' search",
        "",
        f"AICc of AutoETS less that of the best `ETS` form fitted alone; samples of M4 with seed {arguments.seed}.",
        f"CPU time per series: ours of all series (best of {ROUNDS} runs), statsforecast's of {arguments.timed} or more.",
        "",
        "| set | series | > 2 | > 10 | largest | CPU ms a series | statsforecast's | times |",
        "|---|---|---|---|---|---|---|---|",
        *lines,
        "",
        machine(versions),
        "",
    ]
    (Path(__file__).parent / "results" / "ets_search.md").write_text("\n".join(page), encoding="utf-8")
    return int(not passed)


def sample(name: str, number: int | None, seed: int) -> pd.DataFrame:
    """All series of a set, or some."""
    frame = datasets.load(name, split="train")
    frame = frame.assign(unique_id=frame["unique_id"].astype(str), y=frame["y"].astype(float))
    ids = np.array(sorted(frame["unique_id"].unique()))
    if number is not None:
        ids = np.random.default_rng(seed).choice(ids, number, replace=False)
    frame = frame[frame["unique_id"].isin(ids)].sort_values(["unique_id", "ds"], ignore_index=True)
    return frame[["unique_id", "ds", "y"]]


def excess(frame: pd.DataFrame, season: int) -> np.ndarray:
    """The AICc of each series' choice less the least of all candidates fitted alone."""
    lengths = frame.groupby("unique_id").size().to_numpy()
    y, indptr = frame["y"].to_numpy(), np.concatenate([[0], np.cumsum(lengths)])
    parameters = np.array([[count_parameters(form, season) for form in FORMS]], np.float64)
    penalties = information_criteria(np.zeros(1), parameters, lengths[:, None].astype(np.float64))["aicc"]
    chosen = aicc(fit(y, indptr, season, FORMS, settings=Settings(penalties=penalties)), lengths, season, FORMS)
    thorough = Settings(thorough=True, tolerance=1e-9)
    alone = [aicc(fit(y, indptr, season, [form], settings=thorough), lengths, season, [form]) for form in FORMS]
    return np.asarray(chosen.min(axis=1) - np.min(np.concatenate(alone, axis=1), axis=1))


def aicc(fits: Fits, lengths: np.ndarray, season: int, forms: list[Form]) -> np.ndarray:
    """(series, forms)."""
    parameters = np.array([[count_parameters(form, season) for form in forms]], np.float64)
    return information_criteria(fits.log_likelihood, parameters, lengths[:, None].astype(np.float64))["aicc"]


def ours(frame: pd.DataFrame, season: int, horizon: int) -> float:
    """CPU seconds of fit and predict, compiled before."""
    model = AutoETS(horizon=horizon, season_length=season)
    model.clone().fit(frame[frame["unique_id"].isin(frame["unique_id"].unique()[:4])], freq=1).predict()
    start = time.process_time()
    model.fit(frame, freq=1).predict()
    return time.process_time() - start


if __name__ == "__main__":
    sys.exit(main())
