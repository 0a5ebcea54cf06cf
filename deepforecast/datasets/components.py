"""Components of generated series as arrays (series, step)."""

from __future__ import annotations

import numbers
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepforecast.data.frequency import Frequency, parse_frequency, seasons
from deepforecast.datasets.recipe import COVARIATES, CategoryEffects, Recipe
from deepforecast.errors import ParameterError, format_value

Matrix = NDArray[np.float64]
Shape = tuple[int, int]

HOLIDAYS = (101, 214, 501, 815, 1101, 1225, 1226)  # month and day, the same every year
HOLIDAY_SHARE = 0.05  # share of holidays for steps longer than a day
# share of steps with a random category; the others have the first
CATEGORY_SHARES = {"promotion": 0.3, "stock": 0.2}


@dataclass(frozen=True)
class Timeline:
    """The common timestamps of all series."""

    frequency: Frequency
    timestamps: Any  # a pandas DatetimeIndex, or an index of integers

    def holidays(self, seed: int) -> NDArray[np.int8]:
        """1 on holidays: fixed days of the year for steps of a day or less, otherwise random."""
        is_daily = self.frequency.base in ("D", "B", "C") and self.frequency.n == 1
        if is_daily or self.frequency.base in ("h", "min", "s", "ms", "us", "ns"):
            return np.isin(self.timestamps.month * 100 + self.timestamps.day, HOLIDAYS).astype(np.int8)
        return (random_stream(seed, "holiday").random(len(self.timestamps)) < HOLIDAY_SHARE).astype(np.int8)


@dataclass(frozen=True)
class Covariate:
    """A covariate (codes if it has levels) and its effect on y."""

    values: NDArray[Any]
    effect: Matrix
    levels: tuple[str, ...] | None = None


def random_stream(seed: int, name: str) -> np.random.Generator:
    """The random generator of a component, independent of other components and of the global state.

    Arrays are drawn series by series, so that the first series do not depend on the number of
    series.
    """
    return np.random.default_rng([seed, zlib.crc32(name.encode())])


def make_timeline(freq: Any, start: Any, length: int) -> Timeline:
    """Create `length` timestamps of a frequency."""
    import pandas as pd

    frequency = parse_frequency(freq)
    if not frequency.base:
        first = 1 if start is None else start
        if isinstance(first, bool) or not isinstance(first, numbers.Integral):
            raise ParameterError(
                f"`start` must be an integer for integer time, got {format_value(first)}.",
                parameter="start",
                value=first,
            )
        return Timeline(frequency, pd.Index(int(first) + frequency.n * np.arange(length, dtype=np.int64)))
    alias = {"mo": "MS", "q": "QS", "y": "YS", "w": "W"}.get(frequency.base, frequency.alias)
    step = frequency.n * (pd.tseries.frequencies.to_offset(alias) if frequency.offset is None else frequency.offset)
    try:
        return Timeline(frequency, pd.date_range("2020-01-01" if start is None else start, periods=length, freq=step))
    except (ValueError, TypeError, OverflowError) as error:
        raise ParameterError(
            f"`start` must be a timestamp that can be followed by {length} steps of {frequency}, got "
            f"{format_value(start)} ({format_value(str(error))}).",
            parameter="start",
            value=start,
        ) from error


def regular_components(shape: Shape, timeline: Timeline, seed: int, recipe: Recipe) -> dict[str, Matrix]:
    """Level, trend, seasons and shifts, each broadcastable to `shape` (series, step)."""
    n_series, length = shape
    periods = tuple(period for period in seasons(timeline.frequency) if period > 1)
    components = {
        "level": recipe.level + recipe.level_spread * random_stream(seed, "level").standard_normal((n_series, 1)),
        "trend": recipe.trend * np.arange(length, dtype=float)[None, :],
    }
    for period in periods if recipe.seasons == "auto" else recipe.seasons:
        pattern = _seasonal_pattern(n_series, length, period, random_stream(seed, f"season {period}"))
        components[f"season_{period}"] = recipe.season_strength * pattern
    if recipe.shifts:
        components["shift"] = _level_shifts(shape, seed, recipe)
    return components


def draw_start_steps(shape: Shape, seed: int, ragged: float) -> NDArray[np.int64]:
    """Draw the first step of each series, from 0 to the share `ragged` of the length."""
    n_series, length = shape
    return random_stream(seed, "ragged").integers(0, min(int(ragged * length), length - 1) + 1, n_series)


def draw_covariates(shape: Shape, timeline: Timeline, seed: int, recipe: Recipe) -> dict[str, Covariate]:
    """Draw the covariates of the recipe."""
    covariate_by_name = {}
    for name in recipe.covariates:
        role, value_type = COVARIATES[name]
        effect = getattr(recipe.effects, name)
        if name == "holiday":
            days = timeline.holidays(seed)[None, :]
            covariate_by_name[name] = Covariate(days, effect * days.astype(float))
        elif role == "past":
            # `lag` more steps are drawn: those that affect the first values of y are before the
            # frame
            drawn = _draw_covariate(name, value_type, effect, (shape[0], shape[1] + recipe.lag), seed)
            covariate_by_name[name] = Covariate(drawn.values[:, recipe.lag :], drawn.effect[:, : -recipe.lag], drawn.levels)
        else:
            covariate_shape = (shape[0], 1) if role == "static" else shape
            covariate_by_name[name] = _draw_covariate(name, value_type, effect, covariate_shape, seed)
    return covariate_by_name


def _draw_covariate(name: str, value_type: str, effect: float | CategoryEffects, shape: Shape, seed: int) -> Covariate:
    """Standard normal numbers with an effect per unit, or random categories with an effect each."""
    random = random_stream(seed, name)
    if isinstance(effect, tuple):
        effect_by_code = np.array([category_effect for _, category_effect in effect], dtype=float)
        codes = random.integers(0, len(effect), shape)
        if name in CATEGORY_SHARES:
            codes = np.where(random_stream(seed, f"{name} chance").random(shape) < CATEGORY_SHARES[name], codes, 0)
        return Covariate(codes, effect_by_code[codes], tuple(level for level, _ in effect))
    values = random.standard_normal(shape)
    return Covariate(values, effect * values)


def _seasonal_pattern(n_series: int, length: int, period: int, random: np.random.Generator) -> Matrix:
    """sin(2 pi t / m + a) + sin(4 pi t / m + b) / 2 with random phases a, b per series; only the first term if m = 2."""
    angle = 2 * np.pi * np.arange(period)[None, :] / period
    phases = random.uniform(0, 2 * np.pi, (n_series, 2))
    table: Matrix = np.sin(angle + phases[:, :1]) + (0.5 * np.sin(2 * angle + phases[:, 1:]) if period > 2 else 0.0)
    return table[:, np.arange(length) % period]


def _level_shifts(shape: Shape, seed: int, recipe: Recipe) -> Matrix:
    """The cumulative sum of `recipe.shifts` level shifts, up or down, at random steps other than the first."""
    n_series, length = shape
    jumps = np.zeros(shape)
    if length > 1:
        positions = random_stream(seed, "shift").integers(1, length, (n_series, recipe.shifts))
        is_up = random_stream(seed, "shift up").random((n_series, recipe.shifts)) < 0.5
        np.add.at(jumps, (np.arange(n_series)[:, None], positions), np.where(is_up, recipe.shift, -recipe.shift))
    return jumps.cumsum(axis=1)
