"""Tidy frames of what was learned: the parameters of each series, and its history taken apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.core.forecast import refuse_taken
from deepforecast.data import frames
from deepforecast.data.frames import Frame
from deepforecast.data.parts import EVENT, HOLIDAY, SEASON, Part, places, read
from deepforecast.errors import DataError
from deepforecast.models.additive._ahead import shown
from deepforecast.models.additive._evaluating import laid_out

if TYPE_CHECKING:
    from deepforecast.models.additive.prophet import Prophet

PLAIN = {"rate": "rate", "offset": "offset", "deviation": "deviation", "scale": "scale"}


def parameters(model: Prophet) -> Frame:
    """A row a series: trend and deviation in units of `scale` (and of time from 0 to 1 over the history), changes of slope by
    number, and a coefficient for each column of each part."""
    state = model.fitted()
    columns: dict[str, Any] = {}
    if state.series.columns.id is not None and state.series.ids is not None:
        columns[state.series.columns.id] = state.series.ids
    columns |= {name: state.learned[name] for name in PLAIN}
    for number in range(state.learned["delta"].shape[1]):
        columns[f"change_{number + 1}"] = state.learned["delta"][:, number]
    parts = read(state.learned["parts"])
    every = places(parts)
    for part in parts:
        for name, place in zip(_names(part), range(every[part.name].start, every[part.name].stop), strict=True):
            columns[name] = state.learned["coefficients"][:, place]
    return frames.build(state.series.library, columns)


def history_components(model: Prophet, frame: Frame | None) -> Frame:
    """A row for each row of a history and component: what adds up to what the model makes of that row."""
    state = model._at_end_of(frame, None)
    panel = state.learned.history
    if panel is None:
        raise DataError(
            f"{model.name} holds no history: it was loaded from a file, or some of its series were fitted and some only "
            "moved. Give the histories: frame=."
        )
    laid = laid_out(model, state.learned, panel.calendar, panel.row_series, panel.row_positions, panel.covariates)
    found = shown(model, state.learned, laid, laid.mean)
    names, rows = panel.series.columns, np.repeat(np.arange(len(panel.y)), len(found))
    columns: dict[str, Any] = {}
    if names.id is not None and panel.series.ids is not None:
        columns[names.id] = panel.series.ids[panel.row_series[rows]]
    columns[names.time] = panel.series.time_column(panel.row_positions[rows])
    refuse_taken(["component", "value"], columns)
    columns["component"] = np.array(list(found) * len(panel.y), dtype=object)
    columns["value"] = np.stack(list(found.values()), axis=-1).reshape(-1)
    return frames.build(panel.series.library, columns)


def _names(part: Part) -> Iterator[str]:
    """A name for each column of a part."""
    if part.kind == SEASON:
        for number in range(1, part.order + 1):
            yield f"{part.name}_sin_{number}"
            yield f"{part.name}_cos_{number}"
    elif part.kind == EVENT:
        for offset in range(part.lower, part.upper + 1):
            yield f"{part.name}{offset:+d}" if part.columns > 1 else part.name
    elif part.kind == HOLIDAY or part.names:
        yield from (f"{part.name}_{name}" for name in part.names)
    else:
        yield part.name
