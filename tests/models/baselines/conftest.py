"""Frames, the seven baselines, and each of their formulas once more as plain loops over one series."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast import Drift, Forecaster, Mean, Naive, Naive2, SeasonalMean, SeasonalNaive, WindowMean

SEASON = 3
BASELINES = (
    Naive(), SeasonalNaive(season_length=SEASON), Naive2(season_length=SEASON), Drift(), Mean(), WindowMean(window=SEASON),
    SeasonalMean(season_length=SEASON),
)  # fmt: skip
Said = tuple[list[float], list[float]]  # points and standard deviations


@pytest.fixture(params=BASELINES, ids=lambda model: model.name)
def model(request: pytest.FixtureRequest) -> Forecaster:
    """Each of the baselines, unfitted; seasons of 3 steps."""
    return request.param.clone()


@pytest.fixture(scope="session")
def baselines() -> tuple[Forecaster, ...]:
    """All of them, unfitted; seasons of 3 steps."""
    return BASELINES


@pytest.fixture(params=[one for one in BASELINES if one.capabilities.missing], ids=lambda model: model.name)
def patient(request: pytest.FixtureRequest) -> Forecaster:
    """Each of the baselines that can take missing values."""
    return request.param.clone()


@pytest.fixture(scope="session")
def daily() -> Callable[..., pd.DataFrame]:
    """`daily(A=[1.0, 2.0], B=[3.0])`: a frame of daily series from 2024-01-01; `after=n` starts n days later."""

    def made(after: int = 0, **series: Sequence[float]) -> pd.DataFrame:
        start = pd.Timestamp("2024-01-01") + pd.Timedelta(days=after)
        parts = [
            pd.DataFrame({"unique_id": name, "ds": pd.date_range(start, periods=len(y)), "y": np.asarray(y)})
            for name, y in series.items()
        ]
        return pd.concat(parts, ignore_index=True)

    return made


@pytest.fixture(scope="session")
def golden() -> Mapping[str, Any]:
    """Published numbers, each with its source."""
    path = Path(__file__).parents[2] / "golden" / "baselines.json"
    return dict(json.loads(path.read_text(encoding="utf-8")))


@pytest.fixture(scope="session")
def plain() -> Callable[[Forecaster, Sequence[float], int], Said]:
    """`plain(model, y, horizon)`: points and standard deviations of one series, by the letter of the formulas."""

    def said(model: Forecaster, y: Sequence[float], horizon: int) -> Said:
        return FORMULAS[type(model).__name__](list(map(float, y)), horizon)

    return said


def seen(y: Sequence[float]) -> list[tuple[int, float]]:
    return [(row, value) for row, value in enumerate(y) if not math.isnan(value)]


def steps(values: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """(rows, change) from value to value."""
    return [(later[0] - one[0], later[1] - one[1]) for one, later in pairwise(values)]


def deviation(errors: Sequence[float], lost: int = 0) -> float:
    left = len(errors) - lost
    return math.sqrt(math.fsum(error**2 for error in errors) / left) if left > 0 else math.nan


def naive(y: list[float], horizon: int) -> Said:
    values = seen(y)
    sigma = deviation([change / math.sqrt(rows) for rows, change in steps(values)])
    age = len(y) - 1 - values[-1][0]
    return [values[-1][1]] * horizon, [sigma * math.sqrt(age + h) for h in range(1, horizon + 1)]


def drift(y: list[float], horizon: int) -> Said:
    values = seen(y)
    span = values[-1][0] - values[0][0]
    slope = (values[-1][1] - values[0][1]) / span
    sigma = deviation([(change - slope * rows) / math.sqrt(rows) for rows, change in steps(values)], lost=1)
    away = [len(y) - 1 - values[-1][0] + h for h in range(1, horizon + 1)]
    return [values[-1][1] + slope * h for h in away], [sigma * math.sqrt(h * (1 + h / span)) for h in away]


def mean(y: list[float], horizon: int) -> Said:
    values = [value for _, value in seen(y)]
    centre = math.fsum(values) / len(values)
    sigma = deviation([value - centre for value in values], lost=1)
    return [centre] * horizon, [sigma * math.sqrt(1 + 1 / len(values))] * horizon


def window_mean(y: list[float], horizon: int) -> Said:
    values = [value for _, value in seen(y)]
    means = [math.fsum(values[end - SEASON : end]) / SEASON for end in range(SEASON, len(values) + 1)]
    sigma = deviation([value - said for value, said in zip(values[SEASON:], means, strict=False)])
    return [means[-1]] * horizon, [sigma] * horizon


def seasonal_naive(y: list[float], horizon: int) -> Said:
    def before(row: int) -> tuple[int, float]:
        """(seasons back, value) of the last value at the same place; 0 seasons where there is none."""
        for back in range(1, len(y) + horizon):
            place = row - back * SEASON
            if place < 0:
                break
            if place < len(y) and not math.isnan(y[place]):
                return back, y[place]
        return 0, math.nan

    errors = []
    for row, value in seen(y):
        back, earlier = before(row)
        if back:
            errors.append((value - earlier) / math.sqrt(back))
    sigma = deviation(errors)
    ahead = [before(len(y) - 1 + h) for h in range(1, horizon + 1)]
    return [value for _, value in ahead], [sigma * math.sqrt(back) for back, _ in ahead]


def seasonal_mean(y: list[float], horizon: int) -> Said:
    places = [[value for row, value in seen(y) if row % SEASON == place] for place in range(SEASON)]
    centres = [math.fsum(values) / len(values) if values else math.nan for values in places]
    sigma = deviation([value - centres[row % SEASON] for row, value in seen(y)], lost=SEASON)
    ahead = [(len(y) - 1 + h) % SEASON for h in range(1, horizon + 1)]
    return [centres[place] for place in ahead], [sigma * math.sqrt(1 + 1 / len(places[place])) for place in ahead]


def naive2(y: list[float], horizon: int) -> Said:
    index = season_index(y) if is_seasonal(y) else [1.0] * SEASON
    adjusted, spread = naive([value / index[row % SEASON] for row, value in enumerate(y)], horizon)
    ahead = [index[(len(y) - 1 + h) % SEASON] for h in range(1, horizon + 1)]
    return [a * i for a, i in zip(adjusted, ahead, strict=True)], [s * i for s, i in zip(spread, ahead, strict=True)]


def is_seasonal(y: list[float]) -> bool:
    """The organisers' SeasonalityTest: R's acf, then 1.645 / sqrt(n) * sqrt(cumsum(c(1, 2 * acf^2)))."""
    if len(y) < 3 * SEASON or min(y) <= 0 or max(y) == min(y):
        return False
    centre = math.fsum(y) / len(y)
    away = [value - centre for value in y]
    total = math.fsum(a * a for a in away)
    acf = [math.fsum(a * b for a, b in zip(away, away[lag:], strict=False)) / total for lag in range(1, SEASON + 1)]
    limit = 1.645 / math.sqrt(len(y)) * math.sqrt(1 + 2 * math.fsum(r * r for r in acf[:-1]))
    return abs(acf[-1]) > limit


def season_index(y: list[float]) -> list[float]:
    """R's decompose(type = "multiplicative") for an odd season: by place of the row, phase 0 that of row 0."""
    half = SEASON // 2
    ratios: list[list[float]] = [[] for _ in range(SEASON)]
    for row in range(half, len(y) - half):
        ratios[row % SEASON].append(y[row] / (math.fsum(y[row - half : row + half + 1]) / SEASON))
    means = [math.fsum(found) / len(found) for found in ratios]
    return [one / (math.fsum(means) / SEASON) for one in means]


FORMULAS: dict[str, Callable[[list[float], int], Said]] = {
    "Naive": naive, "SeasonalNaive": seasonal_naive, "Naive2": naive2, "Drift": drift, "Mean": mean, "WindowMean": window_mean,
    "SeasonalMean": seasonal_mean,
}  # fmt: skip
