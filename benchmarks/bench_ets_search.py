"""Search of AutoETS: its AICc compared with the best candidate fitted separately, and its speed compared with statsforecast.

    python benchmarks/bench_ets_search.py [--series 1000] [--seed 0] [--timed 100]

The quarterly and monthly series of M1, and samples of those of M4. The search and the separate fits use the
same candidates, bounds and numbers of parameters, without the checks that follow the search. Requires the
benchmark data (DEEPFORECAST_DATA).
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from bench_ets import run_peer
from common_statsforecast import describe_machine

from deepforecast import AutoETS, datasets
from deepforecast.kernels.ets.estimation import Fits, Settings, fit
from deepforecast.kernels.ets.forms import Form
from deepforecast.models.statistical._form_selection import count_parameters, information_criteria

DATASETS = {"m1_quarterly": (4, 8), "m1_monthly": (12, 18), "m4_quarterly": (4, 8), "m4_monthly": (12, 18)}
FORMS = AutoETS()._forms()
MAX_SHARE, MAX_EXCESS, SMALL_EXCESS, MIN_SPEEDUP, ROUNDS = 3 / 1000, 10.0, 2.0, 100, 3
"""At most MAX_SHARE of the series may exceed the best separate fit by SMALL_EXCESS, none by MAX_EXCESS."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=1000, help="size of each sample of M4")
    parser.add_argument("--seed", type=int, default=0, help="seed of the samples")
    parser.add_argument("--timed", type=int, default=100, help="series of each dataset that statsforecast fits")
    args = parser.parse_args()
    lines, passed, versions = [], True, ""
    for name, (season, horizon) in DATASETS.items():
        frame = sample(name, args.series if name.startswith("m4") else None, args.seed)
        gaps = excess(frame, season)
        above = [int(np.sum(gaps > limit)) for limit in (SMALL_EXCESS, MAX_EXCESS)]
        timed_series = frame[frame["unique_id"].isin(frame["unique_id"].unique()[:: max(1, len(gaps) // args.timed)])]
        cost = 1e3 * min(fit_seconds(frame, season, horizon) for _ in range(ROUNDS)) / len(gaps)
        peer_seconds, versions, _, _ = run_peer(timed_series, season, horizon)
        peer_cost = 1e3 * peer_seconds / timed_series["unique_id"].nunique()
        passed &= above[0] <= MAX_SHARE * len(gaps) and above[1] == 0 and peer_cost >= MIN_SPEEDUP * cost
        cells = (f"{cost:.3f}", f"{peer_cost:.1f}", f"{peer_cost / cost:.0f}")
        lines.append(f"| {name} | {len(gaps):,} | {above[0]} | {above[1]} | {gaps.max():.2f} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    page = [
        "# Search of AutoETS",
        "",
        f"AICc of AutoETS minus that of the best `ETS` form fitted separately; samples of M4 with seed {args.seed}.",
        f"CPU time per series: deepforecast on all series (best of {ROUNDS} runs), statsforecast on {args.timed} or more.",
        "",
        "| dataset | series | > 2 | > 10 | largest | CPU ms per series | statsforecast | speedup |",
        "|---|---|---|---|---|---|---|---|",
        *lines,
        "",
        describe_machine(versions),
        "",
    ]
    (Path(__file__).parent / "results" / "ets_search.md").write_text("\n".join(page), encoding="utf-8")
    return int(not passed)


def sample(name: str, n_series: int | None, seed: int) -> pd.DataFrame:
    """All series of a dataset, or a random sample."""
    frame = datasets.load(name, split="train")
    frame = frame.assign(unique_id=frame["unique_id"].astype(str), y=frame["y"].astype(float))
    ids = np.array(sorted(frame["unique_id"].unique()))
    if n_series is not None:
        ids = np.random.default_rng(seed).choice(ids, n_series, replace=False)
    frame = frame[frame["unique_id"].isin(ids)].sort_values(["unique_id", "ds"], ignore_index=True)
    return frame[["unique_id", "ds", "y"]]


def excess(frame: pd.DataFrame, season: int) -> np.ndarray:
    """The AICc of the form selected for each series minus that of the best candidate fitted separately."""
    lengths = frame.groupby("unique_id").size().to_numpy()
    y, indptr = frame["y"].to_numpy(), np.concatenate([[0], np.cumsum(lengths)])
    parameters = np.array([[count_parameters(form, season) for form in FORMS]], np.float64)
    penalties = information_criteria(np.zeros(1), parameters, lengths[:, None].astype(np.float64))["aicc"]
    search_aicc = aicc(fit(y, indptr, season, FORMS, settings=Settings(penalties=penalties)), lengths, season, FORMS)
    thorough = Settings(thorough=True, tolerance=1e-9)
    separate_aicc = [aicc(fit(y, indptr, season, [form], settings=thorough), lengths, season, [form]) for form in FORMS]
    return np.asarray(search_aicc.min(axis=1) - np.min(np.concatenate(separate_aicc, axis=1), axis=1))


def aicc(fits: Fits, lengths: np.ndarray, season: int, forms: list[Form]) -> np.ndarray:
    """AICc of shape (series, forms)."""
    parameters = np.array([[count_parameters(form, season) for form in forms]], np.float64)
    return information_criteria(fits.log_likelihood, parameters, lengths[:, None].astype(np.float64))["aicc"]


def fit_seconds(frame: pd.DataFrame, season: int, horizon: int) -> float:
    """CPU seconds of fit and predict, after compilation."""
    model = AutoETS(horizon=horizon, season_length=season)
    model.clone().fit(frame[frame["unique_id"].isin(frame["unique_id"].unique()[:4])], freq=1).predict()
    start = time.process_time()
    model.fit(frame, freq=1).predict()
    return time.process_time() - start


if __name__ == "__main__":
    sys.exit(main())
