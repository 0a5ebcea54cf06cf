"""Which models a frame of forecasts holds: found among its columns, refused where they contradict, chosen by name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import Any

import narwhals.stable.v2 as nw

from deepforecast.data.forecast_names import CUTOFF, SAMPLE, STEP, SUFFIX, ModelColumns, format_number, models_in_columns
from deepforecast.errors import DataError, ParameterError, format_list, format_value, warn


def find_models(table: nw.DataFrame[Any], keys: Collection[str], *, quiet: bool = False) -> list[ModelColumns]:
    """The models of a frame in the order of its columns: every numeric column that is no key and no suffix of another model.

    Columns that are not numeric are left out with one `DataWarning`, unless `quiet`.
    """
    others = [name for name in table.columns if name not in keys and name not in (CUTOFF, STEP, SAMPLE)]
    numeric = [name for name in others if table[name].dtype.is_numeric()]
    idle = [name for name in others if name not in set(numeric)]
    if idle and not quiet:
        warn(f"Columns that are not numbers are no forecasts and left out: {format_list(idle)}. Name the models: models=[...].")
    found = models_in_columns(numeric)
    for model in found:
        _check_pairs(model)
    if not found:
        there = format_list(table.columns, max_shown=12)
        raise DataError(f"Forecasts have a numeric column for each model; the columns found are {there}.")
    return found


def refuse_lookalikes(models: Sequence[str]) -> None:
    """No model's name reads like a column of another, so that it would be taken for one."""
    for name in models:
        match = SUFFIX.fullmatch(name)
        if match is not None and match["model"] in models:
            raise ParameterError(
                f"A model's name does not read like a column of another; {format_value(name)} does, of {format_value(match['model'])}. "
                "Give it another alias=."
            )


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
    raise ParameterError(f"{argument} names a model column of the forecasts; there is no {format_value(name)}: {hint}")


def _names(found: Sequence[ModelColumns]) -> str:
    return format_list([model.name for model in found], max_shown=12)


def _check_pairs(model: ModelColumns) -> None:
    lone = sorted(set(model.lo) ^ set(model.hi))
    if lone:
        there, lacking = ("lo", "hi") if lone[0] in model.lo else ("hi", "lo")
        level = format_number(lone[0])
        raise DataError(
            f"An interval has two ends; there is {model.name}-{there}-{level} but no {model.name}-{lacking}-{level}. "
            "Add that column, or drop the other."
        )
