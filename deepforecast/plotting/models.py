"""Which of the models of a frame of forecasts are drawn, and which of their levels."""

from __future__ import annotations

from collections.abc import Sequence

from deepforecast.data.forecast_names import CUTOFF, SAMPLE, STEP, ModelColumns, format_number, models_in_columns
from deepforecast.errors import DataError, ParameterError, format_list, format_value
from deepforecast.plotting.choices import unknown
from deepforecast.plotting.frames import Tidy


def find_models(table: Tidy) -> dict[str, ModelColumns]:
    """The models by name, in the order of the columns: of all that are numeric and no keys or covariates."""
    keys = {table.id, table.time, table.target, CUTOFF, STEP, SAMPLE, *table.covariates}
    return {model.name: model for model in models_in_columns([name for name in table.numeric_columns() if name not in keys])}


def choose_models(table: Tidy, models: str | Sequence[str] | None) -> list[ModelColumns]:
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
    return DataError(
        f"The {table.what} must have a numeric column for each model, got the columns {format_list(table.frame.columns, max_shown=10)}. "
        "Pass what `predict` or `cross_validate` returns."
    )


def choose_levels(models: Sequence[ModelColumns], level: float | Sequence[float] | None) -> list[float]:
    """The levels to draw, widest first; every one asked for must be there for at least one model."""
    there = sorted({known for model in models for known in model.intervals}, reverse=True)
    if level is None:
        return there
    asked = [level] if isinstance(level, int | float) else list(level)
    for one in asked:
        if isinstance(one, bool) or not isinstance(one, int | float) or not 0 < one < 100:
            raise ParameterError(f"A level is a number between 0 and 100; got {format_value(one)}. Give for example level=[80, 95].")
        if one not in there:
            listed = format_list([format_number(known) for known in there], max_shown=10) or "none"
            raise ParameterError(
                f"`level` must be one of the forecasts' levels, got {format_number(one)}. There are: {listed}. "
                f"Pass level={format_number(one)} to `predict`, `cross_validate` or `compare`."
            )
    return sorted(set(asked), reverse=True)
