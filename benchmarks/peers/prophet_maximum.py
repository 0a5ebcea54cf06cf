"""Prophet's maximum of the posterior on some series: what went into Stan, what came out, and the forecast. Run by its Python.

    python prophet_maximum.py JOBS.json OUT

JOBS.json is a list of {name, csv, horizon, freq, options, country, events, seasonalities, regressors, future, fit};
OUT/<name>.npz gets what the likelihood needs (t, y, X, sigmas, modes, changepoints), the parameters found, the forecast, and
CPU seconds.
"""

from __future__ import annotations

import json
import logging
import resource
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from prophet import Prophet

for handler in logging.getLogger("cmdstanpy").handlers:
    handler.setLevel(logging.ERROR)
logging.getLogger("cmdstanpy").setLevel(logging.ERROR)
logging.getLogger("prophet").setLevel(logging.ERROR)


def main(jobs: str, out: str) -> None:
    for job in json.loads(Path(jobs).read_text(encoding="utf-8")):
        np.savez(Path(out, f"{job['name']}.npz"), **run(job))


def cpu() -> float:
    """Seconds of this process and of those it waited for: Stan is one."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def run(job: dict[str, Any]) -> dict[str, Any]:
    frame = pd.read_csv(job["csv"], parse_dates=["ds"])
    options = dict(job.get("options", {}))
    if "events" in job:
        usual = {"lower_window": 0, "upper_window": 0, "prior_scale": 10.0}
        rows = [
            {"holiday": name, "ds": day, **{key: one.get(key, value) for key, value in usual.items()}}
            for name, one in job["events"].items()
            for day in one["dates"]
        ]
        options["holidays"] = pd.DataFrame(rows)
    model = Prophet(**options)
    if job.get("country"):
        model.add_country_holidays(job["country"])
    for name, one in job.get("seasonalities", {}).items():
        model.add_seasonality(name=name, **one)
    for name, one in job.get("regressors", {}).items():
        model.add_regressor(name, **one)
    kept: dict[str, Any] = {}
    preprocess = model.preprocess

    def watched(*args: Any, **more: Any) -> Any:
        kept["data"] = preprocess(*args, **more)
        return kept["data"]

    model.preprocess = watched
    before = cpu()
    model.fit(frame, **job.get("fit", {}))
    if job.get("future"):
        ahead = pd.read_csv(job["future"], parse_dates=["ds"])
    else:
        ahead = pd.DataFrame({"ds": pd.date_range(frame["ds"].max(), periods=job["horizon"] + 1, freq=job["freq"])[1:]})
        for name in ("cap", "floor"):
            if name in frame:
                ahead[name] = frame[name].iloc[-1]
    found = model.predict(ahead)
    seconds = cpu() - before
    data = kept["data"]
    names = ("t", "y", "X", "sigmas", "t_change", "cap", "s_a", "s_m")
    arrays = {name: np.asarray(getattr(data, name), dtype=np.float64) for name in names}
    return {
        **arrays,
        "tau": data.tau,
        "growth": int(data.trend_indicator),
        "k": np.ravel(model.params["k"])[0],
        "m": np.ravel(model.params["m"])[0],
        "delta": np.ravel(model.params["delta"]),
        "beta": np.ravel(model.params["beta"]),
        "sigma": np.ravel(model.params["sigma_obs"])[0],
        "scale": model.y_scale,
        "forecast": found["yhat"].to_numpy(),
        "trend": found["trend"].to_numpy(),
        "low": found["yhat_lower"].to_numpy(),
        "high": found["yhat_upper"].to_numpy(),
        "seconds": seconds,
    }


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
