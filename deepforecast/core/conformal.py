"""Conformal prediction intervals from the errors of forecasts at rolling cutoffs.

Calibration       interface: half widths of the intervals at a level
├── SeriesErrors  errors of each series. Split: the finite-sample quantile of the absolute errors at a step (Vovk et al.
│                 2005; Lei et al. 2018). Adaptive: the miscoverage level is updated after each window (Gibbs & Candès
│                 2021, arXiv:2106.00170), so that intervals widen when errors grow
└── PooledErrors  scaled errors of all series together, for series too short to have enough errors of their own

With n errors, split intervals of miss rate (miscoverage level) a have the half width of rank
ceil((n + 1)(1 - a)) among the sorted absolute errors. Adaptive intervals replace a by a_t, updated
window by window: a_{t+1} = a_t + rate (a - [miss at t]).
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
# grid of target miss rates (miscoverage levels) for which adaptive ones are computed
MISS_RATES = np.array([0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99])


class Calibration(ABC):
    """Errors of past forecasts by series and step, from which intervals are computed."""

    shared: bool  # whether it applies to series that were not calibrated

    @property
    @abstractmethod
    def steps(self) -> int:
        """Number of steps that were calibrated."""

    @abstractmethod
    def take(self, numbers: Ints) -> Self:
        """The calibration of some of the series."""

    @abstractmethod
    def join(self, added: Self) -> Self:
        """Append the series of another calibration."""

    def for_panel(self, panel: Panel, numbers: Ints) -> Self:
        """The calibration of the series of a panel; `numbers` is their index here, -1 for new ones (only if `shared`)."""
        return self.take(numbers)

    @abstractmethod
    def half_widths(self, level: float, steps: int, allow_missing: bool = False) -> Floats:
        """Half widths of the central interval, shape (series, steps).

        Raises if there are too few errors for the level; with `allow_missing`, the series with too few have NaN instead.
        """

    def forecast_around(self, points: Floats, allow_missing: bool = False) -> ConformalForecast:
        """Intervals around point forecasts."""
        return ConformalForecast(points, self, allow_missing)


@dataclass(frozen=True)
class SeriesErrors(Calibration):
    """Errors `actual - forecast` of each series, shape (series, windows, steps), oldest window first.

    NaN where the actual is missing.
    """

    errors: Floats
    method: str = "split"
    rate: float = 0.05  # step size of the adaptive miss rate
    max_errors: int = -1  # largest number of errors of a series at a step, of all series that were calibrated

    shared = False

    @property
    def steps(self) -> int:
        """Number of steps that were calibrated."""
        return int(self.errors.shape[2])

    def __post_init__(self) -> None:
        if self.max_errors < 0:
            object.__setattr__(self, "max_errors", int(np.sum(~np.isnan(self.errors), axis=1).max(initial=0)))

    def take(self, numbers: Ints) -> SeriesErrors:
        """The calibration of some of the series."""
        return replace(self, errors=self.errors[numbers])

    def join(self, added: SeriesErrors) -> SeriesErrors:
        """Append the series of another calibration, padded with missing errors to the same number of windows."""
        n_windows = max(self.errors.shape[1], added.errors.shape[1])
        padded = [
            np.pad(errors, ((0, 0), (n_windows - errors.shape[1], 0), (0, 0)), constant_values=np.nan)
            for errors in (self.errors, added.errors)
        ]
        return replace(self, errors=np.concatenate(padded), max_errors=max(self.max_errors, added.max_errors))

    def half_widths(self, level: float, steps: int, allow_missing: bool = False) -> Floats:
        """See `Calibration`."""
        absolute_errors = np.abs(self.errors[:, :, :steps])
        scores = np.sort(absolute_errors, axis=1)  # NaN last
        n_errors = np.sum(~np.isnan(scores), axis=1)
        has_too_few = n_errors.min(axis=1) < min_windows(level)
        if not allow_missing or self.max_errors < min_windows(level):
            _refuse_few_errors(level, n_errors, "pass longer series, or pool the errors of all: Conformal(model, pool=True)")
        scores[has_too_few], n_errors[has_too_few] = np.nan, 1
        miss_rates = np.full(n_errors.shape, 1 - level / 100)
        if self.method == "adaptive":
            miss_rates = interpolate_miss_rate(absolute_errors, 1 - level / 100, self.rate)
        return np.take_along_axis(scores, (_rank(n_errors, miss_rates) - 1)[:, None, :], axis=1)[:, 0, :]


@dataclass(frozen=True)
class PooledErrors(Calibration):
    """Absolute errors of all series and windows divided by the scale of the series up to the cutoff, sorted: (errors, steps).

    Coverage holds if the scaled errors are exchangeable across series. A series that is harder to
    forecast than its scale suggests has too narrow intervals, an easier one too wide intervals; on
    average over the series coverage is right. Series that were constant have a scale of 0 and
    intervals of width 0, without coverage.
    """

    scores: Floats  # (errors, steps), sorted along the first axis
    scale: Floats  # (series,)

    shared = True

    @property
    def steps(self) -> int:
        """Number of steps that were calibrated."""
        return int(self.scores.shape[1])

    def take(self, numbers: Ints) -> PooledErrors:
        """The calibration of some of the series."""
        return replace(self, scale=self.scale[numbers])

    def join(self, added: PooledErrors) -> PooledErrors:
        """Append the series of another calibration; the pooled errors do not change."""
        return replace(self, scale=np.concatenate([self.scale, added.scale]))

    def for_panel(self, panel: Panel, numbers: Ints) -> PooledErrors:
        """The same errors. Known series keep the scale of the fit; new ones have that of their history."""
        is_known = numbers >= 0
        scale = mean_absolute_change(panel)
        scale[is_known] = self.scale[numbers[is_known]]
        return replace(self, scale=scale)

    def half_widths(self, level: float, steps: int, allow_missing: bool = False) -> Floats:
        """See `Calibration`."""
        if not self.scale.any():
            return np.zeros((len(self.scale), steps))
        scores = self.scores[:, :steps]
        n_errors = np.sum(~np.isnan(scores), axis=0)
        _refuse_few_errors(level, n_errors, "pass more or longer series (those constant before a cutoff do not count)")
        quantile_scores: Floats = scores[_rank(n_errors, np.full(steps, 1 - level / 100)) - 1, np.arange(steps)]
        scale = self.scale[:, None]
        with np.errstate(over="ignore", invalid="ignore"):  # check_finite raises later, with the name of the series
            return np.where(scale == 0, 0.0, scale * quantile_scores)


@dataclass(frozen=True)
class ConformalForecast(Forecast):
    """Point forecasts with calibrated symmetric intervals, so the point forecast is both the mean and the median."""

    mean: Floats
    calibration: Calibration
    allow_missing: bool = False  # whether the intervals of some series may be missing
    n_skipped: int = 0

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Bounds of the central intervals that end at these probabilities, made monotone in the level."""
        n_steps = self.mean.shape[1] + self.n_skipped
        levels = [round(100 * abs(2 * probability - 1), 9) for probability in probabilities]
        half_width = np.zeros_like(self.mean)
        half_width_by_level = {0.0: half_width}
        for level in sorted(set(levels) - {0.0}):
            if n_steps > self.calibration.steps:
                raise CapabilityError(
                    f"`horizon` must be at most {self.calibration.steps}, the number of steps for which intervals were "
                    f"calibrated, got {n_steps}.",
                    hint=f"Fit with horizon={n_steps}.",
                    parameter="horizon",
                    value=n_steps,
                )
            half_widths = self.calibration.half_widths(level, n_steps, self.allow_missing)
            half_width = np.maximum(half_width, half_widths[:, self.n_skipped :])
            half_width_by_level[level] = half_width
        bounds = [
            self.mean + math.copysign(1.0, probability - 0.5) * half_width_by_level[level]
            for probability, level in zip(probabilities, levels, strict=True)
        ]
        return np.stack(bounds, axis=-1)

    def point(self, point_kind: str) -> Floats:
        """The model's point forecasts, whatever the kind."""
        return self.mean

    def skip_steps(self, steps: int) -> ConformalForecast:
        """The forecast without its first `steps` steps."""
        return replace(self, mean=self.mean[:, steps:], n_skipped=self.n_skipped + steps)


