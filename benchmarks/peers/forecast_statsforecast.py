"""Run by the peer's Python: one model of statsforecast on a job folder (see README.md).

    python -P forecast_statsforecast.py JOBFOLDER

`model` is a class of statsforecast.models; `parameters` are its own, and `conformal` (number of windows) asks for conformal
intervals of a model that has none. Without a `season_length` among them, models that take one get the job's.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

import peer_job

told = peer_job.job()  # first: sets the number of threads before compiled code is loaded

from statsforecast import StatsForecast, models  # noqa: E402
from statsforecast.utils import ConformalIntervals  # noqa: E402


class Adapter:
    refits = True
    roles = ("future",)

    def prepare(self, history, future):
        """All that is done once in a process, on the ends of two series."""
        few = (
            history[history["unique_id"].isin(history["unique_id"].unique()[:2])]
            .groupby("unique_id")
            .tail(3 * told.season + 60)
        )
        self.fit(few).predict(told.horizon, X_df=None if not told.future else _ahead(few, future), level=told.level or None)
        told.note("run once before the clock")

    def fit(self, train):
        given = dict(told.parameters)
        kind = getattr(models, told.model, None)
        if kind is not None and peer_job.takes(kind, "season_length"):
            given.setdefault("season_length", told.season)
        if windows := given.pop("conformal", None):
            given["prediction_intervals"] = ConformalIntervals(h=told.horizon, n_windows=windows)
        model = peer_job.model_of(models, told.model, **given)
        return StatsForecast(models=[model], freq=told.freq, n_jobs=told.threads).fit(
            train[["unique_id", "ds", "y", *told.future]]
        )

    def predict(self, fitted, context, ahead):
        columns = ahead[["unique_id", "ds", *told.future]] if told.future else None
        said = fitted.predict(told.horizon, X_df=columns, level=told.level or None)
        own = str(fitted.models[0])
        return said.rename(columns={own: "point"} | {f"{own}-{name}": name for name in told.quantiles})


def _ahead(few, future):
    first = future[future["unique_id"].isin(few["unique_id"])].groupby("unique_id").head(told.horizon)
    return first[["unique_id", "ds", *told.future]]


if __name__ == "__main__":
    peer_job.run(told, Adapter(), ("statsforecast", "coreforecast", "numpy", "pandas"))
