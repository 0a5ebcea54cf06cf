"""The scale of MASE, RMSSE and MSIS: the in-sample error of the seasonal naive forecast."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepforecast.errors import DataError, ParameterError, format_value
from deepforecast.evaluation.metric_inputs import to_float64

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


def seasonal_scale(
    train: ArrayLike,
    season_length: int | ArrayLike,
    indptr: ArrayLike | None = None,
    *,
    ends: ArrayLike | None = None,
    squared: bool = False,
) -> Any:
    """Compute the in-sample error of the seasonal naive forecast, which scales MASE, RMSSE and
    MSIS.

    Pairs with a missing value are left out. A constant series has scale 0, a series without a pair
    NaN.

    Parameters
    ----------
    train : array-like of shape (n,)
        Training values of one series, or of several series one after the other.
    season_length : int or array-like of int
        Season in time steps, for all series or for each.
    indptr : array-like of int, optional
        Bounds of several series: series i is `train[indptr[i]:indptr[i + 1]]`.
    ends : array-like of int, optional
        Position in `train` at which the training data of each series end. None: its last value.
    squared : bool, default False
        Whether to average squared (RMSSE) instead of absolute errors.

    Returns
    -------
    float or array
        One number per series if `indptr` is given.

    Examples
    --------
    >>> seasonal_scale([1.0, 3.0, 2.0, 5.0, 5.0], season_length=1)
    1.5
    >>> seasonal_scale([1.0, 3.0, 2.0, 7.0, 7.0, 4.0], season_length=2, indptr=[0, 4, 5, 6])
    array([2.5, nan, nan])
    """
    values, starts, stops = _split_series(to_float64("train", train), indptr, ends)
    seasons = np.broadcast_to(np.asarray(season_length), starts.shape)
    if seasons.dtype.kind not in "iu" or (seasons < 1).any():
        raise ParameterError(
            f"`season_length` must be an integer of at least 1, got {format_value(season_length)}.",
            parameter="season_length",
            value=season_length,
        )
    scale = np.full(len(starts), np.nan)
    for season in np.unique(seasons).tolist():
        is_selected = (seasons == season) & (stops - starts > season)
        if is_selected.any():
            pair_stops = stops[is_selected] - season  # pairs are numbered by their first value
            scale[is_selected] = _season_scale(values, season, starts[is_selected], pair_stops, squared=squared)
    if np.isinf(scale).any():
        raise DataError(
            "Squares of the training data must fit into float64, but they overflow. Divide the data by a constant first."
        )
    return scale if indptr is not None else float(scale[0])


def _split_series(values: Array, indptr: ArrayLike | None, ends: ArrayLike | None) -> tuple[Array, Integers, Integers]:
    """Validated training values with the start and end of each series."""
    if values.ndim != 1:
        raise ParameterError(
            f"`train` must be one-dimensional, got shape {values.shape}. Concatenate series and pass `indptr`.",
            parameter="train",
        )
    if np.isinf(values).any():
        position = int(np.argmax(np.isinf(values)))
        raise DataError(
            f"`train` must be finite or missing (NaN), got {values[position]} at position {position}.", parameter="train"
        )
    bounds = np.asarray([0, values.size] if indptr is None else indptr)
    if bounds.ndim != 1 or bounds.dtype.kind not in "iu" or bounds.size < 2 or bounds[0] < 0 or bounds[-1] > values.size:
        raise ParameterError(
            f"`indptr` must contain at least two integers from 0 to the number of training values ({values.size}), got "
            f"{format_value(bounds.tolist())}.",
            parameter="indptr",
        )
    starts = bounds[:-1].astype(np.int64)
    stops = bounds[1:].astype(np.int64)
    if ends is not None:
        stop_values = np.asarray(ends)
        if stop_values.shape != stops.shape or stop_values.dtype.kind not in "iu" or (stop_values > stops).any():
            raise ParameterError(
                "`ends` must contain one integer per series, a position in `train` that is not after the end of the series, "
                f"got {format_value(stop_values.tolist())} for series that end at {format_value(stops.tolist())}.",
                parameter="ends",
            )
        stops = stop_values.astype(np.int64)
    if (stops < starts).any():
        raise ParameterError(
            f"No series can end before it starts, got starts {format_value(starts.tolist())} and ends "
            f"{format_value(stops.tolist())}.",
            hint="Pass a non-decreasing `indptr`, and `ends` not before the starts.",
        )
    return values, starts, stops


def _season_scale(values: Array, season: int, starts: Integers, stops: Integers, squared: bool) -> Array:
    """Mean of |y_{t + season} - y_t| (or its square) over start <= t < stop, NaN without a pair of
    observed values."""
    with np.errstate(over="ignore", invalid="ignore"):
        differences = values[season:] - values[:-season]
        differences = np.square(differences, out=differences) if squared else np.abs(differences, out=differences)
        # a stop may equal the length, which reduceat does not accept: append one value
        differences = np.append(differences, 0.0)
        spans = np.column_stack([starts, stops]).reshape(-1)
        sums = np.add.reduceat(differences, spans)[::2]
        counts = (stops - starts).astype(np.float64)
        missing = np.isnan(differences)
        if missing.any():
            sums = np.add.reduceat(np.where(missing, 0.0, differences), spans)[::2]
            counts = counts - np.add.reduceat(missing.astype(np.float64), spans)[::2]
        mean = np.full(len(starts), np.nan)
        np.divide(sums, counts, out=mean, where=counts > 0)
        return mean


def nan_where_zero(scale: Array) -> Array:
    """`scale` with NaN for zero, so that points with an undefined metric are left out and
    counted."""
    return np.where(scale > 0, scale, np.nan)
