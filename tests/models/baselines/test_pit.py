"""Where the actual value falls in the forecast distribution is level, on data drawn from the model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from deepforecast import Drift, Forecaster, Mean, Naive, SeasonalMean, SeasonalNaive

SERIES, ROWS, BINS = 4000, 120, 10
DECILES = [round(one / BINS, 1) for one in range(1, BINS)]
Noise = np.ndarray


def seasonal_walk(noise: Noise) -> Noise:
    """Each of four places in the season walks for itself."""
    whole = noise[:, : noise.shape[1] // 4 * 4]
    return whole.reshape(len(noise), -1, 4).cumsum(axis=1).reshape(len(noise), -1)


PROCESSES: list[tuple[Forecaster, Callable[[Noise], Noise]]] = [
    (Naive(), lambda noise: 5 + noise.cumsum(axis=1)),
    (Drift(), lambda noise: (0.4 + noise).cumsum(axis=1)),
    (SeasonalNaive(season_length=4), seasonal_walk),
    (Mean(), lambda noise: 7 + 3 * noise),
    (SeasonalMean(season_length=4), lambda noise: noise + np.array([9.0, -3.0, 0.0, 4.0])[np.arange(noise.shape[1]) % 4]),
]


@pytest.mark.parametrize(("model", "process"), PROCESSES, ids=[model.name for model, _ in PROCESSES])
def test_pit_of_4000_one_step_forecasts_is_uniform(model: Forecaster, process: Callable[[Noise], Noise]) -> None:
    """A chi-square test over ten bins: p > 1e-3."""
    y = process(np.random.default_rng(20).normal(size=(SERIES, ROWS + 4)))
    ids, stamps = np.repeat(np.arange(SERIES), ROWS), np.tile(np.arange(ROWS), SERIES)
    frame = pd.DataFrame({"unique_id": ids, "ds": stamps, "y": y[:, :ROWS].reshape(-1)})
    found = model.clone().fit(frame, freq=1).predict(1, quantiles=DECILES)
    bounds = np.asarray(found[[f"{model.name}-q-{one:g}" for one in DECILES]])
    counts = np.bincount((y[:, ROWS, None] > bounds).sum(axis=1), minlength=BINS)
    assert counts.sum() == SERIES
    assert stats.chisquare(counts).pvalue > 1e-3, counts
