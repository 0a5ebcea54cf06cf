"""Aggregation of errors per point to one number per group, for all models at once.

An error of NaN means that the metric is undefined at that point, for example without an actual
value. Only such points are left out of the average, and they are counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from deepforecast.errors import ParameterError

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Groups:
    """The group and the forecast of each point, in any order (sorted points are faster).

    Parameters
    ----------
    codes : array of int
        Group of each point, from 0 to `count` - 1.
    count : int
        Number of groups.
    forecasts : array of int, optional
        Forecast of each point (one series from one cutoff), for metrics that weigh forecasts
        equally. None: each group is one forecast.

    Examples
    --------
    >>> by_step = Groups(codes=np.array([0, 1, 0, 1]), count=2, forecasts=np.array([0, 0, 1, 1]))
    >>> by_step.sizes
    array([2, 2])
    """

    codes: Integers
    count: int
    forecasts: Integers | None = None

    def __post_init__(self) -> None:
        """Check the shapes and the range of the codes."""
        if self.codes.ndim != 1 or (self.forecasts is not None and self.forecasts.shape != self.codes.shape):
            raise ParameterError(
                "`codes` and `forecasts` must be one-dimensional with one integer per point, got shapes "
                f"{self.codes.shape} and {None if self.forecasts is None else self.forecasts.shape}.",
                parameter="codes",
            )
        if self.codes.size and not (self.codes.min() >= 0 and self.codes.max() < self.count):
            raise ParameterError(
                f"`codes` must be from 0 to count - 1 = {self.count - 1}, got {self.codes.min()} to {self.codes.max()}.",
                hint="Pass the number of groups as `count`.",
                parameter="codes",
            )

    @cached_property
    def sizes(self) -> Integers:
        """Number of points in each group."""
        return np.bincount(self.codes, minlength=self.count)

    def runs(self, values: NDArray[np.generic]) -> Array:
        """Sum over each run (the points of one forecast in one group), shape (..., runs)."""
        order, starts, _, _ = self._layout
        values = values if order is None else values[..., order]
        return np.asarray(values if starts is None else np.add.reduceat(values, starts, axis=-1), dtype=np.float64)

    def merge(self, run_values: NDArray[np.generic]) -> Array:
        """Sum one value per run over each group."""
        group = self._layout[2]
        if self.count == len(group) and np.array_equal(group, np.arange(self.count)):  # one run per group, in order
            return np.asarray(run_values, dtype=np.float64)
        sums = np.empty((*run_values.shape[:-1], self.count))
        for model in np.ndindex(sums.shape[:-1]):
            sums[model] = np.bincount(group, weights=run_values[model], minlength=self.count)
        return sums

    @property
    def run_sizes(self) -> Integers:
        """Number of points in each run."""
        return self._layout[3]

    def members(self, per_forecast: bool) -> Iterator[tuple[int, Integers]]:
        """Iterate over runs, or over groups unless `per_forecast`.

        Yields the index of the group and the positions of the points of the run (or group).
        """
        if per_forecast and self.forecasts is not None:
            order, starts, group, _ = self._layout
            order = np.arange(len(self.codes)) if order is None else order
            edges = np.arange(len(order) + 1) if starts is None else np.append(starts, len(order))
        else:
            order = np.argsort(self.codes, kind="stable")
            group = np.arange(self.count)
            edges = np.concatenate([[0], np.cumsum(self.sizes)])
        for position, code in enumerate(group.tolist()):
            yield code, order[edges[position] : edges[position + 1]]

    @cached_property
    def _layout(self) -> tuple[Integers | None, Integers | None, Integers, Integers]:
        """The runs: points with the same (forecast, group), contiguous after sorting by both.

        Returns the order that sorts the points (None: already sorted), the first point of each run
        (None: one point per run), the group of each run and its number of points.
        """
        run_key = self.codes.astype(np.int64, copy=False)
        if self.forecasts is not None:
            run_key = self.forecasts.astype(np.int64) * self.count + run_key
        order = None if np.all(run_key[1:] >= run_key[:-1]) else np.argsort(run_key, kind="stable")
        codes = self.codes if order is None else self.codes[order]
        run_key = run_key if order is None else run_key[order]
        starts = np.flatnonzero(np.concatenate([[len(run_key) > 0], run_key[1:] != run_key[:-1]]))
        if len(starts) == len(run_key):
            return order, None, codes, np.ones(len(run_key), dtype=np.int64)
        return order, starts, codes[starts], np.diff(np.append(starts, len(run_key)))


@dataclass(frozen=True, eq=False)
class Aggregate:
    """A metric by group and the points it is based on; arrays of shape (models, groups), or
    (groups,) for one model."""

    value: Array  # NaN where no point could be used
    points: Integers  # points used
    left_out: Integers  # points without an actual value or with an undefined metric
    forecasts_left_out: Integers  # forecasts without any used point


def aggregate(
    errors: Array, groups: Groups, *, weights: Array | None = None, root: bool = False, per_forecast: bool = False
) -> Aggregate:
    """Average errors by group.

    Parameters
    ----------
    errors : array
        Errors of shape (..., points), NaN where undefined.
    groups : Groups
        The group of each point.
    weights : array, optional
        Denominators per point: the result is the ratio of the sums of errors and weights.
    root : bool, default False
        Whether to take the square root.
    per_forecast : bool, default False
        Whether to aggregate each forecast first and average over forecasts, so that long
        forecasts do not weigh more than short ones.

    Returns
    -------
    Aggregate

    Examples
    --------
    >>> errors = np.array([1.0, 3.0, np.nan, 8.0])
    >>> groups = Groups(codes=np.zeros(4, dtype=int), count=1, forecasts=np.array([0, 0, 0, 1]))
    >>> aggregate(errors, groups).value, aggregate(errors, groups, per_forecast=True).value
    (array([4.]), array([5.]))
    """
    sums = groups.runs(errors)
    if np.isnan(sums).any():
        is_used = ~np.isnan(errors)
        sums = groups.runs(np.where(is_used, errors, 0.0))
        counts = groups.runs(is_used.astype(np.float64))
        denominators = counts if weights is None else groups.runs(np.where(is_used, weights, 0.0))
    else:
        counts = np.broadcast_to(groups.run_sizes, sums.shape).astype(np.float64)
        denominators = counts if weights is None else np.broadcast_to(groups.runs(weights), sums.shape)
    if per_forecast and groups.forecasts is not None:
        per_run = _quotient(sums, denominators, root)
        value = _quotient(groups.merge(np.where(np.isnan(per_run), 0.0, per_run)), groups.merge(~np.isnan(per_run)), False)
    else:
        value = _quotient(groups.merge(sums), groups.merge(denominators), root)
    points = np.where(np.isnan(value), 0, groups.merge(counts)).astype(np.int64)
    n_undefined = (points == 0) & (groups.sizes > 0) if groups.forecasts is None else groups.merge(counts == 0)
    return Aggregate(value, points, groups.sizes - points, np.asarray(n_undefined, dtype=np.int64))


def _quotient(numerators: Array, denominators: Array, root: bool) -> Array:
    """Ratio (or its square root), NaN where the denominator is 0."""
    value = np.full(numerators.shape, np.nan)
    np.divide(numerators, denominators, out=value, where=denominators > 0)
    return np.sqrt(value) if root else value
