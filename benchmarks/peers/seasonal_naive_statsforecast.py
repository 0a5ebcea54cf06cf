"""Run by the peer's Python: statsforecast's SeasonalNaive on a parquet file; prints what it took as JSON.

    python seasonal_naive_statsforecast.py PANEL SEASON HORIZON WAY OUT

WAY: "forecast" (its way for many series), "fit_predict", or "forecast_all_cores". OUT: where the forecasts go, "-" for nowhere.
"""

import json
import resource
import sys
import time
from importlib.metadata import version

import pandas as pd
from statsforecast import StatsForecast
from statsforecast.models import SeasonalNaive

LEVELS = [80, 95]


def run(frame, season, horizon, way):
    model = StatsForecast(models=[SeasonalNaive(season)], freq="D", n_jobs=-1 if way == "forecast_all_cores" else 1)
    if way == "fit_predict":
        return model.fit(frame).predict(horizon, level=LEVELS)
    return model.forecast(df=frame, h=horizon, level=LEVELS)


def main():
    path, season, horizon, way, out = sys.argv[1:]
    season, horizon = int(season), int(horizon)
    frame = pd.read_parquet(path)
    few = frame.head(int((frame["unique_id"] == frame["unique_id"].iloc[0]).sum()))
    run(few, season, horizon, "fit_predict" if way == "fit_predict" else "forecast")  # what is done once in a process
    one = []
    for _ in range(20):
        start = time.perf_counter()
        run(few, season, horizon, "fit_predict" if way == "fit_predict" else "forecast")
        one.append(time.perf_counter() - start)
    start = time.perf_counter()
    forecast = run(frame, season, horizon, way)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if out != "-":
        forecast.to_parquet(out)
    versions = f"statsforecast {version('statsforecast')}, pandas {pd.__version__}"
    print(json.dumps({"seconds": seconds, "one": sorted(one)[len(one) // 2], "peak": peak, "versions": versions}))


if __name__ == "__main__":
    main()
