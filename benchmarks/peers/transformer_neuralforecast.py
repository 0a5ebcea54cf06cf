"""Run by the peer's Python: training steps of neuralforecast's VanillaTransformer on random walks; prints milliseconds as JSON.

    python transformer_neuralforecast.py SETTINGS
"""

import json
import logging
import sys

import pytorch_lightning as pl
import torch
from neural_clock import before, clock_of, mase, walks
from neuralforecast import NeuralForecast
from neuralforecast.losses.pytorch import MAE
from neuralforecast.models import VanillaTransformer

logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
told = json.loads(sys.argv[1])
torch.set_num_threads(told["threads"])
frame = walks(told["series"], told["length"])


def fitted(clock, data, steps, dropout):
    model = VanillaTransformer(
        h=24, input_size=96, loss=MAE(), max_steps=steps, windows_batch_size=256, batch_size=32, alias="peer", logger=False,
        hidden_size=64, n_head=4, encoder_layers=2, decoder_layers=2, conv_hidden_size=told["feedforward"], dropout=dropout,
        accelerator="cpu", enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, callbacks=[clock],
    )  # fmt: skip
    found = NeuralForecast(models=[model], freq="h")
    clock.begin()
    found.fit(data)
    return found


said = {}
for dropout in told["dropout"]:
    clock = clock_of(pl.Callback)
    fitted(clock, frame[frame["unique_id"] < 2], 1, dropout)
    found = fitted(clock, before(frame), told["steps"], dropout)
    said[str(dropout)] = clock.told() | {"mase": mase(frame, found.predict()["peer"].to_numpy().reshape(-1, 24))}
print(json.dumps(said))
