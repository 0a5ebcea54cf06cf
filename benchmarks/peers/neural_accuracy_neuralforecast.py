"""Run by the peer's Python: neuralforecast's LSTM or GRU at its defaults on a parquet file; forecasts to OUT, seconds as JSON.

    python neural_accuracy_neuralforecast.py SETTINGS

Of the settings: train, out (paths), model, horizon, freq, future (columns known ahead), ahead (path or null), windows (number
of stretches of the past to forecast, one horizon apart, or 0: what follows the frame), steps (null: its default).
"""

import json
import logging
import sys
import time

import pandas as pd
from neuralforecast import NeuralForecast
from neuralforecast.models import GRU, LSTM

logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
told = json.loads(sys.argv[1])
train = pd.read_parquet(told["train"])
steps = {} if told["steps"] is None else {"max_steps": told["steps"]}
model = {"LSTM": LSTM, "GRU": GRU}[told["model"]](
    h=told["horizon"], input_size=3 * told["horizon"], futr_exog_list=told["future"] or None, alias="peer", accelerator="cpu",
    logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, **steps,
)  # fmt: skip
found = NeuralForecast(models=[model], freq=told["freq"])
start, cpu = time.perf_counter(), time.process_time()
if told["windows"]:
    said = found.cross_validation(train, n_windows=told["windows"], step_size=told["horizon"], refit=False)
else:
    found.fit(train)
    said = found.predict(futr_df=None if told["ahead"] is None else pd.read_parquet(told["ahead"]))
seconds = {"wall": time.perf_counter() - start, "cpu": time.process_time() - cpu}
columns = ["unique_id", "ds", *(["cutoff"] if told["windows"] else []), "peer"]
said.rename(columns={name: "peer" for name in said.columns if name.startswith("peer")})[columns].to_parquet(told["out"])
print(json.dumps(seconds))
