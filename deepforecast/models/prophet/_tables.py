"""Data frames of the parameters and of the components of the history."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.core.forecast import refuse_duplicate_columns
from deepforecast.data import frames
from deepforecast.data.components import EVENT, HOLIDAY, SEASON, ComponentSpec, from_dicts
from deepforecast.data.frames import Frame
from deepforecast.errors import DataError
from deepforecast.models.prophet._predict import component_values
from deepforecast.models.prophet._row_components import evaluate_rows

if TYPE_CHECKING:
    from deepforecast.models.prophet.prophet import Prophet

PARAMETER_COLUMNS = {"rate": "rate", "offset": "offset", "deviation": "deviation", "scale": "scale"}


def parameters(model: Prophet) -> Frame:
    """The result of `Prophet.parameters`: one row per series with the estimated parameters."""
    state = model.fitted_state()
    columns: dict[str, Any] = {}
    if state.series.columns.id is not None and state.series.ids is not None:
        columns[state.series.columns.id] = state.series.ids
    columns |= {name: state.learned[name] for name in PARAMETER_COLUMNS}
    for index in range(state.learned["delta"].shape[1]):
        columns[f"change_{index + 1}"] = state.learned["delta"][:, index]
    components = from_dicts(state.learned["parts"])
    names = (name for component in components for name in _coefficient_names(component))
    for name, coefficients in zip(names, state.learned["coefficients"].T, strict=True):
        columns[name] = coefficients
    return frames.build(state.series.library, columns)


def history_components(model: Prophet, frame: Frame | None) -> Frame:
    """The result of `Prophet.components`: one row per series, time and component."""
    state = model._state_for_frame(frame, None)
    panel = state.learned.history
    if panel is None:
        raise DataError(
            f"{model.name} must have the training data to compute the components of the history. They are not available after "
            "loading the model from a file, or if new series were added by `update`.",
            hint="Pass the histories as `frame`.",
        )
    row_components = evaluate_rows(
        model,
        state.learned,
        panel.calendar,
        panel.row_series,
        panel.row_positions,
        panel.covariates,
    )
    components = component_values(model, state.learned, row_components, row_components.mean)
    names, rows = panel.series.columns, np.repeat(np.arange(len(panel.y)), len(components))
    columns: dict[str, Any] = {}
    if names.id is not None and panel.series.ids is not None:
        columns[names.id] = panel.series.ids[panel.row_series[rows]]
    columns[names.time] = panel.series.time_column(panel.row_positions[rows])
    refuse_duplicate_columns(["component", "value"], columns)
    columns["component"] = np.array(list(components) * len(panel.y), dtype=object)
    columns["value"] = np.stack(list(components.values()), axis=-1).reshape(-1)
    return frames.build(panel.series.library, columns)


def _coefficient_names(component: ComponentSpec) -> Iterator[str]:
    """Yield the names of the coefficients of a component, one per column."""
    if component.kind == SEASON:
        for term in range(1, component.order + 1):
            yield f"{component.name}_sin_{term}"
            yield f"{component.name}_cos_{term}"
    elif component.kind == EVENT:
        for offset in range(component.lower, component.upper + 1):
            yield f"{component.name}{offset:+d}" if component.columns > 1 else component.name
    elif component.kind == HOLIDAY or component.names:
        yield from (f"{component.name}_{name}" for name in component.names)
    else:
        yield component.name
