"""Run by the peer's Python: training steps of neuralforecast on random walks; prints milliseconds as JSON.

    python neural_step_neuralforecast.py SETTINGS
"""

import json
import logging
import sys

import pytorch_lightning as pl
from neural_clock import before, clock_of, mase, walks
from neuralforecast import NeuralForecast
from neuralforecast.losses.pytorch import MAE
from neuralforecast.models import LSTM, MLP, NHITS, DLinear

logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
told = json.loads(sys.argv[1])
frame = walks(told["series"], told["length"])
OWN = {
    "LSTM": (LSTM, {"encoder_hidden_size": 64, "encoder_n_layers": 1, "decoder_hidden_size": 64, "decoder_layers": 1}),
    "MLP": (MLP, {"hidden_size": 512, "num_layers": 3}),
    "DLinear": (DLinear, {"moving_avg_window": 25}),
    "NHITS": (NHITS, {"n_pool_kernel_size": [2, 2, 1], "n_freq_downsample": [4, 2, 1], "mlp_units": 3 * [[512, 512]]}),
}


def fitted(name, clock, data, steps):
    kind, own = OWN[name]
    model = kind(
        h=24, input_size=96, loss=MAE(), max_steps=steps, windows_batch_size=256, batch_size=32, alias="peer", logger=False,
        accelerator="cpu", enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, callbacks=[clock],
        **own,
    )  # fmt: skip
    found = NeuralForecast(models=[model], freq="h")
    clock.begin()
    found.fit(data)
    return found


said = {}
for name in told["networks"]:
    if name in OWN:
        clock = clock_of(pl.Callback)
        fitted(name, clock, frame[frame["unique_id"] < 2], 1)
        found = fitted(name, clock, before(frame), told["steps"])
        said[name] = clock.told() | {"mase": mase(frame, found.predict()["peer"].to_numpy().reshape(-1, 24))}
print(json.dumps(said))
