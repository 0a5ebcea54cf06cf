"""Frames of fitted values, and the training data they are computed from."""

from __future__ import annotations

from typing import Any

from deepforecast.core.forecast import refuse_duplicate_columns
from deepforecast.core.state import LearnedState
from deepforecast.data import frames
from deepforecast.data.frames import Floats, Frame
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError


def require_training_data(name: str, learned: LearnedState) -> Panel:
    """The training data of the model with this name; raise a `DataError` if it does not have them."""
    if learned.history is None:
        raise DataError(
            f"{name} has no training data, because the model was loaded from a file or only some of its series were fitted.",
            hint="Pass the histories as `frame`.",
        )
    return learned.history


def fitted_frame(name: str, panel: Panel, fitted: Floats) -> Frame:
    """The id, time and target columns of a panel, and the fitted value of each row in the column `name`."""
    columns: dict[str, Any] = {}
    names = panel.series.columns
    if names.id is not None and panel.series.ids is not None:
        columns[names.id] = panel.series.ids[panel.row_series]
    columns[names.time] = panel.series.time_column(panel.row_positions)
    refuse_duplicate_columns([names.target, name], columns)
    columns[names.target] = panel.y
    columns[name] = fitted
    return frames.build(panel.series.library, columns)
