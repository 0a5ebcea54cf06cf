"""Validation of the inputs of metrics.

Shapes, for actuals of any shape whose last axis runs over the points of one forecast:

- `forecast`, `lo`, `hi`, `reference`: that shape, with a leading axis if there are several models
- `quantile_forecast`, `samples`: one more axis, the first one, over quantiles or samples
- `scale`, `squared_scale`: one number per forecast (the shape without its last axis) or one per
point
- `level`: a number in (0, 100); `quantiles`: increasing numbers in (0, 1)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepforecast.errors import DataError, ParameterError, ParameterTypeError, format_value

Array = NDArray[np.float64]
MAX_MAGNITUDE = 1e300  # sums of larger errors would overflow; NaN and infinity fail the comparison as well


def check_inputs(
    actual: ArrayLike, inputs: Mapping[str, ArrayLike | None], needs: tuple[str, ...]
) -> tuple[Array, dict[str, Array]]:
    """`actual` and the inputs named in `needs` as float64 arrays with all points in one last
    axis."""
    values = check_actual(actual)
    missing = [name for name in needs if inputs.get(name) is None]
    if missing:
        raise ParameterError(
            f"This metric requires the inputs {', '.join(needs)}; missing: {', '.join(missing)}.", hint="Pass them by name."
        )
    arrays = {name: CHECKS[name](name, to_float64(name, inputs[name]), values) for name in needs}
    if "lo" in arrays and "hi" in arrays:
        _check_bounds(arrays["lo"], arrays["hi"])
    if "quantile_forecast" in arrays and len(arrays["quantile_forecast"]) != len(arrays["quantiles"]):
        raise ParameterError(
            f"The first axis of `quantile_forecast` must have as many entries as `quantiles`, got "
            f"{len(arrays['quantile_forecast'])} and {len(arrays['quantiles'])}.",
            parameter="quantile_forecast",
        )
    return values.reshape(-1), arrays


def to_float64(name: str, values: ArrayLike | None) -> Array:
    """`values` as a float64 array; masked values become NaN."""
    try:
        array = values if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
    except ValueError as error:
        raise ParameterError(
            f"`{name}` must be an array with rows of equal length: {format_value(str(error))}.",
            parameter=name,
        ) from error
    if array.dtype.kind not in "iuf":
        raise ParameterTypeError(
            f"`{name}` must contain real numbers, got dtype {array.dtype}.",
            hint="Use .astype(float) to convert it.",
            parameter=name,
        )
    if isinstance(array, np.ma.MaskedArray):
        return np.asarray(np.ma.filled(array.astype(np.float64), np.nan))
    return np.asarray(array, dtype=np.float64)


def check_actual(actual: ArrayLike) -> Array:
    """Actual values as float64; NaN is allowed, infinity is not."""
    values = to_float64("actual", actual)
    if values.ndim == 0 or values.size == 0:
        raise ParameterError(
            f"`actual` must be an array with at least one point, got shape {values.shape}.", parameter="actual"
        )
    too_large = np.abs(values) >= MAX_MAGNITUDE
    if too_large.any():
        index = _first_index(too_large)
        raise DataError(
            f"`actual` must be below {MAX_MAGNITUDE:g} in magnitude or missing (NaN), got {values[index]} at position "
            f"{_format_index(index)}.",
            hint="Correct it or set it to NaN.",
            parameter="actual",
        )
    return values


def _check_forecast(name: str, array: Array, actual: Array) -> Array:
    """A finite forecast whose last axes have the shape of `actual`; these are merged into one."""
    if array.ndim < actual.ndim or array.shape[array.ndim - actual.ndim :] != actual.shape:
        raise ParameterError(
            f"The last axes of `{name}` must match the shape of `actual`, got {array.shape} and {actual.shape}. Several models "
            "must be on a leading axis, e.g. (models, points).",
            parameter=name,
        )
    is_valid = np.abs(array) < MAX_MAGNITUDE  # false for NaN too
    if not is_valid.all():
        index = _first_index(~is_valid)
        raise DataError(
            f"Forecasts must be finite and below {MAX_MAGNITUDE:g} in magnitude; `{name}` is {array[index]} at position "
            f"{_format_index(index)} ({np.count_nonzero(~is_valid)} such values).",
            hint="Correct the forecasts, or drop these points.",
        )
    return array.reshape(*array.shape[: array.ndim - actual.ndim], -1)


def _check_stack(name: str, array: Array, actual: Array) -> Array:
    """Quantiles or samples: forecasts with an additional first axis."""
    if array.ndim <= actual.ndim or not len(array):
        axis_name = "quantiles" if name == "quantile_forecast" else "samples"
        raise ParameterError(
            f"`{name}` must have a first axis over the {axis_name} and then the shape of `actual`, got "
            f"{array.shape} and {actual.shape}.",
            parameter=name,
            value=array,
        )
    return _check_forecast(name, array, actual)


def _check_scale(name: str, array: Array, actual: Array) -> Array:
    """A scale of each forecast or point, repeated for each point and flat; NaN is allowed."""
    if array.shape == actual.shape[:-1]:
        array = np.broadcast_to(array[..., np.newaxis], actual.shape)
    elif array.shape != actual.shape:
        raise ParameterError(
            f"`{name}` must have one number per forecast, shape {actual.shape[:-1]}, or per point, shape {actual.shape}, "
            f"got shape {array.shape}.",
            parameter=name,
        )
    if np.isinf(array).any() or (array < 0).any():
        raise ParameterError(
            f"`{name}` must be finite and not negative, got values from {np.nanmin(array)} to {np.nanmax(array)}.",
            hint="Use seasonal_scale(train, season_length) to compute it.",
            parameter=name,
        )
    return array.reshape(-1)


def _check_quantiles(name: str, array: Array, actual: Array) -> Array:
    """Strictly increasing probabilities, shape (quantiles,)."""
    if array.ndim != 1 or not array.size or not (array[0] > 0 and array[-1] < 1 and (np.diff(array) > 0).all()):
        raise ParameterError(
            f"`{name}` must be increasing numbers between 0 and 1, e.g. [0.1, 0.5, 0.9], got {format_value(array.tolist())}.",
            parameter=name,
        )
    return array


def _check_level(name: str, array: Array, actual: Array) -> Array:
    """A level in percent as an array without axes."""
    if array.ndim:
        raise ParameterError(
            f"`{name}` must be a single number, got shape {array.shape}.",
            hint="Call the metric once for each level.",
            parameter=name,
        )
    if not 0 < array < 100:
        raise ParameterError(f"`{name}` must be above 0 and below 100, got {format_value(array.tolist())}.", parameter=name)
    return array


CHECKS: dict[str, Callable[[str, Array, Array], Array]] = {
    "forecast": _check_forecast,
    "reference": _check_forecast,
    "lo": _check_forecast,
    "hi": _check_forecast,
    "quantile_forecast": _check_stack,
    "samples": _check_stack,
    "scale": _check_scale,
    "squared_scale": _check_scale,
    "quantiles": _check_quantiles,
    "level": _check_level,
}


def _check_bounds(lo: Array, hi: Array) -> None:
    """Raise if the shapes differ or a lower bound is above its upper bound."""
    if lo.shape != hi.shape:
        raise ParameterError(
            f"`lo` and `hi` must have the same shape, got {lo.shape} and {hi.shape}.", parameter="lo", value=lo
        )
    crossed = lo > hi
    if crossed.any():
        index = _first_index(crossed)
        raise DataError(
            f"`lo` cannot be above `hi`, got {lo[index]} and {hi[index]} at position {_format_index(index)} "
            f"({np.count_nonzero(crossed)} such intervals). Were the two columns swapped?",
            parameter="lo",
        )


def _first_index(mask: NDArray[np.bool_]) -> tuple[np.intp, ...]:
    return np.unravel_index(int(np.argmax(mask)), mask.shape)


def _format_index(index: tuple[np.intp, ...]) -> str:
    return ", ".join(str(int(axis_index)) for axis_index in index)
