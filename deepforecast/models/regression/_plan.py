"""Plan of a fit: columns, target transformation and steps per block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from deepforecast.core.encoding import InvalidManifest
from deepforecast.core.state import LearnedState, check_floats
from deepforecast.data.features import MAX_LAG, parse_lag_feature
from deepforecast.data.frames import Floats, Ints
from deepforecast.errors import format_list, format_value
from deepforecast.models.regression._design import Design
from deepforecast.models.regression._target_transform import TargetTransform

MAX_PAIRS = 10_000  # maximum number of Fourier pairs of a season in a file
MAX_LAGGED_SEASON = 24  # seasons up to this length get a lag for each of their steps


@dataclass(frozen=True)
class Plan:
    """Features, target transformation and forecast strategy of a fit, with all "auto" values resolved.

    `block_size`: number of steps that are forecast from the same lags, each by its own regressor;
    with `multioutput` all by a single one. `season`: shortest seasonal period, 1 for none.
    """

    design: Design
    target: TargetTransform
    block_size: int
    multioutput: bool = False
    season: int = 1

    @property
    def n_target_values(self) -> int:
        """Number of past target values that a forecast needs."""
        return max(self.design.n_rows_needed + self.block_size - 1 + self.target.n_lost, self._fill_period)

    @property
    def _fill_period(self) -> int:
        """Lag of the value that replaces a missing one: the longest difference, else the shortest season."""
        return self.target.longest_lag if self.target.differences else self.season

    def impute(self, y: Floats, indptr: Ints) -> Floats:
        """Target with missing values replaced by the value `_fill_period` rows before or, if that is missing, the last one.

        Leading missing values remain.
        """
        from deepforecast.kernels import features as kernel

        if not np.isnan(y).any():
            return y
        y = y.copy()
        kernel.fill_missing(y, indptr, self._fill_period, np.zeros(len(indptr) - 1))
        return y

    def to_dict(self) -> dict[str, Any]:
        """The plan as lists, numbers and strings for the model file; its keys are the file format."""
        design, target = self.design, self.target
        return {
            "past": [str(term) for term in design.target_features],
            "columns": {name: [str(term) for term in lags] for name, lags in design.covariate_lags.items()},
            "future_rows": list(design.future_lags),
            "calendar": list(design.calendar),
            "holidays": design.holidays,
            "fourier": [list(term) for term in design.fourier],
            "flags": [design.time_index, design.series_id, design.encoded, target.detrend, target.scale, self.multioutput],
            "power": target.power_method,
            "differences": list(target.differences),
            "block": self.block_size,
            "first": design.time_origin,
            "season": self.season,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Plan:
        """The inverse of `to_dict`; values are not validated, see `check_plan`."""
        time_index, series_id, encoded, detrend, scale, multioutput = stored["flags"]
        design = Design(
            target_features=tuple(parse_lag_feature(text) for text in stored["past"]),
            covariate_lags={name: tuple(parse_lag_feature(text) for text in lags) for name, lags in stored["columns"].items()},
            future_lags=tuple(stored["future_rows"]),
            calendar=tuple(stored["calendar"]),
            holidays=stored["holidays"],
            fourier=tuple((int(season), int(pairs)) for season, pairs in stored["fourier"]),
            time_index=time_index,
            series_id=series_id,
            encoded=encoded,
            time_origin=stored["first"],
        )
        target = TargetTransform(
            power_method=stored["power"], detrend=detrend, differences=tuple(stored["differences"]), scale=scale
        )
        return cls(design, target, block_size=stored["block"], multioutput=multioutput, season=stored["season"])


def check_plan(learned: LearnedState, per_series: bool) -> None:
    """Raise `InvalidManifest` if the plan of a file does not match its arrays or regressors.

    A damaged file could otherwise request huge amounts of memory: the check bounds lags,
    differences and block size by the lengths of the arrays in the file, and future lags and Fourier
    terms by constants.
    """
    stored_plan = learned["plan"]
    plan = Plan.from_dict(stored_plan)
    for name in ("block", "first", "season", "differences", "future_rows"):
        values = stored_plan[name] if isinstance(stored_plan[name], list | tuple) else [stored_plan[name]]
        if any(not isinstance(value, int) or isinstance(value, bool) for value in values):
            raise InvalidManifest(f"{name!r} of the plan must be integers, got {format_list(values, max_shown=9)}")
    check_floats(learned, ["unit", "drift", "centre", "scale", "owner"], ())
    check_floats(learned, ["line"], (2,))
    if min(plan.block_size, plan.season, *plan.target.differences) < 1 or learned["tail"].shape[1:] != (plan.n_target_values,):
        raise InvalidManifest(
            "the differences, block size and season of the plan must be positive, and its lags must match the past target "
            f"values in the file: the plan requires {plan.n_target_values:,} per series, the file has shape "
            f"{learned['tail'].shape[1:]}"
        )
    if learned["ends"].shape[1:] != (plan.target.n_start_values(plan.block_size),):
        n_start_values = plan.target.n_start_values(plan.block_size)
        raise InvalidManifest(
            f"the differences of the plan require {n_start_values:,} start values per series, but the file has shape "
            f"{learned['ends'].shape[1:]}"
        )
    for name, lags in plan.design.covariate_lags.items():
        n_values = max(lag.n_rows_needed for lag in lags) + plan.block_size
        if learned[f"past:{name}"].shape[1:] != (n_values,):
            raise InvalidManifest(
                f"the lags of the past covariate {format_value(name)} require {n_values:,} past values per series, but the file "
                f"has shape {learned[f'past:{name}'].shape[1:]}"
            )
    n_before = max(0, -min(plan.design.future_lags))
    if any(learned[name].shape[1:] != (n_before,) for name in learned.by_series if name.startswith("ahead:")):
        raise InvalidManifest(
            f"the future covariates in the file must have {n_before:,} values per series before the first step"
        )
    if max(plan.design.future_lags) > MAX_LAG or any(not 1 <= pairs <= MAX_PAIRS for _, pairs in plan.design.fourier):
        raise InvalidManifest(
            f"the plan must have future lags of at most {MAX_LAG:,} and from 1 to {MAX_PAIRS:,} Fourier terms per season"
        )
    n_regressors = 1 if plan.multioutput else plan.block_size
    for regressors in learned["regressors"] if per_series else [learned["regressors"]]:
        if len(regressors["models"]) != n_regressors:
            raise InvalidManifest(
                f"the number of regressors must be {n_regressors:,}, as the plan requires, got {len(regressors['models']):,}"
            )


def default_lags(seasons: tuple[int, ...], length: int) -> list[int]:
    """Sorted default lags for series of `length` rows with these seasonal periods, at most a third of the length.

    All lags of the shortest season (at least 6, at most 24), one to four times the shortest season,
    each other season once, and one step more and less than each season.
    """
    max_lag = max(length // 3, 1)
    shortest_season = min((period for period in seasons if period > 1), default=1)
    lags = set(range(1, min(max(shortest_season, 6), MAX_LAGGED_SEASON) + 1))
    for period in seasons:
        if period > 1:
            n_multiples = 4 if period == shortest_season else 1
            lags |= {period * k for k in range(1, n_multiples + 1)} | {period + 1, period - 1}
    return sorted(lag for lag in lags if 1 <= lag <= max_lag) or [1]


def default_windows(seasons: tuple[int, ...], length: int) -> list[str]:
    """Default windows for series of `length` rows with these seasonal periods, at most a third of the length.

    Mean and standard deviation over the shortest season (without a season, 6 rows), means over four
    of it and over the longest season, and for each season the mean of the last four values of the
    same phase.
    """
    max_window = max(length // 3, 1)
    shortest = min((period for period in seasons if 1 < period <= max_window), default=min(6, max_window))
    if shortest < 2:
        return []
    windows = [f"mean_{shortest}", f"std_{shortest}"]
    if shortest in seasons and 4 * shortest <= max_window:
        windows.append(f"mean_{4 * shortest}")
    windows += [f"mean_4x{period}" for period in seasons if period > 1 and 4 * period <= max_window]
    longest = max((period for period in seasons if period <= max_window), default=shortest)
    if longest > shortest:
        windows.append(f"mean_{longest}")
    return list(dict.fromkeys(windows))  # without duplicates
