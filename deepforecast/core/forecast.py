"""What a model says of the steps ahead, before it becomes a frame: points, and a distribution where there is one."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from deepforecast.data.forecast_names import format_number
from deepforecast.data.frames import Floats
from deepforecast.data.integers import validate_integer
from deepforecast.errors import CapabilityError, ParameterError, ParameterTypeError, format_list, format_value, warn

MAX_HORIZON = 1_000_000  # beyond it a slip, or a file made to do harm: memory would run out before the error


class Forecast(ABC):
    """Arrays of shape (series, steps)."""

    mean: Floats

    @abstractmethod
    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Shape (series, steps, probabilities)."""

    def point(self, point_kind: str) -> Floats:
        """The mean or the median."""
        return self.mean if point_kind == "mean" else self.median

    @cached_property
    def median(self) -> Floats:
        """Refused where there are points alone."""
        return self.quantiles([0.5])[..., 0]

    @abstractmethod
    def skip_steps(self, steps: int) -> Forecast:
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
        raise no_distribution_error(self.name)

    def skip_steps(self, steps: int) -> PointForecast:
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

        standard_quantiles = np.array([NormalDist().inv_cdf(probability) for probability in probabilities])
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused by name on its way out
            offsets = np.where(standard_quantiles == 0, 0.0, self.deviation[..., None] * standard_quantiles)  # the median needs no deviation to be known
            return np.asarray(self.mean[..., None] + offsets)

    def skip_steps(self, steps: int) -> NormalForecast:
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

    def skip_steps(self, steps: int) -> SampledForecast:
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
        learned, requested = np.array(self.probabilities), np.array(probabilities, dtype=np.float64)
        outside = [probability for probability in probabilities if not learned[0] - 1e-12 <= probability <= learned[-1] + 1e-12]
        if outside:
            levels = format_list(sorted({format_number(round(100 * abs(1 - 2 * probability), 9)) for probability in outside}))
            raise CapabilityError(
                f"{self.name} learned the quantiles {format_list([f'{probability:g}' for probability in learned], max_shown=20)}, so it gives those "
                f"from {learned[0]:g} to {learned[-1]:g}; {format_list([f'{probability:g}' for probability in outside])} is asked for (level {levels}). "
                "Fit it with quantiles= that reach so far."
            )
        monotone = np.maximum.accumulate(self.values, axis=-1)
        right = np.clip(np.searchsorted(learned, requested), 1, max(len(learned) - 1, 1))
        if len(learned) == 1:
            return np.repeat(monotone, len(requested), axis=-1)
        left = right - 1
        weight = (requested - learned[left]) / (learned[right] - learned[left])
        return np.asarray(monotone[..., left] + weight * (monotone[..., right] - monotone[..., left]))

    def skip_steps(self, steps: int) -> QuantileForecast:
        """The same without its first steps."""
        return replace(self, mean=self.mean[:, steps:], values=self.values[:, steps:])


def no_distribution_error(name: str) -> CapabilityError:
    """The error to raise where a level is asked of a model that has points alone."""
    return CapabilityError(
        f"{name} has no distribution of its own, so no level or quantile. Construct it with intervals='conformal', or wrap it: "
        "Conformal(model)."
    )


def validate_levels(level: Any) -> list[float]:
    """Levels as a sorted list without doubles: numbers between 0 and 100, one or several.

    >>> validate_levels([95, 80, 80]), validate_levels(80), validate_levels(None)
    ([80, 95], [80], [])
    """
    levels = sorted(set(_validate_numbers(level, "level", 0, 100)))
    if levels and level_probabilities(levels[-1])[1] >= 1:
        raise ParameterError(f"level lies between 0 and 100, far enough below for its tail to be a number; got {levels[-1]!r}.")
    if levels and levels[0] < 1:
        low = levels[0]
        warn(f"level is in percent: {low:g} asks for a band that holds {low:g} % of the values. Say {100 * low:g} for more.")
    return levels


def validate_quantiles(quantiles: Any) -> list[float]:
    """Probabilities between 0 and 1, sorted."""
    return sorted(set(_validate_numbers(quantiles, "quantiles", 0, 1)))


validate_horizon = partial(validate_integer, name="horizon", maximum=MAX_HORIZON)
"""A whole number of steps (or of something else, by `name`), at least 1."""


def level_probabilities(level: float) -> tuple[float, float]:
    """The two tails of a central interval."""
    return (100 - level) / 200, (100 + level) / 200


def output_columns(
    forecast: Forecast, name: str, point: str, levels: Sequence[float], quantiles: Sequence[float]
) -> dict[str, Floats]:
    """The output columns, each flat over series and steps: see `column_names`."""
    columns = {name: forecast.point(point).reshape(-1)}
    if not levels and not quantiles:
        return columns
    probabilities = [probability for level in levels for probability in level_probabilities(level)] + list(quantiles)
    quantiles_by_probability = forecast.quantiles(probabilities)
    labels = column_names(name, levels, quantiles)[1:]
    for number, label in enumerate(labels):
        columns[label] = np.ascontiguousarray(quantiles_by_probability[..., number]).reshape(-1)
    return columns


def column_names(name: str, levels: Sequence[float], quantiles: Sequence[float] = ()) -> list[str]:
    """The names of the output columns of a model.

    >>> column_names("Naive", [80], [0.1])
    ['Naive', 'Naive-lo-80', 'Naive-hi-80', 'Naive-q-0.1']
    """
    interval_names = [f"{name}-{side}-{format_number(level)}" for level in levels for side in ("lo", "hi")]
    return [name, *interval_names, *(f"{name}-q-{format_number(probability)}" for probability in quantiles)]


def refuse_duplicate_columns(new: Iterable[str], existing: Iterable[str]) -> None:
    """Raise `ParameterError` where a column would stand twice in a frame: two models of one name, or a model named as a key."""
    names = [*existing, *new]
    if len(set(names)) < len(names):
        duplicates = list(dict.fromkeys(name for position, name in enumerate(names) if name in names[:position]))
        raise ParameterError(
            f"Each column of a forecast has a name of its own; {format_list(duplicates)} would stand there twice. Give the model another "
            "alias=, or rename the column of the frame."
        )


def interval_columns(name: str, levels: Sequence[float]) -> list[tuple[float, str, str]]:
    """(level, lower column, upper column) of a model."""
    return [(level, f"{name}-lo-{format_number(level)}", f"{name}-hi-{format_number(level)}") for level in levels]


def _validate_numbers(value_or_list: Any, name: str, low: float, high: float) -> list[float]:
    if value_or_list is None:
        return []
    values = list(value_or_list) if hasattr(value_or_list, "__iter__") and not isinstance(value_or_list, (str, bytes, Mapping)) else [value_or_list]
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
            description = f"{format_value(value)} ({type(value).__name__})"
            raise ParameterTypeError(f"{name} is a number between {low} and {high}, or a list of them; got {description}.")
        if not (low < value < high) or not math.isfinite(value):
            raise ParameterError(f"{name} lies between {low} and {high}, both excluded; got {format_value(value)}.")
    return values
