"""Conformal arithmetic: bands from the errors a model made on windows it was not fitted on.

Calibration      half widths for a level; what becomes of them when series are taken, joined or moved on
├── OwnErrors    each series' own. Split: the finite-sample quantile of the absolute errors at a step (Vovk et al. 2005;
│                Lei et al. 2018). Adaptive: the miss rate aimed at follows the misses seen, window after window
│                (Gibbs & Candès 2021), so that bands widen when the errors grow
└── PooledErrors those of all series together, each over the scale of its series, for series too short to have enough
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self, get_args

import numpy as np

from deepforecast.core.forecast import Forecast
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import CalibrationError, CapabilityError

Method = Literal["split", "adaptive"]
METHODS: tuple[str, ...] = get_args(Method)
MISS_RATES = np.array([0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99])  # miss rates followed


class Calibration(ABC):
    """How far a forecast is off, by series and step."""

    shared: bool  # whether it serves series that were not there when it was made

    @property
    @abstractmethod
    def steps(self) -> int:
        """How many steps were calibrated."""

    @abstractmethod
    def take(self, numbers: Ints) -> Self:
        """Some of the series."""

    @abstractmethod
    def join(self, added: Self) -> Self:
        """Another's series after ours."""

    @abstractmethod
    def for_panel(self, panel: Panel, numbers: Ints) -> Self:
        """For the series of a panel; `numbers` are their places here, -1 (if `shared`) for one that has none."""

    @abstractmethod
    def half_widths(self, level: float, steps: int) -> Floats:
        """Half widths of the central band, shape (series, steps); refused where there are too few errors for the level."""

    def forecast_around(self, points: Floats) -> ConformalForecast:
        """Bands around point forecasts."""
        return ConformalForecast(points, self)


@dataclass(frozen=True)
class SeriesErrors(Calibration):
    """Errors `actual - forecast` of shape (series, windows, steps), the oldest window first; NaN where there was no actual."""

    errors: Floats
    method: str = "split"
    rate: float = 0.05  # how fast the adaptive miss rate moves

    shared = False

    @property
    def steps(self) -> int:
        """How many steps were calibrated."""
        return int(self.errors.shape[2])

    def take(self, numbers: Ints) -> SeriesErrors:
        """Some of the series."""
        return replace(self, errors=self.errors[numbers])

    def join(self, added: SeriesErrors) -> SeriesErrors:
        """Another's series after ours; the one with fewer windows begins with missing errors."""
        windows = max(self.errors.shape[1], added.errors.shape[1])
        return replace(self, errors=np.concatenate([_pad_windows(self.errors, windows), _pad_windows(added.errors, windows)]))

    def for_panel(self, panel: Panel, numbers: Ints) -> SeriesErrors:
        """The errors of these series: they stay what they were."""
        return self.take(numbers)

    def half_widths(self, level: float, steps: int) -> Floats:
        """See `Calibration`."""
        _refuse_long_horizon(steps, self.steps)
        absolute_errors = np.abs(self.errors[:, :, :steps])
        scores = np.sort(absolute_errors, axis=1)  # NaN last
        count = np.sum(~np.isnan(scores), axis=1)
        _refuse_few_errors(level, count, "give longer series or more windows: Conformal(model, n_windows=..., or pool=True)")
        miss_rates = np.full(count.shape, 1 - level / 100)
        if self.method == "adaptive":
            miss_rates = interpolate_miss_rate(absolute_errors, 1 - level / 100, self.rate)
        return np.take_along_axis(scores, (_rank(count, miss_rates) - 1)[:, None, :], axis=1)[:, 0, :]


@dataclass(frozen=True)
class PooledErrors(Calibration):
    """Absolute errors of all series and windows, each over the scale of its series before the window: shape (errors, steps),
    sorted.

    That a band covers what its level says rests on these scaled errors being exchangeable among series: one that is harder to
    forecast than its changes tell has too narrow a band, an easier one too wide a band. Over all series coverage is as said,
    but for those that were constant: a scale of 0 gives a band of width 0, whose level no pooled error speaks of.
    """

    scores: Floats
    scale: Floats  # of each series

    shared = True

    @property
    def steps(self) -> int:
        """How many steps were calibrated."""
        return int(self.scores.shape[1])

    def take(self, numbers: Ints) -> PooledErrors:
        """Some of the series."""
        return replace(self, scale=self.scale[numbers])

    def join(self, added: PooledErrors) -> PooledErrors:
        """Another's series after ours, with our errors."""
        return replace(self, scale=np.concatenate([self.scale, added.scale]))

    def for_panel(self, panel: Panel, numbers: Ints) -> PooledErrors:
        """The same errors. Known series keep the scale of the fit, as in `update`; a new one has that of its history."""
        is_known = numbers >= 0
        scale = mean_absolute_change(panel)
        scale[is_known] = self.scale[numbers[is_known]]
        return replace(self, scale=scale)

    def half_widths(self, level: float, steps: int) -> Floats:
        """See `Calibration`."""
        _refuse_long_horizon(steps, self.steps)
        if not self.scale.any():
            return np.zeros((len(self.scale), steps))
        scores = self.scores[:, :steps]
        count = np.sum(~np.isnan(scores), axis=0)
        _refuse_few_errors(level, count, "give more or longer series (errors of those constant before a cutoff do not count)")
        quantile_scores: Floats = scores[_rank(count, np.full(steps, 1 - level / 100)) - 1, np.arange(steps)]
        scale = self.scale[:, None]
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused by name on its way out
            return np.where(scale == 0, 0.0, scale * quantile_scores)


