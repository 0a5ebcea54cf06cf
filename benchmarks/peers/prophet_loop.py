"""prophet on every series of a file, one after the other, with its 80 % interval; run by its Python.

    python prophet_loop.py FRAME.csv HORIZON FREQ OUT.csv [long]

long: Stan's search goes on until it finds nothing better, in place of its usual tolerances.

Prints CPU seconds, those of Stan's processes with them, as JSON; OUT.csv gets the forecasts.
"""

from __future__ import annotations

import json
import logging
import resource
import sys
import time

import pandas as pd
import prophet
from prophet import Prophet

logging.getLogger("cmdstanpy").disabled = True
logging.getLogger("prophet").disabled = True


LONG = {"tol_obj": 1e-15, "tol_rel_obj": 1.0, "tol_grad": 1e-12, "tol_rel_grad": 1.0, "tol_param": 1e-13, "history_size": 50}


def cpu() -> float:
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def main(path: str, horizon: int, freq: str, out: str, how: str = "") -> None:
    frame = pd.read_csv(path, parse_dates=["ds"], dtype={"unique_id": str})
    found, before, start = [], cpu(), time.perf_counter()
    for name, one in frame.groupby("unique_id"):
        model = Prophet(interval_width=0.8).fit(one[["ds", "y"]], **(LONG if how else {}))
        ahead = model.make_future_dataframe(horizon, freq=freq, include_history=False)
        found.append(model.predict(ahead)[["ds", "yhat", "yhat_lower", "yhat_upper"]].assign(unique_id=name))
    seconds, wall = cpu() - before, time.perf_counter() - start
    pd.concat(found).to_csv(out, index=False)
    print(json.dumps({"seconds": seconds, "wall": wall, "series": len(found), "version": prophet.__version__}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
