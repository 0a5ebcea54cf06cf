"""Which models a frame of forecasts holds, and which columns are their point, their intervals and their quantiles."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from deepforecast.errors import DataError, ParameterError, shown, some
from deepforecast.plotting.choices import unknown
from deepforecast.plotting.frames import CUTOFF, Tidy
from deepforecast.plotting.style import number_text

_BOUND = re.compile(r"(?P<model>.+)-(?P<side>lo|hi)-(?P<number>\d+(?:\.\d+)?)")
_QUANTILE = re.compile(r"(?P<model>.+)-q-(?P<number>0?\.\d+)")


@dataclass
class Model:
    """The columns of one model: `bands` maps a level to the columns of its lower and upper bound."""

    name: str
    point: str | None = None
    bands: dict[float, tuple[str, str]] = field(default_factory=dict)


def find_models(table: Tidy) -> dict[str, Model]:
    """The models by name, in the order of the columns.

    A level that is not there as bounds is taken from its two quantiles: 0.1 and 0.9 are the bounds of 80 %.
    """
    found: dict[str, Model] = {}
    sides: dict[tuple[str, float], dict[str, str]] = {}
    quantiles: dict[tuple[str, float], str] = {}
    for column in _candidates(table):
        if bound := _BOUND.fullmatch(column):
            found.setdefault(bound["model"], Model(bound["model"]))
            sides.setdefault((bound["model"], float(bound["number"])), {})[bound["side"]] = column
        elif quantile := _QUANTILE.fullmatch(column):
            found.setdefault(quantile["model"], Model(quantile["model"]))
            quantiles[quantile["model"], float(quantile["number"])] = column
        else:
            found.setdefault(column, Model(column)).point = column
    for (name, level), side in sides.items():
        if len(side) == 2:
            found[name].bands[level] = (side["lo"], side["hi"])
    _add_quantiles(found, quantiles)
    return found


def choose_models(table: Tidy, models: str | Sequence[str] | None) -> list[Model]:
    """The models asked for, in that order; all of them if none is named."""
    found = find_models(table)
    if not found:
        raise no_model(table)
    if models is None:
        return list(found.values())
    wanted = [models] if isinstance(models, str) else list(models)
    for name in wanted:
        if name not in found:
            raise unknown("model", name, list(found))
    if not wanted:
        raise unknown("model", models, list(found))
    return [found[name] for name in dict.fromkeys(wanted)]


def no_model(table: Tidy) -> DataError:
    """The error for a frame without forecasts."""
    return DataError(f"The {table.what} has a numeric column for each model; it has {some(table.frame.columns, most=10)}.")


def choose_levels(models: Sequence[Model], level: float | Sequence[float] | None) -> list[float]:
    """The levels to draw, widest first; every one asked for must be there for at least one model."""
    there = sorted({known for model in models for known in model.bands}, reverse=True)
    if level is None:
        return there
    asked = [level] if isinstance(level, int | float) else list(level)
    for one in asked:
        if isinstance(one, bool) or not isinstance(one, int | float) or not 0 < one < 100:
            raise ParameterError(f"A level is a number between 0 and 100; got {shown(one)}. Give for example level=[80, 95].")
        if one not in there:
            listed = some([number_text(known) for known in there], most=10) or "none"
            raise ParameterError(
                f"A level is drawn if the forecasts hold it; {number_text(one)} is not among them. There are: {listed}. "
                f"Ask for it when forecasting: predict(level={number_text(one)})."
            )
    return sorted(set(asked), reverse=True)


def _candidates(table: Tidy) -> list[str]:
    keys: set[Any] = {table.id, table.time, table.target, CUTOFF}
    return [name for name in table.numeric_columns() if name not in keys]


def _add_quantiles(found: dict[str, Model], quantiles: dict[tuple[str, float], str]) -> None:
    """Levels from pairs of quantiles; the median as the point of a model that has no other."""
    by_place = {(name, round(place, 6)): column for (name, place), column in quantiles.items()}
    for (name, place), column in by_place.items():
        mirror = by_place.get((name, round(1 - place, 6)))
        if place < 0.5 and mirror is not None:
            found[name].bands.setdefault(round(100 * (1 - 2 * place), 4), (column, mirror))
        if place == 0.5 and found[name].point is None:
            found[name].point = column
