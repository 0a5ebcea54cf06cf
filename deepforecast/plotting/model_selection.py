"""Selection of the models and levels of a forecast frame."""

from __future__ import annotations

from collections.abc import Sequence

from deepforecast.data.columns import CUTOFF, SAMPLE, STEP, ModelColumns, format_number, models_in_columns
from deepforecast.errors import DataError, ParameterError, format_list, format_value
from deepforecast.plotting.choices import unknown_choice
from deepforecast.plotting.frames import TidyFrame


def find_models(table: TidyFrame) -> dict[str, ModelColumns]:
    """Models by name, in column order: numeric columns except keys and covariates."""
    keys = {table.id, table.time, table.target, CUTOFF, STEP, SAMPLE, *table.covariates}
    return {model.name: model for model in models_in_columns([name for name in table.numeric_columns() if name not in keys])}


def choose_models(table: TidyFrame, models: str | Sequence[str] | None) -> list[ModelColumns]:
    """The requested models, in that order; all by default."""
    available = find_models(table)
    if not available:
        raise no_model_error(table)
    if models is None:
        return list(available.values())
    names = [models] if isinstance(models, str) else list(models)
    for name in names:
        if name not in available:
            raise unknown_choice("model", name, list(available))
    if not names:
        raise unknown_choice("model", models, list(available))
    return [available[name] for name in dict.fromkeys(names)]


def no_model_error(table: TidyFrame) -> DataError:
    """The error for a frame without forecasts."""
    return DataError(
        f"The {table.description} must have a numeric column for each model, got the columns "
        f"{format_list(table.frame.columns, max_shown=10)}.",
        hint="Pass the result of `predict` or `cross_validate`.",
    )


def choose_levels(models: Sequence[ModelColumns], level: float | Sequence[float] | None) -> list[float]:
    """The levels to plot, widest first; each must exist for at least one model."""
    available = sorted({available_level for model in models for available_level in model.intervals}, reverse=True)
    if level is None:
        return available
    requested = [level] if isinstance(level, int | float) else list(level)
    for requested_level in requested:
        if isinstance(requested_level, bool) or not isinstance(requested_level, int | float) or not 0 < requested_level < 100:
            raise ParameterError(
                f"`level` must be a number above 0 and below 100, got {format_value(requested_level)}.",
                hint="Pass for example level=[80, 95].",
                parameter="level",
                value=requested_level,
            )
        if requested_level not in available:
            listed = format_list([format_number(available_level) for available_level in available], max_shown=10) or "none"
            raise ParameterError(
                f"`level` must be among the levels of the forecasts ({listed}), got {format_number(requested_level)}.",
                hint=f"Pass level={format_number(requested_level)} to `predict`, `cross_validate` or `compare` first.",
                parameter="level",
            )
    return sorted(set(requested), reverse=True)
