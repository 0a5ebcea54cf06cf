"""Small panels for the checks, built once and never modified."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from deepforecast.data.frames import Frame
from deepforecast.datasets import COVARIATES, Recipe, generate

HORIZON = 3
SEASON = 7


@lru_cache
def daily_panel() -> Frame:
    """Return three weekly-seasonal daily series around 100 with different start and end dates, exact in float32."""
    frame = generate(3, 56, seed=7)
    position = frame.groupby("unique_id").cumcount()
    late = (frame["unique_id"] == "s1") & (position < 9)
    early = (frame["unique_id"] == "s2") & (position > 52)
    frame = frame[~(late | early)].reset_index(drop=True)
    return frame.assign(y=np.round(frame["y"] * 64) / 64)


def series_ids() -> list[str]:
    """Return the ids of `daily_panel`."""
    return ["s0", "s1", "s2"]


def one_series(name: str = "s0") -> Frame:
    """Return one series of `daily_panel`."""
    frame = daily_panel()
    return frame[frame["unique_id"] == name].reset_index(drop=True)


@lru_cache
def random_walks() -> Frame:
    """Return three weekly-seasonal daily series whose level is a random walk, so that recent values matter most."""
    random = np.random.default_rng(11)
    week = np.tile([3.0, 1.0, -2.0, 2.0, -4.0, 2.0, -2.0], 8)
    return concat(
        *(series_from_values(np.round(200 + week + 4 * random.normal(size=56).cumsum()), name) for name in series_ids())
    )


def split(rows: int, frame: Frame | None = None) -> tuple[Frame, Frame]:
    """Split a frame (default: `daily_panel`) before the last `rows` rows of each series."""
    frame = daily_panel() if frame is None else frame
    last = frame.groupby("unique_id").cumcount(ascending=False) < rows
    return frame[~last].reset_index(drop=True), frame[last].reset_index(drop=True)


def series_from_values(y: Any, name: str = "s0", start: Any = "2024-01-01", freq: Any = "D") -> Frame:
    """Return a frame of one series with these values."""
    values = np.asarray(y, dtype=np.float64)
    timestamps = pd.date_range(start, periods=len(values), freq=freq)
    return pd.DataFrame({"unique_id": name, "ds": timestamps, "y": values})


def concat(*frames: Frame) -> Frame:
    """Concatenate the rows of several frames."""
    return pd.concat(list(frames), ignore_index=True)


def replace_target(frame: Frame, y: Any) -> Frame:
    """Return a frame with another target."""
    return frame.assign(y=np.asarray(y, dtype=np.float64))


@lru_cache
def covariate_panel(covariate: str) -> tuple[Frame, Frame, dict[str, Any]]:
    """Return history, future frame and `columns` of series that depend on one covariate plus noise.

    For a static covariate, the noise is large, so that the effect cannot be learned from a single series.
    """
    static = COVARIATES[covariate][0] == "static"
    recipe = Recipe(
        covariates=(covariate,), seasons=(), trend=0.0, noise=10.0 if static else 0.5, level_spread=0.0 if static else 10.0
    )
    frame = generate(12 if static else 4, 63 + HORIZON, seed=3, recipe=recipe)
    is_future = frame.groupby("unique_id").cumcount(ascending=False) < HORIZON
    future = frame.loc[is_future, ["unique_id", "ds", covariate]].reset_index(drop=True)
    return frame[~is_future].reset_index(drop=True), future, {**recipe.columns}


def covariate_effect(covariate: str) -> tuple[Any, Any, float]:
    """Return two values of a covariate and the difference of y between them."""
    sizes = getattr(Recipe().effects, covariate)
    if COVARIATES[covariate][1] == "number":
        return (0.0, 1.0, sizes)
    (low, small), (high, large) = min(sizes, key=lambda pair: pair[1]), max(sizes, key=lambda pair: pair[1])
    return (low, high, large - small)
