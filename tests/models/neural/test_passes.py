"""Default number of training steps: a few epochs; a warning for intervals after many."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

from deepforecast import LSTM, MLP, NBEATS, DLinear, NeuralProphet, load
from deepforecast.datasets import generate
from deepforecast.errors import TrainingWarning
from deepforecast.models.neural._fit import default_max_steps, training_options

FEW: dict[str, Any] = {"input_size": 8, "hidden_sizes": [8]}


@pytest.mark.parametrize(
    ("model", "windows", "batch", "steps"),
    [
        (LSTM(), 20, 32, 50), (LSTM(), 320, 40, 64), (LSTM(), 2_000, 250, 64), (LSTM(), 8_000, 256, 250),
        (LSTM(), 16_000, 256, 500), (LSTM(), 9_000_000, 256, 500), (LSTM(batch_size=256), 500, 256, 50),
        (LSTM(max_steps=7), 500, 62, 7), (LSTM(max_epochs=2), 500, 62, 18),
        (NBEATS(), 2_000, 250, 64), (NBEATS(), 300_000, 1024, 1027), (NBEATS(), 9_000_000, 1024, 1200),
        (NeuralProphet(), 500, 256, 500),
    ],
)  # fmt: skip
def test_steps_and_batches_follow_the_windows_there_are(model: Any, windows: int, batch: int, steps: int) -> None:
    found = training_options(model, windows)
    assert (found.batch_size, found.max_steps) == (batch, steps)


def test_steps_never_fall_as_windows_grow() -> None:
    found = [default_max_steps(windows, 256) for windows in range(1, 40_000, 97)]
    assert found == sorted(found)


def test_bands_of_windows_known_by_heart_are_told(tmp_path: Path) -> None:
    frame = generate(1, 40)
    model = MLP(horizon=4, batch_size=32, max_steps=40, **FEW).fit(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict()
        model.clone(max_steps=20).fit(frame).predict(level=80)
        model.clone(intervals="conformal").fit(frame).predict(level=80)
        DLinear(horizon=4, input_size=8, batch_size=32, max_steps=40).fit(frame).predict(level=80)
    model.save(tmp_path / "model.dfm")
    told = r"MLP was trained for 44 epochs .*intervals='conformal'.*with max_steps='auto'"
    for one in (model, load(tmp_path / "model.dfm")):
        with pytest.warns(TrainingWarning, match=told):
            one.predict(quantiles=[0.1])
    with pytest.warns(TrainingWarning, match=r"trained for 55 epochs .*with more or longer series"):
        MLP(horizon=4, **FEW).fit(frame).predict(level=80)
