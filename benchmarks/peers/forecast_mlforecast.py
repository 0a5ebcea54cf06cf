"""Run by the peer's Python: one regressor under mlforecast on a job folder (see README.md).

    python -P forecast_mlforecast.py JOBFOLDER

`model` is LGBMRegressor or a regressor of scikit-learn; of the `parameters`, `lags` (default: one season of lags, at most 48
and the season itself), `differences`, `date_features`, `scale` (LocalStandardScaler) and `interval_windows` (default 2) go to
mlforecast, `regressor` (a mapping) to the regressor.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

import peer_job

told = peer_job.job()

from lightgbm import LGBMRegressor  # noqa: E402
from mlforecast import MLForecast  # noqa: E402
from mlforecast.target_transforms import Differences, LocalStandardScaler  # noqa: E402
from mlforecast.utils import PredictionIntervals  # noqa: E402
from sklearn.utils import all_estimators  # noqa: E402

LONG = 48  # lags beyond which only the season's own is taken


class Adapter:
    roles = ("future", "static")

    def prepare(self, history, future):
        """Columns of text or with holes: LightGBM takes them, regressors of scikit-learn do without."""
        self.fixed, self.lost = peer_job.static(), []
        parts = [history[told.future], *([] if self.fixed is None else [self.fixed.drop(columns="unique_id")])]
        self.texts = [name for part in parts for name in part.select_dtypes(exclude="number")]
        holes = [name for part in parts for name in part if part[name].isna().any()]
        if told.model != "LGBMRegressor" and (self.texts or holes):
            self.lost = list(dict.fromkeys([*self.texts, *holes]))
            told.note(f"columns not used, as they are no numbers or have holes: {', '.join(self.lost)}")
        self.future = [name for name in told.future if name not in self.lost]
        self.static = [] if self.fixed is None else [name for name in self.fixed if name not in ("unique_id", *self.lost)]

    def fit(self, train):
        given = dict(told.parameters)
        targets = [Differences(given["differences"])] if given.get("differences") else []
        targets += [LocalStandardScaler()] if given.get("scale") else []
        season = max(told.season, 2)
        lags = given.get("lags") or sorted({*range(1, min(season, LONG) + 1), season})
        forecaster = MLForecast(
            models={"point": _regressor(given.get("regressor", {}))}, freq=told.freq, lags=lags, target_transforms=targets,
            date_features=given.get("date_features"), num_threads=told.threads,
        )  # fmt: skip
        windows = given.get("interval_windows", 2)
        intervals = PredictionIntervals(n_windows=windows, h=told.horizon) if told.level else None
        self.seen = train
        return forecaster.fit(self._columns(train), static_features=self.static, prediction_intervals=intervals)

    def predict(self, fitted, context, ahead):
        columns = self._ahead(ahead) if self.future else None
        new = None if context is self.seen else self._columns(context)
        said = fitted.predict(told.horizon, X_df=columns, new_df=new, level=told.level or None)
        return said.rename(columns={f"point-{name}": name for name in told.quantiles})

    def _ahead(self, ahead):
        texts = [name for name in self.future if name in self.texts]
        return ahead[["unique_id", "ds", *self.future]].astype(dict.fromkeys(texts, "category"))

    def _columns(self, frame):
        frame = frame[["unique_id", "ds", "y", *told.future]]
        frame = frame if self.fixed is None else frame.merge(self.fixed, on="unique_id", how="left")
        return frame.drop(columns=self.lost).astype(dict.fromkeys(set(self.texts) - set(self.lost), "category"))


def _regressor(given):
    kinds = {"LGBMRegressor": LGBMRegressor} | dict(all_estimators(type_filter="regressor"))
    if told.model not in kinds:
        raise ValueError(f"no regressor {told.model}; there are LGBMRegressor and those of scikit-learn")
    kind = kinds[told.model]
    own = {"n_jobs": told.threads, "random_state": told.seed, "verbosity": -1 if kind is LGBMRegressor else 0}
    known = kind().get_params()
    takes = {name for name in own if name in known} | ({"verbosity"} if kind is LGBMRegressor else set())
    return kind(**({name: own[name] for name in takes} | given))


if __name__ == "__main__":
    peer_job.run(told, Adapter(), ("mlforecast", "lightgbm", "scikit-learn", "numpy", "pandas"))
