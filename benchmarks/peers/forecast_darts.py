"""Run by the peer's Python: one model of darts on a job folder (see README.md).

    python -P forecast_darts.py JOBFOLDER

`model` is a class of darts.models; `parameters` are its own. Networks get input_chunk_length and output_chunk_length (twice
the horizon, and the horizon) unless given, and with levels a quantile likelihood; local models are fitted series by series.
Levels are quantiles of 500 samples. darts recommends scaling for networks: `scale` (default true) for them uses its Scaler
(the range of each series in train).
"""

import logging
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

import peer_job

told = peer_job.job()

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from darts import TimeSeries, models  # noqa: E402
from darts.dataprocessing.transformers import Scaler  # noqa: E402
from darts.models.forecasting.forecasting_model import GlobalForecastingModel  # noqa: E402
from darts.models.forecasting.torch_forecasting_model import TorchForecastingModel  # noqa: E402
from darts.utils.likelihood_models import QuantileRegression  # noqa: E402

logging.disable(logging.WARNING)
TRAINER = {"accelerator": "cpu", "enable_progress_bar": False, "logger": False, "enable_model_summary": False}
SAMPLES = 500


class Adapter:
    roles = ("future",)

    def prepare(self, history, future):
        kind = getattr(models, told.model, None)
        if kind is None:
            raise ValueError(f"darts.models has no {told.model}")
        self.kind, self.network = kind, issubclass(kind, TorchForecastingModel)
        self.joint = issubclass(kind, GlobalForecastingModel)
        self.refits = not self.joint
        if self.network:
            import torch

            torch.set_num_threads(told.threads)
        self.future = [name for name in told.future if pd.api.types.is_numeric_dtype(history[name])]

    def fit(self, train):
        given = dict(told.parameters)
        self.scaler = Scaler() if given.pop("scale", self.network) else None
        model = self.kind(**(self._defaults() | given))
        self.future = self.future if model.supports_future_covariates else []
        if lost := [name for name in told.future if name not in self.future]:
            told.note(f"columns not used: {', '.join(lost)}")
        names, series = self._series(train)
        series = self.scaler.fit_transform(series) if self.scaler else series
        if self.joint:
            columns = {"future_covariates": self._columns(train)} if self.future else {}
            model.fit(series, **columns)
            return model
        columns = self._columns(train) if self.future else [None] * len(series)
        return {name: _fitted(model.untrained_model(), one, own) for name, one, own in zip(names, series, columns, strict=True)}

    def _defaults(self):
        found = {}
        if self.network or peer_job.takes(self.kind, "output_chunk_length"):
            found = {"output_chunk_length": told.horizon}
        if self.network:
            found |= {"input_chunk_length": 2 * told.horizon, "random_state": told.seed, "pl_trainer_kwargs": TRAINER}
            if told.level:
                found["likelihood"] = QuantileRegression(sorted({0.5, *told.quantiles.values()}))
        elif self.joint:
            found |= {"lags": max(2 * told.season, told.horizon), "random_state": told.seed}
            if told.level:
                found |= {"likelihood": "quantile", "quantiles": sorted({0.5, *told.quantiles.values()})}
        return found

    def predict(self, fitted, context, ahead):
        names, series = self._series(context)
        series = self.scaler.transform(series) if self.scaler else series
        both = pd.concat([context, ahead]).sort_values("ds", kind="stable") if self.future else None
        columns = self._columns(both, names) if self.future else None
        samples = {"num_samples": SAMPLES} if told.level else {}
        if self.joint:
            own = {"future_covariates": columns} if self.future else {}
            said = fitted.predict(told.horizon, series=series, **samples, **own)
        else:
            own = [{"future_covariates": one} for one in columns] if self.future else [{}] * len(names)
            said = [fitted[name].predict(told.horizon, **samples, **one) for name, one in zip(names, own, strict=True)]
        said = self.scaler.inverse_transform(said) if self.scaler else said
        return pd.concat([_frame(name, one) for name, one in zip(names, said, strict=True)], ignore_index=True)

    def _series(self, frame):
        parts = list(frame.groupby("unique_id", sort=False))
        return [name for name, _ in parts], [_series(one, ["y"]) for _, one in parts]

    def _columns(self, frame, names=None):
        parts = dict(list(frame.groupby("unique_id", sort=False)))
        return [_series(parts[name], self.future) for name in names or parts]


def _fitted(model, series, columns):
    return model.fit(series) if columns is None else model.fit(series, future_covariates=columns)


def _series(one, columns):
    return TimeSeries.from_dataframe(one.astype(dict.fromkeys(columns, np.float32)), "ds", columns, freq=told.freq)


def _frame(name, said):
    values = said.all_values(copy=False)[:, 0, :]  # (steps, samples)
    found = pd.DataFrame({"unique_id": name, "ds": said.time_index, "point": np.median(values, axis=1)})
    for side, quantile in told.quantiles.items():
        found[side] = np.quantile(values, quantile, axis=1)
    return found


if __name__ == "__main__":
    peer_job.run(told, Adapter(), ("darts", "pytorch-lightning", "torch", "numpy", "pandas"))
