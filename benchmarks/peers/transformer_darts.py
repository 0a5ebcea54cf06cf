"""Run by the peer's Python: autoregressive forecasts of darts' TransformerModel on random walks; prints milliseconds as JSON.

    python transformer_darts.py SETTINGS
"""

import json
import logging
import sys
import time

import numpy as np
import pandas as pd
import torch
from darts import TimeSeries
from darts.models import TransformerModel
from neural_clock import walks

logging.disable(logging.WARNING)
told = json.loads(sys.argv[1])
torch.set_num_threads(told["threads"])
frame = walks(told["series"], told["length"])
series = [
    TimeSeries.from_times_and_values(pd.DatetimeIndex(one["ds"]), one["y"].to_numpy(np.float32), freq="h")
    for _, one in frame.groupby("unique_id")
]
model = TransformerModel(
    input_chunk_length=96, output_chunk_length=1, batch_size=1024, d_model=64, nhead=4, num_encoder_layers=2,
    num_decoder_layers=2, dim_feedforward=told["feedforward"], dropout=0.0, n_epochs=1,
    pl_trainer_kwargs={"accelerator": "cpu", "max_steps": 2, "enable_progress_bar": False, "logger": False,
                       "enable_model_summary": False, "enable_checkpointing": False},
)  # fmt: skip
model.fit(series[:10])
model.predict(24, series=series[:10], verbose=False)
wall, cpu = time.perf_counter(), time.process_time()
model.predict(24, series=series, verbose=False)
print(json.dumps({"wall": 1e3 * (time.perf_counter() - wall), "cpu": 1e3 * (time.process_time() - cpu)}))
