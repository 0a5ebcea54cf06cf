"""Run by the peer's Python: skforecast with LightGBM on a parquet file; prints seconds and the peak of memory as JSON.

    python regression_skforecast.py PANEL SETTINGS OUT
"""

import json
import resource
import sys
import time
import warnings

import lightgbm
import pandas as pd
from skforecast.preprocessing import RollingFeatures
from skforecast.recursive import ForecasterRecursiveMultiSeries

warnings.simplefilter("ignore")
panel, settings, out = sys.argv[1:]
told = json.loads(settings)
frame = pd.read_parquet(panel)
start, wall = time.process_time(), time.perf_counter()
wide = frame.pivot(index="ds", columns="unique_id", values="y").asfreq(told["freq"])
wide.columns = wide.columns.astype(str)
exog = pd.DataFrame({name: getattr(wide.index, name) for name in told["calendar"]}, index=wide.index)
kinds, sizes = zip(*told["windows"], strict=True)
fitted = ForecasterRecursiveMultiSeries(
    estimator=lightgbm.LGBMRegressor(**told["lightgbm"]), lags=told["lags"],
    window_features=RollingFeatures(stats=list(kinds), window_sizes=list(sizes)), encoding=None, transformer_series=None,
)
fitted.fit(series=wide, exog=exog, store_in_sample_residuals=False)
fit, fit_wall = time.process_time() - start, time.perf_counter() - wall
start, wall = time.process_time(), time.perf_counter()
steps = pd.date_range(wide.index[-1], periods=told["horizon"] + 1, freq=told["freq"])[1:]
ahead = pd.DataFrame({name: getattr(steps, name) for name in told["calendar"]}, index=steps)
found = fitted.predict(told["horizon"], exog=ahead)
predict, predict_wall = time.process_time() - start, time.perf_counter() - wall
found = found.rename_axis("ds").reset_index().rename(columns={"level": "unique_id", "pred": "forecast"})
found.to_parquet(out)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"fit": fit, "predict": predict, "wall": fit_wall + predict_wall, "peak": peak}))
