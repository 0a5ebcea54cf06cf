"""Run by the peer's Python: one network of neuralforecast on a job folder (see README.md).

    python -P forecast_neuralforecast.py JOBFOLDER

`model` is a class of neuralforecast.models; `parameters` are its own, `input_size` twice the horizon unless given. With
levels it learns quantiles (MQLoss) and its point forecast is the median.
"""

import logging
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

import peer_job

told = peer_job.job()

import torch  # noqa: E402
from neuralforecast import NeuralForecast, models  # noqa: E402
from neuralforecast.losses.pytorch import MQLoss  # noqa: E402

for name in ("pytorch_lightning", "lightning", "lightning_fabric"):
    logging.getLogger(name).setLevel(logging.ERROR)
QUIET = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}


class Adapter:
    roles = ("future", "past", "static")

    def prepare(self, history, future):
        torch.set_num_threads(told.threads)
        kind = getattr(models, told.model, None)
        self.used = {role: told.columns.get(role, []) for role in self.roles if getattr(kind, _ABLE[role], False)}
        self.fixed = peer_job.static() if self.used.get("static") else None
        if self.fixed is not None:  # it takes numbers alone
            numbers = self.fixed.select_dtypes("number").columns
            self.used["static"] = [name for name in self.used["static"] if name in numbers]
            self.fixed = self.fixed[["unique_id", *self.used["static"]]]
        if lost := [name for role in self.roles for name in told.columns.get(role, []) if name not in self.used.get(role, [])]:
            told.note(f"columns not used: {', '.join(lost)}")

    def fit(self, train):
        lists = {"futr_exog_list": "future", "hist_exog_list": "past", "stat_exog_list": "static"}
        own = {name: self.used[role] for name, role in lists.items() if self.used.get(role)}
        own |= {"loss": MQLoss(level=told.level)} if told.level else {}
        given = {"input_size": 2 * told.horizon, "random_seed": told.seed, "accelerator": "cpu"} | QUIET | own | told.parameters
        model = peer_job.model_of(models, told.model, h=told.horizon, alias="peer", **given)
        forecaster = NeuralForecast(models=[model], freq=told.freq)
        forecaster.fit(self._columns(train), static_df=self.fixed)
        return forecaster

    def predict(self, fitted, context, ahead):
        future = ahead[["unique_id", "ds", *self.used["future"]]] if self.used.get("future") else None
        said = fitted.predict(df=self._columns(context), static_df=self.fixed, futr_df=future)
        said = said.reset_index() if "unique_id" not in said.columns else said
        return said.rename(columns={name: _named(name) for name in said.columns if name.startswith("peer")})

    def _columns(self, frame):
        return frame[["unique_id", "ds", "y", *self.used.get("future", []), *self.used.get("past", [])]]


_ABLE = {"future": "EXOGENOUS_FUTR", "past": "EXOGENOUS_HIST", "static": "EXOGENOUS_STAT"}


def _named(column):
    """peer or peer-median is the point, peer-lo-80.0 is lo-80."""
    rest = column.removeprefix("peer").lstrip("-")
    if rest in ("", "median"):
        return "point"
    side, _, level = rest.partition("-")
    return next((f"{side}-{own}" for own in told.level if side in ("lo", "hi") and float(level) == float(own)), column)


if __name__ == "__main__":
    peer_job.run(told, Adapter(), ("neuralforecast", "pytorch-lightning", "torch", "numpy", "pandas"))
