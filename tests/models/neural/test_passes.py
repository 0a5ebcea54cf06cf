"""Default number of training steps: a few epochs."""

from __future__ import annotations

from typing import Any

import pytest

from deepforecast import LSTM, NBEATS, NeuralProphet
from deepforecast.models.neural._fit import default_max_steps, training_options


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
