"""The scale of MASE, RMSSE and MSIS: the seasonal naive error inside the training data of each series."""

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
    """Mean absolute (or squared) error of the seasonal naive forecast inside the training data: the scale of MASE, RMSSE, MSIS.

    One series gives a float. Series one after the other in one array, with `indptr` (series i is
    `train[indptr[i]:indptr[i + 1]]`), give one number each; `season_length` may then differ by series. `ends`: where the
    training part of each series ends, if not with the series, as a position in `train`. Pairs with a missing value are left
    out. A constant series has scale 0; one without a single pair NaN.

    >>> seasonal_scale([1.0, 3.0, 2.0, 5.0, 5.0], season_length=1)
    1.5
    >>> seasonal_scale([1.0, 3.0, 2.0, 7.0, 7.0, 4.0], season_length=2, indptr=[0, 4, 5, 6])
    array([2.5, nan, nan])
    """
    values, starts, stops = _split_series(to_float64("train", train), indptr, ends)
    seasons = np.broadcast_to(np.asarray(season_length), starts.shape)
    if seasons.dtype.kind not in "iu" or (seasons < 1).any():
        raise ParameterError(f"season_length has to be an integer of at least 1, got {format_value(season_length)}.")
    scale = np.full(len(starts), np.nan)
    for season in np.unique(seasons).tolist():
        chosen = (seasons == season) & (stops - starts > season)
        if chosen.any():
            scale[chosen] = _season_scale(values, season, starts[chosen], stops[chosen] - season, squared)
    if np.isinf(scale).any():
        raise DataError("The training data are too large for their squares in 64-bit numbers; divide them by a constant first.")
    return scale if indptr is not None else float(scale[0])


def _split_series(values: Array, indptr: ArrayLike | None, ends: ArrayLike | None) -> tuple[Array, Integers, Integers]:
    """Training values with the start and end of each series, checked."""
    if values.ndim != 1:
        raise ParameterError(f"train has one axis, the series one after the other with indptr; got shape {values.shape}.")
    if np.isinf(values).any():
        where = int(np.argmax(np.isinf(values)))
        raise DataError(f"Training values have to be finite or missing (NaN): {values[where]} at position {where}.")
    edges = np.asarray([0, values.size] if indptr is None else indptr)
    if edges.ndim != 1 or edges.dtype.kind not in "iu" or edges.size < 2 or edges[0] < 0 or edges[-1] > values.size:
        raise ParameterError(f"indptr holds integers from 0 to the number of training values, {values.size}.")
    starts, stops = edges[:-1].astype(np.int64), edges[1:].astype(np.int64)
    if ends is not None:
        stop_values = np.asarray(ends)
        if stop_values.shape != stops.shape or stop_values.dtype.kind not in "iu" or (stop_values > stops).any():
            raise ParameterError("ends holds one integer per series, a position in train not after the end of the series.")
        stops = stop_values.astype(np.int64)
    if (stops < starts).any():
        raise ParameterError("indptr must not fall, and no series may end before it starts.")
    return values, starts, stops


def _season_scale(values: Array, season: int, starts: Integers, stops: Integers, squared: bool) -> Array:
    """Mean of the seasonal differences that begin in [start, stop), all of one season, NaN where there is none."""
    with np.errstate(over="ignore", invalid="ignore"):
        change = values[season:] - values[:-season]
        change = np.square(change, out=change) if squared else np.abs(change, out=change)
        # a stop may equal the length, which reduceat does not take: one more value makes it a position
        change = np.append(change, 0.0)
        spans = np.column_stack([starts, stops]).reshape(-1)
        sums = np.add.reduceat(change, spans)[::2]
        counts = (stops - starts).astype(np.float64)
        missing = np.isnan(change)
        if missing.any():
            sums = np.add.reduceat(np.where(missing, 0.0, change), spans)[::2]
            counts = counts - np.add.reduceat(missing.astype(np.float64), spans)[::2]
        mean = np.full(len(starts), np.nan)
        np.divide(sums, counts, out=mean, where=counts > 0)
        return mean


def nan_where_zero(scale: Array) -> Array:
    """`scale` with NaN for zero, so that what is not defined is left out and counted, not infinite."""
    return np.where(scale > 0, scale, np.nan)
