"""Transformation of the target per series and its inverse: power, trend, differences, scale.

`apply` and `invert` are exact inverses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError
from deepforecast.models.regression import _recent_values

POWER_GRID = np.linspace(-1.0, 2.0, 61)  # search range of the Box-Cox power
NEGATIVE_NODES = np.array([-1.6448536, -1.0364334, -0.6744898, -0.3853205, -0.1256613])
RELATIVE_NOISE = 1e-13  # relative to the largest value: rounding errors of differenced periodic series
NORMAL_NODES = np.concatenate([NEGATIVE_NODES, -NEGATIVE_NODES])  # normal quantiles for the mean of a distribution


@dataclass(frozen=True)
class TargetTransform:
    """Steps of the transformation, in order. `differences`: lags, applied one after another."""

    power_method: str | None = None
    detrend: bool = False
    differences: tuple[int, ...] = ()
    scale: bool = True

    @property
    def n_lost(self) -> int:
        """Number of initial values lost by differencing."""
        return sum(self.differences)

    def lags_at(self, step: int) -> tuple[int, ...]:
        """Differences for step `step` (0, 1, ...) of a block.

        They are the smallest multiples of `differences` that reach before the first step, so that
        forecasts start from observed values and errors do not accumulate.
        """
        return tuple(lag * (step // lag + 1) for lag in self.differences)

    def n_start_values(self, block: int) -> int:
        """Number of values before a block that its inverse differences start from."""
        return sum(self.lags_at(block - 1))

    @property
    def longest_lag(self) -> int:
        """Longest difference, usually a season."""
        return max(self.differences, default=1)

    def fit(self, panel: Panel, name: str) -> tuple[Floats, dict[str, Any]]:
        """Transformed target (NaN where differences are undefined), and state of each series."""
        scales = {"power": self._fit_powers(panel, name), "unit": self._power_units(panel), "line": np.zeros((len(panel), 2))}
        y = self._apply_power(panel.y, scales, panel.lengths)
        if self.detrend:
            scales["line"] = fit_lines(y, panel.indptr)
        y = y - _line_values(scales["line"], panel.lengths)
        scales.update(self.measure_scales(y, panel.indptr))
        return self.difference_and_scale(y, panel.indptr, scales), scales

    def measure_scales(self, y: Floats, indptr: Ints) -> dict[str, Floats]:
        """Scales of values before differencing.

        The usual change over the longest difference, and centre and scale after differencing; a
        scale of 0 marks a constant series.
        """
        count = len(indptr) - 1
        largest = _segment_reduce(np.maximum, np.where(np.isnan(y), 0.0, np.abs(y)), indptr)
        drift = segment_means(difference(y, indptr, self.longest_lag), indptr) if self.differences else np.zeros(count)
        for lag in self.differences:
            y = difference(y, indptr, lag)
        if not self.scale:
            return {"drift": drift, "centre": np.zeros(count), "scale": np.ones(count)}
        return {
            "drift": drift,
            "centre": segment_means(y, indptr),
            "scale": segment_deviations(y, indptr, 0.0, RELATIVE_NOISE * largest),
        }

    def apply(self, y: Floats, indptr: Ints, scales: Mapping[str, Any], elapsed: Ints) -> Floats:
        """Transform further rows; `elapsed`: rows since the start of the fit."""
        return self.difference_and_scale(self.detrend_power(y, indptr, scales, elapsed), indptr, scales)

    def detrend_power(self, y: Floats, indptr: Ints, scales: Mapping[str, Any], elapsed: Ints) -> Floats:
        """Power transformation and detrending, before differencing."""
        lengths = np.diff(indptr)
        return np.asarray(self._apply_power(y, scales, lengths) - _line_values(scales["line"], lengths, elapsed))

    def start_values(self, y: Floats, indptr: Ints, drift: Floats, block: int = 1) -> Floats:
        """Values that inverse differences start from: the last ones of each series.

        Missing values are replaced by the value one longest difference before plus the usual change
        since; before the start of a series, by its first value.
        """
        from deepforecast.kernels import features as kernel

        if not self.differences:
            return np.empty((len(drift), 0))
        if np.isnan(y).any():
            y = y.copy()
            kernel.fill_missing(y, indptr, self.longest_lag, drift)
        tail = _recent_values.tail(y, indptr, self.n_start_values(block))
        first = np.argmax(~np.isnan(tail), axis=1)[:, None]
        return np.where(np.isnan(tail), np.take_along_axis(tail, first, axis=1), tail)

    def transform_tail(self, past: Floats, scales: Mapping[str, Any], elapsed: Ints) -> Floats:
        """Transform the last values (series, rows); `elapsed`: rows up to the last one."""
        count, rows = past.shape
        indptr = np.arange(count + 1) * rows
        return self.apply(past.reshape(-1), indptr, scales, elapsed - rows).reshape(count, rows)[:, self.n_lost :]

    def difference_starts(self, ends: Floats) -> list[Floats]:
        """Last values from which each inverse difference starts."""
        starts = []
        for lag in self.differences:
            starts.append(ends[:, -lag:])
            ends = ends[:, lag:] - ends[:, :-lag]
        return starts

    def invert(
        self, forecasts: Floats, scales: Mapping[str, Any], tails: list[Floats], elapsed: Ints, error_std: Floats | None = None
    ) -> Floats:
        """Forecasts (series, steps) on the original scale.

        `error_std`: standard deviation of one-step errors on the transformed scale, for the bias
        correction of power transformations; inverse differences accumulate it.
        """
        y = forecasts * scales["scale"][:, None] + scales["centre"][:, None]
        n_errors = np.ones(y.shape)
        for lag, tail in zip(reversed(self.differences), reversed(tails), strict=True):
            y = np.concatenate([tail, y], axis=1)
            for step in range(lag, y.shape[1]):
                y[:, step] += y[:, step - lag]
            y = y[:, lag:]
            n_errors = n_errors * (1 + np.arange(y.shape[1]) // lag)
        rows = elapsed[:, None] + np.arange(y.shape[1])
        y = y + scales["line"][:, :1] + scales["line"][:, 1:] * rows
        power, unit = scales["power"][:, None], scales["unit"][:, None]
        if error_std is None or self.power_method is None:
            return np.asarray(inverse_box_cox(y, power) * unit)
        deviation = (error_std * scales["scale"])[:, None] * np.sqrt(n_errors)
        return np.asarray(np.mean([inverse_box_cox(y + node * deviation, power) for node in NORMAL_NODES], axis=0) * unit)

    def difference_and_scale(self, y: Floats, indptr: Ints, scales: Mapping[str, Any], step: int = 0) -> Floats:
        """Standardized differences for a step; 0 for constant series."""
        terms = 1  # of one-step changes: a difference over two seasons is the sum of two seasonal ones
        for lag, multiple in zip(self.differences, self.lags_at(step), strict=True):
            y = difference(y, indptr, multiple)
            terms *= multiple // lag
        lengths, scale = np.diff(indptr), np.where(scales["scale"] > 0, scales["scale"], np.inf)
        return np.asarray((y - np.repeat(terms * scales["centre"], lengths)) / np.repeat(scale, lengths))

    def change_weights(self, step: int) -> Floats:
        """Coefficients of w_t = sum_j terms[j] z_{t-j}, z the changes over `differences`."""
        weights = np.ones(1)
        for lag in self.differences:
            factor = np.zeros(step // lag * lag + 1)
            factor[::lag] = 1.0
            weights = np.convolve(weights, factor)
        return weights

    def to_changes(self, forecasts: Floats, last_changes: Floats, block: int, start: int = 0) -> None:
        """Convert forecasts w (series, steps, ...) from step `start` on into changes z, in place.

        z_t = w_t - sum_{j > 0} terms[j] z_{t-j}. `last_changes`: last observed changes; without
        them, only contributions of the steps themselves.
        """
        if block == 1 or not self.differences:
            return
        for step in range(start, forecasts.shape[1]):
            weights = self.change_weights(step % block)
            for lag in np.flatnonzero(weights[1:]) + 1:
                if lag <= step:
                    forecasts[:, step] -= weights[lag] * forecasts[:, step - lag]
                elif lag - step <= last_changes.shape[1]:
                    forecasts[:, step] -= weights[lag] * last_changes[:, step - lag]

    def _apply_power(self, y: Floats, scales: Mapping[str, Any], lengths: Ints) -> Floats:
        """Apply the power of each series."""
        if self.power_method is None:
            return y
        return box_cox_transform(y / np.repeat(scales["unit"], lengths), np.repeat(scales["power"], lengths))

    def _power_units(self, panel: Panel) -> Floats:
        """Units that bring values near 1, where the Box-Cox transformation loses no digits."""
        return np.exp(segment_means(np.log(panel.y), panel.indptr)) if self.power_method == "box_cox" else np.ones(len(panel))

    def _fit_powers(self, panel: Panel, name: str) -> Floats:
        if self.power_method is None:
            return np.ones(len(panel))
        minima = _segment_reduce(np.minimum, np.where(np.isnan(panel.y), np.inf, panel.y), panel.indptr)
        invalid = np.flatnonzero(minima <= 0)
        if len(invalid):
            raise DataError(
                f"{name}: values must be positive with transform={self.power_method!r}, got {minima[invalid[0]]:g} in series "
                f"{panel.series.label(invalid[0])}; series with such values: {panel.series.labels(invalid)}. Use "
                "transform=None, or drop these series."
            )
        return np.zeros(len(panel)) if self.power_method == "log" else fit_box_cox(panel.y, panel.indptr)


def box_cox_transform(y: Floats, power: Floats) -> Floats:
    """Box-Cox transformation (y^power - 1) / power; log y for power 0, y for power 1."""
    if (power == 1).all():
        return y
    with np.errstate(invalid="ignore", divide="ignore"):
        log = np.log(y)
        transformed = np.where(power == 0, log, np.expm1(power * log) / np.where(power == 0, 1, power))
    return np.where(power == 1, y, transformed)


def inverse_box_cox(y: Floats, power: Floats) -> Floats:
    """Inverse of `box_cox_transform`."""
    if (power == 1).all():
        return y
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        inner = np.maximum(power * y, -1 + 1e-12)
        inverse = np.where(power == 0, np.exp(y), np.exp(np.log1p(inner) / np.where(power == 0, 1, power)))
    return np.where(power == 1, y, inverse)


def fit_box_cox(y: Floats, indptr: Ints) -> Floats:
    """Power of each series by profile likelihood on a grid, for normally distributed changes."""
    lengths = np.diff(indptr)
    is_observed = ~np.isnan(y)
    count = np.maximum(np.add.reduceat(is_observed, indptr[:-1], dtype=np.float64), 1)
    log = np.where(is_observed, np.log(np.where(is_observed, y, 1.0)), 0.0)
    logs = np.add.reduceat(log, indptr[:-1])
    best, power = np.full(len(lengths), -np.inf), np.ones(len(lengths))
    log_means = np.repeat(logs / count, lengths)
    for candidate in POWER_GRID:
        transformed = np.where(is_observed, box_cox_transform(np.exp(log - log_means), np.full(len(y), candidate)), np.nan)
        deviation = segment_deviations(transformed, indptr)
        likelihood = -count * np.log(deviation)
        is_better = likelihood > best
        best, power = np.where(is_better, likelihood, best), np.where(is_better, candidate, power)
    return power


def difference(y: Floats, indptr: Ints, lag: int) -> Floats:
    """Differences over `lag` rows within each series; NaN in its first rows."""
    changes = np.full(len(y), np.nan)
    changes[lag:] = y[lag:] - y[:-lag]
    first = np.arange(lag)
    heads = indptr[:-1, None] + first
    changes[heads[heads < indptr[1:, None]]] = np.nan
    return changes


def fit_lines(y: Floats, indptr: Ints) -> Floats:
    """Least-squares line of each series: value at row 0 and slope."""
    lengths = np.diff(indptr)
    row = np.arange(len(y)) - np.repeat(indptr[:-1], lengths)
    is_observed = ~np.isnan(y)
    mean_row, mean = segment_means(np.where(is_observed, row, np.nan), indptr), segment_means(y, indptr)
    row_deviation = np.where(is_observed, row - np.repeat(mean_row, lengths), 0.0)
    deviation = np.where(is_observed, y - np.repeat(mean, lengths), 0.0)
    squares = np.add.reduceat(row_deviation * row_deviation, indptr[:-1])
    slope = np.add.reduceat(row_deviation * deviation, indptr[:-1]) / np.where(squares > 0, squares, 1.0)
    return np.stack([mean - slope * mean_row, slope], axis=1)


def segment_means(y: Floats, indptr: Ints) -> Floats:
    """Mean of each series without missing values; 0 if there are none."""
    is_observed = ~np.isnan(y)
    first = y[indptr[:-1]]
    base = np.where(np.isnan(first), 0.0, first)
    total = np.add.reduceat(np.where(is_observed, y - np.repeat(base, np.diff(indptr)), 0.0), indptr[:-1])
    count = np.add.reduceat(is_observed, indptr[:-1], dtype=np.float64)
    return np.where(count > 0, base + total / np.maximum(count, 1), 0.0)


def segment_deviations(y: Floats, indptr: Ints, flat: float = 1.0, noise: Floats | float = 0.0) -> Floats:
    """Standard deviation of each series; `flat` if it is within rounding errors or `noise`."""
    lengths = np.diff(indptr)
    mean = segment_means(y, indptr)
    is_observed = ~np.isnan(y)
    deviation = np.where(is_observed, y - np.repeat(mean, lengths), 0.0)
    power = np.frexp(np.maximum(_segment_reduce(np.maximum, np.abs(deviation), indptr), np.finfo(float).tiny))[1]
    deviation = np.ldexp(deviation, -np.repeat(power, lengths))  # near 1, so that squares neither overflow nor vanish
    count = np.add.reduceat(is_observed, indptr[:-1], dtype=np.float64)
    std = np.ldexp(np.sqrt(np.add.reduceat(deviation * deviation, indptr[:-1]) / np.maximum(count, 1)), power)
    return np.where(std > np.maximum(1e-12 * np.abs(mean), noise), std, flat)


def _segment_reduce(ufunc: Any, y: Floats, indptr: Ints) -> Floats:
    return np.asarray(ufunc.reduceat(y, indptr[:-1]))


def _line_values(line: Floats, lengths: Ints, elapsed: Ints | None = None) -> Floats | float:
    if not line.any():
        return 0.0
    starts = np.cumsum(lengths) - lengths
    row = np.arange(lengths.sum()) - np.repeat(starts - (0 if elapsed is None else elapsed), lengths)
    return np.asarray(np.repeat(line[:, 0], lengths) + np.repeat(line[:, 1], lengths) * row)
