"""Bands of networks hold as often as they say, on rows that come after all that was learned from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import LSTM, MLP
from deepforecast.datasets import Recipe, generate

HORIZON, LEVELS, POINTS = 7, (50, 80, 95), 4.0
MODELS: dict[str, Any] = {
    "quantiles": MLP(horizon=HORIZON, hidden_sizes=[64, 64]),
    "quantiles of recurrent layers": LSTM(horizon=HORIZON, hidden_size=32, decoder_size=32),
    "paths": LSTM(horizon=HORIZON, hidden_size=16, output="autoregressive", head="student_t"),
    "conformal": MLP(horizon=HORIZON, hidden_sizes=[64, 64], head="point", intervals="conformal"),
}


@pytest.fixture(scope="module")
def stationary() -> tuple[pd.DataFrame, np.ndarray]:
    """Levels, weeks and noise: histories, and the values after them, (series, steps)."""
    frame = generate(240, 120, seed=5, recipe=Recipe(trend=0.0, noise=4.0, season_strength=6.0))
    later = frame.groupby("unique_id").cumcount(ascending=False) < HORIZON
    return frame[~later], frame.loc[later, "y"].to_numpy().reshape(-1, HORIZON)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_network_coverage_is_that_of_the_level(name: str, stationary: tuple[pd.DataFrame, np.ndarray]) -> None:
    history, true = stationary
    model = MODELS[name].clone(alias="m")
    found = model.fit(history).predict(level=LEVELS)
    for level in LEVELS:
        low, high = (found[f"m-{end}-{level}"].to_numpy().reshape(true.shape) for end in ("lo", "hi"))
        inside = (low <= true) & (true <= high)
        assert 100 * inside.mean() == pytest.approx(level, abs=POINTS)
        assert 100 * inside.mean(axis=0) == pytest.approx(level, abs=3 * POINTS)  # of 240 values a step
