"""What a metric is given, checked at the door: real numbers, shapes that fit, no missing or infinite forecast.

Shapes, for actuals of any shape whose last axis runs over the points of one forecast:

- `forecast`, `lo`, `hi`, `reference`: that shape, models in front if there are several
- `quantile_forecast`, `samples`: one more axis, the very first, that runs over quantiles or samples
- `scale`, `squared_scale`: one number per forecast (the shape without its last axis) or one per point
- `level`: a number in (0, 100); `quantiles`: increasing numbers in (0, 1)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepforecast.errors import DataError, ParameterError, ParameterTypeError, format_value

Array = NDArray[np.float64]
MAX_MAGNITUDE = 1e300  # beyond, a sum of errors is no longer a number; NaN and infinity fail the comparison as well


def check_inputs(
    actual: ArrayLike, inputs: Mapping[str, ArrayLike | None], needs: tuple[str, ...]
) -> tuple[Array, dict[str, Array]]:
    """`actual` and the inputs named in `needs` as float64 arrays with all points in one last axis."""
    values = check_actual(actual)
    missing = [name for name in needs if inputs.get(name) is None]
    if missing:
        raise ParameterError(f"This metric needs {', '.join(needs)}; {', '.join(missing)} is not given.")
    arrays = {name: CHECKS[name](name, to_float64(name, inputs[name]), values) for name in needs}
    if "lo" in arrays and "hi" in arrays:
        _check_bounds(arrays["lo"], arrays["hi"])
    if "quantile_forecast" in arrays and len(arrays["quantile_forecast"]) != len(arrays["quantiles"]):
        raise ParameterError(
            f"The first axis of quantile_forecast runs over the quantiles: "
            f"{len(arrays['quantile_forecast'])} in the array, {len(arrays['quantiles'])} named."
        )
    return values.reshape(-1), arrays


def to_float64(name: str, values: ArrayLike | None) -> Array:
    """`values` as an array of float64; anything but real numbers is refused, masked values are missing ones."""
    try:
        array = values if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
    except ValueError as error:
        raise ParameterError(f"{name} has to be an array with equal rows: {format_value(str(error))}.") from error
    if array.dtype.kind not in "iuf":
        raise ParameterTypeError(f"{name} has to hold real numbers, got dtype {array.dtype}; convert it with .astype(float).")
    if isinstance(array, np.ma.MaskedArray):
        return np.asarray(np.ma.filled(array.astype(np.float64), np.nan))
    return np.asarray(array, dtype=np.float64)


def check_actual(actual: ArrayLike) -> Array:
    """Actuals as float64: missing values (NaN) may stand in them, infinite ones not."""
    values = to_float64("actual", actual)
    if values.ndim == 0 or values.size == 0:
        raise ParameterError(f"actual has to be an array of at least one point, got shape {values.shape}.")
    too_large = np.abs(values) >= MAX_MAGNITUDE
    if too_large.any():
        where = _first_index(too_large)
        raise DataError(
            f"Actuals have to be below {MAX_MAGNITUDE:g} in size, or missing (NaN): {values[where]} at position {_format_index(where)}; "
            f"correct it or make it missing."
        )
    return values


def _check_forecast(name: str, array: Array, actual: Array) -> Array:
    if array.ndim < actual.ndim or array.shape[array.ndim - actual.ndim :] != actual.shape:
        raise ParameterError(
            f"The last axes of {name} have to be those of actual: {array.shape} against {actual.shape} "
            f"(several models go in front, for example (models, points))."
        )
    usable = np.abs(array) < MAX_MAGNITUDE  # false for NaN too
    if not usable.all():
        where = _first_index(~usable)
        raise DataError(
            f"Forecasts have to be finite and below {MAX_MAGNITUDE:g} in size: {name} is {array[where]} at position {_format_index(where)} "
            f"({np.count_nonzero(~usable)} such values in all). Score the model on the points it forecasts only, or mend it: "
            f"none is dropped in silence."
        )
    return array.reshape(*array.shape[: array.ndim - actual.ndim], -1)


def _check_stack(name: str, array: Array, actual: Array) -> Array:
    if array.ndim <= actual.ndim or not len(array):
        what = "quantiles" if name == "quantile_forecast" else "samples"
        raise ParameterError(
            f"{name} needs a first axis over the {what} before the shape of actual: {array.shape} against {actual.shape}."
        )
    return _check_forecast(name, array, actual)


def _check_scale(name: str, array: Array, actual: Array) -> Array:
    if array.shape == actual.shape[:-1]:
        array = np.broadcast_to(array[..., np.newaxis], actual.shape)
    elif array.shape != actual.shape:
        raise ParameterError(
            f"{name} is one number per forecast, shape {actual.shape[:-1]}, or one per point, shape {actual.shape}; "
            f"got shape {array.shape}."
        )
    if np.isinf(array).any() or (array < 0).any():
        raise ParameterError(f"{name} has to be finite and not negative; compute it with seasonal_scale(train, season_length).")
    return array.reshape(-1)


def _check_quantiles(name: str, array: Array, actual: Array) -> Array:
    if array.ndim != 1 or not array.size or not (array[0] > 0 and array[-1] < 1 and (np.diff(array) > 0).all()):
        raise ParameterError(f"{name}: increasing numbers in (0, 1), for example [0.1, 0.5, 0.9]; got {format_value(array.tolist())}.")
    return array


def _check_level(name: str, array: Array, actual: Array) -> Array:
    if array.ndim:
        raise ParameterError(f"{name} is one number in (0, 100); score several levels one by one.")
    if not 0 < array < 100:
        raise ParameterError(f"{name} is a number in (0, 100), for example 95; got {format_value(array.tolist())}.")
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
    if lo.shape != hi.shape:
        raise ParameterError(f"lo and hi have to be of one shape, got {lo.shape} and {hi.shape}.")
    crossed = lo > hi
    if crossed.any():
        where = _first_index(crossed)
        raise DataError(
            f"An interval runs from lo to hi: {lo[where]} is above {hi[where]} at position {_format_index(where)} "
            f"({np.count_nonzero(crossed)} such intervals in all); were the two columns swapped?"
        )


def _first_index(mask: NDArray[np.bool_]) -> tuple[np.intp, ...]:
    return np.unravel_index(int(np.argmax(mask)), mask.shape)


def _format_index(where: tuple[np.intp, ...]) -> str:
    return ", ".join(str(int(index)) for index in where)
