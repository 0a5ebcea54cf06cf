"""Run by the peer's Python: mlforecast with LightGBM on a parquet file; prints seconds and the peak of memory as JSON.

    python regression_mlforecast.py PANEL SETTINGS OUT
"""

import json
import resource
import sys
import time

import lightgbm
import pandas as pd
from mlforecast import MLForecast
from mlforecast.lag_transforms import RollingMax, RollingMean, RollingMin, RollingStd, SeasonalRollingMean
from mlforecast.target_transforms import Differences, LocalStandardScaler

panel, settings, out = sys.argv[1:]
told = json.loads(settings)
frame = pd.read_parquet(panel)
begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
kinds = {"mean": RollingMean, "std": RollingStd, "min": RollingMin, "max": RollingMax}
transforms = {1: [kinds[kind](window_size=size) for kind, size in told["windows"]]}
for size, season in told.get("seasonal", []):
    transforms.setdefault(season, []).append(SeasonalRollingMean(season_length=season, window_size=size))
targets = [Differences(told["differences"])] if told["differences"] else []
targets += [LocalStandardScaler()] if told["scale"] else []
model = lightgbm.LGBMRegressor(**told["lightgbm"])
freq = told["freq"]


def forecaster():
    return MLForecast(
        models={"peer": model}, freq=freq, lags=told["lags"], lag_transforms=transforms, date_features=told["calendar"],
        target_transforms=targets, num_threads=1,
    )


static = told.get("static", [])
start = time.process_time()
forecaster().preprocess(frame, static_features=static, return_X_y=True)
features = time.process_time() - start
start, wall = time.process_time(), time.perf_counter()
fitted = forecaster().fit(frame, static_features=static)
fit, fit_wall = time.process_time() - start, time.perf_counter() - wall
start, wall = time.process_time(), time.perf_counter()
ahead = pd.read_parquet(told["future"]) if told.get("future") else None
found = fitted.predict(told["horizon"], X_df=ahead)
predict, predict_wall = time.process_time() - start, time.perf_counter() - wall
found.rename(columns={"peer": "forecast"}).to_parquet(out)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
wall = fit_wall + predict_wall
print(json.dumps({"features": features, "fit": fit, "predict": predict, "wall": wall, "peak": peak, "begin": begin}))
