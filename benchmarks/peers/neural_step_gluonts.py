"""Run by the peer's Python: training steps of gluonts on random walks; prints milliseconds as JSON.

    python neural_step_gluonts.py SETTINGS

It has no LSTM that forecasts directly: DeepAR, an LSTM told the value before at each step, stands in its place.
"""

import json
import logging
import sys

import numpy as np
from gluonts.dataset.pandas import PandasDataset
from gluonts.torch import DeepAREstimator, SimpleFeedForwardEstimator
from gluonts.torch.model.d_linear import DLinearEstimator
from lightning.pytorch import Callback
from neural_clock import before, clock_of, mase, walks

logging.disable(logging.WARNING)
told = json.loads(sys.argv[1])
frame = walks(told["series"], told["length"]).astype({"y": "float32"})
OWN = {
    "LSTM": (DeepAREstimator, {"freq": "h", "hidden_size": 64, "num_layers": 1, "lags_seq": [1], "time_features": []}),
    "MLP": (SimpleFeedForwardEstimator, {"hidden_dimensions": [512, 512, 512]}),
    "DLinear": (DLinearEstimator, {"kernel_size": 25}),
}


def fitted(name, clock, data, steps):
    kind, own = OWN[name]
    trainer = {
        "accelerator": "cpu", "max_epochs": 1, "callbacks": [clock], "enable_progress_bar": False, "logger": False,
        "enable_model_summary": False,
    }  # fmt: skip
    estimator = kind(
        prediction_length=24, context_length=96, batch_size=256, num_batches_per_epoch=steps, trainer_kwargs=trainer, **own
    )
    dataset = PandasDataset.from_long_dataframe(data.set_index("ds"), item_id="unique_id", target="y", freq="h")
    clock.begin()
    return estimator.train(dataset), dataset


said = {}
for name in told["networks"]:
    if name in OWN:
        clock = clock_of(Callback)
        fitted(name, clock, frame[frame["unique_id"] < 2], 1)
        model, dataset = fitted(name, clock, before(frame), told["steps"])
        found = np.stack([one.mean for one in model.predict(dataset)])
        said[name] = clock.told() | {"mase": mase(frame, found)}
print(json.dumps(said))
