"""Options of the generator: components, covariates and their effects."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Literal

from deepforecast.errors import ParameterError, ParameterTypeError, format_list, format_value, validate_integer

# name -> role and type; a past covariate acts `lag` steps later, the others immediately
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
    """Effects of the covariates on y.

    Numeric covariates have an effect per unit, categorical ones a tuple of (category, effect). Past
    covariates (`visits`, `stock`) act `Recipe.lag` steps later, the others at the same step.

    Parameters
    ----------
    price, holiday, visits, size : float
        Change of y per unit.
    promotion, stock, region : tuple of (str, float)
        Change of y by category.

    Examples
    --------
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
        """Check that effects are finite numbers, and that categories are not empty and unique."""
        for name, (_, value_type) in COVARIATES.items():
            value = getattr(self, name)
            if value_type == "number":
                _check_finite(f"The effect of `{name}`", value)
                continue
            levels = tuple((str(level), effect) for level, effect in value)
            if not levels or len(dict(levels)) < len(levels):
                raise ParameterError(
                    f"The effect of `{name}` must have at least one category and no duplicates, got {format_value(value)}."
                )
            for level, effect in levels:
                _check_finite(f"The effect of {name}={level!r}", effect)
            object.__setattr__(self, name, levels)


@dataclass(frozen=True)
class Recipe:
    """Components and covariates of the series of `generate`.

    y = level + trend + seasons + shifts + effects of the covariates + noise, and 0 at steps without
    demand.

    Parameters
    ----------
    level : float, default 100.0
        Mean of the levels of the series.
    level_spread : float, default 10.0
        Standard deviation of the levels.
    trend : float, default 0.05
        Slope per step, the same for all series.
    seasons : tuple of int or "auto", default "auto"
        Season lengths in steps. "auto": the usual ones of the frequency.
    season_strength : float, default 10.0
        Amplitude of each season. Its shape differs between series.
    shifts : int, default 0
        Number of level shifts of each series.
    shift : float, default 30.0
        Size of a level shift, up or down.
    noise : float, default 2.0
        Standard deviation of the independent noise.
    missing : float, default 0.0
        Share of missing values, in [0, 1). The first and last value of a series are never missing.
    intermittent : float, default 0.0
        Share of steps without demand, in [0, 1).
    ragged : float, default 0.0
        Largest share by which a series starts later, in [0, 1). All series end together.
    covariates : tuple of str or "all", default ()
        Names among `COVARIATES`.
    lag : int, default 1
        Number of steps between a past covariate and its effect.
    effects : Effects, optional
        Effects of the covariates.

    Examples
    --------
    >>> Recipe(covariates=["price", "visits"]).columns
    {'future': ('price',), 'past': ('visits',), 'static': ()}
    """

    level: float = 100.0
    level_spread: float = 10.0
    trend: float = 0.05
    seasons: tuple[int, ...] | Literal["auto"] = "auto"
    season_strength: float = 10.0
    shifts: int = 0
    shift: float = 30.0
    noise: float = 2.0
    missing: float = 0.0
    intermittent: float = 0.0
    ragged: float = 0.0
    covariates: tuple[str, ...] | Literal["all"] = ()
    lag: int = 1
    effects: Effects = field(default_factory=Effects)

    def __post_init__(self) -> None:
        """Check all options, and convert seasons and covariates to tuples."""
        for option in fields(self):
            value = getattr(self, option.name)
            subject = f"`{option.name}`"
            if option.name in ("missing", "intermittent", "ragged"):
                _check_finite(subject, value, low=0.0, below=1.0)
            elif option.type == "float":
                _check_finite(subject, value, low=None if option.name in ("level", "trend", "shift") else 0.0)
        validate_integer(self.shifts, "shifts", minimum=0)
        validate_integer(self.lag, "lag")
        object.__setattr__(self, "seasons", _validate_seasons(self.seasons))
        object.__setattr__(self, "covariates", _validate_covariates(self.covariates))
        if not isinstance(self.effects, Effects):
            raise ParameterTypeError(
                f"`effects` must be an Effects object, got {format_value(self.effects)} ({type(self.effects).__name__}).",
                parameter="effects",
                value=self.effects,
            )

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The roles of the covariates, to be passed as `fit(frame, columns=...)`."""
        roles = ("future", "past", "static")
        return {role: tuple(name for name in self.covariates if COVARIATES[name][0] == role) for role in roles}


def _validate_seasons(value: Any) -> tuple[int, ...] | Literal["auto"]:
    """Season lengths without duplicates, after validation, or "auto"."""
    if isinstance(value, str) and value == "auto":
        return "auto"
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ParameterTypeError(
            f"`seasons` must be 'auto' or a sequence of season lengths, got {format_value(value)}.",
            parameter="seasons",
            value=value,
        )
    return tuple(dict.fromkeys(validate_integer(period, "Each season length in `seasons`", minimum=2) for period in value))


def _validate_covariates(value: Any) -> tuple[str, ...]:
    """The requested covariates in the order of `COVARIATES`, after validation; "all": all of them."""
    if isinstance(value, str) and value == "all":
        return tuple(COVARIATES)
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ParameterTypeError(
            f"`covariates` must be 'all' or a sequence of names, got '{format_value(value)}'.",
            parameter="covariates",
        )
    names = tuple(value)
    unknown = [name for name in names if name not in COVARIATES]
    if unknown:
        raise ParameterError(
            f"`covariates` must be among {', '.join(COVARIATES)}, got {format_list(unknown)}.", parameter="covariates"
        )
    return tuple(name for name in COVARIATES if name in names)


def _check_finite(subject: str, value: Any, low: float | None = None, below: float | None = None) -> None:
    """Raise unless `value` is a finite number of at least `low` and below `below`; None: no bound."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ParameterTypeError(f"{subject} must be a number, got {format_value(value)} ({type(value).__name__}).")
    number = float(value)
    if not math.isfinite(number) or (low is not None and number < low) or (below is not None and number >= below):
        rule = "finite"
        if low is not None:
            rule = f"finite and at least {low:g}" if below is None else f"in [{low:g}, {below:g})"
        raise ParameterError(f"{subject} must be {rule}, got {format_value(value)}.")
