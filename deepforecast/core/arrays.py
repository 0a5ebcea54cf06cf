"""Vectorized arithmetic on ragged arrays: flat values with row pointers (`indptr`); the design matrix of future covariates.

Results of a series are bit-identical for any other series in the panel: sums run within a series
in row order, and algorithms are chosen per series.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel, Series
from deepforecast.errors import format_list, warn

if TYPE_CHECKING:
    from deepforecast.core.state import State

SAFE_RANGE = (1e-140, 1e140)  # squares of values in this range neither underflow nor overflow
MAX_BLOCK_ROWS = 250_000  # approximate number of rows in a block of `blocks`


def segment_reduce(values: Any, begin: Ints, end: Ints, ufunc: Any = np.add) -> Any:
    """`ufunc.reduce(values[begin[i]:end[i]])` for each i; 0 for empty segments."""
    reductions = np.zeros(len(begin), dtype=np.int64 if values.dtype == bool else values.dtype)
    nonempty = np.flatnonzero(end > begin)
    if len(nonempty):
        bounds = np.stack([begin[nonempty], end[nonempty]], axis=1).reshape(-1)
        if bounds[-1] == len(values):
            bounds = bounds[:-1]
        reductions[nonempty] = ufunc.reduceat(values, bounds, dtype=reductions.dtype)[::2]
    return reductions


def segment_rms(values: Floats, begin: Ints, end: Ints, ddof: int = 0) -> Floats:
    """sqrt(sum of squares / (n - ddof)) of each segment of n values, without overflow.

    NaN if n <= ddof.
    """
    degrees_of_freedom = end - begin - ddof
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        rms: Floats = np.sqrt(segment_reduce(np.square(values), begin, end) / np.maximum(degrees_of_freedom, 1))
    rms[degrees_of_freedom <= 0] = np.nan
    extremes = np.flatnonzero((rms < SAFE_RANGE[0]) | (rms > SAFE_RANGE[1]))
    if len(extremes):
        rms[extremes] = _rescaled_rms(values, begin[extremes], end[extremes], degrees_of_freedom[extremes])
    return rms


def _rescaled_rms(values: Floats, begin: Ints, end: Ints, degrees_of_freedom: Ints) -> Floats:
    """`segment_rms` after scaling each segment by a power of two, which is exact."""
    values, indptr = gather_segments(values, begin, end)
    begin, end = indptr[:-1], indptr[1:]
    _, exponent = np.frexp(segment_reduce(np.abs(values), begin, end, np.maximum))
    values = np.ldexp(values, -np.repeat(exponent, end - begin))
    rms: Floats = np.ldexp(np.sqrt(segment_reduce(np.square(values), begin, end) / degrees_of_freedom), exponent)
    return rms


def seasonal_change_rms(values: Floats, indptr: Ints, lag: int) -> Floats:
    """Root mean square of the differences y_t - y_{t-lag} within each series; NaN if there are none.

    Values must not be missing.
    """
    rms = np.empty(len(indptr) - 1)
    for chunk, block, block_indptr in blocks(values, indptr):
        with np.errstate(over="ignore", invalid="ignore"):
            changes = block[lag:] - block[:-lag]
        rms[chunk] = segment_rms(changes, block_indptr[:-1], np.maximum(block_indptr[1:] - lag, block_indptr[:-1]))
    return rms


def blocks(values: Floats, indptr: Ints) -> Iterator[tuple[slice, Floats, Ints]]:
    """Consecutive slices of the series with their values and row pointers, small enough for the CPU cache."""
    starts = np.searchsorted(indptr, np.arange(0, indptr[-1], MAX_BLOCK_ROWS))
    for start, stop in pairwise(np.unique([*starts, len(indptr) - 1]).tolist()):
        yield slice(start, stop), values[indptr[start] : indptr[stop]], indptr[start : stop + 1] - indptr[start]


def segment_means(values: Floats, begin: Ints, end: Ints) -> Floats:
    """The mean of each segment, NaN if empty; segments must be contiguous and cover all values.

    Computed relative to the first value of the segment, so that means of constants are exact.
    """
    nonempty = end > begin
    if not nonempty.any():
        return np.full(len(begin), np.nan)
    first_value = np.where(nonempty, values[np.minimum(begin, len(values) - 1)], np.nan)
    with np.errstate(over="ignore", invalid="ignore"):  # `predict` refuses values that are not finite
        deviations = segment_reduce(values - np.repeat(first_value, end - begin), begin, end)
        return np.asarray(first_value + deviations / np.maximum(end - begin, 1))


def gather_segments(values: Floats, begin: Ints, end: Ints) -> tuple[Floats, Ints]:
    """Concatenate segments; return the values and their row pointers."""
    indptr = np.concatenate([[0], np.cumsum(end - begin)])
    rows = np.arange(indptr[-1]) + np.repeat(begin - indptr[:-1], end - begin)
    return values[rows], indptr


class ObservedValues:
    """The values that are not missing, without gaps between them.

    values: the observed values of all series. row_numbers: their rows in the original array, None if
    no value is missing. indptr: row pointers of the original series. begin, end: first index in
    `values` of each series, and the one after its last; `bounds` are both as row pointers.
    count: number of values of each series.
    """

    def __init__(self, values: Floats, indptr: Ints) -> None:
        missing = np.isnan(values)
        self.indptr = indptr
        if missing.any():
            self.row_numbers: Ints | None = np.flatnonzero(~missing)
            self.values = values[self.row_numbers]
            self.bounds = np.searchsorted(self.row_numbers, indptr)
        else:
            self.values, self.row_numbers, self.bounds = values, None, indptr
        self.begin, self.end = self.bounds[:-1], self.bounds[1:]
        self.count = self.end - self.begin

    def last(self) -> tuple[Floats, Floats]:
        """Last value of each series, and the number of rows since then (NaN and all rows if there is none)."""
        last_values, age = np.full(len(self.count), np.nan), np.diff(self.indptr).astype(np.float64)
        has_value = np.flatnonzero(self.count > 0)
        last_position = self.end[has_value] - 1
        last_values[has_value] = self.values[last_position]
        age[has_value] = 0.0 if self.row_numbers is None else self.indptr[1:][has_value] - 1 - self.row_numbers[last_position]
        return last_values, age

    def steps(self) -> tuple[Floats, Floats | None]:
        """Differences of consecutive observed values, and the number of rows between them (None: always 1).

        The differences include those between series, which `step_bounds` leaves out.
        """
        with np.errstate(over="ignore"):
            changes = np.diff(self.values)
        return changes, None if self.row_numbers is None else np.diff(self.row_numbers).astype(np.float64)

    def step_bounds(self) -> tuple[Ints, Ints]:
        """First index of each series in the arrays of `steps`, and the one after its last."""
        return self.begin, np.maximum(self.end - 1, self.begin)

    def step_deviation(self) -> Floats:
        """Root mean square of the changes of each series; a change over k rows has variance k."""
        if self.row_numbers is None:
            return seasonal_change_rms(self.values, self.indptr, 1)
        changes, rows = self.steps()
        return segment_rms(changes if rows is None else changes / np.sqrt(rows), *self.step_bounds())


def split_phases(values: Floats, indptr: Ints, season: int) -> tuple[Floats, Ints]:
    """Reorder values by series and phase, in time order; values and row pointers of the groups.

    Group `i * season + phase` has the values of series i at this phase. Phase 0 is that of the
    first step ahead.
    """
    lengths = np.diff(indptr)
    # The rows of a phase in a series are first_row + k season for k = 0, 1, ...
    first_row = (np.arange(season) + lengths[:, None]) % season
    n_values = -(-(lengths[:, None] - first_row) // season)  # rounded up
    bounds = np.concatenate([[0], np.cumsum(n_values)])
    cycle, phase = np.divmod(np.arange(len(values)) - np.repeat(indptr[:-1], lengths), season)
    group = np.repeat(np.arange(len(lengths)) * season, lengths) + (phase - np.repeat(lengths, lengths)) % season
    values_by_phase = np.empty_like(values)
    values_by_phase[bounds[:-1][group] + cycle] = values
    return values_by_phase, bounds


# --- design matrix of future covariates ---------------------------------------------------------------------------------


def design_matrix(covariates: Mapping[str, Covariate]) -> Floats:
    """Design matrix (values, columns): one column per numeric covariate, n - 1 columns for n categories.

    Missing numbers are NaN; missing and unknown categories are all 0, which is the average effect.
    """
    columns, n_values = [], 0
    for covariate in covariates.values():
        values = covariate.values.reshape(-1)
        n_values = len(values)
        if covariate.categories is None:
            columns.append(values)
            continue
        last_code = len(covariate.categories) - 1
        is_last = values == last_code  # -1 in all columns: sum-to-zero coding
        columns += [(values == code).astype(np.float64) - is_last for code in range(last_code)]
    return np.stack(columns, axis=-1) if columns else np.empty((n_values, 0))


def standardize(matrix: Floats, indptr: Ints) -> tuple[Floats, Floats, Floats]:
    """Standardize each column within each series; return it with the centres and scales, (series, columns) each.

    The scale of constant columns is infinite, so that they become 0. NaN stays NaN.
    """
    lengths, is_present = np.diff(indptr), ~np.isnan(matrix)
    n_present = np.maximum(np.add.reduceat(is_present, indptr[:-1], dtype=np.float64), 1.0)

    def mean(values: Floats) -> Floats:
        return np.asarray(np.add.reduceat(np.where(is_present, values, 0.0), indptr[:-1]) / n_present)

    centre = mean(matrix)
    deviation = matrix - np.repeat(centre, lengths, axis=0)
    scale = np.sqrt(mean(deviation * deviation))
    is_constant = scale <= 1e-12 * np.maximum(np.abs(centre), np.finfo(float).tiny)
    scale = np.where(is_constant, np.inf, scale)
    return deviation / np.repeat(scale, lengths, axis=0), centre, scale


def effect_columns(state: State, coefficients: Floats) -> dict[str, Floats]:
    """Columns `effect_<column>` from the coefficients (series, columns) of `design_matrix`.

    Numeric covariates: effect per unit; categorical ones: `effect_<column>_<category>`, relative to the mean of all
    categories.
    """
    effects, position = {}, 0
    for name in state.series.columns.future:
        categories = state.categories.get(name)
        if categories is None:
            effects[f"effect_{name}"] = coefficients[:, position]
            position += 1
            continue
        coded = coefficients[:, position : position + len(categories) - 1]
        by_category = np.column_stack([coded, -coded.sum(axis=1)])  # sum-to-zero coding
        effects |= {f"effect_{name}_{label}": by_category[:, code] for code, label in enumerate(categories)}
        position += len(categories) - 1
    return effects


def constant_values(panel: Panel) -> Floats:
    """Value of each future covariate that is constant where the target is observed, (series, columns); else NaN.

    Categories are given by code.
    """
    constants = np.full((len(panel), len(panel.series.columns.future)), np.nan)
    for position, name in enumerate(panel.series.columns.future):
        covariate = panel.covariates[name]
        is_observed = ~(np.isnan(panel.y) | covariate.missing())
        low = np.minimum.reduceat(np.where(is_observed, covariate.values, np.inf), panel.indptr[:-1])
        high = np.maximum.reduceat(np.where(is_observed, covariate.values, -np.inf), panel.indptr[:-1])
        constants[:, position] = np.where(low == high, low, np.nan)
    return constants


def warn_constant_in_fit(name: str, constants: Floats, future: Mapping[str, Covariate], series: Series) -> None:
    """Warn of covariates that were constant in the training data of a series and have other values in the future.

    `constants`: the result of `constant_values`.
    """
    descriptions = []
    for position, (column, covariate) in enumerate(future.items()):
        future_values = covariate.values.reshape(len(constants), -1)
        constant = constants[:, position : position + 1]
        differs = (future_values != constant) & ~covariate.missing().reshape(future_values.shape) & ~np.isnan(constant)
        affected_series = np.flatnonzero(differs.any(axis=1))
        if len(affected_series):
            descriptions.append(f"{column} of series {series.labels(affected_series)}")
    if descriptions:
        warn(
            f"{name} cannot estimate the effect of covariates that are constant in the training data: "
            f"{format_list(descriptions)}. Their changes in the future have no effect. Pass histories in which they vary, "
            "or drop these covariates.",
            subject=name,
        )
