"""The models in a frame of forecasts, identified by its columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import Any

import narwhals.stable.v2 as nw

from deepforecast.data.columns import CUTOFF, SAMPLE, STEP, SUFFIX, ModelColumns, format_number, models_in_columns
from deepforecast.errors import DataError, ParameterError, format_list, format_value, warn


def find_models(table: nw.DataFrame[Any], keys: Collection[str], *, warn_non_numeric: bool = True) -> list[ModelColumns]:
    """The models of a frame in the order of its columns: all numeric columns except keys and
    interval or quantile columns of other models.

    Columns that are not numeric are left out, with a `DataWarning` if `warn_non_numeric`.
    """
    candidates = [name for name in table.columns if name not in keys and name not in (CUTOFF, STEP, SAMPLE)]
    numeric = [name for name in candidates if table[name].dtype.is_numeric()]
    non_numeric = [name for name in candidates if name not in set(numeric)]
    if non_numeric and warn_non_numeric:
        warn(f"Columns that are not numeric are ignored: {format_list(non_numeric)}. Pass `models` to silence this warning.")
    models = models_in_columns(numeric)
    for model in models:
        _check_intervals(model)
    if not models:
        columns = format_list(table.columns, max_shown=12)
        raise DataError(f"Forecasts must have a numeric column for each model, got columns {columns}.")
    return models


def refuse_ambiguous_names(models: Sequence[str]) -> None:
    """Refuse names of models that look like an interval or quantile column of another model."""
    for name in models:
        match = SUFFIX.fullmatch(name)
        if match is not None and match["model"] in models:
            raise ParameterError(
                f"The name of a model cannot look like an interval or quantile column of another model: {format_value(name)} "
                f"looks like a column of {format_value(match['model'])}.",
                hint="Set another `alias`.",
            )


def select_models(available: Sequence[ModelColumns], models: str | Iterable[str] | None) -> list[ModelColumns]:
    """The selected models in the order of the columns (None: all)."""
    if models is None:
        return list(available)
    requested = [models] if isinstance(models, str) else list(models)
    if not requested:
        raise ParameterError(
            f"`models` must contain at least one of {_format_names(available)}, got an empty list.",
            hint="Add one.",
            parameter="models",
        )
    for name in requested:
        get_model(available, name, "models")
    return [model for model in available if model.name in requested]


def get_model(available: Sequence[ModelColumns], name: object, argument: str) -> ModelColumns:
    """The model of that name; `ParameterError` with similar names if there is none."""
    for model in available:
        if model.name == name:
            return model
    close_matches = get_close_matches(str(name), [model.name for model in available], n=3)
    hint = f"Did you mean {' or '.join(close_matches)}?" if close_matches else f"Use one of {_format_names(available)}."
    raise ParameterError(
        f"`{argument}` must be a model column of the forecasts, got {format_value(name)}.",
        hint=hint,
        parameter=argument,
        value=name,
    )


def _format_names(models: Sequence[ModelColumns]) -> str:
    return format_list([model.name for model in models], max_shown=12)


def _check_intervals(model: ModelColumns) -> None:
    """Raise `DataError` if a lower bound has no upper bound or vice versa."""
    unpaired = sorted(set(model.lo) ^ set(model.hi))
    if unpaired:
        present, absent = ("lo", "hi") if unpaired[0] in model.lo else ("hi", "lo")
        level = format_number(unpaired[0])
        raise DataError(
            f"An interval must have two bounds, but the forecasts have a column {model.name}-{present}-{level} and no column "
            f"{model.name}-{absent}-{level}.",
            hint="Add the second column, or drop the first.",
        )
