"""Simple exponential smoothing, l <- l + alpha (y - l), and its least-squares alpha.

The arrays may be longer than the number of values passed next to them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import inner_no_alloc

Floats = NDArray[np.float64]

GOLDEN = 0.6180339887498949  # (sqrt(5) - 1) / 2
SECTION_TOLERANCE = 1e-9  # width of the bracket of alpha at the end of a golden-section search
DERIVATIVE_TOLERANCE = 3e-6  # width at which the derivative is nearly linear, so that its root is interpolated
MAX_BRACKET_STEPS = 60


@inner_no_alloc
def smooth_level(values: Floats, n_values: int, level: float, alpha: float) -> float:
    """Level after `n_values` values, starting from `level`; a NaN level starts at the first value."""
    start = 0
    if np.isnan(level) and n_values > 0:
        level = values[0]
        start = 1
    for t in range(start, n_values):
        level += alpha * (values[t] - level)
    return level


@inner_no_alloc
def smooth_two_levels(
    first_values: Floats, n_first: int, second_values: Floats, n_second: int, levels: Floats, alphas: Floats
) -> None:
    """Update `levels` (2,) in place as `smooth_level`, for two independent series at once, each with its alpha.

    Two chains of dependent operations in one loop take hardly longer than one.
    """
    first_level, second_level = levels[0], levels[1]
    first_start, second_start = 0, 0
    if np.isnan(first_level) and n_first > 0:
        first_level = first_values[0]
        first_start = 1
    if np.isnan(second_level) and n_second > 0:
        second_level = second_values[0]
        second_start = 1
    n_common = min(n_first - first_start, n_second - second_start)
    for t in range(n_common):
        first_level += alphas[0] * (first_values[first_start + t] - first_level)
        second_level += alphas[1] * (second_values[second_start + t] - second_level)
    for t in range(first_start + n_common, n_first):
        first_level += alphas[0] * (first_values[t] - first_level)
    for t in range(second_start + n_common, n_second):
        second_level += alphas[1] * (second_values[t] - second_level)
    levels[0], levels[1] = first_level, second_level


@inner_no_alloc
def overflow_scale(values: Floats, n_values: int) -> float:
    """Factor by which squares of the values neither overflow nor underflow; 1 for values of usual size."""
    largest = 0.0
    for t in range(n_values):
        largest = max(largest, abs(values[t]))
    return 1.0 / max(largest, 1e-300) if largest > 1e100 or 0.0 < largest < 1e-100 else 1.0


@inner_no_alloc
def fit_alpha(values: Floats, n_values: int, low: float, high: float, scale: float) -> float:
    """Least-squares alpha in [low, high]: a bound or the root of the derivative, else by golden sections.

    The level starts at the first value. The bracket is narrowed by regula falsi, with bisection if it
    shrinks by less than half, and two points around each new alpha. `scale`: see `overflow_scale`.
    """
    if n_values < 2 or low >= high:
        return low
    low_loss, low_slope, high_loss, high_slope = _two_losses(values, n_values, low, high, scale)
    if low_slope >= 0.0 and high_slope >= 0.0 and low_loss <= high_loss:
        return low
    if low_slope <= 0.0 and high_slope <= 0.0 and high_loss <= low_loss:
        return high
    if low_slope >= 0.0 or high_slope <= 0.0:
        return _golden_section(values, n_values, low, high, scale)
    left = low
    right = high
    left_derivative = low_slope
    right_derivative = high_slope
    previous_width = np.inf
    for _ in range(MAX_BRACKET_STEPS):
        width = right - left
        shrinks_slowly = width > 0.5 * previous_width
        fraction = 0.5 if shrinks_slowly else left_derivative / (left_derivative - right_derivative)
        if width < DERIVATIVE_TOLERANCE:
            break
        previous_width = width
        center = left + fraction * width
        half_width = min(0.5 * width * width, 0.25 * width)
        left_alpha, right_alpha = max(center - half_width, left), min(center + half_width, right)
        _, left_slope, _, right_slope = _two_losses(values, n_values, left_alpha, right_alpha, scale)
        if left_slope > 0.0:
            right, right_derivative = left_alpha, left_slope
        elif right_slope > 0.0:
            left = left_alpha
            left_derivative = left_slope
            right = right_alpha
            right_derivative = right_slope
        else:
            left, left_derivative = right_alpha, right_slope
    return float(left + left_derivative / (left_derivative - right_derivative) * (right - left))


@inner_no_alloc
def _two_losses(values: Floats, n_values: int, alpha: float, other_alpha: float, scale: float) -> Any:
    """Return sum of squared errors and half its derivative at `alpha`, then the same at `other_alpha`.

    Errors are multiplied by `scale`. `level_derivative` is the derivative of the level by alpha.
    """
    level = values[0]
    other_level = values[0]
    level_derivative = 0.0
    other_level_derivative = 0.0
    loss, other_loss, slope, other_slope = 0.0, 0.0, 0.0, 0.0
    keep, other_keep = 1.0 - alpha, 1.0 - other_alpha
    for t in range(1, n_values):
        value = values[t]
        error, other_error = (value - level) * scale, (value - other_level) * scale
        loss += error * error
        other_loss += other_error * other_error
        slope -= error * level_derivative
        other_slope -= other_error * other_level_derivative
        level_derivative = keep * level_derivative + error
        other_level_derivative = other_keep * other_level_derivative + other_error
        level = keep * level + alpha * value
        other_level = other_keep * other_level + other_alpha * value
    return loss, slope, other_loss, other_slope


@inner_no_alloc
def _golden_section(values: Floats, n_values: int, low: float, high: float, scale: float) -> float:
    """Alpha that minimizes the sum of squared errors, by golden-section search; a local minimum if there are several."""
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    left_loss, _, right_loss, _ = _two_losses(values, n_values, left, right, scale)
    while high - low > SECTION_TOLERANCE:
        if left_loss <= right_loss:
            high = right
            right = left
            right_loss = left_loss
            left = high - GOLDEN * (high - low)
            left_loss, _, _, _ = _two_losses(values, n_values, left, right, scale)
        else:
            low = left
            left = right
            left_loss = right_loss
            right = low + GOLDEN * (high - low)
            _, _, right_loss, _ = _two_losses(values, n_values, left, right, scale)
    return 0.5 * (low + high)