@dataclass(frozen=True)
class ConformalForecast(Forecast):
    """Points with calibrated bands around them; symmetric, so the point is the median."""

    mean: Floats
    calibration: Calibration
    n_skipped: int = 0

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Any probability whose central level the calibration can carry; monotone."""
        steps = self.mean.shape[1] + self.n_skipped
        radii: dict[float, Floats] = {0.0: np.zeros_like(self.mean)}
        for level in sorted({_central_level(probability) for probability in probabilities} - {0.0}):
            widest = next(reversed(radii.values()))
            radii[level] = np.maximum(widest, self.calibration.half_widths(level, steps)[:, self.n_skipped :])
        signed = [math.copysign(1.0, probability - 0.5) * radii[_central_level(probability)] for probability in probabilities]
        return np.stack([self.mean + radius for radius in signed], axis=-1)

    def point(self, point_kind: str) -> Floats:
        """The model's own points."""
        return self.mean

    def skip_steps(self, steps: int) -> ConformalForecast:
        """The same without its first steps."""
        return replace(self, mean=self.mean[:, steps:], n_skipped=self.n_skipped + steps)


def min_windows(level: float) -> int:
    """The fewest errors whose finite-sample quantile reaches a level.

    >>> min_windows(80), min_windows(95), min_windows(99)
    (4, 19, 99)
    """
    return math.ceil(level / max(100 - level, 1e-9) - 1e-9)


def interpolate_miss_rate(scores: Floats, miss_rate: float, rate: float) -> Floats:
    """`adapt_miss_rates` for any aim, shape (series, steps): never less for a lower level, so that bands stay nested."""
    adapted_rates = adapt_miss_rates(scores, MISS_RATES, rate)
    zeros = np.zeros_like(adapted_rates[:1])
    adapted_rates = np.concatenate([zeros, np.maximum.accumulate(adapted_rates, axis=0), zeros + 1])
    miss_rates = np.array([0.0, *MISS_RATES, 1.0])
    index = int(np.searchsorted(miss_rates, miss_rate, side="right")) - 1
    weight = (miss_rate - miss_rates[index]) / (miss_rates[index + 1] - miss_rates[index])
    return np.asarray(np.clip(adapted_rates[index] + weight * (adapted_rates[index + 1] - adapted_rates[index]), 1e-6, 1 - 1e-6))


def adapt_miss_rates(scores: Floats, miss_rates: Floats, rate: float) -> Floats:
    """The miss rates to use next, shape (aims, series, steps), after following the misses over the windows in their order."""
    miss_rates = np.asarray(miss_rates, dtype=np.float64)[:, None, None]
    current_rates = np.repeat(np.repeat(miss_rates, scores.shape[0], axis=1), scores.shape[2], axis=2)
    for window in range(1, scores.shape[1]):
        past_scores, window_scores = scores[:, :window], scores[:, window]
        count = np.sum(~np.isnan(past_scores), axis=1)
        rank = np.ceil((count + 1) * (1 - current_rates) - 1e-9)  # of the error that was the band; no sorting is needed to compare
        is_miss = np.sum(past_scores < window_scores[:, None], axis=1) >= rank
        current_rates = current_rates + rate * np.where(np.isnan(window_scores) | (count == 0), 0.0, miss_rates - is_miss)
    return np.asarray(np.clip(current_rates, 1e-6, 1 - 1e-6))


def mean_absolute_change(panel: Panel) -> Floats:
    """The mean absolute change from value to value of each series; 0 where it is constant, NaN where there is one value."""
    rows = np.flatnonzero(~panel.missing())
    values, bounds = panel.y[rows], np.searchsorted(rows, panel.indptr)
    first, last = bounds[:-1], bounds[1:] - 1  # change i is the one from value i to value i + 1
    with np.errstate(over="ignore", invalid="ignore"):
        changes = np.append(np.abs(np.diff(values)), [0.0, 0.0])
        changes[last] = 0.0
        return np.asarray(np.add.reduceat(changes, first) / np.where(last > first, last - first, np.nan))


def _central_level(probability: float) -> float:
    """The level of the central band that ends at a probability."""
    return round(100 * abs(2 * probability - 1), 9)


def _rank(count: Ints, miss_rate: Floats) -> Ints:
    """Which of the sorted errors, counted from 1, is the finite-sample quantile."""
    return np.asarray(np.clip(np.ceil((count + 1) * (1 - miss_rate) - 1e-9), 1, count), dtype=np.int64)


def _refuse_long_horizon(steps: int, calibrated: int) -> None:
    if steps > calibrated:
        raise CapabilityError(
            f"The bands were calibrated for {calibrated} steps; {steps} were asked for. Fit with horizon={steps} to calibrate "
            "them all."
        )


def _refuse_few_errors(level: float, count: Ints, suggestion: str) -> None:
    min_count, min_errors = int(count.min()), min_windows(level)
    if min_count < min_errors:
        max_level = math.floor(1e4 * min_count / (min_count + 1)) / 100
        advice = f"Ask for a level of at most {max_level:g}, or {suggestion}" if min_count else suggestion[0].upper() + suggestion[1:]
        raise CalibrationError(
            f"A conformal level of {level:g} needs at least {min_errors} calibration errors a step; there are {min_count}. {advice}."
        )


def _pad_windows(errors: Floats, windows: int) -> Floats:
    return np.pad(errors, ((0, 0), (windows - errors.shape[1], 0), (0, 0)), constant_values=np.nan)
