"""Training samples of a regressor: features, targets, weights and positions in time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deepforecast.data.features import parse_lag_feature
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.data.weights import refuse_zero_weights
from deepforecast.errors import DataError
from deepforecast.models.regression._design import exogenous_columns, feature_table, shift_covariates
from deepforecast.models.regression._plan import Plan

CHUNK_ROWS = 50_000  # number of rows that are moved at a time


@dataclass(frozen=True)
class Sample:
    """Rows of the feature matrix with targets, to train a regressor on.

    `rows`: (rows, columns). `target`: (rows,) or (rows, steps). `weight`: (rows,), None for equal
    weights. `names`: column names. `categories`: indices of columns with category codes.
    `n_following`: number of later rows of the same series. `series_index`: series of each row.
    `n_target_features`: number of leading columns derived from the target.
    """

    rows: Any
    target: Floats
    weight: Floats | None
    names: list[str]
    categories: list[int]
    n_following: Ints
    series_index: Ints
    n_target_features: int = 0

    def __len__(self) -> int:
        return len(self.target)

    def take(self, rows: Any) -> Sample:
        """The sample with these rows, given by their indices or a mask."""
        weight = None if self.weight is None else self.weight[rows]
        return replace(
            self,
            rows=self.rows[rows],
            target=self.target[rows],
            weight=weight,
            n_following=self.n_following[rows],
            series_index=self.series_index[rows],
        )

    def divisors(self, means: Floats, deviations: Floats, target_std: float) -> Floats:
        """Divisors that scale columns with these means and standard deviations to about 1.

        Infinite for constant columns. Bounded from below by the effect of one outlying value of the
        target, whose standard deviation is `target_std`: otherwise nearly constant window means would
        get large weights, with which recursive forecasts diverge, and rounding errors of means would
        act as a signal.
        """
        feature_scales = [target_std * parse_lag_feature(name).influence for name in self.names[: self.n_target_features]]
        min_scales = np.array([*feature_scales, *[0.0] * (len(deviations) - self.n_target_features)])
        return np.where(deviations > 1e-12 * np.maximum(np.abs(means), 1e-300), np.maximum(deviations, min_scales), np.inf)

    def compact(self, is_usable: Any) -> Sample:
        """The usable rows; `rows` is overwritten, because a copy of the feature matrix would double the memory."""
        positions = np.flatnonzero(is_usable)
        for start in range(0, len(positions), CHUNK_ROWS):
            chunk = positions[start : start + CHUNK_ROWS]
            self.rows[start : start + len(chunk)] = self.rows[chunk]  # source index >= target index
        return replace(
            self,
            rows=self.rows[: len(positions)],
            target=self.target[positions],
            weight=None if self.weight is None else self.weight[positions],
            n_following=self.n_following[positions],
            series_index=self.series_index[positions],
        )

    def split(self, n_last: int) -> tuple[Sample, Sample]:
        """Training and validation samples: all but the last, and the last `n_last` rows of each series."""
        is_late = self.n_following < n_last
        return self.take(~is_late), self.take(is_late)


class SampleBuilder:
    """Samples of a panel for each step of a block.

    `scales`: scales of the target of each series. `elapsed`: number of rows between the start of the training data and the
    start of each series in `panel` (0 by default). `weight` may be set to sample weights, one per row of the panel.
    """

    def __init__(
        self,
        plan: Plan,
        panel: Panel,
        scales: Mapping[str, Any],
        dtype: type,
        accepts_missing: bool,
        elapsed: Ints | None = None,
    ) -> None:
        self._plan = plan
        self._panel = panel
        self._dtype = dtype
        self._accepts_missing = accepts_missing
        self._scales = scales
        elapsed = np.zeros(len(panel), np.int64) if elapsed is None else elapsed
        self._detrended = plan.target.detrend_power(panel.y, panel.indptr, scales, elapsed)
        self._transformed = plan.target.apply(plan.impute(panel.y, panel.indptr), panel.indptr, scales, elapsed)
        self.weight: Floats | None = None
        future = {name: covariate for name, covariate in panel.covariates.items() if name in panel.series.columns.future}
        static = {name: covariate.take(panel.row_series) for name, covariate in panel.static.items()}
        columns = {**shift_covariates(plan.design, future, panel.indptr), **static}
        self.exogenous = exogenous_columns(plan.design, panel.calendar, panel.row_positions, panel.row_series, columns)
        self.names = plan.design.names(future, panel.static)
        self.categories = plan.design.categories(future, panel.static)
        if plan.multioutput:  # the exogenous columns are repeated for the later steps of a block
            n_exogenous = self.exogenous.shape[1]
            n_past = len(self.names) - n_exogenous
            later_steps = range(1, plan.block_size)
            later_names = [f"{name} in {step}" for step in later_steps for name in self.names[n_past:]]
            self.categories += [
                position + n_exogenous * step for step in later_steps for position in self.categories if position >= n_past
            ]
            self.names = [*self.names, *later_names]

    def build(self, step: int) -> Sample:
        """Sample of the regressor of step `step` = 0, 1, ... of a block; `DataError` if it has no rows."""
        plan, panel = self._plan, self._panel
        exogenous, target = self.exogenous, self._target_at(step)
        if plan.multioutput:
            exogenous = np.concatenate([_lead(exogenous, panel.indptr, lead) for lead in range(plan.block_size)], axis=1)
            target = np.stack([_lead(self._target_at(lead), panel.indptr, lead) for lead in range(plan.block_size)], axis=1)
        design = plan.design.shift(step)
        rows = feature_table(design, panel, self._transformed, exogenous, self._dtype)
        if not self._accepts_missing:
            _zero_rare_features(rows, target)
        is_usable = usable_rows(rows, target, panel.indptr, design.n_rows_needed + plan.target.n_lost, self._accepts_missing)
        if self.weight is not None:
            is_usable &= self.weight > 0
        if not is_usable.any():
            raise DataError(
                "Training must have at least one row with a target and all features, but there is none: the features require "
                f"{design.n_rows_needed + plan.target.n_lost} earlier rows, and the longest series has "
                f"{int(panel.lengths.max())}.",
                hint="Use smaller `lags`, `lag_transforms` or `differences`, or pass longer series.",
            )
        sample = Sample(
            rows=rows,
            target=target,
            weight=self.weight,
            names=self.names,
            categories=self.categories,
            n_following=count_following(panel.indptr),
            series_index=panel.row_series,
            n_target_features=len(design.target_features),
        )
        return sample if is_usable.all() else sample.compact(is_usable)

    def _target_at(self, step: int) -> Floats:
        """Transformed target (rows,) of the regressor of a step in a block, whose differences depend on the step."""
        return self._plan.target.difference_and_scale(self._detrended, self._panel.indptr, self._scales, step)


def sample_weights(panel: Panel, half_life: float | None) -> Floats | None:
    """Weight of each row: that of the panel times exponential decay with age; positive weights have mean 1.

    None if there is neither a weight nor a half-life. `DataError` if all weights are zero.
    """
    if panel.weight is None and half_life is None:
        return None
    refuse_zero_weights(panel)
    row_weights = np.ones(len(panel.y)) if panel.weight is None else panel.weight
    if half_life is not None:
        row_weights = row_weights * 0.5 ** (count_following(panel.indptr) / half_life)
    return np.asarray(row_weights / row_weights[row_weights > 0].mean())  # libraries count minimum weights in rows


def zero_empty_columns(rows: Any) -> Any:
    """Rows with columns without any value set to 0, because some libraries reject them."""
    empty = np.isnan(rows).all(axis=0)
    return np.where(empty, 0, rows) if empty.any() else rows


def _zero_rare_features(rows: Any, target: Floats) -> None:
    """Set features to 0, in place, that are known in fewer than half of the rows with a target.

    Their lags are too long for these series. Otherwise all rows without these features would be lost; regressors ignore
    constant columns.
    """
    is_present = np.isfinite(rows)
    has_target = np.isfinite(target).reshape(len(target), -1).all(axis=1)
    if has_target.any():
        rows[:, is_present[has_target].mean(axis=0) < 0.5] = 0.0


def _lead(values: Floats, indptr: Ints, steps: int) -> Floats:
    """Values `steps` rows later within each series; NaN in its last `steps` rows."""
    shifted = np.full(values.shape, np.nan)
    if steps < len(values):
        shifted[: len(values) - steps] = values[steps:]
    shifted[count_following(indptr) < steps] = np.nan
    return shifted


def usable_rows(rows: Any, target: Floats, indptr: Ints, n_rows_needed: int, accepts_missing: bool) -> Any:
    """Mask of the rows that can be trained on: with a target and, unless missing features are accepted, all features.

    If they are accepted, the first `n_rows_needed` rows of a series, with incomplete windows, are left
    out, but at most half of the series.
    """
    is_usable = np.isfinite(target) if target.ndim == 1 else np.isfinite(target).all(axis=1)
    if not accepts_missing:
        return is_usable & np.isfinite(rows).all(axis=1)
    lengths = np.diff(indptr)
    position = np.arange(len(target)) - np.repeat(indptr[:-1], lengths)
    return is_usable & (position >= np.repeat(np.minimum(n_rows_needed, lengths // 2), lengths))


def count_following(indptr: Ints) -> Ints:
    """For each row, the number of later rows of the same series."""
    return np.asarray(np.repeat(indptr[1:], np.diff(indptr)) - 1 - np.arange(indptr[-1]))
