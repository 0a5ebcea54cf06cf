"""Run by the peer's Python: statsforecast's AutoETS, series by series, on a parquet file; prints the CPU seconds as JSON.

    python ets_statsforecast.py PANEL SEASON HORIZON OUT

OUT: where the forecasts go, with what was found of each series in every row: the form, its AICc, the number of parameters
(sigma among them), alpha to phi, level, slope, and the factors of the season in turn.
"""

import json
import sys
import time
from importlib.metadata import version

import numpy as np
import pandas as pd
from statsforecast.models import AutoETS


def main():
    path, season, horizon, out = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    frame = pd.read_parquet(path)
    groups = [(name, part["y"].to_numpy(np.float64)) for name, part in frame.groupby("unique_id", observed=True, sort=True)]
    AutoETS(season_length=season).fit(groups[0][1]).predict(horizon)  # what is done once in a process
    rows = []
    start = time.process_time()
    for name, y in groups:
        model = AutoETS(season_length=season).fit(y)
        rows.append((name, model.model_, model.predict(horizon)["mean"]))
    seconds = time.process_time() - start
    found = pd.DataFrame([{"unique_id": name, **described(model, season)} for name, model, _ in rows])
    found = found.loc[found.index.repeat(horizon)].assign(forecast=np.concatenate([row[2] for row in rows]))
    found.to_parquet(out)
    print(json.dumps({"seconds": seconds, "versions": f"statsforecast {version('statsforecast')}"}))


def described(model, season):
    """What was found: in the components N is none; phi is 1 and rates are 0 where there are none."""
    form, rates = model["components"], np.asarray(model["par"][:4], np.float64)
    first = list(np.asarray(model["states"], np.float64)[0])
    neutral = 1.0 if form[2] == "M" else 0.0
    found = {"form": form, "aicc": model["aicc"], "parameters": model["n_params"], "level": first.pop(0)}
    found["slope"] = first.pop(0) if form[1] != "N" else 0.0
    factors = first[::-1] if form[2] != "N" else [neutral] * season
    rates = np.where(np.isfinite(rates), rates, (0.0, 0.0, 0.0, 1.0))
    found |= dict(zip(("alpha", "beta", "gamma", "phi"), rates, strict=True))
    return found | {f"factor_{i}": factor for i, factor in enumerate(factors)}


if __name__ == "__main__":
    main()
