"""What a generated frame is made of: options, covariates, and what each covariate does to y."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Literal

from deepforecast.data.integers import validate_integer
from deepforecast.errors import ParameterError, ParameterTypeError, format_list, format_value

# name -> role and kind; a past covariate acts `lag` steps later, the others at once
COVARIATES: Mapping[str, tuple[Literal["future", "past", "static"], Literal["number", "category"]]] = MappingProxyType({
    "price": ("future", "number"),
    "holiday": ("future", "number"),
    "promotion": ("future", "category"),
    "visits": ("past", "number"),
    "stock": ("past", "category"),
    "size": ("static", "number"),
    "region": ("static", "category"),
})  # fmt: skip

CategoryEffects = tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Effects:
    """What each covariate adds to y: per unit for a number, by category for a category.

    Raising `price` at one step by 1 moves y at that step by `price`; raising `visits` by 1 moves y `Recipe.lag` steps later.

    >>> dict(Effects().promotion)["flyer"]
    8.0
    """

    price: float = -6.0
    holiday: float = 20.0
    promotion: CategoryEffects = (("none", 0.0), ("flyer", 8.0), ("display", 16.0))
    visits: float = 4.0
    stock: CategoryEffects = (("full", 0.0), ("low", -10.0))
    size: float = 5.0
    region: CategoryEffects = (("north", 0.0), ("east", 6.0), ("south", 12.0), ("west", -6.0))

    def __post_init__(self) -> None:
        for name, (_, value_type) in COVARIATES.items():
            value = getattr(self, name)
            if value_type == "number":
                _check_finite(f"the effect of {name}", value)
                continue
            levels = tuple((str(level), effect) for level, effect in value)
            if not levels or len(dict(levels)) < len(levels):
                raise ParameterError(f"the effect of {name} must have at least one category and no duplicates; got {format_value(value)}.")
            for level, effect in levels:
                _check_finite(f"the effect of {name}={level}", effect)
            object.__setattr__(self, name, levels)


@dataclass(frozen=True)
class Recipe:
    """The options of `generate`. Sizes are in units of y, shares lie in [0, 1).

    y = level + trend + seasons + shifts + effects of the covariates + noise; where there is no demand, 0.

    >>> Recipe(covariates=["price", "visits"]).columns
    {'future': ('price',), 'past': ('visits',), 'static': ()}
    """

    level: float = 100.0  # mean of the series' levels
    level_spread: float = 10.0  # their standard deviation
    trend: float = 0.05  # slope per step, the same for all series
    seasons: tuple[int, ...] | Literal["auto"] = "auto"  # periods in steps; auto: the usual ones of the frequency
    season_strength: float = 10.0  # amplitude of each season; its shape differs by series
    shifts: int = 0  # level shifts in each series
    shift: float = 30.0  # their size; up or down
    noise: float = 2.0  # standard deviation, independent
    missing: float = 0.0  # share of values taken out; the first and the last of a series stay
    intermittent: float = 0.0  # share of steps without demand
    ragged: float = 0.0  # longest share by which a series starts late; all end together
    covariates: tuple[str, ...] | Literal["all"] = ()
    lag: int = 1  # steps between a past covariate and its effect
    effects: Effects = field(default_factory=Effects)

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            if option.name in ("missing", "intermittent", "ragged"):
                _check_finite(option.name, value, low=0.0, below=1.0)
            elif option.type == "float":
                _check_finite(option.name, value, low=None if option.name in ("level", "trend", "shift") else 0.0)
        validate_integer(self.shifts, "shifts", minimum=0)
        validate_integer(self.lag, "lag")
        object.__setattr__(self, "seasons", _validate_seasons(self.seasons))
        object.__setattr__(self, "covariates", _validate_covariates(self.covariates))
        if not isinstance(self.effects, Effects):
            raise ParameterTypeError(f"effects must be an Effects object; got {format_value(self.effects)}.")

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The roles of the covariates, as `fit(frame, columns=...)` takes them."""
        return {role: tuple(name for name in self.covariates if COVARIATES[name][0] == role) for role in ("future", "past", "static")}


def _validate_seasons(value: Any) -> tuple[int, ...] | Literal["auto"]:
    if isinstance(value, str) and value == "auto":
        return "auto"
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ParameterTypeError(f"seasons must be 'auto' or a sequence of periods; got {format_value(value)}.")
    return tuple(dict.fromkeys(validate_integer(period, "a season", minimum=2) for period in value))


def _validate_covariates(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) and value == "all":
        return tuple(COVARIATES)
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ParameterTypeError(f"covariates must be 'all' or a sequence of names; got {format_value(value)!r}.")
    names = tuple(value)
    unknown = [name for name in names if name not in COVARIATES]
    if unknown:
        raise ParameterError(f"covariates must be among {', '.join(COVARIATES)}; got {format_list(unknown)}.")
    return tuple(name for name in COVARIATES if name in names)


def _check_finite(name: str, value: Any, low: float | None = None, below: float | None = None) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ParameterTypeError(f"{name} must be a number; got {format_value(value)} ({type(value).__name__}).")
    number = float(value)
    if not math.isfinite(number) or (low is not None and number < low) or (below is not None and number >= below):
        span = "finite" if low is None else f"at least {low:g}" if below is None else f"in [{low:g}, {below:g})"
        raise ParameterError(f"{name} must be {span}; got {format_value(value)}.")
