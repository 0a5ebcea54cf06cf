"""Naive2 against another library's parts: statsmodels' autocorrelation and classical decomposition, which are R's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from statsmodels.tsa.seasonal import seasonal_decompose
from statsmodels.tsa.stattools import acf

from deepforecast import Naive2, datasets


def official(y: np.ndarray, season: int, horizon: int) -> tuple[np.ndarray, bool]:
    """The organisers' Naive2, and whether it adjusted: from statsmodels' parts."""
    seasonal = False
    if len(y) >= 3 * season:
        r = acf(y, nlags=season, fft=False)[1:]
        limit = 1.645 / np.sqrt(len(y)) * np.sqrt(1 + 2 * np.sum(r[:-1] ** 2))
        seasonal = bool(abs(r[-1]) > limit)
    if not seasonal:
        return np.full(horizon, y[-1]), False
    index = seasonal_decompose(y, model="multiplicative", period=season).seasonal
    ahead = index[(len(y) + np.arange(horizon)) % season]
    return y[-1] / index[-1] * ahead, True


@pytest.mark.parametrize("season", [2, 3, 4, 7, 12, 24])
def test_equal_to_the_organisers_way(season: int, daily: Callable[..., pd.DataFrame]) -> None:
    random = np.random.default_rng(season)
    series, expected, adjusted = {}, [], 0
    for number in range(40):
        rows = int(random.integers(2 * season, 9 * season))
        strength = random.uniform(0, 0.15)
        wave = 1 + strength * random.normal(size=season)[np.arange(rows) % season]
        y = (30 + np.arange(rows) * random.uniform(-0.1, 0.1) + random.normal(size=rows)) * wave
        said, was = official(y, season, 30)
        series[f"s{number:02d}"], adjusted = y, adjusted + was
        expected.append(said)
    found = Naive2(season_length=season).fit(daily(**series)).predict(30)["Naive2"].to_numpy().reshape(40, 30)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert 5 <= adjusted <= 35


def test_air_passengers() -> None:
    frame = datasets.load("air_passengers")
    said, adjusted = official(frame["y"].to_numpy(), 12, 24)
    assert adjusted
    np.testing.assert_allclose(Naive2().fit(frame).predict(24)["Naive2"], said, rtol=1e-13)


def index_of(y: Any, season: int) -> np.ndarray:
    frame = pd.DataFrame({"ds": np.arange(len(y)), "y": np.asarray(y, dtype=float)})
    return np.asarray(Naive2(season_length=season).fit(frame, freq=1).state_.learned["index"][0])


def test_three_seasons_are_needed() -> None:
    season = np.append(np.ones(11), 13.0)
    assert (index_of(np.tile(season, 3)[:-1], 12) == 1).all()
    np.testing.assert_allclose(sorted(index_of(np.tile(season, 3), 12)), [0.5] * 11 + [6.5], rtol=1e-12)


@pytest.mark.parametrize("lowest", [0.0, -1.0])
def test_values_that_are_not_positive_are_not_adjusted(lowest: float) -> None:
    season = np.array([lowest, 2.0, 4.0, 3.0])
    assert (index_of(season[np.arange(40) % 4], 4) == 1).all()


def test_just_beyond_the_limit() -> None:
    """A season that fades into the noise is dropped where the autocorrelation falls below its limit, and not before."""
    noise = np.random.default_rng(1).normal(size=60)
    season = np.array([-1.0, 0.0, 1.0])[np.arange(60) % 3]
    strengths = np.linspace(0, 1.5, 301)
    ours = [bool((index_of(30 + noise + strength * season, 3) != 1).any()) for strength in strengths]
    theirs = [official(30 + noise + strength * season, 3, 1)[1] for strength in strengths]
    assert ours == theirs
    assert 20 < sum(ours) < 280


def test_the_season_is_looked_at_whatever_its_length() -> None:
    """R's acf ends at lag 10 log10(T): 21 for three years of weeks. The season of 52 is seen here all the same."""
    weeks = np.where(np.arange(160) % 52 == 50, 30.0, 10.0)
    assert (index_of(weeks, 52) != 1).any()
