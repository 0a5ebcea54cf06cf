"""What a regression model does with a panel, decided once in a fit and kept: columns, target, steps a block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from deepforecast.core.integer_bounds import check_floats
from deepforecast.core.manifest import InvalidManifest
from deepforecast.core.state import LearnedState
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.lags import MAX_LAG, parse_lag_feature
from deepforecast.errors import format_list, format_value
from deepforecast.models.regression._design import Design
from deepforecast.models.regression._targets import Target

MOST_PAIRS = 10_000  # Fourier pairs of a season
LONG = 24  # a season up to this has a lag for each of its steps


@dataclass(frozen=True)
class Plan:
    """`block`: steps that are forecast at once, each by a regressor of its own; `together`: by one that gives all of them.
    `season`: the shortest seasonal period, 1 for none."""

    design: Design
    target: Target
    block: int
    together: bool = False
    season: int = 1

    @property
    def rows(self) -> int:
        """Values of the target that a forecast looks back at."""
        return max(self.design.reach + self.block - 1 + self.target.reach, self._repeats)

    @property
    def _repeats(self) -> int:
        """After how many steps values repeat best: the longest difference, or a season."""
        return self.target.longest if self.target.differences else self.season

    def imputed(self, y: Floats, indptr: Ints) -> Floats:
        """The target for features of its past: a missing value is that of one season before, or else the last one; values
        after it do not count."""
        from deepforecast.kernels import features as kernel

        if not np.isnan(y).any():
            return y
        y = y.copy()
        kernel.fill_missing(y, indptr, self._repeats, np.zeros(len(indptr) - 1))
        return y

    def written(self) -> dict[str, Any]:
        """As plain values."""
        design, target = self.design, self.target
        return {
            "past": [str(one) for one in design.past],
            "columns": {name: [str(one) for one in lags] for name, lags in design.columns.items()},
            "future_rows": list(design.future_rows),
            "calendar": list(design.calendar),
            "holidays": design.holidays,
            "fourier": [list(one) for one in design.fourier],
            "flags": [design.time_index, design.identity, design.cyclic, target.detrend, target.scale, self.together],
            "power": target.power,
            "differences": list(target.differences),
            "block": self.block,
            "first": design.first,
            "season": self.season,
        }

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> Plan:
        """Back from plain values."""
        time_index, identity, cyclic, detrend, scale, together = said["flags"]
        design = Design(
            tuple(parse_lag_feature(one) for one in said["past"]),
            {name: tuple(parse_lag_feature(one) for one in lags) for name, lags in said["columns"].items()},
            tuple(said["future_rows"]),
            tuple(said["calendar"]),
            said["holidays"],
            tuple((int(season), int(pairs)) for season, pairs in said["fourier"]),
            time_index,
            identity,
            cyclic,
            said["first"],
        )
        target = Target(said["power"], detrend, tuple(said["differences"]), scale)
        return cls(design, target, said["block"], together, said["season"])


def check(learned: LearnedState, per_series: bool) -> None:
    """`InvalidManifest` where a file's plan asks for other histories, or for other regressors, than the file holds.

    So lags, differences and `block` are bounded by arrays that were read, and Fourier pairs by the columns of a season.
    """
    plan, stated = Plan.read(learned["plan"]), learned["plan"]
    integers = [stated["block"], stated["first"], stated["season"], *stated["differences"], *stated["future_rows"]]
    if any(not isinstance(value, int) or isinstance(value, bool) for value in integers):
        raise InvalidManifest(f"block, first, season, differences and future_rows of its plan must be integers, got {format_list(integers)}")
    check_floats(learned, ["unit", "drift", "centre", "scale", "owner"], ())
    check_floats(learned, ["line"], (2,))
    if min(plan.block, plan.season, *plan.target.differences) < 1 or learned["tail"].shape[1:] != (plan.rows,):
        raise InvalidManifest(f"its plan must look back at the values it holds, got {plan.rows:,} for {learned['tail'].shape[1:]}")
    if learned["ends"].shape[1:] != (plan.target.reach_of(plan.block),):
        raise InvalidManifest("its differences must be as long as the last values they start from")
    for name, lags in plan.design.columns.items():
        rows = max(lag.n_rows_needed for lag in lags) + plan.block
        if learned[f"past:{name}"].shape[1:] != (rows,):
            raise InvalidManifest(f"its lags of {format_value(name)} must look back at the {rows:,} values it holds")
    before = max(0, -min(plan.design.future_rows))
    if any(learned[name].shape[1:] != (before,) for name in learned.by_series if name.startswith("ahead:")):
        raise InvalidManifest(f"its future covariates must have the {before:,} values before the first step")
    if max(plan.design.future_rows) > MAX_LAG or any(not 1 <= pairs <= MOST_PAIRS for _, pairs in plan.design.fourier):
        raise InvalidManifest("its future covariates or Fourier terms must be fewer")
    expected = 1 if plan.together else plan.block
    for regressors in learned["regressors"] if per_series else [learned["regressors"]]:
        if len(regressors["models"]) != expected:
            raise InvalidManifest(f"its plan must have a regressor for each of {expected:,} steps, got {len(regressors['models']):,}")


def usual_lags(seasons: tuple[int, ...], length: int) -> list[int]:
    """Lags for series of this length: the last season step by step, then seasons further back."""
    most = max(length // 3, 1)
    season = max((one for one in seasons if one <= most), default=1)
    short = min((one for one in seasons if one > 1), default=1)
    found = set(range(1, min(max(short, 6), LONG) + 1))
    for one in seasons:
        if one > 1:
            found |= {one * k for k in range(1, 5 if one == short else 2)} | {one + 1, one - 1}
    return sorted(lag for lag in found if 1 <= lag <= max(most, season)) or [1]


def usual_windows(seasons: tuple[int, ...], length: int) -> list[str]:
    """Windows for series of this length: mean and spread of a season, and the mean of its like places."""
    most = max(length // 3, 1)
    short = min((one for one in seasons if 1 < one <= most), default=min(6, most))
    if short < 2:
        return []
    found = [f"mean_{short}", f"std_{short}"]
    found += [f"mean_{4 * short}"] if short in seasons and 4 * short <= most else []
    found += [f"mean_4x{one}" for one in seasons if one > 1 and 4 * one <= most]
    long = max((one for one in seasons if one <= most), default=short)
    return list(dict.fromkeys([*found, *([f"mean_{long}"] if long > short else [])]))
