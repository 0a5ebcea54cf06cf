"""What a regression model does with a panel, decided once in a fit and kept: columns, target, steps a block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from deepforecast.data.frames import Floats
from deepforecast.data.lags import lagged
from deepforecast.data.panel import Panel
from deepforecast.kernels import unit_roots
from deepforecast.models.regression._design import Design
from deepforecast.models.regression._targets import Target

SAMPLED = 100  # series that are looked at to choose differences
LATEST = 400  # of each, so many of its last values
SELDOM = 0.2  # of the values are 0 in a series of seldom demand
LONG = 24  # a season up to this has a lag for each of its steps


@dataclass(frozen=True)
class Plan:
    """`block`: steps that are forecast at once, each by a regressor of its own; `together`: by one that gives all of them."""

    design: Design
    target: Target
    block: int
    together: bool = False

    @property
    def rows(self) -> int:
        """Values of the target that a forecast looks back at."""
        return self.design.reach + self.block - 1 + self.target.reach

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
        }

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> Plan:
        """Back from plain values."""
        time_index, identity, cyclic, detrend, scale, together = said["flags"]
        design = Design(
            tuple(lagged(one) for one in said["past"]),
            {name: tuple(lagged(one) for one in lags) for name, lags in said["columns"].items()},
            tuple(said["future_rows"]),
            tuple(said["calendar"]),
            said["holidays"],
            tuple((int(season), int(pairs)) for season, pairs in said["fourier"]),
            time_index,
            identity,
            cyclic,
            said["first"],
        )
        return cls(design, Target(said["power"], detrend, tuple(said["differences"]), scale), said["block"], together)


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


def usual_differences(panel: Panel, seasons: tuple[int, ...], most: int) -> tuple[int, ...]:
    """Differences that make most series of a sample steady: over a strong season, then over one step by KPSS; in all no more
    than `most` rows long. None for series that are often 0, whose changes tell less than their level."""
    chosen = np.unique(np.linspace(0, len(panel) - 1, min(SAMPLED, len(panel))).astype(int))
    if np.median([np.mean(panel.y[panel.indptr[one] : panel.indptr[one + 1]] == 0) for one in chosen]) > SELDOM:
        return ()
    series = [_steady(panel.y[panel.indptr[one] : panel.indptr[one + 1]][-LATEST:]) for one in chosen]
    found: list[int] = []
    for season in sorted((one for one in seasons if 1 < one <= most), reverse=True):
        if np.mean([_strong(one, season) for one in series]) > 0.5:
            found, series = [season], [one[season:] - one[:-season] if len(one) > season else one for one in series]
            break
    once = np.mean([unit_roots.needs_difference(one, "kpss") for one in series]) > 0.5
    return (*found, 1) if once and sum(found) < most else tuple(found)


def _steady(values: Floats) -> Floats:
    """Without missing values: the last one before goes on."""
    seen = ~np.isnan(values)
    place = np.maximum.accumulate(np.where(seen, np.arange(len(values)), 0))
    found = values[place]
    found = found[~np.isnan(found)]
    largest = float(np.abs(found).max(initial=0.0))
    return found / largest if largest > 0 else found  # near 1, so that squares neither overflow nor vanish


def _strong(values: Floats, season: int) -> bool:
    """Whether the season is most of what moving averages over it leave."""
    if len(values) < 3 * season or not np.ptp(values) > 0:
        return False
    kernel = np.full(season + 1 - season % 2, 1 / season)
    if season % 2 == 0:
        kernel[[0, -1]] /= 2
    trend = np.convolve(values, kernel, "valid")
    rest = values[len(kernel) // 2 :][: len(trend)] - trend
    places = np.arange(len(rest)) % season
    means = np.bincount(places, rest) / np.bincount(places)
    return unit_roots.strength(means[places], rest - means[places]) >= unit_roots.STRONG
