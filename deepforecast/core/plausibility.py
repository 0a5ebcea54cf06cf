"""Checks of forecasts: they must be finite; warnings if they are far outside the history of their series.

A forecast is implausible if a 95 % prediction interval is wider than MAX_WIDTH_RATIO times the
range of the history, or if a point forecast is outside of it by more than MAX_DISTANCE_RATIO times
that range. For intervals of other levels the limit is scaled by the quantiles of the normal
distribution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from deepforecast.core.forecast import SampledForecast, level_probabilities, output_columns
from deepforecast.data.frames import Floats
from deepforecast.errors import DataError, warn

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster
    from deepforecast.core.state import State
    from deepforecast.data.panel import Series


def check_finite(values: Floats, state: State, name: str, distribution_model: Forecaster | None = None) -> Floats:
    """Return the values, shape (series, ...), if all are finite; otherwise raise `DataError` with the cause.

    `distribution_model` is the model, if the values are quantiles or samples rather than point
    forecasts.
    """
    if np.isfinite(values).all():
        return values
    axes = tuple(range(1, values.ndim))
    has_nan = np.isnan(values).any(axis=axes)
    # one cause per message: NaN before infinity
    bad_series = np.flatnonzero(has_nan if has_nan.any() else np.isinf(values).any(axis=axes))
    target = state.series.columns.target
    reason = f"the values of column {target} are too large for float64. Rescale them, or leave these series out"
    if has_nan.any() and distribution_model is None:
        reason = "the model returned NaN. Leave these series out, or use another model"
    elif has_nan.any() and distribution_model is not None:
        min_observations = distribution_model._min_observations_for_spread(state.learned)
        counts_text = ""
        if min_observations is not None:
            counts_text = f": at least {min_observations} are required, and fit had {min_observations - 1}"
        reason = (
            f"the values of column {target} are too few to estimate the error variance{counts_text}. "
            "Fit longer series, or leave out level="
        )
    raise DataError(
        f"Forecasts must be finite, but those of {name} for series {state.series.labels(bad_series)} are not: {reason}.",
        series=state.series.id_texts(bad_series),
    )


LIMITS = MAX_WIDTH_RATIO, MAX_DISTANCE_RATIO = 20.0, 3.0
ROUNDING = 1e-6
"""Assumed range of a constant series, relative to its value: the size of numerical errors."""
MIN_RANGE = 1e-300  # assumed range of a series of zeros
MIN_PATHS = 20  # fewer sample paths are not checked for implausible values
MAX_SHOWN_RATIO = 1000  # larger ratios are shown as "over 1,000"


def check_columns(
    columns: Mapping[str, Floats], state: State, model: Forecaster, levels: Sequence[float], quantiles: Sequence[float]
) -> None:
    """Raise if a forecast is not finite, and warn about series with implausible forecasts.

    `columns` are the `output_columns` for these levels and quantiles.
    """
    for label, values in columns.items():
        may_be_missing = label != model.name and model.on_failure != "raise"  # `warn_of_missing_intervals` lists them
        if not may_be_missing and not np.isfinite(values).all():
            distribution_model = None if label == model.name else model
            check_finite(values.reshape(len(state.series), -1), state, label, distribution_model=distribution_model)
    warn_of_far_forecasts(model.name, state.series, range_ratios(columns, state.value_range, levels, quantiles))


def check_paths(paths: Floats, state: State, model: Forecaster) -> None:
    """Check sample paths, shape (series, samples, steps), like forecasts with a 95 % interval.

    With fewer than MIN_PATHS paths, only that they are finite.
    """
    check_finite(paths.reshape(len(state.series), -1), state, model.name, distribution_model=model)
    if state.value_range is not None and paths.shape[1] >= MIN_PATHS:
        lowest, highest = state.value_range.T
        max_distance = MAX_DISTANCE_RATIO * (highest - lowest)
        outside = (paths.max(axis=(1, 2)) - highest > max_distance) | (lowest - paths.min(axis=(1, 2)) > max_distance)
        series = np.flatnonzero(outside)  # the means and quantiles of the others are within the limits
        if len(series):
            columns = output_columns(SampledForecast(paths[series]), model.name, "mean", [95.0], [])
            ratios = np.zeros((len(outside), 2))
            ratios[series] = range_ratios(columns, state.value_range[series], [95.0])
            warn_of_far_forecasts(model.name, state.series, ratios)


def range_ratios(
    columns: Mapping[str, Floats], extremes: Floats | None, levels: Sequence[float], quantiles: Sequence[float] = ()
) -> Floats:
    """Width of the widest 95 % interval, and distance of the farthest point from the history, per series; shape (series, 2).

    Both are in units of the range of the history, the difference of the two `extremes`. `columns` are
    the `output_columns` for these levels and quantiles. The width of intervals of other levels is
    rescaled so that the same limit applies. NaN if a forecast is NaN or the `extremes` are unknown.
    """
    point, *bounds = columns.values()
    if extremes is None:
        return np.full((1, 2), np.nan)
    if not len(extremes):
        return np.zeros((0, 2))
    lowest, highest = extremes.T[:, :, None]
    shape = (len(highest), -1)
    with np.errstate(over="ignore", invalid="ignore"):
        extent = highest - lowest
        if not (extent > 0.0).all():
            extent = np.where(extent > 0.0, extent, np.maximum(ROUNDING * np.abs(highest), MIN_RANGE))
        steps = point.reshape(shape)
        distance = np.maximum(steps - highest, lowest - steps) / extent
        width = np.zeros((len(steps), 1))  # (series, 1 or steps)
        for index, level in enumerate(levels):
            lower, upper = bounds[2 * index : 2 * index + 2]
            interval_width = (upper - lower).reshape(shape) / extent
            width = np.maximum(width, interval_width * (MAX_WIDTH_RATIO / _max_width(level_probabilities(level)[1])))
        for probability, values in zip(quantiles, bounds[2 * len(levels) :], strict=True):
            quantile_width = 2.0 * np.abs(values - point).reshape(shape) / extent
            width = np.maximum(width, quantile_width * (MAX_WIDTH_RATIO / _max_width(probability)))
    ratios = np.empty((len(steps), 2))
    width.max(axis=1, initial=0.0, out=ratios[:, 0])
    distance.max(axis=1, initial=0.0, out=ratios[:, 1])
    return ratios


def warn_of_far_forecasts(name: str, series: Series, ratios: Floats) -> None:
    """Warn about the series whose `range_ratios` exceed a limit."""
    exceeds = ratios > LIMITS
    numbers = np.flatnonzero(exceeds.any(axis=1))
    if not len(numbers):
        return
    descriptions = [
        f"over {MAX_SHOWN_RATIO:,}" if ratio > MAX_SHOWN_RATIO else f"up to {ratio:.2g}" for ratio in np.nanmax(ratios, axis=0)
    ]
    violations = (
        [f"95 % intervals are {descriptions[0]} times as wide as the range of the history"] if exceeds[:, 0].any() else []
    )
    if exceeds[:, 1].any():
        violations.append(f"point forecasts are outside of the history by {descriptions[1]} times its range")
    warn(
        f"{name}: forecasts of series {series.labels(numbers)} lie far outside the history: {' and '.join(violations)}. Use a "
        "shorter horizon or another model for these series.",
        subject=name,
    )


def _max_width(probability: float) -> float:
    """Largest plausible width of the central interval with an end at this quantile, in units of the range of the history."""
    ratio = abs(NormalDist().inv_cdf(probability)) / NormalDist().inv_cdf(0.975)
    return max(MAX_WIDTH_RATIO * ratio, 2.0 * MAX_DISTANCE_RATIO)
