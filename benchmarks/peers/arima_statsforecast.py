"""Run by the peer's Python: statsforecast's AutoARIMA on a parquet file, series by series; prints CPU seconds as JSON.

    python arima_statsforecast.py PANEL SEASON HORIZON OUT

OUT: where the forecasts go, with AICc and order ("p,d,q,P,D,Q") of each series in every row.
"""

import json
import sys
import time
from importlib.metadata import version

import numpy as np
import pandas as pd
from statsforecast.models import AutoARIMA


def main():
    path, season, horizon, out = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    frame = pd.read_parquet(path)
    groups = [(one, part["y"].to_numpy(np.float64)) for one, part in frame.groupby("unique_id", observed=True, sort=True)]
    AutoARIMA(season_length=1).fit(groups[0][1][:40]).predict(horizon)  # what is done once in a process
    rows = []
    start = time.process_time()
    for one, y in groups:
        fitted = AutoARIMA(season_length=season).fit(y)
        p, q, many_p, many_q, _, d, big_d = fitted.model_["arma"]
        rows.append((one, fitted.model_["aicc"], f"{p},{d},{q},{many_p},{big_d},{many_q}", fitted.predict(horizon)["mean"]))
    seconds = time.process_time() - start
    found = pd.DataFrame(
        {
            "unique_id": np.repeat([row[0] for row in rows], horizon),
            "aicc": np.repeat([row[1] for row in rows], horizon),
            "order": np.repeat([row[2] for row in rows], horizon),
            "forecast": np.concatenate([row[3] for row in rows]),
        }
    )
    found.to_parquet(out)
    print(json.dumps({"seconds": seconds, "versions": f"statsforecast {version('statsforecast')}"}))


if __name__ == "__main__":
    main()
