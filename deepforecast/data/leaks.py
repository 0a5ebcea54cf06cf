"""Columns said to be known ahead that are the target itself, or nearly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import say, some

TOO_CLOSE = 0.999
ENOUGH = 8  # pairs of values below which a correlation says nothing


def say_leaks(panel: Panel) -> None:
    """Name the columns that look like leaks."""
    found = leak(panel)
    if found:
        say(
            f"Columns said to be known ahead follow the target nearly exactly: {some(found)}. If their future values are not "
            "known when forecasting, declare them as past."
        )


def leak(panel: Panel) -> list[str]:
    """The numeric columns known ahead whose correlation with the target, or with that of the step before or after, is beyond
    0.999 in half of the series or more."""
    found = []
    for name in panel.series.columns.future:
        one = panel.covariates[name]
        if one.categories is None and _is_target(one.values, panel.y, panel.indptr):
            found.append(name)
    return found


def _is_target(x: Floats, y: Floats, indptr: Ints) -> bool:
    begin, end = indptr[:-1], indptr[1:]
    return _close(x, y, begin, end) or _close(x[:-1], y[1:], begin, end - 1) or _close(x[1:], y[:-1], begin, end - 1)


def _close(x: Floats, y: Floats, begin: Ints, end: Ints) -> bool:
    """Whether |correlation| is beyond the limit in half of the stretches `begin[i]:end[i]` that can tell."""
    there = ~(np.isnan(x) | np.isnan(y))
    count = _sums(there.astype(np.float64), begin, end)
    x, y = (_centred(np.where(there, values, 0.0), there, count, begin, end) for values in (x, y))
    xx, yy, xy = _sums(x * x, begin, end), _sums(y * y, begin, end), _sums(x * y, begin, end)
    tell = (count >= ENOUGH) & (xx > 0) & (yy > 0)
    if not tell.any():
        return False
    close = np.abs(xy[tell]) > TOO_CLOSE * np.sqrt(xx[tell]) * np.sqrt(yy[tell])
    return bool(2 * np.count_nonzero(close) >= len(close))


def _centred(values: Floats, there: NDArray[np.bool_], count: Floats, begin: Ints, end: Ints) -> Floats:
    """Values less the mean of their stretch, over their largest size, so that no square overflows."""
    largest = np.abs(values).max() if len(values) else 0.0
    values = values / largest if largest > 0 else values
    mean = _sums(values, begin, end) / np.maximum(count, 1)
    away = np.zeros(len(values))
    lengths = np.maximum(end - begin, 0)
    rows = np.arange(lengths.sum()) + np.repeat(begin - np.append(0, np.cumsum(lengths)[:-1]), lengths)
    away[rows] = np.where(there[rows], values[rows] - np.repeat(mean, lengths), 0.0)
    return away


def _sums(values: Floats, begin: Ints, end: Ints) -> Floats:
    """The sum of each stretch; 0 where it is empty."""
    found = np.zeros(len(begin))
    filled = np.flatnonzero(end > begin)
    if len(filled):
        bounds = np.stack([begin[filled], end[filled]], axis=1).reshape(-1)
        bounds = bounds[:-1] if bounds[-1] == len(values) else bounds
        found[filled] = np.add.reduceat(values, bounds)[::2]
    return found
