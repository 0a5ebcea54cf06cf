"""Every point and band against the same formula written as plain loops, with and without missing values."""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import Forecaster, Naive2
from deepforecast.errors import DataWarning

HORIZON = 8  # more than two seasons
LEVELS = (50, 80, 99.5)


def ragged(random: np.random.Generator, count: int, holes: float) -> dict[str, np.ndarray]:
    """Series of 6 to 60 rows at levels of many sizes; with `holes`, some values missing, never a whole place of the season."""
    series = {}
    for number in range(count):
        rows = int(random.integers(6, 60))
        season = random.uniform(1, 3, 3)[np.arange(rows) % 3] ** int(random.integers(0, 3))
        y = 10.0 ** random.integers(-3, 6) * (3 + 0.3 * random.normal(size=rows)) * season
        missing = random.random(rows) < holes
        missing[: 2 * 3] = False  # enough of each place
        series[f"s{number:03d}"] = np.where(missing, np.nan, y) if number % 3 else y
    return series


def compared(model: Forecaster, series: dict[str, np.ndarray], frame: pd.DataFrame, plain: Callable[..., Any]) -> None:
    forecast = model.fit(frame, freq="D").predict(HORIZON, level=list(LEVELS))
    assert list(forecast["unique_id"].unique()) == list(series)
    for name, rows in forecast.groupby("unique_id"):
        points, spread = (np.array(found) for found in plain(model, series[name], HORIZON))
        scale = np.abs(points).max()
        np.testing.assert_allclose(rows[model.name], points, rtol=1e-12, atol=1e-13 * scale)
        for level in LEVELS:
            half = NormalDist().inv_cdf((1 + level / 100) / 2) * spread
            np.testing.assert_allclose(rows[f"{model.name}-lo-{level}"], points - half, rtol=1e-11, atol=1e-12 * scale)
            np.testing.assert_allclose(rows[f"{model.name}-hi-{level}"], points + half, rtol=1e-11, atol=1e-12 * scale)


def test_complete_series(model: Forecaster, daily: Any, plain: Any) -> None:
    series = ragged(np.random.default_rng(1), 40, 0.0)
    compared(model, series, daily(**series), plain)


def test_missing_values(patient: Forecaster, daily: Any, plain: Any) -> None:
    series = ragged(np.random.default_rng(2), 60, 0.3)
    with pytest.warns(DataWarning, match="missing"):
        compared(patient, series, daily(**series), plain)


def test_gaps_are_missing_values(patient: Forecaster, daily: Any, plain: Any) -> None:
    """Rows that are not in the frame, other than before the first and after the last."""
    series = {name: np.append(y, 7.0) for name, y in ragged(np.random.default_rng(3), 30, 0.3).items()}
    with pytest.warns(DataWarning, match="missing"):
        compared(patient, series, daily(**series).dropna(), plain)


def test_naive2_adjusts_some_and_not_others(daily: Any, plain: Any) -> None:
    """The series of these tests lie on both sides of the test of seasonality."""
    series = ragged(np.random.default_rng(1), 40, 0.0)
    learned = Naive2(season_length=3).fit(daily(**series), freq="D").state_.learned
    adjusted = (learned["index"] != 1).any(axis=1)
    assert 8 <= adjusted.sum() <= 32
