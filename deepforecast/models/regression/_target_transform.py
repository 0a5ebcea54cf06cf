"""Transformation of the target per series and its inverse: power, trend, differences, scale.

Step by step, for series y with period lags m_1, m_2, ... in `differences`:

    w_t = box_cox(y_t / unit, power) - (line_0 + line_1 t)
    c_t = (1 - B^m_1) (1 - B^m_2) ... w_t              with the backshift operator B
    z_t = (c_t - centre) / scale                       0 for constant series

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

POWER_GRID = np.linspace(-1.0, 2.0, 61)  # candidates for the Box-Cox power
RELATIVE_NOISE = 1e-13  # rounding errors of differenced periodic series, relative to the largest value
NEGATIVE_NODES = np.array([-1.6448536, -1.0364334, -0.6744898, -0.3853205, -0.1256613])
NORMAL_NODES = np.concatenate([NEGATIVE_NODES, -NEGATIVE_NODES])
"""Normal quantiles at 5, 15, ..., 95 %, over which a back-transformed distribution is averaged to get its mean."""


@dataclass(frozen=True)
class TargetTransform:
    """Steps of the transformation, in order.

    `power_method`: "log", "box_cox" or None. `differences`: lags, applied one after the other. `scale`: whether to
    standardize after differencing.
    """

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
        """Transformed target (NaN where differences are undefined), and the scales of each series.

        Scales: "power", "unit", "line" (value at the first row and slope), "drift", "centre" and "scale". `DataError` if a
        series has values of 0 or less and there is a power transformation; `name` is that of the model in the message.
        """
        scales = {"power": self._fit_powers(panel, name), "unit": self._power_units(panel), "line": np.zeros((len(panel), 2))}
        y = self._apply_power(panel.y, scales, panel.lengths)
        if self.detrend:
            scales["line"] = fit_lines(y, panel.indptr)
        y = y - _line_values(scales["line"], panel.lengths)
        scales.update(self.measure_scales(y, panel.indptr))
        return self.difference_and_scale(y, panel.indptr, scales), scales

    def measure_scales(self, y: Floats, indptr: Ints) -> dict[str, Floats]:
        """Drift, centre and scale (series,) of values before differencing.

        The mean change over the longest difference, and mean and standard deviation after
        differencing; a scale of 0 marks a constant series.
        """
        n_series = len(indptr) - 1
        largest = _segment_reduce(np.maximum, np.where(np.isnan(y), 0.0, np.abs(y)), indptr)
        drift = segment_means(difference(y, indptr, self.longest_lag), indptr) if self.differences else np.zeros(n_series)
        for lag in self.differences:
            y = difference(y, indptr, lag)
        if not self.scale:
            return {"drift": drift, "centre": np.zeros(n_series), "scale": np.ones(n_series)}
        scale = segment_deviations(y, indptr, 0.0, RELATIVE_NOISE * largest)
        return {"drift": drift, "centre": segment_means(y, indptr), "scale": scale}

    def apply(self, y: Floats, indptr: Ints, scales: Mapping[str, Any], elapsed: Ints) -> Floats:
        """Transform rows; `elapsed`: number of rows between the start of the training data and the first of these rows."""
        return self.difference_and_scale(self.detrend_power(y, indptr, scales, elapsed), indptr, scales)

    def detrend_power(self, y: Floats, indptr: Ints, scales: Mapping[str, Any], elapsed: Ints) -> Floats:
        """Power transformation and detrending, before differencing."""
        lengths = np.diff(indptr)
        return np.asarray(self._apply_power(y, scales, lengths) - _line_values(scales["line"], lengths, elapsed))

    def start_values(self, y: Floats, indptr: Ints, drift: Floats, block: int = 1) -> Floats:
        """Values (series, values) from which inverse differences start: the last ones of each series.

        Missing values are replaced by the value `longest_lag` rows before plus the drift; values
        before the start of a series, by its first value.
        """
        from deepforecast.kernels import features as kernel

        if not self.differences:
            return np.empty((len(drift), 0))
        if np.isnan(y).any():
            y = y.copy()
            kernel.fill_missing(y, indptr, self.longest_lag, drift)
        tail = _recent_values.tail(y, indptr, self.n_start_values(block))
        first_observed = np.argmax(~np.isnan(tail), axis=1)[:, None]
        return np.where(np.isnan(tail), np.take_along_axis(tail, first_observed, axis=1), tail)

    def transform_tail(self, tail: Floats, scales: Mapping[str, Any], elapsed: Ints) -> Floats:
        """Transform the last values (series, values), without those lost by differencing.

        `elapsed`: number of rows from the start of the training data to the last value, both included.
        """
        n_series, n_values = tail.shape
        indptr = np.arange(n_series + 1) * n_values
        transformed = self.apply(tail.reshape(-1), indptr, scales, elapsed - n_values)
        return transformed.reshape(n_series, n_values)[:, self.n_lost :]

    def difference_starts(self, ends: Floats) -> list[Floats]:
        """For each difference, the last `lag` values before it is taken, (series, lag)."""
        starts = []
        for lag in self.differences:
            starts.append(ends[:, -lag:])
            ends = ends[:, lag:] - ends[:, :-lag]
        return starts

    def invert(
        self, forecasts: Floats, scales: Mapping[str, Any], starts: list[Floats], elapsed: Ints, error_std: Floats | None = None
    ) -> Floats:
        """Forecasts (series, steps) on the original scale.

        `starts`: result of `difference_starts`. `elapsed`: number of rows from the start of the training data to the last
        value. `error_std`: standard deviation of one-step errors on the transformed scale, for the bias
        correction of power transformations; inverse differences accumulate it. Without it, the
        result is the median if that of `forecasts` is.
        """
        y = forecasts * scales["scale"][:, None] + scales["centre"][:, None]
        n_errors = np.ones(y.shape)  # number of independent one-step errors in the forecast
        for lag, start in zip(reversed(self.differences), reversed(starts), strict=True):
            y = np.concatenate([start, y], axis=1)
            for step in range(lag, y.shape[1]):
                y[:, step] += y[:, step - lag]
            y = y[:, lag:]
            n_errors = n_errors * (1 + np.arange(y.shape[1]) // lag)
        row_numbers = elapsed[:, None] + np.arange(y.shape[1])
        y = y + scales["line"][:, :1] + scales["line"][:, 1:] * row_numbers
        power, unit = scales["power"][:, None], scales["unit"][:, None]
        if error_std is None or self.power_method is None:
            return np.asarray(inverse_box_cox(y, power) * unit)
        deviation = (error_std * scales["scale"])[:, None] * np.sqrt(n_errors)
        return np.asarray(np.mean([inverse_box_cox(y + node * deviation, power) for node in NORMAL_NODES], axis=0) * unit)

    def difference_and_scale(self, y: Floats, indptr: Ints, scales: Mapping[str, Any], step: int = 0) -> Floats:
        """Standardized differences for step `step` of a block, see `lags_at`; 0 for constant series."""
        n_changes = 1  # in one of these differences: one over two seasons is the sum of two seasonal differences
        for lag, multiple in zip(self.differences, self.lags_at(step), strict=True):
            y = difference(y, indptr, multiple)
            n_changes *= multiple // lag
        lengths, scale = np.diff(indptr), np.where(scales["scale"] > 0, scales["scale"], np.inf)
        return np.asarray((y - np.repeat(n_changes * scales["centre"], lengths)) / np.repeat(scale, lengths))

    def change_weights(self, step: int) -> Floats:
        """Coefficients a_j of d_t = sum_j a_j z_{t-j}: the differences d over `lags_at(step)`, the changes z over `differences`.

        They are those of the product of 1 + B^m + B^2m + ... over the lags m in `differences`.
        """
        weights = np.ones(1)
        for lag in self.differences:
            factor = np.zeros(step // lag * lag + 1)
            factor[::lag] = 1.0
            weights = np.convolve(weights, factor)
        return weights

    def to_changes(self, forecasts: Floats, last_changes: Floats, block: int, start: int = 0) -> None:
        """Convert forecasts d (series, steps, ...) from step `start` on into changes z, in place.

        z_t = d_t - sum_{j > 0} a_j z_{t-j}, with a = `change_weights(step)`. `last_changes`: last observed changes
        (series, values); terms before these are left out.
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
        """Box-Cox transformation of y / unit with the power of each series."""
        if self.power_method is None:
            return y
        return box_cox_transform(y / np.repeat(scales["unit"], lengths), np.repeat(scales["power"], lengths))

    def _power_units(self, panel: Panel) -> Floats:
        """Units that bring values near 1, where the Box-Cox transformation loses no digits."""
        return np.exp(segment_means(np.log(panel.y), panel.indptr)) if self.power_method == "box_cox" else np.ones(len(panel))

    def _fit_powers(self, panel: Panel, name: str) -> Floats:
        """Box-Cox power of each series: 0 for "log", 1 without a power transformation."""
        if self.power_method is None:
            return np.ones(len(panel))
        minima = _segment_reduce(np.minimum, np.where(np.isnan(panel.y), np.inf, panel.y), panel.indptr)
        invalid = np.flatnonzero(minima <= 0)
        if len(invalid):
            raise DataError(
                f"{name}: values must be positive with transform={self.power_method!r}, got {minima[invalid[0]]:g} in series "
                f"{panel.series.label(invalid[0])}; series with such values: {panel.series.labels(invalid)}.",
                hint="Use transform=None, or drop these series.",
                series=panel.series.id_texts(invalid),
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
    """Box-Cox power of each series with the largest profile likelihood on `POWER_GRID`.

    Box and Cox (1964), section 3, for independent normal values: with the series divided by its geometric mean, the
    log-likelihood is -n log(standard deviation of the transformed values).
    """
    lengths = np.diff(indptr)
    is_observed = ~np.isnan(y)
    n_observed = np.maximum(np.add.reduceat(is_observed, indptr[:-1], dtype=np.float64), 1)
    log = np.where(is_observed, np.log(np.where(is_observed, y, 1.0)), 0.0)
    log_sums = np.add.reduceat(log, indptr[:-1])
    max_likelihood = np.full(len(lengths), -np.inf)
    power = np.ones(len(lengths))
    log_means = np.repeat(log_sums / n_observed, lengths)
    for candidate in POWER_GRID:
        transformed = np.where(is_observed, box_cox_transform(np.exp(log - log_means), np.full(len(y), candidate)), np.nan)
        deviation = segment_deviations(transformed, indptr)
        likelihood = -n_observed * np.log(deviation)
        is_larger = likelihood > max_likelihood
        max_likelihood = np.where(is_larger, likelihood, max_likelihood)
        power = np.where(is_larger, candidate, power)
    return power


def difference(y: Floats, indptr: Ints, lag: int) -> Floats:
    """Differences y_t - y_{t-lag} within each series; NaN in its first `lag` rows."""
    changes = np.full(len(y), np.nan)
    changes[lag:] = y[lag:] - y[:-lag]
    first_rows = indptr[:-1, None] + np.arange(lag)
    changes[first_rows[first_rows < indptr[1:, None]]] = np.nan
    return changes


def fit_lines(y: Floats, indptr: Ints) -> Floats:
    """Least-squares line of each series, (series, 2): value at its first row, and slope per row."""
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
    """Mean of the observed values of each series; 0 if there are none. Exact for constant series."""
    is_observed = ~np.isnan(y)
    first_value = y[indptr[:-1]]
    base = np.where(np.isnan(first_value), 0.0, first_value)
    sums = np.add.reduceat(np.where(is_observed, y - np.repeat(base, np.diff(indptr)), 0.0), indptr[:-1])
    n_observed = np.add.reduceat(is_observed, indptr[:-1], dtype=np.float64)
    return np.where(n_observed > 0, base + sums / np.maximum(n_observed, 1), 0.0)


def segment_deviations(y: Floats, indptr: Ints, constant_value: float = 1.0, noise: Floats | float = 0.0) -> Floats:
    """Standard deviation of each series; `constant_value` if it is at most `noise` or relative rounding errors."""
    lengths = np.diff(indptr)
    mean = segment_means(y, indptr)
    is_observed = ~np.isnan(y)
    deviation = np.where(is_observed, y - np.repeat(mean, lengths), 0.0)
    exponent = np.frexp(np.maximum(_segment_reduce(np.maximum, np.abs(deviation), indptr), np.finfo(float).tiny))[1]
    deviation = np.ldexp(deviation, -np.repeat(exponent, lengths))  # near 1, so that squares neither overflow nor vanish
    n_observed = np.add.reduceat(is_observed, indptr[:-1], dtype=np.float64)
    std = np.ldexp(np.sqrt(np.add.reduceat(deviation * deviation, indptr[:-1]) / np.maximum(n_observed, 1)), exponent)
    return np.where(std > np.maximum(1e-12 * np.abs(mean), noise), std, constant_value)


def _segment_reduce(ufunc: Any, y: Floats, indptr: Ints) -> Floats:
    return np.asarray(ufunc.reduceat(y, indptr[:-1]))


def _line_values(line: Floats, lengths: Ints, elapsed: Ints | None = None) -> Floats | float:
    """Values of the lines of `fit_lines` at each row, whose numbers start from `elapsed` (0 by default)."""
    if not line.any():
        return 0.0
    starts = np.cumsum(lengths) - lengths
    first_row_number = 0 if elapsed is None else elapsed
    row_number = np.arange(lengths.sum()) - np.repeat(starts - first_row_number, lengths)
    return np.asarray(np.repeat(line[:, 0], lengths) + np.repeat(line[:, 1], lengths) * row_number)
