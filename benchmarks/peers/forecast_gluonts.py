"""Run by the peer's Python: one network of gluonts on a job folder (see README.md).

    python -P forecast_gluonts.py JOBFOLDER

`model` is a class of gluonts.torch without "Estimator" (DeepAR, TemporalFusionTransformer, PatchTST ...); `parameters` are its
own, `context_length` twice the horizon unless given, and `max_epochs` of the trainer (its own default is 100). The point
forecast is the median. Columns known ahead that are numbers go in as dynamic features.
"""

import logging
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

import peer_job

told = peer_job.job()

import gluonts.torch as networks  # noqa: E402
import lightning.pytorch as lightning  # noqa: E402
import pandas as pd  # noqa: E402
import torch  # noqa: E402
from gluonts.dataset.pandas import PandasDataset  # noqa: E402

logging.disable(logging.WARNING)
PERIODS = {"MS": "M", "ME": "M", "QS": "Q", "QE": "Q", "YS": "Y", "YE": "Y"}
TRAINER = {"accelerator": "cpu", "enable_progress_bar": False, "logger": False, "enable_model_summary": False}


class Adapter:
    roles = ("future",)

    def prepare(self, history, future):
        torch.set_num_threads(told.threads)
        self.clock = peer_job.Clock(told, history, future)
        anchor = self.clock.freq.partition("-")[0]
        self.period = PERIODS.get(anchor, self.clock.freq)
        self.kind = getattr(networks, f"{told.model}Estimator", None)
        if self.kind is None:
            there = ", ".join(name.removesuffix("Estimator") for name in dir(networks) if name.endswith("Estimator"))
            raise ValueError(f"gluonts.torch has no {told.model}; it has {there}")
        able = peer_job.takes(self.kind, "num_feat_dynamic_real") or peer_job.takes(self.kind, "dynamic_dims")
        numbers = [name for name in told.future if pd.api.types.is_numeric_dtype(history[name])]
        self.features = numbers if able else []
        if lost := [name for name in told.future if name not in self.features]:
            told.note(f"columns not used: {', '.join(lost)}")

    def fit(self, train):
        given = dict(told.parameters)
        self.folder = tempfile.TemporaryDirectory()  # for its checkpoints, which it always writes
        trainer = TRAINER | {"default_root_dir": self.folder.name}
        trainer |= {"max_epochs": given.pop("max_epochs")} if "max_epochs" in given else {}
        own = {"prediction_length": told.horizon, "context_length": 2 * told.horizon, "trainer_kwargs": trainer}
        own |= {"freq": self.period} if peer_job.takes(self.kind, "freq") else {}
        if self.features:
            dynamic = peer_job.takes(self.kind, "num_feat_dynamic_real")
            own |= {"num_feat_dynamic_real": len(self.features)} if dynamic else {"dynamic_dims": [len(self.features)]}
        lightning.seed_everything(told.seed, verbose=False)
        return self.kind(**(own | given)).train(self._dataset(train))

    def predict(self, fitted, context, ahead):
        both = pd.concat([context, ahead]) if self.features else context
        forecasts = list(fitted.predict(self._dataset(both, told.horizon if self.features else 0)))
        stamps = dict(list(ahead.groupby("unique_id", sort=False)["ds"]))
        found = []
        for one in forecasts:
            frame = pd.DataFrame({"unique_id": one.item_id, "ds": stamps[one.item_id].to_numpy(), "point": one.quantile(0.5)})
            found.append(frame.assign(**{name: one.quantile(quantile) for name, quantile in told.quantiles.items()}))
        return pd.concat(found, ignore_index=True)

    def _dataset(self, frame, ahead=0):
        frame = self.clock.to_stamps(frame)[["unique_id", "ds", "y", *self.features]]
        frame = frame.astype(dict.fromkeys(("y", *self.features), "float32")).set_index("ds")
        frame.index = frame.index.to_period(self.period)
        return PandasDataset.from_long_dataframe(
            frame, item_id="unique_id", target="y", freq=self.period, feat_dynamic_real=self.features or None,
            future_length=ahead,
        )  # fmt: skip


if __name__ == "__main__":
    peer_job.run(told, Adapter(), ("gluonts", "lightning", "torch", "numpy", "pandas"))
