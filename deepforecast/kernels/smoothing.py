"""Simple exponential smoothing from the first value on, and its parameter of least squared one-step errors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compiling import bare

Floats = NDArray[np.float64]

GOLDEN = 0.6180339887498949
CLOSE, CLOSER = 1e-9, 3e-6  # by golden sections; by the derivative, which is all but straight over so short a stretch


@bare
def smoothed(values: Floats, count: int, level: float, alpha: float) -> float:
    """The level after some values; it starts with the first if it is NaN."""
    first = 0
    if np.isnan(level) and count > 0:
        level = values[0]
        first = 1
    for row in range(first, count):
        level += alpha * (values[row] - level)
    return level


@bare
def both_smoothed(ones: Floats, count: int, others: Floats, number: int, levels: Floats, alphas: Floats) -> None:
    """The same of two series at once, neither of which waits for the other; the levels are moved."""
    one, other, first, second = levels[0], levels[1], 0, 0
    if np.isnan(one) and count > 0:
        one = ones[0]
        first = 1
    if np.isnan(other) and number > 0:
        other = others[0]
        second = 1
    common = min(count - first, number - second)
    for row in range(common):
        one += alphas[0] * (ones[first + row] - one)
        other += alphas[1] * (others[second + row] - other)
    for row in range(first + common, count):
        one += alphas[0] * (ones[row] - one)
    for row in range(second + common, number):
        other += alphas[1] * (others[row] - other)
    levels[0], levels[1] = one, other


@bare
def unit_of(values: Floats, count: int) -> float:
    """What values are multiplied by so that their squares neither overflow nor vanish."""
    largest = 0.0
    for row in range(count):
        largest = max(largest, abs(values[row]))
    return 1.0 / max(largest, 1e-300) if largest > 1e100 or 0.0 < largest < 1e-100 else 1.0


@bare
def smoothing_parameter(values: Floats, count: int, low: float, high: float, unit: float) -> float:
    """The parameter of least squared errors: a bound, or where the derivative is 0; by golden sections if that is not plain."""
    if count < 2 or low >= high:
        return low
    squares, slope, other_squares, other_slope = _both(values, count, low, high, unit)
    if slope >= 0.0 and other_slope >= 0.0 and squares <= other_squares:
        return low
    if slope <= 0.0 and other_slope <= 0.0 and other_squares <= squares:
        return high
    if slope >= 0.0 or other_slope <= 0.0:
        return _by_sections(values, count, low, high, unit)
    left, right, at_left, at_right, before = low, high, slope, other_slope, np.inf
    for _ in range(60):
        width = right - left
        share = 0.5 if width > 0.5 * before else at_left / (at_left - at_right)
        if width < CLOSER:
            break
        before, place, around = width, left + share * width, min(0.5 * width * width, 0.25 * width)
        one, other = max(place - around, left), min(place + around, right)
        _, slope, _, other_slope = _both(values, count, one, other, unit)
        if slope > 0.0:
            right, at_right = one, slope
        elif other_slope > 0.0:
            left, at_left, right, at_right = one, slope, other, other_slope
        else:
            left, at_left = other, other_slope
    return float(left + at_left / (at_left - at_right) * (right - left))


@bare
def _both(values: Floats, count: int, one: float, other: float, unit: float) -> Any:
    """Half the sum of squared errors and its derivative, at two parameters at a time."""
    level, other_level, rate, other_rate = values[0], values[0], 0.0, 0.0
    squares, other_squares, slope, other_slope = 0.0, 0.0, 0.0, 0.0
    keep, other_keep = 1.0 - one, 1.0 - other
    for row in range(1, count):
        value = values[row]
        error, other_error = (value - level) * unit, (value - other_level) * unit
        squares += error * error
        other_squares += other_error * other_error
        slope -= error * rate
        other_slope -= other_error * other_rate
        rate = keep * rate + error
        other_rate = other_keep * other_rate + other_error
        level = keep * level + one * value
        other_level = other_keep * other_level + other * value
    return squares, slope, other_squares, other_slope


@bare
def _by_sections(values: Floats, count: int, low: float, high: float, unit: float) -> float:
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, _, at_right, _ = _both(values, count, left, right, unit)
    while high - low > CLOSE:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left, _, _, _ = _both(values, count, left, right, unit)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            _, _, at_right, _ = _both(values, count, left, right, unit)
    return 0.5 * (low + high)
