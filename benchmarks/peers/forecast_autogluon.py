"""Run by the peer's Python: one model, or a preset, of autogluon.timeseries on a job folder (see README.md).

    python -P forecast_autogluon.py JOBFOLDER

`model` is a name of its hyperparameters table (AutoETS, DeepAR, DirectTabular ...) with its own `parameters`, or
"preset:<name>" (preset:medium_quality), trained within the time limit of the job. Quantiles come from the model.
"""

import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

import peer_job

told = peer_job.job()

from autogluon.timeseries import TimeSeriesDataFrame, TimeSeriesPredictor  # noqa: E402


class Adapter:
    roles = ("future", "past", "static")

    def prepare(self, history, future):
        self.clock = peer_job.Clock(told, history, future)
        self.fixed = peer_job.static()

    def fit(self, train):
        self.folder = tempfile.TemporaryDirectory()
        predictor = TimeSeriesPredictor(
            prediction_length=told.horizon, freq=self.clock.freq, quantile_levels=sorted({0.5, *told.quantiles.values()}),
            known_covariates_names=told.future or None, path=self.folder.name, verbosity=0, cache_predictions=False,
        )  # fmt: skip
        kind, _, preset = told.model.partition(":")
        what = {"presets": preset} if kind == "preset" else {"hyperparameters": {told.model: told.parameters}}
        return predictor.fit(
            self._frame(train), time_limit=peer_job.TOLD["time_limit"], random_seed=told.seed, enable_ensemble=kind == "preset",
            **what,
        )  # fmt: skip

    def predict(self, fitted, context, ahead):
        known = self._frame(ahead[["unique_id", "ds", *told.future]], fixed=False) if told.future else None
        said = fitted.predict(self._frame(context), known_covariates=known).reset_index()
        names = {"item_id": "unique_id", "timestamp": "ds", "0.5": "point"}
        names |= {str(quantile): name for name, quantile in told.quantiles.items()}
        return self.clock.back(said.rename(columns=names))

    def _frame(self, frame, fixed=True):
        frame = self.clock.to_stamps(frame).rename(columns={"y": "target"})
        static = self.fixed.rename(columns={"unique_id": "item_id"}) if fixed and self.fixed is not None else None
        return TimeSeriesDataFrame.from_data_frame(
            frame, id_column="unique_id", timestamp_column="ds", static_features_df=static
        )


if __name__ == "__main__":
    peer_job.run(told, Adapter(), ("autogluon.timeseries", "torch", "numpy", "pandas"))
