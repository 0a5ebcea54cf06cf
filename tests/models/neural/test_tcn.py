"""TCN: the number of blocks follows from the window."""

from __future__ import annotations

import pytest

from deepforecast import TCN
from deepforecast.datasets import generate


@pytest.mark.parametrize(("input_size", "kernel_size", "n_layers"), [(13, 3, 2), (14, 3, 3), (31, 2, 4), (32, 2, 5)])
def test_blocks_reach_back_to_the_start_of_the_window(input_size: int, kernel_size: int, n_layers: int) -> None:
    model = TCN(horizon=4, input_size=input_size, kernel_size=kernel_size, hidden_size=4, max_steps=1)
    assert len(model.fit(generate(1, 80)).network_.body.encoder.blocks) == n_layers
