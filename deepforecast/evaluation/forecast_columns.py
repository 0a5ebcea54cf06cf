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
    candidates = [name for name in table.columns if name not in keys and name not in (CUTOFF, STEP, SAMPLE)]
    numeric = [name for name in candidates if table[name].dtype.is_numeric()]
    non_numeric = [name for name in candidates if name not in set(numeric)]
    if non_numeric and not quiet:
        warn(f"Columns that are not numbers are no forecasts and left out: {format_list(non_numeric)}. Name the models: models=[...].")
    models = models_in_columns(numeric)
    for model in models:
        _check_intervals(model)
    if not models:
        columns = format_list(table.columns, max_shown=12)
        raise DataError(f"Forecasts have a numeric column for each model; the columns found are {columns}.")
    return models


def refuse_ambiguous_names(models: Sequence[str]) -> None:
    """No model's name reads like a column of another, so that it would be taken for one."""
    for name in models:
        match = SUFFIX.fullmatch(name)
        if match is not None and match["model"] in models:
            raise ParameterError(
                f"A model's name does not read like a column of another; {format_value(name)} does, of {format_value(match['model'])}. "
                "Give it another alias=."
            )


def select_models(available: Sequence[ModelColumns], models: str | Iterable[str] | None) -> list[ModelColumns]:
    """The models named, in the order of the columns; all of them if none is named."""
    if models is None:
        return list(available)
    requested = [models] if isinstance(models, str) else list(models)
    if not requested:
        raise ParameterError(f"models names at least one of {_format_names(available)}, got none.")
    for name in requested:
        get_model(available, name, "models")
    return [model for model in available if model.name in requested]


def get_model(available: Sequence[ModelColumns], name: object, argument: str) -> ModelColumns:
    """The model of that name, or an error with the names that are near."""
    for model in available:
        if model.name == name:
            return model
    close_matches = get_close_matches(str(name), [model.name for model in available], n=3)
    hint = f"did you mean {' or '.join(close_matches)}?" if close_matches else f"there are {_format_names(available)}."
    raise ParameterError(f"{argument} names a model column of the forecasts; there is no {format_value(name)}: {hint}")


def _format_names(models: Sequence[ModelColumns]) -> str:
    return format_list([model.name for model in models], max_shown=12)


def _check_intervals(model: ModelColumns) -> None:
    unpaired = sorted(set(model.lo) ^ set(model.hi))
    if unpaired:
        present, absent = ("lo", "hi") if unpaired[0] in model.lo else ("hi", "lo")
        level = format_number(unpaired[0])
        raise DataError(
            f"An interval has two ends; there is {model.name}-{present}-{level} but no {model.name}-{absent}-{level}. "
            "Add that column, or drop the other."
        )
