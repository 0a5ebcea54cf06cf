"""Run by the peer's Python: prophet on every series of a job folder, one after the other (see README.md).

    python -P forecast_prophet.py JOBFOLDER

`model` is Prophet; `parameters` are its own, and `holidays_of` a country. Columns known ahead become regressors if they are
numbers. Levels are quantiles of its predictive samples.
"""

import logging
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

import peer_job

told = peer_job.job()

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from prophet import Prophet  # noqa: E402

logging.getLogger("cmdstanpy").disabled = True
logging.getLogger("prophet").disabled = True


class Adapter:
    refits = True
    roles = ("future",)

    def prepare(self, history, future):
        if told.model != "Prophet":
            raise ValueError(f"prophet has one model, Prophet; got {told.model}")
        self.clock = peer_job.Clock(told, history, future)
        self.regressors = [name for name in told.future if pd.api.types.is_numeric_dtype(history[name])]
        if lost := [name for name in told.future if name not in self.regressors]:
            told.note(f"columns not used, as they are no numbers: {', '.join(lost)}")
        np.random.seed(told.seed)  # noqa: NPY002 - its samples come from numpy's global state

    def fit(self, train):
        given = dict(told.parameters)
        country = given.pop("holidays_of", None)
        return {
            name: self._fit(one, given, country) for name, one in self.clock.to_stamps(train).groupby("unique_id", sort=False)
        }

    def _fit(self, one, given, country):
        model = Prophet(**({"uncertainty_samples": 1000 if told.level else 0} | given))
        if country:
            model.add_country_holidays(country)
        for name in self.regressors:
            model.add_regressor(name)
        return model.fit(one[["ds", "y", *self.regressors]], seed=told.seed)

    def predict(self, fitted, context, ahead):
        parts = self.clock.to_stamps(ahead).groupby("unique_id", sort=False)
        return self.clock.back(pd.concat([self._predict(fitted[name], one) for name, one in parts], ignore_index=True))

    def _predict(self, model, one):
        one = one.reset_index(drop=True)
        said = model.predict(one[["ds", *self.regressors]])
        found = one[["unique_id", "ds"]].assign(point=said["yhat"].to_numpy())
        if told.level:
            samples = model.predictive_samples(one[["ds", *self.regressors]])["yhat"]
            for name, quantile in told.quantiles.items():
                found[name] = np.quantile(samples, quantile, axis=1)
        return found


if __name__ == "__main__":
    peer_job.run(told, Adapter(), ("prophet", "cmdstanpy", "numpy", "pandas"))