def min_windows(level: float) -> int:
    """Minimum number of errors for a level: the smallest n with ceil((n + 1) level / 100) <= n.

    >>> min_windows(80), min_windows(95), min_windows(99)
    (4, 19, 99)
    """
    return math.ceil(level / max(100 - level, 1e-9) - 1e-9)


def interpolate_miss_rate(scores: Floats, miss_rate: float, rate: float) -> Floats:
    """Adapted miss rates for the target `miss_rate`, interpolated linearly from those for MISS_RATES; shape (series, steps).

    They increase with the target, so that intervals of different levels are nested. `scores` are the
    absolute errors (series, windows, steps), `rate` is the step size.
    """
    adapted_rates = adapt_miss_rates(scores, MISS_RATES, rate)
    zeros = np.zeros_like(adapted_rates[:1])
    adapted_rates = np.concatenate([zeros, np.maximum.accumulate(adapted_rates, axis=0), zeros + 1])
    miss_rates = np.array([0.0, *MISS_RATES, 1.0])
    index = int(np.searchsorted(miss_rates, miss_rate, side="right")) - 1
    weight = (miss_rate - miss_rates[index]) / (miss_rates[index + 1] - miss_rates[index])
    return np.asarray(
        np.clip(adapted_rates[index] + weight * (adapted_rates[index + 1] - adapted_rates[index]), 1e-6, 1 - 1e-6)
    )


