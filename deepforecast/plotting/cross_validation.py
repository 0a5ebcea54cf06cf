"""`plot_cross_validation`: forecasts of each window against observed values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from deepforecast.data.columns import CUTOFF, Columns, ModelColumns
from deepforecast.data.frames import Frame
from deepforecast.plotting.backends import Backend, check_backend, render
from deepforecast.plotting.chart import Array, Axis, Mark, Panel, Rules
from deepforecast.plotting.figure import MaxHistory, check_max_history, cut_history, panel_grid, series_title
from deepforecast.plotting.forecasts import forecast_marks, legend, observed_marks
from deepforecast.plotting.frames import TidyFrame, check_unique_timestamps, choose_series, open_frame
from deepforecast.plotting.gaps import GAP_FACTOR, TimeSteps, insert_breaks
from deepforecast.plotting.model_selection import choose_levels, choose_models

_MAX_RULES = 30


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
    """Plot the forecasts of each cross-validation window against the observed values.

    One panel per series; a dashed line marks each cutoff.

    Parameters
    ----------
    frame : DataFrame
        Result of `cross_validate` or `compare`, with the columns `unique_id`, `ds`, `cutoff`, `y`
        and one per model.
    history : DataFrame, optional
        Observations before the first cutoff.
    ids : id or list of ids, optional
        Series to plot. Default: the first 8.
    models : str or list of str, optional
        Models to plot. Default: all.
    level : float or list of float, optional
        Levels of the prediction intervals in percent. Default: all; [] plots none.
    max_history : int, "auto" or None, default "auto"
        Number of points before the first cutoff. "auto": about ten times the forecast. None: all.
    backend : {"matplotlib", "plotly", "svg"}, default "matplotlib"
        Library that draws the chart. plotly is an optional package.
    columns : Columns or mapping, optional
        Names of the id, time and target columns, and covariates.

    Returns
    -------
    matplotlib.figure.Figure, plotly.graph_objects.Figure or SvgFigure
        The figure of the chosen backend. Matplotlib figures are independent of pyplot; save them
        with `savefig`. `SvgFigure.svg(width)` is an SVG element in the colours of its page.

    See Also
    --------
    plot : Plot forecasts and the history before them.
    """
    check_backend(backend)
    check_max_history(max_history)
    windows = open_frame(frame, "cross-validation", columns)
    windows.column(CUTOFF)
    past = None if history is None else open_frame(history, "history", columns)
    chosen, count = choose_series([windows] if past is None else [windows, past], ids)
    drawn = choose_models(windows, models)
    levels = choose_levels(drawn, level)
    windows = windows.select_series(chosen)
    past = None if past is None else past.select_series(chosen)
    panels = []
    n_kept = 0
    for key in chosen:
        panel, n_cut = _panel(
            windows.series_rows(key), None if past is None else past.series_rows(key), key, (drawn, levels), max_history
        )
        panels.append(panel)
        n_kept = max(n_kept, n_cut)
    chart = panel_grid(panels, count, n_kept, legend(drawn, levels))
    stride = max(_stride(len(np.unique(windows.series_rows(key).timestamps(CUTOFF)))) for key in chosen)
    notes = [chart.note] * bool(chart.note) + [f"one cutoff in {stride} marked"] * (stride > 1)
    return render(replace(chart, note=" · ".join(notes)), backend)


def _panel(
    rows: TidyFrame,
    past: TidyFrame | None,
    key: Any,
    drawn: tuple[Sequence[ModelColumns], Sequence[float]],
    max_history: MaxHistory,
) -> tuple[Panel, int]:
    """Panel of one series, and the number of points of its history (0 if it is complete)."""
    stamps = rows.timestamps()
    cutoffs = rows.timestamps(CUTOFF)
    starts = np.flatnonzero(np.append(True, cutoffs[1:] != cutoffs[:-1]))
    for window in np.split(stamps, starts[1:]):
        check_unique_timestamps(window, key, replace(rows, frame=rows.frame.drop(CUTOFF)))
    marks: list[Mark] = forecast_marks(
        np.insert(stamps, starts[1:], stamps[starts[1:] - 1]),
        lambda column: np.insert(rows.values(column), starts[1:], np.nan),  # a break between two windows
        *drawn,
        layers=len(stamps) / len(np.unique(stamps)),
    )
    x, y, n_kept = _observed_values(rows, past, key, starts, max_history)
    window_cutoffs = cutoffs[starts]
    marks += [*observed_marks(x, y), Rules(window_cutoffs[:: _stride(len(window_cutoffs))], label="cutoff")]
    return Panel(tuple(marks), series_title(key), rows.axis(), Axis(rows.target)), n_kept


def _observed_values(
    rows: TidyFrame, past: TidyFrame | None, key: Any, starts: Array, max_history: MaxHistory
) -> tuple[Array, Array, int]:
    """Observed values of the windows and of the history; timestamps are unique."""
    all_stamps = rows.timestamps()
    values = rows.values(rows.target)
    stamps, first = np.unique(all_stamps, return_index=True)
    values = values[first]
    if past is None:
        return *insert_breaks(stamps, values, _window_gaps(stamps, all_stamps, starts)), 0
    history_stamps = past.timestamps()
    measured = past.values(past.target)
    check_unique_timestamps(history_stamps, key, past)
    skipped, n_kept = cut_history(history_stamps, stamps, max_history)
    merged = np.concatenate([stamps, history_stamps[skipped:]])
    merged, order = np.unique(merged, return_index=True)
    gaps = TimeSteps.from_timestamps(np.union1d(stamps, history_stamps), rows.axis().zone).find_gaps(merged)
    return *insert_breaks(merged, np.concatenate([values, measured[skipped:]])[order], gaps), n_kept


def _window_gaps(stamps: Array, all_stamps: Array, starts: Array) -> Array:
    """Positions of timestamps that follow a gap between two windows."""
    steps = np.delete(np.diff(all_stamps), starts[1:] - 1)
    return np.flatnonzero(np.diff(stamps) > GAP_FACTOR * np.max(steps)) + 1 if len(steps) else starts[:0]


def _stride(count: int) -> int:
    return -(-count // _MAX_RULES)
