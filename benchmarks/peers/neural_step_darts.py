"""Run by the peer's Python: training steps of darts on random walks; prints milliseconds as JSON.

    python neural_step_darts.py SETTINGS
"""

import json
import logging
import sys

import numpy as np
import pandas as pd
import pytorch_lightning as pl
import torch
from darts import TimeSeries
from darts.models import BlockRNNModel, DLinearModel
from neural_clock import before, clock_of, mase, walks

logging.disable(logging.WARNING)
told = json.loads(sys.argv[1])
frame = walks(told["series"], told["length"])
OWN = {
    "LSTM": (BlockRNNModel, {"model": "LSTM", "hidden_dim": 64, "n_rnn_layers": 1, "hidden_fc_sizes": [64]}),
    "DLinear": (DLinearModel, {"kernel_size": 25}),
}


def series(part):
    """Of float32, as its guide says."""
    return [
        TimeSeries.from_times_and_values(pd.DatetimeIndex(one["ds"]), one["y"].to_numpy(np.float32), freq="h")
        for _, one in part.groupby("unique_id")
    ]


def fitted(name, clock, data, steps):
    kind, own = OWN[name]
    trainer = {
        "accelerator": "cpu", "max_steps": steps, "callbacks": [clock], "enable_progress_bar": False, "logger": False,
        "enable_model_summary": False, "enable_checkpointing": False,
    }  # fmt: skip
    model = kind(
        input_chunk_length=96, output_chunk_length=24, batch_size=256, loss_fn=torch.nn.L1Loss(), n_epochs=100,
        pl_trainer_kwargs=trainer, **own,
    )  # fmt: skip
    clock.begin()
    model.fit(series(data))
    return model


said = {}
for name in told["networks"]:
    if name in OWN:
        clock = clock_of(pl.Callback)
        fitted(name, clock, frame[frame["unique_id"] < 2], 1)
        data = before(frame)
        model = fitted(name, clock, data, told["steps"])
        found = np.stack([one.values()[:, 0] for one in model.predict(24, series=series(data))])
        said[name] = clock.told() | {"mase": mase(frame, found)}
print(json.dumps(said))
