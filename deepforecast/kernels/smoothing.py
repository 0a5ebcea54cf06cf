"""Simple exponential smoothing, l <- l + alpha (y - l), and its least-squares alpha."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import inner_no_alloc

Floats = NDArray[np.float64]

GOLDEN = 0.6180339887498949
SECTION_TOLERANCE, DERIVATIVE_TOLERANCE = (
    1e-9,
    3e-6,
)  # by golden sections; by the derivative, which is all but straight over so short a stretch


@inner_no_alloc
def smooth_level(values: Floats, count: int, level: float, alpha: float) -> float:
    """Level after `count` values; a NaN level starts at the first value."""
    first = 0
    if np.isnan(level) and count > 0:
        level = values[0]
        first = 1
    for row in range(first, count):
        level += alpha * (values[row] - level)
    return level


@inner_no_alloc
def smooth_two_levels(
    first_values: Floats, n_first: int, second_values: Floats, n_second: int, levels: Floats, alphas: Floats
) -> None:
    """The same for two independent series at once, in place."""
    first_level, second_level, first_start, second_start = levels[0], levels[1], 0, 0
    if np.isnan(first_level) and n_first > 0:
        first_level = first_values[0]
        first_start = 1
    if np.isnan(second_level) and n_second > 0:
        second_level = second_values[0]
        second_start = 1
    common = min(n_first - first_start, n_second - second_start)
    for row in range(common):
        first_level += alphas[0] * (first_values[first_start + row] - first_level)
        second_level += alphas[1] * (second_values[second_start + row] - second_level)
    for row in range(first_start + common, n_first):
        first_level += alphas[0] * (first_values[row] - first_level)
    for row in range(second_start + common, n_second):
        second_level += alphas[1] * (second_values[row] - second_level)
    levels[0], levels[1] = first_level, second_level


@inner_no_alloc
def overflow_scale(values: Floats, count: int) -> float:
    """Factor by which squares of the values neither overflow nor underflow."""
    largest = 0.0
    for row in range(count):
        largest = max(largest, abs(values[row]))
    return 1.0 / max(largest, 1e-300) if largest > 1e100 or 0.0 < largest < 1e-100 else 1.0


@inner_no_alloc
def fit_alpha(values: Floats, count: int, low: float, high: float, unit: float) -> float:
    """Least-squares alpha: a bound or the root of the derivative, else by golden sections."""
    if count < 2 or low >= high:
        return low
    squares, slope, other_squares, other_slope = _two_losses(values, count, low, high, unit)
    if slope >= 0.0 and other_slope >= 0.0 and squares <= other_squares:
        return low
    if slope <= 0.0 and other_slope <= 0.0 and other_squares <= squares:
        return high
    if slope >= 0.0 or other_slope <= 0.0:
        return _golden_section(values, count, low, high, unit)
    left, right, at_left, at_right, previous_width = low, high, slope, other_slope, np.inf
    for _ in range(60):
        width = right - left
        fraction = 0.5 if width > 0.5 * previous_width else at_left / (at_left - at_right)
        if width < DERIVATIVE_TOLERANCE:
            break
        previous_width, center, half_width = width, left + fraction * width, min(0.5 * width * width, 0.25 * width)
        left_alpha, right_alpha = max(center - half_width, left), min(center + half_width, right)
        _, slope, _, other_slope = _two_losses(values, count, left_alpha, right_alpha, unit)
        if slope > 0.0:
            right, at_right = left_alpha, slope
        elif other_slope > 0.0:
            left, at_left, right, at_right = left_alpha, slope, right_alpha, other_slope
        else:
            left, at_left = right_alpha, other_slope
    return float(left + at_left / (at_left - at_right) * (right - left))


@inner_no_alloc
def _two_losses(values: Floats, count: int, alpha: float, other_alpha: float, unit: float) -> Any:
    """Half the sum of squared errors and its derivative at two values of alpha."""
    level, other_level, rate, other_rate = values[0], values[0], 0.0, 0.0
    squares, other_squares, slope, other_slope = 0.0, 0.0, 0.0, 0.0
    keep, other_keep = 1.0 - alpha, 1.0 - other_alpha
    for row in range(1, count):
        value = values[row]
        error, other_error = (value - level) * unit, (value - other_level) * unit
        squares += error * error
        other_squares += other_error * other_error
        slope -= error * rate
        other_slope -= other_error * other_rate
        rate = keep * rate + error
        other_rate = other_keep * other_rate + other_error
        level = keep * level + alpha * value
        other_level = other_keep * other_level + other_alpha * value
    return squares, slope, other_squares, other_slope


@inner_no_alloc
def _golden_section(values: Floats, count: int, low: float, high: float, unit: float) -> float:
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, _, at_right, _ = _two_losses(values, count, left, right, unit)
    while high - low > SECTION_TOLERANCE:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left, _, _, _ = _two_losses(values, count, left, right, unit)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            _, _, at_right, _ = _two_losses(values, count, left, right, unit)
    return 0.5 * (low + high)
