"""Columns of the feature matrix: target history, calendar, covariates and series id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepforecast.data import features as featuress
from deepforecast.data.calendar import Calendar
from deepforecast.data.covariates import Covariate
from deepforecast.data.features import FEATURE_KINDS, LagFeature
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel

Table = NDArray[np.float32] | NDArray[np.float64]


@dataclass(frozen=True)
class Design:
    """Columns of the feature matrix.

    `target_features`: lags and windows of the target. `covariate_lags`: lags of each past
    covariate. `future_lags`: offsets at which future covariates are read (1: one row later).
    `fourier`: seasonal period and number of sine and cosine pairs. `encoded`: cyclic features as
    sine and cosine and categories one-hot, for regressors other than trees; otherwise both are
    numeric codes. `time_origin`: number of the time step at which `time_index` is 0.
    """

    target_features: tuple[LagFeature, ...]
    covariate_lags: Mapping[str, tuple[LagFeature, ...]]
    future_lags: tuple[int, ...] = (0,)
    calendar: tuple[str, ...] = ()
    holidays: str | None = None
    fourier: tuple[tuple[int, int], ...] = ()
    time_index: bool = False
    series_id: bool = False
    encoded: bool = False
    time_origin: int = 0

    @property
    def n_covariate_lags(self) -> int:
        """Number of columns of past covariates."""
        return sum(map(len, self.covariate_lags.values()))

    @property
    def n_rows_needed(self) -> int:
        """Number of rows before the first one whose features are all known, at least 1."""
        covariate_features = (lag for lags in self.covariate_lags.values() for lag in lags)
        return max((feature.n_rows_needed for feature in (*self.target_features, *covariate_features)), default=1)

    def shift(self, steps: int) -> Design:
        """Design whose lags are `steps` larger, for a forecast that many steps after its origin."""
        if not steps:
            return self
        features = tuple(replace(feature, lag=feature.lag + steps) for feature in self.target_features)
        return replace(
            self,
            target_features=features,
            covariate_lags={name: shift_lags(lags, steps) for name, lags in self.covariate_lags.items()},
        )

    def names(self, future: Mapping[str, Covariate], static: Mapping[str, Covariate]) -> list[str]:
        """Names of the columns in the order of `feature_table`; one per category if `encoded`."""
        names = [str(feature) for feature in self.target_features]
        names += [f"{name}_{lag}" for name, lags in self.covariate_lags.items() for lag in lags]
        for name in self.calendar:
            names += [f"{name}_sin", f"{name}_cos"] if self.encoded and name in featuress.PERIODS else [name]
        names += ["holiday", "days_to_holiday"] if self.holidays else []
        for season, pairs in self.fourier:
            names += [f"{wave}_{season}_{k}" for k in range(1, pairs + 1) for wave in ("sin", "cos")]
        names += ["time_index"] if self.time_index else []
        for name, covariate in {**self.label_future_lags(future), **static}.items():
            is_expanded = self.encoded and covariate.categories is not None
            names += [f"{name}={category}" for category in covariate.categories or ()] if is_expanded else [name]
        return [*names, *(["series"] if self.series_id else [])]

    def label_future_lags(self, future: Mapping[str, Any]) -> dict[str, Any]:
        """Each future covariate under the column names of its offsets: `name`, `name+1`, `name-1`, ..."""
        return {
            f"{name}{lag:+d}" if lag else name: covariate for name, covariate in future.items() for lag in self.future_lags
        }

    def categories(self, future: Mapping[str, Covariate], static: Mapping[str, Covariate]) -> list[int]:
        """Indices in `names` of the columns with category codes; none if `encoded`."""
        categorical = {
            name for name, covariate in {**self.label_future_lags(future), **static}.items() if covariate.categories is not None
        }
        categorical |= {"series"} if self.series_id else set()
        return [
            position for position, name in enumerate(self.names(future, static)) if name in categorical and not self.encoded
        ]


def shift_lags(lags: tuple[LagFeature, ...], steps: int) -> tuple[LagFeature, ...]:
    """Lags of past covariates for a row `steps` further from the origin."""
    return tuple(replace(feature, lag=feature.lag + steps) for feature in lags)


def encode_features(features: Sequence[LagFeature]) -> tuple[Ints, Floats]:
    """Features as arrays for the kernel: kind, lag, size and stride (features, 4), and level (features,)."""
    integers = [[FEATURE_KINDS.index(feature.kind), feature.lag, feature.size, feature.stride] for feature in features]
    return np.array(integers, np.int64).reshape(-1, 4), np.array([feature.level for feature in features], np.float64)


def exogenous_columns(
    design: Design, calendar: Calendar, positions: Ints, series_index: Ints, columns: Mapping[str, Covariate]
) -> Floats:
    """The columns after the lags, in the order of `Design.names`: (rows, columns).

    There is one row per time position and series index. `columns`: future covariates at all
    offsets, then static covariates, one value per row. Unknown categories (codes below 0) are NaN
    or, if encoded, 0 in all columns.
    """
    blocks: list[Floats] = []
    table = featuress.compute_features(calendar, positions, design.calendar)
    for position, name in enumerate(design.calendar):
        blocks += featuress.encode_cyclic(table[:, position], name) if design.encoded else (table[:, position],)
    if design.holidays:
        blocks += featuress.holiday_features(calendar, positions, design.holidays)
    step_numbers = positions // calendar.step
    for season, pairs in design.fourier:
        angle = 2 * np.pi * (step_numbers % season) / season
        blocks += [wave(k * angle) for k in range(1, pairs + 1) for wave in (np.sin, np.cos)]
    if design.time_index:
        blocks.append((step_numbers - design.time_origin).astype(np.float64))
    for covariate in columns.values():
        values = covariate.values.reshape(-1)
        if design.encoded and covariate.categories is not None:
            blocks += [(values == code).astype(np.float64) for code in range(len(covariate.categories))]
        else:
            blocks.append(np.where(values < 0, np.nan, values) if covariate.categories is not None else values)
    if design.series_id:
        blocks.append(series_index.astype(np.float64))
    return np.stack(blocks, axis=1) if blocks else np.empty((len(positions), 0))


def shift_covariate(covariate: Covariate, indptr: Ints, lag: int) -> Covariate:
    """Covariate `lag` rows later; NaN beyond the ends of its series."""
    if not lag:
        return covariate
    position = np.arange(len(covariate.values)) + lag
    series_index = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    inside = (position >= indptr[series_index]) & (position < indptr[series_index + 1])
    missing_value = np.nan if covariate.categories is None else -1.0
    return replace(covariate, values=np.where(inside, covariate.values[np.where(inside, position, 0)], missing_value))


def shift_covariates(design: Design, future: Mapping[str, Covariate], indptr: Ints) -> dict[str, Covariate]:
    """Future covariates at all offsets of the design, by column name."""
    lags = [lag for _ in future for lag in design.future_lags]
    return {
        name: shift_covariate(covariate, indptr, lag)
        for (name, covariate), lag in zip(design.label_future_lags(future).items(), lags, strict=True)
    }


def feature_table(design: Design, panel: Panel, z: Floats, exogenous: Floats, dtype: type) -> Table:
    """Feature matrix of a panel, one row per observation, in the order of `Design.names`.

    `z` is the transformed target of which features are computed, `exogenous` the last columns.
    """
    from deepforecast.kernels import features as kernel

    n_columns = len(design.target_features) + design.n_covariate_lags + exogenous.shape[1]
    matrix = np.empty((len(z), n_columns), dtype)
    start = 0
    covariate_features = [(panel.covariates[name].values, lags) for name, lags in design.covariate_lags.items()]
    for values, features in [(z, design.target_features), *covariate_features]:
        kernel.fill_features(np.ascontiguousarray(values), panel.indptr, *encode_features(features), start, matrix)
        start += len(features)
    matrix[:, start:] = exogenous
    return matrix
