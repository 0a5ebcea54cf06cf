"""Which columns of a frame of forecasts belong to which model: its points, its intervals and its quantiles."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import narwhals.stable.v2 as nw

from deepforecast.core.forecast import number_text
from deepforecast.errors import DataError, ParameterError, say, shown, some

CUTOFF, STEP, SAMPLE = "cutoff", "step", "sample"
SUFFIX = re.compile(r"(?P<model>.+)-(?P<kind>lo|hi|q)-(?P<number>\d+(\.\d+)?(e-\d+)?)")
DIGITS = 9  # of probabilities


@dataclass(frozen=True)
class ModelColumns:
    """The columns of one model: the ends of its interval by level, and its quantiles by probability."""

    name: str
    lo: dict[float, str] = field(default_factory=dict)
    hi: dict[float, str] = field(default_factory=dict)
    q: dict[float, str] = field(default_factory=dict)

    @property
    def levels(self) -> list[float]:
        """The levels of the intervals, the lowest first."""
        return sorted(self.lo)

    @property
    def all(self) -> tuple[str, ...]:
        """Every column of the model, the point first."""
        return (self.name, *self.lo.values(), *self.hi.values(), *self.q.values())

    def quantiles(self) -> dict[float, str]:
        """The column of each probability: its own, else the end of an interval, else the point for the median."""
        ends = {rounded((100 - level) / 200): name for level, name in self.lo.items()}
        ends |= {rounded((100 + level) / 200): name for level, name in self.hi.items()}
        return {0.5: self.name, **ends, **{rounded(probability): name for probability, name in self.q.items()}}


def find_models(table: nw.DataFrame[Any], keys: Collection[str], *, quiet: bool = False) -> list[ModelColumns]:
    """The models of a frame in the order of its columns: every numeric column that is no key and no suffix of another model.

    `LSTM-lo-80` belongs to `LSTM` only where there is a column `LSTM`, so that a model may be named `A-lo-fi` or even `A-lo-5`.
    Columns that are not numeric are left out with one `DataWarning`, unless `quiet`.
    """
    others = [name for name in table.columns if name not in keys and name not in (CUTOFF, STEP, SAMPLE)]
    numeric = [name for name in others if table[name].dtype.is_numeric()]
    idle = [name for name in others if name not in set(numeric)]
    if idle and not quiet:
        say(f"Columns that are not numbers are no forecasts and left out: {some(idle)}. Name the models: models=[...].")
    found = _assigned(numeric)
    if not found:
        there = some(table.columns, most=12)
        raise DataError(f"Forecasts have a numeric column for each model; the columns found are {there}.")
    return found


def chosen(found: Sequence[ModelColumns], models: str | Iterable[str] | None) -> list[ModelColumns]:
    """The models named, in the order of the columns; all of them if none is named."""
    if models is None:
        return list(found)
    wanted = [models] if isinstance(models, str) else list(models)
    if not wanted:
        raise ParameterError(f"models names at least one of {_names(found)}, got none.")
    for name in wanted:
        model_named(found, name, "models")
    return [model for model in found if model.name in wanted]


def model_named(found: Sequence[ModelColumns], name: object, argument: str) -> ModelColumns:
    """The model of that name, or an error with the names that are near."""
    for model in found:
        if model.name == name:
            return model
    near = get_close_matches(str(name), [model.name for model in found], n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {_names(found)}."
    raise ParameterError(f"{argument} names a model column of the forecasts; there is no {shown(name)}: {hint}")


def _names(found: Sequence[ModelColumns]) -> str:
    return some([model.name for model in found], most=12)


def _assigned(numeric: Sequence[str]) -> list[ModelColumns]:
    there = set(numeric)
    found = {name: ModelColumns(name) for name in numeric if _part(name, there) is None}
    for name in numeric:
        part = _part(name, there)
        if part is None:
            continue
        model, kind, number = part
        columns = getattr(found[model], kind)
        if number in columns:
            raise DataError(f"A model has one column a level or quantile; {columns[number]} and {name} are the same. Drop one.")
        columns[number] = name
    for held in found.values():
        _check_pairs(held)
    return list(found.values())


def _part(name: str, there: Collection[str]) -> tuple[str, str, float] | None:
    """Model, kind and number of a column that belongs to another; None for a model of its own."""
    match = SUFFIX.fullmatch(name)
    if match is None or match["model"] not in there or _part(match["model"], there) is not None:
        return None
    number = float(match["number"])
    return (match["model"], match["kind"], number) if 0 < number < (1 if match["kind"] == "q" else 100) else None


def _check_pairs(model: ModelColumns) -> None:
    lone = sorted(set(model.lo) ^ set(model.hi))
    if lone:
        there, lacking = ("lo", "hi") if lone[0] in model.lo else ("hi", "lo")
        level = number_text(lone[0])
        raise DataError(
            f"An interval has two ends; there is {model.name}-{there}-{level} but no {model.name}-{lacking}-{level}. "
            "Add that column, or drop the other."
        )


def rounded(probability: float) -> float:
    """A probability as it is compared: (100 + 80) / 200 and 0.9 are one."""
    return round(probability, DIGITS)
