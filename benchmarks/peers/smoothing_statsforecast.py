"""Run by the peer's Python: statsforecast's AutoTheta or AutoCES on parquet, series by series; prints CPU seconds (JSON).

    python smoothing_statsforecast.py PANEL SEASON HORIZON MODEL OUT

MODEL: "theta" or "ces". OUT: where the forecasts go, with the loss of each series (theta: the sum of squared errors from the
fourth of the adjusted series, over its mean; ces: the AICc) and the form in every row.
"""

import json
import sys
import time
from importlib.metadata import version

import numpy as np
import pandas as pd
from statsforecast.models import AutoCES, AutoTheta

MODELS = {"theta": (AutoTheta, "mse", "modeltype"), "ces": (AutoCES, "aicc", "seasontype")}


def main():
    path, season, horizon, name, out = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5]
    model, loss, form = MODELS[name]
    frame = pd.read_parquet(path)
    groups = [(one, part["y"].to_numpy(np.float64)) for one, part in frame.groupby("unique_id", observed=True, sort=True)]
    model(season_length=season).fit(groups[0][1]).predict(horizon)  # what is done once in a process
    rows = []
    start = time.process_time()
    for one, y in groups:
        fitted = model(season_length=season).fit(y)
        rows.append((one, fitted.model_[loss], fitted.model_[form], fitted.predict(horizon)["mean"]))
    seconds = time.process_time() - start
    found = pd.DataFrame(
        {
            "unique_id": np.repeat([row[0] for row in rows], horizon),
            "loss": np.repeat([row[1] for row in rows], horizon),
            "form": np.repeat([row[2] for row in rows], horizon),
            "forecast": np.concatenate([row[3] for row in rows]),
        }
    )
    found.to_parquet(out)
    print(json.dumps({"seconds": seconds, "versions": f"statsforecast {version('statsforecast')}"}))


if __name__ == "__main__":
    main()
