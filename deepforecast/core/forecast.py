"""What a model says of the steps ahead, before it becomes a frame: points, and a distribution where there is one."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from deepforecast.data.forecast_names import number_text
from deepforecast.data.frames import Floats
from deepforecast.data.whole import whole_number
from deepforecast.errors import CapabilityError, ParameterError, ParameterTypeError, say, shown, some

LONGEST_HORIZON = 1_000_000  # beyond it a slip, or a file made to do harm: memory would run out before the error


class Forecast(ABC):
    """Arrays of shape (series, steps)."""

    mean: Floats

    @abstractmethod
    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Shape (series, steps, probabilities)."""

    def point(self, kind: str) -> Floats:
        """The mean or the median."""
        return self.mean if kind == "mean" else self.median

    @cached_property
    def median(self) -> Floats:
        """Refused where there are points alone."""
        return self.quantiles([0.5])[..., 0]

    @abstractmethod
    def after(self, steps: int) -> Forecast:
        """The same without its first steps."""


@dataclass(frozen=True)
class PointForecast(Forecast):
    """Points alone: asking for a level says how to get one."""

    mean: Floats
    name: str = "The model"

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Refused unless it is the point itself that is asked for."""
        if list(probabilities) == [0.5]:
            return self.mean[..., None]
        raise no_distribution(self.name)

    def after(self, steps: int) -> PointForecast:
        """The same without its first steps."""
        return PointForecast(self.mean[:, steps:], self.name)


@dataclass(frozen=True)
class NormalForecast(Forecast):
    """A normal distribution at every step."""

    mean: Floats
    deviation: Floats

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Any probability."""
        from statistics import NormalDist

        units = np.array([NormalDist().inv_cdf(p) for p in probabilities])
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused by name on its way out
            away = np.where(units == 0, 0.0, self.deviation[..., None] * units)  # the median needs no deviation to be known
            return np.asarray(self.mean[..., None] + away)

    def after(self, steps: int) -> NormalForecast:
        """The same without its first steps."""
        return NormalForecast(self.mean[:, steps:], self.deviation[:, steps:])


@dataclass(frozen=True)
class SampledForecast(Forecast):
    """Sample paths, shape (series, samples, steps)."""

    paths: Floats

    @property
    def mean(self) -> Floats:  # type: ignore[override]
        """The average path."""
        return np.asarray(self.paths.mean(axis=1))

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Any probability, interpolated between the paths."""
        return np.moveaxis(np.quantile(self.paths, list(probabilities), axis=1), 0, -1)

    def after(self, steps: int) -> SampledForecast:
        """The same without its first steps."""
        return SampledForecast(self.paths[:, :, steps:])


@dataclass(frozen=True)
class QuantileForecast(Forecast):
    """Learned quantiles (series, steps, probabilities), straight lines between them; none outside of those learned."""

    mean: Floats
    probabilities: tuple[float, ...]
    values: Floats
    name: str = "The model"

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Any probability from the least learned to the largest."""
        known, asked = np.array(self.probabilities), np.array(probabilities, dtype=np.float64)
        outside = [one for one in probabilities if not known[0] - 1e-12 <= one <= known[-1] + 1e-12]
        if outside:
            levels = some(sorted({number_text(round(100 * abs(1 - 2 * one), 9)) for one in outside}))
            raise CapabilityError(
                f"{self.name} learned the quantiles {some([f'{one:g}' for one in known], most=20)}, so it gives those "
                f"from {known[0]:g} to {known[-1]:g}; {some([f'{one:g}' for one in outside])} is asked for (level {levels}). "
                "Fit it with quantiles= that reach so far."
            )
        rising = np.maximum.accumulate(self.values, axis=-1)
        right = np.clip(np.searchsorted(known, asked), 1, max(len(known) - 1, 1))
        if len(known) == 1:
            return np.repeat(rising, len(asked), axis=-1)
        left = right - 1
        share = (asked - known[left]) / (known[right] - known[left])
        return np.asarray(rising[..., left] + share * (rising[..., right] - rising[..., left]))

    def after(self, steps: int) -> QuantileForecast:
        """The same without its first steps."""
        return replace(self, mean=self.mean[:, steps:], values=self.values[:, steps:])


