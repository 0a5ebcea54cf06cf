"""Components add up to the forecast."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import Drift, Forecaster, Naive2, SeasonalMean, SeasonalNaive
from deepforecast.errors import DataWarning

STEPS = 8
PARTS = {"Drift": ("level", "trend")} | dict.fromkeys(("SeasonalNaive", "SeasonalMean", "Naive2"), ("level", "season"))


def both(model: Forecaster, frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Forecasts and components, shapes (rows,) and (rows, components)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        model.fit(frame, freq="D")
    parts = model.explain(STEPS)
    names = PARTS.get(model.name, ("level",))
    assert list(parts.columns) == ["unique_id", "ds", "component", "value"]
    assert tuple(parts["component"][: len(names)]) == names
    points = model.predict(STEPS)
    assert list(parts["ds"][:: len(names)]) == list(points["ds"])
    return points[model.name].to_numpy(), parts["value"].to_numpy().reshape(-1, len(names))


def test_the_sum_is_the_forecast_exactly(model: Forecaster, daily: Any) -> None:
    """Values of one order of magnitude, of any sign, at any level: every digit."""
    random = np.random.default_rng(0)
    frame = daily(
        A=100 + 10 * random.random(40),
        B=-1e9 - random.random(40),
        C=1e-9 * (5 + random.random(40)),
        D=random.integers(1, 1000, 40),
        E=np.full(40, 0.1),
        F=3e9 + 4 * np.sin(np.arange(40.0)),
    )
    points, parts = both(model, frame)
    np.testing.assert_array_equal(parts.sum(axis=1), points)


@pytest.mark.parametrize("seed", range(5))
def test_the_sum_is_the_forecast_as_far_as_digits_go(model: Forecaster, daily: Any, seed: int) -> None:
    """Values of all magnitudes: a component cannot hold digits below its own last one."""
    random = np.random.default_rng(seed)
    frame = daily(**{name: random.normal(size=30) * 10.0 ** random.integers(-9, 9, 30) for name in "ABCDEFGH"})
    points, parts = both(model, frame)
    assert (np.abs(parts.sum(axis=1) - points) <= np.spacing(np.abs(parts).max(axis=1))).all()


def test_level_and_season_are_apart(daily: Any) -> None:
    """The season of a series goes around its level: it adds up to nothing."""
    season = np.array([-3.0, 1.0, 2.0])
    frame = daily(A=50 + season[np.arange(30) % 3])
    for model in (SeasonalNaive(season_length=3), SeasonalMean(season_length=3)):
        _, parts = both(model, frame)
        np.testing.assert_array_equal(parts[:, 0], 50)
        np.testing.assert_array_equal(parts[:6, 1], [-3, 1, 2, -3, 1, 2])
    _, parts = both(Naive2(season_length=3), frame)
    np.testing.assert_allclose(parts[:, 0], 50, rtol=1e-3)
    np.testing.assert_allclose(parts[:3, 1], season, rtol=2e-2)


def test_drift_is_a_level_and_a_trend(daily: Any) -> None:
    _, parts = both(Drift(), daily(A=[1.0, 3.0, 2.0, 4.0]))
    np.testing.assert_array_equal(parts[:3], [[4, 1], [4, 2], [4, 3]])


def test_missing_values(patient: Forecaster, daily: Any) -> None:
    y = np.where(np.isin(np.arange(30), [0, 10, 28, 29]), np.nan, 10 + np.random.default_rng(0).random(30))
    points, parts = both(patient, daily(A=y))
    np.testing.assert_array_equal(parts.sum(axis=1), points)
