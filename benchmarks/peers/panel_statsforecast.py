"""Run by the peer's Python: one of statsforecast's models on a parquet file; prints the CPU seconds it took as JSON.

    python panel_statsforecast.py PANEL FREQ HORIZON MODEL ROUNDS OUT

MODEL: a name of the table below. OUT: where the forecasts go, a column `forecast`.
"""

import json
import sys
import time
from importlib.metadata import version

import pandas as pd
from statsforecast import StatsForecast
from statsforecast.models import ADIDA, IMAPA, MSTL, TSB, CrostonClassic, CrostonOptimized, CrostonSBA, Naive

MODELS = {
    "classic": lambda: CrostonClassic(),
    "sba": lambda: CrostonSBA(),
    "optimized": lambda: CrostonOptimized(),
    "tsb": lambda: TSB(alpha_d=0.1, alpha_p=0.1),
    "adida": lambda: ADIDA(),
    "imapa": lambda: IMAPA(),
    "mstl": lambda: MSTL(season_length=[24, 168]),
    "mstl_naive": lambda: MSTL(season_length=[24, 168], trend_forecaster=Naive()),
}


def main():
    path, freq, horizon, name, rounds, out = sys.argv[1:]
    frame = pd.read_parquet(path)
    model = StatsForecast(models=[MODELS[name]()], freq=int(freq) if freq.isdigit() else freq)
    few = frame[frame["unique_id"].isin(frame["unique_id"].unique()[:2])]
    model.forecast(df=few, h=int(horizon))  # what is done once in a process
    seconds = []
    for _ in range(int(rounds)):
        start = time.process_time()
        found = model.forecast(df=frame, h=int(horizon))
        seconds.append(time.process_time() - start)
    found.set_axis(["unique_id", "ds", "forecast"], axis=1).to_parquet(out)
    versions = f"statsforecast {version('statsforecast')}"
    print(json.dumps({"seconds": sorted(seconds)[len(seconds) // 2], "versions": versions}))


if __name__ == "__main__":
    main()
