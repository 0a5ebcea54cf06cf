"""Detection of future covariates that are almost perfectly correlated with the target."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import format_list, warn

MAX_CORRELATION = 0.999
MIN_PAIRS = 8  # minimum number of pairs for a correlation


def warn_of_leakage(panel: Panel) -> None:
    """Warn of future covariates that look like target leakage."""
    leaking = leaking_columns(panel)
    if leaking:
        warn(
            "Future covariates are almost perfectly correlated with the target: "
            f"{format_list(leaking)}. Declare them as past covariates if their values are not known "
            "when forecasting."
        )


def leaking_columns(panel: Panel) -> list[str]:
    """Numeric future covariates whose |correlation| with the target exceeds 0.999 in at least half of the series.

    The target of the previous and of the next step are checked, too.
    """
    leaking = []
    for name in panel.series.columns.future:
        covariate = panel.covariates[name]
        if covariate.categories is None and _follows_target(covariate.values, panel.y, panel.indptr):
            leaking.append(name)
    return leaking


def _follows_target(x: Floats, y: Floats, indptr: Ints) -> bool:
    """Whether `x` is almost perfectly correlated with the target of the same, the next or the previous step."""
    starts, stops = indptr[:-1], indptr[1:]
    return (
        _is_correlated(x, y, starts, stops)
        or _is_correlated(x[:-1], y[1:], starts, stops - 1)
        or _is_correlated(x[1:], y[:-1], starts, stops - 1)
    )


def _is_correlated(x: Floats, y: Floats, starts: Ints, stops: Ints) -> bool:
    """Whether |correlation| exceeds MAX_CORRELATION in at least half of the segments `starts[i]:stops[i]`.

    Segments with fewer than MIN_PAIRS pairs or a constant variable are left out; False if no segment is left.
    """
    is_observed = ~(np.isnan(x) | np.isnan(y))
    n_pairs = _sums(is_observed.astype(np.float64), starts, stops)
    x, y = (_center(np.where(is_observed, values, 0.0), is_observed, n_pairs, starts, stops) for values in (x, y))
    xx, yy, xy = _sums(x * x, starts, stops), _sums(y * y, starts, stops), _sums(x * y, starts, stops)
    is_informative = (n_pairs >= MIN_PAIRS) & (xx > 0) & (yy > 0)
    if not is_informative.any():
        return False
    exceeds = np.abs(xy[is_informative]) > MAX_CORRELATION * np.sqrt(xx[is_informative]) * np.sqrt(yy[is_informative])
    return bool(2 * np.count_nonzero(exceeds) >= len(exceeds))


def _center(values: Floats, is_observed: NDArray[np.bool_], n_pairs: Floats, starts: Ints, stops: Ints) -> Floats:
    """Subtract the mean of each segment; 0 where not observed and outside of the segments.

    The values are first divided by the largest one, so that no square overflows.
    """
    largest = np.abs(values).max() if len(values) else 0.0
    values = values / largest if largest > 0 else values
    mean = _sums(values, starts, stops) / np.maximum(n_pairs, 1)
    centered = np.zeros(len(values))
    lengths = np.maximum(stops - starts, 0)
    rows = np.arange(lengths.sum()) + np.repeat(starts - np.append(0, np.cumsum(lengths)[:-1]), lengths)
    centered[rows] = np.where(is_observed[rows], values[rows] - np.repeat(mean, lengths), 0.0)
    return centered


def _sums(values: Floats, starts: Ints, stops: Ints) -> Floats:
    """The sum of each segment; 0 if it is empty."""
    sums = np.zeros(len(starts))
    non_empty = np.flatnonzero(stops > starts)
    if len(non_empty):
        bounds = np.stack([starts[non_empty], stops[non_empty]], axis=1).reshape(-1)
        bounds = bounds[:-1] if bounds[-1] == len(values) else bounds  # reduceat takes no bound at the end
        sums[non_empty] = np.add.reduceat(values, bounds)[::2]  # the odd elements sum the rows between segments
    return sums