def no_distribution(name: str) -> CapabilityError:
    """The error to raise where a level is asked of a model that has points alone."""
    return CapabilityError(
        f"{name} has no distribution of its own, so no level or quantile. Construct it with intervals='conformal', or wrap it: "
        "Conformal(model)."
    )


def checked_levels(level: Any) -> list[float]:
    """Levels as a sorted list without doubles: numbers between 0 and 100, one or several.

    >>> checked_levels([95, 80, 80]), checked_levels(80), checked_levels(None)
    ([80, 95], [80], [])
    """
    found = sorted(set(_numbers(level, "level", 0, 100)))
    if found and level_probabilities(found[-1])[1] >= 1:
        raise ParameterError(f"level lies between 0 and 100, far enough below for its tail to be a number; got {found[-1]!r}.")
    if found and found[0] < 1:
        low = found[0]
        say(f"level is in percent: {low:g} asks for a band that holds {low:g} % of the values. Say {100 * low:g} for more.")
    return found


def checked_quantiles(quantiles: Any) -> list[float]:
    """Probabilities between 0 and 1, sorted."""
    return sorted(set(_numbers(quantiles, "quantiles", 0, 1)))


checked_horizon = partial(whole_number, name="horizon", most=LONGEST_HORIZON)
"""A whole number of steps (or of something else, by `name`), at least 1."""


def level_probabilities(level: float) -> tuple[float, float]:
    """The two tails of a central interval."""
    return (100 - level) / 200, (100 + level) / 200


def columns_of(
    forecast: Forecast, name: str, point: str, levels: Sequence[float], quantiles: Sequence[float]
) -> dict[str, Floats]:
    """The output columns, each flat over series and steps: see `column_names`."""
    found = {name: forecast.point(point).reshape(-1)}
    if not levels and not quantiles:
        return found
    probabilities = [p for level in levels for p in level_probabilities(level)] + list(quantiles)
    bands = forecast.quantiles(probabilities)
    labels = column_names(name, levels, quantiles)[1:]
    for number, label in enumerate(labels):
        found[label] = np.ascontiguousarray(bands[..., number]).reshape(-1)
    return found


def column_names(name: str, levels: Sequence[float], quantiles: Sequence[float] = ()) -> list[str]:
    """The names of the output columns of a model.

    >>> column_names("Naive", [80], [0.1])
    ['Naive', 'Naive-lo-80', 'Naive-hi-80', 'Naive-q-0.1']
    """
    bands = [f"{name}-{side}-{number_text(level)}" for level in levels for side in ("lo", "hi")]
    return [name, *bands, *(f"{name}-q-{number_text(one)}" for one in quantiles)]


def refuse_taken(new: Iterable[str], taken: Iterable[str]) -> None:
    """Raise `ParameterError` where a column would stand twice in a frame: two models of one name, or a model named as a key."""
    names = [*taken, *new]
    if len(set(names)) < len(names):
        twice = list(dict.fromkeys(name for place, name in enumerate(names) if name in names[:place]))
        raise ParameterError(
            f"Each column of a forecast has a name of its own; {some(twice)} would stand there twice. Give the model another "
            "alias=, or rename the column of the frame."
        )


def band_columns(name: str, levels: Sequence[float]) -> list[tuple[float, str, str]]:
    """(level, lower column, upper column) of a model."""
    return [(level, f"{name}-lo-{number_text(level)}", f"{name}-hi-{number_text(level)}") for level in levels]


def _numbers(given: Any, name: str, low: float, high: float) -> list[float]:
    if given is None:
        return []
    values = list(given) if hasattr(given, "__iter__") and not isinstance(given, (str, bytes, Mapping)) else [given]
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
            found = f"{shown(value)} ({type(value).__name__})"
            raise ParameterTypeError(f"{name} is a number between {low} and {high}, or a list of them; got {found}.")
        if not (low < value < high) or not math.isfinite(value):
            raise ParameterError(f"{name} lies between {low} and {high}, both excluded; got {shown(value)}.")
    return values