def adapt_miss_rates(scores: Floats, miss_rates: Floats, rate: float) -> Floats:
    """The miss rates after all windows, a_{t+1} = a_t + rate (a - [miss at t]); shape (targets, series, steps).

    `scores` are the absolute errors (series, windows, steps), `miss_rates` the targets a. The first
    window, and windows without a score, do not change a rate.
    """
    miss_rates = np.asarray(miss_rates, dtype=np.float64)[:, None, None]
    current_rates = np.broadcast_to(miss_rates, (len(miss_rates), scores.shape[0], scores.shape[2]))
    for window in range(1, scores.shape[1]):
        past_scores, window_scores = scores[:, :window], scores[:, window]
        n_past = np.sum(~np.isnan(past_scores), axis=1)
        # rank of the half width among past errors; counting smaller errors avoids sorting
        rank = np.ceil((n_past + 1) * (1 - current_rates) - 1e-9)
        is_miss = np.sum(past_scores < window_scores[:, None], axis=1) >= rank
        current_rates = current_rates + rate * np.where(np.isnan(window_scores) | (n_past == 0), 0.0, miss_rates - is_miss)
    return np.asarray(np.clip(current_rates, 1e-6, 1 - 1e-6))


def mean_absolute_change(panel: Panel) -> Floats:
    """Mean absolute first difference of each series; 0 if constant, NaN with a single value."""
    rows = np.flatnonzero(~panel.missing())
    values, bounds = panel.y[rows], np.searchsorted(rows, panel.indptr)
    first, last = bounds[:-1], bounds[1:] - 1  # changes[i] = |y[i + 1] - y[i]|
    with np.errstate(over="ignore", invalid="ignore"):
        changes = np.append(np.abs(np.diff(values)), [0.0, 0.0])
        changes[last] = 0.0
        return np.asarray(np.add.reduceat(changes, first) / np.where(last > first, last - first, np.nan))


def _rank(n_errors: Ints, miss_rate: Floats) -> Ints:
    """Rank (from 1) of the finite-sample quantile among the n sorted errors: ceil((n + 1)(1 - a)), within 1..n."""
    return np.asarray(np.clip(np.ceil((n_errors + 1) * (1 - miss_rate) - 1e-9), 1, n_errors), dtype=np.int64)


def _refuse_few_errors(level: float, n_errors: Ints, suggestion: str) -> None:
    """Raise if a step has fewer errors than the level requires; `suggestion` is the fix, without a full stop."""
    fewest, required = int(n_errors.min()), min_windows(level)
    if fewest < required:
        max_level = math.floor(1e4 * fewest / (fewest + 1)) / 100
        advice = f"Use a level of at most {max_level:g}, or {suggestion}" if fewest else suggestion[0].upper() + suggestion[1:]
        raise CalibrationError(
            f"A conformal level of {level:g} requires at least {required} calibration errors per step, but there are "
            f"{fewest}. {advice}."
        )
