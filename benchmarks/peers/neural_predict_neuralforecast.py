"""Run by the peer's Python: the most memory of neuralforecast's fit, and its predict of all series; prints JSON.

    python neural_predict_neuralforecast.py SETTINGS
"""

import json
import logging
import sys
import time
from pathlib import Path

from neural_clock import walks
from neuralforecast import NeuralForecast
from neuralforecast.losses.pytorch import MAE
from neuralforecast.models import LSTM

logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
told = json.loads(sys.argv[1])
frame = walks(told["series"], told["length"])


def fitted(data, steps):
    model = LSTM(
        h=24, input_size=96, loss=MAE(), max_steps=steps, windows_batch_size=256, alias="peer", accelerator="cpu", logger=False,
        encoder_hidden_size=64, encoder_n_layers=1, decoder_hidden_size=64, decoder_layers=1, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    found = NeuralForecast(models=[model], freq="h")
    found.fit(data)
    return found


def status(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


fitted(frame[frame["unique_id"] < 2], 2)
Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
before = status("VmRSS")
found = fitted(frame, 20)
after = status("VmHWM")
found.predict()
start = time.perf_counter()
found.predict()
print(json.dumps({"before": before, "peak": after, "predict": 1e3 * (time.perf_counter() - start)}))
