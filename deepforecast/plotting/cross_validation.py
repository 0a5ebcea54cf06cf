"""`plot_cross_validation`: what each window forecast, against what came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from deepforecast.data.columns import Columns
from deepforecast.data.forecast_names import CUTOFF, ModelColumns
from deepforecast.data.frames import Frame
from deepforecast.plotting.backends import Backend, check_backend, render
from deepforecast.plotting.chart import Array, Axis, Mark, Panel, Rules
from deepforecast.plotting.figure import MaxHistory, check_max_history, cut_history, grid, title_of
from deepforecast.plotting.forecasts import forecast_marks, legend, observed_marks
from deepforecast.plotting.frames import Tidy, check_stamps, choose_series, open_frame
from deepforecast.plotting.holes import FAR, Steps, broken
from deepforecast.plotting.models import choose_levels, choose_models

_MOST_RULES = 30


def plot_cross_validation(
    frame: Frame,
    *,
    history: Frame | None = None,
    ids: Any = None,
    models: str | Sequence[str] | None = None,
    level: float | Sequence[float] | None = None,
    max_history: MaxHistory = "auto",
    backend: Backend = "matplotlib",
    columns: Columns | Mapping[str, Any] | None = None,
) -> Any:
    """Draw the forecasts of each window of a cross-validation against what was observed: one panel a series.

    `frame` is what `cross_validate` gives (`unique_id, ds, cutoff, y` and the models) or what `compare` gives; a dashed
    line stands at each cutoff. `history` adds what came before the first one. The other options are those of `plot`.
    """
    check_backend(backend)
    check_max_history(max_history)
    windows = open_frame(frame, "cross-validation", columns)
    windows.column(CUTOFF)
    past = None if history is None else open_frame(history, "history", columns)
    chosen, count = choose_series([windows] if past is None else [windows, past], ids)
    drawn = choose_models(windows, models)
    levels = choose_levels(drawn, level)
    windows, past = windows.only(chosen), None if past is None else past.only(chosen)
    panels, kept = [], 0
    for key in chosen:
        panel, cut = _panel(windows.of(key), None if past is None else past.of(key), key, (drawn, levels), max_history)
        panels.append(panel)
        kept = max(kept, cut)
    chart = grid(panels, count, kept, legend(drawn, levels))
    every = max(_stride(len(np.unique(windows.of(key).stamps(CUTOFF)))) for key in chosen)
    said = [chart.note] * bool(chart.note) + [f"a line at one cutoff in {every}"] * (every > 1)
    return render(replace(chart, note=" · ".join(said)), backend)


def _panel(
    rows: Tidy, past: Tidy | None, key: Any, drawn: tuple[Sequence[ModelColumns], Sequence[float]], max_history: MaxHistory
) -> tuple[Panel, int]:
    """The panel of one series, and how many points its history was cut to (0 if it is whole)."""
    stamps, cutoffs = rows.stamps(), rows.stamps(CUTOFF)
    starts = np.flatnonzero(np.append(True, cutoffs[1:] != cutoffs[:-1]))
    for window in np.split(stamps, starts[1:]):
        check_stamps(window, key, replace(rows, frame=rows.frame.drop(CUTOFF)))
    marks: list[Mark] = forecast_marks(
        np.insert(stamps, starts[1:], stamps[starts[1:] - 1]),
        lambda column: np.insert(rows.values(column), starts[1:], np.nan),  # a break between two windows
        *drawn,
        layers=len(stamps) / len(np.unique(stamps)),
    )
    x, y, kept = _observed(rows, past, key, starts, max_history)
    every = cutoffs[starts]
    marks += [*observed_marks(x, y), Rules(every[:: _stride(len(every))], label="cutoff")]
    return Panel(tuple(marks), title_of(key), rows.axis(), Axis(rows.target)), kept


def _observed(rows: Tidy, past: Tidy | None, key: Any, starts: Array, max_history: MaxHistory) -> tuple[Array, Array, int]:
    """What was measured, each stamp once: of the windows, and of the history if there is one."""
    every, values = rows.stamps(), rows.values(rows.target)
    stamps, first = np.unique(every, return_index=True)
    values = values[first]
    if past is None:
        return *broken(stamps, values, _between_windows(stamps, every, starts)), 0
    before, measured = past.stamps(), past.values(past.target)
    check_stamps(before, key, past)
    skipped, kept = cut_history(before, stamps, max_history)
    merged = np.concatenate([stamps, before[skipped:]])
    merged, where = np.unique(merged, return_index=True)
    holes = Steps.of(np.union1d(stamps, before), rows.axis().zone).holes(merged)
    return *broken(merged, np.concatenate([values, measured[skipped:]])[where], holes), kept


def _between_windows(stamps: Array, every: Array, starts: Array) -> Array:
    """The positions of stamps that two windows leave a hole before: nothing is known of what happened there."""
    inside = np.delete(np.diff(every), starts[1:] - 1)
    return np.flatnonzero(np.diff(stamps) > FAR * np.max(inside)) + 1 if len(inside) else starts[:0]


def _stride(count: int) -> int:
    return -(-count // _MOST_RULES)
