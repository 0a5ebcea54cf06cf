"""Calibration: bands hold what they promise on data drawn from their model, and grow as they should."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import Drift, Forecaster, Mean, Naive, Naive2, SeasonalMean, SeasonalNaive, WindowMean

SERIES = 2000


def panel(y: np.ndarray) -> pd.DataFrame:
    count, rows = y.shape
    ids, stamps = np.repeat(np.arange(count), rows), np.tile(np.arange(rows), count)
    return pd.DataFrame({"unique_id": ids, "ds": stamps, "y": y.reshape(-1)})


def coverage(model: Forecaster, y: np.ndarray, rows: int, steps: int) -> dict[tuple[int, int], float]:
    """(level, step) -> share of the actuals inside."""
    found = model.fit(panel(y[:, :rows]), freq=1).predict(steps, level=[80, 95])
    inside = {}
    for level in (80, 95):
        low, high = (found[f"{model.name}-{side}-{level}"].to_numpy().reshape(-1, steps) for side in ("lo", "hi"))
        for step in (1, steps):
            actual = y[:, rows + step - 1]
            inside[level, step] = float(np.mean((low[:, step - 1] <= actual) & (actual <= high[:, step - 1])))
    return inside


def within(found: dict[tuple[int, int], float], errors: float, points: float = 0.0) -> None:
    for (level, step), share in found.items():
        nominal = level / 100
        bound = errors * np.sqrt(nominal * (1 - nominal) / SERIES) + points
        assert abs(share - nominal) <= bound, (level, step, share)


def noise(seed: int, rows: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(SERIES, rows))


def data(rows: int) -> list[tuple[Forecaster, np.ndarray]]:
    """Each model with series drawn from it; a season of 4."""
    total = rows + 12
    season = 3 * np.random.default_rng(0).normal(size=(SERIES, 4))[:, np.arange(total) % 4]
    walks = noise(2, total).reshape(SERIES, -1, 4).cumsum(axis=1).reshape(SERIES, -1)
    positive = 50 + noise(4, total).cumsum(axis=1) * 0.3
    return [
        (Naive(), noise(1, total).cumsum(axis=1)),
        (Drift(), (0.4 + noise(3, total)).cumsum(axis=1)),
        (Mean(), 7 + noise(5, total)),
        (SeasonalNaive(season_length=4), season + walks),
        (SeasonalMean(season_length=4), season + noise(6, total)),
        (WindowMean(window=4), 7 + noise(7, total)),
        (Naive2(season_length=4), positive * np.array([0.8, 1.1, 1.3, 0.8])[np.arange(total) % 4]),
    ]


@pytest.mark.parametrize("number", range(7), ids=[model.name for model, _ in data(4)])
def test_coverage_on_data_of_the_model(number: int) -> None:
    """2,000 series of 200 values; levels 80 and 95 at steps 1 and 12 within 3.3 standard errors of what they say."""
    model, y = data(200)[number]
    within(coverage(model, y, 200, 12), errors=3.3)


@pytest.mark.parametrize("number", range(7), ids=[model.name for model, _ in data(4)])
def test_coverage_on_short_series(number: int) -> None:
    """30 values (28 for whole seasons): within 6 points."""
    model, y = data(28)[number]
    within(coverage(model, y, 28, 12), errors=0, points=0.06)


def widths(model: Forecaster, y: Any, steps: int, level: int) -> np.ndarray:
    found = model.fit(panel(np.atleast_2d(y)), freq=1).predict(steps, level=level)
    return np.asarray(found[f"{model.name}-hi-{level}"] - found[f"{model.name}-lo-{level}"])


def test_intervals_of_a_higher_level_are_wider(model: Forecaster) -> None:
    y = 20 + np.random.default_rng(0).normal(size=60)
    by_level = np.array([widths(model, y, 6, level) for level in (50, 80, 95)])
    assert (np.diff(by_level, axis=0) > 0).all()
    np.testing.assert_allclose(by_level[2] / by_level[1], 1.959963984540054 / 1.2815515655446004, rtol=1e-12)  # central 95, 80
    assert all((widths(model, np.full(60, 0.1), 6, level) == 0).all() for level in (50, 80, 95))


def test_interval_widths_grow_with_the_horizon() -> None:
    y, h = 20 + np.random.default_rng(0).normal(size=60), np.arange(1, 13)
    wide = widths(Naive(), y, 12, 80)
    np.testing.assert_allclose(wide / wide[0], np.sqrt(h), rtol=1e-12)
    wide = widths(Drift(), y, 12, 80)
    np.testing.assert_allclose(wide / wide[0], np.sqrt(h * (1 + h / 59) / (1 + 1 / 59)), rtol=1e-12)
    for model in (Mean(), WindowMean(window=5), SeasonalMean(season_length=5)):
        np.testing.assert_allclose(np.ptp(widths(model, y, 12, 80)), 0, atol=1e-12)
    wide = widths(SeasonalNaive(season_length=5), y, 12, 80)  # flat within a season, a step at each
    np.testing.assert_allclose(wide / wide[0], np.sqrt([1] * 5 + [2] * 5 + [3] * 2), rtol=1e-12)
